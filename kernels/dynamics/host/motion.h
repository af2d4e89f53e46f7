/* kernels/dynamics/host/motion.h - moves atoms and sees them (kernels/dynamics/motion_record.h). */
#ifndef CLB_KERNELS_DYNAMICS_HOST_MOTION_H
#define CLB_KERNELS_DYNAMICS_HOST_MOTION_H

#include "kernels/dynamics/motion_record.h"
#include "src/runtime/context.h"

/* CLB_ERROR_UNSUPPORTED: the device has no f64. */
clb_status clb_motion_create(clb_context *ctx, clb_op **op);

/* Buffers of f64, contiguous from their start but for the forces. */
typedef struct {
  int64_t n;
  clb_buffer *x, *v, *places; /* [n][3] */
  clb_buffer *mass;           /* [n], above 0 */
  clb_rows force;             /* [n][3] */
  clb_buffer *record;         /* [clb_motion_record(op, n)] */
  clb_rows copied;            /* n_copied numbers, at most CLB_RECORD_COPIED; none: no buffer */
  int n_copied;
  bool checked; /* atoms move only if the first of them is 0 ... most */
  double most;
} clb_motion_atoms;

typedef struct {
  double kick, grow[2], reach[2], keep, width; /* width 0: no noise */
  uint64_t seed;
  int64_t step;
  int places; /* CLB_PLACES_ */
  bool adds;  /* heat, to that of the record */
} clb_motion_step;

/* Numbers of a record. */
int64_t clb_motion_record(const clb_op *op, int64_t n);
clb_status clb_motion_run(clb_op *op, const clb_motion_atoms *atoms, const clb_motion_step *step);
/* Of all units: sums, and the largest with the first of their atoms. */
void clb_motion_seen(const clb_op *op, int64_t n, const double *record, double seen[CLB_SEEN]);

#endif
