/* backends/cuda_hip/ipc.c - memory that processes of a host share, each with its GPU. */
#include "backends/cuda_hip/gpu.h"

static clb_status check(clb_gpu *g) {
  const clb_gpu_driver *d = &g->driver;
  if (d->ipc_handle && d->ipc_open && d->ipc_close && d->copy) return CLB_OK;
  return clb_fail(g->head.error, CLB_ERROR_UNSUPPORTED,
                  "%s: the driver opens no memory of other processes", g->name);
}

clb_status clb_gpu_alloc_ipc(clb_device *device, uint64_t bytes, clb_ipc_bytes *handle,
                             clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_status s = check(g);
  if (!s) s = clb_gpu_alloc(device, bytes, memory);
  if (s) return s;
  s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, ipc_handle, handle, memory->handle);
  clb_gpu_leave(g, &t);
  if (s) clb_gpu_free(device, memory);
  return s;
}

enum { LAZY_PEER_ACCESS = 1 }; /* the same in both: access to another GPU where it is needed */

clb_status clb_gpu_open_ipc(clb_device *device, uint64_t bytes, const clb_ipc_bytes *handle,
                            clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  *memory = (clb_memory){.kind = CLB_POINTER, .bytes = bytes};
  clb_status s = check(g);
  if (s) return s;
  s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, ipc_open, &memory->handle, *handle, LAZY_PEER_ACCESS);
  clb_gpu_leave(g, &t);
  return s;
}

void clb_gpu_free_ipc(clb_device *device, clb_memory *memory, bool opened) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  if (!opened) {
    clb_gpu_free(device, memory);
    return;
  }
  clb_gpu_enter(g, &t); /* failures cannot be reported here */
  g->driver.ipc_close(memory->handle);
  clb_gpu_leave(g, &t);
  memory->handle = NULL;
}

clb_status clb_gpu_copy(clb_device *device, const clb_memory *to, uint64_t to_offset,
                        const clb_memory *from, uint64_t from_offset, uint64_t bytes) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_status s = check(g);
  if (s) return s;
  s = clb_gpu_enter(g, &t);
  if (!s)
    s = CLB_GPU_CALL(g, copy, (char *)to->handle + to_offset, (char *)from->handle + from_offset,
                     bytes, g->stream);
  clb_gpu_leave(g, &t);
  return s;
}
