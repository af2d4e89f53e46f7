/* tests/ops/layers/test_layer_sums.c - radial basis, energies, virial and forces against plain
   loops and central differences, on every device that runs here, and on the interpreter with a
   GPU's limits. */
#include "tests/ops/layers/layer_rows.h"

#define EACH_TYPE(d, type)                                                                         \
  for (clb_dtype type = CLB_F32; type <= ((d)->f64 ? CLB_F64 : CLB_F32); type++)

/* ---- radial basis ---- */

typedef struct {
  double r_max, r_on, frequencies[CLB_MAX_BASIS];
  int p, n_basis, width; /* p 0: XPLOR; width 0: Bessel */
} radial_case;

/* The formulas of docs/model-format.md. */
static double cutoff_of(const radial_case *c, double r) {
  const double u = r / c->r_max, p = c->p, R = c->r_max * c->r_max, on = c->r_on * c->r_on;
  if (u >= 1) return 0;
  if (c->p)
    return 1 - (p + 1) * (p + 2) / 2 * pow(u, p) + p * (p + 2) * pow(u, p + 1) -
           p * (p + 1) / 2 * pow(u, p + 2);
  return r < c->r_on ? 1 : pow(R - r * r, 2) * (R + 2 * r * r - 3 * on) / pow(R - on, 3);
}

/* As Allegro's program has it. */
static double spline_of(const radial_case *c, int k, double u) {
  const double lower = (double)(k - c->width + 1) / c->n_basis,
               width = (double)c->width / c->n_basis,
               inside = fmin(fmax(u, lower), lower + width) - lower,
               rest = 1 - cos(2 * 3.14159265358979323846 / width * inside);
  return 0.25 * rest * rest;
}

static void basis_row(const void *user, const double *v, double *out) {
  const radial_case *c = user;
  const double r = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), u = r / c->r_max,
               f = cutoff_of(c, r);
  for (int k = 0; k < c->n_basis; k++)
    out[k] = c->width ? spline_of(c, k, u) : 2 / c->r_max * sin(c->frequencies[k] * u) / r * f;
}

