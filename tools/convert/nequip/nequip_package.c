/* tools/convert/nequip/nequip_package.c - NequIP's modules from 0.7 on: in packages (torch.package:
   .nequip.zip), whose source code is not looked at, or TorchScript (.nequip.pth). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

/* The modules of a network, and their classes; another one would change the result. */
static const nequip_module known[] = {{"type_embed", "NodeTypeEmbed"},
                                      {"spharm", "SphericalHarmonicEdgeAttrs"},
                                      {"edge_norm", "EdgeLengthNormalizer"},
                                      {"bessel_encode", "BesselEdgeLengthEncoding"},
                                      {"factor", "ApplyFactor"},
                                      {"per_atom_energy_readout", "ScalarMLP"},
                                      {"per_type_energy_scale_shift", "PerTypeScaleShift"},
                                      {"pair_potential", "ZBL"},
                                      {"total_energy_sum", "AtomwiseReduce"}};

int nequip_check_modules(const nequip *q, value network, const nequip_module *list, size_t n) {
  value all = modules_of(network);
  int layers = 0;
  expect_class(q->t, network, "SequentialGraphNetwork");
  expect(q->t, all && all->kind == PICKLE_DICT, network, "it has no modules");
  for (size_t i = 0; i + 1 < all->n; i += 2) {
    const char *name = all->items[i]->kind == PICKLE_TEXT ? all->items[i]->text : "",
               *class = class_of(all->items[i + 1]);
    size_t k = 0;
    int number, used = 0;
    if (all->items[i + 1]->kind != PICKLE_OBJECT) continue; /* an attribute, in TorchScript */
    class = strrchr(class, ' ') + 1;
    while (k < n && (strcmp(name, list[k].name) != 0 || strcmp(class, list[k].class) != 0)) k++;
    const bool layer = sscanf(name, "layer%3d_convnet%n", &number, &used) == 1 && used &&
                       !name[used] && number == layers && !strcmp(class, "ConvNetLayer");
    layers += layer;
    if (!layer && k == n)
      fail_model(q->t->path, "its module '%s', a %s, is not supported", name, class);
  }
  return layers;
}

void nequip_check_harmonics(const nequip *q, value sh) {
  expect_flag(q->t, sh, "normalize", true);
  expect(q->t, !strcmp(attribute(q->t, sh, "normalization", PICKLE_TEXT)->text, "component"), sh,
         "harmonics that are not normalised by component");
}

static void read_edges(nequip *q, nequip_settings *s) {
  const torch *t = q->t;
  value sh = attribute(t, q->network, "spharm.sh", PICKLE_OBJECT),
        factor = attribute(t, q->network, "factor", PICKLE_OBJECT);
  q->sh = irreps_at(t, q->network, "spharm.irreps_edge_sh");
  nequip_check_harmonics(q, sh);
  s->p = number_of(q->t, q->network, "bessel_encode.cutoff.p");
  expect(t, nequip_near(number_of(q->t, factor, "factor") * s->r_max * s->r_max, 2 * acos(-1.)),
         factor, "a factor of the radial basis that is not 2 pi / r_max^2");
}

/* ---- networks of scalars ---- */

/* Factors of matrices are as nequip_put_network has them. */
static void check_factors(nequip *q, const char *mlp) {
  for (int k = 0; k < 2 * NEQUIP_MATRICES; k++) {
    const model_name at = named("%s.%d", mlp, k);
    value part = maybe(q->network, at.text), bias = part ? maybe(part, "bias") : NULL;
    if (!part || strcmp(class_name(part), "ScalarLinearLayer") != 0) continue;
    const double rows = number_of(q->t, part, "in_features"), gain = k ? sqrt(2) : 1;
    expect(q->t, nequip_near(number_of(q->t, part, "alpha"), gain / sqrt(rows)), part,
           "weights that are not scaled by NequIP's gain and 1 / sqrt(inputs)");
    expect(q->t, !bias || bias->kind == PICKLE_NONE, part, "a bias is not supported");
  }
}

static void read_readout(nequip *q, nequip_settings *s) {
  static const char *const classes[][2] = {{"SiLU", "silu"},
                                           {"Tanh", "tanh"},
                                           {"Sigmoid", "sigmoid"},
                                           {"ShiftedSoftplus", "ssp"},
                                           {"Identity", "identity"}};
  static const char mlp[] = "per_atom_energy_readout.mlp_module.mlp";
  value act = maybe(q->network, named("%s.1", mlp).text);
  check_factors(q, mlp);
  if (!act) return;
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (!strcmp(class_name(act), classes[i][0]))
      snprintf(s->readout, sizeof s->readout, "%s", classes[i][1]);
  if (!*s->readout)
    fail_model(q->t->path, "a readout with the activation %s is not supported", class_name(act));
}

/* ---- layers ---- */

