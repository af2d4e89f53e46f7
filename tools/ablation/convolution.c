/* tools/ablation/convolution.c - a graph convolution with edge vectors and a table of splines, and
   the same composed of simpler ops. Without receiver ownership a tensor product writes the message
   of each edge, and these are summed by receiver; in the backward pass g is gathered, and gradients
   of x are written per edge and summed by sender. Without tables a matrix product computes the
   weights of each edge from HIDDEN numbers, like the last layer of a radial network. These numbers
   h(r) are splines on the grid of the table, so that weights are the same up to rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/ablation.h"
#include "tools/ops/convolution/convolution_tool.h"
#include "tools/reference/reference_spline.h"

enum { HIDDEN = 64, SUM_COLUMNS = 1024 };

/* Everything the variants share. */
typedef struct {
  work *w;
  ablation_product_desc *d;
  clb_pass pass;
  ablation_graphs e;
  int degrees[16], n_degrees;
  int64_t y_stride;
  double *splines, *table; /* of reference_spline_make; weights at the knots */
  clb_op *normal, *given;  /* with the table; with weights of edges */
  clb_buffer *senders, *receivers;
  clb_rows x, v, r, h, slope, y, unit, matrix, weights, message, results, g_x, g_v, g_x_edge, g_y,
      g_r, g_w, g_h;
} piece;

/* ---- data ---- */

static double hidden(int k, double r) { return sin((1 + 0.05 * k) * r + k); }

/* Splines of h itself, and those of weights. */
static const reference_grid grid = {KNOTS, FIRST_KNOT, LAST_KNOT, HIDDEN, 0, 0};

static void make_splines(piece *p) {
  double *values = allocate(KNOTS * HIDDEN, sizeof *values);
  p->splines = allocate(2 * KNOTS * HIDDEN, sizeof *p->splines);
  for (int i = 0; i < KNOTS * HIDDEN; i++)
    values[i] = hidden(i % HIDDEN, reference_knot(&grid, i / HIDDEN));
  reference_spline_make(&grid, values, p->splines);
  free(values);
}

static void make_table(piece *p, const float *matrix) {
  int64_t W = p->d->sizes.w;
  p->table = allocate((size_t)(KNOTS * W), sizeof *p->table);
  for (int i = 0; i < KNOTS; i++)
    for (int k = 0; k < HIDDEN; k++)
      for (int64_t j = 0; j < W; j++)
        p->table[i * W + j] += hidden(k, reference_knot(&grid, i)) * (double)matrix[k * W + j];
}

static void make_matrix(piece *p) {
  int64_t W = p->d->sizes.w;
  float *matrix = allocate((size_t)(HIDDEN * W), sizeof *matrix);
  uint64_t seed = 5;
  for (int64_t i = 0; i < HIDDEN * W; i++) matrix[i] = (float)random_number(&seed) / 8;
  p->matrix = work_rows(p->w, 1, HIDDEN * W, matrix);
  make_splines(p);
  make_table(p, matrix);
  free(matrix);
}

static void make_edges(piece *p) {
  int64_t n = p->e.g.n_edges;
  float *v = allocate((size_t)n * 3, sizeof *v), *r = allocate((size_t)n, sizeof *r),
        *h = allocate((size_t)n * HIDDEN, sizeof *h),
        *slope = allocate((size_t)n * HIDDEN, sizeof *slope);
  for (int64_t e = 0; e < n; e++) {
    double squares = 0;
    for (int i = 0; i < 3; i++)
      v[3 * e + i] = (float)p->e.g.vectors[3 * e + i],
                squares += (double)v[3 * e + i] * (double)v[3 * e + i];
    r[e] = (float)sqrt(squares);
    const reference_position at = reference_position_at(&grid, (double)r[e]);
    for (int k = 0; k < HIDDEN; k++) {
      const reference_weight a = reference_spline_at(&grid, p->splines, &at, k);
      h[e * HIDDEN + k] = (float)a.w;
      slope[e * HIDDEN + k] = (float)a.slope;
    }
  }
  p->v = work_rows(p->w, n, 3, v);
  p->r = work_rows(p->w, n, 1, r);
  p->h = work_rows(p->w, n, HIDDEN, h);
  p->slope = work_rows(p->w, n, HIDDEN, slope);
  free(v), free(r), free(h), free(slope);
}

