/* src/codegen/vector/vector.c - a kernel as C with vector extensions, for CPUs: one sub-group,
   whose lanes are those of a vector.

   A uniform value is a scalar. An affine integer is the scalar of lane 0; its stride is another
   value. A varying value is a vector, except a mask "lane < bound", which is the count of active
   lanes: accesses under it test it once and then access all lanes together. Constants are printed
   where they are used. */
#include "src/codegen/vector/vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/codegen/codegen.h"

/* ---- masks ---- */

/* "lane < bound" without wrap-around: the active lanes are the first ones. */
static bool is_prefix(const vector_printer *p, const ir_ins *i) {
  const ir_ins *a = vector_ins(p, i->arg[0]);
  if (i->op != IR_LT || a->shape != IR_AFFINE || !vector_uniform(p, i->arg[1]) ||
      ir_int_value(p->k, a->stride, 0) != 1)
    return false;
  return a->op == IR_LANE || a->type == IR_I64;
}

static bool is_counted(const vector_printer *p, const ir_ins *i) {
  if (i->type != IR_BOOL || i->shape == IR_UNIFORM) return false;
  return is_prefix(p, i) || (i->op == IR_AND && clb_vector_countable(p, i->arg[0]) &&
                             clb_vector_countable(p, i->arg[1]));
}

static void counted_mask(vector_printer *p, const ir_ins *i) {
  clb_vector_emit(p, i->op == IR_LT ? "prefix_count(" : "min_i32(");
  if (i->op == IR_LT) clb_vector_operands(p, i->arg, 2, false);
  else {
    clb_vector_count(p, i->arg[0]);
    clb_vector_emit(p, ", ");
    clb_vector_count(p, i->arg[1]);
  }
  clb_vector_emit(p, ")");
}

/* ---- values ---- */

static void infix(vector_printer *p, const ir_ins *i, bool wide) {
  static const char *const signs[IR_OP_COUNT] = {
      [IR_ADD] = "+", [IR_SUB] = "-", [IR_MUL] = "*", [IR_DIV] = "/",
      [IR_MOD] = "%", [IR_XOR] = "^", [IR_AND] = "&", [IR_OR] = "|"};
  clb_vector_operand(p, i->arg[0], wide);
  clb_vector_emit(p, " %s ", signs[i->op]);
  clb_vector_operand(p, i->arg[1], wide);
}

static void compare(vector_printer *p, const ir_ins *i, bool wide) {
  static const char *const signs[IR_OP_COUNT] = {[IR_LT] = "<", [IR_LE] = "<=", [IR_EQ] = "=="};
  static const char *const names[IR_OP_COUNT] = {[IR_LT] = "lt", [IR_LE] = "le", [IR_EQ] = "eq"};
  if (wide)
    clb_vector_emit(p, "%s_%sv(", names[i->op], vector_type_name(vector_type(p, i->arg[0])));
  clb_vector_operand(p, i->arg[0], wide);
  clb_vector_emit(p, wide ? ", " : " %s ", signs[i->op]);
  clb_vector_operand(p, i->arg[1], wide);
  if (wide) clb_vector_emit(p, ")");
}

static void call(vector_printer *p, const ir_ins *i, bool wide) {
  static const char *const names[IR_OP_COUNT] = {
      [IR_MIN] = "min",       [IR_MAX] = "max",          [IR_ABS] = "abs", [IR_FMA] = "fma",
      [IR_SQRT] = "sqrt",     [IR_EXP] = "exp",          [IR_SIN] = "sin", [IR_COS] = "cos",
      [IR_SELECT] = "select", [IR_MUL_HIGH] = "mul_high"};
  clb_vector_emit(p, "%s_%s%s(", names[i->op], vector_type_name((ir_type)i->type), wide ? "v" : "");
  clb_vector_operands(p, i->arg, i->arg[2] == IR_NONE ? 1 + (i->arg[1] != IR_NONE) : 3, wide);
  clb_vector_emit(p, ")");
}

static void prefixed(vector_printer *p, const ir_ins *i, bool wide) {
  clb_vector_emit(p, i->op == IR_NEG ? "-" : wide ? "~" : "!");
  clb_vector_operand(p, i->arg[0], wide);
}

static void cast(vector_printer *p, const ir_ins *i, bool wide) {
  clb_vector_emit(p, wide ? "CONVERT(%sv, " : "(%s)(", vector_type_name((ir_type)i->type));
  clb_vector_operand(p, i->arg[0], wide);
  clb_vector_emit(p, ")");
}

static void shuffle(vector_printer *p, const ir_ins *i, bool wide) {
  const char *t = vector_type_name((ir_type)i->type);
  clb_vector_emit(p, wide ? "shuffle_%s(" : "lane_%s(", t);
  clb_vector_lanes(p, i->arg[0]);
  clb_vector_emit(p, ", ");
  clb_vector_operand(p, i->arg[1], wide);
  clb_vector_emit(p, ")");
}

