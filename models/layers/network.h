/* models/layers/network.h - a network: a list of layers over arrays. An architecture (models/arch)
   reads it from a file, passes (models/passes) rewrite and order it, and clb_model runs it.

   A layer computes the rows of its outputs from the rows of its inputs; backward it computes the
   energy's gradients by its inputs from those by its outputs. Several layers may write one array,
   which then is their sum: the first one overwrites it, the others add; the gradients of an array
   that several layers read are summed in the same way. */
#ifndef CLB_MODELS_LAYERS_NETWORK_H
#define CLB_MODELS_LAYERS_NETWORK_H

#include <clebsch/model.h>

#include "models/atoms/elements.h"
#include "models/ghosts/ghosts.h"
#include "models/parameters/parameters.h"
#include "kernels/layers/host/layers.h"
#include "kernels/linear/host/matmul.h"
#include "src/problem/irreps.h"
#include "src/runtime/context.h"

/* ---- arrays ---- */

/* What an array has a row for: each edge; each atom, ghosts included; each local atom; each knot,
   and then again, of slopes. */
typedef enum { CLB_PER_EDGE, CLB_PER_ATOM, CLB_PER_LOCAL, CLB_PER_KNOT } clb_per;

/* Steps from `first` to `last`, in which numbers must stay as they are; first > last: none. */
typedef struct {
  int first, last;
} clb_span;

/* An array's numbers, or its gradient: when they are needed, and in which slot of memory. Several
   spans: what is computed again is not needed in between. */
enum { CLB_SPANS = 64 };
typedef struct {
  clb_span span[CLB_SPANS];
  int slot;   /* -1: never needed */
  bool block; /* only rows of the block that is computed are there */
} clb_stored;

/* What is stored of an array; the last two: of networks that train (models/training). */
typedef enum { CLB_VALUE, CLB_GRADIENT, CLB_TANGENT, CLB_ADJOINT, CLB_STORED } clb_kept;

/* Of the model's precision, in layout ir_mul. Columns without symmetry are even scalars. */
typedef struct {
  clb_per per;
  bool dense; /* rows follow each other; otherwise they start at multiples of 16 bytes */
  bool moves; /* depends on the positions of atoms, not only on their species */
  bool has_gradient;
  clb_irreps irreps;
  int64_t
      gradient_columns[2]; /* of its gradient, where they are not those of irreps: of all layers
                              that give it, in arrays of their own; of one at a time; 0: they are */
  clb_stored stored[CLB_STORED];
} clb_array;

/* The first array of every network: sender minus receiver, [n_edges][3]. The caller may bring it,
   and its gradient, in buffers of its own. */
enum { CLB_VECTORS };

static inline clb_irreps clb_scalars(int64_t n) {
  return (clb_irreps){.n = 1, .dim = (int32_t)n, .term = {{.mul = (int32_t)n, .parity = 1}}};
}
static inline bool clb_same_irrep(const clb_term *a, const clb_term *b) {
  return a->l == b->l && a->parity == b->parity;
}
int64_t clb_channels(const clb_irreps *irreps, const clb_term *of); /* NULL: all irreps */
int clb_find_irrep(const clb_irreps *irreps, const clb_term *t);    /* the first term of it; -1 */
int64_t clb_first_channel(const clb_irreps *irreps, int term);

/* ---- layers ---- */

enum { CLB_LAYER_INS = 6, CLB_LAYER_OUTS = 3, CLB_LAYER_NAME = 48 };

typedef struct clb_network clb_network;
typedef struct clb_layer clb_layer;

enum { CLB_BENDS_WEIGHTS = 1, CLB_BENDS_INPUTS = 2 };

/* Which channels (c of all terms, one after the other) of each array are needed. */
typedef bool *const *clb_needed;

