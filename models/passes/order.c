/* models/passes/order.c - the order in which layers run: forward that of the list, backward the
   reverse, with some layers again or in pieces in between.

   For systems that are computed in blocks of atoms the order is cut into phases, each of which can
   run for one block after the other. A phase ends where rows of all senders are needed, or where
   gradients are that came from all receivers. Arrays of edges live in one phase: what the next one
   reads is made again, and gradients of what several layers read go on before it ends. */
#include "models/passes/passes.h"

#include <stdlib.h>

void clb_pass_moves(clb_network *n) {
  n->array[CLB_VECTORS]->moves = true;
  for (int l = 0; l < n->n_layers; l++) {
    const clb_layer *y = n->layer[l];
    for (int i = 0; i < CLB_LAYER_INS; i++)
      for (int o = 0; o < CLB_LAYER_OUTS; o++)
        if (y->gradients >> i & 1 && y->in[i] >= 0 && n->array[y->in[i]]->moves && y->out[o] >= 0)
          n->array[y->out[o]]->moves = true;
  }
}

typedef struct {
  bool done;                /* backward has run */
  int made;                 /* the phase in which it ran forward last; -1: it has not */
  int along;                /* the same of tangents */
  int went[CLB_LAYER_OUTS]; /* with which gradient, by number, of an output it last ran backward */
} layer_state;
typedef struct {
  int written, scattered; /* the phase in which its value (later its tangent) was written, or its
                             gradient (or adjoint) came from all receivers; -1: none */
  bool pending;           /* of edges: its gradient has not yet gone on; */
  int gradient;           /* its number */
  bool tangent, adjoint;  /* there is one; of edges: which has not yet gone on */
} array_state;
typedef struct {
  clb_network *n;
  int phase, turn; /* of the next step; in which the backward pass began */
  bool backward;
  layer_state *layer;
  array_state *array;
} order;

static clb_status backward(order *o, int layer);

static clb_status refuse(const clb_network *n, const clb_layer *y, const char *what) {
  return clb_fail(n->error, CLB_ERROR_UNSUPPORTED, "%s cannot add to %s that another layer writes",
                  y->name, what);
}

/* ---- arrays ---- */

static bool writes_passing(const clb_network *n, const clb_layer *y) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_OUTS; i++) some |= clb_passing(n, y->out[i]);
  return some;
}

static bool has_gradient(const order *o, int array) {
  return array >= 0 &&
         (clb_passing(o->n, array) ? o->array[array].pending : o->n->array[array]->has_gradient);
}

/* Which a layer has not yet taken. */
static bool has_gradients(const order *o, int layer) {
  const clb_layer *y = o->n->layer[layer];
  bool some = false;
  for (int i = 0; i < CLB_LAYER_OUTS && y->kind->backward; i++)
    some |= has_gradient(o, y->out[i]) && (!clb_passing(o->n, y->out[i]) ||
                                           o->layer[layer].went[i] != o->array[y->out[i]].gradient);
  return some;
}

static bool writes(const clb_layer *y, int array) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_OUTS; i++) some |= y->out[i] == array;
  return some;
}

static bool written_before(const clb_network *n, int array, int layer) {
  bool some = false;
  for (int l = 0; l < layer; l++) some |= writes(n->layer[l], array);
  return some;
}

/* Which outputs a layer adds to: those that a layer before it writes. */
static unsigned forward_adds(const clb_network *n, int layer) {
  unsigned adds = 0;
  for (int l = 0; l < layer && !clb_in_place(n->layer[layer]); l++)
    for (int i = 0; i < CLB_LAYER_OUTS; i++)
      for (int o = 0; o < CLB_LAYER_OUTS; o++)
        if (n->layer[layer]->out[o] >= 0 && n->layer[l]->out[i] == n->layer[layer]->out[o])
          adds |= 1U << o;
  return adds;
}

/* ---- phases ---- */

static bool fresh(const order *o) {
  return !o->n->n_steps || o->n->step[o->n->n_steps - 1].phase != o->phase;
}

