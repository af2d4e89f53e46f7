/* tests/training/test_gradient_later.c - losses that the host reads later are those that it waits
   for, to the bit, and so are gradients of structures whose edges it has counted before; of tensors
   that are frozen it reads nothing. */
#include "tests/training/gradient_sample.h"

#include "models/model_state.h"

enum { BATCHES = 7 };

static opened open_one(const char *device, int which, int64_t block_atoms) {
  return open_made(device, which,
                   &(clb_model_options){.dtype = CLB_F64, .trains = 1, .block_atoms = block_atoms});
}

/* Batch k: some of the structures, in another order. */
static int64_t choose(const sample *s, int k, clb_model_atoms *atoms, clb_labels *labels) {
  const int n = 1 + k % STRUCTURES;
  for (int i = 0; i < n; i++) {
    atoms[i] = s->atoms[(k + i) % STRUCTURES];
    labels[i] = s->labels[(k + i) % STRUCTURES];
  }
  return n;
}

static void compute(opened *o, const sample *s, int k, const clb_gradient_results *r) {
  clb_model_atoms atoms[STRUCTURES];
  clb_labels labels[STRUCTURES];
  const int64_t n = choose(s, k, atoms, labels);
  if (clb_model_gradient(o->model, n, atoms, labels, &losses[k % LOSSES], r))
    fail_msg("%s", clb_error(o->ctx));
}

/* Of the batches, one after the other: by a model that has seen nothing. */
static double *gradients_of(opened *o, const sample *s, int64_t n, double *loss, double *terms,
                            double *errors) {
  double *g = malloc(BATCHES * (size_t)n * sizeof *g);
  assert_non_null(g);
  for (int k = 0; k < BATCHES; k++)
    compute(o, s, k,
            &(clb_gradient_results){loss + k, terms + 3 * k, g + k * n, NULL, NULL, NULL,
                                    errors + 9 * k, NULL, 0});
  return g;
}

static void expect_later(const char *device, int which, int64_t block_atoms) {
  opened o = open_one(device, which, block_atoms);
  sample s = make_sample(made_models[which].n_species);
  set_sample(&s);
  int64_t n;
  double *found = numbers_for(&o, &n), loss[2][BATCHES], terms[2][3 * BATCHES],
         errors[2][9 * BATCHES], other;
  double *g = gradients_of(&o, &s, n, loss[0], terms[0], errors[0]);
  clb_buffer *b;
  assert_int_equal(clb_buffer_create(o.ctx, (uint64_t)n * sizeof *g, &b), CLB_OK);
  const clb_gradient_results later = {.gradient_buffer = b, .later = 1};
  for (int k = 0; k < BATCHES; k++) {
    compute(&o, &s, k, &later);
    assert_int_equal(clb_numbers_read(b, CLB_F64, 0, n, found), CLB_OK);
    assert_true(part_off(n, found, g + k * n) < 1e-15);
    if (k == 4) compute(&o, &s, 2, &(clb_gradient_results){.loss = &other});
    if (k == 2) assert_int_equal(clb_model_losses(o.model, 2, loss[1], NULL, errors[1]), CLB_OK);
  }
  assert_true(other == loss[0][2]);
  assert_int_equal(clb_model_losses(o.model, BATCHES - 1, NULL, NULL, NULL), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(o.ctx), "5 batches have losses"));
  assert_int_equal(
      clb_model_losses(o.model, BATCHES - 2, loss[1] + 2, terms[1] + 6, errors[1] + 18), CLB_OK);
  assert_memory_equal(loss[0], loss[1], sizeof *loss);
  assert_memory_equal(terms[0] + 6, terms[1] + 6, sizeof *terms - 6 * sizeof **terms);
  assert_memory_equal(errors[0], errors[1], sizeof *errors);
  assert_int_equal(clb_model_losses(o.model, 1, &other, NULL, NULL), CLB_ERROR_ARGUMENT);
  clb_buffer_destroy(&b);
  free(found);
  free(g);
  close_model(&o);
}

static void test_later(void **state) {
  (void)state;
  expect_later("cpu", 1, 0);
  expect_later("cpu", 1, 2);
  expect_later("cpu:interpreter", 1, 0);
}

