/* tools/rdf/rdf_count.h - radial distribution functions of trajectories. */
#ifndef CLB_TOOLS_RDF_RDF_COUNT_H
#define CLB_TOOLS_RDF_RDF_COUNT_H

#include "tools/structures/structure.h"

enum { RDF_PAIRS = 4, RDF_BINS = 2000 };

typedef struct {
  int of[2]; /* atomic numbers */
} rdf_pair;

/* g of some pairs of species, in bins of equal widths from 0 to r_max. */
typedef struct {
  double r_max; /* Angstrom; 0: half the least height of the first cell */
  int n_pairs, n_bins;
  rdf_pair pair[RDF_PAIRS];
  int64_t frames;
  double sum[RDF_PAIRS][RDF_BINS]; /* over frames: pairs in a bin, times volume over all pairs */
} rdf_count;

/* Adds all frames of a file but the first `skip`. false, after a message: it cannot be read, a cell
   is not periodic in three directions, or there are no such pairs. */
bool rdf_add_file(rdf_count *c, const char *path, int64_t skip);
/* g of a pair in a bin: 1 where atoms know nothing of each other. */
double rdf_value(const rdf_count *c, int pair, int bin);

#endif
