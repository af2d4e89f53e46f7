/* backends/cuda_hip/gpu.h - what the files of the CUDA and HIP backends share. */
#ifndef CLB_BACKENDS_CUDA_HIP_GPU_H
#define CLB_BACKENDS_CUDA_HIP_GPU_H

#include "src/base/dl.h"
#include "backends/backend.h"

/* field, arguments, CUDA's symbol, HIP's symbol; enumerants that differ stand in clb_gpu_vendor. */
#define CLB_GPU_CALLS(X)                                                                           \
  X(init, (unsigned flags), "cuInit", "hipInit")                                                   \
  X(version, (int *version), "cuDriverGetVersion", "hipRuntimeGetVersion")                         \
  X(count, (int *n), "cuDeviceGetCount", "hipGetDeviceCount")                                      \
  X(name, (char *name, int size, int device), "cuDeviceGetName", "hipDeviceGetName")               \
  X(memory, (size_t * bytes, int device), "cuDeviceTotalMem_v2", "hipDeviceTotalMem")              \
  X(attribute, (int *value, int which, int device), "cuDeviceGetAttribute",                        \
    "hipDeviceGetAttribute")                                                                       \
  X(alloc, (void **memory, size_t bytes), "cuMemAlloc_v2", "hipMalloc")                            \
  X(free, (void *memory), "cuMemFree_v2", "hipFree")                                               \
  X(write, (void *to, const void *from, size_t bytes, void *stream), "cuMemcpyHtoDAsync_v2",       \
    "hipMemcpyHtoDAsync")                                                                          \
  X(read, (void *to, void *from, size_t bytes, void *stream), "cuMemcpyDtoHAsync_v2",              \
    "hipMemcpyDtoHAsync")                                                                          \
  X(stream_create, (void **stream, unsigned flags), "cuStreamCreate", "hipStreamCreateWithFlags")  \
  X(stream_destroy, (void *stream), "cuStreamDestroy_v2", "hipStreamDestroy")                      \
  X(stream_wait, (void *stream), "cuStreamSynchronize", "hipStreamSynchronize")                    \
  X(module_load, (void **module, const void *binary), "cuModuleLoadData", "hipModuleLoadData")     \
  X(module_unload, (void *module), "cuModuleUnload", "hipModuleUnload")                            \
  X(function, (void **function, void *module, const char *name), "cuModuleGetFunction",            \
    "hipModuleGetFunction")                                                                        \
  X(pointer, (void *value, int which, const void *pointer), "cuPointerGetAttribute",               \
    "hipPointerGetAttribute")                                                                      \
  X(launch,                                                                                        \
    (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
     unsigned local, void *stream, void **params, void **extra),                                   \
    "cuLaunchKernel", "hipModuleLaunchKernel")
/* Graphs; they are not used if the driver lacks one of these. */
#define CLB_GPU_GRAPH_CALLS(X)                                                                     \
  X(capture_begin, (void *stream, int mode), "cuStreamBeginCapture_v2", "hipStreamBeginCapture")   \
  X(capture_end, (void *stream, void **graph), "cuStreamEndCapture", "hipStreamEndCapture")        \
  X(graph_instantiate, (void **runnable, void *graph, unsigned long long flags),                   \
    "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags")                                 \
  X(graph_upload, (void *runnable, void *stream), "cuGraphUpload", "hipGraphUpload")               \
  X(graph_launch, (void *runnable, void *stream), "cuGraphLaunch", "hipGraphLaunch")               \
  X(graph_destroy, (void *graph), "cuGraphDestroy", "hipGraphDestroy")                             \
  X(runnable_destroy, (void *runnable), "cuGraphExecDestroy", "hipGraphExecDestroy")
/* Page-locked memory; there is none if the driver lacks one of these. */
#define CLB_GPU_PIN_CALLS(X)                                                                       \
  X(pin, (void **memory, size_t bytes, unsigned flags), "cuMemHostAlloc", "hipHostMalloc")         \
  X(unpin, (void *memory), "cuMemFreeHost", "hipHostFree")
