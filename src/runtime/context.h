/* src/runtime/context.h - the structs behind the public handles. */
#ifndef CLB_SRC_RUNTIME_CONTEXT_H
#define CLB_SRC_RUNTIME_CONTEXT_H

#include "backends/backend.h"
#include "kernels/kernel.h"
#include "src/base/signature.h"
#include "src/runtime/kernel_cache.h"

/* A kernel compiled and loaded on the context's device; lives as long as the context, shared by
   equal problems. */
typedef struct clb_kernel {
  struct clb_kernel *next;
  clb_hash key;
  ir_kernel ir;
  clb_text binary;
  clb_module *module;
} clb_kernel;

typedef struct clb_profile clb_profile;

struct clb_context {
  clb_error_sink error;
  clb_device *device; /* NULL if it did not open */
  clb_kernel *kernels;
  bool profiles; /* every launch is timed */
  clb_profile *profile;
  clb_recording *recording;  /* the one being made, between clb_record_begin and clb_record_end,
                                else NULL */
  clb_text note;             /* of clb_context_note */
  clb_recording *recordings; /* finished ones */
  clb_text wisdom;           /* wisdom.h */
  bool wisdom_read;          /* from the cache folder, at most once */
  unsigned disabled;         /* optimisations disabled for ops and graphs created from now on */
  int64_t held;              /* number of buffers, graphs, ops, recordings and models that keep it
                                alive */
  clb_host_memory staging;   /* of clb_staging */
  clb_host_memory posted;    /* of clb_posted_write, */
  uint64_t posting;          /* so many bytes of which the device may still read */
  clb_memory scratch;        /* of clb_scratch_reserve */
  bool destroyed;            /* by the caller; the last object that holds it closes it */
};

/* Memory of clb_buffer_create_ipc, or of clb_buffer_open_ipc. */
typedef enum { CLB_IPC_NONE, CLB_IPC_OWN, CLB_IPC_OPENED } clb_ipc;

struct clb_buffer {
  clb_context *ctx;
  clb_memory memory;
  bool owned;
  clb_ipc ipc;
};

static inline int64_t clb_dtype_bytes(int32_t type) {
  return type == CLB_F64 ? 8 : type == CLB_F32 ? 4 : 2;
}

enum { CLB_PASSES = 4 };

/* How a pass's kernel was chosen; times are of a call on synthetic data, with the estimate's
   schedule and with this one. */
typedef struct {
  clb_schedule schedule, estimate;
  bool measured; /* false: this is the estimate, and there are no times */
  int64_t estimate_ns, ns;
} clb_choice;

struct clb_op {
  clb_context *ctx;
  clb_problem problem;               /* the passes differ in `pass` only */
  clb_kernel *kernel[CLB_PASSES];    /* NULL: this pass was not requested */
  clb_kernel *unaligned[CLB_PASSES]; /* for rows that start anywhere; NULL: not asked for so far */
  clb_kernel *team[CLB_PASSES][2];   /* for graphs of few edges; [1]: unaligned */
  clb_choice choice[CLB_PASSES];
  clb_text source;           /* of the last clb_op_source */
  clb_text tuning[2];        /* of the last clb_op_tuning */
  clb_memory workspace;      /* of the device; no handle: none */
  clb_memory numbers, reals; /* tables that kernels read; no handle: none */
  bool reads_tables[CLB_PASSES];
  void *parts;                       /* further parts, known to its own file only; NULL: none */
  void (*destroy_parts)(clb_op *op); /* frees them; NULL: there are none */
  bool blas;                         /* use the device's BLAS for matrix products that it can do */
};

/* A buffer without memory. */
clb_status clb_buffer_new(clb_context *ctx, const char *call, uint64_t bytes, clb_buffer **buffer);
enum { CLB_IPC_PROOF = 32 }; /* bytes that memory has after those of a buffer with `ipc` */

/* Every object created with a context holds it, from its creation (_hold returns ctx) to the end of
   its destruction. */
clb_context *clb_context_hold(clb_context *ctx);
void clb_context_release(clb_context *ctx);
/* _finish waits for submitted work; _close frees a context that nothing holds. */
void clb_context_finish(clb_context *ctx);
void clb_context_close(clb_context *ctx);

/* CLB_OK where ctx has an open device. */
clb_status clb_context_check(clb_context *ctx, const char *call);

