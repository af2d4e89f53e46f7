/* tests/runtime/test_recording.c - recorded and replayed ops give the same bits as the ops
   themselves: ops of one launch and of many, products, buffers replaced, work before, between and
   after; on every device that runs here, or $CLB_DEVICE. */
#include "backends/opencl/opencl.h"
#include "kernels/linear/host/matmul.h"
#include "src/runtime/recording_list.h"
#include "tests/ops/places.h"

#include <math.h>

enum { EDGES = 37, NODES = 9, M = 7, N = 6, K = 5 };
enum { V, Y, X, W, Z, G, G_X, G_Y, G_W, WORK, A, B, C, BUFFERS };

/* Ops and a graph, and how many bytes they need of each buffer. */
typedef struct {
  clb_context *ctx;
  clb_op *harmonics, *product, *convolution, *matrices;
  clb_graph *graph;
  uint64_t bytes[BUFFERS];
} scene;

typedef struct {
  clb_buffer *b[BUFFERS];
} set;

static clb_graph *make_graph(clb_context *ctx) {
  int32_t end[2][EDGES];
  uint64_t seed = 5;
  clb_graph *graph;
  for (int i = 0; i < 2 * EDGES; i++)
    end[i % 2][i / 2] = (int32_t)((test_random(&seed) + 1) * NODES / 2);
  OK(ctx, clb_graph_create(ctx, 0, 0, &graph));
  OK(ctx, clb_graph_update(graph, NODES, NODES, EDGES, CLB_I32, (clb_index_list){.host = end[0]},
                           (clb_index_list){.host = end[1]}));
  return graph;
}

/* All results are added to the outputs, so that every replay has an effect. */
static scene make_scene(place *on) {
  static const int degrees[] = {0, 1};
  scene s = {.ctx = context_of(on)};
  clb_instructions *found = calloc(1, sizeof *found);
  clb_tensor_product_sizes sizes;
  uint64_t max;
  OK(s.ctx, clb_channel_wise(s.ctx, "3x0e+2x1o", "0e+1o", "0e+1o", CLB_SORTED, found));
  clb_tensor_product_desc desc = {.irreps_x = found->irreps_x,
                                  .irreps_y = found->irreps_y,
                                  .irreps_z = found->irreps_z,
                                  .instructions = found->instructions,
                                  .n_instructions = found->n_instructions,
                                  .storage = CLB_F32,
                                  .arithmetic = CLB_F32,
                                  .accumulate = 1,
                                  .passes = CLB_PASS_BIT(CLB_FORWARD)};
  OK(s.ctx, clb_tensor_product_measure(s.ctx, &desc, &sizes));
  OK(s.ctx, clb_tensor_product_create(s.ctx, &desc, &s.product));
  desc.passes = CLB_PASS_BIT(CLB_BACKWARD);
  OK(s.ctx,
     clb_convolution_create(s.ctx, &(clb_convolution_desc){.product = desc}, &s.convolution));
  const clb_spherical_harmonics_desc harmonics = {.degrees = degrees,
                                                  .n_degrees = 2,
                                                  .storage = CLB_F32,
                                                  .arithmetic = CLB_F32,
                                                  .accumulate = 1,
                                                  .passes = 1};
  OK(s.ctx, clb_spherical_harmonics_create(s.ctx, &harmonics, &s.harmonics));
  OK(s.ctx, clb_gemm_create(s.ctx, CLB_F32, &s.matrices));
  s.graph = make_graph(s.ctx);
  OK(s.ctx, clb_convolution_workspace(s.convolution, CLB_BACKWARD, s.graph, &s.bytes[WORK], &max));
  const int64_t columns[] = {3 * EDGES,
                             sizes.y * EDGES,
                             sizes.x * EDGES,
                             sizes.w * EDGES,
                             sizes.z * EDGES,
                             sizes.z * NODES,
                             sizes.x * NODES,
                             sizes.y * EDGES,
                             sizes.w * EDGES,
                             0,
                             M * K,
                             K * N,
                             M * N};
  for (int i = 0; i < BUFFERS; i++)
    if (i != WORK) s.bytes[i] = 4 * (uint64_t)columns[i];
  free(found);
  return s;
}

