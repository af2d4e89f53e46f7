/* tools/convert/nequip/nequip_deployed.c - NequIP's deployed models, TorchScript of 0.5 and 0.6.

   Only the activation functions are taken from the code, because no attribute names them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/convert/nequip/nequip_reader.h"

static const irrep even_scalar = {.l = 0, .parity = 1};

static void put_whole(nequip *q, value object, const char *path, int rank, const int64_t *shape,
                      const char *name) {
  const weights w = weights_at(q->t, object, path);
  bool fits = w.rank == rank;
  for (int i = 0; fits && i < rank; i++) fits = w.shape[i] == shape[i];
  expect(q->t, fits, object, "the shape of its weights does not fit");
  put_part(q->out, &w, 0, 1, rank, shape, name);
}

/* A linear map of the even scalars to even scalars: one matrix, [channels in][channels out];
   returns the channels out. */
static int64_t put_scalar_map(nequip *q, const char *path, int64_t channels, const char *name) {
  const torch *t = q->t;
  value linear = attribute(t, q->network, path, PICKLE_OBJECT),
        list = attribute(t, linear, "instructions", PICKLE_LIST);
  const irreps in = irreps_at(t, linear, "irreps_in"), out = irreps_at(t, linear, "irreps_out");
  expect(t, whole_at(t, linear, "bias_numel") == 0 && list->n == 1, linear,
         "not one matrix without a bias");
  value map = item(t, list, 0, PICKLE_TUPLE);
  const irrep from = in.term[whole_item(t, map, 0, in.n)];
  const int64_t shape[] = {channels, out.n == 1 ? out.term[0].mul : 0};
  expect(t,
         out.n == 1 && same_irrep(out.term[0], even_scalar) && same_irrep(from, even_scalar) &&
             from.mul == channels && !whole_item(t, map, 1, 1),
         linear, "not a map of all even scalars to even scalars");
  expect(t, nequip_near(item(t, map, 3, PICKLE_REAL)->real, 1 / sqrt((double)channels)), linear,
         "a path is not scaled by 1 / sqrt(channels)");
  const weights w = weights_at(q->t, linear, "weight");
  expect(t, w.count == shape[0] * shape[1], linear, "more weights than its instruction takes");
  put_part(q->out, &w, 0, 1, 2, shape, name);
  return shape[1];
}

/* ---- layers ---- */

static void put_radial(nequip *q, int number, value conv, int64_t n_basis, int64_t n_weights) {
  const torch *t = q->t;
  value net = attribute(t, conv, "fc", PICKLE_OBJECT), part, act;
  int64_t shape[2] = {n_basis, 0};
  int n = 0;
  for (; (part = maybe(net, named("layer%d", n).text)); n++) {
    shape[1] = weights_at(q->t, part, "weight").shape[1];
    const bool fan_in = nequip_near(real_at(t, part, "h_in"), (double)shape[0]) &&
                        real_at(t, part, "var_in") == 1 && real_at(t, part, "var_out") == 1;
    expect(t, fan_in, part, "not scaled by 1 / sqrt(inputs)");
    put_whole(q, part, "weight", 2, shape, named("layers.%d.radial.%d", number, n).text);
    shape[0] = shape[1];
    act = maybe(part, "act");
    if (maybe(net, named("layer%d", n + 1).text))
      nequip_put_activation(q, act, "radial_activation");
    else
      expect(t, act && act->kind == PICKLE_NONE, part,
             "the last layer of a radial network has an activation");
  }
  expect(t, n >= 1 && shape[1] == n_weights, net,
         "a radial network that does not fit the tensor product");
  put_number(q->out, n, "radial_layers");
}

