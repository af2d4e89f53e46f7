/* tools/convert/sevennet.c - SevenNet's checkpoints: torch.save of a dict with `config` and
   `model_state_dict`.

   Features have no parity: every irrep is even, and a path exists wherever degrees allow.  Names
   of modules have changed ("0 convolution", "0_convolution"): both are looked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/elements.h"
#include "tools/cli/tool.h"
#include "tools/convert/maps.h"
#include "tools/reference/reference_irreps.h"

enum { MAX_LAYERS = 64, MAX_ELEMENTS = 128, MAX_BASIS = 64, MAX_MODALITIES = 16 };

typedef struct {
  torch *t;
  value config, state;
  model *out;
  int n_species, n_layers, l_max, n_modalities, modality; /* modality: -1, none */
  irreps features; /* of the atoms, after the current layer */
} sevennet;

/* ---- the configuration ---- */

static value setting(const sevennet *q, const char *key, pickle_kind kind) {
  value v = pickle_entry(q->config, key);
  if (!v || v->kind != kind)
    fail_model(q->t->path, "its config %s '%s': not a SevenNet checkpoint of a supported kind",
               v ? "has another type of" : "lacks", key);
  return v;
}

static double number_in(const sevennet *q, value dict, const char *key) {
  value v = pickle_entry(dict, key);
  if (!v || (v->kind != PICKLE_REAL && v->kind != PICKLE_WHOLE))
    fail_model(q->t->path, "its config lacks the number '%s'", key);
  return v->kind == PICKLE_REAL ? v->real : (double)v->whole;
}

static int whole_in(const sevennet *q, value dict, const char *key, int low, int high) {
  const double x = number_in(q, dict, key);
  if (!(x >= low && x <= high && x == floor(x)))
    fail_model(q->t->path, "its config has '%s' = %g; it must be a whole number from %d to %d", key,
               x, low, high);
  return (int)x;
}

/* Refuses a setting that is there and is not the wanted one. */
static void wants_false(const sevennet *q, const char *key) {
  value v = pickle_entry(q->config, key);
  if (v && (v->kind != PICKLE_BOOL || v->whole))
    fail_model(q->t->path, "its config has '%s' = True, which is not supported", key);
}

static void wants_text(const sevennet *q, value dict, const char *key, const char *wanted) {
  value v = pickle_entry(dict, key);
  if (v && (v->kind != PICKLE_TEXT || strcmp(v->text, wanted) != 0))
    fail_model(q->t->path, "its config has '%s' = %.40s; only '%s' is understood", key,
               v->kind == PICKLE_TEXT ? v->text : "something else", wanted);
}

static bool is_true(const sevennet *q, const char *key) {
  value v = pickle_entry(q->config, key);
  return v && v->kind == PICKLE_BOOL && v->whole;
}

static void check_config(const sevennet *q) {
  wants_text(q, q->config, "interaction_type", "nequip");
  wants_text(q, q->config, "self_connection_type", "linear");
  wants_text(q, q->config, "act_radial", "silu");
  wants_text(q, setting(q, "act_scalar", PICKLE_DICT), "e", "silu");
  wants_text(q, setting(q, "act_gate", PICKLE_DICT), "e", "silu");
  wants_text(q, setting(q, "radial_basis", PICKLE_DICT), "radial_basis_name", "bessel");
  static const char *const unset[] = {"is_parity", "readout_as_fcn", "use_bias_in_linear",
                                      "use_modal_node_embedding", "use_modal_wise_scale"};
  for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) wants_false(q, unset[i]);
  static const char *const degrees[] = {"lmax_edge", "lmax_node"};
  for (size_t i = 0; i < 2; i++) {
    value v = pickle_entry(q->config, degrees[i]);
    if (v && v->kind == PICKLE_WHOLE && v->whole >= 0 && v->whole != q->l_max)
      fail_model(q->t->path, "its config has '%s' = %d; only lmax, %d, is understood", degrees[i],
                 (int)v->whole, q->l_max);
  }
}

