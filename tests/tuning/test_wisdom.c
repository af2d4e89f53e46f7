/* tests/tuning/test_wisdom.c - the fastest candidate is found, kept and followed; wrong candidates
   and wrong lines do no harm. */
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

static int fresh(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/clebsch-wisdom-XXXXXX");
  return !mkdtemp(dir) || setenv("CLB_CACHE_DIR", dir, 1);
}

static int clean(void **state) {
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

static const char *path_of(const char *name) {
  static char path[2][512];
  static int turn;
  snprintf(path[turn ^= 1], sizeof path[0], "%s/%s", dir, name);
  return path[turn];
}

static void write_file(const char *name, const char *bytes, size_t n) {
  FILE *f = fopen(path_of(name), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

/* To be freed. */
static char *read_file(const char *name, size_t *n) {
  FILE *f = fopen(path_of(name), "rb");
  char *bytes = calloc(1 << 21, 1);
  assert_true(f && bytes);
  *n = fread(bytes, 1, (1 << 21) - 1, f);
  fclose(f);
  return bytes;
}

static int count_lines(const char *name) {
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

static int number_of(const clb_module *m) {
  for (int i = fake.n - 1; i >= 0; i--)
    if (fake.module[i] == m) return i;
  return -1;
}

static clb_status load(clb_device *d, const ir_kernel *k, const void *binary, size_t bytes,
                       clb_module **module) {
  clb_status s = fake.genuine->load(d, k, binary, bytes, module);
  assert_in_range(fake.n, 0, MAX_MODULES - 1);
  if (!s) fake.module[fake.n++] = *module, fake.alive++;
  return s;
}

static void unload(clb_device *d, clb_module *module) {
  int i = number_of(module);
  if (i >= 0) fake.module[i] = NULL;
  fake.alive--;
  fake.genuine->unload(d, module);
}

/* All but one take 15 milliseconds more; the wrong one does nothing. */
static clb_status launch(clb_device *d, clb_module *module, int64_t groups, const clb_arg *args,
                         int n) {
  int i = number_of(module);
  fake.launches++;
  if (i == fake.failing && fake.patience-- <= 0)
    return clb_fail(d->error, CLB_ERROR_DRIVER, "it fails");
  if (i != fake.fast) nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
  if (i == fake.wrong) return CLB_OK;
  return fake.genuine->launch(d, module, groups, args, n);
}

static clb_context *open_genuine(void) {
  clb_context *ctx;
  assert_int_equal(clb_context_create(device, &ctx), CLB_OK);
  return ctx;
}

static clb_context *open_fake(int fast, int wrong, int failing) {
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

static clb_op *harmonics(clb_context *ctx, unsigned passes) {
  clb_op *op;
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT, 0, CLB_F32,
                                          CLB_F32, 0,       passes};
  OK(ctx, clb_spherical_harmonics_create(ctx, &d, &op));
  return op;
}

static clb_tuning tuning_of(clb_op *op, clb_pass pass) {
  clb_tuning t;
  OK(op->ctx, clb_op_tuning(op, pass, &t));
  return t;
}

static int candidates_of(clb_op *op, clb_pass pass, clb_schedule *list) {
  op->problem.pass = (int32_t)pass;
  const clb_kernel_kind *kind = clb_kernel_kinds[op->problem.kind];
  return kind->candidates(&op->problem, &op->ctx->device->limits, list);
}

/* The schedule that the op's pass has, as its number among the candidates. */
static int chosen(clb_op *op, clb_pass pass) {
  clb_schedule list[CLB_MAX_CANDIDATES];
  int n = candidates_of(op, pass, list);
  assert_true(n > 2);
  for (int i = 0; i < n; i++)
    if (!memcmp(&list[i], &op->choice[pass].schedule, sizeof *list)) return i;
  fail_msg("the schedule is no candidate: %s", tuning_of(op, pass).schedule);
  return -1;
}

/* Y of some points: right whatever the schedule. */
static void check_harmonics(clb_op *op) {
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

static void close_all(clb_op **op, clb_context **ctx) {
  clb_op_destroy(op);
  clb_context_destroy(ctx);
}

/* ---- choosing ---- */

static void the_fastest_stays(void **state) {
  (void)state;
  for (int fast = 0; fast < 3; fast++) {
    clb_context *ctx = open_fake(fast, -1, -1);
    OK(ctx, clb_wisdom_forget(ctx));
    clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE), *other;
    assert_int_equal(chosen(op, CLB_FORWARD), fast);
    clb_tuning t = tuning_of(op, CLB_FORWARD);
    assert_int_equal(t.measured, 1);
    assert_true(fast ? t.seconds < 0.97 * t.estimate_seconds : t.seconds == t.estimate_seconds);
    assert_true(t.seconds > 0);
    assert_int_equal(!strcmp(t.schedule, t.estimate), !fast);
    assert_int_equal(fake.alive, fast ? 2 : 1); /* the kernels of the others are freed */
    check_harmonics(op);
    int launches = fake.launches;
    other = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) |
                               CLB_MEASURE); /* known schedules are not measured again */
    assert_int_equal(chosen(other, CLB_FORWARD), fast);
    assert_int_equal(fake.launches, launches);
    assert_ptr_equal(other->kernel[CLB_FORWARD], op->kernel[CLB_FORWARD]);
    clb_op_destroy(&other);
    close_all(&op, &ctx);
    assert_int_equal(fake.alive, 0);
    ctx = open_genuine(); /* from the file */
    op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
    assert_int_equal(chosen(op, CLB_FORWARD), fast);
    assert_int_equal(tuning_of(op, CLB_FORWARD).measured, 1);
    check_harmonics(op);
    close_all(&op, &ctx);
    assert_int_equal(count_lines("wisdom"), 1);
  }
}

static void without_the_flag_nothing_runs(void **state) {
  (void)state;
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, 7);
  assert_int_equal(fake.launches, 0);
  for (int pass = 0; pass < 3; pass++) {
    clb_tuning t = tuning_of(op, (clb_pass)pass);
    assert_int_equal(t.measured, 0);
    assert_string_equal(t.schedule, t.estimate);
    assert_true(t.seconds == 0 && t.estimate_seconds == 0);
  }
  close_all(&op, &ctx);
  assert_int_not_equal(access(path_of("wisdom"), F_OK), 0);
}

/* A candidate with wrong results, one that fails, one that fails later: each would be the fastest
   by far. */
static void bad_candidates_are_dropped(void **state) {
  (void)state;
  for (int bad = 1; bad < 3; bad++)
    for (int fails = 0; fails < 3; fails++) {
      clb_context *ctx = open_fake(bad, fails ? -1 : bad, fails ? bad : -1);
      fake.patience = fails == 2 ? 3 : 0;
      OK(ctx, clb_wisdom_forget(ctx));
      clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE);
      assert_int_not_equal(chosen(op, CLB_FORWARD), bad);
      assert_true(fake.alive <= 2);
      check_harmonics(op);
      close_all(&op, &ctx);
      assert_int_equal(fake.alive, 0);
    }
}

