/* tools/convert/maps.h - e3nn's linear maps: from flat weights to one matrix per irrep. */
#ifndef CLB_TOOLS_CONVERT_MAPS_H
#define CLB_TOOLS_CONVERT_MAPS_H

#include "tools/convert/torch.h"

/* The second moment of silu of a normal variable is 1 with this factor. */
extern const double silu_scale;
/* The same of silu, tanh, abs, ssp, relu or sigmoid; 0: another. e3nn's normalize2mom estimates it
   from a million random numbers. */
double moment_scale(const char *name);

/* Puts `factor` times the numbers of w from `first` on; as they are, in their precision, where the
   factor is 1. */
void put_part(model *out, const weights *w, int64_t first, double factor, int rank,
              const int64_t *shape, const char *name);

/* The numbers of a map's weight: a block [channels in][inner][channels out] for every term of `in`
   whose irrep `to` has. */
int64_t map_numbers(const irreps *in, const irreps *to, int64_t inner);
/* Puts them as PREFIX.IRREP: the blocks of an irrep one below the other, times factor[k] (1: NULL)
   where it is term k of `to`. inner: species, or 0 where matrices have two dimensions. Terms of
   `in` of one irrep are neighbours. */
void put_map(model *out, const weights *w, const irreps *in, const irreps *to, int64_t inner,
             const double *factor, const char *prefix);

/* Keeps a matrix, each column times a factor. */
void put_columns(model *out, const weights *w, const int64_t shape[2], const double *factor,
                 const char *name);

#endif
