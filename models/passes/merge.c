/* models/passes/merge.c - joins adjacent terms of one irrep in messages, and the blocks of the
   linear map that reads them. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

/* Joins adjacent equal terms; `number` receives the new index of each. */
static void merge_terms(const clb_irreps *from, clb_irreps *to, int *number) {
  *to = (clb_irreps){.dim = from->dim};
  for (int t = 0; t < from->n; t++) {
    clb_term *last = to->n ? &to->term[to->n - 1] : NULL;
    if (last && clb_same_irrep(last, &from->term[t])) last->mul += from->term[t].mul;
    else to->term[to->n++] = from->term[t];
    number[t] = to->n - 1;
  }
}

/* Joins blocks of joined terms; false: their rows are not contiguous. */
static bool merge_blocks(const clb_irreps *from, const clb_irreps *to, const int *number,
                         clb_linear *p) {
  int count = 0;
  for (int b = 1; b < p->n; b++) {
    const clb_block *k = &p->block[b], *before = k - 1;
    if (before->to == k->to && number[before->from] == number[k->from] &&
        (k->from != before->from + 1 ||
         k->weights !=
             before->weights + (int64_t)from->term[before->from].mul * to->term[k->to].mul))
      return false;
  }
  for (int b = 0, previous = -1; b < p->n; b++) {
    const clb_block k = p->block[b];
    if (!count || p->block[count - 1].to != k.to || previous != number[k.from])
      p->block[count++] = (clb_block){number[k.from], k.to, k.weights};
    previous = number[k.from];
  }
  p->n = count;
  return true;
}

static clb_layer *only_reader(const clb_network *n, int array) {
  clb_layer *found = NULL;
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->in[0] == array) found = n->layer[l];
  return clb_network_readers(n, array) == 1 ? found : NULL;
}

void clb_pass_merge(clb_network *n) {
  for (int l = 0; l < n->n_layers; l++) {
    if (n->layer[l]->kind != &clb_convolution_kind) continue;
    clb_convolution_layer *p = n->layer[l]->parameters;
    const int message = n->layer[l]->out[CLB_CONVOLUTION_MESSAGE];
    clb_layer *reader = only_reader(n, message);
    clb_irreps merged;
    int number[CLB_MAX_TERMS];
    merge_terms(&p->message, &merged, number);
    p->merged =
        reader && reader->kind == &clb_linear_kind &&
        merge_blocks(&p->message, &n->array[reader->out[0]]->irreps, number, reader->parameters);
    if (p->merged) n->array[message]->irreps = merged;
  }
}
