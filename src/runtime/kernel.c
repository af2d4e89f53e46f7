/* src/runtime/kernel.c - IR -> text -> binary (cached) -> loaded kernel. */
#include <stdlib.h>
#include <string.h>

#include "src/runtime/context.h"

/* Both the IR and the text are hashed: the same program printed differently gives another
   binary. */
static clb_status find_key(const clb_device *d, const ir_kernel *k, const clb_text *text,
                           clb_hash *key) {
  size_t bytes = ir_write(k, NULL, 0);
  char *list = malloc(bytes);
  if (!list) return clb_fail(d->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  ir_write(k, list, bytes);
  const void *parts[] = {list, text->s, d->backend->name, d->key, CLB_VERSION};
  size_t sizes[] = {bytes, text->n, strlen(d->backend->name), strlen(d->key), strlen(CLB_VERSION)};
  *key = clb_hash_parts(parts, sizes, 5);
  free(list);
  return CLB_OK;
}

/* true: the cache has it, and *s is the result of loading it. A cached binary that the driver
   refuses counts as a miss. */
static bool load_cached(clb_device *d, clb_kernel *kernel, clb_status *s) {
  if (!clb_cache_get(&kernel->key, &kernel->binary)) return false;
  *s = d->info.runs
           ? d->backend->load(d, &kernel->ir, kernel->binary.s, kernel->binary.n, &kernel->module)
           : CLB_OK;
  if (!*s || *s == CLB_ERROR_MEMORY) return true;
  clb_text_free(&kernel->binary);
  return false;
}

static clb_status build_and_load(clb_device *d, clb_kernel *kernel, const clb_text *text,
                                 clb_text *note) {
  clb_status s = d->backend->build(d, &kernel->ir, text, &kernel->binary);
  if (!s && kernel->binary.failed)
    s = clb_fail(d->error, CLB_ERROR_MEMORY, "no memory for the binary of %s", kernel->ir.name);
  if (!s && d->info.runs)
    s = d->backend->load(d, &kernel->ir, kernel->binary.s, kernel->binary.n, &kernel->module);
  if (!s) clb_cache_put(&kernel->key, kernel->binary.s, kernel->binary.n, note);
  return s;
}

/* Loads a valid binary from the cache, or compiles and caches one. Another process may do so first.
 */
static clb_status find_or_build(clb_device *d, clb_kernel *kernel, const clb_text *text,
                                clb_text *note) {
  clb_status s;
  if (load_cached(d, kernel, &s)) return s;
  const int lock = clb_cache_begin(&kernel->key);
  if (!load_cached(d, kernel, &s)) s = build_and_load(d, kernel, text, note);
  clb_cache_end(&kernel->key, lock);
  return s;
}

clb_status clb_kernel_get(clb_context *ctx, ir_kernel *k, clb_kernel **found) {
  if (!ctx->recording) return clb_kernel_find(ctx, k, found);
  *found = NULL;
  ir_free(k);
  return clb_not_recording(ctx, "creating an op");
}

clb_status clb_kernel_find(clb_context *ctx, ir_kernel *k, clb_kernel **found) {
  clb_device *d = ctx->device;
  clb_kernel *kernel = NULL;
  clb_text text = {0};
  *found = NULL;
  clb_status s = clb_codegen_prepare(k, &ctx->error);
  if (!s && !(kernel = calloc(1, sizeof *kernel)))
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", k->name);
  if (!s) s = clb_codegen(k, &d->limits, &d->dialect, &text, d->error);
  if (!s) s = find_key(d, k, &text, &kernel->key);
  if (s) goto done;
  for (clb_kernel *old = ctx->kernels; old && !*found; old = old->next)
    if (!memcmp(&old->key, &kernel->key, sizeof old->key)) *found = old;
  if (*found) goto done;
  kernel->ir = *k;
  s = find_or_build(d, kernel, &text, &ctx->note);
  if (s) goto done;
  if (!d->backend->report) clb_text_free(&kernel->binary);
  *k = (ir_kernel){0};
  kernel->next = ctx->kernels;
  *found = ctx->kernels = kernel;
  kernel = NULL;
done:
  if (kernel) clb_text_free(&kernel->binary);
  free(kernel);
  clb_text_free(&text);
  ir_free(k);
  return s;
}

void clb_kernel_free(clb_context *ctx, clb_kernel *kernel) {
  clb_kernel **link = &ctx->kernels;
  while (*link && *link != kernel) link = &(*link)->next;
  if (*link) *link = kernel->next;
  if (kernel->module) ctx->device->backend->unload(ctx->device, kernel->module);
  ir_free(&kernel->ir);
  clb_text_free(&kernel->binary);
  free(kernel);
}
