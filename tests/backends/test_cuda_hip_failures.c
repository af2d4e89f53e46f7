/* tests/backends/test_cuda_hip_failures.c - the CUDA and HIP backends on fake drivers and
   compilers: results are right, every call fails once with a message, nothing is leaked, and the
   caller's current context or device stays. */
#define _GNU_SOURCE
#include "backends/cuda_hip/gpu.h"
#include "src/runtime/context.h"
#include "tests/backends/every_call.h"
#include "tests/fakes/staging.h"
#include "tests/build_kernel.h"

static fake_driver fake;
static void *cuda; /* the library that stands in for the driver; NULL: none does */

enum { N = 100, GROUPS = 4 };

/* y[row] = scale x[row] + row */
static void make_kernel(ir_kernel *k, int lanes, int local) {
  char error[200];
  ir_begin(k, "scale_rows", lanes, 1, lanes);
  ir_val n = ir_scalar(k, IR_I64), x = ir_buffer(k, IR_F32, false), y = ir_buffer(k, IR_F32, true),
         scale = ir_scalar(k, IR_F32);
  ir_val row = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, lanes)), ir_lane(k)),
         mask = ir_2(k, IR_LT, ir_cast(k, IR_I64, row), n);
  ir_val value = ir_fma(k, scale, ir_load(k, x, row, mask), ir_cast(k, IR_F32, row));
  if (local) {
    ir_val array = ir_local(k, IR_F32, local),
           last = ir_sub(k, ir_int(k, IR_I32, local - 1), ir_lane(k));
    ir_store(k, array, last, IR_NONE, value);
    value = ir_load(k, array, last, IR_NONE);
  }
  ir_store(k, y, row, mask, value);
  assert_true(ir_finish(k));
  if (!ir_verify(k, error, sizeof error)) fail_msg("%s", error);
}

/* The fake device: the interpreter. */
static void interpret(void *user, const char *text, unsigned groups, unsigned threads,
                      void **params) {
  const ir_kernel *k = user;
  ir_arg arg[8] = {{0}};
  char error[200];
  int n = 0;
  assert_non_null(strstr(text, k->name));
  assert_int_equal(threads, k->lanes * k->subgroups);
  for (int v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    if (i->op == IR_BUFFER) memcpy(&arg[n].p, params[n], sizeof(void *));
    else if (i->op == IR_SCALAR)
      memcpy(&arg[n], params[n], (size_t)ir_type_bytes((ir_type)i->type));
    else continue;
    n++;
  }
  if (!ir_run(k, arg, NULL, 0, groups, error, sizeof error)) fail_msg("%s", error);
}

/* ---- what is tried ---- */

/* from -> to with the factor 2, then back with 1: `from` is twice itself and twice its indices
   more.  Then `to` likewise, by the same recording on other memory; launch by launch where the
   driver made none of it. */
static clb_status use_recorded(trial *t, clb_device *d, clb_module *module, const clb_memory *x,
                               const clb_memory *y) {
  const clb_backend *b = t->backend;
  clb_recorded *r = NULL;
  clb_status s = CLB_OK;
  float before[N], after[N];
  for (int turn = 0; turn < 2 && !s; turn++) {
    const clb_memory *from = turn ? y : x, *to = turn ? x : y;
    const clb_arg args[2][4] = {{{.type = IR_I64, .i64 = N - 1},
                                 {.type = IR_VOID, .memory = from},
                                 {.type = IR_VOID, .memory = to},
                                 {.type = IR_F32, .f32 = 2}},
                                {{.type = IR_I64, .i64 = N - 1},
                                 {.type = IR_VOID, .memory = to},
                                 {.type = IR_VOID, .memory = from},
                                 {.type = IR_F32, .f32 = 1}}};
    clb_work work[2];
    for (int i = 0; i < 2; i++)
      work[i] = (clb_work){
          .name = "scale_rows", .module = module, .groups = GROUPS, .args = args[i], .n_args = 4};
    s = b->read(d, from, 0, before, sizeof before);
    b->record(d, work, 2, &r);
    if (!s && r) s = b->replay(d, r);
    for (int i = 0; i < 2 && !s && !r; i++) s = b->launch(d, module, GROUPS, args[i], 4);
    if (!s) s = b->read(d, from, 0, after, sizeof after);
    for (int i = 0; i < N - 1 && !s; i++)
      if (after[i] != 2 * before[i] + 2 * (float)i)
        fail_msg("%s: turn %d: element %d is %g", t->name, turn, i, (double)after[i]);
  }
  if (r) b->forget(d, r);
  return s;
}

