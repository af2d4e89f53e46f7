/* tools/ops/op.h - the table of ops as the command sees them: everything needed to name, check,
   show and time one. An op is one file here, NAME.c, and one row of ops.def. */
#ifndef CLB_TOOLS_OPS_OP_H
#define CLB_TOOLS_OPS_OP_H

#include "src/base/signature.h"
#include "tools/common/random.h"
#include "tools/cli/tool.h"
#include "tools/reference/reference_row.h"

/* How the data of a run are laid out. */
typedef enum {
  LAYOUT_DENSE,
  LAYOUT_PADDED,  /* with an offset, and gaps between rows */
  LAYOUT_ALIGNED, /* the same, both of four elements: wide accesses stay possible */
  LAYOUT_REPEAT,  /* CLB_SAME_ROW: one row for all, in arrays with `repeats` */
  LAYOUTS
} tool_layout;

typedef struct {
  int64_t rows;
  tool_layout layout;
  bool hard; /* with edge cases among the inputs: zeros, very small and very large numbers */
} tool_data;

/* What is compiled: a problem of the op, and the types. */
typedef struct {
  const void *problem;
  clb_dtype storage, arithmetic;
  bool accumulate;
} tool_kernel;
/* The usual types. */
#define F64 CLB_F64, CLB_F64
#define F32 CLB_F32, CLB_F32
#define F16 CLB_F16, CLB_F32
#define BF16 CLB_BF16, CLB_F32

enum { MAX_ARRAYS = 18, MAX_DATA = 8 };

/* One op to create for `check`, and the data to run it on (rows = 0 ends the list). */
typedef struct {
  tool_kernel kernel;
  tool_data data[MAX_DATA];
  unsigned passes; /* a bit set; 0: all passes of the op */
} tool_case;

/* One array of a pass, in the order in which run() takes them: [rows][width]; if width is 0 there
   is not a buffer. */
typedef struct {
  const char *name;
  int of; /* the operand whose shape it has: CLB_OPERAND_X, ... */
  int width;
  bool output;
  bool repeats;  /* is one row for all in LAYOUT_REPEAT */
  bool one_row;  /* a single row for all; for an output: the sum over rows */
  bool indexed;  /* an input that is gathered by row numbers */
  int left_out;  /* the width of an operand that the problem leaves out; then width is 0 */
  int kinds;     /* above 0: it comes with an index that says of which kind each row is */
  bool adjacent; /* what belongs to kinds lies side by side, in any layout */
  /* Of an op on graphs (others leave these 0): the rows, after how many of them values repeat, and
     the rows that are compared, ascending. */
  int64_t rows, period, n_compared;
  const int32_t *compared;
} tool_array;

/* What a problem says of the operands of its op's signature. */
typedef struct {
  int width[CLB_OPERAND_Z + 1]; /* of CLB_OPERAND_X, _Y, _W, _Z */
  unsigned one_row;             /* the operands that are one row for all, as are their gradients */
  unsigned gradients, incoming; /* those that derivative passes have; 0: all */
  unsigned indexed;             /* the inputs that are gathered */
  bool x_apart;                 /* x is not one row for all in LAYOUT_REPEAT */
  int kinds; /* above 0: a row of w, which comes with an index, has weights of so many kinds */
} tool_operands;

double third_rows_are_0(const void *problem, bool hard, int64_t row, int64_t at); /* hard ones */
void set_widths(tool_operands *o, reference_place rows); /* of x, w and z */

/* The kind, 0 ... kinds - 1, of a row among the distinct ones. */
int32_t kind_of_row(int64_t row, int kinds);

/* The data of one pass of an op whose arrays have rows of nodes and rows of edges: what `arrays`,
   `fill`, `reference` and `run` of tool_op do for others. */
typedef struct {
  void *(*make)(const tool_kernel *kernel, clb_pass pass,
                const tool_data *data); /* data NULL: the data of `bench` */
  void (*free)(void *graph);
  int64_t (*rows)(const void *graph); /* edges */
  int (*arrays)(const void *graph, tool_array *arrays);
  void (*fill)(const void *graph, double *const *values, uint64_t *seed);
  /* wanted and scale: of the rows that are compared. */
  void (*reference)(void *graph, double *const *values, double *const *wanted,
                    double *const *scale);
  /* Bytes of a pass, with each array counted once; of a workspace of full size; of a set, at most;
     those of a pass that are read. */
  double (*bytes)(const void *graph), (*more_bytes)(const void *graph),
      (*set_bytes)(const void *graph), (*read_bytes)(const void *graph);
  /* Floating-point operations of a pass. */
  clb_status (*flops)(const void *graph, clb_op *op, double *flops);
  /* Creates what the op needs besides the arrays; release with detach, whatever the status. */
  clb_status (*attach)(const void *graph, clb_context *ctx, clb_op *op, void **at);
  void (*detach)(void *at);
  clb_status (*run)(clb_op *op, clb_pass pass, const clb_rows *arrays, void *at);
  void (*compared)(const void *graph, char *out, size_t size); /* as text */
} tool_graph_data;

