/* tools/convert/mace/layer.c - one layer of MACE: interaction, product basis, readout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace/mace.h"

irreps mace_uniform(int mul, int l_max) {
  irreps out = {.n = l_max + 1};
  for (int l = 0; l <= l_max; l++) out.term[l] = (irrep){mul, l, l % 2 ? -1 : 1};
  return out;
}

/* ---- interactions ---- */

static const struct {
  const char *name;
  bool density, residual;
} kinds[] = {{"RealAgnosticInteractionBlock", false, false},
             {"RealAgnosticResidualInteractionBlock", false, true},
             {"RealAgnosticDensityInteractionBlock", true, false},
             {"RealAgnosticDensityResidualInteractionBlock", true, true}};

message_paths mace_paths(mace *q, int layer) {
  const irreps to = harmonic_irreps(q->l_max, false);
  path_terms paths[MAX_TERMS];
  const int n = find_all_paths(q->t->path, &q->edge, &q->sh, &to, paths, MAX_TERMS);
  message_paths p = {.messages = own_messages(paths, n, &q->edge, &to)};
  for (int i = 0; i < n; i++) p.sign[i] = q->sh.term[paths[i].y].l % 2 ? -1 : 1;
  put_paths(q->out, layer, paths, n, &p.messages);
  return p;
}

void mace_check_messages(const mace *q, value block, const message_paths *p) {
  value product = attribute(q->t, block, "conv_tp", PICKLE_OBJECT);
  if (strcmp(class_name(product), "SegmentedPolynomial") != 0) {
    mace_module(q, block, "conv_tp", "TensorProduct");
    expect_irreps(q->t, product, "irreps_in2", &q->sh);
    expect_irreps(q->t, product, "irreps_out", &p->messages);
    return;
  }
  int64_t rows[4] = {p->messages.n, 0, 0, 0}; /* of cuEquivariance's weights, x, y and messages */
  for (int i = 0; i < q->edge.n; i++) rows[1] += 2 * q->edge.term[i].l + 1;
  for (int i = 0; i < q->sh.n; i++) rows[2] += 2 * q->sh.term[i].l + 1;
  for (int i = 0; i < p->messages.n; i++) rows[3] += 2 * p->messages.term[i].l + 1;
  value given = attribute(q->t, product, "m.buffer_num_segments", PICKLE_LIST);
  for (size_t i = 0; i < 4; i++)
    if (whole_item(q->t, given, i, INT32_MAX) != rows[i])
      fail_model(q->t->path, "'conv_tp' of '%s' does not fit its neighbours", class_of(block));
}

/* The last matrix of a radial network, which has a column for each path and channel. */
static void put_signed(mace *q, const message_paths *p, const weights *w, double factor,
                       const char *name) {
  const int64_t mul = q->edge.term[0].mul;
  double *factors = allocate((size_t)w->shape[1], sizeof *factors);
  for (int64_t i = 0; i < w->shape[1]; i++) factors[i] = factor * p->sign[i / mul];
  put_columns(q->out, w, w->shape, factors, name);
  free(factors);
}

static void put_radial(mace *q, int layer, value block, const message_paths *p) {
  value net = mace_module(q, block, "conv_tp_weights", "FullyConnectedNet"), part;
  char at[NAME_BYTES];
  int64_t shape[2] = {q->n_basis, 0};
  int n = 0;
  for (; snprintf(at, sizeof at, "layer%d", n), (part = maybe(net, at)); n++) {
    const weights w = weights_at(q->t, part, "weight");
    const bool last = !maybe(net, named("layer%d", n + 1).text);
    shape[1] = last ? p->messages.n * (int64_t)q->edge.term[0].mul : w.shape[1];
    if (w.rank != 2 || w.shape[0] != shape[0] || w.shape[1] != shape[1])
      fail_model(q->t->path, "'%s' of interaction %d is not of the shape of its inputs and outputs",
                 at, layer);
    if (number_of(q->t, part, "var_in") != 1 || number_of(q->t, part, "var_out") != 1)
      fail_model(q->t->path, "'%s' of interaction %d is not scaled by 1 / sqrt(inputs)", at, layer);
    if (!last) mace_expect_silu(q, part, "act");
    const model_name name = named("layers.%d.radial.%d", layer, n);
    const double factor = n ? 1 : q->basis_factor;
    if (last) put_signed(q, p, &w, factor, name.text);
    else put_part(q->out, &w, 0, factor, 2, shape, name.text);
    shape[0] = shape[1];
  }
  if (!n) fail_model(q->t->path, "interaction %d has no radial network", layer);
  put_number(q->out, n, "radial_layers");
}

static void put_density(mace *q, int layer, value block) {
  value net = mace_module(q, block, "density_fn", "FullyConnectedNet");
  const weights w = mace_numbers(q, net, "layer0.weight", q->n_basis);
  value act = maybe(net, "layer0.act");
  if (maybe(net, "layer1") || (act && act->kind != PICKLE_NONE))
    fail_model(q->t->path, "the density of interaction %d is not one matrix", layer);
  put_part(q->out, &w, 0, q->basis_factor, 1, &q->n_basis, named("layers.%d.density", layer).text);
}

