/* kernels/linear/linear.c - linear maps of irreps: what has a row for each row of x.  Lanes are
   channels of the result, a group does some rows, its sub-groups take blocks of channels in turn.

   Each result is a sum of products of rows with blocks of weights,
     z[w] = sum_u x[u] W[u][w], or transposed, g_x[u] = sum_w g[w] W[u][w],
   for each component: forward x W + b; backward g W^T; double backward d_x = g C^T and
   d_g = a W + x C + b of c.  Elements of rows are uniform loads, and weights are used for several
   rows, unless each row has its own. */
#include "kernels/linear/linear_parts.h"

enum {
  ROWS = 8,
  TOGETHER = 4,
  SUMS = 16
}; /* rows of a group; u whose weights are loaded together;
      sums in registers */

/* A row of operands times blocks of weights. */
typedef struct {
  const clb_row_array *rows, *weights;
} factor;

typedef struct {
  clb_linear_kernel *b;
  factor factor[2];
  int n_factors;
  bool transposed;           /* the result is like x */
  const clb_row_array *bias; /* weights that have it; NULL: none is added */
  const clb_row_array *to;
} result;

/* Some rows and channels of a result. */
typedef struct {
  const result *r;
  int number; /* of the term */
  clb_linear_term term;
  ir_val row[ROWS], sum[ROWS][CLB_LINEAR_COMPONENTS]; /* sum: variables */
  int n_rows;
  ir_val channel, left, mask;
  ir_val weights; /* i64: the row of weights; IR_NONE: there is one */
} tile;

static clb_linear_term term_of(const result *r, bool of_result, int number) {
  const clb_linear_problem *lp = r->b->lp;
  const bool in = of_result == r->transposed;
  return (clb_linear_term){in ? &lp->in.term[number] : &lp->out.term[number],
                           in ? lp->layout_in : lp->layout_out};
}

static ir_val weights_at(const tile *t, const clb_row_array *w) {
  return t->weights == IR_NONE ? w->offset : clb_linear_row(t->r->b, w, t->weights);
}

/* Weights for n steps of the sum from `at` (i64) on, times the coefficient. */
static void load_weights(const tile *t, const clb_row_array *w, const clb_linear_path *path,
                         ir_val start, ir_val at, int n, ir_val *v) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const ir_val width = clb_linear_i64(b, b->lp->out.term[path->out].mul),
               from = ir_add(k, start, clb_linear_i64(b, path->weight_at));
  if (t->r->transposed)
    ir_load_wide(k, w->buffer, ir_add(k, from, ir_add(k, ir_mul(k, t->channel, width), at)),
                 t->mask, n, v);
  for (int i = 0; i < n; i++) {
    const ir_val row = ir_mul(k, ir_add(k, at, clb_linear_i64(b, i)), width);
    if (!t->r->transposed)
      v[i] = ir_load(k, w->buffer, ir_add(k, from, ir_add(k, row, t->channel)), t->mask);
    v[i] = ir_mul(k, ir_cast(k, b->t, v[i]), ir_real(k, b->t, path->coefficient));
  }
}

static void add_steps(const tile *t, const factor *f, const clb_linear_path *path,
                      const ir_val *start, ir_val weights, ir_val at, int n) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const clb_linear_term from = term_of(t->r, false, t->r->transposed ? path->out : path->in);
  ir_val w[TOGETHER];
  load_weights(t, f->weights, path, weights, at, n, w);
  for (int i = 0; i < n; i++)
    for (int r = 0; r < t->n_rows; r++)
      for (int m = 0; m <= 2 * from.term->l; m++) {
        const ir_val place = clb_linear_place(b, from, ir_add(k, at, clb_linear_i64(b, i)), m),
                     x = clb_linear_load(b, f->rows, start[r], place, IR_NONE);
        ir_set(k, t->sum[r][m], ir_fma(k, x, w[i], ir_get(k, t->sum[r][m])));
      }
}

static void add_product(const tile *t, const factor *f, const clb_linear_path *path) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int64_t depth = term_of(t->r, false, t->r->transposed ? path->out : path->in).term->mul,
                whole = depth / TOGETHER * TOGETHER;
  const ir_val weights = weights_at(t, f->weights);
  ir_val start[ROWS];
  for (int r = 0; r < t->n_rows; r++) start[r] = clb_linear_row(b, f->rows, t->row[r]);
  if (whole) {
    const ir_val at =
        ir_loop(k, clb_linear_i64(b, 0), clb_linear_i64(b, whole), clb_linear_i64(b, TOGETHER));
    add_steps(t, f, path, start, weights, at, TOGETHER);
    ir_end(k);
  }
  if (depth > whole)
    add_steps(t, f, path, start, weights, clb_linear_i64(b, whole), (int)(depth - whole));
}

static void begin_sums(tile *t) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int32_t bias = t->r->bias ? b->lp->bias[t->number] : 0;
  ir_val first = ir_real(k, b->t, 0);
  if (bias)
    first = clb_linear_load(b, t->r->bias, weights_at(t, t->r->bias),
                            ir_add(k, t->channel, clb_linear_i64(b, bias - 1)), t->mask);
  for (int r = 0; r < t->n_rows; r++)
    for (int m = 0; m <= 2 * t->term.term->l; m++) t->sum[r][m] = ir_var(k, first, false);
}

