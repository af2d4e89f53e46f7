/* kernels/convolution/frame_path.c - the paths of a convolution in the edge's own frame (frame.h).

   There only Y_l0 = h is left of the harmonics, so that a path couples component m of x with m (l
   of x, y and z add up to an even number) or -m (odd) of z:  z'_k = w A_ki f_i,  f = d Z x.
   Backward turns g into the frame path by path, G = d Z g; then g_w = sum A_ki f_i G_k and the
   gradient of f is A^T w G.  The gradient by the direction is the torque T = <g, J z> - <g_x, J x>,
   of which only the axes across the edge count, x and z.  As functions of X_m = f_m + i f_-m the
   sums over paths fall into few numbers K for each m, so T costs 4 operations for each component of
   G.

   What stands for V channels of a lane is worked on together, so that numbers of the frame are read
   once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convolution/builder.h"
#include "kernels/convolution/frame.h"
#include "src/problem/rotation.h"

enum { V = CLB_MAX_TOGETHER, N = MAX_M };
typedef ir_val channels[V][N]; /* components of some channels; IR_NONE: 0 */

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static void clear(channels v) {
  for (int j = 0; j < V; j++) clb_none(v[j], N);
}
static ir_val real(const clb_convolution *c, double x) { return ir_real(c->f.k, c->f.t, x); }
static ir_val negative(const clb_convolution *c, ir_val v) { return ir_1(of(c), IR_NEG, v); }

/* ---- numbers of the frame ---- */

static void load_numbers(clb_convolution *c, int at, ir_val *v) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.in[Y][0];
  if (c->stage.stages) {
    clb_stage_numbers(&c->stage, c, at, v);
    return;
  }
  ir_load_wide(k, a->rows.buffer, ir_add(k, a->base, ir_int(k, IR_I64, at)), IR_NONE,
               CLB_FRAME_QUAD, v);
}

/* Number `at` of the row, which comes with its neighbours. */
static ir_val number(clb_convolution *c, int at) {
  clb_frame *f = &c->frame;
  if (f->kept_at != at / CLB_FRAME_QUAD * CLB_FRAME_QUAD) {
    f->kept_at = at / CLB_FRAME_QUAD * CLB_FRAME_QUAD;
    load_numbers(c, f->kept_at, f->kept);
  }
  return f->kept[at - f->kept_at];
}

void clb_frame_begin(clb_convolution *c) {
  clb_frame *f = &c->frame;
  f->kept_at = -1;
  for (int m = 1; m <= f->l; m++) {
    f->cosine[m] = number(c, clb_frame_cosine(m));
    f->sine[m] = number(c, clb_frame_sine(m));
  }
}

/* out_m = (d Z v)_m for |m| <= most. */
static void into_frame(clb_convolution *c, int l, int n, channels v, int most, channels out) {
  ir_kernel *k = of(c);
  const clb_frame *f = &c->frame;
  channels turned;
  clear(out);
  c->frame.kept_at = -1;
  for (int j = 0; j < n; j++) {
    if (!l) out[j][0] = v[j][0];
    turned[j][l] = v[j][l];
    for (int m = 1; m <= l; m++) {
      ir_val up = v[j][l + m], down = v[j][l - m];
      turned[j][l + m] = ir_fma(k, f->cosine[m], up, ir_mul(k, f->sine[m], down));
      turned[j][l - m] = ir_fma(k, f->cosine[m], down, negative(c, ir_mul(k, f->sine[m], up)));
    }
  }
  for (int below = 0; below < 2 && l; below++)
    for (int m = below, at = clb_frame_block(f->l, l, below); m <= most; m++)
      for (int i = below; i <= l; i++, at++) {
        ir_val d = number(c, at);
        for (int j = 0; j < n; j++) {
          ir_val *to = &out[j][below ? l - m : l + m];
          *to = clb_plus(k, *to, d, turned[j][below ? l - i : l + i]);
        }
      }
}

