/* clebsch.h - kernels of O(3)-equivariant networks on Intel, NVIDIA and AMD GPUs and on CPUs.

   There are four kinds of object. A *context* is one open device with its queue; a *buffer* is
   memory on that device; a *graph* is a sorted list of edges; an *op* is a compiled operation. Ops
   are compiled when created, never when executed; executing neither allocates, transfers nor waits;
   clb_wait waits.

   Threads: a context and all that belongs to it is used by one thread at a time; different contexts
   at the same time, also on one device. clb_devices, clb_version and clb_status_text may be called
   at any time. Callbacks run in the calling thread, and must not call Clebsch with the context that
   calls them, but for clb_error. After fork the child may use contexts on "cpu" that it opens
   itself or that the parent had; contexts on GPUs belong to the process that opened them.

   Every function that can fail returns a clb_status; clb_error(ctx) then returns the full message.
   Destroy functions take the address of the handle, accept NULL, and set the handle to NULL. */
#ifndef CLEBSCH_CLEBSCH_H
#define CLEBSCH_CLEBSCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLB_API __attribute__((visibility("default")))
#else
#define CLB_API
#endif

/* A function that also tells the library the size of the structs that it takes: in a later version
   they may have more members, at their ends (docs/abi.md). */
#define CLB_SIZED static inline

/* Numbers for #if: CLB_VERSION_NUMBER grows with every version. */
#define CLB_VERSION "0.3.0"
#define CLB_VERSION_MAJOR 0
#define CLB_VERSION_MINOR 3
#define CLB_VERSION_PATCH 0
#define CLB_VERSION_NUMBER                                                                         \
  (CLB_VERSION_MAJOR * 1000000 + CLB_VERSION_MINOR * 1000 + CLB_VERSION_PATCH)

#define CLB_STATUSES(X)                                                                            \
  X(CLB_OK, "no error")                                                                            \
  X(CLB_ERROR_ARGUMENT, "an argument is wrong")                                                    \
  X(CLB_ERROR_MEMORY, "out of memory")                                                             \
  X(CLB_ERROR_DEVICE, "no such device")                                                            \
  X(CLB_ERROR_DRIVER, "a driver call failed")                                                      \
  X(CLB_ERROR_COMPILE, "a compiler refused a kernel")                                              \
  X(CLB_ERROR_UNSUPPORTED, "this device cannot do that")                                           \
  X(CLB_ERROR_INTERNAL, "a mistake inside Clebsch; please report it")

typedef enum {
#define CLB_STATUS(name, text) name,
  CLB_STATUSES(CLB_STATUS)
#undef CLB_STATUS
} clb_status;

/* How numbers are stored, f32 where nothing is said. Arithmetic, a member of each description, is
   CLB_F32 or CLB_F64. */
typedef enum { CLB_F32, CLB_F64, CLB_F16, CLB_BF16 } clb_dtype;

/* Each pass is the derivative of the previous one. CLB_TRIPLE_BACKWARD: tensor products only. */
typedef enum { CLB_FORWARD, CLB_BACKWARD, CLB_DOUBLE_BACKWARD, CLB_TRIPLE_BACKWARD } clb_pass;
#define CLB_PASS_BIT(pass) (1u << (pass)) /* for the `passes` of an op's description */
#define CLB_MEASURE (1u << 30)            /* may be added to `passes`: see tuning */

typedef struct clb_context clb_context;
typedef struct clb_buffer clb_buffer;
typedef struct clb_op clb_op;

/* Those of the library, which may be newer than this header: CLB_VERSION and CLB_VERSION_NUMBER. */
CLB_API const char *clb_version(void);
CLB_API int clb_version_number(void);

/* "no error", "an argument is wrong", ...: a static string. */
CLB_API const char *clb_status_text(clb_status status);

/* ---- devices ---- */

typedef struct {
  const char *name; /* what clb_context_create takes: "cuda:0", "opencl:0:1", "cpu", "hip@gfx942" */
  const char *backend; /* "cpu", "opencl", "level_zero", "cuda", "hip" */
  const char *vendor, *description, *driver;
  int runs;               /* 0: this target only compiles */
  uint64_t memory_bytes;  /* 0 where unknown */
  int f64;                /* 1: computes in double precision */
  int sub_group_sizes[8]; /* ends at the first 0; empty where the device has no sub-groups */
  uint64_t held_bytes, most_bytes; /* of device memory, by a context's buffers, graphs, ops and
                                      models: now, and at most so far; of clb_devices 0 */
} clb_device_info;

/* Calls each(info, user) for every device found, then for every compile-only target whose compiler
   is installed; info and its strings live for that call only. Missing drivers are not an error. */
CLB_API clb_status clb_devices(void (*each)(const clb_device_info *info, void *user), void *user);

/* ---- context ---- */

/* device: NULL or "": $CLB_DEVICE, else the first of cuda, hip, level_zero, a GPU through opencl,
   cpu that opens. "cuda:1", "hip", "level_zero:0", "level_zero:0.1" (a tile),
   "opencl:PLATFORM:DEVICE", "cpu" (the system's C compiler, or the interpreter where there is
   none), "cpu:threads=4" (the same with so many threads; "cpu" has one for each core that the
   process may use), "cpu:interpreter"; compile-only: "hip@gfx90a", "hip@gfx942", "cuda@sm_90",
   "level_zero@pvc". An explicit request never falls back. On failure *ctx is NULL, and clb_error
   of it has the message. */
CLB_API clb_status clb_context_create(const char *device, clb_context **ctx);

/* The caller's own handles. They must outlive the context and everything created with it, and the
   caller keeps ownership. They are passed to the driver unchecked. Work goes to the caller's queue,
   in order.
     cuda        queue: CUstream (NULL: the legacy default stream)
     hip         queue: hipStream_t (NULL: the default stream)
     opencl      context: cl_context, device: cl_device_id, queue: cl_command_queue, in order
     level_zero  driver: ze_driver_handle_t, context: ze_context_handle_t,
                 device: ze_device_handle_t, queue: an immediate ze_command_list_handle_t
   `device` names the backend and, for cuda and hip, the ordinal: "cuda:1". */
typedef struct {
  void *driver, *context, *device, *queue;
} clb_native;
CLB_API clb_status clb_context_adopt(const char *device, const clb_native *native,
                                     clb_context **ctx);

/* May be called before the objects created with the context are destroyed: buffers, graphs, ops,
   recordings and models keep the device open and continue to work, and destroying the last of them
   closes it. Their failures then return only a status: clb_error does not know it. Ends a recording
   or profile that is still in progress. */
CLB_API void clb_context_destroy(clb_context **ctx);

/* The message of the last failure: function, argument, the driver's own message, the whole compiler
   log. A call that opens no context, or whose handle is NULL (an op, buffer, graph, recording,
   model or context), has none to keep its message: it is kept for the thread, and is the answer,
   for any context and for NULL, until a later call fails on the context that is asked for. Owned by
   the context or the thread, and valid until its next call. Never NULL; "no error" if there was
   none. */
CLB_API const char *clb_error(const clb_context *ctx);

/* NULL, or a message about a problem that makes no call fail but should be fixed: kernels run on
   the interpreter because there is no C compiler, or are not kept because the cache folder cannot
   be used or none is known. Only one is kept; it is valid as long as the context, and may come with
   an op or model that is created later. */
CLB_API const char *clb_context_note(const clb_context *ctx);

/* The device of this context; the strings are valid as long as the context. */
CLB_SIZED clb_status clb_context_device(clb_context *ctx, clb_device_info *info);

/* Waits until everything submitted on this context has finished. */
CLB_API clb_status clb_wait(clb_context *ctx);

/* Peak rates of this device, measured by generated kernels (takes about a second): bytes read plus
   written per second by a copy far larger than any cache, and floating-point operations per second
   of multiply-adds in f32 and f64 (an fma counts as 2; 0 where there is no f64). */
CLB_API clb_status clb_measure_peaks(clb_context *ctx, double *copy_bytes_per_second,
                                     double *f32_per_second, double *f64_per_second);

/* Seconds of a launch that copies bytes / 2, one of several that follow each other, of memory that
   is in no cache: what reads and writes as many bytes takes at least. */
CLB_API clb_status clb_measure_copy(clb_context *ctx, uint64_t bytes, double *seconds);

/* Profiling. Between begin and end every launch is waited for and timed individually, which costs a
   few microseconds each; clb_profile_end then calls each(entry, user) for every kind of kernel, in
   the order of first launches. The entry is valid during that call only. */
typedef struct {
  const char *kernel; /* "convolution_backward"; or the BLAS library that ran a matrix product */
  int64_t launches;
  double seconds; /* total of all launches, including submission */
} clb_profile_entry;
CLB_API clb_status clb_profile_begin(clb_context *ctx);
CLB_API clb_status clb_profile_end(clb_context *ctx,
                                   void (*each)(const clb_profile_entry *entry, void *user),
                                   void *user);

/* ---- recordings ---- */

/* A sequence of ops that can be submitted again as one unit: a CUDA or HIP graph, a closed Level
   Zero command list, an OpenCL command buffer, or, where the driver has none (and on cpu, and while
   profiling), the single launches without the ops' own checks. */
