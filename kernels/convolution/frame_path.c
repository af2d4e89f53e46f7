/* kernels/convolution/frame_path.c - the paths of a convolution in the edge's own frame (frame.h).

   There all harmonics but Y_l0 = h are 0, so that a path couples component m of x with m (l
   of x, y and z add up to an even number) or -m (odd) of z:  z'_k = w A_ki f_i,  f = d Z x.
   Backward rotates g into the frame path by path, G = d Z g; then g_w = sum A_ki f_i G_k and the
   gradient of f is A^T w G.  The gradient by the direction is the torque T = <g, J z> - <g_x, J x>,
   of which only the axes across the edge, x and z, are needed.  As functions of X_m = f_m + i f_-m
   the sums over paths reduce to few numbers K for each m, so T costs 4 operations for each
   component of G.

   Double backward, with incoming a, h, c.  Let M_w be the map from x to z.  Moving v along h
   rotates the frame by omega (frame.h), and M_w by J M_w - M_w J, where J = omega . (J_x, J_y,
   J_z), so that the function to differentiate is S = <g, M_w a + M_c x + J M_w x - M_w J x> = <g,
   M_w a'> + <g, M_c x> + <g', M_w x> with a' = a - J x and g' = -J g, all in the frame.  From this
     d_g = M_w a' + M_c x + J M_w x            d_w: A a' G + A x G'
     d_x = M_c^T g + M_w^T g' + J M_w^T g      torque T1 = T(g, M_w, a') + T(g, M_c, x)
                                                           + T(g', M_w, x) at fixed omega.
   omega depends on v, too: S contains omega . T0 with the torque T0 = T(g, M_w, x) of backward,
   and the gradient of h . (T0 x v) / |v|^2 at fixed T0 is that of a torque -q / |v| T0, with
   q = h . v / |v|, and of a gradient -omega . T0 / |v| of |v|.  Where weights are functions of
   |v|, c = q dw/d|v|, and q adds the torque |v| omega dS/dq.  Paths with l2 = 0 commute with J,
   so that only a and c contribute. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convolution/frame_rotation.h"

enum { V = CLB_MAX_PER_LANE, N = MAX_M };

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val real(const clb_convolution *c, double x) { return ir_real(c->f.k, c->f.t, x); }
static bool twice(const clb_convolution *c) { return c->f.p->pass == CLB_DOUBLE_BACKWARD; }

/* ---- a term of x and a path from it ---- */

static int degree(const clb_irreps *r, int term) { return r->term[term].l; }
static int least(int a, int b) { return a < b ? a : b; }

/* Entries A_ki of a path, one for each i, divided by the scale of its term of z. */
static int entries_of(clb_convolution *c, const clb_path *p, clb_entry *e) {
  const double scale = c->scale[p->out][0];
  int l2 = degree(&c->f.tp->y, p->in2), n = 0,
      all = clb_form_entries(c->f.tp, p, c->builder[0].symbol, c->builder[0].entry);
  double h = clb_frame_harmonic(c->f.p->convolution.normalization, l2);
  for (int q = 0; q < all; q++) {
    if (c->builder[0].entry[q].j != l2) continue;
    e[n] = c->builder[0].entry[q];
    e[n++].c *= h / scale;
  }
  return n;
}

/* The scale is the coefficient of m = 0 where the path has one, else any other. */
void clb_frame_scales(clb_convolution *c) {
  const clb_tensor_product_problem *tp = c->f.tp;
  clb_entry e[N];
  for (int q = tp->n_paths - 1; q >= 0; q--) { /* the first path to a term decides */
    const clb_path *p = &tp->path[q];
    double *scale = c->scale[p->out], size = 0;
    for (int i = 0; i < MAX_M; i++) scale[i] = 1;
    for (int i = entries_of(c, p, e) - 1; i >= 0; i--)
      if (size == 0 || e[i].i == degree(&tp->x, p->in1)) size = fabs(e[i].c);
    for (int i = 0; i < MAX_M && size > 0; i++) scale[i] = size;
  }
}

static bool needs_frame(const clb_convolution *c, const clb_path *p) {
  return degree(&c->f.tp->y, p->in2) > 0;
}

/* Whether a path needs only what m = 0 of the frame gives: of l = 0 it rotates nothing. */
static bool along_axis(const clb_convolution *c, const clb_path *p) {
  return needs_frame(c, p) && !degree(&c->f.tp->x, p->in1) && !twice(c);
}

/* Of a term of x, by order: x and a; x and a' in the frame. */
typedef struct {
  clb_channels original[2], rotated[2];
} vectors_of_x;

