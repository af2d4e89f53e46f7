/* tools/new/new_options.c - the options of a new network, and what is usual. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/dynamics/md_system.h"
#include "tools/new/new_network.h"

const char *const new_names[NEW_KINDS] = {"nequip", "nequix", "sevennet", "mace"};

/* l_max: of harmonics; -1: as of features. */
static const struct {
  const char *features;
  double r_max;
  int layers, l_max, correlation, n_hidden;
} usual[NEW_KINDS] = {[NEW_NEQUIP] = {"64x0e+64x1o+32x2e", 5, 4, -1, 0, 2},
                      [NEW_NEQUIX] = {"128x0e+64x1o+32x2e+32x3o", 6, 4, -1, 0, 3},
                      [NEW_SEVENNET] = {"128x0e+64x1e+32x2e", 5, 5, -1, 0, 2},
                      [NEW_MACE] = {"128x0e+128x1o", 5, 2, 3, 3, 3}};
enum { BASIS = 8, HIDDEN = 64, MAX_LAYERS = 16, MAX_FEATURES = 8 };

/* ---- irreps ---- */

/* Degrees ascending, each irrep once, scalars first; false: it is not so. */
static bool read_features(const char *text, irreps *out) {
  if (!read_irreps(text, out) || out->n > MAX_FEATURES) return false;
  for (int i = 0; i < out->n; i++) {
    const irrep t = out->term[i];
    if (!t.mul) return false;
    for (int j = 0; j < i; j++)
      if (same_irrep(out->term[j], t) || out->term[j].l > t.l) return false;
  }
  return !out->term[0].l && out->term[0].parity > 0;
}

static int highest(const irreps *list) { return list->term[list->n - 1].l; }

/* ---- parsing ---- */

enum { NEW = 800, FEATURES, LAYERS, R_MAX, L_MAX, N_BASIS, RADIAL, CORRELATION };

static void read_hidden(const struct argp_state *state, const char *text, new_choice *c) {
  c->n_hidden = 0;
  for (const char *at = text;; at++) {
    char *end;
    const long n = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',') || n < 1 || n > 1024 || c->n_hidden == MAX_HIDDEN)
      argp_error(state, "--radial is up to %d widths, from 1 to 1024, such as 64,64; not '%s'",
                 MAX_HIDDEN, text);
    c->hidden[c->n_hidden++] = (int)n;
    if (!*end) return;
    at = end;
  }
}