typedef struct clb_recording clb_recording;

/* Between begin and end, the work that ops submit on this context is recorded instead of run. Calls
   that need the device immediately are refused meanwhile and change nothing: clb_wait,
   clb_buffer_write and _read, clb_graph_update, creating ops and graphs, another clb_record_begin.
   If any call in between failed, clb_record_end sets *recording to NULL and returns the status of
   the first failure; otherwise *recording can be replayed; it may be empty. */
CLB_API clb_status clb_record_begin(clb_context *ctx);
CLB_API clb_status clb_record_end(clb_context *ctx, clb_recording **recording);

/* Submits the whole recording again, in order; allocates nothing, waits for nothing. Scalars (n,
   offsets, strides) are as recorded, and so must a graph's numbers of nodes and edges be, or the
   replay is refused; buffers, graphs and ops must still exist. Between clb_record_begin and
   clb_record_end the replay is recorded itself. */
CLB_API clb_status clb_replay(clb_recording *recording);

/* From the next replay on, new_buffer is used wherever the recording uses old_buffer, which must
   still exist. new_buffer must be at least as large, of the same context and kind, and aligned to
   16 bytes if old_buffer is. May allocate and wait. It is an error if the recording does not use
   old_buffer. */
CLB_API clb_status clb_recording_replace(clb_recording *recording, clb_buffer *old_buffer,
                                         clb_buffer *new_buffer);

CLB_API void clb_recording_destroy(clb_recording **recording);

/* ---- buffers ---- */

/* On a device that only compiles a buffer has no memory: it serves to describe what is compiled. */
CLB_API clb_status clb_buffer_create(clb_context *ctx, uint64_t bytes, clb_buffer **buffer);

/* Memory that the caller owns. CLB_POINTER: a pointer that is valid on the device: host memory for
   cpu, CUdeviceptr / hipDeviceptr_t, Level Zero or OpenCL unified shared memory, OpenCL shared
   virtual memory. CLB_CL_MEM: a cl_mem. */
typedef enum { CLB_POINTER, CLB_CL_MEM } clb_memory_kind;
CLB_API clb_status clb_buffer_wrap(clb_context *ctx, clb_memory_kind kind, void *memory,
                                   uint64_t bytes, clb_buffer **buffer);
CLB_API void clb_buffer_destroy(clb_buffer **buffer);

/* The buffer's memory as clb_buffer_wrap takes it, for other libraries; valid as long as the
   buffer. Memory of opencl is a cl_mem unless it was wrapped as a pointer; on cpu it is host
   memory. Call clb_wait before others access it. */
CLB_API clb_status clb_buffer_native(const clb_buffer *buffer, clb_memory_kind *kind,
                                     void **memory);

/* Memory that other processes of the host open: CUDA IPC, HIP IPC, shared memory on cpu. The handle
   is bytes that the caller sends to them. _open: the same memory on a device of the same backend,
   which may be another GPU if the driver has peer access between the two; it must be destroyed
   before the owner destroys the buffer. Nothing orders what processes do with it: who writes calls
   clb_wait before it tells the others. CLB_ERROR_UNSUPPORTED where the driver has no such memory,
   as opencl and level_zero, and where the handle is another backend's; other errors are the
   driver's: CUDA opens no memory of the same process (clb_buffer_open_peer does). _open also copies
   a few bytes, and fails where they come out wrong, as between some GPUs they do. */
typedef struct {
  unsigned char bytes[128];
} clb_ipc_handle;
CLB_API clb_status clb_buffer_create_ipc(clb_context *ctx, uint64_t bytes, clb_ipc_handle *handle,
                                         clb_buffer **buffer);
CLB_API clb_status clb_buffer_open_ipc(clb_context *ctx, const clb_ipc_handle *handle,
                                       clb_buffer **buffer);

/* The memory of a buffer of clb_buffer_create, of another context of this process, for ops and
   clb_buffer_read of ctx, which read it where it is: with CUDA or HIP from one GPU to another by
   peer access, which is tried with a few bytes the first time; and among contexts of cpu.
   CLB_ERROR_UNSUPPORTED where the devices cannot. It is not written by this buffer, not used after
   the owner destroyed its own, and nothing orders what the two contexts do: the one that writes
   calls clb_wait before the other reads, and that one before the next write. */
CLB_API clb_status clb_buffer_open_peer(clb_context *ctx, const clb_buffer *of,
                                        clb_buffer **buffer);

/* Copies `bytes` between host memory and the buffer at `offset` (bytes), after all previously
   submitted work; returns when done. A new buffer holds nothing: the interpreter refuses to read
   bytes that neither an op nor clb_buffer_write has written, and runs no op that reads them. */
CLB_API clb_status clb_buffer_write(clb_buffer *buffer, uint64_t offset, const void *from,
                                    uint64_t bytes);
CLB_API clb_status clb_buffer_read(clb_buffer *buffer, uint64_t offset, void *to, uint64_t bytes);

/* Rows of numbers inside a buffer.  offset and stride count elements; row r starts at offset + r
   stride. stride CLB_DENSE, which is 0: rows are contiguous. CLB_SAME_ROW: every row is the one at
   offset (inputs only). No other stride is negative.
   index: NULL, or, for an operand that the op's description declares as indexed, a buffer of at
   least n int32 row numbers: row r is then row index[r], which must lie in the buffer (the numbers
   are not checked). */
enum { CLB_SAME_ROW = -1, CLB_DENSE = 0 };
typedef struct {
  clb_buffer *buffer;
  int64_t offset, stride;
  clb_buffer *index;
} clb_rows;

/* ---- ops: common ---- */

CLB_API void clb_op_destroy(clb_op **op);

/* What the kernel of one pass does per row, counted in its IR; a loop whose bounds are read from
   memory counts as one iteration. A pass with shared weights may use several kernels; this
   function, clb_op_report and clb_op_source describe one of them. */
typedef struct {
  double loads, stores; /* elements of global memory */
  double bytes_loaded, bytes_stored;
  double flops; /* fma = 2 */
} clb_counts;
CLB_SIZED clb_status clb_op_counts(clb_op *op, clb_pass pass, clb_counts *counts);

/* What the vendor's compiler generated; -1 where it does not report a value. Loads and stores are
   elements of global memory in the machine code, wide accesses counted by element; loads of kernel
   arguments are left out. */
typedef struct {
  int registers, spill_bytes, loads, stores;
  int fmas; /* fused multiply-adds of f32 and f64 in the machine code, packed ones counted by
               element */
  int subgroups, local_bytes; /* of one work-group, from the IR */
  int instructions, accesses; /* in the machine code; accesses: those of memory, global, local and
                                 scratch */
} clb_report;
CLB_SIZED clb_status clb_op_report(clb_op *op, clb_pass pass, clb_report *report);

/* The kernel as text in the device's language (SPIR-V words for level_zero). Owned by the op; text
   ends with a 0 byte that is not counted in `bytes`. */
CLB_API clb_status clb_op_source(clb_op *op, clb_pass pass, const char **source, size_t *bytes);

/* ---- tuning ---- */

/* A kernel is generated from a schedule. This is an estimate or, for spherical harmonics, tensor
   products, convolutions and norms, the candidate that was measured to be the fastest: wisdom.
   Creating an op uses wisdom where there is any. With CLB_MEASURE among its `passes`, creation also
   times the candidates of those passes that have no wisdom, on synthetic data, which takes up to
   256 MiB a pass and some seconds (each of up to 15 candidates is compiled). Candidates whose
   results differ from the estimate's by more than rounding are discarded; the fastest is kept in
   the context and in the file `wisdom` beside the cached kernels. Compile-only devices measure
   nothing. Schedules differ in rounding: where equal calls are documented to give equal bits, this
   holds for equal wisdom. */
typedef struct {
  const char *schedule, *estimate;  /* "lanes=32 subgroups=4 ...": the kernel's, and what it would
                                       be without wisdom; valid until the op's next clb_op_tuning */
  int measured;                     /* 1: chosen by measurement, now or earlier; 0: the estimate */
  double seconds, estimate_seconds; /* duration of a call with each schedule; 0 where nothing was
                                       measured */
} clb_tuning;
CLB_SIZED clb_status clb_op_tuning(clb_op *op, clb_pass pass, clb_tuning *tuning);

/* Export writes the wisdom for the context's device, driver, compiler and version of Clebsch as
   text, one line per kernel. Import adds the lines of a file to the context and to the wisdom file
   in the cache folder, replacing lines for the same kernels. Lines for other devices are kept for
   those devices; lines that are malformed or name no candidate are ignored; a file without any
   valid line is an error. */
CLB_API clb_status clb_wisdom_export(clb_context *ctx, const char *path);
CLB_API clb_status clb_wisdom_import(clb_context *ctx, const char *path);
/* Forgets the context's wisdom: ops created later are measured again. The wisdom file is kept. */
CLB_API clb_status clb_wisdom_forget(clb_context *ctx);

/* Bit set of optimisations to disable in ops and graphs that the context creates from now on, for
   ablation (`clebsch bench --without`); 0 (the default) disables none. Results are the same up to
   rounding. While any is disabled, CLB_MEASURE does nothing. */
