/* tests/hosts/test_kim.c - the model driver of KIM's API, run by KIM's library as a simulator does:
   against clb_model_compute, by property, and what is refused. */
#include <limits.h>
#include <sys/stat.h>

#include "tests/hosts/kim_simulator.h"

static const clb_model_options exact = {.dtype = CLB_F64, .knots = CLB_NO_KNOTS};
static const char settings[] = "# of a test\nmodel model.safetensors\n\ndtype\tf64 \nknots 0\n";
static char home[PATH_MAX]; /* drivers/, models/ */

/* ---- models in folders ---- */

static const char *path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *path_of(const char *format, ...) {
  static char path[2 * PATH_MAX];
  const int n = snprintf(path, sizeof path, "%s/", home);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(path + n, sizeof path - (size_t)n, format, arguments);
  va_end(arguments);
  return path;
}

static void copy_file(const char *from, const char *to) {
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  if (!in || !out) fail_msg("%s or %s cannot be opened", from, to);
  for (int c; (c = fgetc(in)) != EOF;) fputc(c, out);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

/* A portable model as a user makes it, unless it is there: KIM leaves the library of one that
   failed open. text: its settings, or NULL. */
static void make_folder(const char *name, const char *text) {
  if (mkdir(path_of("models/%s", name), 0700)) return;
  copy_file(getenv("CLB_TEST_KIM_MODEL"), path_of("models/%s/libkim-api-portable-model.so", name));
  if (!text) return;
  FILE *out = fopen(path_of("models/%s/clebsch.txt", name), "w");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

static const char *made_folder(int which) {
  static char name[32];
  snprintf(name, sizeof name, "Made_%d", which);
  make_folder(name, settings);
  made_write(&made_models[which], path_of("models/%s/model.safetensors", name), NULL, NULL);
  return name;
}

static int begin(void **state) {
  (void)state;
  strcpy(home, "/tmp/clebsch_kim_XXXXXX");
  if (!mkdtemp(home)) return 1;
  mkdir(path_of("drivers"), 0700);
  mkdir(path_of("models"), 0700);
  mkdir(path_of("drivers/Clebsch"), 0700);
  if (symlink(getenv("CLB_TEST_KIM_DRIVER"), path_of("drivers/Clebsch/libkim-api-model-driver.so")))
    return 1;
  setenv("KIM_API_MODEL_DRIVERS_DIR", path_of("drivers"), 1);
  setenv("KIM_API_PORTABLE_MODELS_DIR", path_of("models"), 1);
  setenv("KIM_API_CONFIGURATION_FILE", path_of("configuration"), 1);
  KIM_Log_PushDefaultVerbosity(KIM_LOG_VERBOSITY_error);
  KIM_Log_PushDefaultPrintFunction(KIM_LANGUAGE_NAME_c, (KIM_Function *)kim_log_print);
  return chdir(home); /* where KIM would write its log */
}

static int end(void **state) {
  (void)state;
  char command[PATH_MAX + 16];
  snprintf(command, sizeof command, "rm -r '%s'", home);
  return chdir("/") || system(command) != 0;
}

/* ---- against the model alone ---- */

static atom_set spread_atoms(int64_t n, int n_species, bool periodic) {
  atom_set a = random_atoms(n, n_species, periodic, 11);
  for (int k = 0; k < 9; k++) a.cell[k] *= 1.4;
  for (int64_t i = 0; i < 3 * n; i++) a.positions[i] *= 1.4;
  return a;
}

/* Home go the forces of ghosts; virials are sums of their parts. */
static void expect_atoms(const kim_opened *o, const kim_particles *p, const atom_set *a,
                         const computed *wanted, double max) {
  static const int at[6] = {0, 4, 8, 5, 2, 1};
  computed c = {.energy = p->energy * o->energy};
  const double volume = clb_cell_volume(a->cell);
  for (int i = 0; i < p->n; i++) {
    if (i < a->n) c.e_atom[i] = p->e_atom[i] * o->energy;
    else assert_true(p->e_atom[i] == 0);
    for (int k = 0; k < 3; k++)
      c.forces[3 * p->owner[i] + k] += p->forces[3 * i + k] * o->energy / o->length;
  }
  for (int k = 0; k < 6; k++) {
    double sum = 0;
    for (int i = 0; i < p->n; i++) sum += p->v_atom[6 * i + k];
    close_to("virial", 1, &p->virial[k], &sum, 10 * max * (1 + fabs(sum)));
    c.stress[at[k]] = c.stress[at[k] % 3 * 3 + at[k] / 3] = sum * o->energy / volume;
  }
  expect_same(&c, wanted, a->n, max);
}

/* The list, the same again, moved within the skin, and another list. */
static void steps(kim_opened *o, opened *alone, atom_set a, const char *const *symbols,
                  double max) {
  const double skin = 0.4;
  kim_particles *p = kim_particles_of(o, &a, skin);
  for (int step = 0; step < 4; step++) {
    for (int64_t i = 0; step == 2 && i < 3 * a.n; i++) a.positions[i] += 0.05 * (double)(i % 5 - 2);
    kim_place(o, p, &a, symbols);
    if (step != 1 && step != 2) kim_list(o, p, skin / (1 + step));
    if (kim_run(o, p, true)) fail_msg("%s", kim_log);
    const computed wanted = compute_atoms(alone, &a);
    expect_atoms(o, p, &a, &wanted, max);
    const double energy = p->energy;
    if (kim_run(o, p, false)) fail_msg("%s", kim_log);
    close_to("energy", 1, &p->energy, &energy, max);
  }
  kim_free(p);
}

static void compare(const char *device, const char *name, const char *file, int64_t n, bool bohr) {
  setenv("CLB_DEVICE", device, 1);
  kim_opened o = {.length = 1, .energy = 1};
  if (bohr) o = (kim_opened){.length = 0.529177210903, .energy = 27.211386245988};
  opened alone = open_file(device, file, &exact);
  clb_model_info info;
  double influence;
  int lists;
  const double *cutoffs;
  const int *only_contributing;
  if (!kim_try(name, bohr ? KIM_LENGTH_UNIT_Bohr : KIM_LENGTH_UNIT_A,
               bohr ? KIM_ENERGY_UNIT_Hartree : KIM_ENERGY_UNIT_eV, &o))
    fail_msg("%s", kim_log);
  assert_int_equal(clb_model_describe(alone.model, &info), CLB_OK);
  KIM_Model_GetInfluenceDistance(o.model, &influence);
  KIM_Model_GetNeighborListPointers(o.model, &lists, &cutoffs, &only_contributing);
  const double reach = info.r_max * (info.exchanges + 1), max = bohr ? 1e-6 : 1e-10;
  influence *= o.length;
  close_to("influence distance", 1, &influence, &reach, max);
  assert_int_equal(*only_contributing, info.exchanges == 0);
  steps(&o, &alone, spread_atoms(n, info.n_species, true), info.symbols, max);
  kim_close(&o);
  close_model(&alone);
}

static void compare_made(const char *device, int which, int64_t n, bool bohr) {
  const char *name = made_folder(which);
  char file[PATH_MAX];
  snprintf(file, sizeof file, "%s", path_of("models/%s/model.safetensors", name));
  compare(device, name, file, n, bohr);
}

static void energies_and_forces(void **state) {
  (void)state;
  compare_made("cpu", 0, 3, false); /* three layers */
  compare_made("cpu", 4, 4, false);
  compare_made("cpu:interpreter", 3, 2, false);
}

static void other_units(void **state) {
  (void)state;
  compare_made("cpu", 4, 2, true);
}

/* Neighbours of ghosts are not needed: the model's file is elsewhere, and named in the settings. */
static void strictly_local(void **state) {
  (void)state;
  char file[600], text[700];
  snprintf(file, sizeof file, "%s/allegro/bessel.safetensors", getenv("CLB_TEST_DATA"));
  snprintf(text, sizeof text, "dtype f64\nknots 0\nmodel %s\n", file);
  make_folder("Local", text);
  compare("cpu", "Local", file, 4, false);
}

/* ---- properties ---- */

/* Two halves of the atoms contribute in turn, as on two processes: the sums are the whole. */
static void halves(void **state) {
  (void)state;
  setenv("CLB_DEVICE", "cpu", 1);
  const char *const symbols[] = {"H", "C", "O"};
  kim_opened o = {.length = 1, .energy = 1};
  if (!kim_try(made_folder(4), KIM_LENGTH_UNIT_A, KIM_ENERGY_UNIT_eV, &o)) fail_msg("%s", kim_log);
  const atom_set a = spread_atoms(5, 3, true);
  kim_particles *p = kim_particles_of(&o, &a, 0);
  kim_place(&o, p, &a, symbols);
  kim_list(&o, p, 0);
  assert_int_equal(kim_run(&o, p, true), 0);
  kim_particles *sum = calloc(1, sizeof *sum);
  for (int half = 0; half < 2; half++) {
    kim_particles *q = malloc(sizeof *q);
    assert_true(sum && q);
    memcpy(q, p, sizeof *q);
    for (int i = 0; i < (int)a.n; i++) q->contributing[i] = i % 2 == half;
    assert_int_equal(kim_run(&o, q, true), 0);
    for (int i = 0; i < p->n; i++) assert_true(q->contributing[i] || q->e_atom[i] == 0);
    sum->energy += q->energy;
    for (int i = 0; i < p->n; i++) sum->e_atom[i] += q->e_atom[i];
    for (int i = 0; i < 3 * p->n; i++) sum->forces[i] += q->forces[i];
    for (int i = 0; i < 6; i++) sum->virial[i] += q->virial[i];
    free(q);
  }
  close_to("energy", 1, &sum->energy, &p->energy, 1e-10);
  close_to("e_atom", p->n, sum->e_atom, p->e_atom, 1e-10);
  close_to("force", 3 * p->n, sum->forces, p->forces, 1e-9);
  close_to("virial", 6, sum->virial, p->virial, 1e-9);
  free(sum);
  kim_free(p);
  kim_close(&o);
}

/* No particles, and one whose neighbours KIM cannot say. */
static void few_particles(void **state) {
  (void)state;
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  const char *const symbols[] = {"H", "C", "O"};
  kim_opened o = {.length = 1, .energy = 1};
  if (!kim_try(made_folder(4), KIM_LENGTH_UNIT_A, KIM_ENERGY_UNIT_eV, &o)) fail_msg("%s", kim_log);
  const atom_set a = spread_atoms(2, 3, false);
  kim_particles *p = calloc(1, sizeof *p);
  assert_non_null(p);
  if (kim_run(&o, p, true)) fail_msg("%s", kim_log);
  assert_true(p->energy == 0);
  p->n = 1, p->contributing[0] = 1;
  kim_place(&o, p, &a, symbols);
  kim_list(&o, p, 0);
  if (kim_run(&o, p, true)) fail_msg("%s", kim_log);
  assert_true(isfinite(p->energy) && p->energy == p->e_atom[0] && p->forces[0] == 0);
  p->n = 2, p->owner[1] = 1;
  kim_place(&o, p, &a, symbols);
  for (int k = 0; k < 3; k++) p->positions[3 + k] = p->positions[k];
  kim_list(&o, p, 0);
  assert_int_equal(kim_run(&o, p, true), 1);
  assert_non_null(strstr(kim_log, "they must be finite, and at least"));
  p->positions[3] += 1;
  if (kim_run(&o, p, true)) fail_msg("%s", kim_log);
  kim_free(p);
  kim_close(&o);
}

/* ---- what is refused ---- */

static void refuse(const char *name, const char *words) {
  kim_opened o;
  if (kim_try(name, KIM_LENGTH_UNIT_A, KIM_ENERGY_UNIT_eV, &o)) fail_msg("%s was opened", name);
  if (!strstr(kim_log, words)) fail_msg("not \"%s\", but: %s", words, kim_log);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *text, *words;
  } cases[] = {
      {"Without_text", NULL, "/models/Without_text: it has no line 'model FILE'"},
      {"Without_model", "dtype f32 # no more\n", "it has no line 'model FILE'"},
      {"Without_file", "model absent.safetensors\n", "/models/Without_file/absent.safetensors"},
      {"Other_word", "model m\ndevice cpu\n", "'device' is not known; known are model, dtype"},
      {"Other_dtype", "model m\ndtype f16\n", "dtype must be f32 or f64, not 'f16'"},
      {"Other_knots", "model m\nknots 3\n", "knots must be 0, or 4 and more, not '3'"},
      {"Empty_model", "model  \n", "model must be a file, not ''"}};
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make_folder(cases[i].name, cases[i].text);
    refuse(cases[i].name, cases[i].words);
  }
  make_folder("Version", settings);
  made_write(&made_models[4], path_of("models/Version/model.safetensors"), "format_version", "9");
  refuse("Version", "format_version");
  setenv("CLB_DEVICE", "abacus", 1);
  refuse(made_folder(4), "abacus");
}

static void unknown_species(void **state) {
  (void)state;
  setenv("CLB_DEVICE", "cpu:interpreter", 1);
  kim_opened o;
  int known = 1, code;
  if (!kim_try(made_folder(4), KIM_LENGTH_UNIT_A, KIM_ENERGY_UNIT_eV, &o)) fail_msg("%s", kim_log);
  assert_int_equal(KIM_Model_GetSpeciesSupportAndCode(o.model, KIM_SPECIES_NAME_Xe, &known, &code),
                   0);
  assert_int_equal(known, 0);
  kim_particles *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->n = 1, p->contributing[0] = 1, p->species[0] = 3; /* a code that no element has */
  kim_list(&o, p, 0);
  assert_int_equal(kim_run(&o, p, true), 1);
  assert_non_null(strstr(kim_log, "species"));
  kim_free(p);
  kim_close(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(energies_and_forces), cmocka_unit_test(other_units),
      cmocka_unit_test(strictly_local),      cmocka_unit_test(halves),
      cmocka_unit_test(few_particles),       cmocka_unit_test(refused),
      cmocka_unit_test(unknown_species)};
  return cmocka_run_group_tests(tests, begin, end);
}
