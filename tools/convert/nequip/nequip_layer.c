/* tools/convert/nequip/nequip_layer.c - a layer of NequIP: its irreps and paths, from its features
   before and after, and its linear maps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

bool nequip_near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

/* ---- tensors ---- */

/* Whether an entry of a state is learned; others are constants. */
static bool is_learned(const nequip *q, const char *name) {
  static const char *const always[] = {"_embed.weight",   "embed_module.weight", "linear_1.weight",
                                       "linear_2.weight", "sc.weight",           ".weights"};
  bool found = strstr(name, ".mlp.") != NULL;
  for (int i = 0; i < 6; i++) found |= ends_in(name, always[i]);
  for (int i = 0; i < 3; i++) found |= q->learned[i] && ends_in(name, q->learned[i]);
  return found;
}

static value entry(const nequip *q, const char *path) {
  return q->network ? maybe(q->network, path)
                    : pickle_entry(q->state, named("%s%s", q->prefix, path).text);
}

bool nequip_has(const nequip *q, const char *path) {
  value v = entry(q, path);
  return v && v->kind == PICKLE_TENSOR;
}

weights nequip_weights(nequip *q, const char *path) {
  if (q->network) return weights_at(q->t, q->network, path);
  const model_name name = named("%s%s", q->prefix, path);
  int number = 0;
  if (!q->averaged || !is_learned(q, path)) return tensor_of(q->t, q->state, name.text);
  for (size_t i = 0; i + 1 < q->state->n; i += 2) {
    value key = q->state->items[i];
    if (key->kind != PICKLE_TEXT || strncmp(key->text, "model.", 6) != 0) continue;
    if (!strcmp(key->text, name.text)) break;
    number += is_learned(q, key->text);
  }
  return tensor_of(q->t, q->state, named("ema.ema_weight_%d", number).text);
}

weights nequip_count(nequip *q, const char *path, int64_t count) {
  const weights w = nequip_weights(q, path);
  if (w.count != count)
    fail_model(q->t->path, "its tensor '%s' has %lld numbers, not %lld", path, (long long)w.count,
               (long long)count);
  return w;
}

/* ---- irreps ---- */

static int find(const irreps *list, irrep t) {
  for (int i = 0; i < list->n; i++)
    if (same_irrep(list->term[i], t)) return i;
  return -1;
}

static bool reached(const nequip *q, irrep to) {
  for (int x = 0; x < q->features.n; x++)
    for (int y = 0; y < q->sh.n; y++)
      if (couples(q->features.term[x], q->sh.term[y], to)) return true;
  return false;
}

/* Terms of one irrep that follow each other become one. */
static void append(const nequip *q, irreps *list, irrep t) {
  if (list->n && same_irrep(list->term[list->n - 1], t)) list->term[list->n - 1].mul += t.mul;
  else if (list->n < MAX_TERMS) list->term[list->n++] = t;
  else fail_model(q->t->path, "a layer has more than %d terms of irreps", MAX_TERMS);
}

/* e3nn's order of irreps. */
static int by_irrep(const irrep *a, const irrep *b) {
  return a->l != b->l ? a->l - b->l : a->parity - b->parity;
}

/* Stable; terms of one irrep become one. */
static irreps sorted(const nequip *q, const irreps *list) {
  irreps out = {.n = 0}, left = *list;
  for (int n = 0; n < list->n; n++) {
    int first = -1;
    for (int i = 0; i < left.n; i++)
      if (left.term[i].mul && (first < 0 || by_irrep(&left.term[i], &left.term[first]) < 0))
        first = i;
    if (first < 0) break;
    append(q, &out, left.term[first]);
    left.term[first].mul = 0;
  }
  return out;
}

