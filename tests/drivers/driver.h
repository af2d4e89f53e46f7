/* tests/drivers/driver.h - what the programs of this folder share: one kernel, built from text and
   run on the CPU device of an OpenCL platform.

   Each program stands alone: cc -o x x.c -ldl, ./x PLATFORM VERSION. PLATFORM is a word in the
   platform's name, VERSION in the version of a driver known to be wrong. It prints the right
   numbers and those computed, and exits with 0 if the workaround gives the right ones, 77 if there
   is no such platform. */
#ifndef CLB_TESTS_DRIVERS_DRIVER_H
#define CLB_TESTS_DRIVERS_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name, result and arguments of every function used; handles are void *, cl_int is int, cl_bitfield
   is uint64_t. */
#define DRIVER_FUNCTIONS(X)                                                                        \
  X(clGetPlatformIDs, int, (unsigned, void **, unsigned *))                                        \
  X(clGetPlatformInfo, int, (void *, unsigned, size_t, void *, size_t *))                          \
  X(clGetDeviceIDs, int, (void *, uint64_t, unsigned, void **, unsigned *))                        \
  X(clGetDeviceInfo, int, (void *, unsigned, size_t, void *, size_t *))                            \
  X(clCreateSubDevices, int, (void *, const intptr_t *, unsigned, void **, unsigned *))            \
  X(clReleaseDevice, int, (void *))                                                                \
  X(clCreateContext, void *, (const void *, unsigned, void *const *, void *, void *, int *))       \
  X(clReleaseContext, int, (void *))                                                               \
  X(clCreateCommandQueue, void *, (void *, void *, uint64_t, int *))                               \
  X(clReleaseCommandQueue, int, (void *))                                                          \
  X(clCreateProgramWithSource, void *, (void *, unsigned, const char **, const size_t *, int *))   \
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

enum { DRIVER_ABSENT = 77, DRIVER_ARGUMENTS = 8 };

typedef struct {
#define DRIVER_X(name, result, arguments) result(*name) arguments;
  DRIVER_FUNCTIONS(DRIVER_X)
#undef DRIVER_X
  void *device, *context, *queue;
  char version[300];
} driver;

/* A call that is not expected to fail. */
static inline void driver_check(int status, const char *call) {
  if (!status) return;
  fprintf(stderr, "%s: status %d\n", call, status);
  exit(2);
}

/* The first CPU of the first platform with that word in its name; prints both names. */
static inline void driver_open(driver *d, const char *platform_word) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NODELETE), *platform[16];
  unsigned n = 0, found = 0;
  char name[300] = "";
  memset(d, 0, sizeof *d);
  if (!library) exit(DRIVER_ABSENT);
#define DRIVER_X(name, result, arguments) *(void **)&d->name = dlsym(library, #name);
  DRIVER_FUNCTIONS(DRIVER_X)
#undef DRIVER_X
  if (d->clGetPlatformIDs(16, platform, &n)) n = 0;
  for (unsigned i = 0; i < n && i < 16 && !found; i++) {
    d->clGetPlatformInfo(platform[i], 0x0902 /* CL_PLATFORM_NAME */, sizeof name - 1, name, NULL);
    if (!strstr(name, platform_word) ||
        d->clGetDeviceIDs(platform[i], 2 /* CPU */, 1, &d->device, &found))
      found = 0;
  }
  if (!found) {
    printf("[  SKIPPED ] driver_of_%s\n", platform_word);
    exit(DRIVER_ABSENT);
  }
  driver_check(d->clGetDeviceInfo(d->device, 0x102D /* CL_DRIVER_VERSION */, sizeof d->version - 1,
                                  d->version, NULL),
               "clGetDeviceInfo");
  printf("%s, driver %s\n", name, d->version);
  int status = 0;
  d->context = d->clCreateContext(NULL, 1, &d->device, NULL, NULL, &status);
  driver_check(status, "clCreateContext");
  d->queue = d->clCreateCommandQueue(d->context, d->device, 0, &status);
  driver_check(status, "clCreateCommandQueue");
}

static inline void driver_close(driver *d) {
  d->clReleaseCommandQueue(d->queue);
  d->clReleaseContext(d->context);
}

typedef struct {
  void *data; /* read, and written back */
  size_t bytes;
} driver_buffer;

/* Builds the text and runs its kernel `name` once on these buffers. */
static inline void driver_run(driver *d, const char *text, const char *options, const char *name,
                              size_t groups, size_t group_size, const driver_buffer *buffer,
                              int n) {
  void *memory[DRIVER_ARGUMENTS] = {NULL};
  size_t global = groups * group_size;
  int status = 0;
  void *program = d->clCreateProgramWithSource(d->context, 1, &text, NULL, &status);
  driver_check(status, "clCreateProgramWithSource");
  if (d->clBuildProgram(program, 1, &d->device, options, NULL, NULL)) {
    char log[4000] = "";
    d->clGetProgramBuildInfo(program, d->device, 0x1183 /* CL_PROGRAM_BUILD_LOG */, sizeof log - 1,
                             log, NULL);
    fprintf(stderr, "%s\n", log);
    exit(2);
  }
  void *kernel = d->clCreateKernel(program, name, &status);
  driver_check(status, "clCreateKernel");
  for (int i = 0; i < n; i++) {
    memory[i] = d->clCreateBuffer(d->context, 1 | 32 /* read, write, copy */, buffer[i].bytes,
                                  buffer[i].data, &status);
    driver_check(status, "clCreateBuffer");
    driver_check(d->clSetKernelArg(kernel, (unsigned)i, sizeof(void *), &memory[i]),
                 "clSetKernelArg");
  }
  driver_check(
      d->clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &global, &group_size, 0, NULL, NULL),
      "clEnqueueNDRangeKernel");
  for (int i = 0; i < n; i++) {
    driver_check(d->clEnqueueReadBuffer(d->queue, memory[i], 1, 0, buffer[i].bytes, buffer[i].data,
                                        0, NULL, NULL),
                 "clEnqueueReadBuffer");
    d->clReleaseMemObject(memory[i]);
  }
  d->clFinish(d->queue);
  d->clReleaseKernel(kernel);
  d->clReleaseProgram(program);
}

/* The exit status. plain, hidden: numbers of wrong results of the plain program, and with the
   workaround; known: this driver is known to have the fault. */
static inline int driver_verdict(int plain, int hidden, int known) {
  if (known && !plain)
    printf("this driver is known to be wrong, and is right: what is said of it here is not so\n");
  else
    printf(plain ? "the driver is wrong; the way around it is %s\n" : "the driver is right\n",
           hidden ? "wrong, too" : "right");
  return hidden || (known && !plain);
}

#endif
