/* tools/train/devices/threads.c - see threads.h. */
#include "tools/train/devices/threads.h"

#include <pthread.h>
#include <stdlib.h>

#include "tools/cli/tool.h"

typedef struct {
  void (*work)(void *user, int k);
  void *user;
  int k;
  bool started;
  pthread_t thread;
} one;

static void *run(void *user) {
  const one *o = user;
  o->work(o->user, o->k);
  return NULL;
}

void threads_run(int n, void (*work)(void *user, int k), void *user) {
  one *all = allocate((size_t)n, sizeof *all);
  for (int k = n - 1; k >= 0; k--) {
    all[k] = (one){work, user, k, false, 0};
    all[k].started = k && !pthread_create(&all[k].thread, NULL, run, &all[k]);
  }
  for (int k = 0; k < n; k++)
    if (all[k].started) pthread_join(all[k].thread, NULL);
    else run(&all[k]);
  free(all);
}
