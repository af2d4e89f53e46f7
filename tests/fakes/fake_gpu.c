/* tests/fakes/fake_gpu.c - libcuda, libnvrtc, libamdhip64 (with hiprtc) and libamd_comgr for tests:
   memory is the host's, machine code is the text itself, a launch calls the test. Strict about
   arguments, contexts and lifetimes; a test says which call fails. Built once per library name;
   once a program has opened it, the loader finds it under that name. */
#include "tests/fakes/fake_driver.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  OK,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  ALREADY_ENABLED = 704
};
enum { COMPILATION = 6 };
enum { DECLARED_LOCAL = 49152, MAX_LOCAL = 232448 };

EXPORT fake_driver *fake_gpu; /* the test's */
EXPORT void fake_gpu_use(fake_driver *state);
void fake_gpu_use(fake_driver *state) { fake_gpu = state; }

static int fails(const char *name) { return fake_fails(fake_gpu, name) ? fake_gpu->code : OK; }

#define mistake(...) fake_mistake(fake_gpu, __VA_ARGS__)

/* ---- live objects ---- */

typedef enum {
  CONTEXT,
  STREAM,
  MEMORY,
  HOST,
  MODULE,
  FUNCTION,
  PROGRAM,
  GRAPH,
  RUNNABLE,
  OPENED
} sort;

typedef struct thing {
  struct thing *next;
  sort kind;
  int device;
  size_t bytes;
  char *data;                /* MEMORY, HOST, the text of MODULE and PROGRAM */
  struct thing *parent, *of; /* OPENED: the MEMORY, as which it is seen */
} thing;

static thing *things;

static int make(sort kind, int device, size_t bytes, const void *data, thing **made) {
  thing *t = calloc(1, sizeof *t);
  char *copy = calloc(bytes + 1, 1);
  if (!t || !copy) {
    free(t);
    free(copy);
    return OUT_OF_MEMORY;
  }
  if (data) memcpy(copy, data, bytes);
  *t = (thing){.next = things, .kind = kind, .device = device, .bytes = bytes, .data = copy};
  things = *made = t;
  fake_gpu->alive++;
  return OK;
}

static thing *find(const void *handle, sort kind) {
  for (thing *t = things; t; t = t->next)
    if (t == handle && t->kind == kind) return t;
  return NULL;
}

static thing *find_memory(const void *pointer) {
  for (thing *t = things; t; t = t->next)
    if (t->kind == MEMORY && (const char *)pointer >= t->data &&
        (const char *)pointer < t->data + t->bytes)
      return t;
  return NULL;
}

static int destroy(thing *gone, const char *name) {
  if (!gone) return mistake(INVALID_HANDLE, "%s: no such handle", name);
  for (thing **t = &things; *t;) {
    thing *now = *t;
    if (now != gone && now->parent != gone) {
      t = &now->next;
      continue;
    }
    *t = now->next;
    fake_gpu->alive--;
    free(now->data);
    free(now);
  }
  return OK;
}

/* ---- what a stream captures instead of running: kernels with the values of their parameters ----
 */

enum { CAPTURE_UNSUPPORTED = 900, MAX_PARAMETERS = 64 };
typedef struct {
  thing *function;
  unsigned groups, threads, local;
  unsigned char values[MAX_PARAMETERS][8];
} node;

static thing *capturing; /* the GRAPH being made; its parent is the stream */

/* ---- the drivers ---- */

/* The calling thread's current device; -1: CUDA without a context. */
static int current(const char *name) {
  if (name[0] == 'h') return fake_gpu->device;
  thing *context = find(fake_gpu->context, CONTEXT);
  return context ? context->device : -1;
}

#define BEGIN(name)                                                                                \
  int code = fails(name);                                                                          \
  if (code) return code;
#define BEGIN_IN_CONTEXT(name)                                                                     \
  int device = current(name);                                                                      \
  if (device < 0) return mistake(INVALID_CONTEXT, "%s: no current context", name);                 \
  BEGIN(name)

static int count(const char *name, int *n) {
  BEGIN(name)
  *n = fake_gpu->devices;
  return *n ? OK : NO_DEVICE;
}

