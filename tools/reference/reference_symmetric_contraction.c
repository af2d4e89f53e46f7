/* tools/reference/reference_symmetric_contraction.c - symmetric contractions, monomial by
   monomial. */
#include "tools/reference/reference_symmetric_contraction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4, MAX_COMPONENTS = 25 };

/* c A[M_1] ... A[M_nu], M_1 <= ... <= M_nu, of one path's component m. */
typedef struct {
  double c;
  int path, out, m, nu, M[MOST];
} monomial;

struct reference_contraction {
  clb_symmetric_contraction_desc desc;
  int n_paths;
  int64_t n, cap;
  monomial *list;
};

reference_contraction *reference_contraction_create(const clb_symmetric_contraction_desc *desc) {
  reference_contraction *r = calloc(1, sizeof *r);
  if (r) r->desc = *desc;
  return r;
}

void reference_contraction_destroy(reference_contraction *r) {
  if (r) free(r->list);
  free(r);
}

static int keep(reference_contraction *r, const monomial *one) {
  if (r->n == r->cap) {
    r->cap = 2 * r->cap + 1024;
    monomial *more = realloc(r->list, sizeof *more * (size_t)r->cap);
    if (!more) return 0;
    r->list = more;
  }
  r->list[r->n++] = *one;
  return 1;
}

/* The sum of u over all different orders of M: the coefficient of the monomial. */
static double coefficient(const double *u, int d, int nu, const int *M) {
  double sum = 0;
  for (int code = 0; code < 256; code++) {
    int at = 0, seen = 0, first = 1;
    for (int i = 0, c = code; i < nu; i++, c /= 4) {
      int k = c % 4;
      if (k >= nu || seen >> k & 1) {
        first = 0;
        break;
      }
      for (int j = 0; j < k; j++) /* of equal factors the earlier one comes first */
        if (M[j] == M[k] && !(seen >> j & 1)) first = 0;
      seen |= 1 << k;
      at = at * d + M[k];
    }
    if (first && code < 1 << 2 * nu) sum += u[at];
  }
  return sum;
}

int reference_contraction_add(reference_contraction *r, int out, int nu, const double *u) {
  int d = (r->desc.ell + 1) * (r->desc.ell + 1), l = r->desc.degrees[out];
  int64_t all = 1;
  for (int i = 0; i < nu; i++) all *= d;
  for (int m = 0; m < 2 * l + 1; m++) {
    monomial one = {.path = r->n_paths, .out = out, .m = m, .nu = nu};
    for (int more = 1; more;) {
      one.c = coefficient(u + m * all, d, nu, one.M);
      if (one.c != 0 && !keep(r, &one)) return 0;
      int i = nu - 1;
      while (i >= 0 && one.M[i] == d - 1) i--;
      more = i >= 0;
      for (int next = more ? one.M[i] + 1 : 0; more && i < nu; i++) one.M[i] = next;
    }
  }
  r->n_paths++;
  return 1;
}

reference_place reference_contraction_sizes(const reference_contraction *r) {
  const clb_symmetric_contraction_desc *d = &r->desc;
  reference_place w = {(d->ell + 1) * (d->ell + 1) * d->channels, r->n_paths * d->channels, 0};
  for (int i = 0; i < d->n_degrees; i++) w.z += (2 * d->degrees[i] + 1) * d->channels;
  return w;
}

/* ---- one row and channel ---- */

/* Of the component m of a term; `before` is the number of components before it, `all` of a row. */
static int place(clb_layout layout, int channels, int before, int l, int m, int channel, int all) {
  if (layout == CLB_BY_CHANNEL) return channel * all + before + m;
  return before * channels +
         (layout == CLB_MUL_IR ? channel * (2 * l + 1) + m : m * channels + channel);
}

static int x_at(const clb_symmetric_contraction_desc *d, int M, int channel) {
  int l = 0;
  while ((l + 1) * (l + 1) <= M) l++;
  return place(d->layout_x, d->channels, l * l, l, M - l * l, channel, (d->ell + 1) * (d->ell + 1));
}