enum {
  CLB_WIDE_ACCESSES = 1, /* vector loads and stores of adjacent elements; else element by element */
  CLB_REGISTER_SUMS = 2, /* sums over paths, edges or rows of a species, a receiver's row of g and
                            a species' weights, and rows of norms are kept in registers; else in
                            memory */
  CLB_SPLIT_ROWS = 4     /* long rows of a graph, and sums over all rows, are split among several
                            work-groups, and a norm's long rows among several sub-groups */
};
CLB_API clb_status clb_context_disable(clb_context *ctx, unsigned optimisations);

/* ---- real spherical harmonics ---- */

/* CLB_COMPONENT: sum_m Y^2 = 2l+1 on the unit sphere; CLB_NORM: 1; CLB_INTEGRAL: (2l+1)/(4 pi),
   e3nn's default. */
typedef enum { CLB_COMPONENT, CLB_NORM, CLB_INTEGRAL } clb_normalization;

typedef struct {
  const int *degrees; /* any order, gaps and repeats allowed; 0 <= l <= 12 (f32), 20 (f64) */
  int n_degrees;      /* 1 ... 64 */
  clb_normalization normalization;
  int normalize; /* 1: evaluate at x / max(|x|, 1e-12); gradients at x = 0 are 0 */
  clb_dtype storage;
  clb_dtype arithmetic; /* CLB_F64 (storage f64 or f32) or CLB_F32 (storage f32, f16 or bf16) */
  int accumulate;       /* 1: add to the outputs instead of overwriting them */
  unsigned passes;      /* CLB_PASS_BIT of each pass to compile */
} clb_spherical_harmonics_desc;

/* Real spherical harmonics in e3nn's convention (polar axis y, no Condon-Shortley phase, m = -l ...
   l), without `normalize` homogeneous polynomials of degree l.  Below D = sum over degrees of
   (2l+1), degrees concatenated. */
CLB_SIZED clb_status clb_spherical_harmonics_create(clb_context *ctx,
                                                    const clb_spherical_harmonics_desc *desc,
                                                    clb_op **op);

/* y[n][D] = Y(x[n][3]).  Any length unit (the same for all of x). */
CLB_API clb_status clb_spherical_harmonics_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y);

/* g_x[n][3] = sum_i g_y[n][i] dY_i/dx, from x[n][3] and g_y[n][D].  No Jacobian is stored. */
CLB_API clb_status clb_spherical_harmonics_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g_y,
                                                    clb_rows g_x);

/* The gradient of s = sum_nk h[n][k] g_x[n][k] (h: the incoming gradient of g_x):
   d_x[n][3] = ds/dx and d_g_y[n][D] = ds/dg_y, from x[n][3], g_y[n][D] and h[n][3]. */
CLB_API clb_status clb_spherical_harmonics_double_backward(clb_op *op, int64_t n, clb_rows x,
                                                           clb_rows g_y, clb_rows h, clb_rows d_x,
                                                           clb_rows d_g_y);

/* ---- Clebsch-Gordan tensor product ---- */

/* Irreps are written as in e3nn: "128x0e+64x1o+2y". White space is ignored, "3e" means "1x3e", y
   means parity (-1)^l; l <= 12, at most 512 terms. */

/* How one row of irreps lies in memory: CLB_MUL_IR [mul][2l+1] (e3nn's), CLB_IR_MUL [2l+1][mul]
   (the fastest). CLB_MERGED, for z of a convolution only: as CLB_IR_MUL, but adjacent terms of the
   same irrep are stored as one term with all their channels ("8x1o+4x1o" like "12x1o"), so that one
   matrix product for each component mixes them all. CLB_BY_CHANNEL, for symmetric contractions
   only: [mul][components of all terms] (MACE's). */
typedef enum { CLB_MUL_IR, CLB_IR_MUL, CLB_MERGED, CLB_BY_CHANNEL } clb_layout;

/* How multiplicities are connected, as in e3nn. t[u,v] = C x[u] y[v] is the product of two irreps:
     uvw    out[w] = sum_uv w[u,v,w] t[u,v]    uuu    out[u] = w[u] t[u,u]
     uvu    out[u] = sum_v w[u,v] t[u,v]       uvuv   out[u mul_y + v] = w[u,v] t[u,v]
     uvv    out[v] = sum_u w[u,v] t[u,v]       uvu<v  out[q] = w[q] t[u,v]
     uuw    out[w] = sum_u w[u,w] t[u,u]       u<vw   out[w] = sum_q w[q,w] t[u,v]
   q counts the pairs u < v, row by row.  uvw and u<vw always have weights; uuw without weights has
   one output channel. */
typedef enum {
  CLB_UVW,
  CLB_UVU,
  CLB_UVV,
  CLB_UUW,
  CLB_UUU,
  CLB_UVUV,
  CLB_UVU_HALF,
  CLB_UVW_HALF
} clb_mode;

/* One path: terms of x, y and the output (counted from 0), as in e3nn's TensorProduct. */
typedef struct {
  int in1, in2, out;
  clb_mode mode;
  int has_weight;
  double path_weight; /* >= 0; the path's coefficient is proportional to its square root; e3nn's
                         default is 1 */
} clb_instruction;

typedef enum { CLB_IRREP_COMPONENT, CLB_IRREP_NORM, CLB_IRREP_NONE } clb_irrep_normalization;
typedef enum { CLB_PATH_ELEMENT, CLB_PATH_PATH, CLB_PATH_NONE } clb_path_normalization;

/* Operands of a product, as a bit set. */
enum { CLB_OPERAND_X = 1, CLB_OPERAND_Y = 2, CLB_OPERAND_W = 4, CLB_OPERAND_Z = 8 };

typedef struct {
  const char *irreps_x, *irreps_y, *irreps_z;
  const clb_instruction *instructions;
  int n_instructions; /* 1 ... 512 */
  clb_irrep_normalization irrep_normalization;
  clb_path_normalization path_normalization;
  clb_layout layout_x, layout_y, layout_z;
  int shared_weights; /* 1: w (and c, r) is one row for all rows, and gradients of it are summed
                         over rows */
  unsigned indexed;   /* of CLB_OPERAND_X, CLB_OPERAND_Y, CLB_OPERAND_W (not shared): these operands
                         use clb_rows.index; no others may */
  unsigned gradients; /* what derivative passes compute. CLB_OPERAND_X: g_x, d_x, e_x, e_a;
                         CLB_OPERAND_Y, CLB_OPERAND_W: likewise; CLB_OPERAND_Z: d_g, e_g; 0: all.
                         Other results are neither computed nor stored, and their clb_rows may be
                         empty */
  unsigned incoming;  /* which of a (CLB_OPERAND_X), b (CLB_OPERAND_Y), c (CLB_OPERAND_W) are given;
                         the others are taken as zero; 0: all are given */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
} clb_tensor_product_desc;

/* z = T(x, y, w), linear in each: results and the order of weights agree with e3nn 0.6; elements
   that no instruction reaches are 0. Below X, Y, Z are the dimensions of the irreps, W the number
   of weights: in instruction order, only of those with has_weight, each row-major in the order of
   its letters above. There is one row of weights per row of x. With shared_weights there is a
   single row, stride and index of w, g_w, c, d_w, ... are ignored, equal calls on one device give
   equal bits, and the op keeps workspaces, each of up to 256 MiB on a GPU, in which it handles a
   block of rows at a time. */
CLB_SIZED clb_status clb_tensor_product_create(clb_context *ctx,
                                               const clb_tensor_product_desc *desc, clb_op **op);

/* z[n][Z] from x[n][X], y[n][Y], w[n][W]. */
CLB_API clb_status clb_tensor_product_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y,
                                              clb_rows w, clb_rows z);

/* The gradients of sum g z: g_x[n][X], g_y[n][Y], g_w[n][W], from the operands and g[n][Z]. */
CLB_API clb_status clb_tensor_product_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y,
                                               clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                               clb_rows g_w);

/* The gradients of sum a g_x + b g_y + c g_w, with a[n][X], b[n][Y], c[n][W]: d_x, d_y, d_w and
   d_g[n][Z]. */
CLB_API clb_status clb_tensor_product_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows y,
                                                      clb_rows w, clb_rows g, clb_rows a,
                                                      clb_rows b, clb_rows c, clb_rows d_x,
                                                      clb_rows d_y, clb_rows d_w, clb_rows d_g);

/* The gradients of sum p d_x + q d_y + r d_w + s d_g, with p[n][X], q[n][Y], r[n][W], s[n][Z], with
   respect to all inputs of double backward: e_x, e_y, e_w, e_g, e_a, e_b, e_c. p, q, r and s are
   required, whatever `gradients` and `incoming` say. */
typedef struct {
  clb_rows x, y, w, g, a, b, c, p, q, r, s;
  clb_rows e_x, e_y, e_w, e_g, e_a, e_b, e_c;
} clb_triple_operands;
CLB_API clb_status clb_tensor_product_triple_backward(clb_op *op, int64_t n,
                                                      const clb_triple_operands *operands);

/* ---- properties of a description ---- */

