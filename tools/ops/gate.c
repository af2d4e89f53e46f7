/* tools/ops/gate.c - gates as the command sees them. */
#include "tools/ops/calls.h"

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

static void start(parsed_problem *p, const struct argp_state *state) {
  static const char *const usual[] = {"128x0e", "96x0e", "64x1o+32x2e", "silu", "sigmoid"};
  clb_gate_desc *d = &p->desc;
  const char **const members[] = {&d->irreps_scalars, &d->irreps_gates, &d->irreps_gated,
                                  &d->act_scalars, &d->act_gates};
  for (int i = 0; i < TEXTS; i++) {
    keep_text(state, "an option", usual[i], p->text[i], sizeof p->text[i]);
    *members[i] = p->text[i];
  }
  d->normalize = 1;
}

static void check_sizes(const parsed_problem *p, const struct argp_state *state) {
  const int64_t x = reference_gate_measure(&p->desc).x;
  if (x < 1 || x > 1 << 16)
    argp_error(state,
               "this is no gate of 1 ... 65536 numbers: --scalars=%s --gates=%s --gated=%s "
               "--act-scalars=%s --act-gates=%s",
               p->text[0], p->text[1], p->text[2], p->text[3], p->text[4]);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  if (key >= KEY_SCALARS && key < KEY_LAYOUT) {
    char *to = p->text[key - KEY_SCALARS];
    keep_text(state, "an option", arg, to, sizeof p->text[0]);
    return 0;
  }
  switch (key) {
    case ARGP_KEY_INIT: start(p, state); return 0;
    case ARGP_KEY_END: check_sizes(p, state); return 0;
    case KEY_LAYOUT:
      p->desc.layout = (clb_layout)name_among(state, "--layout", arg, layout_names, USUAL_LAYOUTS);
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
           TEXT(d->irreps_gated), TEXT(d->act_scalars), TEXT(d->act_gates), layout_names[d->layout],
           d->normalize ? "" : " no-normalize");
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  set_widths(o, reference_gate_measure(problem));
}

/* Hard: zeros, at which some activations have a kink, and very small and large numbers. */
static double factor(const void *problem, bool hard, int64_t row, int64_t at) {
  static const double sizes[] = {2, 0, 2e-3, 200, 2};
  return (void)problem, (void)row, hard ? sizes[at % 5] : 2;
}

CALLS(gate, 1)

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
    TOOL_USUAL(gate),    .factor = factor,        .reference = reference_gate_run,
    .distinct_rows = 64, .bytes_of_arrays = true,
};