/* Memory of other processes; there is none if the driver lacks one of these. */
#define CLB_GPU_IPC_CALLS(X)                                                                       \
  X(ipc_handle, (clb_ipc_bytes * handle, void *memory), "cuIpcGetMemHandle", "hipIpcGetMemHandle") \
  X(ipc_open, (void **memory, clb_ipc_bytes handle, unsigned flags), "cuIpcOpenMemHandle_v2",      \
    "hipIpcOpenMemHandle")                                                                         \
  X(ipc_close, (void *memory), "cuIpcCloseMemHandle", "hipIpcCloseMemHandle")                      \
  X(copy, (void *to, void *from, size_t bytes, void *stream), "cuMemcpyDtoDAsync_v2",              \
    "hipMemcpyDtoDAsync")
/* Memory of other GPUs of the process; there is none if the driver lacks one of these. */
#define CLB_GPU_PEER_CALLS(X)                                                                      \
  X(peer_can, (int *can, int device, int owner), "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer")
/* CUDA has contexts, HIP a current device. */
#define CLB_CUDA_CALLS(X)                                                                          \
  X(retain, (void **context, int device), "cuDevicePrimaryCtxRetain", )                            \
  X(release, (int device), "cuDevicePrimaryCtxRelease_v2", )                                       \
  X(context_current, (void **context), "cuCtxGetCurrent", )                                        \
  X(context_push, (void *context), "cuCtxPushCurrent_v2", )                                        \
  X(context_pop, (void **context), "cuCtxPopCurrent_v2", )                                         \
  X(context_device, (int *device), "cuCtxGetDevice", )                                             \
  X(stream_context, (void *stream, void **context), "cuStreamGetCtx", )                            \
  X(function_set, (void *function, int which, int value), "cuFuncSetAttribute", )
#define CLB_HIP_CALLS(X)                                                                           \
  X(device_current, (int *device), , "hipGetDevice")                                               \
  X(device_set, (int device), , "hipSetDevice")

/* NVRTC and hiprtc. */
#define CLB_GPU_COMPILER_CALLS(X)                                                                  \
  X(version, (int *major, int *minor), "nvrtcVersion", "hiprtcVersion")                            \
  X(create,                                                                                        \
    (void **program, const char *text, const char *name, int headers, const char *const *header,   \
     const char *const *include),                                                                  \
    "nvrtcCreateProgram", "hiprtcCreateProgram")                                                   \
  X(destroy, (void **program), "nvrtcDestroyProgram", "hiprtcDestroyProgram")                      \
  X(compile, (void *program, int options, const char *const *option), "nvrtcCompileProgram",       \
    "hiprtcCompileProgram")                                                                        \
  X(log_size, (void *program, size_t *bytes), "nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize") \
  X(log, (void *program, char *log), "nvrtcGetProgramLog", "hiprtcGetProgramLog")                  \
  X(code_size, (void *program, size_t *bytes), "nvrtcGetCUBINSize", "hiprtcGetCodeSize")           \
  X(code, (void *program, char *code), "nvrtcGetCUBIN", "hiprtcGetCode")

/* cuBLAS and rocBLAS; alpha and beta lie on the host.  set_mode: cublasMath_t,
   rocblas_atomics_mode. */
#define CLB_GPU_GEMM                                                                               \
  (void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int ld_a,  \
   long long stride_a, const void *b, int ld_b, long long stride_b, const void *beta, void *c,     \
   int ld_c, long long stride_c, int count)
#define CLB_GPU_BLAS_CALLS(X)                                                                      \
  X(create, (void **handle), "cublasCreate_v2", "rocblas_create_handle")                           \
  X(destroy, (void *handle), "cublasDestroy_v2", "rocblas_destroy_handle")                         \
  X(set_stream, (void *handle, void *stream), "cublasSetStream_v2", "rocblas_set_stream")          \
  X(set_mode, (void *handle, int mode), "cublasSetMathMode", "rocblas_set_atomics_mode")           \
  X(f64, CLB_GPU_GEMM, "cublasDgemmStridedBatched", "rocblas_dgemm_strided_batched")               \
  X(f32, CLB_GPU_GEMM, "cublasSgemmStridedBatched", "rocblas_sgemm_strided_batched")

#define CLB_CALL(field, args, cuda, hip) CLB_GPU_##field,
enum {
  CLB_GPU_CALLS(CLB_CALL) CLB_GPU_GRAPH_CALLS(CLB_CALL) CLB_GPU_IPC_CALLS(CLB_CALL)
      CLB_GPU_PEER_CALLS(CLB_CALL) CLB_CUDA_CALLS(CLB_CALL) CLB_HIP_CALLS(CLB_CALL) CLB_GPU_N_CALLS
};
#undef CLB_CALL
#define CLB_CALL(field, args, cuda, hip) CLB_GPU_COMPILER_##field,
enum { CLB_GPU_COMPILER_CALLS(CLB_CALL) CLB_GPU_N_COMPILER_CALLS };
#undef CLB_CALL

