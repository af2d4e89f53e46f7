/* kernels/norm/plan.c - a row of a norm as segments. */
#include "kernels/norm/plan.h"

#include <string.h>

enum { DEGREES = CLB_NORM_MOST_GROUPS };

/* Channels of each degree, and how many degrees and terms have any. */
typedef struct {
  int64_t channels[DEGREES];
  int degrees, terms;
} census;

static census count(const clb_irreps *irreps) {
  census c = {{0}, 0, 0};
  for (int i = 0; i < irreps->n; i++) {
    const clb_term *t = &irreps->term[i];
    c.degrees += t->mul && !c.channels[t->l];
    c.terms += t->mul > 0;
    c.channels[t->l] += t->mul;
  }
  return c;
}

static double factor(const clb_rms_norm_problem *p, const census *c, int term) {
  const int l = p->irreps.term[term].l;
  const double width = 2 * l + 1, channels = (double)c->channels[l];
  const double factors[] = {[CLB_RMS_PLAIN] = 1 / (double)p->irreps.dim,
                            [CLB_RMS_NEQUIX] = 1 / (c->terms * width * width),
                            [CLB_RMS_DEGREE] = 1 / (width * channels),
                            [CLB_RMS_DEGREE_NORM] = 1 / channels,
                            [CLB_RMS_BALANCED] = 1 / (c->degrees * width * channels),
                            [CLB_RMS_TERMS] = p->factor[term]};
  return factors[p->variant];
}

/* Number of a degree among those that have channels. */
static int rank(const census *c, int l) {
  int r = 0;
  for (int i = 0; i < l; i++) r += c->channels[i] > 0;
  return r;
}

/* Whether `next`, which follows, can go on where the segment ends: weights of ir_mul repeat in each
   term. */
static bool joins(const clb_norm_segment *s, const clb_norm_segment *next, int32_t layout) {
  return s->components == next->components && s->scalar == next->scalar &&
         s->factor == next->factor && (layout == CLB_MUL_IR || s->components == 1);
}

void clb_norm_make_plan(const clb_rms_norm_problem *p, clb_norm_plan *plan) {
  const census c = count(&p->irreps);
  const bool by_degree = p->variant == CLB_RMS_DEGREE || p->variant == CLB_RMS_DEGREE_NORM,
             special = p->centre || p->bias;
  memset(plan, 0, sizeof *plan);
  plan->n_groups = by_degree ? c.degrees : 1;
  for (int i = 0; i < p->irreps.n; i++) {
    const clb_term *t = &p->irreps.term[i];
    if (!t->mul) continue;
    clb_norm_segment s = {.at = t->at,
                          .length = (int64_t)t->mul * (2 * t->l + 1),
                          .first_weight = plan->weights,
                          .mul = t->mul,
                          .first_bias = plan->scalars,
                          .components = 2 * t->l + 1,
                          .group = by_degree ? rank(&c, t->l) : 0,
                          .scalar = special && t->l == 0 && t->parity > 0,
                          .factor = factor(p, &c, i)};
    plan->weights += t->mul;
    plan->scalars += s.scalar ? t->mul : 0;
    clb_norm_segment *last = plan->n ? &plan->segment[plan->n - 1] : NULL;
    if (last && joins(last, &s, p->layout)) last->length += s.length, last->mul += s.mul;
    else plan->segment[plan->n++] = s;
  }
  plan->biases = p->bias ? plan->scalars : 0;
}
