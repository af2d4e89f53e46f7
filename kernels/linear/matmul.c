/* kernels/linear/matmul.c - C = A B or C + A B of row-major matrices, in batches; a sub-group makes
   a tile of C, lanes are its columns.

   Passes are variants: bit 0: B is used transposed; bit 1: split-K: the sub-groups of a group share
   one tile, each with its part of k (if C is too small to fill the device), and sum through local
   memory in a fixed order. A is transposed by its two run-time strides. Where sub-groups shuffle, a
   lane loads column k + lane of the tile's rows of A, which is then rotated by shuffles; otherwise
   A's elements are uniform loads. */
#include "kernels/kernel.h"
#include "kernels/common/rows.h"

enum { B_TRANSPOSED = 1, SPLIT = 2, VARIANTS = 4 };
enum { MAX_ROWS = 8, MAX_WIDTH = 2, UNROLLED = 16, SAFE_GROUP = 256 };

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_type t;
  bool transposed, split;
  ir_val a, b, c;                      /* buffers */
  ir_val base_a, base_b, base_c, ld_c; /* i64: start of this product's matrices */
  ir_val row_a, column_a;              /* i64: strides between rows and between columns of A */
  ir_val ld_b, m, n, depth;            /* i64; depth: k */
  ir_val row,
      part; /* i64: first row of the tile; index of this sub-group among those that share it */
  ir_val column[MAX_WIDTH], left[MAX_WIDTH],
      mask[MAX_WIDTH]; /* i64: this lane's columns of the tile; i32: remaining columns */
  ir_val sum[MAX_ROWS][MAX_WIDTH]; /* variables */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  return p->storage == p->arithmetic
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_UNSUPPORTED,
                        "matrix products have equal storage and arithmetic");
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  int lanes = limits->lanes[p->arithmetic], most = limits->max_subgroups,
      sums = MAX_ROWS * lanes * ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
  if (limits->simd) {
    *s = (clb_schedule){
        .lanes = lanes, .subgroups = 1, .matmul = {.rows_per_subgroup = 4, .columns_per_lane = 2}};
    return;
  }
  *s = (clb_schedule){.lanes = lanes,
                      .subgroups = 4,
                      .matmul = {.rows_per_subgroup = MAX_ROWS,
                                 .columns_per_lane = 1,
                                 .shuffle_a = limits->subgroups}};
  if (p->pass & SPLIT) {
    if (limits->local_bytes / sums < most) most = (int)(limits->local_bytes / sums);
    if (!limits->subgroups && most * lanes > SAFE_GROUP) most = SAFE_GROUP / lanes;
    s->subgroups = 16;
  }
  while (s->subgroups > most && s->subgroups > 1) s->subgroups /= 2;
}

/* ---- addresses ---- */

static ir_val wide(builder *b, ir_val i32) { return ir_cast(b->k, IR_I64, i32); }
static ir_val number(builder *b, int64_t x) { return ir_int(b->k, IR_I64, x); }

static void parameters(builder *b) {
  ir_kernel *k = b->k;
  ir_val *const scalars[] = {&b->m,        &b->n,      &b->depth, &b->base_a, &b->row_a,
                             &b->column_a, &b->base_b, &b->ld_b,  &b->base_c, &b->ld_c};
  b->a = ir_buffer(k, b->t, false);
  b->b = ir_buffer(k, b->t, false);
  b->c = ir_buffer(k, b->t, true);
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) *scalars[i] = ir_scalar(k, IR_I64);
}