/* Whether columns of the radial networks are sorted by degree of the message: from version 0.11. */
static bool sorted_columns(const sevennet *q) {
  int major, minor;
  if (sscanf(setting(q, "version", PICKLE_TEXT)->text, "%9d.%9d", &major, &minor) != 2)
    fail_model(q->t->path, "its config has a 'version' that is not supported");
  return major > 0 || minor >= 11;
}

/* ---- tensors ---- */

/* state[KEY], where blanks in the key may stand for underscores. */
static bool find_tensor(sevennet *q, const char *key, weights *w) {
  char blank[NAME_BYTES];
  if (pickle_entry(q->state, key)) return *w = tensor_of(q->t, q->state, key), true;
  snprintf(blank, sizeof blank, "%s", key);
  for (char *s = blank; *s && *s != '.'; s++)
    if (*s == '_') *s = ' ';
  return pickle_entry(q->state, blank) && (*w = tensor_of(q->t, q->state, blank), true);
}

/* A tensor of `count` numbers, under one of two names. */
static weights tensor(sevennet *q, const char *key, const char *old, int64_t count) {
  weights w;
  if (!find_tensor(q, key, &w) && !(old && find_tensor(q, old, &w)))
    fail_model(q->t->path, "there is no tensor '%s': not a SevenNet model of a supported kind",
               key);
  if (w.count != count)
    fail_model(q->t->path, "tensor '%s' has %lld numbers, not %lld", key, (long long)w.count,
               (long long)count);
  return w;
}

static weights layer_tensor(sevennet *q, int layer, const char *what, int64_t count) {
  return tensor(q, named("%d_%s", layer, what).text, NULL, count);
}

/* ---- linear maps ---- */

/* PREFIX.IRREP, one matrix per irrep, from a flat weight.  With `modal`, the scalars have one more
   input per modality: of the chosen one, that is PREFIX_bias. */
static void put_linear(sevennet *q, int layer, const char *what, const irreps *in,
                       const irreps *out, bool modal, const char *name) {
  const int64_t more = modal ? q->n_modalities : 0, n = mul_of(out, 0),
                all = map_numbers(in, out, 0), channels = mul_of(in, 0);
  const weights w = layer_tensor(q, layer, what, all + more * n);
  double factor[MAX_DEGREE + 1];
  for (int l = 0; l <= MAX_DEGREE; l++) factor[l] = 1;
  factor[0] = sqrt((double)channels / (double)(channels + more));
  put_map(q->out, &w, in, out, 0, factor, named("layers.%d.%s", layer, name).text);
  if (modal)
    put_part(q->out, &w, all + q->modality * n, 1 / sqrt((double)(channels + more)), 1, &n,
             named("layers.%d.%s_bias", layer, name).text);
}

/* ---- a layer's paths ---- */

typedef struct {
  int in, l2, l3; /* a term of the features, degrees of the harmonics and of the message */
  int z;          /* the term of the messages */
} path;

typedef struct {
  int n;
  path of[MAX_TERMS]; /* in the order of the radial network's columns */
  int64_t columns;
  irreps messages;
} paths;

/* Messages are in the order of l3, l1, l2. */
static int by_message(const void *one, const void *other) {
  const path *a = one, *b = other;
  return a->l3 != b->l3 ? a->l3 - b->l3 : a->in != b->in ? a->in - b->in : a->l2 - b->l2;
}

/* Columns are in the order of l1, l2, l3; of messages from version 0.11 on. */
static void find_paths(const sevennet *q, const irreps *out, paths *p) {
  *p = (paths){.n = 0};
  for (int in = 0; in < q->features.n; in++)
    for (int l2 = 0; l2 <= q->l_max; l2++)
      for (int l3 = 0; l3 <= q->l_max; l3++) {
        const int l1 = q->features.term[in].l;
        if (l3 < abs(l1 - l2) || l3 > l1 + l2 || !mul_of(out, l3)) continue;
        if (p->n == MAX_TERMS) fail_model(q->t->path, "a layer has more than %d paths", MAX_TERMS);
        p->of[p->n++] = (path){in, l2, l3, 0};
        p->columns += q->features.term[in].mul;
      }
  path sorted[MAX_TERMS];
  memcpy(sorted, p->of, (size_t)p->n * sizeof *sorted);
  qsort(sorted, (size_t)p->n, sizeof *sorted, by_message);
  if (sorted_columns(q)) memcpy(p->of, sorted, (size_t)p->n * sizeof *sorted);
  p->messages.n = p->n;
  for (int i = 0; i < p->n; i++) {
    p->messages.term[i] = (irrep){q->features.term[sorted[i].in].mul, sorted[i].l3, 1};
    for (int k = 0; k < p->n; k++)
      if (!by_message(&p->of[k], &sorted[i])) p->of[k].z = i;
  }
}

