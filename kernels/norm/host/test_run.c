/* kernels/norm/host/test_run.c - a norm on synthetic data: what has a row for each row of x,
   and gradients by its one row of weights. */
#include "kernels/norm/host/rms_norm.h"
#include "src/tuning/tuning_test_run.h"

static int list_operands(clb_test_run *t) {
  static const clb_rows none[CLB_MAX_OPERANDS];
  return clb_rms_norm_operands(&t->op->problem, t->pass, none, t->operand);
}

static int64_t one_each(const clb_operand *o) { return (void)o, 1; }

static clb_status run(clb_test_run *t) {
  clb_rows rows[CLB_MAX_OPERANDS] = {{0}};
  for (int i = 0; i < t->n; i++) rows[i] = t->operand[i].rows;
  return clb_rms_norm_run(t->op, t->pass, t->size, rows);
}

const clb_test_run_kind clb_test_run_of_norm = {
    .of = CLB_RMS_NORM, .first_size = 64, .rows = one_each, .operands = list_operands, .run = run};
