/* src/problem/irreps.h - "32x0e+16x1o" <-> terms, and the paths of a tensor product's
   description. */
#ifndef CLB_SRC_PROBLEM_IRREPS_H
#define CLB_SRC_PROBLEM_IRREPS_H

#include "src/base/error.h"
#include "src/problem/problem.h"

enum { CLB_MAX_L = 12 };

/* Reads irreps; `name` is used in error messages. Terms with multiplicity 0 are kept (instructions
   count them). */
clb_status clb_irreps_read(const char *text, const char *name, clb_irreps *irreps,
                           clb_error_sink *error);
/* Lays out adjacent terms of the same irrep in memory as one term. */
void clb_irreps_merge(clb_irreps *irreps);
/* Writes them, in full form ("1x1o"). */
void clb_irreps_print(const clb_irreps *irreps, clb_text *out);

/* Checks a description and fills the (zeroed) problem: irreps, paths, coefficients, weight
   offsets. */
clb_status clb_tensor_product_read(const clb_tensor_product_desc *desc,
                                   clb_tensor_product_problem *p, clb_error_sink *error);
/* The same where the problem has its irreps: those of the description are not read. */
clb_status clb_tensor_product_fill(const clb_tensor_product_desc *desc,
                                   clb_tensor_product_problem *p, clb_error_sink *error);
/* The weights of instruction i of a description that was read. */
clb_weight_slice clb_tensor_product_slice(const clb_tensor_product_desc *desc,
                                          const clb_tensor_product_problem *p, int i);
/* Whether instruction i has anything to compute, that is, no extent of its path is 0. */
bool clb_tensor_product_has_path(const clb_tensor_product_desc *desc,
                                 const clb_tensor_product_problem *p, int i);

#endif
