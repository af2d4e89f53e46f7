/* tests/tuning/wisdom_device.h - a folder of wisdom, and a device whose kernels are as fast and as
   correct as the test says. */
#ifndef CLB_TESTS_TUNING_WISDOM_DEVICE_H
#define CLB_TESTS_TUNING_WISDOM_DEVICE_H

#include "tests/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernels/symmetric_contraction/host/symmetric_contraction.h"
#include "src/runtime/context.h"
#include "src/runtime/wisdom.h"

static char dir[64];
static const char *device = "cpu:interpreter";

static inline int fresh(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/clebsch-wisdom-XXXXXX");
  return !mkdtemp(dir) || setenv("CLB_CACHE_DIR", dir, 1);
}

static inline int clean(void **state) {
  DIR *d = opendir(dir);
  (void)state;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    unlink(path); /* hidden files, too; not "." and "..", which are folders */
  }
  if (d) closedir(d);
  return rmdir(dir) || setenv("CLB_CACHE_DIR", "off", 1);
}

static inline const char *path_of(const char *name) {
  static char path[2][512];
  static int turn;
  snprintf(path[turn ^= 1], sizeof path[0], "%s/%s", dir, name);
  return path[turn];
}

static inline void write_file(const char *name, const char *bytes, size_t n) {
  FILE *f = fopen(path_of(name), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

/* To be freed. */
static inline char *read_file(const char *name, size_t *n) {
  FILE *f = fopen(path_of(name), "rb");
  char *bytes = calloc(1 << 21, 1);
  assert_true(f && bytes);
  *n = fread(bytes, 1, (1 << 21) - 1, f);
  fclose(f);
  return bytes;
}

static inline int count_lines(const char *name) {
  size_t n;
  char *bytes = read_file(name, &n);
  int lines = 0;
  for (size_t i = 0; i < n; i++) lines += bytes[i] == '\n';
  free(bytes);
  return lines;
}

/* ---- a device whose kernels are as fast and as correct as the test says ---- */

enum { MAX_MODULES = 64 };
static struct {
  const clb_backend *genuine;
  clb_backend backend;
  clb_module *module[MAX_MODULES]; /* in the order of their loading: the estimate's is the first */
  int n, alive, launches, fast, wrong, failing; /* numbers of modules; -1: none */
  int patience;                                 /* launches of the failing one that succeed */
} fake;

static inline int number_of(const clb_module *m) {
  for (int i = fake.n - 1; i >= 0; i--)
    if (fake.module[i] == m) return i;
  return -1;
}

static inline clb_status load(clb_device *d, const ir_kernel *k, const void *binary, size_t bytes,
                              clb_module **module) {
  clb_status s = fake.genuine->load(d, k, binary, bytes, module);
  assert_in_range(fake.n, 0, MAX_MODULES - 1);
  if (!s) fake.module[fake.n++] = *module, fake.alive++;
  return s;
}

static inline void unload(clb_device *d, clb_module *module) {
  int i = number_of(module);
  if (i >= 0) fake.module[i] = NULL;
  fake.alive--;
  fake.genuine->unload(d, module);
}

/* All but one take 15 milliseconds more; the wrong one does nothing. */
static inline clb_status launch(clb_device *d, clb_module *module, int64_t groups,
                                const clb_arg *args, int n) {
  int i = number_of(module);
  fake.launches++;
  if (i == fake.failing && fake.patience-- <= 0)
    return clb_fail(d->error, CLB_ERROR_DRIVER, "it fails");
  if (i != fake.fast) nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
  if (i == fake.wrong) return CLB_OK;
  return fake.genuine->launch(d, module, groups, args, n);
}

static inline clb_context *open_genuine(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create(device, &ctx), CLB_OK);
  return ctx;
}

static inline clb_context *open_fake(int fast, int wrong, int failing) {
  clb_context *ctx = open_genuine();
  memset(&fake, 0, sizeof fake);
  fake.genuine = ctx->device->backend;
  fake.backend = *fake.genuine;
  fake.backend.load = load, fake.backend.unload = unload, fake.backend.launch = launch;
  fake.fast = fast, fake.wrong = wrong, fake.failing = failing;
  ctx->device->backend = &fake.backend;
  return ctx;
}

/* ---- ops ---- */

static const int degrees[] = {0, 1, 2, 3, 4};
enum { DEGREES = 5, COLUMNS = 25 };

static inline clb_op *harmonics(clb_context *ctx, unsigned passes) {
  clb_op *op;
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT, 0, CLB_F32,
                                          CLB_F32, 0,       passes};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  return op;
}

static inline clb_tuning tuning_of(clb_op *op, clb_pass pass) {
  clb_tuning t;
  OK(op->ctx, clb_op_tuning(op, pass, &t));
  return t;
}

static inline int candidates_of(clb_op *op, clb_pass pass, clb_schedule *list) {
  op->problem.pass = (int32_t)pass;
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  return kind->candidates(&op->problem, &op->ctx->device->limits, list);
}

