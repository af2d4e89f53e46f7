/* tests/tuning/test_wisdom_lines.c - lines of wisdom: wrong ones do no harm, many are quick. */
#include "tests/tuning/wisdom_device.h"

/* ---- lines ---- */

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

int main(void) {
  const struct CMUnitTest tests[] = {TEST(bad_lines_do_nothing),        TEST(hostile_files),
                                     TEST(long_files_are_quick),        TEST(the_newest_lines_stay),
                                     TEST(changed_settings_do_no_harm), TEST(lines_are_merged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
