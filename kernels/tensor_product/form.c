/* kernels/tensor_product/form.c - the tensor product as one 4-linear form, the derivatives of each
   pass, and its operands in memory. */
#include "kernels/tensor_product/form.h"

#include <string.h>

#include "src/problem/wigner.h"

/* The order of the arguments: x y w g a b c p q r s, then the outputs. */
static const clb_vector inputs[] = {{X, 0}, {Y, 0}, {W, 0}, {Z, 0}, {X, 1}, {Y, 1},
                                    {W, 1}, {X, 2}, {Y, 2}, {W, 2}, {Z, 1}};

static const clb_form forms[] = {
    [CLB_FORWARD] = {3, 1, 1, {{0, 0, 0, 0}}, {{Z, 0}}},
    [CLB_BACKWARD] = {4, 1, 3, {{0, 0, 0, 0}}, {{X, 0}, {Y, 0}, {W, 0}}},
    [CLB_DOUBLE_BACKWARD] = {7,
                             3,
                             4,
                             {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}},
                             {{X, 0}, {Y, 0}, {W, 0}, {Z, 0}, [BY_C] = {W, 1}}},
    [CLB_TRIPLE_BACKWARD] = {11,
                             9,
                             7,
                             {{2, 1, 0, 0},
                              {2, 0, 1, 0},
                              {1, 2, 0, 0},
                              {0, 2, 1, 0},
                              {1, 0, 2, 0},
                              {0, 1, 2, 0},
                              {1, 0, 0, 1},
                              {0, 1, 0, 1},
                              {0, 0, 1, 1}},
                             {{X, 0}, {Y, 0}, {W, 0}, {Z, 0}, {X, 1}, {Y, 1}, {W, 1}}},
};

/* Results for nodes that a convolution stores per edge are summed later, so they have arithmetic
   precision; in the place of y there may be frames of edges and tangents, of that precision, too,
   and what comes in along a length is a number of a tangent then. */
static clb_dtype kept_as(const clb_form_builder *b, int slot, int order, bool written) {
  const bool frame = b->s->convolution.frame && !written,
             along = slot == W && order && b->p->convolution.spline;
  bool shares = b->p->kind == CLB_CONVOLUTION ? slot == X && !b->p->convolution.atomics
                                              : b->tp->edges && (slot == X || slot == Z);
  return (clb_dtype)((written && shares) || (frame && (slot == Y || along)) ? b->p->arithmetic
                                                                            : b->p->storage);
}

/* Gradients of shared weights go to a workspace, row by row. */
static bool adds(const clb_form_builder *b, int slot) {
  return b->p->accumulate && !(slot == W && b->tp->shared_weights) && !(b->tp->edges >> slot & 1);
}

static bool is_indexed(const clb_form_builder *b, const clb_vector *v) {
  return b->tp->indexed >> v->slot & 1 && (!v->order || b->tp->edges);
}

static clb_form_array array_of(clb_form_builder *b, clb_row_block *rows, clb_vector v,
                               bool written) {
  const int slot = v.slot;
  const clb_tensor_product_problem *tp = b->tp;
  const clb_irreps *irreps[] = {&tp->x, &tp->y, NULL, &tp->z};
  const int layouts[] = {tp->layout_x, tp->layout_y, 0, tp->layout_z};
  return (clb_form_array){.rows = clb_rows_array(rows, kept_as(b, slot, v.order, written), written),
                          .base = IR_NONE,
                          .index = IR_NONE,
                          .adds = adds(b, slot),
                          .irreps = irreps[slot],
                          .layout = layouts[slot]};
}

