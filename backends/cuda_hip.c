/* cuda_hip.c - NVIDIA's and AMD's drivers: one backend, two tables of names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

struct clb_module {
  void *module, *function;
  unsigned threads;
  int n;
  void *params[]; /* of one launch */
};

/* ---- the two tables ---- */

#define CUDA(field, args, cuda, hip) {cuda, FIELD(field), false},
#define HIP(field, args, cuda, hip) {hip, FIELD(field), false},
#define FIELD(field) offsetof(clb_gpu_driver, field)
static const clb_symbol cuda_symbols[] = {
  CLB_GPU_CALLS(CUDA) CLB_CUDA_CALLS(CUDA) {"cuGetErrorName", FIELD(cuda_error_name), false},
  {"cuGetErrorString", FIELD(cuda_error_text), false}};
static const clb_symbol hip_symbols[] = {
  CLB_GPU_CALLS(HIP) CLB_HIP_CALLS(HIP) {"hipGetErrorName", FIELD(hip_error_name), false}, {"hipGetErrorString", FIELD(hip_error_text), false},
  {"hipGetDeviceProperties", FIELD(properties), true}, {"hipGetDevicePropertiesR0600", FIELD(properties_6), true}};
#undef FIELD
#define FIELD(field) offsetof(clb_gpu_compiler, field)
static const clb_symbol nvrtc_symbols[] = {
  CLB_GPU_COMPILER_CALLS(CUDA) {"nvrtcGetErrorString", FIELD(error_text), false}, {"nvrtcGetNumSupportedArchs", FIELD(n_targets), false},
  {"nvrtcGetSupportedArchs", FIELD(targets), false}};
static const clb_symbol hiprtc_symbols[] = {CLB_GPU_COMPILER_CALLS(HIP) {"hiprtcGetErrorString", FIELD(error_text), false}};
#undef FIELD

#define CUDA_NAME(field, args, cuda, hip) [CLB_GPU_##field] = cuda,
#define HIP_NAME(field, args, cuda, hip) [CLB_GPU_##field] = hip,
static const char *const cuda_calls[] = {CLB_GPU_CALLS(CUDA_NAME) CLB_CUDA_CALLS(CUDA_NAME)};
static const char *const hip_calls[] = {CLB_GPU_CALLS(HIP_NAME) CLB_HIP_CALLS(HIP_NAME)};

