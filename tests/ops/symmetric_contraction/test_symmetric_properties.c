/* tests/ops/symmetric_contraction/test_symmetric_properties.c - symmetric contractions by
   mathematical property, and what is refused. */
#include "tests/ops/symmetric_contraction/contraction_arrays.h"

#include "src/problem/rotation.h"

static const int degrees[] = {0, 1, 2, 3};
enum { ROWS = 5, MOST_WIDTH = 9 };

static clb_symmetric_contraction_desc describe(int ell, int correlation) {
  return (clb_symmetric_contraction_desc){.ell = ell,
                                          .correlation = correlation,
                                          .degrees = degrees,
                                          .n_degrees = 3,
                                          .channels = 3,
                                          .n_species = 2,
                                          .layout_x = CLB_IR_MUL,
                                          .layout_z = CLB_IR_MUL,
                                          .storage = CLB_F64,
                                          .arithmetic = CLB_F64};
}

static double dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* ---- rotations and inversion ---- */

/* v[2l+1][K] of one degree turned by 0.7 about x, y and z in turn, or inverted: exp(t J) v by its
   series. */
static void turn(int l, int K, bool inverted, double *v) {
  int n = 2 * l + 1;
  for (int i = 0; i < n * K && inverted; i++) v[i] *= l % 2 ? -1 : 1;
  for (int axis = 0; axis < 3 && l && !inverted; axis++) {
    double J[MOST_WIDTH * MOST_WIDTH], term[MOST_WIDTH * 3], next[MOST_WIDTH * 3];
    clb_rotation_generator(l, axis, J);
    memcpy(term, v, sizeof *v * (size_t)(n * K));
    for (int order = 1; order < 60; order++) {
      for (int i = 0; i < n; i++)
        for (int c = 0; c < K; c++) {
          next[i * K + c] = 0;
          for (int k = 0; k < n; k++)
            next[i * K + c] += 0.7 / order * J[i * n + k] * term[k * K + c];
        }
      memcpy(term, next, sizeof *v * (size_t)(n * K));
      for (int i = 0; i < n * K; i++) v[i] += term[i];
    }
  }
}

static void turn_rows(const clb_symmetric_contraction_desc *d, bool of_x, bool inverted, double *v,
                      int width) {
  for (int r = 0; r < ROWS; r++) {
    double *at = v + r * width;
    for (int i = 0; i < (of_x ? d->ell + 1 : d->n_degrees); i++) {
      int l = of_x ? i : d->degrees[i];
      turn(l, d->channels, inverted, at);
      at += (2 * l + 1) * d->channels;
    }
  }
}

static void equivariance(void **state) {
  static const int problems[][2] = {{3, 3}, {2, 4}};
  for (int p = 0; p < many(*state, 1, 2, 2); p++)
    for (int inverted = 0; inverted < 2; inverted++) {
      clb_symmetric_contraction_desc d = describe(problems[p][0], problems[p][1]);
      test_contraction *t = contraction_create(context_of(*state), &d);
      contraction_data a = data_create(t, ROWS, SORTED, 5), b = data_create(t, ROWS, SORTED, 5);
      int z = t->width[CLB_OPERAND_Z], x = t->width[CLB_OPERAND_X];
      turn_rows(&d, true, inverted, b.in[0], x);
      contraction_run(t, CLB_FORWARD, &a, false);
      contraction_run(t, CLB_FORWARD, &b, false);
      turn_rows(&d, false, inverted, a.out[0], z);
      for (int i = 0; i < ROWS * z; i++)
        assert_true(fabs(a.out[0][i] - b.out[0][i]) <= 1e-11 * (1 + fabs(a.out[0][i])));
      data_destroy(&a), data_destroy(&b);
      contraction_destroy(t);
    }
}

/* ---- derivatives ---- */

