/* table_product.c - a tensor product driven by tables: loops over terms, components, paths, channels and non-zeros, all told by memory, so
   that the body's size depends on the modes that occur and on nothing else. */
#include "connect.h"
#include "product.h"

#include <stdio.h>

typedef struct {
  clb_form_builder *f;
  clb_product_table table;
  ir_val row_mask, numbers, reals;
  clb_connection at;
  clb_path class;             /* mode and has_weight of the paths at hand */
  ir_val path;                /* i32: where the record of the path at hand starts */
  int o, slot;                /* the result at hand */
} builder;

static ir_kernel *of(builder *b) { return b->f->k; }
static ir_val number(builder *b, int64_t n) { return ir_int(b->f->k, IR_I32, n); }
static ir_val zero(builder *b) { return ir_real(b->f->k, b->f->t, 0); }

static ir_val look(builder *b, ir_val at, int field) { return ir_load(of(b), b->numbers, ir_add(of(b), at, number(b, field)), IR_NONE); }

static int third(int slot) { return slot == Z ? 2 : slot; } /* place of a slot among x y z */

/* ---- operands ---- */

/* Where the channel at hand of a vector starts, i64. */
static ir_val place(builder *b, int slot, int order, ir_val channel) {
  ir_kernel *k = of(b);
  ir_val at = ir_add(k, look(b, b->path, PATH_AT + third(slot)), ir_mul(k, channel, look(b, b->path, PATH_STEP + third(slot))));
  return ir_add(k, b->f->in[slot][order].base, ir_cast(k, IR_I64, at));
}

static ir_val weight(builder *b, int order) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->f->in[W][order];
  if (!b->class.has_weight) return IR_NONE;
  ir_val channel = clb_connection_weight(&b->at), at = ir_add(k, look(b, b->path, PATH_WEIGHT_AT), channel);
  return ir_cast(k, b->f->t, ir_load(k, a->rows.buffer, ir_add(k, a->base, ir_cast(k, IR_I64, at)), clb_connection_mask(&b->at, channel)));
}

/* What some monomial of the result holds in a slot. */
static bool used(const builder *b, int slot, int order) {
  for (int m = 0; m < b->f->form->n_monomials; m++)
    if (clb_form_alive(b->f, m, b->o, &b->class) && b->f->form->monomial[m][slot] == order) return true;
  return false;
}

typedef struct {
  ir_val v[SLOTS][ORDERS];
} vectors;

/* The sum over the path's non-zeros from `first` on of what the monomials give: c, times the two or three vectors of x, y and z that
   the result leaves; weights are the same for all of them. */
static ir_val sum_of_entries(builder *b, ir_val first, ir_val end, const vectors *places, const vectors *masks, const ir_val *weights) {
  ir_kernel *k = of(b);
  ir_val sum = ir_var(k, zero(b), false), e = ir_loop(k, first, end, number(b, 1));
  ir_val at = ir_add(k, ir_mul(k, e, number(b, ENTRY_FIELDS)), number(b, b->table.entries)), c = ir_load(k, b->reals, e, IR_NONE), total = ir_get(k, sum);
  vectors loaded;
  for (int slot = X; slot <= Z; slot++)
    for (int order = 0; order < ORDERS; order++) {
      if (places->v[slot][order] == IR_NONE) continue;
      const clb_form_array *a = &b->f->in[slot][order];
      ir_val index = ir_add(k, places->v[slot][order], ir_cast(k, IR_I64, look(b, at, third(slot))));
      loaded.v[slot][order] = ir_cast(k, b->f->t, ir_load(k, a->rows.buffer, index, masks->v[slot][order]));
    }
  for (int m = 0; m < b->f->form->n_monomials; m++) {
    const int *order = b->f->form->monomial[m];
    if (!clb_form_alive(b->f, m, b->o, &b->class)) continue;
    ir_val v = c;
    for (int slot = Y; slot <= Z; slot++)
      if (slot != b->slot && slot != W) v = ir_mul(k, v, loaded.v[slot][order[slot]]);
    if (b->slot != W && weights[order[W]] != IR_NONE) v = ir_mul(k, v, weights[order[W]]);
    total = b->slot == X ? ir_add(k, total, v) : ir_fma(k, v, loaded.v[X][order[X]], total);
  }
  ir_set(k, sum, total);
  ir_end(k);
  return ir_get(k, sum);
}