/* Tiles are counted along the columns of C, then its rows, then the batch. */
static void find_tile(builder *b) {
  ir_kernel *k = b->k;
  ir_val stride_a = ir_scalar(k, IR_I64), stride_b = ir_scalar(k, IR_I64),
         stride_c = ir_scalar(k, IR_I64);
  ir_val across = ir_scalar(k, IR_I32), down = ir_scalar(k, IR_I32); /* groups per product */
  ir_val group = ir_group(k), rest = ir_2(k, IR_DIV, group, across),
         subgroup = b->s->subgroups > 1 ? wide(b, ir_subgroup(k)) : number(b, 0);
  ir_val product = wide(b, ir_2(k, IR_DIV, rest, down)), i = wide(b, ir_2(k, IR_MOD, rest, down)),
         j = wide(b, ir_2(k, IR_MOD, group, across));
  b->base_a = ir_add(k, b->base_a, ir_mul(k, product, stride_a));
  b->base_b = ir_add(k, b->base_b, ir_mul(k, product, stride_b));
  b->base_c = ir_add(k, b->base_c, ir_mul(k, product, stride_c));
  b->part = b->split ? subgroup : number(b, 0);
  if (!b->split && b->s->subgroups > 1)
    i = ir_add(k, ir_mul(k, i, number(b, b->s->subgroups)), subgroup);
  b->row = ir_mul(k, i, number(b, b->s->matmul.rows_per_subgroup));
  for (int w = 0; w < b->s->matmul.columns_per_lane; w++) {
    ir_val first =
        ir_mul(k, ir_add(k, ir_mul(k, j, number(b, b->s->matmul.columns_per_lane)), number(b, w)),
               number(b, b->s->lanes));
    b->column[w] = ir_add(k, first, wide(b, ir_lane(k)));
    b->left[w] =
        ir_cast(k, IR_I32, ir_2(k, IR_MIN, ir_sub(k, b->n, first), number(b, b->s->lanes)));
    b->mask[w] = ir_2(k, IR_LT, ir_lane(k), b->left[w]);
  }
}

/* Rows beyond the last are clamped to the last one: read, but never written. */
static ir_val row_of_a(builder *b, int r) {
  ir_kernel *k = b->k;
  ir_val row = ir_2(k, IR_MIN, ir_add(k, b->row, number(b, r)), ir_sub(k, b->m, number(b, 1)));
  return ir_add(k, b->base_a, ir_mul(k, row, b->row_a));
}

static ir_val load_b(builder *b, ir_val at, int w) {
  ir_kernel *k = b->k;
  ir_val index = b->transposed ? ir_add(k, at, ir_mul(k, b->column[w], b->ld_b))
                               : ir_add(k, ir_mul(k, at, b->ld_b), b->column[w]);
  return ir_load(k, b->b, ir_add(k, b->base_b, index), b->mask[w]);
}

/* ---- sums ---- */

static void add_products(builder *b, const ir_val *a, ir_val at) {
  ir_kernel *k = b->k;
  for (int w = 0; w < b->s->matmul.columns_per_lane; w++) {
    ir_val element = load_b(b, at, w);
    for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++)
      ir_set(k, b->sum[r][w], ir_fma(k, a[r], element, ir_get(k, b->sum[r][w])));
  }
}

/* One k at a time, from `first` on. */
static void uniform_loop(builder *b, ir_val first) {
  ir_kernel *k = b->k;
  ir_val a[MAX_ROWS] = {0}, row[MAX_ROWS] = {0};
  for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++) row[r] = row_of_a(b, r);
  ir_val at =
      ir_loop(k, ir_add(k, first, b->part), b->depth, number(b, b->split ? b->s->subgroups : 1));
  for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++)
    a[r] = ir_load(k, b->a, ir_add(k, row[r], ir_mul(k, at, b->column_a)), IR_NONE);
  add_products(b, a, at);
  ir_end(k);
}

/* Each iteration handles as many k as there are lanes; returns the end of the complete
   iterations. */
static ir_val shuffled_loop(builder *b) {
  ir_kernel *k = b->k;
  int lanes = b->s->lanes, parts = b->split ? b->s->subgroups : 1;
  ir_val a[MAX_ROWS] = {0}, one[MAX_ROWS] = {0}, row[MAX_ROWS] = {0}, turn = number(b, lanes),
         end = ir_mul(k, ir_2(k, IR_DIV, b->depth, turn), turn);
  for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++) row[r] = row_of_a(b, r);
  ir_val at = ir_loop(k, ir_mul(k, b->part, turn), end, number(b, (int64_t)lanes * parts));
  ir_val mine = ir_mul(k, ir_add(k, at, wide(b, ir_lane(k))), b->column_a);
  for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++)
    a[r] = ir_load(k, b->a, ir_add(k, row[r], mine), IR_NONE);
  ir_val from = lanes > UNROLLED ? ir_loop(k, ir_int(k, IR_I32, 0), ir_int(k, IR_I32, lanes),
                                           ir_int(k, IR_I32, UNROLLED))
                                 : ir_int(k, IR_I32, 0);
  for (int i = 0; i < UNROLLED && i < lanes; i++) {
    ir_val l = ir_add(k, from, ir_int(k, IR_I32, i));
    for (int r = 0; r < b->s->matmul.rows_per_subgroup; r++) one[r] = ir_shuffle(k, a[r], l);
    add_products(b, one, ir_add(k, at, wide(b, l)));
  }
  if (lanes > UNROLLED) ir_end(k);
  ir_end(k);
  return end;
}

