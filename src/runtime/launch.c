/* src/runtime/launch.c - the only path from ops to a device: all launches and matrix products,
   which are timed individually while profiling, and kept while recording. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/runtime/context.h"

/* ---- profile ---- */

struct clb_profile {
  clb_profile *next;
  clb_profile_entry entry; /* for one kind of kernel; the name is stored at the end of this
                              struct */
  char name[];
};

double clb_seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void clb_profile_forget(clb_context *ctx) {
  for (clb_profile *p = ctx->profile, *next; p; p = next) {
    next = p->next;
    free(p);
  }
  ctx->profile = NULL;
  ctx->profiles = false;
}

/* Finds the entry of that name, or appends a new one; NULL: no memory. */
static clb_profile_entry *find(clb_context *ctx, const char *name) {
  clb_profile **end = &ctx->profile;
  size_t bytes = strlen(name) + 1;
  while (*end && strcmp((*end)->name, name)) end = &(*end)->next;
  if (!*end && (*end = calloc(1, sizeof **end + bytes)))
    (*end)->entry.kernel = memcpy((*end)->name, name, bytes);
  return *end ? &(*end)->entry : NULL;
}

/* ---- work ---- */

static clb_status submit(clb_context *ctx, const clb_work *w) {
  clb_device *d = ctx->device;
  return w->product ? d->backend->gemm(d, w->type, w->product)
                    : d->backend->launch(d, w->module, w->groups, w->args, w->n_args);
}

static clb_status time_one(clb_context *ctx, const clb_work *w) {
  clb_profile_entry *entry = find(ctx, w->name);
  clb_status s =
      entry ? clb_wait(ctx) : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory for the profile");
  double start = clb_seconds_now();
  if (!s) s = submit(ctx, w);
  if (!s) s = clb_wait(ctx);
  if (s) return s;
  entry->launches++;
  entry->seconds += clb_seconds_now() - start;
  return CLB_OK;
}

clb_status clb_submit(clb_context *ctx, const clb_work *w) {
  if (ctx->recording) return clb_recording_keep(ctx->recording, w);
  return ctx->profiles ? time_one(ctx, w) : submit(ctx, w);
}

clb_status clb_launch(clb_context *ctx, const clb_kernel *kernel, int64_t groups,
                      const clb_arg *args, int n) {
  return clb_submit(ctx, &(clb_work){.name = kernel->ir.name,
                                     .module = kernel->module,
                                     .groups = groups,
                                     .args = args,
                                     .n_args = n});
}

/* While recording, checks immediately whether the library can do this product, because the caller
   can still use a kernel instead. */
clb_status clb_gemm(clb_context *ctx, clb_dtype type, const clb_gemm_desc *product) {
  clb_device *d = ctx->device;
  clb_status s = ctx->recording ? d->backend->can_gemm(d, type, product) : CLB_OK;
  return s ? s : clb_submit(ctx, &(clb_work){.name = d->blas, .type = type, .product = product});
}

clb_status clb_profile_begin(clb_context *ctx) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  clb_profile_forget(ctx);
  ctx->profiles = true;
  return CLB_OK;
}

clb_status clb_profile_end(clb_context *ctx,
                           void (*each)(const clb_profile_entry *entry, void *user), void *user) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  for (const clb_profile *p = ctx->profile; p && each; p = p->next)
    if (p->entry.launches) each(&p->entry, user); /* 0 if a library has refused */
  clb_profile_forget(ctx);
  return CLB_OK;
}
