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
typedef struct {
  int n_threads;
} host;

static void *open_host(const clb_device_info *info, char message[NAIVE_MESSAGE]) {
  const char *threads = strstr(info->name, "threads=");
  host *h = allocate(1, sizeof *h);
  cpu_set_t mine;
  (void)message;
  h->n_threads = threads                                     ? atoi(threads + 8)
                 : !sched_getaffinity(0, sizeof mine, &mine) ? CPU_COUNT(&mine)
                                                             : 1;
  if (h->n_threads < 1) h->n_threads = 1;
  if (h->n_threads > MAX_THREADS) h->n_threads = MAX_THREADS;
  return h;
}

/* ---- compiling ---- */

static bool compile(const char *from, const char *to) {
  char *argv[] = {"cc",    "-O3", "-march=native", "-std=gnu11", "-w", "-shared",
                  "-fPIC", "-o",  (char *)to,      (char *)from, NULL};
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

typedef struct {
  void (*run)(const naive_arguments *p, long long first, long long end);
  const naive_arguments *p;
  long long piece;
  atomic_llong next;
} job;

static void *take_pieces(void *user) {
  job *j = user;
  for (;;) {
    long long first = atomic_fetch_add(&j->next, j->piece), end = first + j->piece;
    if (first >= j->p->n) return NULL;
    j->run(j->p, first, end < j->p->n ? end : j->p->n);
  }
}

static bool run(void *device, void *loaded, const naive_arguments *p) {
  const host *h = device;
  pthread_t thread[MAX_THREADS];
  job j = {.p = p, .piece = p->n / (h->n_threads * PIECES) + 1};
  int n = 0;
  *(void **)&j.run = dlsym(loaded, "run");
  if (!j.run) return false;
  while (n < h->n_threads - 1 && !pthread_create(&thread[n], NULL, take_pieces, &j)) n++;
  take_pieces(&j);
  for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
  return true;
}

static bool wait_for(void *device) { return device != NULL; }

const naive_backend naive_cpu = {true, open_host, load, run, wait_for, unload, free};