/* Sets x to 0 where a slice has no edge of its own, so that nothing is added to sums. */
static void clear_slices_without_edge(clb_convolution *c, int width, clb_channels x) {
  for (int j = 0; j < c->unit.per_lane && c->unit.has_edge != IR_NONE; j++)
    for (int i = 0; i < width; i++)
      x[j][i] = ir_select(of(c), c->unit.has_edge, x[j][i], real(c, 0));
}

static void load_x(clb_convolution *c, int term, vectors_of_x *v) {
  const clb_tensor_product_problem *tp = c->f.tp;
  const clb_path *some = NULL;
  const int l = degree(&tp->x, term), n = c->unit.per_lane;
  bool rotates = false;
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].in1 == term) some = &tp->path[q], rotates |= needs_frame(c, some);
  for (int order = 0; order < 2; order++) {
    clb_channels_clear(v->original[order]);
    clb_channels_clear(v->rotated[order]);
    if (!some || order >= clb_orders(c->f.p) || !clb_reads(tp, X, order)) continue;
    memcpy(v->original[order], clb_edge_vectors(c, X, order, some), sizeof v->original[order]);
    if (clb_wanted_output(&c->f, Z) >= 0 && !clb_weights_clear(c))
      clear_slices_without_edge(c, 2 * l + 1, v->original[order]);
    if (rotates) clb_into_frame(c, l, n, v->original[order], l, v->rotated[order]);
  }
  if (rotates && c->frame.has_tangent)
    clb_add_rotation(c, l, n, -1, v->rotated[0], l, v->rotated[1]);
}

/* Weights by order; IR_NONE: 1 (w) or 0 (c). */
typedef ir_val path_weights[2][V];

static void load_weights(clb_convolution *c, const clb_path *p, path_weights w) {
  for (int order = 0; order < 2; order++) {
    const bool there = p->has_weight && order < clb_orders(c->f.p) && clb_reads(c->f.tp, W, order);
    for (int j = 0; j < c->unit.per_lane; j++)
      w[order][j] = there ? clb_edge_vectors(c, W, order, p)[j][0] : IR_NONE;
  }
}

/* a times w (order 0) or c (1; IR_NONE if there is none). */
static ir_val times(const clb_convolution *c, path_weights w, int order, int j, double a) {
  ir_val own = w[order][j];
  if (own == IR_NONE) return order ? IR_NONE : real(c, a);
  return a == 1 ? own : ir_mul(of(c), own, real(c, a));
}

/* ---- results of z ---- */

/* z += A w x; with `all`, in double backward, z += A (w a' + c x). */
static void through_path(clb_convolution *c, const clb_entry *e, int n_entries, path_weights w,
                         clb_channels *x, bool all, clb_channels z) {
  ir_kernel *k = of(c);
  const int orders = all && twice(c) ? 1 : 0;
  for (int j = 0; j < c->unit.per_lane; j++)
    for (int q = 0; q < n_entries; q++)
      for (int of_x = orders; of_x >= 0; of_x--) {
        ir_val from = x[of_x][j][e[q].i], *to = &z[j][e[q].k];
        if (e[q].c < 0) from = clb_negative(c, from);
        *to = clb_add_product(k, *to, times(c, w, orders - of_x, j, fabs(e[q].c)), from);
      }
}

static void path_to_z(clb_convolution *c, const clb_path *p, vectors_of_x *x) {
  ir_kernel *k = of(c);
  const int n = c->unit.per_lane, l3 = degree(&c->f.tp->z, p->out),
            l1 = degree(&c->f.tp->x, p->in1), width = 2 * l3 + 1,
            most = least(l1 + c->frame.has_tangent, l3);
  clb_entry e[N];
  clb_channels sum, z, first;
  path_weights w;
  const int n_entries = entries_of(c, p, e);
  const bool rotated = needs_frame(c, p);
  load_weights(c, p, w);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < width; i++) sum[j][i] = ir_get(k, c->z[j][p->out][i]);
  clb_channels_clear(z);
  if (along_axis(c, p)) {
    ir_val message[V];
    through_path(c, e, n_entries, w, x->original, true, z);
    for (int j = 0; j < n; j++) message[j] = z[j][l3];
    clb_axis_out_of_frame(c, l3, n, message, sum);
  } else if (rotated) through_path(c, e, n_entries, w, x->rotated, true, z);
  else through_path(c, e, n_entries, w, x->original, true, sum);
  if (rotated && c->frame.has_tangent) {
    clb_channels_clear(first);
    through_path(c, e, n_entries, w, x->rotated, false, first);
    clb_add_rotation(c, l3, n, 1, first, most, z);
  }
  if (rotated && !along_axis(c, p)) clb_out_of_frame(c, l3, n, z, most, sum);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < width; i++) ir_set(k, c->z[j][p->out][i], sum[j][i]);
}

