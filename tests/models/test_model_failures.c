/* tests/models/test_model_failures.c - a model step on the test-only drivers, whose k-th call fails
   once: either the step succeeded, or a message names the call and the driver's error; no object is
   left, and the next step succeeds. The drivers compute nothing, so all numbers are the same.
   Without an argument each driver is tried in a process of its own, as the fakes replace real
   libraries. CLB_TEST_CALLS: how many calls of each part of a step fail, spread evenly (0: every
   one). */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/wait.h>

#include "tests/fakes/find_fakes.h"
#include "tests/models/model_places.h"

static const made_model small = {
    .architecture = "nequix",
    .species = "H O",
    .irreps_sh = "1x0e+1x1o",
    .embedding = "one_hot",
    .self = "linear",
    .norm = "rms",
    .normalization = "fan_in",
    .n_species = 2,
    .l_max = 1,
    .n_layers = 2,
    .readout_layers = 1,
    .layer = {
        {"2x0e", "2x0e+2x1o", "0,0,0 0,1,1", "5x0e+2x1o", "3x0e", "2x0e", "2x1o", "3x0e+2x1o"},
        {"3x0e+2x1o", "3x0e+2x0e", "0,0,0 1,1,1", "4x0e", "4x0e", "", "", "4x0e"}}};

/* ---- the drivers ---- */

typedef struct {
  const char *name;
  int opens,
      steps; /* calls that fail of an opening and of a step, unless CLB_TEST_CALLS says otherwise */
  fake_driver *(*find)(void);
  int codes[2];         /* with which calls fail: any, for lack of memory */
  const char *words;    /* that a message contains */
  const char *missed;   /* functions, separated by spaces, that may fail unnoticed: the results are
                           right without them */
  bool has_memory_size; /* that a test can set */
} driver;

enum { NEVER = INT_MAX };

/* The kernel that looks for bad edges finds none, and that of sums says that n atoms have 12 n n
   neighbours; no other does anything. */
static void idle(void *user, const char *text, unsigned groups, unsigned threads, void **params) {
  static int64_t atoms;
  int32_t *found;
  (void)user, (void)threads;
  const bool checks = strstr(text, " graph_check"), sums = strstr(text, " graph_scan");
  if (strstr(text, " cell_count")) memcpy(&atoms, params[1], sizeof atoms);
  if (!checks && !sums) return;
  memcpy(&found, params[checks ? 10 : 2], sizeof found);
  for (unsigned i = 0; i < groups; i++)
    found[i] = checks ? INT32_MAX : i ? 0 : 12 * (int32_t)(atoms * atoms);
}

static fake_driver *find_gpu(void) {
  static fake_driver gpu = {.devices = 1};
  return find_fake_gpus(&gpu) ? &gpu : NULL;
}

/* OpenCL: platforms, devices, contexts and queues are those of a real driver. */
static fake_driver *find_opencl(void) {
  void *genuine;
  fake_driver *fake = find_fake_opencl(&genuine);
  clb_context *ctx = NULL;
  if (fake) fake->idle = true;
  const bool opens = fake && !clb_context_create("opencl:0:0", &ctx);
  clb_context_destroy(&ctx);
  return opens ? fake : NULL;
}

static fake_driver *find_level_zero(void) {
  void *loader;
  fake_driver *fake = find_fake_level_zero(&loader);
  if (fake) fake->idle = true;
  return fake;
}

static const driver drivers[] = {
    {"cuda:0",
     80,
     60,
     find_gpu,
     {999, 2},
     "FAKE_",
     "cuDriverGetVersion cuDeviceGetAttribute cuCtxGetCurrent cuCtxPushCurrent_v2 "
     "cuCtxPopCurrent_v2 cuMemFree_v2 nvrtcGetProgramLogSize nvrtcDestroyProgram",
     true},
    {"hip:0",
     80,
     60,
     find_gpu,
     {999, 2},
     "FAKE_",
     "hipRuntimeGetVersion hipDeviceGetAttribute hipGetDevice hipFree hiprtcGetProgramLogSize "
     "hiprtcDestroyProgram",
     true},
    {"opencl:0:0",
     20,
     40,
     find_opencl,
     {-5 /* CL_OUT_OF_RESOURCES */, -6 /* CL_OUT_OF_HOST_MEMORY */},
     "CL_OUT_OF_",
     "clGetExtensionFunctionAddressForPlatform",
     false},
    {"level_zero:0",
     20,
     40,
     find_level_zero,
     {0x7ffffffe /* ZE_RESULT_ERROR_UNKNOWN */,
      0x70000003 /* ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY */},
     "ZE_RESULT_ERROR_",
     "zeModuleBuildLogDestroy zeMemFree zeModuleDestroy zeKernelDestroy "
     "zeDevicePciGetPropertiesExt zeCommandListAppendBarrier "
     "zeEventHostSynchronize zeEventHostReset",
     false}};

