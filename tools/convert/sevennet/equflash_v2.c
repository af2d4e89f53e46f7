/* tools/convert/sevennet/equflash_v2.c - layers of EquFlashV2: norms before maps, residuals, gates
   and bilinear gates of their own irreps. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

static const irrep even = {.l = 0, .parity = 1};

/* ---- settings ---- */

/* One of two words in a dict of the configuration. */
static bool choose(const sevennet *q, value dict, const char *key, const char *without,
                   const char *first, const char *second) {
  const char *text = text_in(q, dict, key, without);
  if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
    fail_model(q->t->path, "its config has '%s' = %.40s; only '%s' and '%s' are understood", key,
               text, first, second);
  return !strcmp(text, second);
}

static value interaction(const sevennet *q) {
  return pickle_entry(q->config, "interaction_kwargs");
}
static value feed_forward(const sevennet *q) {
  return pickle_entry(q->config, "feedforward_kwargs");
}
static bool is_nequip(const sevennet *q) {
  return choose(q, q->config, "interaction_type", "equflash", "equflash", "nequip");
}
static bool has_feed_forward(const sevennet *q) {
  return !choose(q, q->config, "feedforward_type", "feedforward", "feedforward", "identity");
}
static bool is_linear(const sevennet *q, value part, const char *without) {
  return choose(q, part, "sc_type", without, "identity", "linear");
}
static bool is_bilinear(const sevennet *q, value part) {
  return choose(q, part, "nonlinear_type", "", "gate", "bilinear_gate");
}

static void put_kinds(const sevennet *q) {
  static const char *const words[] = {"identity", "linear"};
  const bool nequip = is_nequip(q), bilinear = is_bilinear(q, interaction(q)),
             linear = is_linear(q, interaction(q), "linear"), feeds = has_feed_forward(q);
  if (nequip && !linear) refuse_equflash(q, "interactions 'nequip' without 'sc_type' = 'linear'");
  if (nequip && bilinear) refuse_equflash(q, "interactions 'nequip' with a 'bilinear_gate'");
  put_string(q->out, nequip ? "none" : "centred", "norm");
  put_string(q->out, nequip ? "linear" : "none", "self_connection");
  put_string(q->out, nequip ? "none" : words[linear], "residual");
  put_string(q->out, bilinear ? "bilinear" : "gate", "nonlinear");
  if (!nequip || feeds) put_number(q->out, 1e-5, "norm_epsilon");
  if (feeds) {
    put_string(q->out, "centred", "feed_forward_norm");
    put_string(q->out, words[is_linear(q, feed_forward(q), "identity")], "feed_forward_residual");
  }
  if (bilinear || (feeds && is_bilinear(q, feed_forward(q)))) {
    put_string(q->out, "silu", "activation_bilinear");
    put_number(q->out, 1, "activation_bilinear_scale");
  }
}

void read_equflash_v2(sevennet *q) {
  static const char *const places[] = {"conv_kwargs", "weight_nn_layers"};
  value outer = pickle_entry(q->config, places[0]),
        own = interaction(q) ? pickle_entry(interaction(q), places[0]) : NULL;
  q->sums = choose(q, interaction(q), "conv_type", "full", "full", "efficient");
  if (q->sums) q->sorted = false;
  q->hidden = outer ? pickle_entry(outer, places[1]) : NULL;
  if (!q->hidden && own) q->hidden = pickle_entry(own, places[1]);
  if (!q->hidden || q->hidden->kind != PICKLE_LIST)
    fail_model(q->t->path, "its config has no list 'weight_nn_layers'");
  put_kinds(q);
}

/* ---- tensors ---- */

/* A list of matrices, of each pair of equal irreps, which both have once. */
static void put_matrices(const sevennet *q, const char *module, const irreps *in, const irreps *out,
                         double factor, const char *name) {
  int k = 0;
  for (int i = 0; i < in->n; i++) {
    const int64_t shape[] = {in->term[i].mul, channels_of(out, in->term[i])};
    char label[LABEL_BYTES];
    if (!shape[1]) continue;
    const weights w =
        tensor(q, named("%s.weights.%d", module, k++).text, NULL, shape[0] * shape[1]);
    put_part(q->out, &w, 0, factor, 2, shape,
             named("%s.%s", name, irrep_label(in->term[i], label)).text);
  }
}

