/* test_opencl.c - the OpenCL backend on every OpenCL device here: numbers, the caller's handles and memory, binaries, threads. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "../backends/opencl.h"
#include "../src/dl.h"
#include "opencl_cases.h"

enum { MAX_NAMES = 16 };
static struct {
  int n;
  char name[MAX_NAMES][32];
} found; /* filled once, by main */

static void remember(const clb_device_info *info, void *user) {
  (void)user;
  if (found.n < MAX_NAMES) snprintf(found.name[found.n++], sizeof *found.name, "%s", info->name);
}

static const clb_backend *const opencl = &clb_backend_opencl;

/* A function of the loader that the backend does not use. */
static void loader_call(const char *name, void *call) {
  void *loader = clb_dl_open((const char *const[]){"libOpenCL.so.1", NULL});
  const clb_symbol symbol = {name, 0, false};
  if (clb_dl_symbols(loader, &symbol, 1, call)) fail_msg("libOpenCL.so.1 has no %s", name);
  clb_dl_close(loader);
}

static clb_device *open_named(const char *name, const clb_native *native, clb_error_sink *error) {
  clb_device *d = NULL;
  clb_status s = opencl->open(name, name + strlen("opencl"), native, error, &d);
  if (s) fail_msg("%s: %s", name, error->text.s);
  return d;
}

static bool rounds_division(const clb_device *d) { return ((const clb_opencl *)d)->rounds_division; }

/* ---- numbers ---- */

static void run_case(clb_device *d, int which) {
  void *arrays[CASE_PARAMETERS] = {0};
  kernel_case c;
  case_begin(&c, which, &d->limits, rounds_division(d));
  case_copies(&c, arrays);
  if (case_run(d, &c, arrays)) fail_msg("%s on %s: %s", c.k.name, d->info.name, d->error->text.s);
  case_expect(&c, d->info.name, arrays);
  case_free_copies(arrays);
  case_free(&c);
}

static void run_all_cases(clb_device *d) {
  for (int i = 0; i < CASES; i++) run_case(d, i);
}

static void numbers(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_named(found.name[i], NULL, &error);
    assert_string_equal(d->info.name, found.name[i]);
    assert_int_equal(d->limits.subgroups, d->dialect.subgroups);
    run_all_cases(d);
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* Every size of sub-group that the device lets one demand. */
static void sub_group_sizes(void **state) {
  int tried = 0;
  (void)state;
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_device *d = open_named(found.name[i], NULL, &error);
    for (int j = 0; j < 8 && d->info.sub_group_sizes[j]; j++, tried++) {
      d->limits.lanes[CLB_F32] = d->limits.lanes[CLB_F64] = d->info.sub_group_sizes[j];
      run_all_cases(d);
    }
    opencl->close(d);
    clb_text_free(&error.text);
  }
  if (!tried) skip_because("no OpenCL device with sub-groups; ci/intel_cpu.sh installs one");
}

/* ---- names ---- */

static void names(void **state) {
  static const char *const wrong[] = {"opencl:", "opencl:x", "opencl:0:0:0", "opencl:-1", "opencl:0x1", "opencl@0", "opencl:0:", "opencl:0 "};
  static const char *const absent[] = {"opencl:99", "opencl:0:99", "opencl:9999:0"};
  clb_error_sink error = {0};
  clb_device *d;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(opencl->open(wrong[i], wrong[i] + 6, NULL, &error, &d), CLB_ERROR_ARGUMENT);
    assert_null(d);
    assert_non_null(strstr(error.text.s, wrong[i]));
  }
  if (!found.n) {
    clb_text_free(&error.text);
    skip_because("no OpenCL device");
  }
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
    assert_int_equal(opencl->open(absent[i], absent[i] + 6, NULL, &error, &d), CLB_ERROR_DEVICE);
    assert_null(d);
    assert_non_null(strstr(error.text.s, absent[i]));
  }
  d = open_named("opencl", NULL, &error);
  opencl->close(d);
  clb_text_free(&error.text);
}

/* ---- binaries ---- */

