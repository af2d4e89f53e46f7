/* tests/fuzz/wisdom.c - fuzzer of files of wisdom.

   No input could guess hashes, so a line that starts with '!' is made one of this device and of a
   known problem, and a line that starts with '@' one of this device and of a problem of its own. A
   text that starts with '%' is repeated, so that quadratic algorithms take long. */
#include "src/runtime/wisdom.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static clb_context *ctx;
static clb_problem problem;
static char device[128], key[256]; /* how lines of the device, and of the problem, start */

static uint8_t *contents(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  FUZZ_CHECK(f && !fseek(f, 0, SEEK_END));
  const long size = ftell(f);
  uint8_t *bytes = malloc((size_t)size + 1);
  rewind(f);
  FUZZ_CHECK(bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size && !fclose(f));
  *n = (size_t)size;
  return bytes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  size_t n;
  int end_device, end_key;
  setenv("CLB_CACHE_DIR", "off", 1);
  FUZZ_CHECK(!clb_context_create("cpu:interpreter", &ctx));
  clb_wisdom_keep(ctx, &problem, &(clb_choice){.schedule.lanes = 1, .ns = 1});
  FUZZ_CHECK(!clb_wisdom_export(ctx, fuzz_path(".seed")));
  char *line = (char *)contents(fuzz_path(".seed"), &n);
  FUZZ_CHECK(n);
  line[n - 1] = 0;
  FUZZ_CHECK(sscanf(line, "%*s %*s %*s %n%*s %n", &end_device, &end_key) == 0);
  snprintf(device, sizeof device, "%.*s", end_device, line);
  snprintf(key, sizeof key, "%.*s", end_key, line);
  free(line);
  return 0;
}

static void expand(const uint8_t *data, size_t n, clb_text *out) {
  static unsigned problems;
  for (size_t i = 0, end; i < n; i = end) {
    if (data[i] == '@') clb_text_add(out, "%s%032x ", device, problems++);
    if (data[i] == '!') clb_text_add(out, "%s", key);
    const size_t start = i + (data[i] == '@' || data[i] == '!');
    const uint8_t *line = memchr(data + i, '\n', n - i);
    end = line ? (size_t)(line - data) + 1 : n;
    clb_text_bytes(out, data + start, end - start);
  }
  FUZZ_CHECK(!out->failed);
}

/* The text, as it is or repeated. */
static void make_text(const uint8_t *data, size_t n, clb_text *out) {
  enum { MOST = 200 << 10 };
  const bool often = n > 1 && data[0] == '%';
  do expand(data + often, n - often, out);
  while (often && out->n < MOST);
}

static bool import(void *path) { return !clb_wisdom_import(ctx, path); }

static bool export(void *path) { return !clb_wisdom_export(ctx, path); }

static void equal_files(const char *first, const char *second) {
  size_t n, m;
  uint8_t *a = contents(first, &n), *b = contents(second, &m);
  FUZZ_CHECK(n == m && !memcmp(a, b, n));
  free(a);
  free(b);
}

/* Exported wisdom, imported into nothing or onto itself, is exported again unchanged. */
static void round_trip(void) {
  static const fuzz_bounds bounds = {8 << 20, 0, true};
  const char *first = fuzz_path(".first"), *second = fuzz_path(".second");
  FUZZ_CHECK(fuzz_run(&bounds, 0, export, (void *)first));
  for (int onto_itself = 0; onto_itself < 2; onto_itself++) {
    if (!onto_itself) clb_wisdom_forget(ctx);
    FUZZ_CHECK(fuzz_run(&bounds, 0, import, (void *)first) &&
               fuzz_run(&bounds, 0, export, (void *)second));
    equal_files(first, second);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {1 << 20, 64, true};
  clb_text text = {0};
  clb_choice choice;
  make_text(data, n, &text);
  const char *path = fuzz_file(text.s, text.n, ".wisdom");
  clb_wisdom_forget(ctx);
  if (fuzz_run(&bounds, text.n, import, (void *)path)) {
    if (clb_wisdom_find(ctx, &problem, &choice)) FUZZ_CHECK(choice.measured);
    round_trip();
  } else fuzz_sentence(clb_error(ctx));
  clb_text_free(&text);
  clb_text_free(&ctx->error.text);
  clb_wisdom_forget(ctx);
  return fuzz_done();
}
