/* tools/convert/nequip/allegro_network.c - Allegro's networks, package or checkpoint: their tensors
   as those of docs/model-format.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/nequip/nequip_reader.h"

/* What is put besides the settings. */
typedef struct {
  nequip *q;
  const nequip_settings *s;
  int64_t scalars, channels;
} network;

/* ---- matrices ---- */

/* Those of a network of scalars. */
typedef struct {
  weights w[NEQUIP_MATRICES];
  double factor[NEQUIP_MATRICES]; /* that the format does not have */
  int n;
  allegro_activation after; /* hidden ones */
} matrices;

/* Puts numbers of w, times a factor; at: which ones. */
static void put_picked(model *out, const weights *w, double factor, int rank, const int64_t *shape,
                       const int64_t *at, const char *name) {
  const size_t size = w->f64 ? 8 : 4;
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  weights picked = *w;
  unsigned char *bytes = allocate((size_t)n, size);
  for (int64_t i = 0; i < n; i++)
    memcpy(bytes + (size_t)i * size, w->data + (size_t)at[i] * size, size);
  picked.data = bytes;
  picked.count = n;
  put_part(out, &picked, 0, factor, rank, shape, name);
  free(bytes);
}

/* The factor by which the original program multiplies matrix k. */
static double scale_of(const matrices *m, int k, bool backward) {
  const bool gains = m->after != ALLEGRO_LINEAR && (backward ? k < m->n - 1 : k > 0);
  return sqrt((gains ? 2 : 1) / (double)m->w[k].shape[backward]);
}

/* Whether the modules' factors are these. */
static bool scaled_so(nequip *q, const matrices *m, const char *mlp, bool backward) {
  double all = 1, product = 1;
  bool good = true;
  const bool one = maybe(q->network, named("%s.alpha", mlp).text) != NULL; /* of all */
  for (int k = 0, step = m->after == ALLEGRO_LINEAR ? 1 : 2; k < m->n; k++) {
    const double alpha =
        one ? 1 : number_of(q->t, q->network, named("%s.%d.alpha", mlp, step * k).text);
    good &= one || nequip_near(alpha, scale_of(m, k, backward));
    product *= scale_of(m, k, backward);
  }
  if (one) all = number_of(q->t, q->network, named("%s.alpha", mlp).text);
  return one ? nequip_near(all, product) : good;
}

static bool is_backward(nequip *q, const matrices *m, const char *mlp, bool backward) {
  if (!q->network) return backward;
  if (scaled_so(q, m, mlp, false)) return false;
  if (!scaled_so(q, m, mlp, true))
    fail_model(q->t->path, "its weights '%s' are not scaled by the root of inputs or outputs", mlp);
  return true;
}

/* The matrices of MLP, of `rows` inputs. */
static void read_matrices(const network *a, const char *mlp, allegro_activation after, int64_t rows,
                          bool backward, matrices *m) {
  nequip *q = a->q;
  *m = (matrices){.after = after};
  const bool deep = nequip_has(q, named("%s.weights.0", mlp).text);
  const int step = after == ALLEGRO_LINEAR ? 1 : 2;
  for (; m->n < NEQUIP_MATRICES; m->n++) {
    const model_name path =
        deep ? named("%s.weights.%d", mlp, m->n) : named("%s.%d.weight", mlp, step * m->n);
    if (m->n && !nequip_has(q, path.text)) break;
    const weights *w = &m->w[m->n];
    m->w[m->n] = nequip_weights(q, path.text);
    if (w->rank != 2 || w->shape[0] != rows || w->shape[1] < 1)
      fail_model(q->t->path, "its tensor '%s' does not have %lld rows", path.text, (long long)rows);
    rows = w->shape[1];
  }
  backward = is_backward(q, m, mlp, backward);
  for (int k = 0; k < m->n; k++) {
    const double known = (k && after == ALLEGRO_SILU ? 2 : 1) / (double)m->w[k].shape[0],
                 f = scale_of(m, k, backward) / sqrt(known);
    m->factor[k] = fabs(f - 1) < 1e-12 ? 1 : f;
  }
}

/* Columns of the last matrix; of each degree all channels, which were of each channel all
   degrees. */
static void put_last(const network *a, const matrices *m, int64_t first, int64_t degrees,
                     int64_t channels, const char *name) {
  const weights *w = &m->w[m->n - 1];
  const int64_t columns = degrees * channels, shape[] = {w->shape[0], columns};
  int64_t *at = allocate((size_t)(shape[0] * columns), sizeof *at);
  for (int64_t i = 0; i < shape[0]; i++)
    for (int64_t k = 0; k < columns; k++)
      at[i * columns + k] = i * w->shape[1] + first + k % channels * degrees + k / channels;
  put_picked(a->q->out, w, m->factor[m->n - 1], 2, shape, at, name);
  free(at);
}

