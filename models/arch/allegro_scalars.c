/* models/arch/allegro_scalars.c - networks of edges' scalars. */
#include <math.h>
#include <stdio.h>

#include "models/arch/allegro_network.h"

typedef clb_model_reader reader;

/* "layers.N.what", or "what" */
static const char *key_of(char key[CLB_MODEL_KEY], int block, const char *what) {
  if (block >= 0) return clb_arch_key(key, block, what);
  snprintf(key, CLB_MODEL_KEY, "%s", what);
  return key;
}

static int64_t columns_of(const reader *r, int array) {
  return r->out->array[array]->irreps.term[0].mul;
}

int clb_allegro_map(reader *r, int block, const char *tensor, const clb_allegro_scalars *from,
                    int64_t columns, double factor) {
  char key[CLB_MODEL_KEY];
  int64_t rows = 0;
  const int to = clb_arch_scalars(r, CLB_PER_EDGE, columns);
  for (int i = 0; i < from->n && !r->status; i++) rows += columns_of(r, from->array[i]);
  int64_t at = clb_model_take(r, key_of(key, block, tensor), 2, (const int64_t[]){rows, columns},
                              factor * from->scale / sqrt((double)rows));
  for (int i = 0; i < from->n && !r->status; i++) {
    clb_layer *y =
        clb_model_layer(r, &clb_linear_kind, sizeof(clb_linear), block, tensor, from->array[i], to);
    if (y) r->status = clb_linear_add(r->out, y->parameters, 0, 0, at);
    at += columns_of(r, from->array[i]) * columns;
  }
  return to;
}

clb_allegro_scalars clb_allegro_hidden(reader *r, int block, const char *what, const char *of,
                                       const clb_allegro_scalars *from) {
  char key[CLB_MODEL_KEY], tensor[32];
  clb_allegro_scalars s = *from;
  snprintf(key, sizeof key, "%s_layers", of);
  const int layers = clb_model_whole(r, key, 0, CLB_RADIAL_MATRICES);
  if (!layers) return s;
  snprintf(key, sizeof key, "%s_activation", of);
  const bool none = clb_model_choice(r, key, "silu", "none");
  snprintf(key, sizeof key, "%s_activation_scale", of);
  const double scale = none ? 1 : clb_model_number(r, key);
  for (int k = 0; k < layers && !r->status; k++) {
    snprintf(tensor, sizeof tensor, "%s.%d", what, k);
    const int64_t width = clb_model_columns(r, key_of(key, block, tensor));
    int to = clb_allegro_map(r, block, tensor, &s, width, 1);
    if (!none) {
      const int after = clb_arch_scalars(r, CLB_PER_EDGE, width);
      clb_layer *y = clb_model_layer(r, &clb_gate_kind, sizeof(clb_gate), block, tensor, to, after);
      if (y)
        *(clb_gate *)y->parameters =
            (clb_gate){.scalars = clb_scalars(width), .even = {CLB_SILU, 1}};
      to = after;
    }
    s = (clb_allegro_scalars){.n = 1, .array = {to}, .scale = scale};
  }
  return s;
}
