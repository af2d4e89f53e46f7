/* bench.c - `clebsch bench`: time, bytes and errors of an op, against the device's own ceilings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbers.h"
#include "request.h"
#include "timing.h"
#include "trial.h"

enum { MAX_SETS = 64 };

typedef struct {
  int64_t rows; /* 0: what the op says */
} bench_options;

typedef struct {
  request request;
  bench_options options;
  json_t *rows; /* NULL: a table */
  table table;
  bool headed; /* the table of this device has its heading */
} bench;

/* What a device reaches; bytes and operations per second. */
typedef struct {
  double copy, fma[2]; /* by clb_dtype of the arithmetic */
} ceilings;

/* One line of the result.  Numbers that are not known are NAN or negative. */
typedef struct {
  const char *device, *pass, *dtype;
  char problem[320];
  bool runs;
  int64_t rows;
  double seconds, seconds_min, spread, compile_seconds, bytes, flops, copy_fraction, peak_fraction, error;
  double floor, more_floor; /* seconds that a copy of as many bytes takes, without and with those of a workspace; of ops with a tool_trial */
  int repeats;
  clb_report report;
  char compared[80];
} result;

static error_t parse(int key, char *arg, struct argp_state *state) {
  bench_options *o = state->input;
  switch (key) {
    case 'n': o->rows = whole_number(state, "--rows", arg, 1, INT64_C(1) << 40); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- output ---- */

static void add_json(const bench *b, const result *r) {
  json_t *row = json_array_add(b->rows, json_object());
  json_add(row, "op", json_text(b->request.op->name));
  json_add(row, "problem", json_text(r->problem));
  json_add(row, "pass", json_text(r->pass));
  json_add(row, "dtype", json_text(r->dtype));
  json_add(row, "device", json_text(r->device));
  json_add(row, "runs", json_boolean(r->runs));
  json_add(row, "rows", json_count(r->rows));
  json_add(row, "seconds", json_number(r->seconds));
  json_add(row, "seconds_min", json_number(r->seconds_min));
  json_add(row, "spread", json_number(r->spread));
  json_add(row, "repeats", json_count(r->repeats));
  json_add(row, "compile_seconds", json_number(r->compile_seconds));
  json_add(row, "bytes", json_count(llround(r->bytes)));
  json_add(row, "flops", json_count(llround(r->flops)));
  json_add(row, "copy_fraction", json_number(r->copy_fraction));
  json_add(row, "peak_fraction", json_number(r->peak_fraction));
  json_add(row, "error", json_number(r->error));
  if (b->request.op->trial) {
    json_add(row, "floor_seconds", json_number(r->floor));
    json_add(row, "floor_seconds_with_workspace", json_number(r->more_floor));
    json_add(row, "compared", json_text(r->compared));
  }
  if (r->runs) return;
  json_add(row, "loads", json_count(r->report.loads));
  json_add(row, "stores", json_count(r->report.stores));
  json_add(row, "registers", json_count(r->report.registers));
  json_add(row, "spills", json_count(r->report.spill_bytes));
}

enum { PASS, DTYPE, ROWS, BYTES, FLOPS, NS, MS, SPREAD, GBS, COPY, PEAK, COMPILE, ERROR, RUN_COLUMNS, FLOOR = RUN_COLUMNS, MORE_FLOOR, TRIAL_COLUMNS };
enum { LOADS = FLOPS + 1, STORES, REGISTERS, SPILLS, COMPILE_COLUMNS };

static void heading(bench *b, const clb_device_info *info, const ceilings *top) {
  char problem[320];
  b->request.op->print(b->request.problem, problem, sizeof problem);
  if (info->runs)
    b->table = (table){.n = RUN_COLUMNS,
                       .titles = {"pass", "dtype", ">rows", ">B/row", ">flop/row", ">ns/row", ">ms", ">±%", ">GB/s", ">% copy", ">% peak", ">compile s", ">error", ">floor ms", ">with workspace"}};
  else
    b->table = (table){.n = COMPILE_COLUMNS,
                       .titles = {"pass", "dtype", ">rows", ">B/row", ">flop/row", ">loads", ">stores", ">registers", ">bytes spilled"}};
  if (info->runs && b->request.op->trial) b->table.n = TRIAL_COLUMNS;
  table_fit(&b->table, PASS, pass_names[CLB_DOUBLE_BACKWARD]);
  table_fit(&b->table, ROWS, "1000000");
  for (int c = NS; info->runs && c <= GBS; c++) table_fit(&b->table, c, "1234.567");
  table_fit(&b->table, ERROR, "1.0e-07");
  progress(NULL);
  printf("%s (%s): ", info->name, info->description);
  if (info->runs) printf("copies %.1f GB/s, multiply-adds %.1f Gflop/s in f32", top->copy * 1e-9, top->fma[CLB_F32] * 1e-9);
  else fputs("compiles only", stdout);
  if (info->runs && top->fma[CLB_F64] > 0) printf(", %.1f in f64", top->fma[CLB_F64] * 1e-9);
  printf("\n%s %s\n", b->request.op->name, problem);
  table_titles(&b->table);
  fflush(stdout);
}

static void number(char out[24], int digits, double x) {
  if (isfinite(x)) snprintf(out, 24, "%.*f", digits, x);
  else out[0] = 0;
}

static void add_line(bench *b, const result *r) {
  char made[TRIAL_COLUMNS][24];
  const char *cells[TRIAL_COLUMNS] = {r->pass, r->dtype};
  double rows = (double)r->rows;
  number(made[ROWS], 0, rows);
  number(made[BYTES], 0, r->bytes / rows);
  number(made[FLOPS], 0, r->flops / rows);
  if (r->runs) {
    number(made[NS], 3, r->seconds / rows * 1e9);
    number(made[MS], 4, r->seconds * 1e3);
    number(made[SPREAD], 1, r->spread * 50);
    number(made[COMPILE], 2, r->compile_seconds);
    number(made[FLOOR], 4, r->floor * 1e3);
    number(made[MORE_FLOOR], 4, r->more_floor * 1e3);
    number(made[GBS], 1, r->bytes / r->seconds * 1e-9);
    number(made[COPY], 1, r->copy_fraction * 100);
    number(made[PEAK], 1, r->peak_fraction * 100);
    snprintf(made[ERROR], sizeof made[ERROR], "%.1e", r->error);
    if (!isfinite(r->copy_fraction)) snprintf(made[COPY], sizeof made[COPY], "cache");
  } else {
    const int said[] = {r->report.loads, r->report.stores, r->report.registers, r->report.spill_bytes};
    for (int i = 0; i < 4; i++) number(made[LOADS + i], 0, said[i] < 0 ? (double)NAN : said[i]);
  }
  for (int c = ROWS; c < b->table.n; c++) cells[c] = made[c];
  progress(NULL);
  table_line(&b->table, cells);
  if (r->compared[0]) printf("  error: of %s\n", r->compared);
}

/* ---- measuring ---- */

static void add_time(result *r, const timing *time) {
  r->seconds = time->seconds;
  r->seconds_min = time->seconds_min;
  r->spread = time->spread;
  r->repeats = time->repeats;
}

/* Sets of buffers for one trial: one if it fits in the cache, else four times the cache's size of them. */
static int sets_for(uint64_t bytes, const clb_device_info *info) {
  uint64_t cache = cache_bytes(info), n = bytes <= cache ? 1 : 1 + 4 * cache / bytes;
  uint64_t most = info->memory_bytes ? info->memory_bytes / 2 / bytes : n;
  if (n > most) n = most ? most : 1;
  return n > MAX_SETS ? MAX_SETS : (int)n;
}

typedef struct {
  const trial *t;
  clb_op *op;
  const trial_set *sets;
} launches;

static clb_status launch_rows(void *user, int set) {
  const launches *l = user;
  return trial_run(l->t, l->op, &l->sets[set]);
}

static clb_status measure_sets(const trial *t, clb_context *ctx, clb_op *op, trial_set *sets, int n, result *r) {
  timing time = {0};
  clb_status status = CLB_OK;
  for (int i = 0; !status && i < n; i++) status = trial_set_make(t, ctx, &sets[i]);
  if (!status) status = time_launches(ctx, launch_rows, &(launches){t, op, sets}, n, &time);
  r->error = 0;
  for (int i = 0; !status && i < n; i++) {
    double error;
    status = trial_error(t, &sets[i], &error);
    if (error > r->error) r->error = error;
  }
  add_time(r, &time);
  return status;
}

static clb_status measure(const bench *b, clb_context *ctx, const clb_device_info *info, clb_op *op, const tool_kernel *kernel, clb_pass pass,
                          const ceilings *top, result *r) {
  trial t;
  trial_make(&t, b->request.op, kernel, pass, (tool_data){.rows = r->rows}, b->request.op->distinct_rows);
  uint64_t bytes = trial_bytes(&t);
  int n = sets_for(bytes, info);
  trial_set *sets = allocate((size_t)n, sizeof *sets);
  clb_status status = measure_sets(&t, ctx, op, sets, n, r);
  for (int i = 0; i < n; i++) trial_set_free(&sets[i]);
  free(sets);
  trial_free(&t);
  if (bytes > cache_bytes(info)) r->copy_fraction = r->bytes / r->seconds / top->copy;
  r->peak_fraction = r->flops / r->seconds / top->fma[kernel->arithmetic];
  return status;
}

/* ---- ops that make their own data ---- */

typedef struct {
  const tool_trial *is;
  void *set[MAX_SETS];
} own_sets;

static clb_status launch_own(void *user, int set) {
  own_sets *s = user;
  return s->is->run(s->set[set]);
}

static uint64_t memory_of(const clb_device_info *info) {
  uint64_t free_memory = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  return strcmp(info->backend, "cpu") ? info->memory_bytes : free_memory;
}

static clb_status measure_own(const bench *b, clb_context *ctx, const clb_device_info *info, clb_op *op, void *t, int n, result *r) {
  own_sets s = {.is = b->request.op->trial};
  timing time = {0};
  clb_status status = CLB_OK;
  for (int i = 0; !status && i < n; i++) status = s.is->set_make(t, ctx, op, &s.set[i]);
  progress("%s: timing %s %s", info->name, r->pass, r->dtype);
  if (!status) status = time_launches(ctx, launch_own, &s, n, &time);
  r->error = 0;
  for (int i = 0; !status && i < n; i++) {
    double error;
    status = s.is->error(s.set[i], &error);
    if (error > r->error) r->error = error;
  }
  add_time(r, &time);
  for (int i = 0; i < n; i++) s.is->set_free(s.set[i]);
  return status;
}

/* *memory: whether there is enough of it. */
static clb_status try_own(const bench *b, clb_context *ctx, const clb_device_info *info, clb_op *op, const tool_kernel *kernel, clb_pass pass, double flops,
                          const ceilings *top, result *r, bool *memory) {
  const tool_trial *is = b->request.op->trial;
  void *t = is->make(kernel, pass, NULL);
  double most = (double)memory_of(info);
  clb_status status = CLB_OK;
  r->rows = is->rows(t);
  r->bytes = is->bytes(t);
  r->flops = flops * (double)r->rows;
  *memory = !info->runs || most == 0 || is->set_bytes(t) < most;
  if (!*memory) complain("%s: %s needs %.1f GB; the device has %.1f", info->name, r->pass, is->set_bytes(t) * 1e-9, most * 1e-9);
  else if (info->runs) {
    status = measure_own(b, ctx, info, op, t, sets_for((uint64_t)is->set_bytes(t), info), r);
    if (r->bytes > (double)cache_bytes(info)) r->copy_fraction = r->bytes / r->seconds / top->copy;
    r->peak_fraction = r->flops / r->seconds / top->fma[kernel->arithmetic];
    r->floor = r->bytes / top->copy;
    r->more_floor = (r->bytes + is->more_bytes(t)) / top->copy;
    is->compared(t, r->compared, sizeof r->compared);
  }
  is->free(t);
  return status;
}

static void add(bench *b, const clb_device_info *info, const ceilings *top, const result *r) {
  if (b->rows) {
    add_json(b, r);
    return;
  }
  if (!b->headed) heading(b, info, top);
  b->headed = true;
  add_line(b, r);
}

/* Per row. */
static double bytes_of(const tool_op *op, const tool_kernel *kernel, clb_pass pass, const clb_counts *counts, int64_t rows) {
  tool_array arrays[MAX_ARRAYS];
  double bytes = 0;
  if (!op->bytes_of_arrays) return counts->bytes_loaded + counts->bytes_stored;
  for (int n = op->arrays(kernel->problem, pass, arrays); n > 0; n--) {
    const tool_array *a = &arrays[n - 1];
    bytes += a->width * (double)dtype_bytes(kernel->storage) / (a->one_row ? (double)rows : 1) + (a->indexed ? sizeof(int32_t) : 0);
  }
  return bytes;
}

static int one_result(bench *b, clb_context *ctx, const clb_device_info *info, clb_pass pass, clb_dtype dtype, const ceilings *top) {
  const tool_op *op = b->request.op;
  tool_kernel kernel = {.problem = b->request.problem, .storage = dtype, .arithmetic = usual_arithmetic(dtype)};
  result r = {.device = info->name, .pass = pass_names[pass], .dtype = dtype_names[dtype], .runs = info->runs, .seconds = NAN, .seconds_min = NAN, .spread = NAN,
              .compile_seconds = NAN, .bytes = NAN, .flops = NAN, .copy_fraction = NAN, .peak_fraction = NAN, .error = NAN, .floor = NAN, .more_floor = NAN,
              .repeats = -1, .report = {-1, -1, -1, -1}};
  bool memory = true;
  clb_counts counts = {0};
  clb_op *handle = NULL;
  print_kernel(op, &kernel, r.problem, sizeof r.problem);
  progress("%s: %s %s %s", info->name, op->name, r.pass, r.dtype);
  double start = seconds_now();
  clb_status status = op->create(ctx, &kernel, CLB_PASS_BIT(pass), &handle);
  r.compile_seconds = seconds_now() - start;
  if (!status) status = clb_op_counts(handle, pass, &counts);
  if (!status && op->trial) status = try_own(b, ctx, info, handle, &kernel, pass, counts.flops, top, &r, &memory);
  else if (!status) {
    r.rows = b->options.rows ? b->options.rows : op->rows(kernel.problem, pass);
    r.flops = (double)r.rows * counts.flops;
    r.bytes = (double)r.rows * bytes_of(op, &kernel, pass, &counts, r.rows);
    if (info->runs) status = measure(b, ctx, info, handle, &kernel, pass, top, &r);
  }
  if (!status && !info->runs) status = clb_op_report(handle, pass, &r.report);
  int exit_status = status ? failure(status) : memory ? EXIT_GOOD : EXIT_FAILED;
  if (status) complain("%s: %s", info->name, clb_error(ctx));
  else if (memory) add(b, info, top, &r);
  if (!status && memory && info->runs && !(r.error <= tolerance_of(op, &kernel))) {
    complain("%s: %s %s %s is wrong: error %.1e, tolerance %.1e", info->name, op->name, r.pass, r.dtype, r.error, tolerance_of(op, &kernel));
    exit_status = EXIT_FAILED;
  }
  clb_op_destroy(&handle);
  return exit_status;
}

static int bench_device(clb_context *ctx, const clb_device_info *info, const char *asked, void *user) {
  static const char interpreter[] = "cpu:interpreter";
  bench *b = user;
  ceilings top = {0};
  int worst = EXIT_GOOD;
  b->headed = false;
  if (is_interpreter(info) && strcmp(asked, interpreter)) {
    complain("bench: %s (%s) only interprets, and the time of that tells little; --device %s insists", info->name, info->description, interpreter);
    return EXIT_FAILED;
  }
  progress("%s: measuring its ceilings", info->name);
  if (info->runs && clb_measure_ceilings(ctx, &top.copy, &top.fma[CLB_F32], &top.fma[CLB_F64])) {
    complain("%s: %s", info->name, clb_error(ctx));
    return EXIT_FAILED;
  }
  for (int dtype = 0; dtype < DTYPES; dtype++)
    for (int pass = 0; pass < PASSES; pass++) {
      if (worst == EXIT_USAGE || !(b->request.kernels.dtypes >> dtype & 1) || !(b->request.kernels.passes >> pass & 1)) continue;
      int status = one_result(b, ctx, info, (clb_pass)pass, (clb_dtype)dtype, &top);
      if (status > worst) worst = status;
    }
  progress(NULL);
  return worst;
}

int bench_main(int argc, char **argv) {
  static const struct argp_option options[] = {{"rows", 'n', "N", 0, "Rows of one launch (default: 1000000; tensor_product: 50000, from double_backward on 20000, single paths 200000)", 0}, {0}};
  static const struct argp own = {.options = options, .parser = parse};
  bench b = {.rows = NULL};
  request_parse(&b.request, argc, argv, &own, &b.options,
                "Times an op on random data, all passes up to double_backward unless --pass is given, and compares every output with a float64 reference.\v"
                "ms: the median of repeated batches of launches, divided by the launches in one. Bytes and operations are counted from "
                "the program, fma as two; the bytes of tensor_product are the fewest: each operand once. % copy and % peak: of the copy bandwidth and the multiply-add rate of this device, measured in "
                "the same run. Rows that do not fit in the device's caches are spread over several sets of buffers; where they fit, % copy says cache. "
                "error: as `clebsch check` defines it. For a device that only compiles, what its compiler says of the machine code: "
                "elements loaded and stored per row, registers, and bytes spilled. Of a convolution rows are edges, bytes are those of its arrays and of 8 bytes of indices per edge, "
                "and the floor is the time in which this device copies as many, without and with the gradients of x that a workspace holds for each edge; error is that "
                "of some receivers, senders and edges, all of their edges counted. compile s is as short as the cache of kernels makes it.");
  if (!b.request.kernels.passes) b.request.kernels.passes = USUAL_PASSES;
  if (b.options.rows && b.request.op->trial) {
    complain("bench: %s has no --rows: its graph says how many", b.request.op->name);
    request_free(&b.request);
    return EXIT_USAGE;
  }
  if (b.request.devices.json) b.rows = json_array();
  int status = on_each_device(&b.request.devices, bench_device, &b);
  if (b.rows) json_print(b.rows);
  request_free(&b.request);
  return status;
}
