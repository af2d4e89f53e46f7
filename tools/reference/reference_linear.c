/* tools/reference/reference_linear.c - linear maps of irreps in float64: the map as a list of
   coefficients, z[k] += c w[j] x[i] and z[k] += w[j], of which each pass is a loop over all. */
#include "tools/reference/reference_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/reference/reference_irreps.h"

/* x < 0: a bias. */
typedef struct {
  int x, w, z;
  double c;
} entry;

typedef struct {
  reference_irreps in, out;
  entry *list; /* NULL: only counted */
  int64_t n;
  int w; /* weights so far */
} map;

static int place(const reference_irrep *t, clb_layout layout, int u, int m) {
  return t->at + (layout == CLB_IR_MUL ? m * t->mul + u : u * (2 * t->l + 1) + m);
}

static int equal(const reference_irrep *a, const reference_irrep *b) {
  return a->l == b->l && a->parity == b->parity;
}

/* The pairs of terms, at most 512 * 512 of them; returns how many. */
static int pairs(const clb_linear_desc *d, const map *m, clb_linear_instruction *to) {
  int n = 0;
  if (d->instructions) {
    memcpy(to, d->instructions, sizeof *to * (size_t)d->n_instructions);
    return d->n_instructions;
  }
  for (int i = 0; i < m->in.n; i++)
    for (int k = 0; k < m->out.n; k++)
      if (equal(&m->in.term[i], &m->out.term[k])) to[n++] = (clb_linear_instruction){i, k};
  return n;
}

static double alpha(const clb_linear_desc *d, const map *m, const clb_linear_instruction *list,
                    int n, int i) {
  int paths = 0, channels = 0;
  for (int j = 0; j < n; j++)
    if (list[j].out == list[i].out) paths++, channels += m->in.term[list[j].in].mul;
  if (d->path_normalization == CLB_PATH_NONE) return 1;
  if (d->path_normalization == CLB_PATH_PATH) channels = paths * m->in.term[list[i].in].mul;
  return channels ? pow(channels, -0.5) : 1;
}

static void add(map *m, int x, int w, int z, double c) {
  if (m->list) m->list[m->n] = (entry){x, w, z, c};
  m->n++;
}

static void make(const clb_linear_desc *d, map *m) {
  clb_linear_instruction *list = malloc(sizeof *list * 512 * 512);
  const int n = list ? pairs(d, m, list) : 0;
  m->n = m->w = 0;
  for (int i = 0; i < n; i++) {
    const reference_irrep *a = &m->in.term[list[i].in], *b = &m->out.term[list[i].out];
    for (int u = 0; u < a->mul; u++)
      for (int v = 0; v < b->mul; v++, m->w++)
        for (int c = 0; c <= 2 * a->l; c++)
          add(m, place(a, d->layout_in, u, c), m->w, place(b, d->layout_out, v, c),
              alpha(d, m, list, n, i));
  }
  for (int k = 0; k < m->out.n; k++) {
    const reference_irrep *b = &m->out.term[k];
    const int scalar = b->l == 0 && b->parity == 1;
    if (!(d->biases ? d->biases[k] : d->bias && scalar)) continue;
    for (int v = 0; v < b->mul; v++) add(m, -1, m->w++, b->at + v, 1);
  }
  free(list);
}

static int read_map(const clb_linear_desc *d, map *m) {
  return reference_irreps_read(d->irreps_in, &m->in) &&
         reference_irreps_read(d->irreps_out, &m->out);
}

reference_place reference_linear_measure(const clb_linear_desc *d) {
  reference_place sizes = {-1, 0, 0};
  map *m = calloc(1, sizeof *m);
  if (m && read_map(d, m)) {
    make(d, m);
    sizes = (reference_place){m->in.dim, m->w, m->out.dim};
  }
  free(m);
  return sizes;
}

static double at(const double *v, int i) { return v ? v[i] : 0; }

static void plus(reference_result to, int i, double term) {
  reference_add(to, i, term, fabs(term));
}

static void one_entry(const entry *e, clb_pass pass, const reference_row *r) {
  const double w = at(r->w, e->w), g = at(r->g, e->z), c = at(r->c, e->w);
  if (e->x < 0) { /* a bias */
    if (pass != CLB_BACKWARD) plus(r->of_z, e->z, pass ? c : w);
    else plus(r->of_w, e->w, g);
    return;
  }
  const double x = e->c * at(r->x, e->x), a = e->c * at(r->a, e->x);
  if (pass == CLB_FORWARD) plus(r->of_z, e->z, w * x);
  if (pass == CLB_BACKWARD) {
    plus(r->of_x, e->x, e->c * w * g);
    plus(r->of_w, e->w, x * g);
  }
  if (pass != CLB_DOUBLE_BACKWARD) return;
  plus(r->of_x, e->x, e->c * c * g);
  plus(r->of_w, e->w, a * g);
  plus(r->of_z, e->z, w * a);
  plus(r->of_z, e->z, c * x);
}

void reference_linear_run(const clb_linear_desc *d, clb_pass pass, int64_t rows, const int32_t *of,
                          int64_t weights, double *const *values, double *const *wanted,
                          double *const *scale) {
  map *m = calloc(1, sizeof *m);
  if (m && read_map(d, m)) make(d, m);
  if (m) m->list = malloc(sizeof *m->list * (size_t)(m->n + 1));
  if (m && m->list) {
    const reference_place width = {m->in.dim, m->w, m->out.dim};
    make(d, m);
    reference_zero(pass, 1, width, (reference_place){rows, weights, rows}, wanted, scale);
    for (int64_t i = 0; i < rows; i++) {
      const reference_row r =
          reference_row_at(pass, 1, width, (reference_place){i, of[i], i}, values, wanted, scale);
      for (int64_t e = 0; e < m->n; e++) one_entry(&m->list[e], pass, &r);
    }
  }
  if (m) free(m->list);
  free(m);
}
