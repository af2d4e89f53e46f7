/* kernels/norm/host/rms_norm.h - the host side of norms. */
#ifndef CLB_KERNELS_NORM_HOST_RMS_NORM_H
#define CLB_KERNELS_NORM_HOST_RMS_NORM_H

#include "kernels/host/operand_lists.h"

/* Fills the (zeroed) problem but for types and pass. */
clb_status clb_rms_norm_read(const clb_rms_norm_desc *desc, clb_rms_norm_problem *p,
                             clb_error_sink *error);
/* Numbers of w: weights and biases. */
int64_t clb_rms_norm_weights(const clb_rms_norm_problem *p);
clb_status clb_rms_norm_make(clb_context *ctx, clb_problem *p, unsigned passes,
                             const clb_tuner *tuner, clb_op **op);
/* rows: the operands of a pass in the order of the calls. */
clb_status clb_rms_norm_run(clb_op *op, clb_pass pass, int64_t n, const clb_rows *rows);

extern const clb_test_run_kind clb_test_run_of_norm; /* how the tuner calls it */

#endif
