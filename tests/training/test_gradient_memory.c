/* tests/training/test_gradient_memory.c - gradients of batches of much the same size allocate
   nothing on the device after the first one: with a driver, allocating takes as long as a step. */
#include "tests/training/gradient_sample.h"

enum { MOST = 64 };

static const clb_backend *genuine;
static int allocated;

static clb_status count_alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  allocated++;
  return genuine->alloc(device, bytes, memory);
}

/* n structures, of which so many more are the largest. */
static void take_batch(opened *o, const sample *s, int n, int larger) {
  clb_model_atoms atoms[MOST];
  clb_labels labels[MOST];
  double loss = NAN;
  for (int i = 0; i < n; i++) {
    const int which = i < larger ? 0 : i % STRUCTURES;
    atoms[i] = s->atoms[which];
    labels[i] = s->labels[which];
  }
  if (clb_model_gradient(o->model, n, atoms, labels, &losses[0],
                         &(clb_gradient_results){.loss = &loss}))
    fail_msg("%s", clb_error(o->ctx));
  assert_true(loss > 0);
}

/* In one block; and in several, of which the largest may once be much larger. */
static void batches_like_it(void **state) {
  static const int n[] = {48, 50, 47, 48, 49, 46, 50}, larger[] = {0, 1, 3, 3, 0, 3, 0};
  (void)state;
  for (int blocks = 0; blocks < 2; blocks++) {
    opened o = open_made(
        "cpu", 1,
        &(clb_model_options){.knots = CLB_NO_KNOTS, .trains = 1, .block_atoms = blocks ? 55 : 0});
    sample s = make_sample(made_models[1].n_species);
    set_sample(&s);
    genuine = o.ctx->device->backend;
    clb_backend counting = *genuine;
    counting.alloc = count_alloc;
    o.ctx->device->backend = &counting;
    allocated = 0;
    take_batch(&o, &s, n[0], larger[0]);
    assert_true(allocated > 0);
    int grown = 0;
    for (size_t i = 1; i < sizeof n / sizeof *n; i++) {
      allocated = 0;
      take_batch(&o, &s, n[i], larger[i]);
      grown += allocated > 0;
      if (grown > blocks) fail_msg("batch %zu allocated %d times", i, allocated);
    }
    o.ctx->device->backend = genuine;
    close_model(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(batches_like_it)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
