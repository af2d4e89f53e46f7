/* tests/models/test_model_batch.c - many structures in one call are the same as one after another.
 */
#include "tests/models/model_places.h"

enum { SETS = 9 };

typedef struct {
  atom_set set[SETS];
  computed found[SETS];
  clb_model_atoms atoms[SETS];
  clb_model_results results[SETS];
} batch;

/* Periodic and open ones, one in a plane's cell, one without atoms, one with a single atom. */
static void make_batch(batch *b, int n_species) {
  static const int64_t n[SETS] = {6, 1, 0, 9, 2, 14, 7, 1, 5};
  memset(b, 0, sizeof *b);
  for (int i = 0; i < SETS; i++) {
    atom_set *a = &b->set[i];
    *a = random_atoms(n[i], n_species, i % 3 != 1, (uint64_t)(20 + i));
    if (i == 4) a->cell[6] = a->cell[7] = a->cell[8] = 0;
    b->atoms[i] = (clb_model_atoms){a->n,
                                    a->species,
                                    a->positions,
                                    a->cell,
                                    {a->periodic[0], a->periodic[1], a->periodic[2]},
                                    .charge = 0};
    computed *c = &b->found[i];
    b->results[i] =
        (clb_model_results){&c->energy, c->e_atom, c->forces, i == 4 ? NULL : c->stress, NULL};
  }
}

static void expect_singles(opened *o, const batch *b, double max) {
  for (int i = 0; i < SETS; i++) {
    const computed one = compute_atoms(o, &b->set[i]);
    expect_same(&b->found[i], &one, b->set[i].n, max);
  }
}

static void same_as_singles(void **state) {
  static const int64_t at_once[] = {1 << 15, 1, 20};
  (void)state;
  batch *b = malloc(sizeof *b);
  assert_non_null(b);
  for (int which = 0; which < MADE_MODELS; which++)
    for (int single = 0; single < (which < 2 ? 2 : 1); single++) {
      opened o = open_made(
          "cpu", which,
          &(clb_model_options){.dtype = single ? CLB_F32 : CLB_F64, .knots = CLB_NO_KNOTS});
      make_batch(b, made_models[which].n_species);
      o.model->batch_atoms = at_once[which % 3];
      OK(o.ctx, clb_model_compute_many(o.model, SETS, b->atoms, b->results));
      expect_singles(&o, b, single ? 2e-5 : 1e-11);
      close_model(&o);
    }
  free(b);
}

/* Results that are not wanted are left alone, and cost nothing: energies alone need no gradient. */
static void what_is_wanted(void **state) {
  (void)state;
  batch b;
  opened o = open_made("cpu", 1, NULL);
  make_batch(&b, made_models[1].n_species);
  OK(o.ctx, clb_model_compute_many(o.model, 0, NULL, NULL));
  for (int i = 0; i < SETS; i++) {
    for (int k = 0; k < 3 * MAX_ATOMS; k++) b.found[i].forces[k] = NAN;
    if (i != 3) b.results[i].forces = NULL;
    b.results[i].stress = NULL;
  }
  b.results[5].energy = NULL;
  OK(o.ctx, clb_model_compute_many(o.model, SETS, b.atoms, b.results));
  for (int i = 0; i < SETS; i++) {
    const computed one = compute_atoms(&o, &b.set[i]);
    if (i != 5) close_to("energy", 1, &b.found[i].energy, &one.energy, 2e-5);
    close_to("e_atom", b.set[i].n, b.found[i].e_atom, one.e_atom, 2e-5);
    if (i == 3) close_to("force", 3 * b.set[i].n, b.found[i].forces, one.forces, 2e-4);
    else assert_true(isnan(b.found[i].forces[0]));
  }
  assert_true(b.found[5].energy == 0);
  close_model(&o);
}

static void bad_structures(void **state) {
  static const int32_t unknown[] = {0, 1, 0, 2};
  static double places[3 * MAX_ATOMS];
  (void)state;
  batch b;
  opened o = open_made("cpu", 1, NULL);
  make_batch(&b, made_models[1].n_species);
  const clb_model_atoms good = b.atoms[6];
#define REFUSED(words, ...)                                                                        \
  do {                                                                                             \
    b.atoms[6] = good;                                                                             \
    __VA_ARGS__;                                                                                   \
    NOT_OK(o.ctx, CLB_ERROR_ARGUMENT, "structure 6: " words,                                       \
           clb_model_compute_many(o.model, SETS, b.atoms, b.results));                             \
  } while (0)
  memcpy(places, b.set[6].positions, sizeof places);
  memcpy(places + 3, places, 3 * sizeof *places);
  REFUSED("clb_model_compute: n is -1", b.atoms[6].n = -1);
  REFUSED("clb_model_compute: positions is NULL", b.atoms[6].positions = NULL);
  REFUSED("species[3] is 2; it must be 0 ... 1", b.atoms[6].species = unknown, b.atoms[6].n = 4);
  REFUSED("clb_model_compute: stress was requested, but cell is NULL",
          b.atoms[6] =
              (clb_model_atoms){2, b.set[6].species, b.set[6].positions, NULL, {0}, .charge = 0});
  REFUSED("clb_model_compute: positions[0] and positions[1] are one place",
          b.atoms[6].positions = places);
  b.atoms[6] = good;
  NOT_OK(o.ctx, CLB_ERROR_ARGUMENT, "n is -2",
         clb_model_compute_many(o.model, -2, b.atoms, b.results));
  NOT_OK(o.ctx, CLB_ERROR_ARGUMENT, "atoms is NULL",
         clb_model_compute_many(o.model, SETS, NULL, b.results));
  NOT_OK(o.ctx, CLB_ERROR_ARGUMENT, "results is NULL",
         clb_model_compute_many(o.model, SETS, b.atoms, NULL));
  NOT_OK(NULL, CLB_ERROR_ARGUMENT, "model is NULL",
         clb_model_compute_many(NULL, SETS, b.atoms, b.results));
  OK(o.ctx, clb_model_compute_many(o.model, SETS, b.atoms, b.results));
  expect_singles(&o, &b, 2e-5);
  close_model(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_singles),
                                     cmocka_unit_test(what_is_wanted),
                                     cmocka_unit_test(bad_structures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
