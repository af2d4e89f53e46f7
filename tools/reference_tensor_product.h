/* reference_tensor_product.h - the Clebsch-Gordan tensor product and two derivatives, as plain sums over all terms in float64. */
#ifndef REFERENCE_TENSOR_PRODUCT_H
#define REFERENCE_TENSOR_PRODUCT_H

#include <clebsch/clebsch.h>

enum { REFERENCE_MAX_TERMS = 512, REFERENCE_MAX_L = 12 };

typedef struct {
  int n, dim;
  struct {
    int mul, l, parity, at;
  } term[REFERENCE_MAX_TERMS];
} reference_irreps;

/* Returns 0 where the text is wrong. */
int reference_irreps_read(const char *text, reference_irreps *irreps);

/* Mode uvu, one output term for each allowed (x, y, irrep of filter), sorted by l, then the parity of (-1)^l first.  Returns the number
   of instructions, or -1 where a text is wrong or something does not fit. */
int reference_channel_wise(const char *x, const char *y, const char *filter, char *z, size_t z_size, clb_instruction *instructions, int max);

/* Wigner 3j symbols in the real basis, C[2 l1 + 1][2 l2 + 1][2 l3 + 1]. */
void reference_3j(int l1, int l2, int l3, double *C);

/* Of the description only irreps, instructions (mode uvu), normalisations and layouts matter. */
typedef struct reference_product reference_product;
reference_product *reference_product_create(const clb_tensor_product_desc *desc); /* NULL: the description is wrong, or no memory */
void reference_product_destroy(reference_product *p);
clb_tensor_product_sizes reference_product_sizes(const reference_product *p);

/* Operands are dense rows, in the order of the calls of clebsch.h: inputs, then outputs; scale[] holds an array for each output: the
   sums of the absolute values of its terms. */
void reference_product_run(const reference_product *p, clb_pass pass, int64_t rows, const double *const *inputs, double *const *outputs, double *const *scales);

#endif
