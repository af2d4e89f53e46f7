/* tests/fakes/fake_level_zero_run.c - runs the test-only driver's SPIR-V on a CPU: Intel's OpenCL
   driver, else PoCL through llvm-spirv; or, idle, calls the test. */
#include "tests/fakes/fake_level_zero.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/backends/opencl_runner.h"

typedef void *(*svm_alloc)(void *context, uint64_t flags, size_t bytes, unsigned alignment);
typedef void (*svm_free)(void *context, void *memory);
typedef int (*set_pointer)(void *kernel, unsigned index, const void *pointer);

static struct {
  opencl_runner runner;
  svm_alloc alloc;
  svm_free free;
  set_pointer pointer;
  bool is_intel;
} cl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_platform(void) {
  cl.is_intel = runner_open(&cl.runner, "Intel(R) OpenCL", "");
  if (!cl.is_intel && !runner_open(&cl.runner, "Portable Computing Language", "")) return;
  *(void **)&cl.alloc = dlsym(cl.runner.library, "clSVMAlloc");
  *(void **)&cl.free = dlsym(cl.runner.library, "clSVMFree");
  *(void **)&cl.pointer = dlsym(cl.runner.library, "clSetKernelArgSVMPointer");
}

uint32_t fake_vendor(void) {
  if (fake_level_zero.idle) return 0x8086;
  pthread_once(&once, open_platform);
  return cl.is_intel ? 0x8086 : 0x10004; /* PoCL, which does not know Intel's extensions */
}

void *fake_memory_new(size_t bytes) {
  void *idle = NULL;
  if (fake_level_zero.idle) return posix_memalign(&idle, 64, bytes) ? NULL : memset(idle, 0, bytes);
  pthread_once(&once, open_platform);
  return cl.alloc ? cl.alloc(cl.runner.context, 1 /* read and write */, bytes, 64) : NULL;
}
void fake_memory_free(void *memory) {
  if (fake_level_zero.idle) free(memory);
  else cl.free(cl.runner.context, memory);
}

/* ---- programs ---- */

static char *file_of(const char *folder, const char *name, const void *bytes, size_t n, char *path,
                     size_t size) {
  snprintf(path, size, "%s/%s", folder, name);
  FILE *f = bytes ? fopen(path, "wb") : NULL;
  if (f) fwrite(bytes, 1, n, f), fclose(f);
  return path;
}

/* PoCL takes LLVM's bitcode. */
static void *through_bitcode(const void *spirv, size_t bytes, char *log, size_t size) {
  char folder[] = "/tmp/fake_level_zero_XXXXXX", from[64], to[64], line[200];
  static unsigned char bitcode[1 << 20];
  void *program = NULL;
  if (!mkdtemp(folder)) return NULL;
  file_of(folder, "k.spv", spirv, bytes, from, sizeof from);
  file_of(folder, "k.bc", NULL, 0, to, sizeof to);
  snprintf(line, sizeof line, "llvm-spirv-15 -r %s -o %s >/dev/null 2>&1", from, to);
  FILE *f = system(line) ? NULL : fopen(to, "rb");
  size_t n = f ? fread(bitcode, 1, sizeof bitcode, f) : 0;
  if (f) fclose(f);
  if (n) program = runner_program(&cl.runner, 0, bitcode, n, log, size);
  else snprintf(log, size, "llvm-spirv-15 refused the words");
  unlink(from);
  unlink(to);
  rmdir(folder);
  return program;
}

/* Takes the place of a program or a kernel while idle. */
static char nothing;

void *fake_program_new(const fake_source *from, char *log, size_t size) {
  if (fake_level_zero.idle) return &nothing;
  pthread_once(&once, open_platform);
  snprintf(log, size, "no OpenCL for CPUs here");
  if (!cl.alloc) return NULL;
  return cl.is_intel ? runner_program(&cl.runner, 1, from->spirv, from->bytes, log, size)
                     : through_bitcode(from->spirv, from->bytes, log, size);
}
const void *fake_program_binary(void *program, size_t *bytes) {
  (void)program;
  return *bytes = 0, NULL;
}
void fake_program_free(void *program) {
  if (program != &nothing) cl.runner.clReleaseProgram(program);
}

void *fake_kernel_new(void *program, const char *name) {
  int status = 0;
  return program == &nothing ? program : cl.runner.clCreateKernel(program, name, &status);
}
void fake_kernel_free(void *kernel) {
  if (kernel != &nothing) cl.runner.clReleaseKernel(kernel);
}

static bool idle_run(const fake_signature *s, const fake_argument *args, uint32_t groups,
                     uint32_t group_size) {
  fake_argument values[FAKE_PARAMETERS];
  void *params[FAKE_PARAMETERS];
  char text[sizeof s->name + 8];
  memcpy(values, args, sizeof values);
  for (int i = 0; i < FAKE_PARAMETERS; i++) params[i] = &values[i];
  snprintf(text, sizeof text, " %s(", s->name);
  if (fake_level_zero.launch) fake_level_zero.launch(NULL, text, groups, group_size, params);
  return true;
}

bool fake_kernel_run(void *kernel, const fake_signature *s, const fake_argument *args,
                     uint32_t groups, uint32_t group_size) {
  size_t local = group_size, global = local * groups;
  int status = 0;
  if (kernel == &nothing) return idle_run(s, args, groups, group_size);
  for (int i = 0; i < s->n_parameters && !status; i++)
    status = s->bytes[i]
                 ? cl.runner.clSetKernelArg(kernel, (unsigned)i, (size_t)s->bytes[i], args[i].bytes)
                 : cl.pointer(kernel, (unsigned)i, args[i].pointer);
  if (!status)
    status = cl.runner.clEnqueueNDRangeKernel(cl.runner.queue, kernel, 1, NULL, &global, &local, 0,
                                              NULL, NULL);
  return !status && !cl.runner.clFinish(cl.runner.queue);
}
