/* tools/convert/sevennet/settings.c - the configuration in SevenNet's checkpoints. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- values ---- */

value setting(const sevennet *q, const char *key, pickle_kind kind) {
  value v = pickle_entry(q->config, key);
  if (!v || v->kind != kind)
    fail_model(q->t->path, "its config %s '%s': not a SevenNet checkpoint of a supported kind",
               v ? "has another type of" : "lacks", key);
  return v;
}

bool is_true(const sevennet *q, const char *key, bool without) {
  value v = pickle_entry(q->config, key);
  if (!v) return without;
  if (v->kind != PICKLE_BOOL) fail_model(q->t->path, "its config has no True or False '%s'", key);
  return v->whole;
}

double number_in(const sevennet *q, value dict, const char *key, double without) {
  value v = dict ? pickle_entry(dict, key) : NULL;
  double x = without;
  if ((v && !plain_number(v, &x)) || !isfinite(x))
    fail_model(q->t->path, "its config lacks the number '%s'", key);
  return x;
}

int whole_in(const sevennet *q, const char *key, double without, int low, int high) {
  const double x = number_in(q, q->config, key, without);
  if (!(x >= low && x <= high && x == floor(x)))
    fail_model(q->t->path, "its config has '%s' = %g; it must be a whole number from %d to %d", key,
               x, low, high);
  return (int)x;
}

const char *text_in(const sevennet *q, value dict, const char *key, const char *without) {
  value v = dict ? pickle_entry(dict, key) : NULL;
  if (v && v->kind != PICKLE_TEXT)
    fail_model(q->t->path, "its config has '%s', which is no text", key);
  return v ? v->text : without;
}

bool is_modal(const sevennet *q, const char *key) {
  return q->modality >= 0 && is_true(q, key, false);
}

static void unknown(const sevennet *q, const char *key, const char *found, const char *known) {
  fail_model(q->t->path, "its config has '%s' = %.40s; only %s is understood", key, found, known);
}

/* ---- activations ---- */

void put_activation(const sevennet *q, const char *name, const char *prefix) {
  const double scale = moment_scale(name);
  if (!(scale > 0)) unknown(q, prefix, name, "silu, tanh, abs, ssp, relu or sigmoid");
  put_string(q->out, name, "%s", prefix);
  put_number(q->out, scale, "%s_scale", prefix);
}

const char *self_connection(const sevennet *q, int layer) {
  value v = pickle_entry(q->config, "self_connection_type");
  if (q->equflash) return "linear";
  const bool listed = v && v->kind == PICKLE_LIST;
  const char *type = listed ? item(q->t, v, (size_t)layer, PICKLE_TEXT)->text
                            : text_in(q, q->config, "self_connection_type", "nequip");
  if (strcmp(type, "nequip") != 0 && strcmp(type, "linear") != 0)
    unknown(q, "self_connection_type", type, "'nequip' or 'linear'");
  return type;
}

/* ---- all of it ---- */

/* Files before 0.11.0, and its first development version, have columns in the order of l1, l2, l3.
 */
static void read_version(sevennet *q) {
  const char *text = setting(q, "version", PICKLE_TEXT)->text;
  int patch, used = 0;
  if (sscanf(text, "%9d.%9d.%9d%n", &q->version[0], &q->version[1], &patch, &used) != 3)
    fail_model(q->t->path, "its config has 'version' %.40s, not three numbers", text);
  q->sorted = (q->version[0] > 0 || q->version[1] >= 11) &&
              (strncmp(text, "0.11.0", 6) != 0 || strcmp(text + used, ".dev0") != 0);
}