#define LIST(...) (const char *const[]){__VA_ARGS__, NULL}
#define TABLE(symbols) symbols, sizeof symbols / sizeof *symbols
static const clb_gpu_vendor nvidia = {
  .backend = &clb_backend_cuda, .language = CLB_LANGUAGE_CUDA, .name = "cuda", .maker = "NVIDIA",
  .driver_library = "libcuda.so.1", .driver_names = LIST("libcuda.so.1"), .driver_symbols = {TABLE(cuda_symbols)}, .call_names = cuda_calls,
  .compiler_name = "NVRTC", .compiler_names = LIST("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"),
  .compiler_symbols = {TABLE(nvrtc_symbols)}, .options = LIST("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"),
  .target_prefix = "sm_", .targets = LIST("sm_80", "sm_90"),
  .threads = 1, .warp = 10, .units = 16, .local = 8, .pageable = 88, .registers = 255,
};
static const clb_gpu_vendor amd = {
  .backend = &clb_backend_hip, .language = CLB_LANGUAGE_HIP, .name = "hip", .maker = "AMD",
  .driver_library = "libamdhip64.so", .driver_names = LIST("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
  .driver_symbols = {TABLE(hip_symbols)}, .call_names = hip_calls,
  .compiler_name = "hiprtc",
  .compiler_names = LIST("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
  .compiler_symbols = {TABLE(hiprtc_symbols)}, .options = LIST("-O3", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize"),
  .target_prefix = "gfx", .targets = LIST("gfx90a", "gfx942", "gfx1100"),
  .threads = 56, .warp = 87, .units = 63, .local = 74, .pageable = 65, .registers = 256,
};

/* ---- errors, and whose turn it is ---- */

enum { OUT_OF_MEMORY = 2 };                /* in both */
enum { CUDA_MAJOR = 75, CUDA_MINOR = 76 }; /* attributes: compute capability */

clb_status clb_gpu_check(clb_gpu *g, int call, int code) {
  const char *name = NULL, *text = NULL;
  if (!code) return CLB_OK;
  if (g->vendor == &nvidia) {
    g->driver.cuda_error_name(code, &name);
    g->driver.cuda_error_text(code, &text);
  } else {
    name = g->driver.hip_error_name(code);
    text = g->driver.hip_error_text(code);
  }
  return clb_fail(g->head.error, code == OUT_OF_MEMORY ? CLB_ERROR_MEMORY : CLB_ERROR_DRIVER, "%s: %s: %s (%d): %s",
                  g->name[0] ? g->name : g->vendor->name, g->vendor->call_names[call], name ? name : "unknown error", code, text ? text : "no text");
}

/* The caller's thread gets its own context or device back. */
typedef struct {
  bool changed;
  int device;
} turn;

static clb_status enter(clb_gpu *g, turn *t) {
  clb_status s;
  *t = (turn){0};
  if (g->vendor == &nvidia) {
    void *now = NULL;
    if (!g->driver.context_current(&now) && now == g->context) return CLB_OK;
    s = CLB_GPU_CALL(g, context_push, g->context);
  } else {
    s = CLB_GPU_CALL(g, device_current, &t->device);
    if (s || t->device == g->ordinal) return s;
    s = CLB_GPU_CALL(g, device_set, g->ordinal);
  }
  t->changed = !s;
  return s;
}

static void leave(clb_gpu *g, const turn *t) {
  void *ours;
  if (!t->changed) return;
  if (g->vendor == &nvidia) g->driver.context_pop(&ours);
  else g->driver.device_set(t->device);
}

/* ---- opening ---- */

/* HIP brings an LLVM that may not meet another driver's, so where it finds no GPU it stays apart. */
static void *open_library(const clb_gpu_vendor *v) {
  if (v == &nvidia) return clb_dl_open(v->driver_names);
  clb_gpu_driver probe;
  int n = 0;
  void *apart = clb_dl_open_apart(v->driver_names);
  if (!apart || clb_dl_symbols(apart, v->driver_symbols.table, v->driver_symbols.n, &probe) || probe.init(0) || probe.count(&n) || n < 1) return apart;
  return clb_dl_open(v->driver_names);
}

static clb_status open_driver(clb_gpu *g) {
  const clb_gpu_vendor *v = g->vendor;
  g->driver_library = open_library(v);
  if (!g->driver_library) return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: %s cannot be opened: is %s's driver installed?", v->name, v->driver_library, v->maker);
  const char *missing = clb_dl_symbols(g->driver_library, v->driver_symbols.table, v->driver_symbols.n, &g->driver);
  if (missing) return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: %s has no %s: the driver is too old", v->name, v->driver_library, missing);
  int n = 0;
  clb_status s = CLB_GPU_CALL(g, init, 0);
  if (!s) s = CLB_GPU_CALL(g, count, &n);
  if (s || !n) return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: the driver finds no %s GPU here (%s)", v->name, v->maker, s ? g->head.error->text.s : "it counts 0");
  if (g->ordinal >= n) return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s:%d: there is %d %s GPU%s here, counted from 0", v->name, g->ordinal, n, v->maker, n > 1 ? "s" : "");
  return CLB_OK;
}

/* "gfx90a:sramecc+:xnack-": behind the device's name, wherever this version of ROCm keeps it. */
static bool find_target(clb_gpu *g) {
  char properties[8192] = {0};
  int (*ask)(void *, int) = g->driver.properties_6 ? g->driver.properties_6 : g->driver.properties;
  if (!ask || ask(properties, g->ordinal)) return false;
  for (size_t at = 256; at + sizeof g->target < sizeof properties; at++)
    if (!memcmp(properties + at, "gfx", 3)) {
      memcpy(g->target, properties + at, sizeof g->target - 1);
      return true;
    }
  return false;
}

static clb_status find_numbers(clb_gpu *g, int *warp, int *local, int *units) {
  const clb_gpu_vendor *v = g->vendor;
  int pageable = 0;
  clb_status s = CLB_GPU_CALL(g, attribute, &g->threads, v->threads, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, warp, v->warp, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, local, v->local, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, units, v->units, g->ordinal);
  if (!g->driver.attribute(&pageable, v->pageable, g->ordinal)) g->pageable = pageable != 0;
  if (v == &amd) return s || find_target(g) ? s : clb_fail(g->head.error, CLB_ERROR_DRIVER, "%s: the driver does not say which gfx target this is", g->name);
  int major = 0, minor = 0;
  if (!s) s = CLB_GPU_CALL(g, attribute, &major, CUDA_MAJOR, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, &minor, CUDA_MINOR, g->ordinal);
  snprintf(g->target, sizeof g->target, "sm_%d%d", major, minor);
  return s;
}

static void set_limits(clb_gpu *g, int warp, int local, int units) {
  g->head.limits = (clb_limits){
    .lanes = {warp, warp}, .max_subgroups = g->threads / warp, .local_bytes = local, .registers = g->vendor->registers, .units = units,
    .subgroups = true, .f64 = true};
  g->head.dialect = (clb_dialect){.language = g->vendor->language, .subgroups = true, .float_atomics = true};
  g->head.info = (clb_device_info){
    .name = g->name, .backend = g->vendor->name, .vendor = g->vendor->maker, .description = g->description, .driver = g->driver_text,
    .f64 = 1, .sub_group_sizes = {warp}};
}

/* What a device is; makes no context. */
static clb_status describe(clb_gpu *g) {
  char model[256] = "";
  size_t memory = 0;
  int warp = 0, local = 0, units = 0, version = 0;
  clb_status s = find_numbers(g, &warp, &local, &units);
  if (!s) s = CLB_GPU_CALL(g, name, model, (int)sizeof model - 1, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, memory, &memory, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, version, &version);
  if (s) return s;
  if (warp < 1 || g->threads < warp) return clb_fail(g->head.error, CLB_ERROR_DRIVER, "%s: the driver says %d lanes and %d threads", g->name, warp, g->threads);
  set_limits(g, warp, local, units);
  snprintf(g->description, sizeof g->description, "%s, %s", model, g->target);
  snprintf(g->driver_text, sizeof g->driver_text, "driver %d", version);
  g->head.info.runs = 1;
  g->head.info.memory_bytes = memory;
  return CLB_OK;
}

/* The stream's context, else the thread's, else the device's own. */
static clb_status find_context(clb_gpu *g, const clb_native *adopt) {
  clb_status s = CLB_OK;
  turn t;
  int device = g->ordinal;
  if (adopt && adopt->queue) s = CLB_GPU_CALL(g, stream_context, adopt->queue, &g->context);
  else if (adopt) s = CLB_GPU_CALL(g, context_current, &g->context);
  if (!s && !g->context) {
    s = CLB_GPU_CALL(g, retain, &g->context, g->ordinal);
    g->retained = !s;
  }
  if (s) return s;
  s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, context_device, &device);
  leave(g, &t);
  if (!s && device != g->ordinal) s = clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: the caller's stream belongs to cuda:%d", g->name, device);
  return s;
}

static clb_status find_stream(clb_gpu *g, const clb_native *adopt) {
  turn t;
  clb_status s = CLB_OK;
  if (g->vendor == &nvidia) s = find_context(g, adopt);
  if (s) return s;
  if (adopt) {
    g->stream = adopt->queue;
    return CLB_OK;
  }
  s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, stream_create, &g->stream, 0);
  g->own_stream = !s;
  leave(g, &t);
  return s;
}

static void close(clb_device *device) {
  clb_gpu *g = (clb_gpu *)device;
  turn t = {0};
  if (!g) return;
  if (g->own_stream && enter(g, &t) == CLB_OK) {
    g->driver.stream_wait(g->stream);
    g->driver.stream_destroy(g->stream);
  }
  leave(g, &t);
  if (g->retained) g->driver.release(g->ordinal);
  free(g);
}

/* The number behind ":"; -1 if it is none. */
static int ordinal_of(const char *rest) {
  int n = 0;
  if (!*rest) return 0;
  if (*rest++ != ':' || !*rest) return -1;
  for (; *rest; rest++) {
    if (*rest < '0' || *rest > '9' || n > 9999) return -1;
    n = 10 * n + (*rest - '0');
  }
  return n;
}

static clb_gpu *create(const clb_gpu_vendor *v, clb_error_sink *error) {
  clb_gpu *g = calloc(1, sizeof *g);
  if (!g) clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory for a device", v->name);
  else {
    g->vendor = v;
    g->head.backend = v->backend;
    g->head.error = error;
  }
  return g;
}

static clb_status open_device(clb_gpu *g, const clb_native *adopt) {
  clb_status s = open_driver(g);
  if (s) return s;
  snprintf(g->name, sizeof g->name, "%s:%d", g->vendor->name, g->ordinal);
  s = describe(g);
  if (!s) s = find_stream(g, adopt);
  if (!s) s = clb_gpu_compiler_open(g);
  return s;
}

/* A target without a device; its wave is 64 lanes on GCN and CDNA, 32 on RDNA. */
static clb_status open_target(clb_gpu *g, const char *target) {
  const clb_gpu_vendor *v = g->vendor;
  bool wide = v == &amd && strncmp(target, "gfx1", 4);
  if (strncmp(target, v->target_prefix, strlen(v->target_prefix)) || strlen(target) >= 32)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s@%s: a target of %s looks like %s@%s", v->name, target, v->name, v->name, v->targets[0]);
  snprintf(g->target, sizeof g->target, "%s", target);
  snprintf(g->name, sizeof g->name, "%s@%s", v->name, target);
  snprintf(g->description, sizeof g->description, "%s %s, compile only", v->maker, target);
  g->threads = 1024;
  set_limits(g, wide ? 64 : 32, v == &amd ? 65536 : 49152, 1);
  return clb_gpu_compiler_open(g);
}

static clb_status open(const clb_gpu_vendor *v, const char *name, const char *rest, const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  clb_status s;
  *device = NULL;
  clb_gpu *g = create(v, error);
  if (!g) return CLB_ERROR_MEMORY;
  g->ordinal = ordinal_of(rest);
  if (*rest == '@') s = adopt ? clb_fail(error, CLB_ERROR_ARGUMENT, "%s only compiles: it takes no stream", name) : open_target(g, rest + 1);
  else if (g->ordinal < 0) s = clb_fail(error, CLB_ERROR_DEVICE, "no device \"%s\": write \"%s\", \"%s:0\" or \"%s@%s\"", name, v->name, v->name, v->name, v->targets[0]);
  else s = open_device(g, adopt);
  if (s) close(&g->head);
  else *device = &g->head;
  return s;
}
static clb_status open_cuda(const char *name, const char *rest, const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  return open(&nvidia, name, rest, adopt, error, device);
}
static clb_status open_hip(const char *name, const char *rest, const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  return open(&amd, name, rest, adopt, error, device);
}

static void list(const clb_gpu_vendor *v, void (*each)(const clb_device_info *info, void *user), void *user) {
  clb_error_sink ignored = {0};
  bool more = true;
  for (int ordinal = 0; more; ordinal++) {
    clb_gpu *g = create(v, &ignored);
    if (!g) break;
    g->ordinal = ordinal;
    more = open_driver(g) == CLB_OK;
    snprintf(g->name, sizeof g->name, "%s:%d", v->name, ordinal);
    if (more && describe(g) == CLB_OK) each(&g->head.info, user);
    close(&g->head);
  }
  for (const char *const *target = v->targets; *target; target++) {
    clb_gpu *g = create(v, &ignored);
    if (!g) break;
    if (open_target(g, *target) == CLB_OK) each(&g->head.info, user);
    close(&g->head);
  }
  clb_text_free(&ignored.text);
}
static void list_cuda(void (*each)(const clb_device_info *info, void *user), void *user) { list(&nvidia, each, user); }
static void list_hip(void (*each)(const clb_device_info *info, void *user), void *user) { list(&amd, each, user); }

/* ---- memory ---- */

static clb_status alloc(clb_device *device, uint64_t bytes, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  *memory = (clb_memory){.kind = CLB_POINTER, .bytes = bytes};
  clb_status s = enter(g, &t);
  if (!s && (s = CLB_GPU_CALL(g, alloc, &memory->handle, bytes))) clb_fail_more(device->error, s, " (%" PRIu64 " bytes)", bytes);
  leave(g, &t);
  return s;
}

static void release(clb_device *device, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  if (enter(g, &t) == CLB_OK) g->driver.free(memory->handle);
  leave(g, &t);
  memory->handle = NULL;
}

enum { POINTER_MEMORY_TYPE = 2 }; /* in both */

/* A pointer the driver has never heard of would poison the context at the first launch. */
static clb_status wrap(clb_device *device, clb_memory *memory) {
  clb_gpu *g = (clb_gpu *)device;
  unsigned type = 0;
  turn t;
  clb_status s = enter(g, &t);
  if (!s && !g->pageable && g->driver.pointer(&type, POINTER_MEMORY_TYPE, memory->handle))
    s = clb_fail(device->error, CLB_ERROR_ARGUMENT, "%s: %p is no memory of this driver", g->name, memory->handle);
  leave(g, &t);
  return s;
}

static clb_status write(clb_device *device, const clb_memory *to, uint64_t offset, const void *from, uint64_t bytes) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  clb_status s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, write, (char *)to->handle + offset, from, bytes, g->stream);
  if (!s) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  leave(g, &t);
  return s;
}

