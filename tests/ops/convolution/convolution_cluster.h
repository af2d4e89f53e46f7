/* tests/ops/convolution/convolution_cluster.h - the energy of a few atoms by one convolution, its
   forces by a backward pass, and their Jacobian by a double one.

   E = sum over atoms, terms of z and channels of q sqrt(1 + |z|^2), with q fixed numbers; y are the
   harmonics of r = (sender - receiver), w = f exp(-r^2 / 4), or splines of |r| from a table that
   gives f sin |r| only coarsely, and x the harmonics of points that are fixed to the atoms. */
#ifndef CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_CLUSTER_H
#define CLB_TESTS_OPS_CONVOLUTION_CONVOLUTION_CLUSTER_H

#include "tests/ops/convolution/convolution_problems.h"

enum {
  ATOMS = 6,
  BONDS = ATOMS * (ATOMS - 1) + 2,
  CLUSTER_L = 3,
  CLUSTER_Y = 16,
  CLUSTER_POINTS = 5 * ATOMS,
  STENCIL = 8
};
#define CLUSTER_X "2x0e+2x1o+1x2e"
#define CLUSTER_FILTER "0e+1o+1e+2e+2o+3o"

/* A first derivative, of eighth order in steps of 0.02. */
static const double step[STENCIL] = {0.02, -0.02, 0.04, -0.04, 0.06, -0.06, 0.08, -0.08},
                    weight[STENCIL] = {40, -40, -10, 10, 40. / 21, -40. / 21, -5. / 28, 5. / 28};

typedef struct {
  convolution *c;
  clb_op *harmonics;
  clb_graph *graph;
  edge_list edges;
  arrays a; /* in: x, y, w, g, (a,) b, c */
  double position[3 * ATOMS], point[3 * CLUSTER_POINTS], r[3 * BONDS];
  double size; /* sum of |dE/dr| */
  bool splines;
} cluster;

/* Through four values the splines are smooth between the ends; no distance of two atoms is close to
   those. */
enum { CLUSTER_KNOTS = 4 };
static const double first_knot = 0.42, last_knot = 2.48;

static inline double factor(int i) { return sin(1 + 1.7 * i); } /* q and f */

/* ---- harmonics ---- */

static inline clb_rows cluster_rows(cluster *c, const double *from, int n, int width) {
  return (clb_rows){.buffer =
                        buffer_of(&c->c->product, from, (size_t)(n * width), (size_t)(n * width)),
                    .stride = CLB_DENSE};
}

/* Forward: y; backward: g_x; double backward: d_x, d_g_y. */
static inline void cluster_harmonics(cluster *c, int pass, int n, const double *x, const double *g,
                                     const double *h, double *out, double *second) {
  clb_rows in[3] = {cluster_rows(c, x, n, 3), cluster_rows(c, g, n, CLUSTER_Y),
                    cluster_rows(c, h, n, 3)};
  clb_rows to = cluster_rows(c, NULL, n, pass == CLB_FORWARD ? CLUSTER_Y : 3),
           other = cluster_rows(c, NULL, n, CLUSTER_Y);
  clb_context *ctx = c->c->product.ctx;
  if (pass == CLB_FORWARD) OK(ctx, clb_spherical_harmonics_forward(c->harmonics, n, in[0], to));
  if (pass == CLB_BACKWARD)
    OK(ctx, clb_spherical_harmonics_backward(c->harmonics, n, in[0], in[1], to));
  if (pass == CLB_DOUBLE_BACKWARD)
    OK(ctx,
       clb_spherical_harmonics_double_backward(c->harmonics, n, in[0], in[1], in[2], to, other));
  OK(ctx, clb_buffer_read(to.buffer, 0, out,
                          sizeof *out * (size_t)(n * (pass == CLB_FORWARD ? CLUSTER_Y : 3))));
  if (second)
    OK(ctx, clb_buffer_read(other.buffer, 0, second, sizeof *second * (size_t)(n * CLUSTER_Y)));
  for (int i = 0; i < 3; i++) clb_buffer_destroy(&in[i].buffer);
  clb_buffer_destroy(&to.buffer);
  clb_buffer_destroy(&other.buffer);
}