/* The schedule that the op's pass has, as its number among the candidates. */
static inline int chosen(clb_op *op, clb_pass pass) {
  clb_schedule list[CLB_MAX_CANDIDATES];
  int n = candidates_of(op, pass, list);
  assert_true(n > 2);
  for (int i = 0; i < n; i++)
    if (!memcmp(&list[i], &op->choice[pass].schedule, sizeof *list)) return i;
  fail_msg("the schedule is no candidate: %s", tuning_of(op, pass).schedule);
  return -1;
}

/* Y of some points: right whatever the schedule. */
static inline void check_harmonics(clb_op *op) {
  enum { N = 50 };
  float x[3 * N], y[COLUMNS * N];
  uint64_t seed = 1;
  clb_rows rx = {0}, ry = {0};
  for (int i = 0; i < 3 * N; i++) x[i] = (float)test_random(&seed);
  OK(op->ctx, clb_buffer_create(op->ctx, sizeof x, &rx.buffer));
  OK(op->ctx, clb_buffer_create(op->ctx, sizeof y, &ry.buffer));
  OK(op->ctx, clb_buffer_write(rx.buffer, 0, x, sizeof x));
  OK(op->ctx, clb_spherical_harmonics_forward(op, N, rx, ry));
  OK(op->ctx, clb_buffer_read(ry.buffer, 0, y, sizeof y));
  for (int i = 0; i < N; i++) {
    double r2 = 0, sum[DEGREES] = {0};
    for (int k = 0; k < 3; k++) r2 += (double)x[3 * i + k] * (double)x[3 * i + k];
    for (int l = 0, at = 0; l < DEGREES; at += 2 * l + 1, l++)
      for (int m = 0; m < 2 * l + 1; m++)
        sum[l] += (double)y[COLUMNS * i + at + m] * (double)y[COLUMNS * i + at + m];
    for (int l = 0; l < DEGREES; l++) { /* sum_m Y^2 = (2l+1) r^2l */
      double want = 2 * l + 1;
      for (int k = 0; k < l; k++) want *= r2;
      if (!(sum[l] > 0.9999 * want - 1e-6 && sum[l] < 1.0001 * want + 1e-6))
        fail_msg("degree %d: %g, not %g", l, sum[l], want);
    }
    for (int k = 0; k < 3; k++)
      assert_true(y[COLUMNS * i + 1 + k] * x[3 * i + k] >= 0); /* Y_1 is along x */
  }
  clb_buffer_destroy(&rx.buffer);
  clb_buffer_destroy(&ry.buffer);
}

static inline void close_all(clb_op **op, clb_context **ctx) {
  clb_op_destroy(op);
  clb_context_destroy(ctx);
}

static clb_instructions found;

static inline clb_tensor_product_desc product(clb_context *ctx, unsigned passes) {
  OK(ctx, clb_channel_wise(ctx, "8x0e+8x1o", "0e+1o", "0e+1o", CLB_SORTED, &found));
  return (clb_tensor_product_desc){.irreps_x = found.irreps_x,
                                   .irreps_y = found.irreps_y,
                                   .irreps_z = found.irreps_z,
                                   .instructions = found.instructions,
                                   .n_instructions = found.n_instructions,
                                   .layout_x = CLB_IR_MUL,
                                   .layout_z = CLB_IR_MUL,
                                   .storage = CLB_F32,
                                   .arithmetic = CLB_F32,
                                   .passes = passes};
}

static inline void expect_measured(const clb_op *op, int passes) {
  for (int pass = 0; pass < passes; pass++)
    if (!op->kernel[pass] || !op->choice[pass].measured || op->choice[pass].ns <= 0)
      fail_msg("pass %d was not measured; the last error is: %s", pass, clb_error(op->ctx));
}

/* With row numbers, shared weights, every type, and adding to outputs: test data can be made for
   all. */
static inline void measure_products(int ways) {
  clb_context *ctx = open_genuine();
  for (int how = 0; how < ways; how++) {
    clb_op *op;
    clb_tensor_product_desc d = product(ctx, (ways == 1 ? 1 : how ? 7 : 15) | CLB_MEASURE);
    if (how == 1) d.indexed = CLB_OPERAND_X;
    if (how == 2) d.shared_weights = 1;
    if (how == 3) d.storage = CLB_F16, d.accumulate = 1;
    if (how == 4) d.storage = CLB_BF16;
    if (how == 5) d.storage = d.arithmetic = CLB_F64;
    OK(ctx, clb_tensor_product_create(ctx, &d, &op));
    expect_measured(op, ways == 1 ? 1 : how ? 3 : 4);
    for (int pass = 0; pass < CLB_PASSES; pass++)
      if (op->kernel[pass])
        assert_non_null(strstr(tuning_of(op, (clb_pass)pass).estimate, "lanes="));
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

/* Text of one line that names candidate 1, made with a device on which it is the fastest. */
static inline char *line_of_candidate_1(size_t *n) {
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE);
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  close_all(&op, &ctx);
  return read_file("wisdom", n);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, clean)

#endif
