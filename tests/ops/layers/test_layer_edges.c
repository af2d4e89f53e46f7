/* tests/ops/layers/test_layer_edges.c - vectors of edges from positions, and their lengths' second
   derivatives, against plain loops, on every device that runs here, and on the interpreter with a
   GPU's limits. */
#include "tests/ops/layers/layer_rows.h"

/* To the last bit; several shifts are the largest there are. */
static void vectors_once(clb_context *ctx, clb_dtype type, clb_op *op, int64_t n_receivers,
                         int64_t n_senders, int64_t n, bool dense) {
  static const double cell[3][3] = {{4.1, 0.2, -0.3}, {0.9, 3.8, 0.1}, {-0.4, 0.6, 1e7 / 3}};
  const clb_edge_cells cells = {.cell = cell};
  uint64_t seed = (uint64_t)n + 43;
  int64_t atoms = n_receivers > n_senders ? n_receivers : n_senders;
  int32_t *end[2] = {calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4)},
          *packed = calloc((size_t)n + 2, 4);
  table x = random_table(ctx, CLB_F64, atoms, 3, dense, 100, &seed),
        v = result_table(ctx, type, n, 3, !dense, false, &seed);
  double *position = plain(&x), *must = calloc((size_t)(3 * n) + 1, sizeof *must);
  clb_graph *graph;
  clb_rows shifts = {.offset = 2};
  for (int64_t e = 0; e < n; e++) {
    int32_t shift[3];
    end[0][e] = (int32_t)pick(&seed, (int)n_senders);
    end[1][e] = (int32_t)pick(&seed, (int)n_receivers);
    for (int d = 0; d < 3; d++)
      shift[d] = e % 5 ? (int32_t)pick(&seed, 5) - 2 : (e + d) % 2 ? 511 : -512;
    packed[e + 2] = clb_edge_shift(shift);
    for (int k = 0; k < 3; k++) {
      double y = position[3 * end[0][e] + k] - position[3 * end[1][e] + k] +
                 (shift[0] * cell[0][k] + shift[1] * cell[1][k] + shift[2] * cell[2][k]);
      must[3 * e + k] = type == CLB_F32 ? (double)(float)y : y;
    }
  }
  OK(ctx, clb_buffer_create(ctx, (uint64_t)(n + 2) * 4, &shifts.buffer));
  OK(ctx, clb_buffer_write(shifts.buffer, 0, packed, (uint64_t)(n + 2) * 4));
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, n_senders, n_receivers, n, CLB_I32,
                           (clb_index_list){.host = end[0]}, (clb_index_list){.host = end[1]}));
  OK(ctx, clb_edge_vectors_run(op, graph, rows_of(&x), shifts, &cells, rows_of(&v)));
  expect_rows(ctx, "edge vectors", &v, false, must, 0);
  if (n) {
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of v",
           clb_edge_vectors_run(op, graph, rows_of(&x), shifts, &cells,
                                (clb_rows){v.a.buffer, v.a.n - 3 * n + 1, CLB_DENSE, NULL}));
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of positions",
           clb_edge_vectors_run(op, graph,
                                (clb_rows){x.a.buffer, x.a.n - 3 * atoms + 1, CLB_DENSE, NULL},
                                shifts, &cells, rows_of(&v)));
    NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of shifts",
           clb_edge_vectors_run(op, graph, rows_of(&x), (clb_rows){shifts.buffer, 3, 0, NULL},
                                &cells, rows_of(&v)));
  }
  assert_int_equal(clb_edge_vectors_run(op, graph, rows_of(&x), shifts, NULL, rows_of(&v)),
                   CLB_ERROR_ARGUMENT);
  clb_graph_destroy(&graph);
  clb_buffer_destroy(&shifts.buffer);
  drop(&x.a);
  drop(&v.a);
  void *all[] = {end[0], end[1], packed, position, must};
  for (int i = 0; i < 5; i++) free(all[i]);
}

