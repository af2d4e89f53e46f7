/* src/runtime/buffer.c - the public calls for device memory, and clb_wait. */
#include "src/runtime/context.h"

#include <stdlib.h>
#include <string.h>

clb_status clb_wait(clb_context *ctx) {
  clb_status s = clb_context_check(ctx, __func__);
  if (!s) s = clb_not_recording(ctx, "clb_wait");
  if (!s) s = ctx->device->backend->wait(ctx->device);
  if (!s) ctx->posting = 0;
  return s;
}

clb_status clb_buffer_new(clb_context *ctx, const char *call, uint64_t bytes, clb_buffer **buffer) {
  clb_status s = clb_context_check(ctx, call);
  if (buffer) *buffer = NULL;
  if (s) return s;
  if (!buffer) return clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: buffer is NULL", call);
  *buffer = calloc(1, sizeof **buffer);
  if (!*buffer) return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory", call);
  **buffer = (clb_buffer){.ctx = clb_context_hold(ctx), .memory.bytes = bytes};
  return CLB_OK;
}

clb_status clb_buffer_create(clb_context *ctx, uint64_t bytes, clb_buffer **buffer) {
  clb_status s = clb_buffer_new(ctx, "clb_buffer_create", bytes, buffer);
  if (s) return s;
  if (!ctx->device->info.runs) return CLB_OK; /* to describe an op with; nothing is there */
  s = clb_device_alloc(ctx->device, bytes ? bytes : 1, &(*buffer)->memory);
  (*buffer)->owned = s == CLB_OK;
  (*buffer)->memory.bytes = bytes;
  if (s) clb_buffer_destroy(buffer);
  return s;
}

clb_status clb_buffer_wrap(clb_context *ctx, clb_memory_kind kind, void *memory, uint64_t bytes,
                           clb_buffer **buffer) {
  clb_status s = clb_buffer_new(ctx, "clb_buffer_wrap", bytes, buffer);
  if (s) return s;
  clb_memory *m = &(*buffer)->memory;
  m->handle = memory;
  m->kind = kind;
  if (!memory && bytes)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_wrap: memory is NULL");
  else if (kind != CLB_POINTER && kind != CLB_CL_MEM)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_buffer_wrap: kind is %d; it must be CLB_POINTER or CLB_CL_MEM", kind);
  else if (ctx->device->backend->wrap) s = ctx->device->backend->wrap(ctx->device, m);
  else if (kind == CLB_CL_MEM)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_buffer_wrap: CLB_CL_MEM is for opencl devices, not for %s",
                 ctx->device->info.name);
  if (s) clb_buffer_destroy(buffer);
  return s;
}

clb_status clb_buffer_open_peer(clb_context *ctx, const clb_buffer *of, clb_buffer **buffer) {
  clb_status s = clb_buffer_new(ctx, "clb_buffer_open_peer", 0, buffer);
  if (s) return s;
  clb_device *d = ctx->device, *owner = of ? of->ctx->device : NULL;
  if (!of) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_open_peer: of is NULL");
  else if (!of->owned)
    s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT,
                 "clb_buffer_open_peer: of must be a buffer of clb_buffer_create");
  else if (d->backend != owner->backend || !d->backend->reach || !d->info.runs)
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                 "clb_buffer_open_peer: %s cannot read memory of %s", d->info.name,
                 owner->info.name);
  else s = d->backend->reach(d, owner);
  if (s) clb_buffer_destroy(buffer);
  else (*buffer)->memory = of->memory;
  return s;
}

clb_status clb_buffer_native(const clb_buffer *b, clb_memory_kind *kind, void **memory) {
  if (!b) return clb_null(__func__, "buffer");
  if (!kind || !memory)
    return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT, "clb_buffer_native: %s is NULL",
                    kind ? "memory" : "kind");
  clb_memory_mark(&b->memory, 0, b->memory.bytes); /* the caller may write there, unseen */
  *kind = b->memory.kind;
  *memory = b->memory.handle;
  return CLB_OK;
}

static void free_ipc(clb_buffer *b) {
  clb_memory_lose(b->ctx, &b->memory);
  b->memory.bytes += CLB_IPC_PROOF;
  clb_device_free_ipc(b->ctx->device, &b->memory, b->ipc == CLB_IPC_OPENED);
}

