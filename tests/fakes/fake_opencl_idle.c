/* tests/fakes/fake_opencl_idle.c - the fake OpenCL loader's memory, programs, kernels and command
   buffers while it is idle: memory is the host's and starts as zeros, a binary is the text itself,
   a launch calls the test. Strict about handles, sizes and arguments. */
#include "tests/fakes/fake_opencl_idle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 64, MAX_GROUP = 1024 };
typedef enum { MEMORY, PROGRAM, KERNEL, COMMANDS } sort;

typedef struct {
  struct thing *kernel;
  size_t global, local;
} command;

typedef struct thing {
  struct thing *next;
  sort kind;
  size_t bytes;
  char *data;                 /* MEMORY; the text of PROGRAM and KERNEL; COMMANDS: command[] */
  cl_uint n;                  /* KERNEL: its arguments; COMMANDS: how many */
  size_t size[MAX_ARGUMENTS]; /* KERNEL, of each argument: 0 until it is set */
  bool pointer[MAX_ARGUMENTS];
  unsigned char value[MAX_ARGUMENTS][8];
} thing;

static thing *things;

#define mistake(...) fake_mistake(&fake_opencl, __VA_ARGS__)

static thing *make(sort kind, const void *data, size_t bytes, cl_int *code) {
  thing *t = calloc(1, sizeof *t);
  char *copy = calloc(bytes + 1, 1);
  if (!t || !copy) abort();
  if (data) memcpy(copy, data, bytes);
  *t = (thing){.next = things, .kind = kind, .bytes = bytes, .data = copy};
  if (code) *code = CL_SUCCESS;
  return things = t;
}

static thing *find(const void *handle, sort kind, const char *call) {
  for (thing *t = things; t; t = t->next)
    if (t == handle && t->kind == kind) return t;
  mistake(CL_INVALID_VALUE, "%s: no such handle", call);
  return NULL;
}

static cl_int release(const void *handle, sort kind, const char *call) {
  thing *gone = find(handle, kind, call), **at = &things;
  if (!gone) return CL_INVALID_VALUE;
  while (*at != gone) at = &(*at)->next;
  *at = gone->next;
  free(gone->data);
  free(gone);
  return CL_SUCCESS;
}

/* What every query of an object does. */
static cl_int answer(const void *from, size_t bytes, size_t size, void *value, size_t *needed) {
  if (needed) *needed = bytes;
  if (value && size < bytes)
    return mistake(CL_INVALID_VALUE, "%zu bytes for an answer of %zu", size, bytes);
  if (value) memcpy(value, from, bytes);
  return CL_SUCCESS;
}

/* ---- memory ---- */

cl_mem idle_clCreateBuffer(cl_context x, cl_mem_flags flags, size_t size, void *host,
                           cl_int *code) {
  (void)x, (void)flags;
  *code = CL_INVALID_BUFFER_SIZE;
  if (host || !size) return mistake(0, "clCreateBuffer: %zu bytes, or of the host", size), NULL;
  return size > (size_t)1 << 40 ? NULL : (cl_mem)make(MEMORY, NULL, size, code);
}
cl_int idle_clReleaseMemObject(cl_mem x) { return release(x, MEMORY, "clReleaseMemObject"); }

static cl_int copy(cl_mem x, size_t at, size_t size, void *to, const void *from) {
  const thing *t = find(x, MEMORY, "a copy");
  if (!t || !size || at > t->bytes || size > t->bytes - at)
    return mistake(CL_INVALID_VALUE, "a copy of %zu bytes leaves its buffer", size);
  memcpy(to ? to : t->data + at, to ? t->data + at : from, size);
  return CL_SUCCESS;
}
cl_int idle_clEnqueueReadBuffer(cl_command_queue q, cl_mem x, cl_bool blocking, size_t at,
                                size_t size, void *to, cl_uint n, const cl_event *events,
                                cl_event *event) {
  (void)q, (void)blocking, (void)n, (void)events, (void)event;
  return copy(x, at, size, to, NULL);
}
cl_int idle_clEnqueueWriteBuffer(cl_command_queue q, cl_mem x, cl_bool blocking, size_t at,
                                 size_t size, const void *from, cl_uint n, const cl_event *events,
                                 cl_event *event) {
  (void)q, (void)blocking, (void)n, (void)events, (void)event;
  return copy(x, at, size, NULL, from);
}