/* An atom that moves changes the edges: what was counted before is not taken for them. */
static void test_moved(void **state) {
  (void)state;
  opened o = open_one("cpu", 1, 0), fresh = open_one("cpu", 1, 0);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  int64_t n, edges = -1, changes = 0;
  double *g = numbers_for(&o, &n), *wanted = numbers_for(&o, &n);
  for (int t = 0; t < 6; t++, s.positions[t % STRUCTURES][0] += 0.9) {
    for (int again = 0; again < 2; again++) {
      const double loss = find(&o, &s, &losses[0], g);
      clb_known_edges_free(&fresh.model->edges.known);
      assert_true(loss == find(&fresh, &s, &losses[0], wanted));
      assert_memory_equal(g, wanted, (size_t)n * sizeof *g);
    }
    changes += edges != o.model->net.n_edges;
    edges = o.model->net.n_edges;
  }
  assert_true(changes > 2);
  assert_int_equal(o.model->edges.known.n, STRUCTURES + 5);
  free(g);
  free(wanted);
  close_model(&o);
  close_model(&fresh);
}

/* A count that is wrong is found when the loss is read, if not before. */
static void test_wrong_count(void **state) {
  (void)state;
  opened o = open_one("cpu", 1, 0);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  double loss;
  find(&o, &s, &losses[0], NULL);
  o.model->edges.known.received[0]++;
  assert_int_equal(clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &losses[0],
                                      &(clb_gradient_results){.loss = &loss}),
                   CLB_ERROR_DRIVER);
  assert_non_null(strstr(clb_error(o.ctx), "a batch that had"));
  close_model(&o);
}

static void test_refusals(void **state) {
  (void)state;
  opened o = open_one("cpu", 1, 0), plain = open_made("cpu", 1, NULL);
  sample s = make_sample(made_models[1].n_species);
  set_sample(&s);
  double x[9];
  const clb_gradient_results wrong[] = {
      {.loss = x, .later = 1}, {.terms = x, .later = 1}, {.errors = x, .later = 1}};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(
        clb_model_gradient(o.model, STRUCTURES, s.atoms, s.labels, &losses[0], &wrong[i]),
        CLB_ERROR_ARGUMENT);
    assert_non_null(strstr(clb_error(o.ctx), "of the results must be NULL"));
  }
  assert_int_equal(clb_model_losses(o.model, -1, x, NULL, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_losses(plain.model, 0, x, NULL, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_freeze(o.model, 1000), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_model_freeze(plain.model, 0), CLB_ERROR_ARGUMENT);
  close_model(&plain);
  close_model(&o);
}

/* ---- frozen tensors ---- */

/* With all tensors frozen the model has what the first buffer has; with one that is not, each. */
static void test_frozen(void **state) {
  (void)state;
  for (int all = 0; all < 2; all++) {
    opened o = open_one("cpu", 1, 0), exact = open_one("cpu", 1, 0);
    sample s = make_sample(made_models[1].n_species);
    set_sample(&s);
    int64_t n;
    double *x = numbers_for(&o, &n);
    clb_tensor_info t;
    clb_buffer *b;
    for (int64_t i = 0; !clb_model_tensor(o.model, i, &t); i++)
      if (all || strcmp(t.name, "species_shift"))
        assert_int_equal(clb_model_freeze(o.model, i), CLB_OK);
    assert_int_equal(clb_model_parameters(o.model, x), CLB_OK);
    assert_int_equal(clb_buffer_create(o.ctx, (uint64_t)n * sizeof *x, &b), CLB_OK);
    for (int turn = 0; turn < 2; turn++) {
      for (int64_t i = 0; !clb_model_tensor(o.model, i, &t); i++)
        if (turn == 0 || !strcmp(t.name, "species_shift"))
          for (int64_t k = 0; k < t.count; k++) x[t.first + k] *= 1.01;
      assert_int_equal(clb_numbers_write(b, CLB_F64, 0, n, x), CLB_OK);
      assert_int_equal(clb_model_take_parameters(o.model, b), CLB_OK);
      const double loss = find(&o, &s, &losses[0], NULL),
                   wanted = loss_at(&exact, &s, &losses[0], x);
      assert_int_equal(fabs(loss - wanted) < 1e-12 * wanted, !(all && turn));
    }
    clb_buffer_destroy(&b);
    free(x);
    close_model(&o);
    close_model(&exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_later), cmocka_unit_test(test_moved),
                                     cmocka_unit_test(test_wrong_count),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_frozen)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
