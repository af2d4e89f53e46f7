/* tools/ops/registry.c - the table of ops, and functions for all of them. */
#include "tools/ops/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const tool_op *const tool_ops[TOOL_OPS] = {
#define TOOL_OP(name) &tool_op_##name,
#include "tools/ops/ops.def"
#undef TOOL_OP
};

const tool_op *find_op(const char *name) {
  for (int i = 0; i < TOOL_OPS; i++)
    if (!strcmp(tool_ops[i]->name, name)) return tool_ops[i];
  return NULL;
}

void *problem_of(const tool_op *op, const char *format, ...) {
  char words[1024], bench[] = "bench", *argv[32] = {bench};
  int argc = 1;
  va_list args;
  va_start(args, format);
  const size_t n = (size_t)vsnprintf(words, sizeof words, format, args) + 1;
  va_end(args);
  char *problem = allocate(1, op->problem_bytes + n), *rest = problem + op->problem_bytes;
  memcpy(rest, words, n); /* which the problem may point to */
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) argv[argc++] = word;
  parse_arguments(op->options, argc, argv, ARGP_NO_HELP, problem);
  return problem;
}

const tool_op *wanted_op(const struct argp_state *state, const char *name) {
  const tool_op *op = find_op(name);
  if (op) return op;
  char list[256] = "";
  const char *names[TOOL_OPS];
  for (int i = 0; i < TOOL_OPS; i++) {
    size_t used = strlen(list);
    names[i] = tool_ops[i]->name;
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", tool_ops[i]->name);
  }
  const char *near = nearest_name(name, names, TOOL_OPS);
  argp_error(state, "no op '%s'; %s%s%sthere is %s", name, near ? "did you mean " : "",
             near ? near : "", near ? "? " : "", list);
  return NULL;
}

void set_widths(tool_operands *o, reference_place rows) {
  o->width[CLB_OPERAND_X] = (int)rows.x;
  o->width[CLB_OPERAND_W] = (int)rows.w;
  o->width[CLB_OPERAND_Z] = (int)rows.z;
}

/* Whether the pass leaves out this operand. */
static bool left_out(const tool_operands *o, clb_pass pass, clb_signature_operand of) {
  const bool written = clb_role_is_written(of.role) && pass != CLB_FORWARD;
  const unsigned set = written ? o->gradients : of.role == CLB_ROLE_INCOMING ? o->incoming : 0;
  return set && !(set & (unsigned)of.of);
}

int operand_arrays(const clb_signature *signature, const tool_operands *o, clb_pass pass,
                   tool_array *arrays) {
  clb_signature_operand list[CLB_SIGNATURE_OPERANDS];
  const int n = clb_signature_operands(signature, (int)pass, list);
  for (int i = 0; i < n; i++) {
    const unsigned of = (unsigned)list[i].of;
    const bool output = clb_role_is_written(list[i].role), out = left_out(o, pass, list[i]),
               one_row = o->one_row & of, input = list[i].role == CLB_ROLE_INPUT;
    const int width = o->width[of], kinds = of == CLB_OPERAND_W ? o->kinds : 0;
    arrays[i] = (tool_array){.name = list[i].name,
                             .of = list[i].of,
                             .width = out ? 0 : width,
                             .left_out = out ? width : 0,
                             .output = output,
                             .repeats = !output && !kinds && !(o->x_apart && !i),
                             .one_row = one_row,
                             .indexed = input && width && o->indexed & of,
                             .kinds = input ? kinds : 0,
                             .adjacent = kinds};
  }
  return n;
}

int op_arrays(const tool_op *op, const void *problem, clb_pass pass, tool_array *arrays) {
  tool_operands o = {.kinds = 0};
  op->operands(problem, &o);
  return operand_arrays(op->signature, &o, pass, arrays);
}

void op_fill(const tool_op *op, const void *problem, clb_pass pass, const tool_data *data,
             int64_t rows, double *const *values, uint64_t *seed) {
  tool_array a[MAX_ARRAYS];
  for (int n = op_arrays(op, problem, pass, a), i = 0; i < n; i++)
    for (int64_t e = 0; values[i] && e < (a[i].one_row ? 1 : rows) * a[i].width; e++)
      values[i][e] = random_number(seed) *
                     (i || !op->factor ? 1 : op->factor(problem, data->hard, e / a[i].width, e));
}

int64_t op_rows(const tool_op *op, const void *problem, clb_pass pass) {
  tool_operands o = {.kinds = 0};
  if (op->rows) return op->rows(problem, pass);
  op->operands(problem, &o);
  return (25 << 20) / o.width[CLB_OPERAND_X] + 1;
}

double third_rows_are_0(const void *problem, bool hard, int64_t row, int64_t at) {
  return (void)problem, (void)at, hard && row % 3 == 0 ? 0 : 1;
}

/* Equal ones are adjacent, a few at a time; of many rows, then neighbours differ, then all are of
   the last kind. */
int32_t kind_of_row(int64_t row, int kinds) {
  return (int32_t)(row < 64 ? row / 8 % kinds : row < 256 ? row % kinds : kinds - 1);
}

const tool_op *op_among(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (find_op(argv[i])) return find_op(argv[i]);
  return NULL;
}

unsigned passes_of(const tool_op *op, const tool_case *k) {
  return k->passes ? k->passes : op->passes;
}

const char *const layout_names[LAYOUT_NAMES] = {
    [CLB_MUL_IR] = "mul_ir", [CLB_IR_MUL] = "ir_mul", [CLB_BY_CHANNEL] = "by_channel"};

clb_dtype usual_arithmetic(clb_dtype storage) { return storage == CLB_F64 ? CLB_F64 : CLB_F32; }

void print_kernel(const tool_op *op, const tool_kernel *kernel, char *out, size_t size) {
  op->print(kernel->problem, out, size);
  size_t used = strlen(out);
  snprintf(out + used, size - used, "%s%s",
           kernel->arithmetic == usual_arithmetic(kernel->storage) ? "" : ", f64 arithmetic",
           kernel->accumulate ? ", accumulate" : "");
}

double tolerance_of(const tool_op *op, const tool_kernel *kernel) {
  static const double tolerance[DTYPES] = {2e-6, 1e-12, 2e-3, 1.6e-2};
  if (kernel->storage == CLB_F32 && kernel->arithmetic == CLB_F64)
    return 2e-7; /* only the rounding of the result */
  return tolerance[kernel->storage] *
         (kernel->storage == CLB_F32 && op->growth ? op->growth(kernel->problem) : 1);
}
