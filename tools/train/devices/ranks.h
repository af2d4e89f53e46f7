/* tools/train/devices/ranks.h - the processes of a run under mpiexec. Without ranks_begin there is
   one, and sums and copies do nothing. */
#ifndef CLB_TOOLS_TRAIN_DEVICES_RANKS_H
#define CLB_TOOLS_TRAIN_DEVICES_RANKS_H

#include <stdbool.h>
#include <stdint.h>

/* How many there are, and which of them this is: of all, and of those on the same host. */
typedef struct {
  int n, rank, n_here, rank_here;
} rank_numbers;

/* Opens the MPI library by name, so that none is needed to build: $CLB_MPI, or the first found of
   the MPI standard's ABI, MPICH's (Intel's, Cray's) and Open MPI's. What is printed from now on is
   rank 0's. false, after a message. */
bool ranks_begin(void);
rank_numbers ranks_of_run(void);
/* x[n] becomes the sum over all ranks, to the same bits on all. */
void ranks_sum(int64_t n, double *x);
/* x[n] becomes that of rank 0. */
void ranks_copy(int64_t n, double *x);
/* At the end of the run; not good: the other processes end, too, if they wait or not. */
void ranks_end(bool good);

#endif
