/* models/passes/memory.c - slots of memory for arrays: those that are never needed in the same step
   share one. */
#include "models/passes/passes.h"

#include <stdlib.h>
#include <string.h>

static const clb_span never = {0, -1};
static bool empty(clb_span s) { return s.first > s.last; }

/* `fresh`: what was there before is not needed any more. */
static void use(clb_stored *x, int step, bool fresh) {
  clb_span *span = &x->span[!empty(x->span[1])];
  if (fresh && !empty(x->span[0]) && empty(x->span[1])) span = &x->span[1];
  if (empty(*span)) span->first = step;
  span->last = step;
}

static void use_all(clb_network *n, int step) {
  const clb_layer *y = n->layer[n->step[step].layer];
  const bool backward = n->step[step].backward, again = !backward && step >= n->n_forward;
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    if (y->in[i] < 0) continue;
    if (!backward || y->kind->reads_in >> i & 1) use(&n->array[y->in[i]]->value, step, false);
    if (backward && y->gradients >> i & 1 && n->array[y->in[i]]->has_gradient)
      use(&n->array[y->in[i]]->gradient, step, false);
  }
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (y->out[i] < 0) continue;
    if (!backward || y->kind->reads_out >> i & 1) use(&n->array[y->out[i]]->value, step, again);
    if (backward && n->array[y->out[i]]->has_gradient)
      use(&n->array[y->out[i]]->gradient, step, false);
  }
  if (y->work >= 0) use(&n->array[y->work]->value, step, step >= n->n_forward);
}

static bool overlap(const clb_stored *x, const clb_stored *y) {
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      if (!empty(x->span[i]) && !empty(y->span[j]) && x->span[i].first <= y->span[j].last &&
          y->span[j].first <= x->span[i].last)
        return true;
  return false;
}

/* ---- slots ---- */

typedef struct {
  bool per_edge;
  int64_t bytes;
  int order;
  clb_stored *stored;
} item;

/* The widest first, so that a slot is as wide as the first that it holds. */
static int compare(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static int collect(const clb_network *n, item *all) {
  int count = 0;
  for (int a = 0; a < n->n_arrays; a++) {
    clb_array *x = n->array[a];
    clb_stored *both[] = {&x->value, &x->gradient};
    for (int i = 0; i < 2; i++) {
      both[i]->slot = -1;
      if (empty(both[i]->span[0])) continue;
      all[count] = (item){x->per == CLB_PER_EDGE,
                          clb_array_stride(x) * clb_dtype_bytes((int32_t)n->type), count, both[i]};
      count++;
    }
  }
  qsort(all, (size_t)count, sizeof *all, compare);
  return count;
}

/* The first slot in which nothing is needed together with item `k`; -1: none. busy: of slots. */
static int find_slot(const clb_network *n, const item *all, int k, bool *busy) {
  memset(busy, 0, (size_t)n->n_slots);
  for (int i = 0; i < k; i++)
    if (overlap(all[i].stored, all[k].stored)) busy[all[i].stored->slot] = true;
  for (int slot = 0; slot < n->n_slots; slot++)
    if (!busy[slot] && n->slot[slot].per_edge == all[k].per_edge) return slot;
  return -1;
}

/* Sets spans and slots for the order as it is; bytes: of all slots, per atom and per edge. */
static clb_status assign(clb_network *n, int64_t bytes[2]) {
  item *all = malloc((size_t)n->n_arrays * 2 * sizeof *all);
  bool *busy = malloc((size_t)n->n_arrays * 2);
  clb_slot *slots = realloc(n->slot, (size_t)n->n_arrays * 2 * sizeof *slots);
  if (slots) n->slot = slots;
  if (!all || !busy || !slots) {
    free(all);
    free(busy);
    return clb_network_no_memory(n);
  }
  for (int a = 0; a < n->n_arrays; a++)
    for (int i = 0; i < 2; i++) n->array[a]->value.span[i] = n->array[a]->gradient.span[i] = never;
  for (int s = 0; s < n->n_steps; s++) use_all(n, s);
  clb_array *vectors = n->array[CLB_VECTORS];
  vectors->value.span[0] = vectors->gradient.span[0] = (clb_span){0, n->n_steps};
  const int count = collect(n, all);
  n->n_slots = 0;
  bytes[0] = bytes[1] = 0;
  for (int k = 0; k < count; k++) {
    const int slot = find_slot(n, all, k, busy);
    all[k].stored->slot = slot < 0 ? n->n_slots : slot;
    if (slot >= 0) continue;
    n->slot[n->n_slots++] = (clb_slot){all[k].per_edge, all[k].bytes, NULL};
    bytes[all[k].per_edge] += all[k].bytes;
  }
  free(all);
  free(busy);
  return CLB_OK;
}

clb_status clb_pass_memory(clb_network *n) {
  int64_t least[2], bytes[2];
  clb_status s = clb_pass_order(n);
  if (!s) s = assign(n, least);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    if (!n->layer[l]->again) continue;
    n->layer[l]->again = false;
    s = clb_pass_order(n);
    if (!s) s = assign(n, bytes);
    n->layer[l]->again = bytes[0] > least[0] || bytes[1] > least[1];
  }
  if (!s) s = clb_pass_order(n);
  return s ? s : assign(n, least);
}
