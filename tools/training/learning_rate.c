/* tools/training/learning_rate.c - the learning rate of each step. */
#include "tools/training/learning_rate.h"

#include <math.h>

const char *const lr_names[LR_SCHEDULES] = {"constant",    "linear", "cosine",
                                            "exponential", "step",   "plateau"};

/* From lr to end, as x goes from 0 to 1. */
static double cosine(const lr_schedule *s, double x) {
  const double pi = 3.14159265358979323846;
  return s->end + (s->lr - s->end) * (1 + cos(pi * fmin(x, 1))) / 2;
}

double schedule_rate(const lr_schedule *s, const lr_plateau *p, const lr_time *t) {
  const double epoch = (double)t->epoch, W = s->warm_up,
               done = epoch * (double)t->steps + (double)t->step,
               left = (double)t->epochs * (double)t->steps - W;
  double lr = s->lr;
  if (s->kind == LR_LINEAR) lr += (s->end - s->lr) * epoch / (double)t->epochs;
  if (s->kind == LR_COSINE && done > W) lr = cosine(s, (done - W) / left);
  if (s->kind == LR_EXPONENTIAL) lr *= pow(s->decay, epoch);
  if (s->kind == LR_STEP) lr *= pow(s->decay, floor(epoch / (double)s->patience));
  if (s->kind == LR_PLATEAU) lr *= p->factor;
  lr = fmax(lr, s->end);
  if (!(done < W)) return lr;
  return lr * (s->warm_from > 0 ? s->warm_from + (1 - s->warm_from) * done / W : (done + 1) / W);
}

void plateau_see(const lr_schedule *s, lr_plateau *p, double loss) {
  if (loss < p->best * (1 - s->threshold)) p->best = loss, p->bad = 0;
  else p->bad++;
  if (p->bad <= s->patience) return;
  p->factor = fmax(p->factor * s->decay, s->end / s->lr);
  p->bad = 0;
}