/* x from the points. */
static inline void cluster_features(cluster *c) {
  const dense_irreps *x = &c->c->product.dense->of[LIKE_X];
  double y[CLUSTER_POINTS][CLUSTER_Y];
  int point = 0;
  cluster_harmonics(c, CLB_FORWARD, CLUSTER_POINTS, c->point, NULL, NULL, y[0], NULL);
  for (int i = 0; i < ATOMS; i++)
    for (int t = 0; t < x->n; t++)
      for (int u = 0; u < x->term[t].mul; u++, point++)
        for (int m = 0, l = x->term[t].l; m < 2 * l + 1; m++)
          c->a.in[LIKE_X][i * x->dim + dense_at(x, t, c->c->product.dense->layout[LIKE_X], u, m)] =
              y[point][l * l + m];
  assert_int_equal(point, CLUSTER_POINTS);
}

/* ---- create, destroy, turn ---- */

/* Sets the tables of ops of the first `passes` passes. */
static inline void cluster_tabulate(convolution *v, int passes) {
  const int n = v->product.dense->width[LIKE_W];
  double r[CLUSTER_KNOTS], *values = numbers((size_t)(n * CLUSTER_KNOTS));
  for (int pass = CLB_FORWARD; pass < passes; pass++) {
    clb_op *op = convolution_op(v, pass);
    OK(v->product.ctx, clb_convolution_knots(op, r));
    for (int i = 0; i < CLUSTER_KNOTS * n; i++) values[i] = factor(i % n) * sin(r[i / n]);
    OK(v->product.ctx, clb_convolution_set_table(op, values));
  }
  free(values);
}

/* MIXED_CHANNELS: every path of mode uvw. */
typedef enum { GIVEN, SPLINES, MIXED_CHANNELS } cluster_kind;

static inline cluster cluster_create(place *at, cluster_kind kind) {
  const bool splines = kind == SPLINES;
  static const int degrees[] = {0, 1, 2, 3};
  static clb_instructions found;
  clb_context *ctx = context_at(at);
  convolution **made = &at->made[CONVOLVED + (int)kind];
  cluster c = {.edges = edges_create(ATOMS, ATOMS, BONDS), .splines = splines};
  clb_spherical_harmonics_desc harmonics = {.degrees = degrees,
                                            .n_degrees = CLUSTER_L + 1,
                                            .storage = CLB_F64,
                                            .arithmetic = CLB_F64,
                                            .passes = 7};
  clb_convolution_desc d = {.scale = 0.25,
                            .knots = splines ? CLUSTER_KNOTS : 0,
                            .first_knot = first_knot,
                            .last_knot = last_knot};
  uint64_t seed = 12;
  if (kind == MIXED_CHANNELS)
    OK(ctx, clb_fully_connected(ctx, CLUSTER_X, SH3, "3x0e+2x1o+1x1e+3x2e+1x3o", &found));
  else OK(ctx, clb_channel_wise(ctx, CLUSTER_X, SH3, CLUSTER_FILTER, CLB_SORTED, &found));
  d.product = (clb_tensor_product_desc){.irreps_x = found.irreps_x,
                                        .irreps_y = found.irreps_y,
                                        .irreps_z = found.irreps_z,
                                        .instructions = found.instructions,
                                        .n_instructions = found.n_instructions,
                                        .layout_x = CLB_MUL_IR,
                                        .layout_z = CLB_IR_MUL,
                                        .incoming = CLB_OPERAND_Y | CLB_OPERAND_W,
                                        .storage = CLB_F64,
                                        .arithmetic = CLB_F64};
  OK(ctx, clb_spherical_harmonics_create(ctx, &harmonics, &c.harmonics));
  c.c = *made = *made ? *made : convolution_create(ctx, &d); /* compiled once */
  if (splines) cluster_tabulate(c.c, 2), c.c->product.width[LIKE_W] = 1;
  int n = 0;
  for (int i = 0; i < ATOMS * ATOMS; i++)
    if (i / ATOMS != i % ATOMS || i == 7)
      c.edges.senders[n] = i % ATOMS, c.edges.receivers[n++] = i / ATOMS; /* one is a loop */
  c.edges.senders[n] = 4, c.edges.receivers[n++] = 1;                     /* one is there twice */
  assert_int_equal(n, BONDS);
  c.graph = graph_at(at, &c.edges);
  c.a = convolution_arrays(c.c, &c.edges, 3);
  for (int i = 0; i < 3 * ATOMS; i++) c.position[i] = 1.5 * test_random(&seed);
  for (int i = 0; i < 3 * CLUSTER_POINTS; i++) c.point[i] = test_random(&seed);
  cluster_features(&c);
  return c;
}

