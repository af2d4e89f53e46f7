/* tools/reference/reference_irreps.c - irreps, Wigner 3j symbols and the named products, written
   independently of the library. */
#include "tools/reference/reference_irreps.h"

#include <complex.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- irreps ---- */

static int append(reference_irreps *irreps, int mul, int l, int parity) {
  const long long dim = irreps->dim + (long long)mul * (2 * l + 1);
  if (irreps->n == REFERENCE_MAX_TERMS || dim > INT_MAX) return 0;
  irreps->term[irreps->n++] = (reference_irrep){mul, l, parity, irreps->dim};
  irreps->dim = (int)dim;
  return 1;
}

int reference_irreps_read(const char *text, reference_irreps *irreps) {
  memset(irreps, 0, sizeof *irreps);
  while (strspn(text, " \t\n")) text++;
  for (const char *s = text; *s;) {
    int mul, l, used = 0, used_more = 0;
    if (sscanf(s, "%9d%n", &mul, &used) != 1 || mul < 0) return 0;
    s += used;
    if (sscanf(s, " x%9d%n", &l, &used_more) == 1) s += used_more;
    else l = mul, mul = 1;
    char p = 0;
    if (sscanf(s, " %c%n", &p, &used) != 1 || !strchr("eoy", p) || l < 0 || l > REFERENCE_MAX_L)
      return 0;
    s += used;
    if (!append(irreps, mul, l, p == 'e' || (p == 'y' && l % 2 == 0) ? 1 : -1)) return 0;
    s += strspn(s, " \t\n");
    if (*s && *s != '+') return 0;
    if (*s && !*++s) return 0;
  }
  return 1;
}

static int print_irreps(const reference_irreps *irreps, char out[CLB_IRREPS_BYTES]) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < irreps->n && used < CLB_IRREPS_BYTES; i++) {
    const reference_irrep *t = &irreps->term[i];
    used += (size_t)snprintf(out + used, CLB_IRREPS_BYTES - used, "%s%dx%d%c", i ? "+" : "", t->mul,
                             t->l, t->parity > 0 ? 'e' : 'o');
  }
  return used < CLB_IRREPS_BYTES;
}

/* Merges adjacent terms of the same irrep and drops terms without channels. from: storage for a
 copy. */
static void simplify(reference_irreps *irreps, reference_irreps *from) {
  *from = *irreps;
  irreps->n = irreps->dim = 0;
  for (int i = 0; i < from->n; i++) {
    const reference_irrep *t = &from->term[i];
    reference_irrep *last = irreps->n ? &irreps->term[irreps->n - 1] : NULL;
    if (!t->mul) continue;
    if (last && last->l == t->l && last->parity == t->parity)
      last->mul += t->mul, irreps->dim += t->mul * (2 * t->l + 1);
    else append(irreps, t->mul, t->l, t->parity);
  }
}

/* ---- named products ---- */

typedef struct {
  reference_irreps x, y, filter, z, from; /* from: storage for a copy of one */
  int unfiltered, n;
  clb_instruction path[CLB_MAX_INSTRUCTIONS]; /* out: the term of z, in the order found */
} product;

static product *product_of(const char *x, const char *y, const char *filter) {
  product *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->unfiltered = !filter || !*filter;
  if (reference_irreps_read(x, &p->x) && reference_irreps_read(y, &p->y) &&
      (p->unfiltered || reference_irreps_read(filter, &p->filter)))
    return p;
  free(p);
  return NULL;
}

static int wanted(const product *p, int l, int parity) {
  for (int i = 0; i < p->filter.n; i++)
    if (p->filter.term[i].l == l && p->filter.term[i].parity == parity) return 1;
  return p->unfiltered;
}

/* Adds a path, with its own output, for each requested irrep in the product of two terms. */
static int join(product *p, int i, int j, int mul, clb_mode mode, int has_weight) {
  const reference_irrep *x = &p->x.term[i], *y = &p->y.term[j];
  for (int l = abs(x->l - y->l); l <= x->l + y->l; l++) {
    if (!wanted(p, l, x->parity * y->parity)) continue;
    if (p->n == CLB_MAX_INSTRUCTIONS || !append(&p->z, mul, l, x->parity * y->parity)) return 0;
    p->path[p->n] = (clb_instruction){i, j, p->n, mode, has_weight, 1};
    p->n++;
  }
  return 1;
}