typedef struct {
  unsigned reads_in, reads_out; /* bits: arrays whose values backward reads */
  unsigned overwrites;          /* bits: inputs whose gradients it cannot add to */
  bool sums;                    /* it can add to its output */
  unsigned senders; /* bits: inputs of whose rows it reads those of all senders, and to all of which
                       its gradients go; of others it needs those of its own atoms or edges alone */
  bool again;       /* cheap, with large outputs: forward may run again before backward */
  bool ends;        /* it writes results of the model, so that it is needed */
  bool whole;       /* it works on all atoms at once, if there is an exchange, else not at all */

  /* Creates its ops and what they need on the device. The readers of its outputs have been built.
     NULL: there are none. */
  clb_status (*build)(clb_network *n, clb_layer *y);
  /* Creates ops that another order of layers needs, while nothing runs; NULL: none does. */
  clb_status (*reorder)(clb_network *n, clb_layer *y);
  /* Prepares for atoms of these of the network's species, while nothing runs; NULL: nothing to do.
   */
  clb_status (*species)(clb_network *n, clb_layer *y, const bool *occurs);
  /* Makes its tables anew, or forgets them until `species`; NULL: it never has any. */
  clb_status (*tables)(clb_network *n, clb_layer *y);
  /* adds: bits of outputs (backward: of inputs) to whose values (gradients) it adds; it overwrites
     others. Only gradients of inputs in y->gradients that have_gradient are wanted. */
  clb_status (*forward)(clb_network *n, clb_layer *y, unsigned adds);
  clb_status (*backward)(clb_network *n, clb_layer *y, unsigned adds); /* NULL: nothing to do */
  /* The most and the least bytes of workspace that a pass can use; NULL: none. */
  clb_status (*workspace)(clb_network *n, clb_layer *y, clb_pass pass, uint64_t *min,
                          uint64_t *max);

  /* Pruning. need: marks the channels of inputs that the needed channels of outputs depend on, and
     those of outputs that cannot be dropped alone; NULL: all of both, if any output is needed.
     keep: drops from its parameters the channels that are not needed. Both may be NULL. */
  void (*need)(const clb_network *n, const clb_layer *y, clb_needed needed);
  void (*keep)(clb_network *n, clb_layer *y, clb_needed needed);

  /* Training (models/training). along: computes tangents of outputs from those of inputs; with
     `bends` also the adjoints of inputs, and adds to gradients by weights, what these tangents
     depend on by way of the outputs' gradients: once for each row. reverse: computes adjoints of
     inputs and adds to gradients by weights from the outputs' adjoints. adds: as above, to tangents
     of outputs and to adjoints of inputs. again: backward, but only what other edges' layers with
     weights need; NULL: it is backward itself. NULL otherwise: nothing to do. */
  unsigned bends; /* what along with `bends` gives: CLB_BENDS_WEIGHTS and CLB_BENDS_INPUTS */
  bool late;      /* reverse gives that, and so reads tangents of inputs and gradients of outputs */
  bool always_adds; /* reverse, and along where it bends inputs, add where they might overwrite:
                       zeros must be there */
  clb_status (*derive)(clb_network *n, clb_layer *y);
  /* Takes weights that its ops keep as they are now, while nothing runs. */
  clb_status (*renew)(clb_network *n, clb_layer *y);
  clb_status (*again_backward)(clb_network *n, clb_layer *y, unsigned adds);
  clb_status (*along)(clb_network *n, clb_layer *y, unsigned adds, bool bends);
  clb_status (*reverse)(clb_network *n, clb_layer *y, unsigned adds);

  void (*free_ops)(void *parameters);
} clb_layer_kind;

struct clb_layer {
  const clb_layer_kind *kind;
  char name[CLB_LAYER_NAME];                  /* where errors occur */
  int in[CLB_LAYER_INS], out[CLB_LAYER_OUTS]; /* arrays; -1: none */
  int work;            /* array that is free for use within a step; -1: none */
  bool again;          /* forward runs again */
  unsigned gradients;  /* bits: inputs by which there is a gradient */
  clb_op *derivatives; /* of networks that train: backward and double backward, which add */
  void *parameters;    /* of its kind (models/layers/kinds.h) */
};

static inline bool clb_in_place(const clb_layer *y) {
  return y->in[0] >= 0 && y->in[0] == y->out[0];
}

/* ---- the network ---- */

/* Part of the order in which layers run; adds: see clb_layer_kind. Steps of a phase, which follow
   each other, can run for one block of atoms after the other. */
typedef enum {
  CLB_SWEEP_FORWARD,
  CLB_SWEEP_BACKWARD,
  CLB_SWEEP_ALONG, /* of networks that train, as is the next one */
  CLB_SWEEP_REVERSE
} clb_sweep;
typedef struct {
  int layer;
  clb_sweep sweep;
  bool again; /* not for the first time */
  bool bends; /* of layers along */
  unsigned adds;
  int phase;
} clb_step;

/* A buffer that arrays share. bytes: of a row; block: as in clb_stored. */
typedef struct {
  bool per_edge, per_knot, block;
  int64_t bytes;
  clb_buffer *buffer;
} clb_slot;

/* A block: local atoms first ... first + n - 1, and the edges that they receive. Ghosts belong to
   the last one. */
typedef struct {
  int64_t first, n, edge, n_edges;
  bool last;
} clb_atom_block;

/* A structure: where its atoms begin; spin: its multiplicity. */
typedef struct {
  int64_t first;
  int charge, spin;
} clb_state;

/* Weights that layers keep on the host, too. */
typedef struct {
  int64_t at, count;
} clb_weight_span;

/* Knots from 0 to r_max at which radial networks that train are computed; split: as in
   kernels/layers/host/edge_spline.h; intervals 0: there are none. */
