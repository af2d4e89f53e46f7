/* tools/convert/mace/gated.c - MACE's interactions with a gate
   (RealAgnosticResidualNonLinearInteractionBlock). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace/mace.h"

bool mace_is_gated(value interaction) {
  return !strcmp(class_name(interaction), "RealAgnosticResidualNonLinearInteractionBlock");
}

/* ---- networks of edges: matrices [outputs][inputs] and biases of torch.nn.Linear, LayerNorm and
   silu after all but the last ---- */

typedef struct {
  mace *q;
  int layer;
  const char *name;            /* in the format */
  value net;                   /* the list of its modules */
  int n;                       /* matrices */
  double *senders, *receivers; /* embeddings [species][channels] that it reads after the basis */
  int64_t channels;
} network;

static value part(const network *x, int number, const char *class) {
  return mace_module(x->q, x->net, named("%d", number).text, class);
}

static weights matrix_of(const network *x, int k) {
  const weights w = weights_at(x->q->t, part(x, 3 * k, "Linear"), "weight");
  if (w.rank != 2)
    fail_model(x->q->t->path, "'%s' of interaction %d has a weight that is no matrix", x->name,
               x->layer);
  return w;
}

/* Columns [first, first + rows) of the matrix, transposed, with a factor for each of its rows. */
static double *transposed(const weights *w, int64_t first, int64_t rows, const double *factor) {
  const int64_t columns = w->shape[0];
  double *to = allocate((size_t)(rows * columns), sizeof *to);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      to[r * columns + c] = (factor ? factor[c] : 1) * element(w, c * w->shape[1] + first + r);
  return to;
}

/* What the species of an atom adds to the first matrix's product: embedding times columns. */
static void put_end(const network *x, const weights *w, int64_t first, const double *embedding,
                    const weights *bias, const char *end) {
  const int64_t species = x->q->n_species, width = w->shape[0], shape[2] = {species, width};
  double *to = allocate((size_t)(species * width), sizeof *to);
  for (int64_t s = 0; s < species; s++)
    for (int64_t o = 0; o < width; o++) {
      to[s * width + o] = bias ? element(bias, o) : 0;
      for (int64_t c = 0; c < x->channels; c++)
        to[s * width + o] +=
            embedding[s * x->channels + c] * element(w, o * w->shape[1] + first + c);
    }
  put_shaped(x->q->out, to, 2, shape, named("layers.%d.%s.%s", x->layer, x->name, end).text);
  free(to);
}

/* Matrix k with its bias; sign: of its outputs, NULL: 1. */
static void put_matrix(const network *x, int k, const double *sign) {
  mace *q = x->q;
  const weights w = matrix_of(x, k),
                bias = mace_numbers(q, part(x, 3 * k, "Linear"), "bias", w.shape[0]);
  const int64_t inputs = k ? w.shape[1] : q->n_basis, shape[2] = {inputs, w.shape[0]};
  const model_name name = named("layers.%d.%s.%d", x->layer, x->name, k);
  double *to = transposed(&w, 0, inputs, sign);
  for (int64_t i = 0; i < inputs * w.shape[0] && !k; i++) to[i] *= q->basis_factor;
  put_shaped(q->out, to, 2, shape, name.text);
  free(to);
  if (!k) {
    put_end(x, &w, q->n_basis, x->senders, NULL, "senders");
    put_end(x, &w, q->n_basis + x->channels, x->receivers, &bias, "receivers");
    return;
  }
  to = allocate((size_t)w.shape[0], sizeof *to);
  for (int64_t i = 0; i < w.shape[0]; i++) to[i] = (sign ? sign[i] : 1) * element(&bias, i);
  put_doubles(q->out, to, w.shape[0], named("%s.bias", name.text).text);
  free(to);
}

/* LayerNorm: factors, then biases. */
static void put_norm(const network *x, int k) {
  mace *q = x->q;
  value norm = part(x, 3 * k + 1, "LayerNorm");
  const int64_t width = matrix_of(x, k).shape[0], shape[2] = {2, width};
  const weights w = mace_numbers(q, norm, "weight", width),
                bias = mace_numbers(q, norm, "bias", width);
  double *to = allocate((size_t)(2 * width), sizeof *to);
  for (int64_t i = 0; i < width; i++) to[i] = element(&w, i), to[width + i] = element(&bias, i);
  put_shaped(q->out, to, 2, shape, named("layers.%d.%s.%d.norm", x->layer, x->name, k).text);
  put_number(q->out, number_of(q->t, norm, "eps"), "radial_epsilon");
  free(to);
}

/* outputs: of the last matrix, with their signs. */
static void put_network(network *x, value block, const char *path, int64_t outputs,
                        const double *sign) {
  mace *q = x->q;
  value mlp = mace_module(q, block, path, "RadialMLP");
  x->net = mace_module(q, mlp, "net", "Sequential");
  for (x->n = 0; maybe(x->net, named("%d", 3 * x->n).text);) x->n++;
  if (!x->n) fail_model(q->t->path, "'%s' of interaction %d has no matrix", path, x->layer);
  int64_t inputs = q->n_basis + 2 * x->channels;
  for (int k = 0; k < x->n; k++) {
    const weights w = matrix_of(x, k);
    const bool last = k == x->n - 1;
    if (w.shape[1] != inputs || (last && w.shape[0] != outputs))
      fail_model(
          q->t->path,
          "matrix %d of '%s' of interaction %d is not of the shape of its inputs and outputs", k,
          path, x->layer);
    put_matrix(x, k, last ? sign : NULL);
    if (!last) {
      put_norm(x, k);
      part(x, 3 * k + 2, "SiLU");
    }
    inputs = w.shape[0];
  }
}

