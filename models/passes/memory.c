/* models/passes/memory.c - slots of memory for arrays: those that are never needed in the same step
   share one.

   In blocks of atoms an array that is needed in one phase alone has rows for a block. Others have
   all rows. */
#include "models/passes/passes.h"

#include <stdlib.h>
#include <string.h>

static const clb_span never = {0, -1};
static bool empty(clb_span s) { return s.first > s.last; }

static int phase_of(const clb_network *n, int step) {
  return n->step[step < n->n_steps ? step : n->n_steps - 1].phase;
}

/* `fresh`: what was there before is not needed any more. */
static void use(clb_stored *x, int step, bool fresh, int most) {
  int i = 0;
  while (i + 1 < CLB_SPANS && !empty(x->span[i + 1])) i++;
  if (fresh && i + 1 < most && !empty(x->span[i])) i++;
  if (empty(x->span[i])) x->span[i].first = step;
  x->span[i].last = step;
}

/* Those of edges are made anew in each phase. */
static void use_array(clb_network *n, int array, bool gradient, int step, bool fresh) {
  clb_array *a = array < 0 ? NULL : n->array[array];
  if (!a || (gradient && !a->has_gradient)) return;
  clb_stored *x = gradient ? &a->gradient : &a->value;
  int last = -1;
  for (int i = 0; i < CLB_SPANS && !empty(x->span[i]); i++) last = x->span[i].last;
  const bool passed = clb_passing(n, array) && last >= 0 && phase_of(n, last) != phase_of(n, step);
  use(x, step, fresh || passed, n->blocked ? CLB_SPANS : 2);
}

static void use_all(clb_network *n, int step) {
  const clb_layer *y = n->layer[n->step[step].layer];
  const bool backward = n->step[step].backward, again = n->step[step].again;
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    if (!backward || y->kind->reads_in >> i & 1) use_array(n, y->in[i], false, step, false);
    if (backward && y->gradients >> i & 1) use_array(n, y->in[i], true, step, false);
  }
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (!backward || y->kind->reads_out >> i & 1) use_array(n, y->out[i], false, step, again);
    if (backward) use_array(n, y->out[i], true, step, false);
  }
  use_array(n, y->work, false, step, step >= n->n_forward);
}

/* ---- blocks ---- */

static bool of_one_phase(const clb_network *n, const clb_stored *x) {
  bool one = true;
  for (int i = 0; i < CLB_SPANS && !empty(x->span[i]); i++)
    one &= phase_of(n, x->span[i].first) == phase_of(n, x->span[i].last);
  return one;
}

/* What results are made of is needed after the last step, when no block is at work. */
static void use_results(clb_network *n) {
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_INS && n->layer[l]->kind->ends; i++)
      use_array(n, n->layer[l]->in[i], false, n->n_steps, false);
}

static bool is_result(const clb_network *n, int array) {
  bool is = false;
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_INS && n->layer[l]->kind->ends; i++)
      is |= n->layer[l]->in[i] == array;
  return is;
}

static void choose_blocks(clb_network *n) {
  for (int a = 0; a < n->n_arrays; a++) {
    clb_stored *both[] = {&n->array[a]->value, &n->array[a]->gradient};
    for (int i = 0; i < 2; i++) {
      const bool all = n->array[a]->per == CLB_PER_ATOM || a == CLB_VECTORS ||
                       (!i && is_result(n, a)) || !of_one_phase(n, both[i]);
      both[i]->block = n->blocked && (clb_passing(n, a) || !all);
    }
  }
}

/* ---- slots ---- */

typedef struct {
  bool per_edge, own_rows;
  int64_t bytes;
  int number, order;
  clb_stored *stored;
} item;