#define CLB_CALL(field, args, cuda, hip) int(*field) args;
typedef struct {
  CLB_GPU_CALLS(CLB_CALL)
  CLB_GPU_GRAPH_CALLS(CLB_CALL)
  CLB_GPU_PIN_CALLS(CLB_CALL)
  CLB_GPU_IPC_CALLS(CLB_CALL)
  CLB_GPU_PEER_CALLS(CLB_CALL)
  CLB_CUDA_CALLS(CLB_CALL)
  CLB_HIP_CALLS(CLB_CALL)
  int (*memory_info)(size_t *free, size_t *all); /* may be NULL */
  int (*cuda_update)(void *runnable, void *graph,
                     void *what); /* for an executable graph; may be NULL */
  int (*hip_update)(void *runnable, void *graph, void **node, int *what);
  int (*cuda_peer)(void *context, unsigned flags); /* of the owner; may be NULL, as the next */
  int (*hip_peer)(int device, unsigned flags);
  int (*cuda_error_name)(int code, const char **name),
      (*cuda_error_text)(int code, const char **text);
  const char *(*hip_error_name)(int code), *(*hip_error_text)(int code);
  int (*properties)(void *properties, int device); /* HIP; its layout has changed, so two names */
  int (*properties_6)(void *properties, int device);
} clb_gpu_driver;
typedef struct {
  CLB_GPU_COMPILER_CALLS(CLB_CALL)
  const char *(*error_text)(int code);
  int (*n_targets)(int *n), (*targets)(int *number); /* NVRTC only: 90 for sm_90 */
} clb_gpu_compiler;
typedef struct {
  CLB_GPU_BLAS_CALLS(CLB_CALL)
  const char *(*text)(int code);
  void *handle; /* NULL until the first op that needs matrix products */
} clb_gpu_blas;
#undef CLB_CALL

typedef struct {
  const clb_symbol *table;
  size_t n;
} clb_gpu_symbols;

/* The differences between the two vendors. Lists end with NULL. */
typedef struct {
  const clb_backend *backend;
  clb_language language;
  const char *name, *maker;
  const char *driver_library, *const *driver_names;
  clb_gpu_symbols driver_symbols;
  const char *const *call_names; /* by CLB_GPU_... */
  const char *compiler_name, *const *compiler_names;
  clb_gpu_symbols compiler_symbols;
  const char *const *options;                 /* for the compiler, besides the target */
  const char *target_prefix, *const *targets; /* compile-only targets to list */
  int threads, warp, units, local, pageable;  /* enumerants of `attribute` */
  int registers;
} clb_gpu_vendor;

enum { CLB_GPU_PEERS = 64 }; /* GPUs of a host at most that read each other's memory */
typedef struct {
  clb_device head;
  const clb_gpu_vendor *vendor;
  void *driver_library, *compiler_library;
  clb_gpu_driver driver;
  clb_gpu_compiler compiler;
  clb_gpu_blas blas;
  int ordinal;
  void *context, *stream;
  bool retained, own_stream;
  const void *reached[CLB_GPU_PEERS]; /* of clb_gpu_reach, by ordinal */
  bool pageable;                      /* the device can read any host memory */
  int threads;                        /* maximum per group */
  char target[128];                   /* "sm_90", "gfx90a:sramecc+:xnack-" */
  char clang[256]; /* HIP: the clang that compiles where hiprtc does not know the target; else empty
                    */
  char name[160], description[400], driver_text[160];
} clb_gpu;

