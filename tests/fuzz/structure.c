/* tests/fuzz/structure.c - fuzzer of structure files; FUZZ_ENDING says which format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"
#include "tools/dynamics/md_files.h"
#include "tests/fuzz/fuzz.h"

typedef struct {
  const char *path;
  structure_options options;
  structure s;
} input;

/* As `clebsch energy` does. */
static bool read(void *user) {
  input *in = user;
  char error[1024];
  if (structure_read(in->path, &in->options, &in->s, error, sizeof error)) return true;
  FUZZ_CHECK(!in->s.n && !in->s.positions && !in->s.numbers && !in->s.labels);
  warn("%s", error);
  return false;
}

static void check(const structure *s) {
  FUZZ_CHECK(s->n >= 0);
  for (int64_t i = 0; i < 3 * s->n; i++) FUZZ_CHECK(isfinite(s->positions[i]));
  for (int64_t i = 0; i < s->n; i++)
    FUZZ_CHECK(s->numbers[i] >= 1 && s->numbers[i] <= CLB_ELEMENTS);
  for (int k = 0; k < 9; k++) FUZZ_CHECK(isfinite(s->cell[k / 3][k % 3]));
}

static void check_labels(const structure *s) {
  const structure_labels *l = s->labels;
  FUZZ_CHECK(!isinf(l->energy) && l->weight >= 0 && isfinite(l->weight));
  for (int k = 0; k < 9; k++) {
    const double x = l->stress[k], y = l->stress[k % 3 * 3 + k / 3];
    FUZZ_CHECK(!isinf(x) && (isnan(x) ? isnan(y) : x == y));
  }
  for (int64_t i = 0; l->forces && i < 3 * s->n; i++) FUZZ_CHECK(!isinf(l->forces[i]));
}

/* As `clebsch energy --frames all` does, and `clebsch evaluate` with the labels. */
static bool read_frames(void *user) {
  input *in = user;
  char error[1024] = "";
  int found = -1;
  structure_frames *f = structure_frames_open(in->path, &in->options, error, sizeof error);
  while (f && (found = structure_frames_next(f, &in->s)) == 1) {
    check(&in->s);
    if (in->options.labels) check_labels(&in->s);
    structure_free(&in->s);
  }
  structure_frames_close(f);
  if (found < 0) warn("%s", error);
  return found == 0;
}

/* A frame that a run writes of these atoms must read back as these atoms. */
static void round_trip(const structure *s) {
  const md_system y = {.atoms = *s};
  const md_frame frame = {.system = &y, .time = NAN};
  input again = {.path = fuzz_path(".again.xyz")};
  const bool periodic = s->periodic[0] || s->periodic[1] || s->periodic[2];
  FILE *f = fopen(again.path, "w");
  FUZZ_CHECK(f && frame_write(f, &frame) && !fclose(f));
  FUZZ_CHECK(read(&again));
  FUZZ_CHECK(again.s.n == s->n && !memcmp(again.s.periodic, s->periodic, sizeof s->periodic));
  FUZZ_CHECK(!periodic || !memcmp(again.s.cell, s->cell, sizeof s->cell));
  FUZZ_CHECK(!s->n ||
             !memcmp(again.s.positions, s->positions, (size_t)s->n * 3 * sizeof *s->positions));
  FUZZ_CHECK(!s->n || !memcmp(again.s.numbers, s->numbers, (size_t)s->n * sizeof *s->numbers));
  structure_free(&again.s);
}

/* Edges join existing atoms and are no longer than cutoff plus skin. */
static void check_edges(const structure *s, const clb_neighbours *l) {
  double *x = malloc((size_t)l->n_edges * 3 * sizeof *x + 1), max = 0;
  FUZZ_CHECK(x);
  clb_neighbours_vectors(l, s->positions, x);
  for (int64_t i = 0; i < 3 * s->n; i++) max = fmax(max, fabs(s->positions[i]));
  for (int64_t e = 0; e < l->n_edges; e++) {
    const double *v = x + 3 * e, length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    FUZZ_CHECK(length <= l->cutoff + l->skin + 1e-6 + 1e-12 * max);
  }
  free(x);
}

typedef struct {
  const structure *s;
  clb_neighbours list;
} listing;

static bool list(void *user) {
  listing *l = user;
  bool rebuilt;
  if (!clb_neighbours_update(&l->list, l->s->n, l->s->positions, &l->s->cell[0][0], l->s->periodic,
                             &rebuilt))
    return true;
  warn("%s", l->list.error);
  return false;
}

/* Bytes that may be allocated for each byte of the input: a compressed one may hold a thousand
   times as much, and an atom of a CIF has up to 192 images. */
static size_t factor(const uint8_t *data, size_t n) {
  if (n > 1 && data[0] == 0x1f && data[1] == 0x8b) return 1 << 17;
  return strcmp(FUZZ_ENDING, ".cif") ? 64 : 1 << 13;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const fuzz_bounds listing_bounds = {64 << 20, 4096};
  const fuzz_bounds reading = {1 << 20, factor(data, n)};
  input in = {.path = fuzz_file(data, n, FUZZ_ENDING), .options = {.atoms_only = n % 2}};
  if (n % 8 > 5) structure_slice_read(n % 8 == 6 ? "1::2" : "-1", &in.options.frames);
  fuzz_run(&reading, n, read_frames, &in);
  in.options.labels = n % 4 > 1;
  fuzz_run(&reading, n, read_frames, &in);
  if (!fuzz_run(&reading, n, read, &in)) return fuzz_done();
  check(&in.s);
  round_trip(&in.s);
  listing l = {.s = &in.s, .list = {.cutoff = 3, .skin = 0.2}};
  if (in.s.n <= 100 && fuzz_run(&listing_bounds, n, list, &l)) check_edges(&in.s, &l.list);
  clb_neighbours_free(&l.list);
  structure_free(&in.s);
  return fuzz_done();
}