static void make_data(piece *p) {
  work *w = p->w;
  const clb_tensor_product_sizes *s = &p->d->sizes;
  int64_t n = p->e.g.n_edges, nodes = p->e.g.n_nodes;
  p->y_stride = (s->y + 3) / 4 * 4;
  make_matrix(p);
  make_edges(p);
  p->x = work_rows(w, nodes, s->x, NULL);
  p->y = work_rows(w, n, p->y_stride, NULL);
  p->y.stride = p->y_stride;
  p->weights = work_rows(w, n, s->w, NULL);
  p->message = work_rows(w, n, s->z, NULL);
  p->results = work_rows(w, nodes, s->z, NULL); /* backward g */
  if (p->pass == CLB_FORWARD) {
    work_output(w, p->results, nodes, s->z);
    return;
  }
  p->g_x = work_rows(w, nodes, s->x, NULL);
  p->g_v = work_rows(w, n, 3, NULL);
  p->g_x_edge = work_rows(w, n, s->x, NULL);
  p->g_y = work_rows(w, n, p->y_stride, NULL);
  p->g_y.stride = p->y_stride;
  p->g_r = work_rows(w, n, 1, NULL);
  p->g_w = work_rows(w, n, s->w, NULL);
  p->g_h = work_rows(w, n, HIDDEN, NULL);
  p->unit = work_rows(w, n, 3, NULL);
  work_output(w, p->g_x, nodes, s->x);
  work_output(w, p->g_v, n, 3);
}

/* ---- ops ---- */

clb_tensor_product_desc ablation_plain(const char *x, const char *y, const char *z,
                                       const clb_instruction *path) {
  return (clb_tensor_product_desc){.irreps_x = x,
                                   .irreps_y = y,
                                   .irreps_z = z,
                                   .instructions = path,
                                   .n_instructions = 1,
                                   .path_normalization = CLB_PATH_NONE,
                                   .layout_x = CLB_IR_MUL,
                                   .layout_y = CLB_IR_MUL,
                                   .layout_z = CLB_IR_MUL,
                                   .storage = CLB_F32,
                                   .arithmetic = CLB_F32,
                                   .passes = CLB_PASS_BIT(CLB_FORWARD)};
}

static char *scalars(int64_t n, char text[32]) {
  snprintf(text, 32, "%lldx0e", (long long)n);
  return text;
}

static clb_op *convolution(piece *p, bool vectors, bool splines) {
  clb_convolution_desc d = {.product = p->d->desc, .vectors = vectors};
  d.product.passes = CLB_PASS_BIT(p->pass);
  d.product.gradients = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  if (splines) d.knots = KNOTS, d.first_knot = FIRST_KNOT, d.last_knot = LAST_KNOT;
  clb_op *op = work_convolution(p->w, &d);
  if (splines && !p->w->status) p->w->status = clb_convolution_set_table(op, p->table);
  return op;
}

/* tool: NULL for a convolution */
static void call(piece *p, variant *y, const tool_op *tool, clb_op *op, clb_pass pass,
                 const clb_rows *rows, int n) {
  op_call c = {
      .tool = tool, .op = op, .pass = pass, .n = p->e.g.n_edges, .graph = tool ? NULL : p->e.graph};
  memcpy(c.rows, rows, (size_t)n * sizeof *rows);
  variant_add(p->w, y, c);
}
#define CALL(p, y, tool, op, pass, ...)                                                            \
  call(p, y, tool, op, pass, (const clb_rows[]){__VA_ARGS__},                                      \
       (int)(sizeof(const clb_rows[]){__VA_ARGS__} / sizeof(clb_rows)))

