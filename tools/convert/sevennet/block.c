/* tools/convert/sevennet/block.c - a layer of SevenNet's networks: its irreps, paths and maps. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/reference/reference_irreps.h"

/* ---- irreps ---- */

/* Scalars come first, because a gate puts them there. */
static irreps checked_irreps(const sevennet *q, const char *text) {
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

static irreps output_irreps(const sevennet *q, int layer) {
  value list = pickle_entry(q->config, "irreps_manual");
  const bool last = layer == q->n_layers - 1;
  const int node = whole_in(q, "lmax_node", -1, -1, MAX_DEGREE),
            most = node > 0 ? node : whole_in(q, "lmax", NAN, 0, MAX_DEGREE);
  if ((list && list->kind == PICKLE_LIST) || q->equflash) return listed_irreps(q, layer + 1);
  return made_irreps(q, last ? 0 : most, last);
}

/* ---- paths ---- */

typedef struct {
  int in, l2; /* a term of the features, a degree of the harmonics */
  irrep out;
  int64_t column; /* the first of the file's last matrix of the radial network */
  int z;          /* the term of the messages */
} path;

typedef struct {
  int n;
  path of[MAX_TERMS]; /* in the order of the radial network's columns */
  int64_t columns;    /* of the file */
  irreps messages;
} paths;

static int by_message(const void *one, const void *other) {
  const path *a = one, *b = other;
  if (a->out.l != b->out.l) return a->out.l - b->out.l;
  if (a->out.parity != b->out.parity) return a->out.parity - b->out.parity;
  return a->in != b->in ? a->in - b->in : a->l2 - b->l2;
}

/* All that the file has weights for: messages to the highest degree of `out`, and of the last layer
   only even ones; of EquFlash those whose irreps `out` has. */
static void file_paths(const sevennet *q, const irreps *out, bool last, paths *p) {
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
        p->of[p->n++] = (path){in, l2, {x.mul, l3, parity}, 0, 0};
      }
  if (q->sorted) qsort(p->of, (size_t)p->n, sizeof *p->of, by_message);
  for (int i = 0; i < p->n; p->columns += p->of[i++].out.mul) p->of[i].column = p->columns;
}

