/* tools/bench/suite_list.h - what `bench --suite` times: ops, each with a problem, and how often.
 */
#ifndef CLB_TOOLS_BENCH_SUITE_LIST_H
#define CLB_TOOLS_BENCH_SUITE_LIST_H

#include "tools/ops/op.h"

typedef struct {
  const tool_op *op;
  void *problem; /* of the op, as its options make it */
  char name[64];
  const char *graph, *options; /* NULL: none; options: "mul_ir", "table" */
  int l_max;                   /* -1: it has none */
  int64_t rows[PASSES], edges; /* of each pass; of a graph its edges */
  double bytes[PASSES];        /* of the arrays in f32, about */
  unsigned passes, dtypes;     /* bit sets */
} suite_problem;

typedef struct {
  int n;
  suite_problem *problem;
  const char *missing; /* the last graph that was left out */
} suite_list;

extern const char suite_names[]; /* in words */

/* Those of the suite that `only` leaves: words with commas between (NULL: all), each an op, a
   problem, a graph, an option, a pass or a dtype; words of one kind are alternatives.  Graphs that
   are not at hand are left out and said.  false: after a sentence, for such a suite or word is not.
 */
bool suite_list_make(suite_list *list, const char *suite, const char *only);
void suite_list_free(suite_list *list);
int64_t suite_jobs(const suite_list *list, bool f64); /* how many results */

#endif