/* X, Y, Z and W. */
typedef struct {
  int64_t x, y, z, w;
} clb_tensor_product_sizes;
CLB_SIZED clb_status clb_tensor_product_measure(clb_context *ctx,
                                                const clb_tensor_product_desc *desc,
                                                clb_tensor_product_sizes *sizes);

/* The weights of instruction i: `count` numbers starting at number `first` of the row, of the given
   shape (unused extents are 1; without weights all fields are 0). */
typedef struct {
  int64_t first, count, shape[3];
} clb_weight_slice;
CLB_SIZED clb_status clb_tensor_product_weights(clb_context *ctx,
                                                const clb_tensor_product_desc *desc, int i,
                                                clb_weight_slice *slice);

/* mask[Z], the same in layouts CLB_MUL_IR and CLB_IR_MUL: 1 where some instruction with path_weight
   > 0 reaches the output element, else 0 (e3nn's output_mask).  size: Z. */
CLB_SIZED clb_status clb_tensor_product_mask(clb_context *ctx, const clb_tensor_product_desc *desc,
                                             unsigned char *mask, int64_t size);

/* ---- named products ---- */

/* The result of the constructors below: point a description's irreps and instructions here. About
   40 kB. */
enum { CLB_MAX_INSTRUCTIONS = 512, CLB_IRREPS_BYTES = 8192 };
typedef struct {
  char irreps_x[CLB_IRREPS_BYTES]; /* ends with a 0 byte */
  char irreps_y[CLB_IRREPS_BYTES];
  char irreps_z[CLB_IRREPS_BYTES];
  clb_instruction instructions[CLB_MAX_INSTRUCTIONS];
  int n_instructions;
} clb_instructions;

/* The channel-wise product of MACE, NequIP and similar models: mode uvu, one output term for each
   allowed (x term, y term, irrep of `filter`, whose multiplicities are ignored), every path with a
   weight. Output terms are sorted by l, then parity (that of (-1)^l first), stably. CLB_SORTED:
   instructions (and so weights) in the order of the output, as MACE has them; CLB_AS_FOUND: x term
   by x term, as NequIP. */
typedef enum { CLB_SORTED, CLB_AS_FOUND } clb_path_order;
CLB_API clb_status clb_channel_wise(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                                    const char *filter, clb_path_order order,
                                    clb_instructions *found);

/* e3nn's FullyConnectedTensorProduct: uvw, with weights, for every allowed (x term, y term, z
   term). */
CLB_API clb_status clb_fully_connected(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                                       const char *irreps_z, clb_instructions *found);

/* e3nn's FullTensorProduct: uvuv without weights, outputs sorted.  filter: the irreps to keep; NULL
   or "": all, none of which may have l > 12. Equal adjacent terms of x and of y are merged:
   found->irreps_x and irreps_y are the irreps of the rows to pass (which matters in layout
   ir_mul). */
CLB_API clb_status clb_full(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                            const char *filter, clb_instructions *found);

/* e3nn's ElementwiseTensorProduct: uuu without weights, filter as above.  Terms are merged and then
   split so that those of x and y pair up: again found->irreps_x and irreps_y are the irreps of the
   rows to pass. */
CLB_API clb_status clb_elementwise(clb_context *ctx, const char *irreps_x, const char *irreps_y,
                                   const char *filter, clb_instructions *found);

/* ---- symmetric contraction ---- */

/* MACE's product basis. A row of x holds `channels` copies of A[l][m], l = 0 ... ell, |m| <= l, of
   natural parity: its irreps are "Kx0e+Kx1o+...". A row of z holds the degrees l' asked for, in
   that order, K channels each. In each channel z[l'][m'] = sum over nu = 1 ... correlation, over
   paths p of (l', nu): w[species][p] sum over M_1 ... M_nu: U_p[m'][M_1]...[M_nu] A[M_1] ...
   A[M_nu], M = (l, m) flattened, d = (ell + 1)^2 values. The U_p of (l', nu) are an orthonormal
   basis of all equivariant tensors that are symmetric in M_1 ... M_nu: only that part of a tensor
   acts. So any U with weights W (MACE's) is replaced by weights w_p = sum_k <U_p, U_k> W_k, where
   <,> sums over all indices. clb_symmetric_contraction_basis writes them; no op keeps them. Order
   of paths: l' by l' as in `degrees`, nu by nu, within these in lexicographic order of the degrees
   l_1 <= ... <= l_nu that a path couples; docs/symmetric-contraction.md has the rest. */
typedef struct {
  int ell;            /* 0 ... 4 */
  int correlation;    /* 1 ... 4 */
  const int *degrees; /* l' of z: distinct, 0 ... 4, in any order */
  int n_degrees;
  int channels, n_species;
  clb_layout layout_x, layout_z; /* CLB_MUL_IR, CLB_IR_MUL or CLB_BY_CHANNEL; g_x, a, d_x are laid
                                    out as x, g and d_g as z */
  unsigned gradients; /* CLB_OPERAND_X: g_x, d_x; CLB_OPERAND_W: g_w, d_w; CLB_OPERAND_Z: d_g;
                         0: all. Others are not computed; their clb_rows may be empty */
  unsigned incoming;  /* which of a (CLB_OPERAND_X) and c (CLB_OPERAND_W) are given; the other is
                         taken as zero; 0: both are given */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
} clb_symmetric_contraction_desc;

/* Below X = K d, Z = K (sum of 2l'+1), W = K times the number of paths: w[n_species][paths][K].
   w.index (required): a buffer of n int32 species 0 ... n_species - 1, one for each row, in any
   order (where equal ones are adjacent, weights are read less often); not checked. c, g_w and d_w
   have a row for each species, like w; their index is NULL. Equal calls on one device give equal
   bits. An op with gradients by w keeps a workspace of up to 64 MiB, or one row of w for each
   species if that is more. */
CLB_SIZED clb_status clb_symmetric_contraction_create(clb_context *ctx,
                                                      const clb_symmetric_contraction_desc *desc,
                                                      clb_op **op);

/* z[n][Z] from x[n][X] and w. */
CLB_API clb_status clb_symmetric_contraction_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                                     clb_rows z);

/* The gradients of sum g z: g_x[n][X] and g_w[n_species][W], from the operands and g[n][Z]. */
CLB_API clb_status clb_symmetric_contraction_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                                      clb_rows g, clb_rows g_x, clb_rows g_w);

/* The gradients of sum a g_x + c g_w, with a[n][X], c[n_species][W]: d_x, d_w and d_g[n][Z]. */
CLB_API clb_status clb_symmetric_contraction_double_backward(clb_op *op, int64_t n, clb_rows x,
                                                             clb_rows w, clb_rows g, clb_rows a,
                                                             clb_rows c, clb_rows d_x, clb_rows d_w,
                                                             clb_rows d_g);

/* The paths of output degree `degree` and order nu: `count` of them, from number `first` on, of
   `all` paths of a description. Its storage, arithmetic and passes do not matter here. */
typedef struct {
  int first, count, all;
} clb_symmetric_paths;
CLB_SIZED clb_status clb_symmetric_contraction_paths(clb_context *ctx,
                                                     const clb_symmetric_contraction_desc *desc,
                                                     int degree, int nu,
                                                     clb_symmetric_paths *paths);

/* The tensor of a path: u[2 l' + 1][d]...[d] (nu times), which is symmetric and of Frobenius
   norm 1. size: the number of its elements. */
CLB_SIZED clb_status clb_symmetric_contraction_basis(clb_context *ctx,
                                                     const clb_symmetric_contraction_desc *desc,
                                                     int path, double *u, int64_t size);

/* ---- graphs ---- */

/* The edges of a directed graph from lists of their senders and receivers, in any order; repeated
   edges, self-loops and isolated nodes are allowed. The graph is kept sorted by receiver and by
   sender on the device, for any number of layers and passes. Senders and receivers are numbered
   separately (local receivers, ghost senders); where they are the same nodes, n_senders equals
   n_receivers. About 40 bytes per edge, 56 per node. */
typedef struct clb_graph clb_graph;

/* Reserves memory for `edges` edges, and for `nodes` senders and as many receivers: updates within
   these sizes do not allocate. */
CLB_API clb_status clb_graph_create(clb_context *ctx, int64_t nodes, int64_t edges,
                                    clb_graph **graph);
CLB_API void clb_graph_destroy(clb_graph **graph);

/* One number per edge, starting at element `offset`, either in host memory or in a buffer of the
   graph's context (not one of the graph's own); the other pointer is NULL. */
typedef enum { CLB_I32, CLB_I64 } clb_index_type;
typedef struct {
  const void *host;
  clb_buffer *buffer;
  int64_t offset;
} clb_index_list;

/* Replaces the edges: edge e goes from senders[e] (0 ... n_senders - 1) to receivers[e] (0 ...
   n_receivers - 1); counts are below 2^31 - 1. Unlike an op it waits for the device, to report the
   first invalid edge; the sort itself is only submitted. It allocates only if the graph grows
   beyond the reserved sizes. After a failure the graph has no nodes and no edges. */
