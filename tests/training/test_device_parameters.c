/* tests/training/test_device_parameters.c - gradients and parameters that stay on the device are
   those that the host gets and gives, of every made model; what is refused. */
#include "tests/training/gradient_sample.h"

static opened open_trained(const char *device, int which, clb_dtype type) {
  return open_made(device, which,
                   &(clb_model_options){.dtype = type, .knots = CLB_NO_KNOTS, .trains = 1});
}

static clb_buffer *buffer_of(opened *o, clb_dtype type, int64_t n, const double *x) {
  clb_buffer *b;
  assert_int_equal(clb_buffer_create(o->ctx, (uint64_t)(n * (type == CLB_F64 ? 8 : 4)), &b),
                   CLB_OK);
  assert_int_equal(clb_numbers_write(b, type, 0, n, x), CLB_OK);
  return b;
}

/* Where numbers were NaN. */
static void gradient_on_device(opened *o, const sample *s, clb_buffer *b, clb_dtype type, int64_t n,
                               double *g) {
  double loss = NAN;
  if (clb_model_gradient(o->model, STRUCTURES, s->atoms, s->labels, &losses[0],
                         &(clb_gradient_results){.loss = &loss, .gradient_buffer = b}))
    fail_msg("%s", clb_error(o->ctx));
  assert_true(loss > 0);
  assert_int_equal(clb_numbers_read(b, type, 0, n, g), CLB_OK);
}

static void expect_near(const char *what, int64_t n, const double *a, const double *b,
                        double error) {
  const double off = part_off(n, a, b);
  if (!(off <= error)) fail_msg("%s: off by %.3g", what, off);
}

static void expect_same_on(const char *device, int which, clb_dtype type) {
  const double error = type == CLB_F64 ? 1e-15 : 3e-7;
  opened o = open_trained(device, which, type);
  sample s = make_sample(made_models[which].n_species);
  set_sample(&s);
  int64_t n;
  double *g = numbers_for(&o, &n), *x = numbers_for(&o, &n), *found = numbers_for(&o, &n);
  clb_buffer *b = buffer_of(&o, type, n, found);
  find(&o, &s, &losses[0], g);
  gradient_on_device(&o, &s, b, type, n, found);
  expect_near(device, n, found, g, error);
  assert_int_equal(clb_model_parameters(o.model, x), CLB_OK);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(x[i] * (1 + 1e-3 * sin((double)i)));
  loss_at(&o, &s, &losses[0], x);
  find(&o, &s, &losses[0], g);
  clb_buffer *values = buffer_of(&o, type, n, x);
  for (int64_t i = 0; i < n; i++) found[i] = 1;
  if (clb_model_set_parameters(o.model, found)) fail_msg("%s", clb_error(o.ctx));
  if (clb_model_take_parameters(o.model, values)) fail_msg("%s", clb_error(o.ctx));
  assert_int_equal(clb_numbers_write(values, type, 0, n, found), CLB_OK); /* it has copied them */
  find(&o, &s, &losses[0], found);
  expect_near("parameters on the device", n, found, g, 10 * error);
  assert_int_equal(clb_model_parameters(o.model, found), CLB_OK);
  assert_memory_equal(found, x, (size_t)n * sizeof *x);
  clb_buffer_destroy(&b);
  clb_buffer_destroy(&values);
  free(g);
  free(x);
  free(found);
  close_model(&o);
}

static void test_same(void **state) {
  (void)state;
  for (int i = 0; i < MADE_MODELS; i += SANITIZED ? 2 : 1) expect_same_on("cpu", i, CLB_F64);
  expect_same_on("cpu", 1, CLB_F32);
}

static void test_devices(void **state) {
  static const char *const devices[] = {"cpu:interpreter", "opencl:0:0", "opencl:1:0"};
  (void)state;
  for (int d = 0; d < (SANITIZED ? 2 : 3); d++)
    if (is_here(devices[d])) expect_same_on(devices[d], 1, CLB_F64);
}

