/* tests/certify/test_certify.c - the laws hold of a model, and each of eight faults breaks one. */
#include "tests/command_json.h"
#include "tests/models/model_places.h"
#include "tools/certify/checks.h"

#include <string.h>

typedef enum {
  NONE,
  STRESS_SIGN,
  DROPPED_EDGE,
  TRANSPOSED_CELL,
  WRONG_END,
  STALE_LIST,
  UNINITIALISED,
  SCALED_COLUMN,
  ATOM_ORDER,
  FAULTS
} fault;

static const char *const names[FAULTS] = {
    "none",       "sign of stress",         "dropped edge",         "transposed cell", "wrong end",
    "stale list", "uninitialised gradient", "scaled weight column", "order of atoms"};

typedef struct {
  opened exact, fast, scaled;
  clb_neighbours list; /* of the faults of edges */
  fault fault;
  int calls;
} faulty;

/* By edges of its own, of which number 5 is left out, or has its ends exchanged. */
static bool by_edges(faulty *f, opened *o, const clb_model_atoms *a, const clb_model_results *r) {
  enum { WHICH = 5 };
  const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
  clb_neighbours *list = &f->list;
  list->cutoff = 3.1;
  list->skin = 0;
  if (f->fault != STALE_LIST || list->n != a->n) {
    clb_neighbours_forget(list);
    assert_false(clb_neighbours_update(list, a->n, a->positions, a->cell, periodic, NULL));
  }
  int64_t n = list->n_edges;
  double *v = test_calloc((size_t)(3 * n), sizeof *v), virial[9];
  int32_t *from = test_calloc((size_t)n, sizeof *from), *to = test_calloc((size_t)n, sizeof *to);
  clb_neighbours_vectors(list, a->positions, v);
  memcpy(from, list->senders, (size_t)n * sizeof *from);
  memcpy(to, list->receivers, (size_t)n * sizeof *to);
  if (f->fault == DROPPED_EDGE) {
    n--;
    from[WHICH] = from[n], to[WHICH] = to[n];
    memcpy(v + 3 * WHICH, v + 3 * n, 3 * sizeof *v);
  }
  if (f->fault == WRONG_END) from[WHICH] = list->receivers[WHICH];
  const clb_model_edges e = {.n_local = a->n,
                             .n_total = a->n,
                             .n_edges = n,
                             .species = a->species,
                             .senders = {.host = from},
                             .receivers = {.host = to},
                             .vectors = v};
  const clb_status s = clb_model_compute_edges(
      o->model, &e,
      &(clb_model_edge_results){.energy = r->energy, .forces = r->forces, .virial = virial});
  for (int i = 0; i < 9 && r->stress; i++) r->stress[i] = virial[i] / clb_cell_volume(a->cell);
  test_free(v);
  test_free(from);
  test_free(to);
  return !s;
}

static bool compute(void *user, bool exact, const clb_model_atoms *atoms,
                    const clb_model_results *r) {
  faulty *f = user;
  opened *o = exact ? &f->exact : f->fault == SCALED_COLUMN ? &f->scaled : &f->fast;
  clb_model_atoms a = *atoms;
  double cell[9];
  f->calls++;
  for (int i = 0; i < 9 && a.cell; i++) cell[i] = a.cell[i % 3 * 3 + i / 3];
  if (f->fault == TRANSPOSED_CELL) a.cell = cell;
  const bool edges = f->fault == DROPPED_EDGE || f->fault == WRONG_END || f->fault == STALE_LIST,
             good = edges ? by_edges(f, o, &a, r) : !clb_model_compute(o->model, &a, r);
  if (!good) print_error("%s\n", clb_error(o->ctx));
  for (int i = 0; i < 9 && r->stress && f->fault == STRESS_SIGN; i++) r->stress[i] *= -1;
  if (f->fault == UNINITIALISED) r->forces[3 * a.n - 1] = 1e-3 * f->calls;
  for (int k = 0; k < 3 && f->fault == ATOM_ORDER; k++) {
    const double first = r->forces[k];
    r->forces[k] = r->forces[3 + k];
    r->forces[3 + k] = first;
  }
  return good;
}

/* Multiplies the first column of a matrix in a model's file. */
static void scale_column(const char *path, const char *tensor) {
  FILE *file = fopen(path, "r+");
  uint64_t size;
  assert_non_null(file);
  assert_int_equal(fread(&size, sizeof size, 1, file), 1);
  char *text = test_calloc(size + 1, 1);
  assert_int_equal(fread(text, 1, size, file), size);
  json_t *header = json_loads(text, 0, NULL), *about = json_object_get(header, tensor);
  assert_non_null(about);
  const long from =
      (long)json_integer_value(json_array_get(json_object_get(about, "data_offsets"), 0));
  const json_t *shape = json_object_get(about, "shape");
  const int rows = (int)json_integer_value(json_array_get(shape, 0)),
            columns = (int)json_integer_value(json_array_get(shape, 1));
  for (int i = 0; i < rows; i++) {
    const long at = 8 + (long)size + from + (long)i * columns * (long)sizeof(double);
    double x;
    fseek(file, at, SEEK_SET);
    assert_int_equal(fread(&x, sizeof x, 1, file), 1);
    x *= 1.01;
    fseek(file, at, SEEK_SET);
    assert_int_equal(fwrite(&x, sizeof x, 1, file), 1);
  }
  fclose(file);
  json_decref(header);
  test_free(text);
}

