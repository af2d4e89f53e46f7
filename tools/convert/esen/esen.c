/* tools/convert/esen/esen.c - eSEN's inference checkpoints of fairchem-core: the configurations of
   the network, its heads and its tasks. */
#include "tools/convert/esen/esen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

void refuse_esen(const esen *q, const char *what) {
  fail_model(q->t->path, "an eSEN model with %s, which is not supported", what);
}

/* ---- settings ---- */

double esen_number(const esen *q, value dict, const char *key, double without) {
  value v = pickle_entry(dict, key);
  double x = without;
  if ((v && !plain_number(v, &x)) || !isfinite(x))
    fail_model(q->t->path, "its configuration has no number '%s'", key);
  return x;
}

int64_t esen_whole(const esen *q, const char *key, int64_t without, int64_t low, int64_t high) {
  const double x = esen_number(q, q->backbone, key, (double)without);
  if (!(x >= (double)low && x <= (double)high && x == floor(x)))
    fail_model(q->t->path,
               "its configuration has '%s' = %g; it must be a whole number from %lld to %lld", key,
               x, (long long)low, (long long)high);
  return (int64_t)x;
}

bool esen_flag(const esen *q, value dict, const char *key, bool without) {
  value v = pickle_entry(dict, key);
  if (v && v->kind != PICKLE_BOOL)
    fail_model(q->t->path, "its configuration has no True or False '%s'", key);
  return v ? v->whole != 0 : without;
}

const char *esen_text(const esen *q, value dict, const char *key, const char *without) {
  value v = pickle_entry(dict, key);
  if (v && v->kind != PICKLE_TEXT)
    fail_model(q->t->path, "its configuration has '%s', which is no text", key);
  return v ? v->text : without;
}

static void expect_word(const esen *q, const char *key, const char *wanted) {
  const char *text = esen_text(q, q->backbone, key, wanted);
  if (strcmp(text, wanted) != 0)
    fail_model(q->t->path, "its configuration has '%s' = '%.40s'; only '%s' is understood", key,
               text, wanted);
}

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

/* None, or an empty list. */
static bool is_empty(value v) {
  return !v || v->kind == PICKLE_NONE || (v->kind == PICKLE_LIST && !v->n);
}

/* ---- the network ---- */

static void check_class(const esen *q) {
  const char *name = esen_text(q, q->backbone, "model", "");
  const bool moe = ends_with(name, "eSCNMDMoeBackbone") || ends_with(name, "escnmd_moe_backbone");
  if (!moe && !ends_with(name, "eSCNMDBackbone") && !ends_with(name, "escnmd_backbone"))
    fail_model(q->t->path,
               "its network is '%.80s'; only eSCNMDBackbone of fairchem-core is "
               "understood",
               name);
  if (moe && esen_number(q, q->backbone, "num_experts", 8) != 0)
    refuse_esen(q, "experts (UMA's 'num_experts')");
}

static void read_backbone(esen *q) {
  enum { LARGEST = 1 << 12 };
  check_class(q);
  if (esen_flag(q, q->backbone, "direct_forces", true))
    refuse_esen(q, "forces of their own ('direct_forces')");
  if (!is_empty(pickle_entry(q->backbone, "charge_balanced_channels")) ||
      !is_empty(pickle_entry(q->backbone, "spin_balanced_channels")))
    refuse_esen(q, "balanced channels");
  expect_word(q, "norm_type", "rms_norm_sh");
  expect_word(q, "act_type", "gate");
  expect_word(q, "distance_function", "gaussian");
  q->grid = !strcmp(esen_text(q, q->backbone, "ff_type", "grid"), "grid");
  if (!q->grid) expect_word(q, "ff_type", "spectral");
  value resolution = pickle_entry(q->backbone, "grid_resolution");
  if (q->grid && resolution && resolution->kind != PICKLE_NONE)
    refuse_esen(q, "a 'grid_resolution' of its own");
  q->l = (int)esen_whole(q, "lmax", 2, 1, 8);
  q->m = (int)esen_whole(q, "mmax", 2, 0, q->l);
  if (q->grid && q->l > 3) refuse_esen(q, "a grid of degrees above 3");
  q->n_layers = (int)esen_whole(q, "num_layers", 2, 1, 64);
  q->channels = esen_whole(q, "sphere_channels", 128, 1, LARGEST);
  q->hidden = esen_whole(q, "hidden_channels", 128, 1, LARGEST);
  q->edge = esen_whole(q, "edge_channels", 128, 1, LARGEST);
  q->gaussians = esen_whole(q, "num_distance_basis", 512, 2, 1 << 14);
  q->elements = esen_whole(q, "max_num_elements", 100, 2, 1 << 10);
  q->n_species = (int)(q->elements > CLB_ELEMENTS ? CLB_ELEMENTS : q->elements - 1);
  q->embeds_dataset = esen_flag(q, q->backbone, "use_dataset_embedding", true);
}

/* ---- heads and tasks ---- */

