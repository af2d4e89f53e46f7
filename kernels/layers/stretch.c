/* kernels/layers/stretch.c - vectors of edges times factors of pairs of species; a lane is an edge.

   y (=, +=) k x, k of the species of receiver and sender; so are gradients by x from those by y,
   and tangents of y from those of x.  Table: k [species][species]. */
#include "kernels/layers/layer.h"

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->rows.columns_per_piece = 3;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  clb_row_block rows;
  ir_begin(k, "stretch", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array x = clb_rows_array(&rows, type, false), y = clb_rows_array(&rows, type, true);
  const clb_ends ends = clb_ends_begin(k);
  ir_val factors = ir_buffer(k, clb_ir_type((clb_dtype)p->arithmetic), false),
         add = ir_scalar(k, IR_I32), species[2], from[3], there[3];
  clb_rows_start(&rows, type, 3);
  clb_rows_load(&rows, &x, 0, 3, from);
  ir_val edge = ir_add(k, rows.first, ir_cast(k, IR_I64, ir_lane(k)));
  for (int i = 0; i < 2; i++) species[i] = clb_end_species(k, &ends, i, edge, rows.mask);
  ir_val at = ir_add(k, ir_mul(k, species[0], clb_i64(k, p->stretch.n_species)), species[1]),
         factor = ir_load(k, factors, at, rows.mask);
  clb_row_block adding = rows;
  adding.mask = clb_wanted_lanes(k, add, rows.left);
  clb_rows_load(&adding, &y, 0, 3, there);
  for (int i = 0; i < 3; i++) there[i] = ir_fma(k, factor, from[i], there[i]);
  clb_rows_store(&rows, &y, 0, 3, there, false);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d species", (int)p->stretch.n_species);
}

const clb_kernel_kind clb_kind_stretch = {.name = "stretch",
                                          .check = clb_layer_check,
                                          .schedule = schedule,
                                          .lower = lower,
                                          .print = print,
                                          .passes = 1};
