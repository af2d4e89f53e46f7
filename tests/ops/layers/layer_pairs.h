/* tests/ops/layers/layer_pairs.h - for tests of layers that work on edges and the atoms at their
   ends. */
#ifndef CLB_TESTS_OPS_LAYERS_LAYER_PAIRS_H
#define CLB_TESTS_OPS_LAYERS_LAYER_PAIRS_H

#include "tests/ops/layers/layer_rows.h"

#define EACH_TYPE(d, type)                                                                         \
  for (clb_dtype type = CLB_F32; type <= ((d)->f64 ? CLB_F64 : CLB_F32); type++)

enum { SPECIES = 3 };

static inline double error_of(clb_dtype type) { return type == CLB_F64 ? 1e-11 : 3e-5; }
static inline double slope_error_of(clb_dtype type) { return type == CLB_F64 ? 1e-8 : 2e-4; }

typedef struct {
  int64_t n, receivers, senders; /* n: edges */
  int32_t *end[2], *species;
  clb_graph *graph;
  clb_rows numbers; /* the species on the device */
} pairs;

/* The first `hub` edges go to one atom; the last receiver has none if there are others. */
static inline pairs make_pairs(clb_context *ctx, int64_t receivers, int64_t senders, int64_t n,
                               int64_t hub) {
  uint64_t seed = (uint64_t)(n + 7 * receivers + 1);
  pairs p = {.n = n, .receivers = receivers, .senders = senders};
  const int64_t atoms = receivers > senders ? receivers : senders;
  for (int d = 0; d < 2; d++) p.end[d] = calloc((size_t)n + 1, sizeof *p.end[d]);
  for (int64_t e = 0; e < n; e++) {
    p.end[0][e] = e < hub ? 0 : (int32_t)pick(&seed, receivers > 1 ? (int)receivers - 1 : 1);
    p.end[1][e] = (int32_t)pick(&seed, (int)senders);
  }
  p.numbers = random_species(ctx, atoms, SPECIES, &seed, &p.species);
  OK(ctx, clb_graph_create(ctx, 0, 0, &p.graph));
  OK(ctx, clb_graph_update(p.graph, senders, receivers, n, CLB_I32,
                           (clb_index_list){.host = p.end[1]}, (clb_index_list){.host = p.end[0]}));
  return p;
}

static inline void drop_pairs(pairs *p) {
  clb_graph_destroy(&p->graph);
  clb_buffer_destroy(&p->numbers.buffer);
  free(p->end[0]);
  free(p->end[1]);
  free(p->species);
}

/* Receivers, senders, edges, hub. */
static const int64_t sizes[][4] = {{0, 0, 0, 0},    {3, 5, 0, 0},      {1, 1, 1, 0},
                                   {9, 14, 100, 0}, {14, 9, 333, 150}, {2, 6, 700, 650}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static inline pairs pairs_of(clb_context *ctx, int i) {
  return make_pairs(ctx, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
}

/* Vectors of lengths between low and high, every seventh longer. */
static inline table vectors(clb_context *ctx, clb_dtype type, int64_t n, bool dense, double low,
                            double high, uint64_t *seed) {
  table v = make_table(type, n, 3, dense);
  for (int64_t i = 0; i < n; i++) {
    double x[3], size = 0,
                 want = i % 7 == 6 ? 1.25 * high : low + (high - low) * (test_random(seed) + 1) / 2;
    for (int a = 0; a < 3; a++) x[a] = test_random(seed), size += x[a] * x[a];
    for (int a = 0; a < 3; a++)
      put(type, v.a.host, v.offset + i * v.stride + a, x[a] / sqrt(size) * want);
  }
  upload(ctx, &v.a);
  return v;
}

static inline double length_of(const double *v) {
  return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static inline double polynomial(double p, double u) {
  if (u >= 1) return 0;
  return 1 - (p + 1) * (p + 2) / 2 * pow(u, p) + p * (p + 2) * pow(u, p + 1) -
         p * (p + 1) / 2 * pow(u, p + 2);
}

/* Rows of `columns` in the first table, then of one in the second. */
static inline double *joined(const table *a, const table *b) {
  const int64_t columns = a->columns + (b ? 1 : 0);
  double *x = calloc((size_t)(a->n * columns + 1), sizeof *x), *first = plain(a),
         *second = b ? plain(b) : NULL;
  for (int64_t i = 0; i < a->n * columns; i++) {
    const int64_t row = i / columns, column = i % columns;
    x[i] = column < a->columns ? first[row * a->columns + column] : second[row];
  }
  free(first);
  free(second);
  return x;
}

/* Some columns of rows of `width`. */
static inline double *columns_of(const double *x, int64_t n, int64_t width, int64_t from,
                                 int64_t count) {
  double *out = calloc((size_t)(n * count + 1), sizeof *out);
  for (int64_t i = 0; i < n * count; i++) out[i] = x[i / count * width + from + i % count];
  return out;
}

#endif