static void distance_row(const void *user, const double *v, double *out) {
  (void)user;
  *out = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

/* Edges of 0.5 ... r_max, every seventh beyond. */
static table random_edges(clb_context *ctx, clb_dtype type, const radial_case *c, int64_t n,
                          bool dense, uint64_t *seed) {
  table v = make_table(type, n, 3, dense);
  for (int64_t i = 0; i < n; i++) {
    double x[3],
        size = 0,
        want = i % 7 == 6 ? c->r_max * 1.25 : 0.5 + (c->r_max - 0.5) * (test_random(seed) + 1) / 2;
    for (int a = 0; a < 3; a++) x[a] = test_random(seed), size += x[a] * x[a];
    for (int a = 0; a < 3; a++)
      put(type, v.a.host, v.offset + i * v.stride + a, x[a] / sqrt(size) * want);
  }
  upload(ctx, &v.a);
  return v;
}

static void radials_once(clb_context *ctx, clb_dtype type, clb_op *op, const radial_case *c,
                         int64_t n, int turn) {
  uint64_t seed = 17;
  bool dense = turn % 2, add = turn / 2 % 2, with_r = turn % 3;
  double error = type == CLB_F64 ? 1e-12 : 2e-5, slope_error = type == CLB_F64 ? 1e-8 : 1e-4;
  table v = random_edges(ctx, type, c, n, dense, &seed),
        g_basis = random_table(ctx, type, n, c->n_basis, !dense, 1, &seed),
        g_r = random_table(ctx, type, n, 1, dense, 1, &seed);
  double *x = plain(&v), *g = plain(&g_basis), *h = plain(&g_r);
  double *basis_must = apply(basis_row, c, x, n, 3, c->n_basis),
         *r_must = apply(distance_row, c, x, n, 3, 1);
  double *slope = differences(basis_row, c, x, g, n, 3, c->n_basis),
         *r_slope = differences(distance_row, c, x, h, n, 3, 1);
  table r[2], basis[2], g_v[2], g_w[2];
  for (int i = 0; i < 2; i++) {
    seed = 19;
    r[i] = result_table(ctx, type, n, 1, !dense, false, &seed),
    basis[i] = result_table(ctx, type, n, c->n_basis, dense, false, &seed);
    g_v[i] = result_table(ctx, type, n, 3, !dense, add, &seed),
    g_w[i] = result_table(ctx, type, n, 3, dense, add, &seed);
    OK(ctx, clb_radial_forward(op, n, rows_of(&v), with_r ? rows_of(&r[i]) : (clb_rows){0},
                               rows_of(&basis[i])));
    if (c->n_basis)
      OK(ctx, clb_radial_backward(op, n, rows_of(&v), rows_of(&g_basis), rows_of(&g_v[i]), add));
    if (!with_r) OK(ctx, clb_radial_forward(op, n, rows_of(&v), rows_of(&r[i]), (clb_rows){0}));
    OK(ctx, clb_radial_backward_distance(op, n, rows_of(&v), rows_of(&g_r), rows_of(&g_w[i]), add));
  }
  expect_rows(ctx, "r", &r[0], false, r_must, error);
  expect_rows(ctx, "basis", &basis[0], false, basis_must, error);
  if (c->n_basis) expect_rows(ctx, "radial backward", &g_v[0], add, slope, slope_error);
  expect_rows(ctx, "radial backward by r", &g_w[0], add, r_slope, slope_error);
  table *both[] = {r, basis, g_v, g_w}, *in[] = {&v, &g_basis, &g_r};
  for (int i = 0; i < 4; i++) {
    expect_same(ctx, &both[i][0], &both[i][1]);
    drop(&both[i][0].a);
  }
  for (int i = 0; i < 3; i++) drop(&in[i]->a);
  double *numbers[] = {x, g, h, basis_must, r_must, slope, r_slope};
  for (int i = 0; i < 7; i++) free(numbers[i]);
}

static void radials(void **state) {
  clb_context *ctx = context(state);
  static const struct {
    double r_max;
    int p, n_basis;
    double r_on;
    int width;
  } cases[] = {{6, 6, 8, 0, 0},    {4, 5, 3, 0, 0}, {3, 2, 1, 0, 0},   {5, 6, 19, 0, 0},
               {2.5, 1, 64, 0, 0}, {6, 6, 0, 0, 0}, {5, 0, 8, 4.5, 0}, {3, 0, 2, 0, 0},
               {4, 0, 1, 1.25, 0}, {4, 1, 8, 0, 6}, {5, 1, 19, 0, 13}};
  enum { CASES = sizeof cases / sizeof *cases };
  static const int64_t sizes[] = {0, 1, 70, 7, 257, 33};
  EACH_TYPE((struct device *)*state, type)
  for (int i = 0; i < CASES; i++) {
    radial_case c = {.r_max = cases[i].r_max,
                     .r_on = cases[i].r_on,
                     .p = cases[i].p,
                     .n_basis = cases[i].n_basis,
                     .width = cases[i].width};
    clb_op *op;
    for (int k = 0; k < c.n_basis; k++)
      c.frequencies[k] = 3.14159265358979323846 * (k % 20 + 1) + (i == 1 ? 0.1 * k : 0);
    OK(ctx, clb_radial_create(
                ctx, type,
                &(clb_radial_desc){c.r_max, c.p, c.n_basis, c.frequencies, c.r_on, c.width}, &op));
    for (int s = 0; s < 6; s++) radials_once(ctx, type, op, &c, sizes[s], s + 5 * i);
    clb_op_destroy(&op);
  }
}

/* At and near r = 0 and at the cutoff everything is finite, and gradients at 0 are 0. */
static void radials_at_the_ends(void **state) {
  clb_context *ctx = context(state);
  static const double points[][3] = {{0, 0, 0},    {1e-30, 0, 0}, {0, -1e-7, 0},
                                     {1e-3, 0, 0}, {0, 6, 0},     {0, 0, 1e6}};
  enum { N = sizeof points / sizeof *points, B = 5 };
  EACH_TYPE((struct device *)*state, type) {
    uint64_t seed = 1;
    double w[B] = {3, 6, 9, 12, 15}, r_must[N];
    clb_op *op;
    table v = make_table(type, N, 3, true), g = random_table(ctx, type, N, B, true, 1, &seed),
          g_r = random_table(ctx, type, N, 1, true, 1, &seed);
    table r = result_table(ctx, type, N, 1, true, false, &seed),
          basis = result_table(ctx, type, N, B, true, false, &seed);
    table g_v = result_table(ctx, type, N, 3, true, false, &seed),
          g_w = result_table(ctx, type, N, 3, true, false, &seed);
    for (int i = 0; i < 3 * N; i++) put(type, v.a.host, i, points[i / 3][i % 3]);
    for (int i = 0; i < N; i++) distance_row(NULL, points[i], &r_must[i]);
    upload(ctx, &v.a);
    OK(ctx, clb_radial_create(ctx, type, &(clb_radial_desc){6, 6, B, w, 0, 0}, &op));
    OK(ctx, clb_radial_forward(op, N, rows_of(&v), rows_of(&r), rows_of(&basis)));
    OK(ctx, clb_radial_backward(op, N, rows_of(&v), rows_of(&g), rows_of(&g_v), false));
    OK(ctx, clb_radial_backward_distance(op, N, rows_of(&v), rows_of(&g_r), rows_of(&g_w), false));
    expect_rows(ctx, "r", &r, false, r_must, 1e-6);
    void *b = download(ctx, &basis.a), *gradient = download(ctx, &g_v.a),
         *by_r = download(ctx, &g_w.a);
    for (int i = 0; i < N; i++)
      for (int k = 0; k < B; k++) {
        double must = i < 4 ? 2. / 6 * w[k] / 6 : 0; /* the limit */
        if (!(fabs(at(&basis, b, i, k) - must) < 1e-5))
          fail_msg("b_%d of point %d is %g, must be %g", k, i, at(&basis, b, i, k), must);
      }
    for (int i = 0; i < 3 * N; i++) {
      double x = at(&g_v, gradient, i / 3, i % 3), y = at(&g_w, by_r, i / 3, i % 3),
             max = i < 3 || i / 3 >= 4 ? 0 : 1;
      if (!(fabs(x) <= max)) fail_msg("component %d of the gradient is %g", i, x);
      if (!(fabs(y) <= (i < 3 ? 0 : 1))) fail_msg("component %d of the gradient by r is %g", i, y);
    }
    free(b);
    free(gradient);
    free(by_r);
    clb_op_destroy(&op);
    table *all[] = {&v, &g, &g_r, &r, &basis, &g_v, &g_w};
    for (int i = 0; i < 7; i++) drop(&all[i]->a);
  }
}

/* ---- energies and virial ---- */

/* Where an op's total goes. */
static table total_table(clb_context *ctx, const clb_op *op, int64_t columns, bool dense) {
  uint64_t seed = 1;
  return result_table(ctx, clb_sum_type(ctx), clb_totals_rows(op), columns, dense, false, &seed);
}

/* Reads it; the buffer is destroyed. */
static void total_of(clb_context *ctx, const clb_op *op, table *t, double *total) {
  size_t row = (size_t)t->columns * dtype_bytes(t->a.type);
  char *got = download(ctx, &t->a), *host = t->a.host, *rows = malloc((size_t)t->n * row);
  for (int64_t i = 0; i < t->a.n; i++) {
    int64_t at = i - t->offset, bytes = (int64_t)dtype_bytes(t->a.type);
    if ((at < 0 || at / t->stride >= t->n || at % t->stride >= t->columns) &&
        memcmp(got + i * bytes, host + i * bytes, (size_t)bytes))
      fail_msg("element %lld of a total, which is nobody's, was written", (long long)i);
  }
  for (int64_t i = 0; i < t->n; i++)
    memcpy(rows + (size_t)i * row,
           got + (size_t)(t->offset + i * t->stride) * dtype_bytes(t->a.type), row);
  clb_totals_add(op, rows, total);
  free(rows);
  free(got);
  drop(&t->a);
}

static const int64_t lengths[] = {0, 1, 17, 1025, 40000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static bool is_slow(void **state) { return strstr(((struct device *)*state)->name, "interpreter"); }

static void energies_once(clb_context *ctx, clb_dtype type, clb_op *op, const double *scale,
                          const double *shift, int64_t n, bool dense, bool each) {
  uint64_t seed = 23;
  int32_t *numbers;
  clb_dtype sum_type = clb_sum_type(ctx);
  double error = sum_type == CLB_F64 ? 1e-14 : 1e-6, size = 0, got[2];
  long double total = 0; /* a plain sum of doubles would be less accurate */
  clb_rows species = random_species(ctx, n, 3, &seed, &numbers);
  table x = random_table(ctx, type, n, 1, dense, 1, &seed), e[2], g[2];
  double *must = plain(&x), *slope = calloc((size_t)n + 1, sizeof *slope);
  for (int64_t i = 0; i < n; i++) {
    must[i] = scale[numbers[i]] * must[i] + shift[numbers[i]];
    slope[i] = scale[numbers[i]];
    total += must[i];
    size += fabs(must[i]);
  }
  for (int i = 0; i < 2; i++) {
    e[i] = result_table(ctx, sum_type, n, 1, !dense, false, &seed),
    g[i] = result_table(ctx, type, n, 1, dense, false, &seed);
    table sum = total_table(ctx, op, 1, dense);
    OK(ctx, clb_energy_forward(op, n, species, rows_of(&x), each ? rows_of(&e[i]) : (clb_rows){0},
                               rows_of(&sum), i ? rows_of(&g[i]) : (clb_rows){0}));
    if (!i) OK(ctx, clb_energy_backward(op, n, species, rows_of(&g[i])));
    total_of(ctx, op, &sum, &got[i]);
  }
  if (each) expect_rows(ctx, "e_atom", &e[0], false, must, error);
  expect_rows(ctx, "energy backward", &g[0], false, slope, type == CLB_F64 ? 1e-15 : 1e-7);
  if (!(fabs((double)(got[0] - total)) <= error * (size + 1)))
    fail_msg("energy of %lld atoms: %.17g, must be %.17g", (long long)n, got[0], (double)total);
  assert_memory_equal(&got[0], &got[1], sizeof *got);
  expect_same(ctx, &e[0], &e[1]);
  expect_same(ctx, &g[0], &g[1]);
  drop(&e[0].a);
  drop(&g[0].a);
  drop(&x.a);
  clb_buffer_destroy(&species.buffer);
  free(numbers);
  free(must);
  free(slope);
}

static void energies(void **state) {
  clb_context *ctx = context(state);
  static const double scale[] = {0.75, -1.3, 2}, shift[] = {-3.1, -420.123456789, 0.01};
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_energy_create(ctx, type, 3, scale, shift, &op));
    for (int i = 0; i < LENGTHS - (is_slow(state) && type == CLB_F32); i++)
      energies_once(ctx, type, op, scale, shift, lengths[i], i % 2, i != 3);
    clb_op_destroy(&op);
  }
}

