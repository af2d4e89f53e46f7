/* tests/training/test_gradient_replays.c - the gradients of batches that are replayed: the bits of
   launches one by one, and, to rounding, those of batches without null edges; whatever batches are
   in between. */
#include "tests/training/gradient_sample.h"

#include "models/model_state.h"

/* repeats: as on a GPU, but recorded with their second use. */
static opened open_one(const char *device, int which, bool repeats) {
  opened o = open_made(device, which, &(clb_model_options){.dtype = CLB_F64, .trains = 1});
  o.model->training.recorded_use = repeats ? 2 : 0;
  return o;
}

static void forget_steps(opened *o) {
  for (int i = 0; i < CLB_BUCKETS; i++) {
    clb_recording_destroy(&o->model->training.bucket[i].step.recording);
    o->model->training.bucket[i].step.last = 0;
  }
}

static int recordings(const opened *o) {
  int n = 0;
  for (int i = 0; i < CLB_BUCKETS; i++) n += o->model->training.bucket[i].step.recording != NULL;
  return n;
}

/* Also frequencies, for which other kernels are made. */
static void change(opened *o, double *x, bool frequencies) {
  clb_tensor_info t;
  for (int64_t k = 0; !clb_model_tensor(o->model, k, &t); k++)
    if (frequencies || strcmp(t.name, "bessel_frequencies"))
      for (int64_t i = 0; i < t.count; i++) x[t.first + i] *= 1 + 1e-3 * (double)(i % 3);
}

static void move(sample *s, int64_t t) {
  uint64_t seed = (uint64_t)t;
  for (int g = 0; g < STRUCTURES; g++)
    for (int i = 0; i < 24; i++) s->positions[g][i] += 0.02 * test_random(&seed);
  s->energy[1] += 0.1;
  s->species[0][1] = (s->species[0][1] + 1) % 2;
}

/* Another loss without a gradient, and fewer structures. */
static void find_others(opened *o, const sample *s) {
  double loss;
  find(o, s, &losses[1], NULL);
  if (clb_model_gradient(o->model, 2, s->atoms, s->labels, &losses[0],
                         &(clb_gradient_results){.loss = &loss}))
    fail_msg("%s", clb_error(o->ctx));
}

/* Positions, species, labels and parameters change; other batches are in between. */
static void replays_on(const char *device, int which, int steps) {
  static const int recorded[] = {0, 1, 3}; /* of a step's first batch; later of all three */
  opened o = open_one(device, which, true), exact = open_one("cpu", which, false);
  sample s = make_sample(2);
  int64_t n;
  double *g = numbers_for(&o, &n), *wanted = numbers_for(&o, &n), *x = numbers_for(&o, &n);
  set_sample(&s);
  move(&s, 1); /* to more than 64 edges */
  assert_int_equal(clb_model_parameters(o.model, x), CLB_OK);
  for (int t = 0; t < steps; t++, move(&s, t)) {
    change(&o, x, t == 3);
    if (clb_model_set_parameters(o.model, x)) fail_msg("%s", clb_error(o.ctx));
    assert_int_equal(clb_model_set_parameters(exact.model, x), CLB_OK);
    const double loss = find(&o, &s, &losses[0], g);
    assert_true(fabs(loss - find(&exact, &s, &losses[0], wanted)) < 1e-9 * loss);
    assert_true(exact.model->net.n_edges < 128 && o.model->net.n_edges == 128);
    assert_true(part_off(n, g, wanted) < 1e-10);
    assert_int_equal(recordings(&o), recorded[t % 3]);
    find_others(&o, &s);
    if (t % 3 < 2) continue;
    forget_steps(&o);
    assert_true(find(&o, &s, &losses[0], wanted) == loss);
    assert_memory_equal(g, wanted, (size_t)n * sizeof *g);
  }
  assert_int_equal(recordings(&exact), 0);
  free(g), free(wanted), free(x);
  close_model(&exact);
  close_model(&o);
}

static void test_replays(void **state) {
  (void)state;
  replays_on("cpu", 1, 6);
  replays_on("cpu:interpreter", 1, 3);
  if (!SANITIZED && is_here("opencl:0:0")) replays_on("opencl:0:0", MADE_AGNESI, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_replays)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
