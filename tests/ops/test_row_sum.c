/* tests/ops/test_row_sum.c - sums of rows over the edges of each node against a plain double loop,
   on every device that runs here, and on the interpreter with a GPU's limits. */
#include "src/ir/interpreter/interpret_values.h"
#include "tests/fakes/simulated_devices.h"

#include "kernels/graph/host/row_sum.h"

/* ---- graphs ---- */

typedef struct {
  const char *name;
  int64_t n_rows[2], n; /* receivers, senders */
  int32_t *end[2];
  clb_graph *graph;
} edges;

/* hub: this many edges end at receiver 1 and start at sender 2, among the others; every third node
   is isolated, the last one is not. */
static edges make_edges(clb_context *ctx, const char *name, int64_t n_receivers, int64_t n_senders,
                        int64_t n, int64_t hub, uint64_t seed) {
  edges e = {name,
             {n_receivers, n_senders},
             n,
             {calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4)},
             NULL};
  for (int64_t i = 0; i < n; i++) {
    bool again = i && !pick(&seed, 8), of_hub = pick(&seed, (int)n) < hub;
    for (int d = 0; d < 2; d++) {
      int32_t node = (int32_t)pick(&seed, (int)e.n_rows[d]);
      e.end[d][i] = again               ? e.end[d][i - 1]
                    : of_hub            ? 1 + d
                    : i == n / 2        ? (int32_t)e.n_rows[d] - 1
                    : node % 3 || !node ? node
                                        : node - 1;
    }
  }
  OK(ctx, clb_graph_create(ctx, 0, 0, &e.graph));
  if (seed % 2 && e.graph->least_split < CLB_GRAPH_SPLIT)
    e.graph->least_split *= 2; /* as of many edges: no teams */
  OK(ctx, clb_graph_update(e.graph, n_senders, n_receivers, n, CLB_I32,
                           (clb_index_list){.host = e.end[1]}, (clb_index_list){.host = e.end[0]}));
  return e;
}

enum { GRAPHS = 7 };
static void make_graphs(clb_context *ctx, edges *graphs) {
  edges *g = graphs;
  *g++ = make_edges(ctx, "empty", 4, 9, 0, 0, 1);
  *g++ = make_edges(ctx, "nobody", 0, 0, 0, 0, 1);
  *g++ = make_edges(ctx, "one edge", 1, 1, 1, 0, 2);
  *g++ = make_edges(ctx, "random", 20, 20, 130, 0, 3);
  *g++ = make_edges(ctx, "rectangular", 7, 60, 600, 0, 4);
  *g++ = make_edges(ctx, "one row", 1, 300, 513, 0, 5);
  *g++ = make_edges(ctx, "hub", 40, 30, 5600, 5000, 6);
}

static void drop_edges(edges *e) {
  clb_graph_destroy(&e->graph);
  free(e->end[0]);
  free(e->end[1]);
}

/* ---- one sum ---- */

static const struct {
  clb_dtype from, storage, arithmetic;
} kinds[] = {{CLB_F64, CLB_F64, CLB_F64}, {CLB_F32, CLB_F32, CLB_F32},
             {CLB_F16, CLB_F16, CLB_F32}, {CLB_BF16, CLB_BF16, CLB_F32},
             {CLB_F32, CLB_F64, CLB_F64}, {CLB_F64, CLB_F32, CLB_F64},
             {CLB_F32, CLB_F16, CLB_F32}};
enum { KINDS = sizeof kinds / sizeof *kinds, F32 = 1 };

typedef struct {
  clb_context *ctx;
  clb_row_sum *sum;
  const edges *e;
  int kind, direction, parts; /* parts: ranges of edges, one after the other */
  int64_t columns;
  bool add, dense;
} test;

/* Offsets and strides, in elements. */
typedef struct {
  int64_t in, in_stride, out, out_stride, splits;
} places;

/* Halves are small integers, whose sums are exact. */
static double some_number(const test *t, uint64_t *seed) {
  return kinds[t->kind].storage >= CLB_F16 ? (double)(pick(seed, 3) - 1) : test_random(seed);
}

static void fill(const test *t, array *a, int64_t offset, int64_t rows, int64_t stride,
                 uint64_t *seed) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < t->columns; c++)
      put(a->type, a->host, offset + r * stride + c, some_number(t, seed));
}

