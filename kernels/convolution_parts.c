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

/* Sizes of coefficients that are multiplied with an element of y already. */
typedef struct {
  double size;
  int y;
} known;
typedef struct {
  known *all;
  int n, most;
} knowledge;

static bool knows(const knowledge *k, double size, int y) {
  for (int i = 0; i < k->n; i++)
    if (k->all[i].y == y && k->all[i].size == size) return true;
  return size == 1;
}

/* As a size that is known, if it is one but for rounding. */
static double round_to(const knowledge *k, double size) {
  if (fabs(size - 1) < 1e-14) return 1;
  for (int i = 0; i < k->n; i++)
    if (fabs(size - k->all[i].size) < 1e-14 * size) return k->all[i].size;
  return size;
}

static void learn(knowledge *k, const clb_entry *e, int n, int y, double scale) {
  for (int q = 0; q < n; q++) {
    double size = round_to(k, fabs(e[q].c) / scale);
    if (!knows(k, size, y + e[q].j) && k->n < k->most) k->all[k->n++] = (known){size, y + e[q].j};
  }
}

/* Products that are new with this scale. */
static int count_new(knowledge *k, const clb_entry *e, int n, int y, double scale) {
  int before = k->n;
  learn(k, e, n, y, scale);
  int count = k->n - before;
  k->n = before;
  return count;
}

/* One coefficient becomes 1, or a size that is known: whichever needs the fewest new products. */
static double best_scale(knowledge *k, const clb_entry *e, int n, int y) {
  double best = n ? fabs(e[0].c) : 1;
  int fewest = count_new(k, e, n, y, best), sizes = k->n;
  for (int q = 0; q < n; q++)
    for (int i = -1; i < sizes; i++) {
      double scale = fabs(e[q].c) / (i < 0 ? 1 : k->all[i].size);
      int count = count_new(k, e, n, y, scale);
      if (count < fewest) fewest = count, best = scale;
    }
  return best;
}

void clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, double *scale) {
  enum { MOST = 4096 };
  double *symbol = malloc(sizeof *symbol * MAX_M * MAX_M * MAX_M);
  clb_entry *e = malloc(sizeof *e * MAX_M * MAX_M * MAX_M);
  knowledge k = {malloc(sizeof *k.all * MOST), 0, MOST};
  for (int t = 0; t < CLB_MAX_TERMS; t++) scale[t] = 0;
  for (int part = 0; part < parts->n; part++) {
    k.n = 0; /* parts share nothing */
    for (int q = 0; symbol && e && k.all && q < tp->n_paths; q++) {
      const clb_path *p = &tp->path[q];
      if (parts->of_x[p->in1] != part) continue;
      int n = clb_form_entries(tp, p, symbol, e), y = tp->y.term[p->in2].at;
      if (scale[p->out] == 0) scale[p->out] = n <= 64 ? best_scale(&k, e, n, y) : fabs(e[0].c);
      learn(&k, e, n, y, scale[p->out]);
    }
  }
  for (int t = 0; t < CLB_MAX_TERMS; t++)
    if (scale[t] == 0) scale[t] = 1;
  free(k.all);
  free(symbol);
  free(e);
}

int clb_wanted_output(const clb_form_builder *f, int slot) {
  for (int o = 0; o < f->form->n_outputs; o++)
    if (f->form->output[o].slot == slot && clb_form_wanted(f, o)) return o;
  return -1;
}
