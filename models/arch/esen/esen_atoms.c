/* models/arch/esen/esen_atoms.c - the atoms of a block: the feed-forward. */
#include "models/arch/esen/esen_network.h"

typedef clb_model_reader reader;

static int64_t take(reader *r, int n, const char *what, const char *rest, int rank,
                    const int64_t *shape) {
  char key[CLB_MODEL_KEY];
  return clb_model_take(r, clb_esen_key(key, n, what, rest), rank, shape, 1);
}

/* A matrix for each degree, to terms of `to` that begin with `first`; and the bias of degree 0. */
static void map_degrees(reader *r, const clb_esen *q, int n, const char *what, int from, int to,
                        int gates, int64_t rows, int64_t columns) {
  const int64_t at = take(r, n, what, "", 3, (const int64_t[]){q->l + 1, rows, columns});
  clb_layer *y = clb_esen_linear(r, n, what, from, to);
  for (int l = 0; l <= q->l; l++)
    clb_esen_block(r, y, l, l ? l + gates : 0, at + l * rows * columns);
}

/* Scalars through the gates' matrix, silu, and to the gates of an array. */
static void add_gates(reader *r, const clb_esen *q, int n, int normed, int to) {
  const char *what = "feed_forward_gates";
  const int64_t gates = q->l * q->hidden;
  const int before = clb_arch_scalars(r, CLB_PER_LOCAL, gates),
            after = clb_arch_scalars(r, CLB_PER_LOCAL, gates);
  const int64_t at = take(r, n, what, "", 2, (const int64_t[]){q->channels, gates}),
                unit = clb_model_reserve(r, gates * gates);
  clb_arch_bias(r, n, "feed_forward_gates.bias", before, false);
  clb_esen_block(r, clb_esen_linear(r, n, what, normed, before), 0, 0, at);
  clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), n, what, before, after);
  if (y)
    *(clb_gate *)y->parameters = (clb_gate){.scalars = clb_scalars(gates), .even = {CLB_SILU, 1}};
  for (int64_t i = 0; i < gates && !r->status; i++) r->out->weights[unit + i * (gates + 1)] = 1;
  clb_esen_block(r, clb_esen_linear(r, n, what, after, to), 0, 1, unit);
}

/* [10]: scalars, gates, and other degrees in one array; gates may be none. */
static int spectral(reader *r, const clb_esen *q, int n, int normed) {
  const clb_irreps hidden = clb_esen_features(q->l, q->hidden);
  clb_irreps in = {0}, gates = {0}, gated = {0};
  for (int t = 0; t <= q->l + 1; t++) {
    clb_term x = t < 2 ? hidden.term[0] : hidden.term[t - 1];
    if (t == 1) x.mul *= q->l;
    x.at = in.dim;
    in.dim += (2 * x.l + 1) * x.mul;
    in.term[in.n++] = x;
  }
  gates = clb_scalars(q->l * q->hidden);
  for (int l = 1; l <= q->l; l++) {
    gated.term[gated.n] = hidden.term[l];
    gated.term[gated.n++].at = gated.dim;
    gated.dim += (2 * l + 1) * (int32_t)q->hidden;
  }
  const int before = clb_model_array(r, CLB_PER_LOCAL, false, &in),
            after = clb_model_array(r, CLB_PER_LOCAL, false, &hidden),
            out = clb_model_array(r, CLB_PER_LOCAL, false, &q->features);
  clb_arch_bias(r, n, "feed_forward_1.bias", before, false);
  map_degrees(r, q, n, "feed_forward_1", normed, before, 1, q->channels, q->hidden);
  add_gates(r, q, n, normed, before);
  clb_layer *y =
      clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), n, "feed_forward", before, after);
  if (y)
    *(clb_gate *)y->parameters = (clb_gate){.scalars = clb_scalars(q->hidden),
                                            .gates = gates,
                                            .gated = gated,
                                            .even = {CLB_SILU, 1},
                                            .gate = {CLB_SIGMOID, 1}};
  clb_arch_bias(r, n, "feed_forward_2.bias", out, false);
  map_degrees(r, q, n, "feed_forward_2", after, out, 0, q->hidden, q->channels);
  return out;
}

/* ---- on a grid ---- */

/* Between the values of each point and the channels of each degree. */
static void add_grid(reader *r, const clb_esen *q, int n, int from, int to, bool back) {
  clb_layer *y = clb_model_layer(r, &clb_grid_kind, sizeof(clb_grid), n, "grid", from, to);
  if (y)
    *(clb_grid *)y->parameters =
        (clb_grid){.points = q->points, .back = back, .row = back ? q->from_grid : q->to_grid};
}

static int activate(reader *r, int n, int from, const clb_irreps *points) {
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, points);
  clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), n, "grid", from, to);
  if (y) *(clb_gate *)y->parameters = (clb_gate){.scalars = *points, .even = {CLB_SILU, 1}};
  return to;
}

/* One matrix for all terms of two arrays. */
static int map_terms(reader *r, int n, const char *what, int from, const clb_irreps *irreps,
                     int64_t rows, int64_t columns) {
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, irreps);
  const int64_t at = take(r, n, what, "", 2, (const int64_t[]){rows, columns});
  clb_layer *y = clb_esen_linear(r, n, what, from, to);
  for (int t = 0; t < irreps->n; t++) clb_esen_block(r, y, t, t, at);
  return to;
}

static int on_grid(reader *r, const clb_esen *q, int n, int normed) {
  const clb_irreps hidden = clb_esen_features(q->l, q->hidden);
  clb_irreps points = {0};
  for (int t = 0; t < q->points; t++) {
    points.term[points.n++] = (clb_term){.mul = (int32_t)q->hidden, .parity = 1, .at = points.dim};
    points.dim += (int32_t)q->hidden;
  }
  const int inner = map_terms(r, n, "feed_forward_1", normed, &hidden, q->channels, q->hidden),
            values = clb_model_array(r, CLB_PER_LOCAL, false, &points);
  add_grid(r, q, n, inner, values, false);
  const int mapped = map_terms(r, n, "feed_forward_2", activate(r, n, values, &points), &points,
                               q->hidden, q->hidden),
            outer = clb_model_array(r, CLB_PER_LOCAL, false, &hidden);
  add_grid(r, q, n, activate(r, n, mapped, &points), outer, true);
  return map_terms(r, n, "feed_forward_3", outer, &q->features, q->hidden, q->channels);
}

int clb_esen_atoms(reader *r, const clb_esen *q, int n, int normed) {
  return (q->points ? on_grid : spectral)(r, q, n, normed);
}