/* ranks[old index] = new index, in ascending order of keys. */
static void sort_outputs(product *p, int (*key)(const reference_irrep *)) {
  reference_irreps *from = &p->from;
  *from = p->z;
  p->z.n = p->z.dim = 0;
  for (int k = 0; k <= 2 * (2 * REFERENCE_MAX_L) + 1; k++)
    for (int i = 0; i < from->n; i++) {
      if (key(&from->term[i]) != k) continue;
      p->path[i].out = p->z.n;
      append(&p->z, from->term[i].mul, from->term[i].l, from->term[i].parity);
    }
}

static int natural_first(const reference_irrep *t) {
  return 2 * t->l + (t->parity != (t->l % 2 ? -1 : 1));
}
static int odd_first(const reference_irrep *t) {
  return 2 * t->l + (t->parity > 0);
} /* e3nn's order */

/* Frees p. */
static int finish(product *p, int good, int by_output, clb_instructions *found) {
  memset(found, 0, sizeof *found);
  good = good && print_irreps(&p->x, found->irreps_x) && print_irreps(&p->y, found->irreps_y) &&
         print_irreps(&p->z, found->irreps_z);
  if (good) found->n_instructions = p->n;
  for (int i = 0; good && i < p->n; i++)
    found->instructions[by_output ? p->path[i].out : i] = p->path[i];
  free(p);
  return good;
}

int reference_channel_wise(const char *x, const char *y, const char *filter, clb_path_order order,
                           clb_instructions *found) {
  product *p = product_of(x, y, filter);
  int good = p != NULL;
  if (!p) return 0;
  for (int i = 0; i < p->x.n; i++)
    for (int j = 0; j < p->y.n; j++) good = good && join(p, i, j, p->x.term[i].mul, CLB_UVU, 1);
  sort_outputs(p, natural_first);
  return finish(p, good, order == CLB_SORTED, found);
}

int reference_fully_connected(const char *x, const char *y, const char *z,
                              clb_instructions *found) {
  product *p = product_of(x, y, z);
  int good = p != NULL;
  if (!p) return 0;
  p->z = p->filter;
  for (int i = 0; i < p->x.n; i++)
    for (int j = 0; j < p->y.n; j++)
      for (int k = 0; k < p->z.n; k++) {
        const reference_irrep *a = &p->x.term[i], *b = &p->y.term[j], *c = &p->z.term[k];
        if (a->parity * b->parity * c->parity < 0 || c->l < abs(a->l - b->l) || c->l > a->l + b->l)
          continue;
        if (p->n == CLB_MAX_INSTRUCTIONS) good = 0;
        else p->path[p->n++] = (clb_instruction){i, j, k, CLB_UVW, 1, 1};
      }
  return finish(p, good, 0, found);
}

int reference_full(const char *x, const char *y, const char *filter, clb_instructions *found) {
  product *p = product_of(x, y, filter);
  int good = p != NULL;
  if (!p) return 0;
  simplify(&p->x, &p->from);
  simplify(&p->y, &p->from);
  for (int i = 0; i < p->x.n; i++)
    for (int j = 0; j < p->y.n; j++)
      good = good && join(p, i, j, p->x.term[i].mul * p->y.term[j].mul, CLB_UVUV, 0);
  sort_outputs(p, odd_first);
  return finish(p, good, 0, found);
}

/* Splits the terms of `to` where those of `at` end. */
static int cut(reference_irreps *to, const reference_irreps *at, reference_irreps *from) {
  int good = 1, i = 0, left = at->n ? at->term[0].mul : 0;
  *from = *to;
  to->n = to->dim = 0;
  for (int j = 0; j < from->n; j++)
    for (int mul = from->term[j].mul; good && mul;) {
      int part = mul < left ? mul : left;
      good = part > 0 && append(to, part, from->term[j].l, from->term[j].parity);
      mul -= part, left -= part;
      if (!left && ++i < at->n) left = at->term[i].mul;
    }
  return good && i == at->n; /* both sides must have the same number of channels */
}