static const clb_rows nothing;

/* y from vectors, or the gradient by vectors. */
static void add_harmonics(piece *p, variant *y, clb_pass pass) {
  const clb_spherical_harmonics_desc d = {.degrees = p->degrees,
                                          .n_degrees = p->n_degrees,
                                          .normalize = 1,
                                          .storage = CLB_F32,
                                          .arithmetic = CLB_F32,
                                          .passes = CLB_PASS_BIT(pass)};
  clb_op *op = work_harmonics(p->w, &d);
  if (pass == CLB_FORWARD) CALL(p, y, &tool_op_spherical_harmonics, op, pass, p->v, p->y);
  else CALL(p, y, &tool_op_spherical_harmonics, op, pass, p->v, p->g_y, p->g_v);
}

/* Weights of edges from h, or gradients by h. */
static void add_layer(piece *p, variant *y, clb_pass pass) {
  static const clb_instruction path = {0, 0, 0, CLB_UVW, 1, 1};
  char in[32], out[32];
  clb_tensor_product_desc d =
      ablation_plain(scalars(HIDDEN, in), "1x0e", scalars(p->d->sizes.w, out), &path);
  d.shared_weights = 1;
  d.gradients = CLB_OPERAND_X;
  d.passes = CLB_PASS_BIT(pass);
  clb_op *op = work_product(p->w, &d);
  clb_rows one = work_ones(p->w, 1);
  if (pass == CLB_FORWARD)
    CALL(p, y, &tool_op_tensor_product, op, pass, p->h, one, p->matrix, p->weights);
  else
    CALL(p, y, &tool_op_tensor_product, op, pass, p->h, one, p->matrix, p->g_w, p->g_h, nothing,
         nothing);
}

/* Sums over the edges of each row, in blocks of columns that fit a group. */
static void add_sums(piece *p, variant *y, clb_graph *graph, clb_rows edges, clb_rows sums,
                     int64_t columns) {
  static const clb_instruction path = {0, 0, 0, CLB_UVU, 1, 1};
  clb_rows ones = work_ones(p->w, SUM_COLUMNS), one = work_ones(p->w, 1);
  clb_op *op = NULL;
  for (int64_t first = 0, before = 0, n; first < columns; first += n, before = n) {
    char text[32];
    n = columns - first < SUM_COLUMNS ? columns - first : SUM_COLUMNS;
    const clb_convolution_desc d = {.product =
                                        ablation_plain(scalars(n, text), "1x0e", text, &path)};
    if (n != before) op = work_convolution(p->w, &d);
    op_call c = {.op = op, .pass = CLB_FORWARD, .graph = graph, .rows = {ones, one, edges, sums}};
    c.rows[2].stride = c.rows[3].stride = columns;
    c.rows[2].offset = c.rows[3].offset = first;
    variant_add(p->w, y, c);
  }
}

/* g of each edge's receiver. */
static void add_gather(piece *p, variant *y) {
  static const clb_instruction path = {0, 0, 0, CLB_UVU, 0, 1};
  char text[32];
  clb_tensor_product_desc d = ablation_plain(scalars(p->d->sizes.z, text), "1x0e", text, &path);
  d.indexed = CLB_OPERAND_X;
  clb_op *op = work_product(p->w, &d);
  clb_rows from = p->results;
  from.index = p->receivers;
  CALL(p, y, &tool_op_tensor_product, op, CLB_FORWARD, from, work_ones(p->w, 1), nothing,
       p->message);
}