static clb_status use(trial *t, clb_device *d, const ir_kernel *k) {
  const clb_backend *b = t->backend;
  float in[N], out[N] = {0};
  clb_memory x = {0}, y = {0}, middle;
  clb_text binary = {0};
  clb_module *module = NULL;
  for (int i = 0; i < N; i++) in[i] = (float)i / 2;
  clb_status s = b->alloc(d, sizeof in, &x);
  if (!s) s = b->alloc(d, sizeof out, &y);
  if (!s) s = b->write(d, &x, 4, in + 1, sizeof in - 4);
  if (!s) s = b->write(d, &x, 0, in, 4);
  if (!s) s = build_kernel(d, k, &binary);
  if (!s) s = b->load(d, k, binary.s, binary.n, &module);
  middle = (clb_memory){y.handle, CLB_POINTER, y.bytes, NULL};
  if (!s) s = b->wrap(d, &middle);
  const clb_arg args[] = {{.type = IR_I64, .i64 = N - 1},
                          {.type = IR_VOID, .memory = &x},
                          {.type = IR_VOID, .memory = &middle},
                          {.type = IR_F32, .f32 = 3}};
  if (!s) s = b->launch(d, module, GROUPS, args, 4);
  if (!s) s = b->wait(d);
  if (!s) s = b->read(d, &y, 4, out + 1, sizeof out - 4);
  for (int i = 1; i < N && !s; i++)
    if (out[i] != (i == N - 1 ? 0 : 3 * in[i] + (float)i))
      fail_msg("%s: element %d is %g", t->name, i, (double)out[i]);
  if (!s) s = use_recorded(t, d, module, &x, &y);
  b->unload(d, module);
  if (y.handle) b->free(d, &y);
  if (x.handle) b->free(d, &x);
  clb_text_free(&binary);
  return s;
}

static clb_status attempt(trial *t) {
  ir_kernel k;
  clb_device *d;
  int listed = 0;
  void *context = fake.context;
  int device = fake.device;
  t->backend->list(count_devices, &listed);
  clb_status s = open_trial(t, t->adopt ? &t->native : NULL, &d);
  make_kernel(&k, d ? d->limits.lanes[CLB_F32] : 32, t->local);
  fake.user = &k;
  if (!s) s = use(t, d, &k);
  if (d) t->backend->close(d);
  ir_free(&k);
  if (fake.mistake[0]) fail_msg("%s: %s", t->name, fake.mistake);
  const char *failed = fake.failed ? fake.failed : "";
  if (strcmp(failed, "cuCtxPopCurrent_v2") && strcmp(failed, "hipSetDevice")) {
    assert_ptr_equal(fake.context, context);
    assert_int_equal(fake.device, device);
  }
  fake.context = context;
  fake.device = device;
  return s;
}

/* Rows 10 ... 19 of memory of another device, which stands for that of another process. */
static clb_status share(trial *t) {
  const clb_backend *b = t->backend;
  clb_memory own = {0}, opened = {0}, mine = {0};
  clb_ipc_bytes handle;
  float x[N], y[N] = {0};
  clb_device *d, *other = NULL;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  clb_status s = open_trial(t, NULL, &d);
  if (!s) s = b->open(t->name, ":0", NULL, &t->error, &other);
  if (!s) s = b->alloc_ipc(other, sizeof x, &handle, &own);
  if (!s) s = b->write(other, &own, 0, x, sizeof x);
  if (!s) s = b->open_ipc(d, sizeof x, &handle, &opened);
  if (!s) s = b->alloc(d, sizeof y, &mine);
  if (!s) s = b->write(d, &mine, 0, y, sizeof y);
  if (!s) s = b->copy(d, &mine, 80, &opened, 40, 40);
  if (!s) s = b->read(d, &mine, 0, y, sizeof y);
  for (int i = 0; i < N && !s; i++)
    if (y[i] != (i < 20 || i >= 30 ? 0 : x[i - 10])) fail_msg("%s: element %d", t->name, i);
  if (!s) assert_int_equal(opened.bytes, sizeof x);
  if (mine.handle) b->free(d, &mine);
  if (opened.handle) b->free_ipc(d, &opened, true);
  if (own.handle) b->free_ipc(other, &own, false);
  if (other) b->close(other);
  if (d) b->close(d);
  return s;
}

