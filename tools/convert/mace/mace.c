/* tools/convert/mace/mace.c - MACE's models: modules saved by torch.save (.model) and TorchScript's
   exports, in which they may be wrapped.

   Classes and attributes decide the formulas; irreps that the modules state are compared with those
   of docs/model-format.md.  What is not known is refused, not converted. */
#include "tools/convert/mace/mace_product.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/atoms/elements.h"

value mace_module(const mace *q, value parent, const char *path, const char *class) {
  value v = attribute(q->t, parent, path, PICKLE_OBJECT);
  if (strcmp(class_name(v), class) != 0)
    fail_model(q->t->path, "'%s' is a %s, which is not supported: only %s is", path, class_name(v),
               class);
  return v;
}

weights mace_numbers(const mace *q, value object, const char *path, int64_t count) {
  const weights w = weights_at(q->t, object, path);
  if (w.count != count)
    fail_model(q->t->path, "'%s' of '%s' has %lld numbers, not %lld", path, class_of(object),
               (long long)w.count, (long long)count);
  return w;
}

weights mace_linear(const mace *q, value object, const char *path, int64_t count) {
  value linear = mace_module(q, object, path, "Linear");
  if (maybe(linear, "bias_numel") && number_of(q->t, linear, "bias_numel") != 0)
    fail_model(q->t->path, "'%s' of '%s' has a bias, which is not supported", path,
               class_of(object));
  return mace_numbers(q, linear, "weight", count);
}

void mace_expect_silu(const mace *q, value object, const char *path) {
  char name[ACTIVATION_BYTES];
  double scale;
  activation_of(q->t, attribute(q->t, object, path, PICKLE_OBJECT), name, &scale);
  if (strcmp(name, "silu") != 0 || fabs(scale - silu_scale) > 1e-6)
    fail_model(q->t->path, "'%s' of '%s' is %s, times %g; only silu is understood, times %g", path,
               class_of(object), name, scale, silu_scale);
}

/* ---- what is there ---- */

/* Modules of libraries that keep what is not read here; MACE's programs bring them back. */
static void check_library(const mace *q) {
  value product = maybe(q->network, "products.0.symmetric_contractions"),
        messages = maybe(q->network, "interactions.0.conv_tp");
  if (!strncmp(class_of(messages), "openequivariance", 16))
    fail_model(q->t->path,
               "its messages are those of OpenEquivariance: 'python -m mace.cli.convert_oeq_e3nn "
               "X.model --return_model --output_model e3nn.model', of mace-torch, makes "
               "X.e3nn.model, which can be converted");
  if ((of_cuequivariance(product) && !maybe(product, "f.m.path_indices")) ||
      (of_cuequivariance(messages) && !maybe(messages, "m.path_indices")))
    fail_model(q->t->path,
               "it was saved where cuEquivariance has no kernels: 'mace_cueq_to_e3nn X.model "
               "--return_model --output_model e3nn.model', of mace-torch, makes X.e3nn.model, "
               "which can be converted");
}

/* An attribute of the network that is not set, or is not there. */
static void expect_unset(const mace *q, const char *key) {
  value v = maybe(q->network, key);
  if (v && v->kind != PICKLE_NONE && (v->kind != PICKLE_BOOL || v->whole))
    fail_model(q->t->path, "'%s' has '%s' set, which is not supported", class_of(q->network), key);
}

/* Any other module would change the result. */
static void check_modules(const mace *q) {
  static const char *const known[] = {
      "node_embedding",     "radial_embedding", "spherical_harmonics",
      "atomic_energies_fn", "interactions",     "products",
      "readouts",           "scale_shift",      "pair_repulsion_fn",
      "joint_embedding",    "embedding_readout"};
  static const char *const unset[] = {"use_so3"};
  value all = modules_of(q->network);
  if (!all || all->kind != PICKLE_DICT)
    fail_model(q->t->path, "'%s' has no modules", class_of(q->network));
  for (size_t i = 0; i + 1 < all->n; i += 2) {
    const char *name = all->items[i]->kind == PICKLE_TEXT ? all->items[i]->text : "";
    bool found = all->items[i + 1]->kind != PICKLE_OBJECT;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) found |= !strcmp(name, known[k]);
    if (!found) fail_model(q->t->path, "module '%s' is not supported", name);
  }
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) expect_unset(q, unset[i]);
}

