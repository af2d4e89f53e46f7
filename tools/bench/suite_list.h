/* tools/bench/suite_list.h - what `bench --suite` times: ops, each with a problem, and their
 sizes. */
#ifndef CLB_TOOLS_BENCH_SUITE_LIST_H
#define CLB_TOOLS_BENCH_SUITE_LIST_H

#include "tools/ops/op.h"

typedef struct {
  const tool_op *op;
  void *problem; /* the op's, as set by its options */
  char name[64];
  const char *graph, *options; /* NULL: none; options: words of "mul_ir", "table",
                                 "vectors", "atomic", "nequix", "degree" */
  int l_max;                   /* -1: it has none */
  int64_t rows[PASSES], edges; /* rows for each pass; edges of the graph */
  double bytes[PASSES];        /* approximate bytes of the arrays in f32 */
  unsigned passes, dtypes;     /* bit sets */
} suite_problem;

typedef struct {
  int n;
  suite_problem *problem;
  const char *missing; /* the last graph that was skipped */
} suite_list;

/* Problems of the suite that match `only`: words separated by commas (NULL: all), each an op, a
 problem, a graph, an option, a pass or a dtype; words of one kind are alternatives. Graphs that are
 not available are skipped with a message. false, after a message: no such suite or word. */
bool suite_list_make(suite_list *list, const char *suite, const char *only);
void suite_list_free(suite_list *list);

#endif
