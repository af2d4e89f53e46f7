/* tests/ops/convolution/convolution_arrays.h - graph convolutions on the devices that run here:
   operands as host arrays of f64, one pass run on them, and plain sums over the edges in float64,
   which share nothing with the library. */
#ifndef CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_ARRAYS_H
#define CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_ARRAYS_H

#include "tests/fakes/device_limits.h"
#include "tests/ops/tensor_product/product_arrays.h"

#include "src/runtime/context.h"

/* ---- convolutions and edges ---- */

typedef struct {
  test_product product; /* what is convolved; it has no op */
  clb_convolution_desc desc;
  clb_op *op[PASSES]; /* created when first run */
} convolution;

static inline convolution *convolution_create(clb_context *ctx, const clb_convolution_desc *desc) {
  convolution *c = calloc(1, sizeof *c);
  test_product *p = product_create(ctx, &desc->product, dense_golden_3j);
  assert_non_null(c);
  c->product = *p;
  free(p);
  c->desc = *desc;
  for (int q = 0; q < c->product.dense->n && desc->scale != 0; q++) {
    dense_path *path = &c->product.dense->path[q];
    const int l[3] = {c->product.dense->of[LIKE_X].term[path->is.in1].l,
                      c->product.dense->of[LIKE_Y].term[path->is.in2].l,
                      c->product.dense->of[LIKE_Z].term[path->is.out].l};
    for (int i = 0; i < (2 * l[0] + 1) * (2 * l[1] + 1) * (2 * l[2] + 1); i++)
      path->C[i] *= desc->scale;
  }
  return c;
}

static inline clb_op *convolution_op(convolution *c, int pass) {
  if (pass < 0) abort(); /* or GCC, checking the shift below for a sanitizer, takes it for -1 */
  c->desc.product.passes = CLB_PASS_BIT(pass);
  if (!c->op[pass])
    OK(c->product.ctx, clb_convolution_create(c->product.ctx, &c->desc, &c->op[pass]));
  return c->op[pass];
}

static inline void convolution_destroy(convolution *c) {
  if (!c) return;
  for (int pass = 0; pass < PASSES; pass++) clb_op_destroy(&c->op[pass]);
  dense_destroy(c->product.dense);
  free(c);
}

/* rows: of what is like x (senders), y and w (edges), z (receivers). */
typedef struct {
  int rows[4];
  int32_t *senders, *receivers;
} edge_list;

static inline edge_list edges_create(int n_senders, int n_receivers, int n) {
  edge_list e = {
      {n_senders, n, n, n_receivers}, calloc((size_t)n + 1, 4), calloc((size_t)n + 1, 4)};
  assert_true(e.senders && e.receivers);
  return e;
}

static inline void edges_destroy(edge_list *e) {
  free(e->senders);
  free(e->receivers);
}

/* If all edges share a row there is only that one. */
static inline int node_of_edge(const edge_list *e, int like, int i) {
  return like == LIKE_X      ? e->senders[i]
         : like == LIKE_Z    ? e->receivers[i]
         : i < e->rows[like] ? i
                             : 0;
}
static inline size_t count_of(const convolution *c, const edge_list *e, int like) {
  return (size_t)e->rows[like] * (size_t)c->product.width[like];
}

/* ---- arrays ---- */

enum { CONVOLUTION_IN = 7, CONVOLUTION_OUT = 4 };

/* Rows of nodes without edges hold NaN. */
static inline void spoil_unused(const convolution *c, const edge_list *e, int like, double *x) {
  size_t width = (size_t)c->product.width[like];
  bool *used = calloc((size_t)e->rows[like] + 1, 1);
  assert_non_null(used);
  for (int i = 0; i < e->rows[LIKE_Y]; i++) used[node_of_edge(e, like, i)] = true;
  for (size_t j = 0; j < (size_t)e->rows[like] * width; j++)
    if (!used[j / width]) x[j] = NAN;
  free(used);
}

/* Random inputs, and outputs for the case that results are added to them. */
static inline arrays convolution_arrays(const convolution *c, const edge_list *e, uint64_t seed) {
  arrays a = {0};
  clb_dtype type = c->desc.product.storage;
  for (int i = 0; i < CONVOLUTION_IN; i++) {
    size_t n = count_of(c, e, input_like[i]);
    random_fill(type, a.in[i] = numbers(n), n, &seed);
    spoil_unused(c, e, input_like[i], a.in[i]);
  }
  for (int i = 0; i < CONVOLUTION_OUT; i++) { /* one wide enough for z in forward and g_x */
    size_t n = count_of(c, e, input_like[i]), z = count_of(c, e, LIKE_Z);
    random_fill(type, a.out[i] = numbers(n > z ? n : z), n > z ? n : z, &seed);
  }
  return a;
}

