/* models/arch/radial_networks.c - networks of edges: from radial functions, and the species of both
   atoms, to weights of paths. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/arch/arch_parts.h"

typedef clb_model_reader reader;

/* One of a block, from the basis. */
typedef struct {
  reader *r;
  const clb_arch_radial_desc *d;
  int block;
  const char *what;
  int64_t n_weights;
  clb_per per; /* of what it has rows */
} network;

int clb_arch_pairs(reader *r) {
  const clb_irreps one = clb_scalars(1);
  const int pairs = clb_model_array(r, CLB_PER_EDGE, true, &one);
  clb_layer *y =
      clb_model_layer(r, &clb_pairs_kind, sizeof(clb_pairs), -1, "pairs", CLB_VECTORS, pairs);
  if (y) y->gradients = 0;
  return pairs;
}

void clb_arch_pair_rows(reader *r, int block, const char *what, int pairs, int64_t table, int to) {
  clb_layer *y =
      clb_model_layer(r, &clb_embedding_kind, sizeof(clb_embedding), block, what, pairs, to);
  if (!y) return;
  y->gradients = 0;
  *(clb_embedding *)y->parameters = (clb_embedding){.table = table};
}

void clb_arch_fill_pairs(reader *r, int64_t table, int64_t width, int64_t at, int end, int64_t from,
                         int64_t n) {
  const int64_t species = r->out->n_species;
  for (int64_t pair = 0; pair < species * species && !r->status; pair++)
    clb_model_copy(r, table + pair * width + at, from + (end ? pair % species : pair / species) * n,
                   n);
}

/* The number 1 of each edge. */
static int read_ones(reader *r, int pairs) {
  const int64_t n = (int64_t)r->out->n_species * r->out->n_species, at = clb_model_reserve(r, n);
  const int ones = clb_arch_scalars(r, CLB_PER_EDGE, 1);
  for (int64_t i = 0; i < n && !r->status; i++) r->out->weights[at + i] = 1;
  clb_arch_pair_rows(r, -1, "ones", pairs, at, ones);
  return ones;
}

clb_arch_radial_desc clb_arch_radial_read(reader *r) {
  clb_arch_radial_desc d = {.n = clb_model_whole(r, "radial_layers", 1, CLB_RADIAL_MATRICES)};
  static const char *const kinds[] = {"none", "fan_in", "layer"};
  d.activation = clb_arch_activation(r, "radial_activation");
  const int kind = clb_model_word(r, "radial_normalization", kinds, 3);
  d.fan_in = kind == 1;
  d.normalized = kind == 2;
  if (!d.normalized) return d;
  d.epsilon = clb_model_number(r, "radial_epsilon");
  if (!r->status && !(d.epsilon > 0))
    clb_model_refuse(r, "'radial_epsilon' is %g; it must be positive", d.epsilon);
  d.pairs = clb_arch_pairs(r);
  d.ones = read_ones(r, d.pairs);
  return d;
}

/* ---- tensors ---- */

static const char *key_of(const network *q, char key[CLB_MODEL_KEY], int k, const char *what) {
  snprintf(key, CLB_MODEL_KEY, "layers.%d.%s.%d%s", q->block, q->what, k, what);
  return key;
}

/* A matrix k, whose factor includes the activation's before it; its columns: n_weights of the last
   one. */
static int64_t take_matrix(const network *q, int k, int64_t rows, int64_t *columns) {
  char key[CLB_MODEL_KEY];
  reader *r = q->r;
  key_of(q, key, k, "");
  const clb_tensor *t = r->status ? NULL : clb_safetensors_find(r->file, key);
  *columns = k == q->d->n - 1 ? q->n_weights : t && t->rank == 2 ? t->shape[1] : 0;
  if (t && (*columns < 1 || *columns > CLB_MODEL_WIDTH))
    clb_model_refuse(r, "'%s' must have 1 to %d columns", key, CLB_MODEL_WIDTH);
  return clb_model_take(r, key, 2, (const int64_t[]){rows, *columns},
                        (k ? q->d->activation.scale : 1) / (q->d->fan_in ? sqrt((double)rows) : 1));
}

static int64_t take_bias(const network *q, int k, int64_t columns) {
  char key[CLB_MODEL_KEY];
  return clb_model_take(q->r, key_of(q, key, k, ".bias"), 1, &columns, 1);
}

static int64_t take_norm(const network *q, int k, int64_t columns) {
  char key[CLB_MODEL_KEY];
  return clb_model_take(q->r, key_of(q, key, k, ".norm"), 2, (const int64_t[]){2, columns}, 1);
}

