/* tests/ops/tensor_product/test_tensor_product.c - the op by mathematical property, on every device
   that runs here. */
#include "tests/ops/tensor_product/product_problems.h"

/* ---- derivatives ---- */

static double dot(const double *a, const double *b, size_t n, double *size) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i], *size += fabs(a[i] * b[i]);
  return sum;
}

static int all_have_weights(test_product *p) {
  for (int i = 0; i < p->desc.n_instructions; i++)
    if (!p->desc.instructions[i].has_weight) return 0;
  return 1;
}

/* <g, T(x,y,w)> = <x, B_x> = <y, B_y> = <w, B_w>; the last where every path has a weight. */
static void adjoint(void **state) {
  static const int which[] = {SINGLE, SINGLE_SHARED, TANGLED, MODES, SHARED, CHANNELS, WIDE};
  for (int i = 0; i < many(*state, 3, 5, 7); i++) {
    test_product *p = get(*state, which[i]);
    for (int rows = 1; rows <= 33; rows += 32) {
      arrays a = arrays_create(p, rows, 1);
      double size = 0, form[4];
      run_pass(p, CLB_FORWARD, &a);
      form[LIKE_Z] = dot(a.in[LIKE_Z], a.out[0], count_like(p, LIKE_Z, rows), &size);
      run_pass(p, CLB_BACKWARD, &a);
      for (int k = 0; k < 3; k++) form[k] = dot(a.in[k], a.out[k], count_like(p, k, rows), &size);
      for (int k = 0; k < 3; k++)
        if (k != LIKE_W || all_have_weights(p))
          assert_true(fabs(form[k] - form[LIKE_Z]) <= 1e-14 * size);
      assert_true(form[LIKE_Z] != 0);
      arrays_destroy(&a);
    }
  }
}

/* What the next pass differentiates: the results of `pass` along its incoming gradients a b c or p
   q r s. */
static double along(test_product *p, int pass, const arrays *a, double *size) {
  double sum = 0;
  for (int o = 0; o < n_outputs[pass]; o++)
    sum += dot(a->in[(pass == CLB_BACKWARD ? 4 : 7) + o], a->out[o],
               count_like(p, output_like(pass, o), a->rows), size);
  return sum;
}

/* That sum is linear in each of x y w g (and a b c), so that a central difference is exact at any
   step. */
static void is_the_derivative(void **state, int pass) {
  enum { N = 9 };
  static const int which[] = {SINGLE,     SINGLE_SHARED, TANGLED, FEW,
                              FEW_SHARED, CHANNELS,      MODES,   SHARED};
  int before = pass - 1;
  for (int i = 0; i < many(*state, pass == CLB_TRIPLE_BACKWARD ? 0 : 2, 5, 8); i++) {
    test_product *p = get(*state, which[i]);
    arrays at = arrays_create(p, N, 2), to = arrays_create(p, N, 3), moved = arrays_create(p, N, 4);
    run_pass(p, pass, &at);
    for (int k = 0; k < n_outputs[pass]; k++) { /* operand k moves */
      size_t n = count_like(p, input_like[k], N);
      double s[2], size = 0, slope = dot(at.out[k], to.in[k], n, &size);
      for (int sign = 0; sign < 2; sign++) {
        for (int j = 0; j < MAX_IN; j++)
          memcpy(moved.in[j], at.in[j], sizeof(double) * count_like(p, input_like[j], N));
        for (size_t j = 0; j < n; j++) moved.in[k][j] += (sign ? -1 : 1) * to.in[k][j];
        run_pass(p, before, &moved);
        s[sign] = along(p, before, &moved, &size);
      }
      if (!(fabs((s[0] - s[1]) / 2 - slope) <= 1e-14 * size))
        fail_msg("product %d, operand %d: %.17g, not %.17g", which[i], k, slope, (s[0] - s[1]) / 2);
      assert_true(slope != 0);
    }
    arrays_destroy(&at);
    arrays_destroy(&to);
    arrays_destroy(&moved);
  }
}

