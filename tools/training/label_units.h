/* tools/training/label_units.h - whether labels seem to have another unit, sign or order than is
   meant. */
#ifndef CLB_TOOLS_TRAINING_LABEL_UNITS_H
#define CLB_TOOLS_TRAINING_LABEL_UNITS_H

#include "tools/training/labelled.h"

/* Sums over numbers of x^2, x label and label^2, for several x that are made of predictions: as
   they are, and as somebody could have meant the labels. */
enum { LABEL_FORMS = 7, LABEL_UNITS_TEXT = 256 };
typedef struct {
  int64_t n[LABELS];
  double xx[LABELS][LABEL_FORMS], xl[LABELS][LABEL_FORMS], ll[LABELS];
} label_fits;

void label_fits_add(label_fits *f, const md_system *frame, const labelled_frame *l);
/* false: nothing is wrong, or it cannot be known: predictions must explain most of the labels. */
bool label_units_wrong(const label_fits *f, label_kind kind, char text[LABEL_UNITS_TEXT]);

#endif
