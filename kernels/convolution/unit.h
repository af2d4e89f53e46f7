/* kernels/convolution/unit.h - the channels that a sub-group works on (unit.c). */
#ifndef CLB_KERNELS_CONVOLUTION_UNIT_H
#define CLB_KERNELS_CONVOLUTION_UNIT_H

#include "kernels/convolution/parts.h"
#include "kernels/graph/segment.h"
#include "kernels/tensor_product/form.h"

/* The current block of channels of a part, and the current channel of each lane. */
typedef struct {
  int mul, per_lane, current; /* multiplicity; channels per lane; index of the current one */
  int width;                  /* lanes of a slice */
  int channel_stride;   /* between the channels of a lane: 1, or on a CPU `lanes`, so that each
                           is in a vector of its own */
  ir_val lane, slice;   /* i32: lane index in the slice; slice index, or IR_NONE if there is only
                           one */
  ir_val role, first;   /* i32: index of the role; the first channel of the block */
  ir_val block;         /* i32: index of the block among those of all parts */
  ir_val channel, mask; /* i64; lanes that have a channel, IR_NONE: all */
  ir_val has_edge;      /* lanes whose slice has an edge of its own, IR_NONE: all */
  ir_val write;         /* mask and has_edge */
} clb_unit;

/* Call it before the first part is opened. */
void clb_unit_begin(clb_unit *u, const clb_form_builder *f);
/* Opens the blocks of channels of a part: as an IF of its roles, the next ones, or as a loop over
   the blocks.  Returns whether the caller has to end that. */
bool clb_unit_open(clb_unit *u, const clb_form_builder *f, const clb_parts *parts, int part,
                   int *next_role);
/* Opens the row whose edges a sub-group processes. */
void clb_rows_open(const clb_form_builder *f, clb_segment *walk);
void clb_rows_close(const clb_form_builder *f);
/* Makes channel j of those side by side in a lane the current one. */
void clb_unit_select(clb_unit *u, const clb_form_builder *f, int j);
/* i32: the edge slot that this lane's slice reads in the iteration that starts at `edge_slot`; at
   most last - 1. */
ir_val clb_slice_edge_slot(const clb_unit *u, const clb_form_builder *f, ir_val edge_slot,
                           ir_val last);
static inline int clb_slices(const clb_unit *u, const clb_form_builder *f) {
  return f->s->lanes / u->width;
}

#endif
