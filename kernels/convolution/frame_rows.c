/* kernels/convolution/frame_rows.c - computes the rows of edges' frames (forward), gradients of
   edge vectors from torques (backward) and the rows of tangents (double backward); one lane per
   edge.

   The gradient of a vector v by the direction is (torque x v) / |v|^2.  Each role stores the torque
   about the two axes across the edge, T_x and T_z in its frame, where that gradient is
   (-T_z, 0, T_x) / |v|; a third number, where there is one, is the gradient of |v|. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/direction.h"
#include "kernels/common/rows.h"
#include "kernels/convolution/frame.h"
#include "src/problem/rotation.h"

_Static_assert(CLB_MAX_FRAME_L <= (int)CLB_MAX_ROTATED_L, "rotations of all degrees are known");

int clb_frame_degree(const clb_tensor_product_problem *tp) {
  int most = 0;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_path *p = &tp->path[q];
    int l1 = tp->x.term[p->in1].l, l3 = tp->z.term[p->out].l;
    if (tp->y.term[p->in2].l && l1 > most) most = l1;
    if (tp->y.term[p->in2].l && l3 > most) most = l3;
  }
  return most;
}

double clb_frame_harmonic(int32_t normalization, int l) {
  return normalization == CLB_NORM        ? 1
         : normalization == CLB_COMPONENT ? sqrt(2 * l + 1)
                                          : sqrt((2 * l + 1) / (4 * acos(-1)));
}

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  const clb_edge_frame_problem *f = &p->edge_frame;
  return f->l >= 1 && f->l <= CLB_MAX_FRAME_L && f->harmonics <= f->l + 1
             ? CLB_OK
             : clb_fail(error, CLB_ERROR_INTERNAL, "edge_frame: degree %d, %d of harmonics",
                        (int)f->l, (int)f->harmonics);
}

static int piece_of(const clb_schedule *s) { return s->rows.columns_per_piece; }

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  int columns = p->pass == CLB_FORWARD ? clb_frame_size(p->edge_frame.l) : CLB_TANGENT_SIZE,
      bytes = ir_type_bytes(clb_ir_type((clb_dtype)p->arithmetic));
  clb_rows_settings *r = &s->rows;
  *s = (clb_schedule){
      .lanes = limits->lanes[p->arithmetic], .subgroups = 1, .rows.through_local = !limits->simd};
  r->columns_per_piece = columns <= 64 ? columns : 60;
  if (limits->simd) r->columns_per_piece = columns < 8 ? columns : 8;
  if (limits->simd || (int64_t)s->lanes * (r->columns_per_piece | 1) * bytes <= limits->local_bytes)
    return;
  r->columns_per_piece = 8;
}

/* The blocks of d^l, from cosines and sines of multiples of beta (cosine[0]: 1, or 0 where there is
   no direction). */
static void put_blocks(ir_kernel *k, ir_type t, int L, int l, const double *C, const double *S,
                       const ir_val *cosine, const ir_val *sine, ir_val *row) {
  const int n = 2 * l + 1;
  for (int below = 0; below < 2; below++)
    for (int i = below, at = clb_frame_block(L, l, below); i <= l; i++)
      for (int j = below; j <= l; j++, at++) {
        int from = (below ? l - i : l + i) * n + (below ? l - j : l + j);
        ir_val sum = IR_NONE;
        for (int m = 0; m <= l; m++)
          for (int odd = 0; odd < 2; odd++) {
            double c = (odd ? S : C)[m * n * n + from];
            ir_val x = (odd ? sine : cosine)[m];
            if (c == 0) continue;
            sum = sum == IR_NONE ? ir_mul(k, x, ir_real(k, t, c))
                                 : ir_fma(k, x, ir_real(k, t, c), sum);
          }
        if (sum != IR_NONE) row[at] = sum;
      }
}

