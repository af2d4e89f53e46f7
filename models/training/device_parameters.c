/* models/training/device_parameters.c - parameters that stay on the device: weights made of them,
   and gradients by them made of those by weights, without the host. Where numbers are made of two
   tensors, it is the host that does it. */
#include <stdlib.h>
#include <string.h>

#include "kernels/layers/host/layers.h"
#include "models/layers/kinds.h"
#include "models/training/training.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

/* ---- lists ---- */

typedef struct {
  int32_t *starts, *from;
  double *factors;
} lists;

static void free_lists(lists *x) {
  free(x->starts);
  free(x->from);
  free(x->factors);
}

static bool make_lists(int64_t rows, int64_t entries, lists *x) {
  *x = (lists){calloc((size_t)rows + 2, sizeof *x->starts),
               calloc((size_t)entries + 1, sizeof *x->from),
               calloc((size_t)entries + 1, sizeof *x->factors)};
  return x->starts && x->from && x->factors;
}

/* Each parameter's weights, in the order in which the host adds these up; or each weight's
   parameter, of which there is one at most. */
static void fill(const clb_parameters *p, bool by_parameter, int64_t rows, lists *x) {
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const int64_t first = by_parameter ? p->piece[i].parameter : p->piece[i].weight;
    for (int64_t j = 0; j < p->piece[i].count; j++) x->starts[first + j + 2]++;
  }
  for (int64_t i = 0; i < rows; i++) x->starts[i + 2] += x->starts[i + 1];
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *q = &p->piece[i];
    const int64_t to = by_parameter ? q->parameter : q->weight,
                  from = by_parameter ? q->weight : q->parameter;
    for (int64_t j = 0; j < q->count; j++) {
      const int32_t entry = x->starts[to + j + 1]++;
      x->from[entry] = (int32_t)(from + j);
      x->factors[entry] = q->factor;
    }
  }
}

static clb_status set_map(clb_model *m, bool by_parameter, clb_sparse_map *map) {
  const clb_parameters *p = &m->net.parameter;
  const int64_t rows = by_parameter ? p->n : m->net.n_weights;
  int64_t entries = 0;
  lists x;
  for (int64_t i = 0; i < p->n_pieces; i++) entries += p->piece[i].count;
  const bool made = make_lists(rows, entries, &x);
  if (made) fill(p, by_parameter, rows, &x);
  const clb_status s =
      made ? clb_sparse_map_set(m->training.map, rows, x.starts, x.from, x.factors, map)
           : clb_network_no_memory(&m->net);
  free_lists(&x);
  return s;
}

/* Made when they are first needed. */
static clb_status prepare(clb_model *m) {
  clb_training *t = &m->training;
  clb_status s = CLB_OK;
  if (t->map) return s;
  if (!t->copy) s = clb_activation_create(m->ctx, m->type, CLB_IDENTITY, 1, 1, &t->copy);
  if (!s && !t->values)
    s = clb_buffer_create(m->ctx,
                          (uint64_t)((m->net.parameter.n + 1) * clb_dtype_bytes((int32_t)m->type)),
                          &t->values);
  if (!s) s = clb_sparse_map_create(m->ctx, m->type, &t->map);
  if (!s) s = set_map(m, false, &t->to_weights);
  if (!s) s = set_map(m, true, &t->to_parameters);
  if (!s) return s;
  clb_op_destroy(&t->map);
  clb_sparse_map_free(&t->to_weights);
  clb_sparse_map_free(&t->to_parameters);
  return s;
}

static clb_status check_buffer(const clb_model *m, const char *call, const clb_buffer *b) {
  const uint64_t bytes = (uint64_t)(m->net.parameter.n * clb_dtype_bytes((int32_t)m->type));
  if (b && b->ctx == m->ctx && b->memory.bytes >= bytes) return CLB_OK;
  return FAIL(m, CLB_ERROR_ARGUMENT, "%s: %s", call,
              !b                 ? "the buffer of parameters is NULL"
              : b->ctx != m->ctx ? "the buffer of parameters belongs to another context"
                                 : "the buffer is too small for the model's parameters");
}

/* ---- gradients ---- */

clb_status clb_training_read_gradient(clb_model *m, double *gradient) {
  const clb_network *n = &m->net;
  double *by_weights = malloc((size_t)n->n_weights * sizeof *by_weights + 1);
  const clb_status s =
      by_weights ? clb_numbers_read(n->weight_gradient, m->type, 0, n->n_weights, by_weights)
                 : clb_network_no_memory(&m->net);
  if (!s) clb_parameters_gradient(&n->parameter, by_weights, gradient);
  free(by_weights);
  return s;
}

