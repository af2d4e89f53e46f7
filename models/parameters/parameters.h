/* models/parameters/parameters.h - the numbers of a file's tensors, one tensor after the other, and
   which weights of a network are made of them. */
#ifndef CLB_MODELS_PARAMETERS_PARAMETERS_H
#define CLB_MODELS_PARAMETERS_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

enum { CLB_PARAMETER_RANK = 8 };
typedef struct {
  char *name;
  int rank;
  int64_t shape[CLB_PARAMETER_RANK];
  int64_t at, count; /* its numbers among all */
  bool frozen;       /* they stay what they are */
} clb_parameter_tensor;

/* Weights that are parameters, or numbers made of them, times a factor. */
typedef struct {
  int64_t weight, parameter, count;
  double factor;
} clb_parameter_piece;

/* Numbers [rows][species][columns] made of two tensors: sum over v of table[species][v]
   matrices[rows][v][columns], v < inner. The three are first parameters; those that are made follow
   the file's own. */
typedef struct {
  int64_t made, table, matrices, rows, species, inner, columns;
} clb_parameter_mixture;

typedef struct {
  clb_parameter_tensor *tensor;
  clb_parameter_piece *piece;
  clb_parameter_mixture *mixture;
  double *value;          /* [n] */
  double *made, *by_made; /* [n_made], and a gradient by them */
  int64_t n_tensors, tensor_capacity, n_pieces, piece_capacity, n_mixtures, mixture_capacity;
  int64_t value_capacity, made_capacity, by_made_capacity, n, n_made;
} clb_parameters;

/* false: out of memory. */
bool clb_parameters_add(clb_parameters *p, const char *name, int rank, const int64_t *shape);
bool clb_parameters_use(clb_parameters *p, clb_parameter_piece piece);
/* The same, and keeps the parameters, from weights without the factor. */
bool clb_parameters_take(clb_parameters *p, clb_parameter_piece piece, const double *values);
/* Makes numbers of two tensors, all of which are there; m->made is set. */
bool clb_parameters_mix(clb_parameters *p, clb_parameter_mixture *m);
/* Weights `to` are made of what weights `from` are. */
bool clb_parameters_copy(clb_parameters *p, int64_t to, int64_t from, int64_t count);
void clb_parameters_free(clb_parameters *p);

void clb_parameters_to_weights(const clb_parameters *p, double *weights);
/* gradient[n] = that by parameters, from that by weights. */
void clb_parameters_gradient(const clb_parameters *p, const double *by_weights, double *gradient);

#endif
