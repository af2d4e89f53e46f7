/* models/layers/exchange.c - sets the rows of ghosts, and adds their gradients to their owners':
   the caller's part, between the layers of codes that share a system between processes. */
#include "models/layers/kinds.h"

/* Rows travel without their padding, which nothing has written. */
static int64_t columns_of(const clb_network *n, const clb_layer *y) {
  return n->array[y->in[0]]->irreps.dim;
}

static clb_status build(clb_network *n, clb_layer *y) {
  clb_exchange *p = y->parameters;
  const clb_status s = clb_network_gather(n);
  return s ? s : clb_row_sum_create(n->ctx, n->type, n->type, n->type, columns_of(n, y), &p->sum);
}

/* Where rows that go out are gathered: in packed[!backward ? 0 : 1], or for peers in a half of
   `out`. Those that come in are in the other one of packed. */
static clb_rows outgoing(const clb_network *n, bool backward) {
  const clb_ghosts *g = &n->ghosts;
  if (!g->n_peers) return (clb_rows){g->packed[backward], 0, CLB_DENSE, NULL};
  const int64_t at = (int64_t)clb_ghosts_half(g->out, g->half);
  return (clb_rows){g->out, at / clb_dtype_bytes((int32_t)n->type), CLB_DENSE, NULL};
}

/* Copies the rows of peers from where they are, which is in the same half as one's own. */
static clb_status pull(clb_network *n, uint64_t row, bool backward, clb_buffer *in) {
  const clb_ghosts *g = &n->ghosts;
  clb_device *d = n->ctx->device;
  clb_status s = CLB_OK;
  uint64_t to = 0;
  for (int64_t i = 0; i < g->n_peers && !s; i++) {
    const clb_model_peer *p = &g->peers[i];
    const int64_t rows = backward ? p->n_send : p->n_receive,
                  at = backward ? p->send_at : p->receive_at;
    const uint64_t bytes = (uint64_t)rows * row,
                   from = clb_ghosts_half(p->rows, g->half) + (uint64_t)at * row;
    if (bytes) s = d->backend->copy(d, &in->memory, to, &p->rows->memory, from, bytes);
    to += bytes;
  }
  return s;
}

static clb_status move_rows(clb_network *n, int64_t columns, bool backward) {
  const clb_model_exchange *x = n->edges->exchange;
  const clb_ghosts *g = &n->ghosts;
  const clb_rows rows = outgoing(n, backward);
  clb_buffer *in = g->packed[!backward];
  const uint64_t row = (uint64_t)(columns * clb_dtype_bytes((int32_t)n->type)),
                 sent = (uint64_t)(g->n_send - g->n_of_peers[0]) * row,
                 received = (uint64_t)(g->n_receive - g->n_of_peers[1]) * row,
                 outward = backward ? received : sent, inward = backward ? sent : received,
                 out_at = (uint64_t)(rows.offset * clb_dtype_bytes((int32_t)n->type)) +
                          (uint64_t)g->n_of_peers[backward] * row,
                 in_at = (uint64_t)g->n_of_peers[!backward] * row;
  if (x->device_rows) {
    clb_memory_mark(&in->memory, 0, inward);
    return x->move(x->user, backward, columns, n->type, rows.buffer->memory.handle,
                   in->memory.handle);
  }
  char *host = clb_staging(n->ctx, outward + inward + 1);
  if (!host) return clb_fail(n->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  clb_status s = clb_buffer_read(rows.buffer, out_at, host, outward);
  if (!s) s = x->move(x->user, backward, columns, n->type, host, host + outward);
  if (!s) s = pull(n, row, backward, in);
  return s ? s : clb_buffer_write(in, in_at, host + outward, inward);
}

/* What was submitted before is not part of its time. */
static clb_status move(clb_network *n, int64_t columns, bool backward) {
  clb_status s = clb_wait(n->ctx);
  const double start = clb_seconds_now();
  if (!s) s = move_rows(n, columns, backward);
  n->ghosts.half = !n->ghosts.half;
  n->exchanging += clb_seconds_now() - start;
  return s;
}

static clb_rows listed(clb_rows rows, clb_buffer *list) {
  rows.index = list;
  return rows;
}

static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_rows rows = clb_value(n, y->in[0]);
  const clb_ghosts *g = &n->ghosts;
  const int64_t columns = columns_of(n, y);
  const clb_rows received = {g->packed[1], 0, CLB_DENSE, NULL};
  clb_rows ghosts = rows;
  ghosts.offset = n->n_local * rows.stride;
  (void)adds;
  if (!n->edges->exchange) return CLB_OK;
  clb_status s =
      clb_gather_run(n->gather, g->n_send, columns, listed(rows, g->send), outgoing(n, false));
  if (!s) s = move(n, columns, false);
  return s || !g->n_receive
             ? s
             : clb_gather_run(n->gather, g->n_ghosts, columns, listed(received, g->place), ghosts);
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_exchange *p = y->parameters;
  const clb_rows rows = clb_gradient(n, y->in[0]);
  const clb_ghosts *g = &n->ghosts;
  const int64_t columns = columns_of(n, y);
  (void)adds;
  if (!n->edges->exchange) return CLB_OK;
  clb_status s =
      clb_gather_run(n->gather, g->n_receive, columns, listed(rows, g->receive), outgoing(n, true));
  if (!s) s = move(n, columns, true);
  return s || !g->n_send ? s
                         : clb_row_sum_run(p->sum, g->returns, CLB_BY_RECEIVER, 0, g->n_send,
                                           &g->packed[0]->memory, 0, columns, &rows.buffer->memory,
                                           0, rows.stride, true, &g->splits->memory, 0);
}

static void free_ops(void *parameters) { clb_row_sum_destroy(&((clb_exchange *)parameters)->sum); }

const clb_layer_kind clb_exchange_kind = {.whole = true,
                                          .build = build,
                                          .forward = forward,
                                          .backward = backward,
                                          .need = clb_need_nothing,
                                          .free_ops = free_ops};
