/* kernels/convolution/batch.c - a convolution on a CPU: what local memory keeps while a batch of
   edges is processed, one part and block of channels after the other. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/convolution/builder.h"

static ir_kernel *of(const clb_convolution *c) { return c->f.k; }
static ir_val i32(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I32, n); }
static ir_val i64(const clb_convolution *c, int64_t n) { return ir_int(c->f.k, IR_I64, n); }

int64_t clb_batch_bytes(const clb_problem *p, int edges) {
  int64_t columns =
      p->tensor_product.x.dim + (p->convolution.spline ? 0 : p->tensor_product.n_weights);
  return edges * columns * (clb_orders(p) + (p->pass != CLB_FORWARD)) *
         ir_type_bytes(clb_ir_type((clb_dtype)p->storage));
}

enum { LINE = 64 }; /* bytes */

/* ---- sums over the elements of y ---- */

/* The non-zeros of a path, divided by the scale of its components of z, in c->builder[0].entry. */
static int entries(const clb_convolution *c, const clb_path *p) {
  clb_entry *e = c->builder[0].entry;
  int n = clb_form_entries(c->f.tp, p, c->builder[0].symbol, e);
  for (int q = 0; q < n; q++) e[q].c /= c->scale[p->out][e[q].k];
  return n;
}

/* Writes the sum M_ik of a path's n entries behind the end of the list.  Returns the index of the
   same sum in the list, or its length if there is none; -1: there is no room. */
static int find(clb_batch *b, const clb_convolution *c, const clb_path *p, int order, int n, int i,
                int k) {
  const clb_entry *e = c->builder[0].entry;
  clb_batch_product *next = &b->product[b->n_products];
  if (b->n_products == CLB_MAX_PRODUCTS) return -1;
  *next = (clb_batch_product){order, b->n_terms, 0, IR_NONE};
  for (int q = 0; q < n; q++) {
    if (e[q].i != i || e[q].k != k) continue;
    if (next->first + next->n == CLB_MAX_PRODUCTS) return -1;
    b->term[next->first + next->n++] =
        (clb_batch_term){c->f.tp->y.term[p->in2].at + e[q].j, e[q].c};
  }
  int at = 0;
  for (; at < b->n_products; at++) {
    const clb_batch_product *other = &b->product[at];
    int same = 0;
    while (other->order == order && other->n == next->n && same < next->n &&
           b->term[other->first + same].y == b->term[next->first + same].y &&
           b->term[other->first + same].c == b->term[next->first + same].c)
      same++;
    if (same == next->n) break;
  }
  return at;
}

/* Whether entry q is the first of its sum M_ik. */
static bool starts(const clb_entry *e, int q) {
  for (int other = 0; other < q; other++)
    if (e[other].i == e[q].i && e[other].k == e[q].k) return false;
  return true;
}

/* Adds a path's sums M_ik to the list; false: there are too many. */
static bool list(clb_batch *b, const clb_convolution *c, const clb_path *p, int o) {
  int n = entries(c, p);
  const clb_entry *e = c->builder[0].entry;
  for (int m = 0; m < c->f.form->n_monomials; m++)
    for (int q = 0; q < n && clb_form_alive(&c->f, m, o, p); q++) {
      int at = starts(e, q) ? find(b, c, p, c->f.form->monomial[m][Y], n, e[q].i, e[q].k) : 0;
      if (at < 0) return false;
      if (!starts(e, q) || at < b->n_products) continue;
      b->n_terms += b->product[b->n_products++].n;
    }
  return true;
}

static void list_products(clb_batch *b, const clb_convolution *c, int o) {
  b->product = malloc(sizeof *b->product * CLB_MAX_PRODUCTS);
  b->term = malloc(sizeof *b->term * CLB_MAX_PRODUCTS);
  if (!b->product || !b->term) {
    snprintf(of(c)->error, sizeof of(c)->error, "no memory");
    return;
  }
  for (int q = 0; q < c->f.tp->n_paths; q++)
    if (!list(b, c, &c->f.tp->path[q], o)) {
      b->n_products = 0;
      return;
    }
  if (!b->n_products) return;
  b->products = ir_local(of(c), c->f.t, (int64_t)c->s->edges_per_batch * b->n_products);
}

