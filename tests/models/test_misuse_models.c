/* tests/models/test_misuse_models.c - the calls of model.h with arguments that no sane program
   gives. */
#include "tests/runtime/misuse.h"

static clb_model *model;
static char path[400];

static int open_model(void **state) {
  snprintf(path, sizeof path, "%s/strangers/tiny.safetensors", getenv("CLB_TEST_DATA"));
  make_all(state);
  need(clb_model_open(t.ctx, path, NULL, &model));
  return 0;
}

static int close_model(void **state) {
  clb_model_destroy(&model);
  return destroy_all(state);
}

/* ---- open ---- */

#define OPEN(end, ...)                                                                             \
  do {                                                                                             \
    clb_model_options q = {0};                                                                     \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_model_open(t.ctx, path, &q, &made.model));                          \
  } while (0)

static void options(void **state) {
  (void)state;
  static const char *const bad[] = {NULL, "", "/tmp", "/nonexistent", "/dev/null"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    REFUSED_AS(bad[i] ? bad[i] : "NULL", clb_model_open(t.ctx, bad[i], NULL, &made.model));
  REFUSED(clb_model_open(t.ctx, path, NULL, NULL));
  OPEN(REFUSED, q.dtype = CLB_BF16);
  OPEN(REFUSED, q.dtype = (clb_dtype)99);
  OPEN(REFUSED, q.knots = -2);
  OPEN(REFUSED, q.knots = INT_MAX);
  OPEN(REFUSED, q.skin = NAN);
  OPEN(REFUSED, q.skin = -2);
  OPEN(DONE, q.skin = CLB_AUTO_SKIN);
  OPEN(DONE, q.skin = 1e308);
  OPEN(DONE, q.workspace_bytes = UINT64_MAX);
  OPEN(DONE, q.workspace_bytes = 1);
}

static void while_recording(void **state) {
  (void)state;
  static const double places[6] = {0, 0, 0, 1, 0, 0};
  static const int32_t species[2] = {0, 1};
  double energy;
  const clb_model_atoms atoms = {.n = 2, .species = species, .positions = places};
  DONE(clb_record_begin(t.ctx));
  REFUSED(clb_model_open(t.ctx, path, NULL, &made.model));
  REFUSED(clb_model_compute(model, &atoms, &(clb_model_results){.energy = &energy}));
  REFUSED(clb_record_end(t.ctx, &made.recording));
  DONE(clb_model_compute(model, &atoms, &(clb_model_results){.energy = &energy}));
}

static void questions(void **state) {
  (void)state;
  clb_model_info info;
  clb_model_neighbours neighbours;
  static const int none[] = {0, -1, 118, 119, INT_MAX, INT_MIN};
  NULL_REFUSED(clb_model_describe(NULL, &info));
  REFUSED(clb_model_describe(model, NULL));
  NULL_REFUSED(clb_model_last_neighbours(NULL, &neighbours));
  REFUSED(clb_model_last_neighbours(model, NULL));
  DONE(clb_model_last_neighbours(model, &neighbours));
  assert_int_equal(clb_model_species(NULL, 1), -1);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_int_equal(clb_model_species(model, none[i]), -1);
  clb_model_destroy(NULL);
}

/* ---- atoms ---- */

#define ATOMS(end, ...)                                                                            \
  do {                                                                                             \
    clb_model_atoms q = {.n = 2, .species = species, .positions = places};                         \
    clb_model_results r = {.energy = &energy, .forces = forces};                                   \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_model_compute(model, &q, &r));                                      \
  } while (0)

static void atoms(void **state) {
  (void)state;
  static const int32_t species[2] = {0, 1}, high[2] = {0, 7}, negative[2] = {-1, 0};
  static const double places[6] = {0, 0, 0, 1, 0, 0}, nowhere[6] = {NAN}, far[6] = {INFINITY};
  static const double cell[9] = {5, 0, 0, 0, 5, 0, 0, 0, 5}, no_cell[9] = {NAN, 0, 0, 0, 5};
  static const double flat[9] = {5, 0, 0, 5, 0, 0, 0, 0, 5};
  double energy, forces[6], stress[9];
  const clb_model_atoms some = {.n = 2, .species = species, .positions = places};
  const clb_model_results asked = {.energy = &energy};
  NULL_REFUSED(clb_model_compute(NULL, &some, &asked));
  REFUSED(clb_model_compute(model, NULL, &asked));
  REFUSED(clb_model_compute(model, &some, NULL));
  ATOMS(DONE, );
  ATOMS(REFUSED, q.n = -1);
  ATOMS(REFUSED, q.n = 1ll << 31);
  ATOMS(REFUSED, q.n = INT64_MAX);
  ATOMS(REFUSED, q.species = NULL);
  ATOMS(REFUSED, q.species = high);
  ATOMS(REFUSED, q.species = negative);
  ATOMS(REFUSED, q.positions = NULL);
  ATOMS(REFUSED, q.positions = nowhere);
  ATOMS(REFUSED, q.positions = far);
  ATOMS(REFUSED, q.periodic[0] = 1);
  ATOMS(REFUSED, q.periodic[0] = 1, q.cell = no_cell);
  ATOMS(REFUSED, q.periodic[0] = q.periodic[1] = 1, q.cell = flat);
  ATOMS(REFUSED, r.stress = stress);
  ATOMS(DONE, q.periodic[0] = 7, q.cell = cell);
  ATOMS(DONE, r = (clb_model_results){0});
}

