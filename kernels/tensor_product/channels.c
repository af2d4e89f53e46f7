/* kernels/tensor_product/channels.c - lanes are channels: the row of a sub-group, its blocks of
   channels, and reading and writing terms of them. */
#include "kernels/tensor_product/channels.h"

static ir_kernel *of(clb_channels *c) { return c->f.k; }
static ir_val number(clb_channels *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }

int clb_widest(const clb_irreps *irreps) {
  int width = 1;
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].mul && clb_width(&irreps->term[i]) > width)
      width = clb_width(&irreps->term[i]);
  return width;
}

/* Sub-groups beyond the last row are excluded by an IF, or, in lockstep, repeat the last row and
   write nothing. */
static bool guarded(const clb_channels *c) {
  return c->rows_of_group > 1 && !c->f.s->product.lockstep;
}
static bool repeats(const clb_channels *c) {
  return c->rows_of_group > 1 && c->f.s->product.lockstep;
}

static ir_val row_to_read(clb_channels *c) {
  return repeats(c) ? ir_2(of(c), IR_MIN, c->row, ir_sub(of(c), c->f.n, ir_int(of(c), IR_I64, 1)))
                    : c->row;
}

static ir_val there(clb_channels *c) {
  return repeats(c) ? ir_2(of(c), IR_LT, c->row, c->f.n) : IR_NONE;
}

void clb_channels_begin(clb_channels *c, ir_kernel *k, const clb_problem *p,
                        const clb_schedule *s) {
  clb_form_begin(&c->f, k, p, s);
  const clb_tensor_product_problem *tp = c->f.tp;
  c->units = s->product.subgroups_per_row ? s->product.subgroups_per_row : 1;
  c->rows_of_group = s->subgroups / c->units;
  c->row_in_group =
      c->units > 1 ? ir_2(k, IR_DIV, ir_subgroup(k), number(c, c->units)) : ir_subgroup(k);
  c->unit = c->units > 1
                ? ir_sub(k, ir_subgroup(k), ir_mul(k, c->row_in_group, number(c, c->units)))
                : number(c, 0);
  c->row = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, c->rows_of_group));
  if (c->rows_of_group > 1) c->row = ir_add(k, c->row, ir_cast(k, IR_I64, c->row_in_group));
  clb_form_rows(&c->f, row_to_read(c));
  c->next_unit = 0;
  c->staged = ir_register_type(clb_ir_type((clb_dtype)p->storage));
  c->whole = s->product.whole_rows ? ir_local(k, c->staged, tp->z.dim) : IR_NONE;
  c->stage = s->product.through_local
                 ? ir_local(k, c->staged, (int64_t)s->subgroups * s->lanes * clb_widest(&tp->z))
                 : IR_NONE;
}

void clb_channels_guard(clb_channels *c) {
  if (guarded(c)) ir_if(of(c), ir_2(of(c), IR_LT, c->row, c->f.n));
  clb_form_indexed_rows(&c->f, row_to_read(c), IR_NONE);
}

void clb_channels_end_guard(clb_channels *c) {
  if (guarded(c)) ir_end(of(c));
}

void clb_channels_open(clb_channels *c, int mul, bool alone) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes, blocks = (mul - 1) / lanes + 1,
      units = c->f.s->product.subgroups_per_row;
  ir_val lane = ir_lane(k), first = number(c, 0);
  c->opened = true;
  if (units && !alone) {
    ir_val block = ir_sub(k, c->unit, number(c, c->next_unit));
    ir_val mine =
        ir_2(k, IR_AND, ir_2(k, IR_LE, first, block), ir_2(k, IR_LT, block, number(c, blocks)));
    c->opened = blocks < units;
    c->next_unit += blocks;
    if (c->opened) ir_if(k, mine);
    first = ir_mul(k, block, number(c, lanes));
  } else if (mul > lanes) {
    first = ir_mul(k, ir_loop(k, first, number(c, blocks), number(c, 1)), number(c, lanes));
  } else c->opened = false;
  c->mul = mul;
  c->first = first;
  c->channel = ir_cast(k, IR_I64, ir_add(k, first, lane));
  c->mask = mul % lanes ? ir_2(k, IR_LT, lane, ir_sub(k, number(c, mul), first)) : IR_NONE;
  c->write = clb_and(k, c->mask, there(c));
}

void clb_channels_close(clb_channels *c) {
  if (c->opened) ir_end(of(c));
}