typedef struct {
  const char *name;
  /* Options of its problem. Their input is the problem, `problem_bytes` zeroed bytes that
     ARGP_KEY_INIT fills with defaults. */
  const struct argp *options;
  size_t problem_bytes;
  void (*print)(const void *problem, char *out, size_t size); /* in terms of the options */

  unsigned passes; /* a bit set of the op's passes */
  const tool_case *cases;
  int n_cases;

  const clb_signature *signature;
  void (*operands)(const void *problem, tool_operands *o); /* of zeros */
  /* The factor of a random element, number `at` of x, in row `row`: hard ones are edge cases.
     NULL: 1. */
  double (*factor)(const void *problem, bool hard, int64_t row, int64_t at);
  /* Computes outputs in float64 and, for each element, the scale by which its error is divided;
     values, wanted, scale by array. */
  void (*reference)(const void *problem, clb_pass pass, int64_t rows, double *const *values,
                    double *const *wanted, double *const *scale);

  int distinct_rows; /* in the data of `bench`: enough to judge the error, few enough for the
                      reference */
  /* The default of `bench`. NULL: about 100 MB of x in f32. */
  int64_t (*rows)(const void *problem, clb_pass pass);
  bool bytes_of_arrays; /* `bench` counts the bytes of each array once, instead of those that the IR
                           accesses */
  double (*growth)(const void *problem); /* growth of f32 rounding errors relative to a small
                                            problem: >= 1; NULL: 1 */

  /* These two are of calls.h. */
  clb_status (*create)(clb_context *ctx, const tool_kernel *kernel, unsigned passes, clb_op **op);
  clb_status (*run)(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *arrays);

  const tool_graph_data *on_graph; /* if there, the members from `operands` to `bytes_of_arrays`,
                                      and run, are unused */
  const char *row;                 /* what a row is called, if not "row": "edge" */
} tool_op;

/* The arrays of a pass, as they follow from the op's signature; returns how many. */
int operand_arrays(const clb_signature *signature, const tool_operands *o, clb_pass pass,
                   tool_array *arrays);
int op_arrays(const tool_op *op, const void *problem, clb_pass pass, tool_array *arrays);
/* Fills inputs with `rows` rows (one row if one_row), values[i] for arrays[i]; NULL for outputs. */
void op_fill(const tool_op *op, const void *problem, clb_pass pass, const tool_data *data,
             int64_t rows, double *const *values, uint64_t *seed);
int64_t op_rows(const tool_op *op, const void *problem, clb_pass pass);

/* The passes of a case, and those that `bench` times by default. */
unsigned passes_of(const tool_op *op, const tool_case *k);
enum {
  USUAL_PASSES =
      CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD)
};

/* One row of ops.def per op. */
#define TOOL_OP(name) extern const tool_op tool_op_##name;
#include "tools/ops/ops.def"
#undef TOOL_OP

enum {
#define TOOL_OP(name) TOOL_OP_##name,
#include "tools/ops/ops.def"
#undef TOOL_OP
  TOOL_OPS
};
extern const tool_op *const tool_ops[TOOL_OPS];

const tool_op *find_op(const char *name); /* NULL: no such op */
/* The problem of options, which blanks separate; freed by the caller. */
void *problem_of(const tool_op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For ARGP_KEY_ARG: the op of that name, or a usage error. */
const tool_op *wanted_op(const struct argp_state *state, const char *name);
/* The op named among the arguments, so that its options can be known before they are parsed; NULL:
   none. */
const tool_op *op_among(int argc, char **argv);
/* Describes the kernel's problem and its special settings: "lmax=4 component, accumulate". */
void print_kernel(const tool_op *op, const tool_kernel *kernel, char *out, size_t size);
extern const char *const layout_names[];
enum { LAYOUT_NAMES = CLB_BY_CHANNEL + 1, USUAL_LAYOUTS = CLB_IR_MUL + 1 };
clb_dtype usual_arithmetic(clb_dtype storage);
/* The largest acceptable error, relative to the scale of tool_op.reference. */
double tolerance_of(const tool_op *op, const tool_kernel *kernel);

#endif
