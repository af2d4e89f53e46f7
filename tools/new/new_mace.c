/* tools/new/new_mace.c - new networks of MACE: convolutions and product bases. */
#include <clebsch/clebsch.h>
#include <math.h>
#include <stdlib.h>

#include "tools/cli/tool.h"
#include "tools/convert/maps.h"
#include "tools/new/new_network.h"

enum { READOUT = 16, CUTOFF_P = 5 };

/* K channels of every degree up to l_max, with natural parity. */
static irreps uniform(int mul, int l_max) {
  irreps out = {.n = l_max + 1};
  for (int l = 0; l <= l_max; l++) out.term[l] = (irrep){mul, l, l % 2 ? -1 : 1};
  return out;
}

/* ---- the product basis ---- */

/* How many couplings of nu irreps, of degrees up to ell and natural parity, one after the other,
   give degree l and a parity: MACE's tensors, each of which has a weight. */
static int64_t couplings(int ell, int nu, int l, int parity) {
  int64_t n = 0;
  if (nu == 1) return l <= ell && parity == (l % 2 ? -1 : 1);
  for (int last = 0; last <= ell; last++)
    for (int j = abs(l - last); j <= l + last; j++)
      n += couplings(ell, nu - 1, j, last % 2 ? -parity : parity);
  return n;
}

/* MACE divides normal deviates by the number of tensors, which are orthogonal and of norm
   sqrt(2 l + 1), or sums of such; so the weights of the orthonormal basis are normal deviates,
   too. */
static double product_deviation(int ell, int nu, int l) {
  return sqrt(2 * l + 1) / (double)couplings(ell, nu, l, l % 2 ? -1 : 1);
}

static void make_product(new_maker *m, clb_context *ctx, int layer, const irreps *to) {
  static const int degrees[] = {0, 1, 2, 3};
  const int species = m->s->n_species, channels = to->term[0].mul;
  const clb_symmetric_contraction_desc desc = {.ell = m->q->c.l_max,
                                               .correlation = m->q->c.correlation,
                                               .degrees = degrees,
                                               .n_degrees = to->n,
                                               .channels = channels,
                                               .n_species = species,
                                               .storage = CLB_F64,
                                               .arithmetic = CLB_F64,
                                               .passes = CLB_PASS_BIT(CLB_FORWARD)};
  clb_symmetric_paths paths;
  if (clb_symmetric_contraction_paths(ctx, &desc, 0, 1, &paths)) fatal("%s", clb_error(ctx));
  const int64_t shape[3] = {species, paths.all, channels};
  double *x = new_normal(m, species * paths.all * (int64_t)channels,
                         named("layers.%d.product", layer).text);
  for (int l = 0; l < to->n; l++)
    for (int nu = 1; nu <= desc.correlation; nu++) {
      if (clb_symmetric_contraction_paths(ctx, &desc, l, nu, &paths)) fatal("%s", clb_error(ctx));
      const double deviation = product_deviation(desc.ell, nu, l);
      for (int64_t s = 0; s < species; s++)
        for (int64_t i = 0; i < paths.count * channels; i++)
          x[(s * shape[1] + paths.first) * channels + i] *= deviation;
    }
  put_shaped(m->out, x, 3, shape, named("layers.%d.product", layer).text);
  free(x);
}

/* ---- layers ---- */

static void make_layer(new_maker *m, clb_context *ctx, int layer) {
  const int K = m->q->c.features.term[0].mul;
  const bool last = layer == m->q->c.layers - 1;
  const irreps out = uniform(K, last ? 0 : m->q->c.features.n - 1),
               target = uniform(K, m->q->c.l_max), *in = &m->features;
  put_irreps(m->out, in, "layers.%d.irreps_in", layer);
  put_irreps(m->out, &target, "layers.%d.irreps_linear", layer);
  put_irreps(m->out, &out, "layers.%d.irreps_out", layer);
  put_string(m->out, "none", "layers.%d.normalization", layer);
  put_string(m->out, "species", "layers.%d.self_connection", layer);
  put_number(m->out, m->q->c.correlation, "layers.%d.correlation", layer);
  put_number(m->out, last ? 2 : 1, "layers.%d.readout_layers", layer);
  const irreps messages = new_paths(m, layer, &target);
  new_map(m, 1, in, in, 0, named("layers.%d.linear_1", layer).text);
  new_map(m, 1, &messages, &target, 0, named("layers.%d.linear_2", layer).text);
  new_map(m, 1, in, &out, m->s->n_species, named("layers.%d.self_connection", layer).text);
  make_product(m, ctx, layer, &out);
  new_map(m, 1, &out, &out, 0, named("layers.%d.linear_4", layer).text);
  new_readout(m, (const int64_t[]){K, last ? READOUT : 1, 1}, last ? 2 : 1,
              named("layers.%d.readout", layer).text);
  m->features = out;
}

void new_mace(new_maker *m) {
  static const char *const silus[] = {"radial_activation", "readout_activation"};
  const int K = m->q->c.features.term[0].mul;
  clb_context *ctx; /* for the paths of product bases; runs nothing */
  if (clb_context_create("cpu:interpreter", &ctx)) fatal("%s", clb_error(ctx));
  put_polynomial(m->out, CUTOFF_P);
  put_string(m->out, "basis", "cutoff_of");
  put_string(m->out, "none", "distance_transform");
  put_string(m->out, "none", "pair_repulsion");
  put_string(m->out, "fan_in", "radial_normalization");
  put_silu(m->out, silu_scale, silus, 2);
  put_string(m->out, "linear", "embedding");
  new_tensor(m, 1, 2, (const int64_t[]){m->s->n_species, K}, "embedding");
  m->features = uniform(K, 0);
  for (int layer = 0; layer < m->q->c.layers; layer++) make_layer(m, ctx, layer);
  clb_context_destroy(&ctx);
}
