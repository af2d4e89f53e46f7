/* backends/cuda_hip/cuda_hip.c - NVIDIA's and AMD's drivers: one backend, two tables of names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda_hip/gpu.h"

/* ---- the two tables ---- */

#define CUDA(field, args, cuda, hip) {cuda, FIELD(field), false},
#define HIP(field, args, cuda, hip) {hip, FIELD(field), false},
#define CUDA_MAYBE(field, args, cuda, hip) {cuda, FIELD(field), true},
#define HIP_MAYBE(field, args, cuda, hip) {hip, FIELD(field), true},
#define FIELD(field) offsetof(clb_gpu_driver, field)
static const clb_symbol cuda_symbols[] = {
    CLB_GPU_CALLS(CUDA) CLB_GPU_GRAPH_CALLS(CUDA_MAYBE) CLB_GPU_PIN_CALLS(CUDA_MAYBE)
        CLB_GPU_IPC_CALLS(CUDA_MAYBE)
            CLB_GPU_PEER_CALLS(CUDA_MAYBE){"cuGraphExecUpdate_v2", FIELD(cuda_update), true},
    {"cuCtxEnablePeerAccess", FIELD(cuda_peer), true},
    {"cuMemGetInfo_v2", FIELD(memory_info), true},
    CLB_CUDA_CALLS(CUDA){"cuGetErrorName", FIELD(cuda_error_name), false},
    {"cuGetErrorString", FIELD(cuda_error_text), false}};
static const clb_symbol hip_symbols[] = {
    CLB_GPU_CALLS(HIP) CLB_GPU_GRAPH_CALLS(HIP_MAYBE) CLB_GPU_PIN_CALLS(HIP_MAYBE)
        CLB_GPU_IPC_CALLS(HIP_MAYBE)
            CLB_GPU_PEER_CALLS(HIP_MAYBE){"hipGraphExecUpdate", FIELD(hip_update), true},
    {"hipDeviceEnablePeerAccess", FIELD(hip_peer), true},
    {"hipMemGetInfo", FIELD(memory_info), true},
    CLB_HIP_CALLS(HIP){"hipGetErrorName", FIELD(hip_error_name), false},
    {"hipGetErrorString", FIELD(hip_error_text), false},
    {"hipGetDeviceProperties", FIELD(properties), true},
    {"hipGetDevicePropertiesR0600", FIELD(properties_6), true}};
#undef FIELD
#define FIELD(field) offsetof(clb_gpu_compiler, field)
static const clb_symbol nvrtc_symbols[] = {
    CLB_GPU_COMPILER_CALLS(CUDA){"nvrtcGetErrorString", FIELD(error_text), false},
    {"nvrtcGetNumSupportedArchs", FIELD(n_targets), false},
    {"nvrtcGetSupportedArchs", FIELD(targets), false}};
static const clb_symbol hiprtc_symbols[] = {
    CLB_GPU_COMPILER_CALLS(HIP){"hiprtcGetErrorString", FIELD(error_text), false}};
#undef FIELD

#define CUDA_NAME(field, args, cuda, hip) [CLB_GPU_##field] = cuda,
#define HIP_NAME(field, args, cuda, hip) [CLB_GPU_##field] = hip,
static const char *const cuda_calls[] = {
    CLB_GPU_CALLS(CUDA_NAME) CLB_GPU_GRAPH_CALLS(CUDA_NAME) CLB_GPU_IPC_CALLS(CUDA_NAME)
        CLB_GPU_PEER_CALLS(CUDA_NAME) CLB_CUDA_CALLS(CUDA_NAME)};
static const char *const hip_calls[] = {CLB_GPU_CALLS(HIP_NAME) CLB_GPU_GRAPH_CALLS(
    HIP_NAME) CLB_GPU_IPC_CALLS(HIP_NAME) CLB_GPU_PEER_CALLS(HIP_NAME) CLB_HIP_CALLS(HIP_NAME)};

#define LIST(...)                                                                                  \
  (const char *const[]) { __VA_ARGS__, NULL }