void clb_buffer_destroy(clb_buffer **buffer) {
  if (!buffer || !*buffer) return;
  clb_context *ctx = (*buffer)->ctx;
  if ((*buffer)->owned) clb_memory_free(ctx, &(*buffer)->memory);
  if ((*buffer)->ipc != CLB_IPC_NONE) free_ipc(*buffer);
  free(*buffer);
  *buffer = NULL;
  clb_context_release(ctx);
}

static clb_status check_range(clb_buffer *b, const char *call, uint64_t offset, const void *host,
                              uint64_t bytes) {
  if (!b) return clb_null(call, "buffer");
  if (!host && bytes)
    return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT, "%s: the host pointer is NULL", call);
  if (offset > b->memory.bytes || bytes > b->memory.bytes - offset)
    return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT,
                    "%s: bytes %llu ... %llu are outside the buffer of %llu bytes", call,
                    (unsigned long long)offset, (unsigned long long)(offset + bytes),
                    (unsigned long long)b->memory.bytes);
  if (!b->ctx->device->info.runs)
    return clb_fail(&b->ctx->error, CLB_ERROR_UNSUPPORTED, "%s: %s only compiles: it has no memory",
                    call, b->ctx->device->info.name);
  return clb_not_recording(b->ctx, call);
}

clb_status clb_buffer_write(clb_buffer *b, uint64_t offset, const void *from, uint64_t bytes) {
  clb_status s = check_range(b, "clb_buffer_write", offset, from, bytes);
  if (s || !bytes) return s;
  return b->ctx->device->backend->write(b->ctx->device, &b->memory, offset, from, bytes);
}

clb_status clb_buffer_read(clb_buffer *b, uint64_t offset, void *to, uint64_t bytes) {
  const clb_status good = check_range(b, "clb_buffer_read", offset, to, bytes);
  if (good || !bytes) return good;
  const int64_t hole = clb_memory_unwritten(&b->memory, offset, bytes);
  if (hole >= 0)
    return clb_fail(&b->ctx->error, CLB_ERROR_ARGUMENT,
                    "clb_buffer_read: bytes %llu ... %llu of a buffer of %llu: neither an op nor "
                    "clb_buffer_write has written byte %lld",
                    (unsigned long long)offset, (unsigned long long)(offset + bytes - 1),
                    (unsigned long long)b->memory.bytes, (long long)hole);
  const clb_status s = b->ctx->device->backend->read(b->ctx->device, &b->memory, offset, to, bytes);
  if (!s) b->ctx->posting = 0;
  return s;
}

/* ---- memory that ops share ---- */

clb_status clb_scratch_reserve(clb_context *ctx, uint64_t bytes) {
  if (!ctx->device->info.runs || ctx->scratch.bytes >= bytes) return CLB_OK;
  const clb_status s = clb_wait(ctx);
  if (s) return s;
  if (ctx->scratch.handle) clb_memory_free(ctx, &ctx->scratch);
  ctx->scratch = (clb_memory){0};
  return clb_device_alloc(ctx->device, bytes, &ctx->scratch);
}

/* ---- staging ---- */

void *clb_staging(clb_context *ctx, uint64_t bytes) {
  return clb_device_stage(ctx->device, bytes ? bytes : 1, &ctx->staging) ? ctx->staging.at : NULL;
}

/* NULL: copies gain nothing from it. */
static void *pinned(clb_context *ctx, uint64_t bytes) {
  if (!ctx->device->backend->pin || ctx->device->limits.simd) return NULL;
  void *at = clb_staging(ctx, bytes);
  return ctx->staging.pinned ? at : NULL;
}

clb_status clb_staged_write(clb_buffer *b, uint64_t offset, const void *from, uint64_t bytes) {
  void *at = from && bytes ? pinned(b->ctx, bytes) : NULL;
  if (at) memcpy(at, from, (size_t)bytes);
  return clb_buffer_write(b, offset, at ? at : from, bytes);
}

/* Page-locked room for a copy that nobody waits for; *at is NULL: there is none. It grows where
   copies have filled it. */
