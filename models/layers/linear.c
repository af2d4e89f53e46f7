/* models/layers/linear.c - a map between features, with one matrix for all rows or one for each
   species, of atoms or of edges. */
#include <stdlib.h>
#include <string.h>

#include "kernels/linear/host/linear.h"
#include "models/layers/kinds.h"

clb_status clb_linear_add(clb_network *n, clb_linear *p, int from, int to, int64_t weights) {
  if (p->n == CLB_MAX_TERMS)
    return clb_fail(n->error, CLB_ERROR_ARGUMENT, "a linear map has more than %d matrices",
                    CLB_MAX_TERMS);
  p->block[p->n++] = (clb_block){from, to, weights};
  return CLB_OK;
}

static int64_t matrices(const clb_network *n, const clb_layer *y) {
  const clb_linear *p = y->parameters;
  return p->by_species ? clb_species_count(n, y->in[CLB_LINEAR_PAIRS]) : 1;
}

/* Numbers of one matrix. */
static int64_t count_of(const clb_network *n, const clb_layer *y, const clb_block *k) {
  return (int64_t)n->array[y->in[0]]->irreps.term[k->from].mul *
         n->array[y->out[0]]->irreps.term[k->to].mul;
}

clb_status clb_linear_make_rows(clb_network *n, clb_layer *y) {
  clb_linear *p = y->parameters;
  const clb_irreps *out = &n->array[y->out[0]]->irreps;
  const int64_t many = matrices(n, y);
  int64_t row = 0, to, at = 0;
  for (int b = 0; b < p->n; b++) row += count_of(n, y, &p->block[b]);
  clb_status s = clb_network_reserve(n, many * row, &to);
  for (int b = 0; b < p->n && !s; b++) {
    clb_block *k = &p->block[b];
    const int64_t count = count_of(n, y, k), columns = many > 1 ? out->term[k->to].mul : count;
    for (int64_t i = 0; i < count / columns * many && !s; i++)
      s = clb_network_copy_weights(n, to + i % many * row + at + i / many * columns,
                                   k->weights + i * columns, columns);
    k->weights = to + at;
    at += count;
  }
  return s;
}

/* ---- ops ---- */

/* The map's matrices lie anywhere in the network's weights, from `weights` on. */
clb_status clb_linear_describe(clb_network *n, const clb_layer *y, clb_linear_problem *lp) {
  clb_linear *p = y->parameters;
  int64_t end = 0;
  *lp = (clb_linear_problem){.in = n->array[y->in[0]]->irreps,
                             .out = n->array[y->out[0]]->irreps,
                             .layout_in = CLB_IR_MUL,
                             .layout_out = CLB_IR_MUL,
                             .weights = p->by_species ? CLB_LINEAR_BY_SPECIES : CLB_LINEAR_ONE_ROW,
                             .n_species = (int32_t)matrices(n, y),
                             .gradients = CLB_OPERAND_X,
                             .incoming = CLB_OPERAND_X,
                             .n_paths = p->n};
  p->weights = p->n ? p->block[0].weights : 0;
  for (int b = 0; b < p->n; b++)
    if (p->block[b].weights < p->weights) p->weights = p->block[b].weights;
  for (int b = 0; b < p->n; b++) {
    const clb_block *k = &p->block[b];
    const int64_t at = k->weights - p->weights, last = at + count_of(n, y, k);
    lp->path[b] = (clb_linear_path){k->from, k->to, (int32_t)at, 0, 1};
    end = last > end ? last : end;
  }
  if (end > INT32_MAX)
    return clb_fail(n->error, CLB_ERROR_UNSUPPORTED, "its weights spread over %lld numbers; %d fit",
                    (long long)end, INT32_MAX);
  lp->n_weights = (int32_t)end;
  return CLB_OK;
}

clb_status clb_linear_transpose(clb_network *n, clb_layer *y) {
  clb_linear *p = y->parameters;
  int64_t all = 0;
  for (int b = 0; b < p->n; b++) all += count_of(n, y, &p->block[b]);
  if (all > INT32_MAX) return CLB_OK;
  const clb_status s = clb_network_reserve(n, matrices(n, y) * all, &p->transposed);
  if (s) return s;
  double *to = n->weights + p->transposed;
  for (int64_t m = 0; m < matrices(n, y); m++)
    for (int b = 0; b < p->n; b++) {
      const clb_block *k = &p->block[b];
      const double *from = n->weights + k->weights + m * all;
      const int rows = n->array[y->in[0]]->irreps.term[k->from].mul,
                columns = n->array[y->out[0]]->irreps.term[k->to].mul;
      for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++) *to++ = from[(int64_t)r * columns + c];
    }
  p->transposes = true;
  return CLB_OK;
}

