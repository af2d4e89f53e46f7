/* tools/convert/nequip/nequip_checkpoint.c - NequIP's checkpoints (Lightning: .ckpt): tensors by
   name, and the arguments that the network was built with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

/* Versions 0.N in which meanings changed: features of one parity are no longer even ones, and both
   parities of a degree are neighbours; pair potentials have cutoffs of their own. */
enum { NATURAL_PARITY = 16, OWN_CUTOFFS = 17, NEWEST = 1000 };

/* ---- builders ---- */

/* NequIP's own sizes of networks. */
static const struct {
  const char *name;
  int layers, l_max, features[MAX_DEGREE + 1];
} presets[] = {{"S", 2, 1, {128, 64}},
               {"M", 4, 2, {128, 64, 32}},
               {"L", 6, 3, {128, 64, 32, 32}},
               {"XL", 6, 4, {320, 96, 64, 32, 32}}};

static size_t preset_of(const nequip_checkpoint *c) {
  value name = nequip_given(c, "preset");
  size_t i = 0;
  while (i < 4 && !(name && name->kind == PICKLE_TEXT && !strcasecmp(name->text, presets[i].name)))
    i++;
  if (i == 4) fail_model(c->q->t->path, "its model's 'preset' is not S, M, L or XL");
  return i;
}

/* Features of each layer: of all but the last one by degree, and then scalars. */
static void by_degree(nequip_checkpoint *c, bool preset) {
  nequip_settings *s = c->s;
  const size_t size = preset ? preset_of(c) : 0;
  const int l_max = nequip_whole(c, "l_max", preset ? presets[size].l_max : 1, 0, MAX_DEGREE);
  const bool parity = nequip_flag(c, "parity", !preset), old = c->version < NATURAL_PARITY;
  value features = nequip_given(c, "num_features");
  irreps hidden = {.n = 0};
  int mul[MAX_DEGREE + 1];
  s->n_layers = nequip_whole(c, "num_layers", preset ? presets[size].layers : 4, 1, NEQUIP_LAYERS);
  s->hidden = allocate((size_t)s->n_layers, sizeof *s->hidden);
  c->q->sh = harmonic_irreps(l_max, old && !parity);
  if (features && features->kind == PICKLE_LIST && features->n != (size_t)l_max + 1)
    fail_model(c->q->t->path, "its model's 'num_features' are not one for each degree");
  for (int l = 0; l <= l_max; l++)
    mul[l] = features && features->kind == PICKLE_LIST
                 ? (int)whole_item(c->q->t, features, (size_t)l, MAX_CHANNELS + 1)
             : features || !preset ? nequip_whole(c, "num_features", 32, 1, MAX_CHANNELS)
                                   : presets[size].features[l];
  for (int i = 0; i < 2 * (l_max + 1); i++) {
    const int l = old ? i % (l_max + 1) : i / 2, p = (old ? i > l_max : i % 2) ? -1 : 1;
    if (parity || p == (l % 2 && !old ? -1 : 1)) hidden.term[hidden.n++] = (irrep){mul[l], l, p};
  }
  for (int n = 0; n < s->n_layers; n++) s->hidden[n] = hidden;
  s->hidden[s->n_layers - 1] = (irreps){1, {{mul[0], 0, 1}}};
}

static void in_full(nequip_checkpoint *c) {
  value list = nequip_given(c, "feature_irreps_hidden"), sh = nequip_given(c, "irreps_edge_sh");
  if (!list || list->kind != PICKLE_LIST || !list->n || list->n > NEQUIP_LAYERS)
    fail_model(c->q->t->path, "its model's 'feature_irreps_hidden' are not those of 1 to %d layers",
               NEQUIP_LAYERS);
  c->s->n_layers = (int)list->n;
  c->s->hidden = allocate(list->n, sizeof *c->s->hidden);
  for (size_t n = 0; n < list->n; n++)
    c->s->hidden[n] = nequip_irreps(c, list->items[n], "feature_irreps_hidden");
  c->q->sh = sh && sh->kind == PICKLE_WHOLE
                 ? harmonic_irreps(nequip_whole(c, "irreps_edge_sh", 0, 0, MAX_DEGREE), false)
                 : nequip_irreps(c, sh, "irreps_edge_sh");
}

/* Modifiers that change no result. */
static void check_modifiers(const nequip_checkpoint *c, value list) {
  static const char *const harmless[] = {"enable_OpenEquivariance", "enable_CuEquivariance",
                                         "enable_TritonContracter",
                                         "enable_CuEquivarianceContracter"};
  for (size_t i = 0; list && i < list->n; i++) {
    value name = list->kind == PICKLE_LIST ? pickle_entry(list->items[i], "modifier") : NULL;
    bool good = false;
    for (size_t k = 0; k < 4 && name && name->kind == PICKLE_TEXT; k++)
      good |= !strcmp(name->text, harmless[k]);
    if (!good)
      fail_model(c->q->t->path,
                 "its model is modified by '%s', which is not supported in a checkpoint: package "
                 "it with `nequip-package build` and convert the .nequip.zip",
                 name && name->kind == PICKLE_TEXT ? name->text : "what has no name");
  }
}

