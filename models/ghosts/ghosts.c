/* models/ghosts/ghosts.c - lists of rows that travel between processes: checks, and their copies on
   the device. */
#include "models/ghosts/ghosts.h"

#include <stdlib.h>
#include <string.h>

void clb_ghosts_free(clb_ghosts *g) {
  clb_buffer **all[] = {&g->send, &g->receive, &g->place, &g->packed[0], &g->packed[1], &g->splits};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) clb_buffer_destroy(all[i]);
  clb_graph_destroy(&g->returns);
  free(g->peers);
  *g = (clb_ghosts){0};
}

/* At least n rows of these bytes; old contents are not kept. */
static clb_status reserve(clb_ghosts *g, clb_buffer **buffer, int64_t n, int64_t bytes) {
  int64_t all;
  if (__builtin_mul_overflow(n + n / 4 + 1, bytes, &all))
    return clb_fail(&g->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  if (*buffer && (*buffer)->memory.bytes >= (uint64_t)(n * bytes)) return CLB_OK;
  clb_buffer_destroy(buffer);
  return clb_buffer_create(g->ctx, (uint64_t)all, buffer);
}

static clb_status put(clb_ghosts *g, clb_buffer **buffer, int64_t n, const int32_t *list) {
  const clb_status s = reserve(g, buffer, n, sizeof *list);
  return s || !n ? s : clb_buffer_write(*buffer, 0, list, (uint64_t)n * sizeof *list);
}

static clb_status check(clb_ghosts *g, int64_t n_local, int64_t n_total,
                        const clb_model_exchange *x) {
  clb_error_sink *e = &g->ctx->error;
  if (x->n_send < 0 || x->n_send >= INT32_MAX || (x->n_send && !x->send))
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "clb_model: exchange.n_send is %lld; it must be 0 ... 2^31 - 2, the number of "
                    "rows in `send`",
                    (long long)x->n_send);
  if (x->n_receive < 0 || x->n_receive > n_total - n_local || (x->n_receive && !x->receive))
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "clb_model: exchange.n_receive is %lld; it must be 0 ... %lld, the number of "
                    "rows in `receive`",
                    (long long)x->n_receive, (long long)(n_total - n_local));
  if (!x->move) return clb_fail(e, CLB_ERROR_ARGUMENT, "clb_model: exchange.move is NULL");
  for (int64_t i = 0; i < x->n_send; i++)
    if (x->send[i] < 0 || x->send[i] >= n_local)
      return clb_fail(
          e, CLB_ERROR_ARGUMENT,
          "clb_model: exchange.send[%lld] is %d; it must be that of a local atom, below "
          "%lld",
          (long long)i, (int)x->send[i], (long long)n_local);
  return CLB_OK;
}

/* place[ghost] of all ghosts from receive[]; -1: none. */
static clb_status find_places(clb_ghosts *g, int64_t n_local, int64_t n_total,
                              const clb_model_exchange *x, int32_t *place) {
  for (int64_t i = 0; i < n_total - n_local; i++) place[i] = -1;
  for (int64_t i = 0; i < x->n_receive; i++) {
    const int64_t ghost = x->receive[i] - n_local;
    if (ghost < 0 || ghost >= n_total - n_local || place[ghost] >= 0)
      return clb_fail(
          &g->ctx->error, CLB_ERROR_ARGUMENT,
          "clb_model: exchange.receive[%lld] is %d; it must be %lld ... %lld, the row of "
          "a ghost that is there once",
          (long long)i, (int)x->receive[i], (long long)n_local, (long long)n_total - 1);
    place[ghost] = (int32_t)i;
  }
  for (int64_t i = 0; i < n_total - n_local; i++)
    if (place[i] < 0) place[i] = 0;
  return CLB_OK;
}