static void put_norm(const sevennet *q, int layer, const char *module, const irreps *list,
                     const char *name) {
  const int64_t scalars = channels_of(list, even);
  int64_t all = 0, at = 0;
  for (int i = 0; i < list->n; i++) all += list->term[i].mul;
  const weights w = tensor(q, named("%s.affine_weight", module).text, NULL, all),
                bias = tensor(q, named("%s.affine_bias", module).text, NULL, scalars);
  for (int i = 0; i < list->n; i++) {
    const int64_t mul = list->term[i].mul;
    char label[LABEL_BYTES];
    put_part(q->out, &w, at, 1, 1, &mul,
             named("layers.%d.%s.%s", layer, name, irrep_label(list->term[i], label)).text);
    at += mul;
  }
  if (scalars)
    put_part(q->out, &bias, 0, 1, 1, &scalars, named("layers.%d.%s_bias", layer, name).text);
}

/* ---- residuals ---- */

static int64_t width(irrep t) { return (int64_t)t.mul * (2 * t.l + 1); }

/* Whether the program finds each irrep of `few` at its place in `many`: it goes on counting columns
   from where it found the one before, but over the irreps from the first. */
static bool finds_places(const irreps *few, const irreps *many) {
  int64_t at = 0;
  for (int i = 0; i < few->n; i++) {
    int64_t place = 0;
    int k = 0;
    for (; k < many->n; k++) {
      const irrep t = many->term[k];
      if (same_irrep(t, few->term[i]) && t.mul == few->term[i].mul) break;
      place += width(t);
      at += width(t);
    }
    if (k == many->n || at != place) return false;
  }
  return true;
}

static void check_identity(const sevennet *q, const irreps *in, const irreps *out) {
  int64_t dim[2] = {0, 0};
  bool same = in->n == out->n;
  for (int i = 0; i < in->n; i++) dim[0] += width(in->term[i]);
  for (int i = 0; i < out->n; i++) dim[1] += width(out->term[i]);
  for (int i = 0; i < in->n && same; i++)
    same = same_irrep(in->term[i], out->term[i]) && in->term[i].mul == out->term[i].mul;
  if (dim[0] == dim[1] ? !same : dim[0] < dim[1] ? !finds_places(in, out) : !finds_places(out, in))
    refuse_equflash(q, "an identity as skip connection that mixes irreps up");
}

/* ---- gates ---- */

typedef struct {
  irreps in, out; /* each irrep once */
} gate_irreps;

/* The irreps of a part's nonlinearity: those of the layer, scaled, or others. */
static irreps target_of(const sevennet *q, value kwargs, const irreps *out) {
  irreps t = *out;
  value text = kwargs ? pickle_entry(kwargs, "irreps") : NULL;
  const double scale = number_in(q, kwargs, "irreps_scale", 1);
  if (text && !pickle_entry(kwargs, "irreps_scale"))
    t = checked_irreps(q, text_in(q, kwargs, "irreps", ""));
  for (int i = 0; i < t.n; i++) {
    t.term[i].mul = (int)(t.term[i].mul * scale);
    if (t.term[i].mul < 1 || t.term[i].mul > MAX_CHANNELS)
      refuse_equflash(q, "an 'irreps_scale' that leaves no channels");
  }
  return t;
}

static gate_irreps put_own_gate(const sevennet *q, const char *prefix, const irreps *target) {
  if (!channels_of(target, even)) refuse_equflash(q, "a gate without even scalars");
  if (channels_of(target, (irrep){0, 0, -1}))
    refuse_equflash(q, "a gate with scalars of both parities, which it mixes up");
  put_gate_activations(q, target);
  return (gate_irreps){put_gate(q->out, prefix, target), *target};
}

static void check_bilinear(const sevennet *q, const irreps *t) {
  if (!t->n || !same_irrep(t->term[0], even))
    refuse_equflash(q, "a bilinear gate whose irreps do not begin with 0e");
  for (int i = 1; i < t->n; i++) {
    if (t->term[i].mul != t->term[0].mul)
      refuse_equflash(q, "a bilinear gate of irreps with different numbers of channels");
    if (!t->term[i].l) refuse_equflash(q, "a bilinear gate with odd scalars");
    if (by_natural_parity(t->term[i - 1], t->term[i]) >= 0)
      refuse_equflash(q, "a bilinear gate whose irreps are not sorted");
  }
}

/* Products of each irrep but the first with it and those that are no larger; the first factor of
   the scalars is 1. Weights are in the order of paths, products in that of irreps. */
