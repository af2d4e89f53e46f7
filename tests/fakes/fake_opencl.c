/* tests/fakes/fake_opencl.c - a libOpenCL.so.1 for tests: passes everything on to the real one, but
   fails the call that a test names and counts live objects and copies. Once a program has opened
   it, the loader finds it under that name. */
#include "tests/fakes/fake_opencl_idle.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_driver fake_opencl = {.left = -1};

/* The real function; FAKE_OPENCL_GENUINE is its library. */
static void *genuine(const char *name) {
  void *library = dlopen(getenv("FAKE_OPENCL_GENUINE"), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *address = library ? dlsym(library, name) : NULL;
  if (!address) abort();
  dlclose(library);
  return address;
}

/* FAKE_OPENCL_FAILS, a function's name: it does no more than $FAKE_OPENCL_CALLS calls. */
static bool fails(const char *name) {
  static _Atomic long calls;
  const char *failing = getenv("FAKE_OPENCL_FAILS"), *most = getenv("FAKE_OPENCL_CALLS");
  if (!failing || !most || strcmp(name, failing) || calls++ < strtol(most, NULL, 10))
    return fake_fails(&fake_opencl, name);
  fake_opencl.code = CL_OUT_OF_RESOURCES;
  return true;
}

/* FAKE_OPENCL_COPIES, a file: it gets the numbers of copies of at least $FAKE_OPENCL_BYTES bytes
   from the device and to it. */
static void count_copy(bool to_device, size_t bytes) {
  static long copies[2];
  const char *path = getenv("FAKE_OPENCL_COPIES"), *least = getenv("FAKE_OPENCL_BYTES");
  if (!path || !least || bytes < strtoul(least, NULL, 10)) return;
  copies[to_device]++;
  FILE *f = fopen(path, "w");
  if (!f) abort();
  fprintf(f, "%ld %ld\n", copies[0], copies[1]);
  fclose(f);
}

#define REAL(name)                                                                                 \
  static __typeof__(&name) real;                                                                   \
  if (!real) {                                                                                     \
    void *address = genuine(#name);                                                                \
    memcpy(&real, &address, sizeof address);                                                       \
  }

/* A function that returns its code. */
#define CALL(name, parameters, arguments)                                                          \
  EXPORT cl_int CL_API_CALL name parameters;                                                       \
  cl_int CL_API_CALL name parameters {                                                             \
    REAL(name)                                                                                     \
    if (fails(#name)) return fake_opencl.code;                                                     \
    return real arguments;                                                                         \
  }

/* One that never reaches the real loader while the fake is idle. */
#define CALL_OR_IDLE(name, parameters, arguments)                                                  \
  EXPORT cl_int CL_API_CALL name parameters;                                                       \
  cl_int CL_API_CALL name parameters {                                                             \
    REAL(name)                                                                                     \
    if (fails(#name)) return fake_opencl.code;                                                     \
    return (fake_opencl.idle ? idle_##name : real)arguments;                                       \
  }

#define COPY(name, to_device, parameters, arguments)                                               \
  EXPORT cl_int CL_API_CALL name parameters;                                                       \
  cl_int CL_API_CALL name parameters {                                                             \
    REAL(name)                                                                                     \
    if (fails(#name)) return fake_opencl.code;                                                     \
    count_copy(to_device, size);                                                                   \
    return (fake_opencl.idle ? idle_##name : real)arguments;                                       \
  }

/* A function that creates an object; `code` is its last parameter. */
#define MAKE(type, name, parameters, arguments) MAKE_FROM(type, name, parameters, real arguments)
#define MAKE_OR_IDLE(type, name, parameters, arguments)                                            \
  MAKE_FROM(type, name, parameters, (fake_opencl.idle ? idle_##name : real)arguments)
#define MAKE_FROM(type, name, parameters, call)                                                    \
  EXPORT type CL_API_CALL name parameters;                                                         \
  type CL_API_CALL name parameters {                                                               \
    REAL(name)                                                                                     \
    if (fails(#name)) {                                                                            \
      *code = fake_opencl.code;                                                                    \
      return NULL;                                                                                 \
    }                                                                                              \
    type made = call;                                                                              \
    fake_opencl.alive += made != NULL;                                                             \
    return made;                                                                                   \
  }

#define DROP(name, type) DROP_BY(name, type, real)
#define DROP_OR_IDLE(name, type) DROP_BY(name, type, (fake_opencl.idle ? idle_##name : real))
#define DROP_BY(name, type, call)                                                                  \
  EXPORT cl_int CL_API_CALL name(type x);                                                          \
  cl_int CL_API_CALL name(type x) {                                                                \
    REAL(name)                                                                                     \
    cl_int code = call(x);                                                                         \
    fake_opencl.alive -= code == 0;                                                                \
    return code;                                                                                   \
  }

#define INFO cl_uint what, size_t size, void *value, size_t *needed
#define INFO_ARGUMENTS what, size, value, needed
#define EVENTS cl_uint n_events, const cl_event *events, cl_event *event
#define EVENT_ARGUMENTS n_events, events, event

CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *found), (n, ids, found))
CALL(clGetPlatformInfo, (cl_platform_id x, INFO), (x, INFO_ARGUMENTS))
CALL(clGetDeviceIDs,
     (cl_platform_id x, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *found),
     (x, type, n, ids, found))
CALL(clGetDeviceInfo, (cl_device_id x, INFO), (x, INFO_ARGUMENTS))
CALL(clGetCommandQueueInfo, (cl_command_queue x, INFO), (x, INFO_ARGUMENTS))
CALL(clGetMemObjectInfo, (cl_mem x, INFO), (x, INFO_ARGUMENTS))
CALL_OR_IDLE(clGetProgramInfo, (cl_program x, INFO), (x, INFO_ARGUMENTS))
CALL_OR_IDLE(clGetProgramBuildInfo, (cl_program x, cl_device_id d, INFO), (x, d, INFO_ARGUMENTS))
CALL_OR_IDLE(clGetKernelInfo, (cl_kernel x, INFO), (x, INFO_ARGUMENTS))
CALL_OR_IDLE(clGetKernelWorkGroupInfo, (cl_kernel x, cl_device_id d, INFO), (x, d, INFO_ARGUMENTS))
CALL(clFinish, (cl_command_queue x), (x))
CALL_OR_IDLE(clBuildProgram,
             (cl_program x, cl_uint n, const cl_device_id *ids, const char *options,
              void(CL_CALLBACK *done)(cl_program, void *), void *user),
             (x, n, ids, options, done, user))
CALL_OR_IDLE(clSetKernelArg, (cl_kernel x, cl_uint i, size_t size, const void *value),
             (x, i, size, value))
CALL(clSetKernelArgSVMPointer, (cl_kernel x, cl_uint i, const void *value), (x, i, value))
COPY(clEnqueueReadBuffer, false,
     (cl_command_queue q, cl_mem x, cl_bool blocking, size_t at, size_t size, void *to, EVENTS),
     (q, x, blocking, at, size, to, EVENT_ARGUMENTS))
COPY(clEnqueueWriteBuffer, true,
     (cl_command_queue q, cl_mem x, cl_bool blocking, size_t at, size_t size, const void *from,
      EVENTS),
     (q, x, blocking, at, size, from, EVENT_ARGUMENTS))
CALL(clEnqueueSVMMemcpy,
     (cl_command_queue q, cl_bool blocking, void *to, const void *from, size_t size, EVENTS),
     (q, blocking, to, from, size, EVENT_ARGUMENTS))
CALL_OR_IDLE(clEnqueueNDRangeKernel,
             (cl_command_queue q, cl_kernel x, cl_uint n, const size_t *offset,
              const size_t *global, const size_t *local, EVENTS),
             (q, x, n, offset, global, local, EVENT_ARGUMENTS))

MAKE(cl_context, clCreateContext,
     (const cl_context_properties *p, cl_uint n, const cl_device_id *ids,
      void(CL_CALLBACK *told)(const char *, const void *, size_t, void *), void *user,
      cl_int *code),
     (p, n, ids, told, user, code))
MAKE(cl_command_queue, clCreateCommandQueue,
     (cl_context x, cl_device_id d, cl_command_queue_properties p, cl_int *code), (x, d, p, code))
MAKE_OR_IDLE(cl_mem, clCreateBuffer,
             (cl_context x, cl_mem_flags flags, size_t size, void *host, cl_int *code),
             (x, flags, size, host, code))
MAKE_OR_IDLE(void *, clEnqueueMapBuffer,
             (cl_command_queue q, cl_mem x, cl_bool blocking, cl_map_flags flags, size_t at,
              size_t size, EVENTS, cl_int *code),
             (q, x, blocking, flags, at, size, EVENT_ARGUMENTS, code))
MAKE_OR_IDLE(cl_program, clCreateProgramWithSource,
             (cl_context x, cl_uint n, const char **s, const size_t *sizes, cl_int *code),
             (x, n, s, sizes, code))
MAKE_OR_IDLE(cl_program, clCreateProgramWithBinary,
             (cl_context x, cl_uint n, const cl_device_id *ids, const size_t *sizes,
              const unsigned char **binaries, cl_int *status, cl_int *code),
             (x, n, ids, sizes, binaries, status, code))
MAKE_OR_IDLE(cl_kernel, clCreateKernel, (cl_program x, const char *name, cl_int *code),
             (x, name, code))

DROP(clReleaseContext, cl_context)
DROP(clReleaseCommandQueue, cl_command_queue)
DROP_OR_IDLE(clReleaseMemObject, cl_mem)
EXPORT cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue q, cl_mem x, void *at, EVENTS);
cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue q, cl_mem x, void *at, EVENTS) {
  REAL(clEnqueueUnmapMemObject)
  const cl_int code = fake_opencl.idle ? idle_clEnqueueUnmapMemObject(q, x, at, EVENT_ARGUMENTS)
                                       : real(q, x, at, EVENT_ARGUMENTS);
  fake_opencl.alive -= code == 0;
  return code;
}
DROP_OR_IDLE(clReleaseProgram, cl_program)
DROP_OR_IDLE(clReleaseKernel, cl_kernel)

/* ---- unified shared memory, command buffers: the genuine functions are found by platform ---- */

static clSetKernelArgMemPointerINTEL_fn real_set;
static clEnqueueMemcpyINTEL_fn real_copy;
static clGetMemAllocInfoINTEL_fn real_info;

static cl_int CL_API_CALL set_pointer(cl_kernel x, cl_uint i, const void *value) {
  return fails("clSetKernelArgMemPointerINTEL") ? fake_opencl.code : real_set(x, i, value);
}
static cl_int CL_API_CALL copy_pointer(cl_command_queue q, cl_bool blocking, void *to,
                                       const void *from, size_t size, EVENTS) {
  return fails("clEnqueueMemcpyINTEL") ? fake_opencl.code
                                       : real_copy(q, blocking, to, from, size, EVENT_ARGUMENTS);
}
static cl_int CL_API_CALL pointer_info(cl_context x, const void *p, INFO) {
  return fails("clGetMemAllocInfoINTEL") ? fake_opencl.code : real_info(x, p, INFO_ARGUMENTS);
}

static clCreateCommandBufferKHR_fn real_create;
static clCommandNDRangeKernelKHR_fn real_command;
static clFinalizeCommandBufferKHR_fn real_finalize;
static clEnqueueCommandBufferKHR_fn real_submit;
static clReleaseCommandBufferKHR_fn real_release;

static cl_command_buffer_khr CL_API_CALL
create_commands(cl_uint n, const cl_command_queue *queues,
                const cl_command_buffer_properties_khr *properties, cl_int *code) {
  if (fails("clCreateCommandBufferKHR")) return *code = fake_opencl.code, NULL;
  cl_command_buffer_khr made =
      fake_opencl.idle ? idle_create_commands(code) : real_create(n, queues, properties, code);
  fake_opencl.alive += made != NULL;
  return made;
}
static cl_int CL_API_CALL add_command(cl_command_buffer_khr x, cl_command_queue q,
                                      const cl_ndrange_kernel_command_properties_khr *properties,
                                      cl_kernel k, cl_uint dimensions, const size_t *offset,
                                      const size_t *global, const size_t *local, cl_uint n,
                                      const cl_sync_point_khr *points, cl_sync_point_khr *point,
                                      cl_mutable_command_khr *handle) {
  if (fails("clCommandNDRangeKernelKHR")) return fake_opencl.code;
  if (fake_opencl.idle) return idle_add_command(x, k, *global, *local);
  return real_command(x, q, properties, k, dimensions, offset, global, local, n, points, point,
                      handle);
}
static cl_int CL_API_CALL finalize_commands(cl_command_buffer_khr x) {
  return fails("clFinalizeCommandBufferKHR") ? fake_opencl.code
         : fake_opencl.idle                  ? CL_SUCCESS
                                             : real_finalize(x);
}
static cl_int CL_API_CALL submit_commands(cl_uint n, cl_command_queue *queues,
                                          cl_command_buffer_khr x, EVENTS) {
  if (fails("clEnqueueCommandBufferKHR")) return fake_opencl.code;
  return fake_opencl.idle ? idle_submit_commands(x) : real_submit(n, queues, x, EVENT_ARGUMENTS);
}
static cl_int CL_API_CALL release_commands(cl_command_buffer_khr x) {
  fake_opencl.alive--;
  return fake_opencl.idle ? idle_release_commands(x) : real_release(x);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id x,
                                                                  const char *name);
void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id x, const char *name) {
  static const clSetKernelArgMemPointerINTEL_fn fake_set = set_pointer;
  static const clEnqueueMemcpyINTEL_fn fake_copy = copy_pointer;
  static const clGetMemAllocInfoINTEL_fn fake_info = pointer_info;
  static const clCreateCommandBufferKHR_fn fake_create = create_commands;
  static const clCommandNDRangeKernelKHR_fn fake_command = add_command;
  static const clFinalizeCommandBufferKHR_fn fake_finalize = finalize_commands;
  static const clEnqueueCommandBufferKHR_fn fake_submit = submit_commands;
  static const clReleaseCommandBufferKHR_fn fake_release = release_commands;
  const struct {
    const char *name;
    void *real;
    const void *fake;
  } known[] = {{"clSetKernelArgMemPointerINTEL", &real_set, &fake_set},
               {"clEnqueueMemcpyINTEL", &real_copy, &fake_copy},
               {"clGetMemAllocInfoINTEL", &real_info, &fake_info},
               {"clCreateCommandBufferKHR", &real_create, &fake_create},
               {"clCommandNDRangeKernelKHR", &real_command, &fake_command},
               {"clFinalizeCommandBufferKHR", &real_finalize, &fake_finalize},
               {"clEnqueueCommandBufferKHR", &real_submit, &fake_submit},
               {"clReleaseCommandBufferKHR", &real_release, &fake_release}};
  REAL(clGetExtensionFunctionAddressForPlatform)
  if (fails("clGetExtensionFunctionAddressForPlatform")) return NULL;
  void *address = real(x, name);
  for (size_t i = 0; i < sizeof known / sizeof *known && address; i++)
    if (!strcmp(name, known[i].name)) {
      memcpy(known[i].real, &address, sizeof address);
      memcpy(&address, known[i].fake, sizeof address);
      break;
    }
  return address;
}
