/* tools/measure/measure.c - one pass of an op on one device: its time, bytes, operations and error.
 */
#include "tools/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/measure/timing.h"
#include "tools/data/test_run.h"

enum { MAX_SETS = 64 };

/* A measurement in progress. */
typedef struct {
  const measurement *m;
  clb_context *ctx;
  const clb_device_info *info;
  const device_peaks *top;
  clb_op *op;
  double flops_per_row, bytes_per_row; /* counted in the IR */
  result *r;
} attempt;

/* ---- sets of buffers ---- */

/* Number of buffer sets: one if it fits in the cache, otherwise enough to fill the cache four
   times. */
static int sets_for(uint64_t bytes, const clb_device_info *info) {
  uint64_t cache = cache_bytes(info), memory = memory_bytes(info),
           n = bytes <= cache ? 1 : 1 + 4 * cache / bytes;
  uint64_t max = memory ? memory / 2 / bytes : n;
  if (n > max) n = max ? max : 1;
  return n > MAX_SETS ? MAX_SETS : (int)n;
}

static bool has_memory(const attempt *b, double bytes) {
  double max = (double)memory_bytes(b->info);
  char sentence[160];
  if (max == 0 || bytes < max) return true;
  snprintf(sentence, sizeof sentence, "%s needs %.1f GB; the device has %.1f", b->r->pass,
           bytes * 1e-9, max * 1e-9);
  free(b->r->trouble);
  b->r->trouble = strdup(sentence);
  return false;
}

typedef struct {
  const attempt *b;
  int n;
  test_run *run;
  test_run_set set[MAX_SETS];
} sets;

static clb_status launch(void *user, int set) {
  const sets *s = user;
  if (s->b->m->stop && *s->b->m->stop) return CLB_ERROR_INTERNAL; /* which is not reported */
  return test_run_once(s->run, s->b->op, &s->set[set]);
}

static clb_status measure_sets(sets *s) {
  const attempt *b = s->b;
  result *r = b->r;
  timing time = {0};
  clb_status status = CLB_OK;
  for (int i = 0; !status && i < s->n; i++)
    status = test_run_set_make(s->run, b->ctx, b->op, &s->set[i]);
  if (!status) {
    progress("%s, computing the reference", b->m->label);
    test_run_answer(s->run);
  }
  progress("%s, timing", b->m->label);
  if (!status) status = time_launches(b->ctx, launch, s, s->n, &time);
  progress("%s, comparing", b->m->label);
  double worst = 0, error;
  for (int i = 0; !status && i < s->n; i++) {
    status = test_run_error(s->run, &s->set[i], &error);
    if (error > worst) worst = error;
  }
  for (int i = 0; i < s->n; i++) test_run_set_free(s->run, &s->set[i]);
  if (status) return status;
  r->error = worst;
  r->seconds = time.seconds, r->seconds_tenth = time.seconds_tenth,
  r->seconds_min = time.seconds_min, r->spread = time.spread, r->repeats = time.repeats;
  r->peak_fraction = r->flops / r->seconds / b->top->fma[b->m->kernel.arithmetic];
  return CLB_OK;
}

/* ---- ops with independent rows ---- */

/* Minimum bytes per row: each array counted once. */
static double bytes_of_arrays(const measurement *m, double rows) {
  tool_array arrays[MAX_ARRAYS];
  double bytes = 0;
  for (int n = op_arrays(m->op, m->kernel.problem, m->pass, arrays); n > 0; n--) {
    const tool_array *a = &arrays[n - 1];
    bytes += a->width * (double)dtype_bytes(m->kernel.storage) / (a->one_row ? rows : 1) +
             (a->indexed || a->kinds ? sizeof(int32_t) : 0);
  }
  return bytes;
}

static clb_status try_rows(const attempt *b, int64_t rows) {
  const measurement *m = b->m;
  result *r = b->r;
  double arrays = bytes_of_arrays(m, (double)rows);
  r->rows = rows;
  r->flops = (double)rows * b->flops_per_row;
  r->bytes = (double)rows * (m->op->bytes_of_arrays ? arrays : b->bytes_per_row);
  if (!b->info->runs) return CLB_OK;
  if (!has_memory(b, (double)rows * arrays)) return CLB_ERROR_MEMORY;
  progress("%s, making data", m->label);
  test_run t;
  test_run_make(&t, m->op, &m->kernel, m->pass, &(tool_data){.rows = rows}, m->op->distinct_rows);
  uint64_t bytes = test_run_bytes(&t);
  sets s = {.b = b, .n = sets_for(bytes, b->info), .run = &t};
  clb_status status = measure_sets(&s);
  test_run_free(&t);
  r->memory = (double)bytes;
  if (!status && bytes > cache_bytes(b->info))
    r->copy_fraction = r->bytes / r->seconds / b->top->copy;
  return status;
}

static clb_status measure_rows(const attempt *b) {
  const measurement *m = b->m;
  int64_t rows = m->rows ? m->rows : op_rows(m->op, m->kernel.problem, m->pass);
  clb_status status = try_rows(b, rows);
  while (status == CLB_ERROR_MEMORY && m->halve && rows > 1 && !(m->stop && *m->stop)) {
    b->r->rows_halved++;
    status = try_rows(b, rows >>= 1);
  }
  return status;
}

/* ---- ops on graphs ---- */

