/* kernels/common/rows.c - lanes are rows: reading and writing some columns of the row that each
   lane holds. */
#include "kernels/common/rows.h"

enum { UNSTAGED = 3 }; /* rows this short share cache lines anyway */

ir_type clb_ir_type(clb_dtype dtype) {
  static const ir_type types[] = {
      [CLB_F64] = IR_F64, [CLB_F32] = IR_F32, [CLB_F16] = IR_F16, [CLB_BF16] = IR_BF16};
  return types[dtype];
}

ir_val clb_wanted_lanes(ir_kernel *k, ir_val wanted, ir_val left) {
  const ir_val none = ir_int(k, IR_I32, 0);
  return ir_2(k, IR_LT, ir_lane(k), ir_select(k, ir_2(k, IR_EQ, wanted, none), none, left));
}

void clb_rows_begin(clb_row_block *b, ir_kernel *k, const clb_schedule *s, clb_dtype arithmetic) {
  k->scalar_access = s->scalar_access;
  *b = (clb_row_block){.k = k,
                       .schedule = s,
                       .arithmetic = clb_ir_type(arithmetic),
                       .n = ir_scalar(k, IR_I64),
                       .stage = IR_NONE,
                       .staged_n = -1};
}

clb_row_array clb_rows_array(clb_row_block *b, clb_dtype storage, bool written) {
  clb_row_array a = {.element = clb_ir_type(storage)};
  a.buffer = ir_buffer(b->k, a.element, written);
  a.offset = ir_scalar(b->k, IR_I64);
  a.stride = ir_scalar(b->k, IR_I64);
  return a;
}

void clb_rows_start(clb_row_block *b, clb_dtype stage_element, int most) {
  ir_kernel *k = b->k;
  const clb_schedule *s = b->schedule;
  ir_val block =
      ir_add(k, ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, s->subgroups)),
             ir_cast(k, IR_I64, ir_subgroup(k)));
  if (s->subgroups == 1) block = ir_cast(k, IR_I64, ir_group(k));
  b->first = ir_mul(k, block, ir_int(k, IR_I64, s->lanes));
  b->left =
      ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, b->n, b->first), ir_int(k, IR_I64, s->lanes)));
  b->mask = ir_2(k, IR_LT, ir_lane(k), b->left);
  b->pitch = most | 1; /* odd, so that lanes reading one column of their rows use different banks */
  if (s->rows.through_local && most > UNSTAGED)
    b->stage = ir_local(k, clb_ir_type(stage_element), (int64_t)s->subgroups * s->lanes * b->pitch);
}

/* Element (row, column) of an operand; row: i64. */
static ir_val element(ir_kernel *k, const clb_row_array *a, ir_val row, ir_val column) {
  return ir_add(k, ir_add(k, ir_mul(k, row, a->stride), a->offset), column);
}

static ir_val own_element(clb_row_block *b, const clb_row_array *a, int column) {
  ir_val row = ir_add(b->k, b->first, ir_cast(b->k, IR_I64, ir_lane(b->k)));
  return element(b->k, a, row, ir_int(b->k, IR_I64, column));
}

/* Wide accesses in powers of two, so that registers can be transposed. */
static int wide(int n, int most) {
  int w = 1;
  while (2 * w <= n && 2 * w <= most && 2 * w <= IR_MAX_WIDTH) w *= 2;
  return n == 3 ? 3 : w;
}

static void load_own(clb_row_block *b, const clb_row_array *a, int column, int n, ir_val *values) {
  for (int i = 0, w; i < n; i += w) {
    w = b->schedule->rows.columns_per_piece > 1 ? wide(n - i, b->schedule->rows.columns_per_piece)
                                                : 1;
    ir_load_wide(b->k, a->buffer, own_element(b, a, column + i), b->mask, w, values + i);
  }
}

static void store_own(clb_row_block *b, const clb_row_array *a, int column, int n,
                      const ir_val *values) {
  for (int i = 0, w; i < n; i += w) {
    w = b->schedule->rows.columns_per_piece > 1 ? wide(n - i, b->schedule->rows.columns_per_piece)
                                                : 1;
    ir_store_wide(b->k, a->buffer, own_element(b, a, column + i), b->mask, w, values + i);
  }
}

/* ---- staged ---- In iteration t a lane handles element j = t lanes + lane of the block's
   flattened rows: column j mod n of row j / n. No lane is ever idle, and dense rows are written in
   whole cache lines. After n / gcd(lanes, n) iterations (a cycle) every lane is at the same column
   again, some rows further on: from then on an access costs only additions. */

static int greatest_divisor(int a, int b) { return b ? greatest_divisor(b, a % b) : a; }

typedef struct {
  int turns, step; /* of a cycle: iterations, rows */
  ir_val global[CLB_MAX_WIDTH], local[CLB_MAX_WIDTH],
      row[CLB_MAX_WIDTH]; /* of the cycle reached; row: of cycle 0 */
  ir_val advance;         /* of `global` from cycle to cycle */
} walk;

