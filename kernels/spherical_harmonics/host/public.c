/* kernels/spherical_harmonics/host/public.c - the calls of the spherical harmonics: descriptions
   are checked and made canonical. */
#include <stdlib.h>

#include "kernels/host/description.h"
#include "kernels/host/operand_lists.h"
#include "src/tuning/autotune.h"

clb_status clb_spherical_harmonics_create_sized(clb_context *ctx,
                                                const clb_spherical_harmonics_desc *given,
                                                clb_op **op, size_t size) {
  clb_tuner tuner;
  clb_spherical_harmonics_desc desc;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s = clb_description_take(&(clb_description){ctx, "clb_spherical_harmonics_create",
                                                         "clb_spherical_harmonics_desc", given,
                                                         size, op, "op"},
                                      &desc, sizeof desc, CLB_SPHERICAL_HARMONICS, &p);
  if (s) return s;
  if (!desc.degrees) {
    free(p);
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_spherical_harmonics_create: degrees is NULL");
  }
  clb_problem_set_types(p, desc.storage, desc.arithmetic, desc.accumulate);
  clb_spherical_harmonics_problem *sh = &p->spherical_harmonics;
  sh->n_degrees = desc.n_degrees;
  sh->normalization = (int32_t)desc.normalization;
  sh->normalize = desc.normalize != 0;
  bool sensible =
      desc.n_degrees <=
      CLB_MAX_DEGREES; /* otherwise the op's check refuses it, and degrees must not be read */
  for (int i = 0; sensible && i < desc.n_degrees; i++) sh->degrees[i] = desc.degrees[i];
  s = clb_op_create(ctx, p, desc.passes & ~CLB_MEASURE,
                    clb_tuner_for(ctx, desc.passes, &clb_test_run_of_rows, &tuner), op);
  free(p);
  return s;
}

clb_status clb_spherical_harmonics_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y) {
  return clb_public_op_run(op, CLB_SPHERICAL_HARMONICS, CLB_FORWARD, n, (const clb_rows[]){x, y});
}

clb_status clb_spherical_harmonics_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g_y,
                                            clb_rows g_x) {
  return clb_public_op_run(op, CLB_SPHERICAL_HARMONICS, CLB_BACKWARD, n,
                           (const clb_rows[]){x, g_y, g_x});
}

clb_status clb_spherical_harmonics_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g_y,
                                                   clb_rows h, clb_rows d_x, clb_rows d_g_y) {
  return clb_public_op_run(op, CLB_SPHERICAL_HARMONICS, CLB_DOUBLE_BACKWARD, n,
                           (const clb_rows[]){x, g_y, h, d_x, d_g_y});
}
