/* models/ghosts/ghosts.h - the rows that ghosts get from their owners, as lists on the device. */
#ifndef CLB_MODELS_GHOSTS_GHOSTS_H
#define CLB_MODELS_GHOSTS_GHOSTS_H

#include <clebsch/model.h>

#include "kernels/graph/host/row_sum.h"

/* Rows that are sent are edges of a graph, from the row that is sent to its atom, by which
   gradients that return are summed. packed: rows as they travel, [0] of `send`, [1] of `receive`.
 */
typedef struct {
  clb_context *ctx;
  bool there; /* lists were given */
  int64_t n_send, n_receive, n_ghosts;
  clb_buffer *send, *receive, *place; /* int32: as in clb_model_exchange; place: of each ghost in
                                         `receive`, 0 if it is not there */
  clb_graph *returns;                 /* NULL: never any */
  clb_buffer *packed[2], *splits;
  /* Of n_peers > 0 processes whose rows are read where they are; n_of_peers: rows of `send` and of
     `receive` that are theirs. */
  int64_t n_peers, n_of_peers[2];
  clb_model_peer *peers;
  clb_buffer *out; /* in place of packed for rows that go out */
  int half;        /* of `out`, in which rows of the next exchange lie; changes with each, whether
                      there are peers or not */
} clb_ghosts;

/* Where the halves of a buffer of rows begin, in bytes. */
static inline uint64_t clb_ghosts_half(const clb_buffer *rows, int half) {
  return half ? rows->memory.bytes / 512 * 256 : 0;
}

/* Takes the lists, which may be NULL: no rows travel. Fails unless they are as model.h says.
   row_bytes: of the widest row. */
clb_status clb_ghosts_set(clb_ghosts *g, clb_context *ctx, int64_t n_local, int64_t n_total,
                          const clb_model_exchange *lists, int64_t row_bytes);
void clb_ghosts_free(clb_ghosts *g);

#endif
