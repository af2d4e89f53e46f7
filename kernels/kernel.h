/* kernels/kernel.h - the table of kinds of kernels.  One is a file here (check, schedule, lower)
   and a row of src/problem/kinds.def. */
#ifndef CLB_KERNELS_KERNEL_H
#define CLB_KERNELS_KERNEL_H

#include "kernels/schedule.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/ir/ir.h"
#include "src/ir/limits.h"
#include "src/problem/problem.h"

/* Memory that kernels read besides their operands; not empty. */
typedef struct {
  int32_t *number;
  double *real; /* kept in arithmetic precision */
  int64_t n_numbers, n_reals;
} clb_tables;

typedef struct {
  const char *name;
  clb_status (*check)(const clb_problem *p, const clb_limits *limits, clb_error_sink *error);
  void (*schedule)(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
  /* Leaves a finished kernel, or an error in k->error. */
  void (*lower)(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
  void (*print)(const clb_problem *p, clb_text *out);
  /* May be NULL: whether kernels of this schedule read tables, and the tables, malloc'ed (false: no
     memory). */
  bool (*reads_tables)(const clb_schedule *s);
  bool (*tables)(const clb_problem *p, clb_tables *tables);
  int passes; /* number of supported passes, the first ones of clb_pass */
  /* Whose settings wisdom keeps of it, beside the common ones: such as CLB_FIELD(product). */
  size_t settings;
  /* May be NULL: schedules worth timing, without duplicates, that of `schedule` first; returns
     their number, at most CLB_MAX_CANDIDATES. */
  int (*candidates)(const clb_problem *p, const clb_limits *limits, clb_schedule *list);
  /* May be NULL: makes a schedule fit for sums that are kept in memory. */
  void (*accumulate_in_memory)(clb_schedule *s);
} clb_kernel_kind;

enum { CLB_MAX_CANDIDATES = 15 };
/* Adds a schedule unless it is already in the list or the list is full. */
void clb_candidate_add(clb_schedule *list, int *n, const clb_schedule *s);
/* Adds s with another value of one field. */
void clb_candidate_with(clb_schedule *list, int *n, const clb_schedule *s, size_t field,
                        int32_t value);

#define KIND(NAME, name) extern const clb_kernel_kind clb_kind_##name;
#include "src/problem/kinds.def"
extern const clb_kernel_kind *const clb_kernel_kinds[CLB_KERNEL_KINDS];

#endif
