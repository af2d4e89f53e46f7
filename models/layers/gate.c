/* models/layers/gate.c - activations of scalars, and gates that multiply the other features. */
#include <stdlib.h>

#include "kernels/gate/host/gate.h"
#include "kernels/layers/host/layer_call.h"
#include "models/layers/kinds.h"

static void set_activations(const clb_gate *p, clb_gate_parts *parts) {
  for (int t = 0; t < p->scalars.n; t++)
    parts->activation[CLB_GATE_SCALARS][t] = p->scalars.term[t].parity > 0 ? p->even : p->odd;
  for (int t = 0; t < p->gates.n; t++) parts->activation[CLB_GATE_GATES][t] = p->gate;
}

static clb_status create(clb_network *n, clb_layer *y, bool adds, unsigned passes, clb_op **op) {
  clb_gate *p = y->parameters;
  clb_gate_parts *parts = calloc(1, sizeof *parts);
  clb_problem *problem = clb_layer_problem(n->ctx, CLB_GATE, n->type, n->type);
  clb_status s = parts && problem ? CLB_OK : clb_network_no_memory(n);
  if (!s) {
    *parts = (clb_gate_parts){.layout = CLB_IR_MUL,
                              .in = n->array[y->in[0]]->irreps,
                              .part = {p->scalars, p->gates, p->gated}};
    set_activations(p, parts);
    s = clb_gate_plan(parts, &problem->gate, &n->ctx->error);
    problem->accumulate = adds;
  }
  if (!s) s = clb_op_create(n->ctx, problem, passes, NULL, op);
  free(parts);
  free(problem);
  return s;
}

/* ---- rows of scalars at knots, and then of their slopes ---- */

static clb_status forward_slopes(clb_network *n, const clb_layer *y) {
  const clb_gate *p = y->parameters;
  const int64_t rows = clb_grid_rows(n) / 2;
  const clb_rows x = clb_value(n, y->in[0]), out = clb_value(n, y->out[0]);
  const clb_status s =
      clb_public_op_run(p->op, CLB_GATE, CLB_FORWARD, rows, (const clb_rows[]){x, out});
  return s ? s
           : clb_public_op_run(p->op, CLB_GATE, CLB_BACKWARD, rows,
                               (const clb_rows[]){x, clb_slopes(n, x), clb_slopes(n, out)});
}

/* Of out = f(x), out' = f'(x) x': d_x = f' d_out + f'' x' d_out', d_x' = f' d_out'; the latter's
   place is free until then. */
static clb_status reverse_slopes(clb_network *n, const clb_layer *y) {
  const clb_gate *p = y->parameters;
  const int64_t rows = clb_grid_rows(n) / 2;
  const clb_rows x = clb_value(n, y->in[0]), d_x = clb_adjoint(n, y->in[0]),
                 d_out = clb_adjoint(n, y->out[0]);
  clb_status s = clb_public_op_run(
      p->along, CLB_GATE, CLB_DOUBLE_BACKWARD, rows,
      (const clb_rows[]){x, clb_slopes(n, d_out), clb_slopes(n, x), d_x, clb_slopes(n, d_x)});
  if (!s)
    s = clb_public_op_run(y->derivatives, CLB_GATE, CLB_BACKWARD, rows,
                          (const clb_rows[]){x, d_out, d_x});
  return s ? s
           : clb_public_op_run(p->op, CLB_GATE, CLB_BACKWARD, rows,
                               (const clb_rows[]){x, clb_slopes(n, d_out), clb_slopes(n, d_x)});
}

/* ---- passes ---- */

static clb_status build(clb_network *n, clb_layer *y) {
  return create(n, y, false, CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD),
                &((clb_gate *)y->parameters)->op);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_gate *p = y->parameters;
  (void)adds;
  if (p->slopes) return forward_slopes(n, y);
  return clb_public_op_run(p->op, CLB_GATE, CLB_FORWARD, clb_row_count(n, y->in[0]),
                           (const clb_rows[]){clb_value(n, y->in[0]), clb_value(n, y->out[0])});
}

/* Its input has no other reader. */
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_gate *p = y->parameters;
  (void)adds;
  return clb_public_op_run(p->op, CLB_GATE, CLB_BACKWARD, clb_row_count(n, y->in[0]),
                           (const clb_rows[]){clb_value(n, y->in[0]), clb_gradient(n, y->out[0]),
                                              clb_gradient(n, y->in[0])});
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  const clb_status s =
      create(n, y, false, CLB_PASS_BIT(CLB_DOUBLE_BACKWARD), &((clb_gate *)y->parameters)->along);
  return s ? s : create(n, y, true, CLB_PASS_BIT(CLB_BACKWARD), &y->derivatives);
}