static void drop_scene(scene *s) {
  clb_op *ops[] = {s->harmonics, s->product, s->convolution, s->matrices};
  for (int i = 0; i < 4; i++) clb_op_destroy(&ops[i]);
  clb_graph_destroy(&s->graph);
}

static clb_buffer *make_buffer(const scene *s, int which, uint64_t seed) {
  clb_buffer *b;
  float *x = calloc(s->bytes[which] / 4 + 1, 4);
  for (uint64_t i = 0; i < s->bytes[which] / 4; i++) x[i] = (float)test_random(&seed);
  OK(s->ctx, clb_buffer_create(s->ctx, s->bytes[which], &b));
  OK(s->ctx, clb_buffer_write(b, 0, x, s->bytes[which]));
  free(x);
  return b;
}

static set make_set(const scene *s, uint64_t seed) {
  set made;
  for (int i = 0; i < BUFFERS; i++) made.b[i] = make_buffer(s, i, seed * BUFFERS + (uint64_t)i);
  return made;
}

static void drop_set(set *s) {
  for (int i = 0; i < BUFFERS; i++) clb_buffer_destroy(&s->b[i]);
}

static void submit(const scene *s, const set *on) {
  clb_buffer *const *b = on->b;
#define ROWS(i) ((clb_rows){b[i], 0, CLB_DENSE, NULL})
  OK(s->ctx, clb_spherical_harmonics_forward(s->harmonics, EDGES, ROWS(V), ROWS(Y)));
  OK(s->ctx, clb_tensor_product_forward(s->product, EDGES, ROWS(X), ROWS(Y), ROWS(W), ROWS(Z)));
  OK(s->ctx, clb_tensor_product_forward(s->product, EDGES - 5, ROWS(X), ROWS(Y), ROWS(W), ROWS(Z)));
  OK(s->ctx, clb_convolution_backward(s->convolution, s->graph, ROWS(X), ROWS(Y), ROWS(W), ROWS(G),
                                      ROWS(G_X), ROWS(G_Y), ROWS(G_W), b[WORK]));
  const clb_gemm_desc product = {.m = M,
                                 .n = N,
                                 .k = K,
                                 .count = 1,
                                 .a = &b[A]->memory,
                                 .b = &b[B]->memory,
                                 .c = &b[C]->memory,
                                 .ld_a = K,
                                 .ld_b = N,
                                 .ld_c = N,
                                 .add = true};
  OK(s->ctx, clb_gemm_run(s->matrices, &product));
#undef ROWS
}

static clb_recording *record(const scene *s, const set *on) {
  clb_recording *r;
  OK(s->ctx, clb_record_begin(s->ctx));
  submit(s, on);
  OK(s->ctx, clb_record_end(s->ctx, &r));
  assert_non_null(r);
  return r;
}

/* To the last bit, of all but the workspace; `differ`: at least one does not. */
static void expect_same(const scene *s, const set *a, const set *b, bool differ) {
  int other = 0;
  for (int i = 0; i < BUFFERS; i++) {
    if (i == WORK) continue;
    char *x = malloc(s->bytes[i] + 1), *y = malloc(s->bytes[i] + 1);
    OK(s->ctx, clb_buffer_read(a->b[i], 0, x, s->bytes[i]));
    OK(s->ctx, clb_buffer_read(b->b[i], 0, y, s->bytes[i]));
    bool same = !memcmp(x, y, s->bytes[i]);
    other += !same;
    if (!same && !differ) fail_msg("buffer %d differs", i);
    free(x);
    free(y);
  }
  if (differ && !other) fail_msg("nothing differs");
}

/* ---- what each device must do ---- */

