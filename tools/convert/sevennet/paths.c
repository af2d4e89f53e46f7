/* tools/convert/sevennet/paths.c - irreps and paths of a layer of SevenNet's networks. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/reference/reference_irreps.h"

/* ---- irreps ---- */

/* Scalars come first, because a gate puts them there. */
irreps checked_irreps(const sevennet *q, const char *text) {
  irreps out, before = {.n = 0};
  bool good = read_irreps(text, &out);
  for (int i = 0; i < out.n && good; i++) {
    const irrep t = out.term[i];
    good = t.mul > 0 && (t.parity > 0 || q->parity) && !channels_of(&before, t) &&
           (t.l || !i || !out.term[i - 1].l);
    before.term[before.n++] = t;
  }
  if (!good)
    fail_model(q->t->path,
               "its irreps \"%.80s\" are not supported: scalars come first, an irrep occurs "
               "once%s",
               text, q->parity ? "" : ", and all are even");
  return out;
}

irreps listed_irreps(const sevennet *q, int i) {
  value list = pickle_entry(q->config, "irreps_manual");
  if (list && list->kind == PICKLE_LIST)
    return checked_irreps(q, item(q->t, list, (size_t)i, PICKLE_TEXT)->text);
  if (q->equflash) return equflash_irreps(q, i);
  return (irreps){1, {{whole_in(q, "channel", NAN, 1, MAX_CHANNELS), 0, 1}}};
}

int harmonic_parity(const sevennet *q, int l) { return q->parity && l % 2 ? -1 : 1; }

/* Without a list: all that features and harmonics make, to a degree, with as many channels each. */
static irreps made_irreps(const sevennet *q, int most, bool even) {
  const int channels = whole_in(q, "channel", NAN, 1, MAX_CHANNELS);
  irreps out = {.n = 0};
  for (int l = 0; l <= most; l++)
    for (int parity = -1; parity <= 1; parity += 2)
      for (int i = 0; i < q->features.n && !(even && parity < 0); i++) {
        const irrep x = q->features.term[i], made = {channels, l, parity};
        bool some = false;
        for (int l2 = abs(x.l - l); l2 <= x.l + l && l2 <= q->l_max; l2++)
          some |= x.parity * harmonic_parity(q, l2) == parity;
        if (some && !channels_of(&out, made)) out.term[out.n++] = made;
      }
  return out;
}

irreps output_irreps(const sevennet *q, int layer) {
  value list = pickle_entry(q->config, "irreps_manual");
  const bool last = layer == q->n_layers - 1;
  const int node = whole_in(q, "lmax_node", -1, -1, MAX_DEGREE),
            most = node > 0 ? node : whole_in(q, "lmax", NAN, 0, MAX_DEGREE);
  if ((list && list->kind == PICKLE_LIST) || q->equflash) return listed_irreps(q, layer + 1);
  return made_irreps(q, last ? 0 : most, last);
}

/* ---- paths ---- */

static int by_message(const void *one, const void *other) {
  const message_path *a = one, *b = other;
  if (a->out.l != b->out.l) return a->out.l - b->out.l;
  if (a->out.parity != b->out.parity) return a->out.parity - b->out.parity;
  return a->in != b->in ? a->in - b->in : a->l2 - b->l2;
}

int by_natural_parity(irrep a, irrep b) {
  if (a.l != b.l) return a.l - b.l;
  return (a.l % 2 ? 1 : -1) * (a.parity - b.parity);
}

static int by_natural_message(const void *one, const void *other) {
  const irrep a = ((const message_path *)one)->out, b = ((const message_path *)other)->out;
  const int order = by_natural_parity(a, b);
  return order ? order : by_message(one, other);
}

/* All that the file has weights for: messages to the highest degree of `out`, and of the last layer
   only even ones; of EquFlash those whose irreps `out` has. */
static void file_paths(const sevennet *q, const irreps *out, bool last, message_paths *p) {
  int most = 0;
  for (int i = 0; i < out->n; i++) most = out->term[i].l > most ? out->term[i].l : most;
  for (int in = 0; in < q->features.n; in++)
    for (int l2 = 0; l2 <= q->l_max; l2++)
      for (int l3 = 0; l3 <= most; l3++) {
        const irrep x = q->features.term[in];
        const int parity = x.parity * harmonic_parity(q, l2);
        if (l3 < abs(x.l - l2) || l3 > x.l + l2) continue;
        if (q->equflash ? !channels_of(out, (irrep){0, l3, parity}) : last && parity < 0) continue;
        if (p->n == MAX_TERMS) fail_model(q->t->path, "a layer has more than %d paths", MAX_TERMS);
        p->of[p->n++] = (message_path){in, l2, {x.mul, l3, parity}, 0, 0};
      }
  if (q->sorted) qsort(p->of, (size_t)p->n, sizeof *p->of, q->v2 ? by_natural_message : by_message);
  for (int i = 0; i < p->n; p->columns += p->of[i++].out.mul) p->of[i].column = p->columns;
}

