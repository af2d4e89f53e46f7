/* models/layers/atoms/linear_group.c - maps of one array, one of which may have a matrix for each
   species, and the gate that the array comes out of: where rows are few one launch does it all,
   else one after the other runs.  Not of networks that train. */
#include <stdlib.h>

#include "kernels/layers/host/layer_call.h"
#include "kernels/linear/host/linear.h"
#include "models/layers/kinds.h"

/* One of the maps as a layer. */
static clb_layer part_of(const clb_layer *y, int number) {
  clb_linear_group *p = y->parameters;
  clb_layer part = *y;
  part.kind = &clb_linear_kind;
  part.parameters = &p->of[number];
  if (y->kind == &clb_gated_kind) part.in[0] = y->work;
  part.out[0] = y->out[number];
  part.out[1] = -1;
  return part;
}

static clb_layer gate_of(const clb_layer *y) {
  clb_layer part = *y;
  part.kind = &clb_gate_kind;
  part.parameters = &((clb_linear_group *)y->parameters)->gate;
  part.out[0] = y->work;
  return part;
}

/* A linear layer becomes a group of itself alone. */
static clb_status make_group(clb_network *n, clb_layer *y) {
  if (y->kind != &clb_linear_kind) return CLB_OK;
  clb_linear_group *p = calloc(1, sizeof *p);
  if (!p) return clb_network_no_memory(n);
  p->of[p->n++] = *(const clb_linear *)y->parameters;
  free(y->parameters);
  y->parameters = p;
  y->kind = &clb_linear_group_kind;
  return CLB_OK;
}

clb_status clb_linear_join(clb_network *n, const clb_layer *first, clb_layer *second) {
  const clb_status s = make_group(n, second);
  clb_linear_group *p = second->parameters;
  if (s) return s;
  p->of[p->n++] = p->of[0];
  p->of[0] = *(const clb_linear *)first->parameters;
  second->out[1] = second->out[0];
  second->out[0] = first->out[0];
  return CLB_OK;
}

clb_status clb_linear_join_gate(clb_network *n, const clb_layer *gate, clb_layer *y) {
  const clb_status s = make_group(n, y);
  if (s) return s;
  ((clb_linear_group *)y->parameters)->gate = *(const clb_gate *)gate->parameters;
  y->kind = &clb_gated_kind;
  y->work = y->in[0];
  y->in[0] = gate->in[0];
  return CLB_OK;
}

/* ---- all as one problem ---- */

/* Adds terms, whose rows are a second array's. */
static void append(clb_irreps *to, const clb_irreps *more, int32_t *split) {
  *split = to->n;
  for (int i = 0; i < more->n; i++) to->term[to->n++] = more->term[i];
  to->dim += more->dim;
}

/* Adds a map from the same array (outs), or to the same one; `forward`: numbers from the first
   one's weights to those of the second. */
static void join(clb_linear_problem *to, const clb_linear_problem *more, bool outs,
                 int64_t forward) {
  int32_t in = 0, out = 0;
  if (outs) append(&to->out, &more->out, &to->out_split), out = to->out_split;
  else append(&to->in, &more->in, &to->in_split), in = to->in_split;
  const int32_t earlier = forward < 0 ? (int32_t)-forward : 0;
  for (int i = 0; i < to->n_paths; i++) to->path[i].weight_at += earlier;
  to->n_weights += earlier;
  for (int i = 0; i < more->n_paths; i++) {
    clb_linear_path path = more->path[i];
    path.in += in;
    path.out += out;
    path.weight_at += (int32_t)(forward + earlier);
    to->path[to->n_paths++] = path;
  }
  const int32_t end = more->n_weights + (int32_t)(forward + earlier);
  if (end > to->n_weights) to->n_weights = end;
}