static int attribute(const char *name, int *value, int which, int device) {
  /* threads, warp, units, local memory (97: if asked for); CUDA's compute capability; pageable
     memory: no */
  static const int cuda[][2] = {{1, 1024},       {10, 32}, {16, 4}, {8, DECLARED_LOCAL},
                                {97, MAX_LOCAL}, {75, 9},  {76, 0}, {88, 0}},
                   hip[][2] = {{56, 1024}, {87, 64}, {63, 4}, {74, 65536}, {65, 0}};
  BEGIN(name)
  if (device < 0 || device >= fake_gpu->devices)
    return mistake(INVALID_DEVICE, "%s: device %d", name, device);
  for (size_t i = 0; i < sizeof cuda / sizeof *cuda && name[0] == 'c'; i++)
    if (cuda[i][0] == which) return *value = cuda[i][1], OK;
  for (size_t i = 0; i < sizeof hip / sizeof *hip && name[0] == 'h'; i++)
    if (hip[i][0] == which) return *value = hip[i][1], OK;
  return mistake(INVALID_VALUE, "%s: attribute %d", name, which);
}

static int device_name(const char *name, char *text, int size, int device) {
  BEGIN(name)
  snprintf(text, (size_t)size, "Fake GPU %d", device);
  return OK;
}

static size_t all_bytes(void) { return fake_gpu->memory ? fake_gpu->memory : (size_t)1 << 30; }

static size_t free_bytes(int device) {
  size_t used = 0;
  for (const thing *t = things; t; t = t->next)
    if (t->kind == MEMORY && t->device == device) used += t->bytes;
  return used < all_bytes() ? all_bytes() - used : 0;
}

static int memory_size(const char *name, size_t *bytes, int device) {
  BEGIN(name)
  *bytes = all_bytes();
  return device < fake_gpu->devices ? OK : INVALID_DEVICE;
}

static int memory_info(const char *name, size_t *left, size_t *all) {
  BEGIN_IN_CONTEXT(name)
  *left = free_bytes(device);
  *all = all_bytes();
  return OK;
}

static int number(const char *name, int *version, int value) {
  BEGIN(name)
  *version = value;
  return OK;
}

static int alloc(const char *name, void **memory, size_t bytes) {
  thing *t;
  BEGIN_IN_CONTEXT(name)
  if (!bytes) return mistake(INVALID_VALUE, "%s: no bytes", name);
  if (bytes > free_bytes(device)) return OUT_OF_MEMORY;
  code = make(MEMORY, device, bytes, NULL, &t);
  if (!code) *memory = t->data;
  return code;
}

/* Page-locked memory of the host. */
static int alloc_host(const char *name, void **memory, size_t bytes, unsigned flags) {
  thing *t;
  BEGIN_IN_CONTEXT(name)
  if (!bytes || flags) return mistake(INVALID_VALUE, "%s: %zu bytes, %u", name, bytes, flags);
  code = make(HOST, device, bytes, NULL, &t);
  if (!code) *memory = t->data;
  return code;
}

static thing *find_host(const void *memory) {
  for (thing *t = things; t; t = t->next)
    if (t->kind == HOST && t->data == memory) return t;
  return NULL;
}

/* Release functions release even when told to fail, so that `alive` counts only what was forgotten.
 */
static int release(const char *name, thing *gone) {
  int code = fails(name), done = destroy(gone, name);
  return code ? code : done;
}

static thing *find_opened(const thing *memory, int device) {
  for (thing *t = things; t; t = t->next)
    if (t->kind == OPENED && t->of == memory && (device < 0 || t->device == device)) return t;
  return NULL;
}

static bool reaches(int device, const thing *memory) {
  return memory->device == device || fake_gpu->reached[device] >> memory->device & 1 ||
         find_opened(memory, device);
}

