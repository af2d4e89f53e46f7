/* tools/common/random.c - random numbers that are the same on all machines. */
#include "tools/common/random.h"

double random_number(uint64_t *seed) { /* splitmix64 */
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}
