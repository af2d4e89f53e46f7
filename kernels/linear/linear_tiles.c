/* kernels/linear/linear_tiles.c - see linear_tiles.h.  While a chunk is multiplied, the next one is
   being loaded into registers. */
#include "kernels/linear/linear_tiles.h"

enum { MOST_ACROSS = 8, MOST_LOADS = 64 };

static ir_val i32(const clb_linear_tiling *t, int64_t x) { return ir_int(t->r->b->k, IR_I32, x); }

/* x by + y, in i32. */
static ir_val plus_times(const clb_linear_tiling *t, ir_val x, int64_t by, ir_val y) {
  ir_kernel *k = t->r->b->k;
  return ir_add(k, ir_mul(k, x, i32(t, by)), y);
}

static ir_val wide(const clb_linear_tiling *t, ir_val x) { return ir_cast(t->r->b->k, IR_I64, x); }

/* ---- shapes ---- */

/* A tile with so many lanes side by side. */
static clb_linear_shape shape_of(const clb_schedule *s, int across) {
  const int down = s->lanes / across, most = s->linear.rows_per_lane;
  int block = most * CLB_LINEAR_COLUMNS / down;
  block = block > most ? most : block > 1 ? block : 1;
  return (clb_linear_shape){across, down, block, down * block, across * CLB_LINEAR_COLUMNS};
}

/* Accesses to local memory for a row: each element that a lane reads serves its block's rows, or
   columns. */
static double cost_of(const clb_term *t, clb_linear_shape s) {
  const int columns = (t->mul + s.columns - 1) / s.columns * s.columns;
  return columns * (1. / s.block + 1. / (int)CLB_LINEAR_COLUMNS);
}

clb_linear_shape clb_linear_shape_of(const clb_term *t, const clb_schedule *s) {
  clb_linear_shape best = shape_of(s, 1);
  for (int across = 2; across <= MOST_ACROSS && across <= s->lanes && best.columns < t->mul;
       across *= 2) {
    const clb_linear_shape next = shape_of(s, across);
    if (cost_of(t, next) <= cost_of(t, best)) best = next;
  }
  return best;
}

int64_t clb_linear_tiles_across(const clb_term *t, const clb_schedule *s) {
  const int columns = clb_linear_shape_of(t, s).columns;
  return (t->mul + columns - 1) / columns;
}

/* Elements of an access to local memory, of 16 bytes. */
static int local_width(ir_type type) { return 16 / ir_type_bytes(type); }
/* Rows of local memory are longer than what they hold, so that lanes meet different banks. */
static int row_pitch(ir_type type) { return CLB_LINEAR_CHUNK + local_width(type); }
static int weight_pitch(clb_linear_shape s, ir_type type) { return s.columns + local_width(type); }

int64_t clb_linear_tile_elements(const clb_term *t, const clb_schedule *s, ir_type type) {
  const clb_linear_shape shape = clb_linear_shape_of(t, s);
  const int64_t sums = (int64_t)shape.rows * shape.columns,
                chunk = (int64_t)shape.rows * row_pitch(type) +
                        (int64_t)CLB_LINEAR_CHUNK * weight_pitch(shape, type);
  return sums > chunk ? sums : chunk;
}

int clb_linear_width(const clb_problem *p) {
  const int width = local_width(clb_ir_type((clb_dtype)p->arithmetic)),
            bytes = width * ir_type_bytes(clb_ir_type((clb_dtype)p->storage));
  return bytes == 8 || bytes == 16 ? width : 1;
}

void clb_linear_locate(const clb_linear_tiling *t, ir_val at, ir_val *row, ir_val *component) {
  ir_kernel *k = t->r->b->k;
  const ir_val components = i32(t, 2 * t->term.term->l + 1);
  *row = wide(t, ir_2(k, IR_DIV, at, components));
  *component = ir_2(k, IR_MOD, at, components);
}

/* ---- from memory into registers, and from there into local memory ---- */

/* What a lane loads of one operand's chunk: vectors of `width` elements, adjacent in memory and in
   local memory unless `stride` is not 1. */