static void shuffle_xor(vector_printer *p, const ir_ins *i, bool wide) {
  const char *t = vector_type_name((ir_type)i->type);
  (void)wide;
  clb_vector_emit(p, "SHUF(%sv, %si, ", t, t);
  clb_vector_lanes(p, i->arg[0]);
  clb_vector_emit(p, ", ");
  clb_vector_lanes(p, i->arg[0]);
  for (int r = 0; r < p->k->lanes; r++) clb_vector_emit(p, ", %d", r ^ (int)i->imm);
  clb_vector_emit(p, ")");
}

static void reduce(vector_printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  clb_vector_emit(p, "reduce_%s(", vector_type_name((ir_type)i->type));
  clb_vector_lanes(p, i->arg[0]);
  clb_vector_emit(p, ")");
}

static void identity(vector_printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  clb_vector_emit(p, i->op == IR_GROUP ? "(i32)group" : "0");
}

static void get(vector_printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  clb_vector_emit(p, "x%d", (int)i->arg[0]);
}

static void element(vector_printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  clb_vector_emit(p, "w%d[%d]", (int)i->arg[0], (int)i->imm);
}

/* ---- statements ---- */

static void assignment(vector_printer *p, ir_val var, ir_val value) {
  clb_vector_emit(p, "x%d = ", (int)var);
  clb_vector_operand(p, value, !vector_uniform(p, var));
  clb_vector_emit(p, ";");
}

static void loop(vector_printer *p, int32_t v, const ir_ins *i) {
  clb_vector_emit(p, "for (%s v%d = ", vector_type_name((ir_type)i->type), (int)v);
  clb_vector_scalar(p, i->arg[0]);
  clb_vector_emit(p, "; v%d < ", (int)v);
  clb_vector_scalar(p, i->arg[1]);
  clb_vector_emit(p, "; v%d += ", (int)v);
  clb_vector_scalar(p, i->arg[2]);
  clb_vector_emit(p, ") {");
}

typedef void say_value(vector_printer *p, const ir_ins *i, bool wide);
static say_value *const values[IR_OP_COUNT] = {
    [IR_GROUP] = identity,    [IR_SUBGROUP] = identity, [IR_LANE] = identity,
    [IR_ADD] = infix,         [IR_SUB] = infix,         [IR_MUL] = infix,
    [IR_DIV] = infix,         [IR_MOD] = infix,         [IR_AND] = infix,
    [IR_OR] = infix,          [IR_MIN] = call,          [IR_MAX] = call,
    [IR_ABS] = call,          [IR_FMA] = call,          [IR_SQRT] = call,
    [IR_EXP] = call,          [IR_SIN] = call,          [IR_COS] = call,
    [IR_SELECT] = call,       [IR_NEG] = prefixed,      [IR_NOT] = prefixed,
    [IR_LT] = compare,        [IR_LE] = compare,        [IR_EQ] = compare,
    [IR_CAST] = cast,         [IR_SHUFFLE] = shuffle,   [IR_SHUFFLE_XOR] = shuffle_xor,
    [IR_REDUCE_ADD] = reduce, [IR_GET] = get,           [IR_ELEMENT] = element,
    [IR_XOR] = infix,         [IR_MUL_HIGH] = call};

static void value(vector_printer *p, int32_t v, const ir_ins *i) {
  bool wide = i->shape == IR_VARYING && !p->counted[v];
  clb_vector_emit(p, "const %s%s v%d = ", vector_type_name((ir_type)i->type), wide ? "v" : "",
                  (int)v);
  if (p->counted[v]) counted_mask(p, i);
  else values[i->op](p, i, wide);
  clb_vector_emit(p, ";");
}

static void statement(vector_printer *p, int32_t v, const ir_ins *i) {
  if (i->op == IR_ELSE || i->op == IR_END) p->depth--, clb_vector_close_pointers(p);
  clb_vector_emit(p, "%*s", 2 * p->depth, "");
  switch (i->op) {
    case IR_LOCAL:
      clb_vector_emit(p, "%s b%d[%" PRId64 "] __attribute__((aligned(64)));",
                      clb_vector_storage((ir_type)i->element), (int)v, i->imm);
      break;
    case IR_VAR:
      clb_vector_emit(p, "%s%s ", vector_type_name((ir_type)i->type),
                      i->shape == IR_UNIFORM ? "" : "v"),
          assignment(p, v, i->arg[0]);
      break;
    case IR_SET: assignment(p, i->arg[0], i->arg[1]); break;
    case IR_LOAD: clb_vector_load(p, v, i); break;
    case IR_STORE: clb_vector_store(p, i); break;
    case IR_ATOMIC_ADD: clb_vector_atomic_add(p, i); break;
    case IR_COPY: clb_vector_copy(p, i); break;
    case IR_PREFETCH: clb_vector_prefetch(p, i); break;
    case IR_LOOP: loop(p, v, i); break;
    case IR_IF:
      clb_vector_emit(p, "if ("), clb_vector_scalar(p, i->arg[0]), clb_vector_emit(p, ") {");
      break;
    case IR_ELSE: clb_vector_emit(p, "} else {"); break;
    case IR_END: clb_vector_emit(p, "}"); break;
    default: value(p, v, i);
  }
  clb_vector_emit(p, "\n");
  if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE) p->depth++;
}

