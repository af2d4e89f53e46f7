/* tools/common/philox.h - counter-based random numbers: a continued run gets the same ones as
   an uninterrupted run. */
#ifndef CLB_TOOLS_COMMON_PHILOX_H
#define CLB_TOOLS_COMMON_PHILOX_H

#include <stdint.h>

/* Philox4x32-10 (Salmon et al., 2011): four random words, a function of counter and key alone. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Three normal deviates, a function of the seed, the step and the atom alone. */
void normal_triple(uint64_t seed, int64_t step, int64_t atom, double out[3]);
/* A deviate of the gamma distribution with shape >= 1 and scale 1, a function of the seed, the step
   and the atom: it uses that atom's numbers, and may use those of the atoms before it. */
double gamma_deviate(uint64_t seed, int64_t step, int64_t atom, double shape);

#endif
