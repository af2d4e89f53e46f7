/* tools/training/learning_rate.h - the learning rate of each step. */
#ifndef CLB_TOOLS_TRAINING_LEARNING_RATE_H
#define CLB_TOOLS_TRAINING_LEARNING_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
  LR_CONSTANT,
  LR_LINEAR,
  LR_COSINE,
  LR_EXPONENTIAL,
  LR_STEP,
  LR_PLATEAU,
  LR_SCHEDULES
} lr_kind;
extern const char *const lr_names[LR_SCHEDULES];

typedef struct {
  lr_kind kind;
  double lr, end;   /* end: it falls no lower */
  double decay;     /* factor of an epoch, of some epochs, or at a plateau */
  double threshold; /* part by which a loss must fall below the best one */
  int64_t patience; /* epochs: of a plateau, or between steps */
  double warm_up;   /* in steps */
  double warm_from; /* part of lr at the first step of the warm-up; 0: lr / warm_up */
} lr_schedule;

/* A step of an epoch; both are counted from 0. */
typedef struct {
  int64_t epoch, epochs; /* epochs: of the whole run */
  int64_t step, steps;   /* steps: of this epoch, as if all had as many */
} lr_time;

/* What a plateau depends on. */
typedef struct {
  double best, factor; /* the lowest loss so far, INFINITY before the first; of the rate */
  int64_t bad;         /* epochs in a row that were not better */
} lr_plateau;

double schedule_rate(const lr_schedule *s, const lr_plateau *p, const lr_time *t);
/* After each epoch: as torch's ReduceLROnPlateau with its relative threshold. */
void plateau_see(const lr_schedule *s, lr_plateau *p, double loss);

#endif