static void binaries(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_text binary = {0};
    clb_module *module = NULL;
    kernel_case c, other;
    clb_device *d = open_named(found.name[i], NULL, &error), *again;
    case_begin(&c, 1, &d->limits, true);
    case_begin(&other, 0, &d->limits, true);
    assert_int_equal(opencl->build(d, &c.k, &binary), CLB_OK);
    assert_true(binary.n > 0);
    opencl->close(d);

    again = open_named(found.name[i], NULL, &error);
    if (opencl->load(again, &c.k, binary.s, binary.n, &module)) fail_msg("%s: %s", found.name[i], error.text.s);
    opencl->unload(again, module);
    /* Another kernel's binary, one of the same name that takes other arguments, another driver's, nothing, a damaged one. */
    snprintf(other.k.name, sizeof other.k.name, "%s", c.k.name);
    assert_int_not_equal(opencl->load(again, &other.k, binary.s, binary.n, &module), CLB_OK);
    assert_non_null(strstr(error.text.s, "arguments"));
    snprintf(other.k.name, sizeof other.k.name, "other");
    assert_int_not_equal(opencl->load(again, &other.k, binary.s, binary.n, &module), CLB_OK);
    assert_null(module);
    assert_int_not_equal(opencl->load(again, &c.k, "not a program at all, but long enough", 37, &module), CLB_OK);
    assert_int_not_equal(opencl->load(again, &c.k, "", 0, &module), CLB_OK);
    assert_non_null(strstr(error.text.s, "CL_INVALID_"));
    memset(binary.s, 0x5a, binary.n < 64 ? binary.n : 64);
    assert_int_not_equal(opencl->load(again, &c.k, binary.s, binary.n, &module), CLB_OK);
    opencl->close(again);
    case_free(&other);
    case_free(&c);
    clb_text_free(&binary);
    clb_text_free(&error.text);
  }
}

/* A name that is a word of the language: the sentence holds the compiler's whole log. */
static void refused_kernel(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    clb_text binary = {0};
    ir_kernel k;
    clb_device *d = open_named(found.name[i], NULL, &error);
    ir_begin(&k, "while", d->limits.lanes[CLB_F32], 1, 1);
    ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k), IR_NONE, ir_real(&k, IR_F32, 1));
    assert_true(ir_finish(&k));
    int loud = dup(2), quiet = open("/dev/null", O_WRONLY); /* some drivers print on standard error */
    dup2(quiet, 2);
    clb_status s = opencl->build(d, &k, &binary);
    dup2(loud, 2);
    close(loud);
    close(quiet);
    assert_int_equal(s, CLB_ERROR_COMPILE);
    if (!strstr(error.text.s, "clBuildProgram: CL_BUILD_PROGRAM_FAILURE") || !strstr(error.text.s, "error:") || !strstr(error.text.s, found.name[i])) fail_msg("%s", error.text.s);
    assert_int_equal(binary.n, 0);
    ir_free(&k);
    clb_text_free(&binary);
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* ---- the caller's handles ---- */

typedef struct {
  clb_opencl_calls cl;
  clb_native native;
} host;

/* A context and a queue of the caller's own on the named device. */
static host host_open(const char *name, cl_command_queue_properties properties) {
  host h = {0};
  clb_error_sink error = {0};
  cl_int code;
  clb_device *d = open_named(name, NULL, &error);
  h.cl = ((clb_opencl *)d)->cl;
  cl_device_id id = ((clb_opencl *)d)->device;
  opencl->close(d);
  clb_text_free(&error.text);
  h.native.device = id;
  h.native.context = h.cl.clCreateContext(NULL, 1, &id, NULL, NULL, &code);
  assert_int_equal(code, CL_SUCCESS);
  h.native.queue = h.cl.clCreateCommandQueue(h.native.context, id, properties, &code);
  assert_int_equal(code, CL_SUCCESS);
  return h;
}

static void host_close(host *h) {
  assert_int_equal(h->cl.clReleaseCommandQueue(h->native.queue), CL_SUCCESS);
  assert_int_equal(h->cl.clReleaseContext(h->native.context), CL_SUCCESS);
}

static void refuses(const clb_native *native, const char *name, const char *word) {
  clb_error_sink error = {0};
  clb_device *d;
  assert_int_equal(opencl->open(name, name + 6, native, &error, &d), CLB_ERROR_ARGUMENT);
  assert_null(d);
  if (!strstr(error.text.s, word)) fail_msg("%s", error.text.s);
  clb_text_free(&error.text);
}

