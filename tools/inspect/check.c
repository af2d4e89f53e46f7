/* tools/inspect/check.c - `clebsch check`: every op, dtype and pass of a device against a float64
   reference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/data/test_run.h"
#include "tools/optimizer/optimizer_tool.h"

typedef struct {
  device_options devices;
  const tool_op *op; /* NULL: all */
  bool optimizers;   /* these alone */
  int64_t max_rows;  /* 0: as many as in the cases */
  int part, parts;   /* run every `parts`th case from number `part` on; parts 0: all */
  /* The run. */
  json_t *rows;
  table table;
  bool titled;
  const char *told; /* the op of the last line */
  int done, total, failed, left_out;
} check;

enum { ONE_OP = 256, ROWS, PART };

static void take_part(check *c, const struct argp_state *state, const char *arg) {
  char rest;
  if (sscanf(arg, "%d/%d%c", &c->part, &c->parts, &rest) == 2 && c->part >= 1 &&
      c->part <= c->parts && c->parts <= 1000)
    return;
  argp_error(state, "--part '%s' must be I/N with 1 <= I <= N <= 1000, as in 2/5", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  check *c = state->input;
  switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &c->devices; return 0;
    case ONE_OP:
      c->optimizers = !strcmp(arg, "optimizer");
      c->op = c->optimizers ? NULL : wanted_op(state, arg);
      return 0;
    case ROWS: c->max_rows = whole_number(state, "--rows", arg, 1, INT32_MAX); return 0;
    case PART: take_part(c, state, arg); return 0;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is one argument too many", arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static void case_name(const tool_op *op, const tool_kernel *kernel, const tool_data *data,
                      char *out, size_t size) {
  static const char *const layouts[LAYOUTS] = {"", " padded", " padded by 4", " repeated"};
  print_kernel(op, kernel, out, size);
  size_t used = strlen(out);
  snprintf(out + used, size - used, ", %lld %s%s%s%s", (long long)data->rows,
           op->row ? op->row : "row", data->rows == 1 ? "" : "s", layouts[data->layout],
           data->hard ? " (edge cases)" : "");
}

enum { CASE, PASS, DTYPE, ERROR, TOLERANCE, OK, COLUMNS };

/* One line; error < 0: the kernel did not run. */
typedef struct {
  const char *op, *name, *pass, *device;
  clb_dtype dtype;
  double error, tolerance;
} finding;

static void report(check *c, const finding *f) {
  char error_text[32] = "", tolerance_text[32];
  const bool ok = f->error >= 0 && f->error <= f->tolerance;
  c->failed += !ok;
  c->done++;
  if (c->rows) {
    json_t *row = json_array_add(c->rows, json_object());
    JSON_ADD(row, {"op", json_text(f->op)}, {"case", json_text(f->name)},
             {"pass", json_text(f->pass)}, {"dtype", json_text(dtype_names[f->dtype])},
             {"device", json_text(f->device)},
             {"error", f->error < 0 ? json_null() : json_number(f->error)},
             {"tolerance", json_number(f->tolerance)}, {"ok", json_boolean(ok)});
    return;
  }
  if (f->error >= 0) snprintf(error_text, sizeof error_text, "%.1e", f->error);
  snprintf(tolerance_text, sizeof tolerance_text, "%.1e", f->tolerance);
  progress(NULL);
  if (!c->told || strcmp(c->told, f->op)) printf("%s, %s\n", f->device, f->op);
  c->told = f->op;
  table_line(&c->table, (const char *[COLUMNS]){f->name, f->pass, dtype_names[f->dtype], error_text,
                                                tolerance_text,
                                                ok             ? "ok"
                                                : f->error < 0 ? "DID NOT RUN"
                                                               : "WRONG"});
}

static clb_status try_data(clb_context *ctx, const tool_op *op, const tool_kernel *kernel,
                           clb_op *handle, clb_pass pass, const tool_data *data, double *error) {
  test_run t;
  test_run_make(&t, op, kernel, pass, data, data->rows);
  test_run_answer(&t);
  clb_status status = test_run_try(&t, ctx, handle, error);
  test_run_free(&t);
  return status;
}

/* Data number i of a case, with rows limited as requested; rows 0: there is none, or it would
   repeat an earlier one. */
static tool_data data_of(const check *c, const tool_case *k, int i) {
  tool_data data = i < MAX_DATA ? k->data[i] : (tool_data){0};
  if (!c->max_rows || data.rows <= c->max_rows) return data;
  data.rows = c->max_rows;
  for (int j = 0; j < i; j++)
    if (k->data[j].rows >= c->max_rows && k->data[j].layout == data.layout &&
        k->data[j].hard == data.hard)
      data.rows = 0;
  return data;
}

static int count_data(const tool_case *k) {
  int n = 0;
  while (n < MAX_DATA && k->data[n].rows) n++;
  return n;
}

static bool in_part(const check *c, int number) {
  return !c->parts || number % c->parts == c->part - 1;
}

static void check_pass(check *c, clb_context *ctx, const char *device, const tool_op *op,
                       const tool_case *k, clb_op *handle, clb_pass pass) {
  for (int i = 0; i < count_data(k); i++) {
    tool_data data = data_of(c, k, i);
    double error = -1;
    if (!data.rows) continue;
    if (handle) {
      progress("%s: %d of %d, %s %s", device, c->done, c->total, op->name, pass_names[pass]);
      if (try_data(ctx, op, &k->kernel, handle, pass, &data, &error))
        error = -1, warn("%s: %s", device, clb_error(ctx));
    }
    char name[320];
    case_name(op, &k->kernel, &data, name, sizeof name);
    report(c, &(finding){op->name, name, pass_names[pass], device, k->kernel.storage, error,
                         tolerance_of(op, &k->kernel)});
  }
}

static int runs_of(const check *c, const tool_op *op, const tool_case *k) {
  int n = 0;
  for (int i = 0; i < count_data(k); i++) n += data_of(c, k, i).rows > 0;
  return n * __builtin_popcount(passes_of(op, k));
}

static void check_case(check *c, clb_context *ctx, const clb_device_info *info, const tool_op *op,
                       const tool_case *k) {
  clb_op *handle = NULL;
  bool f64 = k->kernel.storage == CLB_F64 || k->kernel.arithmetic == CLB_F64;
  if (f64 && !info->f64) {
    c->left_out += runs_of(c, op, k);
    return;
  }
  progress("%s: %d of %d, compiling %s", info->name, c->done, c->total, op->name);
  if (op->create(ctx, &k->kernel, passes_of(op, k), &handle))
    warn("%s: %s", info->name, clb_error(ctx));
  for (int pass = 0; pass < PASSES; pass++)
    if (passes_of(op, k) >> pass & 1) check_pass(c, ctx, info->name, op, k, handle, (clb_pass)pass);
  clb_op_destroy(&handle);
}

/* Whether a case is among those asked for; they are numbered in the order in which they run. */
static bool wanted(const check *c, const tool_op *op, int *number) {
  const bool named = op ? (!c->op || c->op == op) && !c->optimizers : !c->op;
  return named && in_part(c, (*number)++);
}

static void check_optimizers(check *c, clb_context *ctx, const clb_device_info *info, int number) {
  for (int i = 0; i < n_optimizer_checks; i++) {
    const tool_training *t = &optimizer_checks[i];
    double error = -1;
    if (!wanted(c, NULL, &number)) continue;
    if (t->parameters == CLB_F64 && !info->f64) {
      c->left_out++;
      continue;
    }
    progress("%s: %d of %d, optimizer %s", info->name, c->done, c->total, t->name);
    if (optimizer_check(ctx, t, &error)) error = -1, warn("%s: %s", info->name, clb_error(ctx));
    report(c, &(finding){"optimizer", t->name, "100 steps", info->name, t->parameters, error,
                         optimizer_tolerance(t)});
  }
}

static int check_device(clb_context *ctx, const clb_device_info *info, const char *asked,
                        void *user) {
  check *c = user;
  int failed = c->failed, done = c->done, left_out = c->left_out;
  (void)asked;
  if (!info->runs) {
    warn("check: %s only compiles; its kernels cannot run here", info->name);
    return EXIT_USAGE;
  }
  if (!c->rows && !c->titled) table_titles(&c->table);
  c->titled = true;
  c->told = NULL;
  int number = 0;
  for (int i = 0; i < TOOL_OPS; i++)
    for (int k = 0; k < tool_ops[i]->n_cases; k++)
      if (wanted(c, tool_ops[i], &number))
        check_case(c, ctx, info, tool_ops[i], &tool_ops[i]->cases[k]);
  check_optimizers(c, ctx, info, number);
  failed = c->failed - failed, done = c->done - done, left_out = c->left_out - left_out;
  progress(NULL);
  if (!c->rows) {
    char rest[64] = "";
    if (left_out) snprintf(rest, sizeof rest, ", %d left out: no f64 on this device", left_out);
    print_text("%s (%s): %d checks, %d failed%s", info->name, info->description, done, failed,
               rest);
  }
  if (failed) warn("check: %d of %d failed on %s", failed, done, info->name);
  return failed || !done ? EXIT_FAILED : EXIT_GOOD;
}

/* Longer names have a line of their own. */
static const int widest_case = 43;

static void begin(check *c) {
  c->table =
      (table){.n = COLUMNS, .titles = {"case", "pass", "dtype", ">error", ">tolerance", "ok"}};
  char name[320];
  int number = 0;
  for (int i = 0; i < TOOL_OPS; i++)
    for (int k = 0; k < tool_ops[i]->n_cases; k++) {
      const tool_op *op = tool_ops[i];
      if (!wanted(c, op, &number)) continue;
      c->total += c->devices.n_devices * runs_of(c, op, &op->cases[k]);
      for (int j = 0; j < count_data(&op->cases[k]); j++) {
        tool_data data = data_of(c, &op->cases[k], j);
        case_name(op, &op->cases[k].kernel, &data, name, sizeof name);
        if (text_columns(name) <= widest_case) table_fit(&c->table, CASE, name);
      }
    }
  for (int i = 0; i < n_optimizer_checks; i++) {
    if (!wanted(c, NULL, &number)) continue;
    c->total += c->devices.n_devices;
    table_fit(&c->table, CASE, optimizer_checks[i].name);
  }
  table_fit(&c->table, PASS, pass_names[CLB_DOUBLE_BACKWARD]);
  table_fit(&c->table, ERROR, "0.0e-00");
}

int check_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"op", ONE_OP, "OP", 0, "Only this op; `optimizer`: only optimizers", 0},
      {"rows", ROWS, "N", 0,
       "Limit on rows (of a graph: edges), for slow devices, or for tools that slow them down", 0},
      {"part", PART, "I/N", 0, "The I-th of N parts of the cases", 0},
      {0}};
  static const struct argp_child children[] = {{&device_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .children = children,
      .doc =
          "Runs every op, in every dtype and pass, on small problems with edge cases, and compares "
          "the results with a float64 reference.\v"
          "error is the largest |difference| over all elements of all outputs, each divided by the "
          "scale of its element: the norm of the terms that are summed in it. Outputs are filled "
          "with NaN unless they are accumulated into; the memory between and after their rows must "
          "stay unchanged. edge cases: with points at the origin and, if they are normalised, of "
          "length "
          "1e-20 and 1e20. repeated: one row of upstream gradients (and, for a tensor product or a "
          "convolution, of y and the weights) for all rows, through CLB_SAME_ROW. indexed: the "
          "rows of "
          "these operands are gathered by row number. shared: one row of weights for all rows; its "
          "gradients are summed over rows. Graphs of convolutions: random; rectangular, "
          "few receivers and many senders; isolated, most nodes without edges; hubs, most edges "
          "between one sender and one receiver; shuffled, unordered. minimum workspace: gradients "
          "of x are kept for a block of edges at a time. Optimizers: the norm of the error of the "
          "parameters after 100 steps, divided by that of the way that they have come."};
  check c = {.op = NULL};
  parse_arguments(&argp, argc, argv, 0, &c);
  if (c.devices.json) c.rows = json_array();
  begin(&c);
  int status = on_each_device(&c.devices, check_device, &c);
  if (c.rows) json_print(c.rows);
  return status;
}
