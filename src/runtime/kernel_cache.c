/* src/runtime/kernel_cache.c - compiled kernels on disk. */
#include "src/runtime/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* FNV-1a with two offsets and a final mix. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n) {
  for (const unsigned char *c = bytes; n--; c++) h = (h ^ *c) * 1099511628211u;
  return (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
}

clb_cache_key clb_cache_hash(const void *const *parts, const size_t *bytes, int n) {
  clb_cache_key key = {{14695981039346656037u, 0x6c62272e07bb0142u}};
  for (int i = 0; i < n; i++)
    for (int h = 0; h < 2; h++) key.hash[h] = hash(hash(key.hash[h], &bytes[i], sizeof bytes[i]), parts[i], bytes[i]);
  return key;
}

/* A file is this header and the binary. */
typedef struct {
  char magic[8];
  clb_cache_key key;
  uint64_t bytes, check;
} header;

static const char magic[8] = "clebsch1";

/* The folder, or nothing where the cache is off. */
static void folder(clb_text *path) {
  const char *own = getenv("CLB_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (own && *own) {
    if (strcmp(own, "off")) clb_text_add(path, "%s", own);
  } else if (xdg && *xdg) clb_text_add(path, "%s/clebsch", xdg);
  else if (home && *home) clb_text_add(path, "%s/.cache/clebsch", home);
}

/* Of a file to come. */
static void make_folders(const char *path) {
  clb_text part = {0};
  for (const char *c = path; *c && !part.failed; c++) {
    if (*c == '/' && part.n) mkdir(part.s, 0777);
    clb_text_bytes(&part, c, 1);
  }
  clb_text_free(&part);
}

bool clb_cache_path(const char *name, clb_text *path) {
  folder(path);
  if (path->n) clb_text_add(path, "/%s", name);
  return path->n && !path->failed;
}

/* What the folder holds by a lasting name: kernels by their keys, "wisdom", and what cpu knows of a
   compiler (".cc-" and a key). */
static bool is_lasting(const char *name, size_t n) {
  enum { HEX = 32 };
  if (n == 6 && !strncmp(name, "wisdom", 6)) return true;
  if (n < HEX || strspn(name + n - HEX, "0123456789abcdef") < HEX) return false;
  return n == HEX || (*name == '.' && name[n - HEX - 1] == '-');
}

clb_cache_name clb_cache_name_of(const char *name) {
  const char *point = strrchr(name, '.');
  if (is_lasting(name, strlen(name))) return CLB_CACHE_LASTING;
  if (point && is_lasting(name, (size_t)(point - name))) return CLB_CACHE_TEMPORARY;
  return CLB_CACHE_FOREIGN;
}

/* A new file beside `path`, as readable as the user's umask has it (mkstemp's are not).  -1: errno. */
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
  make_folders(path);
  const int fd = make_beside(path, &temporary);
  bool good = fd >= 0;
  int e = errno;
  for (int i = 0; i < n && good; i++) good = write_all(fd, parts[i], bytes[i]);
  if (fd >= 0 && !good) e = errno;
  if (fd >= 0 && close(fd) && good) good = false, e = errno;
  if (good && rename(temporary.s, path)) good = false, e = errno;
  if (fd >= 0 && !good) unlink(temporary.s);
  clb_text_free(&temporary);
  errno = e;
  return good;
}

static bool file_name(const clb_cache_key *key, clb_text *name) {
  char hex[33];
  snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, key->hash[0], key->hash[1]);
  return clb_cache_path(hex, name);
}

static bool read_entry(FILE *f, const clb_cache_key *key, clb_text *binary) {
  header h;
  size_t before = binary->n;
  char piece[65536];
  if (fread(&h, sizeof h, 1, f) != 1 || memcmp(h.magic, magic, sizeof magic) || memcmp(&h.key, key, sizeof *key)) return false;
  for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) clb_text_bytes(binary, piece, n);
  bool good = !binary->failed && binary->n - before == h.bytes && h.bytes && hash(h.key.hash[0], binary->s + before, h.bytes) == h.check;
  if (!good && !binary->failed && binary->s) binary->s[binary->n = before] = 0;
  return good;
}

bool clb_cache_get(const clb_cache_key *key, clb_text *binary) {
  clb_text name = {0};
  FILE *f = file_name(key, &name) ? fopen(name.s, "rb") : NULL;
  bool good = f && read_entry(f, key, binary);
  if (f) fclose(f);
  clb_text_free(&name);
  return good;
}

void clb_cache_put(const clb_cache_key *key, const void *binary, size_t bytes, clb_text *trouble) {
  header h = {.key = *key, .bytes = bytes, .check = hash(key->hash[0], binary, bytes)};
  clb_text name = {0}, in = {0};
  memcpy(h.magic, magic, sizeof magic);
  const bool failed = file_name(key, &name) && !clb_cache_write(name.s, (const void *[]){&h, binary}, (size_t[]){sizeof h, bytes}, 2);
  if (failed && trouble && !trouble->n) {
    const char *why = strerror(errno);
    folder(&in);
    clb_text_add(trouble, "kernels cannot be kept in the cache folder '%s': %s; they are compiled again every time, unless CLB_CACHE_DIR names another folder", in.s ? in.s : "", why);
  }
  clb_text_free(&name);
  clb_text_free(&in);
}
