/* tools/convert/nequip/allegro_settings.c - what the tensors of Allegro's networks do not say: from
   their modules, whose classes and options are compared with docs/model-format.md, or from the
   arguments that a checkpoint's network was built with. */
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

static void refuse_activation(const nequip *q, const char *what, const char *name) {
  fail_model(q->t->path, "%s with the activation %s is not supported; silu or none is", what, name);
}

/* Exponent of the cutoff of repulsion, where no Bessel functions have one. */
static const double pair_cutoff = 6;

/* ---- modules ---- */

static const nequip_module known[] = {{"edge_norm", "EdgeLengthNormalizer"},
                                      {"radial_chemical_embed", "SequentialGraphNetwork"},
                                      {"radial_chemical_embed", "TwoBodySplineScalarEmbed"},
                                      {"scalar_embed_mlp", "ScalarMLP"},
                                      {"tensor_embed", "TwoBodySphericalHarmonicTensorEmbed"},
                                      {"allegro", "Allegro_Module"},
                                      {"edge_readout", "ScalarMLP"},
                                      {"edge_eng_sum", "EdgewiseReduce"},
                                      {"per_type_energy_scale_shift", "PerTypeScaleShift"},
                                      {"cutoff", "AddRadialCutoffToData"},
                                      {"pair_potential", "ZBL"},
                                      {"total_energy_sum", "AtomwiseReduce"}},
                           known_pairs[] = {{"bessel_encode", "BesselEdgeLengthEncoding"},
                                            {"type_embed", "ProductTypeEmbedding"}};

static allegro_activation activation_in(const nequip *q, value mlp, const char *what) {
  value act = maybe(mlp, "mlp.1"), first = maybe(mlp, "mlp.0");
  expect(q->t, !maybe(mlp, "mlp.0.bias") || maybe(mlp, "mlp.0.bias")->kind == PICKLE_NONE, mlp,
         "a bias is not supported");
  if (!act || !first || !strcmp(class_name(act), "ScalarLinearLayer")) return ALLEGRO_LINEAR;
  if (!strcmp(class_name(act), "Identity")) return ALLEGRO_IDENTITY;
  if (strcmp(class_name(act), "SiLU") != 0) refuse_activation(q, what, class_name(act));
  return ALLEGRO_SILU;
}

static value module_at(const nequip *q, const char *path) {
  return attribute(q->t, q->network, path, PICKLE_OBJECT);
}

static void check_weights(const nequip *q, const char *path) {
  value weighter = module_at(q, path);
  expect_flag(q->t, weighter, "weight_individual_irreps", true);
  expect(q->t, number_of(q->t, weighter, "alpha") == 1, weighter, "alpha is not 1");
}

static int check_layers(const nequip *q, allegro *y) {
  int n = 0;
  value product;
  while (n < NEQUIP_LAYERS && (product = maybe(q->network, named("allegro.tps.%d", n).text))) {
    value mlp = module_at(q, named("allegro.latents.%d", n).text);
    const allegro_activation act = activation_in(q, mlp, "a latent network");
    value normalized = attribute(q->t, product, "irrep_normalization", PICKLE_TEXT);
    expect_class(q->t, product, "Contracter");
    expect(q->t, !strcmp(normalized->text, "component"), product,
           "products that are not normalised by component");
    expect(q->t, !n || act == y->latent, mlp, "layers differ in their activation");
    y->latent = act;
    n++;
  }
  return n;
}

static void read_pair_modules(const nequip *q, nequip_settings *s) {
  value pair = module_at(q, "radial_chemical_embed");
  if (maybe(pair, "spline")) {
    expect_class(q->t, module_at(q, "radial_chemical_embed.spline"), "PerClassSpline");
    s->allegro->splines = (int)whole_at(q->t, pair, "spline.num_splines");
    s->allegro->span = (int)whole_at(q->t, pair, "spline.spline_span");
    s->p = pair_cutoff;
    return;
  }
  nequip_check_modules(q, pair, known_pairs, sizeof known_pairs / sizeof *known_pairs);
  s->p = number_of(q->t, pair, "bessel_encode.cutoff.p");
}

