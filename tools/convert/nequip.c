/* tools/convert/nequip.c - NequIP's deployed models.

   Only the activation functions are taken from the code, because no attribute names them. The
   file's own attributes (normalisations, irreps of each step) are compared with
   docs/model-format.md, so that a model that computes something else is refused, not converted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/convert/maps.h"

enum { MAX_LAYERS = 64 };

static const irrep even_scalar = {.l = 0, .parity = 1};

typedef struct {
  torch *archive;
  value network; /* the sequence of modules */
  model *out;
  int64_t n_species;
  int n_layers;
  irreps sh, features; /* features: of the atoms, after the current layer */
} nequip;

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

static void put_whole(nequip *q, value object, const char *path, int rank, const int64_t *shape,
                      const char *name) {
  const weights w = weights_at(q->archive, object, path);
  bool fits = w.rank == rank;
  for (int i = 0; fits && i < rank; i++) fits = w.shape[i] == shape[i];
  expect(q->archive, fits, object, "the shape of its weights does not fit");
  put_part(q->out, &w, 0, 1, rank, shape, name);
}

/* ---- linear maps ---- */

/* One instruction of a Linear: (in, out, (channels in, channels out), 1/sqrt(channels in)). */
typedef struct {
  int in, out;
  int64_t shape[2];
} map;

static map map_of(const torch *t, value linear, size_t i, const irreps *in, const irreps *out) {
  value instruction = item(t, attribute(t, linear, "instructions", PICKLE_LIST), i, PICKLE_TUPLE),
        shape = item(t, instruction, 2, PICKLE_TUPLE);
  const map m = {
      (int)whole_item(t, instruction, 0, in->n),
      (int)whole_item(t, instruction, 1, out->n),
      {whole_item(t, shape, 0, MAX_CHANNELS + 1), whole_item(t, shape, 1, MAX_CHANNELS + 1)}};
  const bool fits = same_irrep(in->term[m.in], out->term[m.out]) &&
                    in->term[m.in].mul == m.shape[0] && out->term[m.out].mul == m.shape[1];
  expect(t, fits, linear, "an instruction does not fit its irreps");
  expect(t, near(item(t, instruction, 3, PICKLE_REAL)->real, 1 / sqrt((double)m.shape[0])), linear,
         "a path is not scaled by 1 / sqrt(channels)");
  return m;
}

/* PREFIX.IRREP, one matrix per irrep. */
static void put_linear(nequip *q, value linear, const irreps *in, const irreps *out,
                       const char *prefix) {
  const torch *t = q->archive;
  const weights w = weights_at(q->archive, linear, "weight");
  const size_t n = attribute(t, linear, "instructions", PICKLE_LIST)->n;
  char label[LABEL_BYTES];
  int64_t first = 0;
  expect(t, whole_at(t, linear, "bias_numel") == 0, linear,
         "a linear map with a bias is not supported");
  for (size_t i = 0; i < n; i++) {
    const map m = map_of(t, linear, i, in, out);
    put_part(q->out, &w, first, 1, 2, m.shape,
             named("%s.%s", prefix, irrep_label(out->term[m.out], label)).text);
    first += m.shape[0] * m.shape[1];
  }
  expect(t, first == w.count, linear, "more weights than its instructions take");
}

/* A linear map of the even scalars to even scalars: one matrix, [channels in][channels out];
   returns the channels out. */
static int64_t put_scalar_map(nequip *q, const char *path, int64_t channels, const char *name) {
  const torch *t = q->archive;
  value linear = attribute(t, q->network, path, PICKLE_OBJECT);
  const irreps in = irreps_at(t, linear, "irreps_in"), out = irreps_at(t, linear, "irreps_out");
  expect(t,
         whole_at(t, linear, "bias_numel") == 0 &&
             attribute(t, linear, "instructions", PICKLE_LIST)->n == 1,
         linear, "not one matrix without a bias");
  const map m = map_of(t, linear, 0, &in, &out);
  expect(t, out.n == 1 && same_irrep(out.term[0], even_scalar) && m.shape[0] == channels, linear,
         "not a map of all even scalars to even scalars");
  const weights w = weights_at(q->archive, linear, "weight");
  expect(t, w.count == m.shape[0] * m.shape[1], linear, "more weights than its instruction takes");
  put_part(q->out, &w, 0, 1, 2, m.shape, name);
  return m.shape[1];
}

/* ---- activations ---- */