static void convert_layer(nequip *q, int number, value module, int64_t n_basis) {
  const torch *t = q->t;
  value conv = attribute(t, module, "conv", PICKLE_OBJECT),
        gate = attribute(t, module, "equivariant_nonlin", PICKLE_OBJECT);
  irreps hidden = irreps_at(t, gate, "irreps_scalars");
  const irreps gated = irreps_at(t, gate, "irreps_gated");
  nequip_layer l;
  expect(t, hidden.n + gated.n <= MAX_TERMS, gate, "too many irreps");
  for (int i = 0; i < gated.n; i++) hidden.term[hidden.n++] = gated.term[i];
  nequip_find_layer(q, &hidden, &l);
  expect_flag(t, conv, "use_sc", true);
  nequip_check_layer(q, module, "tp", &l, q->n_species);
  put_number(q->out, real_at(t, conv, "avg_num_neighbors"), "avg_num_neighbors");
  put_radial(q, number, conv, n_basis, l.n_weights);
  nequip_put_gate(q, gate, &l);
  nequip_put_layer(q, number, &l, q->n_species);
}

/* ---- the network ---- */

static void read_species(nequip *q) {
  const torch *t = q->t;
  size_t n;
  const char *names = entry_at(q->t, "extra/type_names", &n);
  if (!names || n > 1024 || memchr(names, 0, n))
    fail_model(t->path, "it has no names of species: not a deployed NequIP model");
  char text[1025];
  snprintf(text, sizeof text, "%.*s", (int)n, names);
  for (const char *s = text; *s; q->n_species++) {
    const size_t length = strcspn(s, " ");
    if (!length ||
        strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") < length)
      fail_model(t->path, "its names of species are not supported");
    s += length + (s[length] == ' ');
  }
  expect(t, q->n_species >= 1 && whole_at(t, q->network, "one_hot.num_types") == q->n_species,
         q->network, "as many species as it has names");
  put_string(q->out, text, "species");
}

static int64_t read_edges(nequip *q) {
  const torch *t = q->t;
  value sh = attribute(t, q->network, "spharm_edges.sh", PICKLE_OBJECT),
        basis = attribute(t, q->network, "radial_basis.basis", PICKLE_OBJECT);
  value cutoff = attribute(t, q->network, "radial_basis.cutoff", PICKLE_OBJECT);
  const double r_max = real_at(t, basis, "r_max");
  const int64_t n_basis = whole_at(t, basis, "num_basis");
  q->sh = irreps_at(t, q->network, "spharm_edges.irreps_edge_sh");
  expect(t, q->sh.n >= 1, sh, "no harmonics");
  for (int i = 0; i < q->sh.n; i++)
    expect(t, q->sh.term[i].mul == 1 && q->sh.term[i].l == i, sh,
           "harmonics that are not of degrees 0, 1, 2, ..., once each");
  expect_flag(t, sh, "normalize", true);
  expect(t, !strcmp(attribute(t, sh, "normalization", PICKLE_TEXT)->text, "component"), sh,
         "harmonics that are not normalised by component");
  expect_class(t, basis, "BesselBasis");
  expect_class(t, cutoff, "PolynomialCutoff");
  const bool scaled = r_max > 0 && nequip_near(real_at(t, basis, "prefactor") * r_max, 2) &&
                      nequip_near(real_at(t, cutoff, "_factor") * r_max, 1);
  expect(t, scaled, basis, "a radial basis that is not scaled by its r_max");
  put_edges(q->out, r_max, &q->sh, "bessel", n_basis);
  put_polynomial(q->out, real_at(t, cutoff, "p"));
  put_whole(q, basis, "bessel_weights", 1, &n_basis, "bessel_frequencies");
  return n_basis;
}

/* A number per species; `without` if the model has none. */
static void read_per_species(nequip *q, const char *flag, const char *path, double without,
                             const char *name) {
  value module = maybe(q->network, "per_species_rescale");
  if (module && attribute(q->t, module, flag, PICKLE_BOOL)->whole) {
    put_whole(q, module, path, 1, &q->n_species, name);
    return;
  }
  double numbers[1024];
  for (int64_t i = 0; i < q->n_species; i++) numbers[i] = without;
  put_doubles(q->out, numbers, q->n_species, name);
}

static void put_output(nequip *q) {
  torch *t = q->t;
  const int64_t hidden = put_scalar_map(q, "conv_to_output_hidden.linear",
                                        channels_of(&q->features, even_scalar), "readout.0");
  const bool one = put_scalar_map(q, "output_hidden_to_scalar.linear", hidden, "readout.1") == 1;
  value sum = attribute(t, q->network, "total_energy_sum", PICKLE_OBJECT);
  expect(t, one, q->network, "an atom has several energies");
  expect(t,
         !strcmp(attribute(t, sum, "reduce", PICKLE_TEXT)->text, "sum") &&
             real_at(t, sum, "constant") == 1,
         sum, "the energy is not the sum over atoms");
  put_string(q->out, "2", "readout_layers");
  read_per_species(q, "has_scales", "scales", 1, "species_scale");
  read_per_species(q, "has_shifts", "shifts", 0, "species_shift");
  double scale = 1;
  if (maybe(t->root, "has_scale")) {
    expect_flag(t, t->root, "has_shift", false);
    if (attribute(t, t->root, "has_scale", PICKLE_BOOL)->whole) {
      const weights w = weights_at(t, t->root, "scale_by");
      expect(t, w.count == 1, t->root, "scale_by is not one number");
      scale = element(&w, 0);
    }
  }
  put_number(q->out, scale, "energy_scale");
}

/* Returns the number of layers. Any other module would change the result. */
static int check_modules(nequip *q) {
  int layers = 0;
  static const char *const known[] = {"one_hot",
                                      "spharm_edges",
                                      "radial_basis",
                                      "chemical_embedding",
                                      "conv_to_output_hidden",
                                      "output_hidden_to_scalar",
                                      "per_species_rescale",
                                      "total_energy_sum"};
  value all = modules_of(q->network);
  expect(q->t, all && all->kind == PICKLE_DICT, q->network, "it has no modules");
  for (size_t i = 0; i + 1 < all->n; i += 2) {
    const char *name = all->items[i]->kind == PICKLE_TEXT ? all->items[i]->text : "";
    bool found = all->items[i + 1]->kind != PICKLE_OBJECT;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) found |= !strcmp(name, known[k]);
    int number, used = 0;
    if (sscanf(name, "layer%3d_convnet%n", &number, &used) == 1 && used && !name[used])
      found = true, layers++;
    if (!found) fail_model(q->t->path, "module '%s' is not supported", name);
  }
  return layers;
}

