/* tools/train/devices/threads.c - see threads.h. Threads wait for the next round of work. */
#include "tools/train/devices/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tools/cli/tool.h"

typedef struct {
  int k;
  uint64_t seen; /* rounds */
  pthread_t thread;
} worker;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t begins, ends;
  uint64_t round;
  int n, left; /* k < n work in this round; so many have not ended */
  void (*work)(void *user, int k);
  void *user;
  worker **of; /* [started]: k is one more */
  int started;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begins = PTHREAD_COND_INITIALIZER,
          .ends = PTHREAD_COND_INITIALIZER};

/* Until there is a round without work. */
static void *run(void *user) {
  worker *w = user;
  bool goes_on = true;
  pthread_mutex_lock(&pool.lock);
  while (goes_on) {
    while (pool.round == w->seen) pthread_cond_wait(&pool.begins, &pool.lock);
    w->seen = pool.round;
    goes_on = pool.work;
    if (!goes_on || w->k >= pool.n) continue;
    pthread_mutex_unlock(&pool.lock);
    pool.work(pool.user, w->k);
    pthread_mutex_lock(&pool.lock);
    if (!--pool.left) pthread_cond_signal(&pool.ends);
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

static void start(int n) {
  while (pool.started < n - 1) {
    worker *w = allocate(1, sizeof *w);
    *w = (worker){.k = pool.started + 1, .seen = pool.round};
    if (pthread_create(&w->thread, NULL, run, w)) {
      free(w);
      return;
    }
    pool.of = enlarge(pool.of, (size_t)pool.started + 1, sizeof *pool.of);
    pool.of[pool.started++] = w;
  }
}

static void begin(int n, void (*work)(void *user, int k), void *user) {
  pthread_mutex_lock(&pool.lock);
  pool.n = n;
  pool.left = pool.started < n - 1 ? pool.started : n - 1;
  pool.work = work;
  pool.user = user;
  pool.round++;
  pthread_cond_broadcast(&pool.begins);
  pthread_mutex_unlock(&pool.lock);
}

void threads_run(int n, void (*work)(void *user, int k), void *user) {
  start(n);
  begin(n, work, user);
  work(user, 0);
  for (int k = pool.started + 1; k < n; k++) work(user, k); /* for want of threads */
  pthread_mutex_lock(&pool.lock);
  while (pool.left) pthread_cond_wait(&pool.ends, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}

void threads_end(void) {
  begin(1, NULL, NULL);
  for (int i = 0; i < pool.started; i++) {
    pthread_join(pool.of[i]->thread, NULL);
    free(pool.of[i]);
  }
  free(pool.of);
  pool.of = NULL;
  pool.started = 0;
}
