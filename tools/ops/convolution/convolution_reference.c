/* tools/ops/convolution/convolution_reference.c - the graph convolution and two derivatives in
   float64: the tensor product's reference applied to each edge, summed for the rows that are
   compared. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/ops/convolution/convolution_data.h"

enum { TOGETHER = 32, MAX_THREADS = 16 }; /* edges per piece of work */

/* Work is a list of pieces: edges of one row of a sample, or, if rows are edges, several rows. */
typedef struct {
  owner owner;
  int64_t first_row, n_edges; /* first_row: index in the sample */
  const int32_t *edges;
} piece;

typedef struct {
  convolution_data *t;
  pthread_mutex_t lock;
  int64_t n, next;
  piece *piece;
} work;

/* One thread's rows of TOGETHER edges. */
typedef struct {
  double *in[REFERENCE_MAX_INPUTS], *out[REFERENCE_MAX_OUTPUTS], *scale[REFERENCE_MAX_OUTPUTS];
  double *slope, *slope_scale, *bend, *bend_scale; /* derivatives of weights by length,
                                                      [TOGETHER][W] */
  double along[TOGETHER], along_scale[TOGETHER];   /* incoming gradients along the length */
  double *g_w, *g_w_scale;                         /* of the backward pass, if there are incoming
                                                      gradients */
  /* With vectors: magnitudes of the unrounded inputs; gradients by y of the backward pass, and by
     vectors, with their scales. */
  double *size[REFERENCE_MAX_INPUTS], *g_y, *g_y_scale, *g_v, *g_v_scale;
} desk;

enum {
  ALONG = 5,
  ALONG_W,
  BY_Y = 1,
  BY_W
}; /* indices of b and c among inputs, and of gradients by y and w among results */

static int64_t full_width(const convolution_data *t, const tool_array *a) {
  return a->of == CLB_OPERAND_W ? t->sizes.w : a->of == CLB_OPERAND_Y ? t->sizes.y : a->width;
}

/* Weights that come from a table at the lengths of vectors, and gradients by them, are not arrays
   of the call. */
static bool needed(const convolution_data *t, int i) {
  const tool_array *a = &t->array[i];
  bool hidden = a->of == CLB_OPERAND_W && t->problem->table && t->problem->vectors;
  return a->width ||
         (hidden && (i == LENGTHS || (i == ALONG_W && !a->output && t->array[ALONG].width) ||
                     (a->output && t->array[t->inputs + BY_Y].width)));
}

static desk desk_make(const convolution_data *t) {
  desk d = {.along = {0}};
  double **by_weight[] = {&d.slope, &d.slope_scale, &d.bend, &d.bend_scale, &d.g_w, &d.g_w_scale};
  for (int i = 0; i < 6; i++)
    *by_weight[i] = allocate((size_t)t->sizes.w * TOGETHER + 1, sizeof(double));
  for (int i = 0; i < t->n; i++) {
    size_t n = (size_t)full_width(t, &t->array[i]) * TOGETHER + 1;
    if (i < t->inputs && convolution_has_sizes(t)) d.size[i] = allocate(n, sizeof(double));
    if (!needed(t, i)) continue;
    if (i < t->inputs) d.in[i] = allocate(n, sizeof(double));
    else
      d.out[i - t->inputs] = allocate(n, sizeof(double)),
                d.scale[i - t->inputs] = allocate(n, sizeof(double));
  }
  d.g_y = allocate((size_t)t->sizes.y * TOGETHER + 1, sizeof(double));
  d.g_y_scale = allocate((size_t)t->sizes.y * TOGETHER + 1, sizeof(double));
  d.g_v = allocate(3 * TOGETHER, sizeof(double));
  d.g_v_scale = allocate(3 * TOGETHER, sizeof(double));
  return d;
}

static void desk_free(desk *d) {
  for (int i = 0; i < REFERENCE_MAX_INPUTS; i++) free(d->in[i]), free(d->size[i]);
  for (int i = 0; i < REFERENCE_MAX_OUTPUTS; i++) free(d->out[i]), free(d->scale[i]);
  free(d->slope), free(d->slope_scale), free(d->bend), free(d->bend_scale), free(d->g_w),
      free(d->g_w_scale), free(d->g_y), free(d->g_y_scale), free(d->g_v), free(d->g_v_scale);
}