/* A gradient of another context, where it lies there, twice; parameters likewise. */
static void expect_added(const char *device, const char *other, clb_dtype type) {
  opened o = open_trained(device, 1, type), there = open_trained(other, 1, type);
  int64_t n;
  double *x = numbers_for(&o, &n), *y = numbers_for(&o, &n), *found = numbers_for(&o, &n);
  for (int64_t i = 0; i < n; i++) x[i] = (double)(i % 97) / 8, y[i] = (double)(i % 89) / 4;
  clb_buffer *to = buffer_of(&o, type, n, x), *of = buffer_of(&there, type, n, y), *peer;
  if (clb_buffer_open_peer(o.ctx, of, &peer)) fail_msg("%s", clb_error(o.ctx));
  for (int i = 0; i < 2; i++)
    if (clb_model_add_gradient(o.model, peer, to)) fail_msg("%s", clb_error(o.ctx));
  assert_int_equal(clb_numbers_read(to, type, 0, n, found), CLB_OK);
  for (int64_t i = 0; i < n; i++) assert_true(found[i] == x[i] + 2 * y[i]);
  if (clb_model_take_parameters(o.model, peer)) fail_msg("%s", clb_error(o.ctx));
  assert_int_equal(clb_model_parameters(o.model, found), CLB_OK);
  assert_memory_equal(found, y, (size_t)n * sizeof *y);
  assert_int_equal(clb_model_add_gradient(o.model, of, to), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "belongs to another context"));
  assert_int_equal(clb_model_add_gradient(o.model, peer, NULL), CLB_ERROR_ARGUMENT);
  clb_buffer_destroy(&peer);
  clb_buffer_destroy(&of);
  clb_buffer_destroy(&to);
  free(x);
  free(y);
  free(found);
  close_model(&there);
  close_model(&o);
}

static void test_added(void **state) {
  (void)state;
  expect_added("cpu", "cpu", CLB_F64);
  expect_added("cpu", "cpu:interpreter", CLB_F32);
  expect_added("cpu:interpreter", "cpu", CLB_F64);
}

static void refuse_peer(clb_context *ctx, const clb_buffer *of, clb_status status,
                        const char *said) {
  clb_buffer *peer = NULL;
  assert_int_equal(clb_buffer_open_peer(ctx, of, &peer), status);
  assert_null(peer);
  if (!strstr(clb_error(ctx), said)) fail_msg("%s", clb_error(ctx));
}

static void test_peers_refused(void **state) {
  double x = 0;
  clb_context *cpu, *opencl;
  clb_buffer *on, *wrapped;
  (void)state;
  assert_int_equal(clb_context_create("cpu", &cpu), CLB_OK);
  assert_int_equal(clb_buffer_create(cpu, 8, &on), CLB_OK);
  assert_int_equal(clb_buffer_wrap(cpu, CLB_POINTER, &x, sizeof x, &wrapped), CLB_OK);
  refuse_peer(cpu, NULL, CLB_ERROR_ARGUMENT, "of is NULL");
  refuse_peer(cpu, wrapped, CLB_ERROR_ARGUMENT, "must be a buffer of clb_buffer_create");
  assert_int_equal(clb_buffer_open_peer(cpu, on, NULL), CLB_ERROR_ARGUMENT);
  if (!clb_context_create("opencl", &opencl)) {
    clb_buffer *there;
    assert_int_equal(clb_buffer_create(opencl, 8, &there), CLB_OK);
    refuse_peer(cpu, there, CLB_ERROR_UNSUPPORTED, "cpu cannot read memory of opencl");
    refuse_peer(opencl, there, CLB_ERROR_UNSUPPORTED, "cannot read memory of opencl");
    clb_buffer_destroy(&there);
  }
  clb_context_destroy(&opencl);
  clb_buffer_destroy(&wrapped);
  clb_buffer_destroy(&on);
  clb_context_destroy(&cpu);
}

static void test_refusals(void **state) {
  (void)state;
  opened o = open_trained("cpu", 1, CLB_F64), plain = open_made("cpu", 1, NULL);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  clb_buffer *small;
  double loss;
  const clb_gradient_results *r = &(clb_gradient_results){.loss = &loss};
  assert_int_equal(clb_buffer_create(o.ctx, 16, &small), CLB_OK);
  assert_int_equal(clb_model_take_parameters(o.model, small), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "the buffer is too small for the model's parameters"));
  assert_int_equal(clb_model_take_parameters(o.model, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_take_parameters(plain.model, small), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(plain.ctx), "without `trains`"));
  assert_int_equal(
      clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &losses[0],
                         &(clb_gradient_results){.loss = &loss, .gradient_buffer = small}),
      CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &losses[0], r),
                   CLB_OK);
  clb_buffer_destroy(&small);
  close_model(&plain);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same), cmocka_unit_test(test_devices), cmocka_unit_test(test_added),
      cmocka_unit_test(test_peers_refused), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
