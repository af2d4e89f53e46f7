/* tools/convert/sevennet/block.c - a layer of SevenNet's networks: its maps. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

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

static void check_reach(const sevennet *q, int layer, const irreps *linear,
                        const message_paths *p) {
  char label[LABEL_BYTES];
  for (int i = 0; i < linear->n; i++)
    if (!channels_of(&p->messages, linear->term[i]) && !channels_of(&q->features, linear->term[i]))
      fail_model(q->t->path, "its layer %d has features %s, which nothing contributes to", layer,
                 irrep_label(linear->term[i], label));
}

void put_gate_activations(const sevennet *q, const irreps *out) {
  value scalars = q->v2 ? NULL : pickle_entry(q->config, "act_scalar"),
        gates = q->v2 ? NULL : pickle_entry(q->config, "act_gate");
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
  const irreps out = output_irreps(q, layer),
               linear = put_gate(q->out, named("layers.%d", layer).text, &out);
  message_paths p;
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", layer);
  put_irreps(q->out, &out, "layers.%d.irreps_out", layer);
  put_gate_activations(q, &out);
  put_self_connection(q, layer, &linear);
  put_linear(q, layer, "self_interaction_1", &q->features, &q->features,
             is_modal(q, "use_modal_self_inter_intro"), 1, "linear_1");
  find_paths(q, &out, &linear, layer == q->n_layers - 1, &p);
  check_reach(q, layer, &linear, &p);
  put_messages(q, layer, &p);
  put_linear(q, layer, "self_interaction_2", &p.messages, &linear,
             is_modal(q, "use_modal_self_inter_outro"), put_denominator(q, layer), "linear_2");
  if (q->equflash && is_true(q, "feed_forward", false)) put_feed_forward(q, layer, &out, &linear);
  q->features = out;
}
