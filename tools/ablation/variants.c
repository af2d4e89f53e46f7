/* tools/ablation/variants.c - creates ops and data of `clebsch bench --without` on a device, runs,
   compares and times them. */
#include "tools/ablation/ablation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/measure/timing.h"

/* ---- ops and data ---- */

bool work_wants(const work *w, ablation without) {
  return without >= ABLATIONS || w->wanted >> without & 1;
}

static bool can_add(work *w, int n) {
  if (!w->status && n == MAX_THINGS) fatal("bench: more than %d things in a case", MAX_THINGS);
  return !w->status;
}

void work_disable(work *w, unsigned optimisations) {
  if (!w->status) w->status = clb_context_disable(w->ctx, optimisations);
}

static clb_op **next_op(work *w) { return can_add(w, w->n_ops) ? &w->op[w->n_ops++] : NULL; }

clb_op *work_op(work *w, const tool_op *tool, const tool_kernel *kernel, clb_pass pass) {
  clb_op **op = next_op(w);
  if (op) w->status = tool->create(w->ctx, kernel, CLB_PASS_BIT(pass), op);
  return op ? *op : NULL;
}

clb_op *work_product(work *w, const clb_tensor_product_desc *desc) {
  clb_op **op = next_op(w);
  if (op) w->status = clb_tensor_product_create(w->ctx, desc, op);
  return op ? *op : NULL;
}

clb_op *work_harmonics(work *w, const clb_spherical_harmonics_desc *desc) {
  clb_op **op = next_op(w);
  if (op) w->status = clb_spherical_harmonics_create(w->ctx, desc, op);
  return op ? *op : NULL;
}

clb_op *work_convolution(work *w, const clb_convolution_desc *desc) {
  clb_op **op = next_op(w);
  if (op) w->status = clb_convolution_create(w->ctx, desc, op);
  return op ? *op : NULL;
}

clb_optimizer *work_optimizer(work *w, const clb_optimizer_desc *desc) {
  if (w->status || w->n_optimizers == MAX_VARIANTS) return NULL;
  w->status = clb_optimizer_create(w->ctx, desc, &w->optimizer[w->n_optimizers]);
  return w->optimizer[w->n_optimizers++];
}

clb_graph *work_graph(work *w, int64_t n_senders, int64_t n_receivers, int64_t n_edges,
                      const int32_t *senders, const int32_t *receivers) {
  if (!can_add(w, w->n_graphs)) return NULL;
  clb_graph **g = &w->graph[w->n_graphs++];
  w->status =
      clb_graph_create(w->ctx, n_senders > n_receivers ? n_senders : n_receivers, n_edges, g);
  if (!w->status)
    w->status =
        clb_graph_update(*g, n_senders, n_receivers, n_edges, CLB_I32,
                         (clb_index_list){.host = senders}, (clb_index_list){.host = receivers});
  return *g;
}

static clb_buffer *make_buffer(work *w, uint64_t bytes) {
  if (!can_add(w, w->n_buffers)) return NULL;
  w->status = clb_buffer_create(w->ctx, bytes, &w->buffer[w->n_buffers]);
  return w->buffer[w->n_buffers++];
}

/* Fills a buffer with one block of numbers, repeated. */
static clb_status fill(clb_buffer *b, int64_t n, uint64_t seed) {
  enum { BLOCK = 1048573 };
  int64_t block = n < BLOCK ? n : BLOCK;
  float *x = allocate((size_t)block, sizeof *x);
  clb_status status = CLB_OK;
  for (int64_t i = 0; i < block; i++) x[i] = (float)random_number(&seed);
  for (int64_t i = 0; i < n && !status; i += block)
    status = clb_buffer_write(b, (uint64_t)i * sizeof *x, x,
                              (uint64_t)(n - i < block ? n - i : block) * sizeof *x);
  free(x);
  return status;
}

