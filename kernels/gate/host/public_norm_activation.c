/* kernels/gate/host/public_norm_activation.c - the calls of norm activations. */
#include <stdlib.h>

#include "kernels/host/operand_lists.h"
#include "kernels/host/description.h"
#include "src/problem/activation.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"

static clb_status read_description(const clb_norm_activation_desc *d, clb_problem *p,
                                   clb_error_sink *error) {
  clb_norm_activation_problem *a = &p->norm_activation;
  clb_scaled_activation act = {0};
  clb_status s = clb_irreps_read(d->irreps, "irreps", &a->irreps, error);
  if (!s) s = clb_activations_read(d->act, "act", 1, 0, &act, error);
  clb_problem_set_types(p, d->storage, d->arithmetic, d->accumulate);
  a->layout = (int32_t)d->layout;
  a->normalize = d->normalize != 0;
  a->bias = d->bias != 0;
  a->epsilon = d->normalize && d->epsilon == 0 ? 1e-8 : d->epsilon;
  a->activation = (int32_t)act.function;
  a->scale = act.scale;
  return s;
}

clb_status clb_norm_activation_create_sized(clb_context *ctx, const clb_norm_activation_desc *given,
                                            clb_op **op, size_t size) {
  clb_tuner tuner;
  clb_norm_activation_desc desc;
  clb_problem *p;
  if (op) *op = NULL;
  clb_status s =
      clb_description_take(&(clb_description){ctx, "clb_norm_activation_create",
                                              "clb_norm_activation_desc", given, size, op, "op"},
                           &desc, sizeof desc, CLB_NORM_ACTIVATION, &p);
  if (!s) s = read_description(&desc, p, &ctx->error);
  if (!s)
    s = clb_op_create(ctx, p, desc.passes & ~CLB_MEASURE,
                      clb_tuner_for(ctx, desc.passes, &clb_test_run_of_rows, &tuner), op);
  free(p);
  return s;
}

clb_status clb_norm_activation_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows y) {
  return clb_public_op_run(op, CLB_NORM_ACTIVATION, CLB_FORWARD, n, (const clb_rows[]){x, w, y});
}

clb_status clb_norm_activation_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                        clb_rows g_x, clb_rows g_w) {
  return clb_public_op_run(op, CLB_NORM_ACTIVATION, CLB_BACKWARD, n,
                           (const clb_rows[]){x, w, g, g_x, g_w});
}

clb_status clb_norm_activation_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                               clb_rows g, clb_rows a, clb_rows c, clb_rows d_x,
                                               clb_rows d_w, clb_rows d_g) {
  return clb_public_op_run(op, CLB_NORM_ACTIVATION, CLB_DOUBLE_BACKWARD, n,
                           (const clb_rows[]){x, w, g, a, c, d_x, d_w, d_g});
}
