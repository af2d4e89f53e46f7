/* kernels/linear/linear_few.c - linear maps of irreps of few rows, which would leave most of a
   device idle: a group makes one tile of one term of a result (linear_tiles.h), and its sub-groups'
   sums are added up in a fixed order. */
#include "kernels/linear/linear_few.h"
#include "kernels/linear/linear_tiles.h"

/* Rows of lanes' blocks that a multiprocessor has registers for, with what they need. */
enum { ROWS_AT_ONCE = 4096 };

/* The terms of a pass's result that is like x, or like z; NULL: there is none. */
static const clb_irreps *irreps_of(const clb_linear_problem *lp, int pass, bool like_x) {
  if (like_x) return pass && lp->gradients & CLB_OPERAND_X ? &lp->in : NULL;
  const bool wanted = !pass || (pass == CLB_DOUBLE_BACKWARD && lp->gradients & CLB_OPERAND_Z);
  return wanted ? &lp->out : NULL;
}

/* Rows of a tile that are its own: in front of a gate all components of some rows of x. */
static int rows_of(const clb_linear_problem *lp, const clb_term *t, const clb_schedule *s) {
  const int rows = clb_linear_shape_of(t, s).rows, components = 2 * t->l + 1;
  return lp->gated == CLB_LINEAR_GATE_BACKWARD ? rows / components * components : rows;
}

/* Tiles above each other, of n rows of x. */
static int64_t tiles_down(const clb_linear_problem *lp, const clb_term *t, const clb_schedule *s,
                          int64_t n) {
  const int64_t rows = rows_of(lp, t, s);
  return (n * (2 * t->l + 1) + rows - 1) / rows;
}

int64_t clb_linear_few_groups(const clb_problem *p, const clb_schedule *s, int64_t n) {
  const clb_linear_problem *lp = &p->linear;
  int64_t tiles = 0;
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(lp, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++)
      tiles +=
          clb_linear_tiles_across(&irreps->term[t], s) * tiles_down(lp, &irreps->term[t], s, n);
  }
  return tiles;
}

bool clb_linear_few_is_wide(const clb_problem *p, int of) {
  const clb_linear_problem *lp = &p->linear;
  const int width = clb_linear_width(p);
  bool is = of == CLB_OPERAND_W;
  const clb_irreps *irreps = of == CLB_OPERAND_X ? &lp->in : &lp->out;
  for (int t = 0; t < irreps->n && !is; t++)
    is = clb_linear_is_wide(
        (clb_linear_term){&irreps->term[t], of == CLB_OPERAND_X ? lp->layout_in : lp->layout_out},
        width);
  return is;
}

/* Elements of local memory for a sub-group. */
static int64_t most_elements(const clb_problem *p, const clb_schedule *s) {
  int64_t most = 1;
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(&p->linear, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++) {
      const int64_t elements =
          clb_linear_tile_elements(&irreps->term[t], s, clb_ir_type((clb_dtype)p->arithmetic));
      if (elements > most) most = elements;
    }
  }
  return most;
}

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  if (p->linear.weights == CLB_LINEAR_PER_ROW)
    return clb_fail(error, CLB_ERROR_UNSUPPORTED,
                    "linear maps of few rows share their weights, or have those of a species");
  return p->pass && (p->linear.in_split || p->linear.out_split || p->linear.gated)
             ? clb_fail(error, CLB_ERROR_UNSUPPORTED,
                        "linear maps of two arrays, or with a gate, run forward only")
             : clb_linear_check(p, limits, error);
}

static void plan(const clb_problem *p, const clb_limits *limits, clb_linear_size size,
                 clb_schedule *s) {
  static const struct {
    int block, subgroups;
  } of[] = {[CLB_LINEAR_SMALL] = {CLB_LINEAR_BLOCK / 2, 8},
            [CLB_LINEAR_MEDIUM] = {CLB_LINEAR_BLOCK, 4},
            [CLB_LINEAR_LARGE] = {CLB_LINEAR_BLOCK, 1}};
  const int most = limits->max_subgroups,
            bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
  clb_linear_schedule(p, limits, s);
  s->linear.rows_per_lane = of[size].block;
  s->linear.elements_per_access = clb_linear_width(p);
  s->subgroups = of[size].subgroups < most ? of[size].subgroups : most;
  const int64_t lists = p->linear.weights == CLB_LINEAR_BY_SPECIES ? 8 * CLB_LINEAR_TILE_ROWS : 0;
  while (s->subgroups > 1 &&
         s->subgroups * most_elements(p, s) * bytes + lists > limits->local_bytes)
    s->subgroups /= 2;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  plan(p, limits, CLB_LINEAR_MEDIUM, s);
}