static inline void cluster_destroy(cluster *c) {
  clb_op_destroy(&c->harmonics);
  edges_destroy(&c->edges);
  arrays_destroy(&c->a);
}

/* About (1, 2, -2)/3 by 1 radian, and inverted. */
static inline void turn(int inverts, const double *x, double *out) {
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1),
               d = a[0] * x[0] + a[1] * x[1] + a[2] * x[2];
  for (int k = 0; k < 3; k++) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k] = (inverts ? -1 : 1) * (c * x[k] + s * (a[i] * x[j] - a[j] * x[i]) + (1 - c) * d * a[k]);
  }
}

static inline void cluster_turn(cluster *c, int inverts) {
  double now[3];
  for (int i = 0; i < ATOMS; i++)
    turn(inverts, c->position + 3 * i, now), memcpy(c->position + 3 * i, now, sizeof now);
  for (int i = 0; i < CLUSTER_POINTS; i++)
    turn(inverts, c->point + 3 * i, now), memcpy(c->point + 3 * i, now, sizeof now);
  cluster_features(c);
}

/* ---- energy ---- */

static inline double square(const double *r) { return r[0] * r[0] + r[1] * r[1] + r[2] * r[2]; }
static inline double radial(const double *r) { return exp(-square(r) / 4); }

/* Fills z. */
static inline void cluster_forward(cluster *c) {
  int width = c->c->product.width[LIKE_W];
  for (int e = 0; e < BONDS; e++) {
    for (int k = 0; k < 3; k++)
      c->r[3 * e + k] =
          c->position[3 * c->edges.senders[e] + k] - c->position[3 * c->edges.receivers[e] + k];
    for (int k = 0; k < width; k++)
      c->a.in[LIKE_W][e * width + k] =
          c->splines ? sqrt(square(c->r + 3 * e)) : factor(k) * radial(c->r + 3 * e);
  }
  cluster_harmonics(c, CLB_FORWARD, BONDS, c->r, NULL, NULL, c->a.in[LIKE_Y], NULL);
  run_convolution(c->c, CLB_FORWARD, &c->edges, c->graph, (manner){DENSE, MAX}, &c->a);
}

/* E of z.  dz NULL: g = dE/dz; else g = (d2E/dz2) dz. */
static inline double cluster_read_out(cluster *c, const double *z, const double *dz, double *g) {
  const dense_irreps *of = &c->c->product.dense->of[LIKE_Z];
  double energy = 0;
  for (int i = 0; i < ATOMS; i++)
    for (int t = 0; t < of->n; t++)
      for (int u = 0; u < of->term[t].mul; u++) {
        int n = 2 * of->term[t].l + 1, at[2 * CLUSTER_L + 1];
        double all = 1, product = 0, q = factor(t * 3 + u);
        for (int m = 0; m < n; m++)
          at[m] = i * of->dim + dense_at(of, t, c->c->product.dense->layout[LIKE_Z], u, m);
        for (int m = 0; m < n; m++)
          all += z[at[m]] * z[at[m]], product += dz ? z[at[m]] * dz[at[m]] : 0;
        energy += q * sqrt(all);
        for (int m = 0; m < n && g; m++)
          g[at[m]] = q / sqrt(all) * (dz ? dz[at[m]] - z[at[m]] * product / all : z[at[m]]);
      }
  return energy;
}

static inline double cluster_energy(cluster *c) {
  cluster_forward(c);
  return cluster_read_out(c, c->a.out[0], NULL, NULL);
}

/* Adds sum over edges of (derivative by r) to the two ends. */
static inline void cluster_scatter(cluster *c, const double *by_r, double sign, double *out) {
  for (int e = 0; e < BONDS; e++)
    for (int k = 0; k < 3; k++) {
      out[3 * c->edges.senders[e] + k] += sign * by_r[3 * e + k];
      out[3 * c->edges.receivers[e] + k] -= sign * by_r[3 * e + k];
      c->size += fabs(by_r[3 * e + k]);
    }
}

