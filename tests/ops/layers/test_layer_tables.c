/* tests/ops/layers/test_layer_tables.c - weights of edges from tables by pairs of species, on every
   device that runs here, and on the interpreter with a GPU's limits. Coefficients are quadratic in
   their number i, so that splines are in closed form: with B_k(u) (i + k)^n summed over k,
   a + b i + c i^2 is a + b (t + 1) + c ((t + 1)^2 + 1/3). */
#include "tests/ops/layers/layer_pairs.h"

enum { KNOTS = 23, MOST = 80, TABLES = SPECIES * SPECIES };
static const double first = 0.5, last = 3;

typedef struct {
  int64_t columns;
  int pair; /* the number of its table */
} edge_case;

/* Of a column of a table. */
static double factor(int pair, int64_t column, int power) {
  return sin(1 + 2.3 * pair + 0.7 * (double)column + 5 * power) / pow(KNOTS, power);
}

static void weights_row(const void *user, const double *v, double *out) {
  const edge_case *e = user;
  const double x = (fmin(fmax(length_of(v), first), last) - first) / (last - first),
               t = (KNOTS - 1) * 1.5 * x / (x + 0.5) + 1;
  for (int64_t j = 0; j < e->columns; j++)
    out[j] = factor(e->pair, j, 0) + factor(e->pair, j, 1) * t +
             factor(e->pair, j, 2) * (t * t + 1. / 3);
}

/* Tables in the order of pairs from the last to the first. */
static int table_of(const pairs *p, int64_t edge) {
  return TABLES - 1 - p->species[p->end[0][edge]] * SPECIES - p->species[p->end[1][edge]];
}

static clb_pair_tables make_tables(clb_context *ctx, const clb_op *op, int64_t columns) {
  clb_pair_tables t = {.spline = clb_convolution_table_of(KNOTS, first, last, 0)};
  const int rows = clb_convolution_table_rows(&t.spline);
  const size_t bytes = (size_t)clb_pair_table_bytes(op);
  double *c = malloc((size_t)(rows * columns) * sizeof *c);
  char *all = malloc(TABLES * bytes);
  int32_t numbers[TABLES];
  assert_true(c && all);
  for (int pair = 0; pair < TABLES; pair++) {
    for (int64_t i = 0; i < rows * columns; i++) {
      const int64_t row = i / columns, j = i % columns;
      c[i] = factor(pair, j, 0) + factor(pair, j, 1) * (double)row +
             factor(pair, j, 2) * (double)(row * row);
    }
    clb_pair_table_pack(op, c, all + (size_t)pair * bytes);
    numbers[pair] = TABLES - 1 - pair;
  }
  OK(ctx, clb_buffer_create(ctx, TABLES * bytes, &t.spline.coefficients));
  OK(ctx, clb_buffer_write(t.spline.coefficients, 0, all, TABLES * bytes));
  OK(ctx, clb_buffer_create(ctx, sizeof numbers, &t.table_of));
  OK(ctx, clb_buffer_write(t.table_of, 0, numbers, sizeof numbers));
  free(c);
  free(all);
  return t;
}

static void drop_tables(clb_pair_tables *t) {
  clb_buffer_destroy(&t->spline.coefficients);
  clb_buffer_destroy(&t->table_of);
}

static void tables_once(clb_context *ctx, clb_dtype type, clb_op *op, int64_t columns, int i) {
  uint64_t seed = 43;
  const bool dense = i % 2, add = i % 3 == 2;
  pairs p = pairs_of(ctx, i);
  clb_pair_tables t = make_tables(ctx, op, columns);
  table v = vectors(ctx, type, p.n, dense, 0.3, 3.2, &seed),
        g = random_table(ctx, type, p.n, columns, !dense, 1, &seed), w[2], g_v[2];
  double *x = plain(&v), *gradient = plain(&g),
         *must = calloc((size_t)(p.n * columns + 1), sizeof *must),
         *slope = calloc((size_t)(3 * p.n + 1), sizeof *slope);
  for (int64_t e = 0; e < p.n; e++) {
    const edge_case one = {columns, table_of(&p, e)};
    double *d = differences(weights_row, &one, x + 3 * e, gradient + columns * e, 1, 3, columns);
    weights_row(&one, x + 3 * e, must + columns * e);
    memcpy(slope + 3 * e, d, 3 * sizeof *d);
    free(d);
  }
  for (int k = 0; k < 2; k++) {
    seed = 47;
    w[k] = result_table(ctx, type, p.n, columns, dense, false, &seed);
    g_v[k] = result_table(ctx, type, p.n, 3, !dense, add, &seed);
    OK(ctx, clb_pair_table_forward(op, &t, p.graph, p.numbers, rows_of(&v), rows_of(&w[k])));
    OK(ctx, clb_pair_table_backward(op, &t, p.graph, p.numbers, rows_of(&v), rows_of(&g),
                                    rows_of(&g_v[k]), add));
  }
  expect_rows(ctx, "weights from tables", &w[0], false, must, error_of(type));
  expect_rows(ctx, "gradient of tables", &g_v[0], add, slope, slope_error_of(type));
  expect_same(ctx, &w[0], &w[1]);
  expect_same(ctx, &g_v[0], &g_v[1]);
  table *all[] = {&v, &g, &w[0], &g_v[0]};
  for (int k = 0; k < 4; k++) drop(&all[k]->a);
  double *numbers[] = {x, gradient, must, slope};
  for (int k = 0; k < 4; k++) free(numbers[k]);
  drop_tables(&t);
  drop_pairs(&p);
}

