/* kernels/grouped/basis.h - orthonormal bases of the sides of many matrices, a group for each
   matrix: what SOAP rotates gradients into.

   A basis is a matrix E whose rows are its vectors. Kernels, the pass of the problem:
     ROTATE         the first bases, those of singular vectors of a gradient, as rows of S that are
                    sorted but not yet orthonormal
     ORTHOGONALISE  E from S: the rows of E are those of S made orthonormal one after the other
   All matrices lie in one memory, of which a lane reads only what it has itself written in this
   launch; what others need goes through local memory. Arguments: table, memory, gates, least: a
   matrix whose gate is below `least` is left out. */
#ifndef CLB_KERNELS_GROUPED_BASIS_H
#define CLB_KERNELS_GROUPED_BASIS_H

#include "kernels/kernel.h"

enum { CLB_BASIS_ORTHOGONALISE, CLB_BASIS_ROTATE, CLB_BASIS_KERNELS };

/* Rows of the tables, in i64. */
enum { CLB_SIDE_N, CLB_SIDE_S, CLB_SIDE_E, CLB_SIDE_GATE, CLB_SIDE_COLUMNS };
enum {
  CLB_ROTATED_SHORT, /* rows of the gradient as it is used, no more than its columns: */
  CLB_ROTATED_LONG,
  CLB_ROTATED_GRADIENT, /* where it is, and its strides */
  CLB_ROTATED_ROW,
  CLB_ROTATED_COLUMN,
  CLB_ROTATED_B, /* room for short x long elements, and short x short */
  CLB_ROTATED_J,
  CLB_ROTATED_S_SHORT,
  CLB_ROTATED_S_LONG, /* -1: the longer side has no basis */
  CLB_ROTATED_GATE,
  CLB_ROTATED_COLUMNS
};

/* ---- while a kernel is built ---- */

typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_type t;
  int side; /* at least as long as every side */
  ir_val memory, at[CLB_ROTATED_COLUMNS];
  ir_val subgroup, lane; /* i32 */
} clb_basis_kernel;

static inline ir_val clb_basis_i32(const clb_basis_kernel *b, int64_t x) {
  return ir_int(b->k, IR_I32, x);
}
/* memory[start + row width + column], i32 */
static inline ir_val clb_basis_place(const clb_basis_kernel *b, ir_val start, ir_val row,
                                     ir_val width, ir_val column) {
  ir_kernel *k = b->k;
  return ir_add(k, start,
                ir_add(k, ir_mul(k, ir_cast(k, IR_I64, row), width), ir_cast(k, IR_I64, column)));
}

/* Local arrays stand outside of the gate. */
typedef struct {
  ir_val array[3];
} clb_basis_locals;
clb_basis_locals clb_householder_locals(clb_basis_kernel *b);
void clb_householder(clb_basis_kernel *b, const clb_basis_locals *l);
clb_basis_locals clb_jacobi_locals(clb_basis_kernel *b);
void clb_jacobi(clb_basis_kernel *b, const clb_basis_locals *l);

#endif
