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
      together[CLB_MAX_TERMS]; /* of a part; blocks of channels that one sub-group does */
} clb_parts;
enum { CLB_MAX_TOGETHER = 4 };

/* No term of z gets paths from two parts; no term of x gives to two, unless they may be divided.
   most: components of x and z of the blocks that are together, unless one block of one term of x
   (divided: of z) has more.  lanes: of a block; 0: blocks are not put together. */
void clb_parts_make(const clb_tensor_product_problem *tp, int most, int lanes, bool divided,
                    clb_parts *parts);
/* Whether a part needs a term of x. */
bool clb_part_reads(const clb_tensor_product_problem *tp, const clb_parts *parts, int part, int x);
/* Lanes of a slice that does mul channels. */
int clb_slice_width(const clb_schedule *s, int mul);
/* Of all parts, blocks that are together counted once. */
int clb_parts_blocks(const clb_parts *parts, int lanes);

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
