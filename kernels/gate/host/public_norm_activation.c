/* kernels/gate/host/public_norm_activation.c - the calls of norm activations. */
#include <stdlib.h>

#include "kernels/host/operand_lists.h"
#include "src/base/sizes.h"
#include "src/problem/activation.h"
#include "src/problem/irreps.h"
#include "src/tuning/autotune.h"

static clb_status read_description(const clb_norm_activation_desc *d, clb_problem *p,
                                   clb_error_sink *error) {
  clb_norm_activation_problem *a = &p->norm_activation;
  clb_scaled_activation act = {0};
  clb_status s = clb_irreps_read(d->irreps, "irreps", &a->irreps, error);
  if (!s) s = clb_activations_read(d->act, "act", 1, 0, &act, error);
  p->kind = CLB_NORM_ACTIVATION;
  p->storage = (int32_t)d->storage;
  p->arithmetic = (int32_t)d->arithmetic;
  p->accumulate = d->accumulate != 0;
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
  clb_status s = clb_context_check(ctx, "clb_norm_activation_create");
  if (op) *op = NULL;
  if (s) return s;
  if (!given || !op)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_norm_activation_create: %s is NULL",
                    given ? "op" : "desc");
  s = clb_take_struct(&ctx->error, "clb_norm_activation_desc", &desc, sizeof desc, given, size);
  if (s) return s;
  clb_problem *p = calloc(1, sizeof *p);
  if (!p) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_norm_activation_create: no memory");
  s = read_description(&desc, p, &ctx->error);
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
