/* tools/ops/op.h - the table of ops as the command sees them: all it takes to name, check, show and
   time one. An op is one file here, NAME.c, and one row of ops.def. */
#ifndef CLB_TOOLS_OPS_OP_H
#define CLB_TOOLS_OPS_OP_H

#include "tools/common/random.h"
#include "tools/cli/tool.h"

/* What data an op is run on. */
typedef enum {
  LAYOUT_DENSE,
  LAYOUT_PADDED, /* an offset, and rows further apart than they are wide */
  LAYOUT_REPEAT, /* stride 0: one row for all, of the arrays that say `repeats` */
  LAYOUTS
} tool_layout;

typedef struct {
  int64_t rows;
  tool_layout layout;
  bool hard; /* with the inputs that tend to go wrong: zeros, very small, very large */
} tool_data;

/* What is compiled: a problem of the op, and how numbers are kept. */
typedef struct {
  const void *problem;
  clb_dtype storage, arithmetic;
  bool accumulate;
} tool_kernel;

enum { MAX_ARRAYS = 18, MAX_DATA = 8 };

/* One op to create for `check`, and the data to run it on (rows = 0 ends the list). */
typedef struct {
  tool_kernel kernel;
  tool_data data[MAX_DATA];
  unsigned passes; /* a bit set; 0: all that the op has */
} tool_case;

/* One array of a pass, in the order in which run() takes them: [rows][width]; without width there
   is no buffer. */
typedef struct {
  const char *name;
  int width;
  bool output;
  bool repeats; /* in LAYOUT_REPEAT */
  bool one_row; /* for all rows; of an output: their sum */
  bool indexed; /* an input whose rows are found by number */
} tool_array;

/* What trial.h does for rows side by side, done by an op whose arrays have different numbers of
   rows; its `rows` are then something else. */
typedef struct {
  void *(*make)(const tool_kernel *kernel, clb_pass pass,
                const tool_data *data); /* data NULL: those of `bench` */
  void (*free)(void *trial);
  int64_t (*rows)(const void *trial);
  /* Of a pass: each array once; what a workspace adds that holds all; and of a set, at most. */
  double (*bytes)(const void *trial), (*more_bytes)(const void *trial),
      (*set_bytes)(const void *trial);
  /* Buffers on one device, and the op that runs on them; what was made goes with set_free, whatever
     the status. */
  clb_status (*set_make)(void *trial, clb_context *ctx, clb_op *op, void **set);
  void (*set_free)(void *set);
  clb_status (*run)(void *set);
  clb_status (*error)(const void *set, double *error); /* as trial_error, of what is compared */
  void (*compared)(const void *trial, char *out, size_t size); /* in words */
} tool_trial;

typedef struct {
  const char *name;
  /* Options of its problem.  Their input is the problem, problem_bytes of zeros that ARGP_KEY_INIT
     fills with defaults. */
  const struct argp *options;
  size_t problem_bytes;
  void (*print)(const void *problem, char *out, size_t size); /* in the words of the options */

  unsigned passes; /* a bit set of those it has */
  const tool_case *cases;
  int n_cases;

  int (*arrays)(const void *problem, clb_pass pass, tool_array *arrays); /* returns how many */
  /* Inputs of `rows` rows (one of those that say so), values[i] for arrays[i]; NULL for outputs. */
  void (*fill)(const void *problem, clb_pass pass, bool hard, int64_t rows, double *const *values,
               uint64_t *seed);
  /* Outputs in float64 and, for each element, the scale an error in it is divided by; values,
     wanted, scale by array. */
  void (*reference)(const void *problem, clb_pass pass, int64_t rows, double *const *values,
                    double *const *wanted, double *const *scale);

  int distinct_rows; /* of the data of `bench`: enough for the error, few enough for the reference
                      */
  int64_t (*rows)(const void *problem, clb_pass pass); /* of `bench` */
  bool bytes_of_arrays; /* `bench` counts the bytes of each array once, instead of those of the
                           program */
  double (*growth)(const void *problem); /* of rounding errors of f32 arithmetic, against a small
                                            problem: >= 1 */

  clb_status (*create)(clb_context *ctx, const tool_kernel *kernel, unsigned passes, clb_op **op);
  clb_status (*run)(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *arrays);

  const tool_trial *trial; /* NULL: trial.h does it; else nothing from `arrays` to
                              `bytes_of_arrays`, and no run */
  const char *row;         /* what a row is, where that is something else: "edge" */
} tool_op;

/* The passes of a case, and those that `bench` times unasked. */
unsigned passes_of(const tool_op *op, const tool_case *k);
enum {
  USUAL_PASSES =
      CLB_PASS_BIT(CLB_FORWARD) | CLB_PASS_BIT(CLB_BACKWARD) | CLB_PASS_BIT(CLB_DOUBLE_BACKWARD)
};

/* One row of ops.def an op. */
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
/* For ARGP_KEY_ARG: the op so named, or the usage error. */
const tool_op *wanted_op(const struct argp_state *state, const char *name);
/* The op named among the arguments, so that its options can be known before they are parsed; NULL:
   none. */
const tool_op *op_among(int argc, char **argv);
/* The kernel's problem and what is special about it: "lmax=4 component, accumulate". */
void print_kernel(const tool_op *op, const tool_kernel *kernel, char *out, size_t size);
clb_dtype usual_arithmetic(clb_dtype storage);
/* The largest error that is well, relative to the scale of tool_op.reference. */
double tolerance_of(const tool_op *op, const tool_kernel *kernel);

#endif