static const atom_set crystal = {
    .n = 4,
    .species = {0, 1, 1, 0},
    .positions = {0.1, 0, 0, 1.9, 1.8, 0.2, 2.1, 0.1, 1.7, 0, 2.0, 1.9},
    .cell = {3.9, 0.3, 0, 0.1, 4.1, 0.2, 0, 0.4, 4.0},
    .periodic = {1, 1, 1}};

static faulty open_all(const char *path) {
  const clb_model_options exact = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS},
                          fast = {.dtype = CLB_F32};
  faulty f = {.exact = open_file("cpu", path, &exact), .fast = open_file("cpu", path, &fast)};
  scale_column(path, "layers.1.linear_1.0e");
  f.scaled = open_file("cpu", path, &fast);
  return f;
}

/* The number of broken laws. */
static int broken(faulty *f, fault which, certify_line lines[CERTIFY_LINES]) {
  static const double masses[] = {1, 12, 12, 1};
  const atom_set *c = &crystal;
  const clb_model_atoms atoms = {c->n, c->species, c->positions, c->cell, {1, 1, 1}, .charge = 0};
  int n = 0;
  f->fault = which;
  f->list.n = -1;
  assert_true(certify(&(certify_engine){compute, f, true}, &atoms, masses, lines));
  for (int i = 0; i < CERTIFY_LINES; i++) n += !certify_holds(&lines[i]);
  return n;
}

static void faults_are_found(void **state) {
  (void)state;
  char path[] = "/tmp/clebsch_certify_XXXXXX";
  certify_line lines[CERTIFY_LINES];
  close(mkstemp(path));
  made_write(&made_models[0], path, NULL, NULL);
  faulty f = open_all(path);
  unlink(path);
  for (fault which = NONE; which < FAULTS; which++) {
    const int n = broken(&f, which, lines);
    if ((n > 0) == (which != NONE)) continue;
    for (int i = 0; i < CERTIFY_LINES; i++)
      print_error("%s: %s: %g of %g\n", names[which], lines[i].law, lines[i].error, lines[i].limit);
    fail_msg("%s: %d laws are broken", names[which], n);
  }
  clb_neighbours_free(&f.list);
  close_model(&f.exact);
  close_model(&f.fast);
  close_model(&f.scaled);
}

static void the_command_tells(void **state) {
  (void)state;
  char path[] = "/tmp/clebsch_certify_XXXXXX";
  close(mkstemp(path));
  made_write(&made_models[0], path, NULL, NULL);
  put_text("crystal.xyz", "4\nLattice=\"3.9 0.3 0 0.1 4.1 0.2 0 0.4 4.0\" "
                          "Properties=species:S:1:pos:R:3\n"
                          "H 0.1 0 0\nC 1.9 1.8 0.2\nC 2.1 0.1 1.7\nH 0 2 1.9\n");
  expect_words(format("certify %s crystal.xyz --device cpu", path),
               (const char *const[]){"slope of the energy", "verdict     all laws hold", NULL});
  json_t *o =
      json_of(format("certify --model %s --structure crystal.xyz --device cpu --json", path));
  assert_true(is_true(o, "holds"));
  assert_int_equal(json_array_size(json_object_get(o, "laws")), CERTIFY_LINES);
  json_decref(o);
  static const refusal wrong[] = {{"certify model.safetensors", 2, "--structure is missing"},
                                  {"certify a b c", 2, "'c' is one argument too many"},
                                  {"certify a b.xyz", 1, "No such file"}};
  expect_refusals("", wrong, sizeof wrong / sizeof *wrong);
  unlink(path);
}

/* Cutoffs whose curvature jumps, at edges of nearly that length; and features without parity, whose
   mirror images differ. */
static void no_false_alarms(void **state) {
  (void)state;
  put_text("jumps.xyz",
           "5\nLattice=\"4.1 0.2 -0.3 0.9 3.8 0.1 -0.4 0.6 3.1\" Properties=species:S:1:pos:R:3\n"
           "Si 0.1 0.2 0.3\nO 1.7 0.4 0.8\nH 0.6 2.1 0.4\nSi 2.2 2.3 1.9\nO 3.6 1.2 2.2\n");
  static const struct {
    const char *model, *inversion;
  } all[] = {{"parity.pth --modality mpa", "has mirrored forces       "},
             {"modal.pth --modality pbe", "the model's features have no parity"}};
  for (int i = 0; i < 2; i++)
    expect_words(format("certify --structure jumps.xyz --device cpu --model %s/sevennet/%s",
                        getenv("CLB_TEST_DATA"), all[i].model),
                 (const char *const[]){all[i].inversion, "verdict     all laws hold", NULL});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faults_are_found),
                                     cmocka_unit_test(the_command_tells),
                                     cmocka_unit_test(no_false_alarms)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
