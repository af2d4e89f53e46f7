/* models/file/file.h - a model as described in docs/model-format.md, in double precision, checked,
   with all constants folded into its weights. */
#ifndef CLB_MODELS_FILE_FILE_H
#define CLB_MODELS_FILE_FILE_H

#include "src/problem/irreps.h"
#include "src/ops/layers/layers.h"
#include "models/atoms/elements.h"

enum { CLB_MODEL_LAYERS = 64, CLB_MODEL_RADIAL = 16 };

/* scale * function(x) */
typedef struct {
  clb_activation function;
  double scale;
} clb_model_activation;

/* A map between features: for each row and component, the channels of term `to` get those of term
   `from` times a matrix [channels of from][channels of to], or [channels of from][species][channels
   of to]. */
typedef struct {
  int from, to;
  int64_t weights; /* where the matrix starts */
} clb_model_block;
typedef struct {
  int n;
  clb_model_block block[CLB_MAX_TERMS];
} clb_model_map;

/* Rows of features are in layout ir_mul. weights: offsets into clb_model_file.weights. */
typedef struct {
  clb_irreps gathered; /* the input of linear_2: the message, in which adjacent terms of one irrep
                          may be merged (CLB_MERGED) */
  bool merged;
  clb_irreps in, message, linear, scalars, gates, gated, out;
  clb_instruction path[CLB_MAX_PATHS];
  int n_paths;
  int64_t n_weights;                          /* of all paths */
  int64_t radial_width[CLB_MODEL_RADIAL + 1]; /* basis, ..., n_weights */
  int64_t radial[CLB_MODEL_RADIAL];           /* weights: [width][next width] */
  clb_model_map linear_1, linear_2, self;     /* self: empty in the first layer */
  int64_t norm;             /* weights: one per channel, term by term of `linear` */
  int64_t bias_1, bias_2;   /* weights: added to the even scalars of linear_1 and linear_2, by
                               species: [species][in], [species][linear]; 0: none. In the first
                               layer first_x and first_o include them */
  int64_t first_x, first_o; /* first layer only: linear_1 and the self connection by species:
                               [species][in], [species][linear] */
} clb_model_layer;

typedef struct {
  char *architecture, *symbols; /* symbols separated by 0 bytes */
  const char *symbol[CLB_ELEMENTS];
  int atomic_number[CLB_ELEMENTS];
  int n_species, n_layers, l_max, n_basis, n_radial;
  int cutoff_p;                           /* 0: XPLOR's, which begins at cutoff_on */
  bool one_hot, species_self, rms, solid; /* solid: harmonics of the vector, not of its direction */
  clb_irreps sh;
  double r_max, cutoff_on, norm_epsilon, neighbours;
  clb_model_activation even, odd, gate;
  int64_t frequencies;  /* weights: [n_basis] */
  int64_t scale, shift; /* weights: [species], energy_scale included */
  int64_t readout;      /* weights: [channels of the last layer's scalars], product of all
                           matrices */
  int64_t parameters;
  clb_model_layer *layer;
  double *weights;
  int64_t n_all_weights, capacity;
} clb_model_file;

clb_status clb_model_file_read(clb_error_sink *error, const char *path,
                               clb_model_file *out); /* must be freed even on failure */
void clb_model_file_free(clb_model_file *file);

/* Drops what the energy does not need: everything but even scalars in the last layer. */
clb_status clb_model_file_prune(clb_error_sink *error, clb_model_file *file);

/* Merges adjacent terms of one irrep in messages, so that linear_2 needs one matrix product per
   irrep. */
void clb_model_file_merge(clb_model_file *file);

/* The weights of a layer's paths and their derivatives at distance r (Angstrom): w[n_weights],
   dw[n_weights]. */
clb_status clb_model_file_radial(clb_error_sink *error, const clb_model_file *file, int layer,
                                 double r, double *w, double *dw);

#endif
