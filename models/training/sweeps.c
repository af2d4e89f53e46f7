/* models/training/sweeps.c - tangents forward, adjoints in reverse. */
#include "kernels/layers/host/layers.h"
#include "models/layers/kinds.h"
#include "models/training/training.h"

clb_status clb_training_create(clb_model *m) {
  clb_network *n = &m->net;
  const double one = 1;
  const int64_t bytes = clb_dtype_bytes((int32_t)m->type);
  clb_status s = clb_zero_create(m->ctx, m->type, &m->zero);
  if (!s) s = clb_buffer_create(m->ctx, (uint64_t)bytes, &n->one);
  if (!s) s = clb_model_upload(m, n->one, m->type, 1, &one);
  if (!s) s = clb_buffer_create(m->ctx, (uint64_t)(n->n_weights * bytes), &n->weight_gradient);
  for (int l = 0; l < n->n_layers && !s; l++) {
    clb_layer *y = n->layer[l];
    if (y->kind->derive) s = y->kind->derive(n, y);
    if (s)
      clb_fail(&m->ctx->error, s, "%s: %s", y->name,
               m->ctx->error.text.s ? m->ctx->error.text.s : "no memory");
  }
  return s;
}

static clb_status put(clb_model *m, clb_buffer **to, int64_t count, const double *from) {
  const clb_status s = clb_network_grow(&m->net, to, count);
  return s ? s : clb_model_upload(m, *to, m->type, count, from);
}

clb_status clb_training_sweep(clb_model *m, const double *by_energy, const double *tangents,
                              double *gradient) {
  clb_network *n = &m->net;
  clb_status s = put(m, &n->by_energy, n->n_local, by_energy);
  if (!s)
    s = clb_model_upload(m, clb_all_tangents(n, CLB_VECTORS).buffer, m->type, 3 * n->n_edges,
                         tangents);
  if (!s)
    s = clb_zero_run(m->zero, 1, n->n_weights, (clb_rows){n->weight_gradient, 0, CLB_DENSE, NULL});
  if (!s) s = clb_model_run_training(m);
  return s ? s : clb_model_download(m, n->weight_gradient, m->type, n->n_weights, gradient);
}
