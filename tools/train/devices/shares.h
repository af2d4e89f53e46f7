/* tools/train/devices/shares.h - how structures are divided among devices. */
#ifndef CLB_TOOLS_TRAIN_DEVICES_SHARES_H
#define CLB_TOOLS_TRAIN_DEVICES_SHARES_H

#include <clebsch/model.h>

/* sizes[n]: how long each structure takes, in atoms and edges, counted in so many threads: of
   structures `first`, first + step, ...; of others 0. */
void shares_measure(int64_t n, const clb_model_atoms *atoms, double r_max, int first, int step,
                    int threads, double *sizes);
/* Puts which[n], structures of these sizes, into an order by parts, in each as they were: part p
   ends before ends[p]. The largest one goes first, each to the part that is the smallest then. With
   one part `sizes` may be NULL. */
void shares_divide(const double *sizes, int64_t n, int64_t *which, int parts, int64_t *ends);

#endif
