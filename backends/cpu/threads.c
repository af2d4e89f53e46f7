/* backends/cpu/threads.c - a few threads that wait for a launch and share its groups. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

typedef struct {
  clb_cpu_function *f;
  const ir_arg *arg;
  int64_t groups, chunk;
} job;

struct clb_cpu_threads {
  pthread_mutex_t lock; /* protects everything below except `next` */
  pthread_cond_t wake, idle;
  pthread_t *thread;
  int wanted, started, busy; /* besides the thread that launches */
  bool stop, open;           /* open: there is a job to join */
  uint64_t turn;             /* number of jobs so far */
  job now;
  _Atomic int64_t next; /* first group that no thread has taken */
  pid_t owner;          /* the process that owns the threads: not its forked children */
};

int clb_cpu_cores(void) {
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int)n;
}

static void work(clb_cpu_threads *t, const job *j) {
  for (int64_t first; (first = atomic_fetch_add(&t->next, j->chunk)) < j->groups;)
    j->f(j->arg, first, j->groups - first < j->chunk ? j->groups : first + j->chunk);
}

static void *serve(void *threads) {
  clb_cpu_threads *t = threads;
  uint64_t seen = 0;
  pthread_mutex_lock(&t->lock);
  while (!t->stop) {
    if (t->turn == seen || !t->open) {
      pthread_cond_wait(&t->wake, &t->lock);
      continue;
    }
    job j = t->now;
    seen = t->turn;
    t->busy++;
    pthread_mutex_unlock(&t->lock);
    work(t, &j);
    pthread_mutex_lock(&t->lock);
    if (!--t->busy) pthread_cond_signal(&t->idle);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

/* Fewer threads than wanted are not an error. Signals are blocked in them and left to the
   program. */
static void start(clb_cpu_threads *t) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before)) return;
  while (t->started < t->wanted && !pthread_create(&t->thread[t->started], NULL, serve, t))
    t->started++;
  t->wanted = t->started;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool make_locks(clb_cpu_threads *t) {
  if (pthread_mutex_init(&t->lock, NULL)) return false;
  if (pthread_cond_init(&t->wake, NULL)) goto no_wake;
  if (!pthread_cond_init(&t->idle, NULL)) return true;
  pthread_cond_destroy(&t->wake);
no_wake:
  pthread_mutex_destroy(&t->lock);
  return false;
}

clb_cpu_threads *clb_cpu_threads_create(int cores) {
  clb_cpu_threads *t = calloc(1, sizeof *t);
  if (t && (t->thread = calloc((size_t)cores, sizeof *t->thread)) && make_locks(t)) {
    t->wanted = cores - 1;
    t->owner = getpid();
    return t;
  }
  if (t) free(t->thread);
  free(t);
  return NULL;
}

/* A forked child has only the thread that forked, and locks in the state of that moment. */
static bool is_forked(const clb_cpu_threads *t) { return t->owner != getpid(); }

static void begin_anew(clb_cpu_threads *t) {
  t->started = t->busy = 0;
  t->open = false;
  t->owner = getpid();
  if (!make_locks(t)) t->wanted = 0;
}

void clb_cpu_threads_destroy(clb_cpu_threads *t) {
  if (!t) return;
  if (!is_forked(t)) {
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->started; i++) pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->idle);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
  }
  free(t->thread);
  free(t);
}

void clb_cpu_threads_run(clb_cpu_threads *t, clb_cpu_function *f, const ir_arg *arg, int64_t groups,
                         int64_t chunk) {
  if (groups > chunk && is_forked(t)) begin_anew(t);
  if (groups > chunk && t->started < t->wanted) start(t);
  if (groups <= chunk || !t->started) {
    f(arg, 0, groups);
    return;
  }
  job j = {f, arg, groups, chunk};
  pthread_mutex_lock(&t->lock);
  t->now = j;
  t->open = true;
  t->turn++;
  atomic_store(&t->next, 0);
  pthread_cond_broadcast(&t->wake);
  pthread_mutex_unlock(&t->lock);
  work(t, &j);
  pthread_mutex_lock(&t->lock);
  t->open = false; /* threads that wake up late do not join */
  while (t->busy) pthread_cond_wait(&t->idle, &t->lock);
  pthread_mutex_unlock(&t->lock);
}