/* 1 or -1: the file's 3j symbol relative to ours; those with a degree 0 are not stored, and are
   ours. */
static double sign_of(sevennet *q, int layer, int l1, int l2, int l3) {
  char key[NAME_BYTES];
  weights w;
  double *C = allocate((size_t)((2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1)), sizeof *C), sum = 0;
  snprintf(key, sizeof key, "%d_convolution.convolution._compiled_main_left_right._w3j_%d_%d_%d",
           layer, l1, l2, l3);
  reference_3j(l1, l2, l3, C);
  const bool found = find_tensor(q, key, &w);
  if (found && w.count != (int64_t)(2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1))
    fail_model(q->t->path, "tensor '%s' is not of the shape of its degrees", key);
  for (int64_t i = 0; found && i < w.count; i++) sum += C[i] * element(&w, i);
  free(C);
  if (found && fabs(fabs(sum) - 1) > 1e-4)
    fail_model(q->t->path, "tensor '%s' is no 3j symbol, nor its negative", key);
  return found && sum < 0 ? -1 : 1;
}

/* The last matrix; columns of paths whose symbol has the other sign are negated. */
static void put_signed(sevennet *q, int layer, const paths *p, const weights *w,
                       const int64_t shape[2], const char *name) {
  double *sign = allocate((size_t)p->columns, sizeof *sign);
  int64_t at = 0;
  for (int i = 0; i < p->n; i++) {
    const irrep in = q->features.term[p->of[i].in];
    const double own = sign_of(q, layer, in.l, p->of[i].l2, p->of[i].l3);
    for (const int64_t end = at + in.mul; at < end; at++) sign[at] = own;
  }
  put_columns(q->out, w, shape, sign, name);
  free(sign);
}

static void put_radial(sevennet *q, int layer, const paths *p) {
  value basis = setting(q, "radial_basis", PICKLE_DICT),
        hidden = setting(q, "weight_nn_hidden_neurons", PICKLE_LIST);
  const int matrices = (int)hidden->n + 1;
  int64_t shape[2] = {whole_in(q, basis, "bessel_basis_num", 1, MAX_BASIS), 0};
  for (int k = 0; k < matrices; k++) {
    const bool last = k == matrices - 1;
    shape[1] = last ? p->columns : whole_item(q->t, hidden, (size_t)k, MAX_CHANNELS + 1);
    const model_name key = named("convolution.weight_nn.layer%d.weight", k),
                     name = named("layers.%d.radial.%d", layer, k);
    const weights w = layer_tensor(q, layer, key.text, shape[0] * shape[1]);
    if (last) put_signed(q, layer, p, &w, shape, name.text);
    else put_part(q->out, &w, 0, 1, 2, shape, name.text);
    shape[0] = shape[1];
  }
  put_number(q->out, matrices, "radial_layers");
}

/* ---- one layer ---- */

/* "128x0e+64x1e": item i of irreps_manual. */
static irreps irreps_of(const sevennet *q, size_t i) {
  const char *text = item(q->t, setting(q, "irreps_manual", PICKLE_LIST), i, PICKLE_TEXT)->text,
             *at = text;
  irreps out = {.n = 0};
  char parity;
  for (int used = 0, mul, l; *at; at += used + (at[used] == '+')) {
    const bool good = sscanf(at, "%6dx%2d%c%n", &mul, &l, &parity, &used) == 3 && parity == 'e' &&
                      mul > 0 && mul <= MAX_CHANNELS && l >= out.n && l <= MAX_DEGREE &&
                      out.n < MAX_TERMS && (!at[used] || at[used] == '+');
    if (!good) fail_model(q->t->path, "its irreps \"%.60s\" are not supported", text);
    out.term[out.n++] = (irrep){mul, l, 1};
  }
  if (!out.n || out.term[0].l)
    fail_model(q->t->path, "its irreps \"%.60s\" do not begin with scalars", text);
  return out;
}

