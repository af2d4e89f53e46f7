/* tests/training/labelled_frames.h - frames with labels that are made of what the made model
   predicts for them. */
#ifndef CLB_TESTS_TRAINING_LABELLED_FRAMES_H
#define CLB_TESTS_TRAINING_LABELLED_FRAMES_H

#include "tests/command_json.h"
#include "tests/dynamics/model_folder.h"

#include "tools/structures/structure.h"

enum { FRAMES = 8 };

/* Frames, and what the model predicts for them: by `clebsch energy`. */
static structure predicted[FRAMES];

/* Atoms in cells that differ in volume, of up to ATOMS; a molecule every fourth time. */
static inline void write_atoms(FILE *f, int frame, uint64_t *seed) {
  const int n = 2 + frame % 4 * 2;
  fprintf(f, "%d\n", n);
  if (frame % 4 != 3)
    fprintf(f, "Lattice=\"%.3f 0 0 0.3 4.2 0.2 0 0.5 %.3f\" ", 4.1 + 0.2 * frame,
            4.4 + 0.1 * frame);
  fputs("Properties=species:S:1:pos:R:3\n", f);
  for (int i = 0; i < n; i++)
    fprintf(f, "%c %.4f %.4f %.4f\n", "HCO"[i % 3], 2.1 * (i % 2) + 0.3 * test_random(seed),
            2.1 * (i / 2 % 2) + 0.3 * test_random(seed), 2.1 * (i / 4) + 0.3 * test_random(seed));
}

static inline int make_predictions(void **state) {
  const structure_options wanted = {.labels = true};
  char error[600] = "";
  uint64_t seed = 3;
  if (make_work(state)) return -1;
  FILE *f = fopen("frames.xyz", "w");
  for (int i = 0; i < FRAMES; i++) write_atoms(f, i, &seed);
  fclose(f);
  free(printed_by("energy --model model --exact --structure frames.xyz --frames all --out p.xyz"));
  structure_frames *frames = structure_frames_open("p.xyz", &wanted, error, sizeof error);
  for (int i = 0; i < FRAMES; i++)
    if (structure_frames_next(frames, &predicted[i]) != 1) return -1;
  structure_frames_close(frames);
  return 0;
}

static inline int remove_predictions(void **state) {
  for (int i = 0; i < FRAMES; i++) structure_free(&predicted[i]);
  return remove_folder(state);
}

/* ---- files of labels ---- */

/* What a label is, of a prediction; NaN: there is none. */
typedef struct {
  double (*energy)(const structure *s);
  double (*force)(const structure *s, int64_t i);
  double (*stress)(const structure *s, int i);
} labelling;

static inline double same_energy(const structure *s) { return s->labels->energy; }
static inline double same_force(const structure *s, int64_t i) { return s->labels->forces[i]; }
static inline double same_stress(const structure *s, int i) { return s->labels->stress[i]; }

static inline void write_numbers(FILE *f, const char *before, int n, const double *x,
                                 const char *after) {
  fputs(before, f);
  for (int i = 0; i < n; i++) fprintf(f, "%s%.17g", i ? " " : "", x[i]);
  fputs(after, f);
}

static inline void write_labelled(FILE *f, const structure *s, const labelling *l,
                                  const char *more) {
  const bool cell = s->periodic[0];
  double stress[9];
  fprintf(f, "%d\n", (int)s->n);
  if (cell) write_numbers(f, "Lattice=\"", 9, s->cell[0], "\" ");
  fprintf(f, "Properties=species:S:1:pos:R:3%s ", l->force ? ":forces:R:3" : "");
  if (l->energy) fprintf(f, "energy=%.17g ", l->energy(s));
  for (int i = 0; i < 9 && l->stress; i++) stress[i] = l->stress(s, i);
  if (cell && l->stress) write_numbers(f, "stress=\"", 9, stress, "\" ");
  fprintf(f, "%s\n", more ? more : "");
  for (int64_t i = 0; i < s->n; i++) {
    fputs(clb_element_symbols[s->numbers[i]], f);
    write_numbers(f, " ", 3, s->positions + 3 * i, "");
    for (int k = 0; k < 3 && l->force; k++) fprintf(f, " %.17g", l->force(s, 3 * i + k));
    fputc('\n', f);
  }
}

static inline void write_all(const char *path, const labelling *l) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < FRAMES; i++) write_labelled(f, &predicted[i], l, NULL);
  fclose(f);
}

/* Each number of a label is off by one of these, which are told by the frame and the number; some
   are missing. */
static inline double off(const structure *s, int64_t i) {
  const uint64_t frame = (uint64_t)(s - predicted);
  uint64_t seed = 1000 * frame + (uint64_t)i;
  const double x = test_random(&seed);
  return frame == 2 || (frame == 4 && i == 5) ? NAN : x;
}
static inline double off_energy(const structure *s) { return s->labels->energy + off(s, 99); }
static inline double off_force(const structure *s, int64_t i) {
  return same_force(s, i) + off(s, i);
}
static inline double off_stress(const structure *s, int i) {
  return same_stress(s, i) + off(s, 50 + i % 3 + i / 3);
}

#endif
