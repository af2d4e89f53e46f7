/* models/layers/atoms/linear_pair.c - two maps of one array, one of which may have a matrix for
   each species: where rows are few one launch does both, else one after the other runs.  Not of
   networks that train. */
#include <stdlib.h>

#include "kernels/linear/host/linear.h"
#include "models/layers/kinds.h"

/* One of the two as a layer. */
static clb_layer part_of(const clb_layer *y, int number) {
  clb_linear_pair *p = y->parameters;
  clb_layer part = *y;
  part.kind = &clb_linear_kind;
  part.parameters = &p->of[number];
  part.out[0] = y->out[number];
  part.out[1] = -1;
  return part;
}

clb_status clb_linear_join(clb_network *n, const clb_layer *first, clb_layer *second) {
  clb_linear_pair *p = calloc(1, sizeof *p);
  if (!p) return clb_network_no_memory(n);
  p->of[0] = *(const clb_linear *)first->parameters;
  p->of[1] = *(const clb_linear *)second->parameters;
  free(second->parameters);
  second->kind = &clb_linear_pair_kind;
  second->parameters = p;
  second->out[1] = second->out[0];
  second->out[0] = first->out[0];
  return CLB_OK;
}

/* ---- both as one problem ---- */

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

static clb_status describe(clb_network *n, const clb_layer *y, bool back, clb_linear_problem *lp) {
  clb_linear_pair *both = y->parameters;
  clb_linear_problem *more = calloc(1, sizeof *more);
  const clb_layer a = part_of(y, 0), b = part_of(y, 1);
  const clb_linear *p = a.parameters, *q = b.parameters;
  clb_status s = more ? CLB_OK : clb_network_no_memory(n);
  if (!s) s = clb_linear_describe(n, &a, lp);
  if (!s) s = clb_linear_describe(n, &b, more);
  if (!s && back) {
    clb_linear_turn(n, &a, lp);
    clb_linear_turn(n, &b, more);
  }
  const int64_t at[] = {back ? p->transposed : p->weights, back ? q->transposed : q->weights};
  both->at[back] = at[0] < at[1] ? at[0] : at[1];
  both->row[back] = p->by_species ? lp->n_weights : q->by_species && more ? more->n_weights : 0;
  if (!s) join(lp, more, !back, at[1] - at[0]);
  if (!s && both->row[back]) {
    lp->weights = CLB_LINEAR_BY_SPECIES;
    lp->n_species = (int32_t)n->n_species;
    lp->one_matrix = p->by_species ? 2 : 1;
  }
  free(more);
  return s;
}

static clb_status make_few(clb_network *n, const clb_layer *y, bool back, unsigned adds) {
  clb_linear_pair *p = y->parameters;
  clb_linear_few **few = back ? &p->back[adds] : &p->forth[adds];
  clb_problem *problem = calloc(1, sizeof *problem);
  if (!problem) return clb_network_no_memory(n);
  problem->kind = CLB_LINEAR;
  problem->storage = problem->arithmetic = (int32_t)n->type;
  problem->accumulate = (int32_t)adds;
  clb_status s = *few ? CLB_OK : describe(n, y, back, &problem->linear);
  if (!s && !*few) s = clb_linear_few_create(n->ctx, problem, CLB_PASS_BIT(CLB_FORWARD), few);
  free(problem);
  return s;
}

/* Alone, the second adds to the gradient that the first one has written. */
static clb_status make_maps(clb_network *n, clb_layer *y) {
  enum { FORTH = CLB_PASS_BIT(CLB_FORWARD), BACK = CLB_PASS_BIT(CLB_BACKWARD) };
  unsigned wanted[CLB_LINEAR_MAPS][2] = {{0}};
  clb_status s = CLB_OK;
  for (int i = 0; i < n->n_steps && !s; i++) {
    const clb_step *step = &n->step[i];
    if (n->layer[step->layer] != y) continue;
    const bool back = step->sweep == CLB_SWEEP_BACKWARD;
    for (int k = 0; k < CLB_LINEAR_MAPS; k++)
      wanted[k][back ? k || step->adds & 1 : step->adds >> k & 1] |= back ? BACK : FORTH;
    s = make_few(n, y, back, step->adds & (back ? 1 : 3));
  }
  for (int k = 0; k < CLB_LINEAR_MAPS && !s; k++) {
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

static clb_operand weights(const clb_network *n, const clb_linear_pair *p, bool back) {
  const int64_t row = p->row[back];
  return (clb_operand){.name = "weights",
                       .rows = {n->device_weights, p->at[back], row ? row : CLB_SAME_ROW,
                                row ? clb_row_species(n, -1) : NULL},
                       .columns = 1,
                       .one_row = !row,
                       .indexed = row,
                       .of = CLB_OPERAND_W};
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear_pair *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_operand all[] = {operand(n, y->in[0], clb_value(n, y->in[0]), false, CLB_OPERAND_X),
                             weights(n, p, false),
                             operand(n, y->out[0], clb_value(n, y->out[0]), true, CLB_OPERAND_Z),
                             operand(n, y->out[1], clb_value(n, y->out[1]), true, CLB_OPERAND_Z)};
  bool few = p->forth[adds & 3];
  for (int k = 0; k < CLB_LINEAR_MAPS; k++)
    few = few && clb_linear_has_few(p->of[k].map[adds >> k & 1], CLB_FORWARD, rows);
  if (few) return clb_linear_few_run(p->forth[adds & 3], CLB_FORWARD, rows, all, 4);
  clb_status s = CLB_OK;
  for (int k = 0; k < CLB_LINEAR_MAPS && !s; k++) {
    clb_layer part = part_of(y, k);
    s = clb_linear_kind.forward(n, &part, adds >> k & 1);
  }
  return s;
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_linear_pair *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows g_in = clb_gradient(n, y->in[0]),
                 g[] = {clb_gradient(n, y->out[0]), clb_gradient(n, y->out[1])};
  if (!g_in.buffer) return CLB_OK; /* of species alone */
  const clb_operand all[] = {operand(n, y->out[0], g[0], false, CLB_OPERAND_X), weights(n, p, true),
                             operand(n, y->in[0], g_in, true, CLB_OPERAND_Z),
                             operand(n, y->out[1], g[1], false, CLB_OPERAND_X)};
  bool few = p->back[adds & 1];
  for (int k = 0; k < CLB_LINEAR_MAPS; k++)
    few = few && clb_linear_has_few(p->of[k].back[k || adds & 1], CLB_FORWARD, rows);
  if (few) return clb_linear_few_run(p->back[adds & 1], CLB_FORWARD, rows, all, 4);
  clb_status s = CLB_OK;
  for (int k = 0; k < CLB_LINEAR_MAPS && !s; k++) {
    clb_layer part = part_of(y, k);
    s = clb_linear_kind.backward(n, &part, k ? 1 : adds & 1);
  }
  return s;
}

static void free_ops(void *parameters) {
  clb_linear_pair *p = parameters;
  for (int k = 0; k < CLB_LINEAR_MAPS; k++) clb_linear_kind.free_ops(&p->of[k]);
  for (int i = 0; i < 4; i++) clb_linear_few_destroy(&p->forth[i]);
  for (int i = 0; i < 2; i++) clb_linear_few_destroy(&p->back[i]);
}

const clb_layer_kind clb_linear_pair_kind = {.sums = true,
                                             .build = make_maps,
                                             .reorder = make_maps,
                                             .forward = forward,
                                             .backward = backward,
                                             .free_ops = free_ops};
