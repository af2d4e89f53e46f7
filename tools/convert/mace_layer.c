/* tools/convert/mace_layer.c - one layer of MACE: interaction, product basis, readout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace.h"

/* K channels of every degree up to l_max, with natural parity. */
static irreps uniform(int mul, int l_max) {
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

/* Messages are in the order of their degree, then the features', then the harmonics', as are the
   radial network's columns. sign: of a path; MACE's vectors point from the sender to the receiver,
   so that harmonics of odd degree are negated. */
typedef struct {
  irreps messages;
  double sign[MAX_TERMS];
} message_paths;

static message_paths say_paths(mace *q, int layer) {
  message_paths p = {.messages = {.n = 0}};
  const int mul = q->features.term[0].mul;
  char text[MAX_TERMS * 12] = "";
  size_t used = 0;
  for (int l3 = 0; l3 <= q->l_max; l3++)
    for (int l1 = 0; l1 < q->features.n; l1++)
      for (int l2 = abs(l1 - l3); l2 <= l1 + l3 && l2 <= q->l_max; l2 += 2) {
        if (p.messages.n == MAX_TERMS)
          refuse(q->t->path, "a layer has more than %d paths", MAX_TERMS);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d,%d,%d", used ? " " : "", l1,
                                 l2, p.messages.n);
        p.sign[p.messages.n] = l2 % 2 ? -1 : 1;
        p.messages.term[p.messages.n++] = (irrep){mul, l3, l3 % 2 ? -1 : 1};
      }
  say(q->out, text, "layers.%d.paths", layer);
  say_irreps(q->out, &p.messages, "layers.%d.irreps_message", layer);
  return p;
}

/* The last matrix of a radial network, which has a column for each path and channel. */
static void keep_signed(mace *q, const message_paths *p, const weights *w, double factor,
                        const char *name) {
  const int64_t mul = q->features.term[0].mul;
  double *factors = allocate((size_t)w->shape[1], sizeof *factors);
  for (int64_t i = 0; i < w->shape[1]; i++) factors[i] = factor * p->sign[i / mul];
  keep_columns(q->out, w, w->shape, factors, name);
  free(factors);
}

static void keep_radial(mace *q, int layer, value block, const message_paths *p) {
  value net = mace_module(q, block, "conv_tp_weights", "FullyConnectedNet"), part;
  char at[NAME_BYTES], name[NAME_BYTES];
  int64_t shape[2] = {q->n_basis, 0};
  int n = 0;
  for (; snprintf(at, sizeof at, "layer%d", n), (part = maybe(net, at)); n++) {
    const weights w = weights_at(q->t, part, "weight");
    snprintf(name, sizeof name, "layer%d", n + 1);
    const bool last = !maybe(net, name);
    shape[1] = last ? p->messages.n * (int64_t)q->features.term[0].mul : w.shape[1];
    if (w.rank != 2 || w.shape[0] != shape[0] || w.shape[1] != shape[1])
      refuse(q->t->path, "'%s' of interaction %d is not of the shape of its inputs and outputs", at,
             layer);
    if (number_of(q->t, part, "var_in") != 1 || number_of(q->t, part, "var_out") != 1)
      refuse(q->t->path, "'%s' of interaction %d is not scaled by 1 / sqrt(inputs)", at, layer);
    if (!last) mace_expect_silu(q, part, "act");
    snprintf(name, sizeof name, "layers.%d.radial.%d", layer, n);
    const double factor = n ? 1 : q->basis_factor;
    if (last) keep_signed(q, p, &w, factor, name);
    else keep_part(q->out, &w, 0, factor, 2, shape, name);
    shape[0] = shape[1];
  }
  if (!n) refuse(q->t->path, "interaction %d has no radial network", layer);
  say_number(q->out, n, "radial_layers");
}

static void keep_density(mace *q, int layer, value block) {
  char name[NAME_BYTES];
  value net = mace_module(q, block, "density_fn", "FullyConnectedNet");
  const weights w = mace_numbers(q, net, "layer0.weight", q->n_basis);
  value act = maybe(net, "layer0.act");
  if (maybe(net, "layer1") || (act && act->kind != PICKLE_NONE))
    refuse(q->t->path, "the density of interaction %d is not one matrix", layer);
  snprintf(name, sizeof name, "layers.%d.density", layer);
  keep_part(q->out, &w, 0, q->basis_factor, 1, &q->n_basis, name);
}

/* A Linear of an interaction, as layers.N.NAME. */
static void keep_linear(mace *q, int layer, value block, const char *path, const irreps *in,
                        const irreps *to, const double *factor, const char *name) {
  char key[NAME_BYTES];
  snprintf(key, sizeof key, "layers.%d.%s", layer, name);
  const weights w = mace_linear(q, block, path, map_numbers(in, to, 0));
  expect_irreps(q->t, maybe(block, path), "irreps_out", to);
  keep_map(q->out, &w, in, to, 0, factor, key);
}

/* The map by species: of messages, or of the features around the layer. */
static void keep_skip(mace *q, int layer, value block, bool residual, const irreps *from,
                      const irreps *to) {
  char key[NAME_BYTES];
  value skip = mace_module(q, block, "skip_tp", "FullyConnectedTensorProduct");
  expect_irreps(q->t, skip, "irreps_in1", from);
  expect_irreps(q->t, skip, "irreps_out", to);
  const weights w = mace_numbers(q, skip, "weight", map_numbers(from, to, q->n_species));
  snprintf(key, sizeof key, "layers.%d.%s", layer, residual ? "self_connection" : "linear_3");
  say(q->out, residual ? "species" : "none", "layers.%d.self_connection", layer);
  keep_map(q->out, &w, from, to, q->n_species, NULL, key);
}

