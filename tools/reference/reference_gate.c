/* tools/reference/reference_gate.c - gates in float64, channel by channel. */
#include "tools/reference/reference_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/reference/reference_activation.h"
#include "tools/reference/reference_irreps.h"

/* A channel of scalars, gates or gated; in, out: its first component. */
typedef struct {
  int part, l, parity, in, in_step, out, out_step, out_parity, first_of_term;
  reference_activation act;
} channel;

typedef struct {
  reference_irreps part[3];
  channel *c;
  int first[4], x, y; /* first: channels of each part; their number */
} map;

static int read_parts(const clb_gate_desc *d, map *m) {
  const char *texts[] = {d->irreps_scalars, d->irreps_gates, d->irreps_gated},
             *acts[] = {d->act_scalars, d->act_gates};
  int n = 0;
  for (int p = 0; p < 3; p++) {
    if (!reference_irreps_read(texts[p] ? texts[p] : "", &m->part[p])) return 0;
    for (int t = 0; t < m->part[p].n; t++) n += m->part[p].term[t].mul;
  }
  m->c = calloc((size_t)n + 1, sizeof *m->c);
  if (!m->c) return 0;
  for (int p = 0, i = 0; p < 3; m->first[++p] = i)
    for (int t = 0; t < m->part[p].n; t++) {
      const reference_irrep *term = &m->part[p].term[t];
      channel one = {.part = p, .l = term->l, .parity = term->parity, .in = -1};
      if (p < 2 &&
          (term->l || !reference_activation_read(acts[p], t, m->part[p].n, d->normalize, &one.act)))
        return 0;
      for (int u = 0; u < term->mul; u++) {
        m->c[i] = one;
        m->c[i++].first_of_term = !u;
      }
    }
  return 1;
}

/* The next channel of this irrep that has no place yet. */
static channel *next(map *m, int n, int l, int parity) {
  for (int i = 0; i < n; i++)
    if (m->c[i].in < 0 && m->c[i].l == l && m->c[i].parity == parity) return &m->c[i];
  return NULL;
}

static int place_term(map *m, int n, int mul, int l, int parity, int by_component) {
  for (int u = 0; u < mul; u++) {
    channel *c = next(m, n, l, parity);
    if (!c) return 0;
    c->in = m->x + (by_component ? u : u * (2 * l + 1));
    c->in_step = by_component ? mul : 1;
  }
  m->x += mul * (2 * l + 1);
  return 1;
}

static int place_inputs(const clb_gate_desc *d, map *m, int n) {
  const int by_component = d->layout == CLB_IR_MUL;
  reference_irreps x;
  if (d->irreps_x) {
    if (!reference_irreps_read(d->irreps_x, &x)) return 0;
    for (int t = 0; t < x.n; t++)
      if (!place_term(m, n, x.term[t].mul, x.term[t].l, x.term[t].parity, by_component)) return 0;
    return 1;
  }
  for (int l = 0; l <= REFERENCE_MAX_L; l++)
    for (int odd = 1; odd >= 0; odd--) {
      int mul = 0;
      for (int i = 0; i < n; i++) mul += m->c[i].l == l && (m->c[i].parity < 0) == odd;
      if (!place_term(m, n, mul, l, odd ? -1 : 1, by_component)) return 0;
    }
  return 1;
}

static void place_outputs(const clb_gate_desc *d, map *m, int n) {
  for (int from = 0, to; from < n; from = to) {
    const channel *c = &m->c[from];
    const int ir = 2 * c->l + 1;
    for (to = from + 1; to < n && !m->c[to].first_of_term && m->c[to].part == c->part &&
                        m->c[to].out_parity == c->out_parity;)
      to++;
    if (c->part == 1) continue;
    for (int i = from; i < to; i++) {
      m->c[i].out = m->y + (i - from) * (d->layout == CLB_IR_MUL ? 1 : ir);
      m->c[i].out_step = d->layout == CLB_IR_MUL ? to - from : 1;
    }
    m->y += (to - from) * ir;
  }
}

