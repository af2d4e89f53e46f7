/* models/parameters/parameters.c - the numbers of a file's tensors, and the weights made of them.
 */
#include "models/parameters/parameters.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/reserve.h"

bool clb_parameters_add(clb_parameters *p, const char *name, int rank, const int64_t *shape) {
  if (!clb_reserve(&p->tensor, &p->tensor_capacity, p->n_tensors + 1, sizeof *p->tensor))
    return false;
  clb_parameter_tensor *t = &p->tensor[p->n_tensors];
  *t = (clb_parameter_tensor){.name = strdup(name), .rank = rank, .at = p->n, .count = 1};
  if (!t->name) return false;
  for (int i = 0; i < rank; i++) t->count *= t->shape[i] = shape[i];
  if (!clb_reserve(&p->value, &p->value_capacity, p->n + t->count, sizeof *p->value)) {
    free(t->name);
    return false;
  }
  memset(p->value + p->n, 0, (size_t)t->count * sizeof *p->value);
  p->n += t->count;
  p->n_tensors++;
  return true;
}

bool clb_parameters_use(clb_parameters *p, clb_parameter_piece piece) {
  if (!clb_reserve(&p->piece, &p->piece_capacity, p->n_pieces + 1, sizeof *p->piece)) return false;
  p->piece[p->n_pieces++] = piece;
  return true;
}

bool clb_parameters_take(clb_parameters *p, clb_parameter_piece piece, const double *values) {
  memcpy(p->value + piece.parameter, values, (size_t)piece.count * sizeof *values);
  return clb_parameters_use(p, piece);
}

static double *value_at(const clb_parameters *p, int64_t i) {
  return i < p->n ? p->value + i : p->made + (i - p->n);
}

/* The part of a matrix for a row and v, and the made one for a species. */
static int64_t matrix_at(const clb_parameter_mixture *m, int64_t row, int64_t v) {
  return (row * m->inner + v) * m->columns;
}
static int64_t made_at(const clb_parameters *p, const clb_parameter_mixture *m, int64_t row,
                       int64_t species) {
  return m->made - p->n + (row * m->species + species) * m->columns;
}

static void make(const clb_parameters *p, const clb_parameter_mixture *m) {
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t s = 0; s < m->species; s++) {
      double *to = p->made + made_at(p, m, row, s);
      memset(to, 0, (size_t)m->columns * sizeof *to);
      for (int64_t v = 0; v < m->inner; v++) {
        const double x = p->value[m->table + s * m->inner + v],
                     *from = p->value + m->matrices + matrix_at(m, row, v);
        for (int64_t c = 0; c < m->columns; c++) to[c] += x * from[c];
      }
    }
}

bool clb_parameters_mix(clb_parameters *p, clb_parameter_mixture *m) {
  const int64_t count = m->rows * m->species * m->columns, all = p->n_made + count;
  if (!clb_reserve(&p->mixture, &p->mixture_capacity, p->n_mixtures + 1, sizeof *p->mixture) ||
      !clb_reserve(&p->made, &p->made_capacity, all, sizeof *p->made) ||
      !clb_reserve(&p->by_made, &p->by_made_capacity, all, sizeof *p->by_made))
    return false;
  m->made = p->n + p->n_made;
  p->n_made = all;
  p->mixture[p->n_mixtures++] = *m;
  make(p, m);
  return true;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

bool clb_parameters_copy(clb_parameters *p, int64_t to, int64_t from, int64_t count) {
  bool good = true;
  for (int64_t i = 0, n = p->n_pieces; i < n && good; i++) {
    const clb_parameter_piece x = p->piece[i];
    const int64_t first = most(from, x.weight), end = least(from + count, x.weight + x.count);
    if (first < end)
      good = clb_parameters_use(p, (clb_parameter_piece){to + first - from,
                                                         x.parameter + first - x.weight,
                                                         end - first, x.factor});
  }
  return good;
}

void clb_parameters_free(clb_parameters *p) {
  for (int64_t i = 0; i < p->n_tensors; i++) free(p->tensor[i].name);
  free(p->tensor);
  free(p->piece);
  free(p->mixture);
  free(p->value);
  free(p->made);
  free(p->by_made);
  *p = (clb_parameters){0};
}

void clb_parameters_to_weights(const clb_parameters *p, double *weights) {
  for (int64_t i = 0; i < p->n_mixtures; i++) make(p, &p->mixture[i]);
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *x = &p->piece[i];
    const double *from = value_at(p, x->parameter);
    for (int64_t j = 0; j < x->count; j++) weights[x->weight + j] = x->factor * from[j];
  }
}

/* From gradients by what is made to those by both tensors. */
static void unmake(const clb_parameters *p, const clb_parameter_mixture *m, double *gradient) {
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t s = 0; s < m->species; s++)
      for (int64_t v = 0; v < m->inner; v++) {
        const int64_t at = m->matrices + matrix_at(m, row, v), x = m->table + s * m->inner + v;
        const double *g = p->by_made + made_at(p, m, row, s);
        for (int64_t c = 0; c < m->columns; c++) {
          gradient[at + c] += p->value[x] * g[c];
          gradient[x] += p->value[at + c] * g[c];
        }
      }
}

void clb_parameters_gradient(const clb_parameters *p, const double *by_weights, double *gradient) {
  memset(gradient, 0, (size_t)p->n * sizeof *gradient);
  if (p->n_made) memset(p->by_made, 0, (size_t)p->n_made * sizeof *p->by_made);
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *x = &p->piece[i];
    double *to = x->parameter < p->n ? gradient + x->parameter : p->by_made + (x->parameter - p->n);
    for (int64_t j = 0; j < x->count; j++) to[j] += x->factor * by_weights[x->weight + j];
  }
  for (int64_t i = 0; i < p->n_mixtures; i++) unmake(p, &p->mixture[i], gradient);
}
