/* models/layers/kinds.h - the kinds of layers: their arrays and their parameters. Weights are
   offsets into those of the network; numbers in brackets are the steps of docs/model-format.md. */
#ifndef CLB_MODELS_LAYERS_KINDS_H
#define CLB_MODELS_LAYERS_KINDS_H

#include "models/layers/network.h"
#include "kernels/convolution/host/convolution.h"
#include "kernels/convolution/host/frames.h"
#include "kernels/graph/host/row_sum.h"
#include "kernels/layers/host/edge_spline.h"
#include "kernels/linear/host/few.h"
#include "src/problem/activation.h"

enum { CLB_RADIAL_MATRICES = 16 };

/* Training: whether a layer's outputs have tangents that the energy depends on; and where gradients
   by weights at an offset go. */
static inline bool clb_goes_along(const clb_network *n, const clb_layer *y) {
  return n->array[y->in[0]]->moves && clb_gradient(n, y->out[0]).buffer;
}
static inline clb_rows clb_weight_gradient(const clb_network *n, clb_rows weights) {
  return (clb_rows){n->weight_gradient, weights.offset, weights.stride, NULL};
}

/* ---- edges [2]: vectors -> harmonics of degrees 0 to l_max, lengths, frames. Gradients by frames
   are what the roles of convolutions leave of each edge, of one convolution after the other ---- */

enum { CLB_EDGES_VECTORS };
enum { CLB_EDGES_HARMONICS, CLB_EDGES_LENGTHS, CLB_EDGES_FRAMES };
typedef struct {
  bool solid;                                  /* harmonics of the vector, not of its direction */
  clb_op *harmonics, *add_harmonics, *lengths; /* NULL: not needed, or with the frames */
  clb_convolution_frames *frames, *add_frames; /* add: to gradients by vectors; NULL: not needed */
  int32_t columns, given;                      /* numbers of a role; roles that have left theirs */
} clb_edges;
extern const clb_layer_kind clb_edges_kind;

/* ---- basis [1]: vectors -> Bessel functions times a cutoff, or the two apart; or a spline ---- */

enum { CLB_BASIS_FUNCTIONS, CLB_BASIS_CUTOFF /* apart */ };
typedef struct {
  int n, cutoff_p; /* 0: XPLOR's, which begins at cutoff_on */
  int width;       /* of a spline, which has no cutoff and no frequencies; 0: Bessel functions */
  double r_max, cutoff_on;
  int64_t frequencies;
  bool transformed; /* functions of Agnesi's distances; then they depend on species */
  clb_agnesi agnesi;
  int64_t radii;     /* of the transform: [species] */
  clb_op *op, *sums; /* sums: of gradients by frequencies */
} clb_basis;
extern const clb_layer_kind clb_basis_kind;
/* On the host, of atoms of mean radius r_0 (ignored without a transform): b[n](r) without the
   cutoff and b'(r); the cutoff, 0 from r_max on, and its derivative. */
void clb_basis_at(const clb_network *n, const clb_basis *p, double r_0, double r, double *b,
                  double *db);
void clb_cutoff_at(const clb_basis *p, double r, double *cut, double *slope);

/* ---- Gaussians: lengths -> functions of them; in inference ---- */

typedef struct {
  double r_max, width; /* width: in steps */
  clb_op *op;
} clb_gaussians;
extern const clb_layer_kind clb_gaussians_kind;

/* ---- rotation: vectors -> what turns rows into the frames of edges
   (kernels/layers/host/edge_functions.h); in inference ---- */

typedef struct {
  int l, m;             /* degrees, orders */
  clb_op *op, *back[2]; /* back: [1] adds */
} clb_rotation;
extern const clb_layer_kind clb_rotation_kind;

/* ---- stretch: vectors times factors of the species of receiver and sender ---- */

typedef struct {
  int64_t factors; /* [species][species] */
  clb_op *op;
} clb_stretch;
extern const clb_layer_kind clb_stretch_kind;

/* ---- radial [4]: basis -> matrices with an activation between them -> weights of paths ---- */