void clb_batch_select(clb_batch *b, const clb_convolution *c, ir_val number) {
  b->row = ir_mul(of(c), ir_cast(of(c), IR_I64, number), i64(c, b->n_products));
  for (int i = 0; i < b->n_products; i++) b->product[i].value = IR_NONE;
}

void clb_batch_multiply(clb_batch *b, const clb_convolution *c, ir_val number) {
  ir_kernel *k = of(c);
  clb_batch_select(b, c, number);
  for (int i = 0; i < b->n_products; i++) {
    const clb_batch_product *p = &b->product[i];
    ir_val sum = IR_NONE;
    for (int t = p->first; t < p->first + p->n; t++)
      sum = clb_add_product(k, sum, ir_real(k, c->f.t, b->term[t].c),
                            c->builder[0].y[p->order][b->term[t].y]);
    ir_store(k, b->products, ir_add(k, b->row, i64(c, i)), IR_NONE, sum);
  }
}

/* Loads the matrix M_ik of a path; IR_NONE: 0.  Returns whether it is a multiple of the identity.
 */
static bool matrix(clb_convolution *c, const clb_path *p, int order, ir_val m[MAX_M][MAX_M]) {
  clb_batch *b = &c->batch;
  int n = entries(c, p);
  const clb_entry *e = c->builder[0].entry;
  bool one = true;
  for (int i = 0; i < MAX_M; i++) clb_no_values(m[i], MAX_M);
  for (int q = 0; q < n; q++) {
    if (!starts(e, q)) continue;
    int at = find(b, c, p, order, n, e[q].i, e[q].k);
    clb_batch_product *sum = &b->product[at];
    if (sum->value == IR_NONE)
      sum->value = ir_load(of(c), b->products, ir_add(of(c), b->row, i64(c, at)), IR_NONE);
    m[e[q].i][e[q].k] = sum->value;
    one &= e[q].i == e[q].k && m[0][0] == sum->value;
  }
  return one;
}

/* The monomial with this order of y that contributes to output o from path p; -1: none, -2:
   several. */
static int monomial_of(const clb_convolution *c, const clb_path *p, int o, int y) {
  int found = -1;
  for (int m = 0; m < c->f.form->n_monomials; m++)
    if (c->f.form->monomial[m][Y] == y && clb_form_alive(&c->f, m, o, p))
      found = found == -1 ? m : -2;
  return found;
}

/* w of a monomial in channel j of a lane; IR_NONE: 1. */
static ir_val weight(clb_convolution *c, const clb_path *p, int m, int j) {
  if (!p->has_weight) return IR_NONE;
  return clb_edge_vectors(c, W, c->f.form->monomial[m][W], p)[j][0];
}

/* z_k += sum_i M_ik (w x_i), with the sum over monomials of w x_i first. */
static void weigh_first(clb_convolution *c, const clb_path *p, int o, int y, ir_val m[MAX_M][MAX_M],
                        ir_val sum[][MAX_M]) {
  for (int i = 0; i < clb_width(&c->f.tp->x.term[p->in1]); i++) {
    ir_val u[CLB_MAX_PER_LANE];
    for (int j = 0; j < c->unit.per_lane; j++) {
      u[j] = IR_NONE;
      for (int q = 0; q < c->f.form->n_monomials; q++)
        if (c->f.form->monomial[q][Y] == y && clb_form_alive(&c->f, q, o, p))
          u[j] = clb_plus_weighted(of(c), u[j], weight(c, p, q, j),
                                   clb_edge_vectors(c, X, c->f.form->monomial[q][X], p)[j][i]);
    }
    for (int k = 0; k < MAX_M; k++)
      for (int j = 0; j < c->unit.per_lane; j++)
        sum[j][k] = clb_add_product(of(c), sum[j][k], u[j], m[i][k]);
  }
}

/* z_k += w sum_i M_ik x_i */
static void weigh_last(clb_convolution *c, const clb_path *p, int monomial, ir_val m[MAX_M][MAX_M],
                       ir_val sum[][MAX_M]) {
  const int order = c->f.form->monomial[monomial][X];
  for (int k = 0; k < clb_width(&c->f.tp->z.term[p->out]); k++) {
    ir_val t[CLB_MAX_PER_LANE];
    clb_no_values(t, CLB_MAX_PER_LANE);
    for (int i = 0; i < MAX_M; i++)
      for (int j = 0; j < c->unit.per_lane; j++)
        t[j] = clb_add_product(of(c), t[j], clb_edge_vectors(c, X, order, p)[j][i], m[i][k]);
    for (int j = 0; j < c->unit.per_lane; j++)
      sum[j][k] = clb_plus_weighted(of(c), sum[j][k], weight(c, p, monomial, j), t[j]);
  }
}

