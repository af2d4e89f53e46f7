/* tools/reference/reference_linear.h - linear maps of irreps and two derivatives in float64, as
   direct sums. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_LINEAR_H
#define CLB_TOOLS_REFERENCE_REFERENCE_LINEAR_H

#include <clebsch/clebsch.h>

/* Numbers of a row of x, of z and of w; x < 0: the irreps cannot be read. */
typedef struct {
  int x, z, w;
} reference_linear_sizes;
reference_linear_sizes reference_linear_measure(const clb_linear_desc *d);

/* Of the description types, passes and kinds of weights are ignored: of[row] is the number of the
   row of weights that row `row` has, of `weights` in all. Dense arrays in the order of the calls:
   inputs, then results, of which those that are NULL are not computed; scale[i]: the sums of
   absolute values of the terms of result i, or NULL. Inputs a and c may be NULL: zeros. */
void reference_linear_run(const clb_linear_desc *d, clb_pass pass, int64_t rows, const int32_t *of,
                          int64_t weights, double *const *values, double *const *wanted,
                          double *const *scale);

#endif
