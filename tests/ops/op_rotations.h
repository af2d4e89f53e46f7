/* tests/ops/op_rotations.h - how the rows of each op turn: of which irreps its operands are. */
#ifndef CLB_TESTS_OPS_OP_ROTATIONS_H
#define CLB_TESTS_OPS_OP_ROTATIONS_H

#include "tests/ops/op_runs.h"

#include "tools/reference/reference_irreps.h"
#include "tools/reference/reference_spherical_harmonics.h"

enum { MAX_L = 12, MAX_BLOCKS = 600 };

/* Element (u, m) of a block is at start + u * by_channel + m * by_order of a row. */
typedef struct {
  int l, parity, mul, start, by_channel, by_order;
} block;
typedef struct {
  int n;
  block of[MAX_BLOCKS];
} blocks; /* none: every element is a scalar */

/* D[l][m][m'] of the rotation by 1 radian about (1, 2, -2)/3. */
static double D[MAX_L + 1][2 * MAX_L + 1][2 * MAX_L + 1];

/* From those of l - 1 and 1: 3j symbols couple both to l. */
static inline void rotate_next(int l) {
  const int n = 2 * l + 1, p = 2 * l - 1;
  static double C[(2 * MAX_L - 1) * 3 * (2 * MAX_L + 1)],
      half[(2 * MAX_L - 1) * 3 * (2 * MAX_L + 1)];
  reference_3j(l - 1, 1, l, C);
  memset(half, 0, sizeof half);
  for (int i = 0; i < p; i++) /* half: C with both of its first indices rotated */
    for (int j = 0; j < 3; j++)
      for (int a = 0; a < p; a++)
        for (int b = 0; b < 3; b++)
          for (int k = 0; k < n; k++)
            half[(a * 3 + b) * n + k] += C[(i * 3 + j) * n + k] * D[l - 1][i][a] * D[1][j][b];
  for (int k = 0; k < n; k++)
    for (int m = 0; m < n; m++)
      for (int ij = 0; ij < p * 3; ij++) D[l][k][m] += n * half[ij * n + k] * C[ij * n + m];
}

static inline void make_rotations(void) {
  const double a[3] = {1. / 3, 2. / 3, -2. / 3}, c = cos(1), s = sin(1);
  D[0][0][0] = 1;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      D[1][i][j] =
          (1 - c) * a[i] * a[j] + (i == j ? c : (j == (i + 1) % 3 ? -s : s) * a[3 - i - j]);
  for (int l = 2; l <= MAX_L; l++) rotate_next(l);
}

/* Adds the terms of irreps; a merged one shares its rows of m with its neighbours of that irrep. */
static inline void add_irreps(blocks *b, const char *text, clb_layout layout) {
  static reference_irreps irreps;
  assert_true(reference_irreps_read(text, &irreps));
  for (int t = 0; t < irreps.n; t++) {
    const reference_irrep *is = &irreps.term[t];
    int first = t, before = 0, all = 0;
    while (layout == CLB_MERGED && first && irreps.term[first - 1].l == is->l &&
           irreps.term[first - 1].parity == is->parity)
      before += irreps.term[--first].mul;
    for (int i = first; i < irreps.n && irreps.term[i].l == is->l &&
                        irreps.term[i].parity == is->parity && (i <= t || layout == CLB_MERGED);
         i++)
      all += irreps.term[i].mul;
    const bool channels_last = layout != CLB_MUL_IR;
    assert_true(b->n < MAX_BLOCKS);
    b->of[b->n++] = (block){is->l,
                            is->parity,
                            is->mul,
                            irreps.term[first].at + before,
                            channels_last ? 1 : 2 * is->l + 1,
                            channels_last ? layout == CLB_MERGED ? all : is->mul : 1};
  }
}

