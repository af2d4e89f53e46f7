/* tests/fuzz/header.c - fuzzer of the headers of model files; the data are those of one of three
   good models, as the header ends with a space, with the end of a line, or with neither. One in 16
   of the accepted models is also opened on the interpreter and computes two atoms: finite numbers,
   or an error message. */
#include <clebsch/model.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz_model.h"

enum { LENGTH_BYTES = 8 };

typedef struct {
  const uint8_t *bytes;
  size_t n;
} body;
static body bodies[3];

static body body_of(const char *model) {
  uint64_t header;
  size_t n;
  uint8_t *file = fuzz_corpus(model, &n);
  memcpy(&header, file, sizeof header);
  const size_t start = LENGTH_BYTES + (size_t)header;
  return (body){file + start, n - start};
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  setenv("CLB_CACHE_DIR", "off", 1);
  bodies[0] = body_of("safetensors/tiny");
  bodies[1] = body_of("safetensors/nequip");
  bodies[2] = body_of("safetensors/mace");
  return 0;
}

static const char *model_of(const uint8_t *header, uint64_t n, const body *b) {
  uint8_t *file = malloc(LENGTH_BYTES + n + b->n);
  FUZZ_CHECK(file);
  memcpy(file, &n, LENGTH_BYTES);
  if (n) memcpy(file + LENGTH_BYTES, header, n);
  memcpy(file + LENGTH_BYTES + n, b->bytes, b->n);
  const char *path = fuzz_file(file, LENGTH_BYTES + n + b->n, ".safetensors");
  free(file);
  return path;
}

static void compute(clb_context *ctx, clb_model *model) {
  const double positions[] = {0, 0, 0, 0.5, 0.6, 0.7};
  const int32_t species[] = {0, 0};
  double energy, forces[6];
  const clb_model_atoms atoms = {.n = 2, .species = species, .positions = positions};
  if (clb_model_compute(model, &atoms, &(clb_model_results){.energy = &energy, .forces = forces})) {
    fuzz_sentence(clb_error(ctx));
    return;
  }
  FUZZ_CHECK(isfinite(energy));
  for (int k = 0; k < 6; k++) FUZZ_CHECK(isfinite(forces[k]));
}

static void open_model(const char *path) {
  clb_context *ctx = NULL;
  clb_model *model = NULL;
  clb_model_info info;
  FUZZ_CHECK(!clb_context_create("cpu:interpreter", &ctx));
  if (clb_model_open(ctx, path, NULL, &model)) fuzz_sentence(clb_error(ctx));
  else {
    FUZZ_CHECK(!clb_model_describe(model, &info) && info.n_species >= 1 && info.n_layers >= 1);
    compute(ctx, model);
  }
  clb_model_destroy(&model);
  clb_context_destroy(&ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static unsigned accepted;
  const char end = n ? (char)data[n - 1] : 0;
  const body *b = &bodies[end == ' ' ? 1 : end == '\n' ? 2 : 0];
  const char *path = model_of(data, n, b);
  if (fuzz_model(path, n + b->n) && accepted++ % 16 == 0) open_model(path);
  return fuzz_done();
}