/* Rows that are added by the species of receivers (0) and senders. */
static int64_t take_end(const network *q, int end, int64_t columns) {
  char key[CLB_MODEL_KEY];
  snprintf(key, sizeof key, "layers.%d.%s.%s", q->block, q->what, end ? "senders" : "receivers");
  return clb_model_take(q->r, key, 2, (const int64_t[]){q->r->out->n_species, columns}, 1);
}

/* ---- layers of their own, which have derivatives by their weights ---- */

/* The matrix at an offset. */
static void add_matrix(const network *q, int from, int to, int64_t at) {
  clb_layer *y =
      clb_model_layer(q->r, &clb_linear_kind, sizeof(clb_linear), q->block, q->what, from, to);
  if (y) q->r->status = clb_linear_add(q->r->out, y->parameters, 0, 0, at);
}

/* Rows by the species of receivers (0) or senders, as rows by those of edges. */
static void add_end(const network *q, int end, int64_t columns, int to) {
  const int64_t species = q->r->out->n_species, from = take_end(q, end, columns),
                table = clb_model_reserve(q->r, species * species * columns);
  clb_arch_fill_pairs(q->r, table, columns, 0, end, from, columns);
  clb_arch_pair_rows(q->r, q->block, q->what, q->d->pairs, table, to);
}

/* What matrix k's product is added to. A bias is a matrix of the number 1. */
static void add_first_terms(const network *q, int k, int64_t columns, int to) {
  if (k) add_matrix(q, q->d->ones, to, take_bias(q, k, columns));
  for (int i = 0; i < 2 && !k; i++) add_end(q, i, columns, to);
}

static int add_norm(const network *q, int k, int64_t columns, int from) {
  const int to = clb_arch_scalars(q->r, CLB_PER_EDGE, columns);
  const int64_t at = take_norm(q, k, columns);
  clb_layer *y =
      clb_model_layer(q->r, &clb_norm_kind, sizeof(clb_norm), q->block, q->what, from, to);
  if (y)
    *(clb_norm *)y->parameters = (clb_norm){
        .variant = CLB_RMS_PLAIN, .centred = true, .epsilon = q->d->epsilon, .weights = at};
  return to;
}

static int add_activation(const network *q, int64_t columns, int from) {
  const int to = clb_arch_scalars(q->r, q->per, columns);
  clb_layer *y =
      clb_model_layer(q->r, &clb_gate_kind, sizeof(clb_gate), q->block, q->what, from, to);
  if (y)
    *(clb_gate *)y->parameters = (clb_gate){.scalars = clb_scalars(columns),
                                            .even = {q->d->activation.function, 1},
                                            .slopes = q->per == CLB_PER_KNOT};
  return to;
}

static int add_layers(const network *q, int basis) {
  int from = basis;
  for (int k = 0; k < q->d->n && !q->r->status; k++) {
    const int64_t rows = q->r->out->array[from]->irreps.dim;
    int64_t columns;
    const int64_t at = take_matrix(q, k, rows, &columns);
    const int to = clb_arch_scalars(q->r, q->per, columns);
    if (q->d->normalized) add_first_terms(q, k, columns, to);
    add_matrix(q, from, to, at);
    from = to;
    if (k == q->d->n - 1 || q->r->status) continue;
    if (q->d->normalized) from = add_norm(q, k, columns, from);
    from = add_activation(q, columns, from);
  }
  return from;
}

/* ---- the same at knots, between which edges are interpolated ---- */

/* The layer of an array of functions of lengths alone; NULL: it has others. */
static const clb_layer *basis_of(const clb_network *n, int array) {
  const int writer = clb_network_writer(n, array);
  const clb_layer *y = writer < 0 ? NULL : n->layer[writer];
  const clb_basis *p = y && y->kind == &clb_basis_kind ? y->parameters : NULL;
  const bool plain =
      p && y->in[0] == CLB_VECTORS && y->out[CLB_BASIS_CUTOFF] < 0 && !p->transformed && !p->width;
  return plain ? y : NULL;
}

static bool reads_basis(const clb_network *n, int array) {
  const int writer = clb_network_writer(n, array);
  return writer >= 0 && n->layer[writer]->kind == &clb_basis_kind;
}

