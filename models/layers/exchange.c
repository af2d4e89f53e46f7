/* models/layers/exchange.c - sets the rows of ghosts, and adds their gradients to their owners':
   the caller's part, between the layers of codes that share a system between processes. */
#include "models/layers/kinds.h"

static clb_status run(clb_network *n, const clb_layer *y, bool backward) {
  const clb_model_edges *e = n->edges;
  const clb_rows rows = backward ? clb_gradient(n, y->in[0]) : clb_value(n, y->in[0]);
  if (!e->exchange) return CLB_OK;
  if (!e->host_exchange)
    return e->exchange(e->user, backward, n->n_local, n->n_total, rows.stride, n->type, rows.buffer,
                       NULL);
  const uint64_t row = (uint64_t)(rows.stride * clb_dtype_bytes((int32_t)n->type)),
                 n_total = (uint64_t)n->n_total, n_local = (uint64_t)n->n_local,
                 n_in = backward ? n_total : n_local;
  char *host = clb_network_staging(n, (size_t)(n_total * row + 1));
  if (!host) return clb_fail(n->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  clb_status s = n_in ? clb_buffer_read(rows.buffer, 0, host, n_in * row) : CLB_OK;
  if (!s)
    s = e->exchange(e->user, backward, n->n_local, n->n_total, rows.stride, n->type, rows.buffer,
                    host);
  const uint64_t first = backward ? 0 : n_local, count = backward ? n_local : n_total - n_local;
  return s || !count ? s
                     : clb_buffer_write(rows.buffer, first * row, host + first * row, count * row);
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return run(n, y, false);
}
static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  (void)adds;
  return run(n, y, true);
}

const clb_layer_kind clb_exchange_kind = {
    .forward = forward, .backward = backward, .need = clb_need_nothing};
