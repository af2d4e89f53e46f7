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
  free(p->value);
  *p = (clb_parameters){0};
}

void clb_parameters_to_weights(const clb_parameters *p, double *weights) {
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *x = &p->piece[i];
    for (int64_t j = 0; j < x->count; j++)
      weights[x->weight + j] = x->factor * p->value[x->parameter + j];
  }
}

void clb_parameters_gradient(const clb_parameters *p, const double *by_weights, double *gradient) {
  memset(gradient, 0, (size_t)p->n * sizeof *gradient);
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *x = &p->piece[i];
    for (int64_t j = 0; j < x->count; j++)
      gradient[x->parameter + j] += x->factor * by_weights[x->weight + j];
  }
}
