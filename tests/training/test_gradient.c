/* tests/training/test_gradient.c - the gradient of a loss by a model's parameters against central
   differences of the loss, of every made model and of converted ones; the same gradient on other
   devices and in f32; parameters that change; calls that are refused. */
#include "tests/training/gradient_sample.h"

#include "models/training/training.h"

static opened open_trained_as(const char *device, const clb_limits *limits, int which,
                              clb_dtype type) {
  return open_made_as(device, limits, which,
                      &(clb_model_options){.dtype = type, .knots = CLB_NO_KNOTS, .trains = 1});
}
static opened open_trained(const char *device, int which, clb_dtype type) {
  return open_trained_as(device, NULL, which, type);
}

static void test_differences(void **state) {
  (void)state;
  for (int i = 0; i < MADE_MODELS; i++) {
    if (SANITIZED && i % 3) continue;
    opened o = open_trained("cpu", i, CLB_F64);
    sample s = make_sample(made_models[i].n_species);
    set_sample(&s);
    for (int k = 0; k < LOSSES; k++)
      if (!i || k == i % LOSSES) expect_slopes(&o, &s, &losses[k]);
    close_model(&o);
  }
}

/* Of Allegro, in blocks of two atoms: arrays of edges that several layers write. */
static void test_allegro(void **state) {
  (void)state;
  opened o = open_data(
      "cpu", NULL, SANITIZED ? "allegro/odd" : "allegro/bessel",
      &(clb_model_options){.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .trains = 1, .block_atoms = 2});
  sample s = make_sample(3);
  set_sample(&s);
  expect_slopes(&o, &s, &losses[0]);
  close_model(&o);
}

/* ---- devices ---- */

/* The same, but for `most` of its size. */
static void expect_equal_gradient(const char *device, const clb_limits *limits, int which,
                                  clb_dtype type, double most) {
  int64_t n;
  double *wanted = gradient_of(open_trained("cpu", which, CLB_F64), which, &n),
         *found = gradient_of(open_trained_as(device, limits, which, type), which, &n);
  const double off = part_off(n, found, wanted);
  if (!(off <= most)) fail_msg("%s, model %d: off by %.2g of its size", device, which, off);
  free(wanted);
  free(found);
}

static void test_f32(void **state) {
  (void)state;
  for (int i = 0; i < MADE_MODELS; i += 3) expect_equal_gradient("cpu", NULL, i, CLB_F32, 1e-4);
}

static void test_interpreter(void **state) {
  (void)state;
  expect_equal_gradient("cpu:interpreter", NULL, 1, CLB_F64, 1e-12);
  expect_equal_gradient("cpu:interpreter", NULL, MADE_AGNESI, CLB_F64, 1e-12);
  /* convolutions walk once over edges in double backward */
  const clb_limits *nvidia = &device_limits[LIMITS_NVIDIA].limits;
  expect_equal_gradient("cpu:interpreter", nvidia, 1, CLB_F64, 1e-12);
  expect_equal_gradient("cpu:interpreter", nvidia, 0, CLB_F32, 1e-4);
}

static void test_opencl(void **state) {
  static const char *const devices[] = {"opencl:0:0", "opencl:1:0"};
  (void)state;
  for (int d = 0; d < (SANITIZED ? 1 : 2); d++)
    if (is_here(devices[d]))
      expect_equal_gradient(devices[d], NULL, d ? MADE_AGNESI : 1, CLB_F64, 1e-12);
}

/* ---- calls ---- */

