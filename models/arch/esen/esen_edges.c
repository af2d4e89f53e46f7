/* models/arch/esen/esen_edges.c - the edges of a block: rows of both ends in the frame of the edge,
   times numbers of a radial network, two maps by order with a gate between them, and the sum over
   the edges of a receiver. */
#include "models/arch/esen/esen_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef clb_model_reader reader;
enum { SENDER, RECEIVER, ENDS };

/* ---- irreps of rows in the frame ---- */

static void add_term(clb_irreps *y, int64_t channels) {
  y->term[y->n++] = (clb_term){.mul = (int32_t)channels, .parity = 1, .at = y->dim};
  y->dim += (int32_t)channels;
}

int clb_esen_degrees(const clb_esen *q, int m, int first) {
  return q->l + 1 - (m > first ? m : first);
}

clb_irreps clb_esen_orders(const clb_esen *q, int first, int64_t channels) {
  clb_irreps y = {0};
  for (int m = 0; m <= q->m; m++)
    for (int i = 0; i < (m ? 2 : 1) * clb_esen_degrees(q, m, first); i++) add_term(&y, channels);
  return y;
}

clb_irreps clb_esen_maps(const clb_esen *q, int first, int64_t channels) {
  clb_irreps y = {0};
  for (int m = 0; m <= q->m; m++)
    add_term(&y, (m ? 2 : 1) * clb_esen_degrees(q, m, first) * channels);
  return y;
}

/* |m| and l of each term. */
typedef struct {
  int n, m[CLB_MAX_TERMS], l[CLB_MAX_TERMS];
} terms;
static terms terms_of(const clb_esen *q, int first) {
  terms y = {.n = 0};
  for (int order = 0; order <= 2 * q->m; order++)
    for (int m = (order + 1) / 2, l = m > first ? m : first; l <= q->l; l++) {
      y.m[y.n] = m;
      y.l[y.n++] = l;
    }
  return y;
}

/* ---- products ---- */

static clb_product_layer *add_product(reader *r, const clb_layer_kind *kind, int n, int x, int y,
                                      int z) {
  clb_layer *layer = clb_model_layer(r, kind, sizeof(clb_product_layer), n, "rotation", x, z);
  if (!layer) return NULL;
  clb_product_layer *p = layer->parameters;
  layer->in[CLB_PRODUCT_Y] = y;
  layer->gradients = 1U << CLB_PRODUCT_X | 1U << CLB_PRODUCT_Y;
  return p;
}

/* [5]: rows of one end, in the frame. */
static int rotate(reader *r, const clb_esen *q, int n, int end, int atoms) {
  const clb_irreps maps = clb_esen_maps(q, 0, q->channels);
  const int z = clb_model_array(r, CLB_PER_EDGE, false, &maps);
  clb_product_layer *p = add_product(
      r, end == SENDER ? &clb_sender_product_kind : &clb_product_kind, n, atoms, q->rotations, z);
  if (!p) return z;
  p->x = q->features;
  p->z = clb_esen_orders(q, 0, q->channels);
  const terms all = terms_of(q, 0);
  for (int t = 0; t < all.n; t++)
    p->path[p->n_paths++] = (clb_instruction){all.l[t], t, t, CLB_UVU, 0, 2 * all.l[t] + 1};
  return z;
}

/* [6]: times the numbers of this end, of each degree and |m|. */
static int weigh(reader *r, const clb_esen *q, int n, int end, int rows, int weights) {
  const clb_irreps maps = clb_esen_maps(q, 0, q->channels);
  const int z = clb_model_array(r, CLB_PER_EDGE, false, &maps);
  clb_product_layer *p = add_product(r, &clb_product_kind, n, rows, weights, z);
  if (!p) return z;
  p->x = p->z = clb_esen_orders(q, 0, q->channels);
  for (int m = 0; m <= q->m; m++)
    for (int i = 0; i < ENDS * clb_esen_degrees(q, m, 0); i++) add_term(&p->y, q->channels);
  const terms all = terms_of(q, 0);
  for (int t = 0; t < all.n; t++) {
    int number = end + ENDS * (all.l[t] - all.m[t]);
    for (int m = 0; m < all.m[t]; m++) number += ENDS * clb_esen_degrees(q, m, 0);
    p->path[p->n_paths++] = (clb_instruction){t, number, t, CLB_UUU, 0, 1};
  }
  return z;
}

/* ---- maps by order ---- */

typedef struct {
  int64_t at, columns; /* of a tensor */
} tensor;

static tensor take(reader *r, int n, const char *map, const char *rest, int64_t rows,
                   int64_t columns) {
  char key[CLB_MODEL_KEY];
  return (tensor){
      clb_model_take(r, clb_esen_key(key, n, map, rest), 2, (const int64_t[]){rows, columns}, 1),
      columns};
}