enum { CLB_RADIAL_WEIGHTS, CLB_RADIAL_HIDDEN /* before the activation, kept for backward */ };
typedef struct {
  int n;                                  /* matrices */
  int64_t width[CLB_RADIAL_MATRICES + 1]; /* basis, ..., weights */
  int64_t matrix[CLB_RADIAL_MATRICES];    /* [width][next width] */
  clb_activation activation;
  bool normalized; /* of tables alone: by what follows */
  double epsilon;
  int64_t ends[2];                   /* [species][width[1]], of receivers and senders */
  int64_t bias[CLB_RADIAL_MATRICES]; /* of all matrices but the first */
  int64_t norm[CLB_RADIAL_MATRICES]; /* [2][next width]: factors and biases, but of the last */
} clb_radial;
/* An edge, as far as radial networks know it. */
typedef struct {
  double r_0; /* mean radius of its atoms, for a transform */
  int end[2]; /* species of its receiver and sender */
} clb_edge_species;
extern const clb_layer_kind clb_radial_kind;
/* y[width[n]] and dy by r, on the host, of the basis x[width[0]] and dx. */
clb_status clb_radial_at(const clb_network *n, const clb_radial *p, const clb_edge_species *e,
                         const double *x, const double *dx, double *y, double *dy);

/* ---- radial networks of models that train, between knots (models/layers/edges/splines.c) ---- */

/* places: vectors -> factors of rows at knots */
typedef struct {
  clb_op *op;
} clb_places;
extern const clb_layer_kind clb_places_kind;
/* Sorts the edges that the network works on by them. */
clb_status clb_places_sort(clb_network *n, const clb_graph *edges, clb_graph *sorted);

/* spline: these, and a network's outputs at knots -> weights of paths */
enum { CLB_SPLINE_PLACES, CLB_SPLINE_TABLE };
typedef struct {
  clb_op *op;
} clb_spline_layer;
extern const clb_layer_kind clb_spline_kind;

/* knots: a basis' functions, and their slopes */
typedef struct {
  const clb_layer *basis; /* of edges, whose op it uses */
  clb_graph *graph;       /* which has knots for edges */
  clb_buffer *vectors;    /* of knots, and tangents of length 1 */
  clb_buffer *by_knot;    /* parts of gradients by frequencies */
} clb_knots;
extern const clb_layer_kind clb_knots_kind;

/* ---- tables in place of a radial network ---- */

typedef struct {
  bool cut; /* this network, times the cutoff, */
  clb_radial radial;
  clb_basis basis; /* of these functions, */
  bool apart;      /* which come without the cutoff */
} clb_radial_function;
/* Its table without contents, with the network's knots. */
clb_convolution_table clb_radial_grid(const clb_network *n, const clb_radial_function *f);
/* values[knots][W] at the table's knots, coefficients[rows][W] of the splines through them, and the
   network's errors. */
clb_status clb_radial_table(clb_network *n, const clb_radial_function *f,
                            const clb_convolution_table *t, const clb_edge_species *e,
                            double *values, double *coefficients);

/* ---- pair table: vectors -> weights of paths, where they depend on the species of both atoms. A
   pair's table is made when its species first occur together. ---- */

typedef struct {
  clb_radial_function function;
  clb_pair_tables tables;
  int32_t *table_of; /* as on the device; -1: not yet made */
  int64_t n_tables;
  clb_op *op;
} clb_pair_table;
extern const clb_layer_kind clb_pair_table_kind;

/* ---- scale: rows times numbers ---- */

enum { CLB_SCALE_ROWS, CLB_SCALE_NUMBERS };
typedef struct {
  clb_row_factor factor;
  clb_op *op;
} clb_scale;
extern const clb_layer_kind clb_scale_kind;

/* ---- density: basis functions of edges, times their cutoff if it is apart -> a number for each
   atom ---- */

enum { CLB_DENSITY_FUNCTIONS, CLB_DENSITY_CUTOFF /* or none */ };
typedef struct {
  int64_t weights;     /* [functions] */
  clb_op *op, *sums;   /* sums: of gradients by weights, */
  clb_buffer *by_edge; /* of which these are each edge's */
} clb_density;
extern const clb_layer_kind clb_density_kind;

/* ---- embedding [3]: the row of the atom's species, or of the edge's ---- */

enum { CLB_EMBEDDING_PAIRS /* of edges */ };
typedef struct {
  int64_t table;  /* [species][columns] */
  clb_op *adding; /* where another layer writes its array, too */
} clb_embedding;
extern const clb_layer_kind clb_embedding_kind;

/* ---- states: rows by the charge and the spin of an atom's structure ---- */

typedef struct {
  int first[2];               /* the lowest charge, and spin */
  int64_t count[2], table[2]; /* [count][columns] of each; count 0: it does not matter */
  clb_op *op;
  clb_op *sums;     /* of training */
  clb_buffer *rows; /* of structures */
} clb_states;
extern const clb_layer_kind clb_states_kind;

/* ---- linear [5, 8, 11]: a map between features ---- */

