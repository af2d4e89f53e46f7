/* backends/cpu/threads.c - the threads of this process that share the groups of launches. All cpu
   devices have the same ones, so that many contexts need no more than one does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

enum { PARTS = 4 };   /* for each thread */
enum { LOOKS = 500 }; /* for a few to some tens of microseconds */

/* A launch, on the stack of the thread that makes it. */
typedef struct job {
  struct job *next;
  clb_cpu_function *f;
  const ir_arg *arg;
  int64_t groups, chunk; /* the fewest groups worth taking */
  int parts;             /* of what is left, of which a thread takes one */
  _Atomic int64_t first; /* group that no thread has taken */
  int wanted;            /* helpers that may still join */
  _Atomic int busy;      /* helpers that have not finished */
  pthread_cond_t *idle;  /* nobody is busy */
} job;

struct clb_cpu_threads {
  clb_cpu_threads *next; /* of another device */
  int helpers;           /* besides the thread that launches */
  int most;              /* threads of the process that it wants room for */
  bool joined;           /* it is one of the users */
  pthread_cond_t idle;
};

static struct {
  pthread_mutex_t lock; /* protects all of this, and of jobs all but `first` */
  pthread_cond_t wake;
  clb_cpu_threads *users; /* devices that have launched */
  job *jobs;              /* that more helpers may join */
  pthread_t *thread;      /* `limit` of them at most */
  int limit, started, waiting;
  uintptr_t generation; /* threads of an older one end */
  _Atomic int events;   /* jobs and ends of generations so far */
  _Atomic int looks;    /* of a thread before it sleeps */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

int clb_cpu_cores(void) {
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int)n;
}

/* ---- helpers ---- */

/* A thread takes a part of what is left: many groups side by side, since kernels prefetch the rows
   of the next one, and few at the end, so that all threads finish together. */
static int64_t take(job *j, int64_t *first) {
  int64_t n;
  *first = atomic_load(&j->first);
  do {
    const int64_t left = j->groups - *first;
    n = left / j->parts > j->chunk ? left / j->parts : j->chunk;
    if (n > left) n = left;
  } while (n > 0 && !atomic_compare_exchange_weak(&j->first, first, *first + n));
  return n;
}

static void work(job *j) {
  for (int64_t first, n; (n = take(j, &first)) > 0;) j->f(j->arg, first, first + n);
}

