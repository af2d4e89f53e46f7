/* tests/runtime/test_lifetimes.c - contexts and their objects, destroyed in any order, many times.
 */
#include "tests/runtime/misuse.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

enum { CONTEXT, BUFFER, OP, GRAPH, RECORDING, MODEL, THINGS };

static clb_model *model;
static char path[400], folder[] = "/tmp/clebsch-lifetimes-XXXXXX";

/* Kernels of "cpu" are compiled once. */
static int open_folder(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s/strangers/tiny.safetensors", getenv("CLB_TEST_DATA"));
  return !mkdtemp(folder) || setenv("CLB_CACHE_DIR", folder, 1);
}

static int remove_folder(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static void make_things(const char *device) {
  t.device = device;
  make_all(NULL);
  need(clb_model_open(t.ctx, path, NULL, &model));
}

static void destroy(int thing) {
  switch (thing) {
    case CONTEXT: clb_context_destroy(&t.ctx); break;
    case BUFFER: clb_buffer_destroy(&t.b); break;
    case OP: clb_op_destroy(&t.sh); break;
    case GRAPH: clb_graph_destroy(&t.graph); break;
    case RECORDING: clb_recording_destroy(&t.recording); break;
    default: clb_model_destroy(&model);
  }
}

/* ---- orders ---- */

static double model_energy(void) {
  static const int32_t species[2] = {0, 1};
  static const double places[6] = {0, 0, 0, 1, 0.5, 0};
  const clb_model_atoms atoms = {.n = 2, .species = species, .positions = places};
  double energy = NAN;
  assert_int_equal(clb_model_compute(model, &atoms, &(clb_model_results){.energy = &energy}),
                   CLB_OK);
  return energy;
}

/* Whether or not the context's handle is destroyed, its remaining objects work. */
static void expect_use(double energy) {
  float out[9 * 10];
  const clb_index_list s = t.senders, r = t.receivers;
  if (t.b && t.sh) assert_int_equal(clb_spherical_harmonics_forward(t.sh, 10, t.x, t.y), CLB_OK);
  if (t.recording) assert_int_equal(clb_replay(t.recording), t.b ? CLB_OK : CLB_ERROR_ARGUMENT);
  if (t.b) assert_int_equal(clb_buffer_read(t.b, 4096 * 4, out, sizeof out), CLB_OK);
  if (t.b && (t.sh || t.recording)) assert_true(out[0] == 1); /* Y_00 */
  if (t.graph)
    assert_int_equal(clb_graph_update(t.graph, RECEIVERS, RECEIVERS, EDGES, CLB_I32, s, r), CLB_OK);
  if (model) assert_true(model_energy() == energy);
}

static void try_order(const char *device, const int *order, bool recording) {
  make_things(device);
  const double energy = model_energy();
  if (recording) { /* a recording that is never ended */
    need(clb_record_begin(t.ctx));
    need(clb_spherical_harmonics_forward(t.sh, 10, t.x, t.y));
  }
  bool open = true;
  for (int i = 0; i < THINGS; i++) {
    destroy(order[i]);
    open &= order[i] != CONTEXT;
    if (!open || !recording) expect_use(energy);
  }
  destroy_all(NULL);
}

static void orders(const char *device, int shuffles) {
  uint64_t seed = 5;
  int order[THINGS];
  for (int n = 0; n < THINGS + shuffles; n++) {
    for (int i = 0; i < THINGS; i++) order[i] = (i + n) % THINGS;
    for (int i = THINGS - 1; i > 0 && n >= THINGS; i--) { /* after Fisher and Yates */
      const int k = (int)((test_random(&seed) + 1) / 2 * (i + 1)), kept = order[i];
      order[i] = order[k];
      order[k] = kept;
    }
    try_order(device, order, n % 3 == 2);
  }
}

static void orders_interpreted(void **state) {
  (void)state;
  orders("cpu:interpreter", 12);
}

static void orders_compiled(void **state) {
  (void)state;
  orders("cpu", 3);
}

/* ---- rounds ---- */

static int open_files(void) {
  DIR *all = opendir("/proc/self/fd");
  int n = 0;
  assert_non_null(all);
  while (readdir(all)) n++;
  closedir(all);
  return n;
}

/* 0 under AddressSanitizer, which keeps what is freed. */
static size_t resident_bytes(void) {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  unsigned long size, resident;
  FILE *f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
  fclose(f);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
#endif
}

/* After some rounds nothing grows: neither allocated memory (a few kilobytes vary with the
   allocator's own lists), nor memory as the system counts it (with threads' stacks and modules),
   nor the number of open files. */
static void rounds(const char *device, int n) {
  size_t used = 0, resident = 0;
  int files = 0;
  for (int i = 0; i <= n; i++) {
    make_things(device);
    expect_use(model_energy());
    clb_model_destroy(&model);
    destroy_all(NULL);
    if (i == n / 3) used = mallinfo2().uordblks, resident = resident_bytes(), files = open_files();
  }
  assert_int_equal(open_files(), files);
  if (mallinfo2().uordblks > used + 32000) fail_msg("%zu bytes more", mallinfo2().uordblks - used);
  if (resident_bytes() > resident + ((size_t)2 << 20))
    fail_msg("%zu resident bytes more", resident_bytes() - resident);
}

static void rounds_interpreted(void **state) {
  (void)state;
  rounds("cpu:interpreter", 45);
}

static void rounds_compiled(void **state) {
  (void)state;
  rounds("cpu", 9);
}

static void failed_calls(void **state) {
  (void)state;
  size_t used = 0;
  t.device = "cpu:interpreter";
  make_all(NULL);
  clb_spherical_harmonics_desc bad = t.sh_desc;
  bad.n_degrees = 0;
  for (int i = 0; i < 20000; i++) {
    REFUSED(clb_spherical_harmonics_create(t.ctx, &bad, &made.op));
    REFUSED(clb_buffer_create(t.ctx, UINT64_MAX, &made.buffer));
    if (i == 100) used = mallinfo2().uordblks;
  }
  assert_true(mallinfo2().uordblks <= used + 32000);
  destroy_all(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders_interpreted), cmocka_unit_test(orders_compiled),
      cmocka_unit_test(rounds_interpreted), cmocka_unit_test(rounds_compiled),
      cmocka_unit_test(failed_calls)};
  return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