static void parameters(vector_printer *p) {
  int n = 0;
  for (int32_t v = 0; v < p->k->n; v++) {
    const ir_ins *i = vector_ins(p, v);
    if (i->op == IR_BUFFER)
      clb_vector_emit(p, "  %s *const b%d = arg[%d].p;\n", clb_vector_storage((ir_type)i->element),
                      (int)v, n++);
    if (i->op == IR_SCALAR)
      clb_vector_emit(p, "  const %s v%d = arg[%d].%s;\n", vector_type_name((ir_type)i->type),
                      (int)v, n, vector_type_name((ir_type)i->type)),
          n++;
  }
  clb_vector_emit(p, "  const i32 stream = arg[%d].i64 != 0;\n", n + 1);
  for (int32_t v = 0; v < p->k->n; v++) {
    const char *s = clb_vector_storage(vector_element(p, v));
    if (!p->block[v].columns) continue;
    clb_vector_emit(p, "  %s stage%d[L * %d] __attribute__((aligned(64)));\n", s, (int)v,
                    (int)p->block[v].columns);
    clb_vector_emit(p, "  const i32 large%d = arg[%d].i64 > LARGE / (i64)sizeof stage%d;\n", (int)v,
                    n, (int)v);
  }
}

/* Instructions that print nothing: printed elsewhere, or not needed as lanes run in lockstep. */
static bool silent(ir_op op) {
  return op == IR_BUFFER || op == IR_SCALAR || op == IR_INT || op == IR_REAL ||
         op == IR_COPY_COMMIT || op == IR_COPY_WAIT || op == IR_BARRIER;
}

static bool reads(const ir_ins *i, ir_val array) {
  return ((i->op == IR_LOAD || i->op == IR_ATOMIC_ADD) && i->arg[0] == array) ||
         (i->op == IR_COPY && i->arg[2] == array);
}

/* Everything that must be known before printing starts. */
static void prepare(vector_printer *p) {
  for (int32_t v = 0; v < p->k->n; v++) p->counted[v] = is_counted(p, vector_ins(p, v));
  for (int32_t v = 0; v < p->k->n; v++)
    if (vector_ins(p, v)->op != IR_BUFFER || !clb_vector_find_block(p->k, v, &p->block[v]) ||
        !clb_vector_countable(p, p->block[v].mask))
      p->block[v].columns = 0;
  for (int32_t v = 0; v < p->k->n; v++)
    for (int32_t a = 0; a < p->k->n; a++)
      if (p->k->ins[a].op == IR_LOCAL ||
          (p->k->ins[a].op == IR_BUFFER && reads(vector_ins(p, v), a)))
        p->block[a].read = true;
  clb_vector_find_ahead(p->k, p->ahead);
}

bool clb_print_vector(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                      size_t size) {
  vector_printer p = {.k = k, .out = out, .depth = 2};
  (void)dialect;
  if (k->subgroups != 1 || k->lanes > CLB_VECTOR_MAX_LANES || (k->lanes & (k->lanes - 1))) {
    snprintf(error, size,
             "C for CPUs takes one sub-group of 1 ... %d lanes, a power of two, not %d of %d",
             CLB_VECTOR_MAX_LANES, (int)k->subgroups, (int)k->lanes);
    return false;
  }
  p.counted = calloc((size_t)k->n + 1, sizeof *p.counted);
  p.block = calloc((size_t)k->n + 1, sizeof *p.block);
  p.ahead = calloc((size_t)k->n + 1, sizeof *p.ahead);
  p.pointer = calloc(CLB_VECTOR_POINTERS, sizeof *p.pointer);
  if (p.counted && p.block && p.ahead && p.pointer) {
    prepare(&p);
    clb_vector_prelude(k, out);
    clb_vector_rows(k, out);
    clb_vector_emit(&p, "\nvoid %s(const union arg *arg, i64 first, i64 last) {\n", k->name);
    parameters(&p);
    clb_vector_emit(&p, "  for (i64 group = first; group < last; group++) {\n");
    for (int32_t v = 0; v < k->n; v++) clb_vector_begin_ahead(&p, v);
    for (int32_t v = 0; v < k->n; v++)
      if (!silent((ir_op)k->ins[v].op)) statement(&p, v, vector_ins(&p, v));
    for (int32_t v = 0; v < k->n; v++) clb_vector_end_block(&p, v);
    clb_vector_emit(&p, "  }\n  if (stream) FENCE();\n}\n");
  }
  bool ok = p.counted && p.block && p.ahead && p.pointer && !out->failed;
  if (!ok) snprintf(error, size, "no memory");
  free(p.counted);
  free(p.block);
  free(p.ahead);
  free(p.pointer);
  return ok;
}