static int copy(const char *name, void *to, const void *from, const void *memory, size_t bytes,
                const void *stream) {
  BEGIN_IN_CONTEXT(name)
  const thing *t = find_memory(memory), *queue = find(stream, STREAM);
  if (stream && !queue) return mistake(INVALID_HANDLE, "%s: no such stream", name);
  if (queue && queue->device != device)
    return mistake(INVALID_CONTEXT, "%s: another device's stream", name);
  if (!t || (size_t)((const char *)memory - t->data) + bytes > t->bytes)
    return mistake(INVALID_VALUE, "%s: %zu bytes leave the memory", name, bytes);
  if (!reaches(device, t)) return mistake(INVALID_CONTEXT, "%s: another device's memory", name);
  fake_gpu->pinned += find_host(memory == to ? from : to) != NULL;
  memmove(to, from, bytes);
  return OK;
}

/* ---- memory of other processes, for which other devices stand ---- */

typedef struct {
  char bytes[64];
} ipc_handle;

static int ipc_get(const char *name, ipc_handle *handle, const void *memory) {
  BEGIN_IN_CONTEXT(name)
  const thing *t = find_memory(memory);
  if (!t || t->data != memory) return mistake(INVALID_VALUE, "%s: no such memory", name);
  memset(handle, 7, sizeof *handle);
  memcpy(handle, &t, sizeof t);
  return OK;
}

static int ipc_open(const char *name, void **memory, const ipc_handle *handle, unsigned flags) {
  thing *of, *t;
  BEGIN_IN_CONTEXT(name)
  memcpy(&of, handle, sizeof of);
  if (flags != 1) return mistake(INVALID_VALUE, "%s: flags %u", name, flags);
  if (!find(of, MEMORY) || of->device == device || find_opened(of, device)) return INVALID_CONTEXT;
  code = make(OPENED, device, 0, NULL, &t);
  if (code) return code;
  t->of = of;
  *memory = of->data;
  return OK;
}

static int ipc_close(const char *name, const void *memory) {
  const thing *of = find_memory(memory);
  return release(name, of ? find_opened(of, -1) : NULL);
}

static int release_memory(const char *name, const void *memory) {
  thing *t = find_memory(memory);
  if (t && find_opened(t, -1)) mistake(INVALID_HANDLE, "%s: others have it open", name);
  return release(name, t);
}

static int copy_on_device(const char *name, void *to, const void *from, size_t bytes,
                          const void *stream) {
  const thing *t = find_memory(from);
  const int here = current(name);
  if (!t || (size_t)((const char *)from - t->data) + bytes > t->bytes)
    return mistake(INVALID_VALUE, "%s: %zu bytes leave the memory", name, bytes);
  if (!reaches(here, t)) return mistake(INVALID_CONTEXT, "%s: memory that is not open here", name);
  int code = copy(name, to, from, to, bytes, stream);
  if (!code && fake_gpu->garbles && t->device != here) memset(to, 0, bytes);
  return code;
}

/* ---- memory of other devices of the process ---- */

static int peer_can(const char *name, int *can, int device, int owner) {
  BEGIN(name)
  *can = device != owner && !fake_gpu->alone;
  return OK;
}

static int peer_enable(const char *name, int owner, unsigned flags) {
  BEGIN_IN_CONTEXT(name)
  if (flags || owner < 0 || owner == device || fake_gpu->alone)
    return mistake(INVALID_VALUE, "%s: device %d, flags %u", name, owner, flags);
  if (fake_gpu->reached[device] >> owner & 1) return ALREADY_ENABLED;
  fake_gpu->reached[device] |= 1U << owner;
  return OK;
}

static int stream_create(const char *name, void **stream) {
  thing *t;
  BEGIN_IN_CONTEXT(name)
  code = make(STREAM, device, 0, NULL, &t);
  if (!code) *stream = t;
  return code;
}

static int stream_wait(const char *name, const void *stream) {
  BEGIN_IN_CONTEXT(name)
  return !stream || find(stream, STREAM) ? OK : mistake(INVALID_HANDLE, "%s: no such stream", name);
}

static int module_load(const char *name, void **module, const void *binary) {
  thing *t;
  BEGIN_IN_CONTEXT(name)
  code = make(MODULE, device, strlen(binary), binary, &t);
  if (!code) *module = t;
  return code;
}