CLB_API clb_status clb_graph_update(clb_graph *graph, int64_t n_senders, int64_t n_receivers,
                                    int64_t n_edges, clb_index_type type, clb_index_list senders,
                                    clb_index_list receivers);

/* The edges by row (CSR), all int32. Row r has the slots row_start[r] ... row_start[r + 1] - 1;
   slot p holds edge number edge[p], whose other end (by receiver: its sender, and vice versa) is
   other[p]. Edge numbers ascend within a row. The buffers belong to the graph and stay the same for
   its whole life; they hold the result of the last update and may be longer. */
typedef enum { CLB_BY_RECEIVER, CLB_BY_SENDER } clb_graph_order;
typedef struct {
  int64_t n_rows, n_edges;
  clb_buffer *row_start;    /* [n_rows + 1] */
  clb_buffer *edge, *other; /* [n_edges] */
} clb_sorted_edges;
CLB_API clb_status clb_graph_sorted(clb_graph *graph, clb_graph_order order,
                                    clb_sorted_edges *sorted);

/* The lists as given, converted to int32[n_edges]; they can be used as clb_rows.index. */
CLB_API clb_status clb_graph_lists(clb_graph *graph, clb_buffer **senders, clb_buffer **receivers);

/* ---- graph convolution ---- */

/* z[i] = scale * (sum over the edges e into i of T(x[sender(e)], y[e], w[e])), T a tensor product.
   Equal calls on one device give equal bits, unless `atomics`.  Where every path is of mode uvu
   with one channel of y (clb_channel_wise), and y has 1024 elements at most, T is *channel-wise*:
   each receiver loops over its edges, and no message is ever stored. Otherwise the messages of a
   block of edges at a time are written to the workspace and summed there. */
typedef struct {
  /* T: irreps, instructions, normalisations, layouts, gradients, incoming, storage, arithmetic,
     accumulate and passes (except triple backward) as for the tensor product; `indexed` must be 0.
     shared_weights (without knots): w is one row for all edges, and its gradients are sums over
     edges, in a fixed order; the op allocates 2 MiB for them, or 8 rows if that is more. */
  clb_tensor_product_desc product;
  double scale; /* often 1 / sqrt(neighbours); 0: 1 */
  int atomics;  /* 1: gradients of x are summed with atomics: faster, no workspace for them, not
                   bitwise reproducible; f32 and f64, channel-wise only */
  int knots;    /* 4 or more: weights are functions W(r) of the edge's length, cubic splines through
                   `knots` values (clb_convolution_set_table); w is then r[n_edges][1], its gradient
                   g_r[n_edges][1], and c and d_w have the same shape. Second derivatives by r are
                   continuous between the ends. An edge reads four numbers per weight. Channel-wise
                   only. 0: w holds the weights themselves */
  double first_knot, last_knot; /* the two ends of the grid, in the unit of r.  Knots are closer
                                   where r is small: knot i is at first_knot + (last_knot -
                                   first_knot) x / (3 - 2 x), x = i / (knots - 1), so that
                                   intervals grow from 1/3 to 3 times their mean. W is a cubic
                                   spline in x, not in r: between knots the two differ. Beyond the
                                   ends weights are those there and their derivatives 0 */
  double break_at; /* 0, or a length between the two ends at which second derivatives of W may jump
                      (XPLOR's cutoff): knots are moved so that one lies there, as
                      clb_convolution_knots tells, and two splines meet. Ignored where fewer than 3
                      intervals would be on either side */
  int vectors; /* 1: y is v[n_edges][3], vectors of edges, and the product uses Y(v / |v|); g_y, b
                  and d_y have the shape of v, too: they are gradients by v and the incoming
                  gradient of those. Terms of irreps_y are then of multiplicity 1, in any order;
                  their parities decide which paths there can be, and do not change Y (SevenNet
                  calls all of them even).
                  With knots, r = |v|: w, g_w, c and d_w are ignored, g_y (the bit CLB_OPERAND_Y of
                  `gradients` alone decides) is the gradient by v through both Y and r, and b (the
                  bit CLB_OPERAND_Y of `incoming`) is the incoming gradient of g_y. At v = 0
                  gradients by v are 0; a vector shorter than 1e-12 may count as 0. What is kept of
                  Y, r and gradients by them is of the storage type, or of a better one */
  clb_normalization normalization; /* of Y, used with `vectors` */
} clb_convolution_desc;

CLB_SIZED clb_status clb_convolution_create(clb_context *ctx, const clb_convolution_desc *desc,
                                            clb_op **op);

/* The lengths at an op's knots: r[knots], ascending. */
CLB_API clb_status clb_convolution_knots(clb_op *op, double *r);

/* The weights at these lengths, values[knots][W] in host memory, through which the op's splines
   pass (not-a-knot at both ends); to be called before the first pass, and again when the weights
   change. Keeps (knots + 2) W coefficients, 3 W more with a break, in the type of arithmetic
   on the device, which is allocated by the first call. */
CLB_API clb_status clb_convolution_set_table(clb_op *op, const double *values);

/* Bytes of workspace that a pass needs on this graph as it is now: with max_bytes, gradients of x
   (of shared weights, and on a GPU some shares of those of y) are kept for all edges at once; with
   less, down to min_bytes, for a block of edges at a time. Where T is not channel-wise the two are
   equal: messages of up to 65536 edges, 16384 on a CPU, and at most 64 MiB of them, plus a row for
   every 256 edges, on a GPU for every 16 of up to 16384 (and for each node, where storage and
   arithmetic differ). Fewer edges never need more. Both include what
   `vectors` needs: at most three rows of y, or one of 60 (l <= 3), 104 (l <= 4), 172 (l <= 5) ...
   numbers, and three numbers per edge. */
CLB_API clb_status clb_convolution_workspace(clb_op *op, clb_pass pass, clb_graph *graph,
                                             uint64_t *min_bytes, uint64_t *max_bytes);

/* Floating-point operations (an fma counts as 2) of a pass on a graph of this size, whose receivers
   have about equally many edges: those of the product and its sums over edges, as counted in the
   kernels' IR, without sums by sender. */
CLB_API clb_status clb_convolution_flops(clb_op *op, clb_pass pass, int64_t n_receivers,
                                         int64_t n_edges, double *flops);

/* Below x[n_senders][X], z[n_receivers][Z], y[n_edges][Y], w[n_edges][W], edges in the order in
   which they were given to the graph. `workspace`: a buffer of at least min_bytes, free for other
   use after the pass; NULL where none is needed. */
CLB_API clb_status clb_convolution_forward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                           clb_rows w, clb_rows z, clb_buffer *workspace);

/* The gradients of sum g z: g_x[n_senders][X], g_y[n_edges][Y], g_w[n_edges][W], from
   g[n_receivers][Z]. */
CLB_API clb_status clb_convolution_backward(clb_op *op, clb_graph *graph, clb_rows x, clb_rows y,
                                            clb_rows w, clb_rows g, clb_rows g_x, clb_rows g_y,
                                            clb_rows g_w, clb_buffer *workspace);

/* The gradients of sum a g_x + b g_y + c g_w: d_x, d_y, d_w and d_g, shaped like x, y, w and g; a
   like x, b like y, c like w. */
CLB_API clb_status clb_convolution_double_backward(clb_op *op, clb_graph *graph, clb_rows x,
                                                   clb_rows y, clb_rows w, clb_rows g, clb_rows a,
                                                   clb_rows b, clb_rows c, clb_rows d_x,
                                                   clb_rows d_y, clb_rows d_w, clb_rows d_g,
                                                   clb_buffer *workspace);

/* ---- optimizers ---- */

/* What turns gradients into the next parameters (docs/optimizers.md has the formulas):
     CLB_SGD                   torch's, with momentum, dampening, nesterov
     CLB_ADAM                  torch's, weight decay added to the gradient; nesterov: optax's
     CLB_ADAMW                 the same with decoupled weight decay
     CLB_SCHEDULE_FREE_ADAMW   that of facebookresearch/schedule_free; the parameters are its y
     CLB_MUON                  of tensors that are matrices: the momentum, with its singular values
                               brought near 1
     CLB_SOAP                  Adam in the bases of Shampoo's preconditioners (arXiv 2409.11321) */
typedef enum { CLB_SGD, CLB_ADAM, CLB_ADAMW, CLB_SCHEDULE_FREE_ADAMW, CLB_MUON, CLB_SOAP } clb_rule;

/* Whose Muon. They differ in momentum, arithmetic, what the norm of a matrix is divided by, and in
   the factor of the step (rows x columns: as the tensor is stored):
     CLB_MUON_OPTAX      optax.contrib.muon, Nequix in JAX: sqrt(max(1, columns / rows))
     CLB_MUON_NEQUIX     Nequix in torch: sqrt(max(1, rows / columns))
     CLB_MUON_NEQUIP     NequIP's MuonWithAuxAdam: the same, products in bf16
     CLB_MUON_TORCH      torch.optim.Muon, adjust_lr_fn "original": the same, products in bf16
     CLB_MUON_TORCH_RMS  the same with "match_rms_adamw": 0.2 sqrt(max(rows, columns)) */
