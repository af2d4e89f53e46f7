/* kernels/grouped/panels.c - a tile on a CPU: lanes are columns, and so B's rows of a block of k
   are put into local memory, transposed where they are columns in memory; A's elements are read one
   by one.  Sums stay in registers for a block of k and some rows. */
#include "kernels/grouped/tile.h"

enum { DEPTH = 64, ROWS = 4, MAX_VECTORS = 4, TRANSPOSED = 8 };

typedef struct {
  clb_grouped_tile *b;
  int vectors, lanes;
  ir_val rows; /* i32, of the tile */
  ir_val mask[MAX_VECTORS];
  ir_val first, depth; /* i32: of the block of k */
} panels;

static ir_val i32(ir_kernel *k, int64_t x) { return ir_int(k, IR_I32, x); }
static ir_val wide(ir_kernel *k, ir_val x) { return ir_cast(k, IR_I64, x); }

/* Where lane's element of a vector of a row of the panel or of the sums is. */
static ir_val local(panels *w, ir_val row, int vector) {
  ir_kernel *k = w->b->k;
  return ir_add(k, ir_mul(k, row, i32(k, (int64_t)w->vectors * w->lanes)),
                ir_add(k, ir_lane(k), i32(k, (int64_t)vector * w->lanes)));
}

/* Place of B[first + at][column]. */
static ir_val place_of_b(panels *w, ir_val at, int vector) {
  ir_kernel *k = w->b->k;
  const ir_val *b = w->b->at;
  ir_val column =
      ir_add(k, w->b->column, ir_add(k, ir_lane(k), i32(k, (int64_t)vector * w->lanes)));
  return ir_add(k, b[CLB_PRODUCT_B],
                ir_add(k, ir_mul(k, wide(k, ir_add(k, w->first, at)), b[CLB_PRODUCT_B_DEPTH]),
                       ir_mul(k, wide(k, column), b[CLB_PRODUCT_B_COLUMN])));
}

/* `width` rows of the panel from `at` on, which are adjacent in memory. */
static void stage(panels *w, ir_val at, int width) {
  ir_kernel *k = w->b->k;
  for (int v = 0; v < w->vectors; v++) {
    ir_val value[TRANSPOSED];
    ir_load_wide(k, w->b->in, place_of_b(w, at, v), w->mask[v], width, value);
    for (int i = 0; i < width; i++)
      ir_store(k, w->b->local, local(w, ir_add(k, at, i32(k, i)), v), IR_NONE,
               clb_grouped_scaled(k, value[i], w->b->scale_b));
  }
}

static void stage_rows(panels *w, ir_val begin) {
  ir_kernel *k = w->b->k;
  stage(w, ir_loop(k, begin, w->depth, i32(k, 1)), 1);
  ir_end(k);
}

static void fill_panel(panels *w) {
  ir_kernel *k = w->b->k;
  ir_val whole = ir_mul(k, ir_2(k, IR_DIV, w->depth, i32(k, TRANSPOSED)), i32(k, TRANSPOSED));
  ir_if(k, ir_2(k, IR_EQ, w->b->at[CLB_PRODUCT_B_DEPTH], ir_int(k, IR_I64, 1)));
  stage(w, ir_loop(k, i32(k, 0), whole, i32(k, TRANSPOSED)), TRANSPOSED);
  ir_end(k);
  stage_rows(w, whole);
  ir_else(k);
  stage_rows(w, i32(k, 0));
  ir_end(k);
}

