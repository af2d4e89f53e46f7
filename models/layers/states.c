/* models/layers/states.c - a row for the charge and the spin of the structure that an atom belongs
   to, added to the atom's. */
#include <math.h>
#include <stdlib.h>

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

/* silu(charge's row + spin's row) */
static clb_status make_row(const clb_network *n, const clb_states *p, const clb_state *s,
                           int64_t columns, double *row) {
  const int of[] = {s->charge, s->spin};
  for (int64_t c = 0; c < columns; c++) row[c] = 0;
  for (int k = 0; k < 2; k++) {
    if (!p->count[k]) continue;
    const clb_status status = check(n, p, k, of[k]);
    if (status) return status;
    for (int64_t c = 0; c < columns; c++)
      row[c] += n->weights[p->table[k] + (of[k] - p->first[k]) * columns + c];
  }
  for (int64_t c = 0; c < columns; c++) row[c] /= 1 + exp(-row[c]);
  return CLB_OK;
}

static clb_status species(clb_network *n, clb_layer *y, const bool *occurs) {
  clb_states *p = y->parameters;
  const int64_t columns = n->array[y->out[0]]->irreps.dim, count = n->n_states * columns;
  double *rows = malloc((size_t)count * sizeof *rows + 1);
  clb_status s = rows ? CLB_OK : clb_network_no_memory(n);
  (void)occurs;
  for (int64_t i = 0; i < n->n_states && !s; i++)
    s = make_row(n, p, &n->state[i], columns, rows + i * columns);
  if (!s) s = clb_network_grow(n, &p->rows, count);
  if (!s) s = clb_numbers_write(p->rows, n->type, 0, count, rows);
  free(rows);
  return s;
}

/* ---- runs ---- */

/* Atoms of a structure follow each other. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_states *p = y->parameters;
  const int64_t columns = n->array[y->out[0]]->irreps.dim, first = n->at.first,
                last = first + clb_row_count(n, y->out[0]);
  clb_status s = CLB_OK;
  (void)adds;
  for (int64_t i = 0; i < n->n_states && !s; i++) {
    const int64_t end = i + 1 < n->n_states ? n->state[i + 1].first : last,
                  low = n->state[i].first > first ? n->state[i].first : first,
                  high = end < last ? end : last;
    clb_rows out = clb_value(n, y->out[0]);
    out.offset += (low - first) * out.stride;
    if (low < high)
      s = clb_gather_run(p->op, high - low, columns,
                         (clb_rows){p->rows, i * columns, CLB_SAME_ROW, n->species.buffer}, out);
  }
  return s;
}

static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  const clb_states *p = y->parameters;
  for (int k = 0; k < 2; k++) clb_keep_columns(n, y->out[0], needed, p->table[k], p->count[k]);
}

static void free_ops(void *parameters) {
  clb_states *p = parameters;
  clb_op_destroy(&p->op);
  clb_buffer_destroy(&p->rows);
}

const clb_layer_kind clb_states_kind = {.sums = true,
                                        .build = build,
                                        .species = species,
                                        .forward = forward,
                                        .need = clb_need_nothing,
                                        .keep = keep,
                                        .free_ops = free_ops};
