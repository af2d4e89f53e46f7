/* tests/backends/test_opencl_failures.c - every call of the OpenCL backend fails once: a message
   each time, no leak, no crash. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>

#include "tests/fakes/fake_opencl.h"
#include "tests/backends/opencl_devices.h"

static struct {
  fake_opencl_state *fake; /* NULL: no fake, or no OpenCL */
  void *genuine;           /* library */
} here;                    /* filled once, by main */

static void count(const clb_device_info *info, void *user) {
  assert_non_null(info->description);
  ++*(int *)user;
}

static void genuine_call(const char *name, void *call) {
  void *address = dlsym(here.genuine, name);
  assert_non_null(address);
  memcpy(call, &address, sizeof address);
}

/* ---- what is tried ---- */

typedef struct {
  const char *name;
  clb_error_sink error;
  clb_device *device; /* open while the calls that fail are others' */
  clb_native native;
  void *pointer; /* shared memory, or NULL */
} trial;

static clb_status open_and_close(trial *t) {
  int n = 0;
  clb_device *d = NULL;
  opencl->list(count, &n);
  assert_true(n <= found.n);
  clb_status s = opencl->open(t->name, t->name + 6, NULL, &t->error, &d);
  assert_true(!s == (d != NULL));
  if (d) opencl->close(d);
  return s;
}

static clb_status adopt_and_close(trial *t) {
  clb_device *d = NULL;
  clb_status s = opencl->open("opencl", "", &t->native, &t->error, &d);
  assert_true(!s == (d != NULL));
  if (d) opencl->close(d);
  return s;
}

static clb_status use(trial *t) {
  void *arrays[CASE_PARAMETERS] = {0};
  kernel_case c;
  case_begin(&c, 0, &t->device->limits, rounds_division(t->device));
  case_copies(&c, arrays);
  clb_status s = case_run(t->device, &c, arrays);
  if (!s) case_expect(&c, t->name, arrays);
  case_free_copies(arrays);
  case_free(&c);
  return s;
}

static clb_status use_pointer(trial *t) {
  clb_device *d = t->device;
  clb_memory memory = {t->pointer, CLB_POINTER, 64, NULL};
  clb_text binary = {0};
  clb_module *module = NULL;
  ir_kernel k;
  float in[4] = {1, 2, 3, 4}, out[4];
  int lanes = d->limits.lanes[CLB_F32];
  ir_begin(&k, "fill", lanes, 1, lanes);
  ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k),
           ir_2(&k, IR_LT, ir_lane(&k), ir_int(&k, IR_I32, 2)), ir_real(&k, IR_F32, 7));
  assert_true(ir_finish(&k));
  clb_status s = opencl->wrap(d, &memory);
  if (!s) s = opencl->write(d, &memory, 0, in, sizeof in);
  if (!s) s = build_kernel(d, &k, &binary);
  if (!s) s = opencl->load(d, &k, binary.s, binary.n, &module);
  if (!s)
    s = opencl->launch(d, module, 1, (const clb_arg[]){{.type = IR_VOID, .memory = &memory}}, 1);
  if (!s) s = opencl->read(d, &memory, 0, out, sizeof out);
  if (!s) assert_true(out[0] == 7 && out[1] == 7 && out[2] == 3 && out[3] == 4);
  opencl->unload(d, module);
  clb_text_free(&binary);
  ir_free(&k);
  return s;
}

/* y[i] = 2 y[i] + step: twice with different steps, as a recording if the driver makes one, else
   one by one; then of other memory. */