/* Ends the phase, if it has begun. */
static clb_status cut(order *o) {
  clb_status s = CLB_OK;
  if (fresh(o)) return s;
  for (int l = o->n->n_layers - 1; l >= 0 && !s; l--)
    if (writes_passing(o->n, o->n->layer[l]) && has_gradients(o, l)) s = backward(o, l);
  o->phase++;
  return s;
}

static bool reads_passing(const clb_network *n, const clb_layer *y) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_INS; i++) some |= clb_passing(n, y->in[i]);
  return some;
}

/* Of networks that train, phases with edges have nothing else, so that others need no blocks. */
static clb_status part(order *o, const clb_layer *y) {
  const bool between = o->n->trains && reads_passing(o->n, y) && !writes_passing(o->n, y);
  return between ? cut(o) : CLB_OK;
}

/* Whether what a step reads, or what has to be made for it in this phase, is there only when this
   phase has run for all blocks. */
static bool must_wait(const order *o, const clb_layer *y, bool back) {
  bool waits = y->kind->whole;
  for (int i = 0; i < CLB_LAYER_INS && !waits; i++) {
    if (y->in[i] >= 0 && y->kind->senders >> i & 1) waits |= o->array[y->in[i]].written == o->phase;
    for (int l = 0; l < o->n->n_layers && clb_passing(o->n, y->in[i]) && !waits; l++)
      if (writes(o->n->layer[l], y->in[i]) && o->layer[l].made != o->phase)
        waits = must_wait(o, o->n->layer[l], false);
  }
  for (int i = 0; i < CLB_LAYER_OUTS && back; i++)
    if (y->out[i] >= 0) waits |= o->array[y->out[i]].scattered == o->phase;
  return waits && o->n->blocked;
}

/* ---- steps ---- */

static clb_status add_step(order *o, clb_step step) {
  clb_network *n = o->n;
  clb_step *all = realloc(n->step, (size_t)(n->n_steps + 1) * sizeof *all);
  if (!all) return clb_network_no_memory(n);
  n->step = all;
  step.phase = o->phase;
  all[n->n_steps++] = step;
  return CLB_OK;
}

/* Whether a writer of an array must run again before a step reads it: of arrays of atoms, the only
   one. */
static bool is_due(const order *o, int array, int writer) {
  const int made = o->layer[writer].made;
  if (clb_passing(o->n, array)) return made != o->phase;
  if (!o->backward || !o->n->layer[writer]->again) return false;
  if (clb_network_writer(o->n, array) != writer) return false;
  return o->n->array[array]->per == CLB_PER_ATOM ? made < o->turn : made != o->phase;
}

static clb_status forward(order *o, int layer, bool again);

static clb_status need(order *o, int array) {
  clb_status s = CLB_OK;
  for (int l = 0; l < o->n->n_layers && array >= 0 && !s; l++)
    if (writes(o->n->layer[l], array) && is_due(o, array, l)) s = forward(o, l, o->backward);
  return s;
}

static clb_status forward(order *o, int layer, bool again) {
  clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  const unsigned adds = forward_adds(n, layer);
  clb_status s = adds && !y->kind->sums ? refuse(n, y, "an array") : part(o, y);
  if (!s && must_wait(o, y, false)) s = cut(o);
  for (int i = 0; i < CLB_LAYER_INS && !s; i++) s = need(o, y->in[i]);
  again |= o->layer[layer].made >= 0;
  if (!s) s = add_step(o, (clb_step){.layer = layer, .again = again, .adds = adds});
  o->layer[layer].made = o->phase;
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    if (y->out[i] >= 0) o->array[y->out[i]].written = o->phase;
  if (s || (n->blocked && y->kind->whole)) return s ? s : cut(o);
  return part(o, y);
}

/* The layer whose backward must follow that of each layer that reads an array at once, as one of
   several such layers overwrites its gradient, or there is room for one's; -1: there is none. */
static int in_pieces(const clb_network *n, int array) {
  bool overwritten = n->frugal && n->array[array]->gradient_columns[true];
  for (int l = 0; l < n->n_layers; l++)
    for (int i = 0; i < CLB_LAYER_INS; i++)
      overwritten |= n->layer[l]->in[i] == array && n->layer[l]->kind->overwrites >> i & 1;
  return overwritten && clb_network_readers(n, array) > 1 ? clb_network_writer(n, array) : -1;
}