static void adopted(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    host a = host_open(found.name[i], 0), b = host_open(found.name[i], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    clb_device *d = open_named("opencl", &a.native, &error);
    assert_string_equal(d->info.name, found.name[i]);
    run_all_cases(d);
    opencl->close(d);
    d = open_named(found.name[i], &a.native, &error);
    opencl->close(d);
    refuses(&b.native, "opencl", "out of order");
    refuses(&(clb_native){.context = a.native.context, .device = a.native.device, .queue = b.native.queue}, "opencl", "cl_context");
    refuses(&(clb_native){.context = a.native.context, .device = a.native.device}, "opencl", "queue is NULL");
    refuses(&(clb_native){.context = a.native.context, .queue = a.native.queue}, "opencl", "device is NULL");
    refuses(&(clb_native){.device = a.native.device, .queue = a.native.queue}, "opencl", "context is NULL");
    if (found.n > 1) refuses(&a.native, found.name[!i], "is not opencl:");
    host_close(&b);
    host_close(&a);
    clb_text_free(&error.text);
  }
}

/* A context over two halves of a device, of which the second is adopted: the program has two binaries, one of them empty. */
static void half_a_device(void **state) {
  int tried = 0;
  __typeof__(&clCreateSubDevices) split;
  __typeof__(&clReleaseDevice) release;
  (void)state;
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    host a = host_open(found.name[i], 0), h = a;
    cl_device_id half[2] = {0};
    cl_uint n = 0;
    cl_int code;
    loader_call("clCreateSubDevices", &split);
    loader_call("clReleaseDevice", &release);
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    if (!split(a.native.device, how, 0, NULL, &n) && n == 2 && !split(a.native.device, how, 2, half, NULL)) {
      h.native.context = h.cl.clCreateContext(NULL, 2, half, NULL, NULL, &code);
      assert_int_equal(code, CL_SUCCESS);
      h.native.device = half[1];
      h.native.queue = h.cl.clCreateCommandQueue(h.native.context, half[1], 0, &code);
      assert_int_equal(code, CL_SUCCESS);
      clb_device *d = open_named("opencl", &h.native, &error);
      assert_string_equal(d->info.name, "opencl");
      run_all_cases(d);
      opencl->close(d);
      host_close(&h);
      for (int j = 0; j < 2; j++) release(half[j]);
      tried++;
    }
    host_close(&a);
    clb_text_free(&error.text);
  }
  if (!tried) skip_because("no OpenCL device that splits in two");
}

/* ---- the caller's memory ---- */

/* y[i] = i + what y[i] was, through a wrapped y. */
static void adds_lane(clb_device *d, clb_memory *y, void *host_copy) {
  clb_text binary = {0};
  clb_module *module;
  ir_kernel k;
  int lanes = d->limits.lanes[CLB_F32];
  float back[4] = {0}, *values = host_copy;
  ir_begin(&k, "adds_lane", lanes, 1, lanes);
  ir_val array = ir_buffer(&k, IR_F32, true), at = ir_lane(&k), mask = ir_2(&k, IR_LT, at, ir_int(&k, IR_I32, 4));
  ir_store(&k, array, at, mask, ir_add(&k, ir_load(&k, array, at, mask), ir_cast(&k, IR_F32, at)));
  assert_true(ir_finish(&k));
  if (opencl->wrap(d, y)) fail_msg("%s", d->error->text.s);
  if (opencl->write(d, y, 4, values + 1, 12) || opencl->write(d, y, 0, values, 4) || opencl->build(d, &k, &binary) || opencl->load(d, &k, binary.s, binary.n, &module)) fail_msg("%s", d->error->text.s);
  if (opencl->launch(d, module, 1, (const clb_arg[]){{.type = IR_VOID, .memory = y}}, 1) || opencl->read(d, y, 4, back, 12)) fail_msg("%s", d->error->text.s);
  for (int i = 0; i < 3; i++) assert_true(back[i] == values[i + 1] + (float)(i + 1));
  opencl->unload(d, module);
  clb_text_free(&binary);
  ir_free(&k);
}

static void wrapped_buffers(void **state) {
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    float values[4] = {1, 2, 3, 4};
    cl_int code;
    host a = host_open(found.name[i], 0), b = host_open(found.name[i], 0);
    clb_device *d = open_named("opencl", &a.native, &error);
    cl_mem m = a.cl.clCreateBuffer(a.native.context, CL_MEM_READ_WRITE, 16, NULL, &code), foreign = b.cl.clCreateBuffer(b.native.context, CL_MEM_READ_WRITE, 16, NULL, &code);
    adds_lane(d, &(clb_memory){m, CLB_CL_MEM, 16}, values);
    assert_int_equal(opencl->wrap(d, &(clb_memory){m, CLB_CL_MEM, 17}), CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){foreign, CLB_CL_MEM, 16}), CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){NULL, CLB_CL_MEM, 16}), CLB_ERROR_ARGUMENT);
    assert_int_equal(opencl->wrap(d, &(clb_memory){NULL, CLB_POINTER, 0}), CLB_OK);
    a.cl.clReleaseMemObject(foreign);
    a.cl.clReleaseMemObject(m);
    opencl->close(d);
    host_close(&b);
    host_close(&a);
    clb_text_free(&error.text);
  }
}

