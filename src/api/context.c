/* src/api/context.c - contexts, buffers and devices as the user sees them. */
#include "src/base/cache_folder.h"
#include "src/runtime/kernel_cache.h"
#include "src/runtime/context.h"

#include <stdlib.h>
#include <string.h>

const char *clb_version(void) { return CLB_VERSION; }

const char *clb_status_text(clb_status status) {
  static const char *const texts[] = {
#define CLB_X(name, text) text,
      CLB_STATUSES(CLB_X)
#undef CLB_X
  };
  return (size_t)status < sizeof texts / sizeof *texts ? texts[status] : "no such status";
}

clb_status clb_devices(void (*each)(const clb_device_info *info, void *user), void *user) {
  if (!each) return CLB_ERROR_ARGUMENT;
  for (const clb_backend *const *b = clb_backends; *b; b++) (*b)->list(each, user);
  return CLB_OK;
}

/* ---- context ---- */

static clb_status open_context(const char *device, const clb_native *native, clb_context **ctx) {
  if (!ctx) return CLB_ERROR_ARGUMENT;
  clb_context *c = *ctx = calloc(1, sizeof *c);
  if (!c) return CLB_ERROR_MEMORY;
  clb_cache_sweep();
  return clb_device_open(device ? device : "", native, &c->error, &c->device);
}

clb_status clb_context_create(const char *device, clb_context **ctx) { return open_context(device, NULL, ctx); }

clb_status clb_context_adopt(const char *device, const clb_native *native, clb_context **ctx) {
  if (!ctx) return CLB_ERROR_ARGUMENT;
  if (native && device && *device) return open_context(device, native, ctx);
  *ctx = calloc(1, sizeof **ctx);
  if (!*ctx) return CLB_ERROR_MEMORY;
  return clb_fail(&(*ctx)->error, CLB_ERROR_ARGUMENT, "clb_context_adopt: %s", native ? "device is empty; name the backend, \"cuda\" for example" : "native is NULL");
}

static void finish(clb_context *c) {
  if (c->device && c->device->info.runs) c->device->backend->wait(c->device);
}

static void close_context(clb_context *c) {
  finish(c);
  while (c->kernels) clb_kernel_free(c, c->kernels);
  clb_text_free(&c->wisdom);
  if (c->device) c->device->backend->close(c->device);
  clb_text_free(&c->error.text);
  clb_text_free(&c->note);
  free(c);
}

clb_context *clb_context_hold(clb_context *ctx) {
  ctx->held++;
  return ctx;
}

void clb_context_release(clb_context *ctx) {
  if (!--ctx->held && ctx->destroyed) close_context(ctx);
}

void clb_context_destroy(clb_context **ctx) {
  if (!ctx || !*ctx) return;
  clb_context *c = *ctx;
  *ctx = NULL;
  finish(c);
  clb_profile_forget(c);
  clb_recording_destroy(&c->recording);
  c->destroyed = true;
  if (!c->held) close_context(c);
}

const char *clb_error(const clb_context *ctx) {
  if (!ctx) return "there is no context";
  if (ctx->error.text.failed) return "out of memory while saying what failed";
  return ctx->error.text.s ? ctx->error.text.s : "no error";
}

const char *clb_context_note(const clb_context *ctx) { return ctx && !ctx->note.failed ? ctx->note.s : NULL; }

clb_status clb_context_check(clb_context *ctx) {
  if (!ctx) return CLB_ERROR_ARGUMENT;
  if (!ctx->device) return clb_fail_more(&ctx->error, CLB_ERROR_ARGUMENT, " (this context never opened)");
  return CLB_OK;
}

clb_status clb_context_device(clb_context *ctx, clb_device_info *info) {
  clb_status s = clb_context_check(ctx);
  if (s) return s;
  if (!info) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_context_device: info is NULL");
  *info = ctx->device->info;
  return CLB_OK;
}