#define TABLE(symbols) symbols, sizeof symbols / sizeof *symbols
static const clb_gpu_vendor nvidia = {
    .backend = &clb_backend_cuda,
    .language = CLB_LANGUAGE_CUDA,
    .name = "cuda",
    .maker = "NVIDIA",
    .driver_library = "libcuda.so.1",
    .driver_names = LIST("libcuda.so.1"),
    .driver_symbols = {TABLE(cuda_symbols)},
    .call_names = cuda_calls,
    .compiler_name = "NVRTC",
    .compiler_names = LIST("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"),
    .compiler_symbols = {TABLE(nvrtc_symbols)},
    .options = LIST("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"),
    .target_prefix = "sm_",
    .targets = LIST("sm_80", "sm_90"),
    .threads = 1,
    .warp = 10,
    .units = 16,
    .local = 8,
    .pageable = 88,
    .registers = 255,
};
static const clb_gpu_vendor amd = {
    .backend = &clb_backend_hip,
    .language = CLB_LANGUAGE_HIP,
    .name = "hip",
    .maker = "AMD",
    .driver_library = "libamdhip64.so",
    .driver_names = LIST("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
    .driver_symbols = {TABLE(hip_symbols)},
    .call_names = hip_calls,
    .compiler_name = "hiprtc",
    .compiler_names = LIST("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.7",
                           "libamdhip64.so.6", "libamdhip64.so.5"),
    .compiler_symbols = {TABLE(hiprtc_symbols)},
    .options = LIST("-O3", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize"),
    .target_prefix = "gfx",
    .targets = LIST("gfx90a", "gfx942", "gfx1100"),
    .threads = 56,
    .warp = 87,
    .units = 63,
    .local = 74,
    .pageable = 65,
    .registers = 256,
};

enum {
  CUDA_MAJOR = 75,
  CUDA_MINOR = 76,
  CUDA_MAX_LOCAL = 97
}; /* attributes: compute capability; opt-in local memory per group */

/* ---- opening ---- */

/* HIP loads an LLVM that conflicts with other drivers', so if there is no GPU (neither AMD's kernel
   driver nor Windows' is present) it is isolated. If the program has already loaded a library, that
   one is used, because its streams belong to it. */
static void *open_library(const clb_gpu_vendor *v) {
  for (const char *const *name = v->driver_names; *name; name++) {
    void *loaded = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded) return loaded;
  }
  bool apart = v == &amd && access("/dev/kfd", F_OK) && access("/dev/dxg", F_OK);
  return apart ? clb_dl_open_isolated(v->driver_names) : clb_dl_open(v->driver_names);
}

static clb_status open_driver(clb_gpu *g) {
  const clb_gpu_vendor *v = g->vendor;
  g->driver_library = open_library(v);
  if (!g->driver_library)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE,
                    "%s: %s cannot be opened: is %s's driver installed?", v->name,
                    v->driver_library, v->maker);
  const char *missing =
      clb_dl_symbols(g->driver_library, v->driver_symbols.table, v->driver_symbols.n, &g->driver);
  if (missing)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: %s has no %s: the driver is too old",
                    v->name, v->driver_library, missing);
  int n = 0;
  clb_status s = CLB_GPU_CALL(g, init, 0);
  if (!s) s = CLB_GPU_CALL(g, count, &n);
  if (s || !n)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: the driver finds no %s GPU here (%s)",
                    v->name, v->maker, s ? g->head.error->text.s : "it counts 0");
  if (g->ordinal >= n)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE,
                    "%s:%d: there %s %d %s GPU%s here, counted from 0", v->name, g->ordinal,
                    n > 1 ? "are" : "is", n, v->maker, n > 1 ? "s" : "");
  return CLB_OK;
}

/* "gfx90a:sramecc+:xnack-": stored after the device's name, at an offset that depends on the
   version of ROCm. */
static clb_status find_target(clb_gpu *g) {
  char properties[8192] = {0};
  clb_status s = CLB_OK;
  if (g->driver.properties_6)
    s = clb_gpu_check_named(g, "hipGetDevicePropertiesR0600",
                            g->driver.properties_6(properties, g->ordinal));
  else if (g->driver.properties)
    s = clb_gpu_check_named(g, "hipGetDeviceProperties",
                            g->driver.properties(properties, g->ordinal));
  if (s) return s;
  for (size_t at = 256; at + sizeof g->target < sizeof properties; at++)
    if (!memcmp(properties + at, "gfx", 3)) {
      memcpy(g->target, properties + at, sizeof g->target - 1);
      return CLB_OK;
    }
  return clb_fail(g->head.error, CLB_ERROR_DRIVER,
                  "%s: the driver does not say which gfx target this is", g->name);
}

static clb_status find_numbers(clb_gpu *g, int *warp, int *local, int *max, int *units) {
  const clb_gpu_vendor *v = g->vendor;
  int pageable = 0;
  clb_status s = CLB_GPU_CALL(g, attribute, &g->threads, v->threads, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, warp, v->warp, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, local, v->local, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, units, v->units, g->ordinal);
  if (!g->driver.attribute(&pageable, v->pageable, g->ordinal)) g->pageable = pageable != 0;
  if (v == &amd) return s ? s : find_target(g);
  int major = 0, minor = 0;
  if (!s) s = CLB_GPU_CALL(g, attribute, &major, CUDA_MAJOR, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, &minor, CUDA_MINOR, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, attribute, max, CUDA_MAX_LOCAL, g->ordinal);
  snprintf(g->target, sizeof g->target, "sm_%d%d", major, minor);
  return s;
}

