/* kernels/linear/linear_weights.c - the gradients of a linear map by its weights: sums over rows of
   outer products, g_W[u][w] = sum x[u] g[w], and g_b[w] = sum g[w].

   Lanes are channels w. A group does one block of rows, and one species of it; its sub-groups take
   tiles of weights in turn.  Sums of blocks are in a workspace, in arithmetic precision, and the
   pass that would be the forward one adds them up.  Where each row has its own weights, a block is
   a row, and its sums are the result. */
#include "kernels/linear/linear_parts.h"

enum {
  CHANNELS = 8,  /* u of a tile */
  IN_FLIGHT = 8, /* blocks that are loaded together */
  SHORT = 64 /* rows that are added up by themselves, so that errors do not grow with all rows */
};

typedef struct {
  clb_linear_kernel b;
  const clb_row_array *left, *right; /* left NULL: it is 0 */
  ir_val first, end;                 /* rows */
  ir_val kind;                       /* species */
  ir_val at;                         /* start of the row of results */
  clb_row_array to;
  int64_t units;
} weights;

/* Opens the loop over some rows, and the IF for those of the species. */
static ir_val open_rows(const weights *w, ir_val first) {
  ir_kernel *k = w->b.k;
  const ir_val end = ir_2(k, IR_MIN, w->end, ir_add(k, first, clb_linear_i64(&w->b, SHORT))),
               row = ir_loop(k, first, end, clb_linear_i64(&w->b, 1));
  if (w->kind != IR_NONE) ir_if(k, ir_2(k, IR_EQ, clb_linear_species(&w->b, row), w->kind));
  return row;
}

static void close_rows(const weights *w) {
  if (w->kind != IR_NONE) ir_end(w->b.k);
  ir_end(w->b.k);
}

/* Sums over rows of x[u] g[w]; x NULL: of g[w].  u: i64, of the tile's channels. */
static void add_rows(const weights *w, clb_linear_term x, const ir_val *u, int n_u,
                     clb_linear_term g, ir_val channel, ir_val mask, const ir_val *total) {
  const clb_linear_kernel *b = &w->b;
  ir_kernel *k = b->k;
  ir_val value[CLB_LINEAR_COMPONENTS], sum[CHANNELS];
  const ir_val first = ir_loop(k, w->first, w->end, clb_linear_i64(b, SHORT));
  for (int i = 0; i < n_u; i++) sum[i] = ir_var(k, ir_real(k, b->t, 0), false);
  const ir_val row = open_rows(w, first);
  clb_linear_load_channels(b, w->right, clb_linear_row(b, w->right, row), g, channel, mask, value);
  for (int i = 0; i < n_u; i++)
    for (int m = 0; m <= 2 * g.term->l; m++) {
      const ir_val old = ir_get(k, sum[i]);
      if (!x.term) {
        ir_set(k, sum[i], ir_add(k, old, value[m]));
        continue;
      }
      const ir_val one = clb_linear_load(b, w->left, clb_linear_row(b, w->left, row),
                                         clb_linear_place(b, x, u[i], m), IR_NONE);
      ir_set(k, sum[i], ir_fma(k, one, value[m], old));
    }
  close_rows(w);
  for (int i = 0; i < n_u; i++)
    ir_set(k, total[i], ir_add(k, ir_get(k, total[i]), ir_get(k, sum[i])));
  ir_end(k);
}