static bool reads_senders(const clb_layer *y) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_INS; i++) some |= y->in[i] >= 0 && y->kind->senders >> i & 1;
  return some;
}

/* In a phase of their own: the rows of all senders that the next phases read backward. */
static clb_status make_senders(order *o, int layer) {
  const clb_network *n = o->n;
  clb_status s = CLB_OK;
  while (layer >= 0 && !reads_senders(n->layer[layer])) layer--;
  for (int i = 0; i < CLB_LAYER_INS && layer >= 0 && !s; i++)
    if (n->layer[layer]->kind->senders >> i & 1) s = need(o, n->layer[layer]->in[i]);
  return s ? s : cut(o);
}

static clb_status begin_backward(order *o, int layer) {
  const clb_layer *y = o->n->layer[layer];
  clb_status s = part(o, y);
  if (!s && must_wait(o, y, true)) s = cut(o);
  if (!s && o->n->blocked && !y->kind->whole && fresh(o)) s = make_senders(o, layer);
  for (int i = 0; i < CLB_LAYER_INS && !s; i++)
    if (y->kind->reads_in >> i & 1) s = need(o, y->in[i]);
  for (int i = 0; i < CLB_LAYER_OUTS && !s; i++)
    if (y->kind->reads_out >> i & 1) s = need(o, y->out[i]);
  return s;
}

static clb_status backward(order *o, int layer) {
  clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  unsigned adds = 0;
  int piece = -1;
  clb_status s = begin_backward(o, layer);
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    clb_array *in = y->in[i] < 0 ? NULL : n->array[y->in[i]];
    if (!in || !in->moves || !(y->gradients >> i & 1)) continue;
    const int writer = in_pieces(n, y->in[i]);
    if (writer >= 0) piece = writer;
    else if (has_gradient(o, y->in[i])) adds |= 1U << i;
    o->array[y->in[i]].gradient += !o->array[y->in[i]].pending;
    in->has_gradient = o->array[y->in[i]].pending = true;
    if (y->kind->senders >> i & 1) o->array[y->in[i]].scattered = o->phase;
  }
  if (!s && adds & y->kind->overwrites) s = refuse(n, y, "a gradient");
  if (!s) s = add_step(o, (clb_step){.layer = layer, .sweep = CLB_SWEEP_BACKWARD, .adds = adds});
  for (int i = 0; i < CLB_LAYER_OUTS && !clb_in_place(y); i++) {
    if (y->out[i] < 0) continue;
    o->layer[layer].went[i] = o->array[y->out[i]].gradient;
    bool more = false; /* whether a layer before it takes it, too */
    for (int l = 0; l < layer; l++)
      more |= writes(n->layer[l], y->out[i]) && n->layer[l]->kind->backward;
    o->array[y->out[i]].pending &= more;
  }
  o->layer[layer].done = true;
  if (!s && piece >= 0) s = backward(o, piece);
  if (s || (n->blocked && y->kind->whole)) return s ? s : cut(o);
  return part(o, y);
}

/* ---- all steps ---- */

static clb_status all_forward(order *o) {
  clb_network *n = o->n;
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && !s; l++) {
    const clb_layer *y = n->layer[l];
    const bool later = n->blocked && (writes_passing(n, y) || y->kind->ends),
               never = n->blocked && y->kind->whole && !n->exchanges;
    if (!later && !never) s = forward(o, l, false);
  }
  n->n_forward = n->n_steps;
  return s;
}

/* Whether a layer can run backward at once, which leaves a narrower gradient to keep. */
static bool narrows(const order *o, int layer) {
  const clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  bool can = n->blocked && !o->layer[layer].done && y->kind->backward && !y->kind->whole &&
             !y->kind->senders && !writes_passing(n, y) && has_gradients(o, layer) &&
             !must_wait(o, y, true) && y->in[0] >= 0 && y->in[1] < 0 && y->out[1] < 0 &&
             n->array[y->in[0]]->irreps.dim < n->array[y->out[0]]->irreps.dim;
  for (int l = 0; l < n->n_layers && can; l++)
    for (int i = 0; i < CLB_LAYER_INS; i++)
      can &= n->layer[l]->in[i] != y->out[0] || o->layer[l].done;
  return can;
}

