/* tools/dynamics/md_noise.c - normal deviates, drawn ahead by a thread. */
#include "tools/dynamics/md_noise.h"

#include <stdlib.h>

#include "tools/cli/tool.h"
#include "tools/common/philox.h"

static void *draw(void *noise) {
  const md_noise *z = noise;
  for (int64_t i = 0; i < z->n; i++) normal_triple(z->seed, z->step, i, z->normal + 3 * i);
  return NULL;
}

static void wait_for(md_noise *z) {
  if (z->running) pthread_join(z->thread, NULL);
  z->drawn |= z->running;
  z->running = false;
}

const double *md_noise_take(md_noise *z, uint64_t seed, int64_t step, int64_t n) {
  wait_for(z);
  if (z->drawn && z->seed == seed && z->step == step && z->n == n) return z->normal;
  if (z->n != n) {
    free(z->normal);
    z->normal = allocate((size_t)n, 3 * sizeof *z->normal);
  }
  z->seed = seed, z->step = step, z->n = n;
  draw(z);
  z->drawn = true;
  return z->normal;
}

/* Without a thread they are drawn when they are taken. */
void md_noise_draw(md_noise *z, int64_t step) {
  wait_for(z);
  z->step = step;
  z->drawn = false;
  z->running = !pthread_create(&z->thread, NULL, draw, z);
}

void md_noise_free(md_noise *z) {
  wait_for(z);
  free(z->normal);
}