static void start_walk(clb_row_block *b, const clb_row_array *a, int column, int n, walk *w) {
  ir_kernel *k = b->k;
  int lanes = b->schedule->lanes;
  ir_val start = element(k, a, b->first, ir_int(k, IR_I64, column)), size = ir_int(k, IR_I32, n);
  ir_val mine = ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, (int64_t)lanes * b->pitch));
  w->turns = n / greatest_divisor(lanes, n);
  w->step = w->turns * lanes / n;
  w->advance = ir_mul(k, a->stride, ir_int(k, IR_I64, w->step));
  for (int t = 0; t < w->turns; t++) {
    ir_val j = ir_add(k, ir_lane(k), ir_int(k, IR_I32, (int64_t)t * lanes)),
           row = ir_2(k, IR_DIV, j, size), at = ir_sub(k, j, ir_mul(k, row, size));
    w->row[t] = row;
    w->global[t] = ir_add(
        k, start, ir_add(k, ir_mul(k, ir_cast(k, IR_I64, row), a->stride), ir_cast(k, IR_I64, at)));
    w->local[t] = ir_add(
        k, mine,
        ir_add(k, ir_mul(k, row, ir_int(k, IR_I32, b->pitch - n)), j)); /* = row pitch + at */
  }
}

typedef struct {
  ir_val global, local, mask;
} spot;

/* The position in iteration i of n; advances `w` at the end of a cycle. */
static spot next_spot(clb_row_block *b, walk *w, int i) {
  ir_kernel *k = b->k;
  int t = i % w->turns, rows = i / w->turns * w->step;
  spot r = {w->global[t], ir_add(k, w->local[t], ir_int(k, IR_I32, (int64_t)rows * b->pitch)),
            ir_2(k, IR_LT, ir_add(k, w->row[t], ir_int(k, IR_I32, rows)), b->left)};
  w->global[t] = ir_add(k, w->global[t], w->advance);
  return r;
}

/* Position of column i of this lane's row in the stage. */
static ir_val own_spot(clb_row_block *b, int i) {
  ir_kernel *k = b->k;
  ir_val lane =
      ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, b->schedule->lanes)), ir_lane(k));
  return ir_add(k, ir_mul(k, lane, ir_int(k, IR_I32, b->pitch)), ir_int(k, IR_I32, i));
}

/* A barrier is needed when the access pattern of the stage changes; with the same pattern each lane
   finds its own elements. */
enum { OWN = 0 };
static void go_over(clb_row_block *b, int n) {
  if (b->staged_n != n || b->staged_scope != b->k->scope) ir_barrier(b->k, false);
  b->staged_n = n;
  b->staged_scope = b->k->scope;
}

static void load_staged(clb_row_block *b, const clb_row_array *a, int column, int n,
                        ir_val *values) {
  ir_kernel *k = b->k;
  ir_val loaded[CLB_MAX_WIDTH], local[CLB_MAX_WIDTH];
  walk w;
  start_walk(b, a, column, n, &w);
  for (int i = 0; i < n; i++) {
    spot at = next_spot(b, &w, i);
    loaded[i] = ir_load(k, a->buffer, at.global, at.mask);
    local[i] = at.local;
  }
  go_over(b, n);
  for (int i = 0; i < n; i++) ir_store(k, b->stage, local[i], IR_NONE, loaded[i]);
  go_over(b, OWN);
  for (int i = 0; i < n; i++) values[i] = ir_load(k, b->stage, own_spot(b, i), IR_NONE);
}

static void store_staged(clb_row_block *b, const clb_row_array *a, int column, int n,
                         const ir_val *values) {
  ir_kernel *k = b->k;
  walk w;
  go_over(b, OWN);
  for (int i = 0; i < n; i++) ir_store(k, b->stage, own_spot(b, i), IR_NONE, values[i]);
  go_over(b, n);
  start_walk(b, a, column, n, &w);
  for (int i = 0; i < n; i++) {
    spot at = next_spot(b, &w, i);
    ir_store(k, a->buffer, at.global, at.mask, ir_load(k, b->stage, at.local, IR_NONE));
  }
}

/* ---- loads and stores ---- */

int clb_rows_piece(const clb_schedule *s, const int *columns, int n, int at) {
  int end = at + 1;
  while (end < n && end - at < s->rows.columns_per_piece && columns[end] == columns[end - 1] + 1)
    end++;
  return end;
}

static bool staged(const clb_row_block *b, int n) { return b->stage != IR_NONE && n > UNSTAGED; }

void clb_rows_load(clb_row_block *b, const clb_row_array *a, int column, int n, ir_val *values) {
  (staged(b, n) ? load_staged : load_own)(b, a, column, n, values);
  for (int i = 0; i < n; i++) values[i] = ir_cast(b->k, b->arithmetic, values[i]);
}

void clb_rows_store(clb_row_block *b, const clb_row_array *a, int column, int n,
                    const ir_val *values, bool accumulate) {
  ir_val sum[CLB_MAX_WIDTH];
  if (accumulate) clb_rows_load(b, a, column, n, sum);
  for (int i = 0; i < n; i++)
    sum[i] = ir_cast(b->k, ir_register_type(a->element),
                     accumulate ? ir_add(b->k, sum[i], values[i]) : values[i]);
  (staged(b, n) ? store_staged : store_own)(b, a, column, n, sum);
}