static int get_function(const char *name, void **function, const void *module, const char *kernel) {
  thing *t, *parent = find(module, MODULE);
  char want[96];
  BEGIN_IN_CONTEXT(name)
  if (!parent) return mistake(INVALID_HANDLE, "%s: no such module", name);
  snprintf(want, sizeof want, " %s(", kernel);
  if (!strstr(parent->data, want)) return NOT_FOUND;
  code = make(FUNCTION, device, DECLARED_LOCAL, NULL, &t);
  if (code) return code;
  t->parent = parent;
  *function = t;
  return OK;
}

/* A FUNCTION's bytes: of dynamic local memory, at most, of its launches. */
static int function_set(const char *name, void *function, int which, int value) {
  BEGIN_IN_CONTEXT(name)
  thing *t = find(function, FUNCTION);
  if (!t) return mistake(INVALID_HANDLE, "%s: no such function", name);
  if (which != 8 || value < 0 || value > MAX_LOCAL)
    return mistake(INVALID_VALUE, "%s: attribute %d is %d", name, which, value);
  t->bytes = (size_t)value;
  return OK;
}

static int pointer_attribute(const char *name, void *value, int which, const void *pointer) {
  BEGIN_IN_CONTEXT(name)
  if (which != 2) return mistake(INVALID_VALUE, "%s: attribute %d", name, which);
  if (!find_memory(pointer)) return INVALID_VALUE;
  *(unsigned *)value = 2;
  return OK;
}

static int capture_launch(thing *function, const unsigned *grid, unsigned local, void **params) {
  node n = {.function = function, .groups = grid[0], .threads = grid[3], .local = local};
  for (int i = 0; i < fake_gpu->parameters; i++) memcpy(n.values[i], params[i], 8);
  char *data = realloc(capturing->data, capturing->bytes + sizeof n);
  if (!data) return OUT_OF_MEMORY;
  capturing->data = data;
  memcpy(data + capturing->bytes, &n, sizeof n);
  capturing->bytes += sizeof n;
  return OK;
}

static int capture_begin(const char *name, thing *stream, int mode) {
  thing *t;
  BEGIN_IN_CONTEXT(name)
  if (!stream) return CAPTURE_UNSUPPORTED;
  if (mode != 1) return mistake(INVALID_VALUE, "%s: mode %d", name, mode);
  if (!find(stream, STREAM) || capturing)
    return mistake(INVALID_HANDLE, "%s: no such stream, or one is capturing", name);
  code = make(GRAPH, device, 0, NULL, &t);
  if (!code) t->parent = stream, capturing = t;
  return code;
}

/* Ends the capture even where it is told to fail. */
static int capture_end(const char *name, thing *stream, void **graph) {
  int code = fails(name);
  if (!capturing || capturing->parent != stream)
    return mistake(INVALID_HANDLE, "%s: this stream captures nothing", name);
  thing *made = capturing;
  capturing = NULL;
  made->parent = NULL;
  *graph = code ? NULL : made;
  if (code) destroy(made, name);
  return code;
}

static int instantiate(const char *name, void **runnable, const void *graph,
                       unsigned long long flags) {
  const thing *from = find(graph, GRAPH);
  thing *t;
  BEGIN_IN_CONTEXT(name)
  if (!from || from == capturing || flags)
    return mistake(INVALID_HANDLE, "%s: no such graph, or flags", name);
  code = make(RUNNABLE, device, from->bytes, from->data, &t);
  if (!code) *runnable = t;
  return code;
}

static int update(const char *name, void *runnable, const void *graph) {
  thing *to = find(runnable, RUNNABLE), *from = find(graph, GRAPH);
  BEGIN_IN_CONTEXT(name)
  if (!to || !from || to->bytes != from->bytes)
    return mistake(INVALID_HANDLE, "%s: no such graphs, or of another shape", name);
  memcpy(to->data, from->data, from->bytes);
  fake_gpu->updates++;
  return OK;
}

static int upload(const char *name, const void *runnable) {
  BEGIN_IN_CONTEXT(name)
  return find(runnable, RUNNABLE) ? OK : mistake(INVALID_HANDLE, "%s: no such graph", name);
}

