/* tests/fuzz/ipi.c - fuzzer of `clebsch serve`'s side of i-PI's protocol. The answers, the end and
   the sentence are the same whether the bytes come at once or in pieces. */
#include "tools/serve/ipi_session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/cli/tool.h"

enum { ATOMS = 2 };

/* Any function of the input; some positions have no energy. */
static bool compute(serve_engine *e, char *error, size_t size) {
  e->energy = 0;
  for (int k = 0; k < 9; k++) {
    FUZZ_CHECK(isfinite(e->cell[k / 3][k % 3]));
    e->virial[k / 3][k % 3] = 2 * e->cell[k % 3][k / 3];
  }
  for (int i = 0; i < 3 * ATOMS; i++) {
    FUZZ_CHECK(isfinite(e->positions[i]));
    e->energy += e->positions[i];
    e->forces[i] = -e->positions[i];
  }
  if (e->energy != -1) return true;
  snprintf(error, size, "the energy is -1");
  return false;
}

typedef struct {
  const uint8_t *bytes;
  size_t n;
  bool pieces;
  double positions[3 * ATOMS], forces[3 * ATOMS];
  serve_engine engine;
  ipi_session session;
} input;

/* Pieces are as long as the byte before them says. */
static bool converse(void *user) {
  input *in = user;
  in->engine = (serve_engine){
      .n = ATOMS, .positions = in->positions, .forces = in->forces, .compute = compute};
  ipi_session *s = &in->session;
  ipi_session_make(s, &in->engine);
  for (size_t at = 0, more; at < in->n && s->state == IPI_OPEN; at += more) {
    more = in->pieces && at ? 1 + in->bytes[at - 1] % 40u : in->pieces ? 1 : in->n;
    if (more > in->n - at) more = in->n - at;
    ipi_session_take(s, in->bytes + at, more);
  }
  ipi_session_close(s);
  FUZZ_CHECK(s->state == IPI_ENDED || s->state == IPI_BROKEN);
  if (s->state == IPI_BROKEN) warn("client 1: %s", s->error);
  return s->state == IPI_ENDED;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {1 << 16, 8, false};
  input whole = {.bytes = data, .n = n}, parts = {.bytes = data, .n = n, .pieces = true};
  const bool good = fuzz_run(&bounds, n, converse, &whole);
  FUZZ_CHECK(fuzz_run(&bounds, n, converse, &parts) == good);
  FUZZ_CHECK(whole.session.n_out == parts.session.n_out);
  FUZZ_CHECK(!whole.session.n_out ||
             !memcmp(whole.session.out, parts.session.out, whole.session.n_out));
  FUZZ_CHECK(!strcmp(whole.session.error, parts.session.error));
  ipi_session_free(&whole.session);
  ipi_session_free(&parts.session);
  return fuzz_done();
}