typedef struct {
  double r_max;
  int64_t intervals, split;
} clb_knot_grid;

struct clb_network {
  clb_error_sink *error;

  /* What the file says. */
  char *architecture, *symbols; /* symbols separated by 0 bytes */
  const char *symbol[CLB_ELEMENTS];
  int atomic_number[CLB_ELEMENTS];
  int n_species, n_blocks, l_max; /* n_blocks: convolutions, one after the other; l_max: of
                                     harmonics */
  bool parity;                    /* of harmonics is (-1)^l; else all are even */
  double r_max;                   /* Angstrom */
  int64_t parameters;             /* numbers in the file */
  double *weights;                /* parameters of layers are offsets into it */
  int64_t n_weights, weights_capacity;
  bool trains;              /* weights are as in the file, and can change */
  clb_parameters parameter; /* then: what they are made of */
  clb_weight_span *kept;    /* of which layers that are renewed need the numbers */
  int64_t n_kept, kept_capacity;
  int64_t ops_renewed; /* by layers, which then launch others */
  clb_knot_grid grid;
  clb_array **array;
  clb_layer **layer;
  int n_arrays, n_layers;

  /* The order, and the memory that it needs. */
  clb_step *step;
  int n_forward, n_computing, n_steps; /* forward steps, then backward ones, among which a layer may
                                          run forward again; then those of training */
  clb_slot *slot;
  int n_slots;
  bool blocked;   /* for systems that are computed in blocks of atoms */
  bool frugal;    /* for these, and others of which memory counts more than launches */
  bool exchanges; /* then: rows of ghosts are exchanged */

  /* On the device. */
  clb_context *ctx;
  clb_dtype type;
  clb_op *product, *gather, *activation[CLB_ACTIVATIONS]; /* that layers share; NULL where none
                                                             needs them */
  clb_op *energy;                        /* of the layer that sums energies; not owned */
  clb_buffer *device_weights;            /* `weights` in `type` */
  clb_buffer *weight_gradient;           /* of networks that train: a loss's, by `weights` */
  clb_buffer *one, *by_energy;           /* then: the number 1; a loss's, by each atom's energy */
  clb_buffer *workspace;                 /* free for use within a step */
  int knots;                             /* of tables; 0: there are none */
  bool halved;                           /* tables are made of every second knot */
  bool atomics;                          /* gradients by features are added up with atomics */
  double table_error, table_slope_error; /* as in clb_model_info */

  /* Structures, if a layer asks for them. */
  bool has_states;
  clb_state *state;
  int64_t n_states, states_capacity;

  /* The graph, and a run of the layers on it. */
  clb_graph *whole, *block; /* block: NULL unless the system is computed in blocks */
  clb_graph *graph;         /* the one of these that layers use now */
  clb_graph *by_knots;      /* with a grid: its edges by their knots */
  int64_t n_local, n_total, n_edges;
  clb_atom_block at;               /* the block that is computed now, or the whole system */
  clb_rows species;                /* int32, of the atoms of the block */
  clb_rows graph_species;          /* of all atoms of the graph */
  clb_rows energy_species;         /* of the block; n_species where an energy does not count */
  clb_buffer *vectors, *g_vectors; /* NULL: in their slots */
  const clb_model_edges *edges;    /* whose exchange moves rows */
  clb_ghosts ghosts;
  clb_rows e_atom, totals;    /* where energies go */
  bool goes_back;             /* backward follows forward, on the whole system */
  double exchanging, copying; /* seconds of the call */
};

void clb_network_free(clb_network *n);

/* Appends an array of such rows, or a layer of this kind with zeroed parameters of these bytes and
   no arrays yet. */
clb_status clb_network_array(clb_network *n, clb_per per, bool dense, const clb_irreps *irreps,
                             int *index);
clb_status clb_network_layer(clb_network *n, const clb_layer_kind *kind, const char *name,
                             size_t bytes, clb_layer **layer);
void clb_network_remove(clb_network *n, int layer);
/* Reserves more weights, set to 0, at an offset that is a multiple of 16. */
clb_status clb_network_reserve(clb_network *n, int64_t count, int64_t *at);
/* Copies weights, and what they are made of. */
clb_status clb_network_copy_weights(clb_network *n, int64_t to, int64_t from, int64_t count);

/* The position of the only layer that writes an array, -1: there are none or several; and the
   number of layers that read it. Layers that change it in place do not count. */
int clb_network_writer(const clb_network *n, int array);
int clb_network_readers(const clb_network *n, int array);
/* Whether a layer's backward adds to the gradient of an input, in some step or in all others. */
bool clb_network_adds(const clb_network *n, const clb_layer *y, int in);

/* ---- for layers that are pruned ---- */

