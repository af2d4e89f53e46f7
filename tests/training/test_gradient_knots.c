/* tests/training/test_gradient_knots.c - gradients of models whose radial networks are computed at
   knots: against central differences of their loss however few knots there are, and with many
   against the networks themselves; on all devices; which models have knots. */
#include "tests/training/gradient_sample.h"

enum { FEW = 20, MANY = 2000, WIDE = 0, PLAIN = 1, MACE = 2 };

static opened open_with(const char *device, int which, clb_dtype type, int knots, int block) {
  return open_made(
      device, which,
      &(clb_model_options){.dtype = type, .knots = knots, .trains = 1, .block_atoms = block});
}

static int knots_of(const opened *o) {
  clb_model_info info;
  assert_int_equal(clb_model_describe(o->model, &info), CLB_OK);
  return info.knots;
}

/* Those of networks of lengths alone; in f64 they are asked for. */
static void test_which(void **state) {
  static const struct {
    int model, knots;
    clb_dtype type;
    bool some;
  } asked[] = {{PLAIN, FEW, CLB_F64, true},
               {PLAIN, 0, CLB_F64, false},
               {PLAIN, 0, CLB_F32, true},
               {MADE_AGNESI, FEW, CLB_F64, false}};
  (void)state;
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    opened o = open_with("cpu", asked[i].model, asked[i].type, asked[i].knots, 0);
    const int knots = knots_of(&o);
    assert_true(asked[i].some ? knots > (asked[i].knots ? FEW / 2 : 1000) : !knots);
    close_model(&o);
  }
}

static void test_differences(void **state) {
  (void)state;
  opened o = open_with("cpu", PLAIN, CLB_F64, FEW, 2);
  sample s = make_sample(made_models[PLAIN].n_species);
  set_sample(&s);
  assert_true(knots_of(&o) > 0);
  expect_slopes(&o, &s, &losses[0]);
  close_model(&o);
}

static double *gradient_with(const char *device, int which, clb_dtype type, int knots, int64_t *n) {
  return gradient_of(open_with(device, which, type, knots, 0), which, n);
}

/* Returns by what part of its size `other` differs, and frees it. */
static double distance(int64_t n, const double *g, double *other) {
  const double off = part_off(n, other, g);
  free(other);
  return off;
}

static void expect_near(const char *what, int which, double found, double most) {
  if (!(found <= most)) fail_msg("%s, model %d: off by %.2g of its size", what, which, found);
}

/* Errors of interpolation fall with the fourth power of the distance of knots. */
static void test_networks(void **state) {
  (void)state;
  int64_t n;
  double *g = gradient_with("cpu", WIDE, CLB_F64, CLB_NO_KNOTS, &n);
  const double half = distance(n, g, gradient_with("cpu", WIDE, CLB_F64, MANY / 2, &n)),
               many = distance(n, g, gradient_with("cpu", WIDE, CLB_F64, MANY, &n));
  if (!(many < 2e-9 && half > 1e-12 && many < half / 12)) fail_msg("%.3g, then %.3g", half, many);
  expect_near("f32", WIDE, distance(n, g, gradient_with("cpu", WIDE, CLB_F32, 0, &n)), 1e-5);
  free(g);
}

static void test_devices(void **state) {
  static const char *const devices[] = {"cpu:interpreter", "opencl:0:0", "opencl:1:0"};
  (void)state;
  for (int d = 0; d < (SANITIZED ? 2 : 3); d++) {
    const int which = d == 2 ? MACE : PLAIN;
    int64_t n;
    if (!is_here(devices[d])) continue;
    double *g = gradient_with("cpu", which, CLB_F64, FEW, &n);
    expect_near(devices[d], which,
                distance(n, g, gradient_with(devices[d], which, CLB_F64, FEW, &n)), 1e-12);
    free(g);
  }
}

/* The same bits again, also after other positions of the same edges. */
static void test_again(void **state) {
  (void)state;
  opened o = open_with("cpu", PLAIN, CLB_F32, 0, 2);
  sample s = make_sample(made_models[PLAIN].n_species), other = s;
  int64_t n;
  set_sample(&s);
  for (int i = 0; i < 24; i++) other.positions[0][i] *= 1.01;
  set_sample(&other);
  double *first = numbers_for(&o, &n), *again = numbers_for(&o, &n);
  find(&o, &s, &losses[0], first);
  find(&o, &other, &losses[0], again);
  assert_memory_not_equal(first, again, (size_t)n * sizeof *first);
  find(&o, &s, &losses[0], again);
  assert_memory_equal(first, again, (size_t)n * sizeof *first);
  free(first);
  free(again);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which),    cmocka_unit_test(test_differences),
      cmocka_unit_test(test_networks), cmocka_unit_test(test_devices),
      cmocka_unit_test(test_again),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
