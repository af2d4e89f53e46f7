/* tests/fuzz/pickle.c - fuzzer of the pickles of a TorchScript archive, whose other entries and
   checksums are good.

   Input: the length of data.pkl (4 bytes, little endian), data.pkl, constants.pkl. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tools/convert/zip.h"
#include "tests/fuzz/fuzz_model.h"

enum { MAX_ENTRIES = 64, MAX_BYTES = 1 << 20 };

/* The good archive's other entries. */
static struct {
  char name[80];
  const uint8_t *data;
  size_t n;
} others[MAX_ENTRIES];
static int n_others;

/* The archive that is made. */
static uint8_t *archive, *directory;
static size_t n_archive, n_directory;
static int n_entries;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  static source_file in = {.path = "seed"};
  static zip z;
  (void)argc, (void)argv;
  in.bytes = fuzz_corpus("torch/tiny.pth", &in.n);
  zip_open(&z, &in);
  zip_enter(&z);
  for (int i = 0; i < z.n; i++) {
    const zip_entry *e = &z.entries[i];
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)(e->name_bytes - z.top), e->name + z.top);
    if (!strcmp(name, "data.pkl") || !strcmp(name, "constants.pkl")) continue;
    FUZZ_CHECK(n_others < MAX_ENTRIES);
    memcpy(others[n_others].name, name, sizeof name);
    others[n_others].data = zip_find(&z, name, &others[n_others].n);
    n_others++;
  }
  archive = malloc(2 * MAX_BYTES);
  directory = malloc(MAX_BYTES);
  FUZZ_CHECK(archive && directory);
  return 0;
}

static void put(uint8_t *to, size_t *at, uint64_t x, int bytes) {
  for (int i = 0; i < bytes; i++) to[(*at)++] = i < 8 ? (uint8_t)(x >> 8 * i) : 0;
}

static void put_bytes(uint8_t *to, size_t *at, const void *bytes, size_t n) {
  if (n) memcpy(to + *at, bytes, n);
  *at += n;
}

/* The part that the entry's own header and the directory share. */
static void put_sizes(uint8_t *to, size_t *at, const uint8_t *data, size_t n, size_t name) {
  put(to, at, 0, 8); /* flags, method, time, date */
  put(to, at, crc32_z(0, data, n), 4);
  put(to, at, n, 4);
  put(to, at, n, 4);
  put(to, at, name, 2);
  put(to, at, 0, 2);
}

static void add(const char *name, const uint8_t *data, size_t n) {
  char whole[96];
  const size_t start = n_archive, length = (size_t)snprintf(whole, sizeof whole, "m/%s", name);
  put(archive, &n_archive, 0x04034b50, 4);
  put(archive, &n_archive, 20, 2);
  put_sizes(archive, &n_archive, data, n, length);
  put_bytes(archive, &n_archive, whole, length);
  put_bytes(archive, &n_archive, data, n);
  put(directory, &n_directory, 0x02014b50, 4);
  put(directory, &n_directory, 20, 2);
  put(directory, &n_directory, 20, 2);
  put_sizes(directory, &n_directory, data, n, length);
  put(directory, &n_directory, 0, 10);
  put(directory, &n_directory, start, 4);
  put_bytes(directory, &n_directory, whole, length);
  n_entries++;
}

static void end(void) {
  const size_t start = n_archive, bytes = n_directory;
  put_bytes(archive, &n_archive, directory, bytes);
  put(archive, &n_archive, 0x06054b50, 4);
  put(archive, &n_archive, 0, 4);
  put(archive, &n_archive, (uint64_t)n_entries, 2);
  put(archive, &n_archive, (uint64_t)n_entries, 2);
  put(archive, &n_archive, bytes, 4);
  put(archive, &n_archive, start, 4);
  put(archive, &n_archive, 0, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  uint32_t first;
  if (n < 4 || n > MAX_BYTES / 2) return -1;
  memcpy(&first, data, sizeof first);
  if (first > n - 4) return -1;
  n_archive = n_directory = 0;
  n_entries = 0;
  add("data.pkl", data + 4, first);
  add("constants.pkl", data + 4 + first, n - 4 - first);
  for (int i = 0; i < n_others; i++) add(others[i].name, others[i].data, others[i].n);
  end();
  fuzz_convert(fuzz_file(archive, n_archive, ".pth"), n_archive);
  return fuzz_done();
}