/* Rows row ... row + ROWS - 1 of the tile; those that do not exist repeat the last one. */
static void multiply_rows(panels *w, ir_val row, ir_val sum[ROWS][MAX_VECTORS]) {
  ir_kernel *k = w->b->k;
  const ir_val *b = w->b->at;
  ir_val start[ROWS];
  for (int r = 0; r < ROWS; r++) {
    ir_val number = ir_2(k, IR_MIN, ir_add(k, ir_add(k, w->b->row, row), i32(k, r)),
                         ir_sub(k, w->b->m, i32(k, 1)));
    start[r] =
        ir_add(k, ir_add(k, b[CLB_PRODUCT_A], ir_mul(k, wide(k, number), b[CLB_PRODUCT_A_ROW])),
               ir_mul(k, wide(k, w->first), b[CLB_PRODUCT_A_DEPTH]));
    for (int v = 0; v < w->vectors; v++)
      ir_set(k, sum[r][v], ir_load(k, w->b->sums, local(w, ir_add(k, row, i32(k, r)), v), IR_NONE));
  }
  ir_val at = ir_loop(k, i32(k, 0), w->depth, i32(k, 1)), value[MAX_VECTORS];
  for (int v = 0; v < w->vectors; v++) value[v] = ir_load(k, w->b->local, local(w, at, v), IR_NONE);
  for (int r = 0; r < ROWS; r++) {
    ir_val a = ir_load(
        k, w->b->in, ir_add(k, start[r], ir_mul(k, wide(k, at), b[CLB_PRODUCT_A_DEPTH])), IR_NONE);
    a = clb_grouped_scaled(k, a, w->b->scale_a);
    for (int v = 0; v < w->vectors; v++)
      ir_set(k, sum[r][v], ir_fma(k, a, value[v], ir_get(k, sum[r][v])));
  }
  ir_end(k);
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < w->vectors; v++)
      ir_store(k, w->b->sums, local(w, ir_add(k, row, i32(k, r)), v), IR_NONE,
               ir_get(k, sum[r][v]));
}

static void sum_products(panels *w) {
  ir_kernel *k = w->b->k;
  ir_val sum[ROWS][MAX_VECTORS];
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < w->vectors; v++) sum[r][v] = ir_var(k, ir_real(k, w->b->t, 0), false);
  w->first = ir_loop(k, i32(k, 0), w->b->depth, i32(k, DEPTH));
  w->depth = ir_2(k, IR_MIN, ir_sub(k, w->b->depth, w->first), i32(k, DEPTH));
  fill_panel(w);
  multiply_rows(w, ir_loop(k, i32(k, 0), w->rows, i32(k, ROWS)), sum);
  ir_end(k);
  ir_end(k);
}

void clb_grouped_panels_locals(clb_grouped_tile *b) {
  const int64_t columns = b->s->grouped.columns;
  b->local = ir_local(b->k, b->t, DEPTH * columns);
  b->sums = ir_local(b->k, b->t, b->s->grouped.rows * columns);
}

void clb_grouped_panels(clb_grouped_tile *b) {
  ir_kernel *k = b->k;
  panels w = {.b = b, .lanes = b->s->lanes, .vectors = b->s->grouped.columns / b->s->lanes};
  w.rows = ir_2(k, IR_MIN, ir_sub(k, b->m, b->row), i32(k, b->s->grouped.rows));
  for (int v = 0; v < w.vectors; v++)
    w.mask[v] = ir_2(k, IR_LT, ir_lane(k),
                     ir_sub(k, ir_sub(k, b->n, b->column), i32(k, (int64_t)v * w.lanes)));
  ir_val row = ir_loop(k, i32(k, 0), i32(k, b->s->grouped.rows), i32(k, 1));
  for (int v = 0; v < w.vectors; v++)
    ir_store(k, b->sums, local(&w, row, v), IR_NONE, ir_real(k, b->t, 0));
  ir_end(k);
  sum_products(&w);
  row = ir_loop(k, i32(k, 0), w.rows, i32(k, 1));
  for (int v = 0; v < w.vectors; v++)
    clb_grouped_store(b, ir_add(k, b->row, row),
                      ir_add(k, b->column, ir_add(k, ir_lane(k), i32(k, (int64_t)v * w.lanes))),
                      w.mask[v], ir_load(k, b->sums, local(&w, row, v), IR_NONE));
  ir_end(k);
}
