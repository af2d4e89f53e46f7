/* models/arch/nequip_irreps.c - the irreps and paths of a block of networks like NequIP's, and
   whether they agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;
enum { MAX_FEATURES = 1 << 16 };

/* Checks that the features of a layer are as described in docs/model-format.md. */
static void check_irreps(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  const clb_irreps *parts[] = {&y->scalars, &y->gates, &y->gated};
  for (int t = 0; t < y->messages.in.n; t++)
    if (clb_find_irrep(&y->messages.in, &y->messages.in.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_in has an irrep twice", n);
  for (int t = 0; t < y->linear.n; t++) {
    if (clb_find_irrep(&y->linear, &y->linear.term[t]) != t)
      clb_model_refuse(r, "layers.%d.irreps_linear has an irrep twice", n);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += clb_channels(parts[i], &y->linear.term[t]);
    if (sum != y->linear.term[t].mul)
      clb_model_refuse(
          r,
          "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are not irreps_linear",
          n);
  }
  for (int i = 0; i < 3; i++)
    for (int t = 0; t < parts[i]->n; t++) {
      if (clb_find_irrep(&y->linear, &parts[i]->term[t]) < 0)
        clb_model_refuse(r,
                         "layers.%d: irreps_scalars, irreps_gates and irreps_gated together are "
                         "not irreps_linear",
                         n);
      if (i < 2 && parts[i]->term[t].l)
        clb_model_refuse(r, "layers.%d: irreps_scalars and irreps_gates must be of degree 0", n);
    }
  if (clb_channels(&y->gates, NULL) != clb_channels(&y->gated, NULL))
    clb_model_refuse(r, "layers.%d: irreps_gates must have a channel for each of irreps_gated", n);
  bool good = y->out.n == y->scalars.n + y->gated.n;
  for (int t = 0; t < y->out.n && good; t++) {
    const clb_term *part =
        t < y->scalars.n ? &y->scalars.term[t] : &y->gated.term[t - y->scalars.n];
    good = clb_same_irrep(&y->out.term[t], part) && y->out.term[t].mul == part->mul;
  }
  if (!good)
    clb_model_refuse(r, "layers.%d.irreps_out must be irreps_scalars, then irreps_gated", n);
  if (n && memcmp(&y->messages.in, &r->out->array[m->features]->irreps, sizeof y->messages.in) != 0)
    clb_model_refuse(r, "layers.%d.irreps_in is not layers.%d.irreps_out", n, n - 1);
}

/* Refuses features that no tensor contributes to: their size would be whatever the metadata say. */
static void check_reach(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  for (int t = 0; t < y->linear.n && !m->rms; t++) {
    const clb_term *z = &y->linear.term[t];
    if (clb_find_irrep(&y->messages.out, z) < 0 && clb_find_irrep(&y->messages.in, z) < 0)
      clb_model_refuse(r,
                       "layers.%d.irreps_linear has %dx%d%c, which neither a message nor the "
                       "features before hold",
                       n, (int)z->mul, (int)z->l, z->parity > 0 ? 'e' : 'o');
  }
}

static void check_sizes(reader *r, int n, const clb_nequip_irreps *y) {
  if (y->messages.in.dim > MAX_FEATURES || y->linear.dim > MAX_FEATURES)
    clb_model_refuse(r, "layers.%d.%s has %d numbers per atom; they are at most %d", n,
                     y->messages.in.dim > MAX_FEATURES ? "irreps_in" : "irreps_linear",
                     (int)(y->messages.in.dim > MAX_FEATURES ? y->messages.in.dim : y->linear.dim),
                     MAX_FEATURES);
}

void clb_nequip_read_irreps(reader *r, const clb_nequip *m, int n, clb_nequip_irreps *y) {
  const struct {
    const char *name;
    clb_irreps *irreps;
  } parts[] = {{"irreps_in", &y->messages.in}, {"irreps_message", &y->messages.out},
               {"irreps_linear", &y->linear},  {"irreps_scalars", &y->scalars},
               {"irreps_gates", &y->gates},    {"irreps_gated", &y->gated},
               {"irreps_out", &y->out}};
  char key[CLB_MODEL_KEY];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    clb_model_irreps(r, clb_arch_key(key, n, parts[i].name), parts[i].irreps);
  check_sizes(r, n, y);
  if (!r->status) check_irreps(r, m, n, y);
  y->messages.sh = &m->sh;
  if (!r->status) clb_arch_paths(r, n, &y->messages);
  if (!r->status) check_reach(r, m, n, y);
}
