/* kernels/layers/density.c - densities of atoms, rho_i = sum over edges of f tanh(q^2), q = sum_k
   b_k D_k, and their gradient by b and f.

   Forward: a sub-group does an atom, lanes are the edges it receives.  Backward: a lane is an edge,
   which reads its row twice:
     db_k: g_rho f (1 - tanh^2) 2 q D_k,  df: g_rho tanh.
   With T(q) = tanh(q^2) and tangents a, p = sum_k a_k D_k: along, the sum is of a_f T + f T' p.  Of
   sum g rho + h rho_along, an edge's gradients by q and by p are
     A = T' (g f + h a_f) + T'' p h f,  B = T' h f,
   so that d_b_k += A D_k, d_f += g T + h T' p, and the gradient by D_k is A b_k + B a_k. */
#include "kernels/layers/layer.h"

enum { FORWARD, BACKWARD, ALONG, REVERSE, PASSES, GPU_WIDTH = 16, CPU_WIDTH = 8 };

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == FORWARD || p->pass == ALONG, s);
  const int most = limits->simd ? CPU_WIDTH : GPU_WIDTH;
  s->rows.columns_per_piece = p->density.n_basis > most ? most : p->density.n_basis;
}

static ir_val weight(ir_kernel *k, ir_val weights, int at) {
  return ir_load(k, weights, clb_i64(k, at), IR_NONE);
}

/* tanh(q^2), and its first and second derivative (bend; NULL: not wanted) by q^2. */
static void saturate(ir_kernel *k, ir_type t, const clb_problem *p, ir_val q, ir_val *value,
                     ir_val *slope, ir_val *bend) {
  clb_activate(k, t, p->density.activation, ir_mul(k, q, q), value, slope, bend);
}

static ir_val twice(ir_kernel *k, ir_type t, ir_val x) { return ir_mul(k, ir_real(k, t, 2), x); }

/* rho, or its derivative along tangents. */
static void sums(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool along = p->pass == ALONG, weighted = p->density.weighted;
  clb_row_kernel b;
  ir_val edge, sender, mask, value, slope;
  clb_layer_begin(&b, k, along ? "density_along" : "density", s, p->arithmetic);
  const clb_received list = clb_received_begin(k);
  const clb_row_array basis = clb_layer_array(&b, p->storage, false);
  clb_row_array factor = basis, a_basis = basis, a_factor = basis;
  if (weighted) factor = clb_layer_array(&b, p->storage, false);
  if (along) a_basis = clb_layer_array(&b, p->storage, false);
  if (along && weighted) a_factor = clb_layer_array(&b, p->storage, false);
  ir_val weights = ir_buffer(k, b.t, false);
  const clb_row_array rho = clb_layer_array(&b, p->storage, true);
  clb_layer_start(&b);
  ir_val zero = ir_real(k, b.t, 0), sum = ir_var(k, zero, false), q = zero, turn = zero,
         first = clb_i64(k, 0);
  clb_received_start(&b, &list, &edge, &sender, &mask);
  ir_val row = clb_layer_row(&b, &basis, edge), a_row = row;
  if (along) a_row = clb_layer_row(&b, &a_basis, edge);
  for (int i = 0; i < p->density.n_basis; i++) {
    ir_val at = clb_i64(k, i), w = weight(k, weights, i);
    q = ir_fma(k, clb_layer_load(&b, &basis, row, at, mask), w, q);
    if (along) turn = ir_fma(k, clb_layer_load(&b, &a_basis, a_row, at, mask), w, turn);
  }
  saturate(k, b.t, p, q, &value, &slope, NULL);
  ir_val term = along ? ir_mul(k, ir_mul(k, slope, twice(k, b.t, q)), turn) : value;
  if (weighted)
    term =
        ir_mul(k, term, clb_layer_load(&b, &factor, clb_layer_row(&b, &factor, edge), first, mask));
  if (along && weighted)
    term = ir_fma(k, value,
                  clb_layer_load(&b, &a_factor, clb_layer_row(&b, &a_factor, edge), first, mask),
                  term);
  ir_set(k, sum, ir_add(k, ir_get(k, sum), term)); /* without an edge q and turn are 0 */
  ir_end(k);
  clb_layer_store(&b, &rho, clb_layer_row(&b, &rho, b.unit), first, IR_NONE,
                  ir_reduce_add(k, ir_get(k, sum)));
  clb_layer_finish(&b);
}