/* sum += Z^T d^T v of components |m| <= most, where there are any. */
static void out_of_frame(clb_convolution *c, int l, int n, channels v, int most, channels sum) {
  ir_kernel *k = of(c);
  const clb_frame *f = &c->frame;
  channels part[2];
  c->frame.kept_at = -1;
  for (int below = 0; below < 2; below++) {
    clear(part[below]);
    for (int m = below, at = clb_frame_block(f->l, l, below); m <= most && l; m++)
      for (int i = below; i <= l; i++, at++) {
        if (v[0][below ? l - m : l + m] == IR_NONE) continue;
        ir_val d = number(c, at);
        for (int j = 0; j < n; j++)
          part[below][j][i] = clb_plus(k, part[below][j][i], d, v[j][below ? l - m : l + m]);
      }
  }
  for (int j = 0; j < n; j++) {
    ir_val *up = part[0][j], *down = part[1][j];
    sum[j][l] = clb_plus_weighted(k, sum[j][l], IR_NONE, l ? up[0] : v[j][0]);
    for (int i = 1; i <= l; i++) {
      sum[j][l + i] = clb_plus(k, sum[j][l + i], f->cosine[i], up[i]);
      sum[j][l - i] = clb_plus(k, sum[j][l - i], f->sine[i], up[i]);
      if (down[i] == IR_NONE) continue;
      sum[j][l + i] = clb_plus(k, sum[j][l + i], f->sine[i], negative(c, down[i]));
      sum[j][l - i] = clb_plus(k, sum[j][l - i], f->cosine[i], down[i]);
    }
  }
}

/* ---- a term of x and a path from it ---- */

static int degree(const clb_irreps *r, int term) { return r->term[term].l; }

/* Entries A_ki of a path, one for each i. */
static int entries_of(clb_convolution *c, const clb_path *p, clb_entry *e) {
  int l2 = degree(&c->f.tp->y, p->in2), n = 0,
      all = clb_form_entries(c->f.tp, p, c->at[0].symbol, c->at[0].entry);
  double h = clb_frame_harmonic(c->f.p->convolution.normalization, l2);
  for (int q = 0; q < all; q++) {
    if (c->at[0].entry[q].j != l2) continue;
    e[n] = c->at[0].entry[q];
    e[n++].c *= h;
  }
  return n;
}

static bool turns(const clb_convolution *c, const clb_path *p) {
  return degree(&c->f.tp->y, p->in2) > 0;
}

/* x of a term, and in the frame where a path asks for it. */
static void load_x(clb_convolution *c, int term, channels x, channels f) {
  const clb_tensor_product_problem *tp = c->f.tp;
  const clb_path *some = NULL;
  bool asked = false;
  clear(x);
  clear(f);
  for (int q = 0; q < tp->n_paths; q++)
    if (tp->path[q].in1 == term) some = &tp->path[q], asked |= turns(c, some);
  if (some) memcpy(x, clb_edge_vectors(c, X, 0, some), sizeof(channels));
  if (asked) into_frame(c, degree(&tp->x, term), c->unit.together, x, degree(&tp->x, term), f);
}

/* IR_NONE: 1. */
static void load_weights(clb_convolution *c, const clb_path *p, ir_val *w) {
  for (int j = 0; j < c->unit.together; j++)
    w[j] = p->has_weight ? clb_edge_vectors(c, W, 0, p)[j][0] : IR_NONE;
}

static ir_val times(const clb_convolution *c, ir_val w, double a) {
  return w == IR_NONE ? real(c, a) : a == 1 ? w : ir_mul(of(c), w, real(c, a));
}

/* ---- results of z ---- */

static void path_to_z(clb_convolution *c, const clb_path *p, channels x, channels f) {
  ir_kernel *k = of(c);
  const int n = c->unit.together, l3 = degree(&c->f.tp->z, p->out),
            l1 = degree(&c->f.tp->x, p->in1), width = 2 * l3 + 1;
  clb_entry e[N];
  channels sum, z;
  ir_val w[V];
  const int n_entries = entries_of(c, p, e);
  load_weights(c, p, w);
  clear(z);
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < width; i++) sum[j][i] = ir_get(k, c->z[j][p->out][i]);
    for (int q = 0; q < n_entries; q++) {
      ir_val from = (turns(c, p) ? f : x)[j][e[q].i],
             product = ir_mul(k, times(c, w[j], fabs(e[q].c)), from);
      if (e[q].c < 0) product = negative(c, product);
      if (c->unit.there != IR_NONE) product = ir_select(k, c->unit.there, product, real(c, 0));
      z[j][e[q].k] = product;
    }
  }
  if (turns(c, p)) out_of_frame(c, l3, n, z, l1 < l3 ? l1 : l3, sum);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < width; i++) {
      if (!turns(c, p) && z[j][i] != IR_NONE) sum[j][i] = ir_add(k, sum[j][i], z[j][i]);
      ir_set(k, c->z[j][p->out][i], sum[j][i]);
    }
}