/* Finds a kernel or compiles it; takes ownership of k, even on failure. The kernel is owned by the
   context. _get: for a new op, of which there is none while work is recorded. */
clb_status clb_kernel_get(clb_context *ctx, ir_kernel *k, clb_kernel **kernel);
clb_status clb_kernel_find(clb_context *ctx, ir_kernel *k, clb_kernel **kernel);
/* Frees a kernel that no op uses. */
void clb_kernel_free(clb_context *ctx, clb_kernel *kernel);

/* All launches and matrix products of ops go through these, which call the backend's functions and
   handle profiling and recording. */
clb_status clb_launch(clb_context *ctx, const clb_kernel *kernel, int64_t groups,
                      const clb_arg *args, int n);
clb_status clb_gemm(clb_context *ctx, clb_dtype type, const clb_gemm_desc *product);
clb_status clb_submit(clb_context *ctx, const clb_work *work);
void clb_profile_forget(clb_context *ctx);
double clb_seconds_now(void); /* of a monotonic clock */

/* Appends a copy of the work to a recording. */
clb_status clb_recording_keep(clb_recording *recording, const clb_work *work);
/* The recording being made, if there is one, can be replayed while *number is what it is now, and
   no longer once it has been forgotten, as its owner must before it goes. */
clb_status clb_recording_watch(clb_context *ctx, const uint64_t *number);
void clb_recording_forget(clb_context *ctx, const uint64_t *number);
/* Recordings that use memory which goes can no longer be replayed. */
void clb_memory_lose(clb_context *ctx, const clb_memory *memory);
/* Loses device memory and frees it. */
void clb_memory_free(clb_context *ctx, clb_memory *memory);
/* Room on the host for copies, page-locked where the driver can: NULL: no memory. It is the next
   caller's, too: its contents are lost then. */
void *clb_staging(clb_context *ctx, uint64_t bytes);
/* ctx->scratch has so many bytes or more from now on, which all ops may use within a call; waits
   for the device where it must grow. */
clb_status clb_scratch_reserve(clb_context *ctx, uint64_t bytes);
/* clb_buffer_write and clb_buffer_read of memory that the caller got somewhere, through the staging
   where that is page-locked. */
clb_status clb_staged_write(clb_buffer *buffer, uint64_t offset, const void *from, uint64_t bytes);
clb_status clb_staged_read(clb_buffer *buffer, uint64_t offset, void *to, uint64_t bytes);
/* The same, but waits for nothing where the device can, save that copies which nobody has waited
   for fill the room that there is for them: 32 MiB, or one copy. */
clb_status clb_posted_write(clb_buffer *buffer, uint64_t offset, const void *from, uint64_t bytes);
/* Of memory that is no buffer; not while recording. */
clb_status clb_post(clb_context *ctx, const clb_memory *to, uint64_t offset, const void *from,
                    uint64_t bytes);
/* Copies double precision on the host to numbers of `type` on the device, from number `at` on, and
   from the first ones. The first is posted. */
clb_status clb_numbers_write(clb_buffer *to, clb_dtype type, int64_t at, int64_t count,
                             const double *from);
clb_status clb_numbers_read(clb_buffer *from, clb_dtype type, int64_t at, int64_t count,
                            double *to);
/* At least `count` elements of so many bytes, with room for more; what is there is lost where there
   were fewer. */
clb_status clb_buffer_grow(clb_context *ctx, clb_buffer **buffer, int64_t count, int64_t bytes);
/* At the start of a run that uses a workspace; nothing is there yet. While recording, nothing runs.
 */
static inline void clb_workspace_discard(const clb_context *ctx, const clb_memory *workspace) {
  if (!ctx->recording) clb_memory_discard(workspace);
}

/* Refuses a call that needs the device immediately while a recording is being made. */
clb_status clb_not_recording(clb_context *ctx, const char *call);

/* Gives each pass of a newly created op its fastest kernel, and those of `part`, an op that it
   contains (NULL: none). test_run says how to call ops of its kind on synthetic data; other ops are
   called on rows (src/tuning/tuning_test_run.h). */
typedef struct clb_tuner clb_tuner;
typedef struct clb_test_run_kind clb_test_run_kind;
struct clb_tuner {
  clb_status (*tune)(const clb_tuner *tuner, clb_op *op, clb_op *part);
  const clb_test_run_kind *test_run;
};

