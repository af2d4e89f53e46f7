/* tools/training/evaluate_files.h - what `clebsch evaluate` writes: a line of csv for each frame,
   and what was predicted over labels as a picture. */
#ifndef CLB_TOOLS_TRAINING_EVALUATE_FILES_H
#define CLB_TOOLS_TRAINING_EVALUATE_FILES_H

#include "tools/training/errors_of_labels.h"

/* ---- csv ---- */

void frame_row_titles(FILE *f);
/* `from`: FILE, frame N. */
void frame_row(FILE *f, const md_system *frame, const labelled_frame *l);

/* ---- the picture ---- */

/* Some of the pairs of a kind, each as likely as the others, and the worst. */
enum { PARITY_POINTS = 2000 };
typedef struct {
  int64_t seen;
  uint64_t seed;
  double known[PARITY_POINTS + 1], computed[PARITY_POINTS + 1];
  double worst[2];
} parity_sample;
void parity_sample_add(parity_sample *s, const label_pairs *p);
/* false, after a message. subtitle: what the labels are of. */
bool parity_samples_write(const char *path, parity_sample s[LABELS], const error_table *t,
                          const char *title, const char *subtitle);

#endif
