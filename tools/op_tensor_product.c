/* op_tensor_product.c - the Clebsch-Gordan tensor product as the command sees it. */
#include "ops.h"
#include "reference_tensor_product.h"
#include "tensor_product_problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Channel-wise, by its filter, or (filter NULL) as `desc` says; desc also has the layouts. */
typedef struct {
  const char *name, *x, *y, *filter;
  clb_tensor_product_desc desc;
  bool said; /* an option chose the irreps */
} tensor_problem;

/* ---- options ---- */

static const char *const layout_names[] = {"mul_ir", "ir_mul"};

static void choose_standard(tensor_problem *p, const struct argp_state *state, const char *name) {
  if (p->said) argp_error(state, "say --problem, once, or --x, --y and --filter");
  for (int i = 0; i < STANDARD; i++)
    if (!strcmp(name, standard[i].name)) {
      p->name = standard[i].name, p->x = standard[i].x, p->y = standard[i].y, p->filter = standard[i].filter;
      p->said = true;
      return;
    }
  char list[1024] = "";
  for (int i = 0; i < STANDARD; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", standard[i].name);
  }
  argp_error(state, "--problem is one of %s, not '%s'", list, name);
}

static void choose_irreps(tensor_problem *p, const struct argp_state *state, const char **which, const char *text) {
  if (p->name && p->said) argp_error(state, "say --problem, once, or --x, --y and --filter");
  if (!p->said) p->name = p->x = p->y = p->filter = NULL;
  p->said = true;
  *which = text;
}

static void choose_layout(tensor_problem *p, const struct argp_state *state, const char *name) {
  int i = !strcmp(name, layout_names[1]);
  if (strcmp(name, layout_names[i])) argp_error(state, "--layout is mul_ir or ir_mul, not '%s'", name);
  p->desc.layout_x = p->desc.layout_y = p->desc.layout_z = (clb_layout)i;
}

enum { KEY_PROBLEM = 300, KEY_X, KEY_Y, KEY_FILTER, KEY_LAYOUT };

static error_t parse(int key, char *arg, struct argp_state *state) {
  tensor_problem *p = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      choose_standard(p, state, "mace-large");
      choose_layout(p, state, "ir_mul");
      p->said = false;
      return 0;
    case KEY_PROBLEM: choose_standard(p, state, arg); return 0;
    case KEY_X: choose_irreps(p, state, &p->x, arg); return 0;
    case KEY_Y: choose_irreps(p, state, &p->y, arg); return 0;
    case KEY_FILTER: choose_irreps(p, state, &p->filter, arg); return 0;
    case KEY_LAYOUT: choose_layout(p, state, arg); return 0;
    case ARGP_KEY_END:
      if (!p->x || !p->y || !p->filter) argp_error(state, "--x, --y and --filter go together");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"problem", KEY_PROBLEM, "NAME", 0, "mace-large (default), mace-medium, nequip-lips, -aspirin, -toluene, -benzene, -water, nequix-first, -main, -last, "
                                        "sevennet-first, -main, flashtp-l1 ... l5, single-1-1-1, ... (l of x, y and the output)", 0},
    {"x", KEY_X, "IRREPS", 0, "Channel-wise product of these", 0},
    {"y", KEY_Y, "IRREPS", 0, "with these", 0},
    {"filter", KEY_FILTER, "IRREPS", 0, "to all that are among these", 0},
    {"layout", KEY_LAYOUT, "NAME", 0, "ir_mul (default: channels side by side) or mul_ir (e3nn's)", 0},
    {0}};
static const struct argp argp = {.options = options, .parser = parse};