static void check(const struct argp_state *state, const new_choice *c, bool given) {
  if (!c->name && given)
    argp_error(state, "--features, --layers, --r-max, --l-max, --basis, --radial and --correlation "
                      "are of --new");
  if (!c->name) return;
  const bool mace = !strcmp(c->name, new_names[NEW_MACE]),
             sevennet = !strcmp(c->name, new_names[NEW_SEVENNET]),
             nequix = !strcmp(c->name, new_names[NEW_NEQUIX]);
  if (c->correlation && !mace) argp_error(state, "--correlation is of --new mace");
  for (int i = 0; i < c->features.n; i++) {
    const irrep t = c->features.term[i];
    const bool natural = t.parity == (t.l % 2 ? -1 : 1);
    if (sevennet && t.parity < 0)
      argp_error(state, "--features: of sevennet all irreps are even, such as 64x0e+32x1e");
    if ((mace || nequix) && !natural)
      argp_error(state, "--features: of %s parities are those of degrees: 0e, 1o, 2e, ...",
                 c->name);
    if (mace && (t.l != i || t.mul != c->features.term[0].mul))
      argp_error(state, "--features: of mace all degrees from 0 on have as many channels, such as "
                        "64x0e+64x1o");
  }
  if (mace && (c->l_max > 3 || c->features.n > 4))
    argp_error(state, "--%s: of mace degrees are at most 3", c->l_max > 3 ? "l-max" : "features");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  new_choice *c = state->input;
  switch (key) {
    case NEW: c->name = new_names[name_among(state, "--new", arg, new_names, NEW_KINDS)]; return 0;
    case FEATURES:
      if (!read_features(arg, &c->features))
        argp_error(state,
                   "--features are up to %d irreps with their channels, even scalars first, "
                   "then by degree: 64x0e+64x1o+32x2e; not '%s'",
                   MAX_FEATURES, arg);
      return 0;
    case LAYERS: c->layers = (int)whole_number(state, "--layers", arg, 1, MAX_LAYERS); return 0;
    case R_MAX: c->r_max = real_number(state, "--r-max", arg, 0.1, 100); return 0;
    case L_MAX: c->l_max = (int)whole_number(state, "--l-max", arg, 0, MAX_DEGREE); return 0;
    case N_BASIS: c->n_basis = (int)whole_number(state, "--basis", arg, 1, 64); return 0;
    case RADIAL: read_hidden(state, arg, c); return 0;
    case CORRELATION:
      c->correlation = (int)whole_number(state, "--correlation", arg, 1, 4);
      return 0;
    case ARGP_KEY_INIT: *c = (new_choice){.l_max = -1, .n_hidden = -1}; return 0;
    case ARGP_KEY_END:
      check(state, c,
            c->features.n || c->layers || c->r_max > 0 || c->l_max >= 0 || c->n_basis ||
                c->n_hidden >= 0 || c->correlation);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"new", NEW, "KIND", 0,
     "In place of --model: a network of random weights, of the species in --train: nequip, nequix, "
     "sevennet or mace",
     0},
    {"features", FEATURES, "IRREPS", 0,
     "Features of its atoms between layers (default: 64x0e+64x1o+32x2e; nequix "
     "128x0e+64x1o+32x2e+32x3o, sevennet 128x0e+64x1e+32x2e, mace 128x0e+128x1o)",
     0},
    {"layers", LAYERS, "N", 0, "Layers (default: 4; sevennet 5, mace 2)", 0},
    {"r-max", R_MAX, "R", 0, "Cutoff in Angstrom (default: 5; nequix 6)", 0},
    {"l-max", L_MAX, "L", 0, "Highest degree of harmonics (default: that of the features; mace 3)",
     0},
    {"basis", N_BASIS, "N", 0, "Radial basis functions (default: 8)", 0},
    {"radial", RADIAL, "N,N,...", 0,
     "Widths inside radial networks (default: 64,64; nequix and mace 64,64,64)", 0},
    {"correlation", CORRELATION, "N", 0,
     "Of mace, the highest power of the product basis (default: 3)", 0},
    {0}};
const struct argp new_argp = {.options = options, .parser = parse};

/* ---- what is usual ---- */

new_network new_network_of(const new_choice *c) {
  new_network q = {.c = *c};
  while (strcmp(new_names[q.kind], c->name) != 0) q.kind++;
  if (!c->features.n) read_features(usual[q.kind].features, &q.c.features);
  if (!c->layers) q.c.layers = usual[q.kind].layers;
  if (!(c->r_max > 0)) q.c.r_max = usual[q.kind].r_max;
  if (c->l_max < 0)
    q.c.l_max = usual[q.kind].l_max < 0 ? highest(&q.c.features) : usual[q.kind].l_max;
  if (!c->n_basis) q.c.n_basis = BASIS;
  if (!c->correlation) q.c.correlation = usual[q.kind].correlation;
  for (int i = 0; c->n_hidden < 0 && i < usual[q.kind].n_hidden; i++) q.c.hidden[i] = HIDDEN;
  if (c->n_hidden < 0) q.c.n_hidden = usual[q.kind].n_hidden;
  q.sh.n = q.c.l_max + 1;
  for (int l = 0; l <= q.c.l_max; l++)
    q.sh.term[l] = (irrep){1, l, q.kind == NEW_SEVENNET || l % 2 == 0 ? 1 : -1};
  return q;
}
