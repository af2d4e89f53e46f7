/* tools/training/labelled_batch.h - all frames of files with their labels, as the library takes
   them. */
#ifndef CLB_TOOLS_TRAINING_LABELLED_BATCH_H
#define CLB_TOOLS_TRAINING_LABELLED_BATCH_H

#include "tools/training/labelled.h"

typedef struct {
  int64_t n, room, n_atoms;
  md_system *systems;     /* [n]: atoms of the model, and their labels */
  clb_model_atoms *atoms; /* [n], and so the labels: after labelled_batch_end */
  clb_labels *labels;
  int64_t *numbers; /* [n]: of the frame in its file, from 1 */
  double *sizes;    /* [n]: atoms and edges of each; NULL: the caller has not counted them */
} labelled_batch;

/* Adds all frames of a file; y: the model. false, after a message. */
bool labelled_batch_read(labelled_batch *b, const md_system *y, const char *path,
                         const structure_options *reading);
/* Moves the n systems which[n] to the end of another batch; before labelled_batch_end. */
void labelled_batch_move(labelled_batch *from, int64_t n, const int64_t *which, labelled_batch *to);
/* After the last file. false, after a message: there are no labels. */
bool labelled_batch_end(labelled_batch *b);
/* Whether a label of it counts in a loss; else false, after a message. */
bool labelled_batch_counts(const labelled_batch *b, const clb_loss *loss);
/* Of all that a loss of it depends on; `sum`: that of what comes before. After labelled_batch_end.
 */
uint64_t labelled_batch_checksum(uint64_t sum, const labelled_batch *b);
void labelled_batch_free(labelled_batch *b);

#endif