static int put_products(const sevennet *q, const char *prefix, const irreps *t, irreps *products) {
  path_terms path[MAX_TERMS];
  irrep made[MAX_TERMS];
  irreps first = {.n = t->n - 1};
  int n = 0;
  for (int i = 0; i < first.n; i++) first.term[i] = t->term[i + 1];
  for (int i = 0; i < first.n; i++)
    for (int k = 0; k < t->n && t->term[k].l <= first.term[i].l; k++) {
      const irrep a = first.term[i], b = t->term[k];
      for (int l = a.l - b.l; l <= a.l + b.l; l++) {
        const irrep z = {a.mul, l, a.parity * b.parity};
        if (!channels_of(t, z)) continue;
        if (n == MAX_TERMS) refuse_equflash(q, "a bilinear gate of too many paths");
        made[n] = z;
        path[n++] = (path_terms){i, k, 0};
      }
    }
  products->n = n;
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < n; k++) {
      const int order = by_natural_parity(made[k], made[i]);
      path[i].z += order < 0 || (!order && k < i);
    }
    products->term[path[i].z] = made[i];
  }
  put_irreps(q->out, &first, "%s.irreps_first", prefix);
  put_irreps(q->out, t, "%s.irreps_second", prefix);
  put_irreps(q->out, products, "%s.irreps_product", prefix);
  put_path_list(q->out, named("%s.product_paths", prefix).text, path, n);
  return n;
}

static gate_irreps put_bilinear(const sevennet *q, const char *prefix, const irreps *t) {
  gate_irreps y = {*t, {1, {t->term[0]}}};
  irreps products;
  check_bilinear(q, t);
  const int n = put_products(q, prefix, t, &products);
  for (int i = 0; i < t->n; i++) y.in.term[i].mul *= i ? 2 : n + 1;
  for (int i = 0; i < n; i++) {
    irrep *last = &y.out.term[y.out.n - 1];
    if (same_irrep(*last, products.term[i])) last->mul += products.term[i].mul;
    else y.out.term[y.out.n++] = products.term[i];
  }
  return y;
}

static gate_irreps put_nonlinear(const sevennet *q, const char *prefix, value part,
                                 const irreps *out) {
  const irreps target = target_of(q, part ? pickle_entry(part, "nonlinear_kwargs") : NULL, out);
  return (is_bilinear(q, part) ? put_bilinear : put_own_gate)(q, prefix, &target);
}

/* ---- the layer ---- */

/* Of a map that the program leaves out: irreps stay as they are. */
static void put_unit(const sevennet *q, const irreps *in, const irreps *out, const char *name) {
  for (int i = 0; i < out->n; i++) {
    const int64_t n = out->term[i].mul, shape[] = {n, n};
    char label[LABEL_BYTES];
    if (in->n != out->n || !same_irrep(in->term[i], out->term[i]) || in->term[i].mul != n)
      refuse_equflash(q, "'after_nonlinear' = 'identity' between different irreps");
    double *x = allocate((size_t)(n * n), sizeof *x);
    for (int64_t c = 0; c < n; c++) x[c * (n + 1)] = sqrt((double)n);
    put_shaped(q->out, x, 2, shape, named("%s.%s", name, irrep_label(out->term[i], label)).text);
    free(x);
  }
}

static void put_feed_forward(const sevennet *q, int layer, const irreps *out) {
  value part = feed_forward(q);
  const bool linear = is_linear(q, part, "identity");
  const model_name ff = named("ff_blocks.%d", layer);
  put_string(q->out, is_bilinear(q, part) ? "bilinear" : "gate", "layers.%d.feed_forward", layer);
  const gate_irreps y = put_nonlinear(q, named("layers.%d.feed_forward", layer).text, part, out);
  put_norm(q, layer, named("%s.norm2", ff.text).text, out, "norm_2");
  put_matrices(q, named("%s.linear_1", ff.text).text, out, &y.in, 1,
               named("layers.%d.feed_forward_1", layer).text);
  put_matrices(q, named("%s.linear_2", ff.text).text, &y.out, out, 1,
               named("layers.%d.feed_forward_2", layer).text);
  if (linear)
    put_matrices(q, named("%s.skip", ff.text).text, out, out, 1,
                 named("layers.%d.feed_forward_residual", layer).text);
}