static clb_status all_backward(order *o) {
  clb_network *n = o->n;
  clb_status s = CLB_OK;
  o->backward = true;
  if (!n->blocked) o->phase++;
  o->turn = o->phase;
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    const clb_layer *y = n->layer[l];
    const bool wanted = y->kind->ends || has_gradients(o, l),
               never = n->blocked && y->kind->whole && !n->exchanges, again = writes_passing(n, y);
    if (wanted && y->kind->backward && !never && (again || !o->layer[l].done)) s = backward(o, l);
    for (int k = l - 1; k >= 0 && !s; k--)
      if (narrows(o, k)) s = backward(o, k);
  }
  return s;
}

/* ---- training ---- */

static bool goes_along(const clb_network *n, const clb_layer *y) {
  bool moves = false, wanted = false;
  for (int i = 0; i < CLB_LAYER_INS; i++) moves |= y->in[i] >= 0 && n->array[y->in[i]]->moves;
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    wanted |= y->out[i] >= 0 && n->array[y->out[i]]->has_gradient;
  return y->kind->along && moves && wanted;
}

static clb_status along(order *o, int layer, bool reverse);

/* Values and tangents of an array of edges in this phase. */
static clb_status along_to(order *o, int array, bool reverse) {
  clb_status s = need(o, array);
  for (int l = 0; l < o->n->n_layers && !s; l++)
    if (writes(o->n->layer[l], array) && o->layer[l].along != o->phase) s = along(o, l, reverse);
  return s;
}

/* The tangents of a layer's outputs in this phase; in reverse with what bends them. */
static clb_status along(order *o, int layer, bool reverse) {
  clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  unsigned adds = 0;
  if (!goes_along(n, y)) return CLB_OK;
  clb_status s = reverse ? CLB_OK : part(o, y);
  if (!s && must_wait(o, y, false)) s = cut(o);
  for (int i = 0; i < CLB_LAYER_INS && !s; i++)
    if (clb_passing(n, y->in[i])) s = along_to(o, y->in[i], reverse);
  for (int i = 0; i < CLB_LAYER_OUTS; i++) {
    if (y->out[i] < 0) continue;
    array_state *out = &o->array[y->out[i]];
    bool before = !clb_passing(n, y->out[i]) && out->tangent;
    for (int l = 0; l < layer && clb_passing(n, y->out[i]); l++)
      before |= writes(n->layer[l], y->out[i]) && goes_along(n, n->layer[l]);
    if (before) adds |= 1U << i;
    out->tangent = true;
    out->written = o->phase;
  }
  const bool bends = y->kind->bends && (reverse || !writes_passing(n, y));
  for (int i = 0; i < CLB_LAYER_INS && bends && y->kind->bends & CLB_BENDS_INPUTS; i++)
    if (clb_network_learns(n, y->in[i]) && !clb_passing(n, y->in[i]))
      o->array[y->in[i]].adjoint = true;
  o->layer[layer].along = o->phase;
  if (!s)
    s = add_step(o, (clb_step){.layer = layer,
                               .sweep = CLB_SWEEP_ALONG,
                               .again = reverse,
                               .bends = bends,
                               .adds = adds});
  return s || reverse ? s : part(o, y);
}

static clb_status all_along(order *o) {
  const clb_network *n = o->n;
  clb_status s = cut(o);
  for (int a = 0; a < n->n_arrays; a++) o->array[a].written = o->array[a].scattered = -1;
  for (int l = 0; l < n->n_layers && !s; l++)
    if (!writes_passing(n, n->layer[l])) s = along(o, l, false);
  return s;
}

static bool has_pending(const order *o, const clb_layer *y, bool adjoint) {
  bool some = false;
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    if (y->out[i] >= 0) some |= adjoint ? o->array[y->out[i]].adjoint : o->array[y->out[i]].pending;
  return some;
}