static void convert_layer(sevennet *q, int layer) {
  const irreps out = irreps_of(q, (size_t)layer + 1), linear = put_gate(q->out, layer, &out);
  path_terms terms[MAX_TERMS];
  paths p;
  put_irreps(q->out, &q->features, "layers.%d.irreps_in", layer);
  put_linear(q, layer, "self_connection_intro.linear.weight", &q->features, &linear, false,
             "self_connection");
  put_linear(q, layer, "self_interaction_1.linear.weight", &q->features, &q->features,
             q->modality >= 0 && is_true(q, "use_modal_self_inter_intro"), "linear_1");
  find_paths(q, &out, &p);
  for (int i = 0; i < p.n; i++) terms[i] = (path_terms){p.of[i].in, p.of[i].l2, p.of[i].z};
  put_paths(q->out, layer, terms, p.n, &p.messages);
  put_radial(q, layer, &p);
  put_linear(q, layer, "self_interaction_2.linear.weight", &p.messages, &linear,
             q->modality >= 0 && is_true(q, "use_modal_self_inter_outro"), "linear_2");
  const weights w = tensor(q, named("%d_convolution.denominator", layer).text,
                           named("%d_convolution.denumerator", layer).text, 1);
  const double denominator = element(&w, 0);
  put_number(q->out, denominator * denominator, "avg_num_neighbors");
  q->features = out;
}

/* ---- the network ---- */

/* The symbols in the order of their species: config["_type_map"], atomic number: species. */
static void read_species(sevennet *q) {
  value map = setting(q, "_type_map", PICKLE_DICT);
  int element[MAX_ELEMENTS] = {0};
  q->n_species = (int)(map->n / 2);
  for (size_t i = 0; i + 1 < map->n; i += 2) {
    value z = map->items[i], at = map->items[i + 1];
    const bool good = map->n / 2 < MAX_ELEMENTS && z->kind == PICKLE_WHOLE &&
                      at->kind == PICKLE_WHOLE && z->whole > 0 && z->whole <= CLB_ELEMENTS &&
                      at->whole >= 0 && at->whole < q->n_species && !element[at->whole];
    if (!good)
      fail_model(q->t->path, "its '_type_map' is not a species 0, 1, ... for each element");
    element[at->whole] = (int)z->whole;
  }
  put_species(q->out, element, q->n_species);
}

/* Chooses the modality by name, from config["_modal_map"]. */
static void choose_modality(sevennet *q, const char *wanted) {
  value map = pickle_entry(q->config, "_modal_map");
  const char *names[MAX_MODALITIES];
  const bool some = map && map->kind == PICKLE_DICT && map->n && is_true(q, "use_modality");
  q->modality = -1;
  q->n_modalities = some ? (int)(map->n / 2) : 0;
  q->out->has_modalities = some;
  if (!some) return;
  for (size_t i = 0; i + 1 < map->n; i += 2) {
    value name = map->items[i], at = map->items[i + 1];
    if (q->n_modalities > MAX_MODALITIES || name->kind != PICKLE_TEXT || at->kind != PICKLE_WHOLE ||
        at->whole < 0 || at->whole >= q->n_modalities)
      fail_model(q->t->path, "its '_modal_map' is not supported");
    names[i / 2] = name->text;
  }
  const int chosen =
      chosen_of(q->t->path, wanted, names, q->n_modalities, "modality", "modalities");
  q->modality = (int)map->items[2 * chosen + 1]->whole;
}