/* Creates an op with the passes of the bit set, tuned if tuner is not NULL. _check: only checks
   whether it could be created. _new: creates it without kernels. _compile: gives a pass its kernel,
   by wisdom or estimate. */
clb_status clb_op_check(clb_context *ctx, const clb_problem *problem, unsigned passes);
clb_status clb_op_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                         const clb_tuner *tuner, clb_op **op);
clb_status clb_op_new(clb_context *ctx, const clb_problem *problem, clb_op **op);
clb_status clb_op_compile(clb_op *op, clb_pass pass);

/* Lowers and compiles a pass; the op stays as it is. */
clb_status clb_op_make_kernel(clb_op *op, clb_pass pass, const clb_schedule *schedule,
                              clb_kernel **kernel);
/* Gives the pass a kernel with this schedule, and the op the tables that the kernel reads; on
   failure the pass keeps its previous kernel. */
clb_status clb_op_set_schedule(clb_op *op, clb_pass pass, const clb_schedule *schedule);

/* One operand: rows of `columns` elements; if columns is 0 the operand is ignored. */
enum { CLB_MAX_OPERANDS = 20 };
typedef struct {
  const char *name;
  clb_rows rows;
  int64_t columns;
  bool written, indexed; /* indexed: rows.index gives the row numbers, starting at its element
                            index_first */
  bool one_row;          /* shared by all rows */
  bool wide;             /* stored in arithmetic precision */
  int64_t index_first;
  int of; /* the operand whose shape it has, CLB_OPERAND_X, CLB_OPERAND_Y, CLB_OPERAND_W or
             CLB_OPERAND_Z */
  clb_operand_role role;
} clb_operand;
/* The operands of a pass, with columns[of] of each, 0 of incoming ones and gradients that are not
   among these bits. Returns how many there are. */
enum { CLB_ALL_OPERANDS = CLB_OPERAND_X | CLB_OPERAND_Y | CLB_OPERAND_W | CLB_OPERAND_Z };
int clb_operands_fill(const clb_signature *signature, clb_pass pass, const clb_rows *rows,
                      const int64_t columns[CLB_OPERAND_Z + 1], unsigned incoming,
                      unsigned gradients, clb_operand *operands);
/* One row for all, which a gradient by it overwrites. */
void clb_operand_share(clb_operand *o);
static inline int64_t clb_operand_bytes(const clb_op *op, const clb_operand *o) {
  return clb_dtype_bytes(o->wide ? op->problem.arithmetic : op->problem.storage);
}
/* From row to row of `width` elements; negative: not a stride. */
static inline int64_t clb_stride(clb_rows rows, int64_t width) {
  if (rows.stride == CLB_SAME_ROW) return 0;
  return rows.stride == CLB_DENSE ? width : rows.stride;
}
static inline int64_t clb_operand_stride(const clb_operand *o) {
  return clb_stride(o->rows, o->columns);
}
/* Whether it starts at a multiple of `width` elements in memory, as do all of its rows. */
bool clb_operand_is_aligned(const clb_op *op, const clb_operand *o, int64_t width);
/* Number i of an array of a storage type. */
void clb_store_number(int32_t storage, void *to, int64_t i, double x);
const char *clb_pass_name(clb_pass pass); /* "double backward" */
/* The kernel of a pass, or an error saying why there is none. call: the function that asks. */
clb_status clb_op_pass_kernel(clb_op *op, const char *call, clb_pass pass,
                              const clb_kernel **kernel);
/* The failure of a pass whose op is NULL. */
clb_status clb_op_null(int32_t kind, clb_pass pass);
/* CLB_OK where the op was created with this pass. */
clb_status clb_op_check_pass(clb_op *op, clb_pass pass);
/* Checks one operand of n rows. */
clb_status clb_op_check_operand(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operand);
/* Checks the op's kind and the operands. */
clb_status clb_op_check_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                             const clb_operand *operands, int n_operands);
/* Checks, and launches on n rows with the arguments n, then (buffer, offset, stride) of each
   operand, then (row numbers, first) of each indexed one, then the op's tables. */
clb_status clb_op_run_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                           const clb_operand *operands, int n_operands);

#endif