static int64_t row_of(const convolution_data *t, owner o, int64_t e) {
  return o == OF_SENDERS     ? t->graph.senders[e]
         : o == OF_RECEIVERS ? t->graph.receivers[e]
         : o == OF_ALL       ? 0
                             : e;
}

/* Weights at length r, and, as entry e of the desk, their derivatives and sizes. On the fine grid
   of `check` weights are smooth: what a length is rounded by matters less. */
static void weights_at(const convolution_data *t, double r, double *w, int64_t e, desk *d) {
  const int64_t n = t->sizes.w;
  const reference_position p = reference_position_at(&t->grid, r);
  for (int64_t j = 0; j < n; j++) {
    const reference_weight a = reference_spline_at(&t->grid, t->table, &p, j);
    const double size = a.size * (t->problem->knots ? 1 + p.rounding : 1);
    w[j] = a.w;
    if (convolution_has_sizes(t)) d->size[LENGTHS][e * n + j] = t->problem->knots ? size : a.w;
    d->slope[e * n + j] = a.slope;
    d->slope_scale[e * n + j] = p.rate * size;
    d->bend[e * n + j] = a.bend;
    d->bend_scale[e * n + j] = (p.rate * p.rate + fabs(p.turn)) * size;
  }
}

/* The edge whose vector this edge uses. */
static int64_t vector_of(const convolution_data *t, int64_t e) {
  return t->array[VECTORS].repeats ? 0 : e;
}

static void gather(const convolution_data *t, const piece *p, desk *d) {
  for (int i = 0; i < t->inputs; i++) {
    const tool_array *a = &t->array[i];
    for (int64_t e = 0; needed(t, i) && e < p->n_edges; e++) {
      double *to = d->in[i] + e * full_width(t, a);
      const double *row = convolution_row(t, i, row_of(t, t->owner[i], p->edges[e]));
      int64_t edge = vector_of(t, p->edges[e]);
      if (t->problem->table && i == LENGTHS)
        weights_at(t,
                   t->length[t->problem->vectors ? edge
                             : a->repeats        ? 0
                                                 : p->edges[e]],
                   to, e, d);
      else if (t->problem->table && i == ALONG_W) {
        if (t->problem->vectors)
          d->along[e] = convolution_length_along(t, edge, convolution_row(t, ALONG, p->edges[e]),
                                                 &d->along_scale[e]);
        else d->along[e] = *row, d->along_scale[e] = fabs(*row);
        for (int64_t j = 0; j < t->sizes.w; j++) to[j] = d->along[e] * d->slope[e * t->sizes.w + j];
      } else if (t->problem->vectors && i == VECTORS)
        convolution_harmonics_of(t, edge, to, d->size[i] + e * t->sizes.y);
      else if (t->problem->vectors && i == ALONG)
        convolution_harmonics_along(t, edge, row, to, d->size[i] + e * t->sizes.y);
      else memcpy(to, row, (size_t)a->width * sizeof *to);
      const bool sized =
          (t->problem->vectors && a->of == CLB_OPERAND_Y) || (t->problem->table && i == LENGTHS);
      if (convolution_has_sizes(t) && !sized)
        memcpy(d->size[i] + e * full_width(t, a), to, (size_t)full_width(t, a) * sizeof *to);
      for (int64_t j = 0;
           convolution_has_sizes(t) && t->problem->table && i == ALONG_W && j < t->sizes.w; j++)
        d->size[i][e * t->sizes.w + j] = d->along_scale[e] * d->slope_scale[e * t->sizes.w + j];
    }
  }
}

