/* kernels/tensor_product/body_table.c - a tensor product driven by tables: loops over terms,
   components, paths, channels and non-zeros, all read from memory, so that the size of the code
   depends only on the modes that occur. Each table entry that is read is used for several rows. */
#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = CLB_TABLE_ROWS };

/* The arrays at one of the sub-group's rows; lanes that have that row. */
typedef struct {
  clb_form_array in[SLOTS][ORDERS], out[MAX_OUTPUTS];
  ir_val there;
} row;

typedef struct {
  clb_form_builder *f;
  clb_product_table table;
  row row[ROWS];
  ir_val numbers, reals;
  clb_connection at;
  clb_path class; /* mode and has_weight of the current paths */
  ir_val path;    /* i32: position of the record of the current path */
  int o, slot;    /* the current result */
} builder;

static ir_kernel *of(builder *b) { return b->f->k; }
static ir_val number(builder *b, int64_t n) { return ir_int(b->f->k, IR_I32, n); }
static ir_val zero(builder *b) { return ir_real(b->f->k, b->f->t, 0); }

static ir_val look(builder *b, ir_val at, int field) {
  return ir_load(of(b), b->numbers, ir_add(of(b), at, number(b, field)), IR_NONE);
}

static int third(int slot) { return slot == Z ? 2 : slot; } /* index of a slot among x y z */

/* ---- operands ---- */

/* A field that is the same in all records of a kind is a constant, which simplifies loops and
   masks. */
static ir_val common(builder *b, ir_val record, int field,
                     int64_t (*of_record)(const clb_tensor_product_problem *, int slot, int i),
                     int slot, int n) {
  int64_t first = n ? of_record(b->f->tp, slot, 0) : 0;
  for (int i = 1; i < n; i++)
    if (of_record(b->f->tp, slot, i) != first) return look(b, record, field);
  return number(b, first);
}

static int64_t channels_of_term(const clb_tensor_product_problem *tp, int slot, int i) {
  return (slot == X ? &tp->x : slot == Y ? &tp->y : &tp->z)->term[i].mul;
}

static int64_t channels_of_path(const clb_tensor_product_problem *tp, int slot, int i) {
  const clb_path *p = &tp->path[i];
  return channels_of_term(tp, slot, slot == X ? p->in1 : slot == Y ? p->in2 : p->out);
}

static int64_t weights_of_path(const clb_tensor_product_problem *tp, int slot, int i) {
  (void)slot;
  return tp->path[i].has_weight ? clb_path_weights(tp, &tp->path[i]) : 0;
}

/* The channel's offset in elements; in layout ir_mul the stride is 1 and need not be looked up. */
static ir_val steps(builder *b, int slot, ir_val channel, ir_val record, int field) {
  const clb_tensor_product_problem *tp = b->f->tp;
  int layout = slot == X ? tp->layout_x : slot == Y ? tp->layout_y : tp->layout_z;
  return layout == CLB_IR_MUL ? channel : ir_mul(of(b), channel, look(b, record, field));
}

/* Offset of the current channel of a vector in its row, i32. */
static ir_val place(builder *b, int slot, ir_val channel) {
  return ir_add(of(b), look(b, b->path, PATH_AT + third(slot)),
                steps(b, slot, channel, b->path, PATH_STEP + third(slot)));
}

static ir_val weight(builder *b, int r, int order) {
  ir_kernel *k = of(b);
  const clb_form_array *a = &b->row[r].in[W][order];
  if (!b->class.has_weight) return IR_NONE;
  ir_val channel = clb_connection_weight(&b->at),
         at = ir_add(k, look(b, b->path, PATH_WEIGHT_AT), channel);
  return ir_cast(k, b->f->t,
                 ir_load(k, a->rows.buffer, ir_add(k, a->base, ir_cast(k, IR_I64, at)),
                         clb_connection_mask(&b->at, channel)));
}

/* Whether some monomial of the result has this vector in the slot. */
static bool used(const builder *b, int slot, int order) {
  for (int m = 0; m < b->f->form->n_monomials; m++)
    if (clb_form_alive(b->f, m, b->o, &b->class) && b->f->form->monomial[m][slot] == order)
      return true;
  return false;
}

/* For the vectors of x, y and z other than the result: the offset of their channel, and its
   mask. */
typedef struct {
  ir_val place[SLOTS], mask[SLOTS];
} channels;

/* Adds the monomials' contribution of one non-zero c at `offset` in row r; weights are the same for
   all non-zeros. */
