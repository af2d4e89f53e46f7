/* tests/backends/test_opencl_simulated.c - OpenCL devices that are simulated: this program runs
   itself again with other environment variables. */
#include "src/runtime/context.h"
#include "tests/runtime/again.h"
#include "tests/backends/opencl_devices.h"

/* A simulator that detects races, accesses out of bounds and uninitialised reads. */
static void no_races(void **state) {
  static const char variables[] =
      "d=$(command -v oclgrind); echo ${d%/bin/*}/lib/oclgrind/liboclgrind-rt-icd.so "
      ">simulator.icd; "
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

/* Intel's driver as a Data Center GPU Max, without the GPU: kernels are compiled and loaded;
   waiting for one would take forever. */
static void max_gpu(void **state) {
  (void)state;
  char *out = again("NEOReadDebugKeys=1 SetCommandStreamReceiver=1 ProductFamilyOverride=pvc "
                    "HardwareInfoOverride=2x4x8",
                    "compile");
  bool absent = strstr(out, "no such GPU");
  bool good = strstr(out, "0 bytes spilled") && strstr(out, "status 0");
  if (!absent && !good) fail_msg("%s", out);
  free(out);
  if (absent) skip_because("Intel's GPU driver for OpenCL is not installed");
}

/* All passes of spherical harmonics, adding to what is there; rows go through local memory, or not.
 */
static int run_harmonics(bool simd, clb_dtype storage, clb_dtype arithmetic) {
  enum { N = 37, COLUMNS = 1 + 7 + 5 };
  const int degrees[] = {0, 3, 2};
  const clb_spherical_harmonics_desc desc = {.degrees = degrees,
                                             .n_degrees = 3,
                                             .normalize = 1,
                                             .storage = storage,
                                             .arithmetic = arithmetic,
                                             .accumulate = 1,
                                             .passes = 7};
  clb_context *ctx;
  clb_op *op = NULL;
  clb_buffer *buffer[6] = {0};
  clb_rows r[6];
  void *zeros = calloc(N * COLUMNS, 8);
  clb_status s = clb_context_create("opencl", &ctx);
  if (!s) ctx->device->limits.simd = simd;
  if (!s) s = clb_spherical_harmonics_create(ctx, &desc, &op);
  for (int i = 0; i < 6 && !s; i++) {
    s = clb_buffer_create(ctx, N * COLUMNS * 8, &buffer[i]);
    if (!s) s = clb_buffer_write(buffer[i], 0, zeros, N * COLUMNS * 8);
    r[i] = (clb_rows){.buffer = buffer[i], .stride = COLUMNS};
  }
  if (!s) s = clb_spherical_harmonics_forward(op, N, r[0], r[1]);
  if (!s) s = clb_spherical_harmonics_backward(op, N, r[0], r[2], r[3]);
  if (!s) s = clb_spherical_harmonics_double_backward(op, N, r[0], r[2], r[3], r[4], r[5]);
  if (!s) s = clb_wait(ctx);
  if (s) puts(clb_error(ctx));
  for (int i = 0; i < 6; i++) clb_buffer_destroy(&buffer[i]);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  free(zeros);
  return s != CLB_OK;
}

/* Every case on the first device, with its results, and the ops that users run. */
static int run(clb_device *d) {
  for (int i = 0; i < CASES; i++)
    if (case_builders[i] != case_atomics)
      run_case(d, i); /* compare-and-swap starts from a plain read, which oclgrind calls a race */
  return run_harmonics(false, CLB_F32, CLB_F32) || run_harmonics(true, CLB_F32, CLB_F32) ||
         run_harmonics(false, CLB_F64, CLB_F64) || run_harmonics(false, CLB_F16, CLB_F32);
}

/* Every case on the first GPU, with and without the large register mode, and the spills of each;
   more than 4 GiB in one buffer. */
static int compile(clb_device *d) {
  clb_memory large = {0};
  int spilled = 0;
  assert_int_equal(d->limits.lanes[CLB_F32], 16);
  assert_true(d->limits.subgroups && !d->limits.simd && d->limits.max_subgroups >= 8);
  for (int i = 0; i < 2 * CASES; i++) {
    kernel_case c;
    clb_text binary = {0};
    clb_report report; /* loads the kernel, too */
    case_begin(&c, i / 2, &d->limits, true);
    c.k.large_registers = i % 2;
    if (build_kernel(d, &c.k, &binary) || opencl->report(d, &c.k, binary.s, binary.n, &report))
      return puts(d->error->text.s), 1;
    spilled += report.spill_bytes;
    clb_text_free(&binary);
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
  if (opencl->open("opencl", compiles ? ":gpu" : "", NULL, &error, &d))
    return puts(error.text.s), 1;
  printf("%s\n", d->info.description);
  int status = compiles ? compile(d) : run(d);
  opencl->close(d);
  clb_text_free(&error.text);
  return status;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_races), cmocka_unit_test(max_gpu)};
  if (argc > 1) return other_side(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
