/* kernels/norm/plan.h - a row of a norm as segments: ranges of elements of one degree. */
#ifndef CLB_KERNELS_NORM_PLAN_H
#define CLB_KERNELS_NORM_PLAN_H

#include "src/problem/problem.h"

enum { CLB_NORM_MOST_COLUMNS = 1 << 16, CLB_NORM_MOST_GROUPS = 13 };

typedef struct {
  int64_t at, length;        /* elements of the row */
  int64_t first_weight, mul; /* channels */
  int64_t first_bias;        /* scalars only */
  int32_t components;        /* 2l+1 */
  int32_t group;             /* what is normalised together */
  bool scalar;               /* of 0e: may be centred, and have biases */
  double factor;             /* a: of its squares in the sum */
} clb_norm_segment;

typedef struct {
  int n, n_groups;
  int64_t weights, biases; /* numbers of both; biases: 0 without `bias` */
  int64_t scalars;         /* channels of 0e */
  clb_norm_segment segment[CLB_MAX_TERMS];
} clb_norm_plan;

void clb_norm_make_plan(const clb_rms_norm_problem *p, clb_norm_plan *plan);

/* The numbers of a row of gradients by weights before components are summed. */
static inline int64_t clb_norm_partial_columns(const clb_rms_norm_problem *p,
                                               const clb_norm_plan *plan) {
  return p->irreps.dim + plan->biases;
}

/* Groups of the kernel that adds partial rows up (sum.c). */
int64_t clb_norm_sum_blocks(const clb_norm_plan *plan, int64_t lanes);

#endif