/* The graph of rows that return: row k goes to atom send[k]. */
static clb_status set_returns(clb_ghosts *g, int64_t n_local) {
  clb_status s = g->returns ? CLB_OK : clb_graph_create(g->ctx, 0, 0, &g->returns);
  int32_t *own = malloc((size_t)(g->n_send + 1) * sizeof *own);
  if (!s && !own) s = clb_fail(&g->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  for (int64_t i = 0; i < g->n_send && own; i++) own[i] = 0;
  if (!s)
    s = clb_graph_update(g->returns, 1, n_local, g->n_send, CLB_I32, (clb_index_list){.host = own},
                         (clb_index_list){.buffer = g->send});
  free(own);
  return s;
}

/* ---- peers ---- */

/* Rows first ... first + n - 1 of a list of `of`, and that many of a peer's buffer. */
static clb_status check_rows(clb_ghosts *g, int64_t peer, const char *name, int64_t n,
                             int64_t *first, int64_t of, int64_t at, const clb_buffer *rows,
                             int64_t row_bytes) {
  int64_t end;
  const bool in_list = n >= 0 && n <= of - *first;
  if (!in_list)
    return clb_fail(&g->ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_model: exchange.peers[%lld].n_%s is %lld; it must be 0 ... %lld, rows of "
                    "`%s` that are left",
                    (long long)peer, name, (long long)n, (long long)(of - *first), name);
  *first += n;
  if (at < 0 || __builtin_add_overflow(at, n, &end) ||
      __builtin_mul_overflow(end, row_bytes, &end) || (uint64_t)end > clb_ghosts_half(rows, 1))
    return clb_fail(
        &g->ctx->error, CLB_ERROR_ARGUMENT,
        "clb_model: exchange.peers[%lld].%s_at is %lld; from there on %lld rows of %lld "
        "bytes must be in half of its buffer of %llu bytes",
        (long long)peer, name, (long long)at, (long long)n, (long long)row_bytes,
        (unsigned long long)rows->memory.bytes);
  return CLB_OK;
}

static clb_status check_buffer(clb_ghosts *g, int64_t peer, const clb_buffer *b) {
  if (b && b->ctx == g->ctx && b->ipc != CLB_IPC_NONE) return CLB_OK;
  return clb_fail(
      &g->ctx->error, CLB_ERROR_ARGUMENT,
      "clb_model: exchange.peers[%lld].rows is %s; it must be a buffer of this context, "
      "of clb_buffer_open_ipc",
      (long long)peer, b ? "another buffer" : "NULL");
}

static clb_status check_peers(clb_ghosts *g, const clb_model_exchange *x, int64_t row_bytes) {
  clb_error_sink *e = &g->ctx->error;
  const int64_t rows = x->n_send > x->n_receive ? x->n_send : x->n_receive;
  int64_t sent = 0, received = 0, bytes;
  if (!x->n_peers) return CLB_OK;
  if (x->n_peers < 0 || !x->peers || x->device_rows || !x->out || x->out->ctx != g->ctx ||
      x->out->ipc != CLB_IPC_OWN)
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "clb_model: exchange.n_peers is %lld; with peers there must be `peers`, `out`, a "
        "buffer of clb_buffer_create_ipc of this context, and no device_rows",
        (long long)x->n_peers);
  if (__builtin_mul_overflow(rows, row_bytes, &bytes) ||
      clb_ghosts_half(x->out, 1) < (uint64_t)bytes)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "clb_model: exchange.out has %llu bytes; for %lld rows of %lld bytes it must "
                    "have 2 (%lld %lld + 256)",
                    (unsigned long long)x->out->memory.bytes, (long long)rows, (long long)row_bytes,
                    (long long)rows, (long long)row_bytes);
  clb_status s = CLB_OK;
  for (int64_t i = 0; i < x->n_peers && !s; i++) {
    const clb_model_peer *p = &x->peers[i];
    s = check_buffer(g, i, p->rows);
    if (!s)
      s = check_rows(g, i, "send", p->n_send, &sent, x->n_send, p->send_at, p->rows, row_bytes);
    if (!s)
      s = check_rows(g, i, "receive", p->n_receive, &received, x->n_receive, p->receive_at, p->rows,
                     row_bytes);
  }
  return s;
}

/* Peers are copied, as the lists are. */
static clb_status set_peers(clb_ghosts *g, const clb_model_exchange *x) {
  free(g->peers);
  g->peers = NULL;
  g->n_peers = g->n_of_peers[0] = g->n_of_peers[1] = 0;
  if (!x->n_peers) return CLB_OK;
  g->peers = malloc((size_t)x->n_peers * sizeof *g->peers);
  if (!g->peers) return clb_fail(&g->ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  memcpy(g->peers, x->peers, (size_t)x->n_peers * sizeof *g->peers);
  g->n_peers = x->n_peers;
  g->out = x->out;
  for (int64_t i = 0; i < g->n_peers; i++) {
    g->n_of_peers[0] += g->peers[i].n_send;
    g->n_of_peers[1] += g->peers[i].n_receive;
  }
  return CLB_OK;
}

clb_status clb_ghosts_set(clb_ghosts *g, clb_context *ctx, int64_t n_local, int64_t n_total,
                          const clb_model_exchange *x, int64_t row_bytes) {
  g->ctx = ctx;
  g->there = false;
  g->n_send = g->n_receive = g->n_ghosts = g->n_peers = 0;
  g->n_of_peers[0] = g->n_of_peers[1] = 0;
  if (!x) return CLB_OK;
  clb_status s = check(g, n_local, n_total, x);
  if (!s) s = check_peers(g, x, row_bytes);
  const int64_t n_ghosts = n_total - n_local;
  int32_t *place = s ? NULL : malloc((size_t)(n_ghosts + 1) * sizeof *place);
  if (!s && !place) s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_model: no memory");
  if (!s) s = find_places(g, n_local, n_total, x, place);
  if (!s) s = put(g, &g->place, n_ghosts, place);
  if (!s) s = put(g, &g->send, x->n_send, x->send);
  if (!s) s = put(g, &g->receive, x->n_receive, x->receive);
  if (!s) s = reserve(g, &g->packed[0], x->n_send, row_bytes);
  if (!s) s = reserve(g, &g->packed[1], x->n_receive, row_bytes);
  if (!s) s = reserve(g, &g->splits, clb_graph_most_splits(x->n_send), row_bytes);
  if (!s) s = set_peers(g, x);
  free(place);
  if (s) return s;
  g->n_send = x->n_send, g->n_receive = x->n_receive, g->n_ghosts = n_ghosts;
  s = set_returns(g, n_local);
  g->there = s == CLB_OK;
  return s;
}
