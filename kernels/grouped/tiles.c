/* kernels/grouped/tiles.c - a tile on a GPU: operands go through local memory, a lane has a block
   of 4 x 4 elements.

   A group has more lanes than the tile has blocks: its slices take different k and are summed at
   the end, in a fixed order, so that a long sum does not wait for one multiprocessor's few lanes.
   Two stages of local memory alternate: while one is multiplied, the other is loaded. */
#include "kernels/grouped/tile.h"

enum { BLOCK = CLB_GROUPED_BLOCK, MAX_LOADS = 16, UNROLLED = 8 };

/* What this lane stages of an operand. */
typedef struct {
  ir_val place[MAX_LOADS];  /* i64, in memory, of the first k */
  ir_val local[MAX_LOADS];  /* i32, in a stage */
  ir_val depth[MAX_LOADS];  /* i32, k */
  ir_val inside[MAX_LOADS]; /* whether its row (of B: column) exists */
  ir_val stride, scale;
} operand;

typedef struct {
  clb_grouped_tile *b;
  int tile, group, slices, loads, pitch; /* loads: of a lane, operand and stage */
  ir_val id;                             /* lane of the group */
  ir_val block[2], slice;                /* first row and column of the lane's block; i32 */
  operand operand[2];
  ir_val sum[BLOCK][BLOCK]; /* variables */
} tiles;

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }
static ir_val wide(ir_kernel *k, ir_val x) { return ir_cast(k, IR_I64, x); }
static ir_val quotient(ir_kernel *k, ir_val x, int by) { return ir_2(k, IR_DIV, x, i32(k, by)); }
static ir_val rest(ir_kernel *k, ir_val x, int by) { return ir_2(k, IR_MOD, x, i32(k, by)); }
static ir_val plus_times(ir_kernel *k, ir_val x, int by, ir_val y) {
  return ir_add(k, x, ir_mul(k, i32(k, by), y));
}

/* Element e of a stage. Where k is adjacent in memory, 8 lanes go along k and 4 along rows: each
   reads whole sectors, and the transposed store meets 32 different banks. */
static void place_element(tiles *w, ir_val e, ir_val along_k, ir_val *row, ir_val *depth) {
  ir_kernel *k = w->b->k;
  const int run = w->tile < 8 ? w->tile : 8;
  ir_val k1 = plus_times(k, rest(k, e, run), run,
                         rest(k, quotient(k, e, BLOCK * run), w->tile / run)),
         row1 = plus_times(k, rest(k, quotient(k, e, run), BLOCK), BLOCK,
                           quotient(k, e, BLOCK * w->tile));
  *row = ir_select(k, along_k, row1, rest(k, e, w->tile));
  *depth = ir_select(k, along_k, k1, quotient(k, e, w->tile));
}

/* column: of the product, where the operand's place is, followed by its two strides. */
static void prepare(tiles *w, operand *o, int column, ir_val first, ir_val extent, int64_t start,
                    ir_val scale) {
  ir_kernel *k = w->b->k;
  const ir_val *at = w->b->at + column;
  ir_val along_k = ir_2(k, IR_EQ, at[2], ir_int(k, IR_I64, 1));
  o->stride = at[2];
  o->scale = scale;
  for (int j = 0; j < w->loads; j++) {
    ir_val row;
    place_element(w, ir_add(k, w->id, i32(k, (int64_t)j * w->group)), along_k, &row, &o->depth[j]);
    ir_val number = ir_add(k, first, row);
    o->inside[j] = ir_2(k, IR_LT, number, extent);
    o->local[j] = ir_add(k, plus_times(k, row, w->pitch, o->depth[j]), i32(k, start));
    o->place[j] = ir_add(
        k, at[0],
        ir_add(k, ir_mul(k, wide(k, number), at[1]), ir_mul(k, wide(k, o->depth[j]), at[2])));
  }
}

/* Values of the k from `from` on; 0 beyond the operand's end. */
static void fetch(tiles *w, const operand *o, ir_val from, ir_val *value) {
  ir_kernel *k = w->b->k;
  ir_val forward = ir_mul(k, wide(k, from), o->stride);
  for (int j = 0; j < w->loads; j++) {
    ir_val exists = ir_2(k, IR_LT, ir_add(k, from, o->depth[j]), w->b->depth);
    value[j] = ir_load(k, w->b->in, ir_add(k, o->place[j], forward),
                       ir_2(k, IR_AND, o->inside[j], exists));
  }
}

static void put(tiles *w, const operand *o, ir_val stage, const ir_val *value) {
  ir_kernel *k = w->b->k;
  for (int j = 0; j < w->loads; j++)
    ir_store(k, w->b->local, ir_add(k, stage, o->local[j]), IR_NONE,
             clb_grouped_scaled(k, value[j], o->scale));
}

/* A block's elements, in accesses of 16 bytes. */
static void load_block(tiles *w, ir_val at, ir_val *value) {
  const int width = 16 / ir_type_bytes(w->b->t);
  for (int i = 0; i < BLOCK; i += width)
    ir_load_aligned(w->b->k, w->b->local, ir_add(w->b->k, at, i32(w->b->k, i)), IR_NONE, width,
                    value + i);
}

static void store_block(tiles *w, ir_val at, const ir_val *value) {
  const int width = 16 / ir_type_bytes(w->b->t);
  for (int i = 0; i < BLOCK; i += width)
    ir_store_aligned(w->b->k, w->b->local, ir_add(w->b->k, at, i32(w->b->k, i)), IR_NONE, width,
                     value + i);
}