bool clb_linear_few_gates(const clb_problem *p, const clb_limits *limits) {
  const clb_linear_problem *lp = &p->linear;
  const clb_irreps *out = lp->gated == CLB_LINEAR_GATED ? &lp->in : &lp->out;
  bool can = clb_linear_can_gate(&lp->gate, out);
  for (int size = 0; size < CLB_LINEAR_SIZES && can; size++) {
    clb_schedule s;
    plan(p, limits, (clb_linear_size)size, &s);
    for (int t = 0; t < out->n; t++) can = can && rows_of(lp, &out->term[t], &s);
  }
  return can;
}

/* Groups for a unit of the device from which on none needs to share its sums. */
enum { MANY_GROUPS = 20 };

clb_linear_size clb_linear_few_size(const clb_problem *p, const clb_limits *limits, int64_t n,
                                    clb_schedule *s) {
  plan(p, limits, CLB_LINEAR_MEDIUM, s);
  const int64_t groups = clb_linear_few_groups(p, s, n);
  const clb_linear_size size = 2 * groups < limits->units             ? CLB_LINEAR_SMALL
                               : groups < MANY_GROUPS * limits->units ? CLB_LINEAR_MEDIUM
                                                                      : CLB_LINEAR_LARGE;
  if (size != CLB_LINEAR_MEDIUM) plan(p, limits, size, s);
  return size;
}

/* ---- the kernel ---- */

typedef struct {
  clb_linear_kernel b;
  ir_val tile, rows, local, mine; /* i32: of the group, and of x; array; i32: this sub-group's */
  ir_val species, leads;          /* local arrays, or IR_NONE: see linear_tiles.h */
  ir_val before;                  /* i32: tiles so far */
} builder;

static ir_val i32(const builder *x, int64_t value) { return ir_int(x->b.k, IR_I32, value); }

/* Stores `width` adjacent sums of channels from `channel` (i32) on, of row `at` of all tiles, or
   adds them. */
static void store_sums(const builder *x, const clb_linear_tiling *t, ir_val at, ir_val channel,
                       ir_val mask, int width, ir_val *sum) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  const bool second = clb_linear_is_second(b->lp->out_split, t->number);
  const clb_row_array *to = second ? &b->second_out : t->r->to;
  ir_val row, component;
  clb_linear_locate(t, at, &row, &component);
  const clb_term *term = t->term.term;
  const bool by_component = t->term.layout == CLB_IR_MUL;
  const ir_val step = i32(x, by_component ? 1 : 2 * term->l + 1),
               place = ir_add(k,
                              ir_add(k, ir_mul(k, component, i32(x, by_component ? term->mul : 1)),
                                     ir_mul(k, channel, step)),
                              i32(x, term->at)),
               first = ir_add(k, clb_linear_row(b, to, row), ir_cast(k, IR_I64, place));
  const bool wide = clb_linear_is_wide(t->term, t->width);
  ir_val old[4];
  if (wide && b->accumulate) ir_load_aligned(k, to->buffer, first, mask, width, old);
  for (int i = 0; i < width; i++) {
    const ir_val here =
        i ? ir_2(k, IR_AND, mask, ir_2(k, IR_LT, ir_add(k, channel, i32(x, i)), i32(x, term->mul)))
          : mask;
    if (wide) {
      if (b->accumulate) sum[i] = ir_add(k, sum[i], ir_cast(k, b->t, old[i]));
      sum[i] = ir_cast(k, ir_register_type(to->element), sum[i]);
    } else
      clb_linear_store(b, to,
                       ir_add(k, first, ir_mul(k, ir_cast(k, IR_I64, step), clb_linear_i64(b, i))),
                       here, sum[i]);
  }
  if (wide) ir_store_aligned(k, to->buffer, first, mask, width, sum);
}

