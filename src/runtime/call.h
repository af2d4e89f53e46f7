/* src/runtime/call.h - one launch: its arguments in the kernel's order, checks of them, the launch.
 */
#ifndef CLB_SRC_RUNTIME_CALL_H
#define CLB_SRC_RUNTIME_CALL_H

#include "src/runtime/context.h"

enum { CLB_MAX_ARGS = 96 };
typedef enum { CLB_IN, CLB_OUT, CLB_OPTIONAL_OUT } clb_role;

/* Start or begin, then arguments in the kernel's order, then run or launch, which reports the first
   error. Memory may be NULL where the kernel does not access it. */
typedef struct {
  clb_context *ctx;
  clb_op *op; /* NULL: the call is of no op */
  int64_t n;  /* rows of operands */
  clb_arg arg[CLB_MAX_ARGS];
  int n_args;
  clb_status status;
} clb_call;
clb_call clb_call_start(clb_context *ctx);
/* Of an op, which must be of this kind. The first argument counts units of work. */
clb_call clb_call_begin(clb_op *op, int32_t kind, int64_t n, int64_t units);

void clb_call_argument(clb_call *c, clb_arg a);
void clb_call_memory(clb_call *c, const clb_memory *m);
void clb_call_buffer(clb_call *c, const clb_buffer *b); /* its memory */
void clb_call_i32(clb_call *c, int64_t x);
void clb_call_i64(clb_call *c, int64_t x);
void clb_call_real(clb_call *c, int32_t arithmetic, double x);
/* Memory, offset and stride of an operand that has been checked. */
void clb_call_operand(clb_call *c, const clb_operand *o);
/* The same of n rows of `columns`, after checking that they fit. */
void clb_call_rows(clb_call *c, const char *name, clb_dtype type, int64_t columns, clb_rows rows,
                   clb_role role);
/* int32 numbers, one per row: memory and offset, after checking that they fit. */
void clb_call_numbers(clb_call *c, const char *name, clb_rows numbers);
/* The op's tables, if the kernel of the pass reads them. */
void clb_call_tables(clb_call *c, const clb_op *op, int pass);

/* Launches so many groups of a kernel; none, or nothing to access, is no launch. */
clb_status clb_call_launch(clb_call *c, const clb_kernel *kernel, int64_t groups);
/* Launches the op's kernel of a pass on the units that the first argument counts. */
clb_status clb_call_run(clb_call *c, int pass);

/* Whether n rows of `columns` elements of so many bytes lie in the memory. */
bool clb_rows_fit(const clb_memory *m, int64_t bytes, int64_t offset, int64_t n, int64_t stride,
                  int64_t columns);
/* CLB_OK where the device runs kernels. */
clb_status clb_check_runs(const clb_context *ctx);
/* Arguments of a list that is written down in one place. */
static inline clb_arg clb_memory_arg(const clb_memory *m) {
  return (clb_arg){.type = IR_VOID, .memory = m};
}
static inline clb_arg clb_buffer_arg(const clb_buffer *b) { return clb_memory_arg(&b->memory); }
static inline clb_arg clb_i32_arg(int64_t x) {
  return (clb_arg){.type = IR_I32, .i32 = (int32_t)x};
}
static inline clb_arg clb_i64_arg(int64_t x) { return (clb_arg){.type = IR_I64, .i64 = x}; }
void clb_call_arguments(clb_call *c, const clb_arg *args, int n);

static inline int64_t clb_divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

#endif