/* The edges part by part: the first part overwrites unless `add`; each sees its own rows only. */
static void *run(const test *t, const places *p, const array *in, array *out, array *splits) {
  int64_t n = t->e->n;
  upload(t->ctx, out);
  upload(t->ctx, splits);
  for (int i = 0; i < t->parts; i++) {
    int64_t e0 = t->parts == 1 ? 0 : n * i * i / (t->parts * t->parts),
            e1 = t->parts == 1 ? n : n * (i + 1) * (i + 1) / (t->parts * t->parts);
    OK(t->ctx,
       clb_row_sum_run(t->sum, t->e->graph, t->direction, e0, e1, &in->buffer->memory,
                       p->in + e0 * p->in_stride, p->in_stride, &out->buffer->memory, p->out,
                       p->out_stride, i || t->add, &splits->buffer->memory, p->splits));
  }
  return download(t->ctx, out);
}

static void expect_untouched(const test *t, const array *a, const void *got, int64_t i) {
  size_t bytes = dtype_bytes(a->type);
  if (memcmp((const char *)got + (size_t)i * bytes, (const char *)a->host + (size_t)i * bytes,
             bytes))
    fail_msg("%s: element %lld, which is nobody's, was written", t->e->name, (long long)i);
}

static void expect(const test *t, const places *p, const array *in, const array *out,
                   const void *got) {
  int64_t n_rows = t->e->n_rows[t->direction];
  double *sum = calloc((size_t)(n_rows * t->columns) + 1, sizeof *sum),
         *size = calloc((size_t)(n_rows * t->columns) + 1, sizeof *size);
  const double P = (double)t->e->graph->split, turns = P + (double)t->e->n / P + t->parts,
               *error = size;
  double step = out->type >= CLB_F16 ? 0
                : kinds[t->kind].arithmetic == CLB_F64
                    ? turns * 0x1p-53 + (out->type == CLB_F32 ? (turns - P) * 0x1p-24 : 0)
                    : turns * 0x1p-24;
  for (int64_t i = 0; t->add && i < n_rows * t->columns; i++)
    sum[i] =
        number_at(out->type, out->host, p->out + i / t->columns * p->out_stride + i % t->columns),
    size[i] = fabs(sum[i]);
  for (int64_t e = 0; e < t->e->n; e++)
    for (int64_t c = 0; c < t->columns; c++) {
      double x = number_at(in->type, in->host, p->in + e * p->in_stride + c);
      int64_t at = t->e->end[t->direction][e] * t->columns + c;
      sum[at] += x;
      size[at] += fabs(x);
    }
  for (int64_t i = 0, r = 0; i < out->n; i++) {
    while (r < n_rows && i >= p->out + r * p->out_stride + t->columns) r++;
    int64_t c = i - p->out - r * p->out_stride, at = r * t->columns + c;
    double is = number_at(out->type, got, i);
    if (r == n_rows || c < 0) expect_untouched(t, out, got, i);
    else if (!(fabs(is - sum[at]) <= step * error[at]))
      fail_msg("%s, kind %d, direction %d, %d parts%s: column %lld of %lld of row %lld is %.17g, "
               "must be %.17g",
               t->e->name, t->kind, t->direction, t->parts, t->add ? ", added" : "", (long long)c,
               (long long)t->columns, (long long)r, is, sum[at]);
  }
  free(sum);
  free(size);
}

/* Only the pieces that a row uses are written, and none where a team has the row. */
static void expect_splits(const test *t, const places *p, const array *splits) {
  int64_t n_rows = t->e->n_rows[t->direction], n_splits = clb_graph_splits(t->e->graph),
          unused = n_splits, *degree = calloc((size_t)n_rows + 1, sizeof *degree);
  void *left = download(t->ctx, splits);
  for (int64_t i = 0; i < t->e->n; i++)
    if (++degree[t->e->end[t->direction][i]] % t->e->graph->split == 1 &&
        !clb_graph_teams(t->e->graph))
      unused -= degree[t->e->end[t->direction][i]] > 1;
  for (int64_t i = 0; i < n_splits && t->columns; i++)
    unused -= isnan(number_at(splits->type, left, p->splits + i * t->columns));
  assert_true(!t->columns || !unused);
  for (int64_t i = 0; i < splits->n; i++)
    if (i < p->splits || i >= p->splits + n_splits * t->columns)
      expect_untouched(t, splits, left, i);
  free(left);
  free(degree);
}