/* The gradients by r from those by y and w. */
static inline void cluster_by_r(cluster *c, const double *g_y, const double *g_w, double *by_r) {
  int width = c->c->product.width[LIKE_W];
  cluster_harmonics(c, CLB_BACKWARD, BONDS, c->r, g_y, NULL, by_r, NULL);
  for (int e = 0; e < BONDS && c->splines; e++)
    for (int i = 0; i < 3 && square(c->r + 3 * e) > 0; i++)
      by_r[3 * e + i] += g_w[e] * c->r[3 * e + i] / sqrt(square(c->r + 3 * e));
  for (int e = 0; e < BONDS && !c->splines; e++)
    for (int i = 0; i < width * 3; i++)
      by_r[3 * e + i % 3] -=
          g_w[e * width + i / 3] * factor(i / 3) * radial(c->r + 3 * e) * c->r[3 * e + i % 3] / 2;
}

/* Leaves z in `z`, g in a.in, and the backward pass's results in a.out. */
static inline void cluster_backward(cluster *c, double *z) {
  cluster_forward(c);
  memcpy(z, c->a.out[0], sizeof *z * count_of(c->c, &c->edges, LIKE_Z));
  cluster_read_out(c, z, NULL, c->a.in[LIKE_Z]);
  run_convolution(c->c, CLB_BACKWARD, &c->edges, c->graph, (manner){DENSE, MAX}, &c->a);
}

static inline void cluster_forces(cluster *c, double *force) {
  double by_r[3 * BONDS], *z = numbers(count_of(c->c, &c->edges, LIKE_Z));
  memset(force, 0, sizeof *force * 3 * ATOMS);
  c->size = 0;
  cluster_backward(c, z);
  cluster_by_r(c, c->a.out[1], c->a.out[2], by_r);
  cluster_scatter(c, by_r, -1, force);
  free(z);
}

/* Forces against differences of the energy. */
static inline void expect_slopes(cluster *c, const double *force) {
  double largest = 0;
  for (int i = 0; i < 3 * ATOMS; i++) largest = fmax(largest, fabs(force[i]));
  assert_true(largest > 0.1);
  for (int i = 0; i < 3 * ATOMS; i++) {
    double slope = 0, here = c->position[i];
    for (int s = 0; s < STENCIL; s++) {
      c->position[i] = here + step[s];
      slope += weight[s] * cluster_energy(c);
    }
    c->position[i] = here;
    if (!(fabs(slope + force[i]) <= 1e-9 * largest))
      fail_msg("force %d is %.12g, not %.12g", i, force[i], -slope);
  }
}

/* ---- its second derivative ---- */

/* How y and w, b and c to the double backward pass, move when positions do; and how y's and w's own
   gradients then act on r: by_r. */
static inline void cluster_along(cluster *c, const double *direction, double *by_r) {
  int width = c->c->product.width[LIKE_W];
  double h[3 * BONDS];
  for (int i = 0; i < 3 * BONDS; i++)
    h[i] = direction[3 * c->edges.senders[i / 3] + i % 3] -
           direction[3 * c->edges.receivers[i / 3] + i % 3];
  cluster_harmonics(c, CLB_DOUBLE_BACKWARD, BONDS, c->r, c->a.out[1], h, by_r, c->a.in[5]);
  for (int e = 0; e < BONDS; e++) {
    const double *r = c->r + 3 * e,
                 rh = r[0] * h[3 * e] + r[1] * h[3 * e + 1] + r[2] * h[3 * e + 2];
    for (int k = 0; k < width; k++) {
      double f = factor(k) * radial(r), g = c->a.out[2][e * width + k];
      c->a.in[6][e * width + k] = -f * rh / 2;
      for (int i = 0; i < 3; i++) by_r[3 * e + i] += g * f * (r[i] * rh / 4 - h[3 * e + i] / 2);
    }
  }
}