static int graph_launch(const char *name, const void *runnable, const void *stream) {
  const thing *t = find(runnable, RUNNABLE);
  BEGIN_IN_CONTEXT(name)
  if (!t || !find(stream, STREAM))
    return mistake(INVALID_HANDLE, "%s: no such graph or stream", name);
  for (size_t at = 0; at < t->bytes; at += sizeof(node)) {
    node n;
    void *params[MAX_PARAMETERS];
    memcpy(&n, t->data + at, sizeof n);
    for (int i = 0; i < MAX_PARAMETERS; i++) params[i] = n.values[i];
    if (!find(n.function, FUNCTION)) return mistake(INVALID_HANDLE, "%s: a kernel is gone", name);
    if (fake_gpu->launch)
      fake_gpu->launch(fake_gpu->user, n.function->parent->data, n.groups, n.threads, params);
  }
  fake_gpu->graphs++;
  return OK;
}

static int launch(const char *name, void *function, const unsigned *grid, unsigned local,
                  const void *stream, void **params) {
  BEGIN_IN_CONTEXT(name)
  const thing *f = find(function, FUNCTION);
  if (!f || (stream && !find(stream, STREAM)))
    return mistake(INVALID_HANDLE, "%s: no such function or stream", name);
  if (f->device != device) return mistake(INVALID_CONTEXT, "%s: another device's kernel", name);
  if (!grid[0] || grid[1] != 1 || grid[2] != 1 || !grid[3] || grid[3] > 1024 || grid[4] != 1 ||
      grid[5] != 1)
    return mistake(INVALID_VALUE, "%s: sizes", name);
  bool launched = strstr(f->parent->data, "extern SHARED"); /* otherwise the text declares it */
  if (local > f->bytes || launched != (local > 0))
    return mistake(INVALID_VALUE, "%s: %u bytes of local memory", name, local);
  if (capturing && capturing->parent == stream)
    return capture_launch(function, grid, local, params);
  fake_gpu->local = local;
  if (fake_gpu->launch) fake_gpu->launch(fake_gpu->user, f->parent->data, grid[0], grid[3], params);
  return OK;
}

/* Both drivers' names for the same functions. */
#define BOTH(cuda, hip, parameters, call)                                                          \
  EXPORT int cuda parameters;                                                                      \
  EXPORT int hip parameters;                                                                       \
  int cuda parameters {                                                                            \
    static const char name[] = #cuda;                                                              \
    return call;                                                                                   \
  }                                                                                                \
  int hip parameters {                                                                             \
    static const char name[] = #hip;                                                               \
    return call;                                                                                   \
  }
BOTH(cuInit, hipInit, (unsigned flags), flags ? INVALID_VALUE : fails(name))
BOTH(cuDriverGetVersion, hipRuntimeGetVersion, (int *version), number(name, version, 12345))
BOTH(cuDeviceGetCount, hipGetDeviceCount, (int *n), count(name, n))
BOTH(cuDeviceGetName, hipDeviceGetName, (char *text, int size, int device),
     device_name(name, text, size, device))
BOTH(cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t * bytes, int device),
     memory_size(name, bytes, device))
BOTH(cuDeviceGetAttribute, hipDeviceGetAttribute, (int *value, int which, int device),
     attribute(name, value, which, device))
BOTH(cuMemGetInfo_v2, hipMemGetInfo, (size_t * left, size_t *all), memory_info(name, left, all))
BOTH(cuMemAlloc_v2, hipMalloc, (void **memory, size_t bytes), alloc(name, memory, bytes))
BOTH(cuMemFree_v2, hipFree, (void *memory), release_memory(name, memory))
BOTH(cuMemHostAlloc, hipHostMalloc, (void **memory, size_t bytes, unsigned flags),
     alloc_host(name, memory, bytes, flags))
BOTH(cuMemFreeHost, hipHostFree, (void *memory), release(name, find_host(memory)))
BOTH(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync,
     (void *to, const void *from, size_t bytes, void *stream),
     copy(name, to, from, to, bytes, stream))