typedef struct {
  ir_val buffer;
  int n, width, stride;      /* stride: of a vector's elements in local memory */
  ir_val place[MOST_LOADS];  /* i64, of the chunk from 0 on */
  ir_val local[MOST_LOADS];  /* i32, in the sub-group's part */
  ir_val depth[MOST_LOADS];  /* i32, of the vector's first element; its others have the same, or the
                                next ones */
  ir_val inside[MOST_LOADS]; /* lanes with a vector, IR_NONE: all */
  ir_val exists[MOST_LOADS]; /* those whose row, or channel, exists */
  ir_val step;               /* i64: from one u to the next */
  double factor;
  const clb_gate_segment *gate; /* that they go through; NULL: none */
  ir_val gate_place[MOST_LOADS];
} loads;

/* Vector number j of this lane is this one of a chunk's, i32. */
static ir_val vector_number(const clb_linear_tiling *t, int j, int count, ir_val *inside) {
  ir_kernel *k = t->r->b->k;
  const int lanes = t->r->b->s->lanes;
  const ir_val number = ir_add(k, ir_lane(k), i32(t, (int64_t)j * lanes));
  *inside = (j + 1) * lanes > count ? ir_2(k, IR_LT, number, i32(t, count)) : IR_NONE;
  return number;
}

static int loads_of(const clb_linear_tiling *t, int count) {
  const int lanes = t->r->b->s->lanes;
  return (count + lanes - 1) / lanes;
}

/* Rows beyond the last one are that one again. */
static void find_rows(const clb_linear_tiling *t, const clb_row_array *rows, clb_linear_term from,
                      loads *l) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const clb_gate_segment *g =
      b->lp->gated == CLB_LINEAR_GATED ? clb_linear_segment(b->lp, from.term) : NULL;
  const bool by_component = from.layout == CLB_IR_MUL,
             is_wide = clb_linear_is_wide(from, t->width) &&
                       (!g || clb_linear_segment_is_wide(g, t->width));
  const int width = is_wide ? t->width : 1, along = CLB_LINEAR_CHUNK / width,
            count = t->shape.rows * along, first = g ? g->in : from.term->at,
            pitch = g              ? g->in_step
                    : by_component ? from.term->mul
                                   : 1;
  *l = (loads){.buffer = rows->buffer,
               .n = loads_of(t, count),
               .width = width,
               .stride = 1,
               .step = clb_linear_i64(b, by_component ? 1 : 2 * from.term->l + 1),
               .factor = 1,
               .gate = g};
  for (int j = 0; j < l->n; j++) {
    const ir_val number = vector_number(t, j, count, &l->inside[j]),
                 row = ir_2(k, IR_DIV, number, i32(t, along)),
                 at = ir_2(k, IR_MIN, ir_add(k, t->first, row), ir_sub(k, t->n, i32(t, 1)));
    ir_val of, component;
    clb_linear_locate(t, at, &of, &component);
    l->depth[j] = ir_mul(k, ir_2(k, IR_MOD, number, i32(t, along)), i32(t, width));
    l->local[j] = plus_times(t, row, row_pitch(b->t), l->depth[j]);
    l->exists[j] = IR_NONE;
    if (t->now != IR_NONE)
      l->exists[j] = ir_2(k, IR_EQ, ir_load(k, t->species, row, l->inside[j]), t->now);
    const ir_val start = clb_linear_row(b, rows, of),
                 place = plus_times(t, component, pitch, i32(t, first));
    l->place[j] =
        ir_add(k, ir_add(k, start, wide(t, place)), ir_mul(k, wide(t, l->depth[j]), l->step));
    if (g && g->gate >= 0)
      l->gate_place[j] =
          ir_add(k, ir_add(k, start, clb_linear_i64(b, g->gate)), wide(t, l->depth[j]));
  }
}