/* ---- running ---- */

enum {
  DENSE,
  ALIGNED,
  APART
}; /* rows back to back; from some element on with gaps, all multiples of 4 where widths are; others
    */
typedef enum { MIN, BETWEEN, MAX } capacity; /* of workspace */
typedef struct {
  int spacing;
  capacity capacity;
} manner;

/* Inputs end with their last row; outputs are followed by one more row of NaN. */
static inline clb_rows rows_of(convolution *c, const edge_list *e, int like, int number,
                               const double *from, bool written, const manner *m) {
  size_t width = (size_t)c->product.width[like], n = (size_t)e->rows[like];
  size_t offset =
      m->spacing == DENSE ? 0 : (size_t)(m->spacing == ALIGNED ? 4 + 4 * number : 3 + number);
  size_t stride = width +
                  (m->spacing == DENSE ? 0 : (size_t)(m->spacing == ALIGNED ? 4 : 1 + number % 3)),
         all = offset + (n - 1) * stride + width + (written ? stride : 0);
  if (!width || !n) return (clb_rows){0};
  double *x = numbers(all);
  for (size_t i = 0; i < all; i++) x[i] = NAN;
  for (size_t r = 0; r < n && from; r++)
    memcpy(x + offset + r * stride, from + r * width, width * sizeof *x);
  clb_rows rows = {.buffer = buffer_of(&c->product, x, all, all),
                   .offset = (int64_t)offset,
                   .stride = m->spacing == DENSE ? CLB_DENSE : (int64_t)stride};
  free(x);
  return rows;
}

/* Reads the result's own elements back to `to` (NULL: it has none); all others must still be NaN.
 */
static inline void take_rows(convolution *c, const edge_list *e, int like, int pass,
                             const clb_rows *r, const manner *m, double *to) {
  size_t width = (size_t)c->product.width[like], n = (size_t)e->rows[like],
         stride = m->spacing == DENSE ? width : (size_t)r->stride, offset = (size_t)r->offset;
  if (!r->buffer) return;
  double *all = read_buffer(&c->product, r->buffer, offset + n * stride + width);
  for (size_t j = 0; j < offset + n * stride + width; j++) {
    size_t row = j < offset ? n : (j - offset) / stride,
           column = j < offset ? width : (j - offset) % stride;
    bool own = to && row < n && column < width;
    if (own) to[row * width + column] = all[j];
    else if (!isnan(all[j]))
      fail_msg("pass %d wrote element %zu of a result like operand %d, which is not its own", pass,
               j, like);
  }
  free(all);
}

/* Filled with NaN; NULL if none is needed. */
static inline clb_buffer *workspace_of(convolution *c, int pass, clb_graph *g, capacity how) {
  uint64_t min, max;
  clb_buffer *b = NULL;
  OK(c->product.ctx,
     clb_convolution_workspace(convolution_op(c, pass), (clb_pass)pass, g, &min, &max));
  assert_true(min <= max);
  uint64_t bytes = how == MIN ? min : how == MAX ? max : min + (max - min) / 2;
  if (!bytes) return NULL;
  char *nan = malloc(bytes);
  assert_non_null(nan);
  memset(nan, 0xff, bytes);
  OK(c->product.ctx, clb_buffer_create(c->product.ctx, bytes, &b));
  OK(c->product.ctx, clb_buffer_write(b, 0, nan, bytes));
  free(nan);
  return b;
}

static inline clb_status convolution_call(clb_op *op, int pass, clb_graph *g, const clb_rows *i,
                                          const clb_rows *o, clb_buffer *workspace) {
  if (pass == CLB_FORWARD) return clb_convolution_forward(op, g, i[0], i[1], i[2], o[0], workspace);
  if (pass == CLB_BACKWARD)
    return clb_convolution_backward(op, g, i[0], i[1], i[2], i[3], o[0], o[1], o[2], workspace);
  return clb_convolution_double_backward(op, g, i[0], i[1], i[2], i[3], i[4], i[5], i[6], o[0],
                                         o[1], o[2], o[3], workspace);
}

/* Outputs hold NaN unless results are added to them; operands that the pass neither reads nor gives
   have no buffer. */
