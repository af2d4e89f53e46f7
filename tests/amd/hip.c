/* tests/amd/hip.c - libamdhip64.so.7 for one emulated GPU; launches are synchronous.

   AMD_EMULATOR_TARGET says which GPU (gfx90a, gfx942, gfx1100); AMD_EMULATOR_SEED how waves are
   interleaved; AMD_EMULATOR_BARRIERS=off makes s_barrier do nothing (a control); AMD_EMULATOR_KEEP
   names a folder to which every code object is written; AMD_EMULATOR_REPORT a file to which the
   instructions that each kernel ran are written; AMD_EMULATOR_DUMP a folder to which every launch
   is written, for compare.py. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/amd/dump.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  OK,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  LAUNCH_FAILURE = 719
};
enum { MAX_THREADS = 56, MULTIPROCESSORS = 63, LOCAL = 74, WARP = 87 }; /* attributes */

typedef struct {
  const amd_module *module;
  const amd_kernel *kernel;
} function;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char mistake[1024] = "no error";

static const char *target(void) {
  const char *t = getenv("AMD_EMULATOR_TARGET");
  return t && *t ? t : "gfx942";
}
static bool wide(void) { return strncmp(target(), "gfx1", 4) != 0; }

static int fails(int code) {
  fprintf(stderr, "amd emulator: %s\n", mistake);
  return code;
}

EXPORT int hipInit(unsigned flags), hipRuntimeGetVersion(int *version), hipGetDeviceCount(int *n),
    hipDeviceGetName(char *name, int size, int device),
    hipDeviceTotalMem(size_t *bytes, int device),
    hipDeviceGetAttribute(int *value, int which, int device), hipGetDevice(int *device),
    hipSetDevice(int device), hipGetDevicePropertiesR0600(char *properties, int device);
int hipInit(unsigned flags) { return flags ? INVALID_VALUE : OK; }
int hipRuntimeGetVersion(int *version) { return *version = 60342133, OK; }
int hipGetDeviceCount(int *n) { return *n = 1, OK; }
int hipDeviceGetName(char *name, int size, int device) {
  return snprintf(name, (size_t)size, "emulated AMD GPU"), device ? INVALID_DEVICE : OK;
}
int hipDeviceTotalMem(size_t *bytes, int device) {
  return *bytes = (size_t)16 << 30, device ? INVALID_DEVICE : OK;
}
int hipGetDevice(int *device) { return *device = 0, OK; }
int hipSetDevice(int device) { return device ? INVALID_DEVICE : OK; }
int hipDeviceGetAttribute(int *value, int which, int device) {
  *value = which == MAX_THREADS       ? 1024
           : which == WARP            ? (wide() ? 64 : 32)
           : which == MULTIPROCESSORS ? 4
           : which == LOCAL           ? 65536
                                      : 0;
  return device ? INVALID_DEVICE : OK;
}
int hipGetDevicePropertiesR0600(char *properties, int device) {
  snprintf(properties, 256, "emulated AMD GPU");
  snprintf(properties + 1160, 256, "%s%s", target(), wide() ? ":sramecc+:xnack-" : "");
  return device ? INVALID_DEVICE : OK;
}

EXPORT const char *hipGetErrorName(int code), *hipGetErrorString(int code);
const char *hipGetErrorName(int code) {
  return code == OK               ? "hipSuccess"
         : code == OUT_OF_MEMORY  ? "hipErrorOutOfMemory"
         : code == LAUNCH_FAILURE ? "hipErrorLaunchFailure"
                                  : "hipErrorUnknown";
}
const char *hipGetErrorString(int code) { return code ? mistake : "no error"; }

/* ---- memory and streams ---- */

EXPORT int hipMalloc(void **memory, size_t bytes), hipFree(void *memory),
    hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream),
    hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream),
    hipPointerGetAttribute(void *value, int which, const void *pointer),
    hipStreamCreateWithFlags(void **stream, unsigned flags), hipStreamDestroy(void *stream),
    hipStreamSynchronize(void *stream);
int hipMalloc(void **memory, size_t bytes) {
  pthread_mutex_lock(&lock);
  *memory = machine_alloc(bytes);
  pthread_mutex_unlock(&lock);
  return *memory ? OK : OUT_OF_MEMORY;
}
int hipFree(void *memory) {
  pthread_mutex_lock(&lock);
  bool freed = !memory || machine_free(memory);
  pthread_mutex_unlock(&lock);
  if (freed) return OK;
  snprintf(mistake, sizeof mistake, "hipFree: %p is no memory of this device", memory);
  return fails(INVALID_VALUE);
}

