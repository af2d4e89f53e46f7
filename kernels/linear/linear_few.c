/* kernels/linear/linear_few.c - linear maps of irreps of few rows, which would leave most of a
   device idle: a group makes one tile of some rows and a block of channels, and its sub-groups
   share the sums over channels, which they then add up in a fixed order. */
#include "kernels/linear/linear_few.h"
#include "kernels/linear/linear_chunks.h"

enum { SUMS = 32 }; /* in registers */

static int rows_of(const clb_linear_problem *lp, const clb_term *t) {
  return clb_linear_rows_of(lp, t, SUMS);
}

/* Tiles of a term, of the rows of all its groups: blocks of channels, and parts of the rows. */
static int64_t tiles_of(const clb_linear_problem *lp, const clb_term *t, int lanes) {
  return (t->mul + lanes - 1) / lanes * (CLB_LINEAR_ROWS / rows_of(lp, t));
}

/* The terms of a pass's result that is like x, or like z; NULL: there is none. */
static const clb_irreps *irreps_of(const clb_linear_problem *lp, int pass, bool like_x) {
  if (like_x) return pass && lp->gradients & CLB_OPERAND_X ? &lp->in : NULL;
  const bool wanted = !pass || (pass == CLB_DOUBLE_BACKWARD && lp->gradients & CLB_OPERAND_Z);
  return wanted ? &lp->out : NULL;
}

int64_t clb_linear_few_groups(const clb_problem *p, int lanes, int64_t n) {
  const clb_linear_problem *lp = &p->linear;
  int64_t tiles = 0;
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(lp, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++) tiles += tiles_of(lp, &irreps->term[t], lanes);
  }
  return tiles * ((n + CLB_LINEAR_ROWS - 1) / CLB_LINEAR_ROWS);
}

static int64_t most_sums(const clb_problem *p) {
  int64_t most = 1;
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(&p->linear, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++) {
      const clb_term *term = &irreps->term[t];
      const int64_t sums = (2 * term->l + 1) * rows_of(&p->linear, term);
      if (sums > most) most = sums;
    }
  }
  return most;
}

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  return p->linear.weights != CLB_LINEAR_PER_ROW
             ? clb_linear_check(p, limits, error)
             : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                        "linear maps of few rows share their weights, or have those of a species");
}

/* Elements of local memory for each sum: its part of each lane, or a chunk of what it multiplies.
 */
static int64_t stage_row(int lanes) { return lanes > CLB_LINEAR_CHUNK ? lanes : CLB_LINEAR_CHUNK; }

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_linear_schedule(p, limits, s);
  const int64_t bytes =
      most_sums(p) * stage_row(s->lanes) * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
  while (s->subgroups > 1 && s->subgroups * bytes > limits->local_bytes) s->subgroups /= 2;
}

/* ---- the kernel ---- */

typedef struct {
  clb_linear_kernel b;
  ir_val first, tile, stage; /* i64: first row of the group; i32; local, [sub-group][sum][lane] */
  int64_t before;            /* tiles so far */
} builder;

/* Number of a sum, and of a lane of it, of a sub-group (all i32). */
static ir_val staged(const builder *x, int64_t n_sums, ir_val subgroup, ir_val sum) {
  ir_kernel *k = x->b.k;
  const ir_val row = ir_add(k, ir_mul(k, subgroup, ir_int(k, IR_I32, n_sums)), sum);
  return ir_add(k, ir_mul(k, row, ir_int(k, IR_I32, stage_row(x->b.s->lanes))), ir_lane(k));
}

/* Stores the sum of all sub-groups' sums of number `sum`: row by row from `first` on, component by
   component. */
static void store_sum(const builder *x, const clb_linear_tile *t, ir_val first, int64_t n_sums,
                      ir_val sum) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  const int components = 2 * t->term.term->l + 1;
  const ir_val n = ir_int(k, IR_I32, components),
               row = ir_add(k, first, ir_cast(k, IR_I64, ir_2(k, IR_DIV, sum, n))),
               m = ir_cast(k, IR_I64, ir_2(k, IR_MOD, sum, n)),
               left = ir_select(k, ir_2(k, IR_LT, row, b->n), t->left, ir_int(k, IR_I32, 0)),
               bias = clb_linear_bias(t);
  ir_val v = IR_NONE;
  for (int s = 0; s < b->s->subgroups; s++) {
    const ir_val part = ir_load(k, x->stage, staged(x, n_sums, ir_int(k, IR_I32, s), sum), IR_NONE);
    v = s ? ir_add(k, v, part) : part;
  }
  if (bias != IR_NONE) v = ir_add(k, v, bias);
  const bool by_component = t->term.layout == CLB_IR_MUL;
  const ir_val mul = clb_linear_i64(b, by_component ? t->term.term->mul : components),
               place = by_component ? ir_add(k, ir_mul(k, m, mul), t->channel)
                                    : ir_add(k, ir_mul(k, t->channel, mul), m),
               at = ir_add(k, place, clb_linear_i64(b, t->term.term->at));
  clb_linear_store(b, t->r->to, ir_add(k, clb_linear_row(b, t->r->to, row), at),
                   ir_2(k, IR_LT, ir_lane(k), left), v);
}