/* ---- through local memory ---- */

/* Start of the sub-group's part of the stage, for all terms. */
static ir_val part(clb_channels *c) {
  return ir_mul(of(c), ir_subgroup(of(c)),
                number(c, (int64_t)c->f.s->lanes * clb_widest(&c->f.tp->z)));
}

/* Component i of this lane's channel; element j of the block in memory order, with j = t lanes +
   lane in iteration t. */
static ir_val own(clb_channels *c, int width, int i) {
  ir_kernel *k = of(c);
  return ir_add(k, ir_add(k, part(c), ir_mul(k, ir_lane(k), number(c, width))), number(c, i));
}

typedef struct {
  ir_val local, global, mask;
} spot;

static spot in_order(clb_channels *c, const clb_form_array *a, const clb_term *t, int turn) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes, width = clb_width(t);
  ir_val j = ir_add(k, ir_lane(k), number(c, (int64_t)turn * lanes)),
         skipped = ir_mul(k, c->first, number(c, width));
  spot s = {ir_add(k, part(c), j), IR_NONE, IR_NONE};
  s.global = ir_add(k, clb_form_start(&c->f, a, t), ir_cast(k, IR_I64, ir_add(k, skipped, j)));
  if (c->mul % lanes)
    s.mask = ir_2(k, IR_LT, j, ir_mul(k, ir_sub(k, number(c, c->mul), c->first), number(c, width)));
  return s;
}

static bool staged(const clb_channels *c, const clb_form_array *a, const clb_term *t) {
  return c->stage != IR_NONE && a->irreps == &c->f.tp->z && t->l;
}

static ir_val number_of(clb_channels *c, ir_val v) {
  return ir_cast(of(c), c->staged, v == IR_NONE ? ir_real(of(c), c->f.t, 0) : v);
}

static void store_in_order(clb_channels *c, const clb_form_array *a, ir_val index, ir_val mask,
                           ir_val v) {
  ir_kernel *k = of(c);
  if (a->adds)
    v = ir_cast(k, c->staged,
                ir_add(k, ir_cast(k, c->f.t, ir_load(k, a->rows.buffer, index, mask)),
                       ir_cast(k, c->f.t, v)));
  ir_store(k, a->rows.buffer, index, mask, v);
}

void clb_channels_store(clb_channels *c, const clb_form_array *a, int term, const ir_val *v) {
  ir_kernel *k = of(c);
  const clb_term *t = &a->irreps->term[term];
  int width = clb_width(t);
  if (c->whole != IR_NONE && a->irreps == &c->f.tp->z) {
    ir_val channel = ir_cast(k, IR_I32, c->channel);
    for (int i = 0; i < width; i++)
      ir_store(k, c->whole, ir_add(k, channel, number(c, t->at + i * clb_component_stride(t))),
               c->mask, number_of(c, v[i]));
    return;
  }
  if (!staged(c, a, t)) {
    clb_form_store(&c->f, a, term, c->channel, c->write, v);
    return;
  }
  ir_barrier(k, false);
  for (int i = 0; i < width; i++)
    ir_store(k, c->stage, own(c, width, i), IR_NONE, number_of(c, v[i]));
  ir_barrier(k, false);
  for (int i = 0; i < width; i++) {
    spot s = in_order(c, a, t, i);
    store_in_order(c, a, s.global, clb_and(k, s.mask, there(c)),
                   ir_load(k, c->stage, s.local, IR_NONE));
  }
}

void clb_channels_flush(clb_channels *c, const clb_form_array *a) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes, dim = a->irreps->dim, whole = dim / lanes * lanes;
  ir_barrier(k, false); /* reads what other lanes have stored */
  if (whole) {
    ir_val j = ir_add(k, ir_loop(k, number(c, 0), number(c, whole), number(c, lanes)), ir_lane(k));
    store_in_order(c, a, ir_add(k, a->base, ir_cast(k, IR_I64, j)), IR_NONE,
                   ir_load(k, c->whole, j, IR_NONE));
    ir_end(k);
  }
  if (dim % lanes) {
    ir_val j = ir_add(k, ir_lane(k), number(c, whole)), mask = ir_2(k, IR_LT, j, number(c, dim));
    store_in_order(c, a, ir_add(k, a->base, ir_cast(k, IR_I64, j)), mask,
                   ir_load(k, c->whole, j, mask));
  }
}