clb_rows work_rows(work *w, int64_t n, int64_t width, const float *values) {
  clb_rows rows = {.buffer = make_buffer(w, (uint64_t)(n * width) * sizeof(float))};
  if (w->status) return rows;
  w->status = values
                  ? clb_buffer_write(rows.buffer, 0, values, (uint64_t)(n * width) * sizeof *values)
                  : fill(rows.buffer, n * width, (uint64_t)w->n_buffers);
  return rows;
}

clb_rows work_ones(work *w, int64_t width) {
  float *one = allocate((size_t)width, sizeof *one);
  for (int64_t i = 0; i < width; i++) one[i] = 1;
  clb_rows rows = work_rows(w, 1, width, one);
  rows.stride = CLB_SAME_ROW;
  free(one);
  return rows;
}

clb_buffer *work_ints(work *w, int64_t n, const int32_t *values) {
  return work_rows(w, n, 1, (const float *)values).buffer; /* as bytes */
}

void *work_address(work *w, const clb_buffer *buffer) {
  clb_memory_kind kind;
  void *memory = NULL;
  if (!w->status) w->status = clb_buffer_native(buffer, &kind, &memory);
  return memory;
}

void work_output(work *w, clb_rows rows, int64_t n, int64_t width) {
  w->output[w->n_outputs++] =
      (output){rows.buffer, n, width, rows.stride > 0 ? rows.stride : width};
}

variant *work_variant(work *w, ablation without, int baseline, bool replayed) {
  variant *y = &w->variant[w->n_variants++];
  *y = (variant){.without = without, .baseline = baseline, .replayed = replayed};
  return y;
}

void variant_add(work *w, variant *y, op_call call) {
  uint64_t min, max = 0;
  if (!w->status && call.graph)
    w->status = clb_convolution_workspace(call.op, call.pass, call.graph, &min, &max);
  if (max) call.workspace = make_buffer(w, max);
  if (y->n == MAX_CALLS) fatal("bench: more than %d calls in a variant", MAX_CALLS);
  y->call[y->n++] = call;
  if (!y->untimed) y->n_timed = y->n;
}

variant *work_naive(work *w) { return work_variant(w, NAIVE_KERNEL, 0, false); }

void variant_add_naive(work *w, variant *y, naive_kernel kernel, const naive_arguments *arguments) {
  variant_add(w, y, (op_call){.naive = w->naive, .kernel = kernel, .arguments = *arguments});
}

void variant_add_naive_sum(work *w, variant *y, naive_kernel kernel, naive_arguments a,
                           clb_rows rows, int64_t n, int64_t width, int64_t items) {
  a.out = work_address(w, rows.buffer);
  a.n = n * width;
  variant_add_naive(w, y, NAIVE_zero, &a);
  a.n = items * naive_lanes(w->naive, &a);
  variant_add_naive(w, y, kernel, &a);
}

static void free_set(const work *w, variant *y) {
  if (y->set) test_run_set_free(w->test_run, y->set);
  free(y->set);
}

void work_free(work *w) {
  if (w->ctx) clb_context_disable(w->ctx, 0);
  for (int i = 0; i < w->n_variants; i++) {
    clb_recording_destroy(&w->variant[i].recording);
    free_set(w, &w->variant[i]);
  }
  if (w->test_run) test_run_free(w->test_run);
  free(w->test_run), free(w->problem);
  for (int i = 0; i < w->n_ops; i++) clb_op_destroy(&w->op[i]);
  for (int i = 0; i < w->n_optimizers; i++) clb_optimizer_destroy(&w->optimizer[i]);
  for (int i = 0; i < w->n_graphs; i++) clb_graph_destroy(&w->graph[i]);
  for (int i = 0; i < w->n_buffers; i++) clb_buffer_destroy(&w->buffer[i]);
  free(w->first);
}

/* ---- calls ---- */

static clb_status run_convolution(const op_call *c) {
  const clb_rows *a = c->rows;
  return c->pass == CLB_FORWARD
             ? clb_convolution_forward(c->op, c->graph, a[0], a[1], a[2], a[3], c->workspace)
             : clb_convolution_backward(c->op, c->graph, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                        c->workspace);
}

