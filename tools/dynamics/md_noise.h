/* tools/dynamics/md_noise.h - the normal deviates of a step, drawn by a thread of its own while the
   device computes the forces of the step before. */
#ifndef CLB_TOOLS_DYNAMICS_MD_NOISE_H
#define CLB_TOOLS_DYNAMICS_MD_NOISE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeros at first. */
typedef struct {
  uint64_t seed;
  int64_t step, n;
  double *normal; /* [n][3]: normal_triple of each atom */
  bool drawn, running;
  pthread_t thread;
} md_noise;

/* The deviates of n atoms in a step, until md_noise_draw. */
const double *md_noise_take(md_noise *z, uint64_t seed, int64_t step, int64_t n);
/* Lets the thread draw those of another step; those taken are no longer there. */
void md_noise_draw(md_noise *z, int64_t step);
void md_noise_free(md_noise *z);

#endif
