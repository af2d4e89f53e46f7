/* tools/convert/sevennet/equflash.c - EquFlash's checkpoints: torch.save of a dict with `config`
   and `state_dict`. Its networks are SevenNet's, under other names, with irreps by a rule of its
   own and a feed-forward after each gate. */
#include "tools/convert/sevennet/sevennet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static const struct {
  const char *sevennet, *equflash;
} modules[] = {{"self_connection_intro.linear", "sc"},
               {"self_interaction_1.linear", "self_interaction_1"},
               {"self_interaction_2.linear", "self_interaction_2"},
               {"convolution.", "conv."},
               {"onehot_to_feature_x.linear", "node_embedding.input_linear"},
               {"reduce_input_to_hidden.linear", "atomic_reduce.linear_out1"},
               {"reduce_hidden_to_energy.linear", "atomic_reduce.linear_out2"},
               {"rescale_atomic_energy", "atomic_reduce.rescale_atomic_energy"}};

void equflash_name(const char *key, const char *prefix, char name[FILE_NAME_BYTES]) {
  int layer, used = 0;
  const char *before = "", *rest = key;
  char block[40] = "";
  if (sscanf(key, "%3d_%n", &layer, &used) == 1 && used) {
    snprintf(block, sizeof block, "interaction_blocks.%d.", layer);
    rest += used;
  }
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    const size_t n = strlen(modules[i].sevennet);
    if (strncmp(rest, modules[i].sevennet, n) != 0) continue;
    before = modules[i].equflash;
    rest += n;
    break;
  }
  snprintf(name, FILE_NAME_BYTES, "%s%s%s%s", prefix, block, before, rest);
}

/* ---- irreps: all that can be made and still reach the last scalars ---- */

static bool reaches(const sevennet *q, irrep from, const irreps *to) {
  for (int i = 0; i < to->n; i++)
    for (int l = abs(from.l - to->term[i].l); l <= from.l + to->term[i].l && l <= q->l_max; l++)
      if (from.parity * harmonic_parity(q, l) == to->term[i].parity) return true;
  return false;
}

irreps equflash_irreps(const sevennet *q, int layer) {
  const int channels = whole_in(q, "channel", 32, 1, MAX_CHANNELS);
  irreps of[MAX_LAYERS + 1] = {{1, {{channels, 0, 1}}}};
  for (int n = 1; n < q->n_layers; n++)
    for (int l = 0; l <= q->l_max; l++)
      for (int parity = -1; parity <= 1; parity += 2) {
        const irrep made = {channels, l, parity};
        if (reaches(q, made, &of[n - 1])) of[n].term[of[n].n++] = made;
      }
  of[q->n_layers] = of[0];
  for (int n = q->n_layers - 1; n > 0; n--) {
    int kept = 0;
    for (int i = 0; i < of[n].n; i++)
      if (reaches(q, of[n].term[i], &of[n + 1])) of[n].term[kept++] = of[n].term[i];
    of[n].n = kept;
  }
  return of[layer];
}

/* ---- settings ---- */

void refuse_equflash(const sevennet *q, const char *what) {
  fail_model(q->t->path, "an EquFlash model with %s, which is not supported", what);
}

/* cuEquivariance's products have their messages in another order of parities than the maps that
   read them; only where a degree has one parity are they the same. */
static void check_products(const sevennet *q) {
  value kind = pickle_entry(q->config, "conv_kwargs");
  if (strcmp(text_in(q, kind, "conv_type", "cueq"), "cueq") != 0) return;
  for (int n = 0; n <= q->n_layers; n++) {
    const irreps x = listed_irreps(q, n);
    for (int i = 0; i < x.n; i++)
      if (channels_of(&x, (irrep){0, x.term[i].l, -x.term[i].parity}))
        refuse_equflash(q, "conv_type 'cueq' and both parities of a degree");
  }
}

/* Of energies; forces follow from them. */
static void check_normalizers(sevennet *q) {
  static const char *const dicts[] = {"normalizers", "elementrefs"};
  for (int i = 0; i < 2; i++) {
    value dict = pickle_entry(q->t->root, dicts[i]);
    if (dict && dict->n) refuse_equflash(q, dicts[i]);
  }
}

static void check_first(const sevennet *q) {
  const char *self = text_in(q, q->config, "self_connection", "linear");
  if (strcmp(self, "linear") != 0) refuse_equflash(q, "another 'self_connection' than 'linear'");
  if (is_true(q, "symmetric_contraction", false))
    refuse_equflash(q, "'symmetric_contraction' = True");
  check_products(q);
}

static void read_equflash_settings(sevennet *q) {
  static const char *const names[] = {"equflash", "equflash_comp", "equflashv2", "equflashv2_comp"};
  const char *name = text_in(q, q->config, "name", "");
  int number = 0;
  while (number < 4 && strcmp(name, names[number]) != 0) number++;
  if (number == 4)
    fail_model(q->t->path,
               "a model '%.40s'; of EquFlash's only 'equflash' and 'equflashv2' are known", name);
  q->v2 = number > 1;
  check_normalizers(q);
  q->equflash = q->sorted = q->one_self = true;
  q->version[1] = 13;
  q->parity = is_true(q, "is_parity", true);
  q->l_max = whole_in(q, "lmax", 3, 0, MAX_DEGREE);
  value list = pickle_entry(q->config, "irreps_manual");
  q->n_layers = list && list->kind == PICKLE_LIST
                    ? (int)list->n - 1
                    : whole_in(q, "num_convolution_layer", 5, 1, MAX_LAYERS);
  if (q->n_layers < 1 || q->n_layers > MAX_LAYERS)
    fail_model(q->t->path, "it has %d layers; from 1 to %d are supported", q->n_layers, MAX_LAYERS);
  if (q->v2) read_equflash_v2(q);
  else check_first(q);
}

bool is_equflash(const torch *t) {
  value config = pickle_entry(t->root, "config"),
        network = config ? pickle_entry(config, "model") : NULL;
  return network && pickle_entry(network, "name") && pickle_entry(t->root, "state_dict");
}

void convert_equflash(torch *t, model *out) {
  sevennet *q = &(sevennet){.t = t, .out = out, .modality = -1};
  t->program = "EquFlash";
  q->config = pickle_entry(pickle_entry(t->root, "config"), "model");
  q->state = pickle_entry(t->root, "state_dict");
  read_equflash_settings(q);
  convert_network(q);
}
