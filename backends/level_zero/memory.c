/* backends/level_zero/memory.c - memory of a Level Zero device, and the order of the work on it.

   One asynchronous immediate command list. Level Zero does not order commands, and many drivers are
   too old for the flag that makes a list in-order, so every command is preceded by a barrier; in a
   caller's list it is also followed by one. */
#include "backends/level_zero/level_zero.h"

#include <string.h>

static const struct {
  ze_result_t result;
  const char *name;
} result_names[] = {
#define X(name) {ZE_RESULT_##name, "ZE_RESULT_" #name},
    X(NOT_READY) X(ERROR_DEVICE_LOST) X(ERROR_OUT_OF_HOST_MEMORY) X(ERROR_OUT_OF_DEVICE_MEMORY) X(
        ERROR_MODULE_BUILD_FAILURE) X(ERROR_MODULE_LINK_FAILURE) X(ERROR_INSUFFICIENT_PERMISSIONS)
        X(ERROR_NOT_AVAILABLE) X(ERROR_DEPENDENCY_UNAVAILABLE) X(ERROR_UNINITIALIZED) X(
            ERROR_UNSUPPORTED_VERSION) X(ERROR_UNSUPPORTED_FEATURE) X(ERROR_INVALID_ARGUMENT)
            X(ERROR_INVALID_NULL_HANDLE) X(ERROR_HANDLE_OBJECT_IN_USE) X(ERROR_INVALID_NULL_POINTER)
                X(ERROR_INVALID_SIZE) X(ERROR_UNSUPPORTED_SIZE) X(ERROR_UNSUPPORTED_ALIGNMENT)
                    X(ERROR_INVALID_SYNCHRONIZATION_OBJECT) X(ERROR_INVALID_ENUMERATION)
                        X(ERROR_UNSUPPORTED_ENUMERATION) X(ERROR_INVALID_NATIVE_BINARY)
                            X(ERROR_INVALID_KERNEL_NAME) X(ERROR_INVALID_GROUP_SIZE_DIMENSION)
                                X(ERROR_INVALID_GLOBAL_WIDTH_DIMENSION)
                                    X(ERROR_INVALID_KERNEL_ARGUMENT_INDEX)
                                        X(ERROR_INVALID_KERNEL_ARGUMENT_SIZE)
                                            X(ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE)
                                                X(ERROR_INVALID_COMMAND_LIST_TYPE) X(ERROR_UNKNOWN)
#undef X
};

static clb_status status_of(ze_result_t result) {
  switch (result) {
    case ZE_RESULT_SUCCESS: return CLB_OK;
    case ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY:
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY: return CLB_ERROR_MEMORY;
    case ZE_RESULT_ERROR_MODULE_BUILD_FAILURE:
    case ZE_RESULT_ERROR_MODULE_LINK_FAILURE: return CLB_ERROR_COMPILE;
    default: return CLB_ERROR_DRIVER;
  }
}

clb_status clb_lz_failed(clb_error_sink *error, const char *call, ze_result_t result) {
  for (size_t i = 0; i < sizeof result_names / sizeof *result_names; i++)
    if (result_names[i].result == result)
      return clb_fail(error, status_of(result), "level_zero: %s: %s", call, result_names[i].name);
  return clb_fail(error, status_of(result), "level_zero: %s: error 0x%x", call, (unsigned)result);
}

static clb_status only_compiles(lz_device *d, const char *what) {
  return clb_fail(d->base.error, CLB_ERROR_UNSUPPORTED, "%s only compiles: it has no %s", d->name,
                  what);
}

/* ---- order ---- */

clb_status clb_lz_barrier(lz_device *d) {
  ze_result_t r = d->ze.CommandListAppendBarrier(d->list, NULL, 0, NULL);
  d->busy = true;
  return r ? clb_lz_failed(d->base.error, "zeCommandListAppendBarrier", r) : CLB_OK;
}

/* Waits for the event of an appended barrier, also if an earlier wait failed. */
static clb_status settle(lz_device *d) {
  if (!d->signalling) return CLB_OK;
  ze_result_t r = d->ze.EventHostSynchronize(d->done, UINT64_MAX);
  if (r) return clb_lz_failed(d->base.error, "zeEventHostSynchronize", r);
  r = d->ze.EventHostReset(d->done);
  if (r) return clb_lz_failed(d->base.error, "zeEventHostReset", r);
  d->signalling = false;
  return CLB_OK;
}

clb_status clb_lz_wait(clb_device *device) {
  lz_device *d = (lz_device *)device;
  if (d->compiles_only) return CLB_OK;
  clb_status s = settle(d);
  if (s) return s;
  ze_result_t r = d->ze.CommandListAppendBarrier(d->list, d->done, 0, NULL);
  if (r) return clb_lz_failed(device->error, "zeCommandListAppendBarrier", r);
  d->busy = d->signalling = true;
  s = settle(d);
  d->busy = s != CLB_OK;
  return s;
}

