/* tools/reference/reference_spherical_harmonics.c - spherical harmonics from the explicit sum with
   factorials, differentiated term by term.

   With (X, Y, Z) = (z, x, y), q = X^2 + Y^2 and m = |order|, on the component scale:

     Y_lm = A_m(X, Y) Q_lm(Z, q),   A_m = Re or Im (X + iY)^m,
     Q_lm = N_lm sum_k (-1)^k (l+m)! / (2^(2k+m) k! (m+k)! (l-m-2k)!) q^k Z^(l-m-2k),
     N_lm = sqrt((2l+1) (2 - delta_m0) (l-m)! / (l+m)!).

   On the sphere the terms of Q A are bounded by 2^(l/2) times the norm of the harmonic, so that
   long double keeps 15 digits at l = 20. */
#include "tools/reference/reference_spherical_harmonics.h"

#include <math.h>

typedef long double real;

enum {
  TERMS = REFERENCE_MAX_DEGREE / 2 + 1,
  ORDERS = REFERENCE_MAX_DEGREE + 1,
  ROW = 2 * REFERENCE_MAX_DEGREE + 1
};

/* A number with its first and second derivatives along x, y, z. */
typedef struct {
  real v, d[3], dd[3][3];
} jet;

typedef struct {
  real c[ORDERS][ORDERS][TERMS]; /* [l][m][k]: coefficients of Q */
} sums;

static real factorial(int n) {
  real f = 1;
  for (int i = 2; i <= n; i++) f *= i;
  return f;
}

static void sums_of_degree(sums *s, int l, clb_normalization normalization) {
  real scale = 1;
  if (normalization == CLB_NORM) scale = 1 / sqrtl(2 * l + 1);
  if (normalization == CLB_INTEGRAL) scale = 1 / sqrtl(16 * atanl(1));
  for (int m = 0; m <= l; m++) {
    real norm = scale * sqrtl((2 * l + 1) * (m ? 2 : 1) * (factorial(l - m) / factorial(l + m)));
    for (int k = 0; 2 * k <= l - m; k++) {
      real c = factorial(l + m) /
               (ldexpl(1, 2 * k + m) * factorial(k) * factorial(m + k) * factorial(l - m - 2 * k));
      s->c[l][m][k] = norm * (k % 2 ? -c : c);
    }
  }
}

static real power(real x, int n) { /* 0 for n < 0: such terms have a zero factor */
  real p = n < 0 ? 0 : 1;
  for (; n > 0; n--) p *= x;
  return p;
}

/* Q with derivatives, along the user's axes: x = Y, y = Z, z = X. */
static jet axial(const real *c, int l, int m, const real x[3]) {
  real X = x[2], Y = x[0], Z = x[1], q = X * X + Y * Y;
  real v = 0, z = 0, r = 0, zz = 0, zr = 0, rr = 0; /* derivatives by Z (z) and by q (r) */
  for (int k = 0; 2 * k <= l - m; k++) {
    int n = l - m - 2 * k;
    real q0 = power(q, k), q1 = k * power(q, k - 1), q2 = k * (k - 1) * power(q, k - 2);
    real z0 = power(Z, n), z1 = n * power(Z, n - 1), z2 = n * (n - 1) * power(Z, n - 2);
    v += c[k] * q0 * z0;
    z += c[k] * q0 * z1;
    r += c[k] * q1 * z0;
    zz += c[k] * q0 * z2;
    zr += c[k] * q1 * z1;
    rr += c[k] * q2 * z0;
  }
  return (jet){v,
               {2 * Y * r, z, 2 * X * r},
               {{2 * r + 4 * Y * Y * rr, 2 * Y * zr, 4 * X * Y * rr},
                {2 * Y * zr, zz, 2 * X * zr},
                {4 * X * Y * rr, 2 * X * zr, 2 * r + 4 * X * X * rr}}};
}