/* Whether there are modules 0 ... n - 1 in a list, and no more. */
static bool has_modules(const mace *q, const char *name, int n) {
  char path[NAME_BYTES];
  value list = mace_module(q, q->network, name, "ModuleList");
  for (int i = 0; i <= n; i++) {
    snprintf(path, sizeof path, "%d", i);
    if (!maybe(list, path) == (i < n)) return false;
  }
  return true;
}

/* Products are one for each interaction, and readouts, if there is not one for the last alone; old
   models do not say how many there are. */
static void count_layers(mace *q) {
  q->n_layers = 1;
  while (q->n_layers < MACE_LAYERS && !has_modules(q, "interactions", q->n_layers)) q->n_layers++;
  const double n = q->n_layers;
  if (!has_modules(q, "interactions", q->n_layers) ||
      (maybe(q->network, "num_interactions") &&
       number_of(q->t, q->network, "num_interactions") != n))
    fail_model(q->t->path, "its interactions are not 1 to %d, as many as 'num_interactions' says",
               MACE_LAYERS);
  if (!has_modules(q, "products", q->n_layers))
    fail_model(q->t->path, "'products' does not have one module for each of the %d interactions",
               q->n_layers);
  q->last_readout_only = !has_modules(q, "readouts", q->n_layers);
  if (q->last_readout_only && !has_modules(q, "readouts", 1))
    fail_model(q->t->path,
               "'readouts' does not have one module for each of the %d interactions, or one",
               q->n_layers);
  put_number(q->out, n, "n_layers");
}

/* ---- the network ---- */

/* Heads are named in the attribute `heads`; older models have one without a name. */
static void choose_head(mace *q, const char *wanted) {
  enum { HEADS = 64 };
  const char *names[HEADS] = {"Default"};
  value list = maybe(q->network, "heads");
  q->n_heads = 1;
  if (list && (list->kind == PICKLE_LIST || list->kind == PICKLE_TUPLE)) {
    if (list->n < 1 || list->n > HEADS) fail_model(q->t->path, "it has %zu heads", list->n);
    q->n_heads = (int)list->n;
    for (int i = 0; i < q->n_heads && list->items[0]->kind != PICKLE_NONE; i++)
      names[i] = item(q->t, list, (size_t)i, PICKLE_TEXT)->text;
    if (list->items[0]->kind == PICKLE_NONE && q->n_heads > 1)
      fail_model(q->t->path, "it has heads without names");
  }
  q->out->has_heads = true;
  q->head = chosen_of(q->t->path, wanted, names, q->n_heads, "head", "heads");
}

/* A tensor, or a list of numbers. */
static int atomic_numbers_of(const mace *q, double z[MACE_ELEMENTS]) {
  value list = maybe(q->network, "atomic_numbers");
  const bool listed = list && list->kind == PICKLE_LIST;
  const weights w = listed ? (weights){.count = (int64_t)list->n}
                           : numbers_at(q->t, q->network, "atomic_numbers");
  if (w.count < 1 || w.count >= MACE_ELEMENTS)
    fail_model(q->t->path, "it has %lld elements", (long long)w.count);
  for (int i = 0; i < w.count; i++) {
    if (!listed) z[i] = element(&w, i);
    else if (!plain_number(list->items[i], &z[i]))
      fail_model(q->t->path, "its atomic numbers are not numbers");
  }
  return (int)w.count;
}

static void read_species(mace *q) {
  double z[MACE_ELEMENTS];
  bool known[CLB_ELEMENTS + 1] = {false};
  q->n_species = atomic_numbers_of(q, z);
  for (int s = 0; s < q->n_species; s++) {
    if (!(z[s] >= 1 && z[s] <= CLB_ELEMENTS && z[s] == floor(z[s])) || known[(int)z[s]])
      fail_model(q->t->path, "its atomic numbers are not those of different elements");
    known[q->atomic_number[s] = (int)z[s]] = true;
  }
  put_species(q->out, q->atomic_number, q->n_species);
}

static double positive(const mace *q, value object, const char *path) {
  const double x = number_of(q->t, object, path);
  if (!(x > 0 && isfinite(x)))
    fail_model(q->t->path, "'%s' of '%s' is %g; it must be positive", path, class_of(object), x);
  return x;
}

