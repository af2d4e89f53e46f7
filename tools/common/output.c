/* tools/common/output.c - files that subcommands write. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tools/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/tool.h"

/* ---- identity of files ---- */

static char *joined(const char *a, size_t n, const char *b) {
  const size_t m = strlen(b);
  char *path = allocate(n + m + 1, 1);
  memcpy(path, a, n);
  memcpy(path + n, b, m);
  return path;
}

/* The length of its folder's name, including the last slash; 0: the current folder. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The target of links, also if the file does not exist yet. */
static char *target_of(const char *path) {
  enum { MAX_LINKS = 40 };
  char *at = joined(path, strlen(path), "");
  for (int i = 0; i < MAX_LINKS; i++) {
    char link[PATH_MAX];
    struct stat there;
    const bool special = !stat(at, &there) && !S_ISREG(there.st_mode);
    const ssize_t n = special ? -1 : readlink(at, link, sizeof link - 1);
    if (n < 0) break;
    link[n] = 0;
    char *next = joined(at, *link == '/' ? 0 : folder_length(at), link);
    free(at);
    at = next;
  }
  return at;
}

typedef struct {
  bool known, there; /* known: it can be distinguished from others */
  dev_t device;
  ino_t number; /* of the file, or of the folder in which it will be created */
  char name[NAME_MAX + 1];
} identity;

static identity identity_of(const char *path) {
  identity d = {0};
  struct stat about;
  char *target = target_of(path);
  const size_t n = folder_length(target);
  d.there = !stat(target, &about);
  if (d.there) d.known = S_ISREG(about.st_mode);
  else {
    char *folder = joined(target, n, ".");
    d.known = !stat(folder, &about);
    snprintf(d.name, sizeof d.name, "%s", target + n);
    free(folder);
  }
  if (d.known) d.device = about.st_dev, d.number = about.st_ino;
  free(target);
  return d;
}

static bool same(const identity *a, const identity *b) {
  return a->known && b->known && a->there == b->there && a->device == b->device &&
         a->number == b->number && !strcmp(a->name, b->name);
}

bool same_file(const char *a, const char *b) {
  const identity x = identity_of(a), y = identity_of(b);
  return same(&x, &y);
}

static identity standard_output(void) {
  struct stat about;
  identity d = {.known = !fstat(STDOUT_FILENO, &about) && S_ISREG(about.st_mode), .there = true};
  if (d.known) d.device = about.st_dev, d.number = about.st_ino;
  return d;
}

/* ---- checks before any work ---- */

/* If it does not exist, it is created and removed. */
static bool try_growing(const char *path) {
  struct stat about;
  const bool there = !stat(path, &about);
  if (there && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)))
    return true; /* opening it would wait for a reader */
  const int fd =
      open(path, there ? O_WRONLY | O_CLOEXEC | O_NOCTTY : O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL,
           0666);
  if (fd < 0) return warn("%s: %s", path, strerror(errno)), false;
  close(fd);
  if (!there) unlink(path);
  return true;
}

static char *temporary_of(const char *target) { return joined(target, strlen(target), ".XXXXXX"); }

static bool try_whole(const char *path, const char *target) {
  struct stat about;
  if (!stat(target, &about) && !S_ISREG(about.st_mode)) return warn("%s: not a file", path), false;
  char *temporary = temporary_of(target);
  const int fd = mkstemp(temporary), error = errno;
  if (fd >= 0) unlink(temporary), close(fd);
  else warn("%s: %s", path, strerror(error));
  free(temporary);
  return fd >= 0;
}

static bool has_its_own(const named_file *files, int i) {
  const identity mine = identity_of(files[i].path), out = standard_output();
  if (same(&mine, &out))
    return warn("%s: is standard output, too: %s needs a separate file", files[i].path,
                files[i].what),
           false;
  for (int k = 0; k < i; k++) {
    if (!files[k].path || !same_file(files[k].path, files[i].path)) continue;
    warn("%s: is %s, too: %s needs a separate file", files[i].path, files[k].what, files[i].what);
    return false;
  }
  return true;
}