BOTH(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, void *stream),
     copy(name, to, from, from, bytes, stream))
BOTH(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync, (void *to, void *from, size_t bytes, void *stream),
     copy_on_device(name, to, from, bytes, stream))
BOTH(cuIpcGetMemHandle, hipIpcGetMemHandle, (ipc_handle * handle, void *memory),
     ipc_get(name, handle, memory))
BOTH(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (void **memory, ipc_handle handle, unsigned flags),
     ipc_open(name, memory, &handle, flags))
BOTH(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, (int *can, int device, int owner),
     peer_can(name, can, device, owner))
BOTH(cuIpcCloseMemHandle, hipIpcCloseMemHandle, (void *memory), ipc_close(name, memory))
BOTH(cuStreamCreate, hipStreamCreateWithFlags, (void **stream, unsigned flags),
     flags > 1 ? INVALID_VALUE : stream_create(name, stream))
BOTH(cuStreamDestroy_v2, hipStreamDestroy, (void *stream), release(name, find(stream, STREAM)))
BOTH(cuStreamSynchronize, hipStreamSynchronize, (void *stream), stream_wait(name, stream))
BOTH(cuModuleLoadData, hipModuleLoadData, (void **module, const void *binary),
     module_load(name, module, binary))
BOTH(cuModuleUnload, hipModuleUnload, (void *module), release(name, find(module, MODULE)))
BOTH(cuModuleGetFunction, hipModuleGetFunction, (void **function, void *module, const char *kernel),
     get_function(name, function, module, kernel))
BOTH(cuPointerGetAttribute, hipPointerGetAttribute, (void *value, int which, const void *pointer),
     pointer_attribute(name, value, which, pointer))
BOTH(cuLaunchKernel, hipModuleLaunchKernel,
     (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned local, void *stream, void **params, void **extra),
     extra ? INVALID_VALUE
           : launch(name, function, (unsigned[]){gx, gy, gz, bx, by, bz}, local, stream, params))

BOTH(cuStreamBeginCapture_v2, hipStreamBeginCapture, (void *stream, int mode),
     capture_begin(name, stream, mode))
BOTH(cuStreamEndCapture, hipStreamEndCapture, (void *stream, void **graph),
     capture_end(name, stream, graph))
BOTH(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,
     (void **runnable, void *graph, unsigned long long flags),
     instantiate(name, runnable, graph, flags))
BOTH(cuGraphUpload, hipGraphUpload, (void *runnable, void *stream),
     find(stream, STREAM) ? upload(name, runnable) : INVALID_HANDLE)
BOTH(cuGraphLaunch, hipGraphLaunch, (void *runnable, void *stream),
     graph_launch(name, runnable, stream))
BOTH(cuGraphDestroy, hipGraphDestroy, (void *graph), release(name, find(graph, GRAPH)))
BOTH(cuGraphExecDestroy, hipGraphExecDestroy, (void *runnable),
     release(name, find(runnable, RUNNABLE)))
EXPORT int cuGraphExecUpdate_v2(void *runnable, void *graph, void *what),
    hipGraphExecUpdate(void *runnable, void *graph, void **node, int *what);
int cuGraphExecUpdate_v2(void *runnable, void *graph, void *what) {
  return what ? update("cuGraphExecUpdate_v2", runnable, graph) : INVALID_VALUE;
}
int hipGraphExecUpdate(void *runnable, void *graph, void **node_out, int *what) {
  return node_out && what ? update("hipGraphExecUpdate", runnable, graph) : INVALID_VALUE;
}

EXPORT int cuGetErrorName(int code, const char **text),
    cuGetErrorString(int code, const char **text);
int cuGetErrorName(int code, const char **text) {
  return *text = code == OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR", OK;
}
int cuGetErrorString(int code, const char **text) {
  return *text = code ? "told to fail" : "well", OK;
}
EXPORT const char *hipGetErrorName(int code), *hipGetErrorString(int code);
const char *hipGetErrorName(int code) {
  return code == OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
}
const char *hipGetErrorString(int code) { return code ? "told to fail" : "well"; }

