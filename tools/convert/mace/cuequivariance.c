/* tools/convert/mace/cuequivariance.c - symmetric contractions of cuEquivariance, in files saved
   where it has kernels: polynomials of weights and messages, listed term by term. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace/mace_product.h"

bool of_cuequivariance(value module) { return !strncmp(class_of(module), "cuequivariance", 14); }

/* Lists of a module `f.m`. Operation o is of num_operands[o] segments of the buffers weights (0),
   messages (1) and output (2), and has num_paths[o] terms: their segments and a coefficient. */
typedef struct {
  const torch *t;
  value paths, operands, operations, indices, coefficients;
} polynomial;

static polynomial polynomial_of(const mace *q, value contraction) {
  value m = attribute(q->t, contraction, "f.m", PICKLE_OBJECT);
  return (polynomial){q->t,
                      attribute(q->t, m, "num_paths", PICKLE_LIST),
                      attribute(q->t, m, "num_operands", PICKLE_LIST),
                      attribute(q->t, m, "operations", PICKLE_LIST),
                      attribute(q->t, m, "path_indices", PICKLE_LIST),
                      attribute(q->t, m, "path_coefficients", PICKLE_LIST)};
}

/* Whether the operands at `first` are weights, nu messages and the output. */
static bool of_order(const polynomial *f, size_t first, int nu) {
  bool good = whole_item(f->t, f->operations, first, 3) == 0 &&
              whole_item(f->t, f->operations, first + (size_t)nu + 1, 3) == 2;
  for (int i = 1; good && i <= nu; i++)
    good = whole_item(f->t, f->operations, first + (size_t)i, 3) == 1;
  return good;
}

/* Adds the terms of one order and degree to u, if there is one; counts its tensors, whose places
   are by weight, -1 at first. */
static void read_terms(const polynomial *f, order *o, int64_t components, int64_t *place,
                       int64_t n_weights) {
  const int64_t from = (int64_t)o->degree * o->degree, end = from + 2 * o->degree + 1;
  size_t operand = 0, index = 0, term = 0;
  for (size_t k = 0; k < f->operands->n; k++) {
    const size_t n = (size_t)whole_item(f->t, f->operands, k, MACE_CORRELATION + 3),
                 count = (size_t)whole_item(f->t, f->paths, k, INT32_MAX);
    const bool wanted = n == (size_t)o->nu + 2;
    if (n < 3 || (wanted && !of_order(f, operand, o->nu)))
      fail_model(f->t->path, "a symmetric contraction of cuEquivariance has other operands than "
                             "weights, messages and its output");
    for (size_t i = 0; wanted && i < count; i++) {
      const size_t at = index + i * n;
      const int64_t weight = whole_item(f->t, f->indices, at, n_weights),
                    out = whole_item(f->t, f->indices, at + n - 1, INT32_MAX);
      double x;
      if (out < from || out >= end) continue;
      if (place[weight] < 0) place[weight] = o->tensors++;
      if (!o->u) continue;
      int64_t to = out - from;
      for (size_t v = 1; v + 1 < n; v++)
        to = to * components + whole_item(f->t, f->indices, at + v, components);
      if (term + i >= f->coefficients->n || !plain_number(f->coefficients->items[term + i], &x))
        fail_model(f->t->path, "a symmetric contraction of cuEquivariance lacks coefficients");
      o->u[to * o->tensors + place[weight]] += x;
    }
    operand += n;
    index += n * count;
    term += count;
  }
}

/* Weights of the polynomial: those of the file, or its projection of them. */
static double weight_at(const weights *w, const weights *projection, int64_t species, int64_t k,
                        int64_t channel) {
  const int64_t rows = w->shape[1], channels = w->shape[2], first = species * rows * channels;
  double sum = 0;
  if (!projection) return element(w, first + k * channels + channel);
  for (int64_t r = 0; r < rows; r++)
    sum += element(w, first + r * channels + channel) *
           element(projection, r * projection->shape[1] + k);
  return sum;
}

order cuequivariance_order(const mace *q, value contraction, int degree, int nu, int64_t components,
                           int64_t channels) {
  const polynomial f = polynomial_of(q, contraction);
  value given = maybe(contraction, "projection");
  const weights w = weights_at(q->t, contraction, "weight");
  weights projection = {.rank = 0};
  const bool projected = given && given->kind != PICKLE_NONE;
  if (projected) projection = weights_at(q->t, contraction, "projection");
  if (w.rank != 3 || w.shape[2] != channels || (w.shape[0] != 1 && w.shape[0] != q->n_species) ||
      (projected && (projection.rank != 2 || projection.shape[0] != w.shape[1])))
    fail_model(q->t->path, "'weight' of '%s' is not of the shape of its species and channels",
               class_of(contraction));
  const int64_t n_weights = projected ? projection.shape[1] : w.shape[1];
  int64_t *place = allocate((size_t)n_weights, sizeof *place);
  for (int64_t i = 0; i < n_weights; i++) place[i] = -1;
  order o = {.degree = degree, .nu = nu, .size = 2 * degree + 1, .n_species = w.shape[0]};
  for (int i = 0; i < nu; i++) o.size *= components;
  read_terms(&f, &o, components, place, n_weights);
  o.u = allocate((size_t)(o.size * (o.tensors + !o.tensors)), sizeof *o.u);
  o.w = allocate((size_t)(o.n_species * (o.tensors + !o.tensors) * channels), sizeof *o.w);
  read_terms(&f, &o, components, place, n_weights);
  for (int64_t s = 0; s < o.n_species; s++)
    for (int64_t k = 0; k < n_weights; k++)
      for (int64_t c = 0; place[k] >= 0 && c < channels; c++)
        o.w[(s * o.tensors + place[k]) * channels + c] =
            weight_at(&w, projected ? &projection : NULL, s, k, c);
  free(place);
  return o;
}