/* Rows of a one-hot map. */
static double *embedding_of(const network *x, value block, const char *path) {
  mace *q = x->q;
  const int64_t n = q->n_species * x->channels;
  const weights w = mace_linear(q, block, path, n);
  double *to = allocate((size_t)n, sizeof *to);
  for (int64_t i = 0; i < n; i++) to[i] = element(&w, i) / sqrt((double)q->n_species);
  return to;
}

static void put_networks(mace *q, int layer, value block, const message_paths *p) {
  network x = {.q = q, .layer = layer, .channels = q->features.term[0].mul};
  const int64_t mul = q->edge.term[0].mul, outputs = p->messages.n * mul;
  double *sign = allocate((size_t)outputs, sizeof *sign);
  for (int64_t i = 0; i < outputs; i++) sign[i] = p->sign[i / mul];
  x.senders = embedding_of(&x, block, "source_embedding");
  x.receivers = embedding_of(&x, block, "target_embedding");
  x.name = "radial";
  put_network(&x, block, "conv_tp_weights", outputs, sign);
  put_number(q->out, x.n, "radial_layers");
  x.name = "density";
  put_network(&x, block, "density_fn", 1, NULL);
  put_number(q->out, x.n, "layers.%d.density_layers", layer);
  free(x.senders);
  free(x.receivers);
  free(sign);
}

/* ---- the gate ---- */

/* Functions and scales, of MACE's module or e3nn's. */
static double activation_scale(const mace *q, value gate, bool of_gates) {
  const char *wanted = of_gates ? "sigmoid" : "silu";
  char name[ACTIVATION_BYTES] = "";
  double scale = 1;
  if (!strcmp(class_name(gate), "GatedEquivariantBlock")) {
    value f = maybe(gate, of_gates ? "_act_gate" : "_act_scalar");
    if (f && f->kind == PICKLE_GLOBAL) snprintf(name, sizeof name, "%s", strchr(f->text, ' ') + 1);
    scale = number_of(q->t, gate, of_gates ? "_gate_cst" : "_scalar_cst");
  } else {
    expect_class(q->t, gate, "Gate");
    activation_of(
        q->t,
        attribute(q->t, gate, of_gates ? "act_gates.acts.0" : "act_scalars.acts.0", PICKLE_OBJECT),
        name, &scale);
  }
  if (strcmp(name, wanted) != 0)
    fail_model(q->t->path, "its gate has the activation '%s'; only %s is understood there", name,
               wanted);
  return scale;
}

void mace_expect_gate_silu(const mace *q, value gate) {
  const double scale = activation_scale(q, gate, false);
  if (fabs(scale - silu_scale) > 1e-6)
    fail_model(q->t->path, "a gate has silu times %g; only %g is understood", scale, silu_scale);
}

static void put_gate_of(mace *q, value block, const irreps *target) {
  value gate = attribute(q->t, block, "equivariant_nonlin", PICKLE_OBJECT);
  put_string(q->out, "gate", "interaction");
  put_string(q->out, "silu", "scalar_activation");
  put_number(q->out, activation_scale(q, gate, false), "scalar_activation_scale");
  put_string(q->out, "sigmoid", "gate_activation");
  put_number(q->out, target->n > 1 ? activation_scale(q, gate, true) : 1, "gate_activation_scale");
}

/* ---- the interaction ---- */

void mace_gated(mace *q, int layer, value block, const irreps *out) {
  const irreps *x = &q->features, *edge = &q->edge, target = mace_uniform(x->term[0].mul, q->l_max);
  irreps mixed = target;
  mixed.term[0].mul *= target.n;
  const message_paths p = mace_paths(q, layer);
  mace_check_messages(q, block, &p);
  put_irreps(q->out, x, "layers.%d.irreps_in", layer);
  put_irreps(q->out, &target, "layers.%d.irreps_linear", layer);
  mace_put_linear(q, layer, block, "linear_up", x, edge, "linear_1");
  put_networks(q, layer, block, &p);
  put_gate_of(q, block, &target);
  mace_put_linear(q, layer, block, "linear_1", &p.messages, &mixed, "linear_2");
  mace_put_linear(q, layer, block, "linear_res", edge, &mixed, "linear_residual");
  mace_put_linear(q, layer, block, "linear_2", &target, &target, "linear_3");
  mace_put_linear(q, layer, block, "skip_tp", x, out, "self_connection");
  put_string(q->out, "linear", "layers.%d.self_connection", layer);
  static const char *const numbers[] = {"alpha", "beta"};
  for (int i = 0; i < 2; i++) {
    const double number = number_of(q->t, block, numbers[i]);
    put_doubles(q->out, &number, 1, named("layers.%d.density_%s", layer, numbers[i]).text);
  }
}
