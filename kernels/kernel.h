/* kernels/kernel.h - the table of kinds of kernels.  One is a file here (check, schedule, lower)
   and a row of src/problem/kinds.def. */
#ifndef CLB_KERNELS_KERNEL_H
#define CLB_KERNELS_KERNEL_H

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/ir/ir.h"
#include "src/ir/limits.h"
#include "src/problem/problem.h"

/* The few small integers a kernel is generated from. */
typedef struct {
  int32_t lanes, subgroups; /* of a group */
  int32_t staged; /* rows go through local memory, so that the device sees contiguous accesses */
  int32_t large_registers; /* half the threads with twice the registers, where the device has the
                              choice */
  int32_t units; /* sub-groups that share a row, each with its block of channels; 0: one sub-group
                    loops over them */
  int32_t
      width; /* elements of a row that are read or written together (of a general product weights,
                whose gradients then go pair by pair); with tables, rows that they serve together */
  int32_t body;  /* which of an op's ways to be lowered */
  int32_t span;  /* lanes that share a row */
  int32_t brief; /* products are made where they are used, rather than kept for all who need them */
  int32_t pairs; /* a product's derivatives go by pairs of components (path.h) */
  int32_t shuffles;   /* sums over lanes go by shuffles, else through local memory */
  int32_t whole_rows; /* rows of results are put together in local memory and written in order */
  int32_t lockstep; /* sub-groups of a group wait for each other path by path, so that they read the
                       same instructions together */
  int32_t edges;    /* of a row that are worked on before their sums over sub-groups are made */
  int32_t part, nonzeros; /* components of x and z together that one sub-group holds, unless one
                             term of x has more; non-zeros likewise */
  int32_t resident; /* groups that a multiprocessor should hold at once; 0: the compiler's choice */
  int32_t batch;    /* on a CPU: edges for which one part and block of channels is done after the
                       other; 0: whole rows */
  int32_t stages;   /* so many edges' operands are in local memory or on the way there; 0: read when
                       needed */
  int32_t twins;    /* paths that differ in the parity of their terms share their instructions */
  int32_t slices;   /* edges of a row that share a sub-group at most, where channels are fewer than
                       lanes; 0: one */
  int32_t narrow, in_memory; /* clb_context_disable: numbers are read and written one by one; sums
                                over paths and edges are in memory */
} clb_schedule;

/* Memory that kernels read beside their operands; not empty. */
typedef struct {
  int32_t *number;
  double *real; /* kept in arithmetic precision */
  int64_t n_numbers, n_reals;
} clb_tables;

typedef struct {
  const char *name;
  clb_status (*check)(const clb_problem *p, const clb_limits *limits, clb_error_sink *error);
  void (*schedule)(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
  /* Leaves a finished kernel, or its mistake in k->error. */
  void (*lower)(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
  void (*print)(const clb_problem *p, clb_text *out);
  /* May be NULL: whether kernels of this schedule read tables, and the tables, malloc'ed (false: no
     memory). */
  bool (*reads_tables)(const clb_schedule *s);
  bool (*tables)(const clb_problem *p, clb_tables *tables);
  int passes; /* it has the first so many of clb_pass */
  /* May be NULL: schedules worth timing, none twice, what `schedule` says first; returns how many,
     at most CLB_MAX_CANDIDATES. */
  int (*candidates)(const clb_problem *p, const clb_limits *limits, clb_schedule *list);
} clb_kernel_kind;

enum { CLB_MAX_CANDIDATES = 12 };
/* Adds a schedule that is not yet among the n of the list, where there is room. */
void clb_candidate_add(clb_schedule *list, int *n, const clb_schedule *s);
/* Adds s with another value of one field. */
void clb_candidate_with(clb_schedule *list, int *n, const clb_schedule *s, size_t field,
                        int32_t value);
#define CLB_FIELD(name) offsetof(clb_schedule, name)

#define KIND(NAME, name) extern const clb_kernel_kind clb_kind_##name;
#include "src/problem/kinds.def"
extern const clb_kernel_kind *const clb_kernel_kinds[CLB_KERNEL_KINDS];

#endif
