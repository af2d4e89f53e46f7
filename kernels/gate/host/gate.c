/* kernels/gate/host/gate.c - operands of gates, and which channels of a row are scalars, gates and
   gated. */
#include "kernels/gate/host/gate.h"

#include <stdlib.h>

int clb_gate_operands(const clb_problem *problem, clb_pass pass, const clb_rows *rows,
                      clb_operand *operands) {
  const clb_gate_problem *p = &problem->gate;
  const int64_t columns[] = {[CLB_OPERAND_X] = p->in, [CLB_OPERAND_Z] = p->out};
  return clb_operands_fill(&clb_signature_gate, pass, rows, columns, CLB_ALL_OPERANDS,
                           CLB_ALL_OPERANDS, operands);
}

/* ---- segments ---- */

typedef struct {
  clb_gate_parts *parts;
  clb_gate_problem *p;
  clb_error_sink *error;
  int32_t used[CLB_MAX_TERMS];                    /* channels of each term of `in` */
  int32_t term[CLB_MAX_TERMS], at[CLB_MAX_TERMS]; /* of each segment: its term of `out`, and its
                                                     first channel there */
} planner;

/* The step between components of a term, and between its channels. */
static int32_t component_step(clb_layout layout, const clb_term *t) {
  return layout == CLB_IR_MUL ? t->mul : 1;
}
static int32_t channel_step(clb_layout layout, const clb_term *t) {
  return layout == CLB_IR_MUL ? 1 : 2 * t->l + 1;
}

/* Takes the next channels of `in` for this term of a part. */
static clb_status take(planner *r, const char *part, const clb_term *t, clb_gate_segment *s) {
  const clb_irreps *irreps = &r->parts->in;
  const clb_layout layout = r->parts->layout;
  for (int i = 0; i < irreps->n; i++) {
    const clb_term *in = &irreps->term[i];
    if (in->l != t->l || in->parity != t->parity || in->mul - r->used[i] < t->mul) continue;
    s->in = in->at + r->used[i] * channel_step(layout, in);
    s->in_step = component_step(layout, in);
    s->in_by = channel_step(layout, in);
    r->used[i] += t->mul;
    return CLB_OK;
  }
  if (!t->mul) return CLB_OK;
  return clb_fail(r->error, CLB_ERROR_ARGUMENT, "gate: the input lacks %dx%d%c of irreps_%s",
                  (int)t->mul, (int)t->l, t->parity > 0 ? 'e' : 'o', part);
}

/* Adds a segment, whose channels are the next ones of `out`; begins: of a term of their own. */
static clb_status add(planner *r, clb_gate_segment segment, int l, int parity, bool begins) {
  clb_irreps *out = &r->parts->out;
  clb_gate_problem *p = r->p;
  if (!segment.mul) return CLB_OK;
  begins = begins || out->term[out->n - 1].parity != parity;
  if (p->n_segments == CLB_MAX_TERMS)
    return clb_fail(r->error, CLB_ERROR_UNSUPPORTED, "gate: more than %d segments", CLB_MAX_TERMS);
  if (begins) out->term[out->n++] = (clb_term){.l = (int32_t)l, .parity = (int32_t)parity};
  r->term[p->n_segments] = out->n - 1;
  r->at[p->n_segments] = out->term[out->n - 1].mul;
  out->term[out->n - 1].mul += segment.mul;
  p->segment[p->n_segments++] = segment;
  return CLB_OK;
}

static clb_status add_scalars(planner *r) {
  const clb_irreps *scalars = &r->parts->part[CLB_GATE_SCALARS];
  clb_status s = CLB_OK;
  for (int t = 0; t < scalars->n && !s; t++) {
    const clb_scaled_activation *a = &r->parts->activation[CLB_GATE_SCALARS][t];
    clb_gate_segment segment = {.gate = -1,
                                .mul = scalars->term[t].mul,
                                .components = 1,
                                .activation = (int32_t)a->function,
                                .scale = a->scale};
    s = take(r, "scalars", &scalars->term[t], &segment);
    if (!s) s = add(r, segment, 0, r->parts->odd[CLB_GATE_SCALARS][t] ? -1 : 1, true);
  }
  return s;
}

/* The next gate: of a term, the channel's number. */
typedef struct {
  int term;
  int32_t from;
} cursor;

