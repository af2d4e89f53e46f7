/* tools/rdf/rdf_count.c - radial distribution functions of trajectories. */
#include "tools/rdf/rdf_count.h"

#include <math.h>

#include "models/atoms/neighbours.h"
#include "tools/energy/all_frames.h"

static const double pi = 3.14159265358979323846;

static double atoms_of(const structure *s, int number) {
  double n = 0;
  for (int64_t i = 0; i < s->n; i++) n += s->numbers[i] == number;
  return n;
}

static void add_edges(rdf_count *c, const structure *s, const clb_neighbours *list,
                      const double factor[RDF_PAIRS]) {
  for (int64_t e = 0; e < list->n_edges; e++) {
    const int a = s->numbers[list->receivers[e]], b = s->numbers[list->senders[e]];
    double v[3];
    clb_neighbours_vector(list, s->positions, e, v);
    const double r = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    const int bin = (int)(r / c->r_max * c->n_bins);
    for (int p = 0; p < c->n_pairs && bin < c->n_bins; p++)
      if (a == c->pair[p].of[0] && b == c->pair[p].of[1]) c->sum[p][bin] += factor[p];
  }
}

static bool add_frame(rdf_count *c, const structure *s, const char *path) {
  const double volume = clb_cell_volume(&s->cell[0][0]);
  double factor[RDF_PAIRS], height[3];
  if (!s->periodic[0] || !s->periodic[1] || !s->periodic[2] ||
      !clb_cell_heights(&s->cell[0][0], s->periodic, height)) {
    warn("%s, frame %lld: its cell is not periodic in three directions", path, (long long)s->frame);
    return false;
  }
  for (int p = 0; p < c->n_pairs; p++) {
    const double n = atoms_of(s, c->pair[p].of[0]) * atoms_of(s, c->pair[p].of[1]);
    if (!(n > 0)) {
      warn("%s, frame %lld: it has no pair %s-%s", path, (long long)s->frame,
           clb_element_symbols[c->pair[p].of[0]], clb_element_symbols[c->pair[p].of[1]]);
      return false;
    }
    factor[p] = volume / n;
  }
  if (!(c->r_max > 0)) c->r_max = fmin(height[0], fmin(height[1], height[2])) / 2;
  clb_neighbours list = {.cutoff = c->r_max};
  const bool good =
      !clb_neighbours_update(&list, s->n, s->positions, &s->cell[0][0], s->periodic, NULL);
  if (good) add_edges(c, s, &list, factor);
  else warn("%s, frame %lld: %s", path, (long long)s->frame, list.error);
  clb_neighbours_free(&list);
  c->frames++;
  return good;
}

bool rdf_add_file(rdf_count *c, const char *path, int64_t skip) {
  frame_file file;
  structure atoms;
  int found = -1;
  int64_t last = 0;
  bool good = frames_open(&file, path, NULL);
  while (good && (found = frames_next(&file, &atoms)) == 1) {
    last = atoms.frame;
    if (last > skip) good = add_frame(c, &atoms, path);
    structure_free(&atoms);
  }
  frames_close(&file);
  if (good && !found && last <= skip) {
    warn("%s: it has %lld frames, all of which --skip leaves out", path, (long long)last);
    good = false;
  }
  return good && !found;
}

double rdf_value(const rdf_count *c, int pair, int bin) {
  const double width = c->r_max / c->n_bins, low = width * bin, high = width * (bin + 1),
               shell = 4 * pi / 3 * (high * high * high - low * low * low);
  return c->sum[pair][bin] / ((double)c->frames * shell);
}