/* The same by the public calls, of two contexts. */
static clb_status share_buffers(trial *t) {
  clb_context *ctx = NULL, *other = NULL;
  clb_buffer *own = NULL, *opened = NULL;
  clb_ipc_handle handle;
  const double x[2] = {3, 4};
  double y[2] = {0};
  char name[16];
  snprintf(name, sizeof name, "%s:0", t->backend->name);
  const clb_context *said = NULL;
  clb_status s = clb_context_create(t->name, &ctx);
  if (s) said = ctx;
  if (!s && (s = clb_context_create(name, &other))) said = other;
  if (!s && (s = clb_buffer_create_ipc(other, sizeof x, &handle, &own))) said = other;
  if (!s && (s = clb_buffer_write(own, 0, x, sizeof x))) said = other;
  if (!s && (s = clb_buffer_open_ipc(ctx, &handle, &opened))) said = ctx;
  if (!s && (s = clb_buffer_read(opened, 0, y, sizeof y))) said = ctx;
  if (!s) assert_memory_equal(x, y, sizeof x);
  if (s) clb_fail(&t->error, s, "%s", clb_error(said));
  clb_buffer_destroy(&opened);
  clb_buffer_destroy(&own);
  clb_context_destroy(&other);
  clb_context_destroy(&ctx);
  if (fake.mistake[0]) fail_msg("%s: %s", t->name, fake.mistake);
  return s;
}

/* Memory of another device of the process, twice: the second time it is known that it can. */
static clb_status share_peers(trial *t) {
  clb_context *ctx = NULL, *other = NULL;
  clb_buffer *own = NULL, *opened = NULL;
  const double x[2] = {3, 4};
  char name[16];
  snprintf(name, sizeof name, "%s:0", t->backend->name);
  memset(fake.reached, 0, sizeof fake.reached);
  const clb_context *said = NULL;
  clb_status s = clb_context_create(t->name, &ctx);
  if (s) said = ctx;
  if (!s && (s = clb_context_create(name, &other))) said = other;
  if (!s && (s = clb_buffer_create(other, sizeof x, &own))) said = other;
  if (!s && (s = clb_buffer_write(own, 0, x, sizeof x))) said = other;
  for (int turn = 0; turn < 2 && !s; turn++) {
    double y[2] = {0};
    if ((s = clb_buffer_open_peer(ctx, own, &opened))) said = ctx;
    if (!s && (s = clb_buffer_read(opened, 0, y, sizeof y))) said = ctx;
    if (!s) assert_memory_equal(x, y, sizeof x);
    clb_buffer_destroy(&opened);
  }
  if (s) clb_fail(&t->error, s, "%s", clb_error(said));
  clb_buffer_destroy(&own);
  clb_context_destroy(&other);
  clb_context_destroy(&ctx);
  if (fake.mistake[0]) fail_msg("%s: %s", t->name, fake.mistake);
  return s;
}

static void reset(void) {
  fake.left = -1;
  fake.only = fake.failed = NULL;
  fake.refuse = false;
  fake.devices = 2;
  fake.launch = interpret;
  fake.parameters = 4;
  fake.graphs = fake.updates = 0;
  fake.garbles = fake.alone = false;
}

static trial trial_of(bool hip) {
  if (!cuda) skip_because("CLB_TEST_FAKE_GPU does not name the fake drivers");
  reset();
  return (trial){.backend = hip ? &clb_backend_hip : &clb_backend_cuda,
                 .name = hip ? "hip:1" : "cuda:1",
                 .fake = &fake,
                 .code = 999,
                 .word = hip ? "hip" : "cuda"};
}

static void every_call(void **state) {
  (void)state;
  trial c = trial_of(false), h = trial_of(true);
  fail_each_call(&c, attempt, 35);
  fail_each_call(&h, attempt, 40);
  c.local = 16384;
  fail_each_call(&c, attempt, 36);
}

