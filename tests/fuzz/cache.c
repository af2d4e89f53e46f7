/* tests/fuzz/cache.c - fuzzer of the kernel cache's entries, and of the kernels that the
   interpreter keeps there.

   Input: a byte; if it is even, the rest is a whole file; otherwise it is the contents of a good
   file. */
#include "src/base/cache_folder.h"
#include "src/runtime/kernel_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/ir/ir.h"
#include "tests/fuzz/fuzz.h"

static const clb_hash key = {{0x0123456789abcdef, 0xfedcba9876543210}};
static char entry[600]; /* the key's file */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  char name[40];
  clb_text path = {0};
  setenv("CLB_CACHE_DIR", fuzz_path(".cache"), 1);
  snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64, key.word[0], key.word[1]);
  FUZZ_CHECK(clb_cache_path(name, &path) && path.n < sizeof entry);
  memcpy(entry, path.s, path.n + 1);
  clb_text_free(&path);
  clb_cache_put(&key, "x", 1, NULL); /* makes the folder */
  FUZZ_CHECK(!access(entry, R_OK));
  return 0;
}

static void write_whole(const uint8_t *data, size_t n) {
  FILE *f = fopen(entry, "wb");
  FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && !fclose(f));
}

static bool get(void *binary) { return clb_cache_get(&key, binary); }

/* An entry that the cache returns, stored again, gives the same file. */
static void put_again(const clb_text *binary, const uint8_t *file, size_t n) {
  clb_cache_put(&key, binary->s, binary->n, NULL);
  uint8_t *bytes = malloc(n + 1);
  FILE *f = fopen(entry, "rb");
  FUZZ_CHECK(f && bytes && fread(bytes, 1, n + 1, f) == n && !memcmp(bytes, file, n));
  fclose(f);
  free(bytes);
}

typedef struct {
  const clb_text *binary;
  ir_kernel k;
} kernel;

static bool read_kernel(void *user) {
  kernel *in = user;
  return ir_read(&in->k, in->binary->s, in->binary->n);
}

/* An accepted kernel is valid and is written as the same bytes, but for those after the end of the
   name. */
static void check_kernel(const clb_text *binary) {
  static const fuzz_bounds bounds = {1 << 20, 64, true};
  kernel in = {.binary = binary};
  if (!fuzz_run(&bounds, binary->n, read_kernel, &in)) return;
  char mistake[256];
  FUZZ_CHECK(ir_verify(&in.k, mistake, sizeof mistake));
  const size_t n = ir_write(&in.k, NULL, 0);
  FUZZ_CHECK(n == binary->n);
  clb_text bytes = {.s = malloc(n), .n = n, .cap = n};
  ir_write(&in.k, bytes.s, n);
  kernel again = {.binary = &bytes};
  FUZZ_CHECK(read_kernel(&again));
  ir_free(&again.k);
  ir_free(&in.k);
  clb_text_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {1 << 18, 8, true};
  clb_text binary = {0};
  if (!n) return -1;
  const bool whole = data[0] % 2 == 0;
  data++, n--;
  if (whole) write_whole(data, n);
  else clb_cache_put(&key, data, n, NULL);
  const bool good = fuzz_run(&bounds, n, get, &binary);
  FUZZ_CHECK(whole || good == (n > 0));
  FUZZ_CHECK(good == (binary.n > 0));
  if (!whole && good) FUZZ_CHECK(binary.n == n && !memcmp(binary.s, data, n));
  if (whole && good) put_again(&binary, data, n);
  if (good) check_kernel(&binary);
  clb_text_free(&binary);
  return fuzz_done();
}