clb_status clb_context_without(clb_context *ctx, unsigned optimisations) {
  clb_status s = clb_context_check(ctx);
  if (s) return s;
  if (optimisations & ~(unsigned)(CLB_WIDE_ACCESSES | CLB_REGISTER_SUMS | CLB_SPLIT_ROWS))
    return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_context_without: optimisations is %#x; it must be a sum of CLB_WIDE_ACCESSES and its like", optimisations);
  ctx->without = optimisations;
  return CLB_OK;
}

clb_status clb_wait(clb_context *ctx) {
  clb_status s = clb_context_check(ctx);
  if (!s) s = clb_not_recording(ctx, "clb_wait");
  return s ? s : ctx->device->backend->wait(ctx->device);
}

/* ---- buffers ---- */

static clb_status new_buffer(clb_context *ctx, const char *call, uint64_t bytes, clb_buffer **buffer) {
  clb_status s = clb_context_check(ctx);
  if (buffer) *buffer = NULL;
  if (s) return s;
  if (!buffer) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: buffer is NULL", call);
  *buffer = calloc(1, sizeof **buffer);
  if (!*buffer) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
  **buffer = (clb_buffer){.ctx = clb_context_hold(ctx), .memory.bytes = bytes};
  return CLB_OK;
}

clb_status clb_buffer_create(clb_context *ctx, uint64_t bytes, clb_buffer **buffer) {
  clb_status s = new_buffer(ctx, "clb_buffer_create", bytes, buffer);
  if (s) return s;
  s = clb_device_alloc(ctx->device, bytes ? bytes : 1, &(*buffer)->memory);
  (*buffer)->owned = s == CLB_OK;
  (*buffer)->memory.bytes = bytes;
  if (s) clb_buffer_destroy(buffer);
  return s;
}

clb_status clb_buffer_wrap(clb_context *ctx, clb_memory_kind kind, void *memory, uint64_t bytes, clb_buffer **buffer) {
  clb_status s = new_buffer(ctx, "clb_buffer_wrap", bytes, buffer);
  if (s) return s;
  clb_memory *m = &(*buffer)->memory;
  m->handle = memory;
  m->kind = kind;
  if (!memory && bytes) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_wrap: memory is NULL");
  else if (kind != CLB_POINTER && kind != CLB_CL_MEM) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_wrap: kind is %d; it must be CLB_POINTER or CLB_CL_MEM", kind);
  else if (ctx->device->backend->wrap) s = ctx->device->backend->wrap(ctx->device, m);
  else if (kind == CLB_CL_MEM) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_wrap: CLB_CL_MEM is for opencl devices, not for %s", ctx->device->info.name);
  if (s) clb_buffer_destroy(buffer);
  return s;
}

void clb_buffer_destroy(clb_buffer **buffer) {
  if (!buffer || !*buffer) return;
  clb_context *ctx = (*buffer)->ctx;
  if ((*buffer)->owned) clb_memory_free(ctx, &(*buffer)->memory);
  free(*buffer);
  *buffer = NULL;
  clb_context_release(ctx);
}

static clb_status check_range(clb_buffer *b, const char *call, uint64_t offset, const void *host, uint64_t bytes) {
  if (!b) return CLB_ERROR_ARGUMENT;
  if (!host && bytes) return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT, "%s: the host pointer is NULL", call);
  if (offset > b->memory.bytes || bytes > b->memory.bytes - offset)
    return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT, "%s: bytes %llu ... %llu are outside the buffer of %llu bytes", call, (unsigned long long)offset,
                    (unsigned long long)(offset + bytes), (unsigned long long)b->memory.bytes);
  return clb_not_recording(b->ctx, call);
}

clb_status clb_buffer_write(clb_buffer *b, uint64_t offset, const void *from, uint64_t bytes) {
  clb_status s = check_range(b, "clb_buffer_write", offset, from, bytes);
  if (s || !bytes) return s;
  return b->ctx->device->backend->write(b->ctx->device, &b->memory, offset, from, bytes);
}

clb_status clb_buffer_read(clb_buffer *b, uint64_t offset, void *to, uint64_t bytes) {
  clb_status s = check_range(b, "clb_buffer_read", offset, to, bytes);
  if (s || !bytes) return s;
  return b->ctx->device->backend->read(b->ctx->device, &b->memory, offset, to, bytes);
}
