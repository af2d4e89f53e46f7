/* tests/ops/convolution/convolution_vectored.h - graph convolutions that compute y from edge
   vectors, and the same ones with harmonics given. */
#ifndef CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_VECTORED_H
#define CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_VECTORED_H

#include "tests/ops/convolution/convolution_problems.h"

#include "tools/reference/reference_spherical_harmonics.h"

typedef struct {
  convolution *run,
      *given; /* of the library: rows of y are vectors; of the plain sums: harmonics */
  clb_spherical_harmonics_desc sh;
  int degrees[DENSE_TERMS], columns; /* columns: of harmonics */
} vectored;

static inline vectored vectored_create(place *at, const clb_convolution_desc *desc) {
  clb_convolution_desc d = *desc;
  vectored v = {.given = convolution_create(context_at(at), &d)};
  d.vectors = 1;
  v.run = convolution_create(context_at(at), &d);
  v.run->product.width[LIKE_Y] = 3;
  v.columns = v.given->product.width[LIKE_Y];
  const dense_irreps *y = &v.given->product.dense->of[LIKE_Y];
  for (int t = 0; t < y->n; t++) v.degrees[t] = y->term[t].l;
  v.sh = (clb_spherical_harmonics_desc){
      .n_degrees = y->n, .normalization = desc->normalization, .normalize = 1};
  return v;
}

static inline void vectored_destroy(vectored *v) {
  convolution_destroy(v->run);
  convolution_destroy(v->given);
}

/* Some vectors are 0, some point along the polar axis, up and down, and some nearly so; in f16 and
   bf16 none is short, so that nothing leaves their range. */
static inline arrays vectored_arrays(const vectored *v, const edge_list *e, uint64_t seed) {
  arrays a = convolution_arrays(v->run, e, seed);
  bool half = v->run->desc.product.storage >= CLB_F16;
  for (int i = 0; i < e->rows[LIKE_Y]; i++) {
    double *x = a.in[LIKE_Y] + 3 * i;
    if (half) x[0] += x[0] < 0 ? -1 : 1;
    if (i % 11 == 4) x[0] = x[1] = x[2] = 0;
    if (i % 7 == 2) {
      x[0] *= i % 3 ? 0 : 0x1p-9;
      x[1] += x[1] < 0 ? -1 : 1;
      x[2] = 0;
    }
  }
  return a;
}

#endif
