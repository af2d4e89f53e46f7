/* tools/convert/mace/mace_product.h - the tensors of a product basis and their weights, as files
   have them. */
#ifndef CLB_TOOLS_CONVERT_MACE_MACE_PRODUCT_H
#define CLB_TOOLS_CONVERT_MACE_MACE_PRODUCT_H

#include "tools/convert/mace/mace.h"

/* Of one degree of the output and one order nu: u[m'][M_1]..[M_nu][tensor], each M over the
   components of all degrees of the messages, and w[species][tensor][channel], for all species if
   there is one. The caller frees u and w. */
typedef struct {
  double *u, *w;
  int degree, nu;
  int64_t tensors, size, n_species; /* size: numbers of a tensor */
} order;

/* Whether a module is of cuEquivariance. */
bool of_cuequivariance(value module);
/* An order of a symmetric contraction of cuEquivariance, of messages with `components`. */
order cuequivariance_order(const mace *q, value contraction, int degree, int nu, int64_t components,
                           int64_t channels);

#endif