static inline void run_convolution(convolution *c, int pass, const edge_list *e, clb_graph *g,
                                   manner m, arrays *a) {
  clb_rows in[CONVOLUTION_IN] = {{0}}, out[CONVOLUTION_OUT] = {{0}};
  clb_buffer *workspace = workspace_of(c, pass, g, m.capacity);
  for (int i = 0; i < n_inputs[pass]; i++)
    if (reads(&c->product, i)) in[i] = rows_of(c, e, input_like[i], i, a->in[i], false, &m);
  for (int o = 0; o < n_outputs[pass]; o++)
    if (gives(&c->product, pass, o))
      out[o] = rows_of(c, e, output_like(pass, o), 5 + o,
                       c->desc.product.accumulate ? a->out[o] : NULL, true, &m);
  OK(c->product.ctx, convolution_call(convolution_op(c, pass), pass, g, in, out, workspace));
  for (int o = 0; o < n_outputs[pass]; o++)
    take_rows(c, e, output_like(pass, o), pass, &out[o], &m, a->out[o]);
  for (int i = 0; i < CONVOLUTION_IN; i++) clb_buffer_destroy(&in[i].buffer);
  for (int o = 0; o < CONVOLUTION_OUT; o++) clb_buffer_destroy(&out[o].buffer);
  clb_buffer_destroy(&workspace);
}

/* ---- comparing ---- */

/* The product of every edge, added to the rows of its ends. */
static inline void plain_sums(const convolution *c, int pass, const edge_list *e, const arrays *a,
                              double *const *want, double *const *scale) {
  const int *width = c->product.width;
  for (int i = 0; i < e->rows[LIKE_Y]; i++) {
    const double *in[MAX_IN];
    double *out[MAX_OUT], *size[MAX_OUT];
    for (int k = 0; k < n_inputs[pass]; k++)
      in[k] = a->in[k] + (size_t)node_of_edge(e, input_like[k], i) * (size_t)width[input_like[k]];
    for (int o = 0; o < n_outputs[pass]; o++) {
      size_t at =
          (size_t)node_of_edge(e, output_like(pass, o), i) * (size_t)width[output_like(pass, o)];
      out[o] = want[o] + at;
      size[o] = scale[o] + at;
    }
    dense_row(c->product.dense, pass, in, out, size);
  }
}

/* Absent inputs are 0, so that no term has them. */
static inline arrays with_absent(convolution *c, const edge_list *e, const arrays *a) {
  arrays b = *a;
  for (int i = 0; i < CONVOLUTION_IN; i++) {
    size_t n = count_of(c, e, input_like[i]);
    b.in[i] = numbers(n);
    if (reads(&c->product, i)) memcpy(b.in[i], a->in[i], n * sizeof(double));
  }
  return b;
}

/* Compares results with the plain sums, plus the contents `before` if results are added. */
static inline void compare_convolution(convolution *c, int pass, const edge_list *e,
                                       const arrays *a, const arrays *before) {
  double *want[MAX_OUT] = {NULL}, *scale[MAX_OUT] = {NULL};
  arrays in = with_absent(c, e, a);
  for (int o = 0; o < n_outputs[pass]; o++)
    want[o] = numbers(count_of(c, e, output_like(pass, o))),
    scale[o] = numbers(count_of(c, e, output_like(pass, o)));
  plain_sums(c, pass, e, &in, want, scale);
  for (int o = 0; o < n_outputs[pass]; o++)
    for (size_t j = 0; j < count_of(c, e, output_like(pass, o)) && gives(&c->product, pass, o);
         j++) {
      double old = before ? before->out[o][j] : 0, wanted = want[o][j] + old,
             size = scale[o][j] + fabs(old);
      if (!(fabs(a->out[o][j] - wanted) <=
            tolerance(&c->product) * size + (c->desc.product.storage == CLB_F16) * 0x1p-24))
        fail_msg("%s (x) %s -> %s, pass %d, gradients %u, incoming %u, %d edges from %d to %d, "
                 "result %d, element %zu: %.17g, not %.17g",
                 c->desc.product.irreps_x, c->desc.product.irreps_y, c->desc.product.irreps_z, pass,
                 c->desc.product.gradients, c->desc.product.incoming, e->rows[LIKE_Y],
                 e->rows[LIKE_X], e->rows[LIKE_Z], o, j, a->out[o][j], wanted);
    }
  for (int i = 0; i < CONVOLUTION_IN; i++) free(in.in[i]);
  for (int o = 0; o < n_outputs[pass]; o++) free(want[o]), free(scale[o]);
}

