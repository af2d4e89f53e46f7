/* kernels/linear/host/few.h - linear maps of few rows: one launch, whose kernel is made for the
   number of rows when it is first needed. */
#ifndef CLB_KERNELS_LINEAR_HOST_FEW_H
#define CLB_KERNELS_LINEAR_HOST_FEW_H

#include "kernels/host/operand_lists.h"
#include "src/runtime/call.h"

typedef struct clb_linear_few clb_linear_few;

/* p: of a linear map, and forward also of two maps of one array, or into one, and with a gate: see
   in_split and gated in src/problem/problem.h.  *few: NULL if the device has no sub-groups that
   share sums, or cannot do the gate so. */
clb_status clb_linear_few_create(clb_context *ctx, const clb_problem *p, unsigned passes,
                                 clb_linear_few **few);
/* Whether n rows are so many that work done for each tile costs more than a launch. */
bool clb_linear_few_are_many(const clb_linear_few *few, int64_t n);
void clb_linear_few_destroy(clb_linear_few **few);
/* What has a row for each row of x; last: the second array of x, and that of z, and what goes into
   the gate, if there are. */
clb_status clb_linear_few_run(clb_linear_few *few, clb_pass pass, int64_t n,
                              const clb_operand *operands, int count);
/* Adds the arguments that say where rows have weights by species. */
void clb_linear_call_species(clb_call *c, const clb_operand *operands, int count);

#endif