static void virials(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_virial_create(ctx, type, &op));
    for (int i = 0; i < LENGTHS - (is_slow(state) && type == CLB_F32); i++) {
      uint64_t seed = 29;
      int64_t n = lengths[i];
      double error = clb_sum_type(ctx) == CLB_F64 ? 1e-14 : 1e-6, size[9] = {0}, got[2][9];
      long double must[9] = {0};
      table v = random_table(ctx, type, n, 3, i % 2, 4, &seed),
            g = random_table(ctx, type, n, 3, i % 3, 1, &seed);
      double *x = plain(&v), *y = plain(&g);
      for (int64_t e = 0; e < n; e++)
        for (int a = 0; a < 9; a++)
          must[a] += (long double)x[3 * e + a / 3] * y[3 * e + a % 3],
              size[a] += fabs(x[3 * e + a / 3] * y[3 * e + a % 3]);
      for (int k = 0; k < 2; k++) {
        table sum = total_table(ctx, op, 9, i % 2);
        OK(ctx, clb_virial_run(op, n, rows_of(&v), rows_of(&g), rows_of(&sum)));
        total_of(ctx, op, &sum, got[k]);
      }
      for (int a = 0; a < 9; a++)
        if (!(fabs((double)(got[0][a] - must[a])) <= error * (size[a] + 1)))
          fail_msg("virial[%d] of %lld edges: %.17g, must be %.17g", a, (long long)n, got[0][a],
                   (double)must[a]);
      assert_memory_equal(got[0], got[1], sizeof got[0]);
      free(x);
      free(y);
      drop(&v.a);
      drop(&g.a);
    }
    clb_op_destroy(&op);
  }
}