/* Of a table by atomic number, the numbers of the species. */
static void put_radii(const mace *q, value object, const char *name) {
  const weights w = weights_at(q->t, object, "covalent_radii");
  double radius[MACE_ELEMENTS];
  for (int s = 0; s < q->n_species; s++) {
    if (q->atomic_number[s] >= w.count)
      fail_model(q->t->path, "'%s' has no radius for element %d", class_of(object),
                 q->atomic_number[s]);
    radius[s] = element(&w, q->atomic_number[s]);
    if (!(radius[s] > 0))
      fail_model(q->t->path, "'%s' has the radius %g for element %d", class_of(object), radius[s],
                 q->atomic_number[s]);
  }
  put_doubles(q->out, radius, q->n_species, name);
}

static void put_basis(mace *q, value radial, double r_max) {
  value basis = mace_module(q, radial, "bessel_fn", "BesselBasis");
  const weights w = weights_at(q->t, basis, "bessel_weights");
  double x[MACE_BASIS];
  if (w.count < 1 || w.count > MACE_BASIS)
    fail_model(q->t->path, "it has %lld radial functions", (long long)w.count);
  q->n_basis = w.count;
  q->basis_factor = positive(q, basis, "prefactor") * r_max / 2;
  for (int64_t i = 0; i < q->n_basis; i++) x[i] = element(&w, i) * r_max;
  put_doubles(q->out, x, q->n_basis, "bessel_frequencies");
}

static void put_distances(mace *q, value radial) {
  value transform = maybe(radial, "distance_transform"), applied = maybe(radial, "apply_cutoff"),
        cutoff = mace_module(q, radial, "cutoff_fn", "PolynomialCutoff");
  put_polynomial(q->out, number_of(q->t, cutoff, "p"));
  put_string(q->out,
             applied && applied->kind == PICKLE_BOOL && !applied->whole ? "weights" : "basis",
             "cutoff_of");
  if (!transform || transform->kind == PICKLE_NONE) {
    put_string(q->out, "none", "distance_transform");
    return;
  }
  mace_module(q, radial, "distance_transform", "AgnesiTransform");
  put_string(q->out, "agnesi", "distance_transform");
  static const char *const keys[] = {"a", "p", "q"};
  for (int i = 0; i < 3; i++)
    put_number(q->out, number_of(q->t, transform, keys[i]), "agnesi_%s", keys[i]);
  put_radii(q, transform, "agnesi_radii");
}

static void read_edges(mace *q) {
  value radial = mace_module(q, q->network, "radial_embedding", "RadialEmbeddingBlock"),
        harmonics = mace_module(q, q->network, "spherical_harmonics", "SphericalHarmonics");
  const double r_max = positive(q, q->network, "r_max");
  q->sh = irreps_at(q->t, harmonics, "irreps_out");
  q->l_max = q->sh.n - 1;
  for (int l = 0; l <= q->l_max; l++)
    if (q->sh.term[l].mul != 1 || q->sh.term[l].l != l || q->sh.term[l].parity != (l % 2 ? -1 : 1))
      fail_model(q->t->path,
                 "its harmonics are not those of degrees 0, 1, ... with natural parity");
  expect_flag(q->t, harmonics, "normalize", true);
  expect(q->t, !strcmp(attribute(q->t, harmonics, "normalization", PICKLE_TEXT)->text, "component"),
         harmonics, "harmonics that are not normalised by component");
  put_basis(q, radial, r_max);
  put_edges(q->out, r_max, &q->sh, "bessel", q->n_basis);
  put_distances(q, radial);
}

static void put_embedding(mace *q) {
  value block = mace_module(q, q->network, "node_embedding", "LinearNodeEmbeddingBlock"),
        linear = mace_module(q, block, "linear", "Linear");
  q->features = irreps_at(q->t, linear, "irreps_out");
  if (q->features.n != 1 || q->features.term[0].l || q->features.term[0].parity != 1)
    fail_model(q->t->path, "its first features are not scalars alone");
  const int64_t shape[2] = {q->n_species, q->features.term[0].mul};
  const weights w = mace_linear(q, block, "linear", shape[0] * shape[1]);
  put_string(q->out, "linear", "embedding");
  put_part(q->out, &w, 0, 1, 2, shape, "embedding");
}