/* times a factor for each degree of its output; NULL: 1 */
static void put_linear(mace *q, int layer, value block, const char *path, const irreps *in,
                       const irreps *to, const double *factor, const char *name) {
  const weights w = mace_linear(q, block, path, map_numbers(in, to, 0));
  expect_irreps(q->t, maybe(block, path), "irreps_out", to);
  put_map(q->out, &w, in, to, 0, factor, named("layers.%d.%s", layer, name).text);
}

void mace_put_linear(mace *q, int layer, value block, const char *path, const irreps *in,
                     const irreps *to, const char *name) {
  put_linear(q, layer, block, path, in, to, NULL, name);
}

/* The map by species: of messages, or of the features around the layer. */
static void put_skip(mace *q, int layer, value block, bool residual, const irreps *from,
                     const irreps *to) {
  value skip = mace_module(q, block, "skip_tp", "FullyConnectedTensorProduct");
  expect_irreps(q->t, skip, "irreps_in1", from);
  expect_irreps(q->t, skip, "irreps_out", to);
  const weights w = mace_numbers(q, skip, "weight", map_numbers(from, to, q->n_species));
  put_string(q->out, residual ? "species" : "none", "layers.%d.self_connection", layer);
  put_map(q->out, &w, from, to, q->n_species, NULL,
          named("layers.%d.%s", layer, residual ? "self_connection" : "linear_3").text);
}

/* Returns whether the layer has a residual connection. */
static bool convert_interaction(mace *q, int layer, value block, const irreps *out) {
  const irreps *x = &q->features, target = mace_uniform(x->term[0].mul, q->l_max);
  size_t kind = 0;
  while (kind < 4 && strcmp(class_name(block), kinds[kind].name) != 0) kind++;
  if (kind == 4)
    fail_model(q->t->path, "interaction %d is a %s, which is not supported", layer,
               class_name(block));
  const bool residual = kinds[kind].residual, density = kinds[kind].density;
  put_irreps(q->out, x, "layers.%d.irreps_in", layer);
  put_linear(q, layer, block, "linear_up", x, &q->edge, NULL, "linear_1");
  const message_paths p = mace_paths(q, layer);
  mace_check_messages(q, block, &p);
  put_radial(q, layer, block, &p);
  double factor[MAX_DEGREE + 1];
  const double neighbours = density ? 1 : number_of(q->t, block, "avg_num_neighbors");
  if (!(neighbours > 0))
    fail_model(q->t->path, "interaction %d has avg_num_neighbors = %g", layer, neighbours);
  for (int l = 0; l <= MAX_DEGREE; l++) factor[l] = 1 / neighbours;
  put_irreps(q->out, &target, "layers.%d.irreps_linear", layer);
  put_linear(q, layer, block, "linear", &p.messages, &target, factor, "linear_2");
  put_string(q->out, density ? "density" : "none", "layers.%d.normalization", layer);
  if (density) put_density(q, layer, block);
  put_skip(q, layer, block, residual, residual ? x : &target, residual ? out : &target);
  return residual;
}

/* ---- readouts ---- */

/* Columns [first, first + columns) of rows [top, top + rows), times a factor. */
static void put_block(mace *q, const weights *w, const int64_t place[4], int64_t width,
                      double factor, const char *name) {
  const int64_t top = place[0], rows = place[1], first = place[2], columns = place[3],
                shape[2] = {rows, columns};
  double *x = allocate((size_t)(rows * columns), sizeof *x);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      x[r * columns + c] = factor * element(w, (top + r) * width + first + c);
  put_shaped(q->out, x, 2, shape, name);
  free(x);
}

/* Numbers [first, first + n) of a bias. */
static void put_bias(mace *q, value linear, int64_t all, int64_t first, int64_t n,
                     const char *name) {
  const weights w = mace_numbers(q, linear, "bias", all);
  put_part(q->out, &w, first, 1, 1, &n, name);
}

/* Hidden layers keep the channels of all heads apart, if they are masked, or do not know heads. */
static const struct {
  const char *name;
  int matrices;
  bool masked;
} readouts[] = {{"LinearReadoutBlock", 1, true},
                {"NonLinearReadoutBlock", 2, true},
                {"NonLinearBiasReadoutBlock", 3, true},
                {"GeneralNonLinearBiasReadoutBlock", 3, false}};
enum { READOUTS = sizeof readouts / sizeof *readouts };

/* The channels of a head in hidden layers: [first, first + n) of all. */
typedef struct {
  int64_t first, n, all;
} head_channels;