static int make_map(const clb_gate_desc *d, map *m) {
  memset(m, 0, sizeof *m);
  if (!read_parts(d, m)) return 0;
  const int n = m->first[3];
  if (m->first[2] - m->first[1] != n - m->first[2]) return 0;
  for (int i = 0; i < n; i++) {
    channel *c = &m->c[i], *gate = c->part == 2 ? &m->c[m->first[1] + i - m->first[2]] : c;
    const int parity = reference_activation_parity(&gate->act, gate->parity);
    if (!parity) return 0;
    c->out_parity = c->part == 2 ? c->parity * parity : parity;
  }
  if (!place_inputs(d, m, n)) return 0;
  place_outputs(d, m, n);
  return 1;
}

reference_place reference_gate_measure(const clb_gate_desc *d) {
  map m;
  reference_place sizes = {-1, 0, 0};
  if (make_map(d, &m)) sizes = (reference_place){m.x, 0, m.y};
  free(m.c);
  return sizes;
}

/* ---- passes ---- */

static void one_scalar(const channel *c, clb_pass pass, const reference_row *r) {
  double f[3], size;
  reference_activate(&c->act, r->x[c->in], f, &size);
  const double one = fabs(c->act.factor), g = r->g ? r->g[c->out] : 0, a = r->a ? r->a[c->in] : 0;
  if (pass == CLB_FORWARD) reference_put(r->of_z, c->out, f[0], size);
  if (pass == CLB_BACKWARD) reference_put(r->of_x, c->in, f[1] * g, one * fabs(g));
  if (pass != CLB_DOUBLE_BACKWARD) return;
  reference_put(r->of_z, c->out, f[1] * a, one * fabs(a));
  reference_put(r->of_x, c->in, f[2] * g * a, one * fabs(g * a));
}

static void one_gated(const channel *c, const channel *gate, clb_pass pass,
                      const reference_row *r) {
  double f[3], size, gx = 0, ag = 0, gx_size = 0, ag_size = 0;
  reference_activate(&gate->act, r->x[gate->in], f, &size);
  const double one = fabs(gate->act.factor), a_t = r->a ? r->a[gate->in] : 0;
  for (int m = 0; m < 2 * c->l + 1; m++) {
    const int in = c->in + m * c->in_step, out = c->out + m * c->out_step;
    const double x = r->x[in], g = r->g ? r->g[out] : 0, a = r->a ? r->a[in] : 0;
    gx += g * x, gx_size += fabs(g * x), ag += a * g, ag_size += fabs(a * g);
    if (pass == CLB_FORWARD) reference_put(r->of_z, out, f[0] * x, size * fabs(x));
    if (pass == CLB_BACKWARD) reference_put(r->of_x, in, f[0] * g, size * fabs(g));
    if (pass != CLB_DOUBLE_BACKWARD) continue;
    reference_put(r->of_z, out, f[0] * a + f[1] * a_t * x, size * fabs(a) + one * fabs(a_t * x));
    reference_put(r->of_x, in, f[1] * a_t * g, one * fabs(a_t * g));
  }
  if (pass == CLB_BACKWARD) reference_put(r->of_x, gate->in, f[1] * gx, one * gx_size);
  if (pass == CLB_DOUBLE_BACKWARD)
    reference_put(r->of_x, gate->in, f[1] * ag + f[2] * a_t * gx,
                  one * (ag_size + fabs(a_t) * gx_size));
}

void reference_gate_run(const void *desc, clb_pass pass, int64_t rows, double *const *v,
                        double *const *wanted, double *const *scale) {
  const clb_gate_desc *d = desc;
  map m;
  const int good = make_map(d, &m);
  for (int64_t i = 0; good && i < rows; i++) {
    const reference_row r = reference_row_at(pass, 0, (reference_place){m.x, 0, m.y},
                                             (reference_place){i, 0, i}, v, wanted, scale);
    for (int c = 0; c < m.first[1]; c++) one_scalar(&m.c[c], pass, &r);
    for (int c = m.first[2]; c < m.first[3]; c++)
      one_gated(&m.c[c], &m.c[c - m.first[2] + m.first[1]], pass, &r);
  }
  free(m.c);
}
