/* models/arch/nequip_irreps.c - the irreps and paths of a block of networks like NequIP's, and
   whether they agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;
enum { KEY_BYTES = CLB_MODEL_KEY, MAX_FEATURES = 1 << 16 };

const char *clb_nequip_key(char key[CLB_MODEL_KEY], int block, const char *what) {
  snprintf(key, CLB_MODEL_KEY, "layers.%d.%s", block, what);
  return key;
}

/* Checks path q: the product must contain the message's irrep, and the message must have one
   channel per channel of the features. */
static void check_path(reader *r, const char *key, const clb_nequip *m, const clb_nequip_irreps *y,
                       int q, const char *words) {
  const clb_instruction *p = &y->path[q];
  const clb_term *x = &y->in.term[p->in1], *z = &y->message.term[p->out];
  const int y_parity = m->sh.term[p->in2].parity;
  const int words_n = (int)strcspn(words, " ");
  if (z->l < abs(x->l - p->in2) || z->l > x->l + p->in2 || z->parity != x->parity * y_parity)
    clb_model_refuse(r, "'%s': path %d, \"%.*s\": %d%c times %d%c holds no %d%c", key, q, words_n,
                     words, (int)x->l, x->parity > 0 ? 'e' : 'o', (int)p->in2,
                     y_parity > 0 ? 'e' : 'o', (int)z->l, z->parity > 0 ? 'e' : 'o');
  if (z->mul != x->mul)
    clb_model_refuse(
        r,
        "'%s': path %d, \"%.*s\": its message has %d channels; they must be the %d of its features",
        key, q, words_n, words, (int)z->mul, (int)x->mul);
  for (int i = 0; i < q; i++)
    if (y->path[i].out == p->out)
      clb_model_refuse(r,
                       "'%s': paths %d and %d make one message; each path must have a term of "
                       "irreps_message to itself",
                       key, i, q);
}

static void read_paths(reader *r, const clb_nequip *m, int n, clb_nequip_irreps *y) {
  char key[KEY_BYTES];
  const char *text = clb_model_text(r, clb_nequip_key(key, n, "paths"));
  for (int used = 0; !r->status && *text; text += used) {
    clb_instruction *q = &y->path[y->n_paths];
    if (y->n_paths == CLB_MAX_PATHS ||
        sscanf(text, "%9d,%9d,%9d%n", &q->in1, &q->in2, &q->out, &used) != 3 ||
        (text[used] && text[used] != ' ') || q->in1 < 0 || q->in1 >= y->in.n || q->in2 < 0 ||
        q->in2 > r->out->l_max || q->out < 0 || q->out >= y->message.n)
      clb_model_refuse(r,
                       "'%s' must be X,Y,Z for each path, terms of irreps_in, irreps_sh and "
                       "irreps_message; it is not where it says \"%.20s\"",
                       key, text);
    if (r->status) return;
    q->mode = CLB_UVU, q->has_weight = 1, q->path_weight = 1;
    check_path(r, key, m, y, y->n_paths, text);
    y->n_weights += y->in.term[q->in1].mul;
    y->n_paths++;
    used += text[used] == ' ';
  }
  if (!y->n_paths) clb_model_refuse(r, "'%s' is empty", key);
  else if (y->n_paths < y->message.n)
    clb_model_refuse(
        r, "'%s' has %d paths, but layers.%d.irreps_message %d terms; it must be one for each", key,
        y->n_paths, n, y->message.n);
}

/* Checks that the features of a layer are as described in docs/model-format.md. */
static void check_irreps(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  const clb_irreps *parts[] = {&y->scalars, &y->gates, &y->gated};
  for (int t = 0; t < y->in.n; t++)
    if (clb_find_irrep(&y->in, &y->in.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_in has an irrep twice", n);
  for (int t = 0; t < y->linear.n; t++) {
    if (clb_find_irrep(&y->linear, &y->linear.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_linear has an irrep twice", n);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += clb_channels(parts[i], &y->linear.term[t]);
    if (sum != y->linear.term[t].mul)
      clb_model_refuse(
          r,
          "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are not irreps_linear",
          n);
  }
  for (int i = 0; i < 3; i++)
    for (int t = 0; t < parts[i]->n; t++) {
      if (clb_find_irrep(&y->linear, &parts[i]->term[t]) < 0)
        clb_model_refuse(r,
                         "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are "
                         "not irreps_linear",
                         n);
      if (i < 2 && parts[i]->term[t].l)
        clb_model_refuse(r, "layers.%d: irreps_scalars and irreps_gates must be of degree 0", n);
    }
  if (clb_channels(&y->gates, NULL) != clb_channels(&y->gated, NULL))
    clb_model_refuse(r, "layers.%d: irreps_gates must have a channel for each of irreps_gated", n);
  bool good = y->out.n == y->scalars.n + y->gated.n;
  for (int t = 0; t < y->out.n && good; t++) {
    const clb_term *part =
        t < y->scalars.n ? &y->scalars.term[t] : &y->gated.term[t - y->scalars.n];
    good = clb_same_irrep(&y->out.term[t], part) && y->out.term[t].mul == part->mul;
  }
  if (!good)
    clb_model_refuse(r, "layers.%d.irreps_out must be irreps_scalars, then irreps_gated", n);
  if (n && memcmp(&y->in, &r->out->array[m->features]->irreps, sizeof y->in) != 0)
    clb_model_refuse(r, "layers.%d.irreps_in is not layers.%d.irreps_out", n, n - 1);
}

/* Refuses features that no tensor contributes to: their size would be whatever the metadata say. */
static void check_reach(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  for (int t = 0; t < y->linear.n && !m->rms; t++) {
    const clb_term *z = &y->linear.term[t];
    if (clb_find_irrep(&y->message, z) < 0 && clb_find_irrep(&y->in, z) < 0)
      clb_model_refuse(r,
                       "layers.%d.irreps_linear has %dx%d%c, which neither a message nor the "
                       "features before hold",
                       n, (int)z->mul, (int)z->l, z->parity > 0 ? 'e' : 'o');
  }
}

static void check_sizes(reader *r, int n, const clb_nequip_irreps *y) {
  if (y->in.dim > MAX_FEATURES || y->linear.dim > MAX_FEATURES)
    clb_model_refuse(r, "layers.%d.%s has %d numbers per atom; they are at most %d", n,
                     y->in.dim > MAX_FEATURES ? "irreps_in" : "irreps_linear",
                     (int)(y->in.dim > MAX_FEATURES ? y->in.dim : y->linear.dim), MAX_FEATURES);
}

void clb_nequip_read_irreps(reader *r, const clb_nequip *m, int n, clb_nequip_irreps *y) {
  const struct {
    const char *name;
    clb_irreps *irreps;
  } parts[] = {{"irreps_in", &y->in},         {"irreps_message", &y->message},
               {"irreps_linear", &y->linear}, {"irreps_scalars", &y->scalars},
               {"irreps_gates", &y->gates},   {"irreps_gated", &y->gated},
               {"irreps_out", &y->out}};
  char key[KEY_BYTES];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    clb_model_irreps(r, clb_nequip_key(key, n, parts[i].name), parts[i].irreps);
  check_sizes(r, n, y);
  if (!r->status) check_irreps(r, m, n, y);
  if (!r->status) read_paths(r, m, n, y);
  if (!r->status) check_reach(r, m, n, y);
}