/* g_v += g_r v / |v| */
static void add_by_length(piece *p, variant *y) {
  static const clb_instruction path = {0, 0, 0, CLB_UVU, 0, 1};
  static const int degree = 1;
  clb_tensor_product_desc d = ablation_plain("1x0e", "1x1o", "1x1o", &path);
  d.accumulate = 1;
  const clb_spherical_harmonics_desc s = {.degrees = &degree,
                                          .n_degrees = 1,
                                          .normalization = CLB_NORM,
                                          .normalize = 1,
                                          .storage = CLB_F32,
                                          .arithmetic = CLB_F32,
                                          .passes = CLB_PASS_BIT(CLB_FORWARD)};
  CALL(p, y, &tool_op_spherical_harmonics, work_harmonics(p->w, &s), CLB_FORWARD, p->v, p->unit);
  CALL(p, y, &tool_op_tensor_product, work_product(p->w, &d), CLB_FORWARD, p->g_r, p->unit, nothing,
       p->g_v);
}

/* The contribution of the gradient by weights to that by vectors, which a table gives directly: g_r
   = g_h . dh/dr. */
static void complete(piece *p, variant *y) {
  static const clb_instruction path = {0, 0, 0, CLB_UUW, 0, 1};
  char text[32];
  const clb_tensor_product_desc d = ablation_plain(scalars(HIDDEN, text), text, "1x0e", &path);
  bool has_g_h = y->without == NO_TABLES || y->without == NO_OPTIMISATION;
  if (p->pass == CLB_FORWARD) return;
  y->untimed = true;
  if (!has_g_h) add_layer(p, y, CLB_BACKWARD);
  CALL(p, y, &tool_op_tensor_product, work_product(p->w, &d), CLB_FORWARD, p->g_h, p->slope,
       nothing, p->g_r);
  add_by_length(p, y);
}

/* ---- variants ---- */

static void add_convolution(piece *p, variant *y, clb_op *op, clb_graph *graph, bool vectors,
                            bool splines) {
  clb_rows in = vectors ? p->v : p->y, w = splines ? (vectors ? nothing : p->r) : p->weights,
           g_y = vectors ? p->g_v : p->g_y, g_w = splines ? (vectors ? nothing : p->g_r) : p->g_w;
  if (p->pass == CLB_FORWARD) CALL(p, y, NULL, op, p->pass, p->x, in, w, p->results);
  else CALL(p, y, NULL, op, p->pass, p->x, in, w, p->results, p->g_x, g_y, g_w);
  y->call[y->n - 1].graph = graph;
}

static void one_by_edge(piece *p, variant *y, bool whole) {
  clb_tensor_product_desc d = p->d->desc;
  d.indexed = CLB_OPERAND_X;
  d.gradients = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W;
  d.passes = CLB_PASS_BIT(p->pass);
  clb_rows x = p->x;
  x.index = p->senders;
  add_harmonics(p, y, CLB_FORWARD);
  if (p->pass == CLB_FORWARD) {
    CALL(p, y, &tool_op_tensor_product, work_product(p->w, &d), p->pass, x, p->y, p->weights,
         p->message);
    add_sums(p, y, whole && p->e.whole ? p->e.whole : p->e.graph, p->message, p->results,
             p->d->sizes.z);
    return;
  }
  add_gather(p, y);
  CALL(p, y, &tool_op_tensor_product, work_product(p->w, &d), p->pass, x, p->y, p->weights,
       p->message, p->g_x_edge, p->g_y, p->g_w);
  add_harmonics(p, y, CLB_BACKWARD);
  add_sums(p, y, whole && p->e.reverse_whole ? p->e.reverse_whole : p->e.reverse, p->g_x_edge,
           p->g_x, p->d->sizes.x);
}

static void add_normal(piece *p, variant *y) {
  add_convolution(p, y, p->normal, p->e.graph, true, true);
}

static void add_given(piece *p, variant *y) {
  add_convolution(p, y, p->given, p->e.graph, true, false);
  complete(p, y);
}

static void add_new(piece *p, variant *y) {
  add_convolution(p, y, convolution(p, true, true), p->e.graph, true, true);
}