/* A part of a matrix of `columns` columns: from row and column `to`, that of a tensor from `from`.
 */
typedef struct {
  int64_t at, columns;
} matrix;
static void fill(reader *r, matrix y, int64_t to_row, int64_t to_column, tensor x, int64_t from_row,
                 int64_t from_column, int64_t rows, int64_t columns, double factor) {
  for (int64_t i = 0; i < rows && !r->status; i++)
    clb_arch_copy_times(r, y.at + (to_row + i) * y.columns + to_column,
                        x.at + (from_row + i) * x.columns + from_column, columns, factor);
}

/* A map's input: channels of each degree, of which those of an end, or of all (ends 1), are the
   `number`th of `ends` parts; without degrees below `first` of order 0. */
typedef struct {
  int64_t channels;
  int first, ends, number;
} part;

static void fill_degrees(reader *r, const clb_esen *q, const part *in, int m, matrix y,
                         int64_t to_row, int64_t to_column, tensor x, int64_t from_column,
                         int64_t columns, double factor) {
  const int skipped = m ? 0 : in->first, degrees = clb_esen_degrees(q, m, in->first);
  for (int i = 0; i < degrees; i++)
    fill(r, y, to_row + i * in->channels, to_column, x,
         ((i + skipped) * in->ends + in->number) * in->channels, from_column, in->channels, columns,
         factor);
}

/* Of order 0: columns `column` on of the tensor, to a term of an array. */
static void map_zero(reader *r, const clb_esen *q, const part *in, clb_layer *y, int to, tensor x,
                     int64_t column, int64_t columns) {
  const int64_t rows = clb_esen_degrees(q, 0, in->first) * in->channels;
  if (!rows || !columns) return;
  const matrix w = {clb_model_reserve(r, rows * columns), columns};
  fill_degrees(r, q, in, 0, w, 0, 0, x, column, columns, 1);
  clb_esen_block(r, y, 0, to, w.at);
}

/* Of order m > 0: [[A, B], [-B, A]] of rows and columns of m and -m. */
static void map_pair(reader *r, const clb_esen *q, const part *in, clb_layer *y, int m, tensor x) {
  const int64_t half = clb_esen_degrees(q, m, 0) * in->channels, columns = x.columns / 2;
  const matrix w = {clb_model_reserve(r, 4 * half * columns), 2 * columns};
  for (int row = 0; row < 2; row++)
    for (int column = 0; column < 2; column++)
      fill_degrees(r, q, in, m, w, row * half, column * columns, x, (row != column) * columns,
                   columns, row > column ? -1 : 1);
  clb_esen_block(r, y, m, m, w.at);
}

/* A bias, columns `column` on, as a matrix of the number 1. */
static void add_bias(reader *r, const clb_esen *q, int n, const char *what, int to, int64_t at) {
  clb_esen_block(r, clb_esen_linear(r, n, what, q->radial.ones, to), 0, 0, at);
}

static tensor take_order(reader *r, int n, const char *map, int m, int64_t rows, int64_t columns) {
  char rest[16];
  snprintf(rest, sizeof rest, ".%d", m);
  return take(r, n, map, rest, rows, columns);
}

static int64_t take_bias(reader *r, int n, const char *map, int64_t columns) {
  char key[CLB_MODEL_KEY];
  return clb_model_take(r, clb_esen_key(key, n, map, ".bias"), 1, &columns, 1);
}

/* ---- the two maps ---- */

typedef struct {
  int gates, scalars, rest; /* arrays of edges; rest: all but order 0 of degree 0 */
} mapped;

/* [7] of both ends. */
static mapped first_map(reader *r, const clb_esen *q, int n, const int ends[ENDS]) {
  const char *what = "map_1";
  const int64_t hidden = q->hidden, gates = q->l * hidden;
  const clb_irreps maps = clb_esen_maps(q, 1, hidden);
  const mapped y = {clb_arch_scalars(r, CLB_PER_EDGE, gates),
                    clb_arch_scalars(r, CLB_PER_EDGE, hidden),
                    clb_model_array(r, CLB_PER_EDGE, false, &maps)};
  const int to[] = {y.gates, y.scalars, y.rest};
  const int64_t columns[] = {gates, hidden, gates}, all = 2 * gates + hidden,
                bias = take_bias(r, n, what, all);
  tensor x[CLB_MAX_EDGE_ROTATION_L + 1];
  for (int m = 0; m <= q->m; m++)
    x[m] = take_order(r, n, what, m, clb_esen_degrees(q, m, 0) * ENDS * q->channels,
                      m ? 2 * clb_esen_degrees(q, m, 0) * hidden : all);
  int64_t column = 0;
  for (int i = 0; i < 3; column += columns[i++]) {
    const int64_t own = clb_model_reserve(r, columns[i]);
    clb_model_copy(r, own, bias + column, columns[i]);
    add_bias(r, q, n, what, to[i], own);
    for (int end = 0; end < ENDS; end++) {
      const part in = {q->channels, 0, ENDS, end};
      clb_layer *layer = clb_esen_linear(r, n, what, ends[end], to[i]);
      map_zero(r, q, &in, layer, 0, x[0], column, columns[i]);
      for (int m = 1; m <= q->m && i == 2; m++) map_pair(r, q, &in, layer, m, x[m]);
    }
  }
  return y;
}