static void relax(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

static job *find_job(void) {
  job *j = pool.jobs;
  while (j && !j->wanted) j = j->next;
  return j;
}

/* Launches follow one another within microseconds, and to sleep and to wake takes as long: a thread
   looks for some time first, unless there are more of them than cores. */
static bool changes(const _Atomic int *number, int from) {
  for (int i = 0; i < pool.looks; i++) {
    if (atomic_load(number) != from) return true;
    relax();
  }
  return false;
}

/* For a job that is not there yet. */
static void wait_for_job(void) {
  const int before = pool.events;
  pthread_mutex_unlock(&pool.lock);
  changes(&pool.events, before);
  pthread_mutex_lock(&pool.lock);
  if (pool.events == before) pthread_cond_wait(&pool.wake, &pool.lock);
}

static void *serve(void *generation) {
  pthread_mutex_lock(&pool.lock);
  while (pool.generation == (uintptr_t)generation) {
    job *j = find_job();
    if (!j) {
      wait_for_job();
      continue;
    }
    pool.waiting--;
    j->wanted--;
    j->busy++;
    pthread_mutex_unlock(&pool.lock);
    work(j);
    pthread_mutex_lock(&pool.lock);
    pthread_cond_t *idle = j->idle;
    j->wanted = 0; /* no group is left */
    if (!--j->busy)
      pthread_cond_signal(idle); /* its thread may have seen it already, and gone on */
    if (pool.generation == (uintptr_t)generation) pool.waiting++;
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

/* Fewer threads than wanted are not an error. Signals are blocked in them and left to the
   program. */
static void start(int wanted) {
  sigset_t all, before;
  sigfillset(&all);
  if (pool.waiting >= wanted || pool.started >= pool.limit) return;
  if (pthread_sigmask(SIG_SETMASK, &all, &before)) return;
  while (pool.waiting < wanted && pool.started < pool.limit) {
    if (pthread_create(&pool.thread[pool.started], NULL, serve, (void *)pool.generation)) {
      pool.limit = pool.started; /* until another device is opened */
      break;
    }
    pool.started++;
    pool.waiting++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- forks ---- */

/* A child has only the thread that forked. */
static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void in_parent(void) { pthread_mutex_unlock(&pool.lock); }
static void in_child(void) {
  pool.jobs = NULL;
  pool.started = pool.waiting = 0;
  pool.wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  for (clb_cpu_threads *t = pool.users; t; t = t->next)
    t->idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&pool.lock);
}
static void guard_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* ---- users ---- */

/* Room for as many threads as this process has cores, or as a device wants. */
static bool make_room(int limit) {
  if (limit <= pool.started) return true;
  pthread_t *more = realloc(pool.thread, (size_t)limit * sizeof *more);
  if (!more) return false;
  pool.thread = more;
  pool.limit = limit;
  pool.looks = limit < clb_cpu_cores() ? LOOKS : 0;
  return true;
}

/* Its first launch: a device that launches nothing leaves nothing in the process. */
static bool join(clb_cpu_threads *t) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, guard_forks);
  pthread_mutex_lock(&pool.lock);
  if (make_room(t->most)) {
    t->next = pool.users;
    pool.users = t;
    t->joined = true;
  }
  pthread_mutex_unlock(&pool.lock);
  return t->joined;
}

clb_cpu_threads *clb_cpu_threads_create(int cores) {
  const int here = clb_cpu_cores();
  clb_cpu_threads *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->helpers = cores - 1;
  t->most = (cores > here ? cores : here) - 1;
  t->idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  return t;
}

/* The last user takes the threads with it. */
void clb_cpu_threads_destroy(clb_cpu_threads *t) {
  pthread_t *ended = NULL;
  int n = 0;
  if (!t) return;
  pthread_mutex_lock(&pool.lock);
  clb_cpu_threads **link = &pool.users;
  while (t->joined && *link != t) link = &(*link)->next;
  if (t->joined) *link = t->next;
  if (t->joined && !pool.users) {
    ended = pool.thread;
    n = pool.started;
    pool.thread = NULL;
    pool.limit = pool.started = pool.waiting = 0;
    pool.generation++;
    pool.events++;
    pthread_cond_broadcast(&pool.wake);
  }
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < n; i++) pthread_join(ended[i], NULL);
  pthread_cond_destroy(&t->idle);
  free(ended);
  free(t);
}

static void forget(const job *done) {
  job **link = &pool.jobs;
  while (*link != done) link = &(*link)->next;
  *link = done->next;
}

void clb_cpu_threads_run(clb_cpu_threads *t, clb_cpu_function *f, const ir_arg *arg, int64_t groups,
                         int64_t chunk) {
  if (groups <= chunk || !t->helpers || (!t->joined && !join(t))) {
    f(arg, 0, groups);
    return;
  }
  job j = {NULL, f, arg, groups, chunk, PARTS * (t->helpers + 1), 0, t->helpers, 0, &t->idle};
  pthread_mutex_lock(&pool.lock);
  start(t->helpers);
  j.next = pool.jobs;
  pool.jobs = &j;
  pool.events++;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  work(&j);
  pthread_mutex_lock(&pool.lock);
  forget(&j); /* threads that wake up late do not join */
  pthread_mutex_unlock(&pool.lock);
  for (int busy; (busy = j.busy) && changes(&j.busy, busy);) {
  }
  pthread_mutex_lock(&pool.lock);
  while (j.busy) pthread_cond_wait(j.idle, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}
