/* models/layers/convolution.c - the sum over edges of products of senders' features, harmonics and
   weights of paths. */
#include <stdlib.h>

#include "models/layers/kinds.h"
#include "src/problem/irreps.h"

static bool tabulated(const clb_layer *y) { return y->in[CLB_CONVOLUTION_LENGTHS] >= 0; }

static bool has_features(const clb_layer *y) { return y->in[CLB_CONVOLUTION_X] >= 0; }
static const clb_irreps *features_of(const clb_network *n, const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  return has_features(y) ? &n->array[y->in[CLB_CONVOLUTION_X]]->irreps : &p->ones;
}
static bool features_move(const clb_network *n, const clb_layer *y) {
  return has_features(y) && n->array[y->in[CLB_CONVOLUTION_X]]->moves;
}
static clb_rows features(const clb_network *n, const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  return has_features(y) ? clb_all_values(n, y->in[CLB_CONVOLUTION_X])
                         : (clb_rows){n->device_weights, p->ones_at, CLB_SAME_ROW, NULL};
}

static clb_convolution_table grid_of(const clb_network *n, const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  return tabulated(y) ? clb_radial_grid(n, &p->function) : (clb_convolution_table){0};
}

clb_status clb_convolution_describe(clb_network *n, const clb_layer *y, bool vectors,
                                    clb_problem *problem) {
  const clb_convolution_layer *p = y->parameters;
  const clb_convolution_table grid = grid_of(n, y);
  const clb_convolution_desc d = {
      .product = {.instructions = p->path,
                  .n_instructions = p->n_paths,
                  .irrep_normalization = CLB_IRREP_COMPONENT,
                  .path_normalization = CLB_PATH_NONE,
                  .layout_x = CLB_IR_MUL,
                  .layout_y = CLB_IR_MUL,
                  .layout_z = p->merged ? CLB_MERGED : CLB_IR_MUL,
                  .gradients =
                      (features_move(n, y) ? CLB_OPERAND_X : 0) | CLB_OPERAND_Y | CLB_OPERAND_W,
                  .storage = n->type,
                  .arithmetic = n->type},
      .vectors = vectors,
      .normalization = CLB_COMPONENT,
      .atomics = n->atomics,
      .scale = p->scale,
      .knots = grid.knots,
      .first_knot = grid.first,
      .last_knot = grid.last};
  clb_tensor_product_problem *product = &problem->tensor_product;
  product->x = *features_of(n, y);
  product->y = n->array[y->in[CLB_CONVOLUTION_HARMONICS]]->irreps;
  product->z = p->message;
  clb_status s = clb_tensor_product_fill(&d.product, product, n->error);
  return s ? s : clb_convolution_fill(n->ctx, &d, problem);
}

static clb_status set_table(clb_network *n, const clb_convolution_layer *p) {
  const clb_convolution_table t = clb_radial_grid(n, &p->function);
  const size_t values = (size_t)(t.knots * p->n_weights),
               all = values + (size_t)(clb_convolution_table_rows(&t) * p->n_weights);
  double *x = malloc((all ? all : 1) * sizeof *x);
  clb_status s = x ? CLB_OK : clb_network_no_memory(n);
  if (!s) s = clb_radial_table(n, &p->function, &t, &(clb_edge_species){0}, x, x + values);
  if (!s) s = clb_convolution_set_table(p->op, x);
  free(x);
  return s;
}

static clb_status tables(clb_network *n, clb_layer *y) {
  return tabulated(y) ? set_table(n, y->parameters) : CLB_OK;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_convolution_layer *p = y->parameters;
  const clb_convolution_table grid = grid_of(n, y);
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  clb_status s = clb_convolution_describe(n, y, p->framed, problem);
  if (!s)
    s = clb_convolution_make(n->ctx, problem, &grid,
                             CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD), NULL, &p->op);
  free(problem);
  if (!s) s = tables(n, y);
  if (!s && p->framed) {
    clb_convolution_share(p->op, &p->shared);
    if (!clb_convolution_reads_harmonics(p->op)) y->in[CLB_CONVOLUTION_HARMONICS] = -1;
  }
  return s;
}

/* What it reads of an edge's direction: its frame, or harmonics; and for weights: themselves, or
   with a table lengths, which a convolution in frames shares with others. */
static int directions(const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  return y->in[p->framed ? CLB_CONVOLUTION_FRAMES : CLB_CONVOLUTION_HARMONICS];
}
static int weights(const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  return !tabulated(y) ? y->in[CLB_CONVOLUTION_WEIGHTS]
         : p->framed   ? -1
                       : y->in[CLB_CONVOLUTION_LENGTHS];
}

