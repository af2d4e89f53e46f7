/* models/arch/nequip_irreps.c - the irreps and paths of a block of networks like NequIP's, and
   whether they agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arch/nequip.h"

typedef clb_model_reader reader;
enum { MAX_FEATURES = 1 << 16 };

/* Keys of a nonlinearity begin with "layers.N." and this: of a layer, of its feed-forward. */
static const char *const prefixes[] = {"", "feed_forward."};

static void read_of(reader *r, int n, const char *prefix, const char *name, clb_irreps *irreps) {
  char what[48], key[CLB_MODEL_KEY];
  snprintf(what, sizeof what, "%s%s", prefix, name);
  clb_model_irreps(r, clb_arch_key(key, n, what), irreps);
  if (irreps->dim > MAX_FEATURES)
    clb_model_refuse(r, "%s has %d numbers per atom; they are at most %d", key, irreps->dim,
                     MAX_FEATURES);
}

static char letter(const clb_term *t) { return t->parity > 0 ? 'e' : 'o'; }

/* ---- gates ---- */

/* The parts of a gate are what it reads, and there is a gate for each gated channel. */
static void check_gate(reader *r, int n, const char *prefix, const clb_nequip_nonlinear *y) {
  const clb_irreps *parts[] = {&y->scalars, &y->gates, &y->gated};
  bool good = true;
  for (int t = 0; t < y->linear.n; t++) {
    if (clb_find_irrep(&y->linear, &y->linear.term[t]) != t)
      clb_model_refuse(r, "layers.%d.%sirreps_linear has an irrep twice", n, prefix);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) sum += clb_channels(parts[i], &y->linear.term[t]);
    good &= sum == y->linear.term[t].mul;
  }
  for (int i = 0; i < 3; i++)
    for (int t = 0; t < parts[i]->n; t++) {
      good &= clb_find_irrep(&y->linear, &parts[i]->term[t]) >= 0;
      if (i < 2 && parts[i]->term[t].l)
        clb_model_refuse(r, "layers.%d: %sirreps_scalars and irreps_gates must be of degree 0", n,
                         prefix);
    }
  if (!good)
    clb_model_refuse(r,
                     "layers.%d: %sirreps_scalars, irreps_gates and irreps_gated together are not "
                     "irreps_linear",
                     n, prefix);
  if (clb_channels(&y->gates, NULL) != clb_channels(&y->gated, NULL))
    clb_model_refuse(r, "layers.%d: %sirreps_gates must have a channel for each of irreps_gated", n,
                     prefix);
}

