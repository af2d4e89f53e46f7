/* cache.c - compiled kernels on disk. */
#include "cache.h"

#include <errno.h>
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

bool clb_cache_write(const char *path, const void *const *parts, const size_t *bytes, int n) {
  clb_text temporary = {0};
  bool good = true;
  clb_text_add(&temporary, "%s.XXXXXX", path);
  make_folders(path);
  int fd = temporary.failed ? -1 : mkstemp(temporary.s);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
  for (int i = 0; i < n && f && good; i++) good = fwrite(parts[i], 1, bytes[i], f) == bytes[i];
  if (f) good = !fclose(f) && good;
  else if (fd >= 0) close(fd);
  good = f && good && !rename(temporary.s, path);
  if (fd >= 0 && !good) unlink(temporary.s);
  clb_text_free(&temporary);
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

void clb_cache_put(const clb_cache_key *key, const void *binary, size_t bytes) {
  header h = {.key = *key, .bytes = bytes, .check = hash(key->hash[0], binary, bytes)};
  clb_text name = {0};
  memcpy(h.magic, magic, sizeof magic);
  if (file_name(key, &name)) clb_cache_write(name.s, (const void *[]){&h, binary}, (size_t[]){sizeof h, bytes}, 2);
  clb_text_free(&name);
}
