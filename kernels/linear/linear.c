/* kernels/linear/linear.c - linear maps of irreps: what has a row for each row of x.  Lanes are
   channels of the result, a group does some rows, its sub-groups take blocks of channels in turn.
 */
#include "kernels/linear/linear_sums.h"

static void store_sums(const clb_linear_tile *t) {
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

static void make_term(const clb_linear_result *r, int number, ir_val first, int64_t *blocks) {
  clb_linear_kernel *b = r->b;
  ir_kernel *k = b->k;
  clb_linear_tile t = clb_linear_tile_of(r, number);
  const int64_t channels = t.term.term->mul;
  if (!channels) return;
  const ir_val block = clb_take_turns(k, clb_linear_blocks(b, channels), blocks);
  t.channel = clb_linear_channel(b, block, channels, &t.left);
  t.mask = clb_linear_mask(b, channels, t.left);
  const ir_val last = ir_sub(k, b->n, clb_linear_i64(b, 1)),
               some = ir_loop(k, clb_linear_i64(b, 0), clb_linear_i64(b, CLB_LINEAR_ROWS),
                              clb_linear_i64(b, t.n_rows));
  t.row[0] = ir_add(k, first, some);
  ir_if(k, ir_2(k, IR_LT, t.row[0], b->n));
  for (int i = 1; i < t.n_rows; i++)
    t.row[i] = ir_2(k, IR_MIN, ir_add(k, t.row[0], clb_linear_i64(b, i)), last);
  t.weights = b->lp->weights == CLB_LINEAR_PER_ROW ? t.row[0] : IR_NONE;
  if (b->lp->weights == CLB_LINEAR_BY_SPECIES && b->lp->n_weights && (r->n_factors || r->bias))
    t.weights = clb_linear_species(b, t.row[0]);
  const ir_val zero = ir_real(k, b->t, 0), bias = clb_linear_bias(&t);
  clb_linear_begin_sums(&t, bias == IR_NONE ? zero : bias);
  clb_linear_add_products(&t);
  store_sums(&t);
  for (int i = 0; i < 3; i++) ir_end(k); /* the IF, and two loops */
}

static void make_result(const clb_linear_result *r, ir_val first, int64_t *blocks) {
  const clb_irreps *irreps = r->transposed ? &r->b->lp->in : &r->b->lp->out;
  for (int i = 0; i < irreps->n && r->to; i++) make_term(r, i, first, blocks);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"linear_forward", "linear_backward",
                                      "linear_double_backward"};
  clb_linear_kernel b;
  clb_linear_begin(&b, k, p, s, names[p->pass], CLB_LINEAR_ROWS);
  clb_linear_result results[2];
  clb_linear_results(&b, results);
  int64_t blocks = 0;
  const ir_val first =
      ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), clb_linear_i64(&b, CLB_LINEAR_ROWS));
  for (int i = 0; i < 2; i++) make_result(&results[i], first, &blocks);
  ir_finish(k);
}

const clb_kernel_kind clb_kind_linear = {.name = "linear",
                                         .check = clb_linear_check,
                                         .schedule = clb_linear_schedule,
                                         .lower = lower,
                                         .print = clb_linear_print,
                                         .passes = 3};
