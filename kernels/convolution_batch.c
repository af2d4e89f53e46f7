/* convolution_batch.c - a convolution's operands on a CPU: whole rows of some edges, copied to local memory. */
#include "convolution.h"

static ir_kernel *of(clb_convolution *c) { return c->f.k; }
static ir_val i32(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }

static bool copied(const clb_problem *p, int slot, int order) {
  return clb_reads(&p->tensor_product, slot, order) && !(slot == W && p->convolution.spline);
}

static int columns_of(const clb_problem *p, int slot) { return slot == X ? p->tensor_product.x.dim : p->tensor_product.n_weights; }

int64_t clb_batch_bytes(const clb_problem *p, int edges) {
  int64_t columns = 0, bytes = p->storage == CLB_F64 ? 8 : 4;
  for (int order = 0; order < clb_orders(p); order++)
    for (int slot = X; slot <= W; slot += W - X) columns += copied(p, slot, order) ? columns_of(p, slot) : 0;
  return edges * columns * bytes + p->tensor_product.z.dim * (p->arithmetic == CLB_F64 ? INT64_C(8) : 4);
}

void clb_batch_begin(clb_convolution *c) {
  clb_batch *b = &c->batch;
  ir_type element = clb_ir_type((clb_dtype)c->f.p->storage);
  for (int order = 0; order < clb_orders(c->f.p) && c->f.s->batch; order++)
    for (int slot = X; slot <= W; slot += W - X) {
      if (!copied(c->f.p, slot, order) || !columns_of(c->f.p, slot)) continue;
      b->operand[b->n] = &c->f.in[slot][order];
      b->columns[b->n] = columns_of(c->f.p, slot);
      b->from[b->n] = c->f.in[slot][order].rows.buffer;
      b->array[b->n] = ir_local(of(c), element, (int64_t)c->f.s->batch * b->columns[b->n]);
      b->n++;
    }
  if (c->f.s->batch) b->sums = ir_local(of(c), c->f.t, c->f.tp->z.dim ? c->f.tp->z.dim : 1);
}

static void copy_row(clb_convolution *c, int i, ir_val number) {
  ir_kernel *k = of(c);
  clb_batch *b = &c->batch;
  int lanes = c->f.s->lanes, n = b->columns[i], whole = n / lanes * lanes;
  ir_val to = ir_mul(k, number, i32(c, n)), from = b->operand[i]->base;
  if (whole) {
    ir_val column = ir_loop(k, i32(c, 0), i32(c, whole), i32(c, lanes)), at = ir_add(k, column, ir_lane(k));
    ir_store(k, b->array[i], ir_add(k, to, at), IR_NONE, ir_load(k, b->from[i], ir_add(k, from, ir_cast(k, IR_I64, at)), IR_NONE));
    ir_end(k);
  }
  if (n % lanes) {
    ir_val at = ir_add(k, ir_lane(k), i32(c, whole)), mask = ir_2(k, IR_LT, at, i32(c, n));
    ir_store(k, b->array[i], ir_add(k, to, at), mask, ir_load(k, b->from[i], ir_add(k, from, ir_cast(k, IR_I64, at)), mask));
  }
}

void clb_batch_fetch(clb_convolution *c, ir_val first, ir_val last) {
  ir_kernel *k = of(c);
  clb_batch *b = &c->batch;
  ir_val place = ir_loop(k, first, last, i32(c, 1)), at = ir_cast(k, IR_I64, place);
  ir_val sender = ir_cast(k, IR_I64, ir_load(k, c->other, at, IR_NONE)), edge = ir_cast(k, IR_I64, ir_load(k, c->walk.edge, at, IR_NONE));
  for (int i = 0; i < b->n; i++) {
    bool of_x = b->operand[i] == &c->f.in[X][0] || b->operand[i] == &c->f.in[X][1];
    clb_form_row(&c->f, b->operand[i], of_x ? sender : edge);
    copy_row(c, i, ir_sub(k, place, first));
  }
  ir_end(k);
  for (int i = 0; i < b->n; i++) b->operand[i]->rows.buffer = b->array[i];
}

void clb_batch_turn(clb_convolution *c, ir_val number) {
  for (int i = 0; i < c->batch.n; i++) c->batch.operand[i]->base = ir_mul(of(c), ir_cast(of(c), IR_I64, number), i64(c, c->batch.columns[i]));
}

ir_val clb_batch_sum(clb_convolution *c, int term, int i) {
  const clb_term *t = &c->f.tp->z.term[term];
  return ir_add(of(c), c->channel, i64(c, t->at + (int64_t)i * t->mul));
}
