/* kernels/tensor_product/local_weights.c - weights that all rows share, in local memory. */
#include "kernels/tensor_product/local_weights.h"

typedef clb_pair_builder builder;

static ir_kernel *of(builder *b) { return b->f.k; }
static ir_val number(builder *b, int64_t n) { return ir_int(of(b), IR_I32, n); }
static ir_val wide(builder *b, ir_val i) { return ir_cast(of(b), IR_I64, i); }

static int64_t pitch_of(const clb_problem *p, const clb_path *path) {
  const int n = clb_local_weights_step(p);
  return (p->tensor_product.z.term[path->out].mul + n - 1) / n * n;
}

static int64_t pairs_of(const clb_tensor_product_problem *tp, const clb_path *path) {
  return (int64_t)tp->x.term[path->in1].mul * tp->y.term[path->in2].mul;
}

int64_t clb_local_weights_bytes(const clb_problem *p, int pass, int subgroups) {
  const clb_tensor_product_problem *tp = &p->tensor_product;
  const bool sums = pass && tp->gradients & CLB_OPERAND_W;
  int64_t n = 0;
  for (int q = 0; q < tp->n_paths; q++) n += pairs_of(tp, &tp->path[q]) * pitch_of(p, &tp->path[q]);
  n *= (pass == CLB_DOUBLE_BACKWARD ? 2 : 1) + (sums ? subgroups : 0);
  return n * clb_arithmetic_bytes(p);
}

ir_val clb_local_weight_at(clb_local_weights *l, builder *b, const clb_path *path, ir_val u, int v,
                           int w) {
  const int64_t pitch = pitch_of(b->f.p, path), V = b->tp->y.term[path->in2].mul;
  return ir_add(of(b), ir_mul(of(b), u, number(b, V * pitch)),
                number(b, l->at[path - b->tp->path] + v * pitch + w));
}

typedef struct {
  ir_val at, outer, mask, there; /* i32; i64; lanes with an element; with a weight, which is one */
  bool opened;
} spot;

/* Opens a loop over a path's weights in local memory, a lane of the group each. */
static spot open_weights(const clb_local_weights *l, builder *b, const clb_path *path) {
  ir_kernel *k = of(b);
  const int64_t pitch = pitch_of(b->f.p, path), mul = b->tp->z.term[path->out].mul,
                n = pairs_of(b->tp, path) * pitch;
  const int threads = b->f.s->lanes * b->f.s->subgroups;
  spot s = {.opened = n > threads};
  ir_val thread = ir_add(k, ir_mul(k, ir_subgroup(k), number(b, b->f.s->lanes)), ir_lane(k)),
         e = s.opened
                 ? ir_add(k, ir_loop(k, number(b, 0), number(b, n), number(b, threads)), thread)
                 : thread,
         pair = ir_2(k, IR_DIV, e, number(b, pitch)),
         w = ir_sub(k, e, ir_mul(k, pair, number(b, pitch)));
  s.mask = n % threads ? ir_2(k, IR_LT, e, number(b, n)) : IR_NONE;
  s.there = clb_and(k, s.mask, pitch == mul ? IR_NONE : ir_2(k, IR_LT, w, number(b, mul)));
  s.at = ir_add(k, e, number(b, l->at[path - b->tp->path]));
  s.outer = ir_add(k, wide(b, ir_add(k, ir_mul(k, pair, number(b, mul)), w)),
                   ir_int(k, IR_I64, path->weight_at));
  return s;
}

static void close_weights(builder *b, const spot *s) {
  if (s->opened) ir_end(of(b));
}

static void place_weights(clb_local_weights *l, builder *b) {
  const clb_problem *p = b->f.p;
  for (int q = 0; q < b->tp->n_paths; q++) {
    l->at[q] = l->n;
    l->n += pairs_of(b->tp, &b->tp->path[q]) * pitch_of(p, &b->tp->path[q]);
  }
  for (int order = 0; order < ORDERS; order++)
    l->weights[order] = clb_pairs_use(b, W, order) ? ir_local(of(b), b->f.t, l->n) : IR_NONE;
  l->sums = IR_NONE;
  for (int o = 0; o < b->f.form->n_outputs; o++)
    if (clb_pairs_slot(b, o) == W && clb_form_wanted(&b->f, o))
      l->sums = ir_local(of(b), b->f.t, b->f.s->subgroups * l->n);
}

void clb_local_weights_start(clb_local_weights *l, builder *b) {
  ir_kernel *k = of(b);
  place_weights(l, b);
  const clb_tensor_product_problem *tp = b->tp;
  for (int q = 0; q < tp->n_paths; q++) {
    const spot s = open_weights(l, b, &tp->path[q]);
    for (int order = 0; order < ORDERS; order++) {
      const clb_form_array *a = &b->f.in[W][order];
      if (l->weights[order] == IR_NONE) continue;
      ir_val v = ir_load(k, a->rows.buffer, ir_add(k, a->rows.offset, s.outer), s.there);
      ir_store(k, l->weights[order], s.at, s.mask, ir_cast(k, b->f.t, v));
    }
    for (int g = 0; g < b->f.s->subgroups && l->sums != IR_NONE; g++)
      ir_store(k, l->sums, ir_add(k, s.at, number(b, g * l->n)), s.mask, ir_real(k, b->f.t, 0));
    close_weights(b, &s);
  }
  ir_barrier(k, true);
}

void clb_local_weights_give(clb_local_weights *l, builder *b, int o) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->f.out[o];
  ir_val row = ir_add(k, ir_mul(k, wide(b, ir_group(k)), a->rows.stride), a->rows.offset);
  ir_barrier(k, true);
  for (int q = 0; q < b->tp->n_paths; q++) {
    const spot s = open_weights(l, b, &b->tp->path[q]);
    ir_val sum = ir_load(k, l->sums, s.at, s.there);
    for (int g = 1; g < b->f.s->subgroups; g++)
      sum = ir_add(k, sum, ir_load(k, l->sums, ir_add(k, s.at, number(b, g * l->n)), s.there));
    ir_store(k, a->rows.buffer, ir_add(k, row, s.outer), s.there,
             ir_cast(k, ir_register_type(a->rows.element), sum));
    close_weights(b, &s);
  }
}
