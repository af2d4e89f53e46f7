/* tools/new/label_statistics.c - what a new network takes from labelled structures. */
#include "tools/new/label_statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/cli/tool.h"
#include "tools/energy/all_frames.h"

/* Over frames: of atoms of each element. */
typedef struct {
  int64_t frames, atoms, edges;
  int64_t seen[CLB_ELEMENTS + 1];
  double G[CLB_ELEMENTS + 1][CLB_ELEMENTS + 1], b[CLB_ELEMENTS + 1]; /* of counts and energies */
  double squares, forces;                                            /* sum, and how many */
  double *rows; /* [n_rows][1 + CLB_ELEMENTS]: energy, counts of elements 1 ... */
  int64_t n_rows, room;
} sums;

static double *next_row(sums *t) {
  if (t->n_rows == t->room) {
    t->room = 2 * t->room + 64;
    t->rows = enlarge(t->rows, (size_t)t->room * (1 + CLB_ELEMENTS), sizeof *t->rows);
  }
  double *row = t->rows + t->n_rows++ * (1 + CLB_ELEMENTS);
  memset(row, 0, (1 + CLB_ELEMENTS) * sizeof *row);
  return row;
}

static void add_energy(sums *t, const structure *s) {
  double *row = next_row(t);
  row[0] = s->labels->energy;
  for (int64_t i = 0; i < s->n; i++) row[s->numbers[i]]++;
  for (int p = 1; p <= CLB_ELEMENTS; p++) {
    if (row[p] == 0) continue;
    t->b[p] += row[p] * row[0];
    for (int q = 1; q <= CLB_ELEMENTS; q++) t->G[p][q] += row[p] * row[q];
  }
}

static bool add_edges(sums *t, const structure *s, double r_max, const char *path) {
  clb_neighbours list = {.cutoff = r_max};
  const bool good =
      !clb_neighbours_update(&list, s->n, s->positions, &s->cell[0][0], s->periodic, NULL);
  if (!good) warn("%s, frame %lld: %s", path, (long long)s->frame, list.error);
  t->edges += list.n_edges;
  clb_neighbours_free(&list);
  return good;
}

static bool add_frame(sums *t, const structure *s, double r_max, const char *path) {
  t->frames++;
  t->atoms += s->n;
  for (int64_t i = 0; i < s->n; i++) t->seen[s->numbers[i]]++;
  if (s->n && isfinite(s->labels->energy)) add_energy(t, s);
  for (int64_t i = 0; s->labels->forces && i < 3 * s->n; i++) {
    const double f = s->labels->forces[i];
    if (!isfinite(f)) continue;
    t->squares += f * f;
    t->forces++;
  }
  return add_edges(t, s, r_max, path);
}

static bool add_file(sums *t, const char *path, const structure_options *reading, double r_max) {
  frame_file file;
  structure atoms;
  int found = -1;
  bool good = frames_open(&file, path, reading);
  while (good && (found = frames_next(&file, &atoms)) == 1) {
    good = add_frame(t, &atoms, r_max, path);
    structure_free(&atoms);
  }
  frames_close(&file);
  return good && !found;
}

static void find_shifts(const sums *t, label_statistics *s) {
  const int n = s->n_species;
  double *G = allocate((size_t)(n * n), sizeof *G), *b = allocate((size_t)n, sizeof *b);
  for (int p = 0; p < n; p++) {
    b[p] = t->b[s->number[p]];
    for (int q = 0; q < n; q++) G[p * n + q] = t->G[s->number[p]][s->number[q]];
  }
  least_squares(n, G, b, s->shift);
  free(G);
  free(b);
}

/* The root of the mean square of energies per atom, less shifts; 0 where that is rounding. */
static double left_of_energies(const sums *t, const label_statistics *s) {
  double sum = 0, whole = 0;
  for (int64_t i = 0; i < t->n_rows; i++) {
    const double *row = t->rows + i * (1 + CLB_ELEMENTS);
    double left = row[0], atoms = 0;
    for (int k = 0; k < s->n_species; k++) {
      left -= row[s->number[k]] * s->shift[k];
      atoms += row[s->number[k]];
    }
    sum += left * left / (atoms * atoms);
    whole += row[0] * row[0] / (atoms * atoms);
  }
  return sum > 1e-20 * whole ? sqrt(sum / (double)t->n_rows) : 0;
}

static void find_all(const sums *t, label_statistics *s) {
  *s = (label_statistics){.frames = t->frames, .atoms = t->atoms};
  for (int z = 1; z <= CLB_ELEMENTS; z++)
    if (t->seen[z]) s->number[s->n_species++] = z;
  find_shifts(t, s);
  s->scale = t->forces > 0 ? sqrt(t->squares / t->forces) : left_of_energies(t, s);
  if (!(s->scale > 0 && isfinite(s->scale))) s->scale = 1;
  s->neighbours = t->edges ? (double)t->edges / (double)t->atoms : 1;
}

bool label_statistics_read(const char *const *paths, int n, const structure_options *reading,
                           double r_max, label_statistics *s) {
  sums *t = allocate(1, sizeof *t);
  bool good = true;
  for (int i = 0; i < n && good; i++) good = add_file(t, paths[i], reading, r_max);
  if (good && !t->atoms) warn("%s: no frame has atoms", paths[0]);
  good = good && t->atoms;
  if (good) find_all(t, s);
  free(t->rows);
  free(t);
  return good;
}