/* Of the needed channels of an array: how many are in a term, and the term's number once terms
   without any are dropped (-1: it is one of those). */
int64_t clb_needed_in(const clb_network *n, int array, clb_needed needed, int term);
int clb_needed_term(const clb_network *n, int array, clb_needed needed, int term);
/* A `need` for layers whose inputs depend on no output. */
void clb_need_nothing(const clb_network *n, const clb_layer *y, clb_needed needed);
/* Marks a whole term; -1: all terms. */
void clb_need(const clb_network *n, int array, clb_needed needed, int term);
/* Terms with these multiplicities; those with 0 are dropped. */
void clb_irreps_shrink(clb_irreps *irreps, const int64_t *mul);
/* Drops columns that are not needed from rows of an array's columns, at an offset of the weights.
 */
void clb_keep_columns(clb_network *n, int array, clb_needed needed, int64_t weights, int64_t rows);

/* ---- for layers that run ---- */

static inline int64_t clb_array_stride(const clb_array *a) {
  return a->dense ? a->irreps.dim : (a->irreps.dim + 3) / 4 * 4;
}
static inline int64_t clb_stored_stride(const clb_network *n, const clb_array *a, clb_kept which) {
  const int64_t own = which == CLB_GRADIENT ? a->gradient_columns[n->frugal] : 0;
  return own ? (own + 3) / 4 * 4 : clb_array_stride(a);
}
/* In blocks, whether rows that are there of all atoms start where those of the slot do. */
static inline bool clb_slot_rows(const clb_array *a) {
  return a->per == CLB_PER_LOCAL && !a->dense;
}
/* Rows of the block; of all atoms. */
clb_rows clb_value(const clb_network *n, int array);
clb_rows clb_gradient(const clb_network *n, int array); /* without a buffer if there is none */
clb_rows clb_all_values(const clb_network *n, int array);
clb_rows clb_all_gradients(const clb_network *n, int array);
clb_rows clb_tangent(const clb_network *n, int array);
clb_rows clb_adjoint(const clb_network *n, int array);
clb_rows clb_all_tangents(const clb_network *n, int array);
clb_rows clb_all_adjoints(const clb_network *n, int array);
/* Whether some layer with weights is before an array: whether its adjoint is needed. */
bool clb_network_learns(const clb_network *n, int array);
int64_t clb_row_count(const clb_network *n, int array); /* of the block */
/* Of knots: values, then slopes. */
static inline int64_t clb_grid_rows(const clb_network *n) { return 2 * (n->grid.intervals + 1); }
/* Of an array of knots, the rows of slopes. */
static inline clb_rows clb_slopes(const clb_network *n, clb_rows rows) {
  rows.offset += (n->grid.intervals + 1) * rows.stride;
  return rows;
}
/* The species by which rows choose weights, and how many there are: those of edges, if there is an
   array of these (models/layers/edges/pairs.c), else those of atoms. */
clb_buffer *clb_row_species(const clb_network *n, int pairs);
int64_t clb_species_count(const clb_network *n, int pairs);

/* Ops that layers share, created by the first that needs them. */
clb_status clb_network_product(clb_network *n);
clb_status clb_network_gather(clb_network *n);
clb_status clb_network_activation(clb_network *n, clb_activation f);

/* Creates the map from one number of each row to `columns` numbers, by weights [species][columns],
   for its backward alone, which adds; gradients: bits of operands (CLB_OPERAND_...). */
clb_status clb_network_species_map(clb_network *n, int64_t n_species, int64_t columns,
                                   int gradients, clb_op **op);

/* C[rows][columns] (= or +=) A W, W[inner][columns] at an offset of the weights; transposed: A W^T,
   W[columns][inner]. `count` such products, whose rows of A and C lie side by side. */
typedef struct {
  int64_t rows, columns, inner, count, weights;
  bool transposed, add;
  clb_rows a, c;
} clb_gemm_step;
clb_status clb_network_multiply(clb_network *n, const clb_gemm_step *p);

/* In which functions of edges' vectors are computed: where a network trains, that of sums, because
   a loss's slopes are differences of forces, which have the rounding errors of these functions most
   of all. */
clb_dtype clb_edge_arithmetic(const clb_network *n);

/* At least so many numbers of the network's type on the device, whose contents are lost where there
   were fewer. */
clb_status clb_network_grow(clb_network *n, clb_buffer **buffer, int64_t count);
/* Tells that a layer, when it is renewed, reads `weights` from there on. */
clb_status clb_network_keep(clb_network *n, int64_t at, int64_t count);
/* Adds an op's passes of training, and makes that of sums of columns like an array's. */
clb_status clb_network_derive(clb_network *n, clb_op *op, int array, clb_op **sums);

clb_status clb_network_no_memory(const clb_network *n);

#endif