/* All but the last matrix as PREFIX.K, and what KEY_... say of them. */
static void put_hidden(const network *a, const matrices *m, const char *key, const char *prefix) {
  model *out = a->q->out;
  put_number(out, m->n - 1, "%s_layers", key);
  if (m->n < 2) return;
  const bool bends = m->after == ALLEGRO_SILU;
  put_string(out, bends ? "silu" : "none", "%s_activation", key);
  if (bends) put_number(out, sqrt(2), "%s_activation_scale", key);
  for (int k = 0; k < m->n - 1; k++)
    put_part(out, &m->w[k], 0, m->factor[k], 2, m->w[k].shape, named("%s.%d", prefix, k).text);
}

static void expect_columns(const network *a, const matrices *m, int64_t columns, const char *mlp) {
  if (m->w[m->n - 1].shape[1] != columns)
    fail_model(a->q->t->path, "its matrices '%s' have %lld outputs, not %lld", mlp,
               (long long)m->w[m->n - 1].shape[1], (long long)columns);
}

/* ---- two bodies ---- */

/* Numbers of a pair of species, for each function those of all scalars, which were for each scalar
   those of all functions. Returns the number of scalars. */
static int64_t put_spline(const network *a) {
  nequip *q = a->q;
  static const char path[] = "radial_chemical_embed.spline.class_embed.weight";
  const weights w = nequip_weights(q, path);
  const int64_t n = a->s->allegro->splines, pairs = q->n_species * q->n_species,
                width = w.rank == 2 ? w.shape[1] / n : 0;
  if (width < 1 || w.count != pairs * n * width)
    fail_model(q->t->path, "its tensor '%s' does not fit %lld functions", path, (long long)n);
  int64_t *at = allocate((size_t)w.count, sizeof *at);
  for (int64_t i = 0; i < w.count; i++)
    at[i] = i / (n * width) * n * width + i % width * n + i / width % n;
  put_picked(q->out, &w, 1, 4, (const int64_t[]){q->n_species, q->n_species, n, width}, at,
             "embedding.spline");
  free(at);
  nequip_put_edges(q, a->s, "spline", n);
  put_number(q->out, a->s->allegro->span, "spline_span");
  put_number(q->out, (double)width, "n_embedding");
  return width;
}

/* Returns the number of scalars. */
static int64_t put_pair(const network *a, matrices *m) {
  nequip *q = a->q;
  static const char at[] = "radial_chemical_embed.", linear[] = "type_embed.basis_linear.mlp";
  static const char *const ends[] = {"center", "receiver", "neighbor", "sender"};
  const int64_t n_basis =
      nequip_put_basis(q, a->s, named("%sbessel_encode.bessel_weights", at).text);
  const model_name mlp = named("%s%s", at, linear);
  read_matrices(a, mlp.text, ALLEGRO_LINEAR, n_basis, a->s->allegro->backward, m);
  const int64_t width = m->w[0].shape[1];
  if (m->n != 1 || width % 2) fail_model(q->t->path, "its '%s' is not one even matrix", mlp.text);
  put_last(a, m, 0, 1, width, "radial");
  put_number(q->out, (double)width / 2, "n_embedding");
  for (int i = 0; i < 4; i += 2) {
    const model_name path = named("%stype_embed.%s_embed.weight", at, ends[i]);
    const weights w = nequip_count(q, path.text, q->n_species * width / 2);
    put_part(q->out, &w, 0, 1, 2, (const int64_t[]){q->n_species, width / 2},
             named("embedding.%s", ends[i + 1]).text);
  }
  return width;
}

static void put_embedding(network *a, matrices *m) {
  static const char pairs[] = "scalar_embed_mlp.mlp_module.mlp",
                    tensors[] = "tensor_embed.env_embed_linear.mlp",
                    scalars[] = "allegro.first_layer_env_embed_projection.mlp";
  const allegro *y = a->s->allegro;
  const int64_t degrees = a->q->sh.n, width = y->splines ? put_spline(a) : put_pair(a, m);
  read_matrices(a, pairs, y->two_body, width, y->backward, m);
  a->scalars = m->w[m->n - 1].shape[1];
  put_hidden(a, m, "two_body", "two_body");
  put_last(a, m, 0, 1, a->scalars, "pairs");
  read_matrices(a, tensors, ALLEGRO_LINEAR, a->scalars, y->backward, m);
  a->channels = m->w[0].shape[1] / degrees;
  expect_columns(a, m, degrees * a->channels, tensors);
  put_last(a, m, 0, degrees, a->channels, "tensors");
  read_matrices(a, scalars, ALLEGRO_LINEAR, a->scalars, false, m);
  expect_columns(a, m, a->scalars + degrees * a->channels, scalars);
  put_last(a, m, 0, 1, a->scalars, "scalars");
  put_last(a, m, a->scalars, degrees, a->channels, "layers.0.environment");
}

/* ---- layers ---- */

/* Those of `from` whose products with harmonics have one of `to`; or, reached: those that products
   of `to` with harmonics have. */
