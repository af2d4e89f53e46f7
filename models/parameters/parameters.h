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
} clb_parameter_tensor;

/* Weights that are parameters times a factor. */
typedef struct {
  int64_t weight, parameter, count;
  double factor;
} clb_parameter_piece;

typedef struct {
  clb_parameter_tensor *tensor;
  clb_parameter_piece *piece;
  double *value; /* [n] */
  int64_t n_tensors, tensor_capacity, n_pieces, piece_capacity, value_capacity, n;
} clb_parameters;

/* false: out of memory. */
bool clb_parameters_add(clb_parameters *p, const char *name, int rank, const int64_t *shape);
bool clb_parameters_use(clb_parameters *p, clb_parameter_piece piece);
/* The same, and keeps the parameters, from weights without the factor. */
bool clb_parameters_take(clb_parameters *p, clb_parameter_piece piece, const double *values);
/* Weights `to` are made of what weights `from` are. */
bool clb_parameters_copy(clb_parameters *p, int64_t to, int64_t from, int64_t count);
void clb_parameters_free(clb_parameters *p);

void clb_parameters_to_weights(const clb_parameters *p, double *weights);
/* gradient[n] = that by parameters, from that by weights. */
void clb_parameters_gradient(const clb_parameters *p, const double *by_weights, double *gradient);

#endif
