/* models/training/sweeps.c - tangents forward, adjoints in reverse. */
#include "kernels/layers/host/layers.h"
#include "models/blocks.h"
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

static clb_status zeros(clb_model *m, clb_buffer **buffer, int64_t count) {
  const clb_status s = clb_network_grow(&m->net, buffer, count);
  return s ? s : clb_zero_run(m->zero, 1, count, (clb_rows){*buffer, 0, CLB_DENSE, NULL});
}

/* Layers add to these. */
static clb_status clear(clb_model *m) {
  clb_network *n = &m->net;
  clb_status s = zeros(m, &n->weight_gradient, n->n_weights);
  for (int i = 0; i < n->n_arrays && !s; i++) {
    clb_array *a = n->array[i];
    const int64_t count = clb_row_count(n, i) * clb_array_stride(a);
    if (i != CLB_VECTORS) s = zeros(m, &a->tangent, count);
    if (!s) s = zeros(m, &a->adjoint, count);
  }
  return s;
}

static clb_status set_tangents(clb_model *m, const double *tangents) {
  clb_array *v = m->net.array[CLB_VECTORS];
  const int64_t count = 3 * m->net.n_edges;
  clb_status s = zeros(m, &v->tangent, count);
  return s ? s : clb_model_upload(m, v->tangent, m->type, count, tangents);
}

clb_status clb_training_sweep(clb_model *m, const double *by_energy, const double *tangents,
                              double *gradient) {
  clb_network *n = &m->net;
  clb_blocks_leave(m);
  n->by_energy = by_energy;
  n->energy_species_of = m->species + n->n_total;
  clb_status s = clear(m);
  if (!s) s = set_tangents(m, tangents);
  for (int l = 0; l < n->n_layers && !s; l++)
    if (n->layer[l]->kind->along) s = n->layer[l]->kind->along(n, n->layer[l]);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--)
    if (n->layer[l]->kind->reverse) s = n->layer[l]->kind->reverse(n, n->layer[l]);
  return s ? s : clb_model_download(m, n->weight_gradient, m->type, n->n_weights, gradient);
}