void clb_linear_turn(const clb_network *n, const clb_layer *y, clb_linear_problem *lp) {
  const clb_linear *p = y->parameters;
  const clb_irreps in = lp->in;
  lp->in = lp->out;
  lp->out = in;
  lp->n_weights = 0;
  for (int b = 0; b < p->n; b++) {
    const clb_block *k = &p->block[b];
    lp->path[b] = (clb_linear_path){k->to, k->from, lp->n_weights, 0, 1};
    lp->n_weights += (int32_t)count_of(n, y, k);
  }
}

/* Passes in which the layer adds, or overwrites. Tangents are mapped as values are, and adjoints as
   gradients. */
static unsigned passes_of(const clb_network *n, const clb_layer *y, bool adds) {
  unsigned passes = 0;
  for (int i = 0; i < n->n_steps; i++) {
    const clb_sweep sweep = n->step[i].sweep;
    const bool back = sweep == CLB_SWEEP_BACKWARD || sweep == CLB_SWEEP_REVERSE;
    if (n->layer[n->step[i].layer] == y && (n->step[i].adds & 1) == adds)
      passes |= CLB_PASS_BIT(back ? CLB_BACKWARD : CLB_FORWARD);
  }
  return passes;
}

static clb_status make(clb_network *n, clb_problem *problem, unsigned passes, clb_op **map) {
  clb_op_destroy(map);
  return passes ? clb_linear_make_by_library(n->ctx, problem, passes, map) : CLB_OK;
}

clb_status clb_linear_make_maps(clb_network *n, clb_layer *y, const unsigned wanted[2]) {
  enum { FORTH = CLB_PASS_BIT(CLB_FORWARD), BACK = CLB_PASS_BIT(CLB_BACKWARD) };
  clb_linear *p = y->parameters;
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_LINEAR;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  clb_status s = CLB_OK;
  for (int adds = 0; adds < 2 && !s; adds++) {
    const unsigned passes = p->passes[adds] | wanted[adds];
    if (passes == p->passes[adds]) continue;
    problem->accumulate = adds;
    s = clb_linear_describe(n, y, &problem->linear);
    if (!s) s = make(n, problem, p->transposes ? passes & FORTH : passes, &p->map[adds]);
    if (!s && p->transposes) {
      clb_linear_turn(n, y, &problem->linear);
      s = make(n, problem, passes & BACK ? FORTH : 0, &p->back[adds]);
    }
    p->passes[adds] = s ? 0 : passes;
  }
  free(problem);
  return s;
}

/* For the order of layers as it is. */
static clb_status make_maps(clb_network *n, clb_layer *y) {
  return clb_linear_make_maps(n, y, (const unsigned[]){passes_of(n, y, 0), passes_of(n, y, 1)});
}

/* Its matrices, or those transposed. */
static clb_rows weights_at(const clb_network *n, const clb_layer *y, int64_t at) {
  const clb_linear *p = y->parameters;
  return (clb_rows){n->device_weights, at, CLB_DENSE,
                    p->by_species ? clb_row_species(n, y->in[CLB_LINEAR_PAIRS]) : NULL};
}

/* Ghosts have no input; `exchange` sets their rows of the output. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows in = clb_value(n, y->in[0]), out = clb_value(n, y->out[0]);
  return clb_linear_run(p->map[adds & 1], CLB_FORWARD, rows,
                        (const clb_rows[]){in, weights_at(n, y, p->weights), out});
}

clb_status clb_linear_layer_backward(clb_network *n, const clb_layer *y, unsigned adds,
                                     clb_rows g_in) {
  const clb_linear *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows g_out = clb_gradient(n, y->out[0]);
  if (!g_in.buffer) return CLB_OK; /* of species alone */
  if (p->transposes)
    return clb_linear_run(p->back[adds & 1], CLB_FORWARD, rows,
                          (const clb_rows[]){g_out, weights_at(n, y, p->transposed), g_in});
  return clb_linear_run(
      p->map[adds & 1], CLB_BACKWARD, rows,
      (const clb_rows[]){clb_value(n, y->in[0]), weights_at(n, y, p->weights), g_out, g_in, {0}});
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  return clb_linear_layer_backward(n, y, adds, clb_gradient(n, y->in[0]));
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_LINEAR;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->accumulate = 1;
  clb_status s = clb_linear_describe(n, y, &problem->linear);
  problem->linear.gradients = CLB_OPERAND_W;
  if (!s)
    s = clb_linear_make_by_library(n->ctx, problem,
                                   CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD),
                                   &y->derivatives);
  free(problem);
  return s;
}