static ir_val plus_entry(builder *b, int r, ir_val c, const ir_val *at, const ir_val *mask,
                         const ir_val *weights, ir_val total) {
  ir_kernel *k = of(b);
  ir_val loaded[SLOTS][ORDERS];
  for (int slot = X; slot <= Z; slot++)
    for (int order = 0; order < ORDERS; order++) {
      if (slot == W || slot == b->slot || !used(b, slot, order)) continue;
      const clb_form_array *a = &b->row[r].in[slot][order];
      loaded[slot][order] =
          ir_cast(k, b->f->t, ir_load(k, a->rows.buffer, ir_add(k, a->base, at[slot]), mask[slot]));
    }
  for (int m = 0; m < b->f->form->n_monomials; m++) {
    const int *order = b->f->form->monomial[m];
    if (!clb_form_alive(b->f, m, b->o, &b->class)) continue;
    ir_val v = c;
    for (int slot = Y; slot <= Z; slot++)
      if (slot != b->slot && slot != W) v = ir_mul(k, v, loaded[slot][order[slot]]);
    if (b->slot != W && weights[order[W]] != IR_NONE) v = ir_mul(k, v, weights[order[W]]);
    total = b->slot == X ? ir_add(k, total, v) : ir_fma(k, v, loaded[X][order[X]], total);
  }
  return total;
}

/* Adds the sums over the path's non-zeros from `first` on: c times the two or three vectors of x, y
   and z other than the result. */
static void add_entries(builder *b, ir_val first, ir_val end, const channels *ch,
                        ir_val (*weights)[ORDERS], const ir_val *sum) {
  ir_kernel *k = of(b);
  ir_val e = ir_loop(k, first, end, number(b, 1)),
         at = ir_add(k, ir_mul(k, e, number(b, ENTRY_FIELDS)), number(b, b->table.entries));
  ir_val c = ir_load(k, b->reals, e, IR_NONE), index[SLOTS];
  for (int slot = X; slot <= Z; slot++)
    if (ch->place[slot] != IR_NONE)
      index[slot] = ir_cast(k, IR_I64, ir_add(k, ch->place[slot], look(b, at, third(slot))));
  for (int r = 0; r < b->f->s->product.rows_per_lane; r++)
    ir_set(k, sum[r], plus_entry(b, r, c, index, ch->mask, weights[r], ir_get(k, sum[r])));
  ir_end(k);
}

/* Adds the path's contribution at the current channels; component: of the result, or IR_NONE (all
   non-zeros). */
static void contribute(builder *b, ir_val component, const ir_val *sum) {
  ir_kernel *k = of(b);
  channels ch;
  ir_val weights[ROWS][ORDERS],
      list = look(b, b->path, PATH_FIRST + (component == IR_NONE ? 2 : third(b->slot)));
  for (int r = 0; r < b->f->s->product.rows_per_lane; r++)
    for (int order = 0; order < ORDERS; order++)
      weights[r][order] = b->slot != W && used(b, W, order) ? weight(b, r, order) : IR_NONE;
  for (int slot = X; slot <= Z; slot++) {
    ch.place[slot] = IR_NONE;
    if (slot == W || slot == b->slot) continue;
    ir_val channel = slot == X ? b->at.u : slot == Y ? b->at.v : clb_connection_z(&b->at);
    ch.place[slot] = place(b, slot, channel);
    ch.mask[slot] = clb_connection_mask(&b->at, channel);
  }
  ir_val first = component == IR_NONE ? list : ir_add(k, list, component);
  ir_val end = component == IR_NONE ? ir_add(k, list, look(b, b->path, PATH_WIDTH))
                                    : ir_add(k, first, number(b, 1));
  add_entries(b, ir_load(k, b->numbers, first, IR_NONE), ir_load(k, b->numbers, end, IR_NONE), &ch,
              weights, sum);
}

/* Adds to `sum` the path's contribution to a channel of the result. */
static void one_path(builder *b, ir_val component, ir_val channel, ir_val mask, bool across,
                     const ir_val *sum) {
  ir_kernel *k = of(b);
  int paths = b->f->tp->n_paths;
  clb_extents n = {common(b, b->path, PATH_MUL, channels_of_path, X, paths),
                   common(b, b->path, PATH_MUL + 1, channels_of_path, Y, paths),
                   common(b, b->path, PATH_MUL + 2, channels_of_path, Z, paths)};
  clb_connection_open(&b->at, k, b->f->s, b->class.mode, n, b->slot, channel, mask, IR_NONE,
                      across);
  bool inner = clb_mode_mixes(b->class.mode) && (b->slot == X || b->slot == Y);
  if (inner) clb_connection_open_w(&b->at, 1);
  contribute(b, component, sum);
  if (inner) clb_connection_close_w(&b->at);
  clb_connection_close(&b->at);
}

/* Opens a loop over a list of paths. */
static void open_paths(builder *b, int class, ir_val first, ir_val end) {
  ir_kernel *k = of(b);
  b->class =
      (clb_path){.mode = b->table.class_of[class] / 2, .has_weight = b->table.class_of[class] % 2};
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

static void start(builder *b, ir_val *sum) {
  for (int r = 0; r < b->f->s->product.rows_per_lane; r++) sum[r] = ir_var(of(b), zero(b), false);
}

/* Element `at` (i32) of each row. */
static void store(builder *b, ir_val at, ir_val mask, bool across, const ir_val *sum) {
  ir_kernel *k = of(b);
  for (int r = 0; r < b->f->s->product.rows_per_lane; r++) {
    const clb_form_array *a = &b->row[r].out[b->o];
    ir_val index = ir_add(k, a->base, ir_cast(k, IR_I64, at)), v = ir_get(k, sum[r]);
    ir_val write = clb_and(k, mask, b->row[r].there);
    if (across) v = clb_sum_of_span(k, b->f->s, v);
    if (a->adds) v = ir_add(k, v, ir_cast(k, b->f->t, ir_load(k, a->rows.buffer, index, write)));
    ir_store(k, a->rows.buffer, index, write, ir_cast(k, ir_register_type(a->rows.element), v));
  }
}

static int most(const clb_irreps *irreps) {
  int mul = 0;
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].mul > mul) mul = irreps->term[i].mul;
  return mul;
}

