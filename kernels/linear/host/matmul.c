/* kernels/linear/host/matmul.c - dense matrix products and column sums: choice of kernel or
   library, and division into slices and blocks. */
#include "kernels/linear/host/matmul.h"
#include "src/runtime/call.h"

#include <stdlib.h>

/* CLB_OK where `rows` rows of `width` elements, `stride` apart, `count` times `jump` apart, lie in
   the memory. */
static clb_status check_fits(clb_op *op, const char *name, const clb_memory *m, int64_t bytes,
                             int64_t offset, int64_t rows, int64_t stride, int64_t width,
                             int64_t count, int64_t jump) {
  int64_t along, last = 0;
  if (!rows || !width || !count) return CLB_OK;
  const bool fits = width > 0 && count > 0 && jump >= 0 &&
                    !__builtin_mul_overflow(count - 1, jump, &along) &&
                    !__builtin_add_overflow(along, offset, &last) && offset >= 0 &&
                    clb_rows_fit(m, bytes, last, rows, stride, width);
  return fits ? CLB_OK
              : clb_fail(&op->ctx->error, CLB_ERROR_INTERNAL,
                         "%s: %lld times %lld rows of %lld elements, %lld and %lld apart from %lld "
                         "on, do not lie in the %llu bytes of %s",
                         clb_kernel_kinds[op->problem.kind]->name, (long long)count,
                         (long long)rows, (long long)width, (long long)jump, (long long)stride,
                         (long long)offset, m ? (unsigned long long)m->bytes : 0, name);
}

/* ---- products ---- */

enum { B_TRANSPOSED = 1, SPLIT = 2, TILES_PER_UNIT = 4, WORTH_SPLITTING = 512 };

static clb_status create_with_kernels(clb_context *ctx, const clb_problem *p, clb_op **op) {
  const clb_limits *l = &ctx->device->limits;
  return clb_op_create(ctx, p, l->simd || l->max_subgroups < 2 ? 3 : 15, NULL, op);
}

static clb_status create_without_kernels(clb_context *ctx, const clb_problem *p, clb_op **op) {
  if (!(*op = calloc(1, sizeof **op))) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory");
  (*op)->ctx = clb_context_hold(ctx);
  (*op)->problem = *p;
  return CLB_OK;
}

/* A library that does not start is treated as missing. partly: it lacks some products. */
static bool find_blas(clb_context *ctx, clb_dtype type, bool *partly) {
  const clb_device *d = ctx->device;
  *partly = false;
  return d->info.runs && (type == CLB_F32 || (type == CLB_F64 && d->limits.f64)) &&
         d->backend->open_blas && d->backend->open_blas(ctx->device, type, partly) == CLB_OK;
}

static clb_status create(clb_context *ctx, clb_dtype type, bool blas, clb_op **op) {
  bool partly = false;
  clb_problem *p = calloc(1, sizeof *p);
  *op = NULL;
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory");
  p->kind = CLB_MATRIX_PRODUCT;
  p->storage = p->arithmetic = (int32_t)type;
  blas = blas && find_blas(ctx, type, &partly);
  clb_status s = (blas && !partly ? create_without_kernels : create_with_kernels)(ctx, p, op);
  if (!s) (*op)->blas = blas;
  free(p);
  return s;
}

clb_status clb_gemm_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create(ctx, type, true, op);
}
clb_status clb_gemm_create_generated(clb_context *ctx, clb_dtype type, clb_op **op) {
  return create(ctx, type, false, op);
}

clb_status clb_gemm_create_library(clb_context *ctx, clb_dtype type, clb_op **op) {
  bool partly;
  *op = NULL;
  return find_blas(ctx, type, &partly) && !partly ? create(ctx, type, true, op) : CLB_OK;
}

static clb_status check_product(clb_op *op, const clb_gemm_desc *p) {
  clb_error_sink *e = &op->ctx->error;
  int64_t bytes = clb_dtype_bytes(op->problem.storage);
  if (op->problem.kind != CLB_MATRIX_PRODUCT)
    return clb_fail(e, CLB_ERROR_INTERNAL, "this op is %s, not matrix_product",
                    clb_kernel_kinds[op->problem.kind]->name);
  if (p->m < 0 || p->n < 0 || p->k < 0 || p->count < 0)
    return clb_fail(e, CLB_ERROR_INTERNAL,
                    "matrix_product: m, n, k, count are %lld, %lld, %lld, %lld", (long long)p->m,
                    (long long)p->n, (long long)p->k, (long long)p->count);
  int64_t rows_a = p->transpose_a ? p->k : p->m, width_a = p->transpose_a ? p->m : p->k,
          rows_b = p->transpose_b ? p->n : p->k, width_b = p->transpose_b ? p->k : p->n;
  if (p->ld_a < width_a || p->ld_b < width_b || p->ld_c < p->n)
    return clb_fail(e, CLB_ERROR_INTERNAL,
                    "matrix_product: leading dimensions %lld, %lld, %lld; rows of A, B, C have "
                    "%lld, %lld, %lld elements",
                    (long long)p->ld_a, (long long)p->ld_b, (long long)p->ld_c, (long long)width_a,
                    (long long)width_b, (long long)p->n);
  bool some = p->m && p->n && p->k; /* otherwise A and B are not read */
  clb_status s = check_fits(op, "A", p->a, bytes, p->offset_a, some ? rows_a : 0, p->ld_a, width_a,
                            p->count, p->stride_a);
  if (!s)
    s = check_fits(op, "B", p->b, bytes, p->offset_b, some ? rows_b : 0, p->ld_b, width_b, p->count,
                   p->stride_b);
  if (!s)
    s = check_fits(op, "C", p->c, bytes, p->offset_c, p->m, p->ld_c, p->n, p->count, p->stride_c);
  return s;
}

