/* models/layers/radial.c - the radial network: the weights of a convolution's paths from the basis
   functions of each edge. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/layers/kinds.h"

static clb_status build(clb_network *n, clb_layer *y) {
  const clb_radial *p = y->parameters;
  clb_status s = clb_network_product(n);
  return s || p->n == 1 ? s : clb_network_activation(n, p->activation);
}

/* Columns of hidden layer k, from 1 on. */
static clb_rows hidden(const clb_radial *p, clb_rows rows, int k) {
  for (int i = 1; i < k; i++) rows.offset += (p->width[i] + 3) / 4 * 4;
  return rows;
}

/* The work array holds values after the activation, and in the backward pass gradients, in the
   layout of the hidden values. */
static clb_status forward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_radial *p = y->parameters;
  const clb_rows before = clb_value(n, y->out[CLB_RADIAL_HIDDEN]), after = clb_value(n, y->work);
  clb_status s = CLB_OK;
  (void)adds;
  for (int k = 0; k < p->n && !s; k++) {
    const bool last = k == p->n - 1;
    const clb_rows out = last ? clb_value(n, y->out[CLB_RADIAL_WEIGHTS]) : hidden(p, before, k + 1);
    s = clb_network_multiply(n,
                             &(clb_gemm_step){.rows = n->at.n_edges,
                                              .columns = p->width[k + 1],
                                              .inner = p->width[k],
                                              .count = 1,
                                              .weights = p->matrix[k],
                                              .a = k ? hidden(p, after, k) : clb_value(n, y->in[0]),
                                              .c = out});
    if (!s && !last)
      s = clb_activation_forward(n->activation[p->activation], n->at.n_edges, p->width[k + 1], out,
                                 hidden(p, after, k + 1));
  }
  return s;
}

static clb_status backward(clb_network *n, clb_layer *y, unsigned adds) {
  const clb_radial *p = y->parameters;
  const clb_rows before = clb_value(n, y->out[CLB_RADIAL_HIDDEN]), work = clb_value(n, y->work);
  clb_rows g_out = clb_gradient(n, y->out[CLB_RADIAL_WEIGHTS]);
  clb_status s = CLB_OK;
  for (int k = p->n - 1; k >= 0 && !s; k--) {
    const clb_rows g = k ? hidden(p, work, k) : clb_gradient(n, y->in[0]);
    s = clb_network_multiply(n, &(clb_gemm_step){.rows = n->at.n_edges,
                                                 .columns = p->width[k],
                                                 .inner = p->width[k + 1],
                                                 .count = 1,
                                                 .weights = p->matrix[k],
                                                 .transposed = true,
                                                 .add = !k && adds & 1,
                                                 .a = g_out,
                                                 .c = g});
    if (k && !s)
      s = clb_activation_backward(n->activation[p->activation], n->at.n_edges, p->width[k],
                                  hidden(p, before, k), g, g);
    g_out = g;
  }
  return s;
}

/* ---- pruning ---- */

static void need(const clb_network *n, const clb_layer *y, clb_needed needed) {
  clb_need(n, y->in[0], needed, -1);
}

/* Drops columns of the last matrix. */
static void keep(clb_network *n, clb_layer *y, clb_needed needed) {
  clb_radial *p = y->parameters;
  const int weights = y->out[CLB_RADIAL_WEIGHTS];
  clb_keep_columns(n, weights, needed, p->matrix[p->n - 1], p->width[p->n - 1]);
  if (p->normalized) clb_keep_columns(n, weights, needed, p->bias[p->n - 1], 1);
  p->width[p->n] = clb_needed_in(n, weights, needed, 0);
}

const clb_layer_kind clb_radial_kind = {.reads_out = 1U << CLB_RADIAL_HIDDEN,
                                        .again = true,
                                        .build = build,
                                        .forward = forward,
                                        .backward = backward,
                                        .need = need,
                                        .keep = keep};

/* ---- on the host ---- */

/* One matrix: x and dx of `rows` numbers to y and dy of `columns`. */
static void multiply(const double *w, int64_t rows, int64_t columns, const double *x,
                     const double *dx, double *y, double *dy) {
  for (int64_t o = 0; o < columns; o++) y[o] = dy[o] = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t o = 0; o < columns; o++) {
      y[o] += x[i] * w[i * columns + o];
      dy[o] += dx[i] * w[i * columns + o];
    }
}

/* y += x[n], and a row of a table */
static void add(int64_t n, const double *x, double *y) {
  for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

/* PyTorch's LayerNorm. w: factors, then biases. */
static void normalize(int64_t n, double epsilon, const double *w, double *x, double *dx) {
  double mean = 0, slope = 0, square = 0, turn = 0;
  for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n, slope += dx[i] / (double)n;
  for (int64_t i = 0; i < n; i++) {
    x[i] -= mean, dx[i] -= slope;
    square += x[i] * x[i] / (double)n, turn += x[i] * dx[i] / (double)n;
  }
  const double s = 1 / sqrt(square + epsilon);
  for (int64_t i = 0; i < n; i++) {
    dx[i] = w[i] * s * (dx[i] - x[i] * s * s * turn);
    x[i] = w[i] * s * x[i] + w[n + i];
  }
}

static void activate(clb_activation f, int64_t n, double *x, double *dx) {
  for (int64_t i = 0; i < n; i++) {
    double value, slope;
    clb_activation_at(f, x[i], &value, &slope);
    dx[i] *= slope;
    x[i] = value;
  }
}

clb_status clb_radial_at(const clb_network *n, const clb_radial *p, const clb_edge_species *e,
                         const double *x, const double *dx, double *y, double *dy) {
  int64_t widest = 1;
  for (int k = 0; k < p->n; k++) widest = p->width[k] > widest ? p->width[k] : widest;
  double *now = malloc((size_t)widest * 4 * sizeof *now), *to = now ? now + 2 * widest : NULL;
  if (!now) return clb_network_no_memory(n);
  memcpy(now, x, (size_t)p->width[0] * sizeof *x);
  memcpy(now + widest, dx, (size_t)p->width[0] * sizeof *dx);
  for (int k = 0; k < p->n; k++) {
    const int64_t columns = p->width[k + 1];
    const bool last = k == p->n - 1;
    multiply(n->weights + p->matrix[k], p->width[k], columns, now, now + widest, last ? y : to,
             last ? dy : to + widest);
    if (p->normalized && k) add(columns, n->weights + p->bias[k], last ? y : to);
    for (int i = 0; i < 2 && p->normalized && !k; i++)
      add(columns, n->weights + p->ends[i] + e->end[i] * columns, last ? y : to);
    if (last) break;
    if (p->normalized) normalize(columns, p->epsilon, n->weights + p->norm[k], to, to + widest);
    activate(p->activation, columns, to, to + widest);
    memcpy(now, to, 2 * (size_t)widest * sizeof *to);
  }
  free(now);
  return CLB_OK;
}
