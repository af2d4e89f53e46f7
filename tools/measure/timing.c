/* tools/measure/timing.c - the time of one launch of an op, and the amount of memory needed for
   caches not to distort it. */
#include "tools/measure/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_cache(void) {
  /* sysfs first: in virtual machines sysconf may include caches of CPUs that this machine does not
   have. */
  uint64_t kib = 0;
  for (int level = 2; level <= 3; level++) {
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    FILE *f = fopen(path, "r");
    unsigned long long size;
    if (f && fscanf(f, "%lluK", &size) == 1) kib = size;
    if (f) fclose(f);
  }
  if (kib) return kib << 10;
  long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? (uint64_t)bytes : 32u << 20;
}

/* OpenCL drivers for CPUs describe them by their model name. */
static bool is_this_cpu(const char *description) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[256];
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    char *name = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    if (!name) continue;
    name += 1 + strspn(name + 1, " ");
    name[strcspn(name, "\n")] = 0;
    found = *name && strstr(description, name);
  }
  if (f) fclose(f);
  return found;
}

bool is_on_this_cpu(const clb_device_info *info) {
  return !strcmp(info->backend, "cpu") || (info->description && is_this_cpu(info->description));
}

uint64_t memory_bytes(const clb_device_info *info) {
  if (!is_on_this_cpu(info)) return info->memory_bytes;
  FILE *f = fopen("/proc/meminfo", "r");
  char line[128];
  unsigned long long kib = 0;
  while (f && !kib && fgets(line, sizeof line, f))
    (void)sscanf(line, "MemAvailable: %llu", &kib); /* free or reclaimable */
  if (f) fclose(f);
  uint64_t available = (kib << 10) / 8 * 7;
  return info->memory_bytes && info->memory_bytes < available ? info->memory_bytes : available;
}

uint64_t cache_bytes(const clb_device_info *info) {
  if (is_on_this_cpu(info)) return cpu_cache();
  if (info->vendor && (strstr(info->vendor, "NVIDIA") || strstr(info->vendor, "nvidia")))
    return 60u << 20; /* H200: 50 MiB */
  if (info->vendor && (strstr(info->vendor, "AMD") || strstr(info->vendor, "Advanced Micro")))
    return 256u << 20; /* MI300X */
  return 408u << 20;   /* Intel Data Center GPU Max */
}

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, ascending);
  return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* Seconds of one batch, and until it was submitted. After other tasks caches are cold and threads
   of a CPU asleep: one launch is not timed, unless it takes long. */
static clb_status time_batch(const timed_tasks *t, int task, int launches, double *all,
                             double *host) {
  clb_status status = CLB_OK;
  double start = 0;
  for (int i = t->n > 1 && launches > 1 ? -1 : 0; !status && i < launches; i++) {
    if (!i) start = seconds_now();
    status = t->launch(t->user, task);
    if (i == launches - 1) *host = seconds_now() - start;
    if (!status && (i < 0 || i == launches - 1))
      status = t->wait ? t->wait(t->user, task) : clb_wait(t->ctx);
  }
  *all = seconds_now() - start;
  return status;
}

/* As many launches as a batch needs. */
static clb_status choose_launches(const timed_tasks *t, int task, int *launches) {
  double all, host;
  clb_status status = time_batch(t, task, *launches = 1, &all, &host);
  while (!status && all < t->batch) {
    *launches *= all > t->batch / 10 ? 1 + (int)(1.2 * t->batch / all) : 10;
    status = time_batch(t, task, *launches, &all, &host);
  }
  return status;
}

static timing summary(double *all, double *host, int n) {
  timing r = {.seconds = median(all, n), .host = median(host, n), .repeats = n}; /* which sorts */
  r.seconds_tenth = all[n / 10];
  r.seconds_min = all[0];
  r.spread = (all[n - 1 - n / 10] - all[n / 10]) / r.seconds;
  return r;
}

clb_status time_tasks(const timed_tasks *t, timing *results) {
  const size_t each = (size_t)t->most;
  double *all = allocate((size_t)t->n * each, sizeof *all),
         *host = allocate((size_t)t->n * each, sizeof *host);
  int *launches = allocate((size_t)t->n, sizeof *launches), n = 0;
  clb_status status = CLB_OK;
  for (int i = 0; i < t->n && !status; i++) status = choose_launches(t, i, &launches[i]);
  const double start = seconds_now();
  for (; !status && n < t->most; n++) {
    const double spent = seconds_now() - start;
    if (n >= (spent > 4 * t->seconds ? t->fewest : t->enough) && spent > t->seconds) break;
    for (int i = 0; i < t->n && !status; i++) {
      double *a = &all[(size_t)i * each + (size_t)n], *h = &host[(size_t)i * each + (size_t)n];
      status = time_batch(t, i, launches[i], a, h);
      *a /= launches[i], *h /= launches[i];
    }
  }
  for (int i = 0; i < t->n && !status; i++)
    results[i] = summary(all + (size_t)i * each, host + (size_t)i * each, n);
  free(all), free(host), free(launches);
  return status;
}

typedef struct {
  launch_function *launch;
  void *user;
  int n_sets, next;
} rotation;

static clb_status launch_next(void *user, int task) {
  rotation *r = user;
  (void)task;
  r->next = (r->next + 1) % r->n_sets;
  return r->launch(r->user, r->next);
}

clb_status time_launches(clb_context *ctx, launch_function *launch, void *user, int n_sets,
                         timing *result) {
  rotation r = {launch, user, n_sets, 0};
  const timed_tasks t = {.ctx = ctx,
                         .n = 1,
                         .launch = launch_next,
                         .user = &r,
                         .batch = 1e-3,
                         .seconds = 0.5,
                         .fewest = 5,
                         .enough = 30,
                         .most = 1000};
  clb_status status = CLB_OK;
  for (int i = 0; i < n_sets && !status; i++) status = launch_next(&r, 0); /* accesses every set */
  if (!status) status = clb_wait(ctx);
  return status ? status : time_tasks(&t, result);
}
