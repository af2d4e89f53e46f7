/* backends/opencl/memory.c - buffers of an OpenCL device: its own cl_mem, the caller's cl_mem, the
   caller's pointers. */
#include "backends/opencl/opencl.h"

enum {
  ALLOW_UNRESTRICTED_SIZE = 1 << 23
}; /* CL_MEM_ALLOW_UNRESTRICTED_SIZE_INTEL: more than 4 GiB in one buffer */

clb_status clb_opencl_alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  clb_opencl *o = (clb_opencl *)device;
  cl_int code = CL_OUT_OF_HOST_MEMORY;
  cl_mem_flags flags = CL_MEM_READ_WRITE;
  cl_mem m = NULL;
  if (o->intel_gpu && bytes > UINT32_MAX) flags |= ALLOW_UNRESTRICTED_SIZE;
  if (bytes <= SIZE_MAX) m = o->cl.clCreateBuffer(o->context, flags, (size_t)bytes, NULL, &code);
  if (!m || code) {
    clb_opencl_failed(device->error, "clCreateBuffer", code);
    return clb_fail_more(device->error, CLB_ERROR_MEMORY, ", asked for %llu bytes",
                         (unsigned long long)bytes);
  }
  *memory = (clb_memory){.handle = m, .kind = CLB_CL_MEM, .bytes = bytes};
  return CLB_OK;
}

void clb_opencl_free(clb_device *device, clb_memory *memory) {
  clb_opencl *o = (clb_opencl *)device;
  if (memory->handle) o->cl.clReleaseMemObject(memory->handle);
  *memory = (clb_memory){0};
}

/* A buffer that lies on the host, mapped as long as it lives. */
bool clb_opencl_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory) {
  clb_opencl *o = (clb_opencl *)device;
  const cl_map_flags flags = CL_MAP_READ | CL_MAP_WRITE;
  cl_int code = 0;
  if (bytes > SIZE_MAX) return false;
  cl_mem m = o->cl.clCreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  (size_t)bytes, NULL, &code);
  if (!m || code) return false;
  void *at =
      o->cl.clEnqueueMapBuffer(o->queue, m, CL_TRUE, flags, 0, (size_t)bytes, 0, NULL, NULL, &code);
  if (!at || code) o->cl.clReleaseMemObject(m);
  else memory->at = at, memory->pinned = m;
  return memory->pinned == m;
}

void clb_opencl_unpin(clb_device *device, clb_host_memory *memory) {
  clb_opencl *o = (clb_opencl *)device;
  o->cl.clEnqueueUnmapMemObject(o->queue, memory->pinned, memory->at, 0, NULL, NULL);
  o->cl.clReleaseMemObject(memory->pinned); /* after what is queued */
}

static clb_status wrap_cl_mem(clb_opencl *o, const clb_memory *memory) {
  clb_error_sink *e = o->head.error;
  cl_mem_object_type type = 0;
  cl_context context = NULL;
  size_t size = 0;
  const struct {
    cl_mem_info what;
    void *value;
    size_t bytes;
  } asked[] = {{CL_MEM_TYPE, &type, sizeof type},
               {CL_MEM_CONTEXT, &context, sizeof context},
               {CL_MEM_SIZE, &size, sizeof size}};
  for (int i = 0; i < 3; i++) {
    cl_int code = o->cl.clGetMemObjectInfo(memory->handle, asked[i].what, asked[i].bytes,
                                           asked[i].value, NULL);
    if (code) return clb_opencl_failed(e, "clGetMemObjectInfo", code);
  }
  if (type != CL_MEM_OBJECT_BUFFER)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "the cl_mem is an image or a pipe, not a buffer");
  if (context != o->context)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "the cl_mem belongs to another cl_context than %s",
                    o->name);
  if (size < memory->bytes)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "the cl_mem has %llu bytes, not %llu",
                    (unsigned long long)size, (unsigned long long)memory->bytes);
  return CLB_OK;
}

/* The allocation of a pointer can be queried for unified shared memory, but not for shared virtual
   memory. */
static clb_status wrap_pointer(clb_opencl *o, const clb_memory *memory) {
  clb_error_sink *e = o->head.error;
  cl_unified_shared_memory_type_intel type = CL_MEM_TYPE_UNKNOWN_INTEL;
  char *base = NULL;
  size_t size = 0;
  if (!o->pointers.set)
    return clb_fail(e, CLB_ERROR_UNSUPPORTED,
                    "%s has neither unified shared memory nor shared virtual memory: wrap a cl_mem "
                    "(CLB_CL_MEM)",
                    o->name);
  if (!o->pointers.info) return CLB_OK;
  cl_int code = o->pointers.info(o->context, memory->handle, CL_MEM_ALLOC_TYPE_INTEL, sizeof type,
                                 &type, NULL);
  if (!code && type == CL_MEM_TYPE_UNKNOWN_INTEL) return CLB_OK;
  if (!code)
    code = o->pointers.info(o->context, memory->handle, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof base,
                            &base, NULL);
  if (!code)
    code = o->pointers.info(o->context, memory->handle, CL_MEM_ALLOC_SIZE_INTEL, sizeof size, &size,
                            NULL);
  if (code) return clb_opencl_failed(e, "clGetMemAllocInfoINTEL", code);
  uint64_t before = (uint64_t)((char *)memory->handle - base);
  if (before > size || memory->bytes > size - before)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "the pointer has %llu bytes behind it, not %llu",
                    (unsigned long long)(size - before), (unsigned long long)memory->bytes);
  return CLB_OK;
}

clb_status clb_opencl_wrap(clb_device *device, clb_memory *memory) {
  clb_opencl *o = (clb_opencl *)device;
  if (!memory->handle && !memory->bytes) return CLB_OK;
  if (!memory->handle)
    return clb_fail(device->error, CLB_ERROR_ARGUMENT, "the memory to wrap is NULL");
  return memory->kind == CLB_CL_MEM ? wrap_cl_mem(o, memory) : wrap_pointer(o, memory);
}

clb_status clb_opencl_write(clb_device *device, const clb_memory *to, uint64_t offset,
                            const void *from, uint64_t bytes) {
  clb_opencl *o = (clb_opencl *)device;
  bool pointer = to->kind == CLB_POINTER;
  cl_int code = pointer ? o->pointers.copy(o->queue, CL_TRUE, (char *)to->handle + offset, from,
                                           (size_t)bytes, 0, NULL, NULL)
                        : o->cl.clEnqueueWriteBuffer(o->queue, to->handle, CL_TRUE, (size_t)offset,
                                                     (size_t)bytes, from, 0, NULL, NULL);
  return code ? clb_opencl_failed(device->error,
                                  pointer ? o->pointers.copy_name : "clEnqueueWriteBuffer", code)
              : CLB_OK;
}

clb_status clb_opencl_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                           uint64_t bytes) {
  clb_opencl *o = (clb_opencl *)device;
  bool pointer = from->kind == CLB_POINTER;
  cl_int code = pointer
                    ? o->pointers.copy(o->queue, CL_TRUE, to, (const char *)from->handle + offset,
                                       (size_t)bytes, 0, NULL, NULL)
                    : o->cl.clEnqueueReadBuffer(o->queue, from->handle, CL_TRUE, (size_t)offset,
                                                (size_t)bytes, to, 0, NULL, NULL);
  return code ? clb_opencl_failed(device->error,
                                  pointer ? o->pointers.copy_name : "clEnqueueReadBuffer", code)
              : CLB_OK;
}
