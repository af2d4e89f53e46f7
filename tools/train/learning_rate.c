/* tools/train/learning_rate.c - the learning rate of each step. */
#include "tools/train/learning_rate.h"

#include <math.h>

const char *const lr_names[LR_SCHEDULES] = {"constant", "cosine", "exponential", "plateau"};

static double cosine(const lr_schedule *s, int64_t step, int64_t steps) {
  const double pi = 3.14159265358979323846;
  const double x = (double)(step - s->warm_up) / (double)(steps - s->warm_up);
  if (!(x > 0)) return s->lr;
  return s->end + (s->lr - s->end) * (1 + cos(pi * fmin(x, 1))) / 2;
}

double schedule_rate(const lr_schedule *s, const lr_plateau *p, int64_t step, int64_t steps,
                     int64_t epoch) {
  double lr = s->lr;
  if (s->kind == LR_COSINE) lr = cosine(s, step, steps);
  if (s->kind == LR_EXPONENTIAL) lr *= pow(s->decay, (double)epoch);
  if (s->kind == LR_PLATEAU) lr *= p->factor;
  lr = fmax(lr, s->end);
  return step < s->warm_up ? lr * (double)(step + 1) / (double)s->warm_up : lr;
}

void plateau_see(const lr_schedule *s, lr_plateau *p, double loss) {
  const double threshold = 1e-4;
  if (loss < p->best * (1 - threshold)) p->best = loss, p->bad = 0;
  else p->bad++;
  if (p->bad <= s->patience) return;
  p->factor = fmax(p->factor * s->decay, s->end / s->lr);
  p->bad = 0;
}
