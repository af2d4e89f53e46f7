/* models/model_state.h - the struct behind clb_model: a network, and what callers give to it and
   get from it. */
#ifndef CLB_MODELS_MODEL_STATE_H
#define CLB_MODELS_MODEL_STATE_H

#include <clebsch/model.h>

#include "kernels/layers/host/sparse_map.h"
#include "models/edges/edge_list.h"
#include "models/layers/network.h"
#include "models/training/loss.h"
#include "src/runtime/repeated.h"

/* Systems with more atoms are not recorded: they keep the device busy for longer than launches
 * take.
 */
enum { CLB_RECORDED_ATOMS = 20000 };

/* The last bits of the key of a step, of which results it has: before them is graph_number. */
enum { CLB_WANTED_BITS = 4 };

/* A block's graph, made when it is first needed, and the species of its atoms. */
typedef struct {
  clb_graph *graph, *by_knots; /* by_knots: as in clb_network */
  clb_buffer *species;
  bool sorted, placed; /* placed: by_knots is of the vectors */
} clb_kept_block;

/* Batches of so many kinds can be recorded at a time; and each by default with this one that comes:
   to record may take as long as that many replays save. */
enum { CLB_BUCKETS = 8, CLB_RECORDED_USE = 16 };

/* Batches that launch the same. */
typedef struct {
  clb_repeated step;
  int64_t uses;
} clb_bucket;

/* Of models that train: a batch's loss, what it gives, and the op that makes tangents of vectors of
   that. */
typedef struct {
  clb_bucket bucket[CLB_BUCKETS]; /* the one used last first */
  int64_t recorded_use;           /* of a bucket; 0: none is, and batches are not made the same */
  clb_batch_loss loss;
  clb_buffer *moves, *strains;
  clb_op *tangents;
  clb_op *map, *copy, *add; /* models/training/device_parameters.c; NULL: not yet needed */
  clb_buffer *zero;         /* int32 [1]: the row that `add` adds */
  clb_sparse_map to_weights, to_parameters;
  clb_buffer *values; /* parameters, */
  bool newer;         /* which the host does not have */
  bool read_frozen;   /* it has read those of frozen tensors that it needs */
} clb_training;

typedef struct clb_model_dispersion clb_model_dispersion;

/* Device memory, without workspaces, of each atom and edge of a system; and of each of a block. */
typedef struct {
  uint64_t atom, edge, block_atom, block_edge;
} clb_model_bytes;

struct clb_model {
  clb_context *ctx;
  clb_dtype type, sum_type;
  clb_model_options options;
  clb_model_info info;
  clb_network net;

  clb_op *virial, *forces;
  clb_op *zero; /* of networks that train */
  clb_training training;
  clb_buffer *species_of; /* int32 [2][n_total]: of features, of energies */
  clb_buffer *results;    /* of sum_type: clb_result_offsets */
  clb_buffer *v_atom;     /* of sum_type [n_local][9]; NULL: never wanted */
  int64_t edge_capacity, atom_capacity;
  clb_model_bytes frugal, usual; /* of whole systems, in the order that saves memory, and not */
  double spare;                  /* bytes more that the latter may take */

  /* In blocks of atoms (models/blocks.h): all of them, the largest numbers of their atoms and
     edges, and the one whose species are on the device, and whose graph is; -1: none. */
  clb_atom_block *block;
  int64_t n_blocks, block_capacity, block_rows, block_edges, block_now, block_sorted;
  clb_buffer *block_species;
  clb_kept_block *kept; /* [n_kept], of models that train, which visit each block many times */
  int64_t n_kept;
  int64_t too_many_edges; /* of a whole system that did not fit; 0: all did */

  int32_t *species; /* [2][n_species] as on the device */
  int64_t n_species, species_capacity;
  bool seen;                 /* layers know which species occur */
  bool occurs[CLB_ELEMENTS]; /* these */
  clb_edge_list edges;
  bool shows_found; /* there is room for edges: results have the number that were found */
  clb_model_dispersion *dispersion; /* models/dispersion; NULL: there is none */
  int64_t computations;             /* grows with each, and then results are others */
  int64_t graph_number;             /* grows with every change of the graph, or of tables */
  clb_repeated step;
  int64_t batch_atoms; /* at most so many at once, of many structures */
  bool timed;          /* the seconds of this call are wanted */
};

/* Offsets of results, in elements of sum_type: forces [n_total][3], e_atom [n_local], if there is
   room for edges the number that were found, the energy's rows, the virial's rows of 9. e_atom and
   energy, which every step writes, are in the middle, so that any requested results can be read
   with one copy that contains only written data. */