static void ipc(void **state) {
  (void)state;
  trial c = trial_of(false), h = trial_of(true);
  fail_each_call(&c, share, 55);
  fail_each_call(&h, share, 45);
  fail_each_call(&c, share_buffers, 50);
  fail_each_call(&h, share_buffers, 45);
  fake.garbles = true;
  assert_int_equal(share_buffers(&c), CLB_ERROR_DEVICE);
  assert_non_null(strstr(c.error.text.s, "or copies from there are wrong"));
  clb_text_free(&c.error.text);
  fake.garbles = false;
}

static void peers(void **state) {
  (void)state;
  for (int hip = 0; hip < 2; hip++) {
    trial t = trial_of(hip);
    fail_each_call(&t, share_peers, 50);
    for (int i = 0; i < 2; i++) {
      *(i ? &fake.alone : &fake.garbles) = true;
      assert_int_equal(share_peers(&t), CLB_ERROR_UNSUPPORTED);
      assert_non_null(strstr(t.error.text.s, i ? "there is no peer access between the two"
                                               : "copies from there are wrong"));
      clb_text_free(&t.error.text);
      fake.garbles = false;
    }
  }
}

/* The caller's stream, while the caller's thread works elsewhere. */
static void adopted(void **state) {
  (void)state;
  trial t = trial_of(false);
  int (*retain)(void **, int), (*stream)(void **, unsigned), (*destroy)(void *);
  void *first = NULL, *second = NULL;
  fake_function(cuda, "cuDevicePrimaryCtxRetain", &retain);
  fake_function(cuda, "cuStreamCreate", &stream);
  fake_function(cuda, "cuStreamDestroy_v2", &destroy);
  assert_int_equal(retain(&first, 0) | retain(&second, 1), 0);
  t.adopt = true;
  fake.context = second;
  assert_int_equal(stream(&t.native.queue, 0), 0);
  fake.context = first;
  fail_each_call(&t, attempt, 30);
  /* the stream of another device */
  t.name = "cuda";
  assert_int_equal(attempt(&t), CLB_ERROR_DEVICE);
  assert_non_null(strstr(t.error.text.s, "belongs to cuda:1"));
  clb_text_free(&t.error.text);
  /* no stream: the thread's context */
  t.native.queue = NULL;
  assert_int_equal(attempt(&t), CLB_OK);
  fake.context = second;
  void *queue = NULL;
  assert_int_equal(stream(&queue, 0), 0);
  destroy(queue);
  fake.context = NULL;
}

/* CUDA's launches provide the local memory that the text does not declare: all above 48 KB. */
static void local_memory(void **state) {
  static const struct {
    const char *name;
    int local;
    unsigned launched;
    clb_status status;
  } table[] = {{"cuda:1", 12288, 0, CLB_OK},
               {"cuda:1", 12289, 49168, CLB_OK},
               {"cuda:1", 16384, 65536, CLB_OK},
               {"cuda:1", 58112, 232448, CLB_OK},
               {"cuda:1", 58113, 0, CLB_ERROR_UNSUPPORTED},
               {"hip:1", 16384, 0, CLB_OK}};
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    trial t = trial_of(table[i].name[0] == 'h');
    t.local = table[i].local;
    fake.local = 0;
    clb_status s = attempt(&t);
    if (s != table[i].status || fake.local != table[i].launched)
      fail_msg("%s, %d elements: %d, %u bytes, %s", t.name, t.local, (int)s, fake.local,
               t.error.text.s ? t.error.text.s : "");
    if (s)
      assert_string_equal(t.error.text.s, "cuda:1: scale_rows wants 232464 bytes of local memory; "
                                          "the device has at most 232448 for a group");
    clb_text_free(&t.error.text);
  }
  trial t = trial_of(false);
  t.local = 16384;
  expect_failure(&t, attempt,
                 &(coded_failure){"cuFuncSetAttribute", 1, CLB_ERROR_DRIVER,
                                  "cuda:1: cuFuncSetAttribute: FAKE_ERROR (1)"});
}

/* A recording is one graph, updated where the driver can; if any call refuses, the launches are
   made one by one. */