/* ---- edges ---- */

static const int32_t pair[2] = {0, 1}, back[2] = {1, 0}, beyond[2] = {0, 9};
static const double vectors[6] = {1, 0, 0, -1, 0, 0};
static double energy, d_vectors[6];
static const clb_model_edges two = {.n_local = 2,
                                    .n_total = 2,
                                    .n_edges = 2,
                                    .species = pair,
                                    .senders.host = pair,
                                    .receivers.host = back,
                                    .vectors = vectors};
static const clb_model_edge_results both = {.energy = &energy, .d_vectors = d_vectors};

#define MODEL_EDGES(end, ...)                                                                      \
  do {                                                                                             \
    clb_model_edges q = two;                                                                       \
    clb_model_edge_results r = both;                                                               \
    __VA_ARGS__;                                                                                   \
    end##_AS(#__VA_ARGS__, clb_model_compute_edges(model, &q, &r));                                \
  } while (0)

static void edges(void **state) {
  (void)state;
  static const double nowhere[6] = {NAN}, here[6] = {0};
  NULL_REFUSED(clb_model_compute_edges(NULL, &two, &both));
  REFUSED(clb_model_compute_edges(model, NULL, &both));
  REFUSED(clb_model_compute_edges(model, &two, NULL));
  MODEL_EDGES(DONE, );
  MODEL_EDGES(REFUSED, q.n_local = -1);
  MODEL_EDGES(REFUSED, q.n_total = 1);
  MODEL_EDGES(REFUSED, q.n_total = 3);
  MODEL_EDGES(REFUSED, q.n_edges = -1);
  MODEL_EDGES(REFUSED, q.n_edges = INT64_MAX);
  MODEL_EDGES(REFUSED, q.species = NULL);
  MODEL_EDGES(REFUSED, q.species = beyond);
  MODEL_EDGES(REFUSED, q.senders.host = beyond);
  MODEL_EDGES(REFUSED, q.receivers.host = beyond);
  MODEL_EDGES(REFUSED, q.senders.host = NULL);
  MODEL_EDGES(REFUSED, q.vectors = NULL);
  MODEL_EDGES(REFUSED, q.vectors = nowhere);
  MODEL_EDGES(REFUSED, q.vectors = here);
  MODEL_EDGES(REFUSED, q.vectors_buffer = t.b);
  MODEL_EDGES(REFUSED, q.vectors = NULL, q.vectors_buffer = t.small);
  MODEL_EDGES(REFUSED, q.vectors = NULL, q.vectors_buffer = t.foreign);
  MODEL_EDGES(REFUSED, r.d_vectors_buffer = t.small);
  MODEL_EDGES(REFUSED, r.d_vectors = NULL, r.d_vectors_buffer = t.foreign);
  MODEL_EDGES(DONE, r.d_vectors_buffer = t.b);
  MODEL_EDGES(DONE, r = (clb_model_edge_results){0});
}

static void same_graph(void **state) {
  (void)state;
  static const double places[6] = {0, 0, 0, 1, 0, 0};
  const clb_model_atoms atoms = {.n = 2, .species = pair, .positions = places};
  need(clb_model_open(t.ctx, path, NULL, &made.model));
  clb_model *fresh = made.model;
  made.model = NULL;
  clb_model_edges again = two;
  again.same_graph = 1;
  REFUSED(clb_model_compute_edges(fresh, &again, &both));
  clb_model_destroy(&fresh);
  MODEL_EDGES(DONE, );
  MODEL_EDGES(REFUSED, q.same_graph = 1, q.n_edges = 1000);
  MODEL_EDGES(DONE, );
  MODEL_EDGES(REFUSED, q.senders.host = beyond);
  MODEL_EDGES(REFUSED, q.same_graph = 1);
  DONE(clb_model_compute(model, &atoms, &(clb_model_results){.energy = &energy}));
  MODEL_EDGES(REFUSED, q.same_graph = 1); /* as many edges, in another order */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options), cmocka_unit_test(questions), cmocka_unit_test(while_recording),
      cmocka_unit_test(atoms),   cmocka_unit_test(edges),     cmocka_unit_test(same_graph)};
  t.device = "cpu:interpreter";
  return cmocka_run_group_tests(tests, open_model, close_model);
}
