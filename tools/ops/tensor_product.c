/* tools/ops/tensor_product.c - the Clebsch-Gordan tensor product as the command sees it. */
#include "tools/ops/calls.h"
#include "tools/ops/tensor_product_cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

static const char *const order_names[] = {"sorted", "found"};
static const char operand_letters[] = "xywz", incoming_letters[] = "abc";

static void choose_standard(tensor_problem *p, const struct argp_state *state, const char *name) {
  if (p->said) argp_error(state, "say --problem, once, or --x, --y and --filter or --z");
  for (int i = 0; i < STANDARD; i++)
    if (!strcmp(name, standard[i].name)) {
      p->name = standard[i].name, p->x = standard[i].x, p->y = standard[i].y,
      p->z = standard[i].filter;
      p->kind = standard[i].kind;
      p->desc.shared_weights |= standard[i].shared;
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

static void choose_irreps(tensor_problem *p, const struct argp_state *state, const char **which,
                          const char *text) {
  if (p->name && p->said) argp_error(state, "say --problem, once, or --x, --y and --filter or --z");
  if (!p->said) p->name = p->x = p->y = p->z = NULL;
  p->said = true;
  *which = text;
}

static void choose_output(tensor_problem *p, const struct argp_state *state, product_kind kind,
                          const char *text) {
  if (p->said && p->z) argp_error(state, "give either --filter or --z, and only once");
  choose_irreps(p, state, &p->z, text);
  p->kind = kind;
}

/* Reads "x,w" as operand bits. */
static unsigned chosen_letters(const struct argp_state *state, const char *option,
                               const char *letters, const char *text) {
  unsigned set = 0;
  for (const char *s = text;; s += 2) {
    const char *found = *s ? strchr(letters, *s) : NULL;
    if (!found || (s[1] && s[1] != ','))
      argp_error(state, "%s is some of the letters %s with commas between, not '%s'", option,
                 letters, text);
    else set |= 1u << (found - letters);
    if (!found || !s[1]) return set;
  }
}

enum {
  KEY_PROBLEM = 300,
  KEY_X,
  KEY_Y,
  KEY_FILTER,
  KEY_Z,
  KEY_ORDER,
  KEY_LAYOUT,
  KEY_SHARED,
  KEY_INDEXED,
  KEY_GRADIENTS,
  KEY_INCOMING
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  tensor_problem *p = state->input;
  switch (key) {
    case ARGP_KEY_INIT:
      choose_standard(p, state, "mace-large");
      p->desc.layout_x = p->desc.layout_y = p->desc.layout_z = CLB_IR_MUL;
      p->said = false;
      return 0;
    case KEY_PROBLEM: choose_standard(p, state, arg); return 0;
    case KEY_X: choose_irreps(p, state, &p->x, arg); return 0;
    case KEY_Y: choose_irreps(p, state, &p->y, arg); return 0;
    case KEY_FILTER: choose_output(p, state, CHANNEL_WISE, arg); return 0;
    case KEY_Z: choose_output(p, state, FULLY_CONNECTED, arg); return 0;
    case KEY_ORDER:
      p->order = (clb_path_order)name_among(state, "--order", arg, order_names, 2);
      return 0;
    case KEY_LAYOUT:
      p->desc.layout_x = p->desc.layout_y = p->desc.layout_z =
          (clb_layout)name_among(state, "--layout", arg, layout_names, USUAL_LAYOUTS);
      return 0;
    case KEY_SHARED: p->desc.shared_weights = 1; return 0;
    case KEY_INDEXED: p->desc.indexed = chosen_letters(state, "--indexed", "xyw", arg); return 0;
    case KEY_GRADIENTS:
      p->desc.gradients = chosen_letters(state, "--gradients", operand_letters, arg);
      return 0;
    case KEY_INCOMING:
      p->desc.incoming = chosen_letters(state, "--incoming", incoming_letters, arg);
      return 0;
    case ARGP_KEY_END:
      if (!p->x || !p->y || !p->z)
        argp_error(state, "--x, --y and --filter, or --x, --y and --z, go together");
      if (p->kind != CHANNEL_WISE && p->order != CLB_SORTED)
        argp_error(state, "--order is for channel-wise products");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"problem", KEY_PROBLEM, "NAME", 0,
     "mace-large (default), mace-medium, nequip-lips, -aspirin, -toluene, -benzene, -water, "
     "nequix-first, -main, -last, "
     "sevennet-first, -main, flashtp-l1 ... l5, single-1-1-1, ... (l of x, y and the output); "
     "fully connected: tetris-1, -2, "
     "diffdock-1, -2, e3tools-conv, -transformer",
     0},
    {"x", KEY_X, "IRREPS", 0, "Product of these", 0},
    {"y", KEY_Y, "IRREPS", 0, "with these,", 0},
    {"filter", KEY_FILTER, "IRREPS", 0, "channel-wise, to all irreps that are among these", 0},
    {"z", KEY_Z, "IRREPS", 0, "or fully connected, to these", 0},
    {"order", KEY_ORDER, "NAME", 0,
     "Weights of a channel-wise product: sorted like its output (default), or as found, x term by "
     "x term",
     0},
    {"layout", KEY_LAYOUT, "NAME", 0, "ir_mul (default: channels side by side) or mul_ir (e3nn's)",
     0},
    {"shared", KEY_SHARED, NULL, 0, "One row of weights for all rows", 0},
    {"indexed", KEY_INDEXED, "x,y,w", 0, "Operands whose rows are gathered by row number", 0},
    {"gradients", KEY_GRADIENTS, "x,y,w,z", 0,
     "Operands by which derivatives are taken (default: all)", 0},
    {"incoming", KEY_INCOMING, "a,b,c", 0,
     "The incoming gradients of double_backward (default: all)", 0},
    {0}};
const struct argp tensor_problem_argp = {.options = options, .parser = parse};

/* ---- text ---- */

static void say(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(char *out, size_t size, const char *format, ...) {
  size_t used = strlen(out);
  va_list args;
  va_start(args, format);
  vsnprintf(out + used, size - used, format, args);
  va_end(args);
}

static void say_letters(char *out, size_t size, const char *what, const char *letters,
                        unsigned set) {
  const char *between = "";
  if (!set) return;
  say(out, size, " %s=", what);
  for (int i = 0; letters[i]; i++)
    if (set >> i & 1) say(out, size, "%s%c", between, letters[i]), between = ",";
}

void tensor_problem_print(const void *problem, char *out, size_t size) {
  static const char *const irreps[] = {"component", "norm", "none"}, *const paths[] = {
                                                                         "element", "path", "none"};
  static const char *const kinds[] = {
      [FULL_PRODUCT] = "full ", [ELEMENTWISE] = "elementwise ", [OTHER_PRODUCT] = NULL};
  const tensor_problem *p = problem;
  const clb_tensor_product_desc *d = &p->desc;
  out[0] = 0;
  if (p->name) say(out, size, "%s", p->name);
  else if (p->kind == OTHER_PRODUCT)
    say(out, size, "%s (x) %s => %s", d->irreps_x, d->irreps_y, d->irreps_z);
  else if (p->z)
    say(out, size, "%s%s (x) %s %s %s", kinds[p->kind] ? kinds[p->kind] : "", p->x, p->y,
        p->kind == FULLY_CONNECTED ? "=>" : "->", p->z);
  else say(out, size, "%s%s (x) %s", kinds[p->kind], p->x, p->y);
  if (p->order == CLB_AS_FOUND) say(out, size, " found");
  if (d->irrep_normalization || d->path_normalization)
    say(out, size, " %s/%s", irreps[d->irrep_normalization], paths[d->path_normalization]);
  if (d->shared_weights) say(out, size, " shared");
  say_letters(out, size, "indexed", operand_letters, d->indexed);
  say_letters(out, size, "gradients", operand_letters, d->gradients);
  say_letters(out, size, "incoming", incoming_letters, d->incoming);
  say(out, size, " %s", layout_names[d->layout_x]);
  if (d->layout_x != d->layout_y || d->layout_x != d->layout_z)
    say(out, size, ",%s,%s", layout_names[d->layout_y], layout_names[d->layout_z]);
}

/* ---- descriptions ---- */

static tensor_desc *start_desc(const tensor_problem *p) {
  tensor_desc *d = allocate(1, sizeof *d);
  d->desc = p->desc;
  if (p->kind == OTHER_PRODUCT) return d;
  d->desc.irreps_x = d->found.irreps_x, d->desc.irreps_y = d->found.irreps_y,
  d->desc.irreps_z = d->found.irreps_z;
  d->desc.instructions = d->found.instructions;
  return d;
}

static clb_status library_finds(clb_context *ctx, const tensor_problem *p,
                                clb_instructions *found) {
  switch (p->kind) {
    case CHANNEL_WISE: return clb_channel_wise(ctx, p->x, p->y, p->z, p->order, found);
    case FULLY_CONNECTED: return clb_fully_connected(ctx, p->x, p->y, p->z, found);
    case FULL_PRODUCT: return clb_full(ctx, p->x, p->y, p->z, found);
    case ELEMENTWISE: return clb_elementwise(ctx, p->x, p->y, p->z, found);
    case OTHER_PRODUCT: break;
  }
  return CLB_OK;
}

static int reference_finds(const tensor_problem *p, clb_instructions *found) {
  switch (p->kind) {
    case CHANNEL_WISE: return reference_channel_wise(p->x, p->y, p->z, p->order, found);
    case FULLY_CONNECTED: return reference_fully_connected(p->x, p->y, p->z, found);
    case FULL_PRODUCT: return reference_full(p->x, p->y, p->z, found);
    case ELEMENTWISE: return reference_elementwise(p->x, p->y, p->z, found);
    case OTHER_PRODUCT: break;
  }
  return 1;
}

clb_status tensor_problem_describe(clb_context *ctx, const tensor_problem *p, tensor_desc **made) {
  tensor_desc *d = *made = start_desc(p);
  clb_status status = library_finds(ctx, p, &d->found);
  if (p->kind != OTHER_PRODUCT) d->desc.n_instructions = d->found.n_instructions;
  return status;
}

reference_product *tensor_problem_reference(const tensor_problem *p) {
  tensor_desc *d = start_desc(p);
  errno = 0;
  int good = reference_finds(p, &d->found);
  if (p->kind != OTHER_PRODUCT) d->desc.n_instructions = d->found.n_instructions;
  reference_product *r =
      good && d->desc.n_instructions > 0 ? reference_product_create(&d->desc) : NULL;
  if (!r && errno == ENOMEM) fatal("out of memory for the reference of tensor_product");
  if (!r) fatal("the reference of tensor_product does not understand this problem");
  free(d);
  return r;
}

/* ---- data ---- */

void tensor_operands(const clb_tensor_product_desc *d, clb_tensor_product_sizes sizes,
                     tool_operands *o) {
  o->width[CLB_OPERAND_X] = (int)sizes.x;
  o->width[CLB_OPERAND_Y] = (int)sizes.y;
  o->width[CLB_OPERAND_W] = (int)sizes.w;
  o->width[CLB_OPERAND_Z] = (int)sizes.z;
  o->one_row = d->shared_weights ? CLB_OPERAND_W : 0;
  o->gradients = d->gradients, o->incoming = d->incoming, o->indexed = d->indexed;
  o->x_apart = true;
}

static void operands(const void *problem, tool_operands *o) {
  const tensor_problem *p = problem;
  reference_product *r = tensor_problem_reference(p);
  tensor_operands(&p->desc, reference_product_sizes(r), o);
  reference_product_destroy(r);
}

static void reference(const void *problem, clb_pass pass, int64_t rows, double *const *v,
                      double *const *wanted, double *const *scale) {
  tool_array all[MAX_ARRAYS];
  const double *in[REFERENCE_MAX_INPUTS] = {NULL};
  double *out[REFERENCE_MAX_OUTPUTS] = {NULL};
  int n = op_arrays(&tool_op_tensor_product, problem, pass, all), inputs = reference_inputs(pass);
  for (int i = 0; i < n; i++) {
    if (!all[i].width) continue;
    if (i < inputs) in[i] = v[i];
    else out[i - inputs] = wanted[i];
  }
  reference_product *r = tensor_problem_reference(problem);
  reference_product_run(r, pass, rows, in, out, scale + inputs);
  reference_product_destroy(r);
}

static int64_t default_rows(const void *problem, clb_pass pass) {
  const tensor_problem *p = problem;
  if (p->name && !strncmp(p->name, "single-", 7)) return 200000;
  return pass >= CLB_DOUBLE_BACKWARD ? 20000 : 50000;
}

/* ---- calls ---- */

static clb_status create(clb_context *ctx, const tool_kernel *kernel, unsigned passes,
                         clb_op **op) {
  tensor_desc *d;
  clb_status status = tensor_problem_describe(ctx, kernel->problem, &d);
  SET_TYPES(d->desc, kernel, passes);
  if (!status) status = clb_tensor_product_create(ctx, &d->desc, op);
  free(d);
  return status;
}

PASSES_OF_3(tensor_product)

static clb_status run_any(clb_op *op, clb_pass pass, int64_t rows, const clb_rows *a) {
  if (pass != CLB_TRIPLE_BACKWARD) return run(op, pass, rows, a);
  const clb_triple_operands all = {ROWS_11(a), a[11], a[12], a[13], a[14], a[15], a[16], a[17]};
  return clb_tensor_product_triple_backward(op, rows, &all);
}

const tool_op tool_op_tensor_product = {
    .name = "tensor_product",
    .options = &tensor_problem_argp,
    .problem_bytes = sizeof(tensor_problem),
    .print = tensor_problem_print,
    .passes = (1u << PASSES) - 1,
    .cases = cases,
    .n_cases = sizeof cases / sizeof *cases,
    .signature = &clb_signature_tensor_product,
    .operands = operands,
    .reference = reference,
    .distinct_rows = 61,
    .rows = default_rows,
    .bytes_of_arrays = true,
    .create = create,
    .run = run_any,
};