/* Weights are [u][channel] in local memory, and in memory, unless it is the transposed map. */
static void find_weights(const clb_linear_tiling *t, const clb_row_array *weights,
                         const clb_linear_path *path, loads *l) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const bool transposed = t->r->transposed;
  const int64_t length = b->lp->out.term[path->out].mul, channels = t->term.term->mul;
  const bool is_wide =
      !transposed && t->width > 1 && length % t->width == 0 && path->weight_at % t->width == 0;
  const int width = is_wide ? t->width : 1,
            along = transposed ? CLB_LINEAR_CHUNK : t->shape.columns / width,
            count = CLB_LINEAR_CHUNK * t->shape.columns / width;
  const ir_val start =
      ir_add(k, t->weights == IR_NONE ? weights->offset : clb_linear_row(b, weights, t->weights),
             clb_linear_i64(b, path->weight_at));
  *l = (loads){.buffer = weights->buffer,
               .n = loads_of(t, count),
               .width = width,
               .stride = 1,
               .step = clb_linear_i64(b, transposed ? 1 : length),
               .factor = path->coefficient};
  for (int j = 0; j < l->n; j++) {
    const ir_val number = vector_number(t, j, count, &l->inside[j]),
                 slow = ir_2(k, IR_DIV, number, i32(t, along)),
                 fast = ir_mul(k, ir_2(k, IR_MOD, number, i32(t, along)), i32(t, width)),
                 column = transposed ? slow : fast, channel = ir_add(k, t->channel, column);
    l->depth[j] = transposed ? fast : slow;
    l->local[j] = ir_add(k, plus_times(t, l->depth[j], weight_pitch(t->shape, b->t), column),
                         i32(t, (int64_t)t->shape.rows * row_pitch(b->t)));
    l->exists[j] =
        channels % t->shape.columns ? ir_2(k, IR_LT, channel, i32(t, channels)) : IR_NONE;
    l->place[j] = ir_add(k, start,
                         ir_add(k, ir_mul(k, wide(t, l->depth[j]), l->step),
                                transposed ? ir_mul(k, wide(t, channel), clb_linear_i64(b, length))
                                           : wide(t, channel)));
  }
}

/* `width` adjacent elements. */
static void load(const clb_linear_tiling *t, const loads *l, ir_val place, ir_val mask,
                 ir_val *values) {
  ir_kernel *k = t->r->b->k;
  if (l->width > 1) ir_load_aligned(k, l->buffer, place, mask, l->width, values);
  else values[0] = ir_load(k, l->buffer, place, mask);
}

/* Values of the chunk whose first u is `at` (i32), and then their gates; 0 from u `depth` on,
   unless all chunks exist and are whole. */
static void fetch(const clb_linear_tiling *t, const loads *l, ir_val at, int64_t depth, bool whole,
                  ir_val values[][8]) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const ir_val forward = ir_mul(k, wide(t, at), l->step);
  for (int j = 0; j < l->n; j++) {
    const ir_val inside =
                     whole ? IR_NONE : ir_2(k, IR_LT, ir_add(k, at, l->depth[j]), i32(t, depth)),
                 mask = clb_and(k, clb_and(k, l->inside[j], l->exists[j]), inside);
    load(t, l, ir_add(k, l->place[j], forward), mask, values[j]);
    if (l->gate && l->gate->gate >= 0)
      load(t, l, ir_add(k, l->gate_place[j], forward), mask, values[j] + 4);
  }
}

/* A value (in arithmetic precision) behind its gate; 0 of rows of other species. */
static ir_val pass_gate(const clb_linear_tiling *t, const loads *l, int j, ir_val x,
                        const ir_val *gate) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  if (l->gate->gate >= 0)
    return ir_mul(k, clb_linear_activate(b, l->gate, ir_cast(k, b->t, *gate), NULL), x);
  x = clb_linear_activate(b, l->gate, x, NULL);
  return l->exists[j] == IR_NONE ? x : ir_select(k, l->exists[j], x, ir_real(k, b->t, 0));
}

static void put(const clb_linear_tiling *t, const loads *l, ir_val values[][8]) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  for (int j = 0; j < l->n; j++) {
    const ir_val to = ir_add(k, t->mine, l->local[j]);
    for (int i = 0; i < l->width; i++) {
      values[j][i] = ir_cast(k, b->t, values[j][i]);
      if (l->gate) values[j][i] = pass_gate(t, l, j, values[j][i], values[j] + 4 + i);
      if (l->factor != 1) values[j][i] = ir_mul(k, values[j][i], ir_real(k, b->t, l->factor));
    }
    if (l->width > 1) ir_store_aligned(k, t->local, to, l->inside[j], l->width, values[j]);
    else ir_store(k, t->local, to, l->inside[j], values[j][0]);
  }
}

/* ---- sums ---- */

