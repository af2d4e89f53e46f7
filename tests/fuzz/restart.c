/* tests/fuzz/restart.c - fuzzer of restart files. An input that begins like one is used as it is;
   any other is the text after the first line, which is given its length and checksum. */
#include "tools/dynamics/md_restart.h"
#include "tools/common/output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

typedef struct {
  const char *path;
  md_restart r;
} input;

static bool read_restart(void *user) {
  input *in = user;
  return restart_read(in->path, &in->r);
}

static void check(const md_restart *r) {
  const int64_t n = r->atoms.n;
  FUZZ_CHECK(n >= 1 && r->state.step >= 0 && isfinite(r->state.time) && r->trajectory.bytes >= 0 &&
             r->csv.bytes >= 0);
  fuzz_sentence(r->model_name);
  for (int k = 0; k < 9; k++) FUZZ_CHECK(isfinite(r->atoms.cell[k / 3][k % 3]));
  FUZZ_CHECK(isfinite(r->state.heat) && isfinite(r->state.stretch));
  for (int k = 0; k < 2 * MD_CHAIN; k++)
    FUZZ_CHECK(isfinite(r->state.chain[k / MD_CHAIN][k % MD_CHAIN]));
  for (int64_t i = 0; i < 3 * n; i++)
    FUZZ_CHECK(isfinite(r->atoms.positions[i]) && isfinite(r->state.velocities[i]) &&
               isfinite(r->state.listed[i]));
  for (int64_t i = 0; i < n; i++)
    FUZZ_CHECK(r->atoms.numbers[i] >= 1 && r->atoms.numbers[i] <= CLB_ELEMENTS);
}

static void equal_marks(const file_mark *a, const file_mark *b) {
  FUZZ_CHECK(a->bytes == b->bytes && (!a->bytes || a->sum == b->sum));
}

/* A state that is written reads back as the same state; of the model's path, the name without its
   folder is kept. */
static void round_trip(const md_restart *a) {
  const md_system y = {.name = a->model_name, .checksum = a->model, .atoms = a->atoms};
  const size_t bytes = (size_t)a->atoms.n * 3 * sizeof(double);
  input again = {.path = fuzz_path(".again")};
  const md_restart *b = &again.r;
  if (strchr(a->model_name, '/')) return;
  FUZZ_CHECK(restart_write(again.path, &y, &a->state, &a->trajectory, &a->csv) &&
             read_restart(&again));
  FUZZ_CHECK(b->model == a->model && !strcmp(b->model_name, a->model_name));
  equal_marks(&a->trajectory, &b->trajectory);
  equal_marks(&a->csv, &b->csv);
  FUZZ_CHECK(b->state.step == a->state.step && b->state.time == a->state.time &&
             b->state.seed == a->state.seed && b->atoms.n == a->atoms.n);
  FUZZ_CHECK(!memcmp(b->atoms.cell, a->atoms.cell, sizeof a->atoms.cell) &&
             !memcmp(b->atoms.periodic, a->atoms.periodic, sizeof a->atoms.periodic));
  FUZZ_CHECK(
      !memcmp(b->atoms.numbers, a->atoms.numbers, (size_t)a->atoms.n * sizeof *a->atoms.numbers));
  FUZZ_CHECK(!memcmp(b->atoms.positions, a->atoms.positions, bytes) &&
             !memcmp(b->state.velocities, a->state.velocities, bytes));
  FUZZ_CHECK(!memcmp(b->state.listed, a->state.listed, bytes));
  FUZZ_CHECK(b->state.heat == a->state.heat && b->state.stretch == a->state.stretch &&
             !memcmp(b->state.chain, a->state.chain, sizeof a->state.chain));
  restart_free(&again.r);
}

static const char *file_of(const uint8_t *data, size_t n) {
  static const char magic[] = "clebsch restart ";
  char head[128];
  uint64_t sum;
  if (n >= sizeof magic && !memcmp(data, magic, sizeof magic - 1))
    return fuzz_file(data, n, ".restart");
  const int fd = open(fuzz_file(data, n, ".restart"), O_RDONLY);
  FUZZ_CHECK(fd >= 0 && file_checksum(fd, 0, (int64_t)n, &sum) && !close(fd));
  const int m =
      snprintf(head, sizeof head, "clebsch restart 3 bytes %zu checksum %016" PRIx64 "\n", n, sum);
  char *whole = malloc((size_t)m + n);
  FUZZ_CHECK(whole);
  memcpy(whole, head, (size_t)m);
  if (n) memcpy(whole + m, data, n);
  const char *path = fuzz_file(whole, (size_t)m + n, ".restart");
  free(whole);
  return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds bounds = {1 << 20, 64, false};
  input in = {.path = file_of(data, n)};
  if (!fuzz_run(&bounds, n, read_restart, &in)) return fuzz_done();
  check(&in.r);
  round_trip(&in.r);
  restart_free(&in.r);
  return fuzz_done();
}