/* The same batch again gives the same bits, also after another one and other parameters. */
static void test_again(void **state) {
  (void)state;
  opened o = open_trained("cpu", 2, CLB_F64);
  sample s = make_sample(made_models[2].n_species), other = s;
  int64_t n;
  set_sample(&s);
  for (int i = 0; i < 24; i++) other.positions[0][i] *= 1.05;
  set_sample(&other);
  double *first = numbers_for(&o, &n), *again = numbers_for(&o, &n), *x = numbers_for(&o, &n);
  const double loss = find(&o, &s, &losses[0], first);
  assert_int_equal(clb_model_parameters(o.model, x), CLB_OK);
  x[0] += 0.1;
  assert_true(loss_at(&o, &other, &losses[1], x) != loss);
  x[0] -= 0.1;
  assert_int_equal(clb_model_parameters(o.model, again), CLB_OK);
  assert_true(again[0] != x[0]);
  x[0] = again[0] - 0.1;
  assert_int_equal(clb_model_set_parameters(o.model, x), CLB_OK);
  find(&o, &s, &losses[0], again);
  for (int64_t i = 0; i < n; i++)
    assert_true(fabs(first[i] - again[i]) <= 1e-9 * (1 + fabs(first[i])));
  find(&o, &s, &losses[0], x);
  assert_memory_equal(x, again, (size_t)n * sizeof *x);
  free(first);
  free(again);
  free(x);
  close_model(&o);
}

/* ---- what the host reads ---- */

/* What the driver is asked for: r and w, k for kernels and products, L for the kernel of the loss.
 */
static const clb_backend *driver;
static const clb_module *loss_module;
static char asked[1 << 14];
static size_t n_asked;

static void ask(char what) {
  assert_true(n_asked + 1 < sizeof asked);
  asked[n_asked++] = what;
}

static clb_status read_asked(clb_device *d, const clb_memory *from, uint64_t offset, void *to,
                             uint64_t bytes) {
  ask('r');
  return driver->read(d, from, offset, to, bytes);
}

static clb_status write_asked(clb_device *d, const clb_memory *to, uint64_t offset,
                              const void *from, uint64_t bytes) {
  ask('w');
  return driver->write(d, to, offset, from, bytes);
}

static clb_status launch_asked(clb_device *d, clb_module *module, int64_t groups,
                               const clb_arg *args, int n_args) {
  ask(module == loss_module ? 'L' : 'k');
  return driver->launch(d, module, groups, args, n_args);
}

static clb_status wait_asked(clb_device *d) {
  ask('.');
  return driver->wait(d);
}

/* From the first layer to the last sweep the host waits for nothing; then it reads results. */
static void test_reads(void **state) {
  (void)state;
  opened o = open_trained("cpu", 1, CLB_F64);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  int64_t n;
  double *g = numbers_for(&o, &n);
  find(&o, &s, &losses[0], g);
  clb_device *d = o.model->ctx->device;
  driver = d->backend;
  clb_backend asking = *driver;
  asking.read = read_asked;
  asking.write = write_asked;
  asking.launch = launch_asked;
  asking.wait = wait_asked;
  loss_module = o.model->training.loss.op->kernel[0]->module;
  d->backend = &asking;
  find(&o, &s, &losses[0], g);
  d->backend = driver;
  asked[n_asked] = 0;
  char *loss = strchr(asked, 'L');
  assert_non_null(loss);
  assert_null(strchr(loss + 1, 'L'));
  const size_t after = strspn(loss + 1, "k");
  size_t before = 0;
  while (loss - before > asked && loss[-(ptrdiff_t)before - 1] == 'k') before++;
  if (before < 10 || after < 10 || strcmp(loss + 1 + after, "rr")) fail_msg("%s", asked);
  free(g);
  close_model(&o);
}

/* ---- predictions ---- */

static void add_error(double errors[3], double d) {
  if (isnan(d)) return;
  errors[0] += 1, errors[1] += fabs(d), errors[2] += d * d;
}