static int z_at(const clb_symmetric_contraction_desc *d, int out, int m, int channel) {
  int before = 0, all = 0;
  for (int i = 0; i < d->n_degrees; i++) {
    if (i < out) before += 2 * d->degrees[i] + 1;
    all += 2 * d->degrees[i] + 1;
  }
  return place(d->layout_z, d->channels, before, d->degrees[out], m, channel, all);
}

static void add(reference_result to, int64_t at, double term) {
  reference_add(to, at, term, fabs(term));
}

/* Products of the A of a monomial without the factors i and k (-1: with them). */
static double without(const monomial *q, const double *A, int i, int k) {
  double product = 1;
  for (int f = 0; f < q->nu; f++)
    if (f != i && f != k) product *= A[q->M[f]];
  return product;
}

typedef struct {
  const double *A, *a; /* [d]: of x and of a */
  double w, c, g;      /* weight, its incoming gradient, gradient of z */
} factors;

/* Where a monomial's results go. */
typedef struct {
  reference_result x, w, z;
  int at_w, at_z;
} targets;

static void one_monomial(const clb_symmetric_contraction_desc *d, const monomial *q, clb_pass pass,
                         int channel, const factors *f, const targets *t) {
  double all = q->c * without(q, f->A, -1, -1);
  if (pass == CLB_FORWARD) add(t->z, t->at_z, f->w * all);
  if (pass == CLB_BACKWARD) add(t->w, t->at_w, f->g * all);
  if (pass == CLB_DOUBLE_BACKWARD) add(t->z, t->at_z, f->c * all);
  for (int i = 0; i < q->nu && pass; i++) {
    double one = q->c * without(q, f->A, i, -1), along = f->a[q->M[i]];
    int at = x_at(d, q->M[i], channel);
    if (pass == CLB_BACKWARD) {
      add(t->x, at, f->g * f->w * one);
      continue;
    }
    add(t->z, t->at_z, f->w * one * along);
    add(t->w, t->at_w, f->g * one * along);
    add(t->x, at, f->g * f->c * one);
    for (int k = 0; k < q->nu; k++)
      if (k != i) add(t->x, at, f->g * f->w * q->c * without(q, f->A, i, k) * f->a[q->M[k]]);
  }
}

/* ---- all rows ---- */

static void one_channel(const reference_contraction *r, clb_pass pass, int channel,
                        const reference_row *row) {
  const clb_symmetric_contraction_desc *d = &r->desc;
  double A[MAX_COMPONENTS], a[MAX_COMPONENTS];
  for (int M = 0; M < (d->ell + 1) * (d->ell + 1); M++) {
    A[M] = row->x[x_at(d, M, channel)];
    a[M] = row->a ? row->a[x_at(d, M, channel)] : 0;
  }
  for (int64_t i = 0; i < r->n; i++) {
    const monomial *q = &r->list[i];
    const targets t = {row->of_x, row->of_w, row->of_z, q->path * d->channels + channel,
                       z_at(d, q->out, q->m, channel)};
    const factors f = {A, a, row->w[t.at_w], row->c ? row->c[t.at_w] : 0,
                       row->g ? row->g[t.at_z] : 0};
    one_monomial(d, q, pass, channel, &f, &t);
  }
}

void reference_contraction_run(const reference_contraction *r, clb_pass pass, int64_t rows,
                               const int32_t *species, double *const *values, double *const *wanted,
                               double *const *scale) {
  const reference_place width = reference_contraction_sizes(r);
  reference_zero(pass, 1, width, (reference_place){rows, r->desc.n_species, rows}, wanted, scale);
  for (int64_t i = 0; i < rows; i++) {
    const reference_row row = reference_row_at(pass, 1, width, (reference_place){i, species[i], i},
                                               values, wanted, scale);
    for (int channel = 0; channel < r->desc.channels; channel++)
      one_channel(r, pass, channel, &row);
  }
}
