/* kernels/convolution/unit.h - the channels that a sub-group works on (unit.c). */
#ifndef CLB_KERNELS_CONVOLUTION_UNIT_H
#define CLB_KERNELS_CONVOLUTION_UNIT_H

#include "kernels/convolution/parts.h"
#include "kernels/tensor_product/form.h"

/* Of the unit, and of its block of channels at hand. */
typedef struct {
  int mul, block, width; /* width: lanes of a slice */
  ir_val lane, slice; /* i32: the lane's number in its slice; the slice's, or IR_NONE where there is
                         but one */
  ir_val number, first; /* i32: the unit's number, its first channel */
  ir_val turn; /* i32: number of the part's block of channels among all that an edge goes through */
  ir_val channel, mask; /* i64; lanes that have a channel, or IR_NONE */
  ir_val there, write;  /* lanes whose slice has an edge of its own; these of `mask`; or IR_NONE */
} clb_unit;

/* i32: groups that do the same role. */
ir_val clb_groups_of_role(const clb_form_builder *f);
/* Before any part is opened. */
void clb_unit_begin(clb_unit *u, const clb_form_builder *f);
/* Opens the blocks of channels of a part: the next units do some each, or this sub-group goes
   through them; whether that is to be ended. */
bool clb_unit_open(clb_unit *u, const clb_form_builder *f, const clb_parts *parts, int part,
                   int *next_role);
/* Turns to block number j of the unit's. */
void clb_unit_select(clb_unit *u, const clb_form_builder *f, int j);
/* Where this lane's slice reads in the turn that starts at `place`, of places up to last - 1. */
ir_val clb_slice_place(const clb_unit *u, const clb_form_builder *f, ir_val place, ir_val last);
static inline int clb_slices(const clb_unit *u, const clb_form_builder *f) {
  return f->s->lanes / u->width;
}

#endif
