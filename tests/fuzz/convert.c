/* convert.c - fuzzer of other programs' models: files of Nequix, archives of TorchScript (FUZZ_ENDING).  What comes out must be a model. */
#include "../../tools/convert.h"

#include <unistd.h>

#include "model.h"

typedef struct {
  const char *from, *to;
} paths;

static bool convert(void *user) {
  const paths *p = user;
  convert_file(p->from, p->to);
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {4 << 20, 256, false};
  paths p = {fuzz_file(data, n, FUZZ_ENDING), fuzz_path(".safetensors")};
  if (fuzz_run(&bounds, n, convert, &p)) fuzz_model(p.to, n), unlink(p.to);
  else FUZZ_CHECK(access(p.to, F_OK));
  return fuzz_done();
}