static clb_status read(clb_device *device, const clb_memory *from, uint64_t offset, void *to, uint64_t bytes) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  clb_status s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, read, to, (char *)from->handle + offset, bytes, g->stream);
  if (!s) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  leave(g, &t);
  return s;
}

/* ---- kernels ---- */

static clb_status build(clb_device *device, const ir_kernel *k, clb_text *binary) {
  clb_gpu *g = (clb_gpu *)device;
  if (k->lanes > device->limits.lanes[CLB_F32] || k->lanes * k->subgroups > g->threads)
    return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s: %s wants %d sub-groups of %d lanes; the device has %d lanes and groups of %d", g->name, k->name,
                    k->subgroups, k->lanes, device->limits.lanes[CLB_F32], g->threads);
  return clb_gpu_compile(g, k, false, binary, NULL);
}

static void unload(clb_device *device, clb_module *module) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  if (!module) return;
  if (enter(g, &t) == CLB_OK && module->module) g->driver.module_unload(module->module);
  leave(g, &t);
  free(module);
}

static clb_status load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes, clb_module **module) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  int n = 0;
  *module = NULL;
  if (!device->info.runs) return clb_fail(device->error, CLB_ERROR_UNSUPPORTED, "%s only compiles", g->name);
  if (!clb_gpu_whole(binary, bytes)) return clb_fail(device->error, CLB_ERROR_DRIVER, "%s: the binary of %s is damaged", g->name, k->name);
  for (int v = 0; v < k->n; v++) n += k->ins[v].op == IR_BUFFER || k->ins[v].op == IR_SCALAR;
  clb_module *m = calloc(1, sizeof *m + (size_t)n * sizeof *m->params);
  if (!m) return clb_fail(device->error, CLB_ERROR_MEMORY, "%s: no memory for %s", g->name, k->name);
  m->n = n;
  m->threads = (unsigned)(k->lanes * k->subgroups);
  clb_status s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, module_load, &m->module, binary);
  if (!s) s = CLB_GPU_CALL(g, function, &m->function, m->module, k->name);
  leave(g, &t);
  if (s) unload(device, m);
  else *module = m;
  return s;
}

