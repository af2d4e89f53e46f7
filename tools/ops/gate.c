/* tools/ops/gate.c - gates as the command sees them. */
#include "src/base/signature.h"
#include "tools/ops/op.h"
#include "tools/reference/reference_gate.h"

#include <stdio.h>
#include <string.h>

/* ---- options ---- */

enum { KEY_SCALARS = 300, KEY_GATES, KEY_GATED, KEY_ACT_SCALARS, KEY_ACT_GATES, TEXTS = 5 };
enum { KEY_LAYOUT = KEY_SCALARS + TEXTS, KEY_NORMALIZE };

/* A problem is the part of the description that is not in tool_kernel; it owns its texts if it
   comes from options. */
typedef struct {
  clb_gate_desc desc;
  char text[TEXTS][1024];
} parsed_problem;

static void set(parsed_problem *p, const struct argp_state *state, int i, const char *text) {
  if (snprintf(p->text[i], sizeof p->text[i], "%s", text) >= (int)sizeof p->text[i])
    argp_error(state, "an option is longer than %zu letters", sizeof p->text[i] - 1);
}

static void start(parsed_problem *p, const struct argp_state *state) {
  static const char *const usual[] = {"128x0e", "96x0e", "64x1o+32x2e", "silu", "sigmoid"};
  clb_gate_desc *d = &p->desc;
  const char **const members[] = {&d->irreps_scalars, &d->irreps_gates, &d->irreps_gated,
                                  &d->act_scalars, &d->act_gates};
  for (int i = 0; i < TEXTS; i++) {
    set(p, state, i, usual[i]);
    *members[i] = p->text[i];
  }
  d->normalize = 1;
}

static void check_sizes(const parsed_problem *p, const struct argp_state *state) {
  const reference_gate_sizes sizes = reference_gate_measure(&p->desc);
  if (sizes.x < 1 || sizes.x > 1 << 16)
    argp_error(state,
               "this is no gate of 1 ... 65536 numbers: --scalars=%s --gates=%s --gated=%s "
               "--act-scalars=%s --act-gates=%s",
               p->text[0], p->text[1], p->text[2], p->text[3], p->text[4]);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  if (key >= KEY_SCALARS && key < KEY_LAYOUT) {
    set(p, state, key - KEY_SCALARS, arg);
    return 0;
  }
  switch (key) {
    case ARGP_KEY_INIT: start(p, state); return 0;
    case ARGP_KEY_END: check_sizes(p, state); return 0;
    case KEY_LAYOUT:
      if (strcmp(arg, "mul_ir") && strcmp(arg, "ir_mul"))
        argp_error(state, "--layout is mul_ir or ir_mul, not '%s'", arg);
      p->desc.layout = strcmp(arg, "mul_ir") ? CLB_IR_MUL : CLB_MUL_IR;
      return 0;
    case KEY_NORMALIZE: p->desc.normalize = 0; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"scalars", KEY_SCALARS, "IRREPS", 0, "Activated scalars (default: 128x0e)", 0},
    {"gates", KEY_GATES, "IRREPS", 0, "Gates (default: 96x0e)", 0},
    {"gated", KEY_GATED, "IRREPS", 0, "What they multiply (default: 64x1o+32x2e)", 0},
    {"act-scalars", KEY_ACT_SCALARS, "NAMES", 0,
     "silu (default), tanh, sigmoid, relu, abs, ssp or identity, or one for each term: silu,tanh",
     0},
    {"act-gates", KEY_ACT_GATES, "NAMES", 0, "The same of gates (default: sigmoid)", 0},
    {"layout", KEY_LAYOUT, "NAME", 0, "mul_ir (default) or ir_mul", 0},
    {"no-normalize", KEY_NORMALIZE, NULL, 0, "Activations as they are", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_gate_desc *d = problem;
#define TEXT(s) ((s) ? (s) : "none")
  snprintf(out, size, "%s, %s * %s, %s %s %s%s", TEXT(d->irreps_scalars), TEXT(d->irreps_gates),
           TEXT(d->irreps_gated), TEXT(d->act_scalars), TEXT(d->act_gates),
           d->layout == CLB_IR_MUL ? "ir_mul" : "mul_ir", d->normalize ? "" : " no-normalize");
}

/* ---- data ---- */

static int arrays(const void *problem, clb_pass pass, tool_array *a) {
  const reference_gate_sizes sizes = reference_gate_measure(problem);
  return operand_arrays(
      &(tool_operands){
          .signature = &clb_signature_gate,
          .width =
              {[CLB_OPERAND_X] = sizes.x, [CLB_OPERAND_Y] = sizes.y, [CLB_OPERAND_Z] = sizes.y}},
      pass, a);
}

/* Hard: zeros, at which some activations have a kink, and very small and large numbers. */
static void fill(const void *problem, clb_pass pass, bool hard, int64_t rows, double *const *values,
                 uint64_t *seed) {
  static const double sizes[] = {1, 0, 1e-3, 100};
  tool_array a[MAX_ARRAYS];
  for (int n = arrays(problem, pass, a), i = 0; i < n; i++)
    for (int64_t e = 0; values[i] && e < rows * a[i].width; e++)
      values[i][e] = 2 * random_number(seed) * (hard && !i ? sizes[e % 5 % 4] : 1);
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  reference_gate_run(problem, pass, rows, v, wanted, scale);
}

/* About 100 MB of x in f32. */
static int64_t rows(const void *problem, clb_pass pass) {
  (void)pass;
  return (25 << 20) / reference_gate_measure(problem).x + 1;
}

static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes,
                         clb_op **op) {
  clb_gate_desc desc = *(const clb_gate_desc *)kernel->problem;
  desc.storage = kernel->storage;
  desc.arithmetic = kernel->arithmetic;
  desc.accumulate = kernel->accumulate;
  desc.passes = passes;
  return clb_gate_create(ctx, &desc, op);
}