static void make_path(weights *w, const clb_linear_path *path) {
  const clb_linear_kernel *b = &w->b;
  ir_kernel *k = b->k;
  const clb_linear_term x = {&b->lp->in.term[path->in], b->lp->layout_in},
                        g = {&b->lp->out.term[path->out], b->lp->layout_out};
  const int n_u = x.term->mul < CHANNELS ? x.term->mul : CHANNELS;
  const int64_t across = clb_linear_blocks(b, g.term->mul), down = (x.term->mul - 1) / n_u + 1;
  ir_val u[CHANNELS], own[CHANNELS], sum[CHANNELS], left;
  const ir_val unit = clb_take_turns(k, across * down, &w->units), of = ir_int(k, IR_I32, across),
               channel = clb_linear_channel(b, ir_2(k, IR_MOD, unit, of), g.term->mul, &left),
               mask = clb_linear_mask(b, g.term->mul, left),
               top =
                   ir_mul(k, ir_cast(k, IR_I64, ir_2(k, IR_DIV, unit, of)), clb_linear_i64(b, n_u)),
               last = clb_linear_i64(b, x.term->mul - 1);
  for (int i = 0; i < n_u; i++) {
    own[i] = ir_add(k, top, clb_linear_i64(b, i));
    u[i] = x.term->mul % n_u ? ir_2(k, IR_MIN, own[i], last) : own[i];
    sum[i] = ir_var(k, ir_real(k, b->t, 0), false);
  }
  if (w->left) add_rows(w, x, u, n_u, g, channel, mask, sum);
  for (int i = 0; i < n_u; i++) {
    const ir_val row = ir_mul(k, own[i], clb_linear_i64(b, g.term->mul)),
                 at = ir_add(k, ir_add(k, w->at, clb_linear_i64(b, path->weight_at)),
                             ir_add(k, row, channel)),
                 some = ir_select(k, ir_2(k, IR_LE, own[i], last), left, ir_int(k, IR_I32, 0));
    clb_linear_store(b, &w->to, at, ir_2(k, IR_LT, ir_lane(k), some),
                     ir_mul(k, ir_get(k, sum[i]), ir_real(k, b->t, path->coefficient)));
  }
  ir_end(k);
}

/* d_w has no part for biases: the map is linear in them. */
static void make_bias(weights *w, int term) {
  const clb_linear_kernel *b = &w->b;
  ir_kernel *k = b->k;
  const clb_linear_term g = {&b->lp->out.term[term], b->lp->layout_out}, none = {NULL, 0};
  ir_val left;
  const ir_val block = clb_take_turns(k, clb_linear_blocks(b, g.term->mul), &w->units),
               channel = clb_linear_channel(b, block, g.term->mul, &left),
               mask = ir_2(k, IR_LT, ir_lane(k), left), sum = ir_var(k, ir_real(k, b->t, 0), false);
  if (b->p->pass == CLB_BACKWARD) add_rows(w, none, NULL, 1, g, channel, mask, &sum);
  clb_linear_store(b, &w->to,
                   ir_add(k, ir_add(k, w->at, clb_linear_i64(b, b->lp->bias[term] - 1)), channel),
                   mask, ir_get(k, sum));
  ir_end(k);
}

/* Where the results go, and which rows they are sums over. */
static void find_place(weights *w, ir_val block_rows, ir_val partial) {
  clb_linear_kernel *b = &w->b;
  ir_kernel *k = b->k;
  const ir_val group = ir_cast(k, IR_I64, ir_group(k)), kinds = clb_linear_i64(b, b->lp->n_species),
               block = ir_2(k, IR_DIV, group, kinds);
  w->kind = b->lp->weights == CLB_LINEAR_BY_SPECIES ? ir_2(k, IR_MOD, group, kinds) : IR_NONE;
  w->first = ir_mul(k, block, block_rows);
  w->end = ir_2(k, IR_MIN, ir_add(k, w->first, block_rows), b->n);
  if (b->lp->weights == CLB_LINEAR_PER_ROW) {
    w->to = *clb_linear_array(b, CLB_ROLE_GRADIENT, CLB_OPERAND_W);
    w->at = clb_linear_row(b, &w->to, block);
    return;
  }
  w->to = (clb_row_array){.buffer = partial, .element = b->t};
  w->at = ir_mul(k, group, clb_linear_i64(b, b->lp->n_weights));
}

