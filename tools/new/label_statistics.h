/* tools/new/label_statistics.h - what a new network takes from labelled structures. */
#ifndef CLB_TOOLS_NEW_LABEL_STATISTICS_H
#define CLB_TOOLS_NEW_LABEL_STATISTICS_H

#include "tools/structures/structure.h"

typedef struct {
  int n_species, number[CLB_ELEMENTS]; /* atomic numbers, ascending */
  double shift[CLB_ELEMENTS]; /* eV of an atom of each species: the least squares of energies; the
                                 shortest of all such vectors */
  double scale; /* eV / Angstrom: the root of the mean square of forces' components; without them,
                   eV: of energies per atom less shifts; 1 where that is 0 */
  double neighbours; /* of an atom within r_max, on average */
  int64_t frames, atoms;
} label_statistics;

/* Of all frames of n files. false, after a message. */
bool label_statistics_read(const char *const *paths, int n, const structure_options *reading,
                           double r_max, label_statistics *s);

/* x[n] of least |x| among those that minimize x^T G x - 2 b^T x; G[n][n], symmetric and without
   negative eigenvalues, is overwritten. */
void least_squares(int n, double *G, const double *b, double *x);

#endif
