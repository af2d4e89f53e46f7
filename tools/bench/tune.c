/* tools/bench/tune.c - `clebsch tune`: measures which schedule of an op's kernels is the fastest,
   and reports the gain. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/cli/request.h"
#include "tools/ops/tensor_product_problems.h"

typedef struct {
  const char *from, *to; /* wisdom files */
  bool again;
} tune_options;

typedef struct {
  request request;
  tune_options options;
  json_t *rows; /* NULL: a table */
  table table;
  bool headed;
} tune;

enum { IMPORT = 256, EXPORT, AGAIN };

static error_t parse(int key, char *arg, struct argp_state *state) {
  tune_options *o = state->input;
  switch (key) {
    case IMPORT: o->from = arg; return 0;
    case EXPORT: o->to = arg; return 0;
    case AGAIN: o->again = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- output ---- */

enum { DEVICE, PROBLEM, PASS, DTYPE, ESTIMATE, MS, RATIO, SCHEDULE, COLUMNS };

/* Whether the list of settings contains this word of n characters. */
static bool has_word(const char *list, const char *word, size_t n) {
  for (const char *s = list; *s; s += strcspn(s, " "), s += *s == ' ')
    if (!strncmp(s, word, n) && (s[n] == ' ' || !s[n] || word[n - 1] == '=')) return true;
  return false;
}

/* The settings that differ from the estimate; the lists do not contain settings that are 0. */
static void differences(const clb_tuning *t, char *out, size_t size) {
  out[0] = 0;
  for (const char *s = t->schedule; *s; s += strcspn(s, " "), s += *s == ' ') {
    size_t n = strcspn(s, " "), used = strlen(out);
    if (!has_word(t->estimate, s, n))
      snprintf(out + used, size - used, "%s%.*s", used ? " " : "", (int)n, s);
  }
  for (const char *s = t->estimate; *s; s += strcspn(s, " "), s += *s == ' ') {
    size_t n = strcspn(s, "=") + 1, used = strlen(out);
    if (!has_word(t->schedule, s, n))
      snprintf(out + used, size - used, "%s%.*s0", used ? " " : "", (int)n, s);
  }
}

static void add_json(const tune *u, const char *device, const char *problem, clb_pass pass,
                     clb_dtype dtype, const clb_tuning *t) {
  json_t *row = json_array_add(u->rows, json_object());
  JSON_ADD(row, {"op", json_text(u->request.op->name)}, {"problem", json_text(problem)},
           {"pass", json_text(pass_names[pass])}, {"dtype", json_text(dtype_names[dtype])},
           {"device", json_text(device)}, {"measured", json_boolean(t->measured)},
           {"estimate_seconds", json_number(t->measured ? t->estimate_seconds : NAN)},
           {"seconds", json_number(t->measured ? t->seconds : NAN)},
           {"estimate", json_text(t->estimate)}, {"schedule", json_text(t->schedule)});
}

static void add_line(tune *u, const char *device, const char *problem, clb_pass pass,
                     clb_dtype dtype, const clb_tuning *t) {
  char estimate[24] = "", ms[24] = "", ratio[24] = "", other[400];
  const char *cells[COLUMNS] = {device, problem, pass_names[pass], dtype_names[dtype], estimate, ms,
                                ratio,  other};
  differences(t, other, sizeof other);
  if (t->measured) {
    snprintf(estimate, sizeof estimate, "%.4f", t->estimate_seconds * 1e3);
    snprintf(ms, sizeof ms, "%.4f", t->seconds * 1e3);
    snprintf(ratio, sizeof ratio, "%.3f", t->seconds / t->estimate_seconds);
  }
  if (!other[0])
    snprintf(other, sizeof other,
             t->measured ? "the estimate" : "the estimate: there is nothing to choose from");
  progress(NULL);
  if (!u->headed) {
    u->table = (table){.n = COLUMNS,
                       .titles = {"device", "problem", "pass", "dtype", ">estimate ms", ">ms",
                                  ">ratio", "schedule"}};
    for (int i = 0; i < u->request.devices.n_devices; i++)
      table_fit(&u->table, DEVICE, u->request.devices.devices[i]);
    table_fit(&u->table, DEVICE, device);
    table_fit(&u->table, PROBLEM, "e3tools-transformer");
    table_fit(&u->table, PROBLEM, problem);
    table_fit(&u->table, PASS, pass_names[CLB_DOUBLE_BACKWARD]);
    table_fit(&u->table, MS, "1234.5678");
    table_titles(&u->table);
  }
  u->headed = true;
  table_line(&u->table, cells);
}

/* ---- measuring ---- */

static clb_status one_kernel(tune *u, clb_context *ctx, const char *device, clb_pass pass,
                             clb_dtype dtype) {
  const tool_op *op = u->request.op;
  const tool_kernel kernel = {
      .problem = u->request.problem, .storage = dtype, .arithmetic = usual_arithmetic(dtype)};
  char problem[320];
  clb_op *handle = NULL;
  clb_tuning t;
  op->print(kernel.problem, problem, sizeof problem);
  progress("%s: measuring %s %s %s", device, problem, pass_names[pass], dtype_names[dtype]);
  clb_status status = op->create(ctx, &kernel, CLB_PASS_BIT(pass) | CLB_MEASURE, &handle);
  if (!status) status = clb_op_tuning(handle, pass, &t);
  if (!status && u->rows) add_json(u, device, problem, pass, dtype, &t);
  else if (!status) add_line(u, device, problem, pass, dtype, &t);
  clb_op_destroy(&handle);
  return status;
}

static int on_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  tune *u = user;
  clb_status status = CLB_OK;
  (void)asked;
  if (!info->runs) {
    warn("tune: %s only compiles; nothing can be measured on it", info->name);
    return EXIT_FAILED;
  }
  if (u->options.again) status = clb_wisdom_forget(ctx);
  if (!status && u->options.from) status = clb_wisdom_import(ctx, u->options.from);
  for (int dtype = 0; dtype < DTYPES; dtype++)
    for (int pass = 0; pass < PASSES && !status; pass++)
      if (u->request.kernels.dtypes >> dtype & 1 && u->request.kernels.passes >> pass & 1)
        status = one_kernel(u, ctx, info->name, (clb_pass)pass, (clb_dtype)dtype);
  if (!status && u->options.to) status = clb_wisdom_export(ctx, u->options.to);
  if (status) warn("%s: %s", info->name, clb_error(ctx));
  return status ? failure(status) : EXIT_GOOD;
}

static int one_problem(tune *u, int argc, char **argv) {
  static const struct argp_option options[] = {
      {"import", IMPORT, "FILE", 0, "First, add the wisdom in FILE", 0},
      {"export", EXPORT, "FILE", 0, "Afterwards, write all wisdom of the device (only one) to FILE",
       0},
      {"again", AGAIN, NULL, 0, "Measure again even if there is wisdom", 0},
      {0}};
  static const struct argp own = {.options = options, .parser = parse};
  request_parse(
      &u->request, argc, argv, &own, &u->options,
      "Times candidate schedules of an op's kernels on synthetic data, drops those whose results "
      "differ from the estimate's, and keeps the fastest beside the cached kernels (wisdom), where "
      "every program that creates such an op on this device finds it. Tunes all passes up to "
      "double_backward unless --pass is given; --problem all: all named problems.\v"
      "estimate ms, ms: time of a call with the estimated schedule and with the fastest; for a "
      "convolution, on a graph with 64 neighbours, whatever --graph says. schedule: settings that "
      "differ from the estimate. Existing wisdom is shown, and measured again only with --again.");
  if (!u->request.kernels.passes) u->request.kernels.passes = u->request.op->passes & USUAL_PASSES;
  if (u->request.devices.json && !u->rows) u->rows = json_array();
  int status = EXIT_USAGE;
  const named_file files[] = {{"the wisdom to import (--import)", u->options.from, FILE_INPUT},
                              {"the wisdom to export (--export)", u->options.to, FILE_GROWING}};
  if (u->options.to && u->request.devices.n_devices > 1) warn("tune: --export takes one device");
  else if (!outputs_ready(files, 2)) status = EXIT_FAILED;
  else status = on_each_device(&u->request.devices, on_device, u);
  request_free(&u->request);
  return status;
}

/* Position of the argument that selects all problems; 0: none. */
static int all_problems(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--problem=all") ||
        (!strcmp(argv[i], "all") && !strcmp(argv[i - 1], "--problem")))
      return i;
  return 0;
}

int tune_main(int argc, char **argv) {
  tune u = {.rows = NULL};
  int all = all_problems(argc, argv), worst = all ? EXIT_GOOD : one_problem(&u, argc, argv);
  for (int i = 0; i < STANDARD && all && worst != EXIT_USAGE; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", argv[all][0] == '-' ? "--problem=" : "", standard[i].name);
    char **words = allocate((size_t)argc + 1, sizeof *words);
    memcpy(words, argv, (size_t)argc * sizeof *words);
    words[all] = name;
    int status = one_problem(&u, argc, words);
    free(words);
    if (status > worst) worst = status;
  }
  if (u.rows) json_print(u.rows);
  return worst;
}