static irreps useful(const network *a, const irreps *from, const irreps *to, bool reached) {
  const irreps *sh = &a->q->sh;
  irreps out = {.n = 0};
  for (int i = 0; i < from->n; i++) {
    bool good = false;
    for (int y = 0; y < sh->n; y++)
      for (int k = 0; k < to->n; k++)
        good |= reached ? couples(to->term[k], sh->term[y], from->term[i])
                        : couples(from->term[i], sh->term[y], to->term[k]);
    if (good) out.term[out.n] = from->term[i], out.term[out.n++].mul = (int)a->channels;
  }
  return out;
}

/* Features before layer 0, 1, ..., and after the last one. */
static void find_features(const network *a, irreps *features) {
  static const irreps energy = {1, {{1, 0, 1}}};
  const int n = a->s->n_layers;
  features[0] = a->q->sh;
  for (int i = 1; i <= n; i++)
    features[i] = useful(a, i == n ? &energy : &a->s->allegro->tracked, &features[i - 1], true);
  for (int i = n - 1; i >= 0; i--) features[i] = useful(a, &features[i], &features[i + 1], false);
  if (features[0].n != a->q->sh.n)
    fail_model(a->q->t->path, "some of its harmonics are in no product, which is not supported");
}

/* The original's order: by what comes out, then features, then harmonics. */
static int put_products(const network *a, int layer, const irreps *in, const irreps *out) {
  path_terms paths[MAX_PATHS];
  const int n = find_all_paths(a->q->t->path, in, &a->q->sh, out, paths, MAX_PATHS);
  put_irreps(a->q->out, in, "layers.%d.irreps_in", layer);
  put_irreps(a->q->out, out, "layers.%d.irreps_out", layer);
  put_path_list(a->q->out, named("layers.%d.paths", layer).text, paths, n);
  return n;
}

/* Weights of paths, of each channel or of all. */
static void put_product(const network *a, int layer, const irreps *in, const irreps *out) {
  const int64_t channels = a->channels, n = put_products(a, layer, in, out),
                shape[] = {n, channels};
  const model_name path = named("allegro.tps.%d.weights", layer);
  const weights w = nequip_weights(a->q, path.text);
  if (w.count != n && w.count != n * channels)
    fail_model(a->q->t->path, "its tensor '%s' has %lld numbers, not %lld", path.text,
               (long long)w.count, (long long)(n * channels));
  int64_t *at = allocate((size_t)(n * channels), sizeof *at);
  for (int64_t i = 0; i < n * channels; i++)
    at[i] = i / channels + (w.count == n ? 0 : i % channels * n);
  put_picked(a->q->out, &w, 1, 2, shape, at, named("layers.%d.product", layer).text);
  free(at);
}

static void put_layer(const network *a, int layer, const irreps *features, matrices *m) {
  const allegro *y = a->s->allegro;
  const bool last = layer == a->s->n_layers - 1;
  const int64_t degrees = a->q->sh.n, env = last ? 0 : degrees * a->channels;
  const model_name mlp = named("allegro.latents.%d.mlp", layer);
  put_product(a, layer, &features[layer], &features[layer + 1]);
  read_matrices(a, mlp.text, y->latent, (layer + 1) * a->scalars + a->channels, y->backward, m);
  expect_columns(a, m, a->scalars + env, mlp.text);
  put_hidden(a, m, "latent", named("layers.%d.latent", layer).text);
  put_last(a, m, 0, 1, a->scalars, named("layers.%d.scalars", layer).text);
  if (!last)
    put_last(a, m, a->scalars, degrees, a->channels,
             named("layers.%d.environment", layer + 1).text);
}

static void put_readout(const network *a, matrices *m) {
  static const char mlp[] = "edge_readout.mlp_module.mlp";
  const allegro *y = a->s->allegro;
  read_matrices(a, mlp, y->readout, (a->s->n_layers + 1) * a->scalars, y->backward, m);
  expect_columns(a, m, 1, mlp);
  put_hidden(a, m, "readout", "readout");
  put_last(a, m, 0, 1, 1, "energy");
}

/* ---- the network ---- */

void allegro_put_network(nequip *q, const nequip_settings *s) {
  network a = {.q = q, .s = s};
  matrices *m = allocate(1, sizeof *m);
  irreps *features = allocate((size_t)s->n_layers + 1, sizeof *features);
  put_string(q->out, "allegro", "architecture");
  nequip_put_neighbours(q, s);
  put_embedding(&a, m);
  put_number(q->out, (double)a.scalars, "n_scalars");
  put_number(q->out, (double)a.channels, "n_channels");
  put_number(q->out, s->n_layers, "n_layers");
  find_features(&a, features);
  for (int n = 0; n < s->n_layers; n++) put_layer(&a, n, features, m);
  put_readout(&a, m);
  nequip_put_energies(q, s);
  free(features);
  free(m);
}
