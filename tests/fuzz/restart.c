/* restart.c - fuzzer of the files that a run goes on from. */
#include "../../tools/md_restart.h"

#include <math.h>
#include <string.h>

#include "fuzz.h"

typedef struct {
  const char *path;
  structure atoms;
  md_state state;
} input;

static bool read(void *user) {
  input *in = user;
  return restart_read(in->path, &in->atoms, &in->state);
}

static void check(const input *in) {
  const int64_t n = in->atoms.n;
  FUZZ_CHECK(n >= 1 && in->state.step >= 0 && isfinite(in->state.time));
  for (int k = 0; k < 9; k++) FUZZ_CHECK(isfinite(in->atoms.cell[k / 3][k % 3]));
  for (int64_t i = 0; i < 3 * n; i++) {
    FUZZ_CHECK(isfinite(in->atoms.positions[i]) && isfinite(in->state.velocities[i]) && isfinite(in->state.listed[i]));
  }
  for (int64_t i = 0; i < n; i++) FUZZ_CHECK(in->atoms.numbers[i] >= 1 && in->atoms.numbers[i] <= CLB_ELEMENTS);
}

static void forget(input *in) {
  structure_free(&in->atoms);
  md_state_free(&in->state);
}

static void round_trip(const input *in) {
  const md_system y = {.atoms = in->atoms};
  const size_t bytes = (size_t)in->atoms.n * 3 * sizeof(double);
  input again = {.path = fuzz_path(".again")};
  FUZZ_CHECK(restart_write(again.path, &y, &in->state) && read(&again));
  const md_state *a = &in->state, *b = &again.state;
  FUZZ_CHECK(b->step == a->step && b->time == a->time && b->seed == a->seed && again.atoms.n == in->atoms.n);
  FUZZ_CHECK(!memcmp(again.atoms.cell, in->atoms.cell, sizeof in->atoms.cell));
  FUZZ_CHECK(!memcmp(again.atoms.periodic, in->atoms.periodic, sizeof in->atoms.periodic));
  FUZZ_CHECK(!memcmp(again.atoms.numbers, in->atoms.numbers, (size_t)in->atoms.n * sizeof *in->atoms.numbers));
  FUZZ_CHECK(!memcmp(again.atoms.positions, in->atoms.positions, bytes));
  FUZZ_CHECK(!memcmp(b->velocities, a->velocities, bytes) && !memcmp(b->listed, a->listed, bytes));
  forget(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {1 << 20, 64, false};
  input in = {.path = fuzz_file(data, n, ".restart")};
  if (!fuzz_run(&bounds, n, read, &in)) return 0;
  check(&in);
  round_trip(&in);
  forget(&in);
  return 0;
}