void clb_form_begin(clb_form_builder *b, ir_kernel *k, const clb_problem *p,
                    const clb_schedule *s) {
  clb_row_block rows;
  *b = (clb_form_builder){.k = k,
                          .p = p,
                          .tp = &p->tensor_product,
                          .s = s,
                          .form = &forms[p->pass],
                          .t = clb_ir_type((clb_dtype)p->arithmetic)};
  clb_rows_begin(&rows, k, s, (clb_dtype)p->arithmetic);
  b->n = rows.n;
  for (int i = 0; i < b->form->n_inputs; i++)
    b->in[inputs[i].slot][inputs[i].order] = array_of(b, &rows, inputs[i], false);
  for (int o = 0; o < b->form->n_outputs; o++)
    b->out[o] = array_of(b, &rows, b->form->output[o], true);
  for (int i = 0; i < b->form->n_inputs; i++)
    if (is_indexed(b, &inputs[i])) {
      clb_form_array *a = &b->in[inputs[i].slot][inputs[i].order];
      a->index = ir_buffer(k, IR_I32, false);
      a->first = ir_scalar(k, IR_I64);
    }
}

void clb_form_row(const clb_form_builder *b, clb_form_array *a, ir_val row) {
  a->base = ir_add(b->k, ir_mul(b->k, row, a->rows.stride), a->rows.offset);
}

static ir_val narrow(ir_kernel *k, ir_val v) { return ir_cast(k, IR_I64, ir_cast(k, IR_I32, v)); }

void clb_form_narrow_strides(clb_form_builder *b) {
  for (int i = 0; i < b->form->n_inputs; i++) {
    clb_row_array *rows = &b->in[inputs[i].slot][inputs[i].order].rows;
    rows->stride = narrow(b->k, rows->stride);
  }
  for (int o = 0; o < b->form->n_outputs; o++)
    b->out[o].rows.stride = narrow(b->k, b->out[o].rows.stride);
}

void clb_form_rows(clb_form_builder *b, ir_val row) {
  for (int i = 0; i < b->form->n_inputs; i++) {
    clb_form_array *a = &b->in[inputs[i].slot][inputs[i].order];
    if (a->index == IR_NONE) clb_form_row(b, a, row);
  }
  for (int o = 0; o < b->form->n_outputs; o++) clb_form_row(b, &b->out[o], row);
}

void clb_form_indexed_rows(clb_form_builder *b, ir_val row, ir_val mask) {
  for (int i = 0; i < b->form->n_inputs; i++) {
    clb_form_array *a = &b->in[inputs[i].slot][inputs[i].order];
    if (a->index != IR_NONE)
      clb_form_row(
          b, a, ir_cast(b->k, IR_I64, ir_load(b->k, a->index, ir_add(b->k, row, a->first), mask)));
  }
}

bool clb_form_wanted(const clb_form_builder *b, int o) {
  return o < b->form->n_outputs &&
         (b->p->pass == CLB_FORWARD || b->tp->gradients >> b->form->output[o].slot & 1);
}

bool clb_form_alive(const clb_form_builder *b, int m, int o, const clb_path *p) {
  const int *order = b->form->monomial[m];
  const clb_vector *by = &b->form->output[o];
  if (order[by->slot] != by->order || (by->slot == W && !p->has_weight)) return false;
  for (int slot = X; slot <= W; slot++) {
    if (slot == by->slot) continue;
    if (order[slot] == 1 && !(b->tp->incoming >> slot & 1)) return false;
    if (slot == W && order[slot] && !p->has_weight) return false;
  }
  return true;
}

/* ---- memory ---- */

static ir_val index_of(clb_form_builder *b, const clb_form_array *a, int64_t at) {
  return ir_add(b->k, a->base, ir_int(b->k, IR_I64, at));
}

static int piece(int n, int i) { return n - i < IR_MAX_WIDTH ? n - i : IR_MAX_WIDTH; }

/* `at` in the first iteration, `other` in the second. */
static ir_val turned(clb_form_builder *b, const clb_form_array *a, int64_t at, int64_t other) {
  ir_val index = index_of(b, a, at);
  return at == other
             ? index
             : ir_add(b->k, index, ir_mul(b->k, b->second, ir_int(b->k, IR_I64, other - at)));
}

