/* tools/train/train_report.h - what `clebsch train` prints, and its csv and picture. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_REPORT_H
#define CLB_TOOLS_TRAIN_TRAIN_REPORT_H

#include "tools/train/train_restart.h"

typedef struct {
  const train_arguments *a;
  const md_system *y;
  const label_statistics *statistics; /* of a new network; else NULL */
  const learner *learner;
  const labelled_batch *sets; /* [SETS] */
  int64_t replayed;           /* frames at the end of sets[TRAINED] */
  const train_state *state;
  int64_t epochs, batches; /* that the run shall have, and of an epoch */
  double seconds;
  double timed; /* steps of which devices know the times */
} train_story;

void report_head(const train_story *s);
/* Of the last record. */
void report_epoch(const train_story *s);
void report_end(const train_story *s);
void report_json(const train_story *s);
/* --csv and --plot, where they are wanted; false, after a message. */
bool report_files(const train_story *s);

#endif
