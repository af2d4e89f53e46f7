/* tools/reference/reference_norm_activation.c - norm activations in float64, channel by channel.

   y = s x, s a function of r = |x| and b. With P = g . x, Q = a . x, k = s_r / r:
     L = sum a g_x + c g_w = s a.g + k P Q + c s_b P, and its derivatives. */
#include "tools/reference/reference_row.h"

#include <math.h>

#include "tools/reference/reference_activation.h"
#include "tools/reference/reference_irreps.h"

reference_place reference_norm_activation_measure(const clb_norm_activation_desc *d) {
  reference_irreps irreps;
  reference_activation act;
  reference_place sizes = {-1, 0, -1};
  if (!reference_irreps_read(d->irreps, &irreps) ||
      !reference_activation_read(d->act, 0, 1, 0, &act))
    return sizes;
  sizes.x = sizes.z = irreps.dim;
  for (int t = 0; t < irreps.n && d->bias; t++) sizes.w += irreps.term[t].mul;
  return sizes;
}

/* A channel: its components are at + m step, its bias is number w. size: of rounding errors. */
typedef struct {
  int at, step, n, w;
  double r, b, s, s_r, s_b, k, k_r, s_rb, s_bb; /* k_r: by r, divided by r; s_rb: by r, too */
  double size, slope_size, bend_size;
} channel;

static void differentiate(const clb_norm_activation_desc *d, const reference_activation *act,
                          channel *c, double norm) {
  const double epsilon = d->epsilon > 0 ? d->epsilon : 1e-8, one = fabs(act->factor);
  const int fixed = d->normalize && norm < epsilon;
  double f[3], size;
  const double r = c->r = fixed ? epsilon : norm, over = r > 0 ? 1 / r : 0;
  reference_activate(act, r + c->b, f, &size);
  size += fabs(f[1]) * (r + fabs(c->b)); /* of the sum */
  if (!d->normalize) {
    c->s = f[0], c->s_r = c->s_b = f[1], c->s_bb = f[2];
    c->k_r = (f[2] - f[1] * over) * over * over, c->s_rb = f[2] * over;
    c->size = size, c->slope_size = one, c->bend_size = one * (r + 1);
  } else {
    c->s = f[0] / r, c->s_b = f[1] / r, c->s_bb = f[2] / r;
    c->s_r = f[1] / r - f[0] / r / r;
    c->s_rb = (f[2] / r - f[1] / r / r) / r;
    c->k_r = ((f[2] - 2 * f[1] / r + 2 * f[0] / r / r) / r - c->s_r / r) / r / r;
    c->size = size / r, c->slope_size = (one + size / r) / r, c->bend_size = one + c->slope_size;
  }
  c->k = c->s_r * over;
  if (fixed) c->k = c->k_r = c->s_rb = 0;
}

static void one_channel(const clb_norm_activation_desc *d, clb_pass pass, channel *c,
                        const reference_row *r) {
  const double *x = r->x, *g = r->g ? r->g : x, *a = r->a ? r->a : x;
  const double in = d->bias && r->c ? r->c[c->w] : 0;
  double P = 0, Q = 0, ag = 0, gg = 0, aa = 0;
  for (int m = 0; m < c->n; m++) {
    const int e = c->at + m * c->step;
    P += g[e] * x[e], Q += a[e] * x[e], ag += a[e] * g[e], gg += g[e] * g[e], aa += a[e] * a[e];
  }
  const double G = sqrt(gg), A = sqrt(aa), R = c->r;
  for (int m = 0; m < c->n; m++) {
    const int e = c->at + m * c->step;
    if (pass == CLB_FORWARD) reference_put(r->of_z, e, c->s * x[e], c->size * fabs(x[e]));
    if (pass == CLB_BACKWARD)
      reference_put(r->of_x, e, c->s * g[e] + c->k * P * x[e], (c->size + c->slope_size * R) * G);
    if (pass != CLB_DOUBLE_BACKWARD) continue;
    reference_put(r->of_z, e, c->s * a[e] + c->k * Q * x[e] + in * c->s_b * x[e],
                  (c->size + c->slope_size * R) * A + fabs(in) * c->slope_size * R);
    reference_put(r->of_x, e,
                  (c->k * ag + c->k_r * P * Q + in * c->s_rb * P) * x[e] +
                      c->k * (Q * g[e] + P * a[e]) + in * c->s_b * g[e],
                  (c->slope_size + c->bend_size) * G * (A + fabs(in)));
  }
  if (!d->bias || pass == CLB_FORWARD) return;
  if (pass == CLB_BACKWARD) reference_put(r->of_w, c->w, c->s_b * P, c->slope_size * R * G);
  else
    reference_put(r->of_w, c->w, c->s_b * ag + c->s_rb * P * Q + in * c->s_bb * P,
                  (c->slope_size + c->bend_size) * G * (A + fabs(in) * fmax(R, 1)));
}

void reference_norm_activation_run(const void *desc, clb_pass pass, int64_t rows,
                                   double *const *values, double *const *wanted,
                                   double *const *scale) {
  const clb_norm_activation_desc *d = desc;
  const reference_place sizes = reference_norm_activation_measure(d);
  reference_irreps irreps;
  reference_activation act;
  if (sizes.x < 0 || !reference_irreps_read(d->irreps, &irreps) ||
      !reference_activation_read(d->act, 0, 1, 0, &act))
    return;
  for (int64_t i = 0; i < rows; i++) {
    const reference_row r =
        reference_row_at(pass, 1, sizes, (reference_place){i, i, i}, values, wanted, scale);
    for (int t = 0, w = 0; t < irreps.n; t++)
      for (int u = 0; u < irreps.term[t].mul; u++, w++) {
        const reference_irrep *e = &irreps.term[t];
        const int inner = d->layout == CLB_IR_MUL, ir = 2 * e->l + 1;
        channel c = {.at = e->at + (inner ? u : u * ir),
                     .step = inner ? e->mul : 1,
                     .n = ir,
                     .w = w,
                     .b = d->bias ? r.w[w] : 0};
        double squares = 0;
        for (int m = 0; m < ir; m++) squares += pow(r.x[c.at + m * c.step], 2);
        differentiate(d, &act, &c, sqrt(squares));
        one_channel(d, pass, &c, &r);
      }
  }
}