void allegro_read_modules(nequip *q, nequip_settings *s) {
  allegro *y = s->allegro = allocate(1, sizeof *y);
  nequip_check_modules(q, q->network, known, sizeof known / sizeof *known);
  value sum = module_at(q, "edge_eng_sum");
  read_pair_modules(q, s);
  nequip_check_harmonics(q, module_at(q, "tensor_embed.sh"));
  check_weights(q, "tensor_embed._edge_weighter");
  check_weights(q, "allegro._env_weighter");
  expect(q->t, !strcmp(attribute(q->t, sum, "reduce", PICKLE_TEXT)->text, "sum"), sum,
         "the energy is not a sum over edges");
  q->sh = irreps_at(q->t, q->network, "allegro.tps.0.irreps_in2");
  y->tracked = irreps_at(q->t, q->network, "allegro.tensor_track_allowed_irreps");
  y->two_body = activation_in(q, module_at(q, "scalar_embed_mlp.mlp_module"), "a two-body network");
  y->readout = activation_in(q, module_at(q, "edge_readout.mlp_module"), "a readout");
  s->n_layers = check_layers(q, y);
  nequip_read_neighbours(q, module_at(q, "allegro"), "avg_num_neighbors_norm", s);
  nequip_read_neighbours(q, sum, "norm_module", s);
}

/* ---- arguments ---- */

static allegro_activation activation_of_argument(const nequip_checkpoint *c, const char *key,
                                                 const char *what) {
  value v = pickle_entry(c->config, key);
  const char *name = !v ? "silu" : v->kind == PICKLE_TEXT ? v->text : "";
  if (v && v->kind == PICKLE_NONE) return ALLEGRO_LINEAR;
  if (!strcmp(name, "None") || !strcmp(name, "null")) return ALLEGRO_IDENTITY;
  if (strcmp(name, "silu") != 0) refuse_activation(c->q, what, name);
  return ALLEGRO_SILU;
}

static void read_pair(nequip_checkpoint *c) {
  value embed = nequip_given(c, "radial_chemical_embed"),
        target = embed ? pickle_entry(embed, "_target_") : NULL;
  const char *name = target && target->kind == PICKLE_TEXT ? target->text : "nothing",
             *dot = strrchr(name, '.');
  nequip_checkpoint inner = *c;
  inner.config = embed;
  if (!strcmp(dot ? dot + 1 : name, "TwoBodySplineScalarEmbed")) {
    c->s->allegro->splines = nequip_whole(&inner, "num_splines", 16, 1, 64);
    c->s->allegro->span = nequip_whole(&inner, "spline_span", 12, 0, 64);
    c->s->p = pair_cutoff;
    return;
  }
  if (strcmp(dot ? dot + 1 : name, "TwoBodyBesselScalarEmbed") != 0)
    fail_model(c->q->t->path, "its radial_chemical_embed '%s' is not supported", name);
  c->s->p = nequip_number(&inner, "polynomial_cutoff_p", 6);
  if (nequip_flag(&inner, "bessel_trainable", false))
    c->q->learned[0] = "bessel_encode.bessel_weights";
}

void allegro_read_arguments(nequip_checkpoint *c, bool full) {
  allegro *y = c->s->allegro = allocate(1, sizeof *y);
  if (full) {
    value sh = nequip_given(c, "irreps_edge_sh"),
          tracked = nequip_given(c, "tensor_track_allowed_irreps");
    c->q->sh = nequip_irreps(c, sh, "irreps_edge_sh");
    y->tracked = nequip_irreps(c, tracked, "tensor_track_allowed_irreps");
  } else {
    const int l_max = nequip_whole(c, "l_max", 1, 0, MAX_DEGREE);
    const bool parity = nequip_flag(c, "parity", true);
    c->q->sh = y->tracked = harmonic_irreps(l_max, false);
    for (int i = 0; i < 2 * (l_max + 1) && parity; i++)
      y->tracked.term[i] = (irrep){1, i / 2, i % 2 ? -1 : 1};
    if (parity) y->tracked.n = 2 * (l_max + 1);
  }
  if (!nequip_flag(c, "weight_individual_irreps", true))
    fail_model(c->q->t->path, "its model has weight_individual_irreps = False, which is not "
                              "supported");
  y->backward = !nequip_flag(c, "forward_normalize", true);
  y->two_body = activation_of_argument(c, "scalar_embed_mlp_nonlinearity", "a two-body network");
  y->latent = activation_of_argument(c, "allegro_mlp_nonlinearity", "a latent network");
  y->readout = activation_of_argument(c, "readout_mlp_nonlinearity", "a readout");
  c->s->n_layers = nequip_whole(c, "num_layers", 2, 1, NEQUIP_LAYERS);
  read_pair(c);
}
