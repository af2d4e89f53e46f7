/* tools/ops/norm_activation.c - norm activations as the command sees them. */
#include "src/base/signature.h"
#include "tools/ops/op.h"
#include "tools/reference/reference_norm_activation.h"

#include <stdio.h>
#include <string.h>

/* ---- options ---- */

enum { KEY_IRREPS = 300, KEY_ACT, KEY_LAYOUT, KEY_NORMALIZE, KEY_BIAS };

/* A problem is the part of the description that is not in tool_kernel; it owns its texts if it
   comes from options. */
typedef struct {
  clb_norm_activation_desc desc;
  char irreps[1024], act[64];
} parsed_problem;

static void check_sizes(const parsed_problem *p, const struct argp_state *state) {
  const int x = reference_norm_activation_measure(&p->desc).x;
  if (x < 1 || x > 1 << 16)
    argp_error(state,
               "--irreps=%s --act=%s: these are no irreps of 1 ... 65536 numbers, as "
               "128x0e+64x1o, or no activation: silu, tanh, sigmoid, relu, abs, ssp, identity",
               p->irreps, p->act);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      p->desc.irreps = strcpy(p->irreps, "128x0e+64x1o+32x2e");
      p->desc.act = strcpy(p->act, "sigmoid");
      p->desc.normalize = 1;
      return 0;
    case ARGP_KEY_END: check_sizes(p, state); return 0;
    case KEY_IRREPS: snprintf(p->irreps, sizeof p->irreps, "%s", arg); return 0;
    case KEY_ACT: snprintf(p->act, sizeof p->act, "%s", arg); return 0;
    case KEY_LAYOUT:
      if (strcmp(arg, "mul_ir") && strcmp(arg, "ir_mul"))
        argp_error(state, "--layout is mul_ir or ir_mul, not '%s'", arg);
      p->desc.layout = strcmp(arg, "mul_ir") ? CLB_IR_MUL : CLB_MUL_IR;
      return 0;
    case KEY_NORMALIZE: p->desc.normalize = 0; return 0;
    case KEY_BIAS: p->desc.bias = 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"irreps", KEY_IRREPS, "IRREPS", 0, "Rows of irreps (default: 128x0e+64x1o+32x2e)", 0},
    {"act", KEY_ACT, "NAME", 0, "sigmoid (default), silu, tanh, relu, abs, ssp or identity", 0},
    {"layout", KEY_LAYOUT, "NAME", 0, "mul_ir (default) or ir_mul", 0},
    {"no-normalize", KEY_NORMALIZE, NULL, 0, "y = act(|x|) x instead of act(|x|) x / |x|", 0},
    {"bias", KEY_BIAS, NULL, 0, "Add a bias to norms", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_norm_activation_desc *d = problem;
  snprintf(out, size, "%s %s %s%s%s", d->irreps, d->act,
           d->layout == CLB_IR_MUL ? "ir_mul" : "mul_ir", d->normalize ? "" : " no-normalize",
           d->bias ? " bias" : "");
}

/* ---- data ---- */

static int arrays(const void *problem, clb_pass pass, tool_array *a) {
  const reference_norm_activation_sizes sizes = reference_norm_activation_measure(problem);
  return operand_arrays(
      &(tool_operands){
          .signature = &clb_signature_norm_activation,
          .width =
              {[CLB_OPERAND_X] = sizes.x, [CLB_OPERAND_W] = sizes.w, [CLB_OPERAND_Z] = sizes.x}},
      pass, a);
}

/* Hard: rows of zeros, and of small and large numbers. */
static void fill(const void *problem, clb_pass pass, bool hard, int64_t rows, double *const *values,
                 uint64_t *seed) {
  static const double sizes[] = {1, 0, 1e-2, 30};
  tool_array a[MAX_ARRAYS];
  for (int n = arrays(problem, pass, a), i = 0; i < n; i++)
    for (int64_t e = 0; values[i] && e < rows * a[i].width; e++)
      values[i][e] = random_number(seed) * (hard && !i ? sizes[e / a[i].width % 4] : 1);
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  reference_norm_activation_run(problem, pass, rows, v, wanted, scale);
}

/* About 100 MB of x in f32. */
static int64_t rows(const void *problem, clb_pass pass) {
  (void)pass;
  return (25 << 20) / reference_norm_activation_measure(problem).x + 1;
}

static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes,
                         clb_op **op) {
  clb_norm_activation_desc desc = *(const clb_norm_activation_desc *)kernel->problem;
  desc.storage = kernel->storage;
  desc.arithmetic = kernel->arithmetic;
  desc.accumulate = kernel->accumulate;
  desc.passes = passes;
  return clb_norm_activation_create(ctx, &desc, op);
}

static clb_status run(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *a) {
  if (pass == CLB_FORWARD) return clb_norm_activation_forward(op, rows, a[0], a[1], a[2]);
  if (pass == CLB_BACKWARD)
    return clb_norm_activation_backward(op, rows, a[0], a[1], a[2], a[3], a[4]);
  return clb_norm_activation_double_backward(op, rows, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                                             a[7]);
}

/* ---- cases of `clebsch check` ---- */

#define NORM(text, name, ...)                                                                      \
  &(const clb_norm_activation_desc) { .irreps = text, .act = name, __VA_ARGS__ }
#define IRREPS "20x0e+13x1o+5x0o+7x2e+3x1e+2x5o"
/* In f32 derivatives of normalised rows are as large as 1 / epsilon. */
#define EPSILON .normalize = 1, .epsilon = 0.1

static const tool_case cases[] = {
    {{NORM(IRREPS, "sigmoid", EPSILON), F32, 0},
     {{131, LAYOUT_DENSE, 1}, {35, LAYOUT_PADDED, 0}},
     0},
    {{NORM(IRREPS, "silu", EPSILON, .bias = 1), F32, 1}, {{67, LAYOUT_PADDED, 1}}, 0},
    {{NORM(IRREPS, "1.5*tanh", .bias = 1, .layout = CLB_IR_MUL), F32, 0},
     {{67, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}},
     0},
    {{NORM(IRREPS, "ssp", .bias = 1), F64, 0}, {{35, LAYOUT_DENSE, 1}}, 0},
    {{NORM(IRREPS, "sigmoid", EPSILON, .bias = 1, .layout = CLB_IR_MUL), F64, 1},
     {{35, LAYOUT_PADDED, 1}},
     0},
    {{NORM("77x1o", "abs", .bias = 0), F32, 0}, {{130, LAYOUT_DENSE, 0}}, 0},
    {{NORM("1x3o", "silu", EPSILON), CLB_F32, CLB_F64, 0}, {{1003, LAYOUT_DENSE, 1}}, 0},
    {{NORM("300x1o", "identity", .bias = 1), F32, 0}, {{5, LAYOUT_DENSE, 0}}, 0},
    {{NORM("64x0e+32x1o", "sigmoid", EPSILON, .bias = 1), F16, 0}, {{66, LAYOUT_PADDED, 0}}, 0},
    {{NORM("33x1o+5x2e", "tanh", .bias = 1), BF16, 1}, {{35, LAYOUT_DENSE, 0}}, 0},
};

const tool_op tool_op_norm_activation = {
    .name = "norm_activation",
    .options = &argp,
    .problem_bytes = sizeof(parsed_problem),
    .print = print,
    .passes = USUAL_PASSES,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
    .arrays = arrays,
    .fill = fill,
    .reference = reference,
    .distinct_rows = 64,
    .rows = rows,
    .bytes_of_arrays = true,
    .create = create,
    .run = run,
};