/* Gradients of what a layer reads of edges, and of what that is made of. */
static clb_status gradients_again(order *o, int layer) {
  clb_network *n = o->n;
  clb_status s = CLB_OK;
  for (int a = 0; a < n->n_arrays; a++) o->array[a].pending = false;
  for (int l = layer; l >= 0 && !s; l--) {
    const clb_layer *y = n->layer[l];
    unsigned adds = 0, some = 0;
    if (l < layer && (!writes_passing(n, y) || !has_pending(o, y, false))) continue;
    for (int i = 0; i < CLB_LAYER_INS; i++) {
      if (!(y->gradients >> i & 1) || !clb_learns_again(n, y->in[i])) continue;
      if (o->array[y->in[i]].pending) adds |= 1U << i;
      o->array[y->in[i]].pending = true;
      some |= 1U << i;
    }
    if (some)
      s = add_step(
          o, (clb_step){.layer = l, .sweep = CLB_SWEEP_BACKWARD, .again = true, .adds = adds});
  }
  for (int a = 0; a < n->n_arrays; a++) o->array[a].pending = false;
  return s;
}

static clb_status reverse(order *o, int layer) {
  clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  unsigned adds = 0;
  for (int i = 0; i < CLB_LAYER_INS; i++) {
    if (!clb_network_learns(n, y->in[i])) continue;
    array_state *in = &o->array[y->in[i]];
    if (in->adjoint) adds |= 1U << i;
    in->adjoint = true;
    if (y->kind->senders >> i & 1) in->scattered = o->phase;
  }
  for (int i = 0; i < CLB_LAYER_OUTS; i++)
    if (clb_passing(n, y->out[i]))
      o->array[y->out[i]].adjoint = written_before(n, y->out[i], layer);
  return add_step(o, (clb_step){.layer = layer, .sweep = CLB_SWEEP_REVERSE, .adds = adds});
}

/* With all layers of edges that lead to it, in a phase of their own. */
static clb_status reverse_edges(order *o, int layer) {
  clb_network *n = o->n;
  const clb_layer *y = n->layer[layer];
  clb_status s = cut(o);
  for (int i = 0; i < CLB_LAYER_INS && !s; i++)
    if (clb_passing(n, y->in[i])) s = need(o, y->in[i]);
  if (!s) s = gradients_again(o, layer);
  for (int i = 0; i < CLB_LAYER_INS && !s; i++)
    if (clb_passing(n, y->in[i])) s = along_to(o, y->in[i], true);
  if (!s) s = reverse(o, layer);
  for (int l = layer - 1; l >= 0 && !s; l--)
    if (writes_passing(n, n->layer[l]) && n->layer[l]->kind->reverse &&
        has_pending(o, n->layer[l], true))
      s = reverse(o, l);
  return s ? s : cut(o);
}

static clb_status all_reverse(order *o) {
  const clb_network *n = o->n;
  clb_status s = cut(o);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) {
    const clb_layer *y = n->layer[l];
    if (!y->kind->reverse || writes_passing(n, y)) continue;
    if (!y->kind->ends && !has_pending(o, y, true)) continue;
    if (must_wait(o, y, true)) s = cut(o);
    if (!s) s = reads_passing(n, y) ? reverse_edges(o, l) : reverse(o, l);
  }
  return s;
}

/* ---- the order ---- */

clb_status clb_pass_order(clb_network *n) {
  order o = {.n = n,
             .layer = calloc((size_t)n->n_layers + 1, sizeof *o.layer),
             .array = calloc((size_t)n->n_arrays + 1, sizeof *o.array)};
  clb_status s = o.layer && o.array ? CLB_OK : clb_network_no_memory(n);
  n->n_steps = 0;
  for (int a = 0; a < n->n_arrays && !s; a++) {
    n->array[a]->has_gradient = false;
    o.array[a].written = o.array[a].scattered = -1;
  }
  for (int l = 0; l < n->n_layers && !s; l++) o.layer[l].made = o.layer[l].along = -1;
  if (!s) s = all_forward(&o);
  if (!s) s = all_backward(&o);
  n->n_computing = n->n_steps;
  if (!s && n->trains && n->blocked) s = all_along(&o);
  if (!s && n->trains && n->blocked) s = all_reverse(&o);
  free(o.layer);
  free(o.array);
  return s;
}
