/* tests/models/test_model_threads.c - models on contexts of their own, in concurrent threads, give
   the bits of one thread alone. */
#include <pthread.h>

#include "tests/models/model_places.h"

enum { THREADS = 3, TURNS = 2, STEPS = 3, ATOMS = 12 };

typedef struct {
  const char *device, *path;
  int which;
  computed step[STEPS];
  char wrong[512]; /* cmocka's assertions work in the first thread only */
} job;

/* Atoms that move a little from step to step. */
static atom_set atoms_of(const job *j, int step) {
  atom_set a = random_atoms(ATOMS, made_models[j->which].n_species, true, 5);
  for (int i = 0; i < 3 * ATOMS; i++) a.positions[i] += 0.01 * step * (i % 4 - 1);
  return a;
}

static void *work(void *at) {
  job *j = at;
  for (int turn = 0; turn < TURNS && !*j->wrong; turn++) {
    clb_context *ctx = NULL;
    clb_model *model = NULL;
    clb_status s = clb_context_create(j->device, &ctx);
    if (!s)
      s = clb_model_open(ctx, j->path,
                         &(clb_model_options){.dtype = CLB_F64, .skin = 0.3, .knots = CLB_NO_KNOTS},
                         &model);
    for (int k = 0; k < STEPS && !s; k++) {
      const atom_set a = atoms_of(j, k);
      computed *c = &j->step[k];
      memset(c, 0, sizeof *c);
      const clb_model_atoms atoms = {a.n, a.species, a.positions, a.cell, {1, 1, 1}, .charge = 0};
      s = clb_model_compute(
          model, &atoms, &(clb_model_results){&c->energy, c->e_atom, c->forces, c->stress, NULL});
    }
    if (s)
      snprintf(j->wrong, sizeof j->wrong, "%s: %s: %s", j->device, clb_status_text(s),
               clb_error(ctx));
    clb_model_destroy(&model);
    clb_context_destroy(&ctx);
  }
  return NULL;
}

/* Two threads have the same model, the third another; all share the cache of kernels, which is
   empty at first. */
static void threads(void **state) {
  const char *device = *state;
  char folder[] = "/tmp/clebsch-threads-XXXXXX", path[2][64], command[64];
  assert_non_null(mkdtemp(folder));
  setenv("CLB_CACHE_DIR", folder, 1);
  job *together = calloc(THREADS, sizeof *together), *alone = calloc(2, sizeof *alone);
  assert_true(together && alone);
  for (int m = 0; m < 2; m++) {
    snprintf(path[m], sizeof path[m], "%s/model%d", folder, m);
    made_write(&made_models[m ? 2 : 0], path[m], NULL, NULL);
    alone[m] = (job){.device = device, .path = path[m], .which = m ? 2 : 0};
  }

  pthread_t thread[THREADS];
  for (int t = 0; t < THREADS; t++) {
    together[t] = alone[t % 2];
    assert_int_equal(pthread_create(&thread[t], NULL, work, &together[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_join(thread[t], NULL), 0);
  for (int m = 0; m < 2; m++) work(&alone[m]);

  for (int m = 0; m < 2; m++) assert_string_equal(alone[m].wrong, "");
  assert_true(alone[0].step[0].energy != alone[0].step[1].energy);
  for (int t = 0; t < THREADS; t++) {
    assert_string_equal(together[t].wrong, "");
    assert_memory_equal(together[t].step, alone[t % 2].step, sizeof together[t].step);
  }
  free(together);
  free(alone);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      {"threads:cpu", threads, NULL, NULL, "cpu"},
      {"threads:cpu:interpreter", threads, NULL, NULL, "cpu:interpreter"},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
