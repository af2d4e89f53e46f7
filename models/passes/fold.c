/* models/passes/fold.c - an embedding and the linear maps that read it become tables by species. */
#include "models/layers/kinds.h"
#include "models/passes/passes.h"

/* The table of the only embedding of atoms that writes an array, which nothing else writes; NULL:
   there is none. */
static const clb_embedding *table_of(const clb_network *n, int array) {
  const int writer = clb_network_writer(n, array);
  const clb_layer *y = writer >= 0 ? n->layer[writer] : NULL;
  return y && y->kind == &clb_embedding_kind && y->in[CLB_EMBEDDING_PAIRS] < 0 ? y->parameters
                                                                               : NULL;
}

/* out[columns] += x[rows] times a block for one species. */
static void apply(const clb_network *n, const clb_linear *p, const clb_block *b, int species,
                  int64_t rows, int64_t columns, const double *x, double *out) {
  const int64_t matrices = p->by_species ? n->n_species : 1,
                first = p->by_species ? species * columns : 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t o = 0; o < columns; o++)
      out[o] += x[i] * n->weights[b->weights + i * matrices * columns + first + o];
}

/* A linear map of a table is a table. */
static clb_status fold(clb_network *n, int layer, int64_t from) {
  clb_layer *y = n->layer[layer];
  clb_linear *p = y->parameters;
  const clb_irreps *in = &n->array[y->in[0]]->irreps, *out = &n->array[y->out[0]]->irreps;
  int64_t to;
  clb_status s = clb_network_reserve(n, (int64_t)n->n_species * out->dim, &to);
  for (int species = 0; species < n->n_species && !s; species++)
    for (int b = 0; b < p->n; b++) {
      const clb_term *x = &in->term[p->block[b].from], *z = &out->term[p->block[b].to];
      for (int m = 0; m < 2 * x->l + 1; m++)
        apply(n, p, &p->block[b], species, x->mul, z->mul,
              n->weights + from + (int64_t)species * in->dim + x->at + (int64_t)m * x->mul,
              n->weights + to + (int64_t)species * out->dim + z->at + (int64_t)m * z->mul);
    }
  if (s) return s;
  clb_embedding *table = y->parameters; /* the larger of the two holds either */
  y->kind = &clb_embedding_kind;
  y->in[0] = -1;
  y->gradients = 0;
  *table = (clb_embedding){.table = to};
  return CLB_OK;
}

/* Embeddings of one array become their sum. */
static void join(clb_network *n, int layer) {
  const clb_layer *y = n->layer[layer];
  const clb_embedding *p = y->parameters;
  const int pairs = y->in[CLB_EMBEDDING_PAIRS];
  const int64_t count = clb_species_count(n, pairs) * n->array[y->out[0]]->irreps.dim;
  for (int l = 0; l < layer; l++) {
    if (n->layer[l]->kind != &clb_embedding_kind || n->layer[l]->out[0] != y->out[0]) continue;
    if (n->layer[l]->in[CLB_EMBEDDING_PAIRS] != pairs) continue;
    const clb_embedding *sum = n->layer[l]->parameters;
    for (int64_t i = 0; i < count; i++) n->weights[sum->table + i] += n->weights[p->table + i];
    clb_network_remove(n, layer);
    return;
  }
}

static void drop(clb_network *n, int layer) {
  const clb_layer *y = n->layer[layer];
  const bool embeds = y->kind == &clb_embedding_kind && !clb_network_readers(n, y->out[0]),
             known = y->kind == &clb_exchange_kind && table_of(n, y->in[0]);
  if (embeds || known) clb_network_remove(n, layer);
}

clb_status clb_pass_fold(clb_network *n) {
  clb_status s = CLB_OK;
  for (int l = 0; l < n->n_layers && !s; l++) {
    const clb_layer *y = n->layer[l];
    const clb_embedding *table = y->kind == &clb_linear_kind ? table_of(n, y->in[0]) : NULL;
    if (table) s = fold(n, l, table->table);
  }
  for (int l = n->n_layers - 1; l >= 0 && !s; l--)
    if (n->layer[l]->kind == &clb_embedding_kind) join(n, l);
  for (int l = n->n_layers - 1; l >= 0 && !s; l--) drop(n, l);
  return s;
}
