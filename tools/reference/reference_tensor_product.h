/* tools/reference/reference_tensor_product.h - the Clebsch-Gordan tensor product and three
   derivatives, as direct sums over all terms in float64. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_TENSOR_PRODUCT_H
#define CLB_TOOLS_REFERENCE_REFERENCE_TENSOR_PRODUCT_H

#include "tools/reference/reference_irreps.h"

/* Operands of a pass, all dense rows: inputs, then outputs, in the order of the calls of clebsch.h.
     forward          x y w                    z
     backward         x y w g                  g_x g_y g_w
     double backward  x y w g a b c            d_x d_y d_w d_g
     triple backward  x y w g a b c p q r s    e_x e_y e_w e_g e_a e_b e_c */
enum { REFERENCE_PASSES = 4, REFERENCE_MAX_INPUTS = 11, REFERENCE_MAX_OUTPUTS = 7 };
int reference_inputs(clb_pass pass);
int reference_outputs(clb_pass pass);
/* The name of an operand of the pass, and the operand whose shape its rows have: CLB_OPERAND_X,
   CLB_OPERAND_Y, CLB_OPERAND_W or CLB_OPERAND_Z. */
const char *reference_operand(clb_pass pass, int operand, int *like);

/* Of the description only irreps, instructions, normalisations, layouts and shared_weights matter.
 */
typedef struct reference_product reference_product;
reference_product *reference_product_create(
    const clb_tensor_product_desc *desc); /* NULL: the description is wrong, or no memory */
void reference_product_destroy(reference_product *p);
clb_tensor_product_sizes reference_product_sizes(const reference_product *p);

/* A term of a product whose paths are of mode uvu, with weights and one channel of y:
   z[z + u dz] += c x[x + u dx] y[y] w[w + u] for u < channels. */
typedef struct {
  int x, dx, y, w, z, dz, channels;
  double c;
} reference_term;
/* Returns the number of terms, c not 0, of such a product; terms NULL: counts only. */
int reference_product_terms(const reference_product *p, reference_term *terms);

/* Inputs may be NULL, which means zeros; outputs may be NULL if not wanted. scales[] holds an array
   for each output: the sums of the absolute values of its terms. With shared weights there is one
   row of weights and of everything shaped like them. */
void reference_product_run(const reference_product *p, clb_pass pass, int64_t rows,
                           const double *const *inputs, double *const *outputs,
                           double *const *scales);

#endif
