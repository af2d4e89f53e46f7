/* tools/ablation/symmetric_contraction.c - one pass of a symmetric contraction. */
#include <stdlib.h>

#include "tools/ablation/ablation.h"

static const tool_op *const contraction = &tool_op_symmetric_contraction;

/* Operands and results in the order of the call; species come in blocks of equal ones. */
static void make_operands(work *w, const void *problem, const ablation_case *c, clb_rows *rows) {
  tool_array a[MAX_ARRAYS];
  int n = contraction->arrays(problem, c->pass, a);
  for (int i = 0; i < n; i++) {
    int64_t of = a[i].one_row ? 1 : c->rows;
    rows[i] = work_rows(w, of, a[i].width, NULL);
    if (a[i].output) work_output(w, rows[i], of, a[i].width);
    if (!a[i].kinds) continue;
    int32_t *kind = allocate((size_t)c->rows, sizeof *kind);
    for (int64_t r = 0; r < c->rows; r++) kind[r] = kind_of_row(r, a[i].kinds);
    rows[i].index = work_rows(w, c->rows, 1, (const float *)kind).buffer; /* as bytes */
    free(kind);
  }
}

void ablation_contraction(work *w, ablation_case *c) {
  void *problem = allocate(1, contraction->problem_bytes);
  char *argv[] = {"ablation", "--problem", (char *)c->problem, "--layout", (char *)c->layout};
  parse_arguments(contraction->options, 5, argv, ARGP_NO_HELP, problem);
  tool_kernel kernel = {.problem = problem, .storage = CLB_F32, .arithmetic = CLB_F32};
  op_call call = {.kind = CALL_CONTRACTION, .pass = c->pass, .n = c->rows};
  make_operands(w, problem, c, call.rows);
  for (int i = 0; i < SWITCHES; i++) {
    work_disable(w, ablation_switches[i].without);
    call.op = work_contraction(w, &kernel, CLB_PASS_BIT(c->pass));
    work_disable(w, 0);
    way_add(w, work_way(w, ablation_switches[i].way, 0, false), call);
  }
  free(problem);
}