/* Adds the second map. */
static clb_status describe_second(clb_network *n, const clb_layer *y, bool back,
                                  clb_linear_problem *lp) {
  clb_linear_group *all = y->parameters;
  clb_linear_problem *more = calloc(1, sizeof *more);
  const clb_layer b = part_of(y, 1);
  const clb_linear *p = &all->of[0], *q = &all->of[1];
  clb_status s = more ? clb_linear_describe(n, &b, more) : clb_network_no_memory(n);
  const int64_t at[] = {back ? p->transposed : p->weights, back ? q->transposed : q->weights};
  if (!s && back) clb_linear_turn(n, &b, more);
  if (!s) {
    if (at[1] < at[0]) all->at[back] = at[1];
    if (q->by_species) all->row[back] = more->n_weights;
    join(lp, more, !back, at[1] - at[0]);
    lp->weights = p->by_species || q->by_species ? CLB_LINEAR_BY_SPECIES : CLB_LINEAR_ONE_ROW;
    lp->n_species = p->by_species || q->by_species ? (int32_t)n->n_species : 1;
    lp->one_matrix = p->by_species ? 2 : q->by_species ? 1 : 0;
  }
  free(more);
  return s;
}

static clb_status describe(clb_network *n, const clb_layer *y, bool back, bool gated,
                           clb_linear_problem *lp) {
  clb_linear_group *all = y->parameters;
  const clb_layer a = part_of(y, 0);
  const clb_linear *p = &all->of[0];
  clb_status s = clb_linear_describe(n, &a, lp);
  if (s) return s;
  if (back) clb_linear_turn(n, &a, lp);
  all->at[back] = back ? p->transposed : p->weights;
  all->row[back] = p->by_species ? lp->n_weights : 0;
  if (all->n > 1) s = describe_second(n, y, back, lp);
  if (!gated) return s;
  lp->gated = back ? CLB_LINEAR_GATE_BACKWARD : CLB_LINEAR_GATED;
  lp->gate = all->gate.op->problem.gate;
  return s;
}

static clb_status make_few(clb_network *n, const clb_layer *y, bool back, bool gated, unsigned adds,
                           clb_linear_few **few) {
  clb_problem *problem = *few ? NULL : calloc(1, sizeof *problem);
  if (!problem) return *few ? CLB_OK : clb_network_no_memory(n);
  problem->kind = CLB_LINEAR;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->accumulate = (int32_t)adds;
  clb_status s = describe(n, y, back, gated, &problem->linear);
  if (!s) s = clb_linear_few_create(n->ctx, problem, CLB_PASS_BIT(CLB_FORWARD), few);
  free(problem);
  return s;
}

/* All that a step launches where rows are few. */
static clb_status make_launch(clb_network *n, const clb_layer *y, bool back, unsigned adds) {
  clb_linear_group *p = y->parameters;
  const bool gated = y->kind == &clb_gated_kind;
  if (back) return make_few(n, y, true, gated, adds & 1, &p->back[adds & 1]);
  const clb_status s = make_few(n, y, false, false, adds & 3, &p->forth[adds & 3]);
  return s || !gated ? s : make_few(n, y, false, true, adds & 3, &p->gated[adds & 3]);
}

/* Alone, the second adds to the gradient that the first one has written. */
static clb_status make_maps(clb_network *n, clb_layer *y) {
  enum { FORTH = CLB_PASS_BIT(CLB_FORWARD), BACK = CLB_PASS_BIT(CLB_BACKWARD) };
  clb_linear_group *p = y->parameters;
  unsigned wanted[CLB_LINEAR_MAPS][2] = {{0}};
  clb_layer gate = gate_of(y);
  clb_status s = y->kind == &clb_gated_kind && !p->gate.op ? clb_gate_kind.build(n, &gate) : CLB_OK;
  for (int i = 0; i < n->n_steps && !s; i++) {
    const clb_step *step = &n->step[i];
    if (n->layer[step->layer] != y) continue;
    const bool back = step->sweep == CLB_SWEEP_BACKWARD;
    for (int k = 0; k < p->n; k++)
      wanted[k][back ? k || step->adds & 1 : step->adds >> k & 1] |= back ? BACK : FORTH;
    s = make_launch(n, y, back, step->adds);
  }
  for (int k = 0; k < p->n && !s; k++) {
    clb_layer part = part_of(y, k);
    s = clb_linear_make_maps(n, &part, wanted[k]);
  }
  return s;
}

/* ---- passes ---- */

static clb_operand operand(const clb_network *n, int array, clb_rows rows, bool written, int of) {
  return (clb_operand){.name = "rows",
                       .rows = rows,
                       .columns = n->array[array]->irreps.dim,
                       .written = written,
                       .of = of};
}

