/* kernels/convolution/unit.c - the channels that a sub-group works on: its part, its block of
   channels and the edge of each slice. */
#include "kernels/convolution/unit.h"

static ir_val i32(const clb_form_builder *f, int64_t n) { return ir_int(f->k, IR_I32, n); }

/* The number of groups that do one role: each group has `subgroups` rows, or a team's one. */
static ir_val groups_of_role(const clb_form_builder *f) {
  ir_kernel *k = f->k;
  const int rows = f->s->convolution.team ? 1 : f->s->subgroups;
  return ir_2(k, IR_DIV, ir_add(k, ir_cast(k, IR_I32, f->n), i32(f, rows - 1)), i32(f, rows));
}

void clb_unit_begin(clb_unit *u, const clb_form_builder *f) {
  u->width = f->s->lanes;
  u->slice = u->has_edge = IR_NONE;
  u->role =
      f->s->convolution.roles ? ir_2(f->k, IR_DIV, ir_group(f->k), groups_of_role(f)) : i32(f, 0);
}

void clb_rows_open(const clb_form_builder *f, clb_segment *walk) {
  ir_kernel *k = f->k;
  ir_val row = ir_group(k);
  if (f->s->convolution.roles) {
    row = ir_2(k, IR_MOD, row, groups_of_role(f));
    if (!f->s->convolution.team)
      row = ir_add(k, ir_mul(k, row, i32(f, f->s->subgroups)), ir_subgroup(k));
    ir_if(k, ir_2(k, IR_LT, ir_cast(k, IR_I64, row), f->n));
  }
  clb_segment_begin(walk, ir_cast(k, IR_I64, row));
  const int slices = f->s->convolution.edges_per_subgroup;
  if (f->s->convolution.team) clb_segment_share(walk, slices > 1 ? slices : 1);
}

void clb_rows_close(const clb_form_builder *f) {
  if (f->s->convolution.roles) ir_end(f->k);
}

void clb_unit_select(clb_unit *u, const clb_form_builder *f, int j) {
  ir_kernel *k = f->k;
  const int step =
      u->channel_stride > 1 ? 1 : u->per_lane; /* between the first channels of two lanes */
  ir_val own = step > 1 ? ir_mul(k, u->lane, i32(f, step)) : u->lane;
  u->current = j;
  u->channel =
      ir_cast(k, IR_I64, ir_add(k, ir_add(k, u->first, own), i32(f, j * u->channel_stride)));
  u->mask =
      u->mul % u->width ? ir_2(k, IR_LT, u->lane, ir_sub(k, i32(f, u->mul), u->first)) : IR_NONE;
  u->write = clb_and(k, u->mask, u->has_edge);
}

bool clb_unit_open(clb_unit *u, const clb_form_builder *f, const clb_parts *parts, int part,
                   int *next_role) {
  ir_kernel *k = f->k;
  int lanes = f->s->lanes, mul = parts->mul[part], per_lane = parts->per_lane[part];
  int width = clb_slice_width(f->s, mul, per_lane),
      blocks = (mul + width * per_lane - 1) / (width * per_lane), roles = f->s->convolution.roles;
  ir_val block = i32(f, 0);
  bool opened = roles ? blocks < roles : blocks > 1;
  if (roles) {
    block = *next_role ? ir_sub(k, u->role, i32(f, *next_role)) : u->role;
    if (opened)
      ir_if(k, ir_2(k, IR_AND, ir_2(k, IR_LE, i32(f, 0), block),
                    ir_2(k, IR_LT, block, i32(f, blocks))));
    if (blocks == 1) block = i32(f, 0); /* known when the kernel is made */
  } else if (opened) block = ir_loop(k, i32(f, 0), i32(f, blocks), i32(f, 1));
  u->block = ir_add(k, block, i32(f, *next_role));
  *next_role += blocks;
  u->mul = mul;
  u->per_lane = per_lane;
  u->channel_stride = f->s->convolution.edges_per_batch ? lanes : 1;
  u->width = width;
  bool sliced = width < lanes;
  u->first = ir_mul(k, block, i32(f, (int64_t)width * per_lane));
  u->lane = sliced ? ir_2(k, IR_MOD, ir_lane(k), i32(f, u->width)) : ir_lane(k);
  u->slice = sliced ? ir_2(k, IR_DIV, ir_lane(k), i32(f, u->width)) : IR_NONE;
  clb_unit_select(u, f, 0);
  return opened;
}

ir_val clb_slice_edge_slot(const clb_unit *u, const clb_form_builder *f, ir_val edge_slot,
                           ir_val last) {
  ir_kernel *k = f->k;
  return u->slice == IR_NONE
             ? edge_slot
             : ir_2(k, IR_MIN, ir_add(k, edge_slot, u->slice), ir_sub(k, last, i32(f, 1)));
}
