/* tools/reference/reference_spline.c - cubic splines on the grid of a convolution's knots. */
#include "tools/reference/reference_spline.h"

#include <math.h>
#include <stdbool.h>

static double stretch_of(const reference_grid *g) { return g->stretch > 0 ? g->stretch : 0.5; }

double reference_knot(const reference_grid *g, int i) {
  const double x = (double)i / (g->knots - 1), s = stretch_of(g);
  return g->first + (g->last - g->first) * x / (1 + (1 - x) / s);
}

/* Knots are the closer together where r is large, the larger the stretch is: bisection. */
void reference_grid_break(reference_grid *g, double at) {
  double low = 1e-6, high = 1e6;
  const double y = (at - g->first) / (g->last - g->first), s = stretch_of(g);
  g->split = (int)lround((g->knots - 1) * (1 + s) * y / (y + s)); /* the nearest knot */
  for (int i = 0; i < 200; i++) {
    g->stretch = sqrt(low * high);
    *(reference_knot(g, g->split) < at ? &low : &high) = g->stretch;
  }
}

/* What is left of equation i is m[i] + a number times m[i+1], which soon stays as it is. */
static double eliminated(int i) {
  double f = 0;
  for (int k = 2; k <= i && k < 40; k++) f = 1 / (4 - f);
  return f;
}

/* (m[i-1] + 4 m[i] + m[i+1]) / 6 is the second difference d[i] of values; with m[0], m[1] and m[2]
   on a line, m[1] = d[1], and likewise at the other end. */
static void make_one(int n, int64_t w, const double *values, double *table) {
  for (int64_t j = 0; j < n * w; j++) {
    bool end = j < w || j >= (n - 1) * w;
    table[2 * j] = values[j];
    table[2 * j + 1] = end ? 0 : values[j - w] - 2 * values[j] + values[j + w];
  }
  for (int64_t j = 0; j < w; j++) {
    double *m = table + 2 * j + 1;
    const int64_t next = 2 * w;
    for (int i = 2; i < n - 2; i++)
      m[i * next] = (6 * m[i * next] - m[(i - 1) * next]) * eliminated(i);
    for (int i = n - 3; i >= 2; i--) m[i * next] -= eliminated(i) * m[(i + 1) * next];
    m[0] = 2 * m[next] - m[2 * next];
    m[(n - 1) * next] = 2 * m[(n - 2) * next] - m[(n - 3) * next];
  }
}

void reference_spline_make(const reference_grid *g, const double *values, double *table) {
  const int64_t w = g->width;
  make_one(g->split ? g->split + 1 : g->knots, w, values, table);
  if (g->split)
    make_one(g->knots - g->split, w, values + g->split * w, table + 2 * (g->split + 1) * w);
}

reference_position reference_position_at(const reference_grid *g, double r) {
  const double near = fmin(fmax(r, g->first), g->last),
               y = (near - g->first) / (g->last - g->first), s = stretch_of(g), apart = 1 + y / s,
               scale = (1 + s) / s * (g->knots - 1), t = scale * y / apart;
  reference_position p = {.interval = t < g->knots - 2 ? (int)t : g->knots - 2};
  p.u = t - p.interval;
  if (g->split && p.interval >= g->split) p.interval++; /* a row of the table */
  if (!(r >= g->first && r <= g->last)) return p;
  p.rate = scale / (apart * apart) / (g->last - g->first);
  p.turn = -2 / s * p.rate / apart / (g->last - g->first);
  p.rounding = t + p.rate * (fabs(r) + fabs(g->first));
  return p;
}

reference_weight reference_spline_at(const reference_grid *g, const double *table,
                                     const reference_position *p, int64_t j) {
  const double *a = table + 2 * (p->interval * g->width + j), *b = a + 2 * g->width, u = p->u;
  const double by_t =
                   b[0] - a[0] + ((3 * u * u - 1) * b[1] - (3 * (1 - u) * (1 - u) - 1) * a[1]) / 6,
               twice = (1 - u) * a[1] + u * b[1];
  return (reference_weight){.w = (1 - u) * a[0] + u * b[0] -
                                 u * (1 - u) * ((2 - u) * a[1] + (1 + u) * b[1]) / 6,
                            .slope = p->rate * by_t,
                            .bend = p->rate * p->rate * twice + p->turn * by_t,
                            .size = fabs(a[0]) + fabs(b[0]) + fabs(a[1]) + fabs(b[1])};
}