/* z_k += (w M) x_k, where M is a number. */
static void weigh_number(clb_convolution *c, const clb_path *p, int monomial, ir_val number,
                         ir_val sum[][MAX_M]) {
  ir_val by[CLB_MAX_PER_LANE];
  for (int j = 0; j < c->unit.per_lane; j++)
    by[j] = clb_plus_weighted(of(c), IR_NONE, weight(c, p, monomial, j), number);
  for (int k = 0; k < clb_width(&c->f.tp->z.term[p->out]); k++)
    for (int j = 0; j < c->unit.per_lane; j++)
      sum[j][k] =
          clb_add_product(of(c), sum[j][k], by[j],
                          clb_edge_vectors(c, X, c->f.form->monomial[monomial][X], p)[j][k]);
}

void clb_batch_add_z(clb_convolution *c, const clb_path *p, int o, ir_val sum[][MAX_M]) {
  ir_val m[MAX_M][MAX_M];
  for (int y = 0; y < clb_orders(c->f.p); y++) {
    const int monomial = monomial_of(c, p, o, y);
    if (monomial == -1) continue;
    const bool one = matrix(c, p, y, m);
    if (monomial >= 0 && one) weigh_number(c, p, monomial, m[0][0], sum);
    else if (monomial >= 0 && c->f.tp->z.term[p->out].l < c->f.tp->x.term[p->in1].l)
      weigh_last(c, p, monomial, m, sum);
    else weigh_first(c, p, o, y, m, sum);
  }
}

/* ---- arrays ---- */

void clb_batch_begin(clb_batch *b, const clb_convolution *c) {
  int o_z = clb_wanted_output(&c->f, Z);
  b->sums = b->products = b->partial_sums = IR_NONE;
  if (!c->s->edges_per_batch) return;
  b->blocks = clb_parts_blocks(&c->parts, c->f.s);
  if (o_z >= 0) {
    b->sums = ir_local(of(c), c->f.t, c->f.tp->z.dim ? c->f.tp->z.dim : 1);
    list_products(b, c, o_z);
  } else if (clb_wants_sums(c->f.p))
    b->partial_sums =
        ir_local(of(c), c->f.t,
                 (int64_t)c->s->edges_per_batch * clb_y_columns(c->f.p, c->f.s) * c->f.s->lanes);
}

void clb_batch_free(clb_batch *b) {
  free(b->product);
  free(b->term);
}

void clb_batch_clear(const clb_convolution *c, ir_val array, int64_t n) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  int64_t whole = n / lanes * lanes;
  ir_val zero = ir_real(k, c->f.t, 0);
  if (whole) {
    ir_val at = ir_loop(k, i32(c, 0), i32(c, whole), i32(c, lanes));
    ir_store(k, array, ir_add(k, at, ir_lane(k)), IR_NONE, zero);
    ir_end(k);
  }
  if (n % lanes)
    ir_store(k, array, ir_add(k, i32(c, whole), ir_lane(k)),
             ir_2(k, IR_LT, ir_lane(k), i32(c, n % lanes)), zero);
}

/* ---- the next batch ---- */

void clb_batch_find_last_slot(clb_batch *b, const clb_convolution *c) {
  ir_kernel *k = of(c);
  ir_val entry[3];
  ir_load_wide(k, c->walk.list, ir_mul(k, ir_sub(k, c->f.n, i64(c, 1)), i64(c, 3)), IR_NONE, 3,
               entry);
  /* An entry without edges, as a list of splits may end with, may begin behind all of them. */
  ir_val end =
      ir_select(k, ir_2(k, IR_LT, i32(c, 0), entry[2]), ir_add(k, entry[1], entry[2]), i32(c, 0));
  b->last_slot = ir_sub(k, ir_2(k, IR_MAX, c->walk.last, end), i32(c, 1));
}

/* Prefetches this block's share of `n` elements from index `row` on: whole cache lines, the share
   of one block after that of the other. */
