/* kernels/convolution/frame_rotation.c - rotations into the frame of the current edge and back, and
   the infinitesimal rotation that a tangent of its vector makes. */
#include "kernels/convolution/frame_rotation.h"

#include <math.h>
#include <string.h>

#include "src/problem/rotation.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }

void clb_channels_clear(clb_channels v) {
  for (int j = 0; j < CLB_MAX_PER_LANE; j++) clb_no_values(v[j], MAX_M);
}

ir_val clb_negative(const clb_convolution *c, ir_val v) {
  return v == IR_NONE ? IR_NONE : ir_1(of(c), IR_NEG, v);
}

/* ---- numbers of the frame ---- */

/* Loads CLB_FRAME_QUAD numbers of the frame's row (order 0) or the tangent's (1), from `at` on. */
static void load_numbers(clb_convolution *c, int order, int at, ir_val *v) {
  ir_kernel *k = of(c);
  const clb_form_array *a = &c->f.in[Y][order];
  if (c->stage.stages) {
    clb_stage_numbers(&c->stage, c, order, at, v);
    return;
  }
  const bool aligned = c->s->roles && !c->s->unaligned_rows && !c->f.s->scalar_access &&
                       CLB_FRAME_QUAD * ir_type_bytes(a->rows.element) == 16;
  (aligned ? ir_load_aligned : ir_load_wide)(
      k, a->rows.buffer, ir_add(k, a->base, ir_int(k, IR_I64, at)), IR_NONE, CLB_FRAME_QUAD, v);
}

/* Number `at` of the row, loaded together with its neighbours. */
static ir_val number(clb_convolution *c, int at) {
  clb_frame *f = &c->frame;
  if (f->cached_at != at / CLB_FRAME_QUAD * CLB_FRAME_QUAD) {
    f->cached_at = at / CLB_FRAME_QUAD * CLB_FRAME_QUAD;
    load_numbers(c, 0, f->cached_at, f->cached);
  }
  return f->cached[at - f->cached_at];
}

void clb_frame_begin(clb_convolution *c) {
  ir_kernel *k = of(c);
  clb_frame *f = &c->frame;
  f->cached_at = -1;
  for (int m = 1; m <= f->l; m++) {
    f->cosine[m] = number(c, clb_frame_cosine(m));
    f->sine[m] = number(c, clb_frame_sine(m));
  }
  if (!f->has_tangent) return;
  load_numbers(c, 1, 0, f->tangent);
  f->omega[0] = ir_mul(k, f->tangent[CLB_TANGENT_Z], f->tangent[CLB_TANGENT_INVERSE]);
  f->omega[1] =
      clb_negative(c, ir_mul(k, f->tangent[CLB_TANGENT_X], f->tangent[CLB_TANGENT_INVERSE]));
}

/* ---- into the frame and back ---- */

void clb_into_frame(clb_convolution *c, int l, int n, clb_channels v, int most, clb_channels out) {
  ir_kernel *k = of(c);
  const clb_frame *f = &c->frame;
  clb_channels rotated;
  clb_channels_clear(out);
  c->frame.cached_at = -1;
  for (int j = 0; j < n; j++) {
    if (!l) out[j][0] = v[j][0];
    rotated[j][l] = v[j][l];
    for (int m = 1; m <= l; m++) {
      ir_val up = v[j][l + m], down = v[j][l - m];
      rotated[j][l + m] = ir_fma(k, f->cosine[m], up, ir_mul(k, f->sine[m], down));
      rotated[j][l - m] = ir_fma(k, f->cosine[m], down, clb_negative(c, ir_mul(k, f->sine[m], up)));
    }
  }
  for (int below = 0; below < 2 && l; below++)
    for (int m = below, at = clb_frame_block(f->l, l, below); m <= most; m++)
      for (int i = below; i <= l; i++, at++) {
        ir_val d = number(c, at);
        for (int j = 0; j < n; j++) {
          ir_val *to = &out[j][below ? l - m : l + m];
          *to = clb_add_product(k, *to, d, rotated[j][below ? l - i : l + i]);
        }
      }
}

