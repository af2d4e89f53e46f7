/* kernels/linear/host/few.c - see few.h. */
#include "kernels/linear/host/few.h"

#include <stdlib.h>

#include "kernels/linear/linear_few.h"

struct clb_linear_few {
  clb_op *op;
  clb_kernel
      *kernel[CLB_PASSES][CLB_LINEAR_SIZES][2]; /* [1]: of aligned rows; NULL: not made yet */
};

clb_status clb_linear_few_create(clb_context *ctx, const clb_problem *p, unsigned passes,
                                 clb_linear_few **few) {
  const clb_limits *l = &ctx->device->limits;
  *few = NULL;
  if (l->simd || l->max_subgroups < 2 || p->linear.weights == CLB_LINEAR_PER_ROW ||
      (p->linear.gated && !clb_linear_few_gates(p, l)))
    return CLB_OK;
  clb_problem *own = malloc(sizeof *own);
  clb_linear_few *f = calloc(1, sizeof *f);
  clb_status s = own && f ? CLB_OK : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "linear: no memory");
  if (!s) {
    *own = *p;
    own->kind = CLB_LINEAR_FEW;
    s = clb_op_check(ctx, own, passes);
  }
  if (!s) /* where nothing runs, to see that it compiles */
    s = ctx->device->info.runs ? clb_op_new(ctx, own, &f->op)
                               : clb_op_create(ctx, own, passes, NULL, &f->op);
  free(own);
  if (s) free(f);
  else *few = f;
  return s;
}

bool clb_linear_few_are_many(const clb_linear_few *few, int64_t n) {
  clb_schedule s;
  return clb_linear_few_size(&few->op->problem, &few->op->ctx->device->limits, n, &s) ==
         CLB_LINEAR_LARGE;
}

void clb_linear_few_destroy(clb_linear_few **few) {
  if (!*few) return;
  clb_op_destroy(&(*few)->op);
  free(*few);
  *few = NULL;
}

void clb_linear_call_species(clb_call *c, const clb_operand *operands, int count) {
  for (int i = 0; i < count; i++) {
    if (!operands[i].indexed) continue;
    clb_call_buffer(c, operands[i].rows.index);
    clb_call_i64(c, 0);
  }
}

/* Whether rows of which several elements are accessed at once start at multiples of their number.
 */
static bool are_aligned(const clb_op *op, const clb_operand *operands, int count, int width) {
  for (int i = 0; i < count && width > 1; i++)
    if (operands[i].columns && clb_linear_few_is_wide(&op->problem, operands[i].of) &&
        !clb_operand_is_aligned(op, &operands[i], width))
      return false;
  return true;
}

clb_status clb_linear_few_run(clb_linear_few *few, clb_pass pass, int64_t n,
                              const clb_operand *operands, int count) {
  clb_op *op = few->op;
  clb_schedule s;
  op->problem.pass = (int32_t)pass;
  const clb_linear_size size = clb_linear_few_size(&op->problem, &op->ctx->device->limits, n, &s);
  const bool aligned = are_aligned(op, operands, count, s.linear.elements_per_access);
  clb_kernel **kernel = &few->kernel[pass][size][aligned];
  if (!aligned) s.linear.elements_per_access = 1;
  s.scalar_access = (op->ctx->disabled & CLB_WIDE_ACCESSES) != 0;
  const clb_status status = *kernel ? CLB_OK : clb_op_make_kernel(op, pass, &s, kernel);
  if (status) return status;
  clb_call c = clb_call_start(op->ctx);
  clb_call_i64(&c, n);
  for (int i = 0; i < count; i++) clb_call_operand(&c, &operands[i]);
  clb_linear_call_species(&c, operands, count);
  return clb_call_launch(&c, *kernel, clb_linear_few_groups(&op->problem, &s, n));
}