/* <g, z> = <w, g_w>, as z is linear in w; <g, d_g> = <a, g_x> + <c, g_w>; and differences. */
static void derivatives(void **state) {
  static const int problems[][2] = {{2, 3}, {1, 4}, {3, 2}};
  const double e = 1e-5;
  for (int p = 0; p < many(*state, 1, 3, 3); p++) {
    clb_symmetric_contraction_desc desc = describe(problems[p][0], problems[p][1]);
    test_contraction *t = contraction_create(context_of(*state), &desc);
    size_t n_x = contraction_count(t, CLB_OPERAND_X, ROWS),
           n_w = contraction_count(t, CLB_OPERAND_W, ROWS),
           n_z = contraction_count(t, CLB_OPERAND_Z, ROWS);
    contraction_data f = data_create(t, ROWS, MIXED_UP, 6), b = data_create(t, ROWS, MIXED_UP, 6),
                     d = data_create(t, ROWS, MIXED_UP, 6), moved[2];
    contraction_run(t, CLB_FORWARD, &f, false);
    contraction_run(t, CLB_BACKWARD, &b, false);
    contraction_run(t, CLB_DOUBLE_BACKWARD, &d, false);
    double z = dot(b.in[2], f.out[0], n_z),
           s = dot(b.in[3], b.out[0], n_x) + dot(b.in[4], b.out[1], n_w);
    assert_true(fabs(z - dot(b.in[1], b.out[1], n_w)) <= 1e-11 * (1 + fabs(z)));
    assert_true(fabs(s - dot(b.in[2], d.out[2], n_z)) <= 1e-11 * (1 + fabs(s)));
    double along_z[2], along_s[2]; /* of x along a, w along c; as `moved` is forward, then back */
    for (int side = 0; side < 2; side++) {
      for (int pass = CLB_FORWARD; pass <= CLB_BACKWARD; pass++) {
        contraction_data *m = &moved[pass];
        *m = data_create(t, ROWS, MIXED_UP, 6);
        for (size_t i = 0; i < n_x; i++) m->in[0][i] += (side ? -e : e) * m->in[3][i];
        for (size_t i = 0; i < n_w; i++) m->in[1][i] += (side ? -e : e) * m->in[4][i];
        contraction_run(t, pass, m, false);
      }
      along_z[side] = dot(moved[0].in[2], moved[0].out[0], n_z);
      along_s[side] = dot(b.in[3], moved[1].out[0], n_x) + dot(b.in[4], moved[1].out[1], n_w);
      data_destroy(&moved[0]), data_destroy(&moved[1]);
    }
    double second = dot(b.in[3], d.out[0], n_x) + dot(b.in[4], d.out[1], n_w);
    assert_true(fabs((along_z[0] - along_z[1]) / (2 * e) - s) <= 1e-5 * (1 + fabs(s)));
    assert_true(fabs((along_s[0] - along_s[1]) / (2 * e) - second) <= 1e-5 * (1 + fabs(second)));
    data_destroy(&f), data_destroy(&b), data_destroy(&d);
    contraction_destroy(t);
  }
}

/* ---- what is refused ---- */

static void refused(clb_context *ctx, clb_symmetric_contraction_desc d, const char *message) {
  clb_op *op;
  if (!d.passes) d.passes = 1;
  assert_int_equal(clb_symmetric_contraction_create(ctx, &d, &op), CLB_ERROR_ARGUMENT);
  assert_null(op);
  if (!strstr(clb_error(ctx), message)) fail_msg("%s: not %s", clb_error(ctx), message);
}

