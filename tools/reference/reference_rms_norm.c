/* tools/reference/reference_rms_norm.c - norms of rows in float64, element by element.

   Each number has a partner: the sum of the absolute values of its terms, the size to which its
   rounding error is relative. */
#include "tools/reference/reference_row.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/reference/reference_irreps.h"

typedef struct {
  double v, size;
} number;

static number of(double v) { return (number){v, fabs(v)}; }
static number plus(number a, number b) { return (number){a.v + b.v, a.size + b.size}; }
static number times(number a, number b) { return (number){a.v * b.v, a.size * b.size}; }
static number scaled(double c, number a) { return (number){c * a.v, fabs(c) * a.size}; }

/* What is known of element i of a row. */
typedef struct {
  int group, channel, bias; /* bias: -1: not of 0e */
  double a;
} element;

typedef struct {
  element *e;
  int n, n_w, channels, scalars, groups;
} row_map;

static void map_term(const clb_rms_norm_desc *d, const reference_irreps *irreps, int t, int dim,
                     row_map *m) {
  int l = irreps->term[t].l, mul = irreps->term[t].mul, width = 2 * l + 1, of_degree = 0, terms = 0,
      degrees = 0, present[64] = {0};
  for (int i = 0; i < irreps->n; i++) {
    if (!irreps->term[i].mul) continue;
    terms++;
    degrees += !present[irreps->term[i].l]++;
    if (irreps->term[i].l == l) of_degree += irreps->term[i].mul;
  }
  const bool alone = d->variant == CLB_RMS_DEGREE || d->variant == CLB_RMS_DEGREE_NORM,
             even = l == 0 && irreps->term[t].parity > 0;
  for (int u = 0; u < mul; u++)
    for (int c = 0; c < width; c++) {
      element *e = &m->e[m->n + (d->layout == CLB_IR_MUL ? c * mul + u : u * width + c)];
      e->group = alone ? l : 0;
      e->channel = m->channels + u;
      e->bias = even ? m->scalars + u : -1;
      switch (d->variant) {
        case CLB_RMS_PLAIN: e->a = 1.0 / dim; break;
        case CLB_RMS_NEQUIX: e->a = 1.0 / (terms * width * width); break;
        case CLB_RMS_DEGREE: e->a = 1.0 / (width * of_degree); break;
        case CLB_RMS_DEGREE_NORM: e->a = 1.0 / of_degree; break;
        case CLB_RMS_BALANCED: e->a = 1.0 / ((double)degrees * width * of_degree); break;
        case CLB_RMS_TERMS: e->a = d->factors[t]; break;
      }
    }
  m->n += mul * width;
  m->channels += mul;
  m->scalars += even ? mul : 0;
}

reference_place reference_norm_measure(const clb_rms_norm_desc *d) {
  reference_irreps irreps;
  reference_place sizes = {0, 0, 0};
  if (!reference_irreps_read(d->irreps, &irreps)) return sizes;
  for (int t = 0; t < irreps.n; t++) {
    const bool even = irreps.term[t].l == 0 && irreps.term[t].parity > 0;
    sizes.x += irreps.term[t].mul * (2 * irreps.term[t].l + 1);
    sizes.w += irreps.term[t].mul * (d->bias && even ? 2 : 1);
  }
  sizes.z = sizes.x;
  return sizes;
}

enum { GROUPS = 64 };

/* Takes the mean over 0e from a row. */
static void centre(const clb_rms_norm_desc *d, const row_map *m, number *x) {
  number mean = {0, 0};
  if (!d->centre || !m->scalars) return;
  for (int i = 0; i < m->n; i++)
    if (m->e[i].bias >= 0) mean = plus(mean, scaled(1.0 / m->scalars, x[i]));
  for (int i = 0; i < m->n; i++)
    if (m->e[i].bias >= 0) x[i] = plus(x[i], scaled(-1, mean));
}

/* sum over each group of a x y (weighted), or of x y. */
static void sums(const row_map *m, bool weighted, const number *x, const number *y, number *sum) {
  for (int g = 0; g < GROUPS; g++) sum[g] = of(0);
  for (int i = 0; i < m->n; i++) {
    number *s = &sum[m->e[i].group];
    *s = plus(*s, scaled(weighted ? m->e[i].a : 1, times(x[i], y[i])));
  }
}

static void put(reference_result to, int i, number x) { reference_put(to, i, x.v, x.size); }
static void add(reference_result to, int i, number x) { reference_add(to, i, x.v, x.size); }

typedef struct {
  number *x, *g, *a, *h, *cg, *out; /* of a row */
} workspace;