/* ---- CUDA's contexts: one of each device, and a stack ---- */

static void *below[4];
static int depth;

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device),
    cuDevicePrimaryCtxRelease_v2(int device), cuCtxGetCurrent(void **context);
EXPORT int cuCtxPushCurrent_v2(void *context), cuCtxPopCurrent_v2(void **context),
    cuCtxGetDevice(int *device), cuStreamGetCtx(void *stream, void **context);
static thing *primary(int device) {
  for (thing *t = things; t; t = t->next)
    if (t->kind == CONTEXT && t->device == device) return t;
  return NULL;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  thing *t = primary(device);
  BEGIN("cuDevicePrimaryCtxRetain")
  if (!t) code = make(CONTEXT, device, 0, NULL, &t);
  if (code) return code;
  t->bytes++; /* holders */
  *context = t;
  return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  thing *t = primary(device);
  int code = fails("cuDevicePrimaryCtxRelease_v2");
  if (!t) return mistake(INVALID_CONTEXT, "cuDevicePrimaryCtxRelease_v2: not retained");
  if (!--t->bytes) destroy(t, "cuDevicePrimaryCtxRelease_v2");
  return code;
}
int cuCtxGetCurrent(void **context) {
  BEGIN("cuCtxGetCurrent")
  *context = fake_gpu->context;
  return OK;
}
int cuCtxPushCurrent_v2(void *context) {
  BEGIN("cuCtxPushCurrent_v2")
  if (!find(context, CONTEXT))
    return mistake(INVALID_CONTEXT, "cuCtxPushCurrent_v2: no such context");
  if (depth == 4)
    return mistake(INVALID_CONTEXT, "cuCtxPushCurrent_v2: contexts are pushed and not popped");
  below[depth++] = fake_gpu->context;
  fake_gpu->context = context;
  return OK;
}
int cuCtxPopCurrent_v2(void **context) {
  if (!depth) return mistake(INVALID_CONTEXT, "cuCtxPopCurrent_v2: nothing to pop");
  *context = fake_gpu->context;
  fake_gpu->context = below[--depth];
  return fails("cuCtxPopCurrent_v2");
}
int cuCtxGetDevice(int *device) {
  static const char name[] = "cuCtxGetDevice";
  int now = current(name);
  BEGIN(name)
  *device = now;
  return now < 0 ? INVALID_CONTEXT : OK;
}
int cuStreamGetCtx(void *stream, void **context) {
  const thing *t = find(stream, STREAM);
  BEGIN("cuStreamGetCtx")
  if (!t) return mistake(INVALID_HANDLE, "cuStreamGetCtx: no such stream");
  *context = primary(t->device);
  return OK;
}

EXPORT int cuFuncSetAttribute(void *function, int which, int value);
int cuFuncSetAttribute(void *function, int which, int value) {
  return function_set("cuFuncSetAttribute", function, which, value);
}

EXPORT int cuCtxEnablePeerAccess(void *context, unsigned flags),
    hipDeviceEnablePeerAccess(int device, unsigned flags);
int cuCtxEnablePeerAccess(void *context, unsigned flags) {
  const thing *t = find(context, CONTEXT);
  return peer_enable("cuCtxEnablePeerAccess", t ? t->device : -1, flags);
}
int hipDeviceEnablePeerAccess(int device, unsigned flags) {
  return peer_enable("hipDeviceEnablePeerAccess", device, flags);
}

EXPORT int hipGetDevice(int *device), hipSetDevice(int device),
    hipGetDevicePropertiesR0600(char *properties, int device);
int hipGetDevice(int *device) {
  BEGIN("hipGetDevice")
  *device = fake_gpu->device;
  return OK;
}
int hipSetDevice(int device) {
  BEGIN("hipSetDevice")
  if (device < 0 || device >= fake_gpu->devices)
    return mistake(INVALID_DEVICE, "hipSetDevice: %d", device);
  fake_gpu->device = device;
  return OK;
}
int hipGetDevicePropertiesR0600(char *properties, int device) {
  BEGIN("hipGetDevicePropertiesR0600")
  snprintf(properties, 256, "Fake gfx GPU %d", device);
  snprintf(properties + 1160, 256, "gfx90a:sramecc+:xnack-");
  return OK;
}

