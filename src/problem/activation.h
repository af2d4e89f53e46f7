/* src/problem/activation.h - activations: names, parity, normalisation. */
#ifndef CLB_SRC_PROBLEM_ACTIVATION_H
#define CLB_SRC_PROBLEM_ACTIVATION_H

#include "src/base/error.h"

typedef enum {
  CLB_SILU,
  CLB_TANH,
  CLB_ABS,
  CLB_IDENTITY,
  CLB_SIGMOID,
  CLB_RELU,
  CLB_SSP, /* shifted softplus: log((1 + exp(x)) / 2) */
  CLB_ACTIVATIONS
} clb_activation;

/* scale f(x) */
typedef struct {
  clb_activation function;
  double scale;
} clb_scaled_activation;

const char *clb_activation_name(clb_activation f);
void clb_activation_at(clb_activation f, double x, double *value, double *slope);
/* The parity of f(x) for x of this parity (1 or -1); 0: it has none. */
int clb_activation_parity(clb_activation f, int parity);

/* Reads "silu", for all of n terms, or "silu,1.5*tanh", one for each. name: of the text, for
   messages. normalize: scales are multiplied by that which makes the mean of (scale f(x))^2 1 for x
   of the normal distribution (e3nn's normalize2mom). */
clb_status clb_activations_read(const char *text, const char *name, int n, int normalize,
                                clb_scaled_activation *list, clb_error_sink *error);

#endif