/* Those that are asked for are those of clb_model_compute_many, and errors are sums of theirs. */
static void test_predictions(void **state) {
  (void)state;
  opened o = open_trained("cpu", 1, CLB_F64);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  s.forces[0][4] = s.stress[0][5] = NAN;
  s.labels[1].energy = NULL;
  double e[2][STRUCTURES], f[2][36], stress[2][9 * STRUCTURES] = {{0}}, found[9],
                                                   errors[3][3] = {{0}};
  clb_model_results many[STRUCTURES];
  int64_t at = 0;
  for (int g = 0; g < STRUCTURES; at += 3 * s.atoms[g++].n)
    many[g] = (clb_model_results){
        .energy = &e[0][g], .forces = f[0] + at, .stress = g == 1 ? NULL : stress[0] + 9 * g};
  if (clb_model_compute_many(o.model, STRUCTURES, s.atoms, many)) fail_msg("%s", clb_error(o.ctx));
  if (clb_model_gradient(
          o.model, STRUCTURES, s.atoms, s.labels, &losses[1],
          &(clb_gradient_results){
              .energies = e[1], .forces = f[1], .stresses = stress[1], .errors = found}))
    fail_msg("%s", clb_error(o.ctx));
  assert_memory_equal(e[0], e[1], sizeof e[0]);
  assert_memory_equal(f[0], f[1], sizeof f[0]);
  assert_memory_equal(stress[0], stress[1], sizeof stress[0]);
  const double *force = f[0];
  for (int g = 0; g < STRUCTURES; g++) {
    const clb_labels *l = &s.labels[g];
    const int64_t n = s.atoms[g].n;
    if (l->energy) add_error(errors[0], (e[0][g] - *l->energy) / (double)n);
    for (int64_t i = 0; i < 3 * n; i++, force++)
      if (l->forces) add_error(errors[1], *force - l->forces[i]);
    for (int k = 0; k < 9 && l->stress; k++)
      add_error(errors[2], stress[0][9 * g + k] - l->stress[k]);
  }
  for (int k = 0; k < 9; k++)
    if (!(fabs(found[k] - errors[k / 3][k % 3]) <= 1e-13 * found[k]))
      fail_msg("errors[%d][%d] is %.17g, not %.17g", k / 3, k % 3, found[k], errors[k / 3][k % 3]);
  close_model(&o);
}

/* Predictions that are not finite are named, whether they are asked for or not. */
static void test_not_finite(void **state) {
  (void)state;
  opened o = open_trained("cpu", 1, CLB_F64);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  int64_t n;
  double *x = numbers_for(&o, &n), *g = numbers_for(&o, &n), loss;
  clb_tensor_info t;
  assert_int_equal(clb_model_parameters(o.model, x), CLB_OK);
  for (int64_t k = 0; !clb_model_tensor(o.model, k, &t); k++)
    for (int64_t i = t.first; i < t.first + t.count; i++)
      if (strstr(t.name, "readout") || !strcmp(t.name, "species_scale")) x[i] *= 1e200;
  assert_int_equal(clb_model_set_parameters(o.model, x), CLB_OK);
  for (int k = 0; k < 2; k++) {
    const clb_gradient_results r = {.loss = &loss, .gradient = k ? g : NULL};
    assert_int_equal(clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &losses[0], &r),
                     CLB_ERROR_ARGUMENT);
    if (!strstr(clb_error(o.ctx), "] comes out as ")) fail_msg("%s", clb_error(o.ctx));
  }
  free(x);
  free(g);
  close_model(&o);
}

/* ---- blocks ---- */

static void expect_equal_blocks(opened *whole, opened *parts, sample *s, int number) {
  int64_t n;
  double size = 0, apart = 0;
  set_sample(s);
  double *expected = numbers_for(whole, &n), *got = numbers_for(parts, &n);
  const double loss = find(whole, s, &losses[0], expected);
  assert_true(fabs(find(parts, s, &losses[0], got) - loss) <= 1e-12 * loss);
  for (int64_t k = 0; k < n; k++) {
    size += expected[k] * expected[k];
    apart += (got[k] - expected[k]) * (got[k] - expected[k]);
  }
  if (!(apart <= 1e-24 * size))
    fail_msg("model %d: blocks differ by %g", number, sqrt(apart / size));
  free(expected);
  free(got);
}