/* Counts replays of the driver's own object. */
static struct {
  clb_backend counting;
  const clb_backend *backend;
  int replays, launches, allocs, waits;
} calls;
static clb_status count_replay(clb_device *d, clb_recorded *r) {
  return calls.replays++, calls.backend->replay(d, r);
}
static clb_status count_launch(clb_device *d, clb_module *m, int64_t groups, const clb_arg *args,
                               int n) {
  calls.launches++;
  return calls.backend->launch(d, m, groups, args, n);
}
static clb_status count_alloc(clb_device *d, uint64_t bytes, clb_memory *m) {
  return calls.allocs++, calls.backend->alloc(d, bytes, m);
}
static clb_status count_wait(clb_device *d) { return calls.waits++, calls.backend->wait(d); }

static void replays(void **state) {
  scene s = make_scene(*state);
  set direct = make_set(&s, 1), on = make_set(&s, 1), before = make_set(&s, 1);
  clb_device *d = s.ctx->device;
  clb_recording *r = record(&s, &on);
  OK(s.ctx, clb_wait(s.ctx));
  expect_same(&s, &on, &before, false); /* nothing ran */
  calls.counting = *(calls.backend = d->backend);
  calls.counting.replay = count_replay, calls.counting.launch = count_launch,
  calls.counting.alloc = count_alloc, calls.counting.wait = count_wait;
  calls.replays = calls.launches = calls.allocs = calls.waits = 0;
  d->backend = &calls.counting;
  for (int i = 0; i < 2; i++) OK(s.ctx, clb_replay(r));
  d->backend = calls.backend;
  assert_int_equal(calls.allocs + calls.waits, 0);
  bool whole = !strcmp(d->backend->name, "opencl")
                   ? ((clb_opencl *)d)->commands.create && !s.matrices->blas
                   : strcmp(d->backend->name, "cpu") != 0;
  assert_int_equal(calls.replays, whole ? 2 : 0);
  assert_true(whole ? calls.launches == 0 : calls.launches >= 10);
  expect_same(&s, &on, &before, true);
  for (int i = 0; i < 2; i++) submit(&s, &direct);
  expect_same(&s, &on, &direct, false);
  /* alternating with the ops themselves, without waiting */
  for (int i = 0; i < 4; i++) {
    submit(&s, &direct);
    submit(&s, &direct);
    OK(s.ctx, clb_replay(r));
    submit(&s, &on);
  }
  expect_same(&s, &on, &direct, false);
  clb_recording_destroy(&r);
  assert_null(r);
  clb_recording_destroy(&r);
  drop_set(&direct), drop_set(&on), drop_set(&before);
  drop_scene(&s);
}

static void replaced(void **state) {
  scene s = make_scene(*state);
  set direct = make_set(&s, 1), on = make_set(&s, 1), mixed = on, other = make_set(&s, 2),
      direct_mixed = direct;
  clb_recording *r = record(&s, &on);
  OK(s.ctx, clb_replay(r)); /* may still be running */
  for (int i = 0; i < BUFFERS; i += 2) {
    OK(s.ctx, clb_recording_replace(r, on.b[i], other.b[i]));
    mixed.b[i] = other.b[i];
    direct_mixed.b[i] = make_buffer(&s, i, 2 * BUFFERS + (uint64_t)i);
  }
  OK(s.ctx, clb_replay(r));
  OK(s.ctx, clb_replay(r));
  submit(&s, &direct);
  submit(&s, &direct_mixed);
  submit(&s, &direct_mixed);
  expect_same(&s, &on, &direct, false);
  expect_same(&s, &mixed, &direct_mixed, false);
  OK(s.ctx, clb_recording_replace(r, on.b[W], on.b[W]));
  for (int i = 0; i < BUFFERS; i += 2) OK(s.ctx, clb_recording_replace(r, other.b[i], on.b[i]));
  OK(s.ctx, clb_replay(r));
  submit(&s, &direct);
  expect_same(&s, &on, &direct, false);
  clb_recording_destroy(&r);
  for (int i = 0; i < BUFFERS; i += 2) clb_buffer_destroy(&direct_mixed.b[i]);
  drop_set(&direct), drop_set(&on), drop_set(&other);
  drop_scene(&s);
}