/* Returns the tile's first row, i64; rows beyond the last are that one again, and are not stored.
 */
static ir_val find_tile(const builder *x, clb_linear_tile *t, ir_val number) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  const int64_t channels = t->term.term->mul;
  const ir_val blocks = ir_int(k, IR_I32, clb_linear_blocks(b, channels)),
               part = ir_cast(k, IR_I64, ir_2(k, IR_DIV, number, blocks)),
               last = ir_sub(k, b->n, clb_linear_i64(b, 1));
  t->channel = clb_linear_channel(b, ir_2(k, IR_MOD, number, blocks), channels, &t->left);
  t->mask = clb_linear_mask(b, channels, t->left);
  const ir_val first = ir_add(k, x->first, ir_mul(k, part, clb_linear_i64(b, t->n_rows)));
  for (int i = 0; i < t->n_rows; i++)
    t->row[i] = ir_2(k, IR_MIN, ir_add(k, first, clb_linear_i64(b, i)), last);
  return first;
}

static void make_term(builder *x, const clb_linear_result *r, int number) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  clb_linear_tile t = clb_linear_tile_of(r, number);
  t.n_rows = rows_of(b->lp, t.term.term);
  const int components = 2 * t.term.term->l + 1, n_sums = t.n_rows * components;
  const int64_t tiles = tiles_of(b->lp, t.term.term, b->s->lanes);
  if (!tiles) return;
  const ir_val begin = ir_int(k, IR_I32, x->before), end = ir_int(k, IR_I32, x->before + tiles);
  x->before += tiles;
  ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, begin, x->tile), ir_2(k, IR_LT, x->tile, end)));
  const ir_val first = find_tile(x, &t, ir_sub(k, x->tile, begin));
  if (b->species != IR_NONE) t.weights = clb_linear_species(b, t.row[0]);
  const clb_linear_stage stage = {
      x->stage, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, n_sums * stage_row(b->s->lanes)))};
  clb_linear_begin_sums(&t, ir_real(k, b->t, 0));
  clb_linear_add_chunks(&t, &stage);
  ir_barrier(k, false);
  for (int i = 0; i < n_sums; i++)
    ir_store(k, x->stage, staged(x, n_sums, ir_subgroup(k), ir_int(k, IR_I32, i)), IR_NONE,
             ir_get(k, t.sum[i / components][i % components]));
  ir_barrier(k, true);
  const ir_val sum =
      ir_loop(k, ir_subgroup(k), ir_int(k, IR_I32, n_sums), ir_int(k, IR_I32, b->s->subgroups));
  store_sum(x, &t, first, n_sums, sum);
  for (int i = 0; i < 2; i++) ir_end(k); /* the loop and the IF */
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"linear_few_forward", "linear_few_backward",
                                      "linear_few_double_backward"};
  builder x = {.before = 0};
  clb_linear_result results[2];
  clb_linear_begin(&x.b, k, p, s, names[p->pass], CLB_LINEAR_ROWS);
  clb_linear_results(&x.b, results);
  const ir_val tiles = ir_int(k, IR_I32, clb_linear_few_groups(p, s->lanes, 1)),
               rows = ir_2(k, IR_DIV, ir_group(k), tiles);
  x.tile = ir_2(k, IR_MOD, ir_group(k), tiles);
  x.first = ir_mul(k, ir_cast(k, IR_I64, rows), clb_linear_i64(&x.b, CLB_LINEAR_ROWS));
  x.stage = ir_local(k, x.b.t, s->subgroups * most_sums(p) * stage_row(s->lanes));
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(x.b.lp, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++) make_term(&x, &results[i], t);
  }
  ir_finish(k);
}

const clb_kernel_kind clb_kind_linear_few = {.name = "linear_few",
                                             .check = check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = clb_linear_print,
                                             .passes = 3};