void clb_frame_to_z(clb_convolution *c, int part) {
  const clb_tensor_product_problem *tp = c->f.tp;
  for (int t = 0; t < tp->x.n; t++) {
    channels x, f;
    if (!clb_part_reads(tp, &c->parts, part, t)) continue;
    load_x(c, t, x, f);
    for (int q = 0; q < tp->n_paths; q++)
      if (tp->path[q].in1 == t && c->parts.of_z[tp->path[q].out] == part)
        path_to_z(c, &tp->path[q], x, f);
  }
}

/* ---- results of edges ---- */

/* Of a term of x: its gradient without and in the frame; the numbers K, by step up (1) or down (0)
   from m, and part (0: of f_m, 1: of f_-m). */
typedef struct {
  channels plain, turned;
  ir_val K[2][CLB_MAX_FRAME_L + 1][2][V];
  double generator[2][N * N]; /* of x and z, of the degree of the path at hand */
} gradient;

static void generators(int l, double J[2][N * N]) {
  for (int i = 0; i < (2 * l + 1) * (2 * l + 1); i++) J[0][i] = J[1][i] = 0;
  if (!l) return;
  clb_rotation_generator(l, 0, J[0]);
  clb_rotation_generator(l, 2, J[1]);
}

/* (A^T J^T)_mi of a row i1 of x: what component i of G is multiplied with. */
static double lever(const clb_entry *e, int n_entries, const double *J, int width, int i1, int i) {
  double sum = 0;
  for (int q = 0; q < n_entries; q++)
    if (e[q].i == i1) sum += e[q].c * J[i * width + e[q].k];
  return sum;
}

/* K += of G of degree l3, which entries e couple with degree l1; sign -1: the gradient's own turn.
 */
static void add_torque(clb_convolution *c, gradient *g, int n, int l1, int l3, const clb_entry *e,
                       int n_entries, double sign, channels G) {
  const int width = 2 * l3 + 1;
  generators(l3, g->generator);
  for (int m = 0; m <= l1; m++)
    for (int up = 0; up < 2; up++) {
      int to = up ? m + 1 : m - 1, turn = up ? -1 : 1;
      for (int side = 0; side < (to ? 2 : 1) && to >= 0 && to <= l3; side++) {
        int i = side ? l3 - to : l3 + to;
        for (int half = 0; half < 2; half++) {
          double by = sign * (half && !m ? turn * lever(e, n_entries, g->generator[1], width, l1, i)
                                         : lever(e, n_entries, g->generator[0], width,
                                                 half ? l1 - m : l1 + m, i));
          for (int j = 0; j < n && fabs(by) > 1e-12; j++)
            if (G[j][i] != IR_NONE)
              g->K[up][m][half][j] = clb_plus(of(c), g->K[up][m][half][j], real(c, by), G[j][i]);
        }
      }
    }
}

/* T_x = sum Re(conj(X) K), T_z = sum +-Im(conj(X) K). */
static void torques(clb_convolution *c, const gradient *g, int n, int l1, channels f) {
  ir_kernel *k = of(c);
  ir_val *x = &c->results.y_sum[0], *z = &c->results.y_sum[1];
  for (int up = 0; up < 2; up++)
    for (int m = 0; m <= l1; m++)
      for (int j = 0; j < n; j++) {
        ir_val a = g->K[up][m][0][j], b = g->K[up][m][1][j], own = f[j][l1 + m],
               other = m ? f[j][l1 - m] : IR_NONE;
        if (a != IR_NONE) {
          *x = clb_plus(k, *x, own, a);
          if (m) *z = clb_plus(k, *z, other, up ? a : negative(c, a));
        }
        if (b != IR_NONE) {
          if (m) *x = clb_plus(k, *x, other, b);
          *z = clb_plus(k, *z, own, up ? negative(c, b) : b);
        }
      }
}