static head_channels of_head_channels(const mace *q, int layer, value block, bool masked) {
  const irreps hidden = irreps_at(q->t, block, "linear_1.irreps_out");
  const int64_t all = hidden.n == 1 && !hidden.term[0].l && hidden.term[0].parity > 0
                          ? hidden.term[0].mul
                          : 0,
                n = masked ? all / q->n_heads : all;
  if (!n || (masked && n * q->n_heads != all))
    fail_model(q->t->path, "readout %d has not the same scalars for each of %d heads", layer,
               q->n_heads);
  return (head_channels){masked ? q->head * n : 0, n, all};
}

/* Of several heads, outputs are those of the first head, of the second, ...; a hidden layer is
   divided by the square root of all its channels. */
static void convert_readout(mace *q, int layer, value block) {
  const int64_t channels = q->features.term[0].mul, heads = q->n_heads, head = q->head;
  const model_name name = named("layers.%d.readout", layer);
  int kind = 0;
  while (kind < READOUTS && strcmp(class_name(block), readouts[kind].name) != 0) kind++;
  if (kind == READOUTS)
    fail_model(q->t->path, "readout %d is a %s, which is not supported", layer, class_name(block));
  const int n = readouts[kind].matrices;
  put_number(q->out, n, "layers.%d.readout_layers", layer);
  if (n == 1) {
    const weights w = mace_linear(q, block, "linear", channels * heads);
    put_block(q, &w, (int64_t[]){0, channels, head, 1}, heads, 1, named("%s.0", name.text).text);
    return;
  }
  const head_channels h = of_head_channels(q, layer, block, readouts[kind].masked);
  const double factor = sqrt((double)h.n / (double)h.all);
  if (readouts[kind].masked) mace_expect_silu(q, block, "non_linearity.acts.0");
  else mace_expect_gate_silu(q, attribute(q->t, block, "equivariant_nonlin", PICKLE_OBJECT));
  const weights w = mace_linear(q, block, "linear_1", channels * h.all);
  put_block(q, &w, (int64_t[]){0, channels, h.first, h.n}, h.all, 1, named("%s.0", name.text).text);
  value last = mace_module(q, block, "linear_2", "Linear");
  if (n == 3) {
    value mid = mace_module(q, block, "linear_mid", "Linear");
    const weights m = mace_numbers(q, mid, "weight", h.all * h.all);
    put_block(q, &m, (int64_t[]){h.first, h.n, h.first, h.n}, h.all, factor,
              named("%s.1", name.text).text);
    put_bias(q, mid, h.all, h.first, h.n, named("%s.1.bias", name.text).text);
    put_bias(q, last, heads, head, 1, named("%s.2.bias", name.text).text);
  }
  const weights x = n == 3 ? mace_numbers(q, last, "weight", h.all * heads)
                           : mace_linear(q, block, "linear_2", h.all * heads);
  put_block(q, &x, (int64_t[]){h.first, h.n, head, 1}, heads, factor,
            named("%s.%d", name.text, n - 1).text);
}

/* ---- the layer ---- */

void mace_layer(mace *q, int layer) {
  value interaction =
            attribute(q->t, q->network, named("interactions.%d", layer).text, PICKLE_OBJECT),
        product = mace_module(q, q->network, named("products.%d", layer).text,
                              "EquivariantProductBasisBlock"),
        linear = mace_module(q, product, "linear", "Linear");
  const irreps out = irreps_at(q->t, linear, "irreps_out"),
               wanted = mace_uniform(q->features.term[0].mul, out.n - 1);
  if (out.n < 1) fail_model(q->t->path, "product %d has no output", layer);
  expect_irreps(q->t, linear, "irreps_out", &wanted);
  expect_irreps(q->t, linear, "irreps_in", &wanted);
  value up = mace_module(q, interaction, "linear_up", "Linear");
  q->edge = irreps_at(q->t, up, "irreps_out");
  const irreps edge = mace_uniform(q->edge.term[0].mul, q->edge.n - 1);
  expect_irreps(q->t, up, "irreps_in", &q->features);
  expect_irreps(q->t, up, "irreps_out", &edge);
  if (edge.n != q->features.n || edge.term[0].mul != q->features.term[0].mul)
    put_irreps(q->out, &edge, "layers.%d.irreps_edge", layer);
  if (mace_is_gated(interaction) != q->gated)
    fail_model(q->t->path, "of its interactions only some have a gate, which is not supported");
  const bool residual = q->gated || convert_interaction(q, layer, interaction, &out);
  if (q->gated) mace_gated(q, layer, interaction, &out);
  /* without one in the interaction, the product adds none, whatever use_sc is */
  if (residual) expect_flag(q->t, product, "use_sc", true);
  mace_product(q, layer, product, &out);
  put_linear(q, layer, product, "linear", &out, &out, NULL, "linear_4");
  put_irreps(q->out, &out, "layers.%d.irreps_out", layer);
  q->features = out;
  const int readout = q->last_readout_only ? 0 : layer;
  if (q->last_readout_only && layer < q->n_layers - 1)
    put_string(q->out, "0", "layers.%d.readout_layers", layer);
  else
    convert_readout(q, layer,
                    attribute(q->t, q->network, named("readouts.%d", readout).text, PICKLE_OBJECT));
}