/* Of some systems, which atoms are of in no order. */
static void tangents_once(clb_context *ctx, clb_dtype type, clb_op *op, int64_t n_receivers,
                          int64_t n_senders, int64_t n) {
  enum { SYSTEMS = 3 };
  uint64_t seed = (uint64_t)n + 3;
  const int64_t atoms = n_receivers > n_senders ? n_receivers : n_senders;
  int32_t *end[2] = {calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4)},
          *system = calloc((size_t)atoms + 1, 4);
  table u = random_table(ctx, type, atoms, 3, true, 1, &seed),
        s = random_table(ctx, type, SYSTEMS, 9, true, 1, &seed),
        v = random_table(ctx, type, n, 3, false, 1, &seed),
        q = result_table(ctx, type, n, 3, true, false, &seed);
  double *move = plain(&u), *strain = plain(&s), *vector = plain(&v),
         *must = calloc((size_t)(3 * n) + 1, sizeof *must);
  clb_graph *graph;
  clb_buffer *systems;
  for (int64_t i = 0; i < atoms; i++) system[i] = (int32_t)pick(&seed, SYSTEMS);
  for (int64_t e = 0; e < n; e++) {
    end[0][e] = (int32_t)pick(&seed, (int)n_senders);
    end[1][e] = (int32_t)pick(&seed, (int)n_receivers);
    for (int k = 0; k < 3; k++) {
      must[3 * e + k] = move[3 * end[0][e] + k] - move[3 * end[1][e] + k];
      for (int j = 0; j < 3; j++)
        must[3 * e + k] += strain[9 * system[end[1][e]] + 3 * k + j] * vector[3 * e + j];
    }
  }
  OK(ctx, clb_buffer_create(ctx, (uint64_t)atoms * 4, &systems));
  OK(ctx, clb_buffer_write(systems, 0, system, (uint64_t)atoms * 4));
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, n_senders, n_receivers, n, CLB_I32,
                           (clb_index_list){.host = end[0]}, (clb_index_list){.host = end[1]}));
  OK(ctx, clb_edge_tangents_run(op, graph, SYSTEMS, rows_of(&u), rows_of(&s), systems, rows_of(&v),
                                rows_of(&q)));
  expect_rows(ctx, "edge tangents", &q, false, must, type == CLB_F32 ? 1e-6 : 1e-14);
  clb_graph_destroy(&graph);
  clb_buffer_destroy(&systems);
  table *tables[] = {&u, &s, &v, &q};
  for (int i = 0; i < 4; i++) drop(&tables[i]->a);
  void *all[] = {end[0], end[1], system, move, strain, vector, must};
  for (int i = 0; i < 7; i++) free(all[i]);
}

static void tangents(void **state) {
  clb_context *ctx = context(state);
  for (clb_dtype type = CLB_F32; type <= CLB_F64; type++) {
    clb_op *op;
    if (type == CLB_F64 && !((struct device *)*state)->f64) continue;
    OK(ctx, clb_edge_tangents_create(ctx, type, &op));
    for (int64_t n = 0; n < 200; n = 3 * n + 1) tangents_once(ctx, type, op, 7, 9, n);
    tangents_once(ctx, type, op, 0, 0, 0);
    clb_op_destroy(&op);
  }
}

static void vectors(void **state) {
  clb_context *ctx = context(state);
  if (!((struct device *)*state)->f64)
    skip_because("%s has no f64", ((struct device *)*state)->name);
  for (clb_dtype type = CLB_F32; type <= CLB_F64; type++) {
    clb_op *op;
    OK(ctx, clb_edge_vectors_create(ctx, type, false, &op));
    const int64_t lanes = ctx->device->limits.lanes[CLB_F64],
                  block = lanes * op->kernel[0]->ir.subgroups;
    vectors_once(ctx, type, op, 0, 0, 0, true);
    vectors_once(ctx, type, op, 4, 9, 0, false);
    vectors_once(ctx, type, op, 1, 1, 1, false);
    vectors_once(ctx, type, op, 20, 33, block, true);
    vectors_once(ctx, type, op, 33, 20, block + 1, false);
    vectors_once(ctx, type, op, 5, 6, 1500, true);
    clb_op_destroy(&op);
  }
}

/* Numbers that do not fit are recognised. */
static void shifts(void **state) {
  (void)state;
  for (int d = 0; d < 3; d++)
    for (int sign = -1; sign <= 1; sign += 2) {
      int32_t shift[3] = {0, 0, 0};
      shift[d] = sign < 0 ? -512 : 511;
      assert_true(clb_edge_shift(shift) >= 0);
      shift[d] += sign;
      assert_true(clb_edge_shift(shift) == -1);
      shift[d] = sign < 0 ? INT32_MIN : INT32_MAX;
      assert_true(clb_edge_shift(shift) == -1);
    }
}

