/* src/runtime/recording.c - replay of recorded work, through the driver's own object if it can make
   one. */
#include <stdlib.h>
#include <string.h>

#include "src/runtime/recording_list.h"

static void let_driver_record(clb_recording *r) {
  clb_device *d = r->ctx->device;
  if (r->n && d->backend->record) d->backend->record(d, r->work, r->n, &r->recorded);
  else if (r->recorded) d->backend->forget(d, r->recorded), r->recorded = NULL;
}

void clb_recording_take_over(clb_recording *from) {
  from->ctx->recording->recorded = from->recorded;
  from->recorded = NULL;
}

clb_status clb_record_begin(clb_context *ctx) {
  clb_status s = clb_context_check(ctx, __func__);
  if (s) return s;
  clb_error_sink *e = &ctx->error;
  if (ctx->recording)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "clb_record_begin: a recording has begun; clb_record_end must come first");
  if (!ctx->device->info.runs)
    return clb_fail(e, CLB_ERROR_UNSUPPORTED,
                    "clb_record_begin: %s only compiles; nothing runs on it",
                    ctx->device->info.name);
  ctx->recording = calloc(1, sizeof *ctx->recording);
  if (!ctx->recording) return clb_fail(e, CLB_ERROR_MEMORY, "clb_record_begin: no memory");
  ctx->recording->ctx = clb_context_hold(ctx);
  e->first = CLB_OK;
  return CLB_OK;
}

clb_status clb_record_end(clb_context *ctx, clb_recording **recording) {
  clb_status s = clb_context_check(ctx, __func__);
  if (recording) *recording = NULL;
  if (s) return s;
  clb_error_sink *e = &ctx->error;
  if (!ctx->recording)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "clb_record_end: there was no clb_record_begin");
  if (e->first)
    s = clb_fail(e, e->first,
                 "clb_record_end: a call since clb_record_begin failed, so nothing is kept; the "
                 "last failure: %s",
                 e->text.s ? e->text.s : "");
  else if (!recording) s = clb_fail(e, CLB_ERROR_ARGUMENT, "clb_record_end: recording is NULL");
  clb_recording *r = ctx->recording;
  ctx->recording = NULL;
  if (s) clb_recording_destroy(&r);
  else {
    r->next = ctx->recordings;
    ctx->recordings = *recording = r;
    let_driver_record(r);
  }
  return s;
}

clb_status clb_replay(clb_recording *r) {
  clb_status s = CLB_OK;
  if (!r) return clb_null(__func__, "recording");
  clb_context *ctx = r->ctx;
  if (r->lost)
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_replay: a buffer, graph or op that the recording uses was destroyed; they "
                    "must still be there");
  for (int i = 0; i < r->n_watched && !s; i++) {
    if (*r->watched[i].now != r->watched[i].then)
      return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                      "clb_replay: a graph has other numbers of nodes or edges than when it was "
                      "recorded; record again, or update it with as many");
    s = clb_recording_watch(ctx, r->watched[i].now);
  }
  if (s) return s;
  if (r->recorded && !ctx->recording && !ctx->profiles)
    return ctx->device->backend->replay(ctx->device, r->recorded);
  for (int64_t i = 0; i < r->n && !s; i++) s = clb_submit(ctx, &r->work[i]);
  return s;
}

static clb_status check_new(const clb_recording *r, const clb_buffer *from, const clb_buffer *to) {
  clb_error_sink *e = &r->ctx->error;
  static const char call[] = "clb_recording_replace";
  if (!from || !to)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s is NULL", call,
                    from ? "new_buffer" : "old_buffer");
  const char *foreign = from->ctx != r->ctx ? "old_buffer"
                        : to->ctx != r->ctx ? "new_buffer"
                                            : NULL;
  if (foreign)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s belongs to another context", call, foreign);
  const clb_memory *a = &from->memory, *b = &to->memory;
  if (b->bytes < a->bytes)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: new_buffer has %llu bytes; old_buffer has %llu",
                    call, (unsigned long long)b->bytes, (unsigned long long)a->bytes);
  if (a->kind != b->kind)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: one buffer is a cl_mem, the other a pointer; both must be the same", call);
  if (a->kind == CLB_POINTER && (uintptr_t)a->handle % 16 == 0 && (uintptr_t)b->handle % 16)
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "%s: new_buffer starts at %p; it must be a multiple of 16, as old_buffer's %p is", call,
        b->handle, a->handle);
  return CLB_OK;
}

clb_status clb_recording_replace(clb_recording *r, clb_buffer *old_buffer, clb_buffer *new_buffer) {
  if (!r) return clb_null(__func__, "recording");
  clb_status s = check_new(r, old_buffer, new_buffer);
  if (s) return s;
  const void *old = old_buffer->memory.handle;
  int64_t uses = 0;
  for (int64_t i = 0; i < r->n; i++)
    for (int m = 0; m < r->kept[i]->n_memory; m++)
      if (r->kept[i]->memory[m].bytes == CLB_UNBOUNDED)
        return clb_fail(&r->ctx->error, CLB_ERROR_UNSUPPORTED,
                        "clb_recording_replace: the recording has a step of an optimizer whose "
                        "tensors lie in several buffers, none of which can be replaced");
  for (int64_t i = 0; i < r->n; i++)
    for (int m = 0; m < r->kept[i]->n_memory; m++) {
      if (r->kept[i]->memory[m].handle != old) continue;
      r->kept[i]->memory[m] = new_buffer->memory;
      uses++;
    }
  if (!uses)
    return clb_fail(&r->ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_recording_replace: the recording does not use old_buffer");
  if (new_buffer->memory.handle != old) let_driver_record(r);
  return CLB_OK;
}

void clb_recording_destroy(clb_recording **recording) {
  if (!recording || !*recording) return;
  clb_recording *r = *recording;
  clb_context *ctx = r->ctx;
  clb_recording **link = &ctx->recordings;
  while (*link && *link != r) link = &(*link)->next;
  if (*link) *link = r->next;
  if (r->recorded) ctx->device->backend->forget(ctx->device, r->recorded);
  for (int64_t i = 0; i < r->n; i++) free(r->kept[i]);
  free(r->kept);
  free(r->watched);
  free(r->work);
  free(r);
  *recording = NULL;
  clb_context_release(ctx);
}