static clb_op *table_op(clb_context *ctx, clb_dtype type, int64_t columns) {
  const clb_convolution_table grid = clb_convolution_table_of(KNOTS, first, last, 0);
  clb_op *op;
  OK(ctx, clb_pair_table_create(ctx, type, SPECIES, columns, &grid, &op));
  return op;
}

static void tables(void **state) {
  static const int64_t columns[] = {1, 7, MOST};
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type)
  for (int k = 0; k < 3; k++) {
    clb_op *op = table_op(ctx, type, columns[k]);
    for (int i = 0; i < SIZES; i++) tables_once(ctx, type, op, columns[k], i);
    clb_op_destroy(&op);
  }
}

/* At v = 0 weights are those of the first knot, and gradients 0; so they are far away. */
static void tables_at_the_ends(void **state) {
  static const double points[][3] = {{0, 0, 0}, {0, -1e-6, 0}, {0, 0, 1e6}};
  enum { N = 3, COLUMNS = 5 };
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    uint64_t seed = 1;
    clb_op *op = table_op(ctx, type, COLUMNS);
    clb_pair_tables t = make_tables(ctx, op, COLUMNS);
    pairs p = make_pairs(ctx, 4, 4, N, 0);
    table v = make_table(type, N, 3, true), g = random_table(ctx, type, N, COLUMNS, true, 1, &seed),
          w = result_table(ctx, type, N, COLUMNS, true, false, &seed),
          g_v = result_table(ctx, type, N, 3, true, false, &seed);
    double must[N * COLUMNS], zero[3 * N] = {0};
    for (int i = 0; i < 3 * N; i++) put(type, v.a.host, i, points[i / 3][i % 3]);
    for (int e = 0; e < N; e++)
      weights_row(&(edge_case){COLUMNS, table_of(&p, e)}, points[e], must + e * COLUMNS);
    upload(ctx, &v.a);
    OK(ctx, clb_pair_table_forward(op, &t, p.graph, p.numbers, rows_of(&v), rows_of(&w)));
    OK(ctx, clb_pair_table_backward(op, &t, p.graph, p.numbers, rows_of(&v), rows_of(&g),
                                    rows_of(&g_v), false));
    expect_rows(ctx, "weights at the ends", &w, false, must, error_of(type));
    expect_rows(ctx, "gradients at the ends", &g_v, false, zero, 0);
    table *all[] = {&v, &g, &w, &g_v};
    for (int i = 0; i < 4; i++) drop(&all[i]->a);
    clb_op_destroy(&op);
    drop_tables(&t);
    drop_pairs(&p);
  }
}

/* Whatever was there before; behind the edges it stays. */
static void species_of_edges(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  OK(ctx, clb_pair_species_create(ctx, &op));
  for (int i = 0; i < SIZES; i++) {
    pairs p = pairs_of(ctx, i);
    const size_t n = (size_t)p.n, bytes = (n + 1) * sizeof(int32_t);
    int32_t *numbers = malloc(bytes);
    clb_buffer *b;
    for (size_t e = 0; e <= n; e++) numbers[e] = -7;
    OK(ctx, clb_buffer_create(ctx, bytes, &b));
    OK(ctx, clb_buffer_write(b, 0, numbers, bytes));
    OK(ctx, clb_pair_species_run(op, p.graph, p.numbers, SPECIES, b));
    OK(ctx, clb_buffer_read(b, 0, numbers, bytes));
    for (size_t e = 0; e < n; e++)
      assert_int_equal(numbers[e], p.species[p.end[0][e]] * SPECIES + p.species[p.end[1][e]]);
    assert_int_equal(numbers[n], -7);
    clb_buffer_destroy(&b);
    if (n) {
      OK(ctx, clb_buffer_create(ctx, bytes - 8, &b));
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, "do not fit",
             clb_pair_species_run(op, p.graph, p.numbers, SPECIES, b));
      clb_buffer_destroy(&b);
    }
    free(numbers);
    drop_pairs(&p);
  }
  clb_op_destroy(&op);
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  uint64_t seed = 1;
  const clb_convolution_table grid = clb_convolution_table_of(KNOTS, first, last, 0);
  const clb_pair_tables none = {.spline = grid};
  clb_op *op;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "there are 0 columns",
         clb_pair_table_create(ctx, CLB_F32, SPECIES, 0, &grid, &op));
  assert_null(op);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "and 0 species",
         clb_pair_table_create(ctx, CLB_F32, 0, 4, &grid, &op));
  op = table_op(ctx, CLB_F32, 4);
  table x = random_table(ctx, CLB_F32, 20, 4, true, 1, &seed);
  pairs p = make_pairs(ctx, 4, 4, 9, 0);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "it has no tables",
         clb_pair_table_forward(op, &none, p.graph, p.numbers, rows_of(&x), rows_of(&x)));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of species is NULL",
         clb_pair_table_forward(op, &none, p.graph, (clb_rows){0}, rows_of(&x), rows_of(&x)));
  clb_op_destroy(&op);
  drop(&x.a);
  drop_pairs(&p);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  EACH_TYPE(d, type) {
    clb_op *op = table_op(ctx, type, MOST);
    for (int pass = 0; pass < 2; pass++) assert_true(op->kernel[pass]->binary.n > 0);
    clb_op_destroy(&op);
  }
}

int main(void) {
  static const named_test all[] = {{"tables", tables, false},
                                   {"tables_at_the_ends", tables_at_the_ends, false},
                                   {"species_of_edges", species_of_edges, false},
                                   {"refuses", refuses, false}};
  return run_on_all("layer_tables", all, sizeof all / sizeof *all, compiles);
}
