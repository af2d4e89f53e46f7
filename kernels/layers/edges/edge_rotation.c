/* kernels/layers/edges/edge_rotation.c - the rotations D of degrees 0 to L that turn rows of irreps
   into the frame of an edge, of orders |m| <= M; a lane is an edge.

   A row has, for each order in turn (0, 1, -1, 2, -2, ...) and each degree that has it, the 2 l + 1
   numbers that give that order of the turned row: sum_i D_mi x_i.  D = d(beta) Z(phi): Z acts on
   each pair of components i, -i by cosine and sine of i phi; d has a block of orders >= 0 and one
   of orders < 0.  Backward: if v moves along h, the frame turns by w = v x h / |v|^2 and D by -w J,
   J the generators, so that the torque about axis a of the frame is -sum G_mi (J_a D)_mi: the way
   of the frame about the edge itself is left out, so that a gradient is right if what reads D does
   not depend on it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/direction.h"
#include "kernels/layers/layer.h"
#include "src/problem/rotation.h"

enum { MAX_L = CLB_MAX_EDGE_ROTATION_L, MAX_N = 2 * MAX_L + 1 };

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  clb_row_block rows;
  ir_type t;
  clb_direction d;
  ir_val cosine[2][MAX_L + 1], sine[2][MAX_L + 1]; /* of multiples of phi, of beta */
  ir_val D[MAX_N * MAX_N];                         /* of one degree; IR_NONE: 0 */
  double series[2][(MAX_L + 1) * MAX_N * MAX_N];
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_edge_rotation_problem *r = &p->edge_rotation;
  if (r->l < 0 || r->l > MAX_L || r->m < 0 || r->m > r->l)
    return clb_fail(error, CLB_ERROR_INTERNAL, "edge_rotation: degree %d, order %d", (int)r->l,
                    (int)r->m);
  return clb_layer_check(p, limits, error);
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  const int most = 2 * p->edge_rotation.l + 1;
  clb_layer_schedule(limits, p->arithmetic, false, s);
  s->rows.columns_per_piece = most < 3 ? 3 : most;
}

static ir_val sum_of(builder *b, ir_val sum, ir_val x, double c) {
  return sum == IR_NONE ? ir_mul(b->k, x, ir_real(b->k, b->t, c))
                        : ir_fma(b->k, x, ir_real(b->k, b->t, c), sum);
}

/* d_mi(beta) */
static ir_val tilt(builder *b, int l, int m, int i) {
  const int n = 2 * l + 1, at = (l + m) * n + l + i;
  ir_val sum = IR_NONE;
  for (int q = 0; q <= l; q++) {
    const double c = b->series[0][q * n * n + at], s = b->series[1][q * n * n + at];
    if (c != 0) sum = sum_of(b, sum, b->cosine[1][q], c);
    if (s != 0) sum = sum_of(b, sum, b->sine[1][q], s);
  }
  return sum;
}

/* Orders of degree l up to `most`. */
static void make_degree(builder *b, int l, int most) {
  ir_kernel *k = b->k;
  const int n = 2 * l + 1;
  for (int i = 0; i < n * n; i++) b->D[i] = IR_NONE;
  if (!l) b->D[0] = b->cosine[1][0];
  else if (!clb_rotation_series(l, b->series[0], b->series[1]))
    snprintf(k->error, sizeof k->error, "no memory");
  for (int m = -most; m <= most && l; m++)
    for (int i = m < 0; i <= l; i++) {
      ir_val d = tilt(b, l, m, m < 0 ? -i : i), *row = b->D + (l + m) * n + l;
      if (d == IR_NONE) continue;
      if (!i) row[0] = d;
      else if (m < 0) {
        row[-i] = ir_mul(k, d, b->cosine[0][i]);
        row[i] = ir_1(k, IR_NEG, ir_mul(k, d, b->sine[0][i]));
      } else {
        row[i] = ir_mul(k, d, b->cosine[0][i]);
        row[-i] = ir_mul(k, d, b->sine[0][i]);
      }
    }
}

static int64_t place(const clb_problem *p, int l, int m) {
  return clb_edge_rotation_at(p->edge_rotation.l, m, l);
}

static int orders(const clb_problem *p, int l) {
  return l < p->edge_rotation.m ? l : p->edge_rotation.m;
}

