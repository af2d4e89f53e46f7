/* models/batch.h - structures as one graph without edges between them. */
#ifndef CLB_MODELS_BATCH_H
#define CLB_MODELS_BATCH_H

#include "models/model_state.h"

/* Structures first ... first + n - 1 of all, one after the other in arrays. */
typedef struct {
  const clb_model_atoms *atoms;
  const clb_model_results *results;
  int64_t first, n, n_atoms, n_edges, edge_capacity;
  bool forces, stress;             /* wanted for some structure; stress: or v_atom */
  int32_t *species, *system;       /* [n_atoms] */
  double *positions;               /* [n_atoms][3] */
  clb_cell_grid *grid;             /* [n] */
  int32_t *sender, *receiver;      /* [n_edges]: where the host finds them */
  double *vectors;                 /* [n_edges][3] */
  double *e_atom, *force, *v_atom; /* [n_atoms], [n_atoms][3], [n_atoms][9] */
  clb_neighbours list;             /* of one structure */
} clb_structures;

/* Lists the structures' atoms and finds their edges: the graph, and its vectors. What is computed
   of them goes into e_atom, force and v_atom, and clb_structures_hand_out gives it to the results.
   clb_structures_free is needed also after a failure. */
clb_status clb_structures_set(clb_model *m, clb_structures *b, clb_model_edges *e);
void clb_structures_hand_out(const clb_structures *b);
void clb_structures_free(clb_structures *b);
/* Takes the next structures of n, one at least, of `most` atoms together. */
void clb_structures_take(clb_structures *b, int64_t n, int64_t most);
/* Whether the model takes these structures, and gives these results. */
clb_status clb_structures_check(clb_model *m, int64_t n, const clb_model_atoms *atoms,
                                const clb_model_results *results);

#endif