/* Returns whether the layer has a residual connection. */
static bool convert_interaction(mace *q, int layer, value block, const irreps *out) {
  const irreps *x = &q->features, target = uniform(x->term[0].mul, q->l_max);
  size_t kind = 0;
  while (kind < 4 && strcmp(class_name(block), kinds[kind].name) != 0) kind++;
  if (kind == 4)
    refuse(q->t->path, "interaction %d is a %s, which is not understood", layer, class_name(block));
  const bool residual = kinds[kind].residual, density = kinds[kind].density;
  value up = mace_module(q, block, "linear_up", "Linear"),
        product = mace_module(q, block, "conv_tp", "TensorProduct");
  say_irreps(q->out, x, "layers.%d.irreps_in", layer);
  expect_irreps(q->t, up, "irreps_in", x);
  keep_linear(q, layer, block, "linear_up", x, x, NULL, "linear_1");
  const message_paths p = say_paths(q, layer);
  expect_irreps(q->t, product, "irreps_in2", &q->sh);
  expect_irreps(q->t, product, "irreps_out", &p.messages);
  keep_radial(q, layer, block, &p);
  double factor[MAX_DEGREE + 1];
  const double neighbours = density ? 1 : number_of(q->t, block, "avg_num_neighbors");
  if (!(neighbours > 0))
    refuse(q->t->path, "interaction %d has avg_num_neighbors = %g", layer, neighbours);
  for (int l = 0; l <= MAX_DEGREE; l++) factor[l] = 1 / neighbours;
  say_irreps(q->out, &target, "layers.%d.irreps_linear", layer);
  keep_linear(q, layer, block, "linear", &p.messages, &target, factor, "linear_2");
  say(q->out, density ? "density" : "none", "layers.%d.normalization", layer);
  if (density) keep_density(q, layer, block);
  keep_skip(q, layer, block, residual, residual ? x : &target, residual ? out : &target);
  return residual;
}

/* ---- readouts ---- */

/* Columns [first, first + columns) of rows [top, top + rows), times a factor. */
static void keep_block(mace *q, const weights *w, const int64_t place[4], int64_t width,
                       double factor, const char *name) {
  const int64_t top = place[0], rows = place[1], first = place[2], columns = place[3],
                shape[2] = {rows, columns};
  double *x = allocate((size_t)(rows * columns), sizeof *x);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      x[r * columns + c] = factor * element(w, (top + r) * width + first + c);
  keep_shaped(q->out, x, 2, shape, name);
  free(x);
}

/* Of several heads, outputs are those of the first head, of the second, ...; a hidden layer is
   divided by the square root of all its channels. */
static void convert_readout(mace *q, int layer, value block) {
  const int64_t channels = q->features.term[0].mul, heads = q->n_heads, head = q->head;
  char name[2][NAME_BYTES];
  for (int k = 0; k < 2; k++) snprintf(name[k], sizeof name[k], "layers.%d.readout.%d", layer, k);
  if (!strcmp(class_name(block), "LinearReadoutBlock")) {
    const weights w = mace_linear(q, block, "linear", channels * heads);
    say(q->out, "1", "layers.%d.readout_layers", layer);
    keep_block(q, &w, (int64_t[]){0, channels, head, 1}, heads, 1, name[0]);
    return;
  }
  if (strcmp(class_name(block), "NonLinearReadoutBlock") != 0)
    refuse(q->t->path, "readout %d is a %s, which is not understood", layer, class_name(block));
  const irreps hidden = irreps_at(q->t, block, "linear_1.irreps_out");
  const int64_t all = hidden.n == 1 && !hidden.term[0].l ? hidden.term[0].mul : 0, n = all / heads;
  if (!n || n * heads != all)
    refuse(q->t->path, "readout %d has not the same scalars for each of %d heads", layer,
           q->n_heads);
  mace_expect_silu(q, block, "non_linearity.acts.0");
  const weights w = mace_linear(q, block, "linear_1", channels * all),
                last = mace_linear(q, block, "linear_2", all * heads);
  say(q->out, "2", "layers.%d.readout_layers", layer);
  keep_block(q, &w, (int64_t[]){0, channels, head * n, n}, all, 1, name[0]);
  keep_block(q, &last, (int64_t[]){head * n, n, head, 1}, heads, 1 / sqrt((double)heads), name[1]);
}

/* ---- the layer ---- */

void mace_layer(mace *q, int layer) {
  char path[NAME_BYTES];
  snprintf(path, sizeof path, "interactions.%d", layer);
  value interaction = attribute(q->t, q->network, path, PICKLE_OBJECT);
  snprintf(path, sizeof path, "products.%d", layer);
  value product = mace_module(q, q->network, path, "EquivariantProductBasisBlock"),
        linear = mace_module(q, product, "linear", "Linear");
  snprintf(path, sizeof path, "readouts.%d", layer);
  value readout = attribute(q->t, q->network, path, PICKLE_OBJECT);
  const irreps out = irreps_at(q->t, linear, "irreps_out"),
               wanted = uniform(q->features.term[0].mul, out.n - 1);
  if (out.n < 1) refuse(q->t->path, "product %d has no output", layer);
  expect_irreps(q->t, linear, "irreps_out", &wanted);
  expect_irreps(q->t, linear, "irreps_in", &wanted);
  const bool residual = convert_interaction(q, layer, interaction, &out);
  /* without one in the interaction, the product adds none, whatever use_sc is */
  if (residual) expect_flag(q->t, product, "use_sc", true);
  mace_product(q, layer, product, &out);
  keep_linear(q, layer, product, "linear", &out, &out, NULL, "linear_4");
  say_irreps(q->out, &out, "layers.%d.irreps_out", layer);
  q->features = out;
  convert_readout(q, layer, readout);
}
