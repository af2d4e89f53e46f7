/* tools/bench/bench.c - `clebsch bench`: time, bytes and errors of an op, relative to the device's
   own peaks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/measure/result.h"
#include "tools/bench/launches.h"
#include "tools/measure/measure.h"
#include "tools/cli/request.h"
#include "tools/bench/suite.h"
#include "tools/optimizer/optimizer_tool.h"

typedef struct {
  int64_t rows; /* 0: the op's default */
} bench_options;

typedef struct {
  request request;
  bench_options options;
  json_t *rows; /* NULL: a table */
  table table;
  bool headed; /* the heading of this device's table has been printed */
} bench;

enum { KEY_SUITE = 400, KEY_WITHOUT, KEY_ROWS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  bench_options *o = state->input;
  switch (key) {
    case KEY_SUITE:
      argp_error(state, "write --suite in full");
      return 0; /* otherwise bench_main has handled it */
    case KEY_WITHOUT: argp_error(state, "write --without in full"); return 0;
    case KEY_ROWS: o->rows = whole_number(state, "--rows", arg, 1, INT64_C(1) << 40); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- output ---- */

static void add_json(const bench *b, const result *r) {
  json_t *row = json_array_add(b->rows, json_object());
  JSON_ADD(row, {"op", json_text(b->request.op->name)}, {"problem", json_text(r->problem)},
           {"pass", json_text(r->pass)}, {"dtype", json_text(r->dtype)},
           {"device", json_text(r->device)});
  add_numbers(row, r);
  if (!r->runs) add_vendor_specs(row, r->device);
}

/* Cores that share their arithmetic, or that the host takes away for a while, make times long. */
static void host_line(const host_rates *h) {
  const bool shared = h->cores < 0.85 * h->threads;
  print_text("host: reads %.1f GB/s; %d threads compute %.2f times as fast as one%s; one stood "
             "still for %.1f ms",
             h->read * 1e-9, h->threads, h->cores,
             shared ? " (cores are shared, or were taken away)" : "", h->gap * 1e3);
}

/* The columns after pass and dtype: of a device that only compiles, the first ones and bounds. */
enum { NAMES = 2, COMPILE_COLUMNS = RESULT_NS, RUN_COLUMNS = RESULT_FLOOR };

static int columns_of(const bench *b, bool runs) {
  return !runs ? COMPILE_COLUMNS : b->request.op->on_graph ? RESULT_COLUMNS : RUN_COLUMNS;
}

static void heading(bench *b, const clb_device_info *info, const device_peaks *top) {
  char problem[320];
  b->request.op->print(b->request.problem, problem, sizeof problem);
  b->table = (table){.n = NAMES, .titles = {"pass", "dtype"}};
  table_fit(&b->table, 0, pass_names[CLB_DOUBLE_BACKWARD]);
  for (int c = 0; c < columns_of(b, info->runs); c++) table_add(&b->table, &c, 1);
  if (!info->runs) table_add_bounds(&b->table);
  progress(NULL);
  print_peaks(info, top, NAN);
  if (top->host.threads) host_line(&top->host);
  print_text("%s %s", b->request.op->name, problem);
  table_titles(&b->table);
  fflush(stdout);
}

static void add_line(bench *b, const result *r) {
  char made[MAX_COLUMNS][NUMBER_BYTES];
  const char *cells[MAX_COLUMNS] = {r->pass, r->dtype};
  const int n = columns_of(b, r->runs);
  for (int c = 0; c < n; c++) result_columns[c].cell(r, made[c]);
  if (!r->runs) bound_cells(r, made + n);
  for (int c = NAMES; c < b->table.n; c++) cells[c] = made[c - NAMES];
  progress(NULL);
  table_line(&b->table, cells);
  if (r->compared[0]) printf("  error: of %s\n", r->compared);
  if (r->tuned) printf("  schedule: from wisdom in the cache, as `clebsch tune` left it\n");
}

/* ---- measuring ---- */

static void add(bench *b, const clb_device_info *info, const device_peaks *top, const result *r) {
  if (b->rows) {
    add_json(b, r);
    return;
  }
  if (!b->headed) heading(b, info, top);
  b->headed = true;
  add_line(b, r);
}

static int one_result(bench *b, clb_context *ctx, const clb_device_info *info, clb_pass pass,
                      clb_dtype dtype, const device_peaks *top) {
  const tool_op *op = b->request.op;
  char label[128];
  result r;
  snprintf(label, sizeof label, "%s: %s %s %s", info->name, op->name, pass_names[pass],
           dtype_names[dtype]);
  const measurement m = {.op = op,
                         .kernel = {.problem = b->request.problem,
                                    .storage = dtype,
                                    .arithmetic = usual_arithmetic(dtype)},
                         .pass = pass,
                         .rows = b->options.rows,
                         .label = label};
  clb_status status = measure(&m, ctx, info, top, &r);
  int exit_status = status ? failure(status) : EXIT_GOOD;
  if (status) warn("%s: %s", info->name, r.trouble ? r.trouble : clb_status_text(status));
  else add(b, info, top, &r);
  if (!status && info->runs && !is_correct(&r)) {
    warn("%s: %s %s %s is wrong: error %.1e, tolerance %.1e", info->name, op->name, r.pass, r.dtype,
         r.error, r.tolerance);
    exit_status = EXIT_FAILED;
  }
  free(r.trouble);
  return exit_status;
}

static int bench_device(clb_context *ctx, const clb_device_info *info, const char *asked,
                        void *user) {
  static const char interpreter[] = "cpu:interpreter";
  bench *b = user;
  device_peaks top = {0};
  int worst = EXIT_GOOD;
  b->headed = false;
  if (is_interpreter(info) && strcmp(asked, interpreter)) {
    warn("bench: %s (%s) only interprets, and the time of that tells little; --device %s insists",
         info->name, info->description, interpreter);
    return EXIT_FAILED;
  }
  progress("%s: measuring its peaks", info->name);
  if (info->runs && measure_peaks(ctx, info, &top)) {
    warn("%s: %s", info->name, clb_error(ctx));
    return EXIT_FAILED;
  }
  for (int dtype = 0; dtype < DTYPES; dtype++)
    for (int pass = 0; pass < PASSES; pass++) {
      if (worst == EXIT_USAGE || !(b->request.kernels.dtypes >> dtype & 1) ||
          !(b->request.kernels.passes >> pass & 1))
        continue;
      int status = one_result(b, ctx, info, (clb_pass)pass, (clb_dtype)dtype, &top);
      if (status > worst) worst = status;
    }
  progress(NULL);
  return worst;
}

int bench_main(int argc, char **argv) {
  if (suite_asked(argc, argv)) return suite_main(argc, argv);
  if (ablation_asked(argc, argv)) return ablation_main(argc, argv);
  if (launches_asked(argc, argv)) return launches_main(argc, argv);
  if (bench_optimizer_asked(argc, argv)) return bench_optimizer_main(argc, argv);
  static const struct argp_option options[] = {
      {"rows", KEY_ROWS, "N", 0,
       "Rows of one launch (default: 1000000; tensor_product: 50000, from double_backward on "
       "20000, single paths 200000)",
       0},
      {"suite", KEY_SUITE, "NAME", 0,
       "Instead of OP: standard, graphs, norms or quick: many problems on every device into one "
       "file. See "
       "--suite NAME --help",
       0},
      {"without", KEY_WITHOUT, "LIST", 0,
       "The op, or (without OP) a list of cases, also without optimisations: wide, registers, "
       "split, ... See --without each --help",
       0},
      {0}};
  static const struct argp own = {.options = options, .parser = parse};
  bench b = {.rows = NULL};
  request_parse(
      &b.request, argc, argv, &own, &b.options,
      "Times an op on random data, all passes up to double_backward unless --pass is "
      "given, and compares every output with a float64 reference.\v"
      "ms: the median of repeated batches of launches, divided by the launches in one; tenth and "
      "least: the tenth percentile and the minimum, for hosts that take processors away. "
      "Bytes and operations are counted in the kernel's IR, an fma as two; for tensor_product "
      "bytes are the minimum, each operand counted once. % copy and % peak: fractions of this "
      "device's copy bandwidth and multiply-add rate, measured in the same run. Rows that do not "
      "fit in the device's caches are spread over several sets of buffers; if they fit, % copy "
      "says cache. error: as defined by `clebsch check`. For a compile-only device, the compiler's "
      "report on the machine code: elements loaded and stored and fused multiply-adds of one lane, "
      "registers, and bytes spilled; the occupancy that follows; and a bound, not a measurement: "
      "the minimum time for these bytes and operations at the vendor's published bandwidth and "
      "peak. For a convolution rows are edges, bytes are those of its arrays plus 8 bytes of "
      "indices per edge, and the floor is the time in which this device copies the same number of "
      "bytes (on the host's CPU, or reads those that are read, if that takes longer), without and "
      "with the gradients of x that a workspace holds for each edge; error is "
      "that of a sample of receivers, senders and edges, with all edges of these included. compile "
      "s includes hits in the kernel cache. `bench launches` instead of OP: the host's cost of "
      "small ops, submitted one by one and replayed from a recording. `bench optimizer`: steps of "
      "optimizers on lists of parameters; each has a --help of its own.");
  if (!b.request.kernels.passes) b.request.kernels.passes = USUAL_PASSES & b.request.op->passes;
  if (b.options.rows && b.request.op->on_graph) {
    warn("bench: %s has no --rows: its graph says how many", b.request.op->name);
    request_free(&b.request);
    return EXIT_USAGE;
  }
  if (b.request.devices.json) b.rows = json_array();
  int status = on_each_device(&b.request.devices, bench_device, &b);
  if (b.rows) json_print(b.rows);
  request_free(&b.request);
  return status;
}
