/* tools/relax/lbfgs.h - directions of search from the last steps, by L-BFGS. */
#ifndef CLB_TOOLS_RELAX_LBFGS_H
#define CLB_TOOLS_RELAX_LBFGS_H

#include <stdint.h>

enum { LBFGS_STEPS = 16 };

/* Zeros, but for n. */
typedef struct {
  int64_t n;
  int known;                                       /* steps that are kept */
  double *step[LBFGS_STEPS], *change[LBFGS_STEPS]; /* the last one first; of the gradient */
  double curvature[LBFGS_STEPS];                   /* step times change */
} lbfgs;

/* A step of the search with the change of the gradient over it. Where the curvature along it is not
   positive, all steps are forgotten. */
void lbfgs_learn(lbfgs *l, const double *step, const double *change);
/* The step to where the gradient would be 0, always downhill; without steps, `first` (the inverse
   of a curvature) times the negative gradient. */
void lbfgs_direction(const lbfgs *l, double first, const double *gradient, double *direction);
void lbfgs_free(lbfgs *l);

double lbfgs_dot(int64_t n, const double *a, const double *b); /* the sum of a[i] b[i] */

#endif
