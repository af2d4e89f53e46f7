/* tools/ops/rms_norm.c - norms of rows as the command sees them. */
#include "tools/ops/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static const char *const variant_names[] = {
    [CLB_RMS_PLAIN] = "plain",       [CLB_RMS_NEQUIX] = "nequix",
    [CLB_RMS_DEGREE] = "degree",     [CLB_RMS_DEGREE_NORM] = "degree_norm",
    [CLB_RMS_BALANCED] = "balanced", [CLB_RMS_TERMS] = "terms"};

enum { MAX_FACTORS = 64 };

/* A problem is the part of the description that is not in tool_kernel; it owns its irreps if it
   comes from options. */
typedef struct {
  clb_rms_norm_desc desc;
  char irreps[1024];
  double factors[MAX_FACTORS];
} parsed_problem;

static void set_irreps(parsed_problem *p, const struct argp_state *state, const char *text) {
  keep_text(state, "--irreps", text, p->irreps, sizeof p->irreps);
  const int64_t x = reference_norm_measure(&p->desc).x;
  if (x < 1 || x > 1 << 16)
    argp_error(state, "--irreps: '%s' is not irreps of 1 ... 65536 numbers, as 128x0e+64x1o", text);
}

static void set_factors(parsed_problem *p, const struct argp_state *state, const char *text) {
  int n = 0;
  for (const char *at = text; n < MAX_FACTORS; at++) {
    char *end;
    p->factors[n++] = strtod(at, &end);
    if (end == at || (*end && *end != ',') || n == MAX_FACTORS)
      argp_error(state, "--factors: '%s' is not numbers as 0.5,0.25, at most %d", text,
                 MAX_FACTORS - 1);
    at = end;
    if (!*at) break;
  }
  p->desc.variant = CLB_RMS_TERMS;
  p->desc.n_factors = n;
}

