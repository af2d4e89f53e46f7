/* kernels/linear/host/column_moves.c - rows with their columns in another order: the table of
   columns, and launches. */
#include "kernels/linear/host/column_moves.h"

#include <stdlib.h>

#include "src/runtime/call.h"

/* op->parts. */
typedef struct {
  clb_buffer *moves; /* outer columns, then inner ones */
  int64_t n;
} columns;

static void destroy_parts(clb_op *op) {
  columns *own = op->parts;
  if (own) clb_buffer_destroy(&own->moves);
  free(own);
}

static clb_status write_moves(clb_context *ctx, const clb_column_move *moves, columns *own) {
  const size_t n = (size_t)own->n, bytes = 2 * n * sizeof(int32_t);
  int32_t *both = malloc(bytes ? bytes : 1);
  clb_status s = both ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory");
  for (size_t i = 0; i < n && both; i++) {
    both[i] = moves[i].outer;
    both[n + i] = moves[i].inner;
  }
  if (!s) s = clb_buffer_create(ctx, bytes, &own->moves);
  if (!s && bytes) s = clb_buffer_write(own->moves, 0, both, bytes);
  free(both);
  return s;
}

clb_status clb_column_moves_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                   const clb_column_move *moves, int64_t n, clb_op **op) {
  clb_problem *p = calloc(1, sizeof *p);
  columns *own = calloc(1, sizeof *own);
  *op = NULL;
  clb_status s =
      p && own ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "column_moves: no memory");
  if (!s) {
    p->kind = CLB_COLUMN_MOVES;
    p->storage = (int32_t)storage;
    p->arithmetic = (int32_t)arithmetic;
    own->n = n;
    s = clb_op_create(ctx, p, CLB_PASS_BIT(0) | CLB_PASS_BIT(1), NULL, op);
  }
  free(p);
  if (s) {
    free(own);
    return s;
  }
  (*op)->parts = own;
  (*op)->destroy_parts = destroy_parts;
  if (ctx->device->info.runs) s = write_moves(ctx, moves, own);
  if (s) clb_op_destroy(op);
  return s;
}

static clb_status launch(clb_op *op, int pass, int64_t rows, clb_row_place from, int64_t parts,
                         int64_t apart, clb_row_place to, bool add) {
  const columns *own = op->parts;
  const ir_kernel *k = &op->kernel[pass]->ir;
  const int64_t across = clb_divide_up(own->n, k->lanes);
  int64_t units;
  clb_status s = clb_check_runs(op->ctx);
  if (s || !own->n || !rows) return s;
  if (__builtin_mul_overflow(across, rows, &units) ||
      clb_divide_up(units, k->subgroups) > INT32_MAX)
    return clb_fail(&op->ctx->error, CLB_ERROR_INTERNAL, "column_moves: %lld rows are too many",
                    (long long)rows);
  clb_call c = clb_call_start(op->ctx);
  clb_call_buffer(&c, own->moves);
  clb_call_i64(&c, own->n);
  clb_call_i64(&c, pass ? own->n : 0);
  clb_call_memory(&c, from.memory);
  clb_call_i64(&c, from.offset);
  clb_call_i64(&c, from.stride);
  clb_call_i64(&c, apart);
  clb_call_i64(&c, parts);
  clb_call_memory(&c, to.memory);
  clb_call_i64(&c, to.offset);
  clb_call_i64(&c, to.stride);
  clb_call_i32(&c, add);
  clb_call_i64(&c, across);
  clb_call_i64(&c, units);
  return clb_call_launch(&c, op->kernel[pass], clb_divide_up(units, k->subgroups));
}

clb_status clb_column_moves_in(clb_op *op, int64_t rows, clb_row_place outer, clb_row_place inner) {
  return launch(op, 0, rows, outer, 1, 0, inner, false);
}

clb_status clb_column_moves_out(clb_op *op, int64_t rows, clb_row_place inner, int64_t parts,
                                int64_t apart, clb_row_place outer, bool add) {
  return launch(op, 1, rows, inner, parts, apart, outer, add);
}
