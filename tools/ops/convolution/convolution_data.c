/* tools/ops/convolution/convolution_data.c - the host's part of a test run of a graph convolution:
   arrays, their values, the rows that are compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/dtype.h"
#include "tools/ops/convolution/convolution_data.h"

/* ---- arrays ---- */

enum { BLOCK = 1 << 18 }; /* about as many values of an array are different */

static void describe_arrays(convolution_data *t) {
  static const owner owners[] = {[CLB_OPERAND_X] = OF_SENDERS,
                                 [CLB_OPERAND_Y] = OF_EDGES,
                                 [CLB_OPERAND_W] = OF_EDGES,
                                 [CLB_OPERAND_Z] = OF_RECEIVERS};
  const int64_t rows[] = {t->graph.n_senders, t->graph.n_edges, t->graph.n_receivers, 1};
  const bool vectors = t->problem->vectors, splines = t->problem->table;
  tool_operands o = {.kinds = 0};
  tensor_operands(&t->problem->product.desc, t->sizes, &o);
  if (vectors) o.width[CLB_OPERAND_Y] = 3;
  if (splines) o.width[CLB_OPERAND_W] = !vectors && t->sizes.w;
  t->n = operand_arrays(&clb_signature_tensor_product, &o, t->pass, t->array);
  for (int i = 0; i < t->n; i++) {
    tool_array *a = &t->array[i];
    t->inputs += !a->output;
    t->owner[i] = a->one_row ? OF_ALL : owners[a->of];
    a->repeats = !a->output && a->of != CLB_OPERAND_X && t->data.layout == LAYOUT_REPEAT;
    a->rows = a->repeats ? 1 : rows[t->owner[i]];
    const bool given = (i == VECTORS && vectors) || (i == LENGTHS && splines);
    a->period = !a->width || given || a->rows < BLOCK / a->width ? a->rows : BLOCK / a->width + 1;
  }
}

int convolution_data_arrays(const void *graph, tool_array *arrays) {
  const convolution_data *t = graph;
  for (int i = 0; i < t->n; i++) {
    arrays[i] = t->array[i];
    arrays[i].one_row = arrays[i].indexed = false;
    arrays[i].n_compared = t->sample[t->owner[i]].n;
    if (arrays[i].output) arrays[i].compared = t->sample[t->owner[i]].row;
  }
  return t->n;
}

const double *convolution_row(const convolution_data *t, int i, int64_t row) {
  const tool_array *a = &t->array[i];
  return t->values[i] + (a->repeats ? 0 : row % a->period) * a->width;
}

/* ---- values ---- */

static void round_to_storage(clb_dtype storage, double *values, void *stored, int64_t n) {
  encode(storage, values, stored, n);
  decode(storage, stored, values, n);
}

/* Rows of nodes without edges hold NaN: nothing reads them. */
static void spoil(const convolution_data *t, int i, double *values) {
  const tool_array *a = &t->array[i];
  const owner of = t->owner[i];
  for (int64_t r = 0; r < a->period && (of == OF_SENDERS || of == OF_RECEIVERS); r++)
    for (int64_t j = 0; t->by[of].first[r + 1] == t->by[of].first[r] && j < a->width; j++)
      values[r * a->width + j] = NAN;
}

void convolution_data_fill(const void *graph, double *const *values, uint64_t *seed) {
  const convolution_data *t = graph;
  for (int i = 0; i < t->inputs; i++) {
    const tool_array *a = &t->array[i];
    const double *given = i == VECTORS && t->problem->vectors ? t->graph.vector
                          : i == LENGTHS && t->problem->table ? t->length
                                                              : NULL;
    for (int64_t j = 0; j < a->period * a->width; j++)
      values[i][j] = given ? given[j] : random_number(seed);
    if (t->data.hard && a->period == a->rows && !a->repeats) spoil(t, i, values[i]);
  }
}

reference_grid convolution_grid(const convolution_problem *p) {
  reference_grid g = {KNOTS, FIRST_KNOT, LAST_KNOT, 0, 0, 0};
  if (p->knots) g = (reference_grid){p->knots, p->first_knot, p->last_knot, 0, 0, 0};
  if (p->break_at != 0) reference_grid_break(&g, p->break_at);
  return p->table ? g : (reference_grid){0};
}

bool convolution_has_sizes(const convolution_data *t) {
  return t->problem->vectors || t->problem->knots;
}

/* Each weight is 2 plus two waves: it is never near 0, where the rounding of lengths would cause
   large relative errors. On other grids they are random. */