static clb_status run_naive(const op_call *c) {
  char message[NAIVE_MESSAGE];
  if (naive_run(c->naive, c->kernel, &c->arguments, message)) return CLB_OK;
  warn("%s", message);
  return CLB_ERROR_DRIVER;
}

static clb_status run_call(const op_call *c) {
  if (c->optimizer) return clb_optimizer_step(c->optimizer);
  if (c->naive) return run_naive(c);
  if (c->set) return test_run_once(c->test_run, c->op, c->set);
  if (c->graph) return run_convolution(c);
  return c->tool->run(c->op, c->pass, c->n, c->rows);
}

static clb_status run_calls(const variant *y, int first, int last) {
  clb_status status = CLB_OK;
  for (int i = first; i < last && !status; i++) status = run_call(&y->call[i]);
  return status;
}

static clb_status run_variant(const variant *y) {
  return y->recording ? clb_replay(y->recording) : run_calls(y, 0, y->n_timed);
}

static clb_status wait_for(const work *w, const variant *y) {
  if (y->without == NAIVE_KERNEL && !naive_wait(w->naive)) return CLB_ERROR_DRIVER;
  return clb_wait(w->ctx);
}

/* Whether two calls have the same kernel. */
static bool same_kernel(const op_call *a, const op_call *b) {
  const char *text[2];
  size_t n[2];
  if (a->tool != b->tool || a->graph != b->graph || a->optimizer) return false;
  if (a->op == b->op) return true;
  if (a->tool == &tool_op_symmetric_contraction && a->pass)
    return false; /* only one of its kernels is shown */
  if (clb_op_source(a->op, a->pass, &text[0], &n[0]) ||
      clb_op_source(b->op, b->pass, &text[1], &n[1]))
    return false;
  return n[0] == n[1] && !memcmp(text[0], text[1], n[0]);
}

/* Whether two variants submit the same. */
static bool same(const variant *a, const variant *b) {
  bool all = !a->apart && a->n_timed == b->n_timed && a->replayed == b->replayed;
  for (int i = 0; i < a->n_timed && all; i++) all = same_kernel(&a->call[i], &b->call[i]);
  return all;
}

/* Other variants are compared with one of the first two, which are kept. */
static void leave_out_same(work *w) {
  int n = 1;
  for (int i = 1; i < w->n_variants; i++)
    if (w->variant[i].without >= ABLATIONS ||
        !same(&w->variant[i], &w->variant[w->variant[i].baseline]))
      w->variant[n++] = w->variant[i];
    else free_set(w, &w->variant[i]);
  w->n_variants = n;
}

/* ---- results ---- */

enum { COMPARED_ROWS = 192 };

static int64_t compared_rows(const output *o) {
  return o->n < COMPARED_ROWS ? o->n : COMPARED_ROWS;
}

/* The first rows, and others spread over the remaining ones. */
static clb_status take_results(const work *w, float *to) {
  clb_status status = CLB_OK;
  for (int i = 0; i < w->n_outputs; i++) {
    const output *o = &w->output[i];
    int64_t n = compared_rows(o), bytes = (int64_t)sizeof *to;
    for (int64_t r = 0; r < n && !status; r++, to += o->width)
      status = clb_buffer_read(o->buffer,
                               (uint64_t)(r * (o->n - 1) / (n > 1 ? n - 1 : 1) * o->stride * bytes),
                               to, (uint64_t)(o->width * bytes));
  }
  return status;
}

/* Overwrites results, so that rows that are not written do not look correct. */
static clb_status spoil(const work *w) {
  enum { PIECE = 1 << 20 };
  unsigned char *nan = allocate(PIECE, 1);
  clb_status status = CLB_OK;
  memset(nan, 0xff, PIECE);
  for (int i = 0; i < w->n_outputs; i++) {
    uint64_t bytes = (uint64_t)(w->output[i].n * w->output[i].stride) * sizeof(float);
    for (uint64_t at = 0; at < bytes && !status; at += PIECE)
      status =
          clb_buffer_write(w->output[i].buffer, at, nan, bytes - at < PIECE ? bytes - at : PIECE);
  }
  free(nan);
  return status;
}