static void prefetch_share(const clb_convolution *c, ir_val buffer, ir_type element, ir_val row,
                           int64_t n) {
  ir_kernel *k = of(c);
  int64_t lanes = c->f.s->lanes, line = LINE / ir_type_bytes(element),
          lines = (n + line - 1) / line, share = (lines + c->batch.blocks - 1) / c->batch.blocks;
  ir_val at = ir_add(k, row,
                     ir_cast(k, IR_I64,
                             ir_2(k, IR_MIN, ir_mul(k, c->unit.block, i32(c, share * line)),
                                  i32(c, (lines - share) * line))));
  for (int64_t done = 0, vectors = (share * line + lanes - 1) / lanes, width; done < vectors;
       done += width) {
    width = vectors - done < IR_MAX_WIDTH ? vectors - done : IR_MAX_WIDTH;
    ir_prefetch(k, buffer,
                ir_add(k, ir_add(k, at, ir_mul(k, ir_cast(k, IR_I64, ir_lane(k)), i64(c, width))),
                       i64(c, done * lanes)),
                (int)width);
  }
}

void clb_batch_prefetch(const clb_convolution *c, ir_val edge_slot) {
  ir_kernel *k = of(c);
  const clb_tensor_product_problem *tp = c->f.tp;
  ir_val at = ir_cast(
      k, IR_I64,
      ir_2(k, IR_MIN, ir_add(k, edge_slot, i32(c, c->s->edges_per_batch)), c->batch.last_slot));
  ir_val sender = ir_cast(k, IR_I64, ir_load(k, c->other, at, IR_NONE)),
         edge = ir_cast(k, IR_I64, ir_load(k, c->walk.edge, at, IR_NONE));
  for (int order = 0; order < clb_orders(c->f.p); order++)
    for (int slot = X; slot <= W; slot += W - X) {
      const clb_row_array *a = &c->f.in[slot][order].rows;
      bool spline = slot == W && c->f.p->convolution.spline;
      if (!clb_reads(tp, slot, order) || (spline && order)) continue;
      ir_val row = ir_add(k, ir_mul(k, slot == X ? sender : edge, a->stride), a->offset);
      int64_t n = slot == X ? tp->x.dim : tp->n_weights;
      if (spline) {
        row = clb_spline_row(&c->spline, &c->f,
                             ir_cast(k, c->f.t, ir_load(k, a->buffer, row, IR_NONE)));
        a = &c->spline.table.rows;
        n = CLB_SPLINE_ORDER * clb_spline_stride(c->f.p);
      }
      if (n) prefetch_share(c, a->buffer, a->element, row, n);
    }
}

/* ---- sums ---- */

ir_val clb_batch_sum(const clb_convolution *c, int term, int i) {
  const clb_term *t = &c->f.tp->z.term[term];
  return ir_add(of(c), c->unit.channel, i64(c, t->at + i * clb_component_stride(t)));
}

/* Whether paths from this term of x (-1: any) add to this column of the partial sums. */
static bool adds(const clb_convolution *c, int x, int column) {
  const clb_tensor_product_problem *tp = c->f.tp;
  for (int q = 0; q < tp->n_paths; q++) {
    const clb_term *t = &tp->y.term[tp->path[q].in2];
    if ((x < 0 || tp->path[q].in1 == x) &&
        (column == tp->y.dim || (column >= t->at && column < t->at + clb_width(t))))
      return true;
  }
  return false;
}

static ir_val partial_sum(const clb_convolution *c, ir_val number, int column) {
  ir_kernel *k = of(c);
  int lanes = c->f.s->lanes;
  ir_val row =
      ir_mul(k, ir_cast(k, IR_I64, number), i64(c, (int64_t)clb_y_columns(c->f.p, c->f.s) * lanes));
  return ir_add(k, ir_add(k, row, ir_cast(k, IR_I64, ir_lane(k))), i64(c, (int64_t)column * lanes));
}

void clb_batch_load_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                         ir_val *sum) {
  for (int i = first; i < first + n; i++)
    if (adds(c, x, i))
      sum[i] = ir_load(of(c), c->batch.partial_sums, partial_sum(c, number, i), IR_NONE);
}

void clb_batch_store_sums(const clb_convolution *c, int x, int first, int n, ir_val number,
                          const ir_val *sum) {
  for (int i = first; i < first + n; i++)
    if (adds(c, x, i))
      ir_store(of(c), c->batch.partial_sums, partial_sum(c, number, i), IR_NONE, sum[i]);
}