static void graphs(void **state) {
  static const struct {
    const char *refuses[2]; /* CUDA's, HIP's */
    int graphs, updates;
  } table[] = {{{NULL, NULL}, 2, 1},
               {{"cuGraphExecUpdate_v2", "hipGraphExecUpdate"}, 2, 0},
               {{"cuStreamBeginCapture_v2", "hipStreamBeginCapture"}, 0, 0},
               {{"cuStreamEndCapture", "hipStreamEndCapture"}, 0, 0},
               {{"cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"}, 0, 0},
               {{"cuGraphUpload", "hipGraphUpload"}, 2, 1}};
  (void)state;
  for (int i = 0; i < 2 * (int)(sizeof table / sizeof *table); i++) {
    trial t = trial_of(i % 2);
    const char *refuses = table[i / 2].refuses[i % 2];
    fake.left = refuses ? 0 : -1, fake.only = refuses, fake.code = 900;
    int alive = fake.alive;
    if (attempt(&t)) fail_msg("%s, %s: %s", t.name, refuses, t.error.text.s);
    if (fake.graphs != table[i / 2].graphs || fake.updates != table[i / 2].updates)
      fail_msg("%s, %s: %d graphs, %d updates", t.name, refuses, fake.graphs, fake.updates);
    assert_int_equal(fake.alive, alive);
    reset();
    expect_failure(&t, attempt,
                   i % 2 ? &(coded_failure){"hipGraphLaunch", 719, CLB_ERROR_DRIVER,
                                            "hip:1: hipGraphLaunch: FAKE_ERROR (719)"}
                         : &(coded_failure){"cuGraphLaunch", 719, CLB_ERROR_DRIVER,
                                            "cuda:1: cuGraphLaunch: FAKE_ERROR (719)"});
  }
}

static void staging(void **state) {
  (void)state;
  for (int hip = 0; hip < 2; hip++) {
    trial t = trial_of(hip);
    const int alive = fake.alive;
    clb_device *d;
    assert_int_equal(open_trial(&t, NULL, &d), CLB_OK);
    check_staging(d, &fake, hip ? "hipHostMalloc" : "cuMemHostAlloc");
    t.backend->close(d);
    assert_int_equal(fake.alive, alive);
    clb_text_free(&t.error.text);
  }
}

/* Copies of a context go through page-locked memory, which goes with it, unless there is none. */
static void staged_copies(void **state) {
  (void)state;
  for (int fails = 0; fails < 2; fails++) {
    trial_of(false);
    const int alive = fake.alive;
    const double x[3] = {1, 2, 3};
    double y[3] = {0};
    clb_context *ctx = NULL;
    clb_buffer *b;
    assert_int_equal(clb_context_create("cuda:1", &ctx), CLB_OK);
    assert_int_equal(clb_buffer_create(ctx, sizeof x, &b), CLB_OK);
    fake.pinned = 0;
    if (fails) fake.only = "cuMemHostAlloc", fake.left = 0, fake.code = 2;
    assert_int_equal(clb_staged_write(b, 0, x, sizeof x), CLB_OK);
    assert_int_equal(clb_staged_read(b, 0, y, sizeof y), CLB_OK);
    assert_int_equal(clb_staged_write(b, 0, x, 0), CLB_OK);
    assert_int_equal(fake.pinned, fails ? 0 : 2);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(clb_staged_write(b, 0, NULL, 8), CLB_ERROR_ARGUMENT);
    assert_int_equal(clb_staged_read(b, 20, y, 8), CLB_ERROR_ARGUMENT);
    clb_buffer_destroy(&b);
    clb_context_destroy(&ctx);
    reset();
    assert_int_equal(fake.alive, alive);
    if (fake.mistake[0]) fail_msg("%s", fake.mistake);
  }
}