/* A number of the chosen head; there may be one for all. */
static double of_head(const mace *q, value object, const char *path) {
  const weights w = weights_at(q->t, object, path);
  if (w.count != 1 && w.count != q->n_heads)
    fail_model(q->t->path, "'%s' of '%s' has %lld numbers, not one for each of %d heads", path,
               class_of(object), (long long)w.count, q->n_heads);
  return element(&w, w.count == 1 ? 0 : q->head);
}

static double scale_of(const mace *q) {
  if (strcmp(class_name(q->network), "ScaleShiftMACE") != 0) return 1;
  return of_head(q, mace_module(q, q->network, "scale_shift", "ScaleShiftBlock"), "scale");
}

static void put_energies(mace *q) {
  value block = mace_module(q, q->network, "atomic_energies_fn", "AtomicEnergiesBlock");
  const weights w = weights_at(q->t, block, "atomic_energies");
  const bool each = w.count != q->n_species;
  double scale = scale_of(q), shift = 0, scales[MACE_ELEMENTS], shifts[MACE_ELEMENTS];
  if (each && w.count != (int64_t)q->n_heads * q->n_species)
    fail_model(q->t->path, "its 'atomic_energies' are not one for each of %d elements",
               q->n_species);
  if (!strcmp(class_name(q->network), "ScaleShiftMACE")) {
    value module = mace_module(q, q->network, "scale_shift", "ScaleShiftBlock");
    shift = of_head(q, module, "shift");
  }
  for (int s = 0; s < q->n_species; s++) {
    scales[s] = scale;
    shifts[s] = element(&w, (each ? q->head * q->n_species : 0) + s) + shift;
  }
  put_string(q->out, "1", "energy_scale");
  put_per_species(q->out, scales, shifts, q->n_species);
}

static void put_repulsion(mace *q) {
  value pair = maybe(q->network, "pair_repulsion_fn");
  double screening[MACE_ELEMENTS];
  if (!pair || pair->kind == PICKLE_NONE) {
    put_string(q->out, "none", "pair_repulsion");
    return;
  }
  mace_module(q, q->network, "pair_repulsion_fn", "ZBLBasis");
  const weights c = mace_numbers(q, pair, "c", 4);
  const double power = number_of(q->t, pair, "a_exp"), length = positive(q, pair, "a_prefactor");
  for (int s = 0; s < q->n_species; s++)
    screening[s] = pow(q->atomic_number[s], power) / (length * 0.529);
  put_string(q->out, "zbl", "pair_repulsion");
  put_number(q->out, number_of(q->t, pair, "p"), "zbl_p");
  put_part(q->out, &c, 0, 1, 1, (const int64_t[]){4}, "zbl_coefficients");
  put_doubles(q->out, screening, q->n_species, "zbl_screening");
  put_radii(q, pair, "zbl_radii");
}

void convert_mace(torch *t, value network, const char *head, model *out) {
  mace *q = &(mace){.t = t, .network = network, .out = out};
  t->program = "MACE";
  if (strcmp(class_name(network), "MACE") != 0 &&
      strcmp(class_name(network), "ScaleShiftMACE") != 0)
    fail_model(t->path, "a '%s', which is not supported: only MACE and ScaleShiftMACE are",
               class_name(network));
  check_library(q);
  check_modules(q);
  choose_head(q, head);
  put_string(out, "mace", "architecture");
  read_species(q);
  read_edges(q);
  put_embedding(q);
  mace_states(q, scale_of(q));
  count_layers(q);
  q->gated = mace_is_gated(attribute(t, network, "interactions.0", PICKLE_OBJECT));
  static const char *const silus[] = {"readout_activation", "radial_activation"};
  put_string(out, q->gated ? "layer" : "fan_in", "radial_normalization");
  put_silu(out, silu_scale, silus, 1);
  put_silu(out, q->gated ? 1 : silu_scale, silus + 1, 1);
  if (clb_context_create("cpu:interpreter", &q->ctx)) fail_model(t->path, "%s", clb_error(q->ctx));
  for (int layer = 0; layer < q->n_layers; layer++) mace_layer(q, layer);
  clb_context_destroy(&q->ctx);
  put_energies(q);
  put_repulsion(q);
}