static void read_gate(reader *r, int n, const char *prefix, clb_nequip_nonlinear *y) {
  const struct {
    const char *name;
    clb_irreps *irreps;
  } parts[] = {{"irreps_linear", &y->linear},
               {"irreps_scalars", &y->scalars},
               {"irreps_gates", &y->gates},
               {"irreps_gated", &y->gated}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    read_of(r, n, prefix, parts[i].name, parts[i].irreps);
  if (!r->status) check_gate(r, n, prefix, y);
}

/* ---- bilinear gates ---- */

static void check_channels(reader *r, int n, const char *prefix, const clb_nequip_nonlinear *y) {
  const clb_irreps *factors[] = {&y->product.in, &y->second};
  const clb_term *one = &y->second.term[0];
  if (!y->second.n || one->l || one->parity < 0)
    clb_model_refuse(r, "layers.%d.%sirreps_second must begin with 0e", n, prefix);
  for (int i = 0; i < 2; i++)
    for (int t = 0; t < factors[i]->n; t++)
      if (factors[i]->term[t].mul != one->mul)
        clb_model_refuse(r, "layers.%d.%s%s: all irreps must have as many channels", n, prefix,
                         i ? "irreps_second" : "irreps_first");
}

static void read_bilinear(reader *r, int n, const char *prefix, clb_nequip_nonlinear *y) {
  char what[48], out[48];
  snprintf(what, sizeof what, "%sproduct_paths", prefix);
  snprintf(out, sizeof out, "%sirreps_product", prefix);
  read_of(r, n, prefix, "irreps_first", &y->product.in);
  read_of(r, n, prefix, "irreps_second", &y->second);
  read_of(r, n, prefix, "irreps_product", &y->product.out);
  if (!r->status) check_channels(r, n, prefix, y);
  y->product.sh = &y->second;
  if (!y->product.in.n && y->product.out.n)
    clb_model_refuse(r, "layers.%d.%s is not empty, but %sirreps_first is", n, out, prefix);
  if (r->status || !y->product.in.n) return;
  clb_arch_read_paths(r, n, what, out, CLB_UUU, &y->product);
  clb_arch_check_paths(r, n, what, out, &y->product);
}

/* ---- reach: what no tensor contributes to would be as large as the metadata say ---- */

static void must_hold(reader *r, int n, const char *prefix, const char *name,
                      const clb_irreps *irreps, int first, const clb_irreps *one,
                      const clb_irreps *other, const char *what) {
  for (int t = first; t < irreps->n && !r->status; t++) {
    const clb_term *z = &irreps->term[t];
    if (clb_find_irrep(one, z) < 0 && clb_find_irrep(other, z) < 0)
      clb_model_refuse(r, "layers.%d.%s%s has %dx%d%c, which %s", n, prefix, name, (int)z->mul,
                       (int)z->l, letter(z), what);
  }
}

static void check_reach(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  const clb_nequip_nonlinear *f[] = {&y->nonlinear, &y->feed_forward};
  for (int i = 0; i < 1 + y->feeds; i++) {
    const clb_irreps *from = i ? &y->out : &y->messages.out;
    if (f[i]->bilinear) {
      const char *of = i ? "the features do not hold" : "no message holds";
      must_hold(r, n, prefixes[i], "irreps_first", &f[i]->product.in, 0, from, from, of);
      must_hold(r, n, prefixes[i], "irreps_second", &f[i]->second, 1, from, from, of);
    } else if (m->norm != CLB_NEQUIP_RMS) {
      must_hold(r, n, prefixes[i], "irreps_linear", &f[i]->linear, 0, from, &y->messages.in,
                "neither a message nor the features before hold");
    }
  }
  if (m->residual)
    must_hold(r, n, "", "irreps_out", &y->out, 0,
              y->nonlinear.bilinear ? &y->nonlinear.product.out : &y->nonlinear.linear,
              &y->messages.in, "neither its gate nor the features before hold");
}

/* ---- a block ---- */

/* Without a residual a gate's result is the block's. */
static void check_out(reader *r, int n, const clb_nequip_irreps *y) {
  const clb_nequip_nonlinear *f = &y->nonlinear;
  bool good = y->out.n == f->scalars.n + f->gated.n;
  for (int t = 0; t < y->out.n && good; t++) {
    const clb_term *part =
        t < f->scalars.n ? &f->scalars.term[t] : &f->gated.term[t - f->scalars.n];
    good = clb_same_irrep(&y->out.term[t], part) && y->out.term[t].mul == part->mul;
  }
  if (!good)
    clb_model_refuse(r, "layers.%d.irreps_out must be irreps_scalars, then irreps_gated", n);
}

static void check_features(reader *r, const clb_nequip *m, int n, const clb_nequip_irreps *y) {
  const clb_irreps *features[] = {&y->messages.in, &y->out};
  for (int i = 0; i < 2; i++)
    for (int t = 0; t < features[i]->n; t++)
      if (clb_find_irrep(features[i], &features[i]->term[t]) != t)
        clb_model_refuse(r, "layers.%d.%s has an irrep twice", n, i ? "irreps_out" : "irreps_in");
  if (n && memcmp(&y->messages.in, &r->out->array[m->features]->irreps, sizeof y->messages.in) != 0)
    clb_model_refuse(r, "layers.%d.irreps_in is not layers.%d.irreps_out", n, n - 1);
}

static void read_nonlinear(reader *r, int n, int of, bool bilinear, clb_nequip_nonlinear *y) {
  y->bilinear = bilinear;
  (bilinear ? read_bilinear : read_gate)(r, n, prefixes[of], y);
}

/* The feed-forward's gate is the layer's, unless it has its own. */
static void read_feed_forward(reader *r, int n, clb_nequip_irreps *y) {
  char key[CLB_MODEL_KEY];
  y->feeds = !r->status && clb_safetensors_says(r->file, clb_arch_key(key, n, "feed_forward"));
  if (!y->feeds) return;
  const bool bilinear = clb_model_choice(r, key, "gate", "bilinear"),
             own =
                 clb_safetensors_says(r->file, clb_arch_key(key, n, "feed_forward.irreps_linear"));
  if (bilinear || own || y->nonlinear.bilinear) read_nonlinear(r, n, 1, bilinear, &y->feed_forward);
  else y->feed_forward = y->nonlinear;
}

void clb_nequip_read_irreps(reader *r, const clb_nequip *m, int n, clb_nequip_irreps *y) {
  read_of(r, n, "", "irreps_in", &y->messages.in);
  read_of(r, n, "", "irreps_message", &y->messages.out);
  read_nonlinear(r, n, 0, m->bilinear, &y->nonlinear);
  read_of(r, n, "", "irreps_out", &y->out);
  read_feed_forward(r, n, y);
  if (!r->status && !m->residual) check_out(r, n, y);
  if (!r->status) check_features(r, m, n, y);
  y->messages.sh = &m->sh;
  if (!r->status) clb_arch_paths(r, n, &y->messages);
  if (!r->status) check_reach(r, m, n, y);
}
