/* tools/ablation/naive_product.c - what naive kernels of products and convolutions read: a table of
   all terms. */
#include <stdlib.h>

#include "tools/ablation/ablation.h"
#include "tools/reference/reference_tensor_product.h"

naive_arguments ablation_naive_product(work *w, const clb_tensor_product_desc *d,
                                       int64_t y_stride) {
  reference_product *r = reference_product_create(d);
  if (!r) fatal("bench: no memory, or a product that the reference does not take");
  const clb_tensor_product_sizes sizes = reference_product_sizes(r);
  naive_arguments a = {.X = sizes.x, .Y = y_stride, .W = sizes.w, .Z = sizes.z};
  int n = reference_product_terms(r, NULL);
  reference_term *terms = allocate((size_t)n, sizeof *terms);
  int32_t *numbers = allocate(7 * (size_t)n, sizeof *numbers);
  float *coefficients = allocate((size_t)n, sizeof *coefficients);
  reference_product_terms(r, terms);
  for (int i = 0; i < n; i++) {
    const reference_term *t = &terms[i];
    const int32_t of_term[] = {t->x, t->dx, t->y, t->w, t->z, t->dz, t->channels};
    for (int k = 0; k < 7; k++) numbers[7 * i + k] = of_term[k];
    coefficients[i] = (float)t->c;
    if (t->channels > a.channels) a.channels = t->channels;
  }
  a.terms = n;
  a.term = work_address(w, work_ints(w, 7 * n, numbers));
  a.coefficient = work_address(w, work_rows(w, n, 1, coefficients).buffer);
  free(terms), free(numbers), free(coefficients);
  reference_product_destroy(r);
  return a;
}
