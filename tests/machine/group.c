/* tests/machine/group.c - random numbers, rubbish, and the order in which the threads of a group
   run. */
#include "tests/machine/machine.h"

#include <stdlib.h>

enum { MAX_STEPS = 200 };

uint64_t machine_draw(uint64_t *random) { /* splitmix64 */
  uint64_t z = *random += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

uint32_t *machine_junk(uint64_t *random) {
  uint32_t *junk = malloc(MACHINE_JUNK * sizeof *junk);
  for (int k = 0; junk && k < MACHINE_JUNK; k++) {
    uint64_t r = machine_draw(random);
    junk[k] = (uint32_t)r | (r >> 63 ? 0x7ff80000u : 0);
  }
  return junk;
}

bool machine_run_group(const machine_group *g, uint64_t *random) {
  for (;;) {
    int running = 0, waiting = 0;
    for (int k = 0; k < g->n; k++) {
      if (*g->state[k] == MACHINE_FAILED) return false;
      running += *g->state[k] == MACHINE_RUNS;
      waiting += *g->state[k] == MACHINE_WAITS;
    }
    if (!running && !waiting) return true;
    if (!running) {
      g->release(g->thread, g->n);
      continue;
    }
    int which = g->in_order ? 0 : (int)(machine_draw(random) % (uint64_t)running), at = 0;
    while (*g->state[at] != MACHINE_RUNS || which--) at++;
    g->advance(g->thread[at],
               g->n == 1 || g->in_order ? UINT64_MAX : 1 + machine_draw(random) % MAX_STEPS);
  }
}