static void try(const test *t) {
  clb_dtype storage = kinds[t->kind].storage;
  int64_t columns = t->columns, n_rows = t->e->n_rows[t->direction],
          n_splits = clb_graph_splits(t->e->graph);
  uint64_t seed = (uint64_t)(columns + 7 * t->e->n);
  const places p =
      t->dense ? (places){0, columns, 0, columns, 0} : (places){5, columns + 3, 2, columns + 1, 3};
  array in = make(kinds[t->kind].from, p.in + t->e->n * p.in_stride),
        out = make(storage, p.out + n_rows * p.out_stride),
        splits = make(storage, p.splits + n_splits * columns);
  void *got[2];
  fill(t, &in, p.in, t->e->n, p.in_stride, &seed);
  if (t->add) fill(t, &out, p.out, n_rows, p.out_stride, &seed);
  upload(t->ctx, &in);
  for (int i = 0; i < 2; i++) {
    got[i] = run(t, &p, &in, &out, &splits);
    expect_splits(t, &p, &splits);
    clb_buffer_destroy(&out.buffer);
    clb_buffer_destroy(&splits.buffer);
  }
  assert_memory_equal(got[0], got[1], (size_t)out.n * dtype_bytes(storage));
  expect(t, &p, &in, &out, got[0]);
  free(got[0]);
  free(got[1]);
  drop(&in);
  drop(&out);
  drop(&splits);
}

/* ---- tests ---- */

/* The interpreter compiles nothing but is slow: it runs all kinds, with fewer graphs for many
   columns. OpenCL drivers have a third of the others' each. */
static void sums(void **state) {
  static const int64_t columns[] = {1, 3, 33, 89, 128, 1152, 0};
  enum { COLUMNS = sizeof columns / sizeof *columns, MANY = 1000 };
  struct device *d = *state;
  clb_context *ctx = context(state);
  edges graphs[GRAPHS];
  bool slow = strstr(d->name, "interpreter"),
       third = !long_tests() && (SANITIZED || strstr(d->name, "opencl"));
  int turn = 0;
  make_graphs(ctx, graphs);
  for (int kind = 0; kind < KINDS; kind++)
    for (int c = 0; c < COLUMNS; c++) {
      test t = {.ctx = ctx, .kind = kind, .columns = columns[c]};
      if ((kinds[kind].arithmetic == CLB_F64 && !d->f64) ||
          (!slow && kind != F32 && (kind + c) % 3 != 2) ||
          (third && (kind + 2 * c + (int)(d - devices)) % 3))
        continue;
      OK(ctx, clb_row_sum_create(ctx, kinds[kind].from, kinds[kind].storage, kinds[kind].arithmetic,
                                 columns[c], &t.sum));
      for (int g = 0; g < GRAPHS; g++)
        for (t.direction = 0; t.direction < 2; t.direction++, turn++) {
          if (slow && columns[c] > MANY && g != 4) continue;
          t.e = &graphs[g];
          t.parts = turn % 3 ? 1 : 4;
          t.add = turn / 3 % 2;
          t.dense = turn % 5 == 0;
          try(&t);
          t.parts = 5 - t.parts;
          t.add = !t.add;
          if (!slow) try(&t);
        }
      clb_row_sum_destroy(&t.sum);
    }
  for (int g = 0; g < GRAPHS; g++) drop_edges(&graphs[g]);
}

static void combines(void **state) {
  clb_context *ctx = context(state);
  edges e = make_edges(ctx, "hub", 40, 30, 5600, 5000, 6);
  enum { COLUMNS = 40 };
  int64_t n_splits = clb_graph_splits(e.graph), P = e.graph->split;
  test t = {.ctx = ctx, .e = &e, .kind = F32, .columns = COLUMNS};
  uint64_t seed = 3;
  OK(ctx, clb_row_sum_create(ctx, CLB_F32, CLB_F32, CLB_F32, COLUMNS, &t.sum));
  for (int direction = 0; direction < 2; direction++) {
    int64_t n_rows = e.n_rows[direction], place = 0;
    array out = make(CLB_F32, n_rows * COLUMNS), splits = make(CLB_F32, n_splits * COLUMNS);
    fill(&t, &out, 0, n_rows, COLUMNS, &seed);
    int64_t *degree = calloc((size_t)n_rows, sizeof *degree), used = 0;
    for (int64_t i = 0; i < e.n; i++) degree[e.end[direction][i]]++;
    for (int64_t r = 0; r < n_rows; place += degree[r++])
      for (int64_t i = 0; (i + 1) * P < degree[r]; i++, used++)
        fill(&t, &splits, (place / P + i) * COLUMNS, 1, COLUMNS, &seed);
    assert_true(used > 10 && used < n_splits);
    upload(ctx, &out);
    upload(ctx, &splits);
    OK(ctx, clb_row_sum_combine(t.sum, e.graph, direction, &out.buffer->memory, 0, COLUMNS,
                                &splits.buffer->memory, 0));
    float *got = download(ctx, &out);
    place = 0;
    for (int64_t r = 0; r < n_rows; place += degree[r++])
      for (int64_t c = 0; c < COLUMNS; c++) {
        double sum = number_at(CLB_F32, out.host, r * COLUMNS + c);
        for (int64_t i = 0; (i + 1) * P < degree[r]; i++)
          sum += number_at(CLB_F32, splits.host, (place / P + i) * COLUMNS + c);
        assert_true(fabs(got[r * COLUMNS + c] - sum) < 1e-5);
      }
    free(degree);
    free(got);
    drop(&out);
    drop(&splits);
  }
  clb_row_sum_destroy(&t.sum);
  drop_edges(&e);
}