/* The row of a direction; padding between the blocks is 0. */
static void make_row(ir_kernel *k, ir_type t, int L, const clb_direction *d, ir_val *row) {
  enum { N = 2 * CLB_MAX_FRAME_L + 1 };
  ir_val cosine[CLB_MAX_FRAME_L + 1], sine[CLB_MAX_FRAME_L + 1], zero = ir_real(k, t, 0);
  double *series = malloc(sizeof *series * 2 * (CLB_MAX_FRAME_L + 1) * N * N);
  for (int i = 0; i < clb_frame_size(L); i++) row[i] = zero;
  cosine[1] = d->cosine;
  sine[1] = d->sine;
  clb_angle_multiples(k, L, cosine, sine);
  for (int m = 1; m <= L; m++)
    row[clb_frame_cosine(m)] = cosine[m], row[clb_frame_sine(m)] = sine[m];
  ir_val turned[CLB_MAX_FRAME_L + 1][2]; /* the same */
  for (int m = 1; m <= L; m++) turned[m][0] = sine[m], turned[m][1] = cosine[m];
  cosine[0] = ir_select(k, d->there, ir_real(k, t, 1), zero);
  cosine[1] = d->u[1];
  sine[1] = d->across;
  clb_angle_multiples(k, L, cosine, sine);
  for (int l = 1; l <= L; l++) {
    double *C = series, *S = series ? series + (l + 1) * (2 * l + 1) * (2 * l + 1) : NULL;
    if (series && clb_rotation_series(l, C, S)) put_blocks(k, t, L, l, C, S, cosine, sine, row);
    else snprintf(k->error, sizeof k->error, "no memory");
    const ir_val *first = row + clb_frame_block(L, l, false);
    ir_val *axis = row + clb_frame_axis(L, l);
    axis[l] = first[0];
    for (int m = 1; m <= l; m++)
      for (int up = 0; up < 2; up++) axis[up ? l + m : l - m] = ir_mul(k, first[m], turned[m][up]);
  }
  free(series);
}

static ir_val length_of(ir_kernel *k, const ir_val *v) {
  return ir_1(k, IR_SQRT, ir_fma(k, v[0], v[0], ir_fma(k, v[1], v[1], ir_mul(k, v[2], v[2]))));
}

static void store_row(clb_row_block *b, const clb_row_array *out, int columns, const ir_val *row) {
  const int most = piece_of(b->schedule);
  for (int i = 0, n; i < columns; i += n) {
    n = columns - i < most ? columns - i : most;
    clb_rows_store(b, out, i, n, row + i, false);
  }
}

/* Harmonics of the edge, of a row's degrees below `degrees`. */
static void store_harmonics(clb_row_block *b, const clb_row_array *out, int L, int degrees,
                            const ir_val *row) {
  ir_val y[(CLB_MAX_FRAME_L + 1) * (CLB_MAX_FRAME_L + 1)];
  y[0] = ir_real(b->k, b->arithmetic, 1);
  for (int l = 1, at = 1; l < degrees; l++)
    for (int i = 0; i <= 2 * l; i++, at++)
      y[at] = ir_mul(b->k, row[clb_frame_axis(L, l) + i],
                     ir_real(b->k, b->arithmetic, clb_frame_harmonic(CLB_COMPONENT, l)));
  store_row(b, out, degrees * degrees, y);
}

static void lower_rows(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  const clb_edge_frame_problem *f = &p->edge_frame;
  const int size = clb_frame_size(f->l);
  clb_row_block b;
  ir_val v[3], *row = malloc(sizeof *row * (size_t)size);
  ir_begin(k, "edge_frames", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b, k, s, (clb_dtype)p->arithmetic);
  clb_row_array in = clb_rows_array(&b, (clb_dtype)p->storage, false),
                out = clb_rows_array(&b, (clb_dtype)p->arithmetic, true), harmonics, lengths;
  if (f->harmonics) harmonics = clb_rows_array(&b, (clb_dtype)p->storage, true);
  if (f->lengths) lengths = clb_rows_array(&b, (clb_dtype)p->storage, true);
  clb_rows_start(&b, (clb_dtype)p->arithmetic, piece_of(s));
  clb_rows_load(&b, &in, 0, 3, v);
  clb_direction d = clb_direction_of(k, t, v);
  if (row) make_row(k, t, f->l, &d, row);
  else snprintf(k->error, sizeof k->error, "no memory");
  if (row) store_row(&b, &out, size, row);
  if (row && f->harmonics) store_harmonics(&b, &harmonics, f->l, f->harmonics, row);
  if (f->lengths) {
    ir_val r = length_of(k, v);
    clb_rows_store(&b, &lengths, 0, 1, &r, false);
  }
  free(row);
  ir_finish(k);
}

/* Sums over roles of the `columns` (i32: 2 or 3) numbers that each has stored for this lane's edge;
   those of a role start `pitch` elements after those of the role before. */