void clb_frame_to_z(clb_convolution *c, int part) {
  const clb_tensor_product_problem *tp = c->f.tp;
  for (int t = 0; t < tp->x.n; t++) {
    vectors_of_x x;
    if (!clb_part_reads(tp, &c->parts, part, t)) continue;
    load_x(c, t, &x);
    for (int q = 0; q < tp->n_paths; q++)
      if (tp->path[q].in1 == t && c->parts.of_z[tp->path[q].out] == part)
        path_to_z(c, &tp->path[q], &x);
  }
}

/* ---- results of edges ---- */

/* The gradient of a term of x (0; in double backward M_c^T g + M_w^T g') or of a' (1): what paths
   outside the frame give, and what those in the frame give; the numbers K, by step up (1) or down
   (0) from m, and part (0: of f_m, 1: of f_-m). */
typedef struct {
  clb_channels plain, rotated;
  ir_val K[2][CLB_MAX_FRAME_L + 1][2][V];
} gradient;

/* (A^T J^T)_mi for component i1 of x: the factor of component i of G. */
static double lever(const clb_entry *e, int n_entries, const double *J, int width, int i1, int i) {
  double sum = 0;
  for (int q = 0; q < n_entries; q++)
    if (e[q].i == i1) sum += e[q].c * J[i * width + e[q].k];
  return sum;
}

/* Adds to K the contribution of G, of degree l3, which entries e couple with degree l1; sign -1:
   that of the gradient of x itself. */
static void add_torque(clb_convolution *c, gradient *g, int n, int l1, int l3, const clb_entry *e,
                       int n_entries, double sign, clb_channels G) {
  const int width = 2 * l3 + 1;
  const double(*J)[N * N] = clb_frame_generators(c, l3);
  for (int m = 0; m <= l1 && l3; m++)
    for (int up = 0; up < 2; up++) {
      int to = up ? m + 1 : m - 1, minus = up ? -1 : 1;
      for (int side = 0; side < (to ? 2 : 1) && to >= 0 && to <= l3; side++) {
        int i = side ? l3 - to : l3 + to;
        for (int half = 0; half < 2; half++) {
          double by =
              sign * (half && !m ? minus * lever(e, n_entries, J[1], width, l1, i)
                                 : lever(e, n_entries, J[0], width, half ? l1 - m : l1 + m, i));
          for (int j = 0; j < n && fabs(by) > 1e-12; j++)
            g->K[up][m][half][j] =
                clb_add_product(of(c), g->K[up][m][half][j], real(c, by), G[j][i]);
        }
      }
    }
}

/* T_x = sum Re(conj(X) K), T_z = sum +-Im(conj(X) K). */
static void torques(clb_convolution *c, const gradient *g, int n, int l1, clb_channels f,
                    ir_val *T) {
  ir_kernel *k = of(c);
  for (int up = 0; up < 2; up++)
    for (int m = 0; m <= l1; m++)
      for (int j = 0; j < n; j++) {
        ir_val a = g->K[up][m][0][j], b = g->K[up][m][1][j], own = f[j][l1 + m],
               other = m ? f[j][l1 - m] : IR_NONE;
        T[0] = clb_add_product(k, clb_add_product(k, T[0], own, a), other, b);
        T[1] = clb_add_product(k, T[1], other, up ? a : clb_negative(c, a));
        T[1] = clb_add_product(k, T[1], own, up ? clb_negative(c, b) : b);
      }
}

/* sum + sum A_ki f_i G_k over pairs of f and G; the entries of m and -m differ in their sign at
   most. */
static ir_val weight_gradient(clb_convolution *c, const clb_entry *e, int n_entries, int l1,
                              int pairs, const ir_val *const *f, const ir_val *const *G) {
  ir_kernel *k = of(c);
  ir_val sum = IR_NONE;
  for (int m = 0; m <= l1; m++) {
    ir_val inner = IR_NONE;
    double size = 0;
    for (int q = 0; q < n_entries; q++) {
      if (abs(e[q].i - l1) != m) continue;
      if (size == 0) size = e[q].c;
      for (int i = 0; i < pairs; i++) {
        ir_val own = G[i][e[q].k];
        inner =
            clb_add_product(k, inner, f[i][e[q].i], e[q].c * size < 0 ? clb_negative(c, own) : own);
      }
    }
    if (inner != IR_NONE) sum = clb_add_product(k, sum, real(c, size), inner);
  }
  return sum == IR_NONE ? real(c, 0) : sum;
}