clb_status clb_training_gradient_to(clb_model *m, clb_buffer *to) {
  const clb_parameters *p = &m->net.parameter;
  clb_status s = check_buffer(m, "clb_model_gradient", to);
  if (!s && !p->n_mixtures) s = prepare(m);
  if (s) return s;
  if (!p->n_mixtures)
    return clb_sparse_map_run(m->training.map, &m->training.to_parameters, m->net.weight_gradient,
                              to, false);
  double *gradient = malloc((size_t)p->n * sizeof *gradient + 1);
  s = gradient ? clb_training_read_gradient(m, gradient) : clb_network_no_memory(&m->net);
  if (!s) s = clb_numbers_write(to, m->type, 0, p->n, gradient);
  free(gradient);
  return s;
}

static clb_status prepare_add(clb_model *m) {
  clb_training *t = &m->training;
  const int32_t zero = 0;
  clb_status s = CLB_OK;
  if (t->add) return s;
  if (!t->zero) s = clb_buffer_create(m->ctx, sizeof zero, &t->zero);
  if (!s) s = clb_buffer_write(t->zero, 0, &zero, sizeof zero);
  return s ? s : clb_gather_create(m->ctx, m->type, true, &t->add);
}

clb_status clb_model_add_gradient(clb_model *m, clb_buffer *gradient, clb_buffer *to) {
  clb_status s = clb_training_check(m, __func__);
  if (!s) s = check_buffer(m, __func__, gradient);
  if (!s) s = check_buffer(m, __func__, to);
  if (!s) s = prepare_add(m);
  return s ? s
           : clb_gather_run(m->training.add, 1, m->net.parameter.n,
                            (clb_rows){gradient, 0, CLB_DENSE, m->training.zero},
                            (clb_rows){to, 0, CLB_DENSE, NULL});
}

/* ---- parameters ---- */

/* Whether all parameters of these weights are of frozen tensors. */
static bool is_frozen(const clb_model *m, const clb_weight_span *w) {
  const clb_parameters *p = &m->net.parameter;
  for (int64_t i = 0; i < p->n_pieces; i++) {
    const clb_parameter_piece *x = &p->piece[i];
    if (x->weight >= w->at + w->count || x->weight + x->count <= w->at) continue;
    for (int64_t t = 0; t < p->n_tensors; t++)
      if (x->parameter < p->tensor[t].at + p->tensor[t].count &&
          p->tensor[t].at < x->parameter + x->count && !p->tensor[t].frozen)
        return false;
  }
  return true;
}

/* What layers keep on the host, and those that keep it. */
static clb_status renew_kept(clb_model *m) {
  clb_network *n = &m->net;
  clb_status s = CLB_OK;
  bool frozen = m->training.read_frozen;
  for (int64_t i = 0; i < n->n_kept && frozen; i++) frozen = is_frozen(m, &n->kept[i]);
  if (frozen) return s;
  for (int64_t i = 0; i < n->n_kept && !s; i++)
    s = clb_numbers_read(n->device_weights, m->type, n->kept[i].at, n->kept[i].count,
                         n->weights + n->kept[i].at);
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->renew) s = n->layer[l]->kind->renew(n, n->layer[l]);
  m->training.read_frozen = !s;
  return s;
}

clb_status clb_model_freeze(clb_model *m, int64_t index) {
  const clb_status s = clb_training_check(m, __func__);
  if (s) return s;
  const clb_parameters *p = &m->net.parameter;
  if (index < 0 || index >= p->n_tensors)
    return FAIL(m, CLB_ERROR_ARGUMENT, "%s: index is %lld; the model has %lld tensors", __func__,
                (long long)index, (long long)p->n_tensors);
  p->tensor[index].frozen = true;
  m->training.read_frozen = false;
  return CLB_OK;
}

static clb_status set_by_host(clb_model *m, clb_buffer *from) {
  const int64_t count = m->net.parameter.n;
  double *x = malloc((size_t)count * sizeof *x + 1);
  clb_status s = x ? clb_numbers_read(from, m->type, 0, count, x) : clb_network_no_memory(&m->net);
  if (!s) s = clb_model_set_parameters(m, x);
  free(x);
  return s;
}

clb_status clb_model_take_parameters(clb_model *m, clb_buffer *from) {
  clb_status s = clb_training_check(m, __func__);
  if (!s) s = check_buffer(m, __func__, from);
  if (s) return s;
  if (m->net.parameter.n_mixtures) return set_by_host(m, from);
  clb_network *n = &m->net;
  clb_training *t = &m->training;
  const int64_t count = n->parameter.n;
  s = prepare(m);
  if (!s)
    s = clb_activation_forward(t->copy, count, 1, (clb_rows){from, 0, CLB_DENSE, NULL},
                               (clb_rows){t->values, 0, CLB_DENSE, NULL});
  if (!s) s = clb_sparse_map_run(t->map, &t->to_weights, t->values, n->device_weights, true);
  t->newer = !s;
  return s ? s : renew_kept(m);
}