/* Adds the products of this slice's k in a stage. */
static void multiply(tiles *w, ir_val stage) {
  ir_kernel *k = w->b->k;
  const int depth = w->tile / w->slices, unrolled = depth < UNROLLED ? depth : UNROLLED;
  ir_val a[BLOCK], b[BLOCK],
      start = ir_add(k, stage, ir_mul(k, w->slice, i32(k, (int64_t)depth * w->pitch)));
  ir_val from =
      depth > unrolled ? ir_loop(k, i32(k, 0), i32(k, depth), i32(k, unrolled)) : i32(k, 0);
  for (int i = 0; i < unrolled; i++) {
    ir_val row = ir_add(k, start, ir_mul(k, ir_add(k, from, i32(k, i)), i32(k, w->pitch)));
    load_block(w, ir_add(k, row, w->block[0]), a);
    load_block(w, ir_add(k, ir_add(k, row, w->block[1]), i32(k, (int64_t)w->tile * w->pitch)), b);
    for (int r = 0; r < BLOCK; r++)
      for (int c = 0; c < BLOCK; c++)
        ir_set(k, w->sum[r][c], ir_fma(k, a[r], b[c], ir_get(k, w->sum[r][c])));
  }
  if (depth > unrolled) ir_end(k);
}

static void sum_products(tiles *w) {
  ir_kernel *k = w->b->k;
  ir_val value[2][MAX_LOADS], both = i32(k, 2 * (int64_t)w->tile * w->pitch), none = i32(k, 0);
  for (int i = 0; i < 2; i++) fetch(w, &w->operand[i], none, value[i]);
  for (int i = 0; i < 2; i++) put(w, &w->operand[i], none, value[i]);
  ir_barrier(k, true);
  ir_val stage = ir_var(k, none, true),
         from = ir_loop(k, i32(k, w->tile), w->b->depth, i32(k, w->tile)), now = ir_get(k, stage),
         next = ir_sub(k, both, now);
  for (int i = 0; i < 2; i++) fetch(w, &w->operand[i], from, value[i]);
  multiply(w, now);
  for (int i = 0; i < 2; i++) put(w, &w->operand[i], next, value[i]);
  ir_set(k, stage, next);
  ir_barrier(k, true);
  ir_end(k);
  multiply(w, ir_get(k, stage));
}

/* The slices' sums meet in local memory, in memory order of the tile. */
static void store_sums(tiles *w) {
  ir_kernel *k = w->b->k;
  const int elements = w->tile * w->tile;
  ir_val mine = ir_add(k, ir_mul(k, w->slice, i32(k, elements)), w->block[1]);
  ir_barrier(k, true);
  for (int r = 0; r < BLOCK; r++) {
    ir_val row[BLOCK], number = ir_add(k, w->block[0], i32(k, r));
    for (int c = 0; c < BLOCK; c++) row[c] = ir_get(k, w->sum[r][c]);
    store_block(w, plus_times(k, mine, w->tile, number), row);
  }
  ir_barrier(k, true);
  for (int j = 0; j < w->loads; j++) {
    ir_val e = ir_add(k, w->id, i32(k, (int64_t)j * w->group)), sum = IR_NONE;
    for (int s = 0; s < w->slices; s++) {
      ir_val part = ir_load(k, w->b->local, ir_add(k, e, i32(k, (int64_t)s * elements)), IR_NONE);
      sum = s ? ir_add(k, sum, part) : part;
    }
    ir_val row = ir_add(k, w->b->row, quotient(k, e, w->tile)),
           column = ir_add(k, w->b->column, rest(k, e, w->tile)),
           mask = ir_2(k, IR_AND, ir_2(k, IR_LT, row, w->b->m), ir_2(k, IR_LT, column, w->b->n));
    clb_grouped_store(w->b, row, column, mask, sum);
  }
}

/* The stages' memory serves the sums, too. */
void clb_grouped_tiles_locals(clb_grouped_tile *b) {
  const int64_t tile = b->s->grouped.rows, sums = b->s->grouped.slices * tile * tile,
                stages = 4 * tile * (tile + CLB_GROUPED_PADDING);
  b->local = ir_local(b->k, b->t, stages > sums ? stages : sums);
}

void clb_grouped_tiles(clb_grouped_tile *b) {
  ir_kernel *k = b->k;
  const int tile = b->s->grouped.rows, group = b->s->lanes * b->s->subgroups, blocks = tile / BLOCK,
            pitch = tile + CLB_GROUPED_PADDING;
  tiles w = {.b = b,
             .tile = tile,
             .group = group,
             .slices = b->s->grouped.slices,
             .loads = tile * tile / group,
             .pitch = pitch};
  w.id = b->s->subgroups > 1 ? plus_times(k, ir_lane(k), b->s->lanes, ir_subgroup(k)) : ir_lane(k);
  ir_val block = rest(k, w.id, blocks * blocks);
  w.slice = quotient(k, w.id, blocks * blocks);
  w.block[0] = ir_mul(k, quotient(k, block, blocks), i32(k, BLOCK));
  w.block[1] = ir_mul(k, rest(k, block, blocks), i32(k, BLOCK));
  prepare(&w, &w.operand[0], CLB_PRODUCT_A, b->row, b->m, 0, b->scale_a);
  prepare(&w, &w.operand[1], CLB_PRODUCT_B, b->column, b->n, (int64_t)tile * pitch, b->scale_b);
  for (int r = 0; r < BLOCK; r++)
    for (int c = 0; c < BLOCK; c++) w.sum[r][c] = ir_var(k, ir_real(k, b->t, 0), false);
  sum_products(&w);
  store_sums(&w);
}