/* One choice for all terms: the partner has more channels than the result, which has few, and every
   path has a partner. */
static bool goes_across(const builder *b) {
  const clb_tensor_product_problem *tp = b->f->tp;
  int own = most(b->slot == X ? &tp->x : &tp->y), partner = most(b->slot == X ? &tp->y : &tp->x);
  if (b->slot == Z || own >= partner || own >= b->f->s->product.lanes_per_row ||
      !b->f->s->product.shuffle_sums)
    return false;
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
  ir_val i = ir_loop(k, number(b, 0), number(b, n), one),
         term = ir_add(k, ir_mul(k, i, number(b, fields)), number(b, b->table.terms[b->slot]));
  clb_mode_block block = clb_mode_block_open(
      k, b->f->s, across ? 1 : b->f->s->product.lanes_per_row,
      common(b, term, TERM_MUL, channels_of_term, b->slot, n), IR_NONE, &channel, &mask);
  ir_val component = ir_loop(k, number(b, 0), look(b, term, TERM_WIDTH), one), sum[ROWS];
  start(b, sum);
  for (int c = 0; c < b->table.n_classes; c++) {
    if (!some_alive(b, c)) continue;
    open_paths(b, c, look(b, term, TERM_CLASSES + 2 * c), look(b, term, TERM_CLASSES + 2 * c + 1));
    one_path(b, component, channel, mask, across, sum);
    ir_end(k);
  }
  ir_val at = ir_add(k, ir_mul(k, component, look(b, term, TERM_COMPONENT)),
                     steps(b, b->slot, channel, term, TERM_STEP));
  at = ir_add(k, at, look(b, term, TERM_AT));
  store(b, at, across ? clb_first_of_span(k, b->f->s, IR_NONE) : mask, across, sum);
  ir_end(k);
  clb_mode_block_close(k, block);
  ir_end(k);
}

static void weights(builder *b) {
  ir_kernel *k = of(b);
  ir_val channel, mask;
  for (int c = 0; c < b->table.n_classes; c++) {
    if (b->table.class_of[c] % 2 == 0) continue;
    open_paths(b, c, number(b, b->table.lists[c]), number(b, b->table.ends[c]));
    clb_mode_block block =
        clb_mode_block_open(k, b->f->s, b->f->s->product.lanes_per_row,
                            common(b, b->path, PATH_WEIGHTS, weights_of_path, W, b->f->tp->n_paths),
                            IR_NONE, &channel, &mask);
    ir_val sum[ROWS];
    start(b, sum);
    one_path(b, IR_NONE, channel, mask, false, sum);
    store(b, ir_add(k, look(b, b->path, PATH_WEIGHT_AT), channel), mask, false, sum);
    clb_mode_block_close(k, block);
    ir_end(k);
  }
}

/* Rows beyond the last repeat the last one and are not written. */
static void find_rows(builder *b, ir_val first, int apart) {
  ir_kernel *k = of(b);
  for (int r = 0; r < b->f->s->product.rows_per_lane; r++) {
    ir_val mine = ir_add(k, first, ir_int(k, IR_I64, (int64_t)r * apart)),
           last = ir_sub(k, b->f->n, ir_int(k, IR_I64, 1)), at = ir_2(k, IR_MIN, mine, last);
    clb_form_rows(b->f, at);
    clb_form_indexed_rows(b->f, at, IR_NONE);
    b->row[r].there = ir_2(k, IR_LT, mine, b->f->n);
    memcpy(b->row[r].in, b->f->in, sizeof b->f->in);
    memcpy(b->row[r].out, b->f->out, sizeof b->f->out);
  }
}

void clb_table_results(clb_form_builder *f, ir_val first, int apart, ir_val numbers, ir_val reals) {
  builder *b = calloc(1, sizeof *b);
  if (b) *b = (builder){.f = f, .numbers = numbers, .reals = reals};
  if (b && clb_product_table_make(f->tp, &b->table)) {
    find_rows(b, first, apart);
    for (b->o = 0; b->o < f->form->n_outputs; b->o++) {
      b->slot = f->form->output[b->o].slot;
      if (clb_form_wanted(f, b->o)) (b->slot == W ? weights : terms)(b);
    }
    clb_product_table_free(&b->table);
  } else snprintf(f->k->error, sizeof f->k->error, "no memory");
  free(b);
}
