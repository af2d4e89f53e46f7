/* models/training/sweeps.c - tangents forward, adjoints in reverse. */
#include <stdlib.h>

#include "kernels/layers/host/layers.h"
#include "models/layers/kinds.h"
#include "models/training/training.h"

clb_status clb_training_create(clb_model *m) {
  clb_network *n = &m->net;
  const double one = 1;
  const int64_t bytes = clb_dtype_bytes((int32_t)m->type);
  clb_status s = clb_zero_create(m->ctx, m->type, &m->zero);
  if (!s) s = clb_edge_tangents_create(m->ctx, m->type, &m->training.tangents);
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

/* Of vectors, along u = -f and S. */
static clb_status put_tangents(clb_model *m, const clb_training_loss *x) {
  clb_network *n = &m->net;
  clb_training_buffers *b = &m->training;
  const uint64_t bytes = (uint64_t)x->n_atoms * sizeof *x->system;
  double *u = malloc(3 * (size_t)x->n_atoms * sizeof *u + 1);
  if (!u) return clb_fail(&m->ctx->error, CLB_ERROR_MEMORY, "clb_model_gradient: no memory");
  for (int64_t i = 0; i < 3 * x->n_atoms; i++) u[i] = -x->by_force[i];
  clb_status s = put(m, &b->moves, 3 * x->n_atoms, u);
  free(u);
  if (!s) s = put(m, &b->strains, 9 * x->n, x->strain);
  if (!s) s = clb_network_grow(n, &b->system, x->n_atoms);
  if (!s && bytes) s = clb_buffer_write(b->system, 0, x->system, bytes);
  return s ? s
           : clb_edge_tangents_run(
                 b->tangents, n->whole, x->n, (clb_rows){b->moves, 0, CLB_DENSE, NULL},
                 (clb_rows){b->strains, 0, CLB_DENSE, NULL}, b->system,
                 clb_all_values(n, CLB_VECTORS), clb_all_tangents(n, CLB_VECTORS));
}

clb_status clb_training_sweep(clb_model *m, const clb_training_loss *x, double *gradient) {
  clb_network *n = &m->net;
  clb_status s = put(m, &n->by_energy, x->n_atoms, x->by_energy);
  if (!s) s = put_tangents(m, x);
  if (!s)
    s = clb_zero_run(m->zero, 1, n->n_weights, (clb_rows){n->weight_gradient, 0, CLB_DENSE, NULL});
  if (!s) s = clb_model_run_training(m);
  return s ? s : clb_model_download(m, n->weight_gradient, m->type, n->n_weights, gradient);
}

void clb_training_free(clb_model *m) {
  clb_training_buffers *b = &m->training;
  clb_buffer **all[] = {&b->moves, &b->strains, &b->system};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_buffer_destroy(all[i]);
  clb_op_destroy(&b->tangents);
}