static void find_builder(nequip_checkpoint *c) {
  enum { IN_FULL = 3, ALLEGRO = 5, MODIFY = 7, BUILDERS };
  static const char *const names[BUILDERS] = {"NequIPGNNModel",           "PresetNequIPGNNModel",
                                              "NequIPGNNEnergyModel",     "FullNequIPGNNModel",
                                              "FullNequIPGNNEnergyModel", "AllegroModel",
                                              "FullAllegroModel",         "modify"};
  for (int depth = 0; depth < 4; depth++) {
    value target = nequip_given(c, "_target_");
    const char *text = target && target->kind == PICKLE_TEXT ? target->text : "nothing",
               *dot = strrchr(text, '.');
    size_t i = 0;
    while (i < BUILDERS && strcmp(dot ? dot + 1 : text, names[i]) != 0) i++;
    if (i == BUILDERS)
      fail_model(c->q->t->path,
                 "its model is built by '%s', which does not say what it is: package it with "
                 "`nequip-package build` and convert the .nequip.zip",
                 text);
    if (i < ALLEGRO) c->s->p = nequip_number(c, "polynomial_cutoff_p", 6);
    if (i < IN_FULL) by_degree(c, i == 1);
    else if (i < ALLEGRO) in_full(c);
    else if (i < MODIFY) allegro_read_arguments(c, i > ALLEGRO);
    else {
      check_modifiers(c, nequip_given(c, "modifiers"));
      c->config = nequip_given(c, "model");
      if (!c->config) break;
      continue;
    }
    return;
  }
  fail_model(c->q->t->path, "it does not say how its model is built");
}

/* ---- what builders have in common ---- */

static void refuse_options(const nequip_checkpoint *c) {
  value type = nequip_given(c, "convnet_nonlinearity_type");
  if (nequip_flag(c, "convnet_resnet", false))
    fail_model(c->q->t->path, "its model has convnet_resnet = True, which is not supported");
  if (nequip_given(c, "categorical_graph_field_embed"))
    fail_model(c->q->t->path, "'categorical_graph_field_embed' is not supported");
  if (type && (type->kind != PICKLE_TEXT || strcmp(type->text, "gate") != 0))
    fail_model(c->q->t->path, "its model has a convnet_nonlinearity_type other than 'gate', which "
                              "is not supported");
}

static void put_activation(const nequip_checkpoint *c, const char *argument, const char *parity,
                           const char *otherwise, const char *key) {
  static const char *const known[] = {"silu", "tanh", "abs", "ssp"};
  value dict = nequip_given(c, argument), name = dict ? pickle_entry(dict, parity) : NULL;
  const char *text = name && name->kind == PICKLE_TEXT ? name->text : otherwise;
  size_t i = 0;
  while (i < 4 && strcmp(text, known[i]) != 0) i++;
  if (i == 4)
    fail_model(c->q->t->path, "its model's '%s' has '%s', which is not supported", argument, text);
  if (*parity == 'o' && strcmp(text, "tanh") != 0)
    fail_model(c->q->t->path, "its model's '%s' has '%s' for odd scalars; only tanh is supported",
               argument, text);
  put_string(c->q->out, text, "%s", key);
  put_number(c->q->out, moment_scale(text), "%s_scale", key);
}

static void put_activations(const nequip_checkpoint *c) {
  put_activation(c, "convnet_nonlinearity_scalars", "e", "silu", "activation_even");
  if (c->q->odd) put_activation(c, "convnet_nonlinearity_scalars", "o", "tanh", "activation_odd");
  if (c->q->gated) put_activation(c, "convnet_nonlinearity_gates", "e", "silu", "activation_gate");
}

static void read_neighbours(nequip_checkpoint *c, value names) {
  value v = nequip_given(c, "avg_num_neighbors");
  nequip_settings *s = c->s;
  s->n_neighbours = v && v->kind == PICKLE_DICT ? (int)c->q->n_species : 1;
  s->neighbours[0] = 1;
  if (v && v->kind != PICKLE_DICT) s->neighbours[0] = nequip_number(c, "avg_num_neighbors", 1);
  for (int i = 0; v && v->kind == PICKLE_DICT && i < s->n_neighbours; i++) {
    const char *name = item(c->q->t, names, (size_t)i, PICKLE_TEXT)->text;
    value each = pickle_entry(v, name);
    if (!each || !plain_number(each, &s->neighbours[i]))
      fail_model(c->q->t->path, "its model's 'avg_num_neighbors' has none for type '%s'", name);
  }
}

