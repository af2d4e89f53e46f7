/* tools/ablation/naive_cuda.c - naive kernels on NVIDIA's GPUs: a thread for each item, compiled by
   NVRTC, in the device's primary context, which is the library's, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ablation/naive.h"
#include "tools/cli/tool.h"

/* The driver's and the compiler's functions; all but the last return 0 for success. */
#define DRIVER(X)                                                                                  \
  X(device, "cuDeviceGet", (int *device, int ordinal))                                             \
  X(attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))                    \
  X(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                              \
  X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                                         \
  X(set_current, "cuCtxSetCurrent", (void *context))                                               \
  X(synchronize, "cuCtxSynchronize", (void))                                                       \
  X(load, "cuModuleLoadData", (void **module, const void *binary))                                 \
  X(unload, "cuModuleUnload", (void *module))                                                      \
  X(function, "cuModuleGetFunction", (void **function, void *module, const char *name))            \
  X(launch, "cuLaunchKernel",                                                                      \
    (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
     void *stream, void **arguments, void **extra))
#define COMPILER(X)                                                                                \
  X(create, "nvrtcCreateProgram",                                                                  \
    (void **program, const char *text, const char *name, int n, const char *const *headers,        \
     const char *const *names))                                                                    \
  X(compile, "nvrtcCompileProgram", (void *program, int n, const char *const *options))            \
  X(binary_size, "nvrtcGetCUBINSize", (void *program, size_t *size))                               \
  X(binary, "nvrtcGetCUBIN", (void *program, char *binary))                                        \
  X(destroy, "nvrtcDestroyProgram", (void **program))
#define MEMBER(member, name, parameters) int(*member) parameters;

typedef struct {
  void *driver, *nvrtc, *context;
  int device;
  char target[40]; /* an option of NVRTC */
  struct {
    DRIVER(MEMBER)
  } cu;
  struct {
    COMPILER(MEMBER)
  } rtc;
} gpu;

enum { MAJOR = 75, MINOR = 76, GROUP = 256 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_... */

static void close_gpu(void *device) {
  gpu *g = device;
  if (g->context) g->cu.release(g->device);
  if (g->nvrtc) dlclose(g->nvrtc);
  if (g->driver) dlclose(g->driver);
  free(g);
}

/* The library has opened NVRTC already, so that its name is enough wherever it lies. */
static void *open_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                      "libnvrtc.so"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static bool find_functions(gpu *g) {
  bool all =
      (g->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) && (g->nvrtc = open_nvrtc());
#define FIND(of, library, member, name)                                                            \
  all = all && (*(void **)&g->of.member = dlsym(g->library, name)) != NULL;
#define FIND_CU(member, name, parameters) FIND(cu, driver, member, name)
#define FIND_RTC(member, name, parameters) FIND(rtc, nvrtc, member, name)
  DRIVER(FIND_CU)
  COMPILER(FIND_RTC)
  return all;
}

static void *open_gpu(const clb_device_info *info, char message[NAIVE_MESSAGE]) {
  gpu *g = allocate(1, sizeof *g);
  const char *ordinal = strchr(info->name, ':');
  int major = 0, minor = 0;
  if (find_functions(g) && !g->cu.device(&g->device, ordinal ? atoi(ordinal + 1) : 0) &&
      !g->cu.attribute(&major, MAJOR, g->device) && !g->cu.attribute(&minor, MINOR, g->device) &&
      !g->cu.retain(&g->context, g->device)) {
    snprintf(g->target, sizeof g->target, "--gpu-architecture=sm_%d%d", major, minor);
    return g;
  }
  snprintf(message, NAIVE_MESSAGE, "%s: libcuda.so.1 or NVRTC lacks what naive kernels need",
           info->name);
  close_gpu(g);
  return NULL;
}

/* ---- compiling ---- */

/* NULL: it does not compile. */
static char *compile(gpu *g, const char *text) {
  const char *options[] = {g->target};
  void *program = NULL;
  char *binary = NULL;
  size_t n = 0;
  if (g->rtc.create(&program, text, "naive.cu", 0, NULL, NULL)) return NULL;
  if (!g->rtc.compile(program, 1, options) && !g->rtc.binary_size(program, &n) && n) {
    binary = allocate(n, 1);
    if (g->rtc.binary(program, binary)) free(binary), binary = NULL;
  }
  g->rtc.destroy(&program);
  return binary;
}

typedef struct {
  void *module, *function;
} kernel;

static void *load(void *device, const char *name, const char *body, char message[NAIVE_MESSAGE]) {
  static const char format[] =
      "%s\n#define LANES p.channels\n#define ADD(a, v) atomicAdd(&(a), v)\n/* %s */\nextern \"C\" "
      "__global__ void run(naive_arguments p) {\n"
      "  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
      "  if (i < p.n) %s\n}\n",
                    arguments[] = NAIVE_EXPANDED(NAIVE_ARGUMENTS);
  gpu *g = device;
  kernel *k = allocate(1, sizeof *k);
  size_t size = sizeof format + sizeof arguments + strlen(name) + strlen(body);
  char *text = allocate(size, 1);
  snprintf(text, size, format, arguments, name, body);
  char *binary = compile(g, text);
  bool good = binary && !g->cu.set_current(g->context) && !g->cu.load(&k->module, binary) &&
              !g->cu.function(&k->function, k->module, "run");
  free(binary);
  free(text);
  if (good) return k;
  snprintf(message, NAIVE_MESSAGE, "the naive kernel %s: %s", name,
           binary ? "the driver does not load it" : "NVRTC does not compile it");
  free(k);
  return NULL;
}

static void unload(void *device, void *loaded) {
  gpu *g = device;
  kernel *k = loaded;
  g->cu.unload(k->module);
  free(k);
}

static bool run(void *device, void *loaded, const naive_arguments *p) {
  gpu *g = device;
  kernel *k = loaded;
  naive_arguments copy = *p;
  void *arguments[] = {&copy};
  unsigned groups = (unsigned)((p->n + GROUP - 1) / GROUP);
  return !groups ||
         (!g->cu.set_current(g->context) &&
          !g->cu.launch(k->function, groups, 1, 1, GROUP, 1, 1, 0, NULL, arguments, NULL));
}

static bool wait_for(void *device) {
  gpu *g = device;
  return !g->cu.set_current(g->context) && !g->cu.synchronize();
}

const naive_backend naive_cuda = {false, open_gpu, load, run, wait_for, unload, close_gpu};