/* Splits off the first slice along the first extent that exceeds the limit; false: none does. */
static bool cut(clb_gemm_desc *p, int64_t max, clb_gemm_desc *first) {
  *first = *p;
  if (p->m > max) {
    first->m = max;
    p->m -= max;
    p->offset_a += max * (p->transpose_a ? 1 : p->ld_a);
    p->offset_c += max * p->ld_c;
  } else if (p->n > max) {
    first->n = max;
    p->n -= max;
    p->offset_b += max * (p->transpose_b ? p->ld_b : 1);
    p->offset_c += max;
  } else if (p->k > max) {
    first->k = max;
    p->k -= max;
    p->offset_a += max * (p->transpose_a ? p->ld_a : 1);
    p->offset_b += max * (p->transpose_b ? 1 : p->ld_b);
    p->add = true;
  } else if (p->count > max) {
    first->count = max;
    p->count -= max;
    p->offset_a += max * p->stride_a;
    p->offset_b += max * p->stride_b;
    p->offset_c += max * p->stride_c;
  } else return false;
  return true;
}

/* Number of groups of a variant along the columns and the rows of C. */
static int64_t count_groups(clb_op *op, int variant, const clb_gemm_desc *p, int64_t *across,
                            int64_t *down) {
  clb_schedule s;
  op->problem.pass = variant;
  clb_kernel_kinds[CLB_MATRIX_PRODUCT]->schedule(&op->problem, &op->ctx->device->limits, &s);
  int64_t both, groups;
  *across = clb_divide_up(p->n, (int64_t)s.lanes * s.matmul.columns_per_lane);
  *down = clb_divide_up(p->m, op->kernel[variant]->ir.rows);
  return __builtin_mul_overflow(*across, *down, &both) ||
                 __builtin_mul_overflow(both, p->count, &groups)
             ? INT64_MAX
             : groups;
}

static clb_status launch_product(clb_op *op, const clb_gemm_desc *p) {
  clb_device *d = op->ctx->device;
  int variant = p->transpose_b ? B_TRANSPOSED : 0;
  int64_t across, down, groups = count_groups(op, variant, p, &across, &down);
  if (op->kernel[variant | SPLIT] && groups < (int64_t)TILES_PER_UNIT * d->limits.units &&
      p->k >= WORTH_SPLITTING)
    groups = count_groups(op, variant |= SPLIT, p, &across, &down);
  if (groups > INT32_MAX)
    return clb_gemm_run_in_slices(op, p,
                                  (p->m > p->n       ? p->m > p->count ? p->m : p->count
                                   : p->n > p->count ? p->n
                                                     : p->count) /
                                          2 +
                                      1);
  clb_call c = clb_call_start(op->ctx);
  clb_call_memory(&c, p->k ? p->a : p->c);
  clb_call_memory(&c, p->k ? p->b : p->c);
  clb_call_memory(&c, p->c);
  const int64_t extents[] = {p->m,
                             p->n,
                             p->k,
                             p->offset_a,
                             p->transpose_a ? 1 : p->ld_a,
                             p->transpose_a ? p->ld_a : 1,
                             p->offset_b,
                             p->ld_b,
                             p->offset_c,
                             p->ld_c,
                             p->stride_a,
                             p->stride_b,
                             p->stride_c};
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) clb_call_i64(&c, extents[i]);
  clb_call_i32(&c, across);
  clb_call_i32(&c, down);
  clb_call_i32(&c, p->add);
  return clb_call_launch(&c, op->kernel[variant], groups);
}

static clb_status run_piece(clb_op *op, const clb_gemm_desc *p) {
  clb_status before = op->ctx->error.first,
             s = op->blas ? clb_gemm(op->ctx, (clb_dtype)op->problem.arithmetic, p)
                          : CLB_ERROR_UNSUPPORTED;
  if (s != CLB_ERROR_UNSUPPORTED || !op->kernel[0]) return s;
  op->ctx->error.first = before; /* not a failure: the generated kernel is used */
  return launch_product(op, p);
}