void read_settings(sevennet *q) {
  const char *model_type = text_in(q, q->config, "_model_type", "E3_equivariant_model"),
             *interaction = text_in(q, q->config, "interaction_type", "nequip");
  value basis = pickle_entry(q->config, "radial_basis");
  const char *functions = text_in(q, basis, "radial_basis_name", "bessel");
  read_version(q);
  if (strcmp(model_type, "E3_equivariant_model") != 0)
    unknown(q, "_model_type", model_type, "'E3_equivariant_model'");
  if (strcmp(interaction, "nequip") != 0) unknown(q, "interaction_type", interaction, "'nequip'");
  if (strcmp(functions, "bessel") != 0) unknown(q, "radial_basis_name", functions, "'bessel'");
  if (!is_true(q, "optimize_by_reduce", true)) unknown(q, "optimize_by_reduce", "False", "True");
  q->parity = setting(q, "is_parity", PICKLE_BOOL)->whole;
  q->n_layers = whole_in(q, "num_convolution_layer", NAN, 1, MAX_LAYERS);
  q->one_self = true;
  for (int i = 1; i < q->n_layers; i++)
    q->one_self &= !strcmp(self_connection(q, i), self_connection(q, 0));
  const int edges = whole_in(q, "lmax_edge", -1, -1, MAX_DEGREE);
  q->l_max = edges > 0 ? edges : whole_in(q, "lmax", NAN, 0, MAX_DEGREE);
}

/* config["_type_map"], atomic number: species. Number 0 is no element: a row that no atom has. */
void read_species(sevennet *q) {
  value map = setting(q, q->equflash ? "type_map" : "_type_map", PICKLE_DICT);
  int species[CLB_ELEMENTS], numbers[CLB_ELEMENTS];
  bool taken[CLB_ELEMENTS + 1] = {false}, seen[CLB_ELEMENTS + 1] = {false};
  q->n_all = (int)(map->n / 2);
  for (size_t i = 0; i + 1 < map->n; i += 2) {
    value z = map->items[i], at = map->items[i + 1];
    const bool good = map->n / 2 <= CLB_ELEMENTS + 1 && z->kind == PICKLE_WHOLE &&
                      at->kind == PICKLE_WHOLE && z->whole >= 0 && z->whole <= CLB_ELEMENTS &&
                      at->whole >= 0 && at->whole < q->n_all && !taken[at->whole] &&
                      !seen[z->whole];
    if (!good)
      fail_model(q->t->path, "its map of types is not a species 0, 1, ... for each element");
    taken[at->whole] = seen[z->whole] = true;
    if (!z->whole) continue;
    int k = q->n_species++; /* in the order of species */
    for (; k > 0 && species[k - 1] > at->whole; k--)
      species[k] = species[k - 1], numbers[k] = numbers[k - 1];
    species[k] = (int)at->whole, numbers[k] = (int)z->whole;
  }
  if (!q->n_species) fail_model(q->t->path, "its map of types has no elements");
  memcpy(q->species, species, (size_t)q->n_species * sizeof *species);
  put_species(q->out, numbers, q->n_species);
}

/* Chooses the modality by name, from config["_modal_map"]. */
void choose_modality(sevennet *q, const char *wanted) {
  value map = pickle_entry(q->config, "_modal_map");
  const char *names[MAX_MODALITIES];
  const bool some = map && map->kind == PICKLE_DICT && map->n && is_true(q, "use_modality", false);
  q->modality = -1;
  q->n_modalities = some ? (int)(map->n / 2) : 0;
  q->out->has_modalities = some;
  if (!some) return;
  for (size_t i = 0; i + 1 < map->n; i += 2) {
    value name = map->items[i], at = map->items[i + 1];
    if (q->n_modalities > MAX_MODALITIES || name->kind != PICKLE_TEXT || at->kind != PICKLE_WHOLE ||
        at->whole < 0 || at->whole >= q->n_modalities)
      fail_model(q->t->path, "its '_modal_map' is not a number 0, 1, ... for each of at most %d",
                 MAX_MODALITIES);
    names[i / 2] = name->text;
  }
  const int chosen =
      chosen_of(q->t->path, wanted, names, q->n_modalities, "modality", "modalities");
  q->modality = (int)map->items[2 * chosen + 1]->whole;
}
