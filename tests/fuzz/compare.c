/* tests/fuzz/compare.c - fuzzer of `clebsch compare`, which reads and shows results of `clebsch
   bench`. */
#include "tools/compare/compare.h"

#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

typedef struct {
  const char *path;
  comparison *c;
  FILE *html;
} input;

static bool compare(void *user) {
  input *in = user;
  if (!compare_read(in->c, in->path) || compare_make(in->c, NULL)) return false;
  for (int k = COMPARE_TEXT; k <= COMPARE_MARKDOWN; k++)
    compare_print(in->c, (enum compare_format)k);
  FUZZ_CHECK(compare_html(in->html, in->c));
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {4 << 20, 4096, false};
  static comparison c;
  static FILE *html;
  if (!html) html = fopen("/dev/null", "w");
  c = (comparison){0};
  fuzz_run(&bounds, n, compare, &(input){fuzz_file(data, n, ".json"), &c, html});
  compare_free(&c);
  return fuzz_done();
}
