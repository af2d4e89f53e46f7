/* kernels/tensor_product/channels.h - lanes are channels: the row of a sub-group, its blocks of
   channels, and reading and writing terms of them.

   Where a channel's components lie side by side (layout mul_ir), a block of channels is one piece
   of memory: with `through_local` results of z go through local memory, so that the sub-group
   writes them in order. With `whole_rows` the whole row of z does: where channels are not a
   multiple of the lanes, terms begin in the middle of memory lines. Only where a group is one
   sub-group with one row. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_CHANNELS_H
#define CLB_KERNELS_TENSOR_PRODUCT_CHANNELS_H

#include "kernels/tensor_product/form.h"

typedef struct {
  clb_form_builder f;
  int rows_of_group, units;
  ir_val row, row_in_group, unit; /* i64; i32; i32: which of the row's sub-groups this is */
  int next_unit;                  /* the first one to which no block has been assigned yet */
  bool opened;                    /* the current block is inside a LOOP or IF */
  int mul;                        /* in the current block: channels of its terms, */
  ir_val first, channel,
      mask;     /* its first (i32) and this lane's (i64); lanes that have one, or IR_NONE */
  ir_val write; /* lanes that have one and a row; with `lockstep`, sub-groups beyond the last row
                   repeat it and write nothing */
  ir_val stage, whole; /* local arrays, or IR_NONE */
  ir_type staged;      /* its element type */
} clb_channels;

/* Declares the parameters and finds the row; then opens a guard, if a group may extend beyond the
   last row. */
void clb_channels_begin(clb_channels *c, ir_kernel *k, const clb_problem *p, const clb_schedule *s);
void clb_channels_guard(clb_channels *c);
void clb_channels_end_guard(clb_channels *c);

/* Opens a loop over mul channels, one lane each. `alone`: only the first unit processes them. */
void clb_channels_open(clb_channels *c, int mul, bool alone);
void clb_channels_close(clb_channels *c);

void clb_channels_store(clb_channels *c, const clb_form_array *a, int term, const ir_val *v);
/* Writes the row assembled in local memory. */
void clb_channels_flush(clb_channels *c, const clb_form_array *a);
int clb_widest(const clb_irreps *irreps); /* components of the widest term */

#endif