static clb_status use_recorded(trial *t) {
  clb_device *d = t->device;
  clb_memory memory[2] = {{0}};
  clb_text binary = {0};
  clb_module *module = NULL;
  clb_recorded *r = NULL;
  ir_kernel k;
  float x[2] = {1, 5}, out[2];
  int lanes = d->limits.lanes[CLB_F32];
  ir_begin(&k, "twice", lanes, 1, lanes);
  ir_val y = ir_buffer(&k, IR_F32, true), step = ir_scalar(&k, IR_F32),
         mask = ir_2(&k, IR_LT, ir_lane(&k), ir_int(&k, IR_I32, 1));
  ir_store(&k, y, ir_lane(&k), mask,
           ir_fma(&k, ir_load(&k, y, ir_lane(&k), mask), ir_real(&k, IR_F32, 2), step));
  assert_true(ir_finish(&k));
  clb_status s = build_kernel(d, &k, &binary);
  if (!s) s = opencl->load(d, &k, binary.s, binary.n, &module);
  for (int m = 0; m < 2 && !s; m++)
    if (!(s = opencl->alloc(d, 4, &memory[m]))) s = opencl->write(d, &memory[m], 0, &x[m], 4);
  for (int m = 0; m < 2 && !s; m++) {
    clb_arg args[2][2];
    clb_work work[2];
    for (int i = 0; i < 2; i++) {
      args[i][0] = (clb_arg){.type = IR_VOID, .memory = &memory[m]};
      args[i][1] = (clb_arg){.type = IR_F32, .f32 = i ? 1 : 10};
      work[i] =
          (clb_work){.name = k.name, .module = module, .groups = 1, .args = args[i], .n_args = 2};
    }
    opencl->record(d, work, 2, &r);
    if (((clb_opencl *)d)->commands.create && here.fake->left != -1 && !here.fake->failed)
      assert_non_null(r);
    for (int turn = 0; turn < 2 && !s; turn++) {
      if (r) s = opencl->replay(d, r);
      for (int i = 0; i < 2 && !r && !s; i++) s = opencl->launch(d, module, 1, args[i], 2);
    }
    if (!s) s = opencl->read(d, &memory[m], 0, &out[m], 4);
    if (!s && out[m] != 16 * x[m] + 105) fail_msg("%s: %g", t->name, (double)out[m]);
  }
  if (r) opencl->forget(d, r);
  for (int m = 0; m < 2; m++) opencl->free(d, &memory[m]);
  opencl->unload(d, module);
  clb_text_free(&binary);
  ir_free(&k);
  return s;
}

/* Only the first call fails, then only the second, and so on until no call is left. */
static void sweep(trial *t, clb_status (*attempt)(trial *), int min) {
  fake_opencl_state *f = here.fake;
  int alive = f->alive, n = 0, told = 0;
  for (;; n++) {
    *f = (fake_opencl_state){.left = n, .code = CL_OUT_OF_RESOURCES, .alive = alive};
    clb_status s = attempt(t);
    f->left = -1;
    if (f->alive != alive)
      fail_msg("%s: after call %d (%s) failed, %d objects are left over", t->name, n, f->failed,
               f->alive - alive);
    if (!f->failed && s) fail_msg("%s: %s", t->name, t->error.text.s);
    if (!f->failed) break;
    if (s &&
        (!strstr(t->error.text.s, f->failed) || !strstr(t->error.text.s, "CL_OUT_OF_RESOURCES")))
      fail_msg("%s: call %d (%s) failed: %s", t->name, n, f->failed, t->error.text.s);
    told += s != CLB_OK;
  }
  if (told < min) fail_msg("%s: of %d calls only %d are missed when they fail", t->name, n, told);
}

