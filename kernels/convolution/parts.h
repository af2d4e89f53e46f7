/* kernels/convolution/parts.h - how a convolution's channels and paths are divided among sub-groups
   (partition.c). */
#ifndef CLB_KERNELS_CONVOLUTION_PARTS_H
#define CLB_KERNELS_CONVOLUTION_PARTS_H

#include "kernels/kernel.h"
#include "kernels/tensor_product/form.h"

typedef struct {
  int n;
  int of_x[CLB_MAX_TERMS], of_z[CLB_MAX_TERMS];    /* the part of a term; -1: none */
  int mul[CLB_MAX_TERMS], per_lane[CLB_MAX_TERMS]; /* of a part: its multiplicity; channels of
 a lane */
} clb_parts;
enum { CLB_MAX_PER_LANE = 4 };

/* components: the most components of x and z, of all channels of a lane together, that a part has,
   unless one channel of one term of x (divided: of z) has more.  per_lane: the most channels of a
   lane. slices: the most that a sub-group is divided into.  divided: several parts may read the
   same term of x.  ordered: the parts with the most arithmetic come first.  twice: of a component
   of z there is a sum beside g. */
typedef struct {
  int components, per_lane, lanes, slices;
  bool divided, ordered, twice;
} clb_part_limits;

/* Divides the paths into parts.  All paths to a term of z are in one part; so are all paths from a
   term of x, unless they may be divided. */
void clb_parts_make(const clb_tensor_product_problem *tp, const clb_part_limits *l,
                    clb_parts *parts);
/* The limits that a schedule sets. */
clb_part_limits clb_part_limits_of(const clb_problem *p, const clb_schedule *s);
/* Whether a part needs a term of x. */
bool clb_part_reads(const clb_tensor_product_problem *tp, const clb_parts *parts, int part, int x);
/* Lanes of a slice that processes `mul` channels, `per_lane` in each lane. */
int clb_slice_width(const clb_schedule *s, int mul, int per_lane);
/* Blocks of channels of all parts: the number of roles. */
int clb_parts_blocks(const clb_parts *parts, const clb_schedule *s);

/* Parts of some terms of z each, within the limits unless one term has more, and the paths to
   them. */
void clb_parts_of_z(const clb_tensor_product_problem *tp, const clb_part_limits *l,
                    clb_parts *parts);

/* Scales by which the coefficients of components of z are divided, so that many become 1 or -1.
   Where sums a_ij are computed (pairs), each component has a scale, for the coefficients that start
   such a sum; else a term has one, chosen so that paths share products c y. */
bool clb_z_scales(const clb_tensor_product_problem *tp, const clb_parts *parts, bool pairs,
                  double scale[][MAX_M]);

/* The output of this slot that the caller wants; -1: none. */
int clb_wanted_output(const clb_form_builder *f, int slot);

#endif