/* ---- results ---- */

static void store(builder *b, ir_val row, int w, ir_val value, ir_val add) {
  ir_kernel *k = b->k;
  ir_val index = ir_add(k, ir_add(k, b->base_c, ir_mul(k, row, b->ld_c)), b->column[w]),
         nothing = ir_int(k, IR_I32, 0);
  ir_val left = ir_select(k, ir_2(k, IR_LT, row, b->m), b->left[w], nothing),
         old = ir_select(k, ir_2(k, IR_EQ, add, nothing), nothing, left);
  value =
      ir_add(k, value, ir_load(k, b->c, index, ir_2(k, IR_LT, ir_lane(k), old))); /* 0 unless
                                                                                     accumulating */
  ir_store(k, b->c, index, ir_2(k, IR_LT, ir_lane(k), left), value);
}

/* The sub-groups exchange their parts of the tile through local memory; each then sums some of its
   rows. */
static void store_shared(builder *b, ir_val stage, ir_val add) {
  ir_kernel *k = b->k;
  int rows = b->s->matmul.rows_per_subgroup, parts = b->s->subgroups;
  ir_val lanes = ir_int(k, IR_I32, b->s->lanes),
         mine = ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, (int64_t)rows * b->s->lanes));
  for (int r = 0; r < rows; r++)
    ir_store(k, stage,
             ir_add(k, ir_add(k, mine, ir_int(k, IR_I32, (int64_t)r * b->s->lanes)), ir_lane(k)),
             IR_NONE, ir_get(k, b->sum[r][0]));
  ir_barrier(k, true);
  ir_val r = ir_loop(k, ir_subgroup(k), ir_int(k, IR_I32, rows), ir_int(k, IR_I32, parts)),
         at = ir_add(k, ir_mul(k, r, lanes), ir_lane(k)), sum = IR_NONE;
  for (int q = 0; q < parts; q++) {
    ir_val part = ir_load(
        k, stage, ir_add(k, at, ir_int(k, IR_I32, (int64_t)q * rows * b->s->lanes)), IR_NONE);
    sum = q ? ir_add(k, sum, part) : part;
  }
  store(b, ir_add(k, b->row, wide(b, r)), 0, sum, add);
  ir_end(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[VARIANTS] = {"matrix_product", "matrix_product_bt",
                                              "matrix_product_split", "matrix_product_bt_split"};
  builder b = {.k = k,
               .s = s,
               .t = clb_ir_type((clb_dtype)p->arithmetic),
               .transposed = p->pass & B_TRANSPOSED,
               .split = (p->pass & SPLIT) && s->subgroups > 1};
  ir_begin(k, names[p->pass], s->lanes, s->subgroups,
           b.split ? s->matmul.rows_per_subgroup : s->matmul.rows_per_subgroup * s->subgroups);
  parameters(&b);
  find_tile(&b);
  ir_val add = ir_scalar(k, IR_I32),
         stage = b.split ? ir_local(k, b.t,
                                    (int64_t)s->subgroups * s->matmul.rows_per_subgroup * s->lanes)
                         : IR_NONE;
  for (int r = 0; r < s->matmul.rows_per_subgroup; r++)
    for (int w = 0; w < s->matmul.columns_per_lane; w++)
      b.sum[r][w] = ir_var(k, ir_real(k, b.t, 0), false);
  uniform_loop(&b, s->matmul.shuffle_a ? shuffled_loop(&b) : number(&b, 0));
  if (b.split) store_shared(&b, stage, add);
  for (int r = 0; r < s->matmul.rows_per_subgroup && !b.split; r++)
    for (int w = 0; w < s->matmul.columns_per_lane; w++)
      store(&b, ir_add(k, b.row, number(&b, r)), w, ir_get(k, b.sum[r][w]), add);
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "C %s A B%s", p->accumulate ? "+=" : "=", p->pass & B_TRANSPOSED ? "^T" : "");
}

const clb_kernel_kind clb_kind_matrix_product = {.name = "matrix_product",
                                                 .check = check,
                                                 .schedule = schedule,
                                                 .lower = lower,
                                                 .print = print,
                                                 .passes = VARIANTS};