static void add_whole(piece *p, variant *y) {
  add_convolution(p, y, p->normal, p->e.whole, true, true);
}

static void add_by_edge(piece *p, variant *y) {
  one_by_edge(p, y, false);
  complete(p, y);
}

static void add_apart(piece *p, variant *y) {
  add_harmonics(p, y, CLB_FORWARD);
  add_convolution(p, y, convolution(p, false, true), p->e.graph, false, true);
  if (p->pass != CLB_FORWARD) add_harmonics(p, y, CLB_BACKWARD), add_by_length(p, y);
}

static void add_radial(piece *p, variant *y) {
  if (p->pass == CLB_FORWARD) add_layer(p, y, CLB_FORWARD);
  add_convolution(p, y, p->given, p->e.graph, true, false);
  if (p->pass != CLB_FORWARD) add_layer(p, y, CLB_BACKWARD);
  complete(p, y);
}

static void add_without_any(piece *p, variant *y) {
  if (p->pass == CLB_FORWARD) add_layer(p, y, CLB_FORWARD);
  one_by_edge(p, y, true);
  if (p->pass != CLB_FORWARD) add_layer(p, y, CLB_BACKWARD);
  complete(p, y);
}

/* Ways are compared with one of the first two. */
enum { NORMAL, GIVEN_WEIGHTS };
static const struct {
  ablation without;
  int baseline;
  bool once; /* its launches are not replayed */
  unsigned disabled;
  void (*add)(piece *p, variant *y);
} variants[] = {{ABLATIONS, NORMAL, false, 0, add_normal},
                {ABLATIONS, GIVEN_WEIGHTS, false, 0, add_given},
                {NO_WIDE_ACCESSES, NORMAL, false, CLB_WIDE_ACCESSES, add_new},
                {NO_REGISTER_SUMS, NORMAL, false, CLB_REGISTER_SUMS, add_new},
                {NO_SPLIT_ROWS, NORMAL, false, 0, add_whole},
                {NO_OWNERSHIP, GIVEN_WEIGHTS, false, 0, add_by_edge},
                {NO_FUSED_HARMONICS, NORMAL, false, 0, add_apart},
                {NO_TABLES, NORMAL, false, 0, add_radial},
                {NO_REPLAY, NORMAL, true, 0, add_normal},
                {NO_OPTIMISATION, NORMAL, true, ALL_OF_CONTEXT, add_without_any}};

static void make_variants(piece *p) {
  work *w = p->w;
  p->normal = convolution(p, true, true);
  p->given = convolution(p, true, false);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const ablation without = variants[i].without;
    if (!work_wants(w, without) || (without == NO_SPLIT_ROWS && !p->e.whole)) continue;
    work_disable(w, variants[i].disabled);
    variants[i].add(p, work_variant(w, without, variants[i].baseline, !variants[i].once));
    work_disable(w, 0);
  }
}

/* Computes the weights of edges before anything is timed. */
static void make_weights(piece *p) {
  variant once = {.without = ABLATIONS};
  add_layer(p, &once, CLB_FORWARD);
  const op_call *c = &once.call[0];
  if (!p->w->status) p->w->status = tool_op_tensor_product.run(c->op, CLB_FORWARD, c->n, c->rows);
}

void ablation_convolution(work *w, ablation_case *c) {
  piece p = {.w = w, .pass = c->pass, .d = ablation_describe(w, c)};
  ablation_make_graphs(w, c, c->pass != CLB_FORWARD, &p.e);
  if (!w->status) w->status = clb_graph_lists(p.e.graph, &p.senders, &p.receivers);
  if (!w->status) {
    p.n_degrees = ablation_degrees(p.d, p.degrees);
    make_data(&p);
    make_weights(&p);
    make_variants(&p);
  }
  graph_free(&p.e.g);
  free(p.splines), free(p.table);
  ablation_product_free(p.d);
}