/* The gradient of a path's weight; of a spline also that of the incoming gradient along r. */
static void path_to_w(clb_convolution *c, const clb_path *p, const clb_entry *e, int n_entries,
                      vectors_of_x *x, clb_channels G, clb_channels rotated_G) {
  const int o = clb_wanted_output(&c->f, W), l1 = degree(&c->f.tp->x, p->in1);
  const bool spline = c->f.p->convolution.spline, rotated = needs_frame(c, p);
  clb_channels by_w;
  if (o < 0 || !p->has_weight) return;
  for (int j = 0; j < c->unit.per_lane; j++) {
    const ir_val *f[] = {(rotated ? x->rotated : x->original)[twice(c)][j], x->rotated[0][j]},
                 *g[] = {G[j], rotated_G[j]};
    by_w[j][0] =
        weight_gradient(c, e, n_entries, l1, rotated && c->frame.has_tangent ? 2 : 1, f, g);
    if (!spline) continue;
    clb_spline_add(&c->spline, &c->f, 0, j, by_w[j][0]);
    f[0] = (rotated ? x->rotated : x->original)[0][j];
    if (c->spline.along != IR_NONE)
      clb_spline_add(&c->spline, &c->f, 1, j, weight_gradient(c, e, n_entries, l1, 1, f, g));
  }
  if (!spline) clb_store_channels(c, o, -1, p, by_w, c->unit.write, c->f.out[o].adds);
}

/* g += A^T G for the path of these entries; G has degree l3. */
static void back_through(clb_convolution *c, const clb_path *p, const clb_entry *e, int n_entries,
                         clb_channels G, gradient *g) {
  const int n = c->unit.per_lane;
  for (int j = 0; j < n; j++)
    for (int q = 0; q < n_entries; q++) {
      ir_val *sum = &g->rotated[j][e[q].i];
      *sum = clb_add_product(of(c), *sum, real(c, e[q].c), G[j][e[q].k]);
    }
  if (clb_wanted_output(&c->f, Y) >= 0)
    add_torque(c, g, n, degree(&c->f.tp->x, p->in1), degree(&c->f.tp->z, p->out), e, n_entries, 1,
               G);
}

/* sum += w v (order 0) or c v (1). */
static void add_weighted(const clb_convolution *c, path_weights w, int order, int width,
                         clb_channels v, clb_channels sum) {
  for (int j = 0; j < c->unit.per_lane; j++)
    for (int i = 0; i < width; i++)
      if (!order || w[order][j] != IR_NONE)
        sum[j][i] = clb_plus_weighted(of(c), sum[j][i], w[order][j], v[j][i]);
}

/* The same of a path that needs only m = 0. */
static void axis_to_edge(clb_convolution *c, const clb_path *p, const clb_entry *e, path_weights w,
                         vectors_of_x *x, clb_channels g, gradient *to) {
  ir_kernel *k = of(c);
  const int n = c->unit.per_lane, l3 = degree(&c->f.tp->z, p->out);
  ir_val G[V], by[V], message[V];
  clb_channels rotated, none;
  clb_axis_into_frame(c, l3, n, g, G);
  clb_channels_clear(rotated);
  clb_channels_clear(none);
  for (int j = 0; j < n; j++) {
    rotated[j][l3] = G[j];
    by[j] = times(c, w, 0, j, fabs(e->c));
    if (e->c < 0) by[j] = clb_negative(c, by[j]);
    message[j] = ir_mul(k, by[j], x->original[0][j][0]);
    to->plain[j][0] = clb_add_product(k, to->plain[j][0], by[j], G[j]);
  }
  path_to_w(c, p, e, 1, x, rotated, none);
  if (clb_wanted_output(&c->f, Y) >= 0) clb_axis_torque(c, l3, n, message, g, c->results.y_sum);
}

