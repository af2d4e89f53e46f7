/* src/base/cache_sweep.c - removes temporary files in the cache folder, left by processes that
   ended while writing them. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/base/cache_folder.h"

enum { SETTLED = 60 }; /* age in seconds from which a file is certainly no longer being written */

static void sweep_one(int folder, const char *name) {
  struct stat about;
  if (clb_cache_name_of(name) != CLB_CACHE_TEMPORARY) return;
  if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW)) return;
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid()) return;
  if (time(NULL) - about.st_mtime >= SETTLED) unlinkat(folder, name, 0);
}

void clb_cache_sweep(void) {
  clb_text path = {0};
  DIR *d = clb_cache_path("", &path) ? opendir(path.s) : NULL;
  for (struct dirent *e; d && (e = readdir(d));) sweep_one(dirfd(d), e->d_name);
  if (d) closedir(d);
  clb_text_free(&path);
}