/* Without what bends: of edges, which have activations alone, so that tangents are multiplied by
   the same slopes as gradients. */
static clb_status along(clb_network *n, clb_layer *y, unsigned adds, bool bends) {
  const clb_gate *p = y->parameters;
  const int64_t rows = clb_row_count(n, y->in[0]);
  const clb_rows x = clb_value(n, y->in[0]), a = clb_tangent(n, y->in[0]),
                 out = clb_tangent(n, y->out[0]);
  (void)adds;
  if (!bends)
    return clb_public_op_run(p->op, CLB_GATE, CLB_BACKWARD, rows, (const clb_rows[]){x, a, out});
  return clb_public_op_run(
      p->along, CLB_GATE, CLB_DOUBLE_BACKWARD, rows,
      (const clb_rows[]){x, clb_gradient(n, y->out[0]), a, clb_adjoint(n, y->in[0]), out});
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  if (((const clb_gate *)y->parameters)->slopes) return reverse_slopes(n, y);
  return clb_public_op_run(y->derivatives, CLB_GATE, CLB_BACKWARD, clb_row_count(n, y->in[0]),
                           (const clb_rows[]){clb_value(n, y->in[0]), clb_adjoint(n, y->out[0]),
                                              clb_adjoint(n, y->in[0])});
}

/* ---- pruning ---- */

/* The input's first channel of each term of each part. */
typedef struct {
  int64_t scalars[CLB_MAX_TERMS], gates[CLB_MAX_TERMS], gated[CLB_MAX_TERMS];
} places;

static places places_of(const clb_gate *p, const clb_irreps *in) {
  places at;
  int64_t used[CLB_MAX_TERMS] = {0};
  const clb_irreps *parts[] = {&p->scalars, &p->gates, &p->gated};
  int64_t *first[] = {at.scalars, at.gates, at.gated};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < parts[i]->n; j++) {
      const int t = clb_find_irrep(in, &parts[i]->term[j]);
      first[i][j] = clb_first_channel(in, t) + used[t];
      used[t] += parts[i]->term[j].mul;
    }
  return at;
}

/* An output depends on a channel of the input and, if it is gated, on its gate. The op takes all
   channels of its input, so that none is needed alone. */
static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  const clb_gate *p = y->parameters;
  const places at = places_of(p, &n->array[y->in[0]]->irreps);
  bool *from = needed[y->in[0]], *to = needed[y->out[0]];
  for (int t = 0; t < p->scalars.n; t++)
    for (int c = 0; c < p->scalars.term[t].mul; c++, to++) {
      bool *in = from + at.scalars[t] + c;
      *in = *to = *in || *to;
    }
  for (int t = 0, g = 0, next = 0; t < p->gated.n; t++)
    for (int c = 0; c < p->gated.term[t].mul; c++, to++, next++) {
      while (next == p->gates.term[g].mul) g++, next = 0;
      bool *in = from + at.gated[t] + c, *gate = from + at.gates[g] + next;
      *in = *gate = *to = *in || *gate || *to;
    }
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  clb_gate *p = y->parameters;
  const places at = places_of(p, &n->array[y->in[0]]->irreps);
  const int64_t *first[] = {at.scalars, at.gates, at.gated};
  clb_irreps *parts[] = {&p->scalars, &p->gates, &p->gated};
  for (int i = 0; i < 3; i++) {
    int64_t mul[CLB_MAX_TERMS] = {0};
    for (int t = 0; t < parts[i]->n; t++)
      for (int c = 0; c < parts[i]->term[t].mul; c++) mul[t] += needed[y->in[0]][first[i][t] + c];
    clb_irreps_shrink(parts[i], mul);
  }
}

static void free_ops(void *parameters) {
  clb_op_destroy(&((clb_gate *)parameters)->op);
  clb_op_destroy(&((clb_gate *)parameters)->along);
}

const clb_layer_kind clb_gate_kind = {.reads_in = 1,
                                      .overwrites = 1,
                                      .bends = CLB_BENDS_INPUTS,
                                      .build = build,
                                      .forward = forward,
                                      .backward = backward,
                                      .need = need,
                                      .keep = keep,
                                      .derive = derive,
                                      .along = along,
                                      .reverse = reverse,
                                      .free_ops = free_ops};