bool outputs_ready(const named_file *files, int n) {
  signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit should be an ordinary write error */
  for (int i = 0; i < n; i++)
    if (files[i].path && files[i].use != FILE_INPUT && !has_its_own(files, i)) return false;
  for (int i = 0; i < n; i++) {
    if (!files[i].path || files[i].use == FILE_INPUT) continue;
    char *target = target_of(files[i].path);
    const bool good =
        files[i].use == FILE_WHOLE ? try_whole(files[i].path, target) : try_growing(files[i].path);
    free(target);
    if (!good) return false;
  }
  return true;
}

/* ---- whole files ---- */

static void flush_folder(const char *folder) {
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) fsync(fd), close(fd);
}

void folder_flush(const char *path) {
  char *target = target_of(path), *folder = joined(target, folder_length(target), ".");
  flush_folder(folder);
  free(folder);
  free(target);
}

/* errno is that of the first failure. */
static bool write_to(FILE *f, bool (*write)(FILE *f, const void *user), const void *user) {
  errno = 0;
  return write(f, user) && !fflush(f) && !ferror(f) && !fsync(fileno(f));
}

/* An unnamed file, which disappears with this process; -1: not supported by this file system. */
static int open_nameless(const char *folder) {
  return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

/* Gives it a temporary name, which exists no longer than a rename takes. */
static bool give_name(int fd, const char *target, char *temporary) {
  char from[40];
  const size_t n = strlen(target) + 1;
  snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
  for (unsigned i = 0; i < 1000; i++) {
    snprintf(temporary + n, 7, "%06x", ((unsigned)getpid() + i) & 0xffffff);
    if (!linkat(AT_FDCWD, from, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

static int open_named(char *temporary) {
  const int fd = mkstemp(temporary);
  const mode_t mask = umask(0);
  umask(mask);
  if (fd >= 0) fchmod(fd, 0666 & ~mask);
  return fd;
}

/* Allocates nothing, so that lack of memory is never reported after the file has been replaced. */
static bool replace(const char *path, const char *target, const char *folder, char *temporary,
                    bool (*write)(FILE *f, const void *user), const void *user) {
  struct stat there;
  if (!stat(target, &there) && !S_ISREG(there.st_mode)) return warn("%s: not a file", path), false;
  const int nameless = open_nameless(folder), fd = nameless < 0 ? open_named(temporary) : nameless;
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  bool named = fd >= 0 && nameless < 0, good = f && write_to(f, write, user);
  if (good && !named) good = named = give_name(fd, target, temporary);
  int error = errno;
  if (f ? fclose(f) : fd >= 0 && close(fd)) error = good ? errno : error, good = false;
  if (good && rename(temporary, target)) error = errno, good = false;
  if (good) return flush_folder(folder), true;
  if (fd < 0) warn("%s: %s", path, strerror(error));
  else warn("%s: could not be written: %s", path, strerror(error ? error : EIO));
  if (named) unlink(temporary);
  return false;
}

bool file_replace(const char *path, bool (*write)(FILE *f, const void *user), const void *user) {
  char *target = target_of(path), *temporary = temporary_of(target);
  char *folder = joined(target, folder_length(target), ".");
  const bool good = replace(path, target, folder, temporary, write, user);
  free(folder);
  free(temporary);
  free(target);
  return good;
}

bool file_copy(FILE *to, const void *user) {
  char bytes[1 << 14];
  FILE *const *from = user;
  size_t n;
  rewind(*from);
  while ((n = fread(bytes, 1, sizeof bytes, *from)) > 0)
    if (fwrite(bytes, 1, n, to) != n) return false;
  return !ferror(*from);
}

/* ---- checksums ---- */

/* FNV-1a, 64 bits. */
uint64_t bytes_checksum(uint64_t h, const void *bytes, size_t n) {
  const unsigned char *piece = bytes;
  for (size_t i = 0; i < n; i++) h = (h ^ piece[i]) * 1099511628211u;
  return h;
}

bool file_checksum(int fd, off_t from, off_t to, uint64_t *sum) {
  unsigned char piece[65536];
  uint64_t h = CHECKSUM_START;
  while (from < to) {
    const off_t left = to - from;
    const ssize_t n =
        pread(fd, piece, left < (off_t)sizeof piece ? (size_t)left : sizeof piece, from);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    h = bytes_checksum(h, piece, (size_t)n);
    from += n;
  }
  *sum = h;
  return true;
}