/* Re (im = 0) or Im (im = 1) of (X + iY)^m. */
static jet planar(int m, int im, const real x[3]) {
  real re[3], part[3]; /* of the m-th, (m-1)-th, (m-2)-th power */
  for (int j = 0; j < 3; j++) {
    real a = m >= j ? 1 : 0, b = 0;
    for (int i = 0; i < m - j; i++) {
      real t = a * x[2] - b * x[0];
      b = a * x[0] + b * x[2];
      a = t;
    }
    re[j] = im ? b : a;
    part[j] = im ? a : -b; /* the same part (Re or Im) of i times the power */
  }
  real two = (real)m * (m - 1);
  return (jet){re[0],
               {m * part[1], 0, m * re[1]},
               {{-two * re[2], 0, two * part[2]}, {0, 0, 0}, {two * part[2], 0, two * re[2]}}};
}

static jet product(const jet *a, const jet *b) {
  jet c = {.v = a->v * b->v};
  for (int i = 0; i < 3; i++) {
    c.d[i] = a->d[i] * b->v + a->v * b->d[i];
    for (int j = 0; j < 3; j++)
      c.dd[i][j] = a->dd[i][j] * b->v + a->d[i] * b->d[j] + a->d[j] * b->d[i] + a->v * b->dd[i][j];
  }
  return c;
}

static void block(const sums *s, int l, const real x[3], jet y[ROW]) {
  for (int m = 0; m <= l; m++) {
    jet q = axial(s->c[l][m], l, m, x), re = planar(m, 0, x), im = planar(m, 1, x);
    if (m) y[l - m] = product(&im, &q);
    y[l + m] = product(&re, &q);
  }
}

/* Norms of all values, first and second derivatives of degree l at distance s from the origin. */
static void block_norms(int l, clb_normalization normalization, real s, real norm[3]) {
  real scale = sqrtl(2 * l + 1);
  if (normalization == CLB_NORM) scale = 1;
  if (normalization == CLB_INTEGRAL) scale /= sqrtl(16 * atanl(1));
  norm[0] = scale * power(s, l);
  norm[1] = scale * sqrtl((real)l * (2 * l + 1)) * power(s, l - 1);
  norm[2] = scale * sqrtl((real)l * (l - 1) * (2 * l - 1) * (2 * l + 1)) * power(s, l - 2);
}

/* The point u at which the harmonics are evaluated, and its derivative by x: du = (dx - radial u (u
   . dx)) / r. */
typedef struct {
  real u[3], length, r;
  int radial, flat; /* flat: at the origin, where derivatives are defined as 0 */
} place;

static real dot(const real a[3], const real b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static place place_of(const double x[3], int normalize) {
  place p = {.u = {x[0], x[1], x[2]}, .r = 1};
  p.length = sqrtl(dot(p.u, p.u));
  if (!normalize) return p;
  p.radial = p.length > 1e-12L;
  p.flat = !(p.length > 0);
  p.r = p.radial ? p.length : 1e-12L;
  for (int i = 0; i < 3; i++) p.u[i] /= p.r;
  p.length /= p.r;
  return p;
}

/* out = du for dx = in; symmetric, so that it also takes a gradient by u to one by x. */
static void moved(const place *p, const real in[3], real out[3]) {
  real along = p->radial ? dot(p->u, in) : 0;
  for (int i = 0; i < 3; i++) out[i] = p->flat ? 0 : (in[i] - along * p->u[i]) / p->r;
}

typedef struct {
  real gradient[3], hessian[3][3]; /* by u, of sum_i g_i Y_i(u) */
  real first, second;              /* sum_l |g_l| |J_l| and sum_l |g_l| |H_l| */
} weighted;

static void weigh(weighted *w, const jet *y, int n, const double *g, const real norm[3]) {
  real size = 0;
  for (int i = 0; i < n; i++) {
    size += (real)g[i] * g[i];
    for (int a = 0; a < 3; a++) {
      w->gradient[a] += g[i] * y[i].d[a];
      for (int b = 0; b < 3; b++) w->hessian[a][b] += g[i] * y[i].dd[a][b];
    }
  }
  w->first += sqrtl(size) * norm[1];
  w->second += sqrtl(size) * norm[2];
}

/* d/dx of h . g_x.  Normalised: g_x = P g / r with P = 1 - u u^T, and both u and r move with x:
   r^2 d_x = P (H p - (u.g) h - (u.h) g) - (p.g) u,  p = P h. */
static void second_derivative(const place *p, const weighted *w, const real h[3], real d_x[3]) {
  real step[3], t[3], uh = dot(p->u, h), ug = dot(p->u, w->gradient);
  moved(p, h, step);
  for (int a = 0; a < 3; a++) {
    t[a] = dot(w->hessian[a], step);
    if (p->radial) t[a] -= (ug * h[a] + uh * w->gradient[a]) / p->r;
  }
  moved(p, t, d_x);
  if (!p->radial) return;
  for (int a = 0; a < 3; a++) d_x[a] -= dot(step, w->gradient) * p->u[a] / p->r;
}

static void prepare(sums *s, const clb_spherical_harmonics_desc *desc) {
  for (int i = 0; i < desc->n_degrees; i++)
    sums_of_degree(s, desc->degrees[i], desc->normalization);
}

static int row_width(const clb_spherical_harmonics_desc *desc) {
  int width = 0;
  for (int i = 0; i < desc->n_degrees; i++) width += 2 * desc->degrees[i] + 1;
  return width;
}

void reference_forward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                       double *y, double *y_scale) {
  sums s;
  prepare(&s, desc);
  for (int64_t row = 0; row < n; row++) {
    place p = place_of(x + 3 * row, desc->normalize);
    for (int i = 0; i < desc->n_degrees; i++) {
      int l = desc->degrees[i];
      jet values[ROW];
      real norm[3];
      block(&s, l, p.u, values);
      block_norms(l, desc->normalization, p.length, norm);
      for (int m = 0; m < 2 * l + 1; m++) {
        *y++ = (double)values[m].v;
        *y_scale++ = (double)norm[0];
      }
    }
  }
}