static void add_launches(const clb_profile_entry *entry, void *user) {
  *(int64_t *)user += entry->launches;
}

/* A recording within a recording, and one that is timed. */
static void nested(void **state) {
  scene s = make_scene(*state);
  set direct = make_set(&s, 3), on = make_set(&s, 3);
  clb_recording *inner = record(&s, &on), *r;
  int64_t launches[2] = {0};
  OK(s.ctx, clb_record_begin(s.ctx));
  OK(s.ctx, clb_replay(inner));
  submit(&s, &on);
  OK(s.ctx, clb_record_end(s.ctx, &r));
  for (int i = 0; i < 2; i++) {
    OK(s.ctx, clb_profile_begin(s.ctx));
    OK(s.ctx, clb_replay(i ? r : inner));
    OK(s.ctx, clb_profile_end(s.ctx, add_launches, &launches[i]));
  }
  assert_true(launches[0] >= 5 && launches[1] == 2 * launches[0]);
  clb_recording_destroy(&inner);
  OK(s.ctx, clb_replay(r));
  for (int i = 0; i < 5; i++) submit(&s, &direct);
  expect_same(&s, &on, &direct, false);
  clb_recording_destroy(&r);
  drop_set(&direct), drop_set(&on);
  drop_scene(&s);
}

static void none(void **state) {
  clb_context *ctx = context_of(*state);
  clb_recording *r;
  OK(ctx, clb_record_begin(ctx));
  OK(ctx, clb_record_end(ctx, &r));
  assert_non_null(r);
  OK(ctx, clb_replay(r));
  clb_recording_destroy(&r);
}

/* ---- mistakes ---- */

