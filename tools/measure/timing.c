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

typedef struct {
  clb_context *ctx;
  launch_function *launch;
  void *user;
  int n_sets, next;
} launcher;

/* Seconds of one batch. */
static clb_status batch(launcher *l, int launches, double *seconds) {
  clb_status status = CLB_OK;
  double start = seconds_now();
  for (int i = 0; !status && i < launches; i++) {
    status = l->launch(l->user, l->next);
    l->next = (l->next + 1) % l->n_sets;
  }
  if (!status) status = clb_wait(l->ctx);
  *seconds = seconds_now() - start;
  return status;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, ascending);
  return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

enum { FEW = 5, ENOUGH = 30, MAX = 1000 };

clb_status time_launches(clb_context *ctx, launch_function *launch, void *user, int n_sets,
                         timing *result) {
  launcher l = {ctx, launch, user, n_sets, 0};
  double seconds[MAX], start, total;
  int launches = n_sets, n = 0;
  clb_status status = batch(&l, launches, &total); /* warm-up, which accesses every set */
  launches = 1;
  while (!status && !(status = batch(&l, launches, &total)) && total < 1e-3)
    launches *= total > 1e-4 ? 1 + (int)(1.2e-3 / total) : 10;
  start = seconds_now();
  while (!status && n < MAX) {
    status = batch(&l, launches, &seconds[n]);
    seconds[n] /= launches;
    n++;
    double spent = seconds_now() - start;
    if ((n >= ENOUGH && spent > 0.5) || (n >= FEW && spent > 2)) break;
  }
  if (status) return status;
  *result = (timing){.seconds = median(seconds, n), .repeats = n};
  result->seconds_tenth = seconds[n / 10];
  result->seconds_min = seconds[0];
  result->spread = (seconds[n - 1 - n / 10] - seconds[n / 10]) / result->seconds;
  return CLB_OK;
}
