/* tools/common/philox.c - random numbers that are functions of a counter. */
#include "tools/common/philox.h"

#include <math.h>
#include <string.h>

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                              (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
    k[0] += 0x9e3779b9u;
    k[1] += 0xbb67ae85u;
  }
  memcpy(out, x, sizeof x);
}

/* Four numbers in (0, 1). */
static void uniform_four(uint64_t seed, int64_t step, int64_t atom, double out[4]) {
  const uint32_t counter[4] = {(uint32_t)atom, (uint32_t)((uint64_t)atom >> 32), (uint32_t)step,
                               (uint32_t)((uint64_t)step >> 32)};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t word[4];
  philox(counter, key, word);
  for (int i = 0; i < 4; i++) out[i] = ((double)word[i] + 0.5) * 0x1p-32;
}

/* The Box-Muller transform. */
void normal_triple(uint64_t seed, int64_t step, int64_t atom, double out[3]) {
  double u[4];
  uniform_four(seed, step, atom, u);
  const double pi = 3.14159265358979323846, r = sqrt(-2 * log(u[0])), q = sqrt(-2 * log(u[2]));
  out[0] = r * cos(2 * pi * u[1]);
  out[1] = r * sin(2 * pi * u[1]);
  out[2] = q * cos(2 * pi * u[3]);
}

/* Marsaglia and Tsang (2000): a normal deviate, cubed, and a rejection of a few percent. */
double gamma_deviate(uint64_t seed, int64_t step, int64_t atom, double shape) {
  const double d = shape - 1. / 3, c = 1 / sqrt(9 * d), pi = 3.14159265358979323846;
  for (;; atom--) {
    double u[4];
    uniform_four(seed, step, atom, u);
    const double x = sqrt(-2 * log(u[0])) * cos(2 * pi * u[1]), t = 1 + c * x, v = t * t * t;
    if (v > 0 && log(u[2]) < x * x / 2 + d - d * v + d * log(v)) return d * v;
  }
}