/* Tensor products of a piece, and the scales of their errors. */
static void multiply(const convolution_data *t, clb_pass pass, int64_t n, const desk *d,
                     double *const *out, double *const *scale) {
  reference_product_run(t->product, pass, n, (const double *const *)d->in, (double **)out,
                        (double **)scale);
  if (!convolution_has_sizes(t)) return;
  const double *size[REFERENCE_MAX_INPUTS] = {NULL};
  double *unused[REFERENCE_MAX_OUTPUTS] = {NULL};
  for (int i = 0; i < t->inputs; i++) size[i] = d->in[i] ? d->size[i] : NULL;
  for (int o = 0; o < reference_outputs(pass); o++)
    if (out[o])
      unused[o] = allocate((size_t)(n * (t->sizes.x + t->sizes.y + t->sizes.w + t->sizes.z)) + 1,
                           sizeof(double));
  reference_product_run(t->product, pass, n, size, unused, (double **)scale);
  for (int o = 0; o < REFERENCE_MAX_OUTPUTS; o++) free(unused[o]);
}

/* The backward pass's gradients of y and w, whose derivatives are needed if there are incoming
   gradients of them. */
static void multiply_once(const convolution_data *t, int64_t n, const desk *d) {
  double *out[REFERENCE_MAX_OUTPUTS] = {[BY_Y] = d->g_y, [BY_W] = d->g_w},
         *scale[REFERENCE_MAX_OUTPUTS] = {[BY_Y] = d->g_y_scale, [BY_W] = d->g_w_scale};
  if (d->in[ALONG] || d->in[ALONG_W]) multiply(t, CLB_BACKWARD, n, d, out, scale);
}

/* Adds the contribution of weight i to the gradient by the length of edge e; returns its
   contribution to the scale. */
static double by_length(const convolution_data *t, const desk *d, int64_t e, int64_t i, double *g) {
  int64_t at = e * t->sizes.w + i;
  *g += d->out[BY_W][at] * d->slope[at] + d->along[e] * d->g_w[at] * d->bend[at];
  return d->scale[BY_W][at] * d->slope_scale[at] +
         d->along_scale[e] * d->g_w_scale[at] * d->bend_scale[at];
}

/* Converts to gradients by vectors. */
static void convert_to_vectors(const convolution_data *t, const piece *p, desk *d) {
  bool bends = t->pass == CLB_DOUBLE_BACKWARD && t->array[ALONG].width;
  int64_t y = t->sizes.y, w = t->sizes.w;
  for (int64_t e = 0; e < p->n_edges; e++) {
    int64_t edge = vector_of(t, p->edges[e]);
    double *g_v = d->g_v + 3 * e, *size = d->g_v_scale + 3 * e, g_r = 0, g_r_scale = 0;
    convolution_by_vector(t, edge, d->out[BY_Y] + e * y, d->scale[BY_Y] + e * y, g_v, size);
    const double *h = bends ? convolution_row(t, ALONG, p->edges[e]) : NULL;
    if (bends) convolution_bend(t, edge, d->g_y + e * y, d->g_y_scale + e * y, h, g_v, size);
    for (int64_t i = 0; i < w && t->problem->table; i++) g_r_scale += by_length(t, d, e, i, &g_r);
    convolution_by_length(t, edge, g_r, g_r_scale, g_v, size);
    g_r = g_r_scale = 0;
    for (int64_t i = e * w; i < (e + 1) * w && bends && t->problem->table; i++)
      g_r += d->g_w[i] * d->slope[i], g_r_scale += d->g_w_scale[i] * d->slope_scale[i];
    if (bends) convolution_bend_length(t, edge, g_r, g_r_scale, h, g_v, size);
  }
}

/* Adds the contribution of one edge to a row of results. */
static void add_edge(const convolution_data *t, const tool_array *a, const desk *d, int o,
                     int64_t e, double *wanted, double *scale) {
  double factor = t->problem->scale != 0 ? t->problem->scale : 1;
  int64_t n = full_width(t, a);
  bool vector = t->problem->vectors && a->of == CLB_OPERAND_Y;
  for (int i = 0; i < 3 && vector; i++)
    wanted[i] += factor * d->g_v[3 * e + i], scale[i] += fabs(factor) * d->g_v_scale[3 * e + i];
  bool length = a->of == CLB_OPERAND_W && t->problem->table;
  for (int64_t i = 0; i < n && a->width && !vector; i++) {
    double g = 0, size = length ? by_length(t, d, e, i, &g) : d->scale[o][e * n + i];
    wanted[length ? 0 : i] += factor * (length ? g : d->out[o][e * n + i]);
    scale[length ? 0 : i] += fabs(factor) * size;
  }
}