static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_linear *p = y->parameters;
  const clb_rows w = weights_at(n, y, p->weights), x = clb_value(n, y->in[0]),
                 a = clb_tangent(n, y->in[0]);
  const int64_t rows = clb_row_count(n, y->in[0]);
  clb_status s = clb_linear_run(p->map[adds & 1], CLB_FORWARD, rows,
                                (const clb_rows[]){a, w, clb_tangent(n, y->out[0])});
  return s || !bends ? s
                     : clb_linear_run(y->derivatives, CLB_DOUBLE_BACKWARD, rows,
                                      (const clb_rows[]){x,
                                                         w,
                                                         clb_gradient(n, y->out[0]),
                                                         a,
                                                         {0},
                                                         {0},
                                                         clb_weight_gradient(n, w),
                                                         {0}});
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear *p = y->parameters;
  const clb_rows w = weights_at(n, y, p->weights), x = clb_value(n, y->in[0]),
                 g = clb_adjoint(n, y->out[0]), g_x = clb_adjoint(n, y->in[0]);
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_status s = clb_linear_run(y->derivatives, CLB_BACKWARD, rows,
                                      (const clb_rows[]){x, w, g, {0}, clb_weight_gradient(n, w)});
  return s || !g_x.buffer ? s
                          : clb_linear_run(p->map[adds & 1], CLB_BACKWARD, rows,
                                           (const clb_rows[]){x, w, g, g_x, {0}});
}

/* ---- pruning ---- */

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  const clb_linear *p = y->parameters;
  for (int b = 0; b < p->n; b++)
    if (clb_needed_in(n, y->out[0], needed, p->block[b].to))
      clb_need(n, y->in[0], needed, p->block[b].from);
  if (y->in[CLB_LINEAR_PAIRS] >= 0) clb_need(n, y->in[CLB_LINEAR_PAIRS], needed, -1);
}

/* Drops rows and columns of a matrix; the others go to an offset at or before it. Returns the end
   of what it was. */
static int64_t shrink(clb_network *n, const clb_layer *y, clb_needed needed, const clb_block *k,
                      int64_t *to) {
  const clb_irreps *in = &n->array[y->in[0]]->irreps, *out = &n->array[y->out[0]]->irreps;
  const bool *rows = needed[y->in[0]] + clb_first_channel(in, k->from),
             *columns = needed[y->out[0]] + clb_first_channel(out, k->to);
  int64_t from = k->weights;
  for (int i = 0; i < in->term[k->from].mul; i++)
    for (int64_t s = 0; s < matrices(n, y); s++)
      for (int c = 0; c < out->term[k->to].mul; c++, from++)
        if (rows[i] && columns[c]) n->weights[(*to)++] = n->weights[from];
  return from;
}

/* Matrices that follow each other do so afterwards, so that they can still be merged. */
static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  clb_linear *p = y->parameters;
  int64_t end = -1, to = 0;
  int count = 0;
  for (int b = 0; b < p->n; b++) {
    clb_block k = p->block[b];
    if (k.weights != end) to = k.weights;
    const int64_t at = to;
    end = shrink(n, y, needed, &k, &to);
    k = (clb_block){clb_needed_term(n, y->in[0], needed, k.from),
                    clb_needed_term(n, y->out[0], needed, k.to), at};
    if (k.from >= 0 && k.to >= 0) p->block[count++] = k;
  }
  p->n = count;
}

static void free_ops(void *parameters) {
  clb_linear *p = parameters;
  for (int i = 0; i < 2; i++) {
    clb_op_destroy(&p->map[i]);
    clb_op_destroy(&p->back[i]);
  }
}

const clb_layer_kind clb_linear_kind = {.reads_in = 1U << CLB_LINEAR_PAIRS,
                                        .sums = true,
                                        .bends = CLB_BENDS_WEIGHTS,
                                        .build = make_maps,
                                        .reorder = make_maps,
                                        .forward = forward,
                                        .backward = backward,
                                        .need = need,
                                        .keep = keep,
                                        .derive = derive,
                                        .along = along,
                                        .reverse = reverse,
                                        .free_ops = free_ops};
