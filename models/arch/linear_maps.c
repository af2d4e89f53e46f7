/* models/arch/linear_maps.c - linear maps between arrays, whose matrices are a file's tensors. */
#include <math.h>
#include <stdio.h>

#include "models/arch/arch_parts.h"

typedef clb_model_reader reader;

typedef struct {
  reader *r;
  int block;
  const char *what;
  const clb_arch_terms *from, *to;
  int n_from, n_to;
  clb_arch_matrices matrices;
  int first_layer; /* of the map */
} map;

static const clb_term *terms_of(const map *m, const clb_arch_terms *part) {
  return m->r->out->array[part->array]->irreps.term;
}

static int64_t channels(const map *m, const clb_arch_terms *parts, int n, const clb_term *t) {
  int64_t sum = 0;
  for (int k = 0; k < n; k++)
    for (int i = parts[k].first; i < parts[k].end; i++)
      if (clb_same_irrep(&terms_of(m, &parts[k])[i], t)) sum += terms_of(m, &parts[k])[i].mul;
  return sum;
}

/* A matrix for each species: features of the species are `embedding` / sqrt(species). */
static int64_t mix_irrep(const map *m, const clb_term *t, int64_t rows) {
  reader *r = m->r;
  char key[CLB_MODEL_KEY];
  const clb_tensor *table = r->status ? NULL : clb_safetensors_find(r->file, "embedding");
  const int64_t inner = table && table->rank == 2 ? table->shape[1] : 0;
  if (!inner) clb_model_refuse(r, "'self_connection' needs the tensor 'embedding'");
  snprintf(key, sizeof key, "layers.%d.%s.%d%c", m->block, m->what, (int)t->l,
           t->parity > 0 ? 'e' : 'o');
  return clb_model_mix(r, key, rows, inner, t->mul, "embedding",
                       1 / sqrt((double)rows * (double)inner * r->out->n_species));
}

/* The layer between two arrays. */
static clb_layer *layer_of(const map *m, int from, int to) {
  clb_network *n = m->r->out;
  for (int l = m->first_layer; l < n->n_layers && !m->r->status; l++)
    if (n->layer[l]->in[0] == from && n->layer[l]->out[0] == to) return n->layer[l];
  clb_layer *y =
      clb_model_layer(m->r, &clb_linear_kind, sizeof(clb_linear), m->block, m->what, from, to);
  if (y) ((clb_linear *)y->parameters)->by_species = m->matrices != CLB_ARCH_ONE;
  return y;
}

/* Of a tensor at `at` with these columns: the block of one term and columns `first` on. */
typedef struct {
  int64_t at, columns, first;
} place;

/* Columns of a block follow each other. */
static int64_t take_columns(const map *m, const place *p, int64_t rows, int64_t columns) {
  if (columns == p->columns) return p->at;
  const int64_t to = clb_model_reserve(m->r, rows * columns);
  for (int64_t i = 0; i < rows; i++)
    clb_model_copy(m->r, to + i * columns, p->at + i * p->columns + p->first, columns);
  return to;
}

/* Blocks from a term to all terms of its irrep. */
static void add_blocks(const map *m, int from, int term, place p) {
  const clb_term t = m->r->out->array[from]->irreps.term[term];
  for (int k = 0; k < m->n_to && !m->r->status; k++)
    for (int i = m->to[k].first; i < m->to[k].end && !m->r->status; i++) {
      const clb_term *to = &terms_of(m, &m->to[k])[i];
      if (!clb_same_irrep(to, &t)) continue;
      const int64_t at = take_columns(m, &p, t.mul, to->mul);
      clb_layer *y = layer_of(m, from, m->to[k].array);
      if (y) m->r->status = clb_linear_add(m->r->out, y->parameters, term, i, at);
      p.first += to->mul;
    }
}

/* The blocks of one irrep, one below the other in its tensor. */
static void add_irrep(const map *m, const clb_term *t) {
  const int64_t species = m->matrices ? m->r->out->n_species : 1,
                rows = channels(m, m->from, m->n_from, t), columns = channels(m, m->to, m->n_to, t),
                one[] = {rows, columns}, many[] = {rows, species, columns};
  const clb_term to = {.mul = (int32_t)columns, .l = t->l, .parity = t->parity};
  place p = {.columns = columns};
  if (m->matrices == CLB_ARCH_EMBEDDING) p.at = mix_irrep(m, &to, rows);
  else
    p.at = clb_arch_take(m->r, m->block, m->what, &to, m->matrices ? 3 : 2,
                         m->matrices ? many : one, 1 / sqrt((double)(rows * species)));
  for (int k = 0; k < m->n_from; k++)
    for (int i = m->from[k].first; i < m->from[k].end && !m->r->status; i++) {
      const clb_term *x = &terms_of(m, &m->from[k])[i];
      if (!clb_same_irrep(x, t)) continue;
      add_blocks(m, m->from[k].array, i, p);
      p.at += x->mul * species * columns;
    }
}

/* Whether a term is the first of its irrep. */
static bool begins(const map *m, int part, int term) {
  const clb_term *t = &terms_of(m, &m->from[part])[term];
  for (int k = 0; k <= part; k++)
    for (int i = m->from[k].first; i < (k == part ? term : m->from[k].end); i++)
      if (clb_same_irrep(&terms_of(m, &m->from[k])[i], t)) return false;
  return true;
}

void clb_arch_maps(reader *r, int block, const char *what, const clb_arch_terms *from, int n_from,
                   const clb_arch_terms *to, int n_to, clb_arch_matrices matrices) {
  const map m = {r, block, what, from, to, n_from, n_to, matrices, r->out->n_layers};
  for (int k = 0; k < n_from; k++)
    for (int i = 0; i < n_to && !r->status; i++) layer_of(&m, from[k].array, to[i].array);
  for (int k = 0; k < n_from && !r->status; k++)
    for (int i = from[k].first; i < from[k].end && !r->status; i++) {
      const clb_term t = terms_of(&m, &from[k])[i];
      if (begins(&m, k, i) && channels(&m, to, n_to, &t)) add_irrep(&m, &t);
    }
}

clb_arch_terms clb_arch_all(const reader *r, int array) {
  return (clb_arch_terms){array, 0, r->status ? 0 : r->out->array[array]->irreps.n};
}

void clb_arch_linear(reader *r, int block, const char *what, int from, int to,
                     clb_arch_matrices matrices) {
  const clb_arch_terms in = clb_arch_all(r, from), out = clb_arch_all(r, to);
  clb_arch_maps(r, block, what, &in, 1, &out, 1, matrices);
}