static clb_status launch(clb_device *device, clb_module *m, int64_t groups, const clb_arg *args, int n) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  if (n != m->n) return clb_fail(device->error, CLB_ERROR_INTERNAL, "%s: %d arguments for a kernel of %d", g->name, n, m->n);
  if (groups > INT32_MAX) return clb_fail(device->error, CLB_ERROR_ARGUMENT, "%s: %" PRId64 " groups in one launch; at most %d", g->name, groups, INT32_MAX);
  /* The driver reads the values before it returns. */
  for (int i = 0; i < n; i++) m->params[i] = args[i].type == IR_VOID ? (void *)(uintptr_t)&args[i].memory->handle : (void *)(uintptr_t)&args[i].i64;
  clb_status s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, launch, m->function, (unsigned)groups, 1, 1, m->threads, 1, 1, 0, g->stream, m->params, NULL);
  leave(g, &t);
  return s;
}

static clb_status wait(clb_device *device) {
  clb_gpu *g = (clb_gpu *)device;
  turn t;
  clb_status s = enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, stream_wait, g->stream);
  leave(g, &t);
  return s;
}

#define COMMON                                                                                                                     \
  .close = close, .alloc = alloc, .free = release, .wrap = wrap, .write = write, .read = read, .build = build, .load = load,       \
  .unload = unload, .launch = launch, .wait = wait, .report = clb_gpu_report
const clb_backend clb_backend_cuda = {.name = "cuda", .list = list_cuda, .open = open_cuda, COMMON};
const clb_backend clb_backend_hip = {.name = "hip", .list = list_hip, .open = open_hip, COMMON};
