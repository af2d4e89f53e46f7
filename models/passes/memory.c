/* models/passes/memory.c - slots of memory for arrays: those that are never needed in the same step
   share one.

   In blocks of atoms an array that is needed in one phase alone has rows for a block (of networks
   that train: if it is of edges). Others have
   all rows. */
#include "models/layers/kinds.h"
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
static void use_array(clb_network *n, int array, clb_kept which, int step, bool fresh) {
  clb_array *a = array < 0 ? NULL : n->array[array];
  if (!a || (which == CLB_GRADIENT && !a->has_gradient)) return;
  clb_stored *x = &a->stored[which];
  int last = -1;
  for (int i = 0; i < CLB_SPANS && !empty(x->span[i]); i++) last = x->span[i].last;
  const bool passed = clb_passing(n, array) && last >= 0 && phase_of(n, last) != phase_of(n, step);
  use(x, step, fresh || passed, n->blocked ? CLB_SPANS : 2);
}

static void use_computing(clb_network *n, int step) {
  const clb_layer *y = n->layer[n->step[step].layer];
  const bool backward = n->step[step].sweep == CLB_SWEEP_BACKWARD, again = n->step[step].again;
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    const bool last = y->kind->ends && !n->blocked; /* which may run forward only then */
    if (!backward || y->kind->reads_in >> i & 1 || last)
      use_array(n, y->in[i], CLB_VALUE, step, false);
    if (backward && y->gradients >> i & 1 && (!again || clb_learns_again(n, y->in[i])))
      use_array(n, y->in[i], CLB_GRADIENT, step, false);
  }
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (!backward || y->kind->reads_out >> i & 1)
      use_array(n, y->out[i], CLB_VALUE, step,
                again && !backward && !(n->step[step].adds >> i & 1));
    if (backward) use_array(n, y->out[i], CLB_GRADIENT, step, false);
  }
  use_array(n, y->work, CLB_VALUE, step, step >= n->n_forward);
}

/* Whether an array is vectors of edges, as they are or longer. */
static bool are_vectors(const clb_network *n, int array) {
  const int writer = array > CLB_VECTORS ? clb_network_writer(n, array) : -1;
  return array == CLB_VECTORS || (writer >= 0 && n->layer[writer]->kind == &clb_stretch_kind);
}

/* Layers of vectors use the adjoint of these, and tangents of outputs in reverse, as places that
   are free. */
static void use_training(clb_network *n, int step) {
  const clb_step *k = &n->step[step];
  const clb_layer *y = n->layer[k->layer];
  const bool along = k->sweep == CLB_SWEEP_ALONG, of_vectors = are_vectors(n, y->in[0]),
             both = along ? k->bends : y->kind->late || y->kind->ends;
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    use_array(n, y->in[i], CLB_VALUE, step, false);
    if (y->in[i] >= 0 && n->array[y->in[i]]->moves && (along || both))
      use_array(n, y->in[i], CLB_TANGENT, step, false);
    if ((!along || (k->bends && y->kind->bends & CLB_BENDS_INPUTS)) &&
        clb_network_learns(n, y->in[i]))
      use_array(n, y->in[i], CLB_ADJOINT, step, false);
  }
  if (along && of_vectors) use_array(n, y->in[0], CLB_ADJOINT, step, false);
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (both) use_array(n, y->out[i], CLB_GRADIENT, step, false);
    if (along || of_vectors) use_array(n, y->out[i], CLB_TANGENT, step, false);
    if (along && of_vectors) use_array(n, y->out[i], CLB_VALUE, step, false);
    if (!along) use_array(n, y->out[i], CLB_ADJOINT, step, false);
  }
}

static void use_all(clb_network *n, int step) {
  (n->step[step].sweep < CLB_SWEEP_ALONG ? use_computing : use_training)(n, step);
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
      use_array(n, n->layer[l]->in[i], CLB_VALUE, n->n_steps, false);
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
    for (int i = 0; i < CLB_STORED; i++) {
      clb_stored *x = &n->array[a]->stored[i];
      const bool vectors = a == CLB_VECTORS && i != CLB_ADJOINT,
                 all = n->trains || n->array[a]->per == CLB_PER_ATOM || vectors ||
                       (i == CLB_VALUE && is_result(n, a)) || !of_one_phase(n, x);
      x->block = n->blocked && (clb_passing(n, a) || (a == CLB_VECTORS && !vectors) || !all);
    }
  }
}

/* ---- slots ---- */

typedef struct {
  bool per_edge, per_knot, own_rows;
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
    for (int i = 0; i < CLB_STORED; i++) {
      clb_stored *stored = &x->stored[i];
      stored->slot = -1;
      if (empty(stored->span[0])) continue;
      all[count] =
          (item){.per_edge = x->per == CLB_PER_EDGE,
                 .per_knot = x->per == CLB_PER_KNOT,
                 .own_rows = clb_slot_rows(x),
                 .bytes = clb_stored_stride(n, x, (clb_kept)i) * clb_dtype_bytes((int32_t)n->type),
                 .number = count,
                 .stored = stored};
      count++;
    }
  }
  return count;
}

/* A block uses its own rows of a slot alone; but senders' rows are of all blocks, and dense rows
   lie elsewhere: such arrays are needed throughout a phase. */
static bool overlap(const clb_network *n, const item *x, const item *y) {
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
        n->slot[slot].per_knot == all[k].per_knot && n->slot[slot].block == all[k].stored->block)
      return slot;
  return -1;
}

static void find_spans(clb_network *n) {
  for (int a = 0; a < n->n_arrays; a++)
    for (int i = 0; i < CLB_STORED * CLB_SPANS; i++)
      n->array[a]->stored[i / CLB_SPANS].span[i % CLB_SPANS] = never;
  for (int s = 0; s < n->n_steps; s++) use_all(n, s);
  for (int i = CLB_VALUE; i < (n->trains ? CLB_ADJOINT : CLB_TANGENT); i++) {
    clb_stored *vectors = &n->array[CLB_VECTORS]->stored[i];
    vectors->span[0] = (clb_span){0, n->n_steps};
  }
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
    n->slot[n->n_slots++] =
        (clb_slot){all[k].per_edge, all[k].per_knot, all[k].stored->block, all[k].bytes, NULL};
    if (!all[k].stored->block && !all[k].per_knot)
      *(all[k].per_edge ? &u.edge : &u.atom) += all[k].bytes;
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
  item *all = malloc((size_t)n->n_arrays * CLB_STORED * sizeof *all);
  bool *busy = malloc((size_t)n->n_arrays * CLB_STORED);
  clb_slot *slots = realloc(n->slot, (size_t)n->n_arrays * CLB_STORED * sizeof *slots);
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

/* Where launches count, for a 64th of the memory of edges at least: that of atoms is little. */
static bool is_worth(const clb_network *n, usage without, usage with) {
  const int64_t edge = without.edge - with.edge;
  return n->frugal ? edge > 0 || without.atom > with.atom : 64 * edge > with.edge;
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
    n->layer[l]->again = is_worth(n, now, least);
  }
  if (!s) s = clb_pass_order(n);
  return s ? s : assign(n, &least);
}
