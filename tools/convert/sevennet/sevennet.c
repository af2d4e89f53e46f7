/* tools/convert/sevennet/sevennet.c - SevenNet's checkpoints: torch.save of a dict with `config`
   and `model_state_dict`. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

static const irrep even_scalar = {.l = 0, .parity = 1};

/* ---- edges, first features ---- */

/* Frequencies that are not trained are not among the tensors. */
static void put_frequencies(sevennet *q, double r_max, int64_t *n) {
  weights w;
  double x[MAX_BASIS];
  const double without =
      number_in(q, pickle_entry(q->config, "radial_basis"), "bessel_basis_num", 8);
  const bool trained = find_tensor(q, "edge_embedding.basis_function.coeffs", &w) ||
                       find_tensor(q, "EdgeEmbedding.basis_function.coeffs", &w);
  *n = trained ? w.count : (int64_t)without;
  if (*n < 1 || *n > MAX_BASIS)
    fail_model(q->t->path, "it has %lld radial functions; from 1 to %d are understood",
               (long long)*n, MAX_BASIS);
  for (int64_t i = 0; i < *n; i++)
    x[i] = r_max * (trained ? element(&w, i) : (float)((double)(i + 1) * M_PI / r_max));
  put_doubles(q->out, x, *n, "bessel_frequencies");
}

static void put_cutoff(sevennet *q) {
  value cutoff = pickle_entry(q->config, "cutoff_function");
  const char *name = text_in(q, cutoff, "cutoff_function_name", "poly_cut");
  if (!strcmp(name, "XPLOR")) {
    put_string(q->out, "xplor", "cutoff");
    put_number(q->out, number_in(q, cutoff, "cutoff_on", NAN), "cutoff_on");
  } else if (!strcmp(name, "poly_cut")) {
    put_polynomial(q->out, number_in(q, cutoff, "poly_cut_p_value", 6));
  } else {
    fail_model(q->t->path,
               "its config has 'cutoff_function_name' = %.40s; only 'XPLOR' and 'poly_cut' are "
               "understood",
               name);
  }
}

static void read_edges(sevennet *q) {
  const double r_max = number_in(q, q->config, "cutoff", NAN);
  irreps sh = {.n = q->l_max + 1};
  int64_t n;
  for (int l = 0; l <= q->l_max; l++) sh.term[l] = (irrep){1, l, q->parity && l % 2 ? -1 : 1};
  put_frequencies(q, r_max, &n);
  put_edges(q->out, r_max, &sh, "bessel", n);
  const bool newer = q->version[0] > 0 || q->version[1] > 9;
  put_string(q->out,
             is_true(q, q->equflash ? "normalize_sph" : "_normalize_sph", newer) ? "directions"
                                                                                 : "vectors",
             "harmonics_of");
  put_cutoff(q);
  put_activation(q, q->v2 ? "silu" : text_in(q, q->config, "act_radial", "silu"),
                 "radial_activation");
  put_string(q->out, "fan_in", "radial_normalization");
}

/* A map of one-hot species and, perhaps, modalities: rows of both are added. */
static void read_embedding(sevennet *q) {
  q->features = listed_irreps(q, 0);
  if (q->features.n != 1 || !same_irrep(q->features.term[0], even_scalar))
    fail_model(q->t->path, "its first features are not even scalars alone");
  const int64_t n = q->features.term[0].mul;
  const bool modal = is_modal(q, "use_modal_node_embedding");
  const int64_t more = modal ? q->n_modalities : 0, inputs = q->n_all + more;
  const weights w = tensor(q, "onehot_to_feature_x.linear.weight", NULL, inputs * n);
  const double scale = sqrt((double)q->n_species / (double)inputs), root = sqrt(q->n_species);
  double *sum = allocate((size_t)n, sizeof *sum);
  const bool adds = added(q, "onehot_to_feature_x", &w, q->n_all * n, modal, inputs, n, sum);
  if (!adds) {
    put_by_species(q, &w, 1, n, scale, "embedding");
  } else {
    double *x = allocate((size_t)(q->n_species * n), sizeof *x);
    for (int64_t i = 0; i < q->n_species * n; i++)
      x[i] = scale * element(&w, q->species[i / n] * n + i % n) + root * sum[i % n];
    put_shaped(q->out, x, 2, (const int64_t[]){q->n_species, n}, "embedding");
    free(x);
  }
  free(sum);
  put_string(q->out, "linear", "embedding");
}

/* ---- the energy ---- */

enum { HIDDEN = 1 << 12 };