/* KEY: the function's name, KEY_scale: the factor of its value. All layers must agree. */
static void put_activation(nequip *q, value act, const char *key) {
  char name[ACTIVATION_BYTES];
  double scale;
  activation_of(q->archive, act, name, &scale);
  put_string(q->out, name, "%s", key);
  put_number(q->out, scale, "%s_scale", key);
}

/* The functions of an Activation module, one per term of its irreps. */
static void put_activations(nequip *q, value activation, const irreps *terms, const char *even,
                            const char *odd) {
  expect_class(q->archive, activation, "Activation");
  for (int i = 0; i < terms->n; i++)
    put_activation(q, attribute(q->archive, activation, named("acts.%d", i).text, PICKLE_OBJECT),
                   terms->term[i].parity > 0 ? even : odd);
}

/* ---- one layer ---- */

typedef struct {
  int number;
  value conv, gate;
  irreps linear; /* input of the gate */
} layer;

static void put_radial(nequip *q, const layer *l, int64_t n_basis, int64_t n_weights) {
  const torch *t = q->archive;
  value net = attribute(t, l->conv, "fc", PICKLE_OBJECT), part, act;
  int64_t shape[2] = {n_basis, 0};
  int n = 0;
  for (; (part = maybe(net, named("layer%d", n).text)); n++) {
    shape[1] = weights_at(q->archive, part, "weight").shape[1];
    const bool fan_in = near(real_at(t, part, "h_in"), (double)shape[0]) &&
                        real_at(t, part, "var_in") == 1 && real_at(t, part, "var_out") == 1;
    expect(t, fan_in, part, "not scaled by 1 / sqrt(inputs)");
    put_whole(q, part, "weight", 2, shape, named("layers.%d.radial.%d", l->number, n).text);
    shape[0] = shape[1];
    act = maybe(part, "act");
    if (maybe(net, named("layer%d", n + 1).text)) put_activation(q, act, "radial_activation");
    else
      expect(t, act && act->kind == PICKLE_NONE, part,
             "the last layer of a radial network has an activation");
  }
  expect(t, n >= 1 && shape[1] == n_weights, net,
         "a radial network that does not fit the tensor product");
  put_number(q->out, n, "radial_layers");
}

/* Returns the number of weights. */
static int64_t read_paths(nequip *q, const layer *l, const irreps *messages) {
  const torch *t = q->archive;
  value product = attribute(t, l->conv, "tp", PICKLE_OBJECT),
        list = attribute(t, product, "instructions", PICKLE_LIST);
  path_terms paths[MAX_PATHS];
  int64_t n = 0;
  expect(t, list->n <= MAX_PATHS && list->n == (size_t)messages->n, product,
         "not one path per term of the messages");
  for (size_t i = 0; i < list->n; i++) {
    value path = item(t, list, i, PICKLE_TUPLE);
    const int x = (int)whole_item(t, path, 0, q->features.n),
              y = (int)whole_item(t, path, 1, q->sh.n),
              z = (int)whole_item(t, path, 2, messages->n);
    const int mul = q->features.term[x].mul;
    const bool good = !strcmp(item(t, path, 3, PICKLE_TEXT)->text, "uvu") &&
                      item(t, path, 4, PICKLE_BOOL)->whole && messages->term[z].mul == mul;
    expect(t, good && near(item(t, path, 5, PICKLE_REAL)->real, sqrt(2. * messages->term[z].l + 1)),
           product, "a path that is not supported");
    paths[i] = (path_terms){x, y, z};
    n += mul;
  }
  put_paths(q->out, l->number, paths, (int)list->n, messages);
  return n;
}

/* out[v] = sum_ua x[u] a[a] W[u][a][v] / sqrt(channels * species); a: 1 for the atom's species,
   else 0. */