/* For each row and component, the channels of term `to` get those of term `from` times a matrix
   [channels of from][channels of to], or [channels of from][species][channels of to]. */
typedef struct {
  int from, to;
  int64_t weights;
} clb_block;
enum { CLB_LINEAR_PAIRS = 1 /* species of edges, by which it is */ };
typedef struct {
  bool by_species; /* then all blocks of two terms of one irrep, and each irrep occurs once */
  int n;
  clb_block block[CLB_MAX_TERMS];
  bool transposes;    /* backward is a map, too, whose matrices are those of this one transposed */
  int64_t transposed; /* offset of those, one after the other */
  clb_op *map[2];     /* [1]: adds to its result */
  clb_op *back[2];    /* transposed */
  int64_t weights;    /* of the map, from here on */
  unsigned passes[2]; /* that they have */
} clb_linear;
/* Transposes matrices where lanes that read rows of them side by side gain by it. */
clb_status clb_linear_transpose(clb_network *n, clb_layer *y);
extern const clb_layer_kind clb_linear_kind;
/* Lays weights out as rows of all matrices, one for each species if they are by species. */
clb_status clb_linear_make_rows(clb_network *n, clb_layer *y);
clb_status clb_linear_add(clb_network *n, clb_linear *p, int from, int to, int64_t weights);
/* The map as a problem, and (_turn) that from gradients to gradients. */
clb_status clb_linear_describe(clb_network *n, const clb_layer *y, clb_linear_problem *lp);
void clb_linear_turn(const clb_network *n, const clb_layer *y, clb_linear_problem *lp);
/* The gradient of its input goes to g_in; NULL: it is of species alone. */
clb_status clb_linear_layer_backward(clb_network *n, const clb_layer *y, unsigned adds,
                                     clb_rows g_in);
/* Maps for these passes, [1]: of which the results are added, besides those that are there. */
clb_status clb_linear_make_maps(clb_network *n, clb_layer *y, const unsigned wanted[2]);

/* ---- exchange: its input is its output, whose rows of ghosts are set ---- */

typedef struct {
  clb_row_sum *sum; /* of gradients that return to an atom */
} clb_exchange;
extern const clb_layer_kind clb_exchange_kind;

/* ---- convolution [6, 7] ---- */

enum {
  CLB_CONVOLUTION_X,         /* -1: 1 in each channel, of all senders */
  CLB_CONVOLUTION_HARMONICS, /* then without gradient */
  CLB_CONVOLUTION_LENGTHS,   /* with a table */
  CLB_CONVOLUTION_WEIGHTS,   /* without */
  CLB_CONVOLUTION_FRAMES,    /* in frames of edges */
  CLB_CONVOLUTION_INS
};
enum { CLB_CONVOLUTION_MESSAGE };
typedef struct {
  clb_irreps ones;    /* without features, what stands for them, */
  int64_t ones_at;    /* and its row among the weights */
  clb_irreps message; /* of which the array may have adjacent terms of one irrep merged */
  bool merged, framed;
  int n_paths;
  clb_instruction path[CLB_MAX_PATHS]; /* each has a term of the message to itself */
  int64_t n_weights;
  double scale;
  clb_radial_function function; /* with a table */
  clb_op *op;
  clb_op *along, *bent, *again; /* of training: tangents of messages; gradients by x and weights
                                   along tangents; the backward pass by weights alone */
  clb_convolution_shared shared;
  clb_edges *edges; /* in frames of these */
} clb_convolution_layer;
extern const clb_layer_kind clb_convolution_kind;
/* Its (zeroed) problem, of harmonics or of vectors. */
clb_status clb_convolution_describe(clb_network *n, const clb_layer *y, bool vectors,
                                    clb_problem *problem);

/* ---- pairs: vectors -> the species of edges (kernels/layers/host/layers.h), as int32 ---- */

typedef struct {
  clb_op *op;
} clb_pairs;
extern const clb_layer_kind clb_pairs_kind;

/* ---- product: edges' features times others, of the same edges or of their receivers; or of
   senders (the second kind, in inference), which are the first array ---- */

enum { CLB_PRODUCT_X, CLB_PRODUCT_Y };
enum { CLB_PRODUCT_SETS = 3 }; /* of gradients: by x, by y, by both */
typedef struct {
  clb_irreps x, y, z; /* as which it reads and writes its arrays; of y and z, n 0: as these are */
  int n_paths;
  clb_instruction path[CLB_MAX_PATHS];    /* all with weights, or none */
  int64_t weights;                        /* one row for all edges, in the order of paths */
  clb_op *op, *back[CLB_PRODUCT_SETS][2]; /* [1]: adds to gradients of edges */
  clb_op *along, *again[2];               /* of training */
  clb_row_sum *sum;                       /* over the edges of receivers */
} clb_product_layer;
extern const clb_layer_kind clb_product_kind, clb_sender_product_kind;