static void values(builder *b, const clb_row_array *out) {
  for (int l = 0; l <= b->p->edge_rotation.l; l++) {
    const int n = 2 * l + 1, most = orders(b->p, l);
    make_degree(b, l, most);
    for (int i = 0; i < n * n; i++)
      if (b->D[i] == IR_NONE) b->D[i] = ir_real(b->k, b->t, 0);
    for (int m = -most; m <= most; m++)
      clb_rows_store(&b->rows, out, (int)place(b->p, l, m), n, b->D + (l + m) * n, false);
  }
}

/* torque[axis] -= J_mk sum_i g_i D_ki */
static void add_torques(builder *b, int l, int m, const double *const J[2], const ir_val *g,
                        ir_val torque[2]) {
  ir_kernel *k = b->k;
  const int n = 2 * l + 1;
  for (int from = 0; from < n; from++) {
    const double by[] = {J[0][(l + m) * n + from], J[1][(l + m) * n + from]};
    ir_val dot = IR_NONE;
    for (int i = 0; i < n && fabs(by[0]) + fabs(by[1]) > 1e-12; i++) {
      ir_val x = b->D[from * n + i];
      if (x != IR_NONE) dot = dot == IR_NONE ? ir_mul(k, g[i], x) : ir_fma(k, g[i], x, dot);
    }
    for (int axis = 0; axis < 2 && dot != IR_NONE; axis++)
      if (fabs(by[axis]) > 1e-12) torque[axis] = sum_of(b, torque[axis], dot, -by[axis]);
  }
}

static void gradients(builder *b, const clb_row_array *in, const clb_row_array *out) {
  ir_val torque[2] = {IR_NONE, IR_NONE}, g[MAX_N];
  double J[2][MAX_N * MAX_N];
  for (int l = 1; l <= b->p->edge_rotation.l; l++) {
    const int n = 2 * l + 1, most = orders(b->p, l);
    make_degree(b, l, most < l ? most + 1 : l);
    for (int axis = 0; axis < 2; axis++) clb_rotation_generator(l, 2 * axis, J[axis]);
    for (int m = -most; m <= most; m++) {
      clb_rows_load(&b->rows, in, (int)place(b->p, l, m), n, g);
      add_torques(b, l, m, (const double *const[]){J[0], J[1]}, g, torque);
    }
  }
  for (int i = 0; i < 2; i++)
    if (torque[i] == IR_NONE) torque[i] = ir_real(b->k, b->t, 0);
  clb_direction_gradient(b->k, &b->d, torque, g);
  clb_rows_store(&b->rows, out, 0, 3, g, b->p->accumulate);
}

static void start(builder *b, const clb_row_array *vectors) {
  ir_val v[3];
  clb_rows_load(&b->rows, vectors, 0, 3, v);
  b->d = clb_direction_of(b->k, b->t, v);
  const ir_val cosine[] = {b->d.cosine, b->d.u[1]}, sine[] = {b->d.sine, b->d.across};
  for (int i = 0; i < 2; i++) {
    b->cosine[i][0] = ir_select(b->k, b->d.there, ir_real(b->k, b->t, 1), ir_real(b->k, b->t, 0));
    b->cosine[i][1] = cosine[i];
    b->sine[i][1] = sine[i];
    clb_angle_multiples(b->k, b->p->edge_rotation.l, b->cosine[i], b->sine[i]);
  }
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  const bool back = p->pass == CLB_BACKWARD;
  builder *b = calloc(1, sizeof *b);
  ir_begin(k, back ? "edge_rotation_backward" : "edge_rotation", s->lanes, s->subgroups,
           s->lanes * s->subgroups);
  if (!b) {
    snprintf(k->error, sizeof k->error, "no memory");
    return;
  }
  *b = (builder){.k = k, .p = p, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  clb_rows_begin(&b->rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array vectors = clb_rows_array(&b->rows, type, false);
  clb_row_array in = vectors;
  if (back) in = clb_rows_array(&b->rows, type, false);
  const clb_row_array out = clb_rows_array(&b->rows, type, true);
  clb_rows_start(&b->rows, type, s->rows.columns_per_piece);
  start(b, &vectors);
  if (back) gradients(b, &in, &out);
  else values(b, &out);
  ir_finish(k);
  free(b);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "degrees up to %d, orders up to %d", (int)p->edge_rotation.l,
               (int)p->edge_rotation.m);
}

const clb_kernel_kind clb_kind_edge_rotation = {.name = "edge_rotation",
                                                .check = check,
                                                .schedule = schedule,
                                                .lower = lower,
                                                .print = print,
                                                .passes = 2};