/* Offset of the term's partner, if the current path has a twin and the term is one of its own. */
static int64_t other_at(const clb_form_builder *b, const clb_term *t) {
  if (!b->twin) return t->at;
  if (t == &b->tp->x.term[b->path->in1]) return b->tp->x.term[b->twin->in1].at;
  return t == &b->tp->z.term[b->path->out] ? b->tp->z.term[b->twin->out].at : t->at;
}

ir_val clb_form_start(clb_form_builder *b, const clb_form_array *a, const clb_term *t) {
  return turned(b, a, t->at, other_at(b, t));
}

ir_val clb_form_component(clb_form_builder *b, const clb_form_array *a, const clb_term *t, int m,
                          ir_val channel) {
  int64_t skip = a->layout == CLB_MUL_IR ? m : m * clb_component_stride(t);
  ir_val at = turned(b, a, t->at + skip, other_at(b, t) + skip);
  return ir_add(b->k, at,
                a->layout == CLB_MUL_IR ? ir_mul(b->k, channel, ir_int(b->k, IR_I64, clb_width(t)))
                                        : channel);
}

void clb_form_load(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                   ir_val mask, ir_val *v) {
  const clb_term *t = &a->irreps->term[term];
  for (int i = 0, w; i < clb_width(t); i += w) {
    w = a->layout == CLB_MUL_IR ? piece(clb_width(t), i) : 1;
    ir_load_wide(b->k, a->rows.buffer, clb_form_component(b, a, t, i, channel), mask, w, v + i);
  }
  for (int i = 0; i < clb_width(t); i++) v[i] = ir_cast(b->k, b->t, v[i]);
}

void clb_form_store(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                    ir_val mask, const ir_val *v) {
  clb_form_put(b, a, term, channel, mask, v, a->adds);
}

void clb_form_put(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                  ir_val mask, const ir_val *v, bool add) {
  const clb_term *t = &a->irreps->term[term];
  ir_kernel *k = b->k;
  ir_val out[MAX_M], old[MAX_M];
  if (add) clb_form_load(b, a, term, channel, mask, old);
  for (int i = 0; i < clb_width(t); i++) {
    out[i] = v[i] == IR_NONE ? ir_real(k, b->t, 0) : v[i];
    out[i] =
        ir_cast(k, ir_register_type(a->rows.element), add ? ir_add(k, old[i], out[i]) : out[i]);
  }
  for (int i = 0, w; i < clb_width(t); i += w) {
    w = a->layout == CLB_MUL_IR ? piece(clb_width(t), i) : 1;
    ir_store_wide(k, a->rows.buffer, clb_form_component(b, a, t, i, channel), mask, w, out + i);
  }
}

ir_val clb_form_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p) {
  return turned(b, a, p->weight_at, b->twin && p == b->path ? b->twin->weight_at : p->weight_at);
}

ir_val clb_form_load_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p,
                            ir_val channel, ir_val mask) {
  return ir_cast(
      b->k, b->t,
      ir_load(b->k, a->rows.buffer, ir_add(b->k, clb_form_weight(b, a, p), channel), mask));
}

void clb_form_store_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p,
                           ir_val channel, ir_val mask, ir_val v) {
  ir_val index = ir_add(b->k, clb_form_weight(b, a, p), channel);
  if (v == IR_NONE) v = ir_real(b->k, b->t, 0);
  if (a->adds) v = ir_add(b->k, v, ir_cast(b->k, b->t, ir_load(b->k, a->rows.buffer, index, mask)));
  ir_store(b->k, a->rows.buffer, index, mask, ir_cast(b->k, ir_register_type(a->rows.element), v));
}

/* ---- arithmetic ---- */

ir_val clb_add_product(ir_kernel *k, ir_val sum, ir_val x, ir_val y) {
  if (x == IR_NONE || y == IR_NONE) return sum;
  return sum == IR_NONE ? ir_mul(k, x, y) : ir_fma(k, x, y, sum);
}