static void do_piece(work *w, const piece *p, desk *d) {
  convolution_data *t = w->t;
  double *out[REFERENCE_MAX_OUTPUTS] = {NULL};
  gather(t, p, d);
  for (int i = t->inputs; i < t->n; i++)
    if (t->owner[i] == p->owner) out[i - t->inputs] = d->out[i - t->inputs];
  multiply(t, t->pass, p->n_edges, d, out, d->scale);
  if (p->owner == OF_EDGES) multiply_once(t, p->n_edges, d);
  if (t->problem->vectors && t->pass != CLB_FORWARD && out[BY_Y]) convert_to_vectors(t, p, d);
  pthread_mutex_lock(&w->lock);
  for (int i = t->inputs; i < t->n; i++)
    for (int64_t e = 0; out[i - t->inputs] && e < p->n_edges; e++) {
      int64_t at = (p->first_row + (p->owner == OF_EDGES ? e : 0)) * t->array[i].width;
      add_edge(t, &t->array[i], d, i - t->inputs, e, t->wanted[i] + at, t->scale[i] + at);
    }
  pthread_mutex_unlock(&w->lock);
}

static void *worker(void *user) {
  work *w = user;
  desk d = desk_make(w->t);
  for (;;) {
    pthread_mutex_lock(&w->lock);
    int64_t i = w->next++;
    pthread_mutex_unlock(&w->lock);
    if (i >= w->n) break;
    do_piece(w, &w->piece[i], &d);
  }
  desk_free(&d);
  return NULL;
}

/* ---- the list of pieces ---- */

static bool asked(const convolution_data *t, owner o) {
  for (int i = t->inputs; i < t->n; i++)
    if (t->owner[i] == o && t->array[i].width) return true;
  return false;
}

static void add_pieces(work *w, owner o, int64_t first_row, const int32_t *edges, int64_t n) {
  for (int64_t i = 0; i < n; i += TOGETHER) {
    if (!(w->n & (w->n + 1)))
      w->piece = enlarge(w->piece, (size_t)(2 * w->n + 2), sizeof *w->piece);
    w->piece[w->n++] = (piece){o, first_row + (o == OF_EDGES ? i : 0),
                               n - i < TOGETHER ? n - i : TOGETHER, edges + i};
  }
}

static void list_pieces(work *w) {
  const convolution_data *t = w->t;
  for (int o = 0; o < OWNERS; o++) {
    const sample *s = &t->sample[o];
    if (!asked(t, (owner)o)) continue;
    if (o == OF_EDGES) add_pieces(w, OF_EDGES, 0, s->row, s->n);
    for (int64_t i = 0; o != OF_EDGES && i < s->n; i++) {
      int64_t first = t->by[o].first[s->row[i]];
      add_pieces(w, (owner)o, i, t->by[o].edge + first, t->by[o].first[s->row[i] + 1] - first);
    }
  }
}

static void run_all(work *w) {
  pthread_t thread[MAX_THREADS];
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int n = 0, max = w->n < 4 ? 0 : cores > MAX_THREADS ? MAX_THREADS : (int)cores - 1;
  while (n < max && !pthread_create(&thread[n], NULL, worker, w)) n++;
  worker(w);
  while (n > 0) pthread_join(thread[--n], NULL);
}

void convolution_data_answer(void *graph, double *const *values, double *const *wanted,
                             double *const *scale) {
  convolution_data *t = graph;
  work w = {.t = t};
  t->values = values, t->wanted = wanted, t->scale = scale;
  pthread_mutex_init(&w.lock, NULL);
  list_pieces(&w);
  run_all(&w);
  pthread_mutex_destroy(&w.lock);
  free(w.piece);
}
