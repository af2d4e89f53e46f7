/* kernels/layers/host/sparse_map.c - numbers that are sums of a few others: the calls. */
#include <stdlib.h>

#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/sparse_map.h"

clb_status clb_sparse_map_create(clb_context *ctx, clb_dtype type, clb_op **op) {
  return clb_layer_create(ctx, clb_layer_problem(ctx, CLB_SPARSE_MAP, type, type), 1, op);
}

static clb_status put(clb_context *ctx, clb_buffer **to, const int32_t *from, int64_t n) {
  const uint64_t bytes = (uint64_t)n * sizeof *from;
  const clb_status s = clb_buffer_create(ctx, bytes ? bytes : 1, to);
  return s || !n ? s : clb_buffer_write(*to, 0, from, bytes);
}

clb_status clb_sparse_map_set(clb_op *op, int64_t rows, const int32_t *starts, const int32_t *from,
                              const double *factors, clb_sparse_map *map) {
  clb_context *ctx = op->ctx;
  const clb_dtype type = (clb_dtype)op->problem.storage;
  const int64_t n = starts[rows];
  *map = (clb_sparse_map){.rows = rows};
  for (int64_t i = 0; i < rows; i++)
    if (starts[i + 1] - starts[i] > map->longest) map->longest = starts[i + 1] - starts[i];
  clb_status s = put(ctx, &map->starts, starts, rows + 1);
  if (!s) s = put(ctx, &map->from, from, n);
  if (!s)
    s = clb_buffer_create(ctx, (uint64_t)((n + 1) * clb_dtype_bytes((int32_t)type)), &map->factors);
  if (!s) s = clb_numbers_write(map->factors, type, 0, n, factors);
  if (s) clb_sparse_map_free(map);
  return s;
}

void clb_sparse_map_free(clb_sparse_map *map) {
  clb_buffer_destroy(&map->starts);
  clb_buffer_destroy(&map->from);
  clb_buffer_destroy(&map->factors);
}

clb_status clb_sparse_map_run(clb_op *op, const clb_sparse_map *map, const clb_buffer *in,
                              const clb_buffer *out, bool keep) {
  if (!op || !map->starts || !in || !out) return CLB_ERROR_ARGUMENT;
  const int64_t lanes = clb_layer_schedule_of(op, 0).lanes;
  clb_call c = clb_call_begin(op, CLB_SPARSE_MAP, map->rows, clb_divide_up(map->rows, lanes));
  clb_call_i64(&c, map->rows);
  clb_call_i32(&c, map->longest);
  clb_call_buffer(&c, map->starts);
  clb_call_buffer(&c, map->from);
  clb_call_buffer(&c, map->factors);
  clb_call_buffer(&c, in);
  clb_call_buffer(&c, out);
  clb_call_i32(&c, !keep);
  return clb_call_run(&c, 0);
}
