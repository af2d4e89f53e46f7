/* tools/ops/linear.c - linear maps of irreps as the command sees them. */
#include "tools/ops/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

/* The part of the description that is not in tool_kernel, and the texts of options. */
typedef struct {
  clb_linear_desc desc;
  char in[1024], out[1024];
} parsed_problem;

enum { KEY_IN = 300, KEY_OUT, KEY_BIAS, KEY_PATH, KEY_LAYOUT, KEY_PER_ROW, KEY_SPECIES };

static error_t parse(int key, char *arg, struct argp_state *state) {
  parsed_problem *p = state->input;
  clb_linear_desc *d = &p->desc;
  switch (key) {
    case ARGP_KEY_INIT:
      d->irreps_in = p->in;
      d->irreps_out = p->out;
      keep_text(state, "--irreps-in", "128x0e+128x1o+128x2e", p->in, sizeof p->in);
      keep_text(state, "--irreps-out", p->in, p->out, sizeof p->out);
      return 0;
    case KEY_IN: keep_text(state, "--irreps-in", arg, p->in, sizeof p->in); return 0;
    case KEY_OUT: keep_text(state, "--irreps-out", arg, p->out, sizeof p->out); return 0;
    case KEY_BIAS: d->bias = 1; return 0;
    case KEY_PATH: d->path_normalization = CLB_PATH_PATH; return 0;
    case KEY_LAYOUT:
      d->layout_in = d->layout_out =
          (clb_layout)name_among(state, "--layout", arg, layout_names, USUAL_LAYOUTS);
      return 0;
    case KEY_PER_ROW: d->weights_per_row = 1; return 0;
    case KEY_SPECIES: d->n_species = (int)whole_number(state, "--species", arg, 1, 1000); return 0;
    case ARGP_KEY_END:
      if (reference_linear_measure(d).x < 1)
        argp_error(state, "'%s' to '%s': irreps are terms such as 128x0e+64x1o", p->in, p->out);
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"irreps-in", KEY_IN, "IRREPS", 0, "Irreps of x (default: 128x0e+128x1o+128x2e)", 0},
    {"irreps-out", KEY_OUT, "IRREPS", 0, "Irreps of z (default: the same)", 0},
    {"bias", KEY_BIAS, NULL, 0, "Biases of 0e", 0},
    {"path", KEY_PATH, NULL, 0, "Normalise by paths, not by elements", 0},
    {"layout", KEY_LAYOUT, "NAME", 0, "mul_ir (default) or ir_mul", 0},
    {"weights-per-row", KEY_PER_ROW, NULL, 0, "Each row has its own weights", 0},
    {"species", KEY_SPECIES, "N", 0, "Weights by species, of which there are N", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  const clb_linear_desc *d = problem;
  size_t used = (size_t)snprintf(
      out, size, "%s -> %s %s%s%s%s%s", d->irreps_in, d->irreps_out, layout_names[d->layout_in],
      d->bias || d->biases ? " bias" : "", d->path_normalization == CLB_PATH_PATH ? " path" : "",
      d->instructions ? " instructions" : "", d->weights_per_row ? " weights per row" : "");
  if (d->n_species && used < size) snprintf(out + used, size - used, " %d species", d->n_species);
}

/* ---- data ---- */

static void operands(const void *problem, tool_operands *o) {
  const clb_linear_desc *d = problem;
  set_widths(o, reference_linear_measure(d));
  if (d->n_species) o->width[CLB_OPERAND_W] *= d->n_species;
  o->one_row = d->weights_per_row ? 0 : CLB_OPERAND_W;
  o->gradients = d->gradients, o->incoming = d->incoming;
  o->kinds = d->n_species;
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  const clb_linear_desc *d = problem;
  int32_t *of = allocate((size_t)rows + 1, sizeof *of);
  for (int64_t i = 0; i < rows; i++)
    of[i] = d->weights_per_row ? (int32_t)i : d->n_species ? kind_of_row(i, d->n_species) : 0;
  reference_linear_run(d, pass, rows, of,
                       d->weights_per_row ? rows
                       : d->n_species     ? d->n_species
                                          : 1,
                       v, wanted, scale);
  free(of);
}

static int64_t rows(const void *problem, clb_pass pass) {
  (void)pass;
  return ((const clb_linear_desc *)problem)->weights_per_row ? 1000 : 20000;
}

CALLS(linear, 2)

/* ---- cases of `clebsch check` ---- */

#define LINEAR(from, to, ...)                                                                      \
  &(const clb_linear_desc) { .irreps_in = from, .irreps_out = to, __VA_ARGS__ }
#define IRREPS "7x0e+5x1o+3x0o+9x2e+2x1e"
#define OTHERS "5x1o+20x0e+3x2e+1x0o+6x1o+2x3o"

static const clb_linear_instruction pairs[] = {{1, 4}, {0, 1}, {3, 2}, {0, 1}};
static const int biases[] = {0, 1, 0, 0, 0, 0};

static const tool_case cases[] = {
    {{LINEAR(IRREPS, OTHERS, .bias = 1), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {35, LAYOUT_PADDED, 1}, {131, LAYOUT_REPEAT, 0}},
     0},
    {{LINEAR(IRREPS, OTHERS, .bias = 1, .layout_in = CLB_IR_MUL), F64, 1},
     {{67, LAYOUT_PADDED, 0}},
     0},
    {{LINEAR("40x0e+33x1o", "37x0e+65x1o", .layout_in = CLB_IR_MUL, .layout_out = CLB_IR_MUL), F32,
      0},
     {{130, LAYOUT_DENSE, 0}},
     0},
    {{LINEAR(IRREPS, OTHERS, .instructions = pairs, .n_instructions = 4, .biases = biases,
             .n_biases = 6, .path_normalization = CLB_PATH_PATH),
      F64, 0},
     {{9, LAYOUT_DENSE, 1}, {130, LAYOUT_PADDED, 0}},
     0},
    {{LINEAR(IRREPS, OTHERS, .bias = 1, .weights_per_row = 1), F32, 1},
     {{35, LAYOUT_PADDED, 0}, {33, LAYOUT_REPEAT, 0}},
     0},
    {{LINEAR("6x0e+3x2e", "17x0e+5x2e", .bias = 1, .weights_per_row = 1, .layout_out = CLB_IR_MUL),
      F64, 0},
     {{66, LAYOUT_DENSE, 0}},
     0},
    {{LINEAR(IRREPS, OTHERS, .bias = 1, .n_species = 3), F32, 0},
     {{131, LAYOUT_PADDED, 0}, {5, LAYOUT_DENSE, 0}},
     0},
    {{LINEAR("8x0e+4x1o", "33x0e+3x1o", .n_species = 4, .layout_in = CLB_IR_MUL), CLB_F32, CLB_F64,
      1},
     {{67, LAYOUT_DENSE, 1}},
     0},
    {{LINEAR("16x0e+8x1o", "9x0e+5x1o", .bias = 1), F16, 0}, {{66, LAYOUT_DENSE, 0}}, 0},
    {{LINEAR("12x0e+4x2e", "5x0e+7x2e", .n_species = 2), F16, 1}, {{34, LAYOUT_PADDED, 0}}, 0},
    {{LINEAR("16x0e+8x1o", "9x0e+5x1o", .bias = 1), BF16, 1}, {{66, LAYOUT_PADDED, 0}}, 0},
    {{LINEAR("5x0e", "6x0e", .bias = 1, .weights_per_row = 1), BF16, 0},
     {{35, LAYOUT_DENSE, 0}},
     0},
};

const tool_op tool_op_linear = {
    TOOL_USUAL(linear), .factor = third_rows_are_0, .reference = reference, .distinct_rows = 24,
    .rows = rows,       .bytes_of_arrays = true,
};