typedef enum {
  CLB_MUON_OPTAX,
  CLB_MUON_NEQUIX,
  CLB_MUON_NEQUIP,
  CLB_MUON_TORCH,
  CLB_MUON_TORCH_RMS
} clb_muon;

/* How one group of tensors is trained. beta1, beta2 and epsilon: 0 means the rule's default, 0.9,
   0.999 and 1e-8 (SOAP's betas 0.95; Muon's epsilon 1e-8 or 1e-7, as its variant has it), and a
   negative number means 0. */
typedef struct {
  clb_rule rule;
  double lr, weight_decay;
  double beta1, beta2, epsilon; /* not of SGD; of Muon epsilon */
  double momentum, dampening;   /* of SGD; of Muon momentum, 0: 0.95 */
  int nesterov, amsgrad;        /* amsgrad: of Adam and AdamW */
  int64_t warm_up_steps;        /* schedule-free: lr grows to its value in so many steps */
  clb_muon muon;                /* of Muon */
  int64_t refresh_steps;        /* SOAP: from one basis to the next; 0: 10 */
  int64_t longest_side;         /* SOAP: longer sides are not rotated; 0: 1024 */
} clb_optimizer_group;

/* Elements one after the other, from number `offset` of the buffer on. */
typedef struct {
  clb_buffer *buffer;
  int64_t offset;
} clb_place;

/* One tensor of rows x columns elements. Tensors may lie in one buffer or in several; on opencl in
   one. Parameters are read and written, gradients read. copy: the new parameters in another type;
   average: the caller's array of averaged parameters. A buffer of NULL: there is none, which must
   then be so for all tensors. */
typedef struct {
  int64_t rows, columns;
  int group; /* number of the group, from 0 */
  clb_place parameters, gradients, copy, average;
} clb_optimizer_tensor;

/* Clipping by the norm n of all gradients: torch, g *= min(1, max_norm / (n + 1e-6)); optax, g *=
   max_norm / n unless n < max_norm. */
typedef enum { CLB_CLIP_NONE, CLB_CLIP_TORCH, CLB_CLIP_OPTAX } clb_clip;

/* The moving average s of parameters p, after each step, beginning with s = p before the first:
   CONSTANT: s = decay s + (1 - decay) p; WARM_UP: s -= (1 - d) (s - p), d = min(decay, (1 + t) /
   (10 + t)), where t is 1 at the first step (torch_ema), or 0 (WARM_UP_FROM_0, Nequix). */
typedef enum { CLB_EMA_NONE, CLB_EMA_WARM_UP, CLB_EMA_WARM_UP_FROM_0, CLB_EMA_CONSTANT } clb_ema;

typedef struct {
  const clb_optimizer_tensor *tensors;
  int64_t n_tensors;
  const clb_optimizer_group *groups;
  int n_groups;
  clb_dtype parameters; /* CLB_F32 or CLB_F64; also of averages, and of arithmetic */
  clb_dtype gradients;  /* no wider than the parameters */
  clb_dtype copy;       /* where there are copies */
  clb_clip clip;
  double max_norm;  /* of the clipping; it may be infinite, to know the norm alone */
  int check_finite; /* 1: a step whose gradients are not all finite changes nothing */
  clb_ema ema;
  double ema_decay;
} clb_optimizer_desc;

typedef struct clb_optimizer clb_optimizer;

/* Compiles the kernels, and allocates the state. Buffers must exist as long as steps are taken;
   what they hold is only read by steps. */
CLB_SIZED clb_status clb_optimizer_create(clb_context *ctx, const clb_optimizer_desc *desc,
                                          clb_optimizer **optimizer);
CLB_API void clb_optimizer_destroy(clb_optimizer **optimizer);

/* Submits one step: one launch, or two with clipping or check_finite, 16 more with Muon, 9 more
   with SOAP. It can be recorded; each replay is the next step. */
CLB_API clb_status clb_optimizer_step(clb_optimizer *optimizer);

/* New numbers for the steps submitted from now on, or replayed; nothing is compiled. rule,
   nesterov, amsgrad, Muon's variant and epsilon, SOAP's longest_side and beta2, and whether there
   is momentum must stay. After a change of betas the corrections of moments use the product of the
   betas that there were. */
CLB_SIZED clb_status clb_optimizer_set_group(clb_optimizer *optimizer, int group,
                                             const clb_optimizer_group *numbers);

/* Submits the writing of the averaged parameters of schedule-free rules to `average` (other
   tensors' parameters are copied there); it can be recorded. A moving average is always there. */
CLB_API clb_status clb_optimizer_average(clb_optimizer *optimizer);

/* Steps taken, and left out because gradients were not finite; the norm of the last step's
   gradients before clipping, NaN if it was left out, 0 without clipping and check_finite. Waits. */
typedef struct {
  int64_t steps, skipped;
  double norm;
} clb_progress;
CLB_SIZED clb_status clb_optimizer_progress(clb_optimizer *optimizer, clb_progress *progress);

/* The norms of the last n of the steps that were taken or left out, in their order: NaN of those
   left out, 0 of steps of another optimizer, whose state this one has got. Waits. */
enum { CLB_NORMS = 256 }; /* n: 1 to so many */
CLB_API clb_status clb_optimizer_norms(clb_optimizer *optimizer, int64_t n, double *norms);

/* The state as bytes of host memory, moments and counts of steps, with which training goes on as if
   it had not stopped, on any device; parameters and averages are the caller's to keep. _write
   refuses the state of other tensors or rules, and changes nothing then. All wait but _bytes. */
CLB_API clb_status clb_optimizer_state_bytes(clb_optimizer *optimizer, uint64_t *bytes);
CLB_API clb_status clb_optimizer_state_read(clb_optimizer *optimizer, void *to, uint64_t bytes);
CLB_API clb_status clb_optimizer_state_write(clb_optimizer *optimizer, const void *from,
                                             uint64_t bytes);

/* ---- RMS norm ---- */

/* Which numbers of a row are normalised together, and how their squares are averaged. A degree is
   all terms of that l, of both parities.
     CLB_RMS_PLAIN        the row: the mean of all squares (torch's rms_norm, Llama)
     CLB_RMS_NEQUIX       the row: the sum of all squares / (T (2l+1)^2), T terms (Nequix)
     CLB_RMS_DEGREE       each degree by itself: the mean of its squares (Equiformer)
     CLB_RMS_DEGREE_NORM  each degree: the mean over channels of sums over components (Equiformer)
     CLB_RMS_BALANCED     the row: the mean over degrees of each one's mean (EquiformerV2, UMA)
     CLB_RMS_TERMS        the row: the sum over terms of `factors` times its squares (EquFlashV2) */
typedef enum {
  CLB_RMS_PLAIN,
  CLB_RMS_NEQUIX,
  CLB_RMS_DEGREE,
  CLB_RMS_DEGREE_NORM,
  CLB_RMS_BALANCED,
  CLB_RMS_TERMS
} clb_rms_variant;

typedef struct {
  const char *irreps; /* as of tensor products, of 1 ... 65,536 numbers; "512x0e": a plain row */
  clb_layout layout;  /* CLB_MUL_IR or CLB_IR_MUL */
  clb_rms_variant variant;
  double epsilon;       /* finite, at least 0 */
  double weight_offset; /* is added to all weights: 0, or 1 (Gemma's w + 1) */
  int centre;           /* 1: from the channels of 0e their mean is subtracted first */
  int bias;             /* 1: to each channel of 0e a bias is added last */
  unsigned gradients;   /* CLB_OPERAND_X: g_x, d_x; CLB_OPERAND_W: g_w, d_w; CLB_OPERAND_Z: d_g;
                           0: all. Others are not computed; their clb_rows may be empty */
  unsigned incoming;    /* which of a (CLB_OPERAND_X) and c (CLB_OPERAND_W) are given; the other is
                           taken as zero; 0: both are given */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
  const double *factors;         /* CLB_RMS_TERMS: of each term of irreps, finite, at least 0; */
  int n_factors;                 /* as many as irreps has terms */
} clb_rms_norm_desc;

/* y = (w[channel] + weight_offset) x (s + epsilon)^(-1/2) + bias, s the variant's mean of squares
   of x after `centre`. w is one row for all rows, as are g_w, c, d_w (stride and index are
   ignored): a weight for each channel, shared by its 2l+1 components, in the order of the irreps,
   then, with `bias`, a bias for each channel of 0e.  Below D is the dimension of the irreps, W the
   length of w.  Sums over rows are in a fixed order: equal calls on one device give equal bits. A
   result may be in the place of an operand of its shape, in the same rows. An op with gradients by
   w keeps a workspace of at most 32 MiB. */
CLB_SIZED clb_status clb_rms_norm_create(clb_context *ctx, const clb_rms_norm_desc *desc,
                                         clb_op **op);

/* D and W. */
typedef struct {
  int64_t x, w;
} clb_rms_norm_sizes;
CLB_SIZED clb_status clb_rms_norm_measure(clb_context *ctx, const clb_rms_norm_desc *desc,
                                          clb_rms_norm_sizes *sizes);

/* y[n][D] from x[n][D] and w[W]. */
CLB_API clb_status clb_rms_norm_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows y);