void *idle_clEnqueueMapBuffer(cl_command_queue q, cl_mem x, cl_bool blocking, cl_map_flags flags,
                              size_t at, size_t size, cl_uint n, const cl_event *events,
                              cl_event *event, cl_int *code) {
  const thing *t = find(x, MEMORY, "clEnqueueMapBuffer");
  (void)q, (void)flags, (void)n, (void)events, (void)event;
  *code = CL_INVALID_VALUE;
  if (!t || !blocking || at || size != t->bytes)
    return mistake(0, "clEnqueueMapBuffer: not all of a buffer, or not now"), NULL;
  *code = CL_SUCCESS;
  return t->data;
}
cl_int idle_clEnqueueUnmapMemObject(cl_command_queue q, cl_mem x, void *at, cl_uint n,
                                    const cl_event *events, cl_event *event) {
  const thing *t = find(x, MEMORY, "clEnqueueUnmapMemObject");
  (void)q, (void)n, (void)events, (void)event;
  return t && at == t->data ? CL_SUCCESS
                            : mistake(CL_INVALID_VALUE, "clEnqueueUnmapMemObject: not mapped");
}

/* ---- programs ---- */

cl_program idle_clCreateProgramWithSource(cl_context x, cl_uint n, const char **text,
                                          const size_t *sizes, cl_int *code) {
  (void)x;
  if (n != 1) mistake(0, "clCreateProgramWithSource: %u texts", n);
  return (cl_program)make(PROGRAM, text[0], sizes[0], code);
}
cl_program idle_clCreateProgramWithBinary(cl_context x, cl_uint n, const cl_device_id *ids,
                                          const size_t *sizes, const unsigned char **binaries,
                                          cl_int *status, cl_int *code) {
  (void)x, (void)ids;
  if (n != 1) mistake(0, "clCreateProgramWithBinary: %u binaries", n);
  if (status) *status = CL_SUCCESS;
  return (cl_program)make(PROGRAM, binaries[0], sizes[0], code);
}
cl_int idle_clReleaseProgram(cl_program x) { return release(x, PROGRAM, "clReleaseProgram"); }

