/* backends/cuda_hip/memory.c - memory, kernels and launches through CUDA's or HIP's driver. */
#include <inttypes.h>
#include <stdlib.h>

#include "backends/cuda_hip/gpu.h"

struct clb_module {
  void *module, *function;
  unsigned threads, local; /* local: dynamic local memory per group, in bytes */
  int n;
  void *params[]; /* arguments of a launch */
};

/* ---- memory ---- */

clb_status clb_gpu_alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  *memory = (clb_memory){.kind = CLB_POINTER, .bytes = bytes};
  clb_status s = clb_gpu_enter(g, &t);
  if (!s && (s = CLB_GPU_CALL(g, alloc, &memory->handle, bytes)))
    clb_fail_more(device->error, s, " (%" PRIu64 " bytes)", bytes);
  clb_gpu_leave(g, &t);
  return s;
}

/* For calls that may fail unseen: the message that is there is kept. */
static bool enter_unseen(clb_gpu *g, clb_gpu_guard *t) {
  clb_error_sink own = {0}, *const kept = g->head.error;
  g->head.error = &own;
  const bool entered = !clb_gpu_enter(g, t);
  g->head.error = kept;
  clb_text_free(&own.text);
  return entered;
}

uint64_t clb_gpu_free_bytes(clb_device *device) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  size_t left = 0, all = 0;
  if (!g->driver.memory_info || !enter_unseen(g, &t)) return 0;
  if (g->driver.memory_info(&left, &all)) left = 0;
  clb_gpu_leave(g, &t);
  return left;
}

bool clb_gpu_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  void *at = NULL;
  if (!g->driver.pin || !g->driver.unpin || bytes > SIZE_MAX || !enter_unseen(g, &t)) return false;
  if (g->driver.pin(&at, (size_t)bytes, 0)) at = NULL;
  clb_gpu_leave(g, &t);
  memory->at = memory->pinned = at;
  return at;
}

void clb_gpu_unpin(clb_device *device, clb_host_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_gpu_enter(g, &t); /* failures cannot be reported here */
  g->driver.unpin(memory->pinned);
  clb_gpu_leave(g, &t);
}

void clb_gpu_free(clb_device *device, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_gpu_enter(g, &t); /* failures cannot be reported here */
  g->driver.free(memory->handle);
  clb_gpu_leave(g, &t);
  memory->handle = NULL;
}

enum { POINTER_MEMORY_TYPE = 2 }; /* the same in both */

/* A pointer unknown to the driver would corrupt the context at the first launch. */
clb_status clb_gpu_wrap(clb_device *device, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  unsigned type = 0;
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s && !g->pageable && g->driver.pointer(&type, POINTER_MEMORY_TYPE, memory->handle))
    s = clb_fail(device->error, CLB_ERROR_ARGUMENT, "%s: %p is not memory of this driver", g->name,
                 memory->handle);
  clb_gpu_leave(g, &t);
  return s;
}

static clb_status write(clb_gpu *g, const clb_memory *to, uint64_t offset, const void *from,
                        uint64_t bytes, bool waits) {
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, write, (char *)to->handle + offset, from, bytes, g->stream);
  if (!s && waits) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  clb_gpu_leave(g, &t);
  return s;
}

clb_status clb_gpu_write(clb_device *device, const clb_memory *to, uint64_t offset,
                         const void *from, uint64_t bytes) {
  return write((clb_gpu *)device, to, offset, from, bytes, true);
}

clb_status clb_gpu_post(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                        uint64_t bytes) {
  return write((clb_gpu *)device, to, offset, from, bytes, false);
}

clb_status clb_gpu_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                        uint64_t bytes) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, read, to, (char *)from->handle + offset, bytes, g->stream);
  if (!s) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  clb_gpu_leave(g, &t);
  return s;
}

/* ---- kernels ---- */

