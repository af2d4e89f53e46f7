/* tests/training/test_gpu_training.c - what a step of training asks of CUDA's or HIP's driver: it
   reads nothing and waits for nothing, once it has seen the structures. On fake drivers, whose
   kernels do nothing. */
#define _GNU_SOURCE
#include "tests/fakes/find_fakes.h"
#include "tests/training/gradient_sample.h"

static fake_driver fake;
static int reads, waits, writes;

static void count_call(const char *function) {
  reads += strstr(function, "MemcpyDtoH") != NULL;
  writes += strstr(function, "MemcpyHtoD") != NULL;
  waits += strstr(function, "Synchronize") != NULL;
}

typedef struct {
  opened o;
  clb_optimizer *optimizer;
  clb_buffer *values, *gradient;
} trained;

/* What layers keep on the host is not trained. */
static trained start(const char *device) {
  trained t = {.o = open_made(device, 1, &(clb_model_options){.trains = 1})};
  clb_optimizer_tensor tensor[64];
  clb_tensor_info info;
  int64_t n;
  int used = 0;
  double *x = numbers_for(&t.o, &n);
  assert_int_equal(clb_model_parameters(t.o.model, x), CLB_OK);
  assert_int_equal(clb_buffer_create(t.o.ctx, (uint64_t)n * 4, &t.values), CLB_OK);
  assert_int_equal(clb_buffer_create(t.o.ctx, (uint64_t)n * 4, &t.gradient), CLB_OK);
  assert_int_equal(clb_numbers_write(t.values, CLB_F32, 0, n, x), CLB_OK);
  for (int64_t i = 0; !clb_model_tensor(t.o.model, i, &info); i++)
    if (!strncmp(info.name, "species_", 8) || strstr(info.name, "bessel") || used == 64)
      assert_int_equal(clb_model_freeze(t.o.model, i), CLB_OK);
    else
      tensor[used++] = (clb_optimizer_tensor){.rows = info.count,
                                              .columns = 1,
                                              .parameters = {t.values, info.first},
                                              .gradients = {t.gradient, info.first}};
  const clb_optimizer_group group = {.rule = CLB_ADAMW, .lr = 1e-3};
  const clb_optimizer_desc desc = {.tensors = tensor,
                                   .n_tensors = used,
                                   .groups = &group,
                                   .n_groups = 1,
                                   .parameters = CLB_F32,
                                   .gradients = CLB_F32,
                                   .check_finite = 1};
  if (clb_optimizer_create(t.o.ctx, &desc, &t.optimizer)) fail_msg("%s", clb_error(t.o.ctx));
  free(x);
  return t;
}

static void step(trained *t, const sample *s, double lr) {
  const clb_gradient_results r = {.gradient_buffer = t->gradient, .later = 1};
  const clb_optimizer_group group = {.rule = CLB_ADAMW, .lr = lr};
  clb_status status =
      clb_model_gradient(t->o.model, STRUCTURES, s->atoms, s->labels, &losses[0], &r);
  if (!status) status = clb_optimizer_set_group(t->optimizer, 0, &group);
  if (!status) status = clb_optimizer_step(t->optimizer);
  if (!status) status = clb_model_take_parameters(t->o.model, t->values);
  if (status) fail_msg("%s", clb_error(t->o.ctx));
}

static void steps_on(const char *device) {
  enum { STEPS = 20 }; /* with the sixteenth of a kind it is recorded */
  fake = (fake_driver){.left = -1, .devices = 1, .memory = (size_t)1 << 34};
  if (!find_fake_gpus(&fake)) skip_because("CLB_TEST_FAKE_GPU does not name the fake drivers");
  trained t = start(device);
  sample s = make_sample(made_models[1].n_species), other = s;
  set_sample(&s);
  set_sample(&other);
  other.positions[0][0] += 0.1;
  double norms[STEPS], loss[STEPS];
  for (int i = 0; i < STEPS; i++) {
    fake.called = i > 3 ? count_call : NULL; /* memory has grown */
    reads = waits = writes = 0;
    step(&t, i % 2 ? &s : &other, 1e-3 / (1 + i));
    fake.called = NULL;
    if (i > 3 && (reads || waits || !writes))
      fail_msg("step %d: %d reads, %d waits, %d writes", i, reads, waits, writes);
  }
  assert_int_equal(clb_model_losses(t.o.model, STEPS, loss, NULL, NULL), CLB_OK);
  assert_int_equal(clb_optimizer_norms(t.optimizer, STEPS, norms), CLB_OK);
  clb_optimizer_destroy(&t.optimizer);
  clb_buffer_destroy(&t.values);
  clb_buffer_destroy(&t.gradient);
  close_model(&t.o);
  if (fake.mistake[0]) fail_msg("%s", fake.mistake);
  assert_int_equal(fake.alive, 0);
}

static void cuda(void **state) {
  (void)state;
  steps_on("cuda");
}

static void hip(void **state) {
  (void)state;
  steps_on("hip");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cuda), cmocka_unit_test(hip)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