/* Shared virtual memory, and unified shared memory of each kind; a device with neither says so. */
static void wrapped_pointers(void **state) {
  static const char *const makers[] = {"clHostMemAllocINTEL", "clDeviceMemAllocINTEL", "clSharedMemAllocINTEL"};
  __typeof__(&clSVMAlloc) svm_alloc;
  __typeof__(&clSVMFree) svm_free;
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    clb_error_sink error = {0};
    float values[4] = {5, 6, 7, 8};
    cl_int code;
    clb_device *d = open_named(found.name[i], NULL, &error);
    clb_opencl *o = (clb_opencl *)d;
    if (!o->pointers.set) assert_int_equal(opencl->wrap(d, &(clb_memory){values, CLB_POINTER, 16}), CLB_ERROR_UNSUPPORTED);
    cl_device_svm_capabilities svm = 0;
    o->cl.clGetDeviceInfo(o->device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
    if (svm) {
      loader_call("clSVMAlloc", &svm_alloc);
      loader_call("clSVMFree", &svm_free);
      void *p = svm_alloc(o->context, CL_MEM_READ_WRITE, 64, 0);
      assert_non_null(p);
      adds_lane(d, &(clb_memory){p, CLB_POINTER, 16}, values);
      svm_free(o->context, p);
    }
    for (int m = 0; m < 3 && o->pointers.info; m++) {
      clDeviceMemAllocINTEL_fn on_device;
      clHostMemAllocINTEL_fn on_host;
      clMemFreeINTEL_fn release;
      void *make = o->cl.clGetExtensionFunctionAddressForPlatform(o->platform, makers[m]), *drop = o->cl.clGetExtensionFunctionAddressForPlatform(o->platform, "clMemFreeINTEL");
      memcpy(&on_device, &make, sizeof make);
      memcpy(&on_host, &make, sizeof make);
      memcpy(&release, &drop, sizeof drop);
      char *p = m == 0 ? on_host(o->context, NULL, 64, 0, &code) : on_device(o->context, o->device, NULL, 64, 0, &code);
      assert_non_null(p);
      adds_lane(d, &(clb_memory){p + 16, CLB_POINTER, 48}, values);
      assert_int_equal(opencl->wrap(d, &(clb_memory){p + 16, CLB_POINTER, 49}), CLB_ERROR_ARGUMENT);
      assert_non_null(strstr(error.text.s, "48 bytes"));
      release(o->context, p);
    }
    opencl->close(d);
    clb_text_free(&error.text);
  }
}

/* ---- two contexts in two threads ---- */

static void *thread_body(void *name) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  bool good = !opencl->open(name, (const char *)name + 6, NULL, &error, &d);
  for (int round = 0; round < 5 && good; round++)
    for (int i = 0; i < 2 && good; i++) {
      void *arrays[CASE_PARAMETERS] = {0};
      kernel_case c;
      case_begin(&c, i, &d->limits, rounds_division(d));
      case_copies(&c, arrays);
      good = !case_run(d, &c, arrays);
      if (good) case_expect(&c, name, arrays);
      case_free_copies(arrays);
      case_free(&c);
    }
  opencl->close(d);
  clb_text_free(&error.text);
  return good ? name : NULL;
}

static void threads(void **state) {
  pthread_t thread[2];
  (void)state;
  if (!found.n) skip_because("no OpenCL device");
  for (int i = 0; i < found.n; i++) {
    for (int t = 0; t < 2; t++) assert_int_equal(pthread_create(&thread[t], NULL, thread_body, found.name[i]), 0);
    for (int t = 0; t < 2; t++) {
      void *result;
      assert_int_equal(pthread_join(thread[t], &result), 0);
      assert_ptr_equal(result, found.name[i]);
    }
  }
}

/* ---- devices that are not there: this program again, under other variables ---- */