ir_val clb_plus_weighted(ir_kernel *k, ir_val sum, ir_val w, ir_val x) {
  if (x == IR_NONE) return sum;
  if (w == IR_NONE) return sum == IR_NONE ? x : ir_add(k, sum, x);
  return clb_add_product(k, sum, w, x);
}

void clb_no_values(ir_val *v, int n) {
  for (int i = 0; i < n; i++) v[i] = IR_NONE;
}

int clb_form_entries(const clb_tensor_product_problem *tp, const clb_path *p, double *symbol,
                     clb_entry *e) {
  int l1 = tp->x.term[p->in1].l, l2 = tp->y.term[p->in2].l, l3 = tp->z.term[p->out].l,
      n2 = 2 * l2 + 1, n3 = 2 * l3 + 1, n = 0;
  clb_wigner_3j(l1, l2, l3, symbol);
  for (int k = 0; k < n3; k++)
    for (int i = 0; i < 2 * l1 + 1; i++)
      for (int j = 0; j < n2; j++) {
        double c = symbol[(i * n2 + j) * n3 + k];
        if (c != 0) e[n++] = (clb_entry){i, j, k, p->coefficient * c};
      }
  return n;
}

int clb_form_path_size(const clb_tensor_product_problem *tp, const clb_path *p) {
  return clb_wigner_nonzeros(tp->x.term[p->in1].l, tp->y.term[p->in2].l, tp->z.term[p->out].l);
}

int64_t clb_form_size(const clb_tensor_product_problem *tp) {
  int64_t n = 0;
  for (int p = 0; p < tp->n_paths; p++) n += clb_form_path_size(tp, &tp->path[p]);
  return n;
}

/* c v, computed so that -c v differs only by a negation. */
static ir_val scaled(clb_form_builder *b, double c, ir_val v) {
  if (v == IR_NONE) return v;
  ir_val size = c == 1 || c == -1 ? v : ir_mul(b->k, ir_real(b->k, b->t, c < 0 ? -c : c), v);
  return c < 0 ? ir_1(b->k, IR_NEG, size) : size;
}

ir_val clb_plus_scaled(clb_form_builder *b, ir_val sum, double c, ir_val v) {
  if (v == IR_NONE) return sum;
  if (sum == IR_NONE) return scaled(b, c, v);
  if (c == 1 || c == -1) return ir_2(b->k, c > 0 ? IR_ADD : IR_SUB, sum, v);
  return ir_fma(b->k, v, ir_real(b->k, b->t, c), sum);
}

/* sum + c v y, where y is the same in all lanes: c y is shared by all paths that need it, whereas c
   v is used by one path only (never in a convolution). */
static ir_val term(clb_form_builder *b, double c, ir_val v, ir_val y, ir_val sum) {
  return b->s->product.recompute_products ? clb_add_product(b->k, sum, scaled(b, c, v), y)
                                          : clb_add_product(b->k, sum, v, scaled(b, c, y));
}

void clb_contract_z(clb_form_builder *b, const clb_entry *e, int n, const ir_val *x,
                    const ir_val *y, ir_val *z) {
  for (int q = 0; q < n; q++) z[e[q].k] = term(b, e[q].c, x[e[q].i], y[e[q].j], z[e[q].k]);
}

void clb_contract_x(clb_form_builder *b, const clb_entry *e, int n, const ir_val *y,
                    const ir_val *z, ir_val *x) {
  for (int q = 0; q < n; q++) x[e[q].i] = term(b, e[q].c, z[e[q].k], y[e[q].j], x[e[q].i]);
}

/* The products x_i z_k are shared by hash-consing. */
void clb_contract_y(clb_form_builder *b, const clb_entry *e, int n, const ir_val *x,
                    const ir_val *z, ir_val *y) {
  for (int q = 0; q < n; q++)
    if (x[e[q].i] != IR_NONE && z[e[q].k] != IR_NONE)
      y[e[q].j] = clb_plus_scaled(b, y[e[q].j], e[q].c, ir_mul(b->k, x[e[q].i], z[e[q].k]));
}
