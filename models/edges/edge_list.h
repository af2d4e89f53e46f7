/* models/edges/edge_list.h - the edges of a model's graph: where they come from, and their vectors.

   Each call finds its edges (clb_edges_of_atoms or clb_edges_of_caller), writes them into the graph
   unless they are still in it (clb_edges_write), and makes vectors (clb_edges_vectors) where the
   caller brings none. After a failure nothing of them is left: clb_edges_forget. */
#ifndef CLB_MODELS_EDGES_EDGE_LIST_H
#define CLB_MODELS_EDGES_EDGE_LIST_H

#include <clebsch/model.h>

#include "kernels/graph/host/cell_list.h"
#include "models/atoms/neighbours.h"
#include "models/edges/known.h"
#include "src/runtime/repeated.h"

typedef enum {
  CLB_EDGES_NONE,   /* there are none, or a call failed */
  CLB_EDGES_HOST,   /* between atoms: found on the host, which also makes vectors */
  CLB_EDGES_SHIFTS, /* between atoms: found on the host; the device has shifts, makes vectors */
  CLB_EDGES_DEVICE, /* between atoms: found on the device, which has shifts and makes vectors */
  CLB_EDGES_MANY,   /* between atoms of many systems, found on the device: the same */
  CLB_EDGES_GIVEN,  /* a caller's, with their vectors */
  CLB_EDGES_PAIRS,  /* of a caller's local atoms: the pairs within the cutoff, of its list or found
                       on the host, which makes vectors */
  CLB_EDGES_LOCAL   /* of a caller's local atoms: found on the device, also among listed pairs; it
                       makes vectors */
} clb_edge_source;

/* What a caller's local atoms and ghosts are, until they change. */
typedef struct {
  int32_t *row; /* [n_total]: where the atom's features are; CLB_CELL_ABSENT, CLB_CELL_NO_ROW */
  int64_t row_capacity;
  clb_neighbours around; /* on the host, without a skin */
  clb_cell_grid grid;
  /* On the device; NULL: not needed yet. Of those found in a grid, and those among listed pairs. */
  clb_cell_list *search, *filter;
  clb_buffer *rows;      /* row, on the device */
  clb_buffer *senders;   /* of each edge, as atoms */
  clb_buffer *positions; /* f64 [n_total][3]: the caller's, or those of the list */
} clb_caller_atoms;

/* Pairs of a caller's list, whose atoms are there, by receiver, and those within the cutoff, which
   the host finds where the device does not. */
typedef struct {
  int64_t n;
  int32_t *start, *sender;      /* where those of a receiver begin, as in cell_list.h; [n] */
  clb_buffer *starts, *senders; /* the same, on the device */
  int64_t n_kept;
  int32_t *kept[2];  /* [n_kept]: rows and receivers of the edges */
  double *vectors;   /* [n_kept][3] */
  double *positions; /* [n_total][3], if they come from a buffer */
  int64_t start_capacity, sender_capacity, kept_capacity[2], vector_capacity, position_capacity;
} clb_caller_pairs;

/* Atoms whose positions are on the device: the caller of clb_edges_of_atoms sets it for the time of
   a call. */
typedef struct {
  clb_buffer *positions; /* f64 [n][3]; NULL: positions are on the host */
  bool moved;            /* one has moved by more than skin / 2 since the list was made */
} clb_edge_motion;

/* Room for the edges of CLB_EDGES_DEVICE, of one system whose directions are all periodic. */
typedef struct {
  int64_t most_atoms;       /* of systems that get room; 0: none does */
  int64_t n_atoms, n_edges; /* n_edges: for so many; 0: there is none */
  int64_t found;            /* edges, as far as the host has seen */
  bool due, unseen;         /* a search shall be submitted; has been, and may not have fit */
  bool outgrown;            /* it had not */
  clb_rows shown;           /* where the number of edges goes, as f64 */
  clb_repeated search;
} clb_edge_room;