/* If the estimate itself cannot run, the op is not created. */
static void a_failing_device_is_told_of(void **state) {
  clb_op *op;
  (void)state;
  clb_context *ctx = open_fake(-1, -1, 0);
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT,  0, CLB_F32,
                                          CLB_F32, 0,       1 | CLB_MEASURE};
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &op), CLB_ERROR_DRIVER);
  assert_null(op);
  assert_non_null(strstr(clb_error(ctx), "it fails"));
  clb_context_destroy(&ctx);
  assert_int_equal(fake.alive, 0);
}

/* ---- products and convolutions ---- */

static clb_instructions found;

static clb_tensor_product_desc product(clb_context *ctx, unsigned passes) {
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

static void expect_measured(const clb_op *op, int passes) {
  for (int pass = 0; pass < passes; pass++)
    if (!op->kernel[pass] || !op->choice[pass].measured || op->choice[pass].ns <= 0)
      fail_msg("pass %d was not measured; the last error is: %s", pass, clb_error(op->ctx));
}

/* With row numbers, shared weights, every type, and adding to outputs: test data can be made for
   all. */
static void measure_products(int ways) {
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

static void products_are_measured(void **state) {
  (void)state;
  measure_products(6);
}

static void convolutions_are_measured(void **state) {
  (void)state;
  clb_context *ctx = open_genuine();
  for (int how = 0; how < 5; how++) {
    clb_op *op;
    clb_graph *graph;
    const int32_t ends[] = {0, 1, 2};
    const clb_rows none = {0};
    bool table = how == 1 || how == 3;
    clb_convolution_desc d = {.product = product(ctx, (table ? 3u : 7u) | CLB_MEASURE)};
    if (table) d.knots = 20, d.first_knot = 0.5, d.last_knot = 5;
    if (how >= 2) d.vectors = how < 4;
    if (how == 4) d.atomics = 1, d.product.shared_weights = 1;
    OK(ctx, clb_convolution_create(ctx, &d, &op));
    expect_measured(op, table ? 2 : 3);
    OK(ctx, clb_graph_create(ctx, 3, 3, &graph));
    OK(ctx, clb_graph_update(graph, 3, 3, 3, CLB_I32, (clb_index_list){.host = ends},
                             (clb_index_list){.host = ends}));
    if (table) { /* the made-up table is not the user's */
      assert_int_equal(clb_convolution_forward(op, graph, none, none, none, none, NULL),
                       CLB_ERROR_ARGUMENT);
      assert_non_null(strstr(clb_error(ctx), "clb_convolution_set_table"));
    }
    clb_graph_destroy(&graph);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

/* The kernels of rows and of sums over rows, which the second op finds in the wisdom. */
static void contractions_are_measured(void **state) {
  static const int degree[] = {0, 1};
  (void)state;
  clb_context *ctx = open_genuine();
  const clb_symmetric_contraction_desc d = {.ell = 1,
                                            .correlation = 2,
                                            .degrees = degree,
                                            .n_degrees = 2,
                                            .channels = 9,
                                            .n_species = 3,
                                            .storage = CLB_F32,
                                            .arithmetic = CLB_F32,
                                            .accumulate = 1,
                                            .passes = 7 | CLB_MEASURE};
  for (int i = 0; i < 2; i++) {
    clb_op *op;
    OK(ctx, clb_symmetric_contraction_create(ctx, &d, &op));
    const clb_op *sums = ((const clb_symmetric_parts *)op->parts)->sums;
    expect_measured(op, 3);
    for (int pass = CLB_BACKWARD; pass <= CLB_DOUBLE_BACKWARD; pass++)
      assert_true(sums->choice[pass].measured && sums->choice[pass].ns > 0);
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
}

/* ---- lines ---- */

/* Text of one line that names candidate 1, made with a device on which it is the fastest. */
static char *line_of_candidate_1(size_t *n) {
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE);
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  close_all(&op, &ctx);
  return read_file("wisdom", n);
}

/* What an op gets with this file in the folder. */
static int choice_with(const char *bytes, size_t n) {
  write_file("wisdom", bytes, n);
  clb_context *ctx = open_genuine();
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  int i = chosen(op, CLB_FORWARD);
  assert_int_equal(tuning_of(op, CLB_FORWARD).measured, i != 0);
  close_all(&op, &ctx);
  return i;
}

/* The line with its first `old` made `new`. */
static int choice_edited(const char *line, const char *old, const char *new) {
  char text[4096];
  const char *at = strstr(line, old);
  assert_non_null(at);
  int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - line), line, new, at + strlen(old));
  return choice_with(text, (size_t)n);
}

static void bad_lines_do_nothing(void **state) {
  size_t n;
  (void)state;
  char *line = line_of_candidate_1(&n), *twice = calloc(2 * n + 1, 1);
  static const char *const edits[][2] = {{"clebsch2 ", "clebsch1 "},
                                         {"clebsch2 ", "clebsch3 "},
                                         {" " CLB_VERSION " ", " 9.9.9 "},
                                         {"lanes=", "lane="},
                                         {"lanes=", "lanes=9"},
                                         {"lanes=", "lanes=-"},
                                         {"columns_per_piece=", "columns_per_piece=1000"},
                                         {"columns_per_piece=", "columns_per_piece=4294967"},
                                         {"columns_per_piece=", "width="},
                                         {"subgroups=1", "subgroups=2"},
                                         {"subgroups=1 ", "subgroups=0 "},
                                         {"lanes", "lanes=1 lanes"},
                                         {" lanes", " large_registers=1 lanes"},
                                         {" lanes", " subgroups_per_row=1 lanes"},
                                         {"ns=", "ns="},
                                         {"ns=", "n$="},
                                         {"ns=", "ns=99999999999999999999"},
                                         {" # ", " "},
                                         {" # ", " #\t"},
                                         {" #", " # \x01"}};
  assert_non_null(twice);
  assert_int_equal(choice_with(line, n), 1);
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    int want = !strcmp(edits[i][0], edits[i][1]) ||
               !strcmp(edits[i][1], "lanes=1 lanes"); /* a setting said twice: the last one holds */
    if (choice_edited(line, edits[i][0], edits[i][1]) != want)
      fail_msg("'%s' for '%s': it is %sfollowed", edits[i][1], edits[i][0], want ? "not " : "");
  }
  for (size_t cut = 0; cut < n; cut += cut + 8 < n ? 3 : 1)
    assert_int_equal(choice_with(line, cut), 0);
  for (size_t i = 0; i < n; i += 2) { /* a comment may be damaged, times too */
    bool key = i < 9 + strlen(CLB_VERSION) + 1 + 4 + 33 + 33;
    line[i] ^= 4;
    int followed = choice_with(line, n);
    line[i] ^= 4;
    if (key) assert_int_equal(followed, 0);
    assert_in_range(followed, 0, 2);
  }
  memcpy(twice, "clebsch2 ", 9); /* after a line that is not wisdom */
  memcpy(twice + 9, "\n", 1);
  memcpy(twice + 10, line, n);
  assert_int_equal(choice_with(twice, n + 10), 1);
  free(twice);
  free(line);
}

/* Megabytes of nothing, 0 bytes, no line's end, and then the line. */
static void hostile_files(void **state) {
  enum { MANY = 3 << 20 };
  size_t n;
  (void)state;
  char *line = line_of_candidate_1(&n), *big = malloc(MANY + 4096);
  static const int fill[] = {0, 0xff, 'a', '\n', ' ', '='};
  assert_non_null(big);
  for (size_t i = 0; i < sizeof fill / sizeof *fill; i++) {
    memset(big, fill[i], MANY);
    assert_int_equal(choice_with(big, MANY), 0);
    memcpy(big + 100, line, n); /* after so little of it */
    big[99] = '\n';
    assert_int_equal(choice_with(big, MANY), 1);
  }
  memset(big, '\n', MANY);
  for (size_t at = 0; at + 9 < MANY; at += 9) memcpy(big + at, "clebsch2 ", 9);
  assert_int_equal(choice_with(big, MANY), 0);
  free(big);
  free(line);
}

/* A megabyte of good lines, imported onto itself: what once took as many steps as the square of its
   lines. */
static void long_files_are_quick(void **state) {
  enum { MANY = 1 << 20 };
  size_t n, used = 0;
  (void)state;
  char *line = line_of_candidate_1(&n), *big = malloc(MANY),
       *problem = strchr(strchr(line, ':'), ' ') + 1;
  assert_non_null(big);
  clb_context *ctx = open_genuine();
  for (unsigned i = 0; used + n + 1 < MANY; i++) {
    char number[9];
    snprintf(number, sizeof number, "%08x", i * 2654435761u);
    memcpy(problem, number, 8);
    memcpy(big + used, line, n);
    used += n;
  }
  write_file("long", big, used);
  const clock_t start = clock();
  for (int i = 0; i < 3; i++) OK(ctx, clb_wisdom_import(ctx, path_of("long")));
  OK(ctx, clb_wisdom_export(ctx, path_of("exported")));
  const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (seconds > 4) fail_msg("%.1f s", seconds);
  size_t all;
  free(line);
  line = read_file("exported", &all);
  assert_true(all == used && !memcmp(line, big, used)); /* in the order of the file, once each */
  clb_context_destroy(&ctx);
  free(big);
  free(line);
}

enum { EDGES = 12, NODES = 5, NUMBERS = 100 * EDGES, RESULTS = 3 * NUMBERS };

static clb_op *product_or_convolution(clb_context *ctx, bool convolves, clb_pass pass) {
  const clb_convolution_desc c = {.product = product(ctx, CLB_PASS_BIT(pass))};
  clb_op *op;
  if (convolves) OK(ctx, clb_convolution_create(ctx, &c, &op));
  else OK(ctx, clb_tensor_product_create(ctx, &c.product, &op));
  return op;
}

/* What it gives of certain numbers. */
static void run_op(clb_op *op, bool convolves, clb_pass pass, float *out) {
  enum { X, Y, W, G, A, B, C, ROWS };
  static const int32_t senders[EDGES] = {0, 4, 2, 2, 1, 3, 3, 0, 1, 4, 2, 2};
  static const int32_t receivers[EDGES] = {1, 1, 1, 0, 3, 3, 2, 4, 4, 4, 4, 0};
  const clb_index_list from = {.host = senders}, to = {.host = receivers};
  clb_context *ctx = op->ctx;
  clb_rows r[ROWS];
  clb_graph *g;
  clb_buffer *space;
  uint64_t seed = 3;
  for (int i = 0; i < ROWS; i++) {
    static float x[NUMBERS];
    for (int j = 0; j < NUMBERS; j++) x[j] = i < A ? (float)test_random(&seed) : 0;
    r[i] = (clb_rows){0};
    OK(ctx, clb_buffer_create(ctx, sizeof x, &r[i].buffer));
    OK(ctx, clb_buffer_write(r[i].buffer, 0, x, sizeof x));
  }
  OK(ctx, clb_buffer_create(ctx, 1 << 20, &space));
  OK(ctx, clb_graph_create(ctx, NODES, EDGES, &g));
  OK(ctx, clb_graph_update(g, NODES, NODES, EDGES, CLB_I32, from, to));
  if (convolves && !pass) OK(ctx, clb_convolution_forward(op, g, r[X], r[Y], r[W], r[A], space));
  if (convolves && pass)
    OK(ctx, clb_convolution_backward(op, g, r[X], r[Y], r[W], r[G], r[A], r[B], r[C], space));
  if (!convolves && !pass) OK(ctx, clb_tensor_product_forward(op, EDGES, r[X], r[Y], r[W], r[A]));
  if (!convolves && pass)
    OK(ctx, clb_tensor_product_backward(op, EDGES, r[X], r[Y], r[W], r[G], r[A], r[B], r[C]));
  for (int i = A; i < ROWS; i++)
    OK(ctx, clb_buffer_read(r[i].buffer, 0, out + (i - A) * NUMBERS, NUMBERS * sizeof *out));
  for (int i = 0; i < ROWS; i++) clb_buffer_destroy(&r[i].buffer);
  clb_buffer_destroy(&space);
  clb_graph_destroy(&g);
}

/* A line for the last candidate of each: what is not the estimate. */
static char *lines_of_four(size_t *n) {
  clb_context *ctx = open_genuine();
  for (int i = 0; i < 4; i++) {
    clb_schedule list[CLB_MAX_CANDIDATES];
    clb_op *op = product_or_convolution(ctx, i / 2, (clb_pass)(i % 2));
    const int count = candidates_of(op, (clb_pass)(i % 2), list);
    clb_wisdom_keep(ctx, &op->problem, &(clb_choice){.schedule = list[count - 1], .ns = 1000});
    clb_op_destroy(&op);
  }
  clb_context_destroy(&ctx);
  return read_file("wisdom", n);
}

/* The settings of a product or a convolution, and one that is none. */
static const char *a_name(bool convolves, uint64_t *seed) {
  static const char *const of_products[] = {
#define COMMON(name) #name,
#define PRODUCT(name) #name,
#include "kernels/schedule.def"
      "ns"};
  static const char *const of_convolutions[] = {
#define COMMON(name) #name,
#define CONVOLUTION(name) #name,
#include "kernels/schedule.def"
      "ns"};
  const size_t n = convolves ? sizeof of_convolutions / sizeof *of_convolutions
                             : sizeof of_products / sizeof *of_products;
  return (convolves ? of_convolutions
                    : of_products)[(size_t)((1 + test_random(seed)) / 2 * (double)n)];
}

/* Settings of random names and values are appended to each line, and override its own; none in
   round 0. */
static void write_changed(const char *lines, int round, uint64_t *seed) {
  static const long long values[] = {
      0,  1,  2,  3,    4,     5,       7,         8,         16,
      17, 32, 63, 64,   65,    128,     256,       1000,      1024,
      -1, -2, -8, 4096, 65536, 1 << 30, INT32_MAX, INT32_MIN, 100000000000000000};
  static const char head[] = " # convolution ";
  clb_text text = {0};
  for (const char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
    const char *comment = strstr(line, " # ");
    assert_true(comment && comment < end);
    const bool convolves = !strncmp(comment, head, sizeof head - 1);
    clb_text_bytes(&text, line, (size_t)(comment - line));
    for (int left = round ? 1 + (int)(2 * (1 + test_random(seed))) : 0; left > 0; left--) {
      const char *name = a_name(convolves, seed);
      const size_t value = (size_t)((1 + test_random(seed)) / 2 * (sizeof values / sizeof *values));
      clb_text_add(&text, " %s=%lld", name, values[value]);
    }
    clb_text_bytes(&text, comment, (size_t)(end + 1 - comment));
  }
  write_file("wisdom", text.s, text.n);
  clb_text_free(&text);
}

static void changed_settings_do_no_harm(void **state) {
  enum { ROUNDS = 25 };
  static float must[4][RESULTS], is[RESULTS];
  size_t n;
  uint64_t seed = 5;
  int followed = 0;
  (void)state;
  char *lines = lines_of_four(&n);
  for (int round = 0; round < ROUNDS; round++) {
    write_changed(lines, round, &seed);
    clb_context *ctx = open_genuine();
    for (int i = round ? round % 4 : 0; i < 4; i += round ? 4 : 1) { /* all four, then in turns */
      const clb_pass pass = (clb_pass)(i % 2);
      clb_op *op = product_or_convolution(ctx, i / 2, pass);
      chosen(op, pass);
      followed += op->choice[pass].measured;
      run_op(op, i / 2, pass, round ? is : must[i]);
      for (int k = 0; k < RESULTS && round; k++)
        if (!(is[k] - must[i][k] < 1e-4f && must[i][k] - is[k] < 1e-4f))
          fail_msg("round %d, op %d: number %d is %g, not %g", round, i, k, is[k], must[i][k]);
      clb_op_destroy(&op);
    }
    clb_context_destroy(&ctx);
    if (!round) assert_int_equal(followed, 4); /* later only those that are still candidates */
  }
  free(lines);
}

/* Two files of different keys, together more lines than are kept: the newest of the first stay
   before the second. */
static void the_newest_lines_stay(void **state) {
  enum { MANY = 1 << 20 };
  size_t n, used[2] = {0}, all;
  (void)state;
  char *line = line_of_candidate_1(&n), *big[2], *problem = strchr(strchr(line, ':'), ' ') + 1;
  for (unsigned f = 0, i = 0; f < 2; f++) {
    assert_non_null(big[f] = malloc(MANY));
    for (; used[f] + n < (f ? MANY / 2 : MANY); i++, used[f] += n) {
      char number[9];
      snprintf(number, sizeof number, "%08x", i * 2654435761u);
      memcpy(problem, number, 8);
      memcpy(big[f] + used[f], line, n);
    }
    write_file(f ? "second" : "first", big[f], used[f]);
  }
  unlink(path_of("wisdom"));
  clb_context *ctx = open_genuine();
  OK(ctx, clb_wisdom_import(ctx, path_of("first")));
  OK(ctx, clb_wisdom_import(ctx, path_of("second")));
  OK(ctx, clb_wisdom_export(ctx, path_of("exported")));
  free(line);
  line = read_file("exported", &all);
  assert_in_range(all, MANY - n, MANY);
  const size_t old = all - used[1];
  assert_memory_equal(line, big[0] + used[0] - old, old);
  assert_memory_equal(line + old, big[1], used[1]);
  clb_context_destroy(&ctx);
  for (int f = 0; f < 2; f++) free(big[f]);
  free(line);
}

/* Lines of other devices stay in the file, are not followed and not exported; those of one key are
   replaced. */
static void lines_are_merged(void **state) {
  size_t n, all;
  (void)state;
  char *line = line_of_candidate_1(&n), foreign[4096], *bytes;
  int n_foreign = snprintf(foreign, sizeof foreign, "%snonsense\n", line);
  memset(strchr(foreign, ':') + 1, '0', 32);
  write_file("wisdom", foreign, (size_t)n_foreign);
  clb_context *first = open_genuine(), *second = open_genuine();
  clb_op *op = harmonics(first, CLB_PASS_BIT(CLB_FORWARD)),
         *a = harmonics(second, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE), *b;
  assert_int_equal(chosen(op, CLB_FORWARD), 0);
  b = harmonics(first,
                CLB_PASS_BIT(CLB_BACKWARD) | CLB_MEASURE); /* has not seen what the second wrote */
  assert_int_equal(count_lines("wisdom"), 3);
  OK(first, clb_wisdom_export(first, path_of("exported")));
  assert_int_equal(count_lines("exported"), 1);
  OK(first, clb_wisdom_import(first, path_of("wisdom")));
  OK(first, clb_wisdom_export(first, path_of("exported")));
  assert_int_equal(count_lines("exported"), 2);
  OK(second, clb_wisdom_forget(second));
  clb_op_destroy(&a);
  a = harmonics(second, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE);
  assert_int_equal(count_lines("wisdom"), 3);
  bytes = read_file("wisdom", &all);
  assert_non_null(strstr(bytes, "cpu:00000000000000000000000000000000 "));
  assert_null(strstr(bytes, "nonsense"));
  free(bytes);
  free(line);
  clb_op_destroy(&a);
  clb_op_destroy(&b);
  close_all(&op, &first);
  clb_context_destroy(&second);
}

/* ---- export, import, no folder ---- */

static void round_trip_without_a_folder(void **state) {
  size_t n, again;
  (void)state;
  setenv("CLB_CACHE_DIR", "off", 1);
  clb_context *ctx = open_fake(1, -1, -1);
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD) | CLB_MEASURE),
         *other = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  assert_int_equal(chosen(other, CLB_FORWARD), 1);
  OK(ctx, clb_wisdom_export(ctx, path_of("a")));
  clb_op_destroy(&other);
  close_all(&op, &ctx);
  assert_int_not_equal(access(path_of("wisdom"), F_OK), 0);
  ctx = open_genuine();
  op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 0);
  clb_op_destroy(&op);
  OK(ctx, clb_wisdom_export(ctx, path_of("empty")));
  OK(ctx, clb_wisdom_import(ctx, path_of("empty")));
  OK(ctx, clb_wisdom_import(ctx, path_of("a")));
  op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  check_harmonics(op);
  OK(ctx, clb_wisdom_export(ctx, path_of("b")));
  char *a = read_file("a", &n), *b = read_file("b", &again);
  assert_int_equal(n, again);
  assert_memory_equal(a, b, n);
  assert_non_null(strstr(a, "# spherical_harmonics forward f32 l = 0 1 2 3 4, component\n"));
  free(a);
  free(b);
  close_all(&op, &ctx);
  setenv("CLB_CACHE_DIR", dir, 1);
}