static void print(const void *problem, char *out, size_t size) {
  static const char *const irreps[] = {"component", "norm", "none"}, *const paths[] = {"element", "path", "none"};
  const tensor_problem *p = problem;
  const clb_tensor_product_desc *d = &p->desc;
  size_t used;
  if (p->name) used = (size_t)snprintf(out, size, "%s", p->name);
  else if (p->filter) used = (size_t)snprintf(out, size, "%s (x) %s -> %s", p->x, p->y, p->filter);
  else used = (size_t)snprintf(out, size, "%s (x) %s => %s %s/%s", d->irreps_x, d->irreps_y, d->irreps_z, irreps[d->irrep_normalization], paths[d->path_normalization]);
  bool one = d->layout_x == d->layout_y && d->layout_x == d->layout_z;
  if (used < size) used += (size_t)snprintf(out + used, size - used, " %s", layout_names[d->layout_x]);
  if (used < size && !one) snprintf(out + used, size - used, ",%s,%s", layout_names[d->layout_y], layout_names[d->layout_z]);
}

/* ---- data ---- */

enum { MAX_INSTRUCTIONS = 512, Z_SIZE = 16384 };

/* The description with room for what a channel-wise one is made of. */
typedef struct {
  clb_tensor_product_desc desc;
  char z[Z_SIZE];
  clb_instruction instructions[MAX_INSTRUCTIONS];
} whole_desc;

static whole_desc *start_desc(const tensor_problem *p) {
  whole_desc *d = allocate(1, sizeof *d);
  d->desc = p->desc;
  if (!p->filter) return d;
  d->desc.irreps_x = p->x, d->desc.irreps_y = p->y, d->desc.irreps_z = d->z;
  d->desc.instructions = d->instructions;
  return d;
}

static reference_product *reference_of(const tensor_problem *p) {
  whole_desc *d = start_desc(p);
  if (p->filter) d->desc.n_instructions = reference_channel_wise(p->x, p->y, p->filter, d->z, Z_SIZE, d->instructions, MAX_INSTRUCTIONS);
  reference_product *r = d->desc.n_instructions > 0 ? reference_product_create(&d->desc) : NULL;
  if (!r) give_up("the reference of tensor_product does not understand this problem");
  free(d);
  return r;
}

static tool_array input(const char *name, int64_t width, bool repeats) {
  return (tool_array){.name = name, .width = (int)width, .repeats = repeats};
}

static tool_array output(const char *name, int64_t width) {
  return (tool_array){.name = name, .width = (int)width, .output = true};
}

static int arrays(const void *problem, clb_pass pass, tool_array *a) {
  reference_product *r = reference_of(problem);
  clb_tensor_product_sizes s = reference_product_sizes(r);
  reference_product_destroy(r);
  int n = 0;
  a[n++] = input("x", s.x, false);
  a[n++] = input("y", s.y, true);
  a[n++] = input("w", s.w, true);
  if (pass == CLB_FORWARD) {
    a[n++] = output("z", s.z);
    return n;
  }
  a[n++] = input("g", s.z, true);
  if (pass == CLB_DOUBLE_BACKWARD) {
    a[n++] = input("a", s.x, false);
    a[n++] = input("b", s.y, true);
    a[n++] = input("c", s.w, true);
  }
  bool twice = pass == CLB_DOUBLE_BACKWARD;
  a[n++] = output(twice ? "d_x" : "g_x", s.x);
  a[n++] = output(twice ? "d_y" : "g_y", s.y);
  a[n++] = output(twice ? "d_w" : "g_w", s.w);
  if (twice) a[n++] = output("d_g", s.z);
  return n;
}

static void fill(const void *problem, clb_pass pass, bool hard, int64_t rows, double *const *values, uint64_t *seed) {
  tool_array all[MAX_ARRAYS];
  (void)hard;
  for (int a = 0, n = arrays(problem, pass, all); a < n; a++)
    for (int64_t i = 0; values[a] && i < rows * all[a].width; i++) values[a][i] = random_number(seed);
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v, double *const *wanted, double *const *scale) {
  static const int inputs[] = {3, 4, 7};
  const double *in[7] = {NULL};
  for (int i = 0; i < inputs[pass]; i++) in[i] = v[i];
  reference_product *r = reference_of(problem);
  reference_product_run(r, pass, rows, in, wanted + inputs[pass], scale + inputs[pass]);
  reference_product_destroy(r);
}

