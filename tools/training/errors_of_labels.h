/* tools/training/errors_of_labels.h - mean errors of predictions, by the frames' config_type. */
#ifndef CLB_TOOLS_TRAINING_ERRORS_OF_LABELS_H
#define CLB_TOOLS_TRAINING_ERRORS_OF_LABELS_H

#include "tools/training/labelled.h"

/* Sums over numbers of energies per atom, components of forces, components of stresses. */
typedef struct {
  int64_t n;
  double absolute, square;
} label_error;

void label_error_add(label_error *e, const label_pairs *p);
/* Not finite where there are no numbers. */
double label_error_mean(const label_error *e);      /* MAE */
double label_error_root_mean(const label_error *e); /* RMSE */

typedef struct {
  char *type; /* NULL: of frames without config_type, or of all */
  int64_t frames, atoms, unlabelled;
  label_error of[LABELS];
} type_errors;

typedef struct {
  type_errors all, *types; /* types: in the order in which they occur */
  int n, room;
} error_table;

void error_table_add(error_table *t, const md_system *frame, const labelled_frame *l);
void error_table_free(error_table *t);

#endif