static void put_self_connection(nequip *q, const layer *l) {
  const torch *t = q->archive;
  value product = attribute(t, l->conv, "sc", PICKLE_OBJECT),
        list = attribute(t, product, "instructions", PICKLE_LIST);
  const weights w = weights_at(q->archive, product, "weight");
  const irreps species = {1, {{(int)q->n_species, 0, 1}}};
  char label[LABEL_BYTES];
  int64_t first = 0;
  expect_irreps(t, product, "irreps_in1", &q->features);
  expect_irreps(t, product, "irreps_in2", &species);
  expect_irreps(t, product, "irreps_out", &l->linear);
  for (size_t i = 0; i < list->n; i++) {
    value path = item(t, list, i, PICKLE_TUPLE);
    const irrep x = q->features.term[whole_item(t, path, 0, q->features.n)],
                z = l->linear.term[whole_item(t, path, 2, l->linear.n)];
    const int64_t shape[3] = {x.mul, q->n_species, z.mul};
    const bool good = same_irrep(x, z) && !strcmp(item(t, path, 3, PICKLE_TEXT)->text, "uvw") &&
                      item(t, path, 4, PICKLE_BOOL)->whole;
    const double scale = sqrt((2. * z.l + 1) / ((double)x.mul * (double)q->n_species));
    expect(t, good && near(item(t, path, 5, PICKLE_REAL)->real, scale), product,
           "a path that is not supported");
    put_part(q->out, &w, first, 1, 3, shape,
             named("layers.%d.self_connection.%s", l->number, irrep_label(z, label)).text);
    first += shape[0] * shape[1] * shape[2];
  }
  expect(t, first == w.count, product, "more weights than its instructions take");
}

static void read_gate(nequip *q, layer *l) {
  const torch *t = q->archive;
  const irreps scalars = irreps_at(t, l->gate, "irreps_scalars"),
               gates = irreps_at(t, l->gate, "irreps_gates"),
               gated = irreps_at(t, l->gate, "irreps_gated");
  int64_t n_gates = 0, n_gated = 0;
  expect_irreps(t, l->gate, "_irreps_in", &l->linear);
  for (int i = 0; i < l->linear.n; i++) {
    const irrep ir = l->linear.term[i];
    expect(t,
           ir.mul == channels_of(&scalars, ir) + channels_of(&gates, ir) + channels_of(&gated, ir),
           l->gate, "a gate whose parts do not add up");
  }
  for (int i = 0; i < gates.n; i++) n_gates += gates.term[i].mul;
  for (int i = 0; i < gated.n; i++) n_gated += gated.term[i].mul;
  expect(t, n_gates == n_gated && n_gates == channels_of(&gates, even_scalar), l->gate,
         "not one even gate per gated channel");
  put_irreps(q->out, &scalars, "layers.%d.irreps_scalars", l->number);
  put_irreps(q->out, &gates, "layers.%d.irreps_gates", l->number);
  put_irreps(q->out, &gated, "layers.%d.irreps_gated", l->number);
  put_activations(q, attribute(t, l->gate, "act_scalars", PICKLE_OBJECT), &scalars,
                  "activation_even", "activation_odd");
  if (n_gates)
    put_activations(q, attribute(t, l->gate, "act_gates", PICKLE_OBJECT), &gates, "activation_gate",
                    "activation_gate");
}

static void convert_layer(nequip *q, int number, value module, int64_t n_basis) {
  const torch *t = q->archive;
  layer l = {.number = number,
             .conv = attribute(t, module, "conv", PICKLE_OBJECT),
             .gate = attribute(t, module, "equivariant_nonlin", PICKLE_OBJECT)};
  value linear_1 = attribute(t, l.conv, "linear_1", PICKLE_OBJECT),
        linear_2 = attribute(t, l.conv, "linear_2", PICKLE_OBJECT);
  expect_class(t, l.conv, "InteractionBlock");
  expect_class(t, l.gate, "Gate");
  expect_flag(t, module, "resnet", false);
  expect_flag(t, l.conv, "use_sc", true);
  put_number(q->out, real_at(t, l.conv, "avg_num_neighbors"), "avg_num_neighbors");
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", number);

  expect_irreps(t, linear_1, "irreps_in", &q->features);
  expect_irreps(t, linear_1, "irreps_out", &q->features);
  put_linear(q, linear_1, &q->features, &q->features, named("layers.%d.linear_1", number).text);

  expect_irreps(t, l.conv, "tp.irreps_in1", &q->features);
  expect_irreps(t, l.conv, "tp.irreps_in2", &q->sh);
  const irreps messages = irreps_at(t, l.conv, "tp.irreps_out"),
               merged = irreps_at(t, linear_2, "irreps_in");
  put_radial(q, &l, n_basis, read_paths(q, &l, &messages));

  l.linear = irreps_at(t, linear_2, "irreps_out");
  for (int i = 0; i < merged.n; i++)
    expect(t, merged.term[i].mul == channels_of(&messages, merged.term[i]), linear_2,
           "it does not take all messages of one irrep");
  put_irreps(q->out, &l.linear, "layers.%d.irreps_linear", number);
  put_linear(q, linear_2, &merged, &l.linear, named("layers.%d.linear_2", number).text);
  put_self_connection(q, &l);
  read_gate(q, &l);
  q->features = irreps_at(t, l.gate, "_irreps_out");
  put_irreps(q->out, &q->features, "layers.%d.irreps_out", number);
}

