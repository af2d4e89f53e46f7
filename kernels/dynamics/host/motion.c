/* kernels/dynamics/host/motion.c - moves atoms and sees them: the calls. */
#include "kernels/dynamics/host/motion.h"

#include <string.h>

#include "kernels/layers/host/layer_call.h"

clb_status clb_motion_create(clb_context *ctx, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_MOTION, CLB_F64, CLB_F64),
                          1U << CLB_MOTION_QUIET | 1U << CLB_MOTION_NOISY, op);
}

/* How many sub-groups go through n atoms, and through how many each. */
static int64_t units_of(const clb_op *op, int64_t n, int64_t *block) {
  const clb_schedule s = clb_layer_schedule_of(op, CLB_MOTION_QUIET);
  const int64_t chunks = clb_divide_up(n, s.lanes),
                rounds = clb_divide_up(chunks, s.layer.partial_sums);
  *block = rounds * s.lanes;
  return rounds ? clb_divide_up(chunks, rounds) : 0;
}

int64_t clb_motion_record(const clb_op *op, int64_t n) {
  int64_t block;
  return CLB_RECORD_COPIED + units_of(op, n, &block) * CLB_SEEN;
}

static void call_drift(clb_call *c, const clb_motion_step *step, int i) {
  clb_call_real(c, CLB_F64, step->grow[i]);
  clb_call_real(c, CLB_F64, step->reach[i]);
}

static void call_halves(clb_call *c, uint64_t x) {
  clb_call_i32(c, (int32_t)(uint32_t)x);
  clb_call_i32(c, (int32_t)(uint32_t)(x >> 32));
}

clb_status clb_motion_run(clb_op *op, const clb_motion_atoms *a, const clb_motion_step *step) {
  const bool noisy = step->width > 0;
  int64_t block;
  clb_call c = clb_call_begin(op, CLB_MOTION, a->n, units_of(op, a->n, &block));
  if (c.status) return c.status;
  clb_call_i64(&c, a->n);
  clb_call_i64(&c, block);
  clb_call_buffer(&c, a->x);
  clb_call_buffer(&c, a->v);
  clb_call_rows(&c, "forces", CLB_F64, 3, a->force, CLB_IN);
  clb_call_buffer(&c, a->mass);
  clb_call_buffer(&c, a->places);
  if (noisy) call_halves(&c, step->seed);
  if (noisy) call_halves(&c, (uint64_t)step->step);
  clb_call_real(&c, CLB_F64, step->kick);
  call_drift(&c, step, 0);
  clb_call_real(&c, CLB_F64, step->keep);
  clb_call_real(&c, CLB_F64, step->width);
  call_drift(&c, step, 1);
  clb_call_i32(&c, step->places);
  clb_call_i32(&c, step->adds);
  clb_call_buffer(&c, a->record);
  clb_call_memory(&c, a->copied.buffer ? &a->copied.buffer->memory : NULL);
  clb_call_i64(&c, a->copied.offset);
  clb_call_i32(&c, a->n_copied);
  clb_call_i32(&c, a->checked);
  clb_call_real(&c, CLB_F64, a->most);
  return clb_call_run(&c, noisy ? CLB_MOTION_NOISY : CLB_MOTION_QUIET);
}

static void take_largest(double *seen, const double *row, bool atom) {
  if (row[0] > seen[0]) memcpy(seen, row, (atom ? 2 : 1) * sizeof *seen);
}

void clb_motion_seen(const clb_op *op, int64_t n, const double *record, double seen[CLB_SEEN]) {
  int64_t block;
  const int64_t units = units_of(op, n, &block);
  const double *row = record + CLB_RECORD_COPIED;
  for (int i = 0; i < CLB_SEEN; i++) seen[i] = 0;
  for (int64_t u = 0; u < units; u++, row += CLB_SEEN) {
    seen[CLB_SEEN_MOTION] += row[CLB_SEEN_MOTION];
    seen[CLB_SEEN_HEAT] += row[CLB_SEEN_HEAT];
    take_largest(seen + CLB_SEEN_SPEED, row + CLB_SEEN_SPEED, true);
    take_largest(seen + CLB_SEEN_FORCE, row + CLB_SEEN_FORCE, true);
    take_largest(seen + CLB_SEEN_WAY, row + CLB_SEEN_WAY, false);
  }
}
