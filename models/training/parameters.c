/* models/training/parameters.c - the calls about a model's parameters. */
#include <math.h>
#include <string.h>

#include "models/training/training.h"
#include "src/base/sizes.h"

#define FAIL(m, s, ...) clb_fail(&(m)->ctx->error, s, __VA_ARGS__)

clb_status clb_training_check(const clb_model *m, const char *call) {
  if (!m) return clb_null(call, "model");
  return m->net.trains
             ? CLB_OK
             : FAIL(m, CLB_ERROR_ARGUMENT,
                    "%s: the model was opened without `trains` of clb_model_options", call);
}

clb_status clb_model_tensor_sized(const clb_model *m, int64_t index, clb_tensor_info *info,
                                  size_t size) {
  const clb_status s = clb_training_check(m, "clb_model_tensor");
  if (s) return s;
  if (!info) return FAIL(m, CLB_ERROR_ARGUMENT, "clb_model_tensor: info is NULL");
  const clb_parameters *p = &m->net.parameter;
  if (index < 0 || index >= p->n_tensors) return CLB_ERROR_ARGUMENT;
  const clb_parameter_tensor *t = &p->tensor[index];
  clb_tensor_info x = {.name = t->name, .rank = t->rank, .first = t->at, .count = t->count};
  memcpy(x.shape, t->shape, sizeof x.shape);
  clb_give_struct(&x, sizeof x, info, size);
  return CLB_OK;
}

clb_status clb_model_parameters(const clb_model *m, double *parameters) {
  const clb_status s = clb_training_check(m, __func__);
  if (s) return s;
  if (!parameters) return FAIL(m, CLB_ERROR_ARGUMENT, "%s: parameters is NULL", __func__);
  const clb_training *t = &m->training;
  const clb_parameters *p = &m->net.parameter;
  const clb_status read =
      t->newer ? clb_numbers_read(t->values, m->type, 0, p->n, p->value) : CLB_OK;
  if (read) return read;
  memcpy(parameters, m->net.parameter.value, (size_t)m->net.parameter.n * sizeof *parameters);
  return CLB_OK;
}

static clb_status check_finite(const clb_model *m, const double *x) {
  const clb_parameters *p = &m->net.parameter;
  for (int64_t t = 0; t < p->n_tensors; t++)
    for (int64_t i = 0; i < p->tensor[t].count; i++)
      if (!isfinite(x[p->tensor[t].at + i]))
        return FAIL(m, CLB_ERROR_ARGUMENT,
                    "clb_model_set_parameters: number %lld of tensor '%s' is %g", (long long)i,
                    p->tensor[t].name, x[p->tensor[t].at + i]);
  return CLB_OK;
}

clb_status clb_model_set_parameters(clb_model *m, const double *parameters) {
  clb_status s = clb_training_check(m, __func__);
  if (s) return s;
  if (!parameters) return FAIL(m, CLB_ERROR_ARGUMENT, "%s: parameters is NULL", __func__);
  clb_network *n = &m->net;
  s = check_finite(m, parameters);
  if (!s) s = clb_wait(m->ctx);
  if (s) return s;
  m->training.newer = m->training.read_frozen = false;
  memcpy(n->parameter.value, parameters, (size_t)n->parameter.n * sizeof *parameters);
  clb_parameters_to_weights(&n->parameter, n->weights);
  s = clb_numbers_write(n->device_weights, m->type, 0, n->n_weights, n->weights);
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->renew) s = n->layer[l]->kind->renew(n, n->layer[l]);
  return s;
}