static void refuses(void **state) {
  scene s = make_scene(*state);
  set on = make_set(&s, 1);
  clb_context *ctx = s.ctx, *second;
  clb_recording *r = (clb_recording *)&s;
  clb_op *op;
  clb_graph *graph;
  clb_buffer *small, *foreign;
  float x = 1;
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_record_end: there was no clb_record_begin",
         clb_record_end(ctx, &r));
  assert_null(r);
  for (int i = 0; i < 7; i++) {
    static const char needs[] = "not allowed while recording, because it needs the device now";
    OK(ctx, clb_record_begin(ctx));
    submit(&s, &on);
    if (i == 0) NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs, clb_wait(ctx));
    if (i == 1) NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs, clb_buffer_write(on.b[X], 0, &x, 4));
    if (i == 2) NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs, clb_buffer_read(on.b[X], 0, &x, 4));
    if (i == 3)
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs,
             clb_graph_update(s.graph, 1, 1, 0, CLB_I32, (clb_index_list){.host = &x},
                              (clb_index_list){.host = &x}));
    if (i == 4)
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs, clb_gemm_create_generated(ctx, CLB_F32, &op));
    if (i == 4) NOT_OK(ctx, CLB_ERROR_ARGUMENT, needs, clb_graph_create(ctx, 0, 0, &graph));
    if (i == 5)
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_record_begin: a recording has begun",
             clb_record_begin(ctx));
    if (i == 6)
      NOT_OK(ctx, CLB_ERROR_ARGUMENT, "bytes of y",
             clb_spherical_harmonics_forward(s.harmonics, EDGES + 1, (clb_rows){.buffer = on.b[X]},
                                             (clb_rows){on.b[V], 0, CLB_DENSE, NULL}));
    NOT_OK(ctx, CLB_ERROR_ARGUMENT,
           "clb_record_end: a call since clb_record_begin failed, so nothing is kept; the last "
           "failure: ",
           clb_record_end(ctx, &r));
    assert_null(r);
  }
  clb_sorted_edges edges;
  OK(ctx, clb_graph_sorted(s.graph, CLB_BY_SENDER, &edges));
  assert_int_equal(edges.n_edges, EDGES); /* a refused call changes nothing */
  OK(ctx, clb_record_begin(ctx));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_record_end: recording is NULL", clb_record_end(ctx, NULL));
  OK(ctx, clb_wait(ctx));
  assert_int_equal(clb_record_begin(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_replay(NULL), CLB_ERROR_ARGUMENT);
  assert_int_equal(clb_recording_replace(NULL, on.b[X], on.b[X]), CLB_ERROR_ARGUMENT);
  r = record(&s, &on);
  OK(ctx, clb_buffer_create(ctx, s.bytes[X] - 1, &small));
  OK(ctx, clb_context_create("cpu:interpreter", &second));
  OK(second, clb_buffer_create(second, s.bytes[X], &foreign));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: new_buffer is NULL",
         clb_recording_replace(r, on.b[X], NULL));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: old_buffer is NULL",
         clb_recording_replace(r, NULL, on.b[X]));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: new_buffer has ",
         clb_recording_replace(r, on.b[X], small));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: the recording does not use old_buffer",
         clb_recording_replace(r, small, on.b[X]));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: new_buffer belongs to another context",
         clb_recording_replace(r, on.b[X], foreign));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_recording_replace: old_buffer belongs to another context",
         clb_recording_replace(r, foreign, on.b[X]));
  clb_buffer_destroy(&foreign);
  clb_buffer_destroy(&small);
  OK(ctx, clb_replay(r));
  clb_recording *also = record(&s, &on);
  const int32_t end[EDGES] = {0};
  const clb_index_list all = {.host = end};
  OK(ctx, clb_graph_update(s.graph, NODES, NODES, EDGES - 1, CLB_I32, all, all));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT, "clb_replay: a graph has other numbers of nodes or edges",
         clb_replay(r));
  OK(ctx, clb_graph_update(s.graph, NODES, NODES, EDGES, CLB_I32, all, all));
  OK(ctx, clb_replay(r));
  clb_buffer_destroy(&on.b[X]); /* a recording that uses it is never replayed, not even if another
                                   object has its address by now */
  OK(ctx, clb_buffer_create(ctx, s.bytes[X], &on.b[X]));
  NOT_OK(ctx, CLB_ERROR_ARGUMENT,
         "clb_replay: a buffer, graph or op that the recording uses was destroyed", clb_replay(r));
  clb_recording_destroy(&r);
  NOT_OK(ctx, CLB_ERROR_ARGUMENT,
         "clb_replay: a buffer, graph or op that the recording uses was destroyed",
         clb_replay(also));
  clb_recording_destroy(&also);
  clb_context_destroy(&second);
  drop_set(&on);
  drop_scene(&s);
}

/* The convolution found its rows at multiples of 16 bytes. */
static void unaligned(void **state) {
  scene s = make_scene(*state);
  set on = make_set(&s, 1);
  clb_recording *r = record(&s, &on);
  clb_buffer *wrapped;
  char *memory = aligned_alloc(64, (s.bytes[X] + 128) / 64 * 64);
  OK(s.ctx, clb_buffer_wrap(s.ctx, CLB_POINTER, memory + 4, s.bytes[X], &wrapped));
  NOT_OK(s.ctx, CLB_ERROR_ARGUMENT, "it must be a multiple of 16, as old_buffer's",
         clb_recording_replace(r, on.b[X], wrapped));
  clb_buffer_destroy(&wrapped);
  OK(s.ctx, clb_buffer_wrap(s.ctx, CLB_POINTER, memory + 16, s.bytes[X], &wrapped));
  OK(s.ctx, clb_recording_replace(r, on.b[X], wrapped));
  clb_recording_destroy(&r);
  clb_buffer_destroy(&wrapped);
  free(memory);
  drop_set(&on);
  drop_scene(&s);
}

static clb_status refuse(clb_device *d, clb_dtype type, const clb_gemm_desc *p) {
  (void)type, (void)p;
  return clb_fail(d->error, CLB_ERROR_UNSUPPORTED, "not this one");
}

/* A library that refuses a matrix product is no error where there is a kernel for it, and an error
   where there is none. */