typedef struct {
  clb_context *ctx;
  clb_edge_source source;
  bool same; /* as they are in the graph */
  bool exchanged, searched;
  bool auto_skin;                    /* the skin of `between` is chosen in each call */
  int64_t weights;                   /* of each edge in convolutions */
  int64_t n_given, n_local, n_total; /* of the call; n_given: edges or pairs */
  int64_t rebuilds;                  /* of `between` */

  clb_neighbours between;                   /* atoms; without edges where the device found them */
  clb_cell_list *search, *search_many;      /* on the device; NULL: not needed yet */
  clb_op *make_vectors, *make_vectors_many; /* NULL: the device has no f64; not needed yet */
  clb_buffer *positions;                    /* f64 [n][3] */
  clb_edge_motion motion;
  clb_edge_room room;
  bool knows;            /* systems come again: */
  clb_known_edges known; /* the numbers of their edges */
  int64_t found_many;    /* edges of many systems, without null edges */
  clb_rows show_many;    /* where the number of edges of many systems goes, as f64; no buffer:
                            nowhere */
  clb_buffer *shifts;    /* clb_edge_shift of each edge */
  double *vectors;       /* on the host: [n_edges][3] */
  int64_t vectors_capacity;
  double copying; /* seconds of copies of positions, of all calls */
  clb_caller_atoms atoms;
  clb_caller_pairs pairs;
} clb_edge_list;

/* Compiles what makes vectors of type `type`. `l` is zeroed but for between.cutoff and .skin. */
clb_status clb_edges_create(clb_edge_list *l, clb_context *ctx, clb_dtype type);
void clb_edges_free(clb_edge_list *l);
void clb_edges_forget(clb_edge_list *l);

/* The edges between atoms, found anew only where they moved too far. Where memory lacks on the
   device, between.n_edges says how many there are. */
clb_status clb_edges_of_atoms(clb_edge_list *l, const clb_model_atoms *a, clb_model_edges *found);
/* The edges between atoms of many systems; CLB_EDGES_NONE: the device leaves them to the host. With
   `knows` it waits for their number only where a system is new. */
clb_status clb_edges_of_many(clb_edge_list *l, const clb_edges_systems *all,
                             clb_model_edges *found);
/* Before the graph is set: null edges to those of many systems, so that numbers which are near each
   other become one. */
void clb_edges_pad(clb_edge_list *l, clb_model_edges *found);
/* Takes the number of edges that a search in the room has shown; false: they did not fit, and are
   forgotten. */
bool clb_edges_see(clb_edge_list *l, double found);
/* Whether the edges of the last call are still there, for one that says so. */
clb_status clb_edges_check_same(clb_edge_list *l, const clb_model_edges *e);
/* Positions on the host, read where they are on the device; valid until the next call. */
clb_status clb_edges_host_positions(clb_edge_list *l, int64_t n, const double **positions);
/* A caller's edges as they are, those among its pairs with their vectors, or those that are found
   between its atoms: CLB_EDGES_LOCAL and CLB_EDGES_PAIRS. */
clb_status clb_edges_of_caller(clb_edge_list *l, const clb_model_edges *e, clb_model_edges *found);
static inline bool clb_edges_are_pairs(const clb_model_edges *e) {
  return e->positions || e->positions_buffer;
}

clb_status clb_edges_write(clb_edge_list *l, const clb_model_edges *found, clb_graph *graph);
/* Into `vectors`, on the device, after a search that is due; or on the host, and then
   found->vectors are those. */
clb_status clb_edges_vectors(clb_edge_list *l, clb_graph *graph, const double *positions,
                             clb_rows vectors, clb_model_edges *found);

/* Refuses atoms at the same position: they have no direction and no force between them. */
clb_status clb_edges_check_places(clb_error_sink *error, const clb_neighbours *list,
                                  const double *positions);

/* ---- of one source each ---- */

