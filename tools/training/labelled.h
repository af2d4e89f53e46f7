/* tools/training/labelled.h - a frame's labels beside what a model predicts. */
#ifndef CLB_TOOLS_TRAINING_LABELLED_H
#define CLB_TOOLS_TRAINING_LABELLED_H

#include "tools/dynamics/md_system.h"

typedef enum { LABEL_ENERGY, LABEL_FORCES, LABEL_STRESS, LABELS } label_kind;

/* Numbers that are known, NaN where one is not, beside those that were predicted. Energies are per
   atom. */
typedef struct {
  int64_t n; /* 0: none is known */
  const double *known, *computed;
} label_pairs;

typedef struct {
  label_pairs of[LABELS];
  double energy[2]; /* what the pairs of energies are */
} labelled_frame;
/* *l is filled, and points into itself and the frame. */
void label_frame_pairs(const md_system *frame, labelled_frame *l);
/* Says that no frame of a file has labels, and what they are called. */
void warn_without_labels(const char *path);
/* How many numbers are known. */
int64_t labels_known(const label_pairs *p);

#endif
