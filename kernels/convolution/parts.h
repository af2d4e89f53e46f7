/* kernels/convolution/parts.h - how a convolution's channels and paths are divided among sub-groups
   (partition.c). */
#ifndef CLB_KERNELS_CONVOLUTION_PARTS_H
#define CLB_KERNELS_CONVOLUTION_PARTS_H

#include "kernels/kernel.h"
#include "kernels/tensor_product/form.h"

typedef struct {
  int n;                                        /* parts, by multiplicity, the greatest first */
  int of_x[CLB_MAX_TERMS], of_z[CLB_MAX_TERMS]; /* part of a term; -1: none */
  int mul[CLB_MAX_TERMS],
      together[CLB_MAX_TERMS]; /* of a part; blocks of channels that a unit does */
  int nonzeros;                /* of the unit that has most */
} clb_parts;
enum { CLB_MAX_TOGETHER = 4 };

/* No term of z gets paths from two parts.  most: components of x and z, most_nonzeros: non-zeros of
   a unit, unless one block of one term of x has more.  lanes: of a block; 0: blocks are not put
   together. */
void clb_parts_make(const clb_tensor_product_problem *tp, int most, int most_nonzeros, int lanes,
                    clb_parts *parts);
/* Lanes of a slice that does mul channels. */
int clb_slice_width(const clb_schedule *s, int mul);
/* Blocks of channels of all parts. */
int clb_parts_units(const clb_parts *parts, int lanes);

/* Parts of some terms of z each, of `most` components unless one has more, and the paths to them.
 */
void clb_parts_of_z(const clb_tensor_product_problem *tp, int most, clb_parts *parts);

/* What the coefficients of components of z are divided by, so that many are 1 or -1: where sums
   a_ij are made (pairs) those that start one, else of a term as a whole, so that paths share their
   products c y. */
bool clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, bool pairs,
                  double scale[][MAX_M]);

/* Which output is of this slot and asked for; -1: none. */
int clb_wanted_output(const clb_form_builder *f, int slot);

#endif