/* Two maps without an activation between them; returns what they add to the energy. */
static double put_two_maps(sevennet *q) {
  const int64_t in = channels_of(&q->features, even_scalar);
  const bool modal = is_modal(q, "use_modal_output_block");
  const int64_t more = modal ? q->n_modalities : 0;
  weights last;
  double sum[HIDDEN], add = 0, bias;
  if (!find_tensor(q, "reduce_hidden_to_energy.linear.weight", &last) &&
      !find_tensor(q, "reducing_nn_hidden_to_energy.linear.weight", &last))
    fail_model(q->t->path, "there is no tensor 'reduce_hidden_to_energy.linear.weight'");
  const int64_t hidden = last.count;
  if (hidden < 1 || hidden > HIDDEN) fail_model(q->t->path, "its readout is not supported");
  const weights w = tensor(q, "reduce_input_to_hidden.linear.weight",
                           "reducing_nn_input_to_hidden.linear.weight", (in + more) * hidden);
  put_part(q->out, &w, 0, sqrt((double)in / (double)(in + more)), 2, (const int64_t[]){in, hidden},
           "readout.0");
  put_part(q->out, &last, 0, 1, 2, (const int64_t[]){hidden, 1}, "readout.1");
  put_string(q->out, "2", "readout_layers");
  added(q, "reduce_input_to_hidden", &w, in * hidden, modal, in + more, hidden, sum);
  for (int64_t i = 0; i < hidden; i++) add += sum[i] * element(&last, i) / sqrt((double)hidden);
  added(q, "reduce_hidden_to_energy", &last, 0, false, hidden, 1, &bias);
  return add + bias;
}

/* A network with activations. */
static void put_network(sevennet *q) {
  value hidden = setting(q, "readout_fcn_hidden_neurons", PICKLE_LIST);
  const int n = (int)hidden->n + 1;
  int64_t shape[2] = {channels_of(&q->features, even_scalar), 0};
  for (int k = 0; k < n; k++) {
    shape[1] = k == n - 1 ? 1 : whole_item(q->t, hidden, (size_t)k, HIDDEN + 1);
    const weights w =
        tensor(q, named("readout_FCN.fcn.layer%d.weight", k).text, NULL, shape[0] * shape[1]);
    put_part(q->out, &w, 0, 1, 2, shape, named("readout.%d", k).text);
    shape[0] = shape[1];
  }
  put_number(q->out, n, "readout_layers");
  put_activation(q, text_in(q, q->config, "readout_fcn_activation", "relu"), "readout_activation");
}

/* A number for each of our species: the file has one, one of each species, or those of each
   modality. */
static void read_rescale(sevennet *q, const char *what, bool each, double numbers[CLB_ELEMENTS]) {
  weights w;
  const model_name key = named("rescale_atomic_energy.%s", what);
  const bool one = find_tensor(q, key.text, &w) && w.count == 1 && q->n_all > 1;
  if (!one) w = tensor(q, key.text, NULL, q->n_all * (each ? (int64_t)q->n_modalities : 1));
  for (int i = 0; i < q->n_species; i++)
    numbers[i] = element(&w, one ? 0 : (each ? q->modality * q->n_all : 0) + q->species[i]);
}

static void put_output(sevennet *q) {
  double scale[CLB_ELEMENTS], shift[CLB_ELEMENTS], add = 0;
  if (is_true(q, "readout_as_fcn", false)) put_network(q);
  else add = put_two_maps(q);
  read_rescale(q, "scale", is_modal(q, "use_modal_wise_scale"), scale);
  read_rescale(q, "shift", is_modal(q, "use_modal_wise_shift"), shift);
  for (int i = 0; i < q->n_species; i++) shift[i] += scale[i] * add;
  put_per_species(q->out, scale, shift, q->n_species);
  put_string(q->out, "1", "energy_scale");
}

void convert_network(sevennet *q) {
  put_string(q->out, "sevennet", "architecture");
  read_species(q);
  read_edges(q);
  read_embedding(q);
  for (int n = 0; n < q->n_layers; n++) (q->v2 ? convert_equflash_v2_block : convert_block)(q, n);
  put_number(q->out, q->n_layers, "n_layers");
  if (!q->v2) put_string(q->out, "none", "norm");
  put_output(q);
}

void convert_sevennet(torch *t, const char *modality, model *out) {
  sevennet *q = &(sevennet){.t = t, .out = out};
  t->program = "SevenNet";
  q->config = pickle_entry(t->root, "config");
  q->state = pickle_entry(t->root, "model_state_dict");
  if (!q->config || q->config->kind != PICKLE_DICT || !q->state || q->state->kind != PICKLE_DICT)
    fail_model(t->path, "a checkpoint without SevenNet's 'config' and 'model_state_dict'");
  read_settings(q);
  choose_modality(q, modality);
  convert_network(q);
}