static clb_status post_room(clb_context *ctx, uint64_t bytes, void **at) {
  const uint64_t most = (uint64_t)32 << 20, aligned = (bytes + 63) / 64 * 64;
  clb_host_memory *p = &ctx->posted;
  clb_status s = CLB_OK;
  *at = NULL;
  if (!ctx->device->backend->post || ctx->device->limits.simd) return s;
  if (ctx->posting + aligned > p->bytes) {
    const uint64_t twice = 2 * p->bytes < most ? 2 * p->bytes : most;
    const bool fills = ctx->posting;
    if (fills) s = clb_wait(ctx);
    if (!s) clb_device_stage(ctx->device, fills && twice > aligned ? twice : aligned, p);
    ctx->posting = 0;
  }
  if (s || !p->at || !p->pinned) return s;
  *at = (char *)p->at + ctx->posting;
  ctx->posting += aligned;
  return s;
}

clb_status clb_post(clb_context *ctx, const clb_memory *to, uint64_t offset, const void *from,
                    uint64_t bytes) {
  const clb_backend *backend = ctx->device->backend;
  void *at = NULL;
  if (!bytes) return CLB_OK;
  clb_status s = post_room(ctx, bytes, &at);
  if (s) return s;
  if (at) {
    memcpy(at, from, (size_t)bytes);
    return backend->post(ctx->device, to, offset, at, bytes);
  }
  if (from != ctx->staging.at && (at = pinned(ctx, bytes))) memcpy(at, from, (size_t)bytes);
  return backend->write(ctx->device, to, offset, at ? at : from, bytes);
}

clb_status clb_posted_write(clb_buffer *b, uint64_t offset, const void *from, uint64_t bytes) {
  const clb_status s = check_range(b, "clb_buffer_write", offset, from, bytes);
  return s ? s : clb_post(b->ctx, &b->memory, offset, from, bytes);
}

clb_status clb_staged_read(clb_buffer *b, uint64_t offset, void *to, uint64_t bytes) {
  void *at = to && bytes ? pinned(b->ctx, bytes) : NULL;
  const clb_status s = clb_buffer_read(b, offset, at ? at : to, bytes);
  if (at && !s) memcpy(to, at, (size_t)bytes);
  return s;
}

/* ---- numbers ---- */

static clb_status no_memory(clb_context *ctx, int64_t count) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "no memory for %lld numbers", (long long)count);
}

clb_status clb_numbers_write(clb_buffer *to, clb_dtype type, int64_t at, int64_t count,
                             const double *from) {
  const uint64_t bytes = (uint64_t)clb_dtype_bytes((int32_t)type), first = (uint64_t)at * bytes;
  if (!count) return CLB_OK;
  if (type == CLB_F64) return clb_posted_write(to, first, from, (uint64_t)count * bytes);
  float *x = clb_staging(to->ctx, (size_t)count * sizeof *x);
  if (!x) return no_memory(to->ctx, count);
  for (int64_t i = 0; i < count; i++) x[i] = (float)from[i];
  return clb_posted_write(to, first, x, (uint64_t)count * bytes);
}

clb_status clb_numbers_read(clb_buffer *from, clb_dtype type, int64_t at, int64_t count,
                            double *to) {
  const uint64_t size = (uint64_t)clb_dtype_bytes((int32_t)type), bytes = (uint64_t)count * size,
                 place = (uint64_t)at * size;
  if (!count) return CLB_OK;
  if (type == CLB_F64) return clb_staged_read(from, place, to, bytes);
  float *x = clb_staging(from->ctx, bytes);
  if (!x) return no_memory(from->ctx, count);
  const clb_status s = clb_buffer_read(from, place, x, bytes);
  for (int64_t i = 0; i < count && !s; i++) to[i] = x[i];
  return s;
}

clb_status clb_buffer_grow(clb_context *ctx, clb_buffer **buffer, int64_t count, int64_t bytes) {
  int64_t all;
  if (*buffer && (*buffer)->memory.bytes >= (uint64_t)(count * bytes)) return CLB_OK;
  const clb_status s = clb_wait(ctx);
  if (s) return s;
  clb_buffer_destroy(buffer);
  if (__builtin_mul_overflow(count + count / 4 + 1, bytes, &all)) return no_memory(ctx, count);
  return clb_buffer_create(ctx, (uint64_t)all, buffer);
}