/* h . v / r of a row (v, h). */
static void along_row(const void *user, const double *x, double *out) {
  (void)user;
  *out = (x[0] * x[3] + x[1] * x[4] + x[2] * x[5]) / sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

/* Every seventh vector is 0, or so short that its square is. */
static void along_once(clb_context *ctx, clb_dtype type, clb_op *op, int64_t n, bool dense) {
  uint64_t seed = (uint64_t)n + 3;
  const double error = type == CLB_F64 ? 1e-12 : 1e-5, slope_error = type == CLB_F64 ? 1e-8 : 1e-4;
  table v = make_table(type, n, 3, dense), h = random_table(ctx, type, n, 3, !dense, 1, &seed),
        g_r = random_table(ctx, type, n, 1, dense, 1, &seed);
  table q = result_table(ctx, type, n, 1, !dense, false, &seed),
        g_v = result_table(ctx, type, n, 3, dense, true, &seed);
  for (int64_t i = 0; i < 3 * n; i++) {
    double now = 3 * test_random(&seed);
    put(type, v.a.host, v.offset + i / 3 * v.stride + i % 3,
        i / 3 % 7 == 4 ? (double)(i / 3 % 2) * 1e-30
        : i % 3        ? now
                       : now + (now < 0 ? -1 : 1));
  }
  upload(ctx, &v.a);
  double *both = calloc((size_t)(6 * n + 1), sizeof *both), *x = plain(&v), *along = plain(&h),
         *g = plain(&g_r), *must = calloc((size_t)(3 * n + 1), sizeof *must);
  for (int64_t i = 0; i < 6 * n; i++)
    both[i] = i % 6 < 3 ? x[i / 6 * 3 + i % 6] : along[i / 6 * 3 + i % 6 - 3];
  double *q_must = apply(along_row, NULL, both, n, 6, 1),
         *slope = differences(along_row, NULL, both, g, n, 6, 1);
  for (int64_t i = 0; i < 3 * n; i++) must[i] = i / 3 % 7 == 4 ? 0 : slope[i / 3 * 6 + i % 3];
  for (int64_t i = 4; i < n; i += 7) q_must[i] = 0;
  OK(ctx, clb_lengths_along_run(op, n, rows_of(&v), rows_of(&h), rows_of(&g_r), rows_of(&q),
                                rows_of(&g_v)));
  expect_rows(ctx, "along lengths", &q, false, q_must, error);
  expect_rows(ctx, "lengths twice", &g_v, true, must, slope_error);
  table *all[] = {&v, &h, &g_r, &q, &g_v};
  double *numbers[] = {both, x, along, g, must, q_must, slope};
  for (int i = 0; i < 5; i++) drop(&all[i]->a);
  for (int i = 0; i < 7; i++) free(numbers[i]);
}

static void along(void **state) {
  clb_context *ctx = context(state);
  for (clb_dtype type = CLB_F32; type <= (((struct device *)*state)->f64 ? CLB_F64 : CLB_F32);
       type++) {
    static const int64_t sizes[] = {0, 1, 70, 7, 257};
    clb_op *op;
    OK(ctx, clb_lengths_along_create(ctx, type, type, &op));
    for (int i = 0; i < 5; i++) along_once(ctx, type, op, sizes[i], i % 2);
    clb_op_destroy(&op);
  }
}

static void refuses(void **state) {
  struct device *d = *state;
  clb_context *ctx = context(state);
  bool before = ctx->device->limits.f64;
  clb_op *op;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "storage", clb_edge_vectors_create(ctx, CLB_F16, false, &op));
  ctx->device->limits.f64 = false;
  NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "double precision",
         clb_edge_vectors_create(ctx, CLB_F32, false, &op));
  ctx->device->limits.f64 = before;
  assert_true(before == d->f64);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  for (clb_dtype type = CLB_F32; type <= CLB_F64 && d->f64; type++) {
    clb_op *op;
    OK(ctx, clb_edge_vectors_create(ctx, type, false, &op));
    assert_true(op->kernel[0]->binary.n > 0);
    clb_op_destroy(&op);
    OK(ctx, clb_lengths_along_create(ctx, type, type, &op));
    assert_true(op->kernel[0]->binary.n > 0);
    clb_op_destroy(&op);
  }
}

int main(void) {
  static const named_test tests[] = {{"vectors", vectors, false},
                                     {"shifts", shifts, false},
                                     {"tangents", tangents, false},
                                     {"along", along, false},
                                     {"refuses", refuses, false}};
  return run_on_all("layer_edges", tests, sizeof tests / sizeof *tests, compiles);
}