clb_status clb_gpu_build(clb_device *device, const ir_kernel *k, const clb_text *text,
                         clb_text *binary) {
  clb_gpu *g = (clb_gpu *)device;
  if (k->lanes > device->limits.lanes[CLB_F32] || k->lanes * k->subgroups > g->threads)
    return clb_fail(
        device->error, CLB_ERROR_UNSUPPORTED,
        "%s: %s wants %d sub-groups of %d lanes; the device has %d lanes and groups of %d", g->name,
        k->name, k->subgroups, k->lanes, device->limits.lanes[CLB_F32], g->threads);
  int64_t local = clb_launch_local_bytes(k, &device->dialect), max = device->limits.max_local_bytes;
  if (local > max)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED,
                    "%s: %s wants %" PRId64
                    " bytes of local memory; the device has at most %" PRId64 " for a group",
                    g->name, k->name, local, max);
  return clb_gpu_compile(g, k->name, text, false, binary, NULL);
}

void clb_gpu_unload(clb_device *device, clb_module *module) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  if (!module) return;
  clb_gpu_enter(g, &t);
  if (module->module) g->driver.module_unload(module->module);
  clb_gpu_leave(g, &t);
  free(module);
}

enum { FUNCTION_LOCAL_BYTES = 8 }; /* CUDA's attribute: maximum dynamic local memory of a launch */

clb_status clb_gpu_load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                        clb_module **module) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  int n = 0;
  *module = NULL;
  if (!device->info.runs)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s only compiles", g->name);
  const char *damage = clb_gpu_elf_error(binary, bytes); /* the driver is not given a length, and
                                                         would read past the end */
  if (damage)
    return clb_fail(device->error, CLB_ERROR_DRIVER,
                    "%s: the binary of %s (%zu bytes) is damaged: %s", g->name, k->name, bytes,
                    damage);
  for (int v = 0; v < k->n; v++) n += k->ins[v].op == IR_BUFFER || k->ins[v].op == IR_SCALAR;
  clb_module *m = calloc(1, sizeof *m + (size_t)n * sizeof *m->params);
  if (!m)
    return clb_fail(device->error, CLB_ERROR_MEMORY, "%s: no memory for %s", g->name, k->name);
  m->n = n;
  m->threads = (unsigned)(k->lanes * k->subgroups);
  m->local = (unsigned)clb_launch_local_bytes(k, &device->dialect);
  clb_status s = clb_gpu_enter(g, &t);
  if (!s && (s = CLB_GPU_CALL(g, module_load, &m->module, binary)))
    clb_fail_more(device->error, s, ", loading the binary of %s (%zu bytes, for %s)", k->name,
                  bytes, g->target);
  if (!s) s = CLB_GPU_CALL(g, function, &m->function, m->module, k->name);
  if (!s && m->local)
    s = CLB_GPU_CALL(g, function_set, m->function, FUNCTION_LOCAL_BYTES, (int)m->local);
  clb_gpu_leave(g, &t);
  if (s) clb_gpu_unload(device, m);
  else *module = m;
  return s;
}

clb_status clb_gpu_launch(clb_device *device, clb_module *m, int64_t groups, const clb_arg *args,
                          int n) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  if (n != m->n)
    return clb_fail(device->error, CLB_ERROR_INTERNAL, "%s: %d arguments for a kernel of %d",
                    g->name, n, m->n);
  if (groups > INT32_MAX)
    return clb_fail(device->error, CLB_ERROR_ARGUMENT,
                    "%s: %" PRId64 " groups in one launch; at most %d", g->name, groups, INT32_MAX);
  /* The driver reads the values before it returns. */
  for (int i = 0; i < n; i++)
    m->params[i] = args[i].type == IR_VOID ? (void *)(uintptr_t)&args[i].memory->handle
                                           : (void *)(uintptr_t)&args[i].i64;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s)
    s = CLB_GPU_CALL(g, launch, m->function, (unsigned)groups, 1, 1, m->threads, 1, 1, m->local,
                     g->stream, m->params, NULL);
  clb_gpu_leave(g, &t);
  return s;
}

clb_status clb_gpu_wait(clb_device *device) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t;
  clb_status s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  clb_gpu_leave(g, &t);
  return s;
}