static void every_call(void **state) {
  __typeof__(&clCreateContext) make_context;
  __typeof__(&clCreateCommandQueue) make_queue;
  __typeof__(&clReleaseContext) drop_context;
  __typeof__(&clReleaseCommandQueue) drop_queue;
  __typeof__(&clSVMAlloc) svm_alloc;
  __typeof__(&clSVMFree) svm_free;
  (void)state;
  if (!here.fake || !found.n)
    skip_because("no OpenCL device, or CLB_TEST_FAKE_OPENCL does not name the fake loader");
  genuine_call("clCreateContext", &make_context);
  genuine_call("clCreateCommandQueue", &make_queue);
  genuine_call("clReleaseContext", &drop_context);
  genuine_call("clReleaseCommandQueue", &drop_queue);
  genuine_call("clSVMAlloc", &svm_alloc);
  genuine_call("clSVMFree", &svm_free);
  for (int i = 0; i < found.n; i++) {
    trial t = {.name = found.name[i]};
    cl_int code;
    sweep(&t, open_and_close, 20);
    assert_int_equal(opencl->open(t.name, t.name + 6, NULL, &t.error, &t.device), CLB_OK);
    clb_opencl *o = (clb_opencl *)t.device;
    sweep(&t, use, 25);
    sweep(&t, use_recorded, 16);
    t.pointer = o->pointers.set ? svm_alloc(o->context, CL_MEM_READ_WRITE, 64, 0) : NULL;
    if (t.pointer)
      sweep(&t, use_pointer,
            o->keeps_text ? 11 : 12); /* no binary is asked for, so there is one call fewer */
    if (t.pointer) svm_free(o->context, t.pointer);
    t.native = (clb_native){.context = make_context(NULL, 1, &o->device, NULL, NULL, &code),
                            .device = o->device};
    t.native.queue = make_queue(t.native.context, o->device, 0, &code);
    sweep(&t, adopt_and_close, 20);
    drop_queue(t.native.queue);
    drop_context(t.native.context);
    opencl->close(t.device);
    clb_text_free(&t.error.text);
  }
}

/* Some codes have a status of their own. */
static void codes(void **state) {
  static const struct {
    const char *function;
    cl_int code;
    clb_status status;
    const char *word;
  } table[] = {
      {"clGetPlatformIDs", CL_PLATFORM_NOT_FOUND_KHR, CLB_ERROR_DEVICE,
       "clGetPlatformIDs: CL_PLATFORM_NOT_FOUND_KHR (-1001)"},
      {"clGetDeviceIDs", CL_DEVICE_NOT_FOUND, CLB_ERROR_DEVICE, "no such device among the 0"},
      {"clCreateContext", CL_DEVICE_NOT_AVAILABLE, CLB_ERROR_DEVICE,
       "CL_DEVICE_NOT_AVAILABLE (-2)"},
      {"clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE, CLB_ERROR_MEMORY, "asked for 812 bytes"},
      {"clBuildProgram", CL_BUILD_PROGRAM_FAILURE, CLB_ERROR_COMPILE,
       "kernel arithmetic on opencl:"},
      {"clEnqueueNDRangeKernel", -12345, CLB_ERROR_DRIVER, "(-12345)"},
  };
  (void)state;
  if (!here.fake || !found.n)
    skip_because("no OpenCL device, or CLB_TEST_FAKE_OPENCL does not name the fake loader");
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    trial t = {.name = found.name[0]};
    int listed = 0, alive = here.fake->alive;
    *here.fake =
        (fake_opencl_state){.only = table[i].function, .code = table[i].code, .alive = alive};
    clb_status s = opencl->open(t.name, t.name + 6, NULL, &t.error, &t.device);
    opencl->list(count, &listed);
    if (!s) s = use(&t);
    opencl->close(t.device);
    if (s != table[i].status || !strstr(t.error.text.s, table[i].word))
      fail_msg("%s: %d, %s", table[i].function, (int)s, t.error.text.s);
    assert_int_equal(listed, i < 2 ? 0 : found.n);
    assert_int_equal(here.fake->alive, alive);
    *here.fake = (fake_opencl_state){.left = -1, .alive = alive};
    clb_text_free(&t.error.text);
  }
}

/* Opens the fake under the name of the real loader, and tells it the real one's path. */
static void take_its_place(void) {
  const char *path = getenv("CLB_TEST_FAKE_OPENCL");
  struct link_map *map = NULL;
  void *genuine = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!path || !genuine || dlinfo(genuine, RTLD_DI_LINKMAP, &map)) return;
  setenv("FAKE_OPENCL_GENUINE", map->l_name, 1);
  dlclose(genuine);
  void *fake = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!fake) return;
  here.genuine = dlopen(getenv("FAKE_OPENCL_GENUINE"), RTLD_NOW | RTLD_LOCAL);
  here.fake = dlsym(fake, "fake_opencl");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_call), cmocka_unit_test(codes)};
  take_its_place();
  if (here.fake) opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