/* RescaleOutput.model: GradientOutput.func: SequentialGraphNetwork. */
static void find_network(nequip *q) {
  static const char *const inside[] = {"model", "func"};
  q->network = q->t->root;
  for (int depth = 0; depth < 4 && !maybe(q->network, "one_hot"); depth++)
    for (int i = 0; i < 2; i++)
      if (maybe(q->network, inside[i])) q->network = maybe(q->network, inside[i]);
  if (!maybe(q->network, "one_hot"))
    fail_model(q->t->path, "a TorchScript archive, but not of a NequIP model: '%s'",
               class_of(q->t->root));
}

void nequip_read_deployed(torch *t, model *out) {
  nequip *q = &(nequip){.t = t, .out = out};
  int n = 0;
  t->program = "NequIP";
  torch_open_constants(t);
  find_network(q);
  const int layers = check_modules(q);
  put_string(out, "nequip", "architecture");
  read_species(q);
  const int64_t n_basis = read_edges(q);
  put_string(out, "fan_in", "radial_normalization");
  put_string(out, "linear", "embedding");
  const int64_t channels =
      put_scalar_map(q, "chemical_embedding.linear", q->n_species, "embedding");
  q->features = (irreps){1, {{(int)channels, 0, 1}}};
  for (value module;
       n < NEQUIP_LAYERS && (module = maybe(q->network, named("layer%d_convnet", n).text)); n++)
    convert_layer(q, n, module, n_basis);
  expect(q->t, n >= 1 && n == layers, q->network, "no layers, or gaps between them");
  put_number(out, n, "n_layers");
  put_string(out, "species", "self_connection");
  put_string(out, "none", "norm");
  put_output(q);
}