static void library_refuses(void **state) {
  scene s = make_scene(*state);
  set direct = make_set(&s, 1), on = make_set(&s, 1);
  clb_device *d = s.ctx->device;
  clb_recording *r;
  clb_op_destroy(&s.matrices);
  OK(s.ctx, clb_gemm_create_generated(s.ctx, CLB_F32, &s.matrices));
  submit(&s, &direct);
  calls.counting = *(calls.backend = d->backend);
  calls.counting.can_gemm = refuse;
  d->backend = &calls.counting;
  s.matrices->blas = true;
  r = record(&s, &on);
  clb_kernel *kernel = s.matrices->kernel[0];
  s.matrices->kernel[0] = NULL;
  OK(s.ctx, clb_record_begin(s.ctx));
  const clb_gemm_desc p = {.m = M,
                           .n = N,
                           .k = K,
                           .count = 1,
                           .a = &on.b[A]->memory,
                           .b = &on.b[B]->memory,
                           .c = &on.b[C]->memory,
                           .ld_a = K,
                           .ld_b = N,
                           .ld_c = N};
  NOT_OK(s.ctx, CLB_ERROR_UNSUPPORTED, "not this one", clb_gemm_run(s.matrices, &p));
  clb_recording *second;
  NOT_OK(s.ctx, CLB_ERROR_UNSUPPORTED, "not this one", clb_record_end(s.ctx, &second));
  s.matrices->kernel[0] = kernel;
  d->backend = calls.backend;
  OK(s.ctx, clb_replay(r));
  expect_same(&s, &on, &direct, false);
  clb_recording_destroy(&r);
  drop_set(&direct), drop_set(&on);
  drop_scene(&s);
}

/* A GPU's convolution has a second kernel for rows that start anywhere, and others for graphs of
   few edges: a recording may be the first that asks for it. */
static void records_first(bool team) {
  enum { MUL = 4, X_ROW = 4 * MUL };
  clb_context *ctx;
  clb_instructions *found = calloc(1, sizeof *found);
  clb_tensor_product_sizes sizes;
  clb_op *op;
  clb_recording *r;
  uint64_t min, max;
  OK(NULL, clb_context_create("cpu:interpreter", &ctx));
  ctx->device->limits = device_limits[LIMITS_NVIDIA].limits;
  if (!team) OK(ctx, clb_context_disable(ctx, CLB_SPLIT_ROWS)); /* each row is a sub-group's */
  OK(ctx, clb_channel_wise(ctx, "4x0e+4x1o", "0e+1o", "0e+1o", CLB_SORTED, found));
  const clb_convolution_desc desc = {.product = {.irreps_x = found->irreps_x,
                                                 .irreps_y = found->irreps_y,
                                                 .irreps_z = found->irreps_z,
                                                 .instructions = found->instructions,
                                                 .n_instructions = found->n_instructions,
                                                 .storage = CLB_F32,
                                                 .arithmetic = CLB_F32,
                                                 .passes = CLB_PASS_BIT(CLB_FORWARD)}};
  OK(ctx, clb_tensor_product_measure(ctx, &desc.product, &sizes));
  assert_int_equal(sizes.x, X_ROW);
  OK(ctx, clb_convolution_create(ctx, &desc, &op));
  clb_graph *graph = make_graph(ctx);
  OK(ctx, clb_convolution_workspace(op, CLB_FORWARD, graph, &min, &max));
  const uint64_t n[] = {X_ROW * NODES + 1,         (uint64_t)sizes.y * EDGES,
                        (uint64_t)sizes.w * EDGES, (uint64_t)sizes.z * NODES,
                        (uint64_t)sizes.z * NODES, max / 4 + 1};
  clb_buffer *b[6];
  for (uint64_t i = 0; i < 6; i++) {
    uint64_t seed = i + 3;
    float *x = malloc(4 * n[i]);
    for (uint64_t j = 0; j < n[i]; j++) x[j] = (float)test_random(&seed);
    OK(ctx, clb_buffer_create(ctx, 4 * n[i], &b[i]));
    OK(ctx, clb_buffer_write(b[i], 0, x, 4 * n[i]));
    free(x);
  }
  const clb_rows x = {b[0], 1, CLB_DENSE, NULL}, y = {b[1], 0, CLB_DENSE, NULL},
                 w = {b[2], 0, CLB_DENSE, NULL}, z = {b[3], 0, CLB_DENSE, NULL},
                 again = {b[4], 0, CLB_DENSE, NULL};
  OK(ctx, clb_record_begin(ctx));
  OK(ctx, clb_convolution_forward(op, graph, x, y, w, z, b[5]));
  OK(ctx, clb_record_end(ctx, &r));
  assert_true(!op->unaligned[CLB_FORWARD] == team && !op->team[CLB_FORWARD][1] == !team);
  OK(ctx, clb_replay(r));
  OK(ctx, clb_convolution_forward(op, graph, x, y, w, again, b[5]));
  float *got = malloc(8 * n[3]);
  OK(ctx, clb_buffer_read(b[3], 0, got, 4 * n[3]));
  OK(ctx, clb_buffer_read(b[4], 0, got + n[3], 4 * n[3]));
  assert_memory_equal(got, got + n[3], 4 * n[3]);
  free(got);
  clb_recording_destroy(&r);
  for (int i = 0; i < 6; i++) clb_buffer_destroy(&b[i]);
  clb_graph_destroy(&graph);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  free(found);
}