/* A row's piece, cut at every possible place. */
static void cuts(void **state) {
  clb_context *ctx = context(state);
  const int P = ctx->device->limits.simd ? CLB_GRAPH_SPLIT : CLB_GRAPH_LEAST_SPLIT;
  edges e = make_edges(ctx, "one row", 1, 1, P, 0, 5);
  test t = {.ctx = ctx, .e = &e, .kind = F32, .columns = 1};
  array in = make(CLB_F32, P), out = make(CLB_F32, 2);
  for (int i = 0; i < P; i++) put(CLB_F32, in.host, i, i + 1);
  upload(ctx, &in);
  upload(ctx, &out);
  OK(ctx, clb_row_sum_create(ctx, CLB_F32, CLB_F32, CLB_F32, 1, &t.sum));
  for (int cut = 0; cut <= P; cut++) {
    OK(ctx, clb_row_sum_run(t.sum, e.graph, 0, 0, cut, &in.buffer->memory, 0, 1,
                            &out.buffer->memory, 0, 1, false, NULL, 0));
    OK(ctx, clb_row_sum_run(t.sum, e.graph, 0, cut, P, &in.buffer->memory, cut, 1,
                            &out.buffer->memory, 1, 1, false, NULL, 0));
    float *got = download(ctx, &out), before = (float)(cut * (cut + 1) / 2);
    if (got[0] != before || got[1] != (float)(P * (P + 1) / 2) - before)
      fail_msg("edges before and from %d on: %g and %g", cut, (double)got[0], (double)got[1]);
    free(got);
  }
  clb_row_sum_destroy(&t.sum);
  drop(&in);
  drop(&out);
  drop_edges(&e);
}

/* Rows further apart than 32 bits can address, on devices where untouched memory costs nothing. */
static void far_apart(void **state) {
  clb_context *ctx = context(state);
  static const int32_t receivers[] = {2, 0, 2, 0, 2}, senders[5] = {0};
  enum { EDGES = 5, ROWS = 3, COLUMNS = 2 };
  const int64_t in_stride = (1LL << 29) + 7, out_stride = (1LL << 30) + 9;
  clb_graph *graph;
  clb_row_sum *sum;
  clb_buffer *in = NULL, *out = NULL;
  if (clb_buffer_create(ctx, (uint64_t)(2 * ((EDGES - 1) * in_stride + COLUMNS)), &in) ||
      clb_buffer_create(ctx, (uint64_t)(2 * ((ROWS - 1) * out_stride + COLUMNS)), &out)) {
    clb_buffer_destroy(&in);
    skip_because("%s", clb_error(ctx));
  }
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, 1, ROWS, EDGES, CLB_I32, (clb_index_list){.host = senders},
                           (clb_index_list){.host = receivers}));
  OK(ctx, clb_row_sum_create(ctx, CLB_BF16, CLB_BF16, CLB_F32, COLUMNS, &sum));
  for (int e = 0; e < EDGES; e++) {
    uint16_t row[COLUMNS] = {ir_to_bf16((float)(1 << e)), ir_to_bf16((float)(100 + e))};
    OK(ctx, clb_buffer_write(in, (uint64_t)(2 * e * in_stride), row, sizeof row));
  }
  OK(ctx, clb_row_sum_run(sum, graph, CLB_BY_RECEIVER, 0, EDGES, &in->memory, 0, in_stride,
                          &out->memory, 0, out_stride, false, NULL, 0));
  for (int r = 0; r < ROWS; r++) {
    static const float must[ROWS][COLUMNS] = {{2 + 8, 101 + 103}, {0, 0}, {1 + 4 + 16, 306}};
    uint16_t row[COLUMNS];
    OK(ctx, clb_buffer_read(out, (uint64_t)(2 * r * out_stride), row, sizeof row));
    for (int c = 0; c < COLUMNS; c++) assert_true(row[c] == ir_to_bf16(must[r][c]));
  }
  clb_row_sum_destroy(&sum);
  clb_graph_destroy(&graph);
  clb_buffer_destroy(&in);
  clb_buffer_destroy(&out);
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_row_sum *sum;
  clb_buffer *b;
  edges e = make_edges(ctx, "random", 20, 10, 600, 0, 3);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "from is 2",
         clb_row_sum_create(ctx, CLB_F16, CLB_F64, CLB_F64, 10, &sum));
  assert_null(sum);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "from is 1",
         clb_row_sum_create(ctx, CLB_F64, CLB_F32, CLB_F32, 10, &sum));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "columns is -1",
         clb_row_sum_create(ctx, CLB_F32, CLB_F32, CLB_F32, -1, &sum));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "storage is 7",
         clb_row_sum_create(ctx, CLB_F32, (clb_dtype)7, CLB_F32, 1, &sum));
  OK(ctx, clb_row_sum_create(ctx, CLB_F32, CLB_F32, CLB_F32, 10, &sum));
  OK(ctx, clb_buffer_create(ctx, 4 * 6000, &b));
  const clb_memory *m = &b->memory;
