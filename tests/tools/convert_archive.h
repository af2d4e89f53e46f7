/* tests/tools/convert_archive.h - changes PyTorch's archives, which are zip files. */
#ifndef CLB_TESTS_TOOLS_CONVERT_ARCHIVE_H
#define CLB_TESTS_TOOLS_CONVERT_ARCHIVE_H

#define _GNU_SOURCE /* memmem */
#include "tests/tools/convert_runner.h"

static inline uint32_t crc_of(const unsigned char *bytes, size_t n) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < n; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static inline void poke(size_t at, uint32_t x, int bytes) {
  for (int i = 0; i < bytes; i++) made.bytes[at + (size_t)i] = (unsigned char)(x >> 8 * i);
}

/* Changes some bytes of an entry, which is stored, where they first occur and corrects the
 * checksum.
 */
static inline void change_entry(const char *name, const unsigned char *file, size_t n,
                                const char *from, const char *to, size_t length) {
  const size_t chars = strlen(name);
  start_file();
  add_bytes(file, n);
  unsigned char *entry = memmem(made.bytes, n, name, chars),
                *central = entry ? memmem(entry + chars, n - (size_t)(entry + chars - made.bytes),
                                          name, chars)
                                 : NULL;
  assert_non_null(central);
  while (memcmp(central, "PK\1\2", 4) != 0) central--;
  unsigned char *local = entry;
  while (memcmp(local, "PK\3\4", 4) != 0) local--;
  const uint32_t bytes =
      (uint32_t)central[24] | (uint32_t)central[25] << 8 | (uint32_t)central[26] << 16;
  unsigned char *data = local + 30 + local[26] + 256 * local[27] + local[28] + 256 * local[29],
                *at = memmem(data, bytes, from, length);
  if (!at) fail_msg("there is no '%s'", from);
  memcpy(at, to, length);
  poke((size_t)(central + 16 - made.bytes), crc_of(data, bytes), 4);
}

/* The same of data.pkl. */
static inline void change(const unsigned char *file, size_t n, const char *from, const char *to,
                          size_t length) {
  change_entry("/data.pkl", file, n, from, to, length);
}

/* The bytes of a file in the folder of data. */
static inline unsigned char *original(const char *name, size_t *n) {
  char path[600];
  unsigned char *bytes = malloc(sizeof made.bytes);
  snprintf(path, sizeof path, "%s/%s", getenv("CLB_TEST_DATA"), name);
  FILE *f = fopen(path, "rb");
  if (!f || !bytes) fail_msg("%s cannot be read", path);
  *n = fread(bytes, 1, sizeof made.bytes, f);
  fclose(f);
  return bytes;
}

typedef struct {
  const char *from, *to, *what;
} changed;

/* Each change, to a text of the same length, is refused. */
static inline void refuses_changed(const char *file, const char *entry, const changed *all,
                                   size_t count) {
  size_t n;
  unsigned char *bytes = original(file, &n);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(strlen(all[i].from), strlen(all[i].to));
    change_entry(entry, bytes, n, all[i].from, all[i].to, strlen(all[i].from));
    refused_bytes(made.bytes, made.n, all[i].what);
  }
  free(bytes);
}

#endif