/* sum A_ki f_i G_k; the entries of m and -m differ in their sign at most. */
static ir_val weight_gradient(clb_convolution *c, const clb_entry *e, int n_entries, int l1,
                              const ir_val *f, const ir_val *G) {
  ir_kernel *k = of(c);
  ir_val sum = IR_NONE;
  for (int m = 0; m <= l1; m++) {
    ir_val inner = IR_NONE;
    double size = 0;
    for (int q = 0; q < n_entries; q++) {
      if (abs(e[q].i - l1) != m) continue;
      if (size == 0) size = e[q].c;
      inner = clb_plus(k, inner, f[e[q].i], e[q].c * size < 0 ? negative(c, G[e[q].k]) : G[e[q].k]);
    }
    if (inner != IR_NONE) sum = clb_plus(k, sum, real(c, size), inner);
  }
  return sum;
}

static void path_to_edge(clb_convolution *c, const clb_path *p, channels x, channels f,
                         gradient *to) {
  ir_kernel *k = of(c);
  const int n = c->unit.together, l3 = degree(&c->f.tp->z, p->out),
            l1 = degree(&c->f.tp->x, p->in1), most = l1 + 1 < l3 ? l1 + 1 : l3;
  const int o_w = clb_wanted_output(&c->f, W), o_y = clb_wanted_output(&c->f, Y);
  clb_entry e[N];
  channels g, G, by_w;
  ir_val w[V];
  const int n_entries = entries_of(c, p, e);
  const bool turned = turns(c, p), spline = c->f.p->convolution.spline,
             wanted = o_w >= 0 && p->has_weight;
  load_weights(c, p, w);
  for (int j = 0; j < n; j++) memcpy(g[j], c->z[j][p->out], sizeof g[j]);
  if (turned) into_frame(c, l3, n, g, most, G);
  for (int j = 0; j < n; j++) {
    by_w[j][0] = weight_gradient(c, e, n_entries, l1, turned ? f[j] : x[j], turned ? G[j] : g[j]);
    if (by_w[j][0] == IR_NONE) by_w[j][0] = real(c, 0);
    if (wanted && spline) clb_spline_add(&c->spline, &c->f, 0, j, by_w[j][0]);
    for (int i = 0; i < 2 * l3 + 1 && turned; i++)
      if (G[j][i] != IR_NONE && w[j] != IR_NONE) G[j][i] = ir_mul(k, w[j], G[j][i]);
    for (int q = 0; q < n_entries; q++) {
      ir_val *sum = &(turned ? to->turned : to->plain)[j][e[q].i];
      *sum = turned ? clb_plus(k, *sum, real(c, e[q].c), G[j][e[q].k])
                    : clb_plus(k, *sum, times(c, w[j], e[q].c), g[j][e[q].k]);
    }
  }
  if (wanted && !spline) clb_store_channels(c, o_w, -1, p, by_w, c->unit.write, c->f.out[o_w].adds);
  if (turned && o_y >= 0) add_torque(c, to, n, l1, l3, e, n_entries, 1, G);
}

/* The gradient in the frame turns, too, and goes back. */
static void finish(clb_convolution *c, int t, channels f, gradient *g) {
  const int n = c->unit.together, l = degree(&c->f.tp->x, t), width = 2 * l + 1;
  const int o_x = clb_wanted_output(&c->f, X), o_y = clb_wanted_output(&c->f, Y);
  clb_entry same[N];
  for (int i = 0; i < width; i++) same[i] = (clb_entry){.i = i, .k = i, .c = 1};
  if (o_y >= 0) {
    add_torque(c, g, n, l, l, same, width, -1, g->turned);
    torques(c, g, n, l, f);
  }
  if (o_x < 0) return;
  out_of_frame(c, l, n, g->turned, l, g->plain);
  clb_store_x(c, t, o_x, g->plain, false);
}

void clb_frame_to_edge(clb_convolution *c, int part) {
  const clb_tensor_product_problem *tp = c->f.tp;
  gradient *g = malloc(sizeof *g);
  for (int t = 0; t < tp->x.n && g; t++) {
    channels x, f;
    if (c->parts.of_x[t] != part) continue;
    load_x(c, t, x, f);
    clear(g->plain);
    clear(g->turned);
    for (int i = 0; i < 2 * (CLB_MAX_FRAME_L + 1) * 2 * V; i++) (&g->K[0][0][0][0])[i] = IR_NONE;
    for (int q = 0; q < tp->n_paths; q++)
      if (tp->path[q].in1 == t) path_to_edge(c, &tp->path[q], x, f, g);
    finish(c, t, f, g);
  }
  if (!g) snprintf(of(c)->error, sizeof of(c)->error, "no memory");
  free(g);
}