/* `count` adjacent elements of local memory. */
static void get(const clb_linear_tiling *t, ir_val at, int count, ir_val *values) {
  ir_kernel *k = t->r->b->k;
  const int width = local_width(t->r->b->t);
  for (int i = 0; i < count; i += width)
    ir_load_aligned(k, t->local, ir_add(k, at, i32(t, i)), IR_NONE, width, values + i);
}

static void multiply(const clb_linear_tiling *t) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int width = local_width(b->t), pitch = weight_pitch(t->shape, b->t);
  const ir_val lane = ir_lane(k), across = i32(t, t->shape.across),
               rows = plus_times(t, ir_2(k, IR_DIV, lane, across), row_pitch(b->t), t->mine),
               weights = ir_add(
                   k, plus_times(t, ir_2(k, IR_MOD, lane, across), CLB_LINEAR_COLUMNS, t->mine),
                   i32(t, (int64_t)t->shape.rows * row_pitch(b->t)));
  for (int u = 0; u < CLB_LINEAR_CHUNK; u += width) {
    ir_val w[4][CLB_LINEAR_COLUMNS], x[4];
    for (int i = 0; i < width; i++)
      get(t, ir_add(k, weights, i32(t, (int64_t)(u + i) * pitch)), CLB_LINEAR_COLUMNS, w[i]);
    for (int r = 0; r < t->shape.block; r++) {
      get(t, ir_add(k, rows, i32(t, (int64_t)r * t->shape.down * row_pitch(b->t) + u)), width, x);
      for (int i = 0; i < width; i++)
        for (int c = 0; c < CLB_LINEAR_COLUMNS; c++)
          ir_set(k, t->sum[r][c], ir_fma(k, x[i], w[i][c], ir_get(k, t->sum[r][c])));
    }
  }
}

/* Sub-groups take chunks in turn, from the one on after which those before ended.  All of them come
   by the barriers; what has no chunk left in the last round does not multiply. */
static void add_path(const clb_linear_tiling *t, const clb_linear_factor *f,
                     const clb_linear_path *path, int64_t *before) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const clb_linear_term from = clb_linear_source(t->r, path);
  const int64_t depth = from.term->mul, of = b->s->subgroups,
                chunks = (depth + CLB_LINEAR_CHUNK - 1) / CLB_LINEAR_CHUNK;
  const bool whole = depth % (CLB_LINEAR_CHUNK * of) == 0;
  const ir_val mine = clb_first_turn(k, *before);
  ir_val values[2][MOST_LOADS][8];
  loads operand[2];
  if (!chunks) return;
  find_rows(t, clb_linear_is_second(b->lp->in_split, path->in) ? &b->second_in : f->rows, from,
            &operand[0]);
  find_weights(t, f->weights, path, &operand[1]);
  const ir_val first = ir_mul(k, mine, i32(t, CLB_LINEAR_CHUNK));
  for (int i = 0; i < 2; i++) fetch(t, &operand[i], first, depth, whole, values[i]);
  if (*before || t->now != IR_NONE) ir_barrier(k, false);
  for (int i = 0; i < 2; i++) put(t, &operand[i], values[i]);
  ir_barrier(k, false);
  *before += chunks;
  if (chunks > of) {
    const ir_val round = ir_loop(k, i32(t, of), i32(t, chunks), i32(t, of)),
                 at = ir_mul(k, ir_add(k, round, mine), i32(t, CLB_LINEAR_CHUNK));
    for (int i = 0; i < 2; i++) fetch(t, &operand[i], at, depth, whole, values[i]);
    multiply(t);
    ir_barrier(k, false);
    for (int i = 0; i < 2; i++) put(t, &operand[i], values[i]);
    ir_barrier(k, false);
    ir_end(k);
  }
  const int64_t rest = chunks % of;
  if (rest) ir_if(k, ir_2(k, IR_LT, mine, i32(t, rest)));
  multiply(t);
  if (rest) ir_end(k);
}

