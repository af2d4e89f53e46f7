/* src/base/hash.c - FNV-1a with two offsets and a final mix. */
#include "src/base/hash.h"

#include <string.h>

uint64_t clb_hash_bytes(uint64_t h, const void *bytes, size_t n) {
  for (const unsigned char *c = bytes; n--; c++) h = (h ^ *c) * 1099511628211u;
  return (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
}

uint64_t clb_hash_doubles(uint64_t h, int64_t n, const double *x) {
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    h = (h ^ bits) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h * 0x9e3779b97f4a7c15u;
}

clb_hash clb_hash_parts(const void *const *parts, const size_t *bytes, int n) {
  clb_hash h = {{14695981039346656037u, 0x6c62272e07bb0142u}};
  for (int i = 0; i < n; i++)
    for (int k = 0; k < 2; k++)
      h.word[k] =
          clb_hash_bytes(clb_hash_bytes(h.word[k], &bytes[i], sizeof bytes[i]), parts[i], bytes[i]);
  return h;
}