/* What the path adds at the channels at hand; component: of the result, or IR_NONE (all non-zeros). */
static ir_val contribution(builder *b, ir_val component) {
  ir_kernel *k = of(b);
  vectors places, masks;
  ir_val weights[ORDERS], list = look(b, b->path, PATH_FIRST + (component == IR_NONE ? 2 : third(b->slot)));
  for (int order = 0; order < ORDERS; order++) weights[order] = b->slot != W && used(b, W, order) ? weight(b, order) : IR_NONE;
  for (int slot = X; slot <= Z; slot++)
    for (int order = 0; order < ORDERS; order++) {
      places.v[slot][order] = IR_NONE;
      if (slot == W || slot == b->slot || !used(b, slot, order)) continue;
      ir_val channel = slot == X ? b->at.u : slot == Y ? b->at.v : clb_connection_z(&b->at);
      places.v[slot][order] = place(b, slot, order, channel);
      masks.v[slot][order] = clb_connection_mask(&b->at, channel);
    }
  ir_val first = component == IR_NONE ? list : ir_add(k, list, component), end = component == IR_NONE ? ir_add(k, list, look(b, b->path, PATH_WIDTH)) : ir_add(k, first, number(b, 1));
  return sum_of_entries(b, ir_load(k, b->numbers, first, IR_NONE), ir_load(k, b->numbers, end, IR_NONE), &places, &masks, weights);
}

/* Adds to `sum` what the path adds to a channel of the result. */
static void one_path(builder *b, ir_val component, ir_val channel, ir_val mask, bool across, ir_val sum) {
  ir_kernel *k = of(b);
  clb_extents n = {look(b, b->path, PATH_MUL), look(b, b->path, PATH_MUL + 1), look(b, b->path, PATH_MUL + 2)};
  clb_connection_open(&b->at, k, b->f->s, b->class.mode, n, b->slot, channel, mask, b->row_mask, across);
  bool inner = clb_mode_mixes(b->class.mode) && (b->slot == X || b->slot == Y);
  if (inner) clb_connection_open_w(&b->at);
  ir_set(k, sum, ir_add(k, ir_get(k, sum), contribution(b, component)));
  if (inner) clb_connection_close_w(&b->at);
  clb_connection_close(&b->at);
}

/* Opens a loop over a list of paths. */
static void open_paths(builder *b, int class, ir_val first, ir_val end) {
  ir_kernel *k = of(b);
  b->class = (clb_path){.mode = b->table.class_of[class] / 2, .has_weight = b->table.class_of[class] % 2};
  ir_val q = ir_loop(k, first, end, number(b, 1));
  b->path = ir_mul(k, ir_load(k, b->numbers, q, IR_NONE), number(b, PATH_FIELDS));
}

static bool some_alive(const builder *b, int class) {
  clb_path p = {.mode = b->table.class_of[class] / 2, .has_weight = b->table.class_of[class] % 2};
  for (int m = 0; m < b->f->form->n_monomials; m++)
    if (clb_form_alive(b->f, m, b->o, &p)) return true;
  return false;
}

/* ---- results ---- */

static void store(builder *b, ir_val at, ir_val mask, ir_val v) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->f->out[b->o];
  ir_val index = ir_add(k, a->base, ir_cast(k, IR_I64, at));
  if (clb_form_accumulates(b->f, b->slot)) v = ir_add(k, v, ir_cast(k, b->f->t, ir_load(k, a->rows.buffer, index, mask)));
  ir_store(k, a->rows.buffer, index, mask, ir_cast(k, ir_register_type(a->rows.element), v));
}

