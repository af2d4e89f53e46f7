/* tools/new/new_network.c - the parts of a new network that several kinds have. Weights are drawn
   as the original programs draw them: normal deviates, which the formulas of docs/model-format.md
   divide by the square roots of the numbers of inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/common/output.h"
#include "tools/common/philox.h"
#include "tools/new/new_network.h"

double *new_normal(const new_maker *m, int64_t n, const char *name) {
  const uint64_t stream = bytes_checksum(CHECKSUM_START, name, strlen(name)) >> 1;
  double *x = allocate((size_t)n + 2, sizeof *x);
  for (int64_t i = 0; i < n; i += 3) normal_triple(m->seed, (int64_t)stream, i, x + i);
  return x;
}

void new_tensor(new_maker *m, double deviation, int rank, const int64_t *shape, const char *name) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  double *x = new_normal(m, n, name);
  for (int64_t i = 0; i < n; i++) x[i] *= deviation;
  put_shaped(m->out, x, rank, shape, name);
  free(x);
}

void new_map(new_maker *m, double deviation, const irreps *in, const irreps *to, int64_t inner,
             const char *prefix) {
  char label[LABEL_BYTES];
  for (int z = 0; z < to->n; z++) {
    const irrep t = to->term[z];
    int64_t rows = 0;
    for (int x = 0; x < in->n; x++) rows += same_irrep(in->term[x], t) ? in->term[x].mul : 0;
    const int64_t shape[3] = {rows, inner ? inner : t.mul, t.mul};
    if (rows)
      new_tensor(m, deviation, inner ? 3 : 2, shape,
                 named("%s.%s", prefix, irrep_label(t, label)).text);
  }
}

/* Nequix has its weights divided by the square root of the inputs, and doubled before an
   activation; MACE's first ones are of a basis that is smaller by a factor. */
static double radial_deviation(const new_maker *m, int matrix, int64_t rows) {
  if (m->q->kind == NEW_NEQUIX) return (matrix < m->q->c.n_hidden ? 2 : 1) / sqrt((double)rows);
  return m->q->kind == NEW_MACE && !matrix ? sqrt(m->q->c.r_max / 2) : 1;
}

irreps new_paths(new_maker *m, int layer, const irreps *to) {
  path_terms paths[MAX_TERMS];
  const int n = find_all_paths("--features", &m->features, &m->q->sh, to, paths, MAX_TERMS);
  const irreps messages = own_messages(paths, n, &m->features, to);
  int64_t shape[2] = {m->q->c.n_basis, 0}, columns = 0;
  for (int i = 0; i < n; i++) columns += messages.term[i].mul;
  put_paths(m->out, layer, paths, n, &messages);
  for (int k = 0; k <= m->q->c.n_hidden; k++, shape[0] = shape[1]) {
    shape[1] = k < m->q->c.n_hidden ? m->q->c.hidden[k] : columns;
    new_tensor(m, radial_deviation(m, k, shape[0]), 2, shape,
               named("layers.%d.radial.%d", layer, k).text);
  }
  return messages;
}

void new_readout(new_maker *m, const int64_t *width, int n, const char *prefix) {
  for (int k = 0; k < n; k++) new_tensor(m, 1, 2, width + k, named("%s.%d", prefix, k).text);
}

/* ---- the file ---- */

static void put_frequencies(model *out, int n) {
  double *w = allocate((size_t)n, sizeof *w);
  for (int k = 0; k < n; k++) w[k] = (k + 1) * 3.14159265358979323846;
  put_doubles(out, w, n, "bessel_frequencies");
  free(w);
}

/* Each atom: scale times the network, and the shift of its species. */
static void put_energies(model *out, const label_statistics *s) {
  double scale[CLB_ELEMENTS];
  for (int i = 0; i < s->n_species; i++) scale[i] = s->scale;
  put_string(out, "1", "energy_scale");
  put_per_species(out, scale, s->shift, s->n_species);
}

int new_network_make(const new_network *q, const label_statistics *s, uint64_t seed) {
  model *out = model_new("the new network", "clebsch model");
  new_maker m = {.q = q, .s = s, .out = out, .seed = seed};
  put_string(out, new_names[q->kind], "architecture");
  put_species(out, s->number, s->n_species);
  put_edges(out, q->c.r_max, &q->sh, "bessel", q->c.n_basis);
  put_frequencies(out, q->c.n_basis);
  put_energies(out, s);
  put_number(out, q->c.n_hidden + 1, "radial_layers");
  put_number(out, q->c.layers, "n_layers");
  put_number(out, s->neighbours, "avg_num_neighbors");
  if (q->kind == NEW_MACE) new_mace(&m);
  else new_gated(&m);
  const int fd = model_in_memory(out);
  model_free(out);
  return fd;
}
