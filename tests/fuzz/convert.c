/* tests/fuzz/convert.c - fuzzer of other programs' models: files of Nequix, archives of TorchScript
   (FUZZ_ENDING).  What comes out must be a model. */
#include "tests/fuzz/fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_convert(fuzz_file(data, n, FUZZ_ENDING), n);
  return fuzz_done();
}