/* `width` adjacent sums of all sub-groups from number `from` (i32) of a tile on. */
static void total(const builder *x, ir_val from, ir_val mask, int width, ir_val *sum) {
  ir_kernel *k = x->b.k;
  const int64_t part = most_elements(x->b.p, x->b.s);
  ir_val more[4];
  for (int s = 0; s < x->b.s->subgroups; s++) {
    ir_load_aligned(k, x->local, ir_add(k, from, i32(x, s * part)), mask, width, s ? more : sum);
    for (int i = 0; i < width && s; i++) sum[i] = ir_add(k, sum[i], more[i]);
  }
}

/* Lanes of all sub-groups take sums of the tile in turn. */
static void add_up(const builder *x, const clb_linear_tiling *t) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  const int width = 16 / ir_type_bytes(b->t), along = t->shape.columns / width,
            count = t->shape.rows * along, at_once = b->s->subgroups * b->s->lanes;
  const ir_val first = ir_loop(k, i32(x, 0), i32(x, count), i32(x, at_once)),
               lane = ir_add(k, ir_mul(k, ir_subgroup(k), i32(x, b->s->lanes)), ir_lane(k)),
               number = ir_add(k, first, lane),
               column = ir_mul(k, ir_2(k, IR_MOD, number, i32(x, along)), i32(x, width)),
               at = ir_add(k, t->first, ir_2(k, IR_DIV, number, i32(x, along))),
               channel = ir_add(k, t->channel, column),
               inside = count % at_once ? ir_2(k, IR_LT, number, i32(x, count)) : IR_NONE;
  ir_val mask =
      ir_2(k, IR_AND, ir_2(k, IR_LT, at, t->n), ir_2(k, IR_LT, channel, i32(x, t->term.term->mul)));
  ir_val sum[4];
  if (inside != IR_NONE) mask = ir_2(k, IR_AND, mask, inside);
  total(x, ir_mul(k, number, i32(x, width)), inside, width, sum);
  const int32_t bias = t->r->bias ? b->lp->bias[t->number] : 0;
  const ir_val species =
      bias && t->species != IR_NONE
          ? ir_load(k, t->species, ir_2(k, IR_DIV, number, i32(x, along)), inside)
          : IR_NONE;
  for (int i = 0; i < width && bias; i++) {
    const ir_val one = ir_add(k, channel, i32(x, i)),
                 there = ir_2(k, IR_AND, mask, ir_2(k, IR_LT, one, i32(x, t->term.term->mul))),
                 start = t->species == IR_NONE
                             ? t->r->bias->offset
                             : clb_linear_row(b, t->r->bias, ir_cast(k, IR_I64, species));
    sum[i] = ir_add(k, sum[i],
                    clb_linear_load(b, t->r->bias, start,
                                    ir_cast(k, IR_I64, ir_add(k, one, i32(x, bias - 1))), there));
  }
  store_sums(x, t, at, channel, mask, width, sum);
  ir_end(k);
}

/* Adjacent channels of a gate's segment: `width` of them in one access, or one by one. */
typedef struct {
  const builder *x;
  bool wide;
  int width;
  ir_val mask[4]; /* of each; wide: of all */
} channels;

static void load_channels(const channels *c, const clb_row_array *a, ir_val at, ir_val *v) {
  const clb_linear_kernel *b = &c->x->b;
  ir_kernel *k = b->k;
  if (c->wide) ir_load_aligned(k, a->buffer, at, c->mask[0], c->width, v);
  for (int i = 0; i < c->width; i++) {
    if (!c->wide) v[i] = ir_load(k, a->buffer, ir_add(k, at, clb_linear_i64(b, i)), c->mask[i]);
    v[i] = ir_cast(k, b->t, v[i]);
  }
}

static void store_channels(const channels *c, const clb_row_array *a, ir_val at, ir_val *v) {
  const clb_linear_kernel *b = &c->x->b;
  ir_kernel *k = b->k;
  for (int i = 0; i < c->width; i++) {
    v[i] = ir_cast(k, ir_register_type(a->element), v[i]);
    if (!c->wide) ir_store(k, a->buffer, ir_add(k, at, clb_linear_i64(b, i)), c->mask[i], v[i]);
  }
  if (c->wide) ir_store_aligned(k, a->buffer, at, c->mask[0], c->width, v);
}

/* The sums are gradients of what comes out of a gate; stores those of what goes in, as
   kernels/gate/gate.c does.  Lanes of all sub-groups take channels of rows of x in turn. */
