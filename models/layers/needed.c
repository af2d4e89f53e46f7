/* models/layers/needed.c - what kinds of layers do when they are pruned. */
#include "models/layers/network.h"

#include <string.h>

int64_t clb_first_channel(const clb_irreps *irreps, int term) {
  int64_t n = 0;
  for (int t = 0; t < term; t++) n += irreps->term[t].mul;
  return n;
}

int64_t clb_needed_in(const clb_network *n, int array, clb_needed needed, int term) {
  const clb_irreps *irreps = &n->array[array]->irreps;
  const bool *from = needed[array] + clb_first_channel(irreps, term);
  int64_t count = 0;
  for (int c = 0; c < irreps->term[term].mul; c++) count += from[c];
  return count;
}

int clb_needed_term(const clb_network *n, int array, clb_needed needed, int term) {
  int number = 0;
  if (!clb_needed_in(n, array, needed, term)) return -1;
  for (int t = 0; t < term; t++) number += clb_needed_in(n, array, needed, t) > 0;
  return number;
}

void clb_need_nothing(const clb_network *n, const clb_layer *y, clb_needed needed) {
  (void)n, (void)y, (void)needed;
}

void clb_need(const clb_network *n, int array, clb_needed needed, int term) {
  const clb_irreps *irreps = &n->array[array]->irreps;
  const int64_t first = term < 0 ? 0 : clb_first_channel(irreps, term),
                count = term < 0 ? clb_channels(irreps, NULL) : irreps->term[term].mul;
  memset(needed[array] + first, 1, (size_t)count);
}

void clb_irreps_shrink(clb_irreps *irreps, const int64_t *mul) {
  clb_irreps kept = {0};
  for (int t = 0; t < irreps->n; t++) {
    if (!mul[t]) continue;
    clb_term *k = &kept.term[kept.n++];
    *k = irreps->term[t];
    k->mul = (int32_t)mul[t];
    k->at = kept.dim;
    kept.dim += k->mul * (2 * k->l + 1);
  }
  *irreps = kept;
}

void clb_keep_columns(clb_network *n, int array, clb_needed needed, int64_t weights, int64_t rows) {
  const clb_irreps *irreps = &n->array[array]->irreps;
  const double *from = n->weights + weights;
  double *to = n->weights + weights;
  for (int64_t i = 0; i < rows; i++)
    for (int t = 0; t < irreps->n; t++) {
      const bool *kept = needed[array] + clb_first_channel(irreps, t);
      for (int m = 0; m < 2 * irreps->term[t].l + 1; m++)
        for (int c = 0; c < irreps->term[t].mul; c++, from++)
          if (kept[c]) *to++ = *from;
    }
}