/* out = (d2E / dposition2) direction: the gradient of the product of dE/dposition with it. */
static inline void cluster_hessian(cluster *c, const double *direction, double *out) {
  size_t y = count_of(c->c, &c->edges, LIKE_Y), w = count_of(c->c, &c->edges, LIKE_W);
  double by_r[3 * BONDS], *z = numbers(count_of(c->c, &c->edges, LIKE_Z)), *d_y = numbers(y),
                          *d_w = numbers(w);
  memset(out, 0, sizeof *out * 3 * ATOMS);
  cluster_backward(c, z);
  cluster_along(c, direction, by_r);
  cluster_scatter(c, by_r, 1, out);
  run_convolution(c->c, CLB_DOUBLE_BACKWARD, &c->edges, c->graph, (manner){DENSE, MAX}, &c->a);
  memcpy(d_y, c->a.out[1], y * sizeof *d_y);
  memcpy(d_w, c->a.out[2], w * sizeof *d_w);
  cluster_read_out(c, z, c->a.out[3], c->a.in[LIKE_Z]);
  run_convolution(c->c, CLB_BACKWARD, &c->edges, c->graph, (manner){DENSE, MAX}, &c->a);
  for (size_t i = 0; i < y; i++) d_y[i] += c->a.out[1][i];
  for (size_t i = 0; i < w; i++) d_w[i] += c->a.out[2][i];
  cluster_by_r(c, d_y, d_w, by_r);
  cluster_scatter(c, by_r, 1, out);
  free(z);
  free(d_y);
  free(d_w);
}

/* How the forces change along a direction, by differences. */
static inline void differences(cluster *c, const double *direction, double *change) {
  double here[3 * ATOMS], force[3 * ATOMS];
  memcpy(here, c->position, sizeof here);
  memset(change, 0, sizeof here);
  for (int s = 0; s < STENCIL; s++) {
    for (int i = 0; i < 3 * ATOMS; i++) c->position[i] = here[i] + step[s] * direction[i];
    cluster_forces(c, force);
    for (int i = 0; i < 3 * ATOMS; i++) change[i] += weight[s] * force[i];
  }
  memcpy(c->position, here, sizeof here);
}

/* The forces' Jacobian, from double backward passes, is symmetric, and tells how the forces change.
 */
static inline void expect_jacobian(place *at, cluster_kind kind) {
  cluster c = cluster_create(at, kind);
  double row[3 * ATOMS][3 * ATOMS], change[3 * ATOMS], direction[3 * ATOMS], largest = 0;
  uint64_t seed = 4;
  for (int i = 0; i < 3 * ATOMS; i++) {
    for (int j = 0; j < 3 * ATOMS; j++) direction[j] = i == j;
    cluster_hessian(&c, direction, row[i]);
    for (int j = 0; j < 3 * ATOMS; j++) largest = fmax(largest, fabs(row[i][j]));
  }
  assert_true(largest > 0.1);
  for (int i = 0; i < 3 * ATOMS; i++)
    for (int j = 0; j < i; j++) assert_true(fabs(row[i][j] - row[j][i]) <= 1e-12 * largest);
  for (int i = 0; i < 3 * ATOMS; i++)
    direction[i] = 0.2 * test_random(&seed); /* accuracy that the steps allow */
  differences(&c, direction, change);
  for (int i = 0; i < 3 * ATOMS; i++) {
    double sum = 0;
    for (int j = 0; j < 3 * ATOMS; j++) sum += row[j][i] * direction[j];
    if (!(fabs(sum + change[i]) <= 1e-9 * largest))
      fail_msg("force %d changes by %.12g, not %.12g", i, -sum, change[i]);
  }
  cluster_destroy(&c);
}

/* When everything is rotated, and inverted, the energy stays the same and the forces follow. */
static inline void expect_equivariance(place *at, cluster_kind kind) {
  cluster c = cluster_create(at, kind);
  double energy = cluster_energy(&c), force[3 * ATOMS], now[3 * ATOMS], turned[3];
  cluster_forces(&c, force);
  for (int inverts = 0; inverts < 2; inverts++) {
    cluster d = cluster_create(at, kind);
    cluster_turn(&d, inverts);
    assert_true(fabs(cluster_energy(&d) - energy) <= 1e-12 * fabs(energy));
    cluster_forces(&d, now);
    for (int i = 0; i < ATOMS; i++) {
      turn(inverts, force + 3 * i, turned);
      for (int k = 0; k < 3; k++) assert_true(fabs(turned[k] - now[3 * i + k]) <= 1e-12 * d.size);
    }
    cluster_destroy(&d);
  }
  cluster_destroy(&c);
}

#endif