static void sums(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_linear_problem *lp = &p->linear;
  const bool twice = p->pass == CLB_DOUBLE_BACKWARD;
  weights w = {.units = 0};
  clb_linear_begin(&w.b, k, p, s,
                   twice ? "linear_weights_double_backward" : "linear_weights_backward", 1);
  w.b.accumulate &= lp->weights == CLB_LINEAR_PER_ROW; /* otherwise `total` adds */
  const ir_val block_rows = ir_scalar(k, IR_I64),
               partial = lp->weights == CLB_LINEAR_PER_ROW ? IR_NONE : ir_buffer(k, w.b.t, true);
  w.left = clb_linear_array(&w.b, twice ? CLB_ROLE_INCOMING : CLB_ROLE_INPUT, CLB_OPERAND_X);
  w.right = clb_linear_array(&w.b, CLB_ROLE_COTANGENT, CLB_OPERAND_Z);
  find_place(&w, block_rows, partial);
  for (int i = 0; i < lp->n_paths; i++) make_path(&w, &lp->path[i]);
  for (int i = 0; i < lp->out.n; i++)
    if (lp->bias[i]) make_bias(&w, i);
  ir_finish(k);
}

static ir_val pairwise(ir_kernel *k, const ir_val *v, int n) {
  return n == 1 ? *v : ir_add(k, pairwise(k, v, n / 2), pairwise(k, v + n / 2, n / 2));
}

/* Lanes are weights; a group does a block of those of one species. */
static void total(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_linear_problem *lp = &p->linear;
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  clb_linear_kernel b = {.k = k, .p = p, .lp = lp, .s = s, .t = t, .accumulate = p->accumulate};
  clb_row_block rows = {.k = k};
  ir_val sum[IN_FLIGHT], left;
  ir_begin(k, "linear_weights_total", s->lanes, 1, 1);
  const ir_val partial = ir_buffer(k, t, false), blocks = ir_scalar(k, IR_I64);
  const clb_row_array out = clb_rows_array(&rows, (clb_dtype)p->storage, true);
  const int64_t across = clb_linear_blocks(&b, lp->n_weights);
  const ir_val group = ir_group(k), of = ir_int(k, IR_I32, across ? across : 1),
               kind = ir_cast(k, IR_I64, ir_2(k, IR_DIV, group, of)),
               mine = clb_linear_channel(&b, ir_2(k, IR_MOD, group, of), lp->n_weights, &left);
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_var(k, ir_real(k, t, 0), false);
  const ir_val first = ir_loop(k, clb_linear_i64(&b, 0), blocks, clb_linear_i64(&b, IN_FLIGHT));
  for (int i = 0; i < IN_FLIGHT; i++) {
    const ir_val block = ir_add(k, first, clb_linear_i64(&b, i)),
                 row = ir_add(k, ir_mul(k, block, clb_linear_i64(&b, lp->n_species)), kind),
                 at = ir_add(k, ir_mul(k, row, clb_linear_i64(&b, lp->n_weights)), mine),
                 some = ir_select(k, ir_2(k, IR_LT, block, blocks), left, ir_int(k, IR_I32, 0));
    ir_set(k, sum[i],
           ir_add(k, ir_get(k, sum[i]), ir_load(k, partial, at, ir_2(k, IR_LT, ir_lane(k), some))));
  }
  ir_end(k);
  for (int i = 0; i < IN_FLIGHT; i++) sum[i] = ir_get(k, sum[i]);
  clb_linear_store(&b, &out, ir_add(k, clb_linear_row(&b, &out, kind), mine),
                   ir_2(k, IR_LT, ir_lane(k), left), pairwise(k, sum, IN_FLIGHT));
  ir_finish(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  (p->pass == CLB_FORWARD ? total : sums)(p, s, k);
}

const clb_kernel_kind clb_kind_linear_weights = {.name = "linear_weights",
                                                 .check = clb_linear_check,
                                                 .schedule = clb_linear_schedule,
                                                 .lower = lower,
                                                 .print = clb_linear_print,
                                                 .passes = 3};