static weighted weighted_sum(const sums *s, const clb_spherical_harmonics_desc *desc,
                             const place *p, const double *g) {
  weighted w = {.first = 0};
  for (int i = 0; i < desc->n_degrees; i++) {
    int l = desc->degrees[i];
    jet values[ROW];
    real norm[3];
    block(s, l, p->u, values);
    block_norms(l, desc->normalization, p->length, norm);
    weigh(&w, values, 2 * l + 1, g, norm);
    g += 2 * l + 1;
  }
  return w;
}

void reference_backward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                        const double *g_y, double *g_x, double *g_x_scale) {
  sums s;
  prepare(&s, desc);
  for (int64_t row = 0; row < n; row++) {
    place p = place_of(x + 3 * row, desc->normalize);
    weighted w = weighted_sum(&s, desc, &p, g_y + row_width(desc) * row);
    real out[3];
    moved(&p, w.gradient, out);
    for (int a = 0; a < 3; a++) {
      g_x[3 * row + a] = (double)out[a];
      g_x_scale[3 * row + a] = (double)(w.first / p.r);
    }
  }
}

void reference_double_backward(const clb_spherical_harmonics_desc *desc, int64_t n, const double *x,
                               const double *g_y, const double *h, double *d_x, double *d_g_y,
                               double *d_x_scale, double *d_g_y_scale) {
  sums s;
  prepare(&s, desc);
  for (int64_t row = 0; row < n; row++) {
    place p = place_of(x + 3 * row, desc->normalize);
    weighted w = weighted_sum(&s, desc, &p, g_y + row_width(desc) * row);
    real hr[3] = {h[3 * row], h[3 * row + 1], h[3 * row + 2]}, size = sqrtl(dot(hr, hr)), step[3],
         out[3];
    moved(&p, hr, step);
    second_derivative(&p, &w, hr, out);
    for (int a = 0; a < 3; a++) {
      d_x[3 * row + a] = (double)out[a];
      d_x_scale[3 * row + a] =
          (double)((w.second + (p.radial ? 3 * w.first : 0)) * size / (p.r * p.r));
    }
    for (int i = 0; i < desc->n_degrees; i++) {
      int l = desc->degrees[i];
      jet values[ROW];
      real norm[3];
      block(&s, l, p.u, values);
      block_norms(l, desc->normalization, p.length, norm);
      for (int m = 0; m < 2 * l + 1; m++) {
        *d_g_y++ = (double)dot(values[m].d, step);
        *d_g_y_scale++ = (double)(norm[1] * size / p.r);
      }
    }
  }
}
