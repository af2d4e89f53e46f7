/* tests/models/test_model_many.c - many models in one process, and models opened and closed again
   and again, hold no more than the process can give. */
#include "tests/test.h"

#include <dirent.h>
#include <malloc.h>
#include <sys/resource.h>

#include "tests/models/model_places.h"

enum { MANY = 100, FEW_FILES = 48, AGAIN = 100, ATOMS = 6 };

static char folder[] = "/tmp/clebsch-many-XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return 1;
  setenv("CLB_CACHE_DIR", folder, 1);
  snprintf(path, sizeof path, "%s/model", folder);
  made_write(&made_models[1], path, NULL, NULL);
  return 0;
}

static int remove_folder(void **state) {
  char command[64];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static int entries(const char *of) {
  int n = 0;
  DIR *d = opendir(of);
  for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* Parts of files with this in their name that are mapped into memory. */
static int mapped(const char *what) {
  char line[4096];
  int n = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) n += strstr(line, what) != NULL;
  if (f) fclose(f);
  return n;
}

typedef struct {
  clb_context *ctx;
  clb_model *model;
} one;

static void open_one(one *o) {
  *o = (one){NULL, NULL};
  OK(o->ctx, clb_context_create("cpu", &o->ctx));
  OK(o->ctx, clb_model_open(o->ctx, path, NULL, &o->model));
}

static double energy(one *o, const atom_set *a) {
  double e = 0;
  const clb_model_atoms atoms = {a->n, a->species, a->positions, a->cell, {1, 1, 1}, .charge = 0};
  OK(o->ctx, clb_model_compute(o->model, &atoms, &(clb_model_results){&e, NULL, NULL, NULL, NULL}));
  return e;
}

static void close_one(one *o) {
  clb_model_destroy(&o->model);
  clb_context_destroy(&o->ctx);
}

/* Models of one file share their kernels, and hold no descriptors: with one for each kernel, a
   tenth of them would be too many. */
static void many(void **state) {
  one *all = calloc(MANY, sizeof *all);
  const atom_set a = random_atoms(ATOMS, made_models[1].n_species, true, 5);
  const struct rlimit limit = {FEW_FILES, FEW_FILES};
  (void)state;
  assert_non_null(all);
  const int files = entries("/proc/self/fd");
  int maps = 0;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int i = 0; i < MANY; i++) {
    open_one(&all[i]);
    if (!i) maps = mapped("memfd");
  }
  assert_true(maps > 0);
  assert_int_equal(mapped("memfd"), maps);
  const double first = energy(&all[0], &a);
  for (int i = 1; i < MANY; i += MANY / 10) assert_true(energy(&all[i], &a) == first);
  assert_int_equal(entries("/proc/self/fd"), files);
  for (int i = 0; i < MANY; i++) close_one(&all[i]);
  free(all);
}

/* malloc keeps some freed blocks of each size for itself, which it counts as held: half of the
   turns fill these. */
static size_t held(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

static void again(void **state) {
  const atom_set a = random_atoms(ATOMS, made_models[1].n_species, true, 5);
  size_t bytes = 0;
  int files = 0;
  (void)state;
  for (int i = 0; i < AGAIN; i++) {
    one o;
    open_one(&o);
    energy(&o, &a);
    close_one(&o);
    if (i == AGAIN / 2) bytes = held(), files = entries("/proc/self/fd");
  }
  assert_int_equal(entries("/proc/self/fd"), files);
  assert_int_equal(mapped("memfd"), 0);
  const size_t after = held(), little = 1 << 14;
  if (after > bytes + little) fail_msg("%zu bytes, then %zu", bytes, after);
}

/* The threads of a device are all that there are, whatever the model's ops call. */
static void few_threads(void **state) {
  static const char *const devices[] = {"cpu:threads=1", "cpu:threads=2"};
  const atom_set a = random_atoms(ATOMS, made_models[1].n_species, true, 5);
  (void)state;
  for (int i = 0; i < 2; i++) {
    one o = {NULL, NULL};
    OK(o.ctx, clb_context_create(devices[i], &o.ctx));
    OK(o.ctx, clb_model_open(o.ctx, path, NULL, &o.model));
    energy(&o, &a);
    assert_true(entries("/proc/self/task") <= 1 + i);
    close_one(&o);
    assert_int_equal(entries("/proc/self/task"), 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(again), cmocka_unit_test(many),
                                     cmocka_unit_test(few_threads)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