static void gate_backward(const builder *x, const clb_linear_tiling *t) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  const clb_gate_segment *g = clb_linear_segment(b->lp, t->term.term);
  const int width = 16 / ir_type_bytes(b->t), along = t->shape.columns / width,
            count = rows_of(b->lp, t->term.term, b->s) / g->components * along,
            at_once = b->s->subgroups * b->s->lanes;
  const ir_val first = ir_loop(k, i32(x, 0), i32(x, count), i32(x, at_once)),
               lane = ir_add(k, ir_mul(k, ir_subgroup(k), i32(x, b->s->lanes)), ir_lane(k)),
               number = ir_add(k, first, lane), item = ir_2(k, IR_DIV, number, i32(x, along)),
               column = ir_mul(k, ir_2(k, IR_MOD, number, i32(x, along)), i32(x, width)),
               row = ir_add(k, ir_2(k, IR_DIV, t->first, i32(x, g->components)), item),
               channel = ir_add(k, t->channel, column),
               inside = ir_2(k, IR_LT, number, i32(x, count)), at = ir_cast(k, IR_I64, channel),
               wide_row = ir_cast(k, IR_I64, row),
               from = ir_add(k, clb_linear_row(b, &b->gated, wide_row), at),
               to = ir_add(k, clb_linear_row(b, t->r->to, wide_row), at);
  channels c = {.x = x,
                .width = width,
                .wide = clb_linear_is_wide(t->term, t->width) &&
                        clb_linear_segment_is_wide(g, t->width)};
  for (int i = 0; i < width; i++)
    c.mask[i] = ir_2(k, IR_AND, ir_2(k, IR_AND, inside, ir_2(k, IR_LT, row, x->rows)),
                     ir_2(k, IR_LT, ir_add(k, channel, i32(x, i)), i32(x, g->mul)));
  ir_val value[4], slope[4], all[4], v[4], sum[4];
  const ir_val gate = clb_linear_i64(b, g->gate < 0 ? g->in : g->gate);
  load_channels(&c, &b->gated, ir_add(k, from, gate), v);
  for (int i = 0; i < width; i++) value[i] = clb_linear_activate(b, g, v[i], &slope[i]);
  for (int m = 0; m < g->components; m++) {
    const ir_val place = clb_linear_i64(b, g->in + (int64_t)m * g->in_step),
                 part = ir_add(k, ir_mul(k, item, i32(x, g->components)), i32(x, m));
    total(x, ir_add(k, ir_mul(k, part, i32(x, t->shape.columns)), column), inside, width, sum);
    if (g->gate >= 0) load_channels(&c, &b->gated, ir_add(k, from, place), v);
    for (int i = 0; i < width && g->gate >= 0; i++) {
      all[i] = m ? ir_fma(k, sum[i], v[i], all[i]) : ir_mul(k, sum[i], v[i]);
      sum[i] = ir_mul(k, value[i], sum[i]);
    }
    for (int i = 0; i < width && g->gate < 0; i++) sum[i] = ir_mul(k, sum[i], slope[i]);
    store_channels(&c, t->r->to, ir_add(k, to, place), sum);
  }
  for (int i = 0; i < width && g->gate >= 0; i++) all[i] = ir_mul(k, slope[i], all[i]);
  if (g->gate >= 0) store_channels(&c, t->r->to, ir_add(k, to, gate), all);
  ir_end(k);
}

/* Where the tile of that number (i32) of the term is. */
static void find_tile(const builder *x, clb_linear_tiling *t, ir_val number) {
  ir_kernel *k = x->b.k;
  const ir_val across = i32(x, clb_linear_tiles_across(t->term.term, x->b.s));
  t->channel = ir_mul(k, ir_2(k, IR_MOD, number, across), i32(x, t->shape.columns));
  t->first =
      ir_mul(k, ir_2(k, IR_DIV, number, across), i32(x, rows_of(x->b.lp, t->term.term, x->b.s)));
}

/* Tiles of a term, i32. */
static ir_val tiles_of(const builder *x, const clb_linear_tiling *t) {
  ir_kernel *k = x->b.k;
  const int rows = rows_of(x->b.lp, t->term.term, x->b.s);
  const ir_val down = ir_2(k, IR_DIV, ir_add(k, t->n, i32(x, rows - 1)), i32(x, rows));
  return ir_mul(k, down, i32(x, clb_linear_tiles_across(t->term.term, x->b.s)));
}