/* CLB_OK for 0; otherwise an error with the call's name and the driver's own message. */
clb_status clb_gpu_check_named(clb_gpu *g, const char *call, int code);
clb_status clb_gpu_check(clb_gpu *g, int call, int code);
#define CLB_GPU_CALL(g, field, ...)                                                                \
  clb_gpu_check(g, CLB_GPU_##field, (g)->driver.field(__VA_ARGS__))

/* Context guard: between these two calls the device's context (CUDA) or device (HIP) is current in
   the calling thread; afterwards the thread's own is restored. */
typedef struct {
  bool changed;
  int device;
} clb_gpu_guard;
clb_status clb_gpu_enter(clb_gpu *g, clb_gpu_guard *t);
void clb_gpu_leave(clb_gpu *g, const clb_gpu_guard *t);

/* Functions of backend.h for memory and kernels. */
clb_status clb_gpu_alloc(clb_device *device, uint64_t bytes, clb_memory *memory);
uint64_t clb_gpu_free_bytes(clb_device *device);
void clb_gpu_free(clb_device *device, clb_memory *memory);
clb_status clb_gpu_wrap(clb_device *device, clb_memory *memory);
clb_status clb_gpu_write(clb_device *device, const clb_memory *to, uint64_t offset,
                         const void *from, uint64_t bytes);
clb_status clb_gpu_post(clb_device *device, const clb_memory *to, uint64_t offset, const void *from,
                        uint64_t bytes);
clb_status clb_gpu_read(clb_device *device, const clb_memory *from, uint64_t offset, void *to,
                        uint64_t bytes);
clb_status clb_gpu_alloc_ipc(clb_device *device, uint64_t bytes, clb_ipc_bytes *handle,
                             clb_memory *memory);
clb_status clb_gpu_open_ipc(clb_device *device, uint64_t bytes, const clb_ipc_bytes *handle,
                            clb_memory *memory);
void clb_gpu_free_ipc(clb_device *device, clb_memory *memory, bool opened);
clb_status clb_gpu_copy(clb_device *device, const clb_memory *to, uint64_t to_offset,
                        const clb_memory *from, uint64_t from_offset, uint64_t bytes);
clb_status clb_gpu_reach(clb_device *device, clb_device *owner);
bool clb_gpu_pin(clb_device *device, uint64_t bytes, clb_host_memory *memory);
void clb_gpu_unpin(clb_device *device, clb_host_memory *memory);
clb_status clb_gpu_build(clb_device *device, const ir_kernel *k, const clb_text *text,
                         clb_text *binary);
clb_status clb_gpu_load(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                        clb_module **module);
void clb_gpu_unload(clb_device *device, clb_module *module);
clb_status clb_gpu_launch(clb_device *device, clb_module *m, int64_t groups, const clb_arg *args,
                          int n);
clb_status clb_gpu_wait(clb_device *device);

clb_status clb_gpu_open_blas(clb_device *device, clb_dtype type, bool *partly);
clb_status clb_gpu_can_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *product);
clb_status clb_gpu_gemm(clb_device *device, clb_dtype type, const clb_gemm_desc *product);
void clb_gpu_close_blas(clb_gpu *g);

void clb_gpu_record(clb_device *device, const clb_work *work, int64_t n, clb_recorded **recorded);
clb_status clb_gpu_replay(clb_device *device, clb_recorded *recorded);
void clb_gpu_forget(clb_device *device, clb_recorded *recorded);

/* Opens the compiler for g->target: NVRTC, hiprtc or a clang. */
clb_status clb_gpu_compiler_open(clb_gpu *g);
/* Compiles a kernel's text. verbose: with the assembler's report on registers; `log`, if not NULL,
   receives the log. */
clb_status clb_gpu_compile(clb_gpu *g, const char *name, const clb_text *text, bool verbose,
                           clb_text *binary, clb_text *log);
clb_status clb_gpu_report(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                          clb_report *report);

/* Counts of machine instructions, from the binary's bytes (NVIDIA) or llvm-objdump's listing
 (AMD). */
typedef struct {
  int64_t loaded, stored; /* bytes of global memory */
  int fmas, instructions, accesses;
} clb_gpu_traffic;
void clb_gpu_count_sass(const unsigned char *code, size_t n, clb_gpu_traffic *t);
void clb_gpu_count_listing(const char *listing, clb_gpu_traffic *t);

/* Describes which part, according to its ELF header, is missing from a binary; NULL: it is
   complete, or not ELF. */
const char *clb_gpu_elf_error(const void *binary, size_t bytes);

/* A clang that compiles HIP without any headers, found on the PATH; empty if there is none. */
void clb_gpu_clang_find(char *path, size_t size);
/* Whether g->clang compiles for g->target. */
bool clb_gpu_clang_knows(clb_gpu *g);
/* A text that changes whenever that clang changes. */
void clb_gpu_clang_identity(const char *path, char *text, size_t size);
clb_status clb_gpu_clang(clb_gpu *g, const char *name, const clb_text *text, clb_text *binary);
/* llvm-objdump's listing of a code object; false where there is none. */
bool clb_gpu_objdump(const void *binary, size_t bytes, clb_text *listing);

#endif