/* ---- forces ---- */

static void forces_once(clb_context *ctx, clb_dtype type, clb_op *op, int64_t n_receivers,
                        int64_t n_senders, int64_t n, int64_t hub, bool dense) {
  uint64_t seed = (uint64_t)n + 31;
  int64_t atoms = n_receivers > n_senders ? n_receivers : n_senders;
  int32_t *end[2] = {calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4)};
  clb_graph *graph;
  for (int64_t e = 0; e < n; e++) {
    end[0][e] = e < hub ? 0 : (int32_t)pick(&seed, (int)n_receivers);
    end[1][e] = e % 3 && e < hub ? (int32_t)n_senders - 1 : (int32_t)pick(&seed, (int)n_senders);
  }
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, n_senders, n_receivers, n, CLB_I32,
                           (clb_index_list){.host = end[1]}, (clb_index_list){.host = end[0]}));
  table g = random_table(ctx, type, n, 3, dense, 1, &seed), force[2],
        v = random_table(ctx, type, n, 3, !dense, 1, &seed), virial;
  double *x = plain(&g), *y = plain(&v),
         *products = calloc((size_t)(9 * n_receivers) + 1, sizeof *products),
         *must = calloc((size_t)(3 * atoms) + 1, sizeof *must);
  for (int64_t i = 0; i < 3 * n; i++) {
    must[3 * end[0][i / 3] + i % 3] += x[i];
    must[3 * end[1][i / 3] + i % 3] -= x[i];
  }
  for (int64_t i = 0; i < 9 * n; i++)
    products[9 * end[0][i / 9] + i % 9] += y[i / 9 * 3 + i % 9 / 3] * x[i / 9 * 3 + i % 3];
  virial = result_table(ctx, clb_sum_type(ctx), n_receivers, 9, dense, false, &seed);
  OK(ctx, clb_atom_virials_run(op, graph, rows_of(&v), rows_of(&g), rows_of(&virial)));
  expect_rows(ctx, "v_atom", &virial, false, products, clb_sum_type(ctx) == CLB_F64 ? 1e-12 : 1e-4);
  for (int i = 0; i < 2; i++) {
    force[i] = result_table(ctx, clb_sum_type(ctx), atoms, 3, !dense, false, &seed);
    OK(ctx, clb_forces_run(op, graph, rows_of(&g), rows_of(&force[i])));
  }
  expect_rows(ctx, "forces", &force[0], false, must, clb_sum_type(ctx) == CLB_F64 ? 1e-12 : 1e-4);
  expect_same(ctx, &force[0], &force[1]);
  drop(&force[0].a);
  drop(&g.a);
  drop(&v.a);
  drop(&virial.a);
  free(y);
  free(products);
  clb_graph_destroy(&graph);
  free(end[0]);
  free(end[1]);
  free(x);
  free(must);
}

