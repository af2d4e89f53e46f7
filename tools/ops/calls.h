/* tools/ops/calls.h - create() and run() of an op whose calls take the operands of its signature.
 */
#ifndef CLB_TOOLS_OPS_CALLS_H
#define CLB_TOOLS_OPS_CALLS_H

#include "tools/ops/op.h"

/* All descriptions have these members. */
#define SET_TYPES(desc, kernel, computed)                                                          \
  ((desc).storage = (kernel)->storage, (desc).arithmetic = (kernel)->arithmetic,                   \
   (desc).accumulate = (kernel)->accumulate, (desc).passes = (computed))

#define ROWS_2(a) a[0], a[1]
#define ROWS_3(a) ROWS_2(a), a[2]
#define ROWS_4(a) ROWS_3(a), a[3]
#define ROWS_5(a) ROWS_4(a), a[4]
#define ROWS_7(a) ROWS_5(a), a[5], a[6]
#define ROWS_8(a) ROWS_7(a), a[7]
#define ROWS_11(a) ROWS_8(a), a[8], a[9], a[10]

/* A pass of an op with 1, 2 or 3 inputs; triple backward passes have another form. */
#define PASSES_OF_1(name) ROWS_PASSES(name, ROWS_2, ROWS_3, ROWS_5)
#define PASSES_OF_2(name) ROWS_PASSES(name, ROWS_3, ROWS_5, ROWS_8)
#define PASSES_OF_3(name) ROWS_PASSES(name, ROWS_4, ROWS_7, ROWS_11)
#define ROWS_PASSES(name, forward, backward, twice)                                                \
  static clb_status run(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *a) {              \
    return pass == CLB_FORWARD    ? clb_##name##_forward(op, rows, forward(a))                     \
           : pass == CLB_BACKWARD ? clb_##name##_backward(op, rows, backward(a))                   \
                                  : clb_##name##_double_backward(op, rows, twice(a));              \
  }

/* Of a problem that is the description. */
#define CREATE(name)                                                                               \
  static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes,           \
                           clb_op **op) {                                                          \
    clb_##name##_desc desc = *(const clb_##name##_desc *)kernel->problem;                          \
    SET_TYPES(desc, kernel, passes);                                                               \
    return clb_##name##_create(ctx, &desc, op);                                                    \
  }

#define CALLS(name, inputs) CREATE(name) PASSES_OF_##inputs(name)

/* Members of such an op, which has functions and tables of these names. */
#define TOOL_USUAL(op)                                                                             \
  .name = #op, .options = &argp, .problem_bytes = sizeof(parsed_problem), .print = print,          \
  .passes = USUAL_PASSES, .cases = cases, .n_cases = sizeof cases / sizeof *cases,                 \
  .signature = &clb_signature_##op, .operands = operands, .create = create, .run = run

#endif