/* Makes `between` anew: CLB_EDGES_DEVICE or CLB_EDGES_HOST. */
clb_status clb_edges_search(clb_edge_list *l, const clb_model_atoms *a, const bool periodic[3],
                            const clb_cell_grid *grid);
/* CLB_EDGES_MANY or CLB_EDGES_NONE, and the number of edges. */
clb_status clb_edges_search_many(clb_edge_list *l, const clb_edges_systems *all, int64_t *n_edges);
clb_status clb_edges_write_counted(clb_edge_list *l, clb_graph *graph);
/* Room for so many edges and some more; none. */
void clb_edges_make_room(clb_edge_list *l, int64_t n_atoms, int64_t n_edges);
void clb_edges_leave_room(clb_edge_list *l);
/* Writes what a search in the room reads; *fits: the device can search this grid. */
clb_status clb_edges_place(clb_edge_list *l, const clb_model_atoms *a, const clb_cell_grid *grid,
                           bool *fits);
/* Submits the search, in one unit if it did so before. */
clb_status clb_edges_find(clb_edge_list *l, clb_graph *graph);
/* CLB_EDGES_SHIFTS, if they fit. */
clb_status clb_edges_write_shifts(clb_edge_list *l);
clb_status clb_edges_put_positions(clb_edge_list *l, int64_t n, const double *positions);
clb_status clb_edges_among_pairs(clb_edge_list *l, const clb_model_edges *e,
                                 clb_model_edges *found);
clb_status clb_edges_of_locals(clb_edge_list *l, const clb_model_edges *e, clb_model_edges *found);
clb_status clb_edges_write_local(clb_edge_list *l, const clb_model_edges *found, clb_graph *graph);
void clb_caller_atoms_free(clb_caller_atoms *a);
void clb_caller_pairs_free(clb_caller_pairs *p);
/* Where the features of a caller's atoms are; checks species and images. */
clb_status clb_edges_set_rows(clb_edge_list *l, const clb_model_edges *e);
/* The same on the device, if it has local atoms to find edges of. */
clb_status clb_edges_put_rows(clb_edge_list *l, const clb_model_edges *e);
/* Edges on the device, of CLB_EDGES_LOCAL: their number, -1 if it leaves them to the host; of a
   list that was given its rows, grid NULL or atoms to look at. */
clb_status clb_edges_count_local(clb_edge_list *l, const clb_model_edges *e, clb_cell_list *list,
                                 const clb_cell_grid *grid, int64_t n, int64_t *n_edges);
void clb_edges_found_local(clb_edge_list *l, const clb_model_edges *e, int64_t n_edges,
                           clb_model_edges *found);
/* Those of n pairs of a caller's atoms that are there, by receiver; and those of them within the
   cutoff, on the host. */
clb_status clb_edges_take_pairs(clb_edge_list *l, const clb_model_edges *e, int64_t n,
                                const int32_t *senders, const int32_t *receivers);
clb_status clb_edges_near_pairs(clb_edge_list *l, const clb_model_edges *e, const double *positions,
                                clb_model_edges *found);
/* Room for n pairs in `kept`; old contents are lost. */
clb_status clb_edges_reserve_kept(clb_edge_list *l, int64_t n);
/* A caller's positions on the host; NULL: there are no atoms. */
clb_status clb_edges_read_positions(clb_edge_list *l, const clb_model_edges *e, const double **x);
/* At least n rows of these bytes, after waiting for work that may use the buffer. */
clb_status clb_edges_reserve(clb_context *ctx, clb_buffer **buffer, int64_t n, uint64_t bytes);

/* Rows to make room for: a quarter more, but for large systems, which change less and fill the
   device, a 16th. */
static inline int64_t clb_with_headroom(int64_t n) {
  const int64_t quarter = n / 4 < 1 << 14 ? n / 4 : 1 << 14;
  return n + (n / 16 > quarter ? n / 16 : quarter);
}

#endif
