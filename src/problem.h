/* problem.h - the canonical description of one pass of one op: equal problems have equal bytes. */
#ifndef CLB_PROBLEM_H
#define CLB_PROBLEM_H

#include <clebsch/clebsch.h>

#include "text.h"

#define CLB_MAX_DEGREES 64

typedef struct {
  int32_t n_degrees, normalization, normalize;
  int32_t degrees[CLB_MAX_DEGREES]; /* unused ones are 0 */
} clb_spherical_harmonics_problem;

typedef struct {
  int32_t kind; /* index in clb_kernel_kinds */
  int32_t pass, storage, arithmetic, accumulate;
  union {
    clb_spherical_harmonics_problem spherical_harmonics;
  };
} clb_problem; /* start from zeros: every byte counts */

#endif
