/* kernels/norm/emit.c - chunks of a row, and accesses to them. */
#include "kernels/norm/norm.h"

enum { UNROLLED = CLB_NORM_CHAINS }; /* chunks in the body of a loop */

/* ---- chunks ---- */

static void segment(clb_norm_kernel *b, const clb_norm_segment *s, int *number,
                    clb_norm_each *each) {
  ir_kernel *k = b->l.k;
  const int64_t length = (int64_t)b->team * b->width, whole = s->length / length,
                looped = b->kept ? 0 : whole / UNROLLED * UNROLLED;
  if (looped) {
    ir_val from =
        ir_loop(k, clb_i64(k, 0), clb_i64(k, looped * length), clb_i64(k, UNROLLED * length));
    for (int i = 0; i < UNROLLED; i++)
      each(b, &(clb_norm_chunk){s, ir_add(k, from, clb_i64(k, i * length)), b->row_mask, i});
    ir_end(k);
  }
  for (int64_t i = looped; i < whole; i++)
    each(b, &(clb_norm_chunk){s, clb_i64(k, i * length), b->row_mask, (*number)++});
  if (s->length % length)
    each(b, &(clb_norm_chunk){
                s, clb_i64(k, whole * length),
                clb_and(k, b->row_mask,
                        ir_2(k, IR_LT, b->member, clb_i32(k, s->length % length / b->width))),
                (*number)++});
}

void clb_norm_chunks(clb_norm_kernel *b, clb_norm_each *each) {
  int number = 0;
  for (int i = 0; i < b->plan.n; i++) segment(b, &b->plan.segment[i], &number, each);
}

/* ---- accesses ---- */

static void load(clb_norm_kernel *b, ir_val array, ir_val at, ir_val mask, int width, ir_val *v) {
  if (width == 1) v[0] = ir_load(b->l.k, array, at, mask);
  else ir_load_aligned(b->l.k, array, at, mask, width, v);
  for (int e = 0; e < width; e++) v[e] = ir_cast(b->l.k, b->l.t, v[e]);
}

static ir_val element(clb_norm_kernel *b, ir_val start, const clb_norm_chunk *c) {
  return ir_add(b->l.k, start, ir_add(b->l.k, c->from, clb_i64(b->l.k, c->s->at)));
}

static void load_input(clb_norm_kernel *b, const clb_norm_chunk *c, int input, ir_val *v) {
  load(b, b->in[input].buffer, element(b, b->start[input], c), c->mask, b->width, v);
}

/* Where the row in local memory has it: what a lane copies there only that lane reads. */
static ir_val local_place(clb_norm_kernel *b, const clb_norm_chunk *c, int input) {
  ir_val row = ir_add(b->l.k, b->place, clb_i64(b->l.k, (int64_t)input * b->norm->irreps.dim));
  return element(b, row, c);
}

static void copy_input(clb_norm_kernel *b, const clb_norm_chunk *c, int input) {
  (b->width == 1 ? ir_copy : ir_copy_aligned)(b->l.k, b->row, local_place(b, c, input),
                                              b->in[input].buffer, element(b, b->start[input], c),
                                              c->mask, b->width);
}

void clb_norm_input(clb_norm_kernel *b, const clb_norm_chunk *c, int input, ir_val *v) {
  ir_kernel *k = b->l.k;
  ir_val mean = c->s->scalar ? b->mean[input] : IR_NONE;
  if (mean != IR_NONE && c->mask != IR_NONE) /* other lanes keep their 0 */
    mean = ir_select(k, c->mask, mean, ir_real(k, b->l.t, 0));
  if (!b->kept) load_input(b, c, input, v);
  if (b->local) load(b, b->row, local_place(b, c, input), c->mask, b->width, v);
  for (int e = 0; e < b->width; e++) {
    if (b->kept && !b->local) v[e] = b->value[input][c->number * b->width + e];
    if (mean != IR_NONE) v[e] = ir_sub(k, v[e], mean);
  }
}

void clb_norm_write(clb_norm_kernel *b, const clb_norm_chunk *c, int output, const ir_val *v) {
  ir_kernel *k = b->l.k;
  const clb_row_array *a = &b->out[output];
  ir_val at = element(b, b->out_start[output], c), before[CLB_NORM_MOST_WIDTH],
         value[CLB_NORM_MOST_WIDTH];
  if (b->p->accumulate) load(b, a->buffer, at, c->mask, b->width, before);
  for (int e = 0; e < b->width; e++) {
    value[e] = b->p->accumulate ? ir_add(k, before[e], v[e]) : v[e];
    value[e] = ir_cast(k, ir_register_type(a->element), value[e]);
  }
  if (b->width == 1) ir_store(k, a->buffer, at, c->mask, value[0]);
  else ir_store_aligned(k, a->buffer, at, c->mask, b->width, value);
}

