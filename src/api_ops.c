/* api_ops.c - the calls of each op: what the user said, checked and made canonical. */
#include <stdlib.h>

#include "context.h"

/* ---- real spherical harmonics ---- */

clb_status clb_spherical_harmonics_create(clb_context *ctx, const clb_spherical_harmonics_desc *desc, clb_op **op) {
  clb_status s = clb_context_check(ctx);
  if (op) *op = NULL;
  if (s) return s;
  if (!desc || !op) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_spherical_harmonics_create: %s is NULL", desc ? "op" : "desc");
  if (!desc->degrees) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_spherical_harmonics_create: degrees is NULL");
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_spherical_harmonics_create: no memory");
  p->kind = CLB_SPHERICAL_HARMONICS;
  p->storage = (int32_t)desc->storage;
  p->arithmetic = (int32_t)desc->arithmetic;
  p->accumulate = desc->accumulate != 0;
  clb_spherical_harmonics_problem *sh = &p->spherical_harmonics;
  sh->n_degrees = desc->n_degrees;
  sh->normalization = (int32_t)desc->normalization;
  sh->normalize = desc->normalize != 0;
  bool sensible = desc->n_degrees <= CLB_MAX_DEGREES; /* else the op's check refuses it, and degrees is better not read */
  for (int i = 0; sensible && i < desc->n_degrees; i++) sh->degrees[i] = desc->degrees[i];
  s = clb_op_create(ctx, p, desc->passes, op);
  free(p);
  return s;
}

static int64_t harmonics(const clb_op *op) {
  const clb_spherical_harmonics_problem *sh = &op->problem.spherical_harmonics;
  int64_t n = 0;
  for (int i = 0; i < sh->n_degrees; i++) n += 2 * sh->degrees[i] + 1;
  return n;
}

clb_status clb_spherical_harmonics_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y) {
  if (!op) return CLB_ERROR_ARGUMENT;
  clb_operand operands[] = {{.name = "x", .rows = x, .columns = 3}, {.name = "y", .rows = y, .columns = harmonics(op), .written = true}};
  return clb_op_run_rows(op, CLB_SPHERICAL_HARMONICS, CLB_FORWARD, n, operands, 2);
}

clb_status clb_spherical_harmonics_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g_y, clb_rows g_x) {
  if (!op) return CLB_ERROR_ARGUMENT;
  clb_operand operands[] = {{.name = "x", .rows = x, .columns = 3}, {.name = "g_y", .rows = g_y, .columns = harmonics(op)},
                            {.name = "g_x", .rows = g_x, .columns = 3, .written = true}};
  return clb_op_run_rows(op, CLB_SPHERICAL_HARMONICS, CLB_BACKWARD, n, operands, 3);
}

clb_status clb_spherical_harmonics_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g_y, clb_rows h, clb_rows d_x, clb_rows d_g_y) {
  if (!op) return CLB_ERROR_ARGUMENT;
  clb_operand operands[] = {{.name = "x", .rows = x, .columns = 3}, {.name = "g_y", .rows = g_y, .columns = harmonics(op)}, {.name = "h", .rows = h, .columns = 3},
                            {.name = "d_x", .rows = d_x, .columns = 3, .written = true}, {.name = "d_g_y", .rows = d_g_y, .columns = harmonics(op), .written = true}};
  return clb_op_run_rows(op, CLB_SPHERICAL_HARMONICS, CLB_DOUBLE_BACKWARD, n, operands, 5);
}
