/* models/arch/allegro_layer.c - a layer of Allegro's networks: the environment of each atom, the
   product of edges' features with that of their receivers, and the scalars that come of it. Numbers
   in brackets are steps of docs/model-format.md. */
#include "models/arch/allegro_network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef clb_model_reader reader;

clb_irreps clb_allegro_channels(const clb_irreps *sh, int l_max, int64_t channels) {
  clb_irreps irreps = {0};
  for (int l = 0; l <= l_max && l < sh->n; l++) {
    clb_term *t = &irreps.term[irreps.n++];
    *t = sh->term[l];
    t->mul = (int32_t)channels;
    t->at = irreps.dim;
    irreps.dim += (2 * l + 1) * t->mul;
  }
  return irreps;
}

int clb_allegro_sum(reader *r, const clb_allegro *q, int block, int l_max, int64_t channels,
                    int weights, double scale) {
  clb_arch_product *m = calloc(1, sizeof *m);
  int sum = CLB_VECTORS;
  if (!m) clb_model_no_memory(r);
  if (!r->status) {
    m->in = clb_scalars(channels);
    m->out = clb_allegro_channels(&q->sh, l_max, channels);
    for (int l = 0; l <= l_max; l++)
      m->path[m->n_paths++] = (clb_instruction){0, l, l, CLB_UVU, 1, 1};
    m->n_weights = (l_max + 1) * channels;
    scale /= q->neighbours > 0 ? sqrt(q->neighbours) : 1;
    sum = clb_arch_convolution(r, block, m, scale, -1, q->harmonics, weights);
  }
  free(m);
  return sum;
}

/* Irreps that all have the features' channels, each once. */
static void read_irreps(reader *r, const clb_allegro *q, int n, const char *what,
                        clb_irreps *irreps) {
  char key[CLB_MODEL_KEY];
  clb_model_irreps(r, clb_arch_key(key, n, what), irreps);
  for (int t = 0; t < irreps->n && !r->status; t++)
    if (irreps->term[t].mul != q->channels || clb_find_irrep(irreps, &irreps->term[t]) != t)
      clb_model_refuse(r, "'%s' must have %d channels of each irrep, and each once", key,
                       (int)q->channels);
}

double clb_allegro_share(const reader *r, const clb_allegro *q, int64_t species) {
  return q->neighbours > 0 ? 1 : 1 / sqrt(r->out->weights[q->of_species + species]);
}

/* Channels of atoms over the root of their species' neighbours: a diagonal matrix of each species.
 */
static int divide_by_species(reader *r, const clb_allegro *q, int n, int from) {
  if (r->status || q->neighbours > 0) return from;
  const clb_irreps irreps = r->out->array[from]->irreps;
  const int64_t species = r->out->n_species, mul = q->channels,
                matrices = clb_model_reserve(r, mul * species * mul);
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, &irreps);
  clb_layer *y =
      clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), n, "environment", from, to);
  if (!y) return to;
  clb_linear *p = y->parameters;
  p->by_species = true;
  for (int t = 0; t < irreps.n && !r->status; t++)
    r->status = clb_linear_add(r->out, p, t, t, matrices);
  for (int64_t row = 0; row < mul * species && !r->status; row++)
    r->out->weights[matrices + row * mul + row / species] = clb_allegro_share(r, q, row % species);
  return to;
}

/* [6] */
static int read_product(reader *r, clb_allegro *q, int n, clb_arch_product *m) {
  char key[CLB_MODEL_KEY];
  m->sh = &q->sh;
  read_irreps(r, q, n, "irreps_in", &m->in);
  read_irreps(r, q, n, "irreps_out", &m->out);
  if (r->status) return CLB_VECTORS;
  if (memcmp(&m->in, &r->out->array[q->features]->irreps, sizeof m->in) != 0)
    clb_model_refuse(r, "layers.%d.irreps_in is not %s", n,
                     n ? "irreps_out of the layer before"
                       : "irreps_sh with the channels of features");
  if (m->out.n < 1 || m->out.term[0].l || m->out.term[0].parity < 0)
    clb_model_refuse(r, "layers.%d.irreps_out must begin with 0e", n);
  clb_arch_read_paths(r, n, "paths", "irreps_out", CLB_UUU, m);
  const int sum = clb_allegro_sum(r, q, n, r->out->l_max, q->channels, q->weights, 1),
            environment = divide_by_species(r, q, n, sum),
            out = clb_model_array(r, CLB_PER_EDGE, false, &m->out);
  clb_layer *y = clb_model_layer(r, &clb_product_kind, sizeof(clb_product_layer), n, "product",
                                 q->features, out);
  if (!y) return out;
  clb_product_layer *p = y->parameters;
  y->in[CLB_PRODUCT_Y] = environment;
  y->gradients = 1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y;
  p->x = m->in;
  p->n_paths = m->n_paths;
  memcpy(p->path, m->path, sizeof p->path);
  p->weights = clb_model_take(r, clb_arch_key(key, n, "product"), 2,
                              (const int64_t[]){m->n_paths, q->channels}, 1);
  return out;
}

void clb_allegro_layer(reader *r, clb_allegro *q, int n) {
  clb_arch_product *m = calloc(1, sizeof *m);
  if (!m) clb_model_no_memory(r);
  else if (!r->status) q->features = read_product(r, q, n, m);
  free(m);
  if (r->status) return;
  clb_allegro_scalars all = q->scalars; /* [7] */
  all.array[all.n++] = q->features;
  const clb_allegro_scalars hidden = clb_allegro_hidden(r, n, "latent", "latent", &all);
  q->scalars.array[q->scalars.n++] = clb_allegro_map(r, n, "scalars", &hidden, q->n_scalars, 1);
  if (n + 1 < r->out->n_blocks)
    q->weights = clb_allegro_map(r, n + 1, "environment", &hidden, q->sh.n * q->channels, 1);
}
