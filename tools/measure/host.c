/* tools/measure/host.c - what the host's processors give to this process, measured by plain
   threads, one for each. */
#define _GNU_SOURCE
#include "tools/measure/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tools/measure/timing.h"

/* Bytes of a thread, more than its caches and a multiple of a huge page; repeats; turns of
   arithmetic between looks at the clock, and those looks; numbers that fill the registers. */
enum {
  HUGE_PAGE = 2 << 20,
  BYTES = 96 << 20,
  REPEATS = 5,
  TURNS = 1000,
  LOOKS = 2000,
  CHAINS = 48,
  MOST = 256
};

typedef struct {
  uint64_t *memory;
  double seconds, gap; /* of the arithmetic; the longest piece beyond the shortest */
  volatile float sum;
  volatile uint64_t bits;
} worker;

static void *arithmetic(void *user) {
  worker *w = user;
  float x[CHAINS];
  double longest = 0, shortest = 1, start = seconds_now(), last = start;
  for (int i = 0; i < CHAINS; i++) x[i] = (float)i;
  for (int look = 0; look < LOOKS; look++) {
    for (int turn = 0; turn < TURNS; turn++)
      for (int i = 0; i < CHAINS; i++) x[i] = x[i] * 0.5f + 1;
    const double now = seconds_now(), took = now - last;
    last = now;
    if (took > longest) longest = took;
    if (took < shortest) shortest = took;
  }
  for (int i = 1; i < CHAINS; i++) x[0] += x[i];
  w->sum = x[0];
  w->seconds = last - start;
  if (longest - shortest > w->gap) w->gap = longest - shortest;
  return NULL;
}

static void *fill(void *user) {
  uint64_t *memory = ((worker *)user)->memory;
  for (size_t i = 0; i < BYTES / sizeof *memory; i++) memory[i] = i;
  return NULL;
}

static void *read_all(void *user) {
  worker *w = user;
  uint64_t bits[8] = {0};
  for (size_t i = 0; i < BYTES / sizeof *w->memory; i += 8)
    for (int j = 0; j < 8; j++) bits[j] |= w->memory[i + (size_t)j];
  for (int j = 1; j < 8; j++) bits[0] |= bits[j];
  w->bits = bits[0];
  return NULL;
}

/* Seconds in which n threads do this; negative: there were none. */
static double seconds_of(void *(*work)(void *), worker *w, int n) {
  pthread_t thread[MOST];
  const double start = seconds_now();
  int started = 0;
  while (started < n && !pthread_create(&thread[started], NULL, work, &w[started])) started++;
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
  return started == n ? seconds_now() - start : -1;
}

static bool rates(worker *w, host_rates *h) {
  const int n = h->threads;
  double slowest = 0;
  bool ran = seconds_of(fill, w, n) >= 0;
  for (int repeat = 0; ran && repeat < REPEATS; repeat++) {
    const double seconds = seconds_of(read_all, w, n), rate = (double)BYTES * n / seconds;
    ran = seconds > 0;
    if (rate > h->read) h->read = rate;
  }
  ran = ran && seconds_of(arithmetic, w, 1) >= 0;
  const double alone = w[0].seconds;
  ran = ran && seconds_of(arithmetic, w, n) >= 0;
  for (int i = 0; i < n; i++) {
    if (w[i].seconds > slowest) slowest = w[i].seconds;
    if (w[i].gap > h->gap) h->gap = w[i].gap;
  }
  h->cores = n * alone / slowest;
  return ran;
}

bool measure_host(host_rates *h) {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  if (n > MOST) n = MOST;
  *h = (host_rates){.threads = n};
  worker *w = calloc((size_t)n, sizeof *w);
  char *memory = aligned_alloc(HUGE_PAGE, (size_t)n * BYTES);
  bool ran = w && memory;
  if (ran) madvise(memory, (size_t)n * BYTES, MADV_HUGEPAGE);
  for (int i = 0; ran && i < n; i++) w[i].memory = (uint64_t *)(void *)(memory + (size_t)i * BYTES);
  ran = ran && rates(w, h);
  free(memory);
  free(w);
  return ran;
}
