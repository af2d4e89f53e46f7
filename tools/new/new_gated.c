/* tools/new/new_gated.c - new networks of NequIP, Nequix and SevenNet: convolutions and gates. */
#include <stdlib.h>

#include "tools/cli/tool.h"
#include "tools/convert/maps.h"
#include "tools/new/new_network.h"

static const irrep even = {.l = 0, .parity = 1};
static const double tanh_scale = 1.592537419729402; /* gives it a second moment of 1 */

/* Whether a product of some feature and some harmonic has the irrep. */
static bool reached(const new_maker *m, irrep t) {
  for (int x = 0; x < m->features.n; x++)
    for (int y = 0; y < m->q->sh.n; y++)
      if (couples(m->features.term[x], m->q->sh.term[y], t)) return true;
  return false;
}

/* What a layer gives: of the last one, even scalars alone. */
static irreps outputs(const new_maker *m, int layer) {
  const irreps *all = &m->q->c.features;
  irreps out = {.n = 0};
  for (int i = 0; i < all->n; i++)
    if (reached(m, all->term[i]) && (layer < m->q->c.layers - 1 || same_irrep(all->term[i], even)))
      out.term[out.n++] = all->term[i];
  return out;
}

/* Scalars come first in `out`; all others are gated, by one even scalar a channel. Returns the
   gate's input. */
static irreps gate(new_maker *m, int layer, const irreps *out) {
  irreps linear = *out, scalars = {0}, gates = {0}, gated = {0};
  for (int i = 0; i < out->n; i++) {
    irreps *part = out->term[i].l ? &gated : &scalars;
    part->term[part->n++] = out->term[i];
  }
  for (int i = 0; i < gated.n; i++) {
    gates.n = 1;
    gates.term[0] = (irrep){gates.term[0].mul + gated.term[i].mul, 0, 1};
  }
  linear.term[0].mul += gates.term[0].mul;
  put_irreps(m->out, &linear, "layers.%d.irreps_linear", layer);
  put_irreps(m->out, &scalars, "layers.%d.irreps_scalars", layer);
  put_irreps(m->out, &gates, "layers.%d.irreps_gates", layer);
  put_irreps(m->out, &gated, "layers.%d.irreps_gated", layer);
  put_irreps(m->out, out, "layers.%d.irreps_out", layer);
  return linear;
}

static void make_layer(new_maker *m, int layer, int64_t inner) {
  const irreps out = outputs(m, layer);
  put_irreps(m->out, &m->features, "layers.%d.irreps_in", layer);
  const irreps linear = gate(m, layer, &out), messages = new_paths(m, layer, &linear);
  new_map(m, 1, &m->features, &m->features, 0, named("layers.%d.linear_1", layer).text);
  new_map(m, 1, &messages, &linear, 0, named("layers.%d.linear_2", layer).text);
  new_map(m, 1, &m->features, &linear, inner, named("layers.%d.self_connection", layer).text);
  for (int i = 0; i < linear.n && m->q->kind == NEW_NEQUIX; i++) {
    char label[LABEL_BYTES];
    const int64_t n = linear.term[i].mul;
    double *ones = allocate((size_t)n, sizeof *ones);
    for (int64_t k = 0; k < n; k++) ones[k] = 1;
    put_doubles(m->out, ones, n,
                named("layers.%d.norm.%s", layer, irrep_label(linear.term[i], label)).text);
    free(ones);
  }
  m->features = out;
}

static void put_settings(new_maker *m) {
  const bool nequix = m->q->kind == NEW_NEQUIX;
  static const char *const silus[] = {"activation_even", "activation_gate", "radial_activation"};
  put_polynomial(m->out, 6);
  put_string(m->out, nequix ? "none" : "fan_in", "radial_normalization");
  put_silu(m->out, silu_scale, silus, nequix ? 2 : 3);
  if (nequix) put_silu(m->out, 1, silus + 2, 1);
  put_string(m->out, "tanh", "activation_odd");
  put_number(m->out, tanh_scale, "activation_odd_scale");
  put_string(m->out, nequix ? "one_hot" : "linear", "embedding");
  put_string(m->out, m->q->kind == NEW_NEQUIP ? "species" : "linear", "self_connection");
  put_string(m->out, nequix ? "rms" : "none", "norm");
  if (nequix) put_string(m->out, "1e-12", "norm_epsilon");
  if (m->q->kind == NEW_SEVENNET) put_string(m->out, "directions", "harmonics_of");
}

void new_gated(new_maker *m) {
  const bool nequix = m->q->kind == NEW_NEQUIX;
  const int64_t species = m->s->n_species, channels = m->q->c.features.term[0].mul,
                width[] = {channels,
                           nequix         ? 1
                           : channels > 1 ? channels / 2
                                          : 1,
                           1};
  put_settings(m);
  m->features = (irreps){1, {{(int)(nequix ? species : channels), 0, 1}}};
  if (!nequix) new_tensor(m, 1, 2, (const int64_t[]){species, channels}, "embedding");
  for (int layer = 0; layer < m->q->c.layers; layer++)
    make_layer(m, layer, m->q->kind == NEW_NEQUIP ? species : 0);
  put_number(m->out, nequix ? 1 : 2, "readout_layers");
  new_readout(m, width, nequix ? 1 : 2, "readout");
}