/* The species of the tile's rows, and which of them is the first of its own. */
static void find_species(const clb_linear_tiling *t) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const ir_val one = ir_2(k, IR_EQ, ir_subgroup(k), i32(t, 0));
  ir_val mask[CLB_LINEAR_TILE_ROWS], own[CLB_LINEAR_TILE_ROWS], row[CLB_LINEAR_TILE_ROWS];
  const int n = loads_of(t, t->shape.rows);
  for (int j = 0; j < n; j++) {
    ir_val inside, of, component;
    row[j] = vector_number(t, j, t->shape.rows, &inside);
    mask[j] = clb_and(k, inside, one);
    clb_linear_locate(t, ir_2(k, IR_MIN, ir_add(k, t->first, row[j]), ir_sub(k, t->n, i32(t, 1))),
                      &of, &component);
    own[j] = ir_load(k, b->species, ir_add(k, b->first_species, of), mask[j]);
    ir_store(k, t->species, row[j], mask[j], own[j]);
  }
  ir_barrier(k, true);
  for (int j = 0; j < n; j++) {
    ir_val leads = i32(t, 1);
    for (int i = 0; i < t->shape.rows - 1; i++) {
      const ir_val other = ir_load(k, t->species, i32(t, i), IR_NONE),
                   before = ir_2(k, IR_AND, ir_2(k, IR_EQ, other, own[j]),
                                 ir_2(k, IR_LT, i32(t, i), row[j]));
      leads = ir_select(k, before, i32(t, 0), leads);
    }
    ir_store(k, t->leads, row[j], mask[j], leads);
  }
  ir_barrier(k, true);
}

static bool is_by_species(const clb_linear_problem *lp, const clb_linear_path *path) {
  const bool second = clb_linear_is_second(lp->in_split, path->in) ||
                      clb_linear_is_second(lp->out_split, path->out);
  return lp->weights == CLB_LINEAR_BY_SPECIES && lp->one_matrix != 1 + second;
}

/* Adds the term's paths whose weights are by species, or those of which they are not; without
   `adds` none.  Returns how many there are. */
static int add_paths(const clb_linear_tiling *t, bool by_species, bool adds, int64_t *before) {
  const clb_linear_result *r = t->r;
  const clb_linear_problem *lp = r->b->lp;
  int n = 0;
  for (int f = 0; f < r->n_factors; f++)
    for (int i = 0; i < lp->n_paths; i++) {
      const clb_linear_path *path = &lp->path[i];
      if ((r->transposed ? path->in : path->out) != t->number ||
          is_by_species(lp, path) != by_species)
        continue;
      if (adds) add_path(t, &r->factor[f], path, before);
      n++;
    }
  return n;
}

void clb_linear_sum_tile(clb_linear_tiling *t) {
  ir_kernel *k = t->r->b->k;
  for (int i = 0; i < t->shape.block; i++)
    for (int c = 0; c < CLB_LINEAR_COLUMNS; c++)
      t->sum[i][c] = ir_var(k, ir_real(k, t->r->b->t, 0), false);
  int64_t before = 0;
  t->now = t->weights = IR_NONE;
  add_paths(t, false, true, &before);
  if (!add_paths(t, true, false, &before)) return;
  find_species(t);
  const ir_val row = ir_loop(k, i32(t, 0), i32(t, t->shape.rows), i32(t, 1));
  ir_if(k, ir_2(k, IR_EQ, ir_load(k, t->leads, row, IR_NONE), i32(t, 1)));
  t->now = ir_load(k, t->species, row, IR_NONE);
  t->weights = wide(t, t->now);
  add_paths(t, true, true, &before);
  for (int i = 0; i < 2; i++) ir_end(k);
}

void clb_linear_keep_sums(const clb_linear_tiling *t) {
  ir_kernel *k = t->r->b->k;
  const int width = local_width(t->r->b->t);
  const ir_val lane = ir_lane(k), across = i32(t, t->shape.across),
               column = ir_mul(k, ir_2(k, IR_MOD, lane, across), i32(t, CLB_LINEAR_COLUMNS)),
               at = plus_times(t, ir_2(k, IR_DIV, lane, across), t->shape.columns,
                               ir_add(k, t->mine, column));
  ir_barrier(k, false);
  for (int r = 0; r < t->shape.block; r++) {
    const ir_val row = ir_add(k, at, i32(t, (int64_t)r * t->shape.down * t->shape.columns));
    ir_val v[CLB_LINEAR_COLUMNS];
    for (int c = 0; c < CLB_LINEAR_COLUMNS; c++) v[c] = ir_get(k, t->sum[r][c]);
    for (int c = 0; c < CLB_LINEAR_COLUMNS; c += width)
      ir_store_aligned(k, t->local, ir_add(k, row, i32(t, c)), IR_NONE, width, v + c);
  }
}