static int64_t default_rows(const void *problem, clb_pass pass) {
  const tensor_problem *p = problem;
  if (p->name && !strncmp(p->name, "single-", 7)) return 200000;
  return pass == CLB_DOUBLE_BACKWARD ? 20000 : 50000;
}

static double growth(const void *problem) {
  (void)problem;
  return 1;
}

static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes, clb_op **op) {
  const tensor_problem *p = kernel->problem;
  whole_desc *d = start_desc(p);
  clb_status status = CLB_OK;
  d->desc.storage = kernel->storage;
  d->desc.arithmetic = kernel->arithmetic;
  d->desc.accumulate = kernel->accumulate;
  d->desc.passes = passes;
  if (p->filter) status = clb_channel_wise(ctx, p->x, p->y, p->filter, d->z, Z_SIZE, d->instructions, MAX_INSTRUCTIONS, &d->desc.n_instructions);
  if (!status) status = clb_tensor_product_create(ctx, &d->desc, op);
  free(d);
  return status;
}

static clb_status run(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *a) {
  if (pass == CLB_FORWARD) return clb_tensor_product_forward(op, rows, a[0], a[1], a[2], a[3]);
  if (pass == CLB_BACKWARD) return clb_tensor_product_backward(op, rows, a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
  return clb_tensor_product_double_backward(op, rows, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
}

/* ---- cases of `clebsch check` ---- */

#define LAYOUTS_ALL(l) .layout_x = l, .layout_y = l, .layout_z = l
#define CHANNEL_WISE(a, b, f, l) \
  &(const tensor_problem) { .x = a, .y = b, .filter = f, .desc = {LAYOUTS_ALL(l)} }
#define F64 CLB_F64, CLB_F64
#define F32 CLB_F32, CLB_F32
#define F16 CLB_F16, CLB_F32
#define BF16 CLB_BF16, CLB_F32

/* Several paths into one output, in no order, with and without weights; an output and an input that no path touches. */
static const clb_instruction tangled[] = {{2, 2, 1, CLB_UVU, 1, 0.5}, {0, 0, 0, CLB_UVU, 0, 1}, {1, 1, 0, CLB_UVU, 1, 2}, {1, 0, 1, CLB_UVU, 1, 1},
                                          {2, 2, 1, CLB_UVU, 0, 1.5}, {2, 2, 3, CLB_UVU, 1, 1}, {0, 1, 1, CLB_UVU, 1, 1}};
static const clb_instruction weightless[] = {{0, 0, 0, CLB_UVU, 0, 1}, {0, 1, 1, CLB_UVU, 0, 1}, {1, 1, 0, CLB_UVU, 0, 1}, {1, 2, 1, CLB_UVU, 0, 1}};
#define TANGLED(irrep, path, lx, ly, lz)                                                                                                   \
  &(const tensor_problem) {                                                                                                                \
    .desc = {.irreps_x = "5x0e+5x1o+5x1o+2x3o", .irreps_y = "0e+1o+2e", .irreps_z = "5x0e+5x1o+3x2e+5x3o", .instructions = tangled,           \
             .n_instructions = 7, .irrep_normalization = irrep, .path_normalization = path, .layout_x = lx, .layout_y = ly, .layout_z = lz } \
  }
#define WEIGHTLESS(l)                                                                                                                  \
  &(const tensor_problem) {                                                                                                            \
    .desc = {.irreps_x = "7x0e+7x1o", .irreps_y = "0e+1o+2e", .irreps_z = "7x0e+7x1o", .instructions = weightless, .n_instructions = 4, LAYOUTS_ALL(l) } \
  }

static const tool_case cases[] = {
    {{CHANNEL_WISE("1x0e", "0e", "0e", CLB_IR_MUL), F32, 0}, {{1, LAYOUT_DENSE, 0}, {33, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("1x1o", "1o", "0e+1e+2e", CLB_MUL_IR), F64, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("3x1o", SH2, SH3, CLB_IR_MUL), F64, 0}, {{31, LAYOUT_PADDED, 0}}},
    {{CHANNEL_WISE("7x0e+7x1o+7x2e", SH3, SH3, CLB_IR_MUL), F32, 0},
     {{1, LAYOUT_DENSE, 0}, {7, LAYOUT_PADDED, 0}, {33, LAYOUT_REPEAT, 0}, {131, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("7x0e+7x1o+7x2e", SH3, SH3, CLB_MUL_IR), F32, 0}, {{1, LAYOUT_DENSE, 0}, {33, LAYOUT_PADDED, 0}, {33, LAYOUT_REPEAT, 0}}},
    {{CHANNEL_WISE("16x0e+8x1o+4x2e+4x3o", SH3, SH3, CLB_IR_MUL), F32, 0}, {{33, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}}},
    {{CHANNEL_WISE("16x0e+8x1o+4x2e+4x3o", SH3, SH3, CLB_MUL_IR), F64, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("13x0e+5x1o+33x1e+1x2e", SH2, BOTH2("1"), CLB_IR_MUL), F64, 1}, {{17, LAYOUT_PADDED, 0}}},
    {{CHANNEL_WISE("13x0e+5x1o+33x1e+1x2e", SH2, BOTH2("1"), CLB_MUL_IR), F32, 1}, {{17, LAYOUT_REPEAT, 0}}},
    {{CHANNEL_WISE("123x1o", "1o", "0e+1e", CLB_IR_MUL), F32, 0}, {{19, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("89x0e", SH3, SH3, CLB_MUL_IR), F32, 0}, {{19, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("89x0e", SH3, SH3, CLB_IR_MUL), F16, 0}, {{19, LAYOUT_PADDED, 0}}},
    {{CHANNEL_WISE("32x0e+32x1o", SH3, SH2, CLB_IR_MUL), F16, 0}, {{65, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("32x0e+32x1o", SH3, SH2, CLB_MUL_IR), BF16, 0}, {{65, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("16x0e+8x1o", SH2, SH2, CLB_IR_MUL), BF16, 1}, {{33, LAYOUT_PADDED, 0}}},
    {{CHANNEL_WISE("33x2e", "1o", "1x3o", CLB_IR_MUL), F32, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("5x3o+3x5e", "3e+5o", "3o+5o+4e+2o", CLB_IR_MUL), F64, 0}, {{9, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("8x4e", "4e", "0e+4e", CLB_MUL_IR), F32, 0}, {{9, LAYOUT_DENSE, 0}}},
    {{CHANNEL_WISE("16x0e+8x1o", SH2, SH2, CLB_IR_MUL), CLB_F32, CLB_F64, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{TANGLED(CLB_IRREP_COMPONENT, CLB_PATH_ELEMENT, CLB_IR_MUL, CLB_IR_MUL, CLB_IR_MUL), F64, 0}, {{33, LAYOUT_DENSE, 0}, {33, LAYOUT_REPEAT, 0}}},
    {{TANGLED(CLB_IRREP_NORM, CLB_PATH_PATH, CLB_MUL_IR, CLB_MUL_IR, CLB_MUL_IR), F32, 1}, {{33, LAYOUT_PADDED, 0}}},
    {{TANGLED(CLB_IRREP_NONE, CLB_PATH_NONE, CLB_MUL_IR, CLB_IR_MUL, CLB_IR_MUL), F32, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{TANGLED(CLB_IRREP_NORM, CLB_PATH_ELEMENT, CLB_IR_MUL, CLB_MUL_IR, CLB_MUL_IR), F64, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{WEIGHTLESS(CLB_IR_MUL), F64, 0}, {{33, LAYOUT_DENSE, 0}}},
    {{WEIGHTLESS(CLB_MUL_IR), F32, 0}, {{33, LAYOUT_REPEAT, 0}}},
};

const tool_op tool_op_tensor_product = {
    .name = "tensor_product",
    .options = &argp,
    .problem_bytes = sizeof(tensor_problem),
    .print = print,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
    .arrays = arrays,
    .fill = fill,
    .reference = reference,
    .distinct_rows = 61,
    .rows = default_rows,
    .bytes_of_arrays = true,
    .growth = growth,
    .create = create,
    .run = run,
};
