/* kernels/layers/pair_table.c - weights of edges from tables of splines by pairs of species
   (kernels/convolution/spline.h), and the gradient by lengths; lanes are columns, a sub-group does
   an edge.

   w = W(r), g_r (+)= sum g_w W'(r), W of the species of the edge's receiver and sender. */
#include "kernels/convolution/spline.h"
#include "kernels/layers/layer.h"

enum { PASSES = 2 }; /* CLB_FORWARD, CLB_BACKWARD */

typedef struct {
  clb_row_kernel l;
  clb_form_builder f;
  clb_spline spline;
  clb_row_array rows; /* w, or g_w */
  ir_val row, sum;    /* sum: a VAR */
} builder;

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, p->pass == CLB_BACKWARD, s);
}

static void column(void *user, ir_val at, ir_val mask) {
  builder *b = user;
  ir_kernel *k = b->l.k;
  const clb_form_array *table = &b->spline.table;
  ir_val c[CLB_SPLINE_ORDER], first = ir_add(k, table->base, at);
  for (int i = 0; i < CLB_SPLINE_ORDER; i++)
    c[i] = ir_load(k, table->rows.buffer,
                   ir_add(k, first, clb_i64(k, i * clb_spline_stride(b->f.p))), mask);
  ir_val w = clb_spline_weight(&b->spline, &b->f, 0, c);
  if (b->f.p->pass == CLB_FORWARD) clb_layer_store(&b->l, &b->rows, b->row, at, mask, w);
  else
    ir_set(k, b->sum,
           ir_fma(k, clb_layer_load(&b->l, &b->rows, b->row, at, mask), b->spline.by_r[0],
                  ir_get(k, b->sum)));
}

/* Makes the row of the unit's table current in which its length lies; 1 / r, or any number where r
   is not in the table, as W' is 0 there. */
static ir_val find(builder *b, const ir_val v[3], const clb_ends *ends, ir_val table_of) {
  ir_kernel *k = b->l.k;
  const clb_pair_table_problem *p = &b->f.p->pair_table;
  ir_val species[2], square = ir_fma(k, v[0], v[0], ir_fma(k, v[1], v[1], ir_mul(k, v[2], v[2]))),
                     length = ir_1(k, IR_SQRT, square);
  for (int i = 0; i < 2; i++) species[i] = clb_end_species(k, ends, i, b->l.unit, IR_NONE);
  ir_val pair = ir_add(k, ir_mul(k, species[0], clb_i64(k, p->n_species)), species[1]),
         table = ir_cast(k, IR_I64, ir_load(k, table_of, pair, IR_NONE));
  clb_spline_edge(&b->spline, &b->f, (const ir_val[]){length, IR_NONE});
  b->spline.table.base = ir_add(k, b->spline.table.base, ir_mul(k, table, clb_i64(k, p->table)));
  return ir_2(k, IR_DIV, ir_real(k, b->l.t, 1), ir_2(k, IR_MAX, length, b->spline.first));
}

/* g_v (+)= factor v */
static void pull(builder *b, const clb_row_array *g_v, ir_val factor, const ir_val v[3],
                 ir_val add) {
  ir_kernel *k = b->l.k;
  ir_val row = clb_layer_row(&b->l, g_v, b->l.unit),
         wanted = clb_wanted_lanes(k, add, clb_i32(k, 1));
  for (int i = 0; i < 3; i++) {
    ir_val before = clb_layer_load(&b->l, g_v, row, clb_i64(k, i), wanted);
    clb_layer_store(&b->l, g_v, row, clb_i64(k, i), clb_first_lane(k),
                    ir_fma(k, factor, v[i], before));
  }
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const bool backward = p->pass == CLB_BACKWARD;
  builder b = {.f = {.k = k, .p = p, .s = s, .t = clb_ir_type((clb_dtype)p->arithmetic)}};
  clb_row_array g_v;
  ir_val v[3];
  clb_layer_begin(&b.l, k, backward ? "pair_table_backward" : "pair_table", s, p->arithmetic);
  const clb_row_array vectors = clb_layer_array(&b.l, p->storage, false);
  b.rows = clb_layer_array(&b.l, p->storage, !backward);
  if (backward) g_v = clb_layer_array(&b.l, p->storage, true);
  const clb_ends ends = clb_ends_begin(k);
  clb_spline_parameters(&b.spline, &b.f);
  ir_val table_of = ir_buffer(k, IR_I32, false), add = backward ? ir_scalar(k, IR_I32) : IR_NONE;
  clb_layer_start(&b.l);
  ir_val row = clb_layer_row(&b.l, &vectors, b.l.unit);
  for (int i = 0; i < 3; i++) v[i] = clb_layer_load(&b.l, &vectors, row, clb_i64(k, i), IR_NONE);
  ir_val inverse = find(&b, v, &ends, table_of);
  b.row = clb_layer_row(&b.l, &b.rows, b.l.unit);
  if (backward) b.sum = ir_var(k, ir_real(k, b.l.t, 0), false);
  clb_layer_channels(&b.l, p->tensor_product.n_weights, column, &b);
  if (backward) pull(&b, &g_v, ir_mul(k, ir_reduce_add(k, ir_get(k, b.sum)), inverse), v, add);
  clb_layer_finish(&b.l);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d weights, %d species", (int)p->tensor_product.n_weights,
               (int)p->pair_table.n_species);
}

const clb_kernel_kind clb_kind_pair_table = {.name = "pair_table",
                                             .check = clb_layer_check,
                                             .schedule = schedule,
                                             .lower = lower,
                                             .print = print,
                                             .passes = PASSES};