static clb_status run(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *a) {
  if (pass == CLB_FORWARD) return clb_gate_forward(op, rows, a[0], a[1]);
  if (pass == CLB_BACKWARD) return clb_gate_backward(op, rows, a[0], a[1], a[2]);
  return clb_gate_double_backward(op, rows, a[0], a[1], a[2], a[3], a[4]);
}

/* ---- cases of `clebsch check` ---- */

#define PARTS(scalars, act, gates, act_gate, gated)                                                \
  .irreps_scalars = scalars, .act_scalars = act, .irreps_gates = gates, .act_gates = act_gate,     \
  .irreps_gated = gated
#define GATE(...)                                                                                  \
  &(const clb_gate_desc) { __VA_ARGS__ }
/* Every activation; a term of gated whose gates change their parity. */
#define MIXED                                                                                      \
  PARTS("5x0e+7x0o+3x0e+1x0e+9x0e+2x0o+4x0e", "silu,tanh,sigmoid,relu,2*ssp,abs,identity",         \
        "7x0e+6x0o", "silu,tanh", "6x1o+3x2e+4x0e")

static const tool_case cases[] = {
    {{GATE(PARTS("128x0e", "silu", "96x0e", "sigmoid", "64x1o+32x2e"), .normalize = 1), F32, 0},
     {{131, LAYOUT_DENSE, 0}, {35, LAYOUT_PADDED, 1}},
     0},
    {{GATE(MIXED, .normalize = 1), F32, 0}, {{67, LAYOUT_DENSE, 1}, {33, LAYOUT_REPEAT, 0}}, 0},
    {{GATE(MIXED, .layout = CLB_IR_MUL), F32, 1}, {{35, LAYOUT_PADDED, 0}}, 0},
    {{GATE(MIXED, .layout = CLB_IR_MUL, .normalize = 1), F64, 0}, {{35, LAYOUT_PADDED, 1}}, 0},
    {{GATE(MIXED, .irreps_x = "29x0e+6x1o+15x0o+4x0e+3x2e"), F64, 1}, {{33, LAYOUT_DENSE, 0}}, 0},
    {{GATE(.irreps_scalars = "1x0e", .act_scalars = "ssp", .normalize = 1), F32, 0},
     {{1003, LAYOUT_DENSE, 1}},
     0},
    {{GATE(PARTS(NULL, NULL, "33x0o", "abs", "33x3o"), .layout = CLB_IR_MUL), CLB_F32, CLB_F64, 0},
     {{35, LAYOUT_DENSE, 1}},
     0},
    {{GATE(PARTS("600x0e", "silu", "1x0e", "tanh", "1x4e"), .normalize = 1), F32, 0},
     {{5, LAYOUT_DENSE, 0}},
     0},
    {{GATE(PARTS("77x0e", "silu", "20x0e", "sigmoid", "20x1o")), F16, 0},
     {{66, LAYOUT_PADDED, 0}},
     0},
    {{GATE(PARTS("64x0e", "tanh", "32x0e", "silu", "32x1o")), BF16, 1}, {{35, LAYOUT_DENSE, 0}}, 0},
};

const tool_op tool_op_gate = {
    .name = "gate",
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
