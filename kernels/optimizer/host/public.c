/* kernels/optimizer/host/public.c - the calls of optimizers that take descriptions. */
#include "kernels/optimizer/host/optimizer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/sizes.h"

/* The program's array of n structs as the library's, malloc'ed. */
static clb_status take_array(clb_context *ctx, const char *name, int64_t n, const void *theirs,
                             size_t size, size_t bytes, void **ours) {
  *ours = calloc((size_t)n, bytes);
  if (!*ours) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "clb_optimizer_create: no memory");
  clb_status s = CLB_OK;
  for (size_t i = 0; i < (size_t)n && !s; i++)
    s = clb_take_struct(&ctx->error, name, (char *)*ours + i * bytes, bytes,
                        (const char *)theirs + i * size, size);
  return s;
}

static clb_status check_counts(clb_context *ctx, const clb_optimizer_desc *d) {
  if (d->n_tensors < 1 || d->n_tensors > INT32_MAX)
    return OPTIMIZER_FAIL(ctx,
                          "clb_optimizer_create: n_tensors is %" PRId64 "; it must be 1 ... %d",
                          d->n_tensors, INT32_MAX);
  if (d->n_groups < 1 || d->n_groups > CLB_MAX_GROUPS)
    return OPTIMIZER_FAIL(ctx, "clb_optimizer_create: n_groups is %d; it must be 1 ... %d",
                          d->n_groups, CLB_MAX_GROUPS);
  if (!d->tensors || !d->groups)
    return OPTIMIZER_FAIL(ctx, "clb_optimizer_create: %s is NULL",
                          d->tensors ? "groups" : "tensors");
  return CLB_OK;
}

clb_status clb_optimizer_create_sized(clb_context *ctx, const clb_optimizer_desc *given,
                                      clb_optimizer **optimizer, size_t size, size_t tensor_size,
                                      size_t group_size) {
  clb_optimizer_desc desc;
  void *tensors = NULL, *groups = NULL;
  clb_status s = clb_context_check(ctx, __func__);
  if (optimizer) *optimizer = NULL;
  if (!s) s = clb_not_recording(ctx, "clb_optimizer_create");
  if (s) return s;
  if (!given || !optimizer)
    return OPTIMIZER_FAIL(ctx, "clb_optimizer_create: %s is NULL", given ? "optimizer" : "desc");
  s = clb_take_struct(&ctx->error, "clb_optimizer_desc", &desc, sizeof desc, given, size);
  if (!s) s = check_counts(ctx, &desc);
  if (!s)
    s = take_array(ctx, "clb_optimizer_tensor", desc.n_tensors, desc.tensors, tensor_size,
                   sizeof *desc.tensors, &tensors);
  if (!s)
    s = take_array(ctx, "clb_optimizer_group", desc.n_groups, desc.groups, group_size,
                   sizeof *desc.groups, &groups);
  desc.tensors = tensors;
  desc.groups = groups;
  if (!s) s = clb_optimizer_check(ctx, &desc);
  if (!s) s = clb_optimizer_make(ctx, &desc, optimizer);
  free(tensors);
  free(groups);
  return s;
}

static clb_status check_same(clb_optimizer *o, int i, const clb_optimizer_group *g) {
  const clb_optimizer_rule was = clb_optimizer_rule_of(&o->groups[i]),
                           is = clb_optimizer_rule_of(g);
  static const char *const names[] = {"rule", "momentum", "nesterov",     "amsgrad",
                                      "muon", "epsilon",  "longest_side", "beta2"};
  const int32_t changed[] = {was.rule ^ is.rule,
                             was.momentum ^ is.momentum,
                             was.nesterov ^ is.nesterov,
                             was.amsgrad ^ is.amsgrad,
                             was.muon ^ is.muon,
                             is.rule == CLB_MUON && o->groups[i].epsilon != g->epsilon,
                             was.longest_side ^ is.longest_side,
                             is.rule == CLB_SOAP && o->groups[i].beta2 != g->beta2};
  for (int k = 0; k < 8; k++)
    if (changed[k])
      return OPTIMIZER_FAIL(o->ctx,
                            "clb_optimizer_set_group: %s of group %d was compiled; it cannot "
                            "change%s",
                            names[k], i, k == 1 ? " from or to 0" : "");
  return CLB_OK;
}

clb_status clb_optimizer_set_group_sized(clb_optimizer *o, int i, const clb_optimizer_group *given,
                                         size_t size) {
  clb_optimizer_group g;
  if (!o) return clb_null(__func__, "optimizer");
  if (!given) return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_set_group: numbers is NULL");
  if (i < 0 || i >= o->desc.n_groups)
    return OPTIMIZER_FAIL(o->ctx, "clb_optimizer_set_group: group is %d; there are 0 ... %d", i,
                          o->desc.n_groups - 1);
  clb_status s = clb_not_recording(o->ctx, "clb_optimizer_set_group");
  if (!s) s = clb_take_struct(&o->ctx->error, "clb_optimizer_group", &g, sizeof g, given, size);
  if (!s) s = clb_optimizer_check_group(o->ctx, "clb_optimizer_set_group", i, &g);
  if (s) return s;
  clb_optimizer_fill_group(&g);
  s = check_same(o, i, &g);
  if (s) return s;
  o->groups[i] = g;
  return o->ctx->device->info.runs ? clb_optimizer_write_group(o, i) : CLB_OK;
}
