/* src/base/cache_folder.c - the folder of files kept between runs, their names, and how they are
   written. */
#include "src/base/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/folders.h"

bool clb_cache_is_off(void) {
  const char *own = getenv("CLB_CACHE_DIR");
  return own && !strcmp(own, "off");
}

void clb_cache_folder(clb_text *path) {
  if (!clb_cache_is_off()) clb_user_folder(path, "CLB_CACHE_DIR", "XDG_CACHE_HOME", ".cache");
}

bool clb_cache_path(const char *name, clb_text *path) {
  clb_cache_folder(path);
  if (path->n) clb_text_add(path, "/%s", name);
  return path->n && !path->failed;
}

/* Files with lasting names: kernels by their keys, "wisdom", the locks, and the cpu backend's data
   on compilers (".cc-" and a key). */
static bool is_lasting(const char *name, size_t n) {
  enum { HEX = 32 };
  if (n == 6 && (!strncmp(name, "wisdom", 6) || !strncmp(name, CLB_CACHE_LOCKS, 6))) return true;
  if (n < HEX || strspn(name + n - HEX, "0123456789abcdef") < HEX) return false;
  return n == HEX || (*name == '.' && name[n - HEX - 1] == '-');
}

clb_cache_name clb_cache_name_of(const char *name) {
  const char *point = strrchr(name, '.');
  if (is_lasting(name, strlen(name))) return CLB_CACHE_LASTING;
  if (point && is_lasting(name, (size_t)(point - name))) return CLB_CACHE_TEMPORARY;
  return CLB_CACHE_FOREIGN;
}

/* Creates a file next to `path` with the permissions of the user's umask (which mkstemp ignores).
 On -1, errno is set. */
static int make_beside(const char *path, clb_text *name) {
  int fd = -1;
  for (int i = 0; i < 1000 && fd < 0; i++) {
    name->n = 0;
    clb_text_add(name, "%s.%ld-%d", path, (long)getpid(), i);
    errno = ENOMEM;
    if (!name->failed) fd = open(name->s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  return fd;
}

static bool write_all(int fd, const char *bytes, size_t n) {
  while (n) {
    const ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) bytes += done, n -= (size_t)done;
  }
  return true;
}

bool clb_cache_write(const char *path, const void *const *parts, const size_t *bytes, int n) {
  clb_text temporary = {0};
  const int without = clb_make_folders(path), fd = make_beside(path, &temporary);
  bool good = fd >= 0;
  int e = errno == ENOENT && without ? without : errno;
  for (int i = 0; i < n && good; i++) good = write_all(fd, parts[i], bytes[i]);
  if (fd >= 0 && !good) e = errno;
  if (fd >= 0 && close(fd) && good) good = false, e = errno;
  if (good && rename(temporary.s, path)) good = false, e = errno;
  if (fd >= 0 && !good) unlink(temporary.s);
  clb_text_free(&temporary);
  errno = e;
  return good;
}
