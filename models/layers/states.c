/* models/layers/states.c - a row for the charge and the spin of the structure that an atom belongs
   to, added to the atom's. */
#include <math.h>
#include <stdlib.h>

#include "kernels/linear/host/matmul.h"
#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  n->has_states = true;
  return clb_gather_create(n->ctx, n->type, true, &((clb_states *)y->parameters)->op);
}

/* ---- rows of structures ---- */

static clb_status check(const clb_network *n, const clb_states *p, int k, int x) {
  const int64_t first = p->first[k], count = p->count[k];
  if (x >= first && x < first + count) return CLB_OK;
  return clb_fail(n->error, CLB_ERROR_ARGUMENT, "the %s is %d; this model knows %lld ... %lld",
                  k ? "spin (multiplicity)" : "charge", x, (long long)first,
                  (long long)(first + count - 1));
}

/* charge's row + spin's row, and silu of it. */
static clb_status make_row(const clb_network *n, const clb_states *p, const clb_state *s,
                           int64_t columns, double *sum, double *row) {
  const int of[] = {s->charge, s->spin};
  for (int64_t c = 0; c < columns; c++) sum[c] = 0;
  for (int k = 0; k < 2; k++) {
    if (!p->count[k]) continue;
    const clb_status status = check(n, p, k, of[k]);
    if (status) return status;
    for (int64_t c = 0; c < columns; c++)
      sum[c] += n->weights[p->table[k] + (of[k] - p->first[k]) * columns + c];
  }
  for (int64_t c = 0; c < columns; c++) row[c] = sum[c] / (1 + exp(-sum[c]));
  return CLB_OK;
}

/* Of rows: silu, then sums, then one that is free. */
static int64_t row_at(const clb_network *n, const clb_layer *y, int64_t row) {
  return row * n->array[y->out[0]]->irreps.dim;
}

static clb_status renew(clb_network *n, clb_layer *y) {
  clb_states *p = y->parameters;
  const int64_t columns = n->array[y->out[0]]->irreps.dim, count = 2 * n->n_states * columns;
  double *rows = malloc((size_t)count * sizeof *rows + 1);
  clb_status s = rows ? CLB_OK : clb_network_no_memory(n);
  for (int64_t i = 0; i < n->n_states && !s; i++)
    s = make_row(n, p, &n->state[i], columns, rows + row_at(n, y, n->n_states + i),
                 rows + row_at(n, y, i));
  if (!s) s = clb_network_grow(n, &p->rows, count + columns);
  if (!s) s = clb_numbers_write(p->rows, n->type, 0, count, rows);
  free(rows);
  return s;
}

static clb_status species(clb_network *n, clb_layer *y, const bool *occurs) {
  (void)occurs;
  return renew(n, y);
}

/* ---- runs ---- */

/* Calls `each` with the rows [first, end) of the block that are atoms of structure i; atoms of a
   structure follow each other. */
typedef clb_status (*visit)(clb_network *n, clb_layer *y, int64_t i, int64_t first, int64_t end);
static clb_status visit_structures(clb_network *n, clb_layer *y, visit each) {
  const int64_t first = n->at.first, last = first + clb_row_count(n, y->out[0]);
  clb_status s = CLB_OK;
  for (int64_t i = 0; i < n->n_states && !s; i++) {
    const int64_t end = i + 1 < n->n_states ? n->state[i + 1].first : last,
                  low = n->state[i].first > first ? n->state[i].first : first,
                  high = end < last ? end : last;
    if (low < high) s = each(n, y, i, low - first, high - first);
  }
  return s;
}

static clb_status add_row(clb_network *n, clb_layer *y, int64_t i, int64_t first, int64_t end) {
  const clb_states *p = y->parameters;
  clb_rows out = clb_value(n, y->out[0]);
  out.offset += first * out.stride;
  return clb_gather_run(p->op, end - first, row_at(n, y, 1),
                        (clb_rows){p->rows, row_at(n, y, i), CLB_SAME_ROW, n->species.buffer}, out);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return visit_structures(n, y, add_row);
}

/* ---- training ---- */

static clb_status derive(clb_network *n, clb_layer *y) {
  clb_states *p = y->parameters;
  clb_status s = clb_network_activation(n, CLB_SILU);
  for (int k = 0; k < 2 && !s; k++)
    s = clb_network_keep(n, p->table[k], p->count[k] * row_at(n, y, 1));
  return s ? s
           : clb_column_sum_create(n->ctx, n->type, n->type, row_at(n, y, 1), INT32_MAX, &p->sums);
}

/* The sum of the atoms' adjoints, times the slope of silu, is what both rows get. */
static clb_status add_gradient(clb_network *n, clb_layer *y, int64_t i, int64_t first,
                               int64_t end) {
  const clb_states *p = y->parameters;
  const clb_state *is = &n->state[i];
  const int of[] = {is->charge, is->spin};
  const int64_t columns = row_at(n, y, 1);
  const clb_rows g = clb_adjoint(n, y->out[0]),
                 sum = {p->rows, row_at(n, y, n->n_states + i), CLB_DENSE, NULL},
                 place = {p->rows, row_at(n, y, 2 * n->n_states), CLB_DENSE, NULL};
  clb_status s =
      clb_column_sum_run(p->sums, end - first, &g.buffer->memory, g.offset + first * g.stride,
                         g.stride, &p->rows->memory, place.offset, false);
  if (!s) s = clb_activation_backward(n->activation[CLB_SILU], 1, columns, sum, place, place);
  for (int k = 0; k < 2 && !s; k++)
    if (p->count[k])
      s = clb_column_sum_run(p->sums, 1, &p->rows->memory, place.offset, columns,
                             &n->weight_gradient->memory,
                             p->table[k] + (of[k] - p->first[k]) * columns, true);
  return s;
}

static clb_status reverse(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return visit_structures(n, y, add_gradient);
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  const clb_states *p = y->parameters;
  for (int k = 0; k < 2; k++) clb_keep_columns(n, y->out[0], needed, p->table[k], p->count[k]);
}

static void free_ops(void *parameters) {
  clb_states *p = parameters;
  clb_op_destroy(&p->op);
  clb_op_destroy(&p->sums);
  clb_buffer_destroy(&p->rows);
}

const clb_layer_kind clb_states_kind = {.sums = true,
                                        .build = build,
                                        .species = species,
                                        .forward = forward,
                                        .need = clb_need_nothing,
                                        .keep = keep,
                                        .derive = derive,
                                        .renew = renew,
                                        .reverse = reverse,
                                        .free_ops = free_ops};