static void sum_roles(const clb_row_block *b, ir_type t, ir_val shares, ir_val at, ir_val pitch,
                      ir_val roles, ir_val columns, ir_val *sum) {
  ir_kernel *k = b->k;
  ir_val edge = ir_add(k, b->first, ir_cast(k, IR_I64, ir_lane(k))), var[3],
         third = ir_2(k, IR_AND, b->mask, ir_2(k, IR_LT, ir_int(k, IR_I32, 2), columns)),
         row = ir_add(k, at, ir_mul(k, edge, ir_cast(k, IR_I64, columns)));
  for (int i = 0; i < 3; i++) var[i] = ir_var(k, ir_real(k, t, 0), false);
  ir_val role = ir_loop(k, ir_int(k, IR_I32, 0), roles, ir_int(k, IR_I32, 1)),
         from = ir_add(k, row, ir_mul(k, ir_cast(k, IR_I64, role), pitch));
  for (int i = 0; i < 3; i++) {
    ir_val own = ir_load(k, shares, ir_add(k, from, ir_int(k, IR_I64, i)), i < 2 ? b->mask : third);
    ir_set(k, var[i], ir_add(k, ir_get(k, var[i]), own));
  }
  ir_end(k);
  for (int i = 0; i < 3; i++) sum[i] = ir_get(k, var[i]);
}

static void lower_gradient(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const ir_type t = clb_ir_type((clb_dtype)p->arithmetic);
  clb_row_block b;
  ir_val v[3], sum[3], g[3];
  ir_begin(k, "edge_torques", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b, k, s, (clb_dtype)p->arithmetic);
  clb_row_array in = clb_rows_array(&b, (clb_dtype)p->storage, false);
  ir_val shares = ir_buffer(k, t, false), at = ir_scalar(k, IR_I64), pitch = ir_scalar(k, IR_I64),
         roles = ir_scalar(k, IR_I32), columns = ir_scalar(k, IR_I32);
  clb_row_array out = clb_rows_array(&b, (clb_dtype)p->storage, true);
  clb_rows_start(&b, (clb_dtype)p->arithmetic, piece_of(s));
  clb_rows_load(&b, &in, 0, 3, v);
  clb_direction d = clb_direction_of(k, t, v);
  sum_roles(&b, t, shares, at, pitch, roles, columns, sum);
  clb_direction_gradient(k, &d, sum, g);
  for (int i = 0; i < 3; i++) g[i] = ir_fma(k, d.u[i], sum[2], g[i]);
  clb_rows_store(&b, &out, 0, 3, g, p->accumulate);
  ir_finish(k);
}

/* h rotated by Rx(-beta) Ry(-phi), and 1 / |v|. */
static void lower_tangents(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  clb_row_block b;
  ir_val v[3], h[3], row[CLB_TANGENT_SIZE];
  ir_begin(k, "edge_tangents", s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b, k, s, (clb_dtype)p->arithmetic);
  clb_row_array in = clb_rows_array(&b, (clb_dtype)p->storage, false),
                along = clb_rows_array(&b, (clb_dtype)p->storage, false),
                out = clb_rows_array(&b, (clb_dtype)p->arithmetic, true);
  clb_rows_start(&b, (clb_dtype)p->arithmetic, piece_of(s));
  clb_rows_load(&b, &in, 0, 3, v);
  clb_rows_load(&b, &along, 0, 3, h);
  clb_direction d = clb_direction_of(k, clb_ir_type((clb_dtype)p->arithmetic), v);
  ir_val level = ir_fma(k, d.cosine, h[2], ir_mul(k, d.sine, h[0]));
  row[CLB_TANGENT_X] = ir_fma(k, d.cosine, h[0], ir_1(k, IR_NEG, ir_mul(k, d.sine, h[2])));
  row[CLB_TANGENT_Y] = ir_fma(k, d.u[1], h[1], ir_mul(k, d.across, level));
  row[CLB_TANGENT_Z] = ir_fma(k, d.u[1], level, ir_1(k, IR_NEG, ir_mul(k, d.across, h[1])));
  row[CLB_TANGENT_INVERSE] = d.inverse;
  clb_rows_store(&b, &out, 0, CLB_TANGENT_SIZE, row, false);
  ir_finish(k);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static void (*const of_pass[])(const clb_problem *, const clb_schedule *,
                                 ir_kernel *) = {lower_rows, lower_gradient, lower_tangents};
  of_pass[p->pass](p, s, k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "degrees up to %d", (int)p->edge_frame.l);
}

const clb_kernel_kind clb_kind_edge_frame = {.name = "edge_frame",
                                             .check = check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = print,
                                             .passes = 3,
                                             .settings = CLB_FIELD(rows)};