static void read_readout(nequip_checkpoint *c) {
  static const char *const kinds[][2] = {{"silu", "silu"},     {"tanh", "tanh"},
                                         {"ssp", "ssp"},       {"sigmoid", "sigmoid"},
                                         {"None", "identity"}, {"null", "identity"}};
  value v = pickle_entry(c->config, "readout_mlp_nonlinearity");
  const char *name = !v ? "silu" : v->kind == PICKLE_TEXT ? v->text : "";
  if (!(nequip_number(c, "readout_mlp_hidden_layers_depth", 0) > 0)) return;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(name, kinds[i][0]))
      snprintf(c->s->readout, sizeof c->s->readout, "%s", kinds[i][1]);
  if (*name && !*c->s->readout)
    fail_model(c->q->t->path, "a readout with the activation %s is not supported", name);
}

static void read_repulsion(nequip_checkpoint *c) {
  value v = nequip_given(c, "pair_potential"), target = v ? pickle_entry(v, "_target_") : NULL,
        p = v ? pickle_entry(v, "polynomial_cutoff_p") : NULL;
  const char *name = target && target->kind == PICKLE_TEXT ? target->text : "", *dot;
  if (!v) return;
  dot = strrchr(name, '.');
  if (!dot || strcmp(dot + 1, "ZBL") != 0)
    fail_model(c->q->t->path, "its pair potential '%s' is not supported; ZBL is", name);
  c->s->repels = true;
  c->s->repulsion_p = c->version < OWN_CUTOFFS ? c->s->p : 6;
  if (p && !plain_number(p, &c->s->repulsion_p))
    fail_model(c->q->t->path, "its pair potential's 'polynomial_cutoff_p' is not a number");
}

static void find_learned(nequip_checkpoint *c) {
  static const char *const flags[][2] = {
      {"bessel_trainable", "bessel_encode.bessel_weights"},
      {"per_type_energy_scales_trainable", "per_type_energy_scale_shift.scales"},
      {"per_type_energy_shifts_trainable", "per_type_energy_scale_shift.shifts"}};
  for (int i = 0; i < 3; i++)
    if (nequip_flag(c, flags[i][0], false)) c->q->learned[i] = flags[i][1];
}

/* ---- the file ---- */

static int version_of(const torch *t) {
  value info = pickle_entry(pickle_entry(t->root, "hyper_parameters"), "info_dict"),
        versions = info ? pickle_entry(info, "versions") : NULL,
        version = versions ? pickle_entry(versions, "nequip") : NULL;
  int major, minor;
  const bool said = version && version->kind == PICKLE_TEXT &&
                    sscanf(version->text, "%4d.%4d", &major, &minor) == 2;
  return said && !major ? minor : NEWEST;
}

static value dict_in(const torch *t, value dict, const char *key) {
  value v = pickle_entry(dict, key);
  if (!v || v->kind != PICKLE_DICT)
    fail_model(t->path, "a checkpoint, but not one of NequIP's: it has no '%s'", key);
  return v;
}

/* The network's tensors are all below the same modules. */
static void find_prefix(nequip *q) {
  static const char *const prefixes[] = {"model.sole_model.model.func.", "model.sole_model.model."};
  for (int i = 0; i < 2 && !q->prefix; i++)
    if (pickle_entry(q->state, named("%sedge_norm._rmax_recip", prefixes[i]).text))
      q->prefix = prefixes[i];
  if (!q->prefix)
    fail_model(q->t->path, "a checkpoint, but not of one NequIP model: it has no tensor "
                           "'model.sole_model.model.func.edge_norm._rmax_recip'");
  q->averaged = pickle_entry(q->state, "ema.ema_weight_0") != NULL;
}

static void put_nequip(nequip_checkpoint *c) {
  refuse_options(c);
  read_readout(c);
  nequip_put_network(c->q, c->s);
  put_activations(c);
}

void nequip_read_checkpoint(torch *t, model *out) {
  nequip *q = &(nequip){.t = t, .out = out};
  nequip_checkpoint *c = &(nequip_checkpoint){.q = q, .s = allocate(1, sizeof *c->s)};
  t->program = "NequIP";
  q->state = dict_in(t, t->root, "state_dict");
  c->config = dict_in(t, dict_in(t, t->root, "hyper_parameters"), "model");
  c->version = version_of(t);
  find_builder(c);
  find_prefix(q);
  value names = nequip_given(c, "type_names");
  nequip_put_types(q, names, c->s->atomic_number);
  c->s->r_max = nequip_number(c, "r_max", 0);
  find_learned(c);
  read_neighbours(c, names);
  read_repulsion(c);
  if (c->s->allegro) allegro_put_network(q, c->s);
  else put_nequip(c);
  free(c->s->allegro);
  free(c->s->hidden);
  free(c->s);
}