#define WRONG(word, ...)                                                                           \
  NOT_OK(ctx, CLB_ERROR_INTERNAL, word, clb_row_sum_run(sum, e.graph, __VA_ARGS__))
  WRONG("direction is 2", 2, 0, 600, m, 0, 10, m, 0, 10, false, m, 0);
  WRONG("edges 0 ... 601 of 600", 0, 0, 601, m, 0, 10, m, 0, 10, false, m, 0);
  WRONG("edges -1 ... 5", 0, -1, 5, m, 0, 10, m, 0, 10, false, m, 0);
  WRONG("edges 6 ... 5", 0, 6, 5, m, 0, 10, m, 0, 10, false, m, 0);
  WRONG("bytes of in", 0, 0, 600, m, 1, 10, m, 0, 10, false, m, 0);
  WRONG("bytes of in", 0, 0, 600, m, 0, 11, m, 0, 10, false, m, 0);
  WRONG("9 apart", 0, 0, 600, m, 0, 10, m, 0, 9, false, m, 0);
  WRONG("bytes of out", 0, 0, 600, m, 0, 10, m, 5801, 10, false, m, 0);
  WRONG("bytes of splits", 0, 0, 600, m, 0, 10, m, 0, 10, false, m, 5981);
  WRONG("0 bytes of splits", 0, 0, 600, m, 0, 10, m, 0, 10, false, NULL, 0);
  OK(ctx, clb_row_sum_run(sum, e.graph, 1, 0, 0, NULL, 0, 0, m, 0, 10, false, m, 5980));
  clb_row_sum_destroy(&sum);
  clb_row_sum_destroy(&sum);
  clb_row_sum_destroy(NULL);
  clb_buffer_destroy(&b);
  drop_edges(&e);
}

/* Kernels compile for the targets that only compile. */
static void compiles(void **state) {
  struct device *d = *state;
  static const int64_t columns[] = {3, 1152};
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  for (int i = 0; i < KINDS; i++) {
    clb_row_sum *sum;
    clb_graph *graph;
    if (kinds[i].arithmetic == CLB_F64 && !d->f64) continue;
    if (!long_tests() && (i + (int)(d - devices)) % 3)
      continue; /* each kind on every third target */
    OK(ctx, clb_row_sum_create(ctx, kinds[i].from, kinds[i].storage, kinds[i].arithmetic,
                               columns[i % 2], &sum));
    OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
    NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "only compiles",
           clb_row_sum_run(sum, graph, 0, 0, 0, NULL, 0, 0, NULL, 0, 0, false, NULL, 0));
    clb_graph_destroy(&graph);
    clb_row_sum_destroy(&sum);
  }
}

int main(void) {
  static const named_test tests[] = {{"sums", sums, false},
                                     {"cuts", cuts, false},
                                     {"combines", combines, false},
                                     {"far_apart", far_apart, true},
                                     {"refuses", refuses, false}};
  return run_on_all("row_sum", tests, sizeof tests / sizeof *tests, compiles);
}
