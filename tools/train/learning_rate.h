/* tools/train/learning_rate.h - the learning rate of each step. */
#ifndef CLB_TOOLS_TRAIN_LEARNING_RATE_H
#define CLB_TOOLS_TRAIN_LEARNING_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { LR_CONSTANT, LR_COSINE, LR_EXPONENTIAL, LR_PLATEAU, LR_SCHEDULES } lr_kind;
extern const char *const lr_names[LR_SCHEDULES];

typedef struct {
  lr_kind kind;
  double lr, end; /* end: it falls no lower */
  double decay;   /* factor of an epoch, or at a plateau */
  int64_t warm_up, patience;
} lr_schedule;

/* What a plateau depends on. */
typedef struct {
  double best, factor; /* the lowest loss so far, INFINITY before the first; of the rate */
  int64_t bad;         /* epochs in a row that were not better */
} lr_plateau;

/* Of step 0 ... steps - 1 in epoch 0, 1, ... */
double schedule_rate(const lr_schedule *s, const lr_plateau *p, int64_t step, int64_t steps,
                     int64_t epoch);
/* After each epoch: as torch's ReduceLROnPlateau with its relative threshold, 1e-4. */
void plateau_see(const lr_schedule *s, lr_plateau *p, double loss);

#endif