static clb_operand weights(const clb_network *n, const clb_linear_group *p, bool back) {
  const int64_t row = p->row[back];
  return (clb_operand){.name = "weights",
                       .rows = {n->device_weights, p->at[back], row ? row : CLB_SAME_ROW,
                                row ? clb_row_species(n, -1) : NULL},
                       .columns = 1,
                       .one_row = !row,
                       .indexed = row,
                       .of = CLB_OPERAND_W};
}

/* Many rows go through the gate first, as each tile would do that again. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear_group *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  clb_linear_few *few = p->forth[adds & 3];
  for (int k = 0; k < p->n; k++)
    if (!clb_linear_has_few(p->of[k].map[adds >> k & 1], CLB_FORWARD, rows)) few = NULL;
  clb_linear_few *gated = few ? p->gated[adds & 3] : NULL;
  const bool through = gated && !clb_linear_few_are_many(gated, rows),
             before = y->kind == &clb_gated_kind && !through;
  if (through) few = gated;
  clb_layer gate = gate_of(y);
  clb_status s = before ? clb_gate_kind.forward(n, &gate, 0) : CLB_OK;
  if (few && !s) {
    const int in = before ? y->work : y->in[0];
    clb_operand all[4] = {operand(n, in, clb_value(n, in), false, CLB_OPERAND_X),
                          weights(n, p, false)};
    for (int k = 0; k < p->n; k++)
      all[2 + k] = operand(n, y->out[k], clb_value(n, y->out[k]), true, CLB_OPERAND_Z);
    return clb_linear_few_run(few, CLB_FORWARD, rows, all, 2 + p->n);
  }
  for (int k = 0; k < p->n && !s; k++) {
    clb_layer part = part_of(y, k);
    s = clb_linear_kind.forward(n, &part, adds >> k & 1);
  }
  return s;
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear_group *p = y->parameters;
  const bool gated = y->kind == &clb_gated_kind;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows g_in = clb_gradient(n, y->in[0]);
  if (!g_in.buffer) return CLB_OK; /* of species alone */
  bool few = p->back[adds & 1];
  for (int k = 0; k < p->n; k++)
    few = few && clb_linear_has_few(p->of[k].back[k || adds & 1], CLB_FORWARD, rows);
  if (few) {
    int count = 0;
    clb_operand all[5];
    all[count++] = operand(n, y->out[0], clb_gradient(n, y->out[0]), false, CLB_OPERAND_X);
    all[count++] = weights(n, p, true);
    all[count++] = operand(n, y->in[0], g_in, true, CLB_OPERAND_Z);
    if (p->n > 1)
      all[count++] = operand(n, y->out[1], clb_gradient(n, y->out[1]), false, CLB_OPERAND_X);
    if (gated) all[count++] = operand(n, y->in[0], clb_value(n, y->in[0]), false, CLB_OPERAND_Z);
    return clb_linear_few_run(p->back[adds & 1], CLB_FORWARD, rows, all, count);
  }
  const clb_rows g = gated ? clb_value(n, y->work) : g_in;
  clb_status s = CLB_OK;
  for (int k = 0; k < p->n && !s; k++) {
    const clb_layer part = part_of(y, k);
    s = clb_linear_layer_backward(n, &part, k ? 1 : adds & 1, g);
  }
  return s || !gated ? s
                     : clb_public_op_run(p->gate.op, CLB_GATE, CLB_BACKWARD, rows,
                                         (const clb_rows[]){clb_value(n, y->in[0]), g, g_in});
}

static void free_ops(void *parameters) {
  clb_linear_group *p = parameters;
  clb_gate_kind.free_ops(&p->gate);
  for (int k = 0; k < p->n; k++) clb_linear_kind.free_ops(&p->of[k]);
  for (int i = 0; i < 4; i++) {
    clb_linear_few_destroy(&p->forth[i]);
    clb_linear_few_destroy(&p->gated[i]);
  }
  for (int i = 0; i < 2; i++) clb_linear_few_destroy(&p->back[i]);
}

const clb_layer_kind clb_linear_group_kind = {.sums = true,
                                              .build = make_maps,
                                              .reorder = make_maps,
                                              .forward = forward,
                                              .backward = backward,
                                              .free_ops = free_ops};

const clb_layer_kind clb_gated_kind = {.reads_in = 1,
                                       .overwrites = 1,
                                       .sums = true,
                                       .build = make_maps,
                                       .reorder = make_maps,
                                       .forward = forward,
                                       .backward = backward,
                                       .free_ops = free_ops};