/* ---- gradients: a lane is an edge ---- */

typedef struct {
  clb_row_block rows, adding;  /* adding: its lanes read what is added to, */
  clb_row_block adding_factor; /* or, of a factor, these */
  ir_kernel *k;
  ir_type t;
  int n_basis;
  ir_val receivers, weights;
} builder;

static builder begin(const clb_problem *p, const clb_schedule *s, ir_kernel *k, const char *name) {
  builder b = {.k = k, .t = clb_ir_type((clb_dtype)p->arithmetic), .n_basis = p->density.n_basis};
  ir_begin(k, name, s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b.rows, k, s, (clb_dtype)p->arithmetic);
  return b;
}

static int piece(const builder *b, int at) {
  const int left = b->n_basis - at, most = b->rows.schedule->rows.columns_per_piece;
  return left < most ? left : most;
}

/* to (+)= value[n columns from `at` on] */
static void put(builder *b, clb_row_block *adding, const clb_row_array *to, int at, int n,
                ir_val *value) {
  ir_val there[GPU_WIDTH];
  clb_rows_load(adding, to, at, n, there);
  for (int i = 0; i < n; i++) value[i] = ir_add(b->k, value[i], there[i]);
  clb_rows_store(&b->rows, to, at, n, value, false);
}

/* The atom that receives this lane's edge; a number of it. */
static ir_val receiver(builder *b) {
  ir_val edge = ir_add(b->k, b->rows.first, ir_cast(b->k, IR_I64, ir_lane(b->k)));
  return ir_cast(b->k, IR_I64, ir_load(b->k, b->receivers, edge, b->rows.mask));
}
static ir_val of_atom(builder *b, const clb_row_array *a, ir_val atom) {
  ir_val at = ir_add(b->k, ir_mul(b->k, atom, a->stride), a->offset);
  return ir_load(b->k, a->buffer, at, b->rows.mask);
}

/* sum_k row_k D_k */
static ir_val weigh(builder *b, const clb_row_array *row) {
  ir_val q = ir_real(b->k, b->t, 0), number[GPU_WIDTH];
  for (int at = 0, n; at < b->n_basis; at += n) {
    n = piece(b, at);
    clb_rows_load(&b->rows, row, at, n, number);
    for (int i = 0; i < n; i++) q = ir_fma(b->k, number[i], weight(b->k, b->weights, at + i), q);
  }
  return q;
}

/* d_basis_k (+)= pull D_k, a piece. */
static void put_basis(builder *b, const clb_row_array *to, int at, int n, ir_val pull) {
  ir_val number[GPU_WIDTH];
  for (int i = 0; i < n; i++) number[i] = ir_mul(b->k, pull, weight(b->k, b->weights, at + i));
  put(b, &b->adding, to, at, n, number);
}

static void backward(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  ir_val value, slope, f;
  builder b = begin(p, s, k, "density_backward");
  const clb_row_array basis = clb_rows_array(&b.rows, type, false);
  clb_row_array factor = basis;
  if (p->density.weighted) factor = clb_rows_array(&b.rows, type, false);
  b.receivers = ir_buffer(k, IR_I32, false);
  b.weights = ir_buffer(k, b.t, false);
  const clb_row_array g_rho = clb_rows_array(&b.rows, type, false),
                      g_basis = clb_rows_array(&b.rows, type, true);
  clb_row_array g_factor = g_basis;
  if (p->density.weighted) g_factor = clb_rows_array(&b.rows, type, true);
  ir_val add = ir_scalar(k, IR_I32), add_factor = add;
  if (p->density.weighted) add_factor = ir_scalar(k, IR_I32);
  clb_rows_start(&b.rows, type, s->rows.columns_per_piece);
  b.adding = b.adding_factor = b.rows;
  b.adding.mask = clb_wanted_lanes(k, add, b.rows.left);
  b.adding_factor.mask = clb_wanted_lanes(k, add_factor, b.rows.left);
  ir_val g = of_atom(&b, &g_rho, receiver(&b)), q = weigh(&b, &basis);
  saturate(k, b.t, p, q, &value, &slope, NULL);
  ir_val pull = ir_mul(k, ir_mul(k, g, slope), twice(k, b.t, q));
  if (p->density.weighted) {
    clb_rows_load(&b.rows, &factor, 0, 1, &f);
    pull = ir_mul(k, pull, f);
    value = ir_mul(k, g, value);
    put(&b, &b.adding_factor, &g_factor, 0, 1, &value);
  }
  for (int at = 0, n; at < b.n_basis; at += n) {
    n = piece(&b, at);
    put_basis(&b, &g_basis, at, n, pull);
  }
  ir_finish(k);
}