static void import_goes_to_the_folder(void **state) {
  size_t n;
  (void)state;
  char *line = line_of_candidate_1(&n);
  unlink(path_of("wisdom"));
  write_file("given", line, n);
  clb_context *ctx = open_genuine();
  OK(ctx, clb_wisdom_import(ctx, path_of("given")));
  clb_context_destroy(&ctx);
  ctx = open_genuine();
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  assert_int_equal(chosen(op, CLB_FORWARD), 1);
  close_all(&op, &ctx);
  free(line);
}

static void mistakes(void **state) {
  (void)state;
  clb_context *ctx = open_genuine();
  clb_op *op = harmonics(ctx, CLB_PASS_BIT(CLB_FORWARD));
  clb_tuning t;
  write_file("garbage", "some\ntext\n", 10);
  assert_int_equal(clb_wisdom_import(ctx, path_of("garbage")), CLB_ERROR_ARGUMENT);
  assert_non_null(strstr(clb_error(ctx), "is wisdom"));
  assert_int_equal(clb_wisdom_import(ctx, path_of("absent")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_import(ctx, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(ctx, NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(ctx, path_of("no/such/folder")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_export(NULL, path_of("a")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_import(NULL, path_of("a")), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_wisdom_forget(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(NULL, CLB_FORWARD, &t), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(op, CLB_BACKWARD, &t), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_op_tuning(op, CLB_FORWARD, NULL), CLB_ERROR_ARGUMENT);
  const clb_spherical_harmonics_desc d = {degrees, DEGREES, CLB_COMPONENT, 0, CLB_F32,
                                          CLB_F32, 0,       CLB_MEASURE};
  clb_op *none;
  assert_int_equal(clb_spherical_harmonics_create(ctx, &d, &none),
                   CLB_ERROR_ARGUMENT); /* the flag is not a pass */
  assert_null(none);
  unlink(path_of("garbage"));
  close_all(&op, &ctx);
}

/* With the system's compiler, where there is one. */
static void compiled_kernels(void **state) {
  (void)state;
  device = "cpu";
  measure_products(1);
  clb_context *ctx = open_genuine();
  clb_op *op = harmonics(ctx, 1 | CLB_MEASURE);
  expect_measured(op, 1);
  check_harmonics(op);
  close_all(&op, &ctx);
  device = "cpu:interpreter";
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, clean)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_fastest_stays),
                                     TEST(without_the_flag_nothing_runs),
                                     TEST(bad_candidates_are_dropped),
                                     TEST(a_failing_device_is_told_of),
                                     TEST(products_are_measured),
                                     TEST(convolutions_are_measured),
                                     TEST(contractions_are_measured),
                                     TEST(bad_lines_do_nothing),
                                     TEST(hostile_files),
                                     TEST(long_files_are_quick),
                                     TEST(the_newest_lines_stay),
                                     TEST(changed_settings_do_no_harm),
                                     TEST(lines_are_merged),
                                     TEST(round_trip_without_a_folder),
                                     TEST(import_goes_to_the_folder),
                                     TEST(mistakes),
                                     TEST(compiled_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