/* ---- a step ---- */

static struct {
  const driver *d;
  fake_driver *fake;
  char path[64];
  atom_set atoms[2]; /* the second has other neighbours, and more */
  computed right[2];
} here;

/* The k-th call from now on fails, for lack of memory or not; 0: none. */
static void arm(long k, bool memory) {
  here.fake->left = k ? (int)k - 1 : NEVER;
  here.fake->code = here.d->codes[memory];
  here.fake->failed = NULL;
}

/* How many calls there were since, if none failed. */
static long calls(void) { return (long)NEVER - here.fake->left; }

static clb_status compute_set(opened *o, int which, computed *c) {
  const atom_set *a = &here.atoms[which];
  const clb_model_atoms atoms = {a->n, a->species, a->positions, a->cell, {1, 1, 1}, .charge = 0};
  return clb_model_compute(o->model, &atoms,
                           &(clb_model_results){&c->energy, c->e_atom, c->forces, c->stress, NULL});
}

static void must_be_right(const computed *c, int which) {
  expect_same(c, &here.right[which], here.atoms[which].n, 0);
}

static clb_status open_model(opened *o) {
  *o = (opened){0};
  const clb_status s = clb_context_create(here.d->name, &o->ctx);
  return s ? s : clb_model_open(o->ctx, here.path, NULL, &o->model);
}

