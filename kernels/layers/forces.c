/* kernels/layers/forces.c - forces on atoms: the gradients of the edges they receive minus those
   they send; and atoms' parts of the virial, v_a g_b of the edges they receive. Lanes are edges, a
   sub-group does an atom. */
#include "kernels/layers/layer.h"

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)p, (void)limits, (void)error;
  return CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, true, s);
  s->layer.wide_vectors = limits->simd;
}

/* Edges of one direction: first slot of each of n rows, and the edge of each slot. */
typedef struct {
  ir_val row_start, edge, n;
} direction;

static direction declare(ir_kernel *k) {
  direction d = {.row_start = ir_buffer(k, IR_I32, false)};
  d.edge = ir_buffer(k, IR_I32, false);
  d.n = ir_scalar(k, IR_I64);
  return d;
}

/* Opens a loop over a row's edges, if it is there and has any: end both. */
static ir_val begin_edges(clb_row_kernel *b, const direction *d, ir_val row, ir_val *mask) {
  ir_kernel *k = b->k;
  ir_val lanes = clb_i32(k, b->s->lanes);
  ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, clb_i64(k, 0), row), ir_2(k, IR_LT, row, d->n)));
  ir_val begin = ir_load(k, d->row_start, row, IR_NONE),
         end = ir_load(k, d->row_start, ir_add(k, row, clb_i64(k, 1)), IR_NONE);
  ir_val first = ir_loop(k, clb_i32(k, 0), ir_sub(k, end, begin), lanes);
  *mask = ir_2(k, IR_LT, ir_lane(k), ir_sub(k, ir_sub(k, end, begin), first));
  ir_val place =
      ir_add(k, ir_cast(k, IR_I64, ir_add(k, begin, first)), ir_cast(k, IR_I64, ir_lane(k)));
  return ir_cast(k, IR_I64, ir_load(k, d->edge, place, *mask));
}

static void end_edges(ir_kernel *k) {
  ir_end(k);
  ir_end(k);
}

static void add_edges(clb_row_kernel *b, const direction *d, ir_val atom, const clb_row_array *g,
                      bool minus, const ir_val *sum) {
  ir_kernel *k = b->k;
  ir_val mask, edge = begin_edges(b, d, atom, &mask), value[3];
  clb_layer_vector(b, g, edge, mask, value);
  for (int i = 0; i < 3; i++)
    ir_set(k, sum[i], ir_2(k, minus ? IR_SUB : IR_ADD, ir_get(k, sum[i]), value[i]));
  end_edges(k);
}

/* Sums over the lanes; add: to what is there. */
static void store_sums(clb_row_kernel *b, const clb_row_array *out, int n, ir_val add,
                       const ir_val *sum) {
  ir_kernel *k = b->k;
  ir_val row = clb_layer_row(b, out, b->unit);
  for (int i = 0; i < n; i++) {
    ir_val all = ir_get(k, sum[i]);
    if (add != IR_NONE)
      all = ir_add(
          k, all,
          clb_layer_load(b, out, row, clb_i64(k, i), clb_wanted_lanes(k, add, clb_i32(k, 1))));
    clb_layer_store(b, out, row, clb_i64(k, i), add == IR_NONE ? IR_NONE : clb_first_lane(k),
                    ir_reduce_add(k, all));
  }
}

static void lower_forces(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  direction d[2];
  ir_val sum[3];
  clb_layer_begin(&b, k, "forces", s, p->arithmetic);
  for (int i = 0; i < 2; i++) d[i] = declare(k);
  ir_val first = ir_scalar(k, IR_I64); /* receiver 0 is this atom */
  clb_row_array g = clb_layer_array(&b, p->storage, false),
                force = clb_layer_array(&b, p->arithmetic, true);
  ir_val add = ir_scalar(k, IR_I32);
  clb_layer_start(&b);
  for (int i = 0; i < 3; i++) sum[i] = ir_var(k, ir_real(k, b.t, 0), false);
  add_edges(&b, &d[CLB_BY_RECEIVER], ir_sub(k, b.unit, first), &g, false, sum);
  add_edges(&b, &d[CLB_BY_SENDER], b.unit, &g, true, sum);
  store_sums(&b, &force, 3, add, sum);
  clb_layer_finish(&b);
}

static void lower_virials(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  ir_val sum[9], v[3], g_v[3], mask;
  clb_layer_begin(&b, k, "atom_virials", s, p->arithmetic);
  direction d = declare(k);
  clb_row_array vectors = clb_layer_array(&b, p->storage, false),
                g = clb_layer_array(&b, p->storage, false),
                out = clb_layer_array(&b, p->arithmetic, true);
  clb_layer_start(&b);
  for (int i = 0; i < 9; i++) sum[i] = ir_var(k, ir_real(k, b.t, 0), false);
  ir_val edge = begin_edges(&b, &d, b.unit, &mask);
  clb_layer_vector(&b, &vectors, edge, mask, v);
  clb_layer_vector(&b, &g, edge, mask, g_v);
  for (int i = 0; i < 9; i++) ir_set(k, sum[i], ir_fma(k, v[i / 3], g_v[i % 3], ir_get(k, sum[i])));
  end_edges(k);
  store_sums(&b, &out, 9, IR_NONE, sum);
  clb_layer_finish(&b);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass ? lower_virials : lower_forces)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  (void)p;
  clb_text_add(out, "by receiver and sender");
}

const clb_kernel_kind clb_kind_forces = {.name = "forces",
                                         .check = check,
                                         .schedule = schedule,
                                         .lower = lower,
                                         .print = print,
                                         .passes = 2};