static void forces(void **state) {
  clb_context *ctx = context(state);
  EACH_TYPE((struct device *)*state, type) {
    clb_op *op;
    OK(ctx, clb_forces_create(ctx, type, &op));
    forces_once(ctx, type, op, 0, 0, 0, 0, true);
    forces_once(ctx, type, op, 4, 9, 0, 0, true);
    forces_once(ctx, type, op, 1, 1, 1, 0, false);
    forces_once(ctx, type, op, 20, 33, 600, 0, true);
    forces_once(ctx, type, op, 33, 20, 333, 0, false);
    forces_once(ctx, type, op, 5, 6, 1500, 1400, false);
    clb_op_destroy(&op);
  }
}

/* The overall sign: forces and virial of a sum of pair energies against differences by positions.
 */
static void forces_are_minus_gradients(void **state) {
  clb_context *ctx = context(state);
  enum { ATOMS = 6, EDGES = ATOMS * (ATOMS - 1) };
  if (!((struct device *)*state)->f64)
    skip_because("%s has no f64", ((struct device *)*state)->name);
  radial_case c = {.r_max = 5, .p = 6, .n_basis = 1, .frequencies = {3.5}};
  double position[ATOMS][3], must[3 * ATOMS] = {0}, strain = 0, virial[9];
  int32_t receivers[EDGES], senders[EDGES];
  uint64_t seed = 41;
  clb_graph *graph;
  clb_op *radial, *forces, *virials;
  for (int i = 0; i < 3 * ATOMS; i++) position[i / 3][i % 3] = 1.5 * test_random(&seed);
  for (int e = 0; e < EDGES; e++)
    receivers[e] = e / (ATOMS - 1), senders[e] = (receivers[e] + 1 + e % (ATOMS - 1)) % ATOMS;
  table v = make_table(CLB_F64, EDGES, 3, true), one = make_table(CLB_F64, EDGES, 1, true),
        g = result_table(ctx, CLB_F64, EDGES, 3, true, false, &seed);
  table force = result_table(ctx, CLB_F64, ATOMS, 3, true, false, &seed);
  for (int e = 0; e < EDGES; e++) {
    put(CLB_F64, one.a.host, e, 1);
    for (int a = 0; a < 3; a++)
      put(CLB_F64, v.a.host, 3 * e + a, position[senders[e]][a] - position[receivers[e]][a]);
  }
  for (int i = 0; i <= 3 * ATOMS;
       i++) /* E = sum of b(v); the last turn moves by a strain along x, y */
    for (int sign = -1; sign <= 1; sign += 2)
      for (int e = 0; e < EDGES; e++) {
        double d[3], b, step = 1e-4 * sign;
        for (int a = 0; a < 3; a++) d[a] = number_at(CLB_F64, v.a.host, 3 * e + a);
        if (i == 3 * ATOMS) d[0] += step * d[1];
        else d[i % 3] += step * ((senders[e] == i / 3) - (receivers[e] == i / 3));
        basis_row(&c, d, &b);
        if (i == 3 * ATOMS) strain += sign * b / 2e-4;
        else must[i] -= sign * b / 2e-4;
      }
  upload(ctx, &v.a);
  upload(ctx, &one.a);
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, ATOMS, ATOMS, EDGES, CLB_I32, (clb_index_list){.host = senders},
                           (clb_index_list){.host = receivers}));
  OK(ctx,
     clb_radial_create(ctx, CLB_F64, &(clb_radial_desc){c.r_max, c.p, 1, c.frequencies, c.r_on, 0},
                       &radial));
  OK(ctx, clb_forces_create(ctx, CLB_F64, &forces));
  OK(ctx, clb_virial_create(ctx, CLB_F64, &virials));
  OK(ctx, clb_radial_backward(radial, EDGES, rows_of(&v), rows_of(&one), rows_of(&g), false));
  OK(ctx, clb_forces_run(forces, graph, rows_of(&g), rows_of(&force)));
  table sum = total_table(ctx, virials, 9, true);
  OK(ctx, clb_virial_run(virials, EDGES, rows_of(&v), rows_of(&g), rows_of(&sum)));
  total_of(ctx, virials, &sum, virial);
  expect_rows(ctx, "forces", &force, false, must, 1e-6);
  assert_true(fabs(virial[1] - strain) < 1e-6 && fabs(virial[1] - virial[3]) < 1e-12 &&
              fabs(strain) > 1e-3);
  clb_op_destroy(&radial);
  clb_op_destroy(&forces);
  clb_op_destroy(&virials);
  clb_graph_destroy(&graph);
  table *all[] = {&v, &one, &g, &force};
  for (int i = 0; i < 4; i++) drop(&all[i]->a);
}

