/* tests/fuzz/safetensors.c - fuzzer of whole model files. */
#include "tests/fuzz/fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_model(fuzz_file(data, n, ".safetensors"), n);
  return fuzz_done();
}