/* Of what edges have: rows of functions, and factors if there are any. */
typedef struct {
  clb_row_array basis, factor;
} edges;
static edges edge_arrays(builder *b, const clb_problem *p, bool written) {
  edges e;
  e.basis = e.factor = clb_rows_array(&b->rows, (clb_dtype)p->storage, written);
  if (p->density.weighted) e.factor = clb_rows_array(&b->rows, (clb_dtype)p->storage, written);
  return e;
}

/* d_basis += A D_k, g_D = A basis_k + B a_k */
static void reverse_basis(builder *b, const edges *x, const edges *a, const edges *d,
                          const clb_row_array *g_weights, ir_val by_q, ir_val by_turn) {
  ir_val number[GPU_WIDTH], tangent[GPU_WIDTH];
  for (int at = 0, n; at < b->n_basis; at += n) {
    n = piece(b, at);
    clb_rows_load(&b->rows, &x->basis, at, n, number);
    clb_rows_load(&b->rows, &a->basis, at, n, tangent);
    for (int i = 0; i < n; i++)
      number[i] = ir_fma(b->k, by_q, number[i], ir_mul(b->k, by_turn, tangent[i]));
    clb_rows_store(&b->rows, g_weights, at, n, number, false);
    put_basis(b, &d->basis, at, n, by_q);
  }
}

static void reverse(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  builder b = begin(p, s, k, "density_reverse");
  const edges x = edge_arrays(&b, p, false), a = edge_arrays(&b, p, false);
  b.receivers = ir_buffer(k, IR_I32, false);
  b.weights = ir_buffer(k, b.t, false);
  const clb_row_array g_rho = clb_rows_array(&b.rows, type, false),
                      h_rho = clb_rows_array(&b.rows, type, false);
  const edges d = edge_arrays(&b, p, true);
  const clb_row_array g_weights = clb_rows_array(&b.rows, type, true);
  clb_rows_start(&b.rows, type, s->rows.columns_per_piece);
  b.adding = b.rows;
  ir_val atom = receiver(&b), g = of_atom(&b, &g_rho, atom), h = of_atom(&b, &h_rho, atom),
         q = weigh(&b, &x.basis), turn = weigh(&b, &a.basis), value, slope, bend, f, a_f;
  saturate(k, b.t, p, q, &value, &slope, &bend);
  bend = twice(k, b.t, ir_fma(k, twice(k, b.t, ir_mul(k, q, q)), bend, slope)); /* T'' */
  slope = ir_mul(k, slope, twice(k, b.t, q));                                   /* T' */
  if (p->density.weighted) {
    clb_rows_load(&b.rows, &x.factor, 0, 1, &f);
    clb_rows_load(&b.rows, &a.factor, 0, 1, &a_f);
    ir_val by_f = ir_fma(k, g, value, ir_mul(k, h, ir_mul(k, slope, turn)));
    put(&b, &b.adding, &d.factor, 0, 1, &by_f);
    g = ir_fma(k, g, f, ir_mul(k, h, a_f));
    h = ir_mul(k, h, f);
  }
  ir_val by_turn = ir_mul(k, slope, h),
         by_q = ir_fma(k, slope, g, ir_mul(k, ir_mul(k, bend, turn), h));
  reverse_basis(&b, &x, &a, &d, &g_weights, by_q, by_turn);
  ir_finish(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static void (*const passes[PASSES])(const clb_problem *, const clb_schedule *,
                                      ir_kernel *) = {sums, backward, sums, reverse};
  passes[p->pass](p, s, k);
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
