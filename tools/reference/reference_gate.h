/* tools/reference/reference_gate.h - gates in float64, channel by channel. */
#ifndef CLB_TOOLS_REFERENCE_REFERENCE_GATE_H
#define CLB_TOOLS_REFERENCE_REFERENCE_GATE_H

#include <clebsch/clebsch.h>

/* Numbers of a row of x and of y; x < 0: the description cannot be read. */
typedef struct {
  int x, y;
} reference_gate_sizes;
reference_gate_sizes reference_gate_measure(const clb_gate_desc *d);

/* Of the description, a clb_gate_desc, types and passes are ignored. Arrays in the order of the
   calls: inputs and results; scale[i]: the size that rounding errors of result i are relative to;
   it and wanted[i] may be NULL. */
void reference_gate_run(const void *desc, clb_pass pass, int64_t rows, double *const *values,
                        double *const *wanted, double *const *scale);

#endif