static void set_limits(clb_gpu *g, int warp, int local, int max, int units) {
  const bool cuda = g->vendor->language == CLB_LANGUAGE_CUDA,
             vectors = cuda && atoi(g->target + strlen(g->vendor->target_prefix)) >= 90;
  g->head.limits = (clb_limits){.lanes = {warp, warp},
                                .max_subgroups = g->threads / warp,
                                .local_bytes = local,
                                .max_local_bytes = max,
                                .registers = g->vendor->registers,
                                .units = units,
                                .subgroups = true,
                                .f64 = true,
                                .async_copies = cuda,
                                .vector_atomics = vectors};
  g->head.dialect = (clb_dialect){.language = g->vendor->language,
                                  .subgroups = true,
                                  .float_atomics = true,
                                  .vector_atomics = vectors};
  g->head.info = (clb_device_info){.name = g->name,
                                   .backend = g->vendor->name,
                                   .vendor = g->vendor->maker,
                                   .description = g->description,
                                   .driver = g->driver_text,
                                   .f64 = 1,
                                   .sub_group_sizes = {warp}};
}

/* Describes a device without creating a context. */
static clb_status describe(clb_gpu *g) {
  char model[256] = "";
  size_t memory = 0;
  int warp = 0, local = 0, max = 0, units = 0, version = 0;
  clb_status s = find_numbers(g, &warp, &local, &max, &units);
  if (!s) s = CLB_GPU_CALL(g, name, model, (int)sizeof model - 1, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, memory, &memory, g->ordinal);
  if (!s) s = CLB_GPU_CALL(g, version, &version);
  if (s) return s;
  if (warp < 1 || g->threads < warp)
    return clb_fail(g->head.error, CLB_ERROR_DRIVER, "%s: the driver says %d lanes and %d threads",
                    g->name, warp, g->threads);
  set_limits(g, warp, local, max, units);
  snprintf(g->description, sizeof g->description, "%s, %s", model, g->target);
  bool nv = g->vendor == &nvidia; /* 13020 is 13.2; 50221153 is 5.2 */
  snprintf(g->driver_text, sizeof g->driver_text, "driver %d.%d (%d)",
           version / (nv ? 1000 : 10000000), nv ? version % 1000 / 10 : version / 100000 % 100,
           version);
  g->head.info.runs = 1;
  g->head.info.memory_bytes = memory;
  return CLB_OK;
}

/* The stream's context, else the thread's, else the device's own. */
static clb_status find_context(clb_gpu *g, const clb_native *adopt) {
  clb_status s = CLB_OK;
  clb_gpu_guard t;
  int device = g->ordinal;
  if (adopt && adopt->queue) s = CLB_GPU_CALL(g, stream_context, adopt->queue, &g->context);
  else if (adopt) s = CLB_GPU_CALL(g, context_current, &g->context);
  if (!s && !g->context) {
    s = CLB_GPU_CALL(g, retain, &g->context, g->ordinal);
    g->retained = !s;
  }
  if (s) return s;
  s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, context_device, &device);
  clb_gpu_leave(g, &t);
  if (!s && device != g->ordinal)
    s = clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s: the caller's stream belongs to cuda:%d",
                 g->name, device);
  return s;
}

static clb_status find_stream(clb_gpu *g, const clb_native *adopt) {
  clb_gpu_guard t;
  clb_status s = CLB_OK;
  if (g->vendor == &nvidia) s = find_context(g, adopt);
  if (s) return s;
  if (adopt) {
    g->stream = adopt->queue;
    return CLB_OK;
  }
  s = clb_gpu_enter(g, &t);
  if (!s) s = CLB_GPU_CALL(g, stream_create, &g->stream, 0);
  g->own_stream = !s;
  clb_gpu_leave(g, &t);
  return s;
}

static void close_device(clb_device *device) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_guard t = {0};
  if (!g) return;
  clb_gpu_close_blas(g);
  if (g->own_stream) {
    if (clb_gpu_enter(g, &t) == CLB_OK) g->driver.stream_wait(g->stream);
    g->driver.stream_destroy(g->stream);
  }
  clb_gpu_leave(g, &t);
  if (g->retained) g->driver.release(g->ordinal);
  free(g);
}

/* The number after ":"; -1 if it is not a number. */
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

/* Opt-in local memory per group in KB, by compute capability; 0: unknown. */
static int max_local(const char *target) {
  static const struct {
    const char *target;
    int kilobytes;
  } table[] = {{"sm_75", 64}, {"sm_80", 163}, {"sm_86", 99},   {"sm_87", 163},
               {"sm_89", 99}, {"sm_90", 227}, {"sm_100", 227}, {"sm_120", 99}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(target, table[i].target)) return table[i].kilobytes << 10;
  return 0;
}

