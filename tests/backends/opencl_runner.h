/* tests/backends/opencl_runner.h - runs one kernel of a SPIR-V or LLVM module on an OpenCL
   platform, through the loader opened at run time. */
#ifndef CLB_TESTS_BACKENDS_OPENCL_RUNNER_H
#define CLB_TESTS_BACKENDS_OPENCL_RUNNER_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name, result and arguments of every function used; handles are void *, cl_int is int, cl_bitfield
   is uint64_t. */
#define RUNNER_FUNCTIONS(X)                                                                        \
  X(clGetPlatformIDs, int, (unsigned, void **, unsigned *))                                        \
  X(clGetPlatformInfo, int, (void *, unsigned, size_t, void *, size_t *))                          \
  X(clGetDeviceIDs, int, (void *, uint64_t, unsigned, void **, unsigned *))                        \
  X(clCreateContext, void *, (const void *, unsigned, void *const *, void *, void *, int *))       \
  X(clReleaseContext, int, (void *))                                                               \
  X(clCreateCommandQueueWithProperties, void *, (void *, void *, const void *, int *))             \
  X(clReleaseCommandQueue, int, (void *))                                                          \
  X(clCreateProgramWithIL, void *, (void *, const void *, size_t, int *))                          \
  X(clCreateProgramWithBinary, void *,                                                             \
    (void *, unsigned, void *const *, const size_t *, const unsigned char *const *, int *, int *)) \
  X(clBuildProgram, int, (void *, unsigned, void *const *, const char *, void *, void *))          \
  X(clGetProgramBuildInfo, int, (void *, void *, unsigned, size_t, void *, size_t *))              \
  X(clReleaseProgram, int, (void *))                                                               \
  X(clCreateKernel, void *, (void *, const char *, int *))                                         \
  X(clReleaseKernel, int, (void *))                                                                \
  X(clSetKernelArg, int, (void *, unsigned, size_t, const void *))                                 \
  X(clCreateBuffer, void *, (void *, uint64_t, size_t, void *, int *))                             \
  X(clReleaseMemObject, int, (void *))                                                             \
  X(clEnqueueNDRangeKernel, int,                                                                   \
    (void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned,           \
     const void *, void *))                                                                        \
  X(clEnqueueReadBuffer, int,                                                                      \
    (void *, void *, unsigned, size_t, size_t, void *, unsigned, const void *, void *))            \
  X(clFinish, int, (void *))

typedef struct {
#define RUNNER_X(name, result, arguments) result(*name) arguments;
  RUNNER_FUNCTIONS(RUNNER_X)
#undef RUNNER_X
  void *library, *device, *context, *queue;
  const char *options; /* of the build */
} opencl_runner;

typedef struct {
  void *data;
  size_t bytes;
  int is_buffer; /* read and written; else a scalar */
} runner_argument;

enum { RUNNER_MAX_ARGUMENTS = 32 };

static inline void runner_close(opencl_runner *r) {
  if (r->queue) r->clReleaseCommandQueue(r->queue);
  if (r->context) r->clReleaseContext(r->context);
  if (r->library) dlclose(r->library);
  memset(r, 0, sizeof *r);
}

/* The first CPU of the platform with that name; 0: none. */
static inline int runner_open(opencl_runner *r, const char *platform_name, const char *options) {
  void *platform[16];
  unsigned n = 0, found = 0;
  memset(r, 0, sizeof *r);
  r->options = options;
  if (!(r->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NODELETE))) return 0;
#define RUNNER_X(name, result, arguments) *(void **)&r->name = dlsym(r->library, #name);
  RUNNER_FUNCTIONS(RUNNER_X)
#undef RUNNER_X
  if (r->clGetPlatformIDs(16, platform, &n) == 0)
    for (unsigned i = 0; i < n && !found; i++) {
      char name[200] = "";
      r->clGetPlatformInfo(platform[i], 0x0902 /* CL_PLATFORM_NAME */, sizeof name - 1, name, NULL);
      if (!strcmp(name, platform_name) &&
          r->clGetDeviceIDs(platform[i], 2 /* CPU */, 1, &r->device, &found) != 0)
        found = 0;
    }
  int status = -1;
  if (found) r->context = r->clCreateContext(NULL, 1, &r->device, NULL, NULL, &status);
  if (r->context)
    r->queue = r->clCreateCommandQueueWithProperties(r->context, r->device, NULL, &status);
  if (r->queue) return 1;
  runner_close(r);
  return 0;
}

static inline void *runner_program(opencl_runner *r, int is_il, const void *words, size_t bytes,
                                   char *log, size_t log_size) {
  int status = 0, loaded = 0;
  const unsigned char *one = words;
  void *program = is_il ? r->clCreateProgramWithIL(r->context, words, bytes, &status)
                        : r->clCreateProgramWithBinary(r->context, 1, &r->device, &bytes, &one,
                                                       &loaded, &status);
  snprintf(log, log_size, "creating the program: status %d", status);
  if (!program) return NULL;
  status = r->clBuildProgram(program, 1, &r->device, is_il ? r->options : NULL, NULL, NULL);
  if (status == 0) return program;
  int used = snprintf(log, log_size, "building: status %d: ", status);
  r->clGetProgramBuildInfo(program, r->device, 0x1183 /* CL_PROGRAM_BUILD_LOG */,
                           log_size - (size_t)used - 1, log + used, NULL);
  r->clReleaseProgram(program);
  return NULL;
}

static inline int runner_launch(opencl_runner *r, void *kernel, size_t groups, size_t group_size,
                                const runner_argument *arg, int n) {
  void *memory[RUNNER_MAX_ARGUMENTS] = {NULL};
  size_t global = groups * group_size;
  int status = n > RUNNER_MAX_ARGUMENTS ? -1 : 0;
  for (int i = 0; i < n && !status; i++) {
    if (arg[i].is_buffer)
      memory[i] = r->clCreateBuffer(r->context, 1 | 32 /* read, write, copy */, arg[i].bytes,
                                    arg[i].data, &status);
    if (!status)
      status =
          r->clSetKernelArg(kernel, (unsigned)i, arg[i].is_buffer ? sizeof(void *) : arg[i].bytes,
                            arg[i].is_buffer ? (void *)&memory[i] : arg[i].data);
  }
  if (!status)
    status =
        r->clEnqueueNDRangeKernel(r->queue, kernel, 1, NULL, &global, &group_size, 0, NULL, NULL);
  for (int i = 0; i < n && !status; i++)
    if (memory[i])
      status = r->clEnqueueReadBuffer(r->queue, memory[i], 1, 0, arg[i].bytes, arg[i].data, 0, NULL,
                                      NULL);
  r->clFinish(r->queue);
  for (int i = 0; i < n && i < RUNNER_MAX_ARGUMENTS; i++)
    if (memory[i]) r->clReleaseMemObject(memory[i]);
  return status;
}

/* Builds the module, runs its kernel on the arguments and brings the buffers back. 0: failed, `log`
   says why. */
static inline int runner_run(opencl_runner *r, int is_il, const void *words, size_t bytes,
                             const char *name, size_t groups, size_t group_size,
                             const runner_argument *arg, int n, char *log, size_t log_size) {
  int status = -1;
  void *program = runner_program(r, is_il, words, bytes, log, log_size);
  if (!program) return 0;
  void *kernel = r->clCreateKernel(program, name, &status);
  if (kernel) status = runner_launch(r, kernel, groups, group_size, arg, n);
  if (status) snprintf(log, log_size, "running %s: status %d", name, status);
  if (kernel) r->clReleaseKernel(kernel);
  r->clReleaseProgram(program);
  return status == 0;
}

#endif