/* The gradients of sum g y: g_x[n][D] and g_w[W], from the operands and g[n][D]. */
CLB_API clb_status clb_rms_norm_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                         clb_rows g_x, clb_rows g_w);

/* The gradients of sum a g_x + c g_w, with a[n][D], c[W]: d_x, d_w and d_g[n][D]. */
CLB_API clb_status clb_rms_norm_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                                clb_rows g, clb_rows a, clb_rows c, clb_rows d_x,
                                                clb_rows d_w, clb_rows d_g);

/* ---- gate ---- */

/* e3nn's Gate: scalars go through an activation; each gate, a scalar, too, and multiplies a channel
   of `gated`. Activations are named in a text: "silu", for all terms, or one for each term of the
   irreps as they are given, "silu,tanh"; each may have a factor, "1.68*silu". There are silu, tanh,
   sigmoid, relu, abs, identity and ssp (shifted softplus, log((1 + exp(x)) / 2)). Of even scalars
   (0e) all of them are even. Of odd ones (0o) abs is even, tanh and identity are odd, the others
   are refused. */
typedef struct {
  const char *irreps_scalars, *irreps_gates; /* of degree 0; NULL or "": none */
  const char *irreps_gated;                  /* as many channels as irreps_gates */
  const char *act_scalars, *act_gates;
  const char *irreps_x; /* the order of x: of each irrep first the scalars, then the gates, then the
                           gated. NULL: e3nn's, which is by degree, odd before even, each irrep
                           once */
  clb_layout layout;    /* CLB_MUL_IR or CLB_IR_MUL */
  int normalize;        /* 1: activations are also multiplied so that the mean of their squares is 1
                           for normally distributed x (e3nn's normalize2mom) */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
} clb_gate_desc;

/* At kinks (relu and abs at 0) the slope is 0, as torch's; second derivatives are 0 there. */
CLB_SIZED clb_status clb_gate_create(clb_context *ctx, const clb_gate_desc *desc, clb_op **op);

/* Numbers and irreps of a row of x, and of a row of y: the activated scalars, then the gated
   channels, in the order of the description; a term of gated is split where its gates change its
   parity. */
typedef struct {
  int64_t x, y;
  char irreps_x[CLB_IRREPS_BYTES], irreps_y[CLB_IRREPS_BYTES]; /* end with a 0 byte */
} clb_gate_sizes;
CLB_SIZED clb_status clb_gate_measure(clb_context *ctx, const clb_gate_desc *desc,
                                      clb_gate_sizes *sizes);

/* y[n][Y] from x[n][X]; X and Y of clb_gate_sizes. Results may not overlap operands. */
CLB_API clb_status clb_gate_forward(clb_op *op, int64_t n, clb_rows x, clb_rows y);

/* The gradient of sum g y: g_x[n][X], from x and g[n][Y]. */
CLB_API clb_status clb_gate_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g, clb_rows g_x);

/* The gradients of sum a g_x, with a[n][X]: d_x[n][X] and d_g[n][Y]. */
CLB_API clb_status clb_gate_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows g,
                                            clb_rows a, clb_rows d_x, clb_rows d_g);

/* ---- linear maps of irreps ---- */

/* One path: terms of the input and of the output (counted from 0) of one irrep. */
typedef struct {
  int in, out;
} clb_linear_instruction;

typedef struct {
  const char *irreps_in, *irreps_out;         /* as of tensor products */
  const clb_linear_instruction *instructions; /* NULL: one for all terms in and out of one irrep,
                                                 in the order of in, then out */
  int n_instructions;                         /* 0 ... 512 */
  int bias;          /* 1: to each channel of 0e in the output a bias is added */
  const int *biases; /* NULL, or for each term of the output 1 or 0: whether it has biases, which
                        only 0e can have; `bias` is 0 then */
  int n_biases;
  clb_path_normalization path_normalization;
  clb_layout layout_in, layout_out; /* CLB_MUL_IR or CLB_IR_MUL */
  int weights_per_row;              /* 1: w (and c, g_w, d_w) has a row for each row of x */
  int n_species;      /* above 0: w has a row for each species; w.index says which species a row of
                         x is.  Otherwise, and without weights_per_row, w is one row for all */
  unsigned gradients; /* CLB_OPERAND_X: g_x, d_x; CLB_OPERAND_W: g_w, d_w; CLB_OPERAND_Z: d_g;
                         0: all. Others are not computed; their clb_rows may be empty */
  unsigned incoming;  /* which of a (CLB_OPERAND_X) and c (CLB_OPERAND_W) are given; the other is
                         taken as zero; 0: both are given */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
} clb_linear_desc;

/* e3nn's Linear: z_k[w] = sum over paths i -> k and u: alpha x_i[u] W_ik[u, w], + b_k[w] of 0e,
   for each component. alpha^-2 is the number of u of all paths to k (CLB_PATH_ELEMENT), or that of
   this path times the number of paths to k (CLB_PATH_PATH), or 1 (CLB_PATH_NONE). A row of w has
   the weights in the order of instructions, each [mul in][mul out], then the biases in the order of
   the output.  Below X, Z, W are the lengths of rows.
   One row of w: stride and index of w, g_w, c, d_w are ignored. By species: w.index (required) is
   a buffer of n int32 species 0 ... n_species - 1, not checked; c, g_w and d_w have a row for each
   species like w, and their index is NULL. Results must not lie in the memory of operands. Sums
   over rows are in a fixed order: equal calls on one device give equal bits. An op with gradients
   by one row of w or by species keeps a workspace of up to 64 MiB, or a row of w for each species
   if that is more. */
CLB_SIZED clb_status clb_linear_create(clb_context *ctx, const clb_linear_desc *desc, clb_op **op);

/* X, Z and W. */
typedef struct {
  int64_t x, z, w;
} clb_linear_sizes;
CLB_SIZED clb_status clb_linear_measure(clb_context *ctx, const clb_linear_desc *desc,
                                        clb_linear_sizes *sizes);

/* z[n][Z] from x[n][X] and w. */
CLB_API clb_status clb_linear_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows z);

/* The gradients of sum g z: g_x[n][X] and g_w, like w, from the operands and g[n][Z]. */
CLB_API clb_status clb_linear_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w, clb_rows g,
                                       clb_rows g_x, clb_rows g_w);

/* The gradients of sum a g_x + c g_w, with a[n][X], c like w: d_x, d_w and d_g[n][Z]. */
CLB_API clb_status clb_linear_double_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                              clb_rows g, clb_rows a, clb_rows c, clb_rows d_x,
                                              clb_rows d_w, clb_rows d_g);

/* ---- norm activation ---- */

/* e3nn's NormActivation: y = act(|x| + w) x, or x / |x|, in each channel of the irreps. */
typedef struct {
  const char *irreps;
  const char *act;   /* one activation, as of gates: "silu", "1.68*silu"; not normalised */
  clb_layout layout; /* CLB_MUL_IR or CLB_IR_MUL */
  int normalize;     /* 1: y = act(|x| + w) x / |x|, where |x| is at least epsilon */
  double epsilon;    /* with normalize: above 0, or 0 for 1e-8; without: 0 */
  int bias;          /* 1: w, a bias for each channel, is added to norms; 0: there is no w */
  clb_dtype storage, arithmetic; /* as for spherical harmonics */
  int accumulate;                /* 1: add to the outputs instead of overwriting them */
  unsigned passes;               /* CLB_PASS_BIT of each pass to compile */
} clb_norm_activation_desc;

/* x, y and their like have D numbers, as irreps say, w and its like a number for each channel, W,
   or none without `bias`: then their clb_rows may be empty. Biases for all rows are one row with
   CLB_SAME_ROW; g_w and d_w have a row for each row of x, whose sum is the gradient by those.
   Where |x| is below epsilon, derivatives take it as constant; without normalize x / |x| is 0 at
   x = 0 in them. Results may not overlap operands. */
CLB_SIZED clb_status clb_norm_activation_create(clb_context *ctx,
                                                const clb_norm_activation_desc *desc, clb_op **op);

/* y[n][D] from x[n][D] and w[n][W]. */
CLB_API clb_status clb_norm_activation_forward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                               clb_rows y);

/* The gradients of sum g y: g_x[n][D] and g_w[n][W]. */
CLB_API clb_status clb_norm_activation_backward(clb_op *op, int64_t n, clb_rows x, clb_rows w,
                                                clb_rows g, clb_rows g_x, clb_rows g_w);

/* The gradients of sum a g_x + c g_w, with a[n][D] and c[n][W]: d_x, d_w and d_g[n][D]. */
CLB_API clb_status clb_norm_activation_double_backward(clb_op *op, int64_t n, clb_rows x,
                                                       clb_rows w, clb_rows g, clb_rows a,
                                                       clb_rows c, clb_rows d_x, clb_rows d_w,
                                                       clb_rows d_g);

/* ---- the sizes of structs ---- */

/* What the functions with CLB_SIZED call, with the sizes that this header gives their structs. */
CLB_API clb_status clb_context_device_sized(clb_context *ctx, clb_device_info *info,
                                            size_t info_size);