static int check_range(const char *name, const void *at, size_t bytes) {
  pthread_mutex_lock(&lock);
  const machine_block *b = machine_find((uint64_t)(uintptr_t)at);
  bool good = b && bytes <= b->bytes - (size_t)((const char *)at - b->at);
  if (!good)
    snprintf(mistake, sizeof mistake, "%s: %zu bytes at %p are not within memory of this device",
             name, bytes, at);
  pthread_mutex_unlock(&lock);
  return good ? OK : fails(INVALID_VALUE);
}
int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  if (!bytes) return OK;
  int code = check_range("hipMemcpyHtoDAsync", to, bytes);
  if (!code) memcpy(to, from, bytes);
  return code;
}
int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream) {
  (void)stream;
  if (!bytes) return OK;
  int code = check_range("hipMemcpyDtoHAsync", from, bytes);
  if (!code) memcpy(to, from, bytes);
  return code;
}
int hipPointerGetAttribute(void *value, int which, const void *pointer) {
  (void)which;
  pthread_mutex_lock(&lock);
  bool known = machine_find((uint64_t)(uintptr_t)pointer) != NULL;
  pthread_mutex_unlock(&lock);
  if (known) *(unsigned *)value = 2;
  return known ? OK : INVALID_VALUE;
}
int hipStreamCreateWithFlags(void **stream, unsigned flags) {
  return *stream = flags ? NULL : malloc(1), *stream ? OK : INVALID_VALUE;
}
int hipStreamDestroy(void *stream) { return free(stream), OK; }
int hipStreamSynchronize(void *stream) { return (void)stream, OK; }

/* ---- kernels ---- */

EXPORT int hipModuleLoadData(void **module, const void *binary), hipModuleUnload(void *module),
    hipModuleGetFunction(void **f, void *module, const char *name),
    hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned local, void *stream, void **params, void **extra);

static int keep(const void *binary) {
  static int n;
  const char *folder = getenv("AMD_EMULATOR_KEEP");
  if (folder) amd_write_code(folder, target(), n, binary);
  if (amd_dump_folder()) amd_write_code(amd_dump_folder(), target(), n, binary);
  return n++;
}

int hipModuleLoadData(void **module, const void *binary) {
  pthread_mutex_lock(&lock);
  int number = keep(binary);
  amd_module *m = amd_load(binary, mistake, sizeof mistake);
  if (m) m->number = number;
  if (m && strcmp(m->target, target())) {
    snprintf(mistake, sizeof mistake, "the code object is for %s, the GPU is a %s", m->target,
             target());
    amd_unload(m);
    m = NULL;
  }
  pthread_mutex_unlock(&lock);
  *module = m;
  return m ? OK : fails(INVALID_IMAGE);
}

typedef struct held {
  struct held *next;
  function f;
} held;
static held *functions;

int hipModuleGetFunction(void **f, void *module, const char *name) {
  const amd_module *m = module;
  *f = NULL;
  for (int k = 0; k < m->n_kernels; k++)
    if (!strcmp(m->kernels[k].name, name)) {
      held *h = calloc(1, sizeof *h);
      if (!h) return OUT_OF_MEMORY;
      h->f = (function){m, &m->kernels[k]};
      pthread_mutex_lock(&lock);
      h->next = functions;
      functions = h;
      pthread_mutex_unlock(&lock);
      *f = &h->f;
      return OK;
    }
  snprintf(mistake, sizeof mistake, "hipModuleGetFunction: the code object has no kernel %s", name);
  return fails(NOT_FOUND);
}

int hipModuleUnload(void *module) {
  pthread_mutex_lock(&lock);
  for (held **h = &functions; *h;) {
    held *one = *h;
    if (one->f.module != module) h = &one->next;
    else {
      *h = one->next;
      free(one);
    }
  }
  amd_unload(module);
  pthread_mutex_unlock(&lock);
  return OK;
}

static void report(const function *f, unsigned groups, unsigned threads, uint64_t ran) {
  const char *path = getenv("AMD_EMULATOR_REPORT");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s %s groups %u threads %u instructions %llu\n", f->module->target,
          f->kernel->name, groups, threads, (unsigned long long)ran);
  fclose(file);
}

int hipModuleLaunchKernel(void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned local, void *stream, void **params,
                          void **extra) {
  const function *f = handle;
  (void)stream;
  if (gy != 1 || gz != 1 || by != 1 || bz != 1 || !gx || !bx || extra) return INVALID_VALUE;
  pthread_mutex_lock(&lock);
  amd_plain_run = amd_dump_folder() != NULL;
  uint64_t before = amd_instructions_run();
  amd_dump *dump = amd_dump_before(f->module, f->kernel, gx, bx, local, params);
  bool ran = amd_run_kernel(f->module, f->kernel, gx, bx, local, params, mistake, sizeof mistake);
  amd_dump_after(dump);
  report(f, gx, bx, amd_instructions_run() - before);
  pthread_mutex_unlock(&lock);
  return ran ? OK : fails(LAUNCH_FAILURE);
}