static void descriptions(void **state) {
  static const int twice[] = {1, 0, 1}, high[] = {5};
  clb_context *ctx = context_of(*state);
  clb_symmetric_contraction_desc good = describe(2, 2), d;
  clb_symmetric_paths paths;
  double u[4];
  clb_op *op;
#define WITH(member, value, message) d = good, d.member = value, refused(ctx, d, message)
  WITH(ell, -1, "ell is -1; it must be 0 ... 4");
  WITH(ell, 5, "ell is 5");
  WITH(correlation, 0, "correlation is 0; it must be 1 ... 4");
  WITH(correlation, 5, "correlation is 5");
  WITH(channels, 0, "channels is 0");
  WITH(n_species, 0, "n_species is 0");
  WITH(n_degrees, 0, "n_degrees is 0");
  WITH(n_degrees, 6, "n_degrees is 6");
  WITH(degrees, NULL, "degrees is NULL");
  WITH(degrees, twice, "degrees names 1 twice");
  d = good, d.degrees = high, d.n_degrees = 1, refused(ctx, d, "one of degrees is 5");
  WITH(layout_x, CLB_MERGED, "layout_x is 2");
  WITH(layout_z, (clb_layout)7, "layout_z is 7");
  WITH(gradients, CLB_OPERAND_Y, "gradients is 0x2");
  WITH(incoming, CLB_OPERAND_Z, "incoming is 0x8");
  WITH(storage, CLB_F16, "CLB_F64 goes with storage");
  d = good, d.n_species = 1 << 20, d.channels = 1000;
  refused(ctx, d, "11 paths of 1000 channels and 1048576 species are more than 2^31 - 1 weights");
#undef WITH
  good.passes = CLB_PASS_BIT(CLB_TRIPLE_BACKWARD);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, &op), CLB_ERROR_UNSUPPORTED);
  assert_int_equal(clb_symmetric_contraction_create(ctx, NULL, &op), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_create(ctx, &good, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 3, 1, &paths), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "degree is 3 and nu is 1"));
  assert_int_equal(clb_symmetric_contraction_paths(ctx, &good, 0, 3, &paths), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, -1, u, 4), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, u, 4), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "U of path 0 has 9 numbers"));
  assert_int_equal(clb_symmetric_contraction_basis(ctx, &good, 0, NULL, 9), CLB_ERROR_ARGUMENT);
}

/* What is wrong with the operands of a call. */
static void calls(void **state) {
  clb_context *ctx = context_of(*state);
  clb_symmetric_contraction_desc d = describe(1, 2);
  test_contraction *t = contraction_create(ctx, &d);
  contraction_data data = data_create(t, ROWS, SORTED, 7);
  int x = t->width[CLB_OPERAND_X], w = t->width[CLB_OPERAND_W], z = t->width[CLB_OPERAND_Z];
  clb_rows rx = spread(t, data.in[0], ROWS, x, 0, 0), rw = spread(t, data.in[1], 2, w, 0, 0),
           rz = spread(t, NULL, ROWS, z, 0, 0), rg = spread(t, data.in[2], ROWS, z, 0, 0),
           r_x = spread(t, NULL, ROWS, x, 0, 0), r_w = spread(t, NULL, 1, w / 2, 0, 0);
  clb_buffer *species;
  OK(ctx, clb_buffer_create(ctx, 4 * ROWS, &species));
  OK(ctx, clb_buffer_write(species, 0, data.species, 4 * ROWS));
  assert_int_equal(clb_symmetric_contraction_forward(t->op, ROWS, rx, rw, rz), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "the index of w is NULL"));
  rw.index = species;
  OK(ctx, clb_symmetric_contraction_forward(t->op, ROWS, rx, rw, rz));
  assert_int_equal(clb_symmetric_contraction_forward(t->op, 2 * ROWS, rx, rw, rz),
                   CLB_ERROR_ARGUMENT);
  clb_rows few = rw;
  few.offset = 2 * w; /* one row too few */
  assert_int_equal(clb_symmetric_contraction_forward(t->op, ROWS, rx, few, rz), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "of w"));
  assert_int_equal(clb_symmetric_contraction_backward(t->op, ROWS, rx, rw, rg, r_x, r_w),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "of g_w"));
  clb_rows indexed = rz;
  indexed.buffer = rw.buffer, indexed.index = species;
  assert_int_equal(clb_symmetric_contraction_backward(t->op, ROWS, rx, rw, rg, r_x, indexed),
                   CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "the index of g_w must be NULL"));
  assert_int_equal(clb_symmetric_contraction_forward(NULL, ROWS, rx, rw, rz), CLB_ERROR_ARGUMENT);
  clb_rows *all[] = {&rx, &rw, &rz, &rg, &r_x, &r_w};
  for (int i = 0; i < 6; i++) clb_buffer_destroy(&all[i]->buffer);
  clb_buffer_destroy(&species);
  data_destroy(&data);
  contraction_destroy(t);
}

int main(void) {
  static const device_test tests[] = {{"equivariance", equivariance, EVERYWHERE},
                                      {"derivatives", derivatives, EVERYWHERE},
                                      {"descriptions", descriptions, WHERE_THOROUGH},
                                      {"calls", calls, WHERE_THOROUGH}};
  return run_on_devices("symmetric_properties", tests, sizeof tests / sizeof *tests);
}
