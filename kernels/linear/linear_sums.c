/* kernels/linear/linear_sums.c - see linear_sums.h. */
#include "kernels/linear/linear_sums.h"

enum { TOGETHER = 4, SUMS = 16 }; /* u whose weights are loaded together; sums in registers */

static clb_linear_term find_term(const clb_linear_result *r, bool of_result, int number) {
  const clb_linear_problem *lp = r->b->lp;
  const bool in = of_result == r->transposed;
  return (clb_linear_term){in ? &lp->in.term[number] : &lp->out.term[number],
                           in ? lp->layout_in : lp->layout_out};
}

clb_linear_term clb_linear_term_of(const clb_linear_result *r, int number) {
  return find_term(r, true, number);
}

clb_linear_term clb_linear_source(const clb_linear_result *r, const clb_linear_path *path) {
  return find_term(r, false, r->transposed ? path->out : path->in);
}

static ir_val weights_at(const clb_linear_tile *t, const clb_row_array *w) {
  return t->weights == IR_NONE ? w->offset : clb_linear_row(t->r->b, w, t->weights);
}

/* Weights for n steps of the sum from `at` (i64) on, times the coefficient. */
static void load_weights(const clb_linear_tile *t, const clb_row_array *w,
                         const clb_linear_path *path, ir_val at, int n, ir_val *v) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const ir_val width = clb_linear_i64(b, b->lp->out.term[path->out].mul),
               from = ir_add(k, weights_at(t, w), clb_linear_i64(b, path->weight_at)),
               mine = ir_add(k, from, ir_add(k, ir_mul(k, t->channel, width), at));
  for (int i = 0; i < n && t->r->transposed; i += IR_MAX_WIDTH)
    ir_load_wide(k, w->buffer, ir_add(k, mine, clb_linear_i64(b, i)), t->mask,
                 n - i < IR_MAX_WIDTH ? n - i : IR_MAX_WIDTH, v + i);
  for (int i = 0; i < n; i++) {
    const ir_val row = ir_mul(k, ir_add(k, at, clb_linear_i64(b, i)), width);
    if (!t->r->transposed)
      v[i] = ir_load(k, w->buffer, ir_add(k, from, ir_add(k, row, t->channel)), t->mask);
    v[i] = ir_mul(k, ir_cast(k, b->t, v[i]), ir_real(k, b->t, path->coefficient));
  }
}

static void add_steps(const clb_linear_tile *t, const clb_linear_factor *f,
                      const clb_linear_path *path, const ir_val *start, ir_val at, int n) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const clb_linear_term from = clb_linear_source(t->r, path);
  ir_val w[TOGETHER];
  load_weights(t, f->weights, path, at, n, w);
  for (int i = 0; i < n; i++)
    for (int r = 0; r < t->n_rows; r++)
      for (int m = 0; m <= 2 * from.term->l; m++) {
        const ir_val place = clb_linear_place(b, from, ir_add(k, at, clb_linear_i64(b, i)), m),
                     x = clb_linear_load(b, f->rows, start[r], place, IR_NONE);
        ir_set(k, t->sum[r][m], ir_fma(k, x, w[i], ir_get(k, t->sum[r][m])));
      }
}

static void add_product(const clb_linear_tile *t, const clb_linear_factor *f,
                        const clb_linear_path *path) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int64_t depth = clb_linear_source(t->r, path).term->mul,
                whole = depth / TOGETHER * TOGETHER;
  ir_val start[CLB_LINEAR_ROWS];
  for (int r = 0; r < t->n_rows; r++) start[r] = clb_linear_row(b, f->rows, t->row[r]);
  if (whole) {
    const ir_val at =
        ir_loop(k, clb_linear_i64(b, 0), clb_linear_i64(b, whole), clb_linear_i64(b, TOGETHER));
    add_steps(t, f, path, start, at, TOGETHER);
    ir_end(k);
  }
  if (depth > whole) add_steps(t, f, path, start, clb_linear_i64(b, whole), (int)(depth - whole));
}

void clb_linear_add_products(const clb_linear_tile *t) {
  const clb_linear_result *r = t->r;
  const clb_linear_problem *lp = r->b->lp;
  for (int f = 0; f < r->n_factors; f++)
    for (int i = 0; i < lp->n_paths; i++) {
      const clb_linear_path *path = &lp->path[i];
      if ((r->transposed ? path->in : path->out) == t->number) add_product(t, &r->factor[f], path);
    }
}

ir_val clb_linear_bias(const clb_linear_tile *t) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int32_t bias = t->r->bias ? b->lp->bias[t->number] : 0;
  return bias ? clb_linear_load(b, t->r->bias, weights_at(t, t->r->bias),
                                ir_add(k, t->channel, clb_linear_i64(b, bias - 1)), t->mask)
              : IR_NONE;
}

void clb_linear_begin_sums(clb_linear_tile *t, ir_val first) {
  ir_kernel *k = t->r->b->k;
  for (int r = 0; r < t->n_rows; r++)
    for (int m = 0; m <= 2 * t->term.term->l; m++) t->sum[r][m] = ir_var(k, first, false);
}

/* Rows of a tile of a term, of those that share weights, that registers have room for. */
static int rows_of(const clb_linear_problem *lp, const clb_term *t) {
  int rows = lp->weights == CLB_LINEAR_ONE_ROW ? CLB_LINEAR_ROWS : 1;
  while (rows > 1 && rows * (2 * t->l + 1) > SUMS) rows /= 2;
  return rows;
}

clb_linear_tile clb_linear_tile_of(const clb_linear_result *r, int number) {
  clb_linear_tile t = {
      .r = r, .number = number, .term = clb_linear_term_of(r, number), .weights = IR_NONE};
  t.n_rows = rows_of(r->b->lp, t.term.term);
  return t;
}

static void add_factor(clb_linear_result *r, const clb_row_array *rows,
                       const clb_row_array *weights) {
  if (rows && weights) r->factor[r->n_factors++] = (clb_linear_factor){rows, weights};
}

void clb_linear_results(clb_linear_kernel *b, clb_linear_result results[2]) {
  const clb_problem *p = b->p;
  clb_linear_result *like_x = &results[0], *like_z = &results[1];
  const clb_row_array *x = clb_linear_array(b, CLB_ROLE_INPUT, CLB_OPERAND_X),
                      *w = clb_linear_array(b, CLB_ROLE_INPUT, CLB_OPERAND_W),
                      *g = clb_linear_array(b, CLB_ROLE_COTANGENT, CLB_OPERAND_Z),
                      *a = clb_linear_array(b, CLB_ROLE_INCOMING, CLB_OPERAND_X),
                      *c = clb_linear_array(b, CLB_ROLE_INCOMING, CLB_OPERAND_W);
  *like_x = (clb_linear_result){
      .b = b, .transposed = true, .to = clb_linear_array(b, CLB_ROLE_GRADIENT, CLB_OPERAND_X)};
  *like_z = (clb_linear_result){
      .b = b,
      .to = clb_linear_array(b, p->pass ? CLB_ROLE_GRADIENT : CLB_ROLE_OUTPUT, CLB_OPERAND_Z)};
  add_factor(like_x, g, p->pass == CLB_DOUBLE_BACKWARD ? c : w);
  add_factor(like_z, p->pass ? a : x, w);
  if (p->pass) add_factor(like_z, x, c);
  like_z->bias = p->pass ? c : w;
}
