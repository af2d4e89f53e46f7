/* kernels/graph/segment.c - row segments: the edges of a row. */
#include "kernels/graph/segment.h"

static ir_val i32(ir_kernel *k, int64_t n) { return ir_int(k, IR_I32, n); }

void clb_segment_parameters(clb_segment *w, ir_kernel *k) {
  *w = (clb_segment){.k = k};
  w->list = ir_buffer(k, IR_I32, false);
  w->edge = ir_buffer(k, IR_I32, false);
  w->e0 = ir_scalar(k, IR_I32);
  w->e1 = ir_scalar(k, IR_I32);
  w->partial = ir_scalar(k, IR_I32);
}

/* Advances the variable `first` to the first slot before `last` whose edge is not below `least`, by
   bisection. */
static void skip(clb_segment *w, ir_val first, ir_val last, ir_val least) {
  ir_kernel *k = w->k;
  ir_val low = first, high = ir_var(k, last, true);
  int steps = 1;
  while (1 << steps <= CLB_GRAPH_SPLIT) steps++;
  ir_loop(
      k, i32(k, 0),
      ir_select(k, ir_2(k, IR_LE, w->count, i32(k, CLB_GRAPH_SPLIT)), i32(k, steps), i32(k, 31)),
      i32(k, 1));
  ir_val a = ir_get(k, low), b = ir_get(k, high),
         middle = ir_add(k, a, ir_2(k, IR_DIV, ir_sub(k, b, a), i32(k, 2))),
         open = ir_2(k, IR_LT, a, b);
  ir_val before =
      ir_2(k, IR_AND, open,
           ir_2(k, IR_LT, ir_load(k, w->edge, ir_cast(k, IR_I64, middle), open), least));
  ir_set(k, low, ir_select(k, before, ir_add(k, middle, i32(k, 1)), a));
  ir_set(k, high, ir_select(k, before, b, ir_2(k, IR_MAX, a, ir_select(k, open, middle, b))));
  ir_end(k);
}

/* The row, its first slot, and the number of its slots. */
static void load_entry(clb_segment *w, ir_val index, ir_val entry[3]) {
  ir_kernel *k = w->k;
  if (w->whole) {
    entry[0] = ir_cast(k, IR_I32, index);
    entry[1] = ir_load(k, w->list, index, IR_NONE);
    entry[2] =
        ir_sub(k, ir_load(k, w->list, ir_add(k, index, ir_int(k, IR_I64, 1)), IR_NONE), entry[1]);
  } else ir_load_wide(k, w->list, ir_mul(k, index, ir_int(k, IR_I64, 3)), IR_NONE, 3, entry);
}

void clb_segment_begin(clb_segment *w, ir_val index) {
  ir_kernel *k = w->k;
  ir_val entry[3];
  load_entry(w, index, entry);
  w->index = index;
  w->row = ir_cast(k, IR_I64, entry[0]);
  w->count = entry[2];
  ir_val end = ir_add(k, entry[1], entry[2]), first = ir_var(k, entry[1], true),
         last = ir_var(k, end, true);
  ir_if(k, ir_2(k, IR_LT, i32(k, 0), w->partial));
  skip(w, first, end, w->e0);
  ir_set(k, last, ir_get(k, first));
  skip(w, last, end, w->e1);
  ir_end(k);
  w->first = ir_get(k, first);
  w->last = ir_get(k, last);
}

void clb_segment_share(clb_segment *w, int together) {
  ir_kernel *k = w->k;
  const int turn = k->subgroups * together; /* slots, if each has `together` */
  ir_val n = ir_sub(k, w->last, w->first),
         turns = ir_2(k, IR_DIV, ir_add(k, n, i32(k, turn - 1)), i32(k, turn)),
         share = ir_mul(k, turns, i32(k, together));
  w->first = ir_2(k, IR_MIN, ir_add(k, w->first, ir_mul(k, ir_subgroup(k), share)), w->last);
  w->last = ir_2(k, IR_MIN, ir_add(k, w->first, share), w->last);
}
