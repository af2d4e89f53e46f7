/* tools/reference/reference_norm_activation.h - norm activations in float64, channel by channel. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_NORM_ACTIVATION_H
#define CLB_TOOLS_REFERENCE_REFERENCE_NORM_ACTIVATION_H

#include <clebsch/clebsch.h>

/* Numbers of a row of x, and of w; x < 0: the description cannot be read. */
typedef struct {
  int x, w;
} reference_norm_activation_sizes;
reference_norm_activation_sizes
reference_norm_activation_measure(const clb_norm_activation_desc *d);

/* Of the description, a clb_norm_activation_desc, types and passes are ignored. Arrays in the order
   of the calls: inputs and results; scale[i]: the size that rounding errors of result i are
   relative to; it and wanted[i] may be NULL. */
void reference_norm_activation_run(const void *desc, clb_pass pass, int64_t rows,
                                   double *const *values, double *const *wanted,
                                   double *const *scale);

#endif