/* ---- the compilers: machine code is the text ---- */

static int program_create(const char *name, void **program, const char *text) {
  thing *t;
  BEGIN(name)
  code = make(PROGRAM, 0, strlen(text), text, &t);
  if (!code) *program = t;
  return code;
}

static int program_destroy(const char *name, void **program) {
  int code = release(name, find(*program, PROGRAM));
  *program = NULL;
  return code;
}

static int program_compile(const char *name, void *program, int n, const char *const *option) {
  BEGIN(name)
  if (!find(program, PROGRAM)) return mistake(INVALID_VALUE, "%s: no such program", name);
  if (n < 1 || strncmp(option[0], "--gpu-architecture=", 19))
    return mistake(INVALID_VALUE, "%s: no target", name);
  return fake_gpu->refuse ? COMPILATION : OK;
}

static const char *log_of(void) {
  return fake_gpu->refuse ? "line 1: refused by the fake compiler" : "";
}

static int size_of(const char *name, size_t *bytes, size_t value) {
  BEGIN(name)
  *bytes = value;
  return OK;
}

static int text_of(const char *name, char *to, const char *from, size_t bytes) {
  BEGIN(name)
  memcpy(to, from, bytes);
  return OK;
}

static thing *program_of(void *program) {
  static thing empty = {.data = ""};
  thing *t = find(program, PROGRAM);
  if (!t) mistake(INVALID_VALUE, "no such program");
  return t ? t : &empty;
}

BOTH(nvrtcVersion, hiprtcVersion, (int *major, int *minor), (*minor = 3, number(name, major, 12)))
BOTH(nvrtcCreateProgram, hiprtcCreateProgram,
     (void **program, const char *text, const char *file, int headers, const char *const *header,
      const char *const *include),
     !file || headers || header || include ? INVALID_VALUE : program_create(name, program, text))
BOTH(nvrtcDestroyProgram, hiprtcDestroyProgram, (void **program), program_destroy(name, program))
BOTH(nvrtcCompileProgram, hiprtcCompileProgram, (void *program, int n, const char *const *option),
     program_compile(name, program, n, option))
BOTH(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize, (void *program, size_t *bytes),
     (program_of(program), size_of(name, bytes, strlen(log_of()))))
BOTH(nvrtcGetProgramLog, hiprtcGetProgramLog, (void *program, char *log),
     (program_of(program), text_of(name, log, log_of(), strlen(log_of()))))
BOTH(nvrtcGetCUBINSize, hiprtcGetCodeSize, (void *program, size_t *bytes),
     size_of(name, bytes, program_of(program)->bytes))
BOTH(nvrtcGetCUBIN, hiprtcGetCode, (void *program, char *code),
     text_of(name, code, program_of(program)->data, program_of(program)->bytes))

EXPORT const char *nvrtcGetErrorString(int code), *hiprtcGetErrorString(int code);
const char *nvrtcGetErrorString(int code) {
  return code == COMPILATION ? "FAKE_COMPILATION" : "FAKE_ERROR";
}
const char *hiprtcGetErrorString(int code) {
  return code == COMPILATION ? "FAKE_COMPILATION" : "FAKE_ERROR";
}
EXPORT int nvrtcGetNumSupportedArchs(int *n), nvrtcGetSupportedArchs(int *numbers);
int nvrtcGetNumSupportedArchs(int *n) { return number("nvrtcGetNumSupportedArchs", n, 1); }
int nvrtcGetSupportedArchs(int *numbers) { return number("nvrtcGetSupportedArchs", numbers, 90); }

EXPORT int amd_comgr_get_isa_count(size_t *n), amd_comgr_get_isa_name(size_t i, const char **name);
int amd_comgr_get_isa_count(size_t *n) { return *n = 1, OK; }
int amd_comgr_get_isa_name(size_t i, const char **name) {
  return *name = "amdgcn-amd-amdhsa--gfx90a", i ? INVALID_VALUE : OK;
}
