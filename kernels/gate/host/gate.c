/* kernels/gate/host/gate.c - which channels of a row of irreps are scalars, gates and gated, and
   which gate applies to which channel. */
#include <stdlib.h>

#include "src/problem/irreps.h"
#include "kernels/layers/host/layer_call.h"
#include "kernels/layers/host/layers.h"

enum { SCALARS, GATES, GATED, PARTS };
static const char *const part_names[] = {"irreps_scalars", "irreps_gates", "irreps_gated"};

typedef struct {
  clb_irreps in, part[PARTS];
  int32_t used[CLB_MAX_TERMS]; /* channels of each term of irreps_in */
  const clb_gate_desc *desc;
  clb_error_sink *error;
} reader;

static clb_status read(reader *r) {
  const char *texts[PARTS] = {r->desc->irreps_scalars, r->desc->irreps_gates,
                              r->desc->irreps_gated};
  clb_status s = clb_irreps_read(r->desc->irreps_in, "irreps_in", &r->in, r->error);
  for (int i = 0; i < PARTS && !s; i++)
    s = clb_irreps_read(texts[i] ? texts[i] : "", part_names[i], &r->part[i], r->error);
  for (int i = 0; i < GATED; i++)
    for (int t = 0; t < r->part[i].n && !s; t++)
      if (r->part[i].term[t].l)
        s = clb_fail(r->error, CLB_ERROR_ARGUMENT,
                     "gate: term %d of %s has degree %d; it must be 0", t, part_names[i],
                     (int)r->part[i].term[t].l);
  return s;
}

/* Takes the next channels of irreps_in for this term of a part: returns the offset of the first in
   a row and the step between components. */
static clb_status take(reader *r, int part, const clb_term *t, int32_t *at, int32_t *step) {
  for (int i = 0; i < r->in.n; i++) {
    const clb_term *in = &r->in.term[i];
    if (in->l != t->l || in->parity != t->parity || in->mul - r->used[i] < t->mul) continue;
    *at = in->at + r->used[i];
    *step = in->mul;
    r->used[i] += t->mul;
    return CLB_OK;
  }
  if (!t->mul) return CLB_OK;
  return clb_fail(r->error, CLB_ERROR_ARGUMENT, "gate: irreps_in, \"%s\", lacks %dx%d%c of %s",
                  r->desc->irreps_in, (int)t->mul, (int)t->l, t->parity > 0 ? 'e' : 'o',
                  part_names[part]);
}

static clb_status add(reader *r, clb_gate_problem *g, clb_gate_segment segment) {
  if (!segment.mul) return CLB_OK;
  if (g->n_segments == CLB_MAX_TERMS)
    return clb_fail(r->error, CLB_ERROR_UNSUPPORTED, "gate: more than %d segments", CLB_MAX_TERMS);
  g->segment[g->n_segments++] = segment;
  return CLB_OK;
}

static clb_status read_scalars(reader *r, clb_gate_problem *g) {
  const clb_gate_desc *d = r->desc;
  clb_status s = CLB_OK;
  for (int i = 0; i < r->part[SCALARS].n && !s; i++) {
    const clb_term *t = &r->part[SCALARS].term[i];
    bool even = t->parity > 0;
    clb_gate_segment segment = {.out = g->out,
                                .gate = -1,
                                .mul = t->mul,
                                .components = 1,
                                .activation = (int32_t)(even ? d->even : d->odd),
                                .scale = even ? d->scale_even : d->scale_odd};
    s = take(r, SCALARS, t, &segment.in, &segment.in_step);
    if (!s) s = add(r, g, segment);
    g->out += t->mul;
  }
  return s;
}