static void share(clb_network *n, const clb_layer *y) {
  clb_convolution_layer *p = y->parameters;
  p->shared = (clb_convolution_shared){.frames = clb_value(n, y->in[CLB_CONVOLUTION_FRAMES]),
                                       .harmonics = clb_value(n, y->in[CLB_CONVOLUTION_HARMONICS]),
                                       .lengths = clb_value(n, y->in[CLB_CONVOLUTION_LENGTHS])};
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_convolution_layer *p = y->parameters;
  (void)adds;
  share(n, y);
  return clb_convolution_forward(p->op, n->graph, features(n, y), clb_value(n, directions(y)),
                                 clb_value(n, weights(y)),
                                 clb_value(n, y->out[CLB_CONVOLUTION_MESSAGE]), n->workspace);
}

/* Gradients by directions; in frames, torques after those of convolutions before this one. */
static clb_rows by_directions(const clb_network *n, const clb_layer *y) {
  const clb_convolution_layer *p = y->parameters;
  clb_rows g = clb_gradient(n, directions(y));
  if (!p->framed) return g;
  g.stride = CLB_DENSE;
  g.offset += p->edges->given * n->at.n_edges * p->edges->columns;
  p->edges->given += clb_convolution_roles(p->op, CLB_BACKWARD);
  return g;
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_convolution_layer *p = y->parameters;
  const int x = y->in[CLB_CONVOLUTION_X];
  (void)adds;
  share(n, y);
  return clb_convolution_backward(
      p->op, n->graph, features(n, y), clb_value(n, directions(y)), clb_value(n, weights(y)),
      clb_gradient(n, y->out[CLB_CONVOLUTION_MESSAGE]), clb_all_gradients(n, x),
      by_directions(n, y), clb_gradient(n, weights(y)), n->workspace);
}

static clb_status workspace(clb_network *n, clb_layer *y, clb_pass pass, uint64_t *min,
                            uint64_t *max) {
  const clb_convolution_layer *p = y->parameters;
  clb_op *const ops[][2] = {[CLB_FORWARD] = {p->op, NULL},
                            [CLB_BACKWARD] = {p->op, y->derivatives},
                            [CLB_DOUBLE_BACKWARD] = {p->along, p->bent}};
  clb_status s = CLB_OK;
  *min = *max = 0;
  for (int i = 0; i < 2 && !s; i++) {
    uint64_t least = 0, most = 0;
    if (ops[pass][i]) s = clb_convolution_workspace(ops[pass][i], pass, n->graph, &least, &most);
    if (least > *min) *min = least;
    if (most > *max) *max = most;
  }
  return s;
}

/* ---- training: without tables and frames; harmonics have no parameters ---- */

static clb_status derive_one(clb_network *n, const clb_layer *y, int gradients, bool adds,
                             clb_pass pass, clb_op **op) {
  const clb_convolution_table none = {0};
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  clb_status s = clb_convolution_describe(n, y, false, problem);
  problem->accumulate = adds;
  problem->tensor_product.gradients = gradients;
  if (!features_move(n, y)) problem->tensor_product.incoming &= ~CLB_OPERAND_X;
  if (!s) s = clb_convolution_make(n->ctx, problem, &none, CLB_PASS_BIT(pass), NULL, op);
  free(problem);
  return s;
}

static clb_status derive(clb_network *n, clb_layer *y) {
  clb_convolution_layer *p = y->parameters;
  const int both = (has_features(y) ? CLB_OPERAND_X : 0) | CLB_OPERAND_W;
  clb_status s = derive_one(n, y, both, true, CLB_BACKWARD, &y->derivatives);
  if (!s) s = derive_one(n, y, CLB_OPERAND_W, false, CLB_BACKWARD, &p->again);
  if (!s) s = derive_one(n, y, CLB_OPERAND_Z, false, CLB_DOUBLE_BACKWARD, &p->along);
  return s ? s : derive_one(n, y, both, false, CLB_DOUBLE_BACKWARD, &p->bent);
}

static clb_status again_backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_convolution_layer *p = y->parameters;
  const int w = y->in[CLB_CONVOLUTION_WEIGHTS];
  (void)adds;
  return clb_convolution_backward(p->again, n->graph, features(n, y),
                                  clb_value(n, y->in[CLB_CONVOLUTION_HARMONICS]), clb_value(n, w),
                                  clb_gradient(n, y->out[CLB_CONVOLUTION_MESSAGE]), (clb_rows){0},
                                  (clb_rows){0}, clb_gradient(n, w), n->workspace);
}