/* One multiplicity of these degrees, whose parity is that of harmonics. */
static inline void add_degrees(blocks *b, const int *degrees, int n, int mul, clb_layout layout) {
  int before = 0, width = 0;
  for (int i = 0; i < n; i++) width += 2 * degrees[i] + 1;
  for (int i = 0; i < n; before += 2 * degrees[i++] + 1) {
    const int l = degrees[i], by_channel = layout == CLB_BY_CHANNEL ? width : 2 * l + 1;
    b->of[b->n++] = (block){l,
                            l % 2 ? -1 : 1,
                            mul,
                            layout == CLB_BY_CHANNEL ? before : before * mul,
                            layout == CLB_IR_MUL ? 1 : by_channel,
                            layout == CLB_IR_MUL ? mul : 1};
  }
}

static inline void add_vector(blocks *b) { b->of[b->n++] = (block){1, -1, 1, 0, 3, 1}; }

static inline void describe_product(clb_context *ctx, const tensor_problem *p, int of, blocks *b) {
  tensor_desc *d;
  OK(ctx, tensor_problem_describe(ctx, p, &d));
  if (of == CLB_OPERAND_X) add_irreps(b, d->desc.irreps_x, d->desc.layout_x);
  if (of == CLB_OPERAND_Y) add_irreps(b, d->desc.irreps_y, d->desc.layout_y);
  if (of == CLB_OPERAND_Z) add_irreps(b, d->desc.irreps_z, d->desc.layout_z);
  free(d);
}

/* What an operand that is shaped like `of` consists of. */
static inline void describe(clb_context *ctx, const tool_op *op, const void *problem, int of,
                            blocks *b) {
  static const int up_to[] = {0, 1, 2, 3, 4};
  b->n = 0;
  if (op == &tool_op_tensor_product) describe_product(ctx, problem, of, b);
  if (op == &tool_op_convolution) {
    const convolution_problem *p = problem;
    if (of == CLB_OPERAND_Y && p->vectors) add_vector(b);
    else describe_product(ctx, &p->product, of, b);
  }
  if (op == &tool_op_rms_norm && of != CLB_OPERAND_W) {
    const clb_rms_norm_desc *d = problem;
    add_irreps(b, d->irreps, d->layout);
  }
  if (op == &tool_op_norm_activation && of != CLB_OPERAND_W) {
    const clb_norm_activation_desc *d = problem;
    add_irreps(b, d->irreps, d->layout);
  }
  if (op == &tool_op_linear && of != CLB_OPERAND_W) {
    const clb_linear_desc *d = problem;
    if (of == CLB_OPERAND_X) add_irreps(b, d->irreps_in, d->layout_in);
    else add_irreps(b, d->irreps_out, d->layout_out);
  }
  if (op == &tool_op_spherical_harmonics) {
    const clb_spherical_harmonics_desc *d = problem;
    if (of == CLB_OPERAND_X) add_vector(b);
    else add_degrees(b, d->degrees, d->n_degrees, 1, CLB_MUL_IR);
  }
  if (op == &tool_op_symmetric_contraction && of != CLB_OPERAND_W) {
    const clb_symmetric_contraction_desc *d = problem;
    if (of == CLB_OPERAND_X) add_degrees(b, up_to, d->ell + 1, d->channels, d->layout_x);
    else add_degrees(b, d->degrees, d->n_degrees, d->channels, d->layout_z);
  }
}

static inline void rotate(const blocks *b, bool inverts, const tool_array *a, double *values) {
  for (int64_t r = 0; r < a->rows; r++)
    for (int i = 0; i < b->n; i++)
      for (int u = 0; u < b->of[i].mul; u++) {
        const block *is = &b->of[i];
        double out[2 * MAX_L + 1] = {0},
                               *row = values + r * a->width + is->start + u * is->by_channel;
        const int n = 2 * is->l + 1;
        for (int m = 0; m < n; m++)
          for (int k = 0; k < n; k++) out[m] += D[is->l][m][k] * row[k * is->by_order];
        for (int m = 0; m < n; m++) row[m * is->by_order] = (inverts ? is->parity : 1) * out[m];
      }
}

#endif
