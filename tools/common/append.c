/* tools/common/append.c - files that grow by whole records. */
#include "tools/common/append.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/cli/tool.h"

/* ---- has the file changed? ---- */

enum { FIRST_BYTES = 4096, LAST_BYTES = 65536 };

static bool mark_of(int fd, int64_t bytes, file_mark *mark) {
  uint64_t first, last;
  const int64_t head = bytes < FIRST_BYTES ? bytes : FIRST_BYTES,
                tail = bytes < LAST_BYTES ? bytes : LAST_BYTES;
  if (!file_checksum(fd, 0, head, &first) || !file_checksum(fd, bytes - tail, bytes, &last))
    return false;
  *mark = (file_mark){bytes, first * 3 ^ last};
  return true;
}

static bool is_marked(int fd, const file_mark *mark) {
  file_mark now;
  return mark_of(fd, mark->bytes, &now) && now.sum == mark->sum;
}

/* Number of bytes of the file to keep; -1, after a message, on failure. */
static int64_t kept(const char *path, int fd, int64_t bytes, append_rule rule) {
  const file_mark *b = rule.before;
  const bool known = b && b->bytes > 0;
  if (!bytes && !known) return 0;
  if (known && bytes >= b->bytes && is_marked(fd, b)) return b->bytes;
  if (rule.force) return 0;
  if (!b)
    warn("%s: the file exists: name another, --continue goes on from a restart, or --force "
         "overwrites it",
         path);
  else if (!known)
    warn("%s: the file exists, and is not of the run of the restart: name another, or --force "
         "overwrites it",
         path);
  else if (bytes < b->bytes)
    warn("%s: it has %lld bytes, and had %lld when the restart was written: name another file, or "
         "--force overwrites it",
         path, (long long)bytes, (long long)b->bytes);
  else
    warn("%s: it is not the file that the run of the restart wrote: name another file, or --force "
         "overwrites it",
         path);
  return -1;
}

bool append_check(const char *path, append_rule rule) {
  struct stat about;
  if (!path || stat(path, &about) || !S_ISREG(about.st_mode)) return true;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return warn("%s: %s", path, strerror(errno)), false;
  const bool good = kept(path, fd, about.st_size, rule) >= 0;
  close(fd);
  return good;
}

/* ---- open ---- */

static bool take(append_file *a, int fd, int64_t bytes, append_rule rule) {
  if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
    return warn("%s: another process writes to it", a->path), false;
  const int64_t stays = kept(a->path, fd, bytes, rule);
  if (stays < 0) return false;
  if (ftruncate(fd, stays) || lseek(fd, 0, SEEK_END) < 0)
    return warn("%s: could not be cut: %s", a->path, strerror(errno)), false;
  a->mark.bytes = stays;
  return true;
}

bool append_open(append_file *a, const char *path, append_rule rule) {
  struct stat about;
  *a = (append_file){.path = path};
  if (!path) return true;
  const bool there = !stat(path, &about);
  if (!there) rule.before = NULL; /* a new file replaces a missing one */
  a->plain = !there || S_ISREG(about.st_mode);
  const int fd =
      open(path, a->plain ? O_RDWR | O_CREAT | O_CLOEXEC : O_WRONLY | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0 || fstat(fd, &about)) {
    warn("%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return false;
  }
  if (a->plain && !take(a, fd, about.st_size, rule)) return close(fd), false;
  a->f = fdopen(fd, "w");
  if (!a->f) warn("%s: %s", path, strerror(errno)), close(fd);
  return a->f;
}

/* ---- records ---- */

/* Unwritten data in the buffer are lost. */
static bool fail(append_file *a) {
  const int error = errno, fd = a->plain ? dup(fileno(a->f)) : -1;
  fclose(a->f);
  a->f = NULL;
  const bool cut = fd >= 0 && !ftruncate(fd, a->mark.bytes);
  if (fd >= 0) close(fd);
  warn("%s: could not be written: %s%s", a->path, strerror(error),
       cut ? "; it ends with the last whole record" : "");
  return false;
}

bool append_record(append_file *a, bool flush) {
  if (!a->f) return true;
  if (fflush(a->f)) return fail(a);
  if (ferror(a->f)) return errno = EIO, fail(a);
  if (!a->plain) return true;
  const off_t bytes = ftello(a->f);
  if (flush && fdatasync(fileno(a->f))) return fail(a);
  if (flush && !a->flushed) folder_flush(a->path);
  a->flushed |= flush;
  if (flush && !mark_of(fileno(a->f), bytes, &a->mark)) return fail(a);
  a->mark.bytes = bytes;
  return true;
}

bool append_close(append_file *a) {
  if (!a->f) return true;
  const bool good = append_record(a, false);
  if (a->f && fclose(a->f)) {
    a->f = NULL;
    return warn("%s: could not be written: %s", a->path, strerror(errno)), false;
  }
  a->f = NULL;
  return good;
}
