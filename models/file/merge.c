/* models/file/merge.c - merges adjacent terms of one irrep in messages, and the corresponding
   blocks of linear_2. */
#include "models/file/file.h"

static bool alike(const clb_term *a, const clb_term *b) {
  return a->l == b->l && a->parity == b->parity;
}

/* Merges adjacent equal terms; `number` receives the new index of each. */
static void merge_terms(const clb_irreps *from, clb_irreps *to, int *number) {
  *to = (clb_irreps){.dim = from->dim};
  for (int t = 0; t < from->n; t++) {
    clb_term *last = to->n ? &to->term[to->n - 1] : NULL;
    if (last && alike(last, &from->term[t])) last->mul += from->term[t].mul;
    else to->term[to->n++] = from->term[t];
    number[t] = to->n - 1;
  }
}

/* Merges blocks of merged terms if their rows are contiguous; false: they are not. */
static bool merge_blocks(const clb_model_layer *y, const int *number, clb_model_map *to) {
  const clb_model_map *map = &y->linear_2;
  to->n = 0;
  for (int b = 0; b < map->n; b++) {
    const clb_model_block *k = &map->block[b], *before = b ? k - 1 : NULL;
    const bool same = before && before->to == k->to && number[before->from] == number[k->from];
    if (same && (k->from != before->from + 1 ||
                 k->weights != before->weights + (int64_t)y->message.term[before->from].mul *
                                                     y->linear.term[k->to].mul))
      return false;
    if (!same) to->block[to->n++] = (clb_model_block){number[k->from], k->to, k->weights};
  }
  return true;
}

void clb_model_file_merge(clb_model_file *f) {
  for (int n = 0; n < f->n_layers; n++) {
    clb_model_layer *y = &f->layer[n];
    clb_model_map map;
    int number[CLB_MAX_TERMS];
    merge_terms(&y->message, &y->gathered, number);
    y->merged = merge_blocks(y, number, &map);
    if (y->merged) y->linear_2 = map;
    else y->gathered = y->message;
  }
}