/* ---- norm [9], or of the layers of a radial network ---- */

typedef struct {
  clb_rms_variant variant;
  bool centred; /* from even scalars their mean is subtracted first, and biases are added last */
  double epsilon;
  double factor[CLB_MAX_TERMS]; /* of terms, where they are the variant */
  int64_t weights;              /* one per channel, then the biases */
  clb_op *op, *back[2], *along; /* back: [1] adds; along: tangents alone */
} clb_norm;
extern const clb_layer_kind clb_norm_kind;

/* ---- bilinear [10]: two parts of an atom's features multiplied, channel by channel, with weights
   of the atom ---- */

enum { CLB_BILINEAR_PARTS, CLB_BILINEAR_WEIGHTS };
typedef struct {
  clb_irreps first, second; /* the parts: columns of the array, one after the other */
  int n_paths;
  clb_instruction path[CLB_MAX_PATHS];
  clb_op *op;
} clb_bilinear;
extern const clb_layer_kind clb_bilinear_kind;

/* ---- grid: features of degrees 0 to l_max, which have the same channels, to their values at
   points of a sphere, or back; in inference ---- */

typedef struct {
  int points;
  bool back;
  int64_t row; /* [points][(l_max + 1)^2] */
  clb_op *op;
} clb_grid;
extern const clb_layer_kind clb_grid_kind;

/* ---- gate [10] ---- */

typedef struct {
  clb_irreps scalars, gates, gated;
  clb_scaled_activation even, odd, gate;
  bool slopes; /* of knots: after rows of scalars come as many of their slopes */
  clb_op *op, *along;
} clb_gate;
extern const clb_layer_kind clb_gate_kind;

/* ---- maps of one array, which may be what comes out of a gate: of few rows, one launch ---- */

enum { CLB_LINEAR_MAPS = 2 };
typedef struct {
  clb_linear of[CLB_LINEAR_MAPS];
  int n;         /* maps */
  clb_gate gate; /* of clb_gated_kind: what comes out is the layer's `work` */
  clb_linear_few *forth[4], *gated[4],
      *back[2];          /* by which results are added to; NULL: not needed.
                            gated: through the gate; back: too, if there is */
  int64_t at[2], row[2]; /* of their weights, [1]: transposed: where those of all begin, and how
                            many a species has; 0: none are by species */
} clb_linear_group;
extern const clb_layer_kind clb_linear_group_kind, clb_gated_kind;
/* The second of two linear layers does the work of both. */
clb_status clb_linear_join(clb_network *n, const clb_layer *first, clb_layer *second);
/* A linear layer, or a group, that alone reads what comes out of a gate does its work, too. */
clb_status clb_linear_join_gate(clb_network *n, const clb_layer *gate, clb_layer *y);

/* ---- product: MACE's product basis ---- */

typedef struct {
  int correlation;
  int64_t weights; /* [species][paths][channels] */
  clb_op *op;
} clb_product_basis;
extern const clb_layer_kind clb_product_basis_kind;
/* The number of paths between features of these irreps. */
int64_t clb_product_basis_paths(const clb_product_basis *p, const clb_irreps *in,
                                const clb_irreps *out);

/* ---- repulsion of nuclei: vectors -> energies of atoms ---- */

typedef struct {
  int p; /* of the cutoff */
  double coefficients[4], exponents[4];
  int64_t charges, screening, reach; /* [species]; reach: [species][species] */
  clb_op *op;
} clb_repulsion;
extern const clb_layer_kind clb_repulsion_kind;

/* ---- energy [12]: a scalar, scaled and shifted by species, and summed: the model's result ---- */

typedef struct {
  int64_t scale, shift; /* [species] */
  clb_op *op, *weights; /* weights: gradients by these alone */
} clb_energy;
extern const clb_layer_kind clb_energy_kind;

/* Creates the op of layers that multiply rows of x and `other`, of which `d` has all but irreps,
   normalizations and layouts. d.indexed: edges gather them. */
clb_status clb_product_create(clb_network *n, clb_tensor_product_desc d, const clb_irreps *x,
                              const clb_irreps *other, const clb_irreps *z, bool adds,
                              unsigned passes, clb_op **op);

#endif