/* Those of them whose messages the layer reads. */
void find_paths(const sevennet *q, const irreps *out, const irreps *linear, bool last,
                message_paths *p) {
  message_path sorted[MAX_TERMS];
  int kept = 0;
  *p = (message_paths){.n = 0};
  file_paths(q, out, last, p);
  for (int i = 0; i < p->n; i++)
    if (channels_of(linear, p->of[i].out)) p->of[kept++] = p->of[i];
  p->n = p->messages.n = kept;
  memcpy(sorted, p->of, (size_t)kept * sizeof *sorted);
  qsort(sorted, (size_t)kept, sizeof *sorted, by_message);
  for (int i = 0; i < kept; i++) {
    p->messages.term[i] = sorted[i].out;
    for (int k = 0; k < kept; k++)
      if (!by_message(&p->of[k], &sorted[i])) p->of[k].z = i;
  }
}

/* 1 or -1: the file's 3j symbol relative to ours. Those with a degree 0 are not stored, and are
   ours; of convolutions by other libraries than e3nn none is. */
static double sign_of(const sevennet *q, int layer, int l1, int l2, int l3) {
  char key[NAME_BYTES];
  weights w;
  double *C = allocate((size_t)((2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1)), sizeof *C), sum = 0;
  snprintf(key, sizeof key, "%d_convolution.convolution._compiled_main_left_right._w3j_%d_%d_%d",
           layer, l1, l2, l3);
  reference_3j(l1, l2, l3, C);
  const bool found = find_tensor(q, key, &w);
  if (found && w.count != (int64_t)(2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1))
    fail_model(q->t->path, "tensor '%s' is not of the shape of its degrees", key);
  for (int64_t i = 0; found && i < w.count; i++) sum += C[i] * element(&w, i);
  free(C);
  if (found && fabs(fabs(sum) - 1) > 1e-4)
    fail_model(q->t->path, "tensor '%s' is no 3j symbol, nor its negative", key);
  return found && sum < 0 ? -1 : 1;
}

/* The last matrix: columns of the paths, negated where the 3j symbol has the other sign. */
static void put_columns_of(const sevennet *q, int layer, const message_paths *p, const weights *w,
                           int64_t rows, const char *name) {
  int64_t columns = 0, at = 0;
  for (int i = 0; i < p->n; i++) columns += p->of[i].out.mul;
  double *x = allocate((size_t)(rows * columns), sizeof *x);
  for (int i = 0; i < p->n; i++) {
    const message_path *o = &p->of[i];
    const double sign = sign_of(q, layer, q->features.term[o->in].l, o->l2, o->out.l);
    for (int u = 0; u < o->out.mul; u++, at++)
      for (int64_t r = 0; r < rows; r++)
        x[r * columns + at] = sign * element(w, r * p->columns + o->column + u);
  }
  put_shaped(q->out, x, 2, (const int64_t[]){rows, columns}, name);
  free(x);
}

static void put_radial(const sevennet *q, int layer, const message_paths *p) {
  value hidden = q->hidden ? q->hidden : setting(q, "weight_nn_hidden_neurons", PICKLE_LIST);
  const int matrices = (int)hidden->n + 1;
  weights w;
  if (!find_tensor(q, named("%d_convolution.weight_nn.layer0.weight", layer).text, &w) ||
      w.rank != 2)
    fail_model(q->t->path, "layer %d has no radial network", layer);
  int64_t shape[2] = {w.shape[0], 0};
  for (int k = 0; k < matrices; k++) {
    const bool last = k == matrices - 1;
    shape[1] = last ? p->columns : whole_item(q->t, hidden, (size_t)k, MAX_CHANNELS + 1);
    const model_name key = named("convolution.weight_nn.layer%d.weight", k),
                     name = named("layers.%d.radial.%d", layer, k);
    w = layer_tensor(q, layer, key.text, shape[0] * shape[1]);
    if (last) put_columns_of(q, layer, p, &w, shape[0], name.text);
    else put_part(q->out, &w, 0, 1, 2, shape, name.text);
    shape[0] = shape[1];
  }
  put_number(q->out, matrices, "radial_layers");
}

void put_messages(sevennet *q, int layer, const message_paths *p) {
  path_terms terms[MAX_TERMS];
  for (int i = 0; i < p->n; i++) terms[i] = (path_terms){p->of[i].in, p->of[i].l2, p->of[i].z};
  put_paths(q->out, layer, terms, p->n, &p->messages);
  put_radial(q, layer, p);
}

double put_denominator(sevennet *q, int layer) {
  const weights w = tensor(q, named("%d_convolution.denominator", layer).text,
                           named("%d_convolution.denumerator", layer).text, 1);
  if (!layer) q->denominator = fabs(element(&w, 0));
  put_number(q->out, q->denominator * q->denominator, "avg_num_neighbors");
  return q->denominator / element(&w, 0);
}