/* Gated terms are split where the terms of their gates end. */
static clb_status read_gated(reader *r, clb_gate_problem *g) {
  const clb_irreps *gates = &r->part[GATES];
  int32_t place[CLB_MAX_TERMS], step, term = 0, from = 0; /* offset and step of each term of gates;
                                                             the next gate */
  clb_status s = CLB_OK;
  for (int i = 0; i < gates->n && !s; i++) s = take(r, GATES, &gates->term[i], &place[i], &step);
  for (int i = 0; i < r->part[GATED].n && !s; i++) {
    const clb_term *t = &r->part[GATED].term[i];
    int32_t in = 0, in_step = 0;
    s = take(r, GATED, t, &in, &in_step);
    for (int32_t done = 0, mul; done < t->mul && !s; done += mul, from += mul) {
      while (term < gates->n && from == gates->term[term].mul) term++, from = 0;
      if (term == gates->n)
        return clb_fail(r->error, CLB_ERROR_ARGUMENT,
                        "gate: irreps_gates has fewer channels than irreps_gated");
      mul = gates->term[term].mul - from < t->mul - done ? gates->term[term].mul - from
                                                         : t->mul - done;
      s = add(r, g,
              (clb_gate_segment){in + done, in_step, g->out + done, t->mul, place[term] + from, mul,
                                 2 * t->l + 1, (int32_t)r->desc->gate, r->desc->scale_gate});
    }
    g->out += t->mul * (2 * t->l + 1);
  }
  while (term < gates->n && from == gates->term[term].mul) term++, from = 0;
  return s || term == gates->n ? s
                               : clb_fail(r->error, CLB_ERROR_ARGUMENT,
                                          "gate: irreps_gates has more channels than irreps_gated");
}

static clb_status check_used(const reader *r) {
  for (int i = 0; i < r->in.n; i++)
    if (r->used[i] < r->in.term[i].mul)
      return clb_fail(
          r->error, CLB_ERROR_ARGUMENT,
          "gate: of term %d of irreps_in, \"%s\", only %d channels are scalars, gates or gated", i,
          r->desc->irreps_in, (int)r->used[i]);
  return CLB_OK;
}

clb_status clb_gate_create(clb_context *ctx, clb_dtype type, const clb_gate_desc *desc,
                           clb_op **op) {
  clb_problem *p = clb_layer_problem(ctx, CLB_GATE, type, type);
  reader *r = calloc(1, sizeof *r);
  clb_status s = p && r ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "gate: no memory");
  const clb_activation all[] = {desc->even, desc->odd, desc->gate};
  *op = NULL;
  for (int i = 0; i < 3 && !s; i++)
    if ((unsigned)all[i] > CLB_IDENTITY)
      s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                   "gate: an activation is %d; it must be CLB_SILU ... CLB_IDENTITY", (int)all[i]);
  if (s) goto done;
  r->desc = desc;
  r->error = &ctx->error;
  s = read(r);
  if (!s) s = read_scalars(r, &p->gate);
  if (!s) s = read_gated(r, &p->gate);
  if (!s) s = check_used(r);
  p->gate.in = r->in.dim;
done:
  free(r);
  if (s) free(p);
  return s ? s : clb_layer_create(ctx, p, 3, op);
}

clb_status clb_gate_forward(clb_op *op, int64_t n, clb_rows in, clb_rows out) {
  clb_call c = clb_call_begin(op, CLB_GATE, n, n);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "in", type, op->problem.gate.in, in, CLB_IN);
  clb_call_rows(&c, "out", type, op->problem.gate.out, out, CLB_OUT);
  return clb_call_run(&c, 0);
}

clb_status clb_gate_backward(clb_op *op, int64_t n, clb_rows in, clb_rows g_out, clb_rows g_in) {
  clb_call c = clb_call_begin(op, CLB_GATE, n, n);
  if (c.status) return c.status;
  clb_dtype type = (clb_dtype)op->problem.storage;
  clb_call_rows(&c, "in", type, op->problem.gate.in, in, CLB_IN);
  clb_call_rows(&c, "g_out", type, op->problem.gate.out, g_out, CLB_IN);
  clb_call_rows(&c, "g_in", type, op->problem.gate.in, g_in, CLB_OUT);
  return clb_call_run(&c, 1);
}
