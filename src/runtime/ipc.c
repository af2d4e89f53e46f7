/* src/runtime/ipc.c - the public calls for memory that other processes open. After it lie random
   bytes, which the handle has, too: a process that opens it copies them as it will copy the rest,
   and compares. So a driver that opens other memory, whose number is the same here, and hardware
   that copies wrongly between two devices, are found. */
#include "src/runtime/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* What is in a clb_ipc_handle. */
typedef struct {
  char backend[16];
  uint64_t bytes;
  clb_ipc_bytes driver;
  unsigned char proof[CLB_IPC_PROOF];
} ipc_handle;
_Static_assert(sizeof(ipc_handle) <= sizeof(clb_ipc_handle), "it is in the handle");

static clb_status new_ipc(clb_context *ctx, const char *call, uint64_t bytes, const void *handle,
                          clb_buffer **buffer) {
  clb_status s = clb_buffer_new(ctx, call, bytes, buffer);
  if (s) return s;
  if (!handle) s = clb_fail(&ctx->error, CLB_ERROR_ARGUMENT, "%s: handle is NULL", call);
  else if (!ctx->device->info.runs || !ctx->device->backend->alloc_ipc)
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                 "%s: %s has no memory that other processes open", call, ctx->device->info.name);
  else if (bytes > INT64_MAX)
    s = clb_fail(&ctx->error, CLB_ERROR_MEMORY, "%s: no memory for %llu bytes", call,
                 (unsigned long long)bytes);
  if (s) clb_buffer_destroy(buffer);
  return s;
}

/* The caller's bytes are those before the proof. */
static void take(clb_buffer *b, clb_ipc ipc, uint64_t bytes) {
  b->ipc = ipc;
  b->memory.bytes = bytes;
}

clb_status clb_buffer_create_ipc(clb_context *ctx, uint64_t bytes, clb_ipc_handle *handle,
                                 clb_buffer **buffer) {
  clb_status s = new_ipc(ctx, "clb_buffer_create_ipc", bytes, handle, buffer);
  if (handle) *handle = (clb_ipc_handle){{0}};
  if (s) return s;
  clb_device *d = ctx->device;
  ipc_handle h = {.bytes = bytes};
  snprintf(h.backend, sizeof h.backend, "%s", d->backend->name);
  if (getrandom(h.proof, CLB_IPC_PROOF, 0) != CLB_IPC_PROOF)
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED, "clb_buffer_create_ipc: no random bytes: %s",
                 strerror(errno));
  if (!s) s = clb_device_alloc_ipc(d, bytes + CLB_IPC_PROOF, &h.driver, &(*buffer)->memory);
  if (!s) {
    take(*buffer, CLB_IPC_OWN, bytes);
    s = d->backend->write(d, &(*buffer)->memory, bytes, h.proof, CLB_IPC_PROOF);
  }
  if (s) clb_buffer_destroy(buffer);
  else memcpy(handle, &h, sizeof h);
  return s;
}

static clb_status prove(clb_context *ctx, const clb_memory *memory, const ipc_handle *h) {
  clb_device *d = ctx->device;
  unsigned char found[CLB_IPC_PROOF];
  clb_memory here;
  clb_status s = clb_device_alloc(d, CLB_IPC_PROOF, &here);
  if (s) return s;
  s = d->backend->copy(d, &here, 0, memory, h->bytes, CLB_IPC_PROOF);
  if (!s) s = d->backend->read(d, &here, 0, found, CLB_IPC_PROOF);
  if (!s && memcmp(found, h->proof, CLB_IPC_PROOF) != 0)
    s = clb_fail(&ctx->error, CLB_ERROR_DEVICE,
                 "clb_buffer_open_ipc: the memory that %s opened is not that of the handle, or "
                 "copies from there are wrong",
                 d->info.name);
  clb_device_free(d, &here);
  return s;
}

clb_status clb_buffer_open_ipc(clb_context *ctx, const clb_ipc_handle *handle,
                               clb_buffer **buffer) {
  ipc_handle h;
  clb_status s = new_ipc(ctx, "clb_buffer_open_ipc", 0, handle, buffer);
  if (s) return s;
  clb_device *d = ctx->device;
  memcpy(&h, handle, sizeof h);
  if (strncmp(h.backend, d->backend->name, sizeof h.backend) != 0 || h.bytes > INT64_MAX)
    s = clb_fail(&ctx->error, CLB_ERROR_UNSUPPORTED,
                 "clb_buffer_open_ipc: the handle must be one of memory of %s, as the context is",
                 d->backend->name);
  if (!s) s = d->backend->open_ipc(d, h.bytes + CLB_IPC_PROOF, &h.driver, &(*buffer)->memory);
  if (!s) {
    take(*buffer, CLB_IPC_OPENED, h.bytes);
    s = prove(ctx, &(*buffer)->memory, &h);
  }
  if (s) clb_buffer_destroy(buffer);
  return s;
}
