/* models/training/sweeps.c - tangents forward, adjoints in reverse. */
#include "kernels/layers/host/layers.h"
#include "models/layers/kinds.h"
#include "models/training/training.h"

clb_status clb_training_create(clb_model *m) {
  clb_network *n = &m->net;
  const double one = 1;
  const int64_t bytes = clb_dtype_bytes((int32_t)m->type);
  clb_status s = clb_zero_create(m->ctx, m->type, &m->zero);
  if (!s) s = clb_edge_tangents_create(m->ctx, m->type, &m->training.tangents);
  if (!s) s = clb_batch_loss_create(m->ctx, m->type, &m->training.loss);
  if (!s) s = clb_buffer_create(m->ctx, (uint64_t)bytes, &n->one);
  if (!s) s = clb_numbers_write(n->one, m->type, 0, 1, &one);
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

clb_status clb_training_sweep(clb_model *m) {
  clb_network *n = &m->net;
  const clb_training *t = &m->training;
  clb_status s = clb_edge_tangents_run(
      t->tangents, n->whole, t->loss.n, (clb_rows){t->moves, 0, CLB_DENSE, NULL},
      (clb_rows){t->strains, 0, CLB_DENSE, NULL}, t->loss.system, clb_all_values(n, CLB_VECTORS),
      clb_all_tangents(n, CLB_VECTORS));
  if (!s)
    s = clb_zero_run(m->zero, 1, n->n_weights, (clb_rows){n->weight_gradient, 0, CLB_DENSE, NULL});
  return s ? s : clb_model_run_training(m);
}

void clb_training_free(clb_model *m) {
  clb_training *t = &m->training;
  clb_batch_loss_free(&t->loss);
  for (int i = 0; i < CLB_BUCKETS; i++) clb_recording_destroy(&t->bucket[i].step.recording);
  clb_buffer_destroy(&t->moves);
  clb_buffer_destroy(&t->strains);
  clb_op_destroy(&t->tangents);
  clb_op_destroy(&t->map);
  clb_op_destroy(&t->copy);
  clb_op_destroy(&t->add);
  clb_buffer_destroy(&t->zero);
  clb_sparse_map_free(&t->to_weights);
  clb_sparse_map_free(&t->to_parameters);
  clb_buffer_destroy(&t->values);
}