static double difference(const work *w, const float *found, const float *wanted) {
  double worst = 0;
  for (int i = 0; i < w->n_outputs; i++) {
    int64_t n = compared_rows(&w->output[i]) * w->output[i].width;
    double squares = 0, max = 0;
    for (int64_t k = 0; k < n; k++) {
      double d = fabs((double)found[k] - (double)wanted[k]);
      squares += (double)wanted[k] * (double)wanted[k];
      if (!(d <= max)) max = d; /* also true for NaN */
    }
    double error = max / sqrt(squares / (double)(n ? n : 1));
    if (n && !(error <= worst)) worst = error;
    found += n, wanted += n;
  }
  return worst;
}

/* Runs the timed part of a variant once. */
static clb_status run_once(work *w, variant *y) {
  clb_status status = spoil(w);
  if (!status && w->first)
    status = clb_buffer_write(w->output[0].buffer, 0, w->first,
                              (uint64_t)(w->output[0].n * w->output[0].stride) * sizeof(float));
  if (!status && y->replayed) {
    status = clb_record_begin(w->ctx);
    if (!status) status = run_calls(y, 0, y->n_timed);
    clb_status ended = clb_record_end(w->ctx, &y->recording);
    if (!status) status = ended;
  }
  if (!status) status = run_variant(y);
  if (!status) status = run_calls(y, y->n_timed, y->n);
  return status ? status : wait_for(w, y);
}

static clb_status compare_variants(work *w, const char *label) {
  int64_t n = 1;
  for (int i = 0; i < w->n_outputs; i++) n += compared_rows(&w->output[i]) * w->output[i].width;
  float *wanted = allocate((size_t)n, sizeof *wanted), *found = allocate((size_t)n, sizeof *found);
  clb_status status = CLB_OK;
  for (int i = 0; i < w->n_variants && !status; i++) {
    variant *y = &w->variant[i];
    progress("%s: comparing, %d of %d", label, i + 1, w->n_variants);
    status = run_once(w, y);
    if (!status) status = take_results(w, i ? found : wanted);
    if (!status && y->set) status = test_run_error(w->test_run, y->set, &y->error);
    else if (!status) y->error = difference(w, i ? found : wanted, wanted);
  }
  free(wanted);
  free(found);
  return status;
}

/* ---- times ---- */

static clb_status launch_variant(void *user, int i) {
  return run_variant(&((work *)user)->variant[i]);
}

static clb_status wait_variant(void *user, int i) {
  const work *w = user;
  return wait_for(w, &w->variant[i]);
}

/* Ratios use minimum times, which other load affects least. */
static clb_status time_variants(work *w, double seconds) {
  timing times[MAX_VARIANTS];
  const timed_tasks tasks = {.ctx = w->ctx,
                             .n = w->n_variants,
                             .launch = launch_variant,
                             .wait = wait_variant,
                             .user = w,
                             .batch = 2e-3,
                             .seconds = seconds * w->n_variants,
                             .fewest = 7,
                             .enough = 7,
                             .most = 250};
  clb_status status = time_tasks(&tasks, times);
  for (int i = 0; i < w->n_variants && !status; i++) {
    variant *y = &w->variant[i];
    y->seconds = times[i].seconds;
    y->seconds_min = times[i].seconds_min;
    y->ratio = times[i].seconds_min / times[y->baseline].seconds_min;
  }
  return status;
}

clb_status work_measure(work *w, double seconds, const char *label) {
  if (!w->status) leave_out_same(w);
  if (!w->status) w->status = compare_variants(w, label);
  progress("%s: timing", label);
  if (!w->status) w->status = time_variants(w, seconds);
  return w->status;
}
