/* tests/backends/test_opencl_failures.c - every call of the OpenCL backend fails once: a message
   each time, no leak, no crash. */
#define _GNU_SOURCE
#include "tests/backends/every_call.h"
#include "tests/fakes/staging.h"
#include "tests/backends/opencl_devices.h"

static fake_driver *fake; /* NULL: no fake, or no OpenCL */
static void *genuine;     /* library */

static void genuine_call(const char *name, void *call) { fake_function(genuine, name, call); }

/* ---- what is tried ---- */

static clb_status open_and_close(trial *t) {
  int n = 0;
  clb_device *d;
  opencl->list(count_devices, &n);
  assert_true(n <= found.n);
  const clb_status s = open_trial(t, NULL, &d);
  opencl->close(d);
  return s;
}

static clb_status adopt_and_close(trial *t) {
  clb_device *d;
  const clb_status s = open_trial(t, &t->native, &d);
  opencl->close(d);
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
    if (((clb_opencl *)d)->commands.create && fake->left != -1 && !fake->failed) assert_non_null(r);
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

static void need_fake(void) {
  if (!fake || !found.n)
    skip_because("no OpenCL device, or CLB_TEST_FAKE_OPENCL does not name the fake loader");
}

static void every_call(void **state) {
  __typeof__(&clCreateContext) make_context;
  __typeof__(&clCreateCommandQueue) make_queue;
  __typeof__(&clReleaseContext) drop_context;
  __typeof__(&clReleaseCommandQueue) drop_queue;
  __typeof__(&clSVMAlloc) svm_alloc;
  __typeof__(&clSVMFree) svm_free;
  (void)state;
  need_fake();
  genuine_call("clCreateContext", &make_context);
  genuine_call("clCreateCommandQueue", &make_queue);
  genuine_call("clReleaseContext", &drop_context);
  genuine_call("clReleaseCommandQueue", &drop_queue);
  genuine_call("clSVMAlloc", &svm_alloc);
  genuine_call("clSVMFree", &svm_free);
  for (int i = 0; i < found.n; i++) {
    trial t = {.backend = opencl,
               .name = found.name[i],
               .fake = fake,
               .code = CL_OUT_OF_RESOURCES,
               .word = "CL_OUT_OF_RESOURCES"};
    cl_int code;
    fail_each_call(&t, open_and_close, 20);
    assert_int_equal(opencl->open(t.name, t.name + 6, NULL, &t.error, &t.device), CLB_OK);
    clb_opencl *o = (clb_opencl *)t.device;
    fail_each_call(&t, use, 25);
    fail_each_call(&t, use_recorded, 16);
    t.pointer = o->pointers.set ? svm_alloc(o->context, CL_MEM_READ_WRITE, 64, 0) : NULL;
    if (t.pointer)
      fail_each_call(&t, use_pointer,
                     o->pocl ? 11 : 12); /* no binary is asked for, so there is one call fewer */
    if (t.pointer) svm_free(o->context, t.pointer);
    t.native = (clb_native){.context = make_context(NULL, 1, &o->device, NULL, NULL, &code),
                            .device = o->device};
    t.native.queue = make_queue(t.native.context, o->device, 0, &code);
    t.name = "opencl";
    fail_each_call(&t, adopt_and_close, 20);
    drop_queue(t.native.queue);
    drop_context(t.native.context);
    opencl->close(t.device);
    clb_text_free(&t.error.text);
  }
}

/* Lists, opens, uses. */
static clb_status use_all(trial *t) {
  int listed = 0;
  clb_status s = open_trial(t, NULL, &t->device);
  opencl->list(count_devices, &listed);
  if (!s) s = use(t);
  opencl->close(t->device);
  assert_int_equal(listed, !strncmp(fake->only, "clGet", 5) ? 0 : found.n);
  return s;
}

static void staging(void **state) {
  (void)state;
  need_fake();
  for (int i = 0; i < found.n; i++) {
    trial t = {.backend = opencl, .name = found.name[i], .fake = fake};
    clb_device *d;
    assert_int_equal(open_trial(&t, NULL, &d), CLB_OK);
    check_staging(d, fake, "clCreateBuffer");
    check_staging(d, fake, "clEnqueueMapBuffer");
    opencl->close(d);
    clb_text_free(&t.error.text);
  }
}

/* Some codes have a status of their own. */
static void codes(void **state) {
  static const coded_failure table[] = {
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
  need_fake();
  trial t = {.backend = opencl, .name = found.name[0], .fake = fake};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) expect_failure(&t, use_all, &table[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_call), cmocka_unit_test(staging),
                                     cmocka_unit_test(codes)};
  fake = find_fake_opencl(&genuine);
  if (fake) opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
