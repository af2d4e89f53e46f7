/* src/runtime/context.h - what stands behind the public handles. */
#ifndef CLB_SRC_RUNTIME_CONTEXT_H
#define CLB_SRC_RUNTIME_CONTEXT_H

#include "backends/backend.h"
#include "kernels/kernel.h"
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
  clb_recording *recording;  /* between clb_record_begin and clb_record_end, else NULL */
  clb_text note;             /* of clb_context_note */
  clb_recording *recordings; /* those that are ended */
  clb_text wisdom;           /* wisdom.h */
  bool wisdom_read;          /* from the cache's folder, once */
  unsigned without;          /* optimisations that ops and graphs to come go without */
  int64_t held;              /* by so many buffers, graphs, ops, recordings and models */
  bool destroyed;            /* by the caller: the last that holds it closes it */
};

struct clb_buffer {
  clb_context *ctx;
  clb_memory memory;
  bool owned;
};

static inline int64_t clb_dtype_bytes(int32_t type) {
  return type == CLB_F64 ? 8 : type == CLB_F32 ? 4 : 2;
}

enum { CLB_PASSES = 4 };

/* How a pass's kernel was chosen; times are of a call on made-up data, with the estimate's schedule
   and with this one. */
typedef struct {
  clb_schedule schedule, estimate;
  bool measured; /* false: it is the estimate, and there are no times */
  int64_t estimate_ns, ns;
} clb_choice;

struct clb_op {
  clb_context *ctx;
  clb_problem problem;            /* the passes differ in `pass` only */
  clb_kernel *kernel[CLB_PASSES]; /* NULL: this pass was not asked for */
  clb_choice choice[CLB_PASSES];
  clb_text source;           /* of the last clb_op_source */
  clb_text tuning[2];        /* of the last clb_op_tuning */
  clb_memory workspace;      /* of the device; no handle: none */
  clb_memory numbers, reals; /* tables that kernels read; no handle: none */
  bool reads_tables[CLB_PASSES];
  void *parts; /* what else it is made of, which its own file knows; NULL: nothing */
  void (*destroy_parts)(clb_op *op); /* frees these; NULL: there are none */
  bool blas; /* matrix products go to the device's BLAS where it can do them */
};

/* What the caller gets of a context holds it from its making (returns ctx) to its destruction's
   end. */
clb_context *clb_context_hold(clb_context *ctx);
void clb_context_release(clb_context *ctx);
/* Waits for what was submitted.  Frees a context that nothing holds. */
void clb_context_finish(clb_context *ctx);
void clb_context_close(clb_context *ctx);

/* CLB_OK where ctx has an open device. */
clb_status clb_context_check(clb_context *ctx);

/* Compiles a kernel or finds it; takes k over, whatever happens.  Owned by the context. */
clb_status clb_kernel_get(clb_context *ctx, ir_kernel *k, clb_kernel **kernel);
/* Of a kernel that no op has. */
void clb_kernel_free(clb_context *ctx, clb_kernel *kernel);

/* What ops launch and multiply goes through these: the backend's own functions, a profile where one
   is taken, a recording where one is made. */
clb_status clb_launch(clb_context *ctx, const clb_kernel *kernel, int64_t groups,
                      const clb_arg *args, int n);
clb_status clb_gemm(clb_context *ctx, clb_dtype type, const clb_gemm_desc *product);
clb_status clb_submit(clb_context *ctx, const clb_work *work);
void clb_profile_forget(clb_context *ctx);
double clb_seconds_now(void); /* of a clock that only goes on */

/* Adds a copy of the work to the recording being made. */
clb_status clb_recording_keep(clb_recording *recording, const clb_work *work);
/* Gives memory back to the device: what was recorded with it is never replayed. */
void clb_memory_free(clb_context *ctx, clb_memory *memory);
/* Refuses a call that needs the device now where a recording is being made. */
clb_status clb_not_recording(clb_context *ctx, const char *call);

/* Gives each pass of an op that has just been made the fastest of its kernels.  Of a convolution
   its description is told, too, and the op of the double backward pass's d_g (NULL: it has none);
   else both are NULL. */
typedef clb_status (*clb_tuner)(clb_op *op, clb_op *results, const clb_convolution_desc *desc);

/* Creates an op with the passes of the bit set, tuned where tune is not NULL.  _check: whether it
   could.  _new: without kernels. */
clb_status clb_op_check(clb_context *ctx, const clb_problem *problem, unsigned passes);
clb_status clb_op_create(clb_context *ctx, const clb_problem *problem, unsigned passes,
                         clb_tuner tune, clb_op **op);
clb_status clb_op_new(clb_context *ctx, const clb_problem *problem, clb_op **op);

/* Gives the pass a kernel of this schedule, and the op the tables that it reads; after a failure
   the pass has the kernel it had. */
clb_status clb_op_set_schedule(clb_op *op, clb_pass pass, const clb_schedule *schedule);

/* One operand: rows of so many columns; without columns nothing of it is looked at. */
enum { CLB_MAX_OPERANDS = 20 };
typedef struct {
  const char *name;
  clb_rows rows;
  int64_t columns;
  bool written, indexed; /* indexed: rows.index says which rows, from its number index_first on */
  bool one_row;          /* shared by all rows */
  bool wide;             /* kept in arithmetic precision */
  int64_t index_first;
  int of; /* of a tensor product: CLB_OPERAND_X, CLB_OPERAND_Y, CLB_OPERAND_W or CLB_OPERAND_Z,
             whose shape it has */
} clb_operand;
static inline int64_t clb_operand_bytes(const clb_op *op, const clb_operand *o) {
  return clb_dtype_bytes(o->wide ? op->problem.arithmetic : op->problem.storage);
}
static inline int64_t clb_operand_stride(const clb_operand *o) {
  return o->rows.stride == CLB_DENSE ? o->columns : o->rows.stride;
}
const char *clb_pass_name(clb_pass pass); /* "double backward" */
/* The kernel of a pass, or why there is none. */
clb_status clb_op_pass_kernel(clb_op *op, clb_pass pass, const clb_kernel **kernel);
/* CLB_OK where the op was created with this pass. */
clb_status clb_op_check_pass(clb_op *op, clb_pass pass);
/* Checks one operand of n rows. */
clb_status clb_op_check_operand(clb_op *op, clb_pass pass, int64_t n, const clb_operand *operand);
/* Its arguments: buffer, offset, stride. */
void clb_operand_arguments(const clb_operand *o, clb_arg *args);
/* Checks the op's kind and the operands. */
clb_status clb_op_check_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                             const clb_operand *operands, int n_operands);
/* Checks, and launches on n rows with the arguments n, then (buffer, offset, stride) of each
   operand, then (row numbers, first) of those indexed, then the op's tables. */
clb_status clb_op_run_rows(clb_op *op, int32_t kind, clb_pass pass, int64_t n,
                           const clb_operand *operands, int n_operands);

#endif