/* Runs a pass on random rows and compares it. */
static inline void convolve_and_compare(convolution *c, int pass, const edge_list *e, clb_graph *g,
                                        manner m, uint64_t seed) {
  arrays a = convolution_arrays(c, e, seed), before = convolution_arrays(c, e, seed);
  run_convolution(c, pass, e, g, m, &a);
  compare_convolution(c, pass, e, &a, c->desc.product.accumulate ? &before : NULL);
  arrays_destroy(&a);
  arrays_destroy(&before);
}

/* The bits of two runs of a pass. */
static inline void expect_same_bits(convolution *c, int pass, const edge_list *e, const arrays *a,
                                    const arrays *b) {
  for (int o = 0; o < n_outputs[pass]; o++)
    if (gives(&c->product, pass, o))
      assert_memory_equal(a->out[o], b->out[o],
                          sizeof(double) * count_of(c, e, output_like(pass, o)));
}

/* ---- one test for each place: a device that runs here, or the interpreter with the limits of some
   GPU ---- */

static const int gpus[] = {LIMITS_NVIDIA, LIMITS_AMD, LIMITS_TWO_SUBGROUPS, LIMITS_NO_SUBGROUPS};
enum { GPUS = sizeof gpus / sizeof *gpus, MAX_PLACES = 16, MAX_CONVOLUTIONS = 20 };

typedef struct {
  device device;
  int gpu; /* of `gpus`, whose limits the interpreter has; -1: its own */
  clb_graph *graph;
  convolution *made[MAX_CONVOLUTIONS];
} place;

static inline place *all_places(void) {
  static place places[MAX_PLACES];
  return places;
}

static inline clb_context *context_at(place *p) {
  bool opened = p->device.ctx != NULL;
  clb_context *ctx = context_of(&p->device);
  if (!opened && p->gpu >= 0) ctx->device->limits = device_limits[gpus[p->gpu]].limits;
  return ctx;
}

/* The place's graph, with these edges now. */
static inline clb_graph *graph_at(place *p, const edge_list *e) {
  clb_context *ctx = context_at(p);
  if (!p->graph) OK(ctx, clb_graph_create(ctx, 0, 0, &p->graph));
  OK(ctx, clb_graph_update(p->graph, e->rows[LIKE_X], e->rows[LIKE_Z], e->rows[LIKE_Y], CLB_I32,
                           (clb_index_list){.host = e->senders},
                           (clb_index_list){.host = e->receivers}));
  return p->graph;
}

typedef struct {
  char name[32];
  void (*run)(void **place);
  int effort; /* left out on devices with less device.effort */
} place_test;

static inline int find_places(void) {
  device *found = all_devices();
  const char *asked = getenv("CLB_DEVICE");
  int n = 0, n_devices = 0;
  if (!asked || !*asked) clb_devices(add_device, &n_devices);
  else {
    snprintf(found->name, sizeof found->name, "%s", asked);
    found->effort = SANITIZED ? BRISK : THOROUGH;
    n_devices = 1;
  }
  for (int d = 0; d < n_devices; d++)
    for (int gpu = -1; gpu < (strcmp(found[d].name, "cpu:interpreter") ? 0
                              : SANITIZED                              ? 1
                                                                       : GPUS) &&
                       n < MAX_PLACES;
         gpu++)
      all_places()[n++] = (place){.device = found[d], .gpu = gpu};
  return n;
}

static inline int forget_places(void **state) {
  (void)state;
  for (place *p = all_places(); p < all_places() + MAX_PLACES; p++) {
    for (int i = 0; i < MAX_CONVOLUTIONS; i++) convolution_destroy(p->made[i]);
    clb_graph_destroy(&p->graph);
    clb_context_destroy(&p->device.ctx);
  }
  return 0;
}

static inline int run_at_places(const char *group, const place_test *tests, int n_tests) {
  static struct CMUnitTest all[MAX_PLACES * MAX_TESTS];
  static char labels[MAX_PLACES * MAX_TESTS][128];
  int n = 0, n_places = find_places();
  for (int d = 0; d < n_places; d++)
    for (int t = 0; t < n_tests; t++) {
      place *p = &all_places()[d];
      if ((int)p->device.effort < tests[t].effort || waits_its_turn(&p->device, t)) continue;
      snprintf(labels[n], sizeof labels[n], "%s_%s[%s%s%s]", group, tests[t].name, p->device.name,
               p->gpu < 0 ? "" : " as ", p->gpu < 0 ? "" : device_limits[gpus[p->gpu]].name);
      all[n] = (struct CMUnitTest){labels[n], tests[t].run, NULL, NULL, p};
      n++;
    }
  return _cmocka_run_group_tests(group, all, (size_t)n, NULL, forget_places);
}

#endif
