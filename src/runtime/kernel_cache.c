/* src/runtime/kernel_cache.c - compiled kernels on disk. */
#define _GNU_SOURCE
#include "src/runtime/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/cache_folder.h"
#include "src/base/folders.h"

/* A file is this header and the binary. */
typedef struct {
  char magic[8];
  clb_hash key;
  uint64_t bytes, check;
} header;

static const char magic[8] = "clebsch1";

static bool file_name(const clb_hash *key, clb_text *name) {
  char hex[33];
  snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, key->word[0], key->word[1]);
  return clb_cache_path(hex, name);
}

static bool read_entry(FILE *f, const clb_hash *key, clb_text *binary) {
  header h;
  size_t before = binary->n;
  char piece[65536];
  if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) ||
      memcmp(&h.key, key, sizeof *key))
    return false;
  for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) clb_text_bytes(binary, piece, n);
  bool good = !binary->failed && binary->n - before == h.bytes && h.bytes &&
              clb_hash_bytes(h.key.word[0], binary->s + before, h.bytes) == h.check;
  if (!good && !binary->failed && binary->s) binary->s[binary->n = before] = 0;
  return good;
}

bool clb_cache_get(const clb_hash *key, clb_text *binary) {
  clb_text name = {0};
  FILE *f = file_name(key, &name) ? fopen(name.s, "rb") : NULL;
  bool good = f && read_entry(f, key, binary);
  if (f) fclose(f);
  clb_text_free(&name);
  return good;
}

/* Says what it costs that nothing is kept, unless something has been said. */
static void say_trouble(clb_text *trouble, const char *why) {
  clb_text in = {0};
  if (!trouble || trouble->n) return;
  clb_cache_folder(&in);
  if (in.n) clb_text_add(trouble, "kernels cannot be kept in the cache folder '%s': %s", in.s, why);
  else
    clb_text_add(trouble, "kernels are not kept, as none of CLB_CACHE_DIR, XDG_CACHE_HOME and HOME "
                          "is set");
  clb_text_add(trouble,
               "; they are compiled again every time, unless CLB_CACHE_DIR names %s folder",
               in.n ? "another" : "a");
  clb_text_free(&in);
}

void clb_cache_put(const clb_hash *key, const void *binary, size_t bytes, clb_text *trouble) {
  header h = {.key = *key, .bytes = bytes, .check = clb_hash_bytes(key->word[0], binary, bytes)};
  clb_text name = {0};
  memcpy(h.magic, magic, sizeof magic);
  if (clb_cache_is_off()) return;
  if (!file_name(key, &name) ||
      !clb_cache_write(name.s, (const void *[]){&h, binary}, (size_t[]){sizeof h, bytes}, 2))
    say_trouble(trouble, strerror(errno));
  clb_text_free(&name);
}

/* ---- one process compiles ---- */

/* Each key has a byte of one file. The lock of a process that is killed is gone. 0: taken; EAGAIN:
   another one has it; else there are no locks. */
static int try_lock(int fd, const clb_hash *key, short kind) {
  struct flock range = {
      .l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)(key->word[0] >> 2), .l_len = 1};
  if (!fcntl(fd, F_OFD_SETLK, &range)) return 0;
  return errno == EACCES ? EAGAIN : errno;
}

static int open_locks(void) {
  clb_text path = {0};
  int fd = -1;
  if (clb_cache_path(CLB_CACHE_LOCKS, &path)) {
    clb_make_folders(path.s);
    fd = open(path.s, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  }
  clb_text_free(&path);
  return fd;
}

int clb_cache_begin(const clb_hash *key) {
  enum { PATIENCE = 120, FIRST = 5000000, LAST = 200000000 }; /* seconds; nanoseconds */
  const time_t end = time(NULL) + PATIENCE;
  struct timespec step = {0, FIRST};
  clb_text done = {0};
  const int fd = open_locks();
  int e = fd < 0 || !file_name(key, &done) ? ENOENT : try_lock(fd, key, F_WRLCK);
  while (e == EAGAIN && access(done.s, F_OK) && time(NULL) < end) {
    nanosleep(&step, NULL);
    if (step.tv_nsec < LAST) step.tv_nsec *= 2;
    e = try_lock(fd, key, F_WRLCK);
  }
  clb_text_free(&done);
  if (!e) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* Unlocks, too: a child that another thread has forked meanwhile has the descriptor. */
void clb_cache_end(const clb_hash *key, int lock) {
  if (lock < 0) return;
  try_lock(lock, key, F_UNLCK);
  close(lock);
}
