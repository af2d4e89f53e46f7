/* kernels/symmetric_contraction/host/test_run.c - a symmetric contraction on synthetic data: atoms
   of random species. */
#include "kernels/symmetric_contraction/host/symmetric_contraction.h"
#include "src/tuning/tuning_test_run.h"

/* The weights of all species are one row here. */
static int list_operands(clb_test_run *t) {
  static const clb_rows none[CLB_MAX_OPERANDS];
  const clb_problem *p = &t->op->problem;
  int n = clb_symmetric_contraction_operands(p, t->pass, none, t->operand);
  for (int i = 0; i < n; i++) {
    clb_operand *o = &t->operand[i];
    if (o->of != CLB_OPERAND_W) continue;
    o->columns *= p->symmetric_contraction.n_species;
    o->one_row = true;
    o->indexed = false;
  }
  return n;
}

static int64_t one_each(const clb_operand *o) { return (void)o, 1; }

static clb_status make_species(clb_test_run *t) {
  return clb_test_run_numbers(t->op->ctx, t->size, t->op->problem.symmetric_contraction.n_species,
                              51, &t->operand[1].rows.index);
}

/* Only what the exchanged kernel computes. */
static clb_status run(clb_test_run *t) {
  clb_rows rows[CLB_MAX_OPERANDS] = {{0}};
  for (int i = 0; i < t->n; i++) {
    rows[i] = t->operand[i].rows;
    rows[i].stride = CLB_DENSE;
  }
  return clb_symmetric_contraction_run_part(t->op, t->pass, t->size, rows, t->of != t->op);
}

const clb_test_run_kind clb_test_run_of_contraction = {.of = CLB_SYMMETRIC_CONTRACTION,
                                                       .first_size = 64,
                                                       .rows = one_each,
                                                       .operands = list_operands,
                                                       .make = make_species,
                                                       .run = run};