/* Blocks of two atoms, and of one. */
static void test_blocks(void **state) {
  (void)state;
  for (int i = 0; i < MADE_MODELS; i++) {
    if (SANITIZED && i % 3 != 1) continue;
    opened whole = open_trained("cpu", i, CLB_F64),
           parts = open_made(
               "cpu", i,
               &(clb_model_options){
                   .dtype = CLB_F64, .knots = CLB_NO_KNOTS, .trains = 1, .block_atoms = 2 - i % 2});
    sample s = make_sample(made_models[i].n_species);
    expect_equal_blocks(&whole, &parts, &s, i);
    close_model(&whole);
    close_model(&parts);
  }
}

/* Models of three species with what no made model has. */
static void test_converted(void **state) {
  (void)state;
  static const struct {
    const char *file, *head;
  } models[] = {{"mace/gated.model", NULL},
                {"mace/readouts.model", "second"},
                {"nequip/pairs.ckpt", NULL},
                {"allegro/spline.ckpt", NULL},
                {"sevennet/equflash_v2_bilinear.pth", NULL},
                {"mace/charged.model", NULL}};
  clb_model_options options = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS, .trains = 1};
  for (int i = 0; i < (int)(sizeof models / sizeof *models); i++) {
    if (SANITIZED && i % 4) continue;
    outcome converted =
        run_convert("--head", models[i].head,
                    format("%s/%s", getenv("CLB_TEST_DATA"), models[i].file), convert_out);
    if (converted.status) fail_msg("%s", converted.err);
    forget(&converted);
    opened whole = open_file("cpu:interpreter", convert_out, &options);
    options.block_atoms = 2;
    opened parts =
        open_file("cpu:interpreter", convert_out, &options); /* nothing unwritten is read */
    options.block_atoms = 0;
    sample s = make_sample(3);
    set_sample(&s);
    expect_slopes(&whole, &s, &losses[i % LOSSES]);
    expect_equal_blocks(&whole, &parts, &s, i);
    close_model(&whole);
    close_model(&parts);
  }
}

static void expect_refusal(opened *o, clb_status s, const char *what) {
  assert_int_equal(s, CLB_ERROR_ARGUMENT);
  if (!strstr(clb_error(o->ctx), what)) fail_msg("'%s', not '%s'", clb_error(o->ctx), what);
}

static void test_refusals(void **state) {
  (void)state;
  opened o = open_trained("cpu", 1, CLB_F64), plain = open_made("cpu", 1, NULL);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  double loss, *x, nothing = 0;
  int64_t n;
  const clb_gradient_results r = {.loss = &loss};
#define CALL(model, count) clb_model_gradient(model, count, s.atoms, s.labels, &losses[0], &r)
  expect_refusal(&plain, CALL(plain.model, 3), "without `trains`");
  expect_refusal(&plain, clb_model_parameters(plain.model, &nothing), "without `trains`");
  expect_refusal(&plain, clb_model_set_parameters(plain.model, &nothing), "without `trains`");
  expect_refusal(&o, CALL(o.model, 0), "there are no structures");
  s.labels[1].stress = s.stress[1];
  expect_refusal(&o, CALL(o.model, 3), "structure 1 has a stress, but no cell");
  s.labels[1].stress = NULL;
  s.species[2][1] = 7;
  expect_refusal(&o, CALL(o.model, 3), "structure 2: species[1] is 7");
  s.species[2][1] = 0;
#undef CALL
  x = numbers_for(&o, &n);
  expect_refusal(&o, clb_model_set_parameters(o.model, x), "number 0 of tensor '");
  free(x);
  close_model(&plain);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_differences), cmocka_unit_test(test_f32),
      cmocka_unit_test(test_interpreter), cmocka_unit_test(test_opencl),
      cmocka_unit_test(test_again),       cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_reads),       cmocka_unit_test(test_predictions),
      cmocka_unit_test(test_not_finite),  cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_converted),   cmocka_unit_test(test_allegro)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