/* Some codes have a status of their own, some also by situation. */
static void sentences(void **state) {
  static const coded_failure table[] = {
      {"cuInit", 100, CLB_ERROR_DEVICE,
       "the driver finds no NVIDIA GPU here (cuda: cuInit: FAKE_ERROR (100)"},
      {"hipInit", 100, CLB_ERROR_DEVICE, "the driver finds no AMD GPU here"},
      {"cuMemAlloc_v2", 2, CLB_ERROR_MEMORY,
       "cuda:1: cuMemAlloc_v2: FAKE_OUT_OF_MEMORY (2): told to fail (400 bytes)"},
      {"hipMalloc", 2, CLB_ERROR_MEMORY, "hip:1: hipMalloc: FAKE_OUT_OF_MEMORY (2)"},
      {"cuPointerGetAttribute", 1, CLB_ERROR_ARGUMENT, "is not memory of this driver"},
      {"nvrtcCompileProgram", 6, CLB_ERROR_COMPILE,
       "nvrtcCompileProgram: FAKE_COMPILATION (6), compiling scale_rows"},
      {"hiprtcCompileProgram", 6, CLB_ERROR_COMPILE, "hiprtcCompileProgram: FAKE_COMPILATION (6)"},
      {"cuModuleLoadData", 200, CLB_ERROR_DRIVER,
       "cuda:1: cuModuleLoadData: FAKE_ERROR (200): told to fail, loading the binary of scale_rows "
       "("},
      {"hipModuleLoadData", 200, CLB_ERROR_DRIVER,
       "hip:1: hipModuleLoadData: FAKE_ERROR (200): told to fail, loading the binary of scale_rows "
       "("},
      {"cuLaunchKernel", 719, CLB_ERROR_DRIVER,
       "cuda:1: cuLaunchKernel: FAKE_ERROR (719): told to fail"},
      {"hipStreamSynchronize", 719, CLB_ERROR_DRIVER,
       "hip:1: hipStreamSynchronize: FAKE_ERROR (719)"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    trial t = trial_of(table[i].function[0] == 'h');
    expect_failure(&t, attempt, &table[i]);
  }
  trial t = trial_of(false);
  t.name = "cuda:7";
  assert_int_equal(attempt(&t), CLB_ERROR_DEVICE);
  assert_string_equal(t.error.text.s, "cuda:7: there are 2 NVIDIA GPUs here, counted from 0");
  t.name = "cuda:1";
  fake.refuse = true;
  assert_int_equal(attempt(&t), CLB_ERROR_COMPILE);
  assert_non_null(strstr(t.error.text.s, "line 1: refused by the fake compiler"));
  fake.devices = 0;
  assert_int_equal(attempt(&t), CLB_ERROR_DEVICE);
  clb_text_free(&t.error.text);
}

/* Mistakes that a careless caller of the backend could make. */
static void misuse(void **state) {
  (void)state;
  trial t = trial_of(false);
  clb_device *d = NULL;
  clb_module *module = NULL;
  clb_text binary = {0};
  ir_kernel k;
  make_kernel(&k, 32, 0);
  assert_int_equal(t.backend->open("cuda", "", NULL, &t.error, &d), CLB_OK);
  assert_int_equal(d->info.runs, 1);
  assert_string_equal(d->info.description, "Fake GPU 0, sm_90");
  assert_int_equal(build_kernel(d, &k, &binary), CLB_OK);
  assert_int_equal(t.backend->load(d, &k, "\177ELF", 4, &module), CLB_ERROR_DRIVER);
  assert_string_equal(t.error.text.s, "cuda:0: the binary of scale_rows (4 bytes) is damaged: it "
                                      "is cut short within its ELF header");
  assert_int_equal(t.backend->load(d, &k, binary.s, binary.n, &module), CLB_OK);
  assert_int_equal(t.backend->launch(d, module, 1, NULL, 0), CLB_ERROR_INTERNAL);
  const clb_memory none = {0};
  const clb_arg args[4] = {
      {.type = IR_I64}, {.memory = &none}, {.memory = &none}, {.type = IR_F32}};
  assert_int_equal(t.backend->launch(d, module, INT64_C(1) << 31, args, 4), CLB_ERROR_ARGUMENT);
  t.backend->unload(d, module);
  t.backend->close(d);
  clb_text_free(&binary);
  clb_text_free(&t.error.text);
  ir_free(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_call), cmocka_unit_test(ipc),           cmocka_unit_test(peers),
      cmocka_unit_test(adopted),    cmocka_unit_test(local_memory),  cmocka_unit_test(graphs),
      cmocka_unit_test(staging),    cmocka_unit_test(staged_copies), cmocka_unit_test(sentences),
      cmocka_unit_test(misuse)};
  cuda = find_fake_gpus(&fake);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