cl_int idle_clBuildProgram(cl_program x, cl_uint n, const cl_device_id *ids, const char *options,
                           void(CL_CALLBACK *done)(cl_program, void *), void *user) {
  (void)n, (void)ids, (void)options, (void)done, (void)user;
  return find(x, PROGRAM, "clBuildProgram") ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

cl_int idle_clGetProgramInfo(cl_program x, cl_program_info what, size_t size, void *value,
                             size_t *needed) {
  static const cl_uint one = 1;
  const thing *t = find(x, PROGRAM, "clGetProgramInfo");
  if (!t) return CL_INVALID_PROGRAM;
  if (what == CL_PROGRAM_NUM_DEVICES) return answer(&one, sizeof one, size, value, needed);
  if (what == CL_PROGRAM_BINARY_SIZES)
    return answer(&t->bytes, sizeof t->bytes, size, value, needed);
  if (what != CL_PROGRAM_BINARIES)
    return mistake(CL_INVALID_VALUE, "clGetProgramInfo: 0x%x", (unsigned)what);
  memcpy(*(unsigned char **)value, t->data, t->bytes);
  return CL_SUCCESS;
}

cl_int idle_clGetProgramBuildInfo(cl_program x, cl_device_id d, cl_program_build_info what,
                                  size_t size, void *value, size_t *needed) {
  (void)d, (void)what;
  return find(x, PROGRAM, "clGetProgramBuildInfo") ? answer("made to fail", 13, size, value, needed)
                                                   : CL_INVALID_PROGRAM;
}

/* ---- kernels ---- */

/* Arguments as declared in the text, "name(int a, global float *b)". */
static bool read_arguments(thing *kernel, const char *name) {
  char want[96];
  snprintf(want, sizeof want, " %s(", name);
  const char *s = strstr(kernel->data, want);
  if (!s) return false;
  for (s += strlen(want); *s && *s != ')'; s += *s == ',') {
    const size_t n = strcspn(s, ",)");
    if (kernel->n == MAX_ARGUMENTS) return false;
    kernel->pointer[kernel->n++] = memchr(s, '*', n) != NULL;
    s += n;
  }
  return *s != 0;
}

cl_kernel idle_clCreateKernel(cl_program x, const char *name, cl_int *code) {
  const thing *program = find(x, PROGRAM, "clCreateKernel");
  *code = CL_INVALID_PROGRAM;
  if (!program) return NULL;
  thing *t = make(KERNEL, program->data, program->bytes, code);
  if (read_arguments(t, name)) return (cl_kernel)t;
  *code = CL_INVALID_KERNEL_NAME;
  release(t, KERNEL, "clCreateKernel");
  return NULL;
}
cl_int idle_clReleaseKernel(cl_kernel x) { return release(x, KERNEL, "clReleaseKernel"); }

cl_int idle_clGetKernelInfo(cl_kernel x, cl_kernel_info what, size_t size, void *value,
                            size_t *needed) {
  const thing *t = find(x, KERNEL, "clGetKernelInfo");
  if (!t || what != CL_KERNEL_NUM_ARGS)
    return mistake(CL_INVALID_VALUE, "clGetKernelInfo: 0x%x", (unsigned)what);
  return answer(&t->n, sizeof t->n, size, value, needed);
}

cl_int idle_clGetKernelWorkGroupInfo(cl_kernel x, cl_device_id d, cl_kernel_work_group_info what,
                                     size_t size, void *value, size_t *needed) {
  static const size_t max = MAX_GROUP;
  (void)d;
  if (!find(x, KERNEL, "clGetKernelWorkGroupInfo") || what != CL_KERNEL_WORK_GROUP_SIZE)
    return mistake(CL_INVALID_VALUE, "clGetKernelWorkGroupInfo: 0x%x", (unsigned)what);
  return answer(&max, sizeof max, size, value, needed);
}

cl_int idle_clSetKernelArg(cl_kernel x, cl_uint i, size_t size, const void *value) {
  thing *t = find(x, KERNEL, "clSetKernelArg");
  if (!t || i >= t->n || !value || !size || size > 8 || (t->pointer[i] && size != sizeof(cl_mem)))
    return mistake(CL_INVALID_ARG_INDEX, "clSetKernelArg: argument %u of %zu bytes", i, size);
  memcpy(t->value[i], value, t->size[i] = size);
  return CL_SUCCESS;
}

static cl_int run(thing *kernel, size_t global, size_t local) {
  void *params[MAX_ARGUMENTS], *memory[MAX_ARGUMENTS];
  if (!local || local > MAX_GROUP || !global || global % local)
    return mistake(CL_INVALID_WORK_GROUP_SIZE, "a launch of %zu in groups of %zu", global, local);
  for (cl_uint i = 0; i < kernel->n; i++) {
    params[i] = kernel->value[i];
    if (!kernel->size[i]) return mistake(CL_INVALID_KERNEL_ARGS, "a launch without argument %u", i);
    if (!kernel->pointer[i]) continue;
    memcpy(&memory[i], kernel->value[i], sizeof memory[i]);
    const thing *t = memory[i] ? find(memory[i], MEMORY, "a launch") : NULL;
    if (memory[i] && !t) return CL_INVALID_MEM_OBJECT;
    memory[i] = t ? t->data : NULL;
    params[i] = &memory[i];
  }
  if (fake_opencl.launch)
    fake_opencl.launch(NULL, kernel->data, (unsigned)(global / local), (unsigned)local, params);
  return CL_SUCCESS;
}

cl_int idle_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel x, cl_uint n, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint n_events,
                                   const cl_event *events, cl_event *event) {
  thing *t = find(x, KERNEL, "clEnqueueNDRangeKernel");
  (void)q, (void)n_events, (void)events, (void)event;
  if (!t || n != 1 || offset)
    return mistake(CL_INVALID_KERNEL, "clEnqueueNDRangeKernel: no such kernel, or its dimensions");
  return run(t, *global, *local);
}

/* ---- command buffers: each command has its kernel's arguments at the time it is submitted, as
   PoCL's have ---- */

cl_command_buffer_khr idle_create_commands(cl_int *code) {
  return (cl_command_buffer_khr)make(COMMANDS, NULL, 0, code);
}

cl_int idle_add_command(cl_command_buffer_khr commands, cl_kernel kernel, size_t global,
                        size_t local) {
  thing *t = find(commands, COMMANDS, "clCommandNDRangeKernelKHR");
  const command c = {find(kernel, KERNEL, "clCommandNDRangeKernelKHR"), global, local};
  if (!t || !c.kernel) return CL_INVALID_VALUE;
  char *more = realloc(t->data, (t->n + 1) * sizeof c);
  if (!more) abort();
  memcpy(more + t->n++ * sizeof c, &c, sizeof c);
  t->data = more;
  return CL_SUCCESS;
}

cl_int idle_submit_commands(cl_command_buffer_khr commands) {
  const thing *t = find(commands, COMMANDS, "clEnqueueCommandBufferKHR");
  cl_int code = t ? CL_SUCCESS : CL_INVALID_VALUE;
  for (cl_uint i = 0; t && i < t->n && !code; i++) {
    command c;
    memcpy(&c, t->data + i * sizeof c, sizeof c);
    code = find(c.kernel, KERNEL, "clEnqueueCommandBufferKHR") ? run(c.kernel, c.global, c.local)
                                                               : CL_INVALID_KERNEL;
  }
  return code;
}

cl_int idle_release_commands(cl_command_buffer_khr commands) {
  return release(commands, COMMANDS, "clReleaseCommandBufferKHR");
}
