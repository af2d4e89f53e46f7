/* tools/convert/esen/tensors.c - eSEN's tensors: matrices transposed, embeddings of species
   multiplied by the matrices that read them. */
#include "tools/convert/esen/esen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/reference/reference_spherical_harmonics.h"

/* ---- tensors ---- */

static weights find(const esen *q, int64_t count, const char *name) {
  const model_name key = named("module.%s", name);
  if (!pickle_entry(q->state, key.text))
    fail_model(q->t->path, "there is no tensor '%s': not an eSEN model of a supported kind",
               key.text);
  const weights w = tensor_of(q->t, q->state, key.text);
  if (w.count != count)
    fail_model(q->t->path, "tensor '%s' has %lld numbers, not %lld", key.text, (long long)w.count,
               (long long)count);
  return w;
}

weights esen_tensor(const esen *q, int64_t count, const char *format, ...) {
  char name[NAME_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  return find(q, count, named("backbone.%s", name).text);
}

weights esen_head_tensor(const esen *q, int64_t count, const char *name) {
  return find(q, count, named("%s%s", q->head, name).text);
}

void esen_transposed(const esen *q, const weights *w, int64_t n, int64_t rows, int64_t columns,
                     const char *name) {
  const int64_t many = n ? n : 1, shape[] = {n, columns, rows};
  const size_t bytes = w->f64 ? 8 : 4;
  unsigned char *x = allocate((size_t)(many * rows * columns), bytes), *to = x;
  for (int64_t k = 0; k < many; k++)
    for (int64_t c = 0; c < columns; c++)
      for (int64_t r = 0; r < rows; r++, to += bytes)
        memcpy(to, w->data + (size_t)((k * rows + r) * columns + c) * bytes, bytes);
  put_tensor(q->out, x, w->f64, n ? 3 : 2, n ? shape : shape + 1, "%s", name);
  free(x);
}

void esen_put(const esen *q, const weights *w, int64_t n, const char *name) {
  put_part(q->out, w, 0, 1, 1, &n, name);
}

/* ---- charge, spin and data set ---- */

/* Numbers that the program embeds a charge (or a spin) as; a spin of 0 is none. */
static void embed(const esen *q, bool spin, const weights *w, bool random, int x, double *to) {
  const int64_t half = q->channels / 2;
  const double turn = 2 * acos(-1);
  for (int64_t c = 0; c < q->channels; c++)
    to[c] = random       ? element(w, (x + (spin ? 0 : 100)) * q->channels + c)
            : spin && !x ? 0
            : c < half   ? sin(x * element(w, c) * turn)
                         : cos(x * element(w, c - half) * turn);
}

/* Of values from `first` on; columns of the matrix from `at` on, and what is added to each row. */
static void put_rows(const esen *q, bool spin, int first, int64_t count, const weights *matrix,
                     int64_t at, const double *add) {
  const bool random =
      !strcmp(esen_text(q, q->backbone, "chg_spin_emb_type", "pos_emb"), "rand_emb");
  const int64_t channels = q->channels, inputs = matrix->count / channels,
                shape[] = {count, channels};
  const char *what = spin ? "spin" : "charge";
  const weights w =
      random ? esen_tensor(q, (spin ? 101 : 201) * channels, "%s_embedding.rand_emb.weight", what)
             : esen_tensor(q, channels / 2, "%s_embedding.W", what);
  double *rows = allocate((size_t)(count * channels), sizeof *rows),
         *x = allocate((size_t)channels, sizeof *x);
  for (int64_t i = 0; i < count; i++) {
    embed(q, spin, &w, random, first + (int)i, x);
    for (int64_t o = 0; o < channels; o++) {
      double sum = add ? add[o] : 0;
      for (int64_t c = 0; c < channels; c++) sum += element(matrix, o * inputs + at + c) * x[c];
      rows[i * channels + o] = sum;
    }
  }
  put_shaped(q->out, rows, 2, shape, named("embedding_%s", what).text);
  put_number(q->out, first, "%s_first", what);
  free(rows);
  free(x);
}

/* What the data set adds, and the bias. */
static void add_dataset(const esen *q, const weights *matrix, double *sum) {
  const int64_t channels = q->channels, inputs = matrix->count / channels;
  const weights bias = esen_tensor(q, channels, "mix_csd.bias");
  for (int64_t o = 0; o < channels; o++) sum[o] = element(&bias, o);
  if (!q->embeds_dataset) return;
  value mapping = pickle_entry(q->backbone, "dataset_mapping"),
        name = mapping ? pickle_entry(mapping, q->dataset) : NULL;
  const weights w = esen_tensor(q, channels, "dataset_embedding.dataset_emb_dict.%s.weight",
                                name && name->kind == PICKLE_TEXT ? name->text : q->dataset);
  for (int64_t o = 0; o < channels; o++)
    for (int64_t c = 0; c < channels; c++)
      sum[o] += element(matrix, o * inputs + 2 * channels + c) * element(&w, c);
}

/* Of 'omol' charges from -100 to 100 and spins from 1 to 100. The program knows others without,
   which is charge 0 and no spin. */
void esen_states(const esen *q) {
  const char *kind = esen_text(q, q->backbone, "chg_spin_emb_type", "pos_emb");
  if (strcmp(kind, "pos_emb") != 0 && strcmp(kind, "rand_emb") != 0)
    fail_model(q->t->path,
               "its configuration has 'chg_spin_emb_type' = '%.40s'; only 'pos_emb' and 'rand_emb' "
               "are supported",
               kind);
  const int64_t channels = q->channels;
  const weights matrix =
      esen_tensor(q, (q->embeds_dataset ? 3 : 2) * channels * channels, "mix_csd.weight");
  const bool charged = !strcmp(q->dataset, "omol");
  double *sum = allocate((size_t)channels, sizeof *sum);
  add_dataset(q, &matrix, sum);
  if (!charged && !strcmp(kind, "rand_emb")) {
    const weights none = esen_tensor(q, 101 * channels, "spin_embedding.rand_emb.weight");
    for (int64_t o = 0; o < channels; o++)
      for (int64_t c = 0; c < channels; c++)
        sum[o] +=
            element(&matrix, o * (matrix.count / channels) + channels + c) * element(&none, c);
  }
  put_rows(q, false, charged ? -100 : 0, charged ? 201 : 1, &matrix, 0, sum);
  if (charged) put_rows(q, true, 1, 100, &matrix, channels, NULL);
  free(sum);
}

/* ---- networks of edges ---- */

/* Rows of an embedding, of the species that are there, times columns `first` on of a matrix
   [edge][inputs]. */
static void put_end(const esen *q, const weights *matrix, const char *embedding, int64_t first,
                    const weights *bias, const char *name) {
  const int64_t edge = q->edge, inputs = q->gaussians + 2 * edge, shape[] = {q->n_species, edge};
  const weights w = esen_tensor(q, q->elements * edge, "%s.weight", embedding);
  double *x = allocate((size_t)(q->n_species * edge), sizeof *x);
  for (int64_t s = 0; s < q->n_species; s++)
    for (int64_t o = 0; o < edge; o++) {
      double sum = bias ? element(bias, o) : 0;
      for (int64_t c = 0; c < edge; c++)
        sum += element(matrix, o * inputs + first + c) * element(&w, (s + 1) * edge + c);
      x[s * edge + o] = sum;
    }
  put_shaped(q->out, x, 2, shape, name);
  free(x);
}

static void put_layer_norm(const esen *q, const char *module, const char *name) {
  const weights w = esen_tensor(q, q->edge, "%s.weight", module),
                b = esen_tensor(q, q->edge, "%s.bias", module);
  const int64_t shape[] = {2, q->edge};
  double *x = allocate((size_t)(2 * q->edge), sizeof *x);
  for (int64_t c = 0; c < q->edge; c++) x[c] = element(&w, c), x[q->edge + c] = element(&b, c);
  put_shaped(q->out, x, 2, shape, name);
  free(x);
}

/* PREFIX: "layers.N.what"; module: its rad_func. */
static void put_radial(const esen *q, const char *module, const char *prefix, int64_t columns) {
  const int64_t edge = q->edge, n = q->gaussians, inputs = n + 2 * edge, shape[] = {n, edge};
  const weights first = esen_tensor(q, inputs * edge, "%s.net.0.weight", module),
                bias = esen_tensor(q, edge, "%s.net.0.bias", module);
  double *x = allocate((size_t)(n * edge), sizeof *x);
  for (int64_t k = 0; k < n; k++)
    for (int64_t o = 0; o < edge; o++) x[k * edge + o] = element(&first, o * inputs + k);
  put_shaped(q->out, x, 2, shape, named("%s.0", prefix).text);
  free(x);
  put_end(q, &first, "source_embedding", n, NULL, named("%s.senders", prefix).text);
  put_end(q, &first, "target_embedding", n + edge, &bias, named("%s.receivers", prefix).text);
  for (int k = 1; k <= 2; k++) {
    const int64_t out = k == 1 ? edge : columns;
    const weights w = esen_tensor(q, edge * out, "%s.net.%d.weight", module, 3 * k),
                  b = esen_tensor(q, out, "%s.net.%d.bias", module, 3 * k);
    put_layer_norm(q, named("%s.net.%d", module, 3 * k - 2).text,
                   named("%s.%d.norm", prefix, k - 1).text);
    esen_transposed(q, &w, 0, out, edge, named("%s.%d", prefix, k).text);
    esen_put(q, &b, out, named("%s.%d.bias", prefix, k).text);
  }
}

/* ---- a block ---- */

static void put_norm(const esen *q, const char *module, const char *name) {
  const int64_t shape[] = {q->l + 1, q->channels};
  const weights w = esen_tensor(q, shape[0] * shape[1], "%s.affine_weight", module),
                b = esen_tensor(q, q->channels, "%s.affine_bias", module);
  put_part(q->out, &w, 0, 1, 2, shape, name);
  esen_put(q, &b, q->channels, named("%s.bias", name).text);
}

/* Maps by order from `in` to `out` channels, and `more` columns of order 0. */
static void put_orders(const esen *q, const char *module, int64_t in, int64_t out, int64_t more,
                       const char *name) {
  for (int m = 0; m <= q->m; m++) {
    const int64_t degrees = q->l + 1 - m, rows = degrees * in,
                  columns = m ? 2 * degrees * out : degrees * out + more;
    const weights w =
        m ? esen_tensor(q, rows * columns, "%s.so2_m_conv.%d.fc.weight", module, m - 1)
          : esen_tensor(q, rows * columns, "%s.fc_m0.weight", module);
    esen_transposed(q, &w, 0, columns, rows, named("%s.%d", name, m).text);
    if (m) continue;
    const weights b = esen_tensor(q, columns, "%s.fc_m0.bias", module);
    esen_put(q, &b, columns, named("%s.bias", name).text);
  }
}

static void put_linear(const esen *q, const char *module, int64_t n, int64_t rows, int64_t columns,
                       const char *name) {
  const weights w = esen_tensor(q, (n ? n : 1) * rows * columns, "%s.weight", module),
                b = esen_tensor(q, columns, "%s.bias", module);
  esen_transposed(q, &w, n, columns, rows, name);
  esen_put(q, &b, columns, named("%s.bias", name).text);
}

static void put_spectral(const esen *q, const char *from, const char *to) {
  const int64_t channels = q->channels, hidden = q->hidden;
  put_linear(q, named("%s.atom_wise.scalar_mlp.0", from).text, 0, channels, q->l * hidden,
             named("%s.feed_forward_gates", to).text);
  put_linear(q, named("%s.atom_wise.so3_linear_1", from).text, q->l + 1, channels, hidden,
             named("%s.feed_forward_1", to).text);
  put_linear(q, named("%s.atom_wise.so3_linear_2", from).text, q->l + 1, hidden, channels,
             named("%s.feed_forward_2", to).text);
}

static void put_grid_network(const esen *q, const char *from, const char *to) {
  const int64_t width[] = {q->channels, q->hidden, q->hidden, q->channels};
  for (int k = 0; k < 3; k++) {
    const weights w =
        esen_tensor(q, width[k] * width[k + 1], "%s.atom_wise.grid_mlp.%d.weight", from, 2 * k);
    esen_transposed(q, &w, 0, width[k + 1], width[k], named("%s.feed_forward_%d", to, k + 1).text);
  }
}

static void put_block(const esen *q, int n) {
  const model_name block = named("blocks.%d", n), layer = named("layers.%d", n);
  const char *from = block.text, *to = layer.text;
  const int64_t channels = q->channels, hidden = q->hidden;
  int64_t numbers = 0;
  for (int m = 0; m <= q->m; m++) numbers += (q->l + 1 - m) * 2 * channels;
  put_norm(q, named("%s.norm_1", from).text, named("%s.norm_1", to).text);
  put_norm(q, named("%s.norm_2", from).text, named("%s.norm_2", to).text);
  put_radial(q, named("%s.edge_wise.so2_conv_1.rad_func", from).text, named("%s.radial", to).text,
             numbers);
  put_orders(q, named("%s.edge_wise.so2_conv_1", from).text, 2 * channels, hidden, q->l * hidden,
             named("%s.map_1", to).text);
  put_orders(q, named("%s.edge_wise.so2_conv_2", from).text, hidden, channels, 0,
             named("%s.map_2", to).text);
  (q->grid ? put_grid_network : put_spectral)(q, from, to);
}

/* ---- all of it ---- */

static void put_readout(const esen *q) {
  const int64_t width[] = {q->channels, q->hidden, q->hidden, 1};
  for (int k = 0; k < 3; k++) {
    const weights w = esen_head_tensor(q, width[k] * width[k + 1], named("%d.weight", 2 * k).text),
                  b = esen_head_tensor(q, width[k + 1], named("%d.bias", 2 * k).text);
    esen_transposed(q, &w, 0, width[k + 1], width[k], named("readout.%d", k).text);
    esen_put(q, &b, width[k + 1], named("readout.%d.bias", k).text);
  }
}

/* Harmonics at points of equal angles, and times the weights of a quadrature that gives back what
   came from them (Driscoll and Healy). */
static void put_grid(const esen *q) {
  const int n = 2 * (q->l + 1), turns = n + 1, degrees[] = {0, 1, 2, 3};
  const int64_t points = (int64_t)n * turns, columns = (int64_t)(q->l + 1) * (q->l + 1),
                shape[] = {points, columns};
  const double pi = acos(-1);
  const clb_spherical_harmonics_desc desc = {
      .degrees = degrees, .n_degrees = q->l + 1, .normalization = CLB_INTEGRAL, .normalize = 1};
  double *v = allocate((size_t)(3 * points), sizeof *v),
         *to = allocate((size_t)(points * columns), sizeof *to),
         *scale = allocate((size_t)(points * columns), sizeof *scale);
  for (int64_t i = 0; i < points; i++) {
    const double b = ((double)(i / turns) + 0.5) / n * pi, a = 2 * pi * (double)(i % turns) / turns;
    v[3 * i] = sin(b) * sin(a), v[3 * i + 1] = cos(b), v[3 * i + 2] = sin(b) * cos(a);
  }
  reference_forward(&desc, points, v, to, scale);
  put_shaped(q->out, to, 2, shape, "grid.to");
  for (int64_t i = 0; i < points; i++) {
    const double b = ((double)(i / turns) + 0.5) / n * pi;
    double sum = 0;
    for (int k = 1; k < n; k += 2) sum += sin(k * b) / k;
    for (int64_t c = 0; c < columns; c++)
      to[i * columns + c] *= 4. / n * sin(b) * sum * 2 * pi / turns;
  }
  put_shaped(q->out, to, 2, shape, "grid.from");
  put_number(q->out, (double)points, "grid_points");
  free(v);
  free(to);
  free(scale);
}

void esen_tensors(const esen *q) {
  if (q->grid) put_grid(q);
  const int64_t shape[] = {q->n_species, q->channels};
  const weights w = esen_tensor(q, q->elements * q->channels, "sphere_embedding.weight");
  put_part(q->out, &w, q->channels, 1, 2, shape, "embedding"); /* element 0 is none */
  put_radial(q, "edge_degree_embedding.rad_func", "layers.0.degree", (q->l + 1) * q->channels);
  for (int n = 0; n < q->n_layers; n++) put_block(q, n);
  put_norm(q, "norm", "norm");
  put_readout(q);
}