static void first_unaligned(void **state) {
  (void)state;
  for (int team = 0; team < 2; team++) records_first(team);
}

/* A recording that takes over the driver's object of another: both do their own work afterwards,
   and one that is empty does none. */
static void taken_over(void **state) {
  scene s = make_scene(*state);
  set on[] = {make_set(&s, 1), make_set(&s, 2)}, direct[] = {make_set(&s, 1), make_set(&s, 2)};
  clb_recording *r[] = {record(&s, &on[0]), NULL, NULL};
  OK(s.ctx, clb_replay(r[0]));
  for (int i = 1; i < 3; i++) {
    OK(s.ctx, clb_record_begin(s.ctx));
    clb_recording_take_over(r[i - 1]);
    if (i < 2) submit(&s, &on[i]);
    OK(s.ctx, clb_record_end(s.ctx, &r[i]));
    for (int k = 0; k < 3 && r[k]; k++) OK(s.ctx, clb_replay(r[k]));
  }
  assert_null(r[2]->recorded);
  for (int i = 0; i < 3; i++) submit(&s, &direct[0]);
  for (int i = 0; i < 2; i++) submit(&s, &direct[1]);
  for (int i = 0; i < 2; i++) expect_same(&s, &on[i], &direct[i], false);
  for (int i = 0; i < 3; i++) clb_recording_destroy(&r[i]);
  for (int i = 0; i < 2; i++) drop_set(&on[i]), drop_set(&direct[i]);
  drop_scene(&s);
}

/* A context is destroyed while it records. */
static void given_up(void **state) {
  place d = *(place *)*state;
  d.ctx = NULL;
  scene s = make_scene(&d);
  set on = make_set(&s, 1);
  OK(s.ctx, clb_record_begin(s.ctx));
  submit(&s, &on);
  drop_set(&on);
  drop_scene(&s);
  clb_context_destroy(&s.ctx);
}

int main(void) {
  static const place_test tests[] = {{"replays", replays, SLOW},
                                     {"replaced", replaced, SLOW},
                                     {"taken_over", taken_over, SLOW},
                                     {"nested", nested, SLOW},
                                     {"none", none, SLOW},
                                     {"refuses", refuses, SLOW},
                                     {"unaligned", unaligned, BRISK},
                                     {"library_refuses", library_refuses, SLOW},
                                     {"first_unaligned", first_unaligned, BRISK},
                                     {"given_up", given_up, SLOW}};
  return RUN_AT_PLACES("recording", tests);
}