static clb_status measure_graph(const attempt *b) {
  const tool_graph_data *is = b->m->op->on_graph;
  result *r = b->r;
  test_run t;
  test_run_make(&t, b->m->op, &b->m->kernel, b->m->pass, NULL, 0);
  r->rows = is->rows(t.graph);
  r->bytes = is->bytes(t.graph);
  r->read_bytes = is->read_bytes(t.graph);
  r->memory = is->set_bytes(t.graph);
  clb_status status = is->flops(t.graph, b->op, &r->flops);
  if (!status && b->info->runs && !has_memory(b, r->memory)) status = CLB_ERROR_MEMORY;
  else if (!status && b->info->runs) {
    sets s = {.b = b, .n = sets_for((uint64_t)r->memory, b->info), .run = &t};
    status = measure_sets(&s);
    if (!status && r->bytes > (double)cache_bytes(b->info))
      r->copy_fraction = r->bytes / r->seconds / b->top->copy;
    const double more = is->more_bytes(t.graph);
    r->more_floor = floor_of(b->top, r->bytes + more, r->read_bytes + more / 2);
    is->compared(t.graph, r->compared, sizeof r->compared);
  }
  test_run_free(&t);
  return status;
}

/* ---- all of it ---- */

static void start_result(const attempt *b) {
  const measurement *m = b->m;
  *b->r = (result){.device = b->info->name,
                   .arithmetic = m->kernel.arithmetic,
                   .pass = pass_names[m->pass],
                   .dtype = dtype_names[m->kernel.storage],
                   .runs = b->info->runs,
                   .seconds = NAN,
                   .seconds_tenth = NAN,
                   .seconds_min = NAN,
                   .spread = NAN,
                   .compile_seconds = NAN,
                   .bytes = NAN,
                   .flops = NAN,
                   .copy_fraction = NAN,
                   .peak_fraction = NAN,
                   .error = NAN,
                   .memory = NAN,
                   .floor = NAN,
                   .more_floor = NAN,
                   .repeats = -1,
                   .report = {-1, -1, -1, -1, -1, -1, -1, -1, -1}};
  b->r->tolerance = tolerance_of(m->op, &m->kernel);
  print_kernel(m->op, &m->kernel, b->r->problem, sizeof b->r->problem);
}

clb_status measure(const measurement *m, clb_context *ctx, const clb_device_info *info,
                   const device_peaks *top, result *r) {
  attempt b = {.m = m, .ctx = ctx, .info = info, .top = top, .r = r};
  clb_counts counts = {0};
  clb_tuning tuning = {0};
  start_result(&b);
  progress("%s", m->label);
  double start = seconds_now();
  clb_status status = m->op->create(ctx, &m->kernel, CLB_PASS_BIT(m->pass), &b.op);
  r->compile_seconds = seconds_now() - start;
  if (!status) status = clb_op_counts(b.op, m->pass, &counts);
  if (!status) status = clb_op_tuning(b.op, m->pass, &tuning);
  r->tuned = tuning.measured;
  b.flops_per_row = counts.flops;
  b.bytes_per_row = counts.bytes_loaded + counts.bytes_stored;
  if (!status) status = m->op->on_graph ? measure_graph(&b) : measure_rows(&b);
  if (!status && info->runs) r->floor = floor_of(top, r->bytes, r->read_bytes);
  if (!status && !info->runs) status = clb_op_report(b.op, m->pass, &r->report);
  if (status != CLB_ERROR_MEMORY || !r->trouble) { /* otherwise has_memory has set the message */
    free(r->trouble);
    r->trouble = status ? strdup(clb_error(ctx)) : NULL;
  }
  clb_op_destroy(&b.op);
  return status;
}

bool is_correct(const result *r) { return r->error <= r->tolerance; }

/* ---- the device ---- */

clb_status measure_peaks(clb_context *ctx, const clb_device_info *info, device_peaks *top) {
  clb_status s = clb_measure_peaks(ctx, &top->copy, &top->fma[CLB_F32], &top->fma[CLB_F64]);
  top->host = (host_rates){0};
  if (!s && is_on_this_cpu(info) && !measure_host(&top->host)) top->host = (host_rates){0};
  return s;
}

double floor_of(const device_peaks *top, double bytes, double read_bytes) {
  const double copy = bytes / top->copy,
               reads = top->host.read > 0 ? read_bytes / top->host.read : 0;
  return copy > reads ? copy : reads;
}

typedef struct {
  clb_op *op;
  clb_buffer *x, *y;
} tiny;

static clb_status launch_tiny(void *user, int set) {
  const tiny *t = user;
  (void)set;
  return clb_spherical_harmonics_forward(t->op, 1, (clb_rows){.buffer = t->x},
                                         (clb_rows){.buffer = t->y});
}

clb_status measure_launch(clb_context *ctx, double *seconds) {
  static const int degree = 1;
  static const float point[3] = {1, 2, 3};
  const clb_spherical_harmonics_desc desc = {.degrees = &degree,
                                             .n_degrees = 1,
                                             .storage = CLB_F32,
                                             .arithmetic = CLB_F32,
                                             .passes = CLB_PASS_BIT(CLB_FORWARD)};
  tiny t = {.op = NULL};
  timing time = {0};
  clb_status status = clb_spherical_harmonics_create(ctx, &desc, &t.op);
  if (!status) status = clb_buffer_create(ctx, sizeof point, &t.x);
  if (!status) status = clb_buffer_create(ctx, sizeof point, &t.y);
  if (!status) status = clb_buffer_write(t.x, 0, point, sizeof point);
  if (!status) status = time_launches(ctx, launch_tiny, &t, 1, &time);
  *seconds = time.seconds;
  clb_buffer_destroy(&t.x);
  clb_buffer_destroy(&t.y);
  clb_op_destroy(&t.op);
  return status;
}
