/* models/arch/esen/esen_network.h - shared by the files that read eSEN's networks. Numbers in
   brackets are steps of docs/model-format.md. */
#ifndef CLB_MODELS_ARCH_ESEN_ESEN_NETWORK_H
#define CLB_MODELS_ARCH_ESEN_ESEN_NETWORK_H

#include "models/arch/arch_parts.h"

typedef struct {
  int l, m;                 /* the highest degree and order */
  int64_t channels, hidden; /* of atoms' features; between maps */
  double norm_epsilon;
  int points;                 /* of the grid of the feed-forward; 0: there is none */
  int64_t to_grid, from_grid; /* its rows */
  clb_irreps features;        /* degrees 0 to l, with `channels` each */
  clb_arch_radial_desc radial;
  int gaussians, rotations, cut; /* arrays of edges; cut: rotations times the cutoff */
  int states;                    /* an array of atoms; -1: there is none */
  int x;                         /* the features so far */
} clb_esen;

/* Rows in the frame of an edge have, for each order in turn (0, 1, -1, 2, -2, ...), the channels of
   each degree that has it. As irreps: a term for each order and degree; or with orders m and -m in
   one term, all degrees of which follow each other, without degrees below `first` of order 0. */
clb_irreps clb_esen_orders(const clb_esen *q, int first, int64_t channels);
clb_irreps clb_esen_maps(const clb_esen *q, int first, int64_t channels);
/* The degrees of order m >= 0. */
int clb_esen_degrees(const clb_esen *q, int m, int first);

/* Degrees 0 to l, with so many channels each. */
clb_irreps clb_esen_features(int l, int64_t channels);
/* A linear map without matrices, and one more from term to term; y NULL: nothing. */
clb_layer *clb_esen_linear(clb_model_reader *r, int block, const char *what, int from, int to);
void clb_esen_block(clb_model_reader *r, clb_layer *y, int from, int to, int64_t at);
/* A map of unit matrices, between terms 0 to n - 1 of both. */
void clb_esen_copy(clb_model_reader *r, int block, const char *what, int from, int to, int n);
/* Tensors "layers.N.what" (N < 0: "what") and .bias, a centred norm of the features. */
int clb_esen_norm(clb_model_reader *r, const clb_esen *q, int block, const char *what, int from);
const char *clb_esen_key(char key[CLB_MODEL_KEY], int block, const char *what, const char *rest);

/* [5 to 9]: the sum over edges of block n. */
int clb_esen_edges(clb_model_reader *r, const clb_esen *q, int n, int normed);
/* The sum over edges of `weights`, channels of the first so many orders and degrees, turned out of
   the frame, times a factor. */
int clb_esen_sum(clb_model_reader *r, const clb_esen *q, int n, int count, int weights,
                 double factor);
/* [10]: what block n adds to each atom. */
int clb_esen_atoms(clb_model_reader *r, const clb_esen *q, int n, int normed);

#endif