static void make_term(builder *x, const clb_linear_result *r, int number) {
  const clb_linear_kernel *b = &x->b;
  ir_kernel *k = b->k;
  clb_linear_tiling t = {.r = r,
                         .number = number,
                         .width = b->s->linear.elements_per_access,
                         .term = clb_linear_term_of(r, number),
                         .local = x->local,
                         .mine = x->mine,
                         .species = x->species,
                         .leads = x->leads};
  if (!t.term.term->mul) return;
  t.shape = clb_linear_shape_of(t.term.term, b->s);
  x->b.accumulate = b->p->accumulate >> clb_linear_is_second(b->lp->out_split, number) & 1;
  t.n = ir_mul(k, x->rows, i32(x, 2 * t.term.term->l + 1));
  const ir_val begin = x->before, end = ir_add(k, begin, tiles_of(x, &t));
  x->before = end;
  ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, begin, x->tile), ir_2(k, IR_LT, x->tile, end)));
  find_tile(x, &t, ir_sub(k, x->tile, begin));
  clb_linear_sum_tile(&t);
  clb_linear_keep_sums(&t);
  ir_barrier(k, true);
  (b->lp->gated == CLB_LINEAR_GATE_BACKWARD ? gate_backward : add_up)(x, &t);
  ir_end(k);
}

/* Channels that a term sums over. */
static int64_t depth_of(const clb_linear_result *r, int number) {
  const clb_linear_problem *lp = r->b->lp;
  int64_t depth = 0;
  for (int i = 0; i < lp->n_paths; i++)
    if ((r->transposed ? lp->path[i].in : lp->path[i].out) == number)
      depth += clb_linear_source(r, &lp->path[i]).term->mul;
  return depth;
}

typedef struct {
  const clb_linear_result *r;
  int number;
  int64_t depth;
} result_term;

/* The terms of all results, those first whose groups have most to do. */
static int list_terms(const clb_problem *p, const clb_linear_result results[2],
                      result_term list[2 * CLB_MAX_TERMS]) {
  int n = 0;
  for (int i = 0; i < 2; i++) {
    const clb_irreps *irreps = irreps_of(&p->linear, p->pass, !i);
    for (int t = 0; irreps && t < irreps->n; t++) {
      const result_term own = {&results[i], t, depth_of(&results[i], t)};
      int at = n++;
      for (; at && list[at - 1].depth < own.depth; at--) list[at] = list[at - 1];
      list[at] = own;
    }
  }
  return n;
}

/* Groups that a multiprocessor should have registers for. */
static int groups_at_once(const clb_schedule *s) {
  const int groups = ROWS_AT_ONCE / s->linear.rows_per_lane / (s->lanes * s->subgroups);
  return groups < 32 ? groups : 32;
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"linear_few_forward", "linear_few_backward",
                                      "linear_few_double_backward"};
  builder x;
  clb_linear_result results[2];
  result_term list[2 * CLB_MAX_TERMS];
  clb_linear_begin(&x.b, k, p, s, names[p->pass], CLB_LINEAR_ROWS);
  clb_linear_results(&x.b, results);
  if (x.b.t == IR_F32) k->min_blocks_per_sm = groups_at_once(s);
  const int64_t part = most_elements(p, s);
  x.tile = ir_group(k);
  x.rows = ir_cast(k, IR_I32, x.b.n);
  x.before = i32(&x, 0);
  x.local = ir_local(k, x.b.t, s->subgroups * part);
  x.mine = ir_mul(k, ir_subgroup(k), i32(&x, part));
  x.species = x.leads = IR_NONE;
  if (x.b.species != IR_NONE) {
    x.species = ir_local(k, IR_I32, CLB_LINEAR_TILE_ROWS);
    x.leads = ir_local(k, IR_I32, CLB_LINEAR_TILE_ROWS);
  }
  const int n = list_terms(p, results, list);
  for (int i = 0; i < n; i++) make_term(&x, list[i].r, list[i].number);
  ir_finish(k);
}

const clb_kernel_kind clb_kind_linear_few = {.name = "linear_few",
                                             .check = check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = clb_linear_print,
                                             .settings = CLB_FIELD(linear),
                                             .passes = 3};
