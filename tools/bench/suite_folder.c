/* tools/bench/suite_folder.c - a folder for the caches and temporary files of a suite. */
#define _GNU_SOURCE /* nftw */
#include "tools/bench/suite_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[4096];

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static void remove_folder(void) {
  if (*folder) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  *folder = 0;
}

bool suite_folder_make(void) {
  /* Drivers' caches are redirected, too: results of an earlier run would make the first compilation
   look short. */
  static const char *const variables[][2] = {
      {"TMPDIR", folder},          {"POCL_CACHE_DIR", folder},    {"POCL_KERNEL_CACHE", "0"},
      {"CUDA_CACHE_DISABLE", "1"}, {"NEO_CACHE_PERSISTENT", "0"}, {"AMD_COMGR_CACHE", "0"}};
  const char *top = getenv("TMPDIR");
  if (snprintf(folder, sizeof folder, "%s/clebsch-suite-XXXXXX", top && *top ? top : "/tmp") >=
          (int)sizeof folder ||
      !mkdtemp(folder)) {
    warn("bench: no temporary folder (TMPDIR, else /tmp): %s", strerror(errno));
    *folder = 0;
    return false;
  }
  atexit(remove_folder);
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    setenv(variables[i][0], variables[i][1], 1);
  return true;
}

void suite_folder_choose(const char *device, const suite_job *job) {
  static const char unsafe[] = "/:@ ";
  char path[sizeof folder + 256];
  int n = snprintf(path, sizeof path, "%s/", folder);
  snprintf(path + n, sizeof path - (size_t)n, "%s.%s.%s.%s.%s.%s", device, job->problem->op->name,
           job->problem->name, job->problem->options ? job->problem->options : "",
           pass_names[job->pass], dtype_names[job->dtype]);
  for (char *c = path + n; *c; c++)
    if (strchr(unsafe, *c)) *c = '-';
  setenv("CLB_CACHE_DIR", path, 1);
}
