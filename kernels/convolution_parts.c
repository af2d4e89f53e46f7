/* convolution_parts.c - how a convolution's channels and paths are divided among sub-groups. */
#include <math.h>
#include <stdlib.h>

#include "convolution.h"

/* Components of x and z that a term of x brings along. */
static int size_of(const clb_tensor_product_problem *tp, int term) {
  int n = clb_width(&tp->x.term[term]);
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].in1 == term) n += clb_width(&tp->z.term[tp->path[q].out]);
  return n;
}

/* Puts the term, and those that share a term of z with it, into a part. */
static int take(const clb_tensor_product_problem *tp, clb_parts *parts, int term, int part) {
  int n = size_of(tp, term);
  parts->of_x[term] = part;
  for (int q = 0; q < tp->n_paths; q++) {
    if (tp->path[q].in1 != term) continue;
    parts->of_z[tp->path[q].out] = part;
    for (int other = 0; other < tp->n_paths; other++)
      if (tp->path[other].out == tp->path[q].out && parts->of_x[tp->path[other].in1] < 0) n += take(tp, parts, tp->path[other].in1, part);
  }
  return n;
}

static int next_term(const clb_tensor_product_problem *tp, const clb_parts *parts) {
  int found = -1;
  for (int t = 0; t < tp->x.n; t++)
    if (parts->of_x[t] < 0 && tp->x.term[t].mul && (found < 0 || tp->x.term[t].mul > tp->x.term[found].mul)) found = t;
  return found;
}

void clb_parts_make(const clb_tensor_product_problem *tp, int most, clb_parts *parts) {
  int size = 0;
  *parts = (clb_parts){0};
  for (int t = 0; t < CLB_MAX_TERMS; t++) parts->of_x[t] = parts->of_z[t] = -1;
  for (int t; (t = next_term(tp, parts)) >= 0;) {
    bool fits = parts->n && parts->mul[parts->n - 1] == tp->x.term[t].mul && size + size_of(tp, t) <= most;
    if (!fits) parts->mul[parts->n++] = tp->x.term[t].mul, size = 0;
    size += take(tp, parts, t, parts->n - 1);
  }
}

int clb_parts_units(const clb_parts *parts, int lanes) {
  int n = 0;
  for (int p = 0; p < parts->n; p++) n += (parts->mul[p] + lanes - 1) / lanes;
  return n;
}

/* The absolute value that occurs most often among the coefficients. */
static double most_common(const clb_entry *e, int n) {
  double best = 1;
  int most = 0;
  for (int a = 0; a < n; a++) {
    int times = 0;
    for (int b = 0; b < n; b++) times += fabs(e[b].c) == fabs(e[a].c);
    if (times > most) most = times, best = fabs(e[a].c);
  }
  return best;
}

void clb_z_scales(const clb_tensor_product_problem *tp, double *scale) {
  double *symbol = malloc(sizeof *symbol * MAX_M * MAX_M * MAX_M);
  clb_entry *e = malloc(sizeof *e * MAX_M * MAX_M * MAX_M);
  for (int t = 0; t < CLB_MAX_TERMS; t++) scale[t] = 0;
  for (int q = 0; symbol && e && q < tp->n_paths; q++)
    if (scale[tp->path[q].out] == 0) scale[tp->path[q].out] = most_common(e, clb_form_entries(tp, &tp->path[q], symbol, e));
  for (int t = 0; t < CLB_MAX_TERMS; t++)
    if (scale[t] == 0) scale[t] = 1;
  free(symbol);
  free(e);
}

int clb_wanted_output(const clb_form_builder *f, int slot) {
  for (int o = 0; o < f->form->n_outputs; o++)
    if (f->form->output[o].slot == slot && clb_form_wanted(f, o)) return o;
  return -1;
}
