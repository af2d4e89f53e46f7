/* tools/ablation/naive_cpu.c - naive kernels on the CPU: a loop over items, compiled by cc and
   shared among as many threads as the library has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/ablation/naive.h"
#include "tools/cli/tool.h"

enum { MAX_THREADS = 1024, PIECES = 16 }; /* PIECES: of the items, for each thread */

/* A launch: threads take pieces of its items until none is left. */
typedef struct {
  void (*run)(const naive_arguments *p, long long first, long long end);
  const naive_arguments *p;
  long long piece;
  atomic_llong next;
} job;

typedef struct {
  int n_threads; /* with the caller's */
  pthread_t thread[MAX_THREADS];
  pthread_mutex_t mutex;
  pthread_cond_t begin, end;
  /* under the mutex */
  job *job;
  long long launches;
  int working;
  bool closing;
} host;

/* ---- compiling ---- */

static bool compile(const char *from, const char *to) {
  char *argv[] = {"cc",    "-O3", "-march=native", "-fno-math-errno", "-std=gnu11", "-w", "-shared",
                  "-fPIC", "-o",  (char *)to,      (char *)from,      NULL};
  int status = -1;
  pid_t pid;
  return !posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) &&
         waitpid(pid, &status, 0) == pid && !status;
}

static bool write_text(const char *path, const char *name, const char *body) {
  FILE *f = fopen(path, "we");
  if (!f) return false;
  fprintf(f,
          "%s\nfloat sqrtf(float);\n#define LANES 1\n#define ADD(a, v) (a) += (v)\n"
          "/* %s */\nvoid run(const naive_arguments *arguments, long long first, long long end) {\n"
          "  const naive_arguments p = *arguments;\n"
          "  for (long long i = first; i < end; i++) %s\n}\n",
          NAIVE_EXPANDED(NAIVE_ARGUMENTS), name, body);
  bool good = !ferror(f);
  return !fclose(f) && good;
}

static void *load(void *device, const char *name, const char *body, char message[NAIVE_MESSAGE]) {
  const char *tmp = getenv("TMPDIR");
  char folder[200], from[220], to[220];
  void *library = NULL;
  (void)device;
  snprintf(folder, sizeof folder, "%s/clebsch-naive-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) {
    snprintf(message, NAIVE_MESSAGE, "%s cannot be made; TMPDIR may name another place", folder);
    return NULL;
  }
  snprintf(from, sizeof from, "%s/kernel.c", folder);
  snprintf(to, sizeof to, "%s/kernel.so", folder);
  if (write_text(from, name, body) && compile(from, to))
    library = dlopen(to, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    snprintf(message, NAIVE_MESSAGE, "the naive kernel %s: cc does not compile it", name);
  unlink(from);
  unlink(to);
  rmdir(folder);
  return library;
}

static void unload(void *device, void *loaded) {
  (void)device;
  dlclose(loaded);
}

/* ---- running ---- */

static void take_pieces(job *j) {
  for (;;) {
    long long first = atomic_fetch_add(&j->next, j->piece), end = first + j->piece;
    if (first >= j->p->n) return;
    j->run(j->p, first, end < j->p->n ? end : j->p->n);
  }
}

static void *work_on(void *user) {
  host *h = user;
  long long done = 0;
  pthread_mutex_lock(&h->mutex);
  for (;;) {
    while (h->launches == done && !h->closing) pthread_cond_wait(&h->begin, &h->mutex);
    if (h->closing) break;
    done = h->launches;
    job *j = h->job;
    pthread_mutex_unlock(&h->mutex);
    take_pieces(j);
    pthread_mutex_lock(&h->mutex);
    if (!--h->working) pthread_cond_signal(&h->end);
  }
  pthread_mutex_unlock(&h->mutex);
  return NULL;
}

static bool run(void *device, void *loaded, const naive_arguments *p) {
  host *h = device;
  job j = {.p = p, .piece = p->n / (h->n_threads * PIECES) + 1};
  *(void **)&j.run = dlsym(loaded, "run");
  if (!j.run) return false;
  pthread_mutex_lock(&h->mutex);
  h->job = &j;
  h->working = h->n_threads - 1;
  h->launches++;
  pthread_cond_broadcast(&h->begin);
  pthread_mutex_unlock(&h->mutex);
  take_pieces(&j);
  pthread_mutex_lock(&h->mutex);
  while (h->working) pthread_cond_wait(&h->end, &h->mutex);
  pthread_mutex_unlock(&h->mutex);
  return true;
}

static bool wait_for(void *device) { return device != NULL; }

/* ---- threads ---- */

static int threads_of(const clb_device_info *info) {
  const char *threads = strstr(info->name, "threads=");
  cpu_set_t mine;
  int n = threads                                     ? atoi(threads + 8)
          : !sched_getaffinity(0, sizeof mine, &mine) ? CPU_COUNT(&mine)
                                                      : 1;
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

static void *open_host(const clb_device_info *info, char message[NAIVE_MESSAGE]) {
  host *h = allocate(1, sizeof *h);
  const int wanted = threads_of(info);
  (void)message;
  pthread_mutex_init(&h->mutex, NULL);
  pthread_cond_init(&h->begin, NULL);
  pthread_cond_init(&h->end, NULL);
  for (h->n_threads = 1; h->n_threads < wanted; h->n_threads++)
    if (pthread_create(&h->thread[h->n_threads], NULL, work_on, h)) break;
  return h;
}

static void close_host(void *device) {
  host *h = device;
  pthread_mutex_lock(&h->mutex);
  h->closing = true;
  pthread_cond_broadcast(&h->begin);
  pthread_mutex_unlock(&h->mutex);
  for (int i = 1; i < h->n_threads; i++) pthread_join(h->thread[i], NULL);
  pthread_cond_destroy(&h->begin);
  pthread_cond_destroy(&h->end);
  pthread_mutex_destroy(&h->mutex);
  free(h);
}

const naive_backend naive_cpu = {true, open_host, load, run, wait_for, unload, close_host};
