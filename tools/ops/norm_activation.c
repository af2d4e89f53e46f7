/* tools/ops/norm_activation.c - norm activations as the command sees them. */
#include "tools/ops/calls.h"

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
  const int64_t x = reference_norm_activation_measure(&p->desc).x;
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
    case KEY_IRREPS: keep_text(state, "--irreps", arg, p->irreps, sizeof p->irreps); return 0;
    case KEY_ACT: keep_text(state, "--act", arg, p->act, sizeof p->act); return 0;
    case KEY_LAYOUT:
      p->desc.layout = (clb_layout)name_among(state, "--layout", arg, layout_names, USUAL_LAYOUTS);
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
  snprintf(out, size, "%s %s %s%s%s", d->irreps, d->act, layout_names[d->layout],
           d->normalize ? "" : " no-normalize", d->bias ? " bias" : "");
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  set_widths(o, reference_norm_activation_measure(problem));
}

/* Hard: rows of zeros, and of small and large numbers. */
static double factor(const void *problem, bool hard, int64_t row, int64_t at) {
  static const double sizes[] = {1, 0, 1e-2, 30};
  return (void)problem, (void)at, hard ? sizes[row % 4] : 1;
}

CALLS(norm_activation, 2)

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
    TOOL_USUAL(norm_activation),
    .factor = factor,
    .reference = reference_norm_activation_run,
    .distinct_rows = 64,
    .bytes_of_arrays = true,
};