/* As on devices without double precision: sums are f32, and the host adds up the last ones. */
static void without_f64(void **state) {
  struct device *d = *state;
  bool before = d->f64;
  clb_context *ctx = context(state);
  d->f64 = ctx->device->limits.f64 = false;
  assert_int_equal(clb_sum_type(ctx), CLB_F32);
  energies(state);
  virials(state);
  forces(state);
  d->f64 = ctx->device->limits.f64 = before;
}

/* ---- mistakes, and targets ---- */

static void refuses(void **state) {
  clb_context *ctx = context(state);
  clb_op *op;
  uint64_t seed = 1;
  double numbers[9] = {1, 2, 3};
  table x = random_table(ctx, CLB_F32, 20, 3, true, 1, &seed);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_basis is 65",
         clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){6, 6, 65, numbers, 0, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "frequencies",
         clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){6, 6, 1, NULL, 0, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "r_max is 0",
         clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){0, 6, 1, numbers, 0, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "p is -1",
         clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){1, -1, 1, numbers, 0, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "r_on is 1",
         clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){1, 0, 1, numbers, 1, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "n_species",
         clb_energy_create(ctx, CLB_F32, 0, numbers, numbers, &op));
  OK(ctx, clb_radial_create(ctx, CLB_F32, &(clb_radial_desc){6, 6, 0, NULL, 0, 0}, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "without this",
         clb_radial_backward(op, 3, rows_of(&x), rows_of(&x), rows_of(&x), false));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of v",
         clb_radial_forward(op, 30, rows_of(&x), rows_of(&x), (clb_rows){0}));
  clb_op_destroy(&op);
  OK(ctx, clb_energy_create(ctx, CLB_F32, 3, numbers, numbers, &op));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of species is NULL",
         clb_energy_forward(op, 3, (clb_rows){0}, rows_of(&x), (clb_rows){0}, rows_of(&x),
                            (clb_rows){0}));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of species",
         clb_energy_forward(op, 300, rows_of(&x), (clb_rows){x.a.buffer, 0, CLB_SAME_ROW, NULL},
                            (clb_rows){0}, rows_of(&x), (clb_rows){0}));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "buffer of total is NULL",
         clb_energy_forward(op, 0, (clb_rows){0}, (clb_rows){0}, (clb_rows){0}, (clb_rows){0},
                            (clb_rows){0}));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "other totals",
         clb_virial_run(op, 1, rows_of(&x), rows_of(&x), rows_of(&x)));
  clb_op_destroy(&op);
  drop(&x.a);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  clb_context *ctx = context(state);
  double numbers[8] = {3, 6, 9, 12, 15, 18, 21, 24};
  EACH_TYPE(d, type) {
    clb_op *op[4];
    static const int passes[] = {4, 3, 2, 1};
    OK(ctx, clb_radial_create(ctx, type, &(clb_radial_desc){6, 6, 8, numbers, 0, 0}, &op[0]));
    OK(ctx, clb_energy_create(ctx, type, 2, numbers, numbers, &op[1]));
    OK(ctx, clb_virial_create(ctx, type, &op[2]));
    OK(ctx, clb_forces_create(ctx, type, &op[3]));
    NOT_OK(ctx, CLB_ERROR_UNSUPPORTED, "only compiles",
           clb_virial_run(op[2], 0, (clb_rows){0}, (clb_rows){0}, (clb_rows){0}));
    for (int i = 0; i < 4; i++) {
      for (int pass = 0; pass < passes[i]; pass++) assert_true(op[i]->kernel[pass]->binary.n > 0);
      clb_op_destroy(&op[i]);
    }
  }
}

int main(void) {
  static const named_test tests[] = {{"radials", radials, false},
                                     {"radials_at_the_ends", radials_at_the_ends, false},
                                     {"energies", energies, false},
                                     {"virials", virials, false},
                                     {"forces", forces, false},
                                     {"without_f64", without_f64, false},
                                     {"signs", forces_are_minus_gradients, false},
                                     {"refuses", refuses, false}};
  return run_on_all("layer_sums", tests, sizeof tests / sizeof *tests, compiles);
}