static inline clb_status clb_context_device(clb_context *ctx, clb_device_info *info) {
  return clb_context_device_sized(ctx, info, sizeof *info);
}
CLB_API clb_status clb_op_counts_sized(clb_op *op, clb_pass pass, clb_counts *counts,
                                       size_t counts_size);
static inline clb_status clb_op_counts(clb_op *op, clb_pass pass, clb_counts *counts) {
  return clb_op_counts_sized(op, pass, counts, sizeof *counts);
}
CLB_API clb_status clb_op_report_sized(clb_op *op, clb_pass pass, clb_report *report,
                                       size_t report_size);
static inline clb_status clb_op_report(clb_op *op, clb_pass pass, clb_report *report) {
  return clb_op_report_sized(op, pass, report, sizeof *report);
}
CLB_API clb_status clb_op_tuning_sized(clb_op *op, clb_pass pass, clb_tuning *tuning,
                                       size_t tuning_size);
static inline clb_status clb_op_tuning(clb_op *op, clb_pass pass, clb_tuning *tuning) {
  return clb_op_tuning_sized(op, pass, tuning, sizeof *tuning);
}
CLB_API clb_status clb_spherical_harmonics_create_sized(clb_context *ctx,
                                                        const clb_spherical_harmonics_desc *desc,
                                                        clb_op **op, size_t desc_size);
static inline clb_status clb_spherical_harmonics_create(clb_context *ctx,
                                                        const clb_spherical_harmonics_desc *desc,
                                                        clb_op **op) {
  return clb_spherical_harmonics_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_tensor_product_create_sized(clb_context *ctx,
                                                   const clb_tensor_product_desc *desc, clb_op **op,
                                                   size_t desc_size);
static inline clb_status
clb_tensor_product_create(clb_context *ctx, const clb_tensor_product_desc *desc, clb_op **op) {
  return clb_tensor_product_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_tensor_product_measure_sized(clb_context *ctx,
                                                    const clb_tensor_product_desc *desc,
                                                    clb_tensor_product_sizes *sizes,
                                                    size_t desc_size);
static inline clb_status clb_tensor_product_measure(clb_context *ctx,
                                                    const clb_tensor_product_desc *desc,
                                                    clb_tensor_product_sizes *sizes) {
  return clb_tensor_product_measure_sized(ctx, desc, sizes, sizeof *desc);
}
CLB_API clb_status clb_tensor_product_weights_sized(clb_context *ctx,
                                                    const clb_tensor_product_desc *desc, int i,
                                                    clb_weight_slice *slice, size_t desc_size);
static inline clb_status clb_tensor_product_weights(clb_context *ctx,
                                                    const clb_tensor_product_desc *desc, int i,
                                                    clb_weight_slice *slice) {
  return clb_tensor_product_weights_sized(ctx, desc, i, slice, sizeof *desc);
}
CLB_API clb_status clb_tensor_product_mask_sized(clb_context *ctx,
                                                 const clb_tensor_product_desc *desc,
                                                 unsigned char *mask, int64_t size,
                                                 size_t desc_size);
static inline clb_status clb_tensor_product_mask(clb_context *ctx,
                                                 const clb_tensor_product_desc *desc,
                                                 unsigned char *mask, int64_t size) {
  return clb_tensor_product_mask_sized(ctx, desc, mask, size, sizeof *desc);
}
CLB_API clb_status clb_symmetric_contraction_create_sized(
    clb_context *ctx, const clb_symmetric_contraction_desc *desc, clb_op **op, size_t desc_size);
static inline clb_status
clb_symmetric_contraction_create(clb_context *ctx, const clb_symmetric_contraction_desc *desc,
                                 clb_op **op) {
  return clb_symmetric_contraction_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_symmetric_contraction_paths_sized(clb_context *ctx,
                                                         const clb_symmetric_contraction_desc *desc,
                                                         int degree, int nu,
                                                         clb_symmetric_paths *paths,
                                                         size_t desc_size);
static inline clb_status clb_symmetric_contraction_paths(clb_context *ctx,
                                                         const clb_symmetric_contraction_desc *desc,
                                                         int degree, int nu,
                                                         clb_symmetric_paths *paths) {
  return clb_symmetric_contraction_paths_sized(ctx, desc, degree, nu, paths, sizeof *desc);
}
CLB_API clb_status clb_symmetric_contraction_basis_sized(clb_context *ctx,
                                                         const clb_symmetric_contraction_desc *desc,
                                                         int path, double *u, int64_t size,
                                                         size_t desc_size);
static inline clb_status clb_symmetric_contraction_basis(clb_context *ctx,
                                                         const clb_symmetric_contraction_desc *desc,
                                                         int path, double *u, int64_t size) {
  return clb_symmetric_contraction_basis_sized(ctx, desc, path, u, size, sizeof *desc);
}
CLB_API clb_status clb_convolution_create_sized(clb_context *ctx, const clb_convolution_desc *desc,
                                                clb_op **op, size_t desc_size, size_t product_size);
static inline clb_status clb_convolution_create(clb_context *ctx, const clb_convolution_desc *desc,
                                                clb_op **op) {
  return clb_convolution_create_sized(ctx, desc, op, sizeof *desc, sizeof desc->product);
}
CLB_API clb_status clb_rms_norm_create_sized(clb_context *ctx, const clb_rms_norm_desc *desc,
                                             clb_op **op, size_t desc_size);
static inline clb_status clb_rms_norm_create(clb_context *ctx, const clb_rms_norm_desc *desc,
                                             clb_op **op) {
  return clb_rms_norm_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_rms_norm_measure_sized(clb_context *ctx, const clb_rms_norm_desc *desc,
                                              clb_rms_norm_sizes *sizes, size_t desc_size);
static inline clb_status clb_rms_norm_measure(clb_context *ctx, const clb_rms_norm_desc *desc,
                                              clb_rms_norm_sizes *sizes) {
  return clb_rms_norm_measure_sized(ctx, desc, sizes, sizeof *desc);
}
CLB_API clb_status clb_gate_create_sized(clb_context *ctx, const clb_gate_desc *desc, clb_op **op,
                                         size_t desc_size);
static inline clb_status clb_gate_create(clb_context *ctx, const clb_gate_desc *desc, clb_op **op) {
  return clb_gate_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_gate_measure_sized(clb_context *ctx, const clb_gate_desc *desc,
                                          clb_gate_sizes *sizes, size_t desc_size);
static inline clb_status clb_gate_measure(clb_context *ctx, const clb_gate_desc *desc,
                                          clb_gate_sizes *sizes) {
  return clb_gate_measure_sized(ctx, desc, sizes, sizeof *desc);
}
CLB_API clb_status clb_linear_create_sized(clb_context *ctx, const clb_linear_desc *desc,
                                           clb_op **op, size_t desc_size);
static inline clb_status clb_linear_create(clb_context *ctx, const clb_linear_desc *desc,
                                           clb_op **op) {
  return clb_linear_create_sized(ctx, desc, op, sizeof *desc);
}
CLB_API clb_status clb_linear_measure_sized(clb_context *ctx, const clb_linear_desc *desc,
                                            clb_linear_sizes *sizes, size_t desc_size);
static inline clb_status clb_linear_measure(clb_context *ctx, const clb_linear_desc *desc,
                                            clb_linear_sizes *sizes) {
  return clb_linear_measure_sized(ctx, desc, sizes, sizeof *desc);
}
CLB_API clb_status clb_norm_activation_create_sized(clb_context *ctx,
                                                    const clb_norm_activation_desc *desc,
                                                    clb_op **op, size_t desc_size);
static inline clb_status
clb_norm_activation_create(clb_context *ctx, const clb_norm_activation_desc *desc, clb_op **op) {
  return clb_norm_activation_create_sized(ctx, desc, op, sizeof *desc);
}

/* Of the struct, of one of its tensors and of one of its groups. */
CLB_API clb_status clb_optimizer_create_sized(clb_context *ctx, const clb_optimizer_desc *desc,
                                              clb_optimizer **optimizer, size_t desc_size,
                                              size_t tensor_size, size_t group_size);
static inline clb_status clb_optimizer_create(clb_context *ctx, const clb_optimizer_desc *desc,
                                              clb_optimizer **optimizer) {
  return clb_optimizer_create_sized(ctx, desc, optimizer, sizeof *desc,
                                    sizeof(clb_optimizer_tensor), sizeof(clb_optimizer_group));
}
CLB_API clb_status clb_optimizer_set_group_sized(clb_optimizer *optimizer, int group,
                                                 const clb_optimizer_group *numbers,
                                                 size_t numbers_size);
static inline clb_status clb_optimizer_set_group(clb_optimizer *optimizer, int group,
                                                 const clb_optimizer_group *numbers) {
  return clb_optimizer_set_group_sized(optimizer, group, numbers, sizeof *numbers);
}
CLB_API clb_status clb_optimizer_progress_sized(clb_optimizer *optimizer, clb_progress *progress,
                                                size_t progress_size);
static inline clb_status clb_optimizer_progress(clb_optimizer *optimizer, clb_progress *progress) {
  return clb_optimizer_progress_sized(optimizer, progress, sizeof *progress);
}

#ifdef __cplusplus
}
#endif
#endif