/* Those of them whose messages the layer reads. */
static void find_paths(const sevennet *q, const irreps *out, const irreps *linear, bool last,
                       paths *p) {
  path sorted[MAX_TERMS];
  int kept = 0;
  *p = (paths){.n = 0};
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
static void put_columns_of(const sevennet *q, int layer, const paths *p, const weights *w,
                           int64_t rows, const char *name) {
  int64_t columns = 0, at = 0;
  for (int i = 0; i < p->n; i++) columns += p->of[i].out.mul;
  double *x = allocate((size_t)(rows * columns), sizeof *x);
  for (int i = 0; i < p->n; i++) {
    const path *o = &p->of[i];
    const double sign = sign_of(q, layer, q->features.term[o->in].l, o->l2, o->out.l);
    for (int u = 0; u < o->out.mul; u++, at++)
      for (int64_t r = 0; r < rows; r++)
        x[r * columns + at] = sign * element(w, r * p->columns + o->column + u);
  }
  put_shaped(q->out, x, 2, (const int64_t[]){rows, columns}, name);
  free(x);
}

static void put_radial(const sevennet *q, int layer, const paths *p) {
  value hidden = setting(q, "weight_nn_hidden_neurons", PICKLE_LIST);
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

/* ---- linear maps ---- */

static const irrep even_scalar = {.l = 0, .parity = 1};

/* NAME.IRREP, one matrix per irrep, times a factor, from the flat weight of an IrrepsLinear; what
   it adds to even scalars is NAME_bias. With `modal`, those have an input more per modality. */
static void put_linear(const sevennet *q, int layer, const char *module, const irreps *in,
                       const irreps *out, bool modal, double factor, const char *name) {
  const int64_t inputs = channels_of(in, even_scalar), more = modal ? q->n_modalities : 0,
                n = channels_of(out, even_scalar), all = map_numbers(in, out, 0);
  const weights w = layer_tensor(q, layer, named("%s.linear.weight", module).text, all + more * n);
  double factors[MAX_TERMS], *sum = allocate((size_t)n + 1, sizeof *sum);
  for (int i = 0; i < out->n; i++)
    factors[i] = same_irrep(out->term[i], even_scalar)
                     ? factor * sqrt((double)inputs / (double)(inputs + more))
                     : factor;
  put_map(q->out, &w, in, out, 0, factors, named("layers.%d.%s", layer, name).text);
  if (added(q, named("%d_%s", layer, module).text, &w, all, modal, inputs + more, n, sum) && n)
    put_doubles(q->out, sum, n, named("layers.%d.%s_bias", layer, name).text);
  free(sum);
}

static void put_self_connection(const sevennet *q, int layer, const irreps *out) {
  const irreps *in = &q->features;
  const bool by_species = !strcmp(self_connection(q, layer), "nequip");
  int64_t first = 0;
  char label[LABEL_BYTES];
  put_string(q->out, by_species ? "species" : "linear", "%sself_connection",
             q->one_self ? "" : named("layers.%d.", layer).text);
  if (!by_species) {
    const weights w =
        layer_tensor(q, layer, "self_connection_intro.linear.weight", map_numbers(in, out, 0));
    put_map(q->out, &w, in, out, 0, NULL, named("layers.%d.self_connection", layer).text);
    return;
  }
  const weights w = layer_tensor(q, layer, "self_connection_intro.fc_tensor_product.weight",
                                 map_numbers(in, out, q->n_all));
  for (int i = 0; i < in->n; i++) {
    const int64_t columns = channels_of(out, in->term[i]), rows = in->term[i].mul;
    weights part = w;
    part.data += first * (w.f64 ? 8 : 4);
    part.count = rows * q->n_all * columns;
    if (!columns) continue;
    put_by_species(
        q, &part, rows, columns, sqrt((double)q->n_species / q->n_all),
        named("layers.%d.self_connection.%s", layer, irrep_label(in->term[i], label)).text);
    first += part.count;
  }
}

/* ---- the layer ---- */

static void check_reach(const sevennet *q, int layer, const irreps *linear, const paths *p) {
  char label[LABEL_BYTES];
  for (int i = 0; i < linear->n; i++)
    if (!channels_of(&p->messages, linear->term[i]) && !channels_of(&q->features, linear->term[i]))
      fail_model(q->t->path, "its layer %d has features %s, which nothing contributes to", layer,
                 irrep_label(linear->term[i], label));
}

static void put_gate_activations(const sevennet *q, const irreps *out) {
  value scalars = pickle_entry(q->config, "act_scalar"),
        gates = pickle_entry(q->config, "act_gate");
  static const char *const keys[] = {"o", "e"}, *const names[] = {"tanh", "silu"};
  for (int i = 0; i < out->n && !out->term[i].l; i++) {
    const bool even = out->term[i].parity > 0;
    put_activation(q, text_in(q, scalars, keys[even], names[even]),
                   even ? "activation_even" : "activation_odd");
  }
  const bool even = channels_of(out, even_scalar);
  if (out->term[out->n - 1].l)
    put_activation(q, text_in(q, gates, keys[even], names[even]), "activation_gate");
}

static void put_feed_forward(const sevennet *q, int layer, const irreps *out,
                             const irreps *linear) {
  const irreps *const to[] = {linear, out};
  put_string(q->out, "gate", "layers.%d.feed_forward", layer);
  for (int i = 0; i < 2; i++) {
    const weights w = layer_tensor(q, layer, named("feed_forward.linear_%d.weight", i + 1).text,
                                   map_numbers(out, to[i], 0));
    put_map(q->out, &w, out, to[i], 0, NULL, named("layers.%d.feed_forward_%d", layer, i + 1).text);
  }
}

void convert_block(sevennet *q, int layer) {
  const irreps out = output_irreps(q, layer), linear = put_gate(q->out, layer, &out);
  path_terms terms[MAX_TERMS];
  paths p;
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", layer);
  put_gate_activations(q, &out);
  put_self_connection(q, layer, &linear);
  put_linear(q, layer, "self_interaction_1", &q->features, &q->features,
             is_modal(q, "use_modal_self_inter_intro"), 1, "linear_1");
  find_paths(q, &out, &linear, layer == q->n_layers - 1, &p);
  check_reach(q, layer, &linear, &p);
  for (int i = 0; i < p.n; i++) terms[i] = (path_terms){p.of[i].in, p.of[i].l2, p.of[i].z};
  put_paths(q->out, layer, terms, p.n, &p.messages);
  put_radial(q, layer, &p);
  const weights w = tensor(q, named("%d_convolution.denominator", layer).text,
                           named("%d_convolution.denumerator", layer).text, 1);
  if (!layer) q->denominator = fabs(element(&w, 0));
  put_number(q->out, q->denominator * q->denominator, "avg_num_neighbors");
  put_linear(q, layer, "self_interaction_2", &p.messages, &linear,
             is_modal(q, "use_modal_self_inter_outro"), q->denominator / element(&w, 0),
             "linear_2");
  if (q->equflash && is_true(q, "feed_forward", false)) put_feed_forward(q, layer, &out, &linear);
  q->features = out;
}