clb_status clb_gemm_run_in_slices(clb_op *op, const clb_gemm_desc *product, int64_t max) {
  clb_status s = check_product(op, product);
  clb_gemm_desc left = *product, first;
  if (s || !left.m || !left.n || !left.count || (!left.k && left.add)) return s;
  if ((s = clb_check_runs(op->ctx))) return s;
  while (!s && cut(&left, max, &first)) s = clb_gemm_run_in_slices(op, &first, max);
  return s ? s : run_piece(op, &left);
}

clb_status clb_gemm_run(clb_op *op, const clb_gemm_desc *product) {
  return clb_gemm_run_in_slices(op, product, INT32_MAX);
}

/* ---- column sums ---- */

enum { MIN_ROWS = 64, MIN_BLOCKS = 8, MAX_BLOCKS = 1024, ENOUGH_SUMS = 1 << 18 };

/* Number of blocks of rows: enough for the whole device, few enough for the second stage. */
static int64_t count_blocks(int64_t rows, int64_t columns) {
  int64_t max = ENOUGH_SUMS / (columns + 1), blocks = clb_divide_up(rows, MIN_ROWS);
  if (max > MAX_BLOCKS) max = MAX_BLOCKS;
  if (max < MIN_BLOCKS) max = MIN_BLOCKS;
  return blocks < max ? blocks : max;
}

clb_status clb_column_sum_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                 int64_t columns, int64_t max_rows, clb_op **op) {
  clb_problem *p = calloc(1, sizeof *p);
  *op = NULL;
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory");
  p->kind = CLB_COLUMN_SUM;
  p->storage = (int32_t)storage;
  p->arithmetic = (int32_t)arithmetic;
  p->column_sum =
      (clb_column_sum_problem){columns, max_rows, (ctx->disabled & CLB_SPLIT_ROWS) != 0};
  clb_status s = clb_op_create(ctx, p, 3, NULL, op);
  free(p);
  uint64_t bytes = s ? 0
                     : (uint64_t)(count_blocks(max_rows, columns) * columns *
                                  clb_dtype_bytes((int32_t)arithmetic));
  if (!s && ctx->device->info.runs)
    s = clb_device_alloc(ctx->device, bytes ? bytes : 1, &(*op)->workspace);
  if (s) clb_op_destroy(op);
  return s;
}

typedef struct {
  const clb_memory *memory;
  int64_t offset, stride;
} place;

static clb_status launch_sums(clb_op *op, int stage, place in, int64_t rows, int64_t block_rows,
                              place out, bool add) {
  const ir_kernel *k = &op->kernel[stage]->ir;
  int64_t columns = op->problem.column_sum.columns, across = clb_divide_up(columns, k->lanes),
          units = across * (rows ? clb_divide_up(rows, block_rows) : 1);
  clb_call c = clb_call_start(op->ctx);
  clb_call_memory(&c, in.memory);
  clb_call_i64(&c, in.offset);
  clb_call_i64(&c, in.stride);
  clb_call_i64(&c, rows);
  clb_call_i64(&c, block_rows);
  clb_call_memory(&c, out.memory);
  clb_call_i64(&c, out.offset);
  clb_call_i32(&c, columns);
  clb_call_i32(&c, add);
  clb_call_i32(&c, across);
  clb_call_i64(&c, units);
  return clb_call_launch(&c, op->kernel[stage], clb_divide_up(units, k->subgroups));
}

clb_status clb_column_sum_run(clb_op *op, int64_t rows, const clb_memory *in, int64_t offset,
                              int64_t stride, const clb_memory *out, int64_t out_offset, bool add) {
  const clb_column_sum_problem *c = &op->problem.column_sum;
  clb_error_sink *e = &op->ctx->error;
  int64_t bytes = clb_dtype_bytes(op->problem.storage);
  if (op->problem.kind != CLB_COLUMN_SUM)
    return clb_fail(e, CLB_ERROR_INTERNAL, "this op is %s, not column_sum",
                    clb_kernel_kinds[op->problem.kind]->name);
  if (rows < 0 || rows > c->max_rows)
    return clb_fail(e, CLB_ERROR_INTERNAL,
                    "column_sum: rows is %lld; this op was made for 0 ... %lld", (long long)rows,
                    (long long)c->max_rows);
  clb_status s = check_fits(op, "in", in, bytes, offset, rows, stride, c->columns, 1, 0);
  if (!s) s = check_fits(op, "out", out, bytes, out_offset, 1, 0, c->columns, 1, 0);
  if (s || !c->columns || (!rows && add)) return s;
  if ((s = clb_check_runs(op->ctx))) return s;
  place sums = {&op->workspace, 0, c->columns};
  clb_workspace_discard(op->ctx, &op->workspace);
  int64_t block_rows =
              rows ? clb_divide_up(rows, c->whole ? 1 : count_blocks(rows, c->columns)) : 1,
          blocks = clb_divide_up(rows, block_rows);
  if (rows) s = launch_sums(op, 0, (place){in, offset, stride}, rows, block_rows, sums, false);
  return s ? s
           : launch_sums(op, 1, sums, blocks, blocks ? blocks : 1, (place){out, out_offset, 0},
                         add);
}