static void double_backward(void **state) { is_the_derivative(state, CLB_DOUBLE_BACKWARD); }
static void triple_backward(void **state) { is_the_derivative(state, CLB_TRIPLE_BACKWARD); }

/* Row r has an incoming gradient in output r alone: only the weights of paths into it may have a
   gradient, and it must be right. */
static void one_path_at_a_time(void **state) {
  static const int which[] = {ONE_PATH, MODES, WIDE, MACE_LARGE};
  for (int t = 0; t < many(*state, 1, 2, 4); t++) {
    test_product *p = get(*state, which[t]);
    const dense_irreps *z = &p->dense->of[LIKE_Z];
    arrays a = arrays_create(p, z->n, 5);
    for (int r = 0; r < z->n; r++)
      for (int j = 0; j < z->dim; j++)
        if (j < z->term[r].at || j >= z->term[r].at + z->term[r].mul * (2 * z->term[r].l + 1))
          a.in[LIKE_Z][r * z->dim + j] = 0;
    run_pass(p, CLB_BACKWARD, &a);
    compare(p, CLB_BACKWARD, &a, NULL);
    for (int r = 0; r < z->n; r++)
      for (int q = 0; q < p->dense->n; q++)
        for (int j = 0; j < p->dense->path[q].n_weights; j++)
          assert_true((a.out[LIKE_W][r * p->width[LIKE_W] + p->dense->path[q].first + j] != 0) ==
                      (p->dense->path[q].is.out == r));
    arrays_destroy(&a);
  }
}

/* ---- rotations and inversion ----
   A term of x or y is a multiple of Y_l(p), times a pseudoscalar where its parity is not (-1)^l.
   Each term of T(x, y, w), contracted with Y_l of another point, must not change when all points
   are rotated by R or by -R; under -R the pseudoscalars change sign. */

enum { L = 3, HARMONICS = (L + 1) * (L + 1), MOVES = 3, POINTS = 64 };

static void
move(int how, const double *x,
     double *out) { /* 0: not; 1: about (1, 2, -2)/3 by 1 radian; 2: that and inversion */
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1);
  double d = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  for (int k = 0; k < 3; k++) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k] = how ? (how == 2 ? -1 : 1) *
                       (c * x[k] + s * (a[i] * x[j] - a[j] * x[i]) + (1 - c) * d * a[k])
                 : x[k];
  }
}

static void harmonics(clb_context *ctx, double (*y)[POINTS][HARMONICS]) {
  static const int degrees[] = {0, 1, 2, 3};
  clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                       .n_degrees = L + 1,
                                       .storage = CLB_F64,
                                       .arithmetic = CLB_F64,
                                       .passes = CLB_PASS_BIT(CLB_FORWARD)};
  clb_op *op;
  clb_rows in = {0}, out = in;
  double points[MOVES][POINTS][3], p[3];
  uint64_t seed = 6;
  for (int i = 0; i < POINTS; i++) {
    for (int k = 0; k < 3; k++) p[k] = test_random(&seed);
    for (int how = 0; how < MOVES; how++) move(how, p, points[how][i]);
  }
  OK(ctx, clb_spherical_harmonics_create(ctx, &desc, &op));
  OK(ctx, clb_buffer_create(ctx, sizeof points, &in.buffer));
  OK(ctx, clb_buffer_create(ctx, MOVES * sizeof *y, &out.buffer));
  OK(ctx, clb_buffer_write(in.buffer, 0, points, sizeof points));
  OK(ctx, clb_spherical_harmonics_forward(op, MOVES * POINTS, in, out));
  OK(ctx, clb_buffer_read(out.buffer, 0, y, MOVES * sizeof *y));
  clb_buffer_destroy(&in.buffer);
  clb_buffer_destroy(&out.buffer);
  clb_op_destroy(&op);
}