static bool among(const char *names, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = names; (at = strstr(at, name)); at += n)
    if ((at == names || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
  return false;
}

/* Functions whose error codes differ from the driver's. */
static bool is_compilers(const char *name) {
  return !strncmp(name, "nvrtc", 5) || !strncmp(name, "hiprtc", 6) ||
         !strncmp(name, "amd_comgr", 9);
}

/* An injected failure, of memory or not: reported with the call's name, the driver's error and the
   right status, or one that does no harm. Where memory lacked once, a system is computed in blocks.
 */
static void must_be_told(const opened *o, clb_status s, const char *part, long k, bool memory) {
  const char *failed = here.fake->failed, *said = clb_error(o->ctx);
  if (!s && (!failed || among(here.d->missed, failed))) return;
  if (!s && o->model && o->model->too_many_edges) return;
  if (!s) fail_msg("%s: %s, call %ld: %s failed unseen", here.d->name, part, k, failed);
  if (!failed) fail_msg("%s: %s fails with no call failing: %s", here.d->name, part, said);
  if (!strstr(said, here.d->words) || !strstr(said, failed))
    fail_msg("%s: %s, call %ld, %s failed: status %d, \"%s\"", here.d->name, part, k, failed,
             (int)s, said);
  const bool fits =
      s == CLB_ERROR_DEVICE ||
      (s == CLB_ERROR_MEMORY && (memory || strstr(failed, "Alloc") || strstr(failed, "Buffer") ||
                                 strstr(failed, "Malloc"))) ||
      ((s == CLB_ERROR_DRIVER || s == CLB_ERROR_COMPILE) && (!memory || is_compilers(failed)));
  if (!fits)
    fail_msg("%s: %s, call %ld, %s failed for%s lack of memory: status %d, \"%s\"", here.d->name,
             part, k, failed, memory ? "" : " no", (int)s, said);
}

static void must_obey(const char *part, long k, int alive) {
  const char *failed = here.fake->failed;
  if (here.fake->mistake[0])
    fail_msg("%s: %s, call %ld (%s): %s", here.d->name, part, k, failed ? failed : "none",
             here.fake->mistake);
  if (here.fake->alive != alive)
    fail_msg("%s: %s, call %ld (%s): %d objects are left over", here.d->name, part, k,
             failed ? failed : "none", here.fake->alive - alive);
}

/* Opens a context, runs, destroys it; the k-th call fails (0: none). Returns the number of calls.
 */
static long whole_step(long k, bool check) {
  const int alive = here.fake->alive;
  opened o;
  computed c[2] = {{0}};
  arm(k, k % 2);
  clb_status s = open_model(&o);
  for (int i = 0; i < 2 && !s; i++) {
    s = compute_set(&o, i, &c[i]);
    if (!s && check) must_be_right(&c[i], i);
    if (!s && !check) here.right[i] = c[i];
  }
  must_be_told(&o, s, "a whole step", k, k % 2);
  close_model(&o);
  const long n = calls();
  must_obey("a whole step", k, alive);
  arm(0, false);
  return n;
}

/* The calls that fail: all, or that many, spread evenly. */
static long next_call(long k, long n, int usual) {
  const char *wish = getenv("CLB_TEST_CALLS");
  const long max = wish ? atol(wish) : usual;
  return k + (max > 0 && n > max ? (n + max - 1) / max | 1
                                 : 1); /* odd: every other call asks for the context */
}

static void whole_steps(void **state) {
  (void)state;
  const long n = whole_step(0, true);
  long tried = 0;
  for (long k = 1; k <= n; k = next_call(k, n, here.d->opens), tried++) whole_step(k, true);
  whole_step(0, true);
  printf("%s: %ld of the %ld calls of a whole step failed\n", here.d->name, tried, n);
}

/* The model stays usable: results after a failed call are right. */
/* No set comes twice in a row, so that nothing is recorded. */
static void steps_of_one_model(void **state) {
  opened o;
  computed c;
  long n = 1, tried = 0, told = 0;
  (void)state;
  const int alive = here.fake->alive;
  if (open_model(&o)) fail_msg("%s", clb_error(o.ctx));
  for (int i = 1; i >= 0; i--) assert_int_equal(compute_set(&o, i, &c), CLB_OK);
  for (long k = 0; k <= n; k = k ? next_call(k, n, here.d->steps) : 1) {
    arm(k, k / 2 % 2);
    clb_status s = CLB_OK;
    for (int i = 1; i >= 0 && !s; i--) {
      c = (computed){0};
      s = compute_set(&o, i, &c);
      if (!s) must_be_right(&c, i);
    }
    if (!k) n = calls();
    must_be_told(&o, s, "a step", k, k / 2 % 2);
    tried += k > 0, told += s != CLB_OK;
    arm(0, false);
    for (int i = 1; i >= 0; i--) {
      c = (computed){0};
      if (compute_set(&o, i, &c))
        fail_msg("%s: after call %ld of a step failed: %s", here.d->name, k, clb_error(o.ctx));
      must_be_right(&c, i);
    }
    o.model->too_many_edges = 0;
  }
  close_model(&o);
  must_obey("a step", 0, alive);
  assert_true(told > tried / 4);
  printf("%s: %ld of the %ld calls of two steps failed, %ld told\n", here.d->name, tried, n, told);
}

/* The second step is recorded, and the third replays it; where the driver cannot, launches follow
   each other as in the first. */
static void recorded_steps(void **state) {
  opened o;
  computed c;
  long n = 1, good = 0;
  (void)state;
  const int alive = here.fake->alive;
  if (open_model(&o)) fail_msg("%s", clb_error(o.ctx));
  for (long k = 0; k <= n; k = k ? next_call(k, n, here.d->steps) : 1) {
    assert_int_equal(compute_set(&o, 1, &c), CLB_OK);
    clb_status s = compute_set(&o, 0, &c);
    arm(k, k / 2 % 2);
    for (int i = 0; i < 2 && !s; i++) {
      c = (computed){0};
      s = compute_set(&o, 0, &c);
      if (!s) must_be_right(&c, 0), good++;
    }
    if (!k) n = calls();
    arm(0, false);
    for (int i = 0; i < 3; i++) {
      c = (computed){0};
      assert_int_equal(compute_set(&o, 0, &c), CLB_OK);
      must_be_right(&c, 0);
    }
  }
  close_model(&o);
  must_obey("a recorded step", 0, alive);
  assert_true(good >= 2);
}

/* ---- too little memory ---- */

static void must_say(const clb_context *ctx, const char *word) {
  if (!strstr(clb_error(ctx), word)) fail_msg("\"%s\" lacks \"%s\"", clb_error(ctx), word);
}

static void little_memory(void **state) {
  enum { MiB = 1 << 20 };
  opened o;
  computed c = {0};
  clb_buffer *b;
  long long atoms = 0, edges = 0;
  (void)state;
  const int alive = here.fake->alive;
  here.fake->memory = 16 * MiB;
  if (open_model(&o)) fail_msg("%s", clb_error(o.ctx));
  assert_int_equal(clb_buffer_create(o.ctx, 17 * MiB, &b), CLB_ERROR_MEMORY);
  must_say(o.ctx, "FAKE_OUT_OF_MEMORY");
  must_say(o.ctx, "(17825792 bytes)");
  must_say(o.ctx,
           here.d->name[0] == 'c' ? "; of the 16.0 MiB of cuda:0 " : "; of the 16.0 MiB of hip:0 ");
  must_say(o.ctx, " MiB are free");
  assert_int_equal(compute_set(&o, 0, &c), CLB_OK);
  close_model(&o);
  here.fake->memory = 4 * MiB; /* less than the larger system needs */
  if (open_model(&o)) fail_msg("%s", clb_error(o.ctx));
  here.fake->memory = 1; /* and nothing is left of it */
  assert_int_equal(compute_set(&o, 1, &c), CLB_ERROR_MEMORY);
  must_say(o.ctx, "FAKE_OUT_OF_MEMORY");
  must_say(o.ctx, ": 100 atoms and ");
  const char *fits = strstr(clb_error(o.ctx), "; about ");
  if (!fits || sscanf(fits, "; about %lld atoms and %lld edges would fit", &atoms, &edges) != 2)
    fail_msg("%s", clb_error(o.ctx));
  if (atoms < 1 || atoms >= 100 || edges < 1) fail_msg("%s", clb_error(o.ctx));
  printf("%s: %s\n", here.d->name, clb_error(o.ctx));
  here.fake->memory = 0;
  assert_int_equal(compute_set(&o, 1, &c), CLB_OK);
  close_model(&o);
  must_obey("too little memory", 0, alive);
}

/* ---- one process for each ---- */

static int make_right(void **state) {
  (void)state;
  snprintf(here.path, sizeof here.path, "/tmp/clebsch_made_XXXXXX");
  const int file = mkstemp(here.path);
  if (file < 0 || close(file)) return -1;
  setenv("CLB_CACHE_DIR", "off", 1); /* a fake compiler takes no time, so its calls can fail too */
  made_write(&small, here.path, NULL, NULL);
  here.atoms[0] = random_atoms(6, 2, true, 3);
  here.atoms[1] = random_atoms(100, 2, true, 4);
  whole_step(0, false);
  return 0;
}

static int remove_made(void **state) {
  (void)state;
  return unlink(here.path);
}

enum { SKIPPED = 77 };

static void by_itself(void **state) {
  const driver *d = *state;
  char self[1024] = "", command[1200];
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command, "'%s' %s", self, d->name);
  const int status = system(command);
  if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
    skip_because("the test-only driver of %s does not open here", d->name);
  assert_int_equal(status, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest parts[] = {
      cmocka_unit_test(whole_steps), cmocka_unit_test(steps_of_one_model),
      cmocka_unit_test(recorded_steps), cmocka_unit_test(little_memory)};
  struct CMUnitTest all[sizeof drivers / sizeof *drivers];
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
    all[i] = (struct CMUnitTest){.name = drivers[i].name,
                                 .test_func = by_itself,
                                 .initial_state = (void *)(uintptr_t)&drivers[i]};
    if (argc < 2 || strcmp(argv[1], drivers[i].name)) continue;
    here.d = &drivers[i];
    if (!(here.fake = here.d->find())) return SKIPPED;
    here.fake->launch = idle;
    arm(0, false);
    return _cmocka_run_group_tests(here.d->name, parts, here.d->has_memory_size ? 4 : 3, make_right,
                                   remove_made);
  }
  return cmocka_run_group_tests(all, NULL, NULL);
}