static int activate(reader *r, int n, int from, int64_t columns, clb_activation f) {
  const int to = clb_arch_scalars(r, CLB_PER_EDGE, columns);
  clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), n, "gate", from, to);
  if (y) *(clb_gate *)y->parameters = (clb_gate){.scalars = clb_scalars(columns), .even = {f, 1}};
  return to;
}

/* [8] */
static mapped gate(reader *r, const clb_esen *q, int n, mapped x) {
  const clb_irreps maps = clb_esen_maps(q, 1, q->hidden);
  const mapped y = {activate(r, n, x.gates, q->l * q->hidden, CLB_SIGMOID),
                    activate(r, n, x.scalars, q->hidden, CLB_SILU),
                    clb_model_array(r, CLB_PER_EDGE, false, &maps)};
  clb_product_layer *p = add_product(r, &clb_product_kind, n, x.rest, y.gates, y.rest);
  if (!p) return y;
  p->x = p->z = clb_esen_orders(q, 1, q->hidden);
  for (int l = 0; l < q->l; l++) add_term(&p->y, q->hidden);
  const terms all = terms_of(q, 1);
  for (int t = 0; t < all.n; t++)
    p->path[p->n_paths++] = (clb_instruction){t, all.l[t] - 1, t, CLB_UUU, 0, 1};
  return y;
}

/* [9] */
static int second_map(reader *r, const clb_esen *q, int n, mapped from) {
  const char *what = "map_2";
  const clb_irreps maps = clb_esen_maps(q, 0, q->channels);
  const int to = clb_model_array(r, CLB_PER_EDGE, false, &maps);
  const int64_t hidden = q->hidden, all = (q->l + 1) * q->channels,
                bias = take_bias(r, n, what, all);
  const part in = {hidden, 1, 1, 0};
  const tensor zero = take_order(r, n, what, 0, (q->l + 1) * hidden, all);
  add_bias(r, q, n, what, to, bias);
  clb_esen_block(r, clb_esen_linear(r, n, what, from.scalars, to), 0, 0, zero.at);
  clb_layer *layer = clb_esen_linear(r, n, what, from.rest, to);
  map_zero(r, q, &in, layer, 0, zero, 0, all);
  for (int m = 1; m <= q->m; m++) {
    const int64_t degrees = clb_esen_degrees(q, m, 0);
    map_pair(r, q, &in, layer, m,
             take_order(r, n, what, m, degrees * hidden, 2 * degrees * q->channels));
  }
  return to;
}

/* ---- the block ---- */

int clb_esen_sum(reader *r, const clb_esen *q, int n, int count, int weights, double factor) {
  const terms all = terms_of(q, 0);
  clb_arch_product *p = calloc(1, sizeof *p);
  int sum = CLB_VECTORS;
  if (!p) clb_model_no_memory(r);
  if (!r->status) {
    p->in = clb_scalars(q->channels);
    p->out = q->features;
    for (int t = 0; t < all.n && t < count; t++)
      p->path[p->n_paths++] = (clb_instruction){0, t, all.l[t], CLB_UVU, 1, 1};
    p->n_weights = p->n_paths * q->channels;
    sum = clb_arch_convolution(r, n, p, factor, -1, q->cut, weights);
  }
  free(p);
  return sum;
}

int clb_esen_edges(reader *r, const clb_esen *q, int n, int normed) {
  const int sent = clb_model_array(r, CLB_PER_ATOM, false, &q->features);
  int64_t columns = 0;
  int ends[ENDS];
  clb_esen_copy(r, n, "sent", normed, sent, q->l + 1);
  clb_model_layer(r, &clb_exchange_kind, sizeof(clb_exchange), n, "exchange", sent, sent);
  for (int m = 0; m <= q->m; m++) columns += clb_esen_degrees(q, m, 0) * ENDS * q->channels;
  const int weights = clb_arch_radial(r, n, "radial", &q->radial, q->gaussians, columns);
  for (int end = 0; end < ENDS && !r->status; end++)
    ends[end] = weigh(r, q, n, end, rotate(r, q, n, end, end == SENDER ? sent : normed), weights);
  if (r->status) return CLB_VECTORS;
  const int rows = second_map(r, q, n, gate(r, q, n, first_map(r, q, n, ends)));
  return clb_esen_sum(r, q, n, CLB_MAX_TERMS, rows, 1);
}