/* What `mode` prints under the variables, in a folder of its own that is gone afterwards; ends with "status 0" if all went well. */
static char *again(const char *variables, const char *mode) {
  clb_text command = {0}, out = {0};
  char folder[] = "/tmp/clebsch-XXXXXX", self[1024] = "", part[512];
  size_t n;
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  assert_non_null(mkdtemp(folder));
  clb_text_add(&command, "cd %s && { %s %s %s; } 2>&1; echo status $?; rm -r %s", folder, variables, self, mode, folder);
  FILE *pipe = popen(command.s, "r");
  assert_non_null(pipe);
  while ((n = fread(part, 1, sizeof part, pipe)) > 0) clb_text_bytes(&out, part, n);
  pclose(pipe);
  clb_text_free(&command);
  return out.s;
}

/* A simulator that sees races, accesses out of bounds and uninitialised reads. */
static void no_races(void **state) {
  static const char variables[] = "d=$(command -v oclgrind); echo ${d%/bin/*}/lib/oclgrind/liboclgrind-rt-icd.so >simulator.icd; "
                                  "OCL_ICD_VENDORS=$PWD/simulator.icd OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1";
  static const char *const bad[] = {"race", "Invalid", "ninitialized", "rror"};
  (void)state;
  if (system("command -v oclgrind >/dev/null")) skip_because("oclgrind is not installed");
  char *out = again(variables, "run");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (strstr(out, bad[i])) fail_msg("%s", out);
  if (!strstr(out, "Oclgrind Simulator") || !strstr(out, "status 0")) fail_msg("%s", out);
  free(out);
}

/* Intel's driver as a Data Center GPU Max, without the GPU: kernels are compiled and launched, nothing is computed. */
static void max_gpu(void **state) {
  (void)state;
  char *out = again("NEOReadDebugKeys=1 SetCommandStreamReceiver=1 ProductFamilyOverride=pvc HardwareInfoOverride=2x4x8", "compile");
  bool absent = strstr(out, "no such GPU");
  bool good = strstr(out, "0 bytes spilled") && strstr(out, "status 0");
  if (!absent && !good) fail_msg("%s", out);
  free(out);
  if (absent) skip_because("Intel's GPU driver for OpenCL is not installed");
}

/* Every case on the first device, with numbers. */
static int run(clb_device *d) {
  for (int i = 0; i < CASES; i++)
    if (case_builders[i] != case_atomics) run_case(d, i); /* compare-and-swap starts from a plain read, which oclgrind calls a race */
  return 0;
}

/* Every case on the first GPU, with and without the large register mode, and the spills of each; more than 4 GiB in one buffer. */
static int compile(clb_device *d) {
  clb_memory large = {0};
  int spilled = 0;
  assert_int_equal(d->limits.lanes[CLB_F32], 16);
  assert_true(d->limits.subgroups && !d->limits.simd && d->limits.max_subgroups >= 8);
  for (int i = 0; i < 2 * CASES; i++) {
    void *arrays[CASE_PARAMETERS] = {0};
    kernel_case c;
    clb_text binary = {0};
    clb_report report;
    case_begin(&c, i / 2, &d->limits, true);
    c.k.large_registers = i % 2;
    case_copies(&c, arrays);
    if (case_run(d, &c, arrays)) return puts(d->error->text.s), 1;
    if (opencl->build(d, &c.k, &binary) || opencl->report(d, &c.k, binary.s, binary.n, &report)) return puts(d->error->text.s), 1;
    spilled += report.spill_bytes;
    clb_text_free(&binary);
    case_free_copies(arrays);
    case_free(&c);
  }
  if (opencl->alloc(d, (uint64_t)5 << 30, &large)) return puts(d->error->text.s), 1;
  opencl->free(d, &large);
  printf("%d bytes spilled\n", spilled);
  return 0;
}

static int other_side(const char *mode) {
  clb_error_sink error = {0};
  clb_device *d = NULL;
  bool compiles = !strcmp(mode, "compile");
  if (opencl->open("opencl", compiles ? ":gpu" : "", NULL, &error, &d)) return puts(error.text.s), 1;
  printf("%s\n", d->info.description);
  int status = compiles ? compile(d) : run(d);
  opencl->close(d);
  clb_text_free(&error.text);
  return status;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers), cmocka_unit_test(sub_group_sizes), cmocka_unit_test(names),           cmocka_unit_test(binaries),         cmocka_unit_test(refused_kernel),
      cmocka_unit_test(adopted), cmocka_unit_test(half_a_device),   cmocka_unit_test(wrapped_buffers), cmocka_unit_test(wrapped_pointers), cmocka_unit_test(threads),
      cmocka_unit_test(no_races), cmocka_unit_test(max_gpu),
  };
  if (argc > 1) return other_side(argv[1]);
  opencl->list(remember, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
