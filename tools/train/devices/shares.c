/* tools/train/devices/shares.c - see shares.h. */
#include "tools/train/devices/shares.h"

#include <stdlib.h>

#include "models/atoms/neighbours.h"
#include "tools/cli/tool.h"
#include "tools/train/devices/threads.h"

/* ---- sizes ---- */

typedef struct {
  int64_t n;
  const clb_model_atoms *atoms;
  double r_max, *sizes;
  int first, step, threads;
} measuring;

/* Edges that cannot be found are told of when they are computed. */
static void measure(void *user, int k) {
  const measuring *m = user;
  clb_neighbours list = {.cutoff = m->r_max};
  const int64_t step = (int64_t)m->step * m->threads;
  for (int64_t i = m->first + (int64_t)m->step * k; i < m->n; i += step) {
    const clb_model_atoms *a = &m->atoms[i];
    const bool periodic[3] = {a->periodic[0] != 0, a->periodic[1] != 0, a->periodic[2] != 0};
    clb_neighbours_forget(&list);
    m->sizes[i] = (double)a->n;
    if (!clb_neighbours_update(&list, a->n, a->positions, a->cell, periodic, NULL))
      m->sizes[i] += (double)list.n_edges;
  }
  clb_neighbours_free(&list);
}

void shares_measure(int64_t n, const clb_model_atoms *atoms, double r_max, int first, int step,
                    int threads, double *sizes) {
  measuring m = {n, atoms, r_max, sizes, first, step, threads};
  for (int64_t i = 0; i < n; i++) sizes[i] = 0;
  threads_run(threads, measure, &m);
}

/* ---- parts ---- */

typedef struct {
  double size;
  int64_t at, which;
  int part;
} item;

static int by_size(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->size > y->size || x->size < y->size) return x->size < y->size ? 1 : -1;
  return (x->at > y->at) - (x->at < y->at);
}

static int by_part(const void *a, const void *b) {
  const item *x = a, *y = b;
  if (x->part != y->part) return x->part < y->part ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

static int smallest(const double *load, int parts) {
  int p = 0;
  for (int k = 1; k < parts; k++)
    if (load[k] < load[p]) p = k;
  return p;
}

void shares_divide(const double *sizes, int64_t n, int64_t *which, int parts, int64_t *ends) {
  if (parts == 1) {
    ends[0] = n;
    return;
  }
  item *all = allocate((size_t)n, sizeof *all);
  double *load = allocate((size_t)parts, sizeof *load);
  for (int64_t i = 0; i < n; i++) all[i] = (item){sizes[which[i]], i, which[i], 0};
  qsort(all, (size_t)n, sizeof *all, by_size);
  for (int p = 0; p < parts; p++) ends[p] = 0;
  for (int64_t i = 0; i < n; i++) {
    const int p = all[i].part = smallest(load, parts);
    load[p] += all[i].size;
    ends[p]++;
  }
  qsort(all, (size_t)n, sizeof *all, by_part);
  for (int p = 1; p < parts; p++) ends[p] += ends[p - 1];
  for (int64_t i = 0; i < n; i++) which[i] = all[i].which;
  free(load);
  free(all);
}
