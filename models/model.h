/* model.h - what stands behind clb_model: its file, its ops, and its room on the device. */
#ifndef CLB_MODEL_PARTS_H
#define CLB_MODEL_PARTS_H

#include <clebsch/model.h>

#include "../src/context.h"
#include "../src/linear.h"
#include "model_file.h"
#include "neighbours.h"

/* Arrays with a row per edge, per atom (ghosts included), per local atom; all layers share those that are not listed by layer.  Rows are padded
   (clb_model_stride); G_...: gradients of E. */
typedef enum {
  CLB_MODEL_VECTOR, CLB_MODEL_G_VECTOR, CLB_MODEL_HARMONICS, CLB_MODEL_G_HARMONICS,
  CLB_MODEL_DISTANCE, CLB_MODEL_G_DISTANCE, /* with tables */
  CLB_MODEL_BASIS, CLB_MODEL_G_BASIS, CLB_MODEL_HIDDEN, CLB_MODEL_ACTIVE, CLB_MODEL_G_HIDDEN, CLB_MODEL_WEIGHTS, CLB_MODEL_G_WEIGHTS, /* without: of one layer at a time */
  CLB_MODEL_EDGE_ARRAYS,
  CLB_MODEL_SPECIES = CLB_MODEL_EDGE_ARRAYS, CLB_MODEL_G_X,
  CLB_MODEL_ATOM_ARRAYS,
  CLB_MODEL_MESSAGE = CLB_MODEL_ATOM_ARRAYS, CLB_MODEL_FEATURES, CLB_MODEL_G_FEATURES, CLB_MODEL_G_LINEAR, CLB_MODEL_SCALAR, CLB_MODEL_E_ATOM, CLB_MODEL_FORCE,
  CLB_MODEL_ARRAYS
} clb_model_array;

typedef struct {
  clb_op *convolution, *gate, *norm, *self; /* NULL: none (self: weights by species) */
  clb_buffer *table;               /* of splines */
  clb_buffer *x, *linear, *normed; /* [n_total][in] what convolutions read; [n_local][linear] before and (with a norm, else the same) after the norm */
} clb_model_layer_parts;

struct clb_model {
  clb_context *ctx;
  clb_dtype type, sum_type;
  clb_model_options options;
  clb_model_file file;
  clb_model_info info;

  clb_op *product, *harmonics, *add_harmonics, *radial, *silu, *gather, *energy, *virial, *forces;
  clb_buffer *weights;
  clb_model_layer_parts *layer;

  clb_buffer *array[CLB_MODEL_ARRAYS];
  int64_t columns[CLB_MODEL_ARRAYS]; /* of the widest layer, padded; 0: not needed */
  int64_t edge_room, atom_room;
  clb_buffer *workspace;
  void *staging; /* on the host */
  size_t staging_bytes;

  clb_graph *graph;
  int64_t n_local, n_total, n_edges; /* -1: no graph yet */
  clb_neighbours neighbours;
  double *vectors; /* [n_edges][3] */
  int64_t vectors_room;
  int64_t rebuilds;
};

/* Rows start at multiples of 16 bytes. */
static inline int64_t clb_model_stride(int64_t columns) { return (columns + 3) / 4 * 4; }
static inline clb_rows clb_model_rows(clb_buffer *buffer, int64_t columns) { return (clb_rows){buffer, 0, clb_model_stride(columns), NULL}; }

/* Ops, tables and weights for the file that was read. */
clb_status clb_model_build(clb_model *m);

/* Takes a graph, and makes room for it. */
clb_status clb_model_set_graph(clb_model *m, const clb_model_edges *edges);
/* Checks and takes the species of the graph's atoms. */
clb_status clb_model_set_species(clb_model *m, int64_t n, const int32_t *species);
/* From vectors (in the array, or in a buffer of the model's precision) to e_atom and, with `backward`, the gradient of the vectors. */
clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, clb_buffer *vectors, clb_buffer *g_vectors, bool backward);

/* Host memory of at least so many bytes, good until the next call; NULL: none left. */
void *clb_model_staging(clb_model *m, size_t bytes);
/* Double precision on the host to and from dense rows of numbers on the device. */
clb_status clb_model_upload(clb_model *m, clb_buffer *to, clb_dtype type, int64_t n, const double *from);
clb_status clb_model_download(clb_model *m, clb_buffer *from, clb_dtype type, int64_t n, double *to);

#endif
