/* models/file/reader.c - what reads a model's metadata and tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/file/reader.h"

typedef clb_model_reader reader;

void clb_model_refuse(reader *r, const char *format, ...) {
  va_list args;
  clb_text t = {0};
  if (r->status) return;
  va_start(args, format);
  clb_text_vadd(&t, format, args);
  va_end(args);
  r->status = t.failed ? clb_fail(r->error, CLB_ERROR_MEMORY, "%s: no memory", r->path)
                       : clb_fail(r->error, CLB_ERROR_ARGUMENT, "%s: %s", r->path, t.s);
  clb_text_free(&t);
}

void clb_model_no_memory(reader *r) {
  if (!r->status)
    r->status = clb_fail(r->error, CLB_ERROR_MEMORY, "%s: no memory for the model", r->path);
}

/* ---- metadata ---- */

const char *clb_model_text(reader *r, const char *key) {
  const char *text = "";
  if (!r->status) r->status = clb_safetensors_text(r->error, r->file, key, &text);
  return r->status ? "" : text;
}

double clb_model_number(reader *r, const char *key) {
  double x = 1;
  if (!r->status) r->status = clb_safetensors_number(r->error, r->file, key, &x);
  return r->status ? 1 : x;
}

int clb_model_whole(reader *r, const char *key, int low, int high) {
  int64_t x = low;
  if (!r->status) r->status = clb_safetensors_whole(r->error, r->file, key, low, high, &x);
  return (int)x;
}

/* Index of the metadata's value among the allowed words. */
int clb_model_choice(reader *r, const char *key, const char *first, const char *second) {
  const char *text = clb_model_text(r, key);
  if (!r->status && strcmp(text, first) != 0 && (!second || strcmp(text, second) != 0))
    clb_model_refuse(r, "'%s' is \"%.60s\"; only \"%s\"%s%s%s is known", key, text, first,
                     second ? " or \"" : "", second ? second : "", second ? "\"" : "");
  return !r->status && strcmp(text, first) != 0;
}

int clb_model_word(reader *r, const char *key, const char *const *words, int n) {
  const char *text = clb_model_text(r, key);
  clb_text known = {0};
  for (int i = 0; i < n; i++) {
    if (!r->status && !strcmp(text, words[i])) {
      clb_text_free(&known);
      return i;
    }
    clb_text_add(&known, "%s\"%s\"", !i ? "" : i == n - 1 ? " and " : ", ", words[i]);
  }
  if (known.failed) clb_model_no_memory(r);
  if (!r->status) clb_model_refuse(r, "'%s' is \"%.60s\"; only %s are known", key, text, known.s);
  clb_text_free(&known);
  return 0;
}

void clb_model_irreps(reader *r, const char *key, clb_irreps *irreps) {
  const char *text = clb_model_text(r, key);
  if (r->status) return;
  r->status = clb_irreps_read(text, key, irreps, r->error);
  if (r->status)
    clb_fail(r->error, r->status, "%s: %s", r->path, r->error->text.s ? r->error->text.s : key);
  for (int t = 0; t < irreps->n && !r->status; t++)
    if (!irreps->term[t].mul)
      clb_model_refuse(r, "'%s' is \"%.60s\"; multiplicities must be positive", key, text);
}

/* ---- tensors ---- */

int64_t clb_model_reserve(reader *r, int64_t n) {
  int64_t at = 0;
  if (!r->status) r->status = clb_network_reserve(r->out, n, &at);
  return at;
}

void clb_model_copy(reader *r, int64_t to, int64_t from, int64_t n) {
  if (!r->status) r->status = clb_network_copy_weights(r->out, to, from, n);
}

int clb_model_array(reader *r, clb_per per, bool dense, const clb_irreps *irreps) {
  int array = CLB_VECTORS;
  if (!r->status) r->status = clb_network_array(r->out, per, dense, irreps, &array);
  return array;
}

clb_layer *clb_model_layer(reader *r, const clb_layer_kind *kind, size_t bytes, int block,
                           const char *what, int in, int out) {
  char name[CLB_LAYER_NAME];
  clb_layer *y;
  if (block < 0) snprintf(name, sizeof name, "%s", what);
  else snprintf(name, sizeof name, "layers.%d.%s", block, what);
  if (!r->status) r->status = clb_network_layer(r->out, kind, name, bytes, &y);
  if (r->status) return NULL;
  y->in[0] = in;
  y->out[0] = out;
  y->gradients = in < 0 ? 0 : 1;
  return y;
}