static int most(const clb_irreps *irreps) {
  int mul = 0;
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].mul > mul) mul = irreps->term[i].mul;
  return mul;
}

/* One choice for all terms: the partner has more channels than the result, which has few, and every path has a partner. */
static bool goes_across(const builder *b) {
  const clb_tensor_product_problem *tp = b->f->tp;
  int own = most(b->slot == X ? &tp->x : &tp->y), partner = most(b->slot == X ? &tp->y : &tp->x);
  if (b->slot == Z || own >= partner || own >= b->f->s->span) return false;
  for (int c = 0; c < b->table.n_classes; c++)
    if (!clb_mode_has_partner(b->table.class_of[c] / 2)) return false;
  return true;
}

static void terms(builder *b) {
  ir_kernel *k = of(b);
  int fields = TERM_CLASSES + 2 * b->table.n_classes, n = b->f->out[b->o].irreps->n;
  bool across = goes_across(b);
  ir_val channel, mask, one = number(b, 1);
  if (!n) return;
  ir_val i = ir_loop(k, number(b, 0), number(b, n), one), term = ir_add(k, ir_mul(k, i, number(b, fields)), number(b, b->table.terms[b->slot]));
  clb_block block = clb_block_open(k, b->f->s, across ? 1 : b->f->s->span, look(b, term, TERM_MUL), b->row_mask, &channel, &mask);
  ir_val component = ir_loop(k, number(b, 0), look(b, term, TERM_WIDTH), one), sum = ir_var(k, zero(b), false);
  for (int c = 0; c < b->table.n_classes; c++) {
    if (!some_alive(b, c)) continue;
    open_paths(b, c, look(b, term, TERM_CLASSES + 2 * c), look(b, term, TERM_CLASSES + 2 * c + 1));
    one_path(b, component, channel, mask, across, sum);
    ir_end(k);
  }
  ir_val at = ir_add(k, ir_mul(k, component, look(b, term, TERM_COMPONENT)), ir_mul(k, channel, look(b, term, TERM_STEP)));
  at = ir_add(k, at, look(b, term, TERM_AT));
  if (across) store(b, at, clb_first_of_span(k, b->f->s, b->row_mask), clb_sum_of_span(k, b->f->s, ir_get(k, sum)));
  else store(b, at, mask, ir_get(k, sum));
  ir_end(k);
  clb_block_close(k, block);
  ir_end(k);
}

static void weights(builder *b) {
  ir_kernel *k = of(b);
  ir_val channel, mask;
  for (int c = 0; c < b->table.n_classes; c++) {
    if (b->table.class_of[c] % 2 == 0) continue;
    open_paths(b, c, number(b, b->table.lists[c]), number(b, b->table.ends[c]));
    clb_block block = clb_block_open(k, b->f->s, b->f->s->span, look(b, b->path, PATH_WEIGHTS), b->row_mask, &channel, &mask);
    ir_val sum = ir_var(k, zero(b), false);
    one_path(b, IR_NONE, channel, mask, false, sum);
    store(b, ir_add(k, look(b, b->path, PATH_WEIGHT_AT), channel), mask, ir_get(k, sum));
    clb_block_close(k, block);
    ir_end(k);
  }
}

void clb_table_results(clb_form_builder *f, ir_val row_mask, ir_val numbers, ir_val reals) {
  builder b = {.f = f, .row_mask = row_mask, .numbers = numbers, .reals = reals};
  if (!clb_product_table_make(f->tp, &b.table)) {
    snprintf(f->k->error, sizeof f->k->error, "no memory");
    return;
  }
  for (b.o = 0; b.o < f->form->n_outputs; b.o++) {
    b.slot = f->form->output[b.o].slot;
    if (clb_form_wanted(f, b.o)) (b.slot == W ? weights : terms)(&b);
  }
  clb_product_table_free(&b.table);
}
