/* kernels/layers/density.c - densities of atoms, rho_i = sum over edges of f tanh(q^2), q = sum_k
   b_k D_k, and their gradient by b and f.

   Forward: a sub-group does an atom, lanes are the edges it receives.  Backward: a lane is an edge,
   which reads its row twice:
     db_k: g_rho f (1 - tanh^2) 2 q D_k,  df: g_rho tanh. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD, PASSES, GPU_WIDTH = 16, CPU_WIDTH = 8 };

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == FORWARD, s);
  const int most = limits->simd ? CPU_WIDTH : GPU_WIDTH;
  s->rows.columns_per_piece = p->density.n_basis > most ? most : p->density.n_basis;
}

static ir_val weight(ir_kernel *k, ir_val weights, int at) {
  return ir_load(k, weights, clb_i64(k, at), IR_NONE);
}

/* tanh(q^2), and its derivative by q^2. */
static void saturate(ir_kernel *k, ir_type t, const clb_problem *p, ir_val q, ir_val *value,
                     ir_val *slope) {
  clb_activate(k, t, p->density.activation, ir_mul(k, q, q), value, slope, NULL);
}

static void forward(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_kernel b;
  ir_val edge, sender, mask, value, slope;
  clb_layer_begin(&b, k, "density", s, p->arithmetic);
  const clb_received list = clb_received_begin(k);
  const clb_row_array basis = clb_layer_array(&b, p->storage, false);
  clb_row_array factor = basis;
  if (p->density.weighted) factor = clb_layer_array(&b, p->storage, false);
  ir_val weights = ir_buffer(k, b.t, false);
  const clb_row_array rho = clb_layer_array(&b, p->storage, true);
  clb_layer_start(&b);
  ir_val zero = ir_real(k, b.t, 0), sum = ir_var(k, zero, false), q = zero;
  clb_received_start(&b, &list, &edge, &sender, &mask);
  ir_val row = clb_layer_row(&b, &basis, edge);
  for (int i = 0; i < p->density.n_basis; i++)
    q = ir_fma(k, clb_layer_load(&b, &basis, row, clb_i64(k, i), mask), weight(k, weights, i), q);
  saturate(k, b.t, p, q, &value, &slope);
  if (p->density.weighted) {
    ir_val f_row = clb_layer_row(&b, &factor, edge);
    value = ir_mul(k, value, clb_layer_load(&b, &factor, f_row, clb_i64(k, 0), mask));
  }
  ir_set(k, sum, ir_add(k, ir_get(k, sum), value)); /* without an edge q is 0 */
  ir_end(k);
  clb_layer_store(&b, &rho, clb_layer_row(&b, &rho, b.unit), clb_i64(k, 0), IR_NONE,
                  ir_reduce_add(k, ir_get(k, sum)));
  clb_layer_finish(&b);
}

/* ---- backward ---- */

typedef struct {
  clb_row_block rows, adding; /* adding: its lanes read what is added to */
  ir_kernel *k;
  ir_type t;
  int n_basis;
  ir_val weights;
} builder;

static int piece(const builder *b, int at) {
  const int left = b->n_basis - at, most = b->rows.schedule->rows.columns_per_piece;
  return left < most ? left : most;
}

/* to (+)= value[n columns from `at` on] */
static void put(builder *b, const clb_row_array *to, int at, int n, ir_val *value) {
  ir_val there[GPU_WIDTH];
  clb_rows_load(&b->adding, to, at, n, there);
  for (int i = 0; i < n; i++) value[i] = ir_add(b->k, value[i], there[i]);
  clb_rows_store(&b->rows, to, at, n, value, false);
}

static void backward(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  builder b = {.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic), .n_basis = p->density.n_basis};
  const clb_dtype type = (clb_dtype)p->storage;
  ir_val value, slope, f, number[GPU_WIDTH];
  ir_begin(k, "density_backward", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b.rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array basis = clb_rows_array(&b.rows, type, false);
  clb_row_array factor = basis;
  if (p->density.weighted) factor = clb_rows_array(&b.rows, type, false);
  ir_val receivers = ir_buffer(k, IR_I32, false);
  b.weights = ir_buffer(k, b.t, false);
  const clb_row_array g_rho = clb_rows_array(&b.rows, type, false),
                      g_basis = clb_rows_array(&b.rows, type, true);
  clb_row_array g_factor = g_basis;
  if (p->density.weighted) g_factor = clb_rows_array(&b.rows, type, true);
  ir_val add = ir_scalar(k, IR_I32);
  clb_rows_start(&b.rows, type, s->rows.columns_per_piece);
  b.adding = b.rows;
  b.adding.mask = clb_wanted_lanes(k, add, b.rows.left);
  ir_val edge = ir_add(k, b.rows.first, ir_cast(k, IR_I64, ir_lane(k))),
         atom = ir_cast(k, IR_I64, ir_load(k, receivers, edge, b.rows.mask)),
         at_rho = ir_add(k, ir_mul(k, atom, g_rho.stride), g_rho.offset),
         g = ir_load(k, g_rho.buffer, at_rho, b.rows.mask), q = ir_real(k, b.t, 0);
  for (int at = 0, n; at < b.n_basis; at += n) {
    n = piece(&b, at);
    clb_rows_load(&b.rows, &basis, at, n, number);
    for (int i = 0; i < n; i++) q = ir_fma(k, number[i], weight(k, b.weights, at + i), q);
  }
  saturate(k, b.t, p, q, &value, &slope);
  ir_val pull = ir_mul(k, ir_mul(k, g, slope), ir_mul(k, ir_real(k, b.t, 2), q));
  if (p->density.weighted) {
    clb_rows_load(&b.rows, &factor, 0, 1, &f);
    pull = ir_mul(k, pull, f);
    value = ir_mul(k, g, value);
    put(&b, &g_factor, 0, 1, &value);
  }
  for (int at = 0, n; at < b.n_basis; at += n) {
    n = piece(&b, at);
    for (int i = 0; i < n; i++) number[i] = ir_mul(k, pull, weight(k, b.weights, at + i));
    put(&b, &g_basis, at, n, number);
  }
  ir_finish(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == FORWARD ? forward : backward)(p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d functions%s", (int)p->density.n_basis,
               p->density.weighted ? ", edges with factors" : "");
}

const clb_kernel_kind clb_kind_density = {.name = "density",
                                          .check = clb_layer_check,
                                          .schedule = schedule,
                                          .lower = lower,
                                          .print = print,
                                          .passes = PASSES};