/* What follows the gate, and the skip connection. */
static void put_end(const sevennet *q, int layer, const gate_irreps *y, const irreps *out) {
  value part = interaction(q), kwargs = part ? pickle_entry(part, "nonlinear_kwargs") : NULL;
  const bool linear = is_linear(q, part, "linear"), nequip = is_nequip(q);
  const model_name name = named("layers.%d.linear_3", layer);
  if (linear)
    put_matrices(q, named("%d_skip_con", layer).text, &q->features, nequip ? &y->in : out, 1,
                 named("layers.%d.%s", layer, nequip ? "self_connection" : "residual").text);
  else check_identity(q, &q->features, out);
  if (nequip) return;
  if (choose(q, kwargs, "after_nonlinear", "linear", "linear", "identity"))
    put_unit(q, &y->out, out, name.text);
  else put_matrices(q, named("%d_self_interaction_3", layer).text, &y->out, out, 1, name.text);
}

/* Messages of one irrep are channels of it. */
static irreps merged(const irreps *messages) {
  irreps y = {.n = 0};
  for (int i = 0; i < messages->n; i++) {
    irrep *last = y.n ? &y.term[y.n - 1] : NULL;
    if (last && same_irrep(*last, messages->term[i])) last->mul += messages->term[i].mul;
    else y.term[y.n++] = messages->term[i];
  }
  for (int i = 1; i < y.n; i++) /* in the program's order */
    for (int k = i; k > 0 && by_natural_parity(y.term[k - 1], y.term[k]) > 0; k--) {
      const irrep t = y.term[k];
      y.term[k] = y.term[k - 1];
      y.term[k - 1] = t;
    }
  return y;
}

/* The matrices of sums of messages, of each irrep of `out`, as those of each message: scaled by the
   square root of their number, as the program divides sums by it, too. */
static void put_summed(const sevennet *q, const char *module, const message_paths *p,
                       const irreps *out, const irreps *to, double factor, const char *name) {
  int k = 0;
  for (int i = 0; i < out->n; i++) {
    const int64_t rows = out->term[i].mul, columns = channels_of(to, out->term[i]),
                  all = channels_of(&p->messages, out->term[i]), shape[] = {all, columns};
    char label[LABEL_BYTES];
    if (i && out->term[i].l < out->term[i - 1].l)
      refuse_equflash(q, "'efficient' convolutions of irreps that are not sorted");
    if (rows != q->features.term[0].mul)
      refuse_equflash(q, "'efficient' convolutions between different numbers of channels");
    if (!columns) continue;
    const weights w = tensor(q, named("%s.weights.%d", module, k++).text, NULL, rows * columns);
    double *x = allocate((size_t)(all * columns) + 1, sizeof *x);
    for (int64_t c = 0; c < all * columns; c++) x[c] = factor * element(&w, c % (rows * columns));
    if (all)
      put_shaped(q->out, x, 2, shape, named("%s.%s", name, irrep_label(out->term[i], label)).text);
    free(x);
  }
}

void convert_equflash_v2_block(sevennet *q, int layer) {
  const irreps out = output_irreps(q, layer);
  const model_name prefix = named("layers.%d", layer);
  message_paths p;
  for (int i = 1; i < q->features.n; i++)
    if (q->features.term[i].mul != q->features.term[0].mul)
      refuse_equflash(q, "irreps with different numbers of channels");
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", layer);
  put_irreps(q->out, &out, "layers.%d.irreps_out", layer);
  const gate_irreps y = put_nonlinear(q, prefix.text, interaction(q), &out);
  if (!is_nequip(q)) put_norm(q, layer, named("%d_norm1", layer).text, &q->features, "norm_1");
  put_matrices(q, named("%d_self_interaction_1.linear", layer).text, &q->features, &q->features, 1,
               named("layers.%d.linear_1", layer).text);
  find_paths(q, &out, &y.in, false, &p);
  put_messages(q, layer, &p);
  const irreps messages = merged(&p.messages);
  const double factor = put_denominator(q, layer);
  const model_name module = named("%d_self_interaction_2.linear", layer),
                   name = named("layers.%d.linear_2", layer);
  if (q->sums) put_summed(q, module.text, &p, &out, &y.in, factor, name.text);
  else put_matrices(q, module.text, &messages, &y.in, factor, name.text);
  put_end(q, layer, &y, &out);
  if (has_feed_forward(q)) put_feed_forward(q, layer, &out);
  q->features = out;
}