int64_t clb_model_columns(reader *r, const char *name) {
  const clb_tensor *t = r->status ? NULL : clb_safetensors_find(r->file, name);
  const int64_t columns = t && t->rank == 2 ? t->shape[1] : 1;
  if (columns < 1 || columns > CLB_MODEL_WIDTH)
    clb_model_refuse(r, "'%s' must have 1 to %d columns", name, CLB_MODEL_WIDTH);
  return columns;
}

int64_t clb_model_take(reader *r, const char *name, int rank, const int64_t *shape, double factor) {
  const clb_tensor *t; /* there: nothing larger than the file's tensors is allocated */
  if (!r->status) r->status = clb_safetensors_want(r->error, r->file, name, rank, shape, &t);
  if (r->status) return 0;
  r->used[t - clb_safetensors_at(r->file, 0)] = true;
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  const int64_t at = clb_model_reserve(r, n);
  if (!r->status)
    r->status = clb_safetensors_read(r->error, r->file, name, rank, shape, r->out->weights + at);
  if (!r->status && r->out->trains &&
      !clb_parameters_take(
          &r->out->parameter,
          (clb_parameter_piece){at, r->out->parameter.tensor[t - clb_safetensors_at(r->file, 0)].at,
                                n, factor},
          r->out->weights + at))
    clb_model_no_memory(r);
  for (int64_t i = 0; i < n && !r->status; i++) {
    const double x = r->out->weights[at + i];
    if (!isfinite(r->out->weights[at + i] *= factor))
      clb_model_refuse(r, "number %lld of tensor '%s', %g, times %g is not finite", (long long)i,
                       name, x, factor);
  }
  return r->status ? 0 : at;
}

/* The place of a tensor in the file; it is there. */
static const clb_parameter_tensor *parameter_of(const reader *r, const char *name) {
  return &r->out->parameter
              .tensor[clb_safetensors_find(r->file, name) - clb_safetensors_at(r->file, 0)];
}

int64_t clb_model_mix(reader *r, const char *name, int64_t rows, int64_t inner, int64_t columns,
                      const char *table, double factor) {
  const int64_t species = r->out->n_species, count = rows * species * columns,
                first = r->out->n_weights,
                matrices = clb_model_take(r, name, 3, (const int64_t[]){rows, inner, columns}, 1);
  double *x = r->status ? NULL : malloc((size_t)(species * inner) * sizeof *x),
         *made = r->status ? NULL : calloc((size_t)count + 1, sizeof *made);
  if (!x || !made) clb_model_no_memory(r);
  if (!r->status)
    r->status =
        clb_safetensors_read(r->error, r->file, table, 2, (const int64_t[]){species, inner}, x);
  for (int64_t i = 0; i < rows * species && !r->status; i++)
    for (int64_t v = 0; v < inner; v++) {
      const double *from = r->out->weights + matrices + (i / species * inner + v) * columns,
                   by = factor * x[i % species * inner + v];
      for (int64_t c = 0; c < columns; c++) made[i * columns + c] += by * from[c];
    }
  if (!r->status) { /* what was taken is not needed any more */
    memset(r->out->weights + first, 0, (size_t)(r->out->n_weights - first) * sizeof *made);
    r->out->n_weights = first;
  }
  const int64_t at = clb_model_reserve(r, count);
  if (!r->status) memcpy(r->out->weights + at, made, (size_t)count * sizeof *made);
  free(x);
  free(made);
  if (r->status || !r->out->trains) return at;
  clb_parameters *p = &r->out->parameter;
  clb_parameter_mixture m = {.table = parameter_of(r, table)->at,
                             .matrices = parameter_of(r, name)->at,
                             .rows = rows,
                             .species = species,
                             .inner = inner,
                             .columns = columns};
  p->n_pieces--; /* of what was taken */
  if (!clb_parameters_mix(p, &m) ||
      !clb_parameters_use(p, (clb_parameter_piece){at, m.made, count, factor}))
    clb_model_no_memory(r);
  return at;
}
