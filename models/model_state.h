/* models/model_state.h - the struct behind clb_model: a network, and what callers give to it and
   get from it. */
#ifndef CLB_MODELS_MODEL_STATE_H
#define CLB_MODELS_MODEL_STATE_H

#include <clebsch/model.h>

#include "models/atoms/neighbours.h"
#include "models/layers/network.h"
#include "kernels/graph/host/cell_list.h"

/* Where the edges of the graph come from. */
typedef enum {
  CLB_SOURCE_NONE,     /* there is no graph, or a call failed */
  CLB_SOURCE_HOST,     /* the model's neighbours, found on the host, which also computes vectors */
  CLB_SOURCE_SHIFTS,   /* found on the host; the device has their shifts and computes vectors */
  CLB_SOURCE_DEVICE,   /* found on the device, which has their shifts and computes vectors */
  CLB_SOURCE_VECTORS,  /* a caller's edges with their vectors */
  CLB_SOURCE_POSITIONS /* a caller's pairs, of which those within r_max are edges */
} clb_edge_source;
/* Whether the edges are those of the model's neighbours. */
static inline bool clb_edges_of_atoms(clb_edge_source source) {
  return source == CLB_SOURCE_HOST || source == CLB_SOURCE_SHIFTS || source == CLB_SOURCE_DEVICE;
}

/* Pairs of a caller's list, whose atoms are there, and those within r_max. */
typedef struct {
  int64_t n, n_given, n_local, n_total; /* n_given: pairs before absent atoms were left out */
  int32_t *sender, *receiver, *row;     /* [n]; row: of the sender's features */
  int64_t n_kept;
  int32_t *kept[2];  /* [n_kept]: rows and receivers of the edges */
  double *vectors;   /* [n_kept][3] */
  double *positions; /* [n_total][3], if they come from a buffer */
  int64_t capacity, atom_capacity;
} clb_caller_pairs;

/* Steps with equal keys launch the same. */
typedef struct {
  int64_t graph; /* 0: like no other step */
  int wanted;    /* bits of results */
} clb_step_key;

struct clb_model {
  clb_context *ctx;
  clb_dtype type, sum_type;
  clb_model_options options;
  clb_model_info info;
  clb_network net;

  clb_op *edge_vectors, *virial, *forces;      /* edge_vectors NULL: the device has no f64 */
  clb_buffer *positions, *shifts, *species_of; /* f64 [n_total][3]; clb_edge_shift [n_edges]; int32
                                                  [2][n_total]: of features, of energies */
  clb_buffer *results;                         /* of sum_type: clb_result_offsets */
  clb_buffer *v_atom;                          /* of sum_type [n_local][9]; NULL: never wanted */
  int64_t edge_capacity, atom_capacity;

  int32_t *species; /* [2][n_species] as on the device */
  int64_t n_species, species_capacity;
  bool seen; /* layers know which species occur */
  clb_edge_source edges;
  int64_t graph_number; /* grows with every change of the graph, or of tables */
  clb_step_key last_step;
  clb_recording *step; /* NULL: there is none */
  clb_neighbours neighbours;
  clb_caller_pairs pairs;
  clb_cell_list *cells; /* finds the edges between atoms; NULL: not needed yet */
  double *vectors;      /* [n_edges][3] */
  int64_t vectors_capacity;
  int64_t rebuilds;
  int64_t batch_atoms; /* at most so many at once, of many structures */
};

/* Offsets of results, in elements of sum_type: forces [n_total][3], e_atom [n_local], the energy's
   rows, the virial's rows of 9. e_atom and energy, which every step writes, are in the middle, so
   that any requested results can be read with one copy that contains only written data. */
typedef struct {
  int64_t forces, e_atom, energy, virial, end;
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

/* Adds to the message about lack of memory what the system needs, and what would fit. */
clb_status clb_model_explain_memory(clb_model *m, int64_t n_atoms, int64_t n_edges);
/* Sets the graph and reserves memory for it. Of CLB_SOURCE_DEVICE: to the edges that were counted
   last. On failure there is none. */
clb_status clb_model_set_graph(clb_model *m, clb_edge_source source, const clb_model_edges *edges);
/* Checks and sets the species of the graph's n_total atoms; then clb_model_prepare_species. */
clb_status clb_model_set_species(clb_model *m, clb_edge_source source,
                                 const clb_model_edges *edges);
/* Has layers prepare for the species that occur. */
clb_status clb_model_prepare_species(clb_model *m);
/* Finds the edges among the pairs of a list, sets the graph if it is another one, and gives the
   call with vectors that does the same. */
clb_status clb_caller_pairs_edges(clb_model *m, const clb_model_edges *e, clb_model_edges *edges);
void clb_caller_pairs_free(clb_caller_pairs *l);
/* Makes room for atoms; the graph is no longer valid. */
clb_status clb_model_reserve_atoms(clb_model *m, int64_t n);
/* Counts the edges between atoms on the device, which then has their positions; -1: it leaves them
   to the host, as devices without f64 do. */
clb_status clb_model_count_edges(clb_model *m, const clb_model_atoms *atoms,
                                 const clb_cell_grid *grid, int64_t *n_edges);
/* Sets the shifts of the neighbours' edges, which are the graph's: CLB_SOURCE_SHIFTS, if they fit.
 */
clb_status clb_model_set_shifts(clb_model *m);
/* Whether clb_model_compute takes these atoms, and gives these results. */
clb_status clb_model_check_atoms(clb_model *m, const clb_model_atoms *a,
                                 const clb_model_results *r);
/* Refuses atoms at the same position: they have no direction and no force between them. */
clb_status clb_model_check_places(clb_model *m, const clb_neighbours *list,
                                  const double *positions);
/* Computes the results of vectors, once the graph is set, and waits for them. */
clb_status clb_model_evaluate(clb_model *m, const clb_model_edges *e,
                              const clb_model_edge_results *r);
/* Submits the network and what follows from its gradients, in one unit if it did so before. */
clb_status clb_model_submit(clb_model *m, const clb_model_edges *e,
                            const clb_model_edge_results *r);
void clb_model_forget_step(clb_model *m);
/* Memory for v_atom of the graph's atoms. */
clb_status clb_model_reserve_v_atom(clb_model *m);
/* Computes e_atom and, with `backward`, the gradient by vectors from the network's vectors. */
clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, bool backward);

/* Waits once for all results that are not NULL and checks that they are finite. virial: [3][3],
   symmetrised; forces: [n_total][3]. */
clb_status clb_model_read_results(clb_model *m, double *energy, double *virial, double *forces,
                                  double *e_atom);
/* Fails unless all of x[rows][columns] are finite. */
clb_status clb_model_finite(clb_model *m, const char *name, int64_t rows, int64_t columns,
                            const double *x);
/* Copies double precision on the host to and from contiguous numbers of `type` on the device. */
clb_status clb_model_upload(clb_model *m, clb_buffer *to, clb_dtype type, int64_t n,
                            const double *from);
clb_status clb_model_download(clb_model *m, clb_buffer *from, clb_dtype type, int64_t n,
                              double *to);

#endif