int reference_elementwise(const char *x, const char *y, const char *filter,
                          clb_instructions *found) {
  product *p = product_of(x, y, filter);
  int good = p != NULL;
  if (!p) return 0;
  simplify(&p->x, &p->from);
  simplify(&p->y, &p->from);
  good = cut(&p->x, &p->y, &p->from) && cut(&p->y, &p->x, &p->from);
  for (int i = 0; good && i < p->x.n; i++) good = join(p, i, i, p->x.term[i].mul, CLB_UUU, 0);
  return finish(p, good, 0, found);
}

/* ---- Wigner 3j: Racah's formula, then the change to the real basis ---- */

static long double factorial(int n) {
  static long double table[3 * REFERENCE_MAX_L + 2];
  for (int i = 0; table[n] == 0; i++) table[i] = i ? i * table[i - 1] : 1;
  return table[n];
}

static long double clebsch_gordan(int j1, int m1, int j2, int m2, int J) {
  int M = m1 + m2, first = 0, last = j1 + j2 - J;
  long double sum = 0, root = (2 * J + 1) * factorial(J + j1 - j2) * factorial(J - j1 + j2) *
                              factorial(j1 + j2 - J) / factorial(j1 + j2 + J + 1);
  root *= factorial(J + M) * factorial(J - M) * factorial(j1 - m1) * factorial(j1 + m1) *
          factorial(j2 - m2) * factorial(j2 + m2);
  if (j2 - J - m1 > first) first = j2 - J - m1;
  if (j1 - J + m2 > first) first = j1 - J + m2;
  if (j1 - m1 < last) last = j1 - m1;
  if (j2 + m2 < last) last = j2 + m2;
  for (int k = first; k <= last; k++)
    sum += (k % 2 ? -1 : 1) /
           (factorial(k) * factorial(j1 + j2 - J - k) * factorial(j1 - m1 - k) *
            factorial(j2 + m2 - k) * factorial(J - j2 + m1 + k) * factorial(J - j1 - m2 + k));
  return sqrtl(root) * sum;
}

/* Row m of the complex-to-real matrix, column M = m or -m, without its common factor (-i)^l. */
static double complex change(int m, int M) {
  if (m == 0) return 1;
  if (m < 0) return M > 0 ? sqrt(0.5) : -I * sqrt(0.5);
  return (m % 2 ? -1 : 1) * (M > 0 ? sqrt(0.5) : I * sqrt(0.5));
}

static double complex phase(int l) { /* (-i)^l */
  static const double complex turns[] = {1, -I, -1, I};
  return turns[l % 4];
}

static int step(int m) { return m ? 2 * abs(m) : 1; } /* from -|m| to |m| */

void reference_3j(int l1, int l2, int l3, double *C) {
  int n2 = 2 * l2 + 1, n3 = 2 * l3 + 1, n = (2 * l1 + 1) * n2 * n3;
  double complex common = phase(l1) * phase(l2) * conj(phase(l3));
  memset(C, 0, sizeof *C * (size_t)n);
  for (int m1 = -l1; m1 <= l1; m1++)
    for (int m2 = -l2; m2 <= l2; m2++) {
      int m3 = m1 + m2;
      if (abs(m3) > l3) continue;
      double g = (double)clebsch_gordan(l1, m1, l2, m2, l3);
      for (int a = -abs(m1); a <= abs(m1); a += step(m1))
        for (int b = -abs(m2); b <= abs(m2); b += step(m2))
          for (int c = -abs(m3); c <= abs(m3); c += step(m3))
            C[((a + l1) * n2 + b + l2) * n3 + c + l3] +=
                creal(common * change(m1, a) * change(m2, b) * conj(change(m3, c))) * g;
    }
  long double norm = 0;
  for (int i = 0; i < n; i++) norm += (long double)C[i] * C[i];
  for (int i = 0; i < n; i++) C[i] = fabs(C[i]) < 1e-14 ? 0 : (double)(C[i] / sqrtl(norm));
}