static clb_status run_twice(clb_network *n, const clb_layer *y, clb_op *op, clb_rows d_x,
                            clb_rows d_w, clb_rows d_g) {
  const int x = y->in[CLB_CONVOLUTION_X], h = y->in[CLB_CONVOLUTION_HARMONICS],
            w = y->in[CLB_CONVOLUTION_WEIGHTS], z = y->out[CLB_CONVOLUTION_MESSAGE];
  return clb_convolution_double_backward(
      op, n->graph, features(n, y), clb_value(n, h), clb_value(n, w), clb_gradient(n, z),
      clb_all_tangents(n, x), clb_tangent(n, h), clb_tangent(n, w), d_x, (clb_rows){0}, d_w, d_g,
      n->workspace);
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_convolution_layer *p = y->parameters;
  (void)adds, (void)bends;
  return run_twice(n, y, p->along, (clb_rows){0}, (clb_rows){0},
                   clb_tangent(n, y->out[CLB_CONVOLUTION_MESSAGE]));
}

/* Adjoints of weights are overwritten, those of x may be added to. */
static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_convolution_layer *p = y->parameters;
  const int x = y->in[CLB_CONVOLUTION_X], w = y->in[CLB_CONVOLUTION_WEIGHTS];
  const clb_rows d_x = clb_all_adjoints(n, x), d_w = clb_adjoint(n, w);
  const bool before = n->graph->adds;
  n->graph->adds |= adds >> CLB_CONVOLUTION_X & 1;
  const clb_status s = run_twice(n, y, p->bent, d_x, d_w, (clb_rows){0});
  n->graph->adds = before;
  return s ? s
           : clb_convolution_backward(y->derivatives, n->graph, features(n, y),
                                      clb_value(n, y->in[CLB_CONVOLUTION_HARMONICS]),
                                      clb_value(n, w),
                                      clb_adjoint(n, y->out[CLB_CONVOLUTION_MESSAGE]), d_x,
                                      (clb_rows){0}, d_w, n->workspace);
}

/* ---- pruning: path by path ---- */

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  const clb_convolution_layer *p = y->parameters;
  const int message = y->out[CLB_CONVOLUTION_MESSAGE], w = y->in[CLB_CONVOLUTION_WEIGHTS];
  for (int q = 0, at = 0; q < p->n_paths; q++) {
    const int channels = features_of(n, y)->term[p->path[q].in1].mul;
    if (clb_needed_in(n, message, needed, p->path[q].out)) {
      clb_need(n, message, needed, p->path[q].out);
      if (has_features(y)) clb_need(n, y->in[CLB_CONVOLUTION_X], needed, p->path[q].in1);
      clb_need(n, y->in[CLB_CONVOLUTION_HARMONICS], needed, -1);
      for (int c = 0; c < channels; c++) needed[w][at + c] = true;
    }
    at += channels;
  }
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  clb_convolution_layer *p = y->parameters;
  const int message = y->out[CLB_CONVOLUTION_MESSAGE];
  int64_t mul[CLB_MAX_TERMS];
  int count = 0;
  p->n_weights = 0;
  for (int q = 0; q < p->n_paths; q++) {
    clb_instruction path = p->path[q];
    const int channels = features_of(n, y)->term[path.in1].mul;
    if (has_features(y)) path.in1 = clb_needed_term(n, y->in[CLB_CONVOLUTION_X], needed, path.in1);
    path.out = clb_needed_term(n, message, needed, path.out);
    if (path.out < 0) continue;
    p->path[count++] = path;
    p->n_weights += channels;
  }
  p->n_paths = count;
  for (int t = 0; t < p->message.n; t++) mul[t] = clb_needed_in(n, message, needed, t);
  clb_irreps_shrink(&p->message, mul);
}

static void free_ops(void *parameters) {
  clb_convolution_layer *p = parameters;
  clb_op **all[] = {&p->op, &p->along, &p->bent, &p->again};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_op_destroy(all[i]);
}

enum { ALL = (1 << CLB_CONVOLUTION_INS) - 1, FRAMES = 1 << CLB_CONVOLUTION_FRAMES };
const clb_layer_kind clb_convolution_kind = {.reads_in = ALL,
                                             .overwrites = ALL & ~FRAMES,
                                             .senders = 1U << CLB_CONVOLUTION_X,
                                             .build = build,
                                             .tables = tables,
                                             .forward = forward,
                                             .backward = backward,
                                             .workspace = workspace,
                                             .late = true,
                                             .derive = derive,
                                             .again_backward = again_backward,
                                             .along = along,
                                             .reverse = reverse,
                                             .need = need,
                                             .keep = keep,
                                             .free_ops = free_ops};
