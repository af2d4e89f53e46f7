/* models/blocks.h - systems that are computed in blocks of atoms. */
#ifndef CLB_MODELS_BLOCKS_H
#define CLB_MODELS_BLOCKS_H

#include "models/model_state.h"

/* Prepares the order of layers and their arrays for whole systems, or for blocks of atoms between
   which rows of ghosts are exchanged; frugal: of whole ones, with more launches and less memory.
   What was there is freed. */
clb_status clb_blocks_order(clb_model *m, bool blocked, bool exchanges, bool frugal);
/* The same, and ops for it, unless it is so already. */
clb_status clb_blocks_plan(clb_model *m, bool blocked, bool exchanges, bool frugal);
void clb_blocks_free(clb_model *m);

/* Atoms of blocks that take about these bytes, unless the caller said how many. */
int64_t clb_blocks_rows(const clb_model *m, const clb_model_edges *e, uint64_t bytes);
/* Divides the edges, which are in n->whole, into blocks of so many atoms, and makes room for one.
 */
clb_status clb_blocks_set(clb_model *m, const clb_model_edges *e, int64_t rows);

/* Layers work on a block, of whose edges there is a graph if they need one; on the whole. */
clb_status clb_blocks_enter(clb_model *m, int64_t number, bool edges);
void clb_blocks_leave(clb_model *m);

#endif
