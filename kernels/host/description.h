/* kernels/host/description.h - how calls of public ops take their descriptions. */
#ifndef CLB_KERNELS_HOST_DESCRIPTION_H
#define CLB_KERNELS_HOST_DESCRIPTION_H

#include "src/runtime/context.h"

/* A call that takes a description, and gives something. */
typedef struct {
  clb_context *ctx;
  const char *call, *type; /* "clb_gate_create", "clb_gate_desc" */
  const void *given;       /* the caller's description, of `size` bytes */
  size_t size;
  const void *result; /* the caller's place for what the call gives; `name` is that argument's */
  const char *name;
} clb_description;

/* Copies the description to desc, of `bytes` bytes, and gives a problem of this kind whose other
   members are 0. The caller frees it; it is NULL if this fails. */
clb_status clb_description_take(const clb_description *d, void *desc, size_t bytes, int32_t kind,
                                clb_problem **p);
void clb_problem_set_types(clb_problem *p, clb_dtype storage, clb_dtype arithmetic, int accumulate);

#endif