static void find_gate(const nequip *q, const irreps *hidden, nequip_layer *l) {
  static const irrep even = {.l = 0, .parity = 1};
  irreps all = {.n = 0};
  int gates = 0;
  for (int i = 0; i < hidden->n; i++) {
    const irrep t = hidden->term[i];
    if (!t.mul || !reached(q, t)) continue;
    if (find(&l->scalars, t) >= 0 || find(&l->gated, t) >= 0)
      fail_model(q->t->path, "features of a layer have an irrep twice, which is not supported");
    append(q, t.l ? &l->gated : &l->scalars, t);
    if (t.l) gates += t.mul;
  }
  if (!reached(q, even)) fail_model(q->t->path, "a layer without even scalars is not supported");
  if (gates) append(q, &l->gates, (irrep){gates, 0, 1});
  const irreps *const parts[] = {&l->scalars, &l->gates, &l->gated};
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < parts[p]->n; i++) append(q, &all, parts[p]->term[i]);
  l->linear = sorted(q, &all);
  l->out = l->scalars;
  for (int i = 0; i < l->gated.n; i++) append(q, &l->out, l->gated.term[i]);
}

/* Weights are in the order of features, harmonics, messages; messages in that of their irreps. */
static void find_paths(const nequip *q, nequip_layer *l) {
  irrep message[MAX_PATHS];
  for (int x = 0; x < q->features.n; x++)
    for (int y = 0; y < q->sh.n; y++)
      for (int degree = 0; degree <= MAX_DEGREE; degree++) {
        const irrep a = q->features.term[x], b = q->sh.term[y],
                    to = {a.mul, degree, a.parity * b.parity};
        if (!couples(a, b, to) || find(&l->linear, to) < 0) continue;
        if (l->n_paths == MAX_TERMS)
          fail_model(q->t->path, "a layer has more than %d paths", MAX_TERMS);
        message[l->n_paths] = to;
        l->paths[l->n_paths++] = (path_terms){x, y, 0};
        l->n_weights += a.mul;
      }
  l->messages.n = l->n_paths;
  for (int i = 0; i < l->n_paths; i++) {
    int *z = &l->paths[i].z;
    for (int k = 0; k < l->n_paths; k++) {
      const int order = by_irrep(&message[k], &message[i]);
      *z += order < 0 || (!order && k < i);
    }
    l->messages.term[*z] = message[i];
  }
  l->merged = sorted(q, &l->messages);
}

void nequip_find_layer(const nequip *q, const irreps *hidden, nequip_layer *l) {
  *l = (nequip_layer){.n_paths = 0};
  find_gate(q, hidden, l);
  find_paths(q, l);
}

/* ---- maps ---- */

static void put_matrices(nequip *q, const char *path, const irreps *in, const irreps *to,
                         int64_t inner, const char *prefix) {
  const weights w = nequip_count(q, path, map_numbers(in, to, inner));
  put_map(q->out, &w, in, to, inner, NULL, prefix);
}

void nequip_put_layer(nequip *q, int number, const nequip_layer *l, int64_t inner) {
  const model_name self = named("layer%d_convnet.conv.sc.weight", number);
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", number);
  put_matrices(q, named("layer%d_convnet.conv.linear_1.weight", number).text, &q->features,
               &q->features, 0, named("layers.%d.linear_1", number).text);
  put_paths(q->out, number, l->paths, l->n_paths, &l->messages);
  put_irreps(q->out, &l->linear, "layers.%d.irreps_linear", number);
  put_matrices(q, named("layer%d_convnet.conv.linear_2.weight", number).text, &l->merged,
               &l->linear, 0, named("layers.%d.linear_2", number).text);
  if (nequip_has(q, self.text))
    put_matrices(q, self.text, &q->features, &l->linear, inner,
                 named("layers.%d.self_connection", number).text);
  put_irreps(q->out, &l->scalars, "layers.%d.irreps_scalars", number);
  put_irreps(q->out, &l->gates, "layers.%d.irreps_gates", number);
  put_irreps(q->out, &l->gated, "layers.%d.irreps_gated", number);
  put_irreps(q->out, &l->out, "layers.%d.irreps_out", number);
  for (int i = 0; i < l->scalars.n; i++) q->odd |= l->scalars.term[i].parity < 0;
  q->gated |= l->gates.n > 0;
  q->features = l->out;
}