void clb_lz_drain(lz_device *d) {
  if (d->busy && clb_lz_wait(&d->base)) clb_lz_wait(&d->base);
}

/* ---- memory ---- */

/* pNext of a description of so many bytes. */
static const void *limits_for(const lz_device *d, uint64_t bytes) {
  static const ze_relaxed_allocation_limits_exp_desc_t relaxed = {
      .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
      .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
  return bytes > d->max_allocation ? &relaxed : NULL;
}

clb_status clb_lz_alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  lz_device *d = (lz_device *)device;
  if (d->compiles_only) return only_compiles(d, "memory");
  const ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                           .pNext = limits_for(d, bytes)};
  void *p = NULL;
  if (bytes > SIZE_MAX)
    return clb_fail(device->error, CLB_ERROR_MEMORY,
                    "level_zero: %llu bytes are more than the address space",
                    (unsigned long long)bytes);
  ze_result_t r = d->ze.MemAllocDevice(d->context, &desc, (size_t)bytes, 64, d->device, &p);
  if (r) {
    clb_status s = clb_lz_failed(device->error, "zeMemAllocDevice", r);
    if (r == ZE_RESULT_ERROR_UNSUPPORTED_SIZE) s = CLB_ERROR_MEMORY;
    return clb_fail_more(device->error, s, " (%llu bytes)", (unsigned long long)bytes);
  }
  *memory = (clb_memory){.handle = p, .kind = CLB_POINTER, .bytes = bytes};
  return CLB_OK;
}

void clb_lz_free(clb_device *device, clb_memory *memory) {
  lz_device *d = (lz_device *)device;
  clb_lz_drain(d);
  d->ze.MemFree(d->context, memory->handle);
  memory->handle = NULL;
}

bool clb_lz_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory) {
  lz_device *d = (lz_device *)device;
  const ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
                                         .pNext = limits_for(d, bytes)};
  void *at = NULL;
  if (d->compiles_only || bytes > SIZE_MAX ||
      d->ze.MemAllocHost(d->context, &desc, (size_t)bytes, 64, &at))
    return false;
  memory->at = memory->pinned = at;
  return true;
}

void clb_lz_unpin(clb_device *device, clb_host_memory *memory) {
  lz_device *d = (lz_device *)device;
  clb_lz_drain(d);
  d->ze.MemFree(d->context, memory->pinned);
}

clb_status clb_lz_wrap(clb_device *device, clb_memory *memory) {
  lz_device *d = (lz_device *)device;
  ze_memory_allocation_properties_t p = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_device_handle_t owner = NULL;
  void *base = NULL;
  size_t size = 0;
  if (d->compiles_only) return only_compiles(d, "memory");
  if (memory->kind != CLB_POINTER)
    return clb_fail(device->error, CLB_ERROR_ARGUMENT,
                    "level_zero: memory must be a CLB_POINTER; a cl_mem belongs to OpenCL");
  ze_result_t r = d->ze.MemGetAllocProperties(d->context, memory->handle, &p, &owner);
  if (r) return clb_lz_failed(device->error, "zeMemGetAllocProperties", r);
  if (p.type == ZE_MEMORY_TYPE_UNKNOWN)
    return clb_fail(device->error, CLB_ERROR_ARGUMENT,
                    "level_zero: %p is not device, shared or host memory of this context",
                    memory->handle);
  r = d->ze.MemGetAddressRange(d->context, memory->handle, &base, &size);
  if (r) return clb_lz_failed(device->error, "zeMemGetAddressRange", r);
  size_t left = size - (size_t)((char *)memory->handle - (char *)base);
  if (memory->bytes > left)
    return clb_fail(device->error, CLB_ERROR_ARGUMENT,
                    "level_zero: %llu bytes wanted at %p, but its allocation ends after %zu",
                    (unsigned long long)memory->bytes, memory->handle, left);
  return CLB_OK;
}

static clb_status copy(clb_device *device, void *to, const void *from, uint64_t bytes) {
  lz_device *d = (lz_device *)device;
  if (d->compiles_only) return only_compiles(d, "memory");
  clb_status s = clb_lz_barrier(d);
  if (s || !bytes) return s;
  ze_result_t r =
      d->ze.CommandListAppendMemoryCopy(d->list, to, from, (size_t)bytes, NULL, 0, NULL);
  if (r) return clb_lz_failed(device->error, "zeCommandListAppendMemoryCopy", r);
  s = clb_lz_wait(device);
  if (s) clb_lz_drain(d); /* the host's memory may be freed after we return */
  return s;
}

clb_status clb_lz_write(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                        uint64_t bytes) {
  return copy(device, (char *)to->handle + offset, from, bytes);
}

clb_status clb_lz_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                       uint64_t bytes) {
  return copy(device, to, (const char *)from->handle + offset, bytes);
}