/* The widest first, so that a slot is as wide as the first that it holds. */
static int compare(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* Which of equally wide ones come first, of which no choice is best for all networks: that of the
   first array, the one needed first, the one needed until last, or for longest. Of whole systems,
   which run more often, the first is taken. */
enum { CHOICES = 4 };
static int order_of(const item *x, int choice, int number) {
  const clb_span *span = x->stored->span;
  int last = 0, steps = 0;
  for (int i = 0; i < CLB_SPANS && !empty(span[i]); i++) {
    last = span[i].last;
    steps += last - span[i].first;
  }
  return choice == 0 ? number : choice == 1 ? span[0].first : choice == 2 ? -last : -steps;
}

static int collect(const clb_network *n, item *all) {
  int count = 0;
  for (int a = 0; a < n->n_arrays; a++) {
    clb_array *x = n->array[a];
    clb_stored *both[] = {&x->value, &x->gradient};
    for (int i = 0; i < 2; i++) {
      both[i]->slot = -1;
      if (empty(both[i]->span[0])) continue;
      all[count] = (item){.per_edge = x->per == CLB_PER_EDGE,
                          .own_rows = clb_slot_rows(x),
                          .bytes = clb_array_stride(x) * clb_dtype_bytes((int32_t)n->type),
                          .number = count,
                          .stored = both[i]};
      count++;
    }
  }
  return count;
}

/* A block uses its own rows of a slot alone; but senders' rows are of all blocks, and dense rows
   lie elsewhere: such arrays are needed throughout a phase. */
static bool overlap(const clb_network *n, const item *x, const item *y) {
  if (n->trains) return true; /* they are needed once more */
  const bool rows = x->stored->block || (x->own_rows && y->own_rows);
  for (int i = 0; i < CLB_SPANS && !empty(x->stored->span[i]); i++)
    for (int j = 0; j < CLB_SPANS && !empty(y->stored->span[j]); j++) {
      const clb_span a = x->stored->span[i], b = y->stored->span[j];
      const bool apart = n->blocked && !rows ? phase_of(n, a.last) < phase_of(n, b.first) ||
                                                   phase_of(n, b.last) < phase_of(n, a.first)
                                             : a.last < b.first || b.last < a.first;
      if (!apart) return true;
    }
  return false;
}

/* The first slot in which nothing is needed together with item `k`; -1: none. busy: of slots. */
static int find_slot(const clb_network *n, const item *all, int k, bool *busy) {
  memset(busy, 0, (size_t)n->n_slots);
  for (int i = 0; i < k; i++)
    if (overlap(n, &all[i], &all[k])) busy[all[i].stored->slot] = true;
  for (int slot = 0; slot < n->n_slots; slot++)
    if (!busy[slot] && n->slot[slot].per_edge == all[k].per_edge &&
        n->slot[slot].block == all[k].stored->block)
      return slot;
  return -1;
}

static void find_spans(clb_network *n) {
  for (int a = 0; a < n->n_arrays; a++)
    for (int i = 0; i < CLB_SPANS; i++)
      n->array[a]->value.span[i] = n->array[a]->gradient.span[i] = never;
  for (int s = 0; s < n->n_steps; s++) use_all(n, s);
  clb_array *vectors = n->array[CLB_VECTORS];
  vectors->value.span[0] = vectors->gradient.span[0] = (clb_span){0, n->n_steps};
  if (n->blocked) use_results(n);
  choose_blocks(n);
}

/* Bytes of slots with all rows, per atom and per edge. */
typedef struct {
  int64_t atom, edge;
} usage;

/* Gives each of the sorted items a slot. */
static usage fill_slots(clb_network *n, const item *all, int count, bool *busy) {
  usage u = {0};
  n->n_slots = 0;
  for (int k = 0; k < count; k++) {
    const int slot = find_slot(n, all, k, busy);
    all[k].stored->slot = slot < 0 ? n->n_slots : slot;
    if (slot >= 0) continue;
    n->slot[n->n_slots++] = (clb_slot){all[k].per_edge, all[k].stored->block, all[k].bytes, NULL};
    if (!all[k].stored->block) *(all[k].per_edge ? &u.edge : &u.atom) += all[k].bytes;
  }
  return u;
}

static usage fill_by_choice(clb_network *n, item *all, int count, int choice, bool *busy) {
  for (int k = 0; k < count; k++) all[k].order = order_of(&all[k], choice, all[k].number);
  qsort(all, (size_t)count, sizeof *all, compare);
  return fill_slots(n, all, count, busy);
}

/* Sets spans and slots for the order as it is. */
static clb_status assign(clb_network *n, usage *least) {
  item *all = malloc((size_t)n->n_arrays * 2 * sizeof *all);
  bool *busy = malloc((size_t)n->n_arrays * 2);
  clb_slot *slots = realloc(n->slot, (size_t)n->n_arrays * 2 * sizeof *slots);
  int best = 0;
  if (slots) n->slot = slots;
  if (!all || !busy || !slots) {
    free(all);
    free(busy);
    return clb_network_no_memory(n);
  }
  find_spans(n);
  const int count = collect(n, all), choices = n->blocked ? CHOICES : 1;
  for (int i = 0; i < choices; i++) {
    const usage u = fill_by_choice(n, all, count, i, busy);
    if (i && u.atom >= least->atom) continue;
    *least = u;
    best = i;
  }
  if (best != choices - 1) fill_by_choice(n, all, count, best, busy);
  free(all);
  free(busy);
  return CLB_OK;
}

/* ---- what runs again ---- */

/* In blocks any layer may that alone writes its outputs, but for rows that ghosts get in between.
 */
static bool may_run_again(const clb_network *n, const clb_layer *y) {
  if (n->trains) return false;
  if (!n->blocked) return y->kind->again;
  bool may = !y->kind->ends && !y->kind->whole;
  for (int i = 0; i < CLB_LAYER_OUTS && may; i++) {
    if (y->out[i] < 0) continue;
    const int writer = clb_network_writer(n, y->out[i]);
    may = writer >= 0 && n->layer[writer] == y && !clb_passing(n, y->out[i]);
    for (int l = 0; l < n->n_layers; l++)
      may &= !(n->exchanges && clb_in_place(n->layer[l]) && n->layer[l]->out[0] == y->out[i]);
  }
  return may;
}

clb_status clb_pass_memory(clb_network *n) {
  usage least, now;
  for (int l = 0; l < n->n_layers; l++) n->layer[l]->again = may_run_again(n, n->layer[l]);
  clb_status s = clb_pass_order(n);
  if (!s) s = assign(n, &least);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    if (!n->layer[l]->again) continue;
    n->layer[l]->again = false;
    s = clb_pass_order(n);
    if (!s) s = assign(n, &now);
    n->layer[l]->again = now.atom > least.atom || now.edge > least.edge;
  }
  if (!s) s = clb_pass_order(n);
  return s ? s : assign(n, &least);
}