static bool at_end(const clb_irreps *gates, cursor *c) {
  while (c->term < gates->n && c->from == gates->term[c->term].mul) c->term++, c->from = 0;
  return c->term == gates->n;
}

/* Gated terms are split where the terms of their gates end. */
static clb_status add_gated(planner *r, int t, const clb_gate_segment *gate, cursor *c) {
  const clb_gate_parts *parts = r->parts;
  const clb_irreps *gates = &parts->part[CLB_GATE_GATES];
  const clb_term *term = &parts->part[CLB_GATE_GATED].term[t];
  clb_gate_segment first = {0};
  clb_status s = take(r, "gated", term, &first);
  for (int32_t done = 0, mul; done < term->mul && !s; done += mul, c->from += mul) {
    if (at_end(gates, c))
      return clb_fail(r->error, CLB_ERROR_ARGUMENT,
                      "gate: irreps_gates has fewer channels than irreps_gated");
    mul = gates->term[c->term].mul - c->from;
    if (mul > term->mul - done) mul = term->mul - done;
    const clb_scaled_activation *a = &parts->activation[CLB_GATE_GATES][c->term];
    clb_gate_segment segment = first;
    segment.in += done * first.in_by;
    segment.gate = gate[c->term].in + c->from;
    segment.mul = mul;
    segment.components = 2 * term->l + 1;
    segment.activation = (int32_t)a->function;
    segment.scale = a->scale;
    s = add(r, segment, term->l, parts->odd[CLB_GATE_GATES][c->term] ? -term->parity : term->parity,
            !done);
  }
  return s;
}

static clb_status add_all_gated(planner *r) {
  const clb_irreps *gates = &r->parts->part[CLB_GATE_GATES],
                   *gated = &r->parts->part[CLB_GATE_GATED];
  clb_gate_segment gate[CLB_MAX_TERMS]; /* where the gates are */
  cursor c = {0, 0};
  clb_status s = CLB_OK;
  for (int t = 0; t < gates->n && !s; t++) s = take(r, "gates", &gates->term[t], &gate[t]);
  for (int t = 0; t < gated->n && !s; t++) s = add_gated(r, t, gate, &c);
  if (!s && !at_end(gates, &c))
    s = clb_fail(r->error, CLB_ERROR_ARGUMENT,
                 "gate: irreps_gates has more channels than irreps_gated");
  return s;
}

static clb_status check_used(const planner *r) {
  const clb_irreps *in = &r->parts->in;
  for (int i = 0; i < in->n; i++)
    if (r->used[i] < in->term[i].mul)
      return clb_fail(r->error, CLB_ERROR_ARGUMENT,
                      "gate: of the %d channels of term %d of the input, %dx%d%c, only %d are "
                      "scalars, gates or gated",
                      (int)in->term[i].mul, i, (int)in->term[i].mul, (int)in->term[i].l,
                      in->term[i].parity > 0 ? 'e' : 'o', (int)r->used[i]);
  return CLB_OK;
}

/* Offsets and steps of the output, now that the lengths of its terms are known. */
static void place_output(planner *r) {
  const clb_layout layout = r->parts->layout;
  clb_irreps *out = &r->parts->out;
  for (int t = 0; t < out->n; t++) {
    out->term[t].at = out->dim;
    out->dim += out->term[t].mul * (2 * out->term[t].l + 1);
  }
  for (int i = 0; i < r->p->n_segments; i++) {
    clb_gate_segment *s = &r->p->segment[i];
    const clb_term *t = &out->term[r->term[i]];
    s->out = t->at + r->at[i] * channel_step(layout, t);
    s->out_step = component_step(layout, t);
    s->out_by = channel_step(layout, t);
  }
  r->p->in = r->parts->in.dim;
  r->p->out = out->dim;
}

clb_status clb_gate_plan(clb_gate_parts *parts, clb_gate_problem *p, clb_error_sink *error) {
  planner *r = calloc(1, sizeof *r);
  if (!r) return clb_fail(error, CLB_ERROR_MEMORY, "gate: no memory");
  r->parts = parts;
  r->p = p;
  r->error = error;
  clb_status s = add_scalars(r);
  if (!s) s = add_all_gated(r);
  if (!s) s = check_used(r);
  if (!s) place_output(r);
  free(r);
  return s;
}