/* At most so many intervals, one of which begins where XPLOR's cutoff does; false: they cannot. */
static bool make_grid(clb_knot_grid *grid, const clb_basis *p) {
  enum { FEWEST = 3 };
  const double on = p->cutoff_p ? 0 : p->cutoff_on / p->r_max;
  for (int64_t n = grid->intervals; n > grid->intervals / 2; n--) {
    const int64_t split = (int64_t)floor((double)n * on + 0.5);
    if (fabs((double)n * on - (double)split) > 1e-9 * (double)n) continue;
    if (n < FEWEST || (split && (split < FEWEST || n - split < FEWEST))) continue;
    *grid = (clb_knot_grid){p->r_max, n, split};
    return true;
  }
  return false;
}

/* The output of the network's layer of a kind, which it gets if it has none. */
static int output_of(reader *r, const clb_layer_kind *kind, size_t bytes, int from, clb_per per,
                     int64_t columns, clb_layer **layer) {
  const clb_network *n = r->out;
  *layer = NULL;
  for (int l = 0; l < n->n_layers; l++)
    if (n->layer[l]->kind == kind) return n->layer[l]->out[0];
  const int to = clb_arch_scalars(r, per, columns);
  *layer = clb_model_layer(r, kind, bytes, -1, "knots", from, to);
  return to;
}

static int add_spline(const network *q, const clb_layer *basis) {
  reader *r = q->r;
  clb_layer *y;
  const int places = output_of(r, &clb_places_kind, sizeof(clb_places), CLB_VECTORS, CLB_PER_EDGE,
                               CLB_SPLINE_ROWS, &y),
            knots = output_of(r, &clb_knots_kind, sizeof(clb_knots), -1, CLB_PER_KNOT,
                              ((const clb_basis *)basis->parameters)->n, &y);
  if (y) ((clb_knots *)y->parameters)->basis = basis;
  const int table = add_layers(q, knots), weights = clb_arch_scalars(r, CLB_PER_EDGE, q->n_weights);
  y = clb_model_layer(r, &clb_spline_kind, sizeof(clb_spline_layer), q->block, q->what, places,
                      weights);
  if (!y) return weights;
  y->in[CLB_SPLINE_TABLE] = table;
  y->gradients = 1U << CLB_SPLINE_PLACES;
  return weights;
}

/* ---- one layer ---- */

static void take_normalized(const network *q, clb_radial *p, int k) {
  for (int i = 0; i < 2 && !k; i++) p->ends[i] = take_end(q, i, p->width[1]);
  if (k) p->bias[k] = take_bias(q, k, p->width[k + 1]);
  if (k < p->n - 1) p->norm[k] = take_norm(q, k, p->width[k + 1]);
}

static int add_layer(const network *q, int basis) {
  reader *r = q->r;
  const int last = q->d->n - 1, weights = clb_arch_scalars(r, CLB_PER_EDGE, q->n_weights);
  int64_t hidden = 0;
  clb_layer *y =
      clb_model_layer(r, &clb_radial_kind, sizeof(clb_radial), q->block, q->what, basis, weights);
  clb_radial *p = y ? y->parameters : NULL;
  if (!y) return weights;
  *p = (clb_radial){.n = q->d->n,
                    .activation = q->d->activation.function,
                    .normalized = q->d->normalized,
                    .epsilon = q->d->epsilon};
  p->width[0] = r->out->array[basis]->irreps.dim;
  for (int k = 0; k <= last && !r->status; k++) {
    p->matrix[k] = take_matrix(q, k, p->width[k], &p->width[k + 1]);
    if (p->normalized) take_normalized(q, p, k);
    hidden += k == last ? 0 : (p->width[k + 1] + 3) / 4 * 4;
  }
  if (!hidden || p->normalized) return weights; /* whose values only a table has */
  y->out[CLB_RADIAL_HIDDEN] = clb_arch_scalars(r, CLB_PER_EDGE, hidden);
  y->work = clb_arch_scalars(r, CLB_PER_EDGE, hidden);
  return weights;
}

int clb_arch_radial(reader *r, int block, const char *what, const clb_arch_radial_desc *d,
                    int basis, int64_t n_weights) {
  network q = {r, d, block, what, n_weights, CLB_PER_EDGE};
  const clb_layer *known = d->normalized || r->status ? NULL : basis_of(r->out, basis);
  if (known && r->out->grid.intervals &&
      (r->out->grid.r_max > 0 || make_grid(&r->out->grid, known->parameters))) {
    q.per = CLB_PER_KNOT;
    return add_spline(&q, known);
  }
  const bool layers =
      r->out->trains || (d->normalized && !(r->out->knots && reads_basis(r->out, basis)));
  return layers ? add_layers(&q, basis) : add_layer(&q, basis);
}
