/* kernels/host/description.c - how calls of public ops take their descriptions. */
#include "kernels/host/description.h"

#include <stdlib.h>

#include "src/base/sizes.h"

clb_status clb_description_take(const clb_description *d, void *desc, size_t bytes, int32_t kind,
                                clb_problem **p) {
  *p = NULL;
  clb_status s = clb_context_check(d->ctx, d->call);
  if (s) return s;
  clb_error_sink *e = &d->ctx->error;
  if (!d->given || !d->result)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s is NULL", d->call, d->given ? d->name : "desc");
  s = clb_take_struct(e, d->type, desc, bytes, d->given, d->size);
  if (s) return s;
  if (!(*p = calloc(1, sizeof **p))) return clb_fail(e, CLB_ERROR_MEMORY, "%s: no memory", d->call);
  (*p)->kind = kind;
  return CLB_OK;
}

void clb_problem_set_types(clb_problem *p, clb_dtype storage, clb_dtype arithmetic,
                           int accumulate) {
  p->storage = (int32_t)storage;
  p->arithmetic = (int32_t)arithmetic;
  p->accumulate = accumulate != 0;
}