enum {
  KEY_WIDTH = 300,
  KEY_IRREPS,
  KEY_VARIANT,
  KEY_FACTORS,
  KEY_LAYOUT,
  KEY_OFFSET,
  KEY_CENTRE,
  KEY_BIAS
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  clb_rms_norm_desc *d = &p->desc;
  switch (key) {
    case ARGP_KEY_INIT:
      d->irreps = p->irreps;
      d->factors = p->factors;
      d->epsilon = 1e-6;
      set_irreps(p, state, "512x0e");
      return 0;
    case KEY_WIDTH:
      snprintf(p->irreps, sizeof p->irreps, "%dx0e",
               (int)whole_number(state, "--width", arg, 1, 1 << 16));
      return 0;
    case KEY_IRREPS: set_irreps(p, state, arg); return 0;
    case KEY_VARIANT:
      d->variant =
          (clb_rms_variant)name_among(state, "--variant", arg, variant_names, CLB_RMS_TERMS);
      return 0;
    case KEY_LAYOUT:
      d->layout = (clb_layout)name_among(state, "--layout", arg, layout_names, USUAL_LAYOUTS);
      return 0;
    case KEY_FACTORS: set_factors(p, state, arg); return 0;
    case KEY_OFFSET: d->weight_offset = 1; return 0;
    case KEY_CENTRE: d->centre = 1; return 0;
    case KEY_BIAS: d->bias = 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"width", KEY_WIDTH, "H", 0, "Rows of H numbers without irreps (default: 512)", 0},
    {"irreps", KEY_IRREPS, "IRREPS", 0, "Rows of irreps, as 128x0e+64x1o", 0},
    {"variant", KEY_VARIANT, "NAME", 0,
     "What is normalised: plain (default), nequix or balanced: the row; degree, degree_norm: each "
     "degree",
     0},
    {"factors", KEY_FACTORS, "F,F,...", 0, "The row: squares of each term times its factor", 0},
    {"layout", KEY_LAYOUT, "NAME", 0, "mul_ir (default) or ir_mul", 0},
    {"weight-offset", KEY_OFFSET, NULL, 0, "Weights are w + 1", 0},
    {"centre", KEY_CENTRE, NULL, 0, "Subtract the mean of 0e first", 0},
    {"bias", KEY_BIAS, NULL, 0, "Add a bias to 0e last", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_rms_norm_desc *d = problem;
  snprintf(out, size, "%s %s %s%s%s%s", d->irreps, variant_names[d->variant],
           layout_names[d->layout], d->weight_offset != 0 ? " w+1" : "", d->centre ? " centre" : "",
           d->bias ? " bias" : "");
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  const clb_rms_norm_desc *d = problem;
  set_widths(o, reference_norm_measure(d));
  o->one_row = CLB_OPERAND_W;
  o->gradients = d->gradients, o->incoming = d->incoming;
}

/* Hard: rows of zeros, and rows of very small and large numbers. */
static double factor(const void *problem, bool hard, int64_t row, int64_t at) {
  static const double sizes[] = {1, 0, 1e-3, 1e3};
  return (void)problem, (void)at, hard ? sizes[row % 4] : 1;
}

CALLS(rms_norm, 2)

/* ---- cases of `clebsch check` ---- */

#define NORM(text, kind, ...)                                                                      \
  &(const clb_rms_norm_desc) {                                                                     \
    .irreps = text, .variant = CLB_RMS_##kind, .epsilon = 1e-5, __VA_ARGS__                        \
  }
#define IRREPS "20x0e+12x1o+5x0o+7x2e+3x1e"
static const double factors[] = {0.02, 0.01, 0, 0.03, 0.2};

static const tool_case cases[] = {
    {{NORM("77x0e", PLAIN, 0), F32, 0}, {{1, LAYOUT_DENSE, 0}, {130, LAYOUT_PADDED, 1}}, 0},
    {{NORM("1x0e", PLAIN, 0), F32, 0}, {{1003, LAYOUT_DENSE, 0}}, 0},
    {{NORM("3x0e", PLAIN, .weight_offset = 1), F32, 1}, {{131, LAYOUT_PADDED, 0}}, 0},
    {{NORM("128x0e", PLAIN, 0), F32, 0}, {{1003, LAYOUT_DENSE, 1}, {67, LAYOUT_REPEAT, 0}}, 0},
    {{NORM("91x0e", PLAIN, 0), F64, 1}, {{67, LAYOUT_DENSE, 0}}, 0},
    {{NORM("2048x0e", PLAIN, .weight_offset = 1), F32, 0}, {{35, LAYOUT_DENSE, 0}}, 0},
    {{NORM("5001x0e", PLAIN, 0), F32, 1}, {{5, LAYOUT_DENSE, 0}}, 0},
    {{NORM("65536x0e", PLAIN, 0), F32, 0}, {{3, LAYOUT_DENSE, 0}}, 0},
    {{NORM(IRREPS, NEQUIX, 0), F32, 0}, {{35, LAYOUT_PADDED, 1}, {131, LAYOUT_DENSE, 0}}, 0},
    {{NORM(IRREPS, DEGREE, .layout = CLB_IR_MUL, .centre = 1, .bias = 1), F32, 1},
     {{67, LAYOUT_DENSE, 0}},
     0},
    {{NORM(IRREPS, DEGREE_NORM, .centre = 1), F64, 0}, {{33, LAYOUT_REPEAT, 1}}, 0},
    {{NORM("128x0e+64x1o+32x2e+32x3o", BALANCED, .bias = 1), F32, 0}, {{67, LAYOUT_DENSE, 0}}, 0},
    {{NORM(IRREPS, BALANCED, .layout = CLB_IR_MUL), CLB_F32, CLB_F64, 0},
     {{35, LAYOUT_DENSE, 1}},
     0},
    {{NORM(IRREPS, TERMS, .layout = CLB_IR_MUL, .centre = 1, .bias = 1, .factors = factors,
           .n_factors = 5),
      F64, 0},
     {{35, LAYOUT_DENSE, 0}},
     0},
    {{NORM("1024x0e+512x1o", NEQUIX, .centre = 1, .bias = 1), F64, 0}, {{5, LAYOUT_DENSE, 0}}, 0},
    {{NORM("64x0e+32x1o", DEGREE, 0), F16, 0}, {{66, LAYOUT_DENSE, 0}}, 0},
    {{NORM("91x0e", PLAIN, .weight_offset = 1), F16, 1}, {{34, LAYOUT_PADDED, 0}}, 0},
    {{NORM("77x0e", PLAIN, 0), BF16, 0}, {{130, LAYOUT_DENSE, 0}}, 0},
    {{NORM("256x0e", PLAIN, 0), BF16, 1}, {{66, LAYOUT_PADDED, 0}, {35, LAYOUT_DENSE, 0}}, 0},
};

const tool_op tool_op_rms_norm = {
    TOOL_USUAL(rms_norm), .factor = factor,        .reference = reference_norm_run,
    .distinct_rows = 64,  .bytes_of_arrays = true,
};