static void path_to_edge(clb_convolution *c, const clb_path *p, vectors_of_x *x, gradient *to) {
  const int n = c->unit.per_lane, l3 = degree(&c->f.tp->z, p->out), width = 2 * l3 + 1,
            l1 = degree(&c->f.tp->x, p->in1), order = twice(c),
            reach = l1 + (clb_wanted_output(&c->f, Y) >= 0);
  clb_entry e[N];
  clb_channels g, G, rotated_G, by;
  path_weights w;
  const int n_entries = entries_of(c, p, e);
  load_weights(c, p, w);
  clb_channels_clear(rotated_G);
  for (int j = 0; j < n; j++) memcpy(g[j], clb_edge_g(c, p->out)[j], sizeof g[j]);
  if (along_axis(c, p)) {
    axis_to_edge(c, p, e, w, x, g, to);
    return;
  }
  if (!needs_frame(c, p)) {
    path_to_w(c, p, e, n_entries, x, g, rotated_G);
    for (int j = 0; j < n; j++)
      for (int q = 0; q < n_entries; q++) {
        ir_val *sum = &to[0].plain[j][e[q].i];
        *sum = clb_add_product(of(c), *sum, times(c, w, order, j, e[q].c), g[j][e[q].k]);
      }
    return;
  }
  clb_into_frame(c, l3, n, g, least(reach + c->frame.has_tangent, l3), G);
  if (c->frame.has_tangent) clb_add_rotation(c, l3, n, -1, G, least(reach, l3), rotated_G);
  path_to_w(c, p, e, n_entries, x, G, rotated_G);
  clb_channels_clear(by);
  add_weighted(c, w, order, width, G, by);
  add_weighted(c, w, 0, width, rotated_G, by);
  back_through(c, p, e, n_entries, by, &to[0]);
  if (!twice(c)) return;
  clb_channels_clear(by);
  add_weighted(c, w, 0, width, G, by);
  back_through(c, p, e, n_entries, by, &to[1]);
}

/* Adds the gradients' own part of the torque, rotates them back out of the frame and stores x's. */
static void store_gradients(clb_convolution *c, int t, vectors_of_x *x, gradient *g) {
  ir_kernel *k = of(c);
  const clb_frame *f = &c->frame;
  const int n = c->unit.per_lane, l = degree(&c->f.tp->x, t), width = 2 * l + 1;
  const int o_x = clb_wanted_output(&c->f, X), o_y = clb_wanted_output(&c->f, Y);
  ir_val *T = c->results.y_sum, T0[2] = {IR_NONE, IR_NONE};
  clb_entry same[N];
  for (int i = 0; i < width; i++) same[i] = (clb_entry){.i = i, .k = i, .c = 1};
  for (int order = 0; order <= twice(c) && o_y >= 0; order++) {
    add_torque(c, &g[order], n, l, l, same, width, -1, g[order].rotated);
    torques(c, &g[order], n, l, x->rotated[order], T);
  }
  if (o_y >= 0 && f->has_tangent) {
    ir_val back = clb_negative(c, f->tangent[CLB_TANGENT_INVERSE]);
    torques(c, &g[1], n, l, x->rotated[0], T0);
    for (int i = 0; i < 2; i++) {
      T[i] = clb_add_product(k, T[i], ir_mul(k, back, f->tangent[CLB_TANGENT_Y]), T0[i]);
      T[2] = clb_add_product(k, T[2], ir_mul(k, back, f->omega[i]), T0[i]);
    }
  }
  if (o_x < 0) return;
  if (f->has_tangent) clb_add_rotation(c, l, n, 1, g[1].rotated, l, g[0].rotated);
  clb_out_of_frame(c, l, n, g[0].rotated, l, g[0].plain);
  clb_store_x(c, t, o_x, g[0].plain, false);
}

void clb_frame_to_edge(clb_convolution *c, int part) {
  const clb_tensor_product_problem *tp = c->f.tp;
  const clb_frame *f = &c->frame;
  gradient *g = malloc(2 * sizeof *g);
  for (int t = 0; t < tp->x.n && g; t++) {
    vectors_of_x x;
    if (c->parts.of_x[t] != part) continue;
    load_x(c, t, &x);
    for (int order = 0; order < 2; order++) {
      clb_channels_clear(g[order].plain);
      clb_channels_clear(g[order].rotated);
      for (int i = 0; i < 2 * (CLB_MAX_FRAME_L + 1) * 2 * V; i++)
        (&g[order].K[0][0][0][0])[i] = IR_NONE;
    }
    for (int q = 0; q < tp->n_paths; q++)
      if (tp->path[q].in1 == t) {
        path_to_edge(c, &tp->path[q], &x, g);
        if (clb_wanted_output(&c->f, Z) >= 0) path_to_z(c, &tp->path[q], &x);
      }
    store_gradients(c, t, &x, g);
  }
  if (!g) snprintf(of(c)->error, sizeof of(c)->error, "no memory");
  free(g);
  if (!f->has_tangent || !c->f.p->convolution.spline || clb_wanted_output(&c->f, Y) < 0) return;
  ir_val *T = c->results.y_sum, by = clb_spline_by_along(&c->spline, &c->f);
  T[0] = clb_add_product(of(c), T[0], by, f->tangent[CLB_TANGENT_Z]);
  T[1] = clb_add_product(of(c), T[1], clb_negative(c, by), f->tangent[CLB_TANGENT_X]);
}
