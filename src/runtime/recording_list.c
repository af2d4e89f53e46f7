/* src/runtime/recording_list.c - the list of submitted work in a recording. */
#include "src/runtime/recording_list.h"

#include <stdlib.h>

static bool reserve(clb_recording *r) {
  int64_t capacity = r->capacity ? 2 * r->capacity : 16;
  if (r->n < r->capacity) return true;
  clb_work *work = realloc(r->work, (size_t)capacity * sizeof *work);
  if (work) r->work = work;
  clb_recorded_memory **all = work ? realloc(r->kept, (size_t)capacity * sizeof *all) : NULL;
  if (all) r->kept = all;
  if (all) r->capacity = capacity;
  return all;
}

static const clb_memory *keep(clb_recorded_memory *k, const clb_memory *memory) {
  if (!memory) return NULL;
  k->memory[k->n_memory] = *memory;
  return &k->memory[k->n_memory++];
}

/* Memory is stored by value: the structs to which arguments point may no longer exist at replay. */
clb_status clb_recording_keep(clb_recording *r, const clb_work *w) {
  size_t n = (size_t)w->n_args, max = n > 3 ? n : 3;
  clb_recorded_memory *k =
      reserve(r) ? calloc(1, sizeof *k + n * sizeof *k->args + max * sizeof *k->memory) : NULL;
  if (!k)
    return clb_fail(&r->ctx->error, CLB_ERROR_MEMORY, "no memory for the recording of %s", w->name);
  k->memory = (clb_memory *)(k->args + n);
  for (size_t i = 0; i < n; i++) {
    k->args[i] = w->args[i];
    if (w->args[i].type == IR_VOID) k->args[i].memory = keep(k, w->args[i].memory);
  }
  if (w->product) {
    k->product = *w->product;
    k->product.a = keep(k, w->product->a);
    k->product.b = keep(k, w->product->b);
    k->product.c = keep(k, w->product->c);
  }
  r->kept[r->n] = k;
  r->work[r->n] = *w;
  r->work[r->n].args = k->args;
  r->work[r->n++].product = w->product ? &k->product : NULL;
  return CLB_OK;
}

clb_status clb_recording_watch(clb_context *ctx, const uint64_t *number) {
  clb_recording *r = ctx->recording;
  if (!r) return CLB_OK;
  for (int i = 0; i < r->n_watched; i++)
    if (r->watched[i].now == number) return CLB_OK;
  clb_watched *all = realloc(r->watched, ((size_t)r->n_watched + 1) * sizeof *all);
  if (!all) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory for the recording");
  r->watched = all;
  all[r->n_watched++] = (clb_watched){number, *number};
  return CLB_OK;
}

static void lose(clb_recording *r, const uint64_t *number) {
  for (int i = 0; i < r->n_watched; i++)
    if (r->watched[i].now == number) r->lost = true;
}

void clb_recording_forget(clb_context *ctx, const uint64_t *number) {
  if (ctx->recording) lose(ctx->recording, number);
  for (clb_recording *r = ctx->recordings; r; r = r->next) lose(r, number);
}

static bool uses(const clb_recording *r, const void *handle) {
  for (int64_t i = 0; i < r->n; i++)
    for (int m = 0; m < r->kept[i]->n_memory; m++)
      if (r->kept[i]->memory[m].handle == handle) return true;
  return false;
}

void clb_memory_lose(clb_context *ctx, const clb_memory *memory) {
  if (ctx->recording && uses(ctx->recording, memory->handle)) ctx->recording->lost = true;
  for (clb_recording *r = ctx->recordings; r; r = r->next)
    if (!r->lost && uses(r, memory->handle)) r->lost = true;
}

void clb_memory_free(clb_context *ctx, clb_memory *memory) {
  clb_memory_lose(ctx, memory);
  clb_device_free(ctx->device, memory);
}

clb_status clb_not_recording(clb_context *ctx, const char *call) {
  if (!ctx->recording) return CLB_OK;
  return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                  "%s: not allowed while recording, because it needs the device now", call);
}