/* The only one whose energy forces are the slope of. */
static void read_head(esen *q) {
  value heads = pickle_entry(q->model_config, "heads");
  if (!heads || heads->kind != PICKLE_DICT || heads->n != 2 ||
      heads->items[0]->kind != PICKLE_TEXT || strlen(heads->items[0]->text) > 40)
    refuse_esen(q, "other heads than one");
  const char *name = heads->items[0]->text;
  value head = heads->items[1], own = head;
  const char *class = esen_text(q, head, "module", ""), *inner = "";
  if (ends_with(class, "DatasetSpecificSingleHeadWrapper")) {
    class = esen_text(q, head, "head_cls", "");
    own = pickle_entry(head, "head_kwargs");
    inner = "head.";
  }
  if (!ends_with(class, "MLP_EFS_Head"))
    fail_model(q->t->path, "its head is '%.80s'; only MLP_EFS_Head is understood", class);
  if (own && strcmp(esen_text(q, own, "reduce", "sum"), "sum") != 0)
    refuse_esen(q, "energies that are means");
  snprintf(q->head, sizeof q->head, "output_heads.%s.%senergy_block.", name, inner);
}

/* Data sets of tasks of energies. */
static value task_of(esen *q, const char *wanted) {
  enum { MAX_DATASETS = 64 };
  const char *names[MAX_DATASETS];
  value tasks[MAX_DATASETS];
  int n = 0;
  for (size_t i = 0; i < q->tasks->n; i++) {
    value task = q->tasks->items[i], sets = pickle_entry(task, "datasets");
    if (strcmp(esen_text(q, task, "property", ""), "energy") != 0 || !sets) continue;
    for (size_t k = 0; sets->kind == PICKLE_LIST && k < sets->n && n < MAX_DATASETS; k++) {
      names[n] = item(q->t, sets, k, PICKLE_TEXT)->text;
      tasks[n++] = task;
    }
  }
  if (!n) refuse_esen(q, "no task whose property is 'energy'");
  const int chosen = chosen_of(q->t->path, wanted, names, n, "modality", "modalities");
  q->dataset = names[chosen];
  return tasks[chosen];
}

static void put_energies(const esen *q, value task) {
  value normalizer = pickle_entry(task, "normalizer"),
        references = pickle_entry(task, "element_references"),
        inner = references ? pickle_entry(references, "element_references") : NULL,
        args = inner ? pickle_entry(inner, "_args_") : NULL,
        list = args && args->kind == PICKLE_LIST && args->n ? args->items[0] : NULL;
  double scale[CLB_ELEMENTS], shift[CLB_ELEMENTS];
  int species[CLB_ELEMENTS];
  if (!normalizer) refuse_esen(q, "energies without a 'normalizer'");
  if (esen_number(q, normalizer, "mean", 0) != 0) refuse_esen(q, "a 'mean' of energies");
  if (references && references->kind != PICKLE_NONE && (!list || list->kind != PICKLE_LIST))
    refuse_esen(q, "element references that are not a list in its tasks");
  for (int s = 0; s < q->n_species; s++) {
    double x = 0;
    if (list && ((size_t)s + 1 >= list->n || !plain_number(list->items[s + 1], &x)))
      refuse_esen(q, "an element without a reference energy");
    scale[s] = esen_number(q, normalizer, "rmsd", 1);
    shift[s] = x;
    species[s] = s + 1;
  }
  put_species(q->out, species, q->n_species);
  put_number(q->out, 1, "energy_scale");
  put_per_species(q->out, scale, shift, q->n_species);
}

/* ---- the file ---- */

bool is_esen(const torch *t) {
  value state = maybe(t->root, "model_config");
  return state && pickle_entry(state, "backbone") && maybe(t->root, "ema_state_dict");
}

static void put_settings(const esen *q) {
  static const char *const activations[] = {"radial_activation"};
  put_string(q->out, "esen", "architecture");
  put_number(q->out, esen_number(q, q->backbone, "cutoff", 5), "r_max");
  put_number(q->out, q->l, "l_max");
  put_number(q->out, q->m, "m_max");
  put_number(q->out, q->n_layers, "n_layers");
  put_number(q->out, (double)q->channels, "n_channels");
  put_number(q->out, (double)q->hidden, "n_hidden");
  put_number(q->out, (double)q->gaussians, "n_basis");
  put_number(q->out, 2, "basis_width");
  put_polynomial(q->out, 5);
  put_number(q->out, 3, "radial_layers");
  put_silu(q->out, 1, activations, 1);
  put_string(q->out, "layer", "radial_normalization");
  put_number(q->out, 1e-5, "radial_epsilon");
  put_number(q->out, 1e-5, "norm_epsilon");
  put_number(q->out, 0.2, "degree_scale");
  put_string(q->out, q->grid ? "grid" : "spectral", "feed_forward");
  put_number(q->out, 3, "readout_layers");
}

void convert_esen(torch *t, const char *dataset, model *out) {
  esen *q = &(esen){.t = t, .out = out};
  t->program = "eSEN";
  out->has_modalities = true;
  q->model_config = maybe(t->root, "model_config");
  q->backbone = pickle_entry(q->model_config, "backbone");
  q->state = maybe(t->root, "ema_state_dict");
  q->tasks = maybe(t->root, "tasks_config");
  if (!q->tasks || q->tasks->kind != PICKLE_LIST) refuse_esen(q, "no list 'tasks_config'");
  read_backbone(q);
  read_head(q);
  value task = task_of(q, dataset);
  put_energies(q, task);
  put_settings(q);
  esen_states(q);
  esen_tensors(q);
}