/* ---- the network ---- */

static void read_species(nequip *q) {
  const torch *t = q->archive;
  size_t n;
  const char *names = entry_at(q->archive, "extra/type_names", &n);
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
  const torch *t = q->archive;
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
  const bool scaled = r_max > 0 && near(real_at(t, basis, "prefactor") * r_max, 2) &&
                      near(real_at(t, cutoff, "_factor") * r_max, 1);
  expect(t, scaled, basis, "a radial basis that is not scaled by its r_max");
  put_edges(q->out, r_max, &q->sh, n_basis);
  put_polynomial(q->out, real_at(t, cutoff, "p"));
  put_whole(q, basis, "bessel_weights", 1, &n_basis, "bessel_frequencies");
  return n_basis;
}

/* A number per species; `without` if the model has none. */
static void read_per_species(nequip *q, const char *flag, const char *path, double without,
                             const char *name) {
  value module = maybe(q->network, "per_species_rescale");
  if (module && attribute(q->archive, module, flag, PICKLE_BOOL)->whole) {
    put_whole(q, module, path, 1, &q->n_species, name);
    return;
  }
  double numbers[1024];
  for (int64_t i = 0; i < q->n_species; i++) numbers[i] = without;
  put_doubles(q->out, numbers, q->n_species, name);
}

static void put_output(nequip *q) {
  torch *t = q->archive;
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

/* Any other module would change the result. */
static void check_modules(nequip *q) {
  static const char *const known[] = {"one_hot",
                                      "spharm_edges",
                                      "radial_basis",
                                      "chemical_embedding",
                                      "conv_to_output_hidden",
                                      "output_hidden_to_scalar",
                                      "per_species_rescale",
                                      "total_energy_sum"};
  value all = modules_of(q->network);
  expect(q->archive, all && all->kind == PICKLE_DICT, q->network, "it has no modules");
  for (size_t i = 0; i + 1 < all->n; i += 2) {
    const char *name = all->items[i]->kind == PICKLE_TEXT ? all->items[i]->text : "";
    bool found = all->items[i + 1]->kind != PICKLE_OBJECT;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) found |= !strcmp(name, known[k]);
    int number, used = 0;
    if (sscanf(name, "layer%3d_convnet%n", &number, &used) == 1 && used && !name[used])
      found = true, q->n_layers++;
    if (!found) fail_model(q->archive->path, "module '%s' is not supported", name);
  }
}

/* RescaleOutput.model: GradientOutput.func: SequentialGraphNetwork. */
static void find_network(nequip *q) {
  static const char *const inside[] = {"model", "func"};
  q->network = q->archive->root;
  for (int depth = 0; depth < 4 && !maybe(q->network, "one_hot"); depth++)
    for (int i = 0; i < 2; i++)
      if (maybe(q->network, inside[i])) q->network = maybe(q->network, inside[i]);
  if (!maybe(q->network, "one_hot"))
    fail_model(q->archive->path, "a TorchScript archive, but not of a NequIP model: '%s'",
               class_of(q->archive->root));
}

void convert_nequip(torch *t, model *out) {
  nequip *q = &(nequip){.archive = t, .out = out};
  int n = 0;
  t->program = "NequIP";
  torch_open_constants(t);
  find_network(q);
  check_modules(q);
  put_string(out, "nequip", "architecture");
  read_species(q);
  const int64_t n_basis = read_edges(q);
  put_string(out, "fan_in", "radial_normalization");
  put_string(out, "linear", "embedding");
  const int64_t channels =
      put_scalar_map(q, "chemical_embedding.linear", q->n_species, "embedding");
  q->features = (irreps){1, {{(int)channels, 0, 1}}};
  for (value module;
       n < MAX_LAYERS && (module = maybe(q->network, named("layer%d_convnet", n).text)); n++)
    convert_layer(q, n, module, n_basis);
  expect(q->archive, n >= 1 && n == q->n_layers, q->network, "no layers, or gaps between them");
  put_number(out, n, "n_layers");
  put_string(out, "species", "self_connection");
  put_string(out, "none", "norm");
  put_output(q);
}
