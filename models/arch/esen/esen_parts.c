/* models/arch/esen/esen_parts.c - what all files that read eSEN's networks need. */
#include "models/arch/esen/esen_network.h"

#include <stdio.h>

typedef clb_model_reader reader;

const char *clb_esen_key(char key[CLB_MODEL_KEY], int block, const char *what, const char *rest) {
  if (block < 0) snprintf(key, CLB_MODEL_KEY, "%s%s", what, rest);
  else snprintf(key, CLB_MODEL_KEY, "layers.%d.%s%s", block, what, rest);
  return key;
}

clb_irreps clb_esen_features(int l_max, int64_t channels) {
  clb_irreps y = {0};
  for (int l = 0; l <= l_max; l++) {
    y.term[y.n++] = (clb_term){.mul = (int32_t)channels, .l = l, .parity = 1, .at = y.dim};
    y.dim += (2 * l + 1) * (int32_t)channels;
  }
  return y;
}

clb_layer *clb_esen_linear(reader *r, int block, const char *what, int from, int to) {
  return clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), block, what, from, to);
}

void clb_esen_block(reader *r, clb_layer *y, int from, int to, int64_t at) {
  if (y && !r->status) r->status = clb_linear_add(r->out, y->parameters, from, to, at);
}

void clb_esen_copy(reader *r, int block, const char *what, int from, int to, int n) {
  clb_layer *y = clb_esen_linear(r, block, what, from, to);
  const int64_t mul = y ? r->out->array[from]->irreps.term[0].mul : 0,
                unit = clb_model_reserve(r, mul * mul);
  for (int64_t c = 0; c < mul && !r->status; c++) r->out->weights[unit + c * (mul + 1)] = 1;
  for (int t = 0; t < n; t++) clb_esen_block(r, y, t, t, unit);
}

int clb_esen_norm(reader *r, const clb_esen *q, int block, const char *what, int from) {
  char key[CLB_MODEL_KEY];
  const int64_t degrees = q->l + 1, all = degrees * q->channels,
                weights = clb_model_take(r, clb_esen_key(key, block, what, ""), 2,
                                         (const int64_t[]){degrees, q->channels}, 1),
                bias =
                    clb_model_take(r, clb_esen_key(key, block, what, ".bias"), 1, &q->channels, 1),
                at = clb_model_reserve(r, all + q->channels);
  const int to = clb_model_array(r, CLB_PER_LOCAL, false, &q->features);
  clb_model_copy(r, at, weights, all);
  clb_model_copy(r, at + all, bias, q->channels);
  clb_layer *y = clb_model_layer(r, &clb_norm_kind, sizeof(clb_norm), block, what, from, to);
  if (!y) return to;
  clb_norm *p = y->parameters;
  *p = (clb_norm){
      .variant = CLB_RMS_TERMS, .centred = true, .epsilon = q->norm_epsilon, .weights = at};
  for (int l = 0; l <= q->l; l++)
    p->factor[l] = 1 / ((double)q->channels * (2 * l + 1) * (double)degrees);
  return to;
}