/* Element (u, m) of a term is that of point (first + u) mod POINTS. */
static double component(double (*y)[POINTS][HARMONICS], int how, const dense_irreps *irreps, int t,
                        int point, int m) {
  int l = irreps->term[t].l, pseudo = irreps->term[t].parity != (l % 2 ? -1 : 1);
  return y[how][point % POINTS][l * l + m] * (pseudo && how == 2 ? -1 : 1);
}

static void spread(double (*y)[POINTS][HARMONICS], int how, test_product *p, int like, int first,
                   double *out) {
  const dense_irreps *irreps = &p->dense->of[like];
  for (int t = 0; t < irreps->n; t++)
    for (int u = 0; u < irreps->term[t].mul; u++)
      for (int m = 0; m < 2 * irreps->term[t].l + 1; m++)
        out[how * irreps->dim + dense_at(irreps, t, p->dense->layout[like], u, m)] =
            component(y, how, irreps, t, first + 11 * t + u, m);
}

static void equivariance(void **state) {
  static double y[MOVES][POINTS][HARMONICS];
  static const int which[] = {SINGLE, ONE_PATH, MODES, SHARED, CHANNELS, MIXED, WIDE};
  harmonics(context_of(*state), y);
  for (int t = 0; t < many(*state, 2, 4, 7); t++) {
    test_product *p = get(*state, which[t]);
    const dense_irreps *z = &p->dense->of[LIKE_Z];
    int reached = 0;
    arrays a = arrays_create(p, MOVES, 7);
    for (int how = 0; how < MOVES; how++) {
      spread(y, how, p, LIKE_X, 0, a.in[LIKE_X]);
      spread(y, how, p, LIKE_Y, 40, a.in[LIKE_Y]);
      if (how && !p->desc.shared_weights)
        memcpy(a.in[LIKE_W] + how * p->width[LIKE_W], a.in[LIKE_W],
               sizeof(double) * (size_t)p->width[LIKE_W]);
    }
    run_pass(p, CLB_FORWARD, &a);
    for (int o = 0; o < z->n; o++)
      for (int u = 0; u < z->term[o].mul; u++) {
        double s[MOVES] = {0}, size = 0;
        for (int how = 0; how < MOVES; how++)
          for (int m = 0; m < 2 * z->term[o].l + 1; m++) {
            double here = a.out[0][how * z->dim + dense_at(z, o, p->dense->layout[LIKE_Z], u, m)] *
                          component(y, how, z, o, 50 + u, m);
            s[how] += here;
            size += fabs(here);
          }
        reached += size > 0;
        assert_true(fabs(s[1] - s[0]) <= 1e-13 * (1 + size) &&
                    fabs(s[2] - s[0]) <= 1e-13 * (1 + size));
      }
    assert_true(reached * 10 > z->n * 9);
    arrays_destroy(&a);
  }
}

/* ---- the programs ---- */

/* Each operand is loaded once and each result stored once, except for lanes without a channel. */
static void counts(void **state) {
  test_product *p = get(*state, MACE_LARGE);
  int in = p->width[LIKE_X] + p->width[LIKE_Y] + p->width[LIKE_W], all = in + p->width[LIKE_Z];
  clb_counts c;
  OK(p->ctx, clb_op_counts(op_of(p, CLB_BACKWARD), CLB_BACKWARD, &c));
  assert_true(c.loads >= all && c.loads <= 1.1 * all && c.stores >= in && c.stores <= 1.1 * in);
  assert_true(c.bytes_loaded == 8 * c.loads && c.bytes_stored == 8 * c.stores);
  assert_true(c.flops > 100000 && c.flops < 248000); /* fewer than without sharing of products */
}

int main(void) {
  static const device_test tests[] = {{"adjoint", adjoint, EVERYWHERE},
                                      {"double_backward", double_backward, EVERYWHERE},
                                      {"triple_backward", triple_backward, EVERYWHERE},
                                      {"one_path_at_a_time", one_path_at_a_time, EVERYWHERE},
                                      {"equivariance", equivariance, EVERYWHERE},
                                      {"counts", counts, WHERE_THOROUGH}};
  return run_on_devices("tensor_product", tests, sizeof tests / sizeof *tests);
}
