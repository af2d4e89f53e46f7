/* src/runtime/kernel_cache.c - compiled kernels on disk. */
#include "src/runtime/kernel_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/cache_folder.h"

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

void clb_cache_put(const clb_hash *key, const void *binary, size_t bytes, clb_text *trouble) {
  header h = {.key = *key, .bytes = bytes, .check = clb_hash_bytes(key->word[0], binary, bytes)};
  clb_text name = {0}, in = {0};
  memcpy(h.magic, magic, sizeof magic);
  const bool failed =
      file_name(key, &name) &&
      !clb_cache_write(name.s, (const void *[]){&h, binary}, (size_t[]){sizeof h, bytes}, 2);
  if (failed && trouble && !trouble->n) {
    const char *why = strerror(errno);
    clb_cache_folder(&in);
    clb_text_add(trouble,
                 "kernels cannot be kept in the cache folder '%s': %s; they are compiled again "
                 "every time, unless CLB_CACHE_DIR names another folder",
                 in.s ? in.s : "", why);
  }
  clb_text_free(&name);
  clb_text_free(&in);
}
