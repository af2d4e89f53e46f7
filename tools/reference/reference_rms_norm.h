/* tools/reference/reference_rms_norm.h - norms of rows in float64, element by element. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_RMS_NORM_H
#define CLB_TOOLS_REFERENCE_REFERENCE_RMS_NORM_H

#include <clebsch/clebsch.h>

/* Numbers of a row of x, and of w with its biases; 0: the irreps cannot be read. */
typedef struct {
  int x, w;
} reference_norm_sizes;
reference_norm_sizes reference_norm_measure(const clb_rms_norm_desc *d);

/* Of the description, a clb_rms_norm_desc, types and passes are ignored. Arrays in the order of the
   calls: inputs and results; scale[i]: the size that rounding errors of result i are relative to;
   it and wanted[i] may be NULL. */
void reference_norm_run(const void *desc, clb_pass pass, int64_t rows, double *const *values,
                        double *const *wanted, double *const *scale);

#endif