typedef struct {
  int64_t forces, e_atom, found, energy, virial, end;
} clb_result_offsets;
clb_result_offsets clb_model_result_offsets(const clb_model *m);
static inline clb_rows clb_model_result(const clb_model *m, int64_t place) {
  return (clb_rows){m->results, place, CLB_DENSE, NULL};
}

/* Reads and builds the network, with so many knots (0: without tables). clb_model_unload undoes it,
   also where it failed. */
clb_status clb_model_load(clb_model *m, const char *path, int knots);
void clb_model_unload(clb_model *m);
/* The same with as many knots as accurate forces need. */
clb_status clb_model_choose_knots(clb_model *m, const char *path);
/* Creates ops, tables and weights for the network that was read. */
clb_status clb_model_build(clb_model *m);

/* A buffer of so many rows in place of another one. */
clb_status clb_model_replace(clb_model *m, clb_buffer **buffer, int64_t count, int64_t bytes);
/* Rows for which to make room. In blocks, which are for systems that fill the device, none to spare
   but for edges, whose number changes; of models that train, batches do, of much the same size. */
int64_t clb_model_rows_for(const clb_model *m, bool edges, int64_t n);

clb_model_bytes clb_model_count_bytes(const clb_model *m);
/* All that the model holds now and that grows with the system. */
uint64_t clb_model_held_bytes(const clb_model *m);
/* Adds to the message about lack of memory what the system needs, and what would fit. */
clb_status clb_model_explain_memory(clb_model *m, int64_t n_atoms, int64_t n_edges);
/* Sets the graph to the edges that were found, unless they are the same, its atoms' species unless
   same_graph says that these are, and reserves memory. */
clb_status clb_model_set_graph(clb_model *m, const clb_model_edges *found);
/* Charges and spins of n structures, whose atoms follow each other: before the graph is set. */
clb_status clb_model_set_states(clb_model *m, int64_t n, const clb_model_atoms *atoms);
/* Whether clb_model_compute takes these atoms, and gives these results. */
clb_status clb_model_check_atoms(clb_model *m, const clb_model_atoms *a,
                                 const clb_model_results *r);
/* The edges between atoms as the graph, and their vectors. */
clb_status clb_model_set_edges(clb_model *m, const clb_model_atoms *a, clb_model_edges *found);
/* What clb_model_compute does. */
clb_status clb_model_compute_atoms(clb_model *m, const clb_model_atoms *a,
                                   const clb_model_results *r);
/* Submits what gives the results of vectors, which are there, or on the host. */
clb_status clb_model_start(clb_model *m, const clb_model_edges *e, const clb_model_edge_results *r);
/* Waits for what was submitted, and checks that it is finite. Where more edges were found than
   there was room for, results are not there, and edges are forgotten: the step must be made again.
 */
clb_status clb_model_finish(clb_model *m, const clb_model_edges *e,
                            const clb_model_edge_results *r);
/* Both: computes the results of vectors, once the graph is set. */
clb_status clb_model_evaluate(clb_model *m, const clb_model_edges *e,
                              const clb_model_edge_results *r);
static inline bool clb_model_outgrown(const clb_model *m) { return m->edges.room.outgrown; }
/* Whether batches of as many atoms and edges shall launch the same: where launches take time, and
   of one block. */
bool clb_model_repeats(const clb_model *m, const clb_model_edges *e);
/* Submits the network and what follows from its gradients, in one unit if it did so before. */
clb_status clb_model_submit(clb_model *m, const clb_model_edges *e,
                            const clb_model_edge_results *r);
static inline void clb_model_forget_step(clb_model *m) {
  clb_recording_destroy(&m->step.recording);
}
/* Memory for v_atom of the graph's atoms. */
clb_status clb_model_reserve_v_atom(clb_model *m);
/* Computes e_atom and, with `backward`, the gradient by vectors from the network's vectors. */
clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, bool backward);

/* Of a model that trains, after such a run: the gradient by weights. */
clb_status clb_model_run_training(clb_model *m);

/* Waits once for all results that are not NULL and checks that they are finite. virial: [3][3],
   symmetrised; forces: [n_total][3]. */
clb_status clb_model_read_results(clb_model *m, double *energy, double *virial, double *forces,
                                  double *e_atom);
/* Makes each of a[n][3][3] symmetric. */
void clb_model_symmetrise(int64_t n, double *a);
/* Fails unless all of x[rows][columns] are finite. */
clb_status clb_model_finite(clb_model *m, const char *name, int64_t rows, int64_t columns,
                            const double *x);

#endif