static void store_sums(const tile *t) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  ir_val v[CLB_LINEAR_COMPONENTS];
  for (int r = 0; r < t->n_rows; r++) {
    ir_val mask = t->mask;
    if (r) /* rows beyond the last are that one again, and are not stored */
      mask = ir_2(k, IR_LT, ir_lane(k),
                  ir_select(k, ir_2(k, IR_LT, ir_add(k, t->row[0], clb_linear_i64(b, r)), b->n),
                            t->left, ir_int(k, IR_I32, 0)));
    for (int m = 0; m <= 2 * t->term.term->l; m++) v[m] = ir_get(k, t->sum[r][m]);
    clb_linear_store_channels(b, t->r->to, clb_linear_row(b, t->r->to, t->row[r]), t->term,
                              t->channel, mask, v);
  }
}

/* Rows whose sums fit in registers, of those that share weights. */
static int rows_of(const clb_linear_kernel *b, const clb_term *t) {
  int rows = b->lp->weights == CLB_LINEAR_ONE_ROW ? ROWS : 1;
  while (rows > 1 && rows * (2 * t->l + 1) > SUMS) rows /= 2;
  return rows;
}

static void make_term(const result *r, int number, ir_val first, int64_t *blocks) {
  clb_linear_kernel *b = r->b;
  ir_kernel *k = b->k;
  tile t = {.r = r, .number = number, .term = term_of(r, true, number)};
  const int64_t channels = t.term.term->mul;
  if (!channels) return;
  t.n_rows = rows_of(b, t.term.term);
  const ir_val block = clb_linear_units(b, clb_linear_blocks(b, channels), blocks);
  t.channel = clb_linear_channel(b, block, channels, &t.left);
  t.mask = clb_linear_mask(b, channels, t.left);
  const ir_val last = ir_sub(k, b->n, clb_linear_i64(b, 1)),
               some = ir_loop(k, clb_linear_i64(b, 0), clb_linear_i64(b, ROWS),
                              clb_linear_i64(b, t.n_rows));
  t.row[0] = ir_add(k, first, some);
  ir_if(k, ir_2(k, IR_LT, t.row[0], b->n));
  for (int i = 1; i < t.n_rows; i++)
    t.row[i] = ir_2(k, IR_MIN, ir_add(k, t.row[0], clb_linear_i64(b, i)), last);
  t.weights = b->lp->weights == CLB_LINEAR_PER_ROW ? t.row[0] : IR_NONE;
  if (b->lp->weights == CLB_LINEAR_BY_SPECIES && b->lp->n_weights && (r->n_factors || r->bias))
    t.weights = clb_linear_species(b, t.row[0]);
  begin_sums(&t);
  for (int f = 0; f < r->n_factors; f++)
    for (int i = 0; i < b->lp->n_paths; i++) {
      const clb_linear_path *path = &b->lp->path[i];
      if ((r->transposed ? path->in : path->out) == number) add_product(&t, &r->factor[f], path);
    }
  store_sums(&t);
  for (int i = 0; i < 3; i++) ir_end(k); /* the IF, and two loops */
}

static void make_result(const result *r, ir_val first, int64_t *blocks) {
  const clb_irreps *irreps = r->transposed ? &r->b->lp->in : &r->b->lp->out;
  for (int i = 0; i < irreps->n && r->to; i++) make_term(r, i, first, blocks);
}

static void add_factor(result *r, const clb_row_array *rows, const clb_row_array *weights) {
  if (rows && weights) r->factor[r->n_factors++] = (factor){rows, weights};
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"linear_forward", "linear_backward",
                                      "linear_double_backward"};
  clb_linear_kernel b;
  clb_linear_begin(&b, k, p, s, names[p->pass], ROWS);
  const clb_row_array *x = clb_linear_array(&b, CLB_ROLE_INPUT, CLB_OPERAND_X),
                      *w = clb_linear_array(&b, CLB_ROLE_INPUT, CLB_OPERAND_W),
                      *g = clb_linear_array(&b, CLB_ROLE_COTANGENT, CLB_OPERAND_Z),
                      *a = clb_linear_array(&b, CLB_ROLE_INCOMING, CLB_OPERAND_X),
                      *c = clb_linear_array(&b, CLB_ROLE_INCOMING, CLB_OPERAND_W);
  result like_x = {.b = &b,
                   .transposed = true,
                   .to = clb_linear_array(&b, CLB_ROLE_GRADIENT, CLB_OPERAND_X)},
         like_z = {.b = &b,
                   .to = clb_linear_array(&b, p->pass ? CLB_ROLE_GRADIENT : CLB_ROLE_OUTPUT,
                                          CLB_OPERAND_Z)};
  add_factor(&like_x, g, p->pass == CLB_DOUBLE_BACKWARD ? c : w);
  add_factor(&like_z, p->pass ? a : x, w);
  if (p->pass) add_factor(&like_z, x, c);
  like_z.bias = p->pass ? c : w;
  int64_t blocks = 0;
  const ir_val first = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), clb_linear_i64(&b, ROWS));
  make_result(&like_x, first, &blocks);
  make_result(&like_z, first, &blocks);
  ir_finish(k);
}

const clb_kernel_kind clb_kind_linear = {.name = "linear",
                                         .check = clb_linear_check,
                                         .schedule = clb_linear_schedule,
                                         .lower = lower,
                                         .print = clb_linear_print,
                                         .passes = 3};
