/* models/network.h - the struct behind clb_model: its file, its ops, and its memory on the
 device. */
#ifndef CLB_MODELS_NETWORK_H
#define CLB_MODELS_NETWORK_H

#include <clebsch/model.h>

#include "src/runtime/context.h"
#include "src/ops/convolution/convolution.h"
#include "src/ops/matmul.h"
#include "models/file/file.h"
#include "models/atoms/neighbours.h"

/* Arrays with a row per edge, per atom (including ghosts) or per local atom; all layers share them,
   except those in clb_model_layer_parts. Rows are padded (clb_model_stride); G_...: gradients of
   E. */
typedef enum {
  CLB_MODEL_VECTOR,
  CLB_MODEL_G_VECTOR,
  CLB_MODEL_HARMONICS,
  CLB_MODEL_G_HARMONICS, /* unless convolutions run in frames */
  CLB_MODEL_FRAMES,      /* if they do */
  CLB_MODEL_SHIFT,       /* int32: clb_edge_shift */
  CLB_MODEL_DISTANCE,
  CLB_MODEL_G_DISTANCE, /* with tables */
  CLB_MODEL_BASIS,
  CLB_MODEL_G_BASIS,
  CLB_MODEL_HIDDEN,
  CLB_MODEL_ACTIVE,
  CLB_MODEL_G_HIDDEN,
  CLB_MODEL_WEIGHTS,
  CLB_MODEL_G_WEIGHTS, /* without tables: for one layer at a time */
  CLB_MODEL_EDGE_ARRAYS,
  CLB_MODEL_SPECIES = CLB_MODEL_EDGE_ARRAYS,
  CLB_MODEL_POSITION /* double */,
  CLB_MODEL_G_X,
  CLB_MODEL_MESSAGE,  /* and its gradient */
  CLB_MODEL_FEATURES, /* and their gradients, once the last features have been read */
  CLB_MODEL_NORMED,   /* with a norm: of the most recently normalized layer */
  CLB_MODEL_G_LINEAR,
  CLB_MODEL_SCALAR,
  CLB_MODEL_ARRAYS
} clb_model_array;

typedef struct {
  clb_op *convolution, *gate, *norm, *self; /* NULL: none (self: weights by species) */
  clb_buffer *x,
      *linear; /* [n_total][in] input of the convolution; [n_local][linear] before the norm */
} clb_model_layer_parts;

struct clb_model {
  clb_context *ctx;
  clb_dtype type, sum_type;
  clb_model_options options;
  clb_model_file file;
  clb_model_info info;

  clb_convolution_shared shared; /* what convolutions that run in frames share */
  bool framed, reads_harmonics;  /* all of them run there; of those, some read harmonics forward */

  clb_op *edge_vectors, *product, *harmonics, *add_harmonics, *radial, *silu, *gather, *energy,
      *virial, *forces; /* edge_vectors NULL: the device has no f64 */
  clb_buffer *weights;
  clb_model_layer_parts *layer;

  clb_buffer *array[CLB_MODEL_ARRAYS];
  int64_t columns[CLB_MODEL_ARRAYS]; /* of the widest layer, padded; 0: not needed */
  int64_t edge_capacity, atom_capacity;
  clb_buffer *results; /* of sum_type: clb_model_places */
  clb_buffer *workspace;
  void *staging; /* on the host */
  size_t staging_bytes;

  clb_graph *graph;
  int64_t n_local, n_total, n_edges; /* -1: no graph yet */
  int32_t *species;                  /* [n_species] as on the device */
  int64_t n_species, species_capacity;
  clb_neighbours neighbours;
  bool shifts_fit; /* the neighbours' shifts are on the device; else vectors are computed on the
                      host */
  double *vectors; /* [n_edges][3] */
  int64_t vectors_capacity;
  int64_t rebuilds;
};

/* Offsets of results, in elements of sum_type: forces [n_total][3], e_atom [n_local], the energy's
   rows, the virial's rows of 9. e_atom and energy, which every step writes, are in the middle, so
   that any requested results can be read with one copy that contains only written data. */
typedef struct {
  int64_t forces, e_atom, energy, virial, end;
} clb_model_places;
clb_model_places clb_model_result_places(const clb_model *m);
static inline clb_rows clb_model_result(const clb_model *m, int64_t place) {
  return (clb_rows){m->results, place, CLB_DENSE, NULL};
}

/* Rows start at multiples of 16 bytes. */
static inline int64_t clb_model_stride(int64_t columns) { return (columns + 3) / 4 * 4; }
static inline clb_rows clb_model_rows(clb_buffer *buffer, int64_t columns) {
  return (clb_rows){buffer, 0, clb_model_stride(columns), NULL};
}

/* Bytes of a row of an array; 0: the array is not needed. */
static inline int64_t clb_model_row_bytes(const clb_model *m, int array) {
  const bool number = array == CLB_MODEL_SPECIES || array == CLB_MODEL_SHIFT;
  return m->columns[array] *
         (number ? 4 : clb_dtype_bytes((int32_t)(array == CLB_MODEL_POSITION ? CLB_F64 : m->type)));
}

/* Creates ops, tables and weights for the file that was read. */
clb_status clb_model_build(clb_model *m);

/* Sets the graph and reserves memory for it. */
clb_status clb_model_set_graph(clb_model *m, const clb_model_edges *edges);
/* Checks and sets the species of the graph's atoms. */
clb_status clb_model_set_species(clb_model *m, int64_t n, const int32_t *species);
/* Sets the shifts of the neighbours' edges, which are the graph's. */
clb_status clb_model_set_shifts(clb_model *m);
/* Computes e_atom and, with `backward`, the gradient by vectors from vectors (in the array, or in a
   buffer of the model's precision). */
clb_status clb_model_run(clb_model *m, const clb_model_edges *edges, clb_buffer *vectors,
                         clb_buffer *g_vectors, bool backward);

/* At least `bytes` of host memory, valid until the next call; NULL: out of memory. */
void *clb_model_staging(clb_model *m, size_t bytes);
/* Waits once for all results that are not NULL and checks that they are finite. virial: [3][3],
   symmetrised; forces: [n_local][3]. */
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
