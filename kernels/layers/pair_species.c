/* kernels/layers/pair_species.c - the species of edges: that of the receiver times the number of
   species, plus that of the sender; a lane is an edge. */
#include "kernels/layers/layer.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  ir_val species[2];
  clb_layer_begin(&b, k, "pair_species", s, p->arithmetic);
  const ir_val edges = ir_scalar(k, IR_I64), n_species = ir_scalar(k, IR_I64);
  const clb_ends ends = clb_ends_begin(k);
  const ir_val out = ir_buffer(k, IR_I32, true);
  clb_layer_start(&b);
  const ir_val first = ir_mul(k, b.unit, clb_i64(k, s->lanes)),
               left = ir_2(k, IR_MIN, ir_sub(k, edges, first), clb_i64(k, s->lanes)),
               mask = ir_2(k, IR_LT, ir_lane(k), ir_cast(k, IR_I32, left)),
               edge = ir_add(k, first, ir_cast(k, IR_I64, ir_lane(k)));
  for (int i = 0; i < 2; i++) species[i] = clb_end_species(k, &ends, i, edge, mask);
  const ir_val pair = ir_add(k, ir_mul(k, species[0], n_species), species[1]);
  ir_store(k, out, edge, mask, ir_cast(k, IR_I32, pair));
  clb_layer_finish(&b);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "species of edges");
}

const clb_kernel_kind clb_kind_pair_species = {.name = "pair_species",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower,
                                               .print = print,
                                               .passes = 1};