/* A compile-only target; its wave is 64 lanes on GCN and CDNA, 32 on RDNA. */
static clb_status open_target(clb_gpu *g, const char *target) {
  const clb_gpu_vendor *v = g->vendor;
  bool wide = v == &amd && strncmp(target, "gfx1", 4);
  if (strncmp(target, v->target_prefix, strlen(v->target_prefix)) || strlen(target) >= 32)
    return clb_fail(g->head.error, CLB_ERROR_DEVICE, "%s@%s: a target of %s looks like %s@%s",
                    v->name, target, v->name, v->name, v->targets[0]);
  snprintf(g->target, sizeof g->target, "%s", target);
  snprintf(g->name, sizeof g->name, "%s@%s", v->name, target);
  snprintf(g->description, sizeof g->description, "%s %s, compile only", v->maker, target);
  g->threads = 1024;
  set_limits(g, wide ? 64 : 32, v == &amd ? 65536 : 49152, max_local(target), 1);
  return clb_gpu_compiler_open(g);
}

static clb_status open_named(const clb_gpu_vendor *v, const char *name, const char *rest,
                             const clb_native *adopt, clb_error_sink *error, clb_device **device) {
  clb_status s;
  *device = NULL;
  clb_gpu *g = create(v, error);
  if (!g) return CLB_ERROR_MEMORY;
  g->ordinal = ordinal_of(rest);
  if (*rest == '@')
    s = adopt ? clb_fail(error, CLB_ERROR_ARGUMENT, "%s only compiles: it cannot adopt a stream",
                         name)
              : open_target(g, rest + 1);
  else if (g->ordinal < 0)
    s = clb_fail(error, CLB_ERROR_DEVICE, "no device \"%s\": write \"%s\", \"%s:0\" or \"%s@%s\"",
                 name, v->name, v->name, v->name, v->targets[0]);
  else s = open_device(g, adopt);
  if (s) close_device(&g->head);
  else *device = &g->head;
  return s;
}
static clb_status open_cuda(const char *name, const char *rest, const clb_native *adopt,
                            clb_error_sink *error, clb_device **device) {
  return open_named(&nvidia, name, rest, adopt, error, device);
}
static clb_status open_hip(const char *name, const char *rest, const clb_native *adopt,
                           clb_error_sink *error, clb_device **device) {
  return open_named(&amd, name, rest, adopt, error, device);
}

static void list(const clb_gpu_vendor *v, void (*each)(const clb_device_info *info, void *user),
                 void *user) {
  clb_error_sink ignored = {0};
  bool more = true;
  for (int ordinal = 0; more; ordinal++) {
    clb_gpu *g = create(v, &ignored);
    if (!g) break;
    g->ordinal = ordinal;
    more = open_driver(g) == CLB_OK;
    snprintf(g->name, sizeof g->name, "%s:%d", v->name, ordinal);
    if (more && describe(g) == CLB_OK) each(&g->head.info, user);
    close_device(&g->head);
  }
  for (const char *const *target = v->targets; *target; target++) {
    clb_gpu *g = create(v, &ignored);
    if (!g) break;
    if (open_target(g, *target) == CLB_OK) each(&g->head.info, user);
    close_device(&g->head);
  }
  clb_text_free(&ignored.text);
}
static void list_cuda(void (*each)(const clb_device_info *info, void *user), void *user) {
  list(&nvidia, each, user);
}
static void list_hip(void (*each)(const clb_device_info *info, void *user), void *user) {
  list(&amd, each, user);
}

#define COMMON                                                                                     \
  .close = close_device, .alloc = clb_gpu_alloc, .free_bytes = clb_gpu_free_bytes,                 \
  .free = clb_gpu_free, .wrap = clb_gpu_wrap, .write = clb_gpu_write, .read = clb_gpu_read,        \
  .alloc_ipc = clb_gpu_alloc_ipc, .open_ipc = clb_gpu_open_ipc, .free_ipc = clb_gpu_free_ipc,      \
  .copy = clb_gpu_copy, .reach = clb_gpu_reach, .pin = clb_gpu_pin, .unpin = clb_gpu_unpin,        \
  .post = clb_gpu_post, .build = clb_gpu_build, .load = clb_gpu_load, .unload = clb_gpu_unload,    \
  .launch = clb_gpu_launch, .wait = clb_gpu_wait, .open_blas = clb_gpu_open_blas,                  \
  .gemm = clb_gpu_gemm, .can_gemm = clb_gpu_can_gemm, .record = clb_gpu_record,                    \
  .replay = clb_gpu_replay, .forget = clb_gpu_forget, .report = clb_gpu_report
const clb_backend clb_backend_cuda = {.name = "cuda", .list = list_cuda, .open = open_cuda, COMMON};
const clb_backend clb_backend_hip = {.name = "hip", .list = list_hip, .open = open_hip, COMMON};