void clb_out_of_frame(clb_convolution *c, int l, int n, clb_channels v, int most,
                      clb_channels sum) {
  ir_kernel *k = of(c);
  const clb_frame *f = &c->frame;
  clb_channels part[2];
  c->frame.cached_at = -1;
  for (int below = 0; below < 2; below++) {
    clb_channels_clear(part[below]);
    for (int j = 0; j < n && !below; j++) part[below][j][0] = sum[j][l];
    for (int m = below, at = clb_frame_block(f->l, l, below); m <= most && l; m++)
      for (int i = below; i <= l; i++, at++) {
        if (v[0][below ? l - m : l + m] == IR_NONE) continue;
        ir_val d = number(c, at);
        for (int j = 0; j < n; j++)
          part[below][j][i] = clb_add_product(k, part[below][j][i], d, v[j][below ? l - m : l + m]);
      }
  }
  for (int j = 0; j < n; j++) {
    ir_val *up = part[0][j], *down = part[1][j];
    sum[j][l] = l ? up[0] : clb_plus_weighted(k, sum[j][l], IR_NONE, v[j][0]);
    for (int i = 1; i <= l; i++) {
      sum[j][l + i] = clb_add_product(k, sum[j][l + i], f->cosine[i], up[i]);
      sum[j][l - i] = clb_add_product(k, sum[j][l - i], f->sine[i], up[i]);
      sum[j][l + i] = clb_add_product(k, sum[j][l + i], f->sine[i], clb_negative(c, down[i]));
      sum[j][l - i] = clb_add_product(k, sum[j][l - i], f->cosine[i], down[i]);
    }
  }
}

void clb_axis_into_frame(clb_convolution *c, int l, int n, clb_channels v, ir_val *out) {
  for (int j = 0; j < n; j++) out[j] = IR_NONE;
  for (int i = 0; i < 2 * l + 1; i++)
    for (int j = 0; j < n; j++)
      out[j] =
          clb_add_product(of(c), out[j], number(c, clb_frame_axis(c->frame.l, l) + i), v[j][i]);
}

void clb_axis_out_of_frame(clb_convolution *c, int l, int n, const ir_val *v, clb_channels sum) {
  for (int i = 0; i < 2 * l + 1; i++)
    for (int j = 0; j < n; j++)
      sum[j][i] =
          clb_add_product(of(c), sum[j][i], number(c, clb_frame_axis(c->frame.l, l) + i), v[j]);
}

/* The sum over channels is rotated, not each. */
void clb_axis_torque(clb_convolution *c, int l, int n, const ir_val *v, clb_channels g, ir_val *T) {
  ir_kernel *k = of(c);
  clb_channels all, rotated;
  clb_channels_clear(all);
  for (int i = 0; i < 2 * l + 1; i++)
    for (int j = 0; j < n; j++) all[0][i] = clb_add_product(k, all[0][i], v[j], g[j][i]);
  clb_into_frame(c, l, 1, all, 1, rotated);
  const double(*J)[MAX_M * MAX_M] = clb_frame_generators(c, l);
  for (int axis = 0; axis < 2; axis++)
    for (int i = l - 1; i <= l + 1; i++) {
      const double by = J[axis][i * (2 * l + 1) + l];
      if (fabs(by) > 1e-12)
        T[axis] = clb_add_product(k, T[axis], ir_real(k, c->f.t, by), rotated[0][i]);
    }
}

/* ---- the tangent's rotation ---- */

const double (*clb_frame_generators(clb_convolution *c, int l))[MAX_M * MAX_M] {
  clb_frame *f = &c->frame;
  if (l && f->generator_l != l) {
    clb_rotation_generator(l, 0, f->generator[0]);
    clb_rotation_generator(l, 2, f->generator[1]);
    f->generator_l = l;
  }
  return (const double(*)[MAX_M * MAX_M]) f->generator;
}

void clb_add_rotation(clb_convolution *c, int l, int n, int sign, clb_channels v, int most,
                      clb_channels sum) {
  ir_kernel *k = of(c);
  const int width = 2 * l + 1;
  if (!l) return;
  const double(*J)[MAX_M * MAX_M] = clb_frame_generators(c, l);
  for (int i = l - most; i <= l + most; i++)
    for (int from = 0; from < width; from++)
      for (int axis = 0; axis < 2; axis++) {
        const double by = sign * J[axis][i * width + from];
        if (fabs(by) < 1e-12) continue;
        ir_val generator = ir_mul(k, c->frame.omega[axis], ir_real(k, c->f.t, fabs(by)));
        if (by < 0) generator = clb_negative(c, generator);
        for (int j = 0; j < n; j++)
          sum[j][i] = clb_add_product(k, sum[j][i], generator, v[j][from]);
      }
}