static void fill_table(convolution_data *t) {
  const int knots = t->grid.knots;
  size_t n = (size_t)knots * (size_t)t->sizes.w;
  uint64_t seed = 5;
  t->grid.width = t->sizes.w;
  t->weights = allocate(n, sizeof *t->weights);
  t->table = allocate(2 * (n + (size_t)t->sizes.w), sizeof *t->table);
  for (int64_t w = 0; w < t->sizes.w && !t->problem->knots; w++)
    for (int wave = 0; wave < 2; wave++) {
      double height = random_number(&seed) / 2, frequency = 1 + random_number(&seed),
             phase = 3 * random_number(&seed);
      for (int k = 0; k < knots; k++)
        t->weights[(int64_t)k * t->sizes.w + w] +=
            1 + height * sin(frequency * reference_knot(&t->grid, k) + phase);
    }
  for (size_t i = 0; i < n && t->problem->knots; i++) t->weights[i] = random_number(&seed);
  reference_spline_make(&t->grid, t->weights, t->table);
}

/* ---- rows that are compared ---- */

enum { SAMPLED = 24, SAMPLED_EDGES = 256 };
#define SAMPLED_TERMS 3e8 /* approximate limit of terms, for a few seconds of work */

static int ascending(const void *a, const void *b) {
  return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

static void put_in_order(sample *s) {
  int64_t n = 0;
  qsort(s->row, (size_t)s->n, sizeof *s->row, ascending);
  for (int64_t i = 0; i < s->n; i++)
    if (!i || s->row[i] != s->row[i - 1]) s->row[n++] = s->row[i];
  s->n = n;
}

static int64_t degree(const edges_by_row *by, int64_t row) {
  return by->first[row + 1] - by->first[row];
}

static int32_t busiest(const edges_by_row *by, int64_t rows) {
  int32_t best = 0;
  for (int32_t r = 1; r < rows; r++)
    if (degree(by, r) > degree(by, best)) best = r;
  return best;
}

/* The row with the most edges, the first, the last and some others, as long as they do not have too
   many edges. */
static void choose_nodes(const convolution_data *t, const edges_by_row *by, int64_t rows, sample *s,
                         uint64_t *seed) {
  double spent = 0, edge = (double)(t->sizes.x + t->sizes.y + t->sizes.z + t->sizes.w);
  s->row = allocate(SAMPLED, sizeof *s->row);
  for (int i = 0; rows && i < SAMPLED && spent < SAMPLED_TERMS; i++) {
    int32_t row = i == 0   ? busiest(by, rows)
                  : i == 1 ? 0
                  : i == 2 ? (int32_t)(rows - 1)
                           : (int32_t)((random_number(seed) + 1) / 2 * (double)rows);
    s->row[s->n++] = row;
    spent += edge * (double)degree(by, row);
  }
  put_in_order(s);
}

/* The last edge, and some of each chosen receiver. */
static void choose_edges(const convolution_data *t, sample *s) {
  const sample *nodes = &t->sample[OF_RECEIVERS];
  const edges_by_row *by = &t->by[OF_RECEIVERS];
  s->row = allocate(SAMPLED_EDGES, sizeof *s->row);
  if (t->graph.n_edges) s->row[s->n++] = (int32_t)(t->graph.n_edges - 1);
  for (int64_t i = 0; i < nodes->n; i++) {
    int64_t n = degree(by, nodes->row[i]), max = (SAMPLED_EDGES - 1) / nodes->n;
    for (int64_t j = 0; j < n && j < max; j++)
      s->row[s->n++] =
          by->edge[by->first[nodes->row[i]] + (n <= max ? j : j * (n - 1) / (max - 1))];
  }
  put_in_order(s);
}

static void choose_all(sample *s, int64_t rows) {
  s->n = rows;
  s->row = allocate((size_t)rows, sizeof *s->row);
  for (int32_t r = 0; r < rows; r++) s->row[r] = r;
}

static void choose(convolution_data *t) {
  uint64_t seed = 3;
  const convolution_graph *g = &t->graph;
  double edge = (double)(t->sizes.x + t->sizes.y + t->sizes.z + t->sizes.w);
  choose_all(&t->sample[OF_ALL], t->whole || edge * (double)g->n_edges < SAMPLED_TERMS);
  if (t->whole) {
    choose_all(&t->sample[OF_SENDERS], g->n_senders);
    choose_all(&t->sample[OF_RECEIVERS], g->n_receivers);
    choose_all(&t->sample[OF_EDGES], g->n_edges);
    return;
  }
  choose_nodes(t, &t->by[OF_SENDERS], g->n_senders, &t->sample[OF_SENDERS], &seed);
  choose_nodes(t, &t->by[OF_RECEIVERS], g->n_receivers, &t->sample[OF_RECEIVERS], &seed);
  choose_edges(t, &t->sample[OF_EDGES]);
}

/* ---- all data ---- */

/* Vectors that are 0, along the polar axis, up and down, and nearly so; in f16 and bf16 none is
   short, so that nothing leaves their range. */
static void choose_vectors(convolution_data *t) {
  const reference_grid *g = &t->grid;
  const double size = g->knots ? g->last / 2 : 1;
  uint64_t seed = 11;
  for (int64_t e = 0; e < t->graph.n_edges; e++) {
    double *v = t->graph.vector + 3 * e;
    for (int i = 0; i < 3; i++) v[i] = size * random_number(&seed);
    if (t->kernel->storage >= CLB_F16) v[0] += v[0] < 0 ? -size : size;
    if (e % 11 == 4) v[0] = v[1] = v[2] = 0;
    if (e % 7 != 2) continue;
    v[0] *= e % 3 ? 0 : 0x1p-9;
    v[1] += v[1] < 0 ? -size : size;
    v[2] = 0;
  }
}

/* Lengths between knots, on them, below the first, beyond the last, far away. */
static void choose_lengths(convolution_data *t) {
  const reference_grid *g = &t->grid;
  const double h = (g->last - g->first) / (g->knots - 1);
  uint64_t seed = 12;
  for (int64_t e = 0; e < t->graph.n_edges; e++) {
    const double luck = (random_number(&seed) + 1) / 2;
    t->length[e] = e % 7 == 3   ? reference_knot(g, (int)(e / 7 % g->knots))
                   : e % 7 == 4 ? g->first - h * (luck + 0.1)
                   : e % 7 == 5 ? e % 3 ? g->last + 2 * h * (luck + 0.1) : 49152
                                : g->first + luck * (g->last - g->first);
  }
}

/* Rounds vectors, or lengths, to the storage type. */
static void round_edges(convolution_data *t) {
  int64_t n = 3 * t->graph.n_edges;
  void *stored = allocate((size_t)n, dtype_bytes(t->kernel->storage));
  t->length = allocate((size_t)t->graph.n_edges, sizeof *t->length);
  if (t->problem->vectors && t->data.hard) choose_vectors(t);
  if (t->problem->vectors) round_to_storage(t->kernel->storage, t->graph.vector, stored, n);
  for (int64_t e = 0; e < t->graph.n_edges; e++)
    t->length[e] = convolution_graph_length(&t->graph, e);
  if (t->problem->table && !t->problem->vectors && t->data.hard) choose_lengths(t);
  if (!t->problem->vectors)
    round_to_storage(t->kernel->storage, t->length, stored, t->graph.n_edges);
  free(stored);
}

void *convolution_data_make(const tool_kernel *kernel, clb_pass pass, const tool_data *data) {
  convolution_data *t = allocate(1, sizeof *t);
  *t =
      (convolution_data){.problem = kernel->problem, .kernel = kernel, .pass = pass, .whole = data};
  if (data) t->data = *data;
  progress("making the graph");
  convolution_graph_make(&t->graph, t->problem, t->data.rows);
  tensor_problem of_edge = t->problem->product; /* each edge has its own row of gradients of
                                                   weights */
  of_edge.desc.shared_weights = 0;
  t->product = tensor_problem_reference(&of_edge);
  t->sizes = reference_product_sizes(t->product);
  describe_arrays(t);
  t->grid = convolution_grid(t->problem);
  if (t->problem->table) fill_table(t);
  round_edges(t);
  if (t->problem->vectors) convolution_harmonics_make(t);
  edges_by_row_make(&t->by[OF_SENDERS], t->graph.senders, t->graph.n_senders, t->graph.n_edges);
  edges_by_row_make(&t->by[OF_RECEIVERS], t->graph.receivers, t->graph.n_receivers,
                    t->graph.n_edges);
  int32_t *same = allocate((size_t)t->graph.n_edges, sizeof *same);
  edges_by_row_make(&t->by[OF_ALL], same, 1, t->graph.n_edges);
  free(same);
  choose(t);
  return t;
}

void convolution_data_free(void *graph) {
  convolution_data *t = graph;
  if (!t) return;
  convolution_graph_free(&t->graph);
  for (int i = 0; i < OWNERS; i++) {
    edges_by_row_free(&t->by[i]);
    free(t->sample[i].row);
  }
  reference_product_destroy(t->product);
  free(t->weights);
  free(t->table);
  free(t->length);
  free(t);
}