static void one_row(const clb_rms_norm_desc *d, clb_pass pass, const row_map *m,
                    const reference_row *row, workspace *s) {
  number squares[GROUPS], r[GROUPS], C[GROUPS], D[GROUPS], Q[GROUPS], Z[GROUPS];
  const double *w = row->w, *c = row->c;
  for (int i = 0; i < m->n; i++) {
    const int k = m->e[i].channel;
    s->x[i] = of(row->x[i]);
    if (pass == CLB_FORWARD) continue;
    s->g[i] = of(row->g[i]);
    s->h[i] = scaled(w[k] + d->weight_offset, s->g[i]);
    if (pass == CLB_BACKWARD) continue;
    s->a[i] = of(row->a ? row->a[i] : 0);
    s->cg[i] = scaled(c ? c[k] : 0, s->g[i]);
  }
  centre(d, m, s->x);
  sums(m, true, s->x, s->x, squares);
  for (int g = 0; g < GROUPS; g++) r[g] = of(1 / sqrt(squares[g].v + d->epsilon));
  if (pass == CLB_FORWARD) {
    for (int i = 0; i < m->n; i++) {
      const element *e = &m->e[i];
      number y = scaled(w[e->channel] + d->weight_offset, times(s->x[i], r[e->group]));
      if (d->bias && e->bias >= 0) y = plus(y, of(w[m->channels + e->bias]));
      put(row->of_z, i, y);
    }
    return;
  }
  sums(m, false, s->h, s->x, C);
  if (pass == CLB_BACKWARD) {
    for (int i = 0; i < m->n; i++) {
      const element *e = &m->e[i];
      const double q = r[e->group].v;
      number pull = scaled(-q * q * q * e->a, times(C[e->group], s->x[i]));
      s->out[i] = plus(scaled(q, s->h[i]), pull);
      add(row->of_w, e->channel, scaled(q, times(s->g[i], s->x[i])));
      if (d->bias && e->bias >= 0) add(row->of_w, m->channels + e->bias, s->g[i]);
    }
    centre(d, m, s->out);
    for (int i = 0; i < m->n; i++) put(row->of_x, i, s->out[i]);
    return;
  }
  centre(d, m, s->a);
  sums(m, false, s->a, s->h, D);
  sums(m, true, s->a, s->x, Q);
  sums(m, false, s->cg, s->x, Z);
  for (int i = 0; i < m->n; i++) {
    const element *e = &m->e[i];
    const int g = e->group;
    const double q = r[g].v, q3 = q * q * q, weight = w[e->channel] + d->weight_offset;
    number bent = plus(scaled(q, s->a[i]), scaled(-q3, times(Q[g], s->x[i])));
    number of_x = plus(scaled(3 * q3 * q * q, times(C[g], Q[g])), scaled(-q3, D[g]));
    of_x = scaled(e->a, plus(of_x, scaled(-q3, Z[g])));
    number others = plus(times(Q[g], s->h[i]), scaled(e->a, times(C[g], s->a[i])));
    s->out[i] = plus(plus(times(of_x, s->x[i]), scaled(-q3, others)), scaled(q, s->cg[i]));
    number d_g = plus(scaled(weight, bent), scaled(c ? c[e->channel] * q : 0, s->x[i]));
    if (c && d->bias && e->bias >= 0) d_g = plus(d_g, of(c[m->channels + e->bias]));
    put(row->of_z, i, d_g);
    add(row->of_w, e->channel, times(s->g[i], bent));
  }
  centre(d, m, s->out);
  for (int i = 0; i < m->n; i++) put(row->of_x, i, s->out[i]);
}

void reference_norm_run(const void *desc, clb_pass pass, int64_t rows, double *const *v,
                        double *const *wanted, double *const *scale) {
  const clb_rms_norm_desc *d = desc;
  reference_irreps irreps;
  const reference_place sizes = reference_norm_measure(d);
  if (!sizes.x || !reference_irreps_read(d->irreps, &irreps)) return;
  row_map m = {.e = calloc((size_t)sizes.x, sizeof *m.e)};
  number *all = calloc(6 * (size_t)sizes.x, sizeof *all);
  workspace s = {all,
                 all + sizes.x,
                 all + 2 * sizes.x,
                 all + 3 * sizes.x,
                 all + 4 * sizes.x,
                 all + 5 * sizes.x};
  for (int t = 0; m.e && t < irreps.n; t++) map_term(d, &irreps, t, (int)sizes.x, &m);
  reference_zero(pass, 1, sizes, (reference_place){rows, 1, rows}, wanted, scale);
  for (int64_t i = 0; m.e && all && i < rows; i++) {
    const reference_row r =
        reference_row_at(pass, 1, sizes, (reference_place){i, 0, i}, v, wanted, scale);
    one_row(d, pass, &m, &r, &s);
  }
  free(m.e);
  free(all);
}