static void read_edges(sevennet *q) {
  value cutoff = setting(q, "cutoff_function", PICKLE_DICT),
        name = pickle_entry(cutoff, "cutoff_function_name");
  const double r_max = number_in(q, q->config, "cutoff");
  const int64_t n =
      whole_in(q, setting(q, "radial_basis", PICKLE_DICT), "bessel_basis_num", 1, MAX_BASIS);
  const weights w =
      tensor(q, "edge_embedding.basis_function.coeffs", "EdgeEmbedding.basis_function.coeffs", n);
  double x[MAX_BASIS];
  irreps sh = {.n = q->l_max + 1};
  for (int l = 0; l <= q->l_max; l++) sh.term[l] = (irrep){1, l, 1};
  for (int64_t i = 0; i < n; i++) x[i] = element(&w, i) * r_max;
  put_doubles(q->out, x, n, "bessel_frequencies");
  put_edges(q->out, r_max, &sh, n);
  put_string(q->out, is_true(q, "_normalize_sph") ? "directions" : "vectors", "harmonics_of");
  if (name && name->kind == PICKLE_TEXT && !strcmp(name->text, "XPLOR")) {
    put_string(q->out, "xplor", "cutoff");
    put_number(q->out, number_in(q, cutoff, "cutoff_on"), "cutoff_on");
    return;
  }
  wants_text(q, cutoff, "cutoff_function_name", "poly_cut");
  put_polynomial(q->out, number_in(q, cutoff, "poly_cut_p_value"));
}

static void put_output(sevennet *q) {
  enum { HIDDEN = 1 << 12 };
  const int64_t in = q->features.term[0].mul;
  const bool modal = q->modality >= 0 && is_true(q, "use_modal_output_block");
  const int64_t more = modal ? q->n_modalities : 0;
  weights last;
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
  double bias = 0, scale[MAX_ELEMENTS], shift[MAX_ELEMENTS];
  for (int64_t i = 0; i < hidden && modal; i++)
    bias += element(&w, (in + q->modality) * hidden + i) / sqrt((double)(in + more)) *
            element(&last, i) / sqrt((double)hidden);
  const bool each = q->modality >= 0 && is_true(q, "use_modal_wise_shift");
  const weights scales = tensor(q, "rescale_atomic_energy.scale", NULL, q->n_species),
                shifts = tensor(q, "rescale_atomic_energy.shift", NULL,
                                q->n_species * (each ? (int64_t)q->n_modalities : 1));
  for (int i = 0; i < q->n_species; i++) {
    scale[i] = element(&scales, i);
    shift[i] = element(&shifts, (each ? q->modality * q->n_species : 0) + i) + scale[i] * bias;
  }
  put_per_species(q->out, scale, shift, q->n_species);
  put_string(q->out, "1", "energy_scale");
}

void convert_sevennet(torch *t, const char *modality, model *out) {
  sevennet *q = &(sevennet){.t = t, .out = out};
  t->program = "SevenNet";
  q->config = pickle_entry(t->root, "config");
  q->state = pickle_entry(t->root, "model_state_dict");
  if (!q->config || q->config->kind != PICKLE_DICT || !q->state || q->state->kind != PICKLE_DICT)
    fail_model(t->path, "a checkpoint without SevenNet's 'config' and 'model_state_dict'");
  q->l_max = whole_in(q, q->config, "lmax", 0, MAX_DEGREE);
  q->n_layers = whole_in(q, q->config, "num_convolution_layer", 1, MAX_LAYERS);
  check_config(q);
  choose_modality(q, modality);
  put_string(out, "sevennet", "architecture");
  read_species(q);
  read_edges(q);
  put_string(out, "fan_in", "radial_normalization");
  static const char *const silus[] = {"radial_activation", "activation_even", "activation_gate"};
  put_silu(out, silu_scale, silus, 3);
  q->features = irreps_of(q, 0);
  if (q->features.n != 1) fail_model(t->path, "its first features are not scalars alone");
  put_string(out, "linear", "embedding");
  const int64_t shape[2] = {q->n_species, q->features.term[0].mul};
  const weights w = tensor(q, "onehot_to_feature_x.linear.weight", NULL, shape[0] * shape[1]);
  put_part(q->out, &w, 0, 1, 2, shape, "embedding");
  for (int n = 0; n < q->n_layers; n++) convert_layer(q, n);
  put_number(out, q->n_layers, "n_layers");
  put_string(out, "linear", "self_connection");
  put_string(out, "none", "norm");
  put_output(q);
}
