/* tools/train/train_restart.h - where a training run is, and the file from which it goes on. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_RESTART_H
#define CLB_TOOLS_TRAIN_TRAIN_RESTART_H

#include "tools/train/epoch.h"
#include "tools/train/learner.h"

/* What is known of an epoch; NaN where nothing is. All are doubles. */
enum { TRAINED, VALIDATED, SETS };
typedef struct {
  double lr, norm; /* of the last step; the mean norm of gradients, before clipping */
  double loss[SETS];
  double mae[SETS][LABELS], rmse[SETS][LABELS];
  double best; /* 1: it is the best so far */
} epoch_record;

/* All are doubles, with whole numbers below 2^53. */
typedef struct {
  double step, batch;                   /* steps so far; of them in this epoch */
  double seed, size, atoms;             /* of a batch, at most */
  double frames[SETS];                  /* structures of the two sets */
  double sum;                           /* train_sum */
  double norms;                         /* sum over this epoch's steps */
  double best, best_epoch;              /* INFINITY: none */
  double plateau[3];                    /* lr_plateau */
  double sums[2 + LABELS + 3 * LABELS]; /* epoch_sums of this epoch */
} train_numbers;

typedef struct {
  train_numbers at;
  epoch_record *records; /* [n]: of the epochs that are over */
  int64_t n, room;
  double *best; /* [parameters of the model]: those of the best epoch; no numbers before */
} train_state;

void sums_pack(const epoch_sums *s, double to[]);
void sums_unpack(const double from[], epoch_sums *s);
void state_add(train_state *s, const epoch_record *record);
void state_free(train_state *s);

/* A checksum of what makes losses comparable: structures, their labels, and the loss (of the first
   stage). replayed: where the frames of --replay begin. */
double train_sum(const labelled_batch sets[SETS], int64_t replayed, const clb_loss *loss);
/* These print a message when they return false. start: the checksum of the model file. The file is
   always the old one or the complete new one. */
bool train_restart_write(const char *path, uint64_t start, const train_state *s, const learner *l);
/* The seed of the run alone. */
bool train_restart_seed(const char *path, uint64_t *seed);
/* *s is zeroed but for `best`, which has room; l is open. */
bool train_restart_read(const char *path, uint64_t start, train_state *s, learner *l);

#endif