/* The number in the segment of this lane's element e. */
static ir_val number_of(clb_norm_kernel *b, const clb_norm_chunk *c, int e) {
  ir_kernel *k = b->l.k;
  ir_val place = ir_mul(k, b->member, clb_i32(k, b->width));
  return ir_add(k, ir_add(k, place, ir_cast(k, IR_I32, c->from)), clb_i32(k, e));
}

/* Numbers of a row that has one for each channel, from number `first` on. */
static void load_channels(clb_norm_kernel *b, const clb_norm_chunk *c, const clb_row_array *a,
                          int64_t first, ir_val *v) {
  ir_kernel *k = b->l.k;
  const bool turns = c->s->components > 1, inner = b->norm->layout == CLB_IR_MUL;
  const bool adjacent = !turns || (inner && c->s->mul % b->width == 0);
  const int width = adjacent && first % b->width == 0 ? b->width : 1;
  for (int e = 0; e < b->width; e += width) {
    ir_val i = number_of(b, c, e);
    if (turns)
      i = ir_2(k, inner ? IR_MOD : IR_DIV, i, clb_i32(k, inner ? c->s->mul : c->s->components));
    ir_val at = ir_add(k, ir_add(k, a->offset, clb_i64(k, first)), ir_cast(k, IR_I64, i));
    load(b, a->buffer, at, c->mask, width, v + e);
  }
}

static void take(const clb_norm_kernel *b, const clb_norm_chunk *c, const ir_val *kept, ir_val *v) {
  for (int e = 0; e < b->width; e++) v[e] = kept[c->number * b->width + e];
}

static void load_weights(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  ir_kernel *k = b->l.k;
  load_channels(b, c, &b->weights, c->s->first_weight, v);
  for (int e = 0; e < b->width && b->norm->weight_offset != 0; e++)
    v[e] = ir_add(k, v[e], ir_real(k, b->l.t, b->norm->weight_offset));
}

static void load_c(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  load_channels(b, c, &b->c_row, c->s->first_weight, v);
}

static ir_val spread_place(clb_norm_kernel *b, const clb_norm_chunk *c, bool of_c, int e) {
  int64_t first = (of_c ? b->norm->irreps.dim : 0) + e;
  return ir_add(b->l.k, element(b, b->place, c), clb_i64(b->l.k, first));
}

void clb_norm_spread_weights(clb_norm_kernel *b, const clb_norm_chunk *c) {
  ir_val v[CLB_NORM_MOST_WIDTH];
  for (int of_c = 0; of_c <= b->c; of_c++) {
    (of_c ? load_c : load_weights)(b, c, v);
    for (int e = 0; e < b->width; e++)
      ir_store(b->l.k, b->spread, spread_place(b, c, of_c, e), c->mask, v[e]);
  }
}

static void take_spread(clb_norm_kernel *b, const clb_norm_chunk *c, bool of_c, ir_val *v) {
  for (int e = 0; e < b->width; e++)
    v[e] = ir_load(b->l.k, b->spread, spread_place(b, c, of_c, e), c->mask);
}

void clb_norm_weights(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  if (b->weights_kept) take(b, c, b->weight, v);
  else if (b->spread != IR_NONE) take_spread(b, c, false, v);
  else load_weights(b, c, v);
}

static void load_biases(clb_norm_kernel *b, const clb_norm_chunk *c, const clb_row_array *a,
                        ir_val *v) {
  load_channels(b, c, a, b->plan.weights + c->s->first_bias, v);
}

void clb_norm_biases(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  if (b->weights_kept) take(b, c, b->bias, v);
  else load_biases(b, c, &b->weights, v);
}

void clb_norm_c(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  if (b->weights_kept) take(b, c, b->c_weight, v);
  else if (b->spread != IR_NONE) take_spread(b, c, true, v);
  else load_c(b, c, v);
}

void clb_norm_c_biases(clb_norm_kernel *b, const clb_norm_chunk *c, ir_val *v) {
  if (b->weights_kept) take(b, c, b->c_bias, v);
  else load_biases(b, c, &b->c_row, v);
}

/* ---- what is kept ---- */

void clb_norm_keep_weights(clb_norm_kernel *b, const clb_norm_chunk *c) {
  const int at = c->number * b->width;
  const bool biased = c->s->scalar && b->plan.biases;
  load_weights(b, c, b->weight + at);
  if (biased && b->p->pass == CLB_FORWARD) load_biases(b, c, &b->weights, b->bias + at);
  if (b->c) load_c(b, c, b->c_weight + at);
  if (b->c && biased) load_biases(b, c, &b->c_row, b->c_bias + at);
}

void clb_norm_keep_inputs(clb_norm_kernel *b, const clb_norm_chunk *c) {
  for (int i = 0; i < b->n_in; i++) {
    if (i == NORM_A && !b->a) continue;
    if (b->local) copy_input(b, c, i);
    else load_input(b, c, i, b->value[i] + c->number * b->width);
  }
}