void nequip_read_neighbours(nequip *q, value conv, const char *norm, nequip_settings *s) {
  double factor[NEQUIP_TYPES];
  int n = 1;
  value old = maybe(conv, "scatter_norm_factor"); /* before 0.16; None: 1 */
  if (maybe(conv, norm)) {
    const weights w = weights_at(q->t, conv, named("%s.norm_const", norm).text);
    expect(q->t, w.count == 1 || w.count == q->n_species, conv,
           "it has neither one avg_num_neighbors nor one for each type");
    n = (int)w.count;
    for (int i = 0; i < n; i++) factor[i] = element(&w, i);
  } else {
    factor[0] = old && old->kind == PICKLE_NONE ? 1 : number_of(q->t, conv, "scatter_norm_factor");
  }
  for (int i = 0; i < n; i++) {
    const double neighbours = 1 / (factor[i] * factor[i]);
    expect(q->t,
           !s->n_neighbours || (n == s->n_neighbours && nequip_near(s->neighbours[i], neighbours)),
           conv, "its avg_num_neighbors is another than the layers' before");
    s->neighbours[i] = neighbours;
  }
  s->n_neighbours = n;
}

static void check_layer(nequip *q, int number, nequip_settings *s, nequip_layer *l, int64_t width) {
  value module = attribute(q->t, q->network, named("layer%d_convnet", number).text, PICKLE_OBJECT),
        conv = attribute(q->t, module, "conv", PICKLE_OBJECT);
  s->hidden[number] = irreps_at(q->t, module, "feature_irreps_hidden");
  nequip_find_layer(q, &s->hidden[number], l);
  nequip_check_layer(q, module, "tp_scatter.tp", l, width);
  nequip_put_gate(q, attribute(q->t, module, "equivariant_nonlin", PICKLE_OBJECT), l);
  check_factors(q, named("layer%d_convnet.conv.edge_mlp.mlp", number).text);
  value act = maybe(conv, "edge_mlp.mlp.1");
  expect(q->t, !act || !strcmp(class_name(act), "SiLU"), conv,
         "a radial network with another activation than silu");
  nequip_read_neighbours(q, conv, "avg_num_neighbors_norm", s);
  q->features = l->out;
}

static void check_layers(nequip *q, nequip_settings *s) {
  const weights w = nequip_weights(q, "type_embed.embed_module.weight");
  nequip_layer *l = allocate(1, sizeof *l);
  const int64_t width = w.rank == 2 ? w.shape[1] : 0;
  value more = maybe(q->network, "type_embed.do_categorical_graph_field_embed");
  if (more && (more->kind != PICKLE_BOOL || more->whole))
    fail_model(q->t->path, "'categorical_graph_field_embed' is not supported");
  q->features = (irreps){1, {{(int)width, 0, 1}}};
  for (int n = 0; n < s->n_layers; n++) check_layer(q, n, s, l, width);
  free(l);
}

/* ---- energies ---- */

static void read_energies(nequip *q, nequip_settings *s) {
  value sum = attribute(q->t, q->network, "total_energy_sum", PICKLE_OBJECT);
  expect(q->t,
         !strcmp(attribute(q->t, sum, "reduce", PICKLE_TEXT)->text, "sum") &&
             number_of(q->t, sum, "constant") == 1,
         sum, "the energy is not the sum over atoms");
  s->repels = maybe(q->network, "pair_potential") != NULL;
  if (!s->repels) return;
  s->repulsion_p = maybe(q->network, "pair_potential.cutoff")
                       ? number_of(q->t, q->network, "pair_potential.cutoff.p")
                       : s->p; /* older: the features' own cutoff */
}

/* ModuleDict of GraphModel.model: ForceStressOutput.func: SequentialGraphNetwork. */
static value find_model(const torch *t) {
  static const char sole[] = "sole_model";
  value all = modules_of(t->root);
  if (!strcmp(class_name(t->root), "GraphModel")) return t->root; /* TorchScript */
  expect_class(t, t->root, "ModuleDict");
  expect(t, all && all->kind == PICKLE_DICT, t->root, "it has no modules");
  if (all->n != 2 || all->items[0]->kind != PICKLE_TEXT || strcmp(all->items[0]->text, sole) != 0)
    fail_model(t->path, "it holds %zu models; only a package of one is supported", all->n / 2);
  value graph = all->items[1];
  if (strcmp(class_name(graph), "GraphModel") != 0)
    fail_model(t->path, "its model is a %s; only NequIP's GraphModel is supported",
               class_name(graph));
  return graph;
}

static void read_modules(nequip *q, nequip_settings *s) {
  s->n_layers = nequip_check_modules(q, q->network, known, sizeof known / sizeof *known);
  if (!s->n_layers || s->n_layers > NEQUIP_LAYERS)
    fail_model(q->t->path, "it has %d layers, not 1 to %d", s->n_layers, NEQUIP_LAYERS);
  s->hidden = allocate((size_t)s->n_layers, sizeof *s->hidden);
  read_edges(q, s);
  check_layers(q, s);
  read_readout(q, s);
}

void nequip_read_modules(torch *t, model *out) {
  nequip *q = &(nequip){.t = t, .out = out};
  nequip_settings *s = allocate(1, sizeof *s);
  t->program = "NequIP";
  value graph = find_model(t), inside = attribute(t, graph, "model", PICKLE_OBJECT);
  q->network = maybe(inside, "func") ? maybe(inside, "func") : inside;
  nequip_put_types(q, maybe(graph, "type_names"), s->atomic_number);
  s->r_max = number_of(q->t, q->network, "edge_norm.r_max");
  if (maybe(q->network, "allegro")) {
    allegro_read_modules(q, s);
    read_energies(q, s);
    allegro_put_network(q, s);
  } else {
    read_modules(q, s);
    read_energies(q, s);
    nequip_put_network(q, s);
  }
  free(s->allegro);
  free(s->hidden);
  free(s);
}
