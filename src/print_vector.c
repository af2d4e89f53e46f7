/* print_vector.c - a kernel as C with vector extensions, for CPUs: one sub-group, whose lanes are those of a vector.

   A uniform value is a scalar.  An affine integer is the scalar of lane 0; its stride is another value.  A varying value is a
   vector, save a mask "lane < bound", which is the count of the lanes that act: accesses under it test it once and then touch all
   lanes together.  Constants are printed where they are used. */
#include "print_vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

typedef struct {
  const ir_kernel *k;
  clb_text *out;
  bool *counted;            /* of a varying bool: it is a count of lanes */
  clb_vector_block *block;  /* of a BUFFER; no columns: none */
  int depth;
} printer;

static const ir_ins *ins(const printer *p, ir_val v) { return &p->k->ins[v]; }
static ir_type type_of(const printer *p, ir_val v) { return (ir_type)ins(p, v)->type; }
static ir_type element_of(const printer *p, ir_val array) { return (ir_type)ins(p, array)->element; }
static bool uniform(const printer *p, ir_val v) { return ins(p, v)->shape == IR_UNIFORM; }

/* Of the value in registers. */
static const char *type_name(ir_type t) { return t == IR_BOOL ? "i32" : ir_type_name(t); }

static void say(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(printer *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  clb_text_vadd(p->out, format, args);
  va_end(args);
}

/* ---- operands ---- */

/* Hexadecimal, digit by digit: printf's %a depends on the locale. */
static void real(printer *p, ir_type type, double x) {
  const char *suffix = type == IR_F32 ? "f" : "";
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  uint64_t fraction = u & 0xfffffffffffffu;
  int exponent = (int)(u >> 52 & 0x7ff);
  const char *sign = u >> 63 ? "-" : "";
  if (exponent == 0x7ff) say(p, fraction ? "(%s__builtin_nan%s(\"\"))" : "(%s__builtin_inf%s())", sign, suffix);
  else if (!exponent && !fraction) say(p, "(%s0x0p+0%s)", sign, suffix);
  else say(p, "(%s0x%d.%013" PRIx64 "p%+d%s)", sign, exponent != 0, fraction, exponent ? exponent - 1023 : -1022, suffix);
}

static void integer(printer *p, ir_type type, int64_t x) {
  if (type == IR_I64) say(p, "(i64)%" PRIu64 "u", (uint64_t)x);
  else say(p, "(i32)%" PRIu32 "u", (uint32_t)(uint64_t)x);
}

/* Uniform, or lane 0 of an affine value. */
static void scalar(printer *p, ir_val v) {
  const ir_ins *i = ins(p, v);
  if (i->op == IR_REAL) real(p, (ir_type)i->type, i->real);
  else if (i->op == IR_INT) integer(p, (ir_type)i->type, i->imm);
  else say(p, "v%d", (int)v);
}

static void vector(printer *p, ir_val v) {
  const ir_ins *i = ins(p, v);
  const char *t = type_name((ir_type)i->type);
  if (i->shape == IR_VARYING) {
    say(p, p->counted[v] ? "prefix(v%d)" : "v%d", (int)v);
    return;
  }
  say(p, i->shape == IR_AFFINE ? "affine_%s(" : i->type == IR_BOOL ? "splat_%s(-" : "splat_%s(", t);
  scalar(p, v);
  if (i->shape == IR_AFFINE) {
    say(p, ", ");
    scalar(p, i->stride);
  }
  say(p, ")");
}

static void operand(printer *p, ir_val v, bool wide) { (wide ? vector : scalar)(p, v); }

/* "a, b, ..." */
static void operands(printer *p, const ir_val *v, int n, bool wide) {
  for (int j = 0; j < n; j++) {
    say(p, j ? ", " : "");
    operand(p, v[j], wide);
  }
}

/* ---- masks ---- */

/* "lane < bound" without wrap-around: the lanes that act are the first ones. */
static bool is_prefix(const printer *p, const ir_ins *i) {
  const ir_ins *a = ins(p, i->arg[0]);
  if (i->op != IR_LT || a->shape != IR_AFFINE || !uniform(p, i->arg[1]) || ir_int_value(p->k, a->stride, 0) != 1) return false;
  return a->op == IR_LANE || a->type == IR_I64;
}

/* Whether v can be said as a count of lanes. */
static bool countable(const printer *p, ir_val v) { return v == IR_NONE || uniform(p, v) || p->counted[v]; }

static bool is_counted(const printer *p, const ir_ins *i) {
  if (i->type != IR_BOOL || i->shape == IR_UNIFORM) return false;
  return is_prefix(p, i) || (i->op == IR_AND && countable(p, i->arg[0]) && countable(p, i->arg[1]));
}

static void count(printer *p, ir_val mask) {
  if (mask == IR_NONE) {
    say(p, "L");
  } else if (uniform(p, mask)) {
    say(p, "(");
    scalar(p, mask);
    say(p, " ? L : 0)");
  } else {
    say(p, "v%d", (int)mask);
  }
}

static void lane_mask(printer *p, ir_val mask) {
  if (mask == IR_NONE) say(p, "splat_i32(-1)");
  else vector(p, mask);
}

static void counted_mask(printer *p, const ir_ins *i) {
  say(p, i->op == IR_LT ? "prefix_count(" : "min_i32(");
  if (i->op == IR_LT) operands(p, i->arg, 2, false);
  else {
    count(p, i->arg[0]);
    say(p, ", ");
    count(p, i->arg[1]);
  }
  say(p, ")");
}

/* ---- values ---- */

static void infix(printer *p, const ir_ins *i, bool wide) {
  static const char *const signs[IR_OP_COUNT] = {[IR_ADD] = "+", [IR_SUB] = "-", [IR_MUL] = "*", [IR_DIV] = "/", [IR_MOD] = "%", [IR_AND] = "&", [IR_OR] = "|"};
  operand(p, i->arg[0], wide);
  say(p, " %s ", signs[i->op]);
  operand(p, i->arg[1], wide);
}

static void compare(printer *p, const ir_ins *i, bool wide) {
  static const char *const signs[IR_OP_COUNT] = {[IR_LT] = "<", [IR_LE] = "<=", [IR_EQ] = "=="};
  static const char *const names[IR_OP_COUNT] = {[IR_LT] = "lt", [IR_LE] = "le", [IR_EQ] = "eq"};
  if (wide) say(p, "%s_%sv(", names[i->op], type_name(type_of(p, i->arg[0])));
  operand(p, i->arg[0], wide);
  say(p, wide ? ", " : " %s ", signs[i->op]);
  operand(p, i->arg[1], wide);
  if (wide) say(p, ")");
}

static void call(printer *p, const ir_ins *i, bool wide) {
  static const char *const names[IR_OP_COUNT] = {[IR_MIN] = "min", [IR_MAX] = "max", [IR_ABS] = "abs", [IR_FMA] = "fma", [IR_SQRT] = "sqrt",
                                                 [IR_EXP] = "exp", [IR_SIN] = "sin", [IR_COS] = "cos", [IR_SELECT] = "select"};
  say(p, "%s_%s%s(", names[i->op], type_name((ir_type)i->type), wide ? "v" : "");
  operands(p, i->arg, i->arg[2] == IR_NONE ? 1 + (i->arg[1] != IR_NONE) : 3, wide);
  say(p, ")");
}

static void prefixed(printer *p, const ir_ins *i, bool wide) {
  say(p, i->op == IR_NEG ? "-" : wide ? "~" : "!");
  operand(p, i->arg[0], wide);
}

static void cast(printer *p, const ir_ins *i, bool wide) {
  say(p, wide ? "CONVERT(%sv, " : "(%s)(", type_name((ir_type)i->type));
  operand(p, i->arg[0], wide);
  say(p, ")");
}

static void shuffle(printer *p, const ir_ins *i, bool wide) {
  const char *t = type_name((ir_type)i->type);
  say(p, wide ? "shuffle_%s(" : "lane_%s(", t);
  vector(p, i->arg[0]);
  say(p, ", ");
  operand(p, i->arg[1], wide);
  say(p, ")");
}

static void shuffle_xor(printer *p, const ir_ins *i, bool wide) {
  const char *t = type_name((ir_type)i->type);
  (void)wide;
  say(p, "SHUF(%sv, %si, ", t, t);
  vector(p, i->arg[0]);
  say(p, ", ");
  vector(p, i->arg[0]);
  for (int r = 0; r < p->k->lanes; r++) say(p, ", %d", r ^ (int)i->imm);
  say(p, ")");
}

static void reduce(printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  say(p, "reduce_%s(", type_name((ir_type)i->type));
  vector(p, i->arg[0]);
  say(p, ")");
}

static void identity(printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  say(p, i->op == IR_GROUP ? "(i32)group" : "0");
}

static void get(printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  say(p, "x%d", (int)i->arg[0]);
}

static void element(printer *p, const ir_ins *i, bool wide) {
  (void)wide;
  say(p, "w%d[%d]", (int)i->arg[0], (int)i->imm);
}

/* ---- memory ---- */

static void address(printer *p, ir_val array, ir_val index) {
  say(p, "b%d + (i64)", (int)array);
  scalar(p, index);
}

/* ", stride, count": of lanes that lie evenly. */
static void evenly(printer *p, const ir_ins *i) {
  say(p, ", ");
  scalar(p, ins(p, i->arg[1])->stride);
  say(p, ", ");
  count(p, i->arg[2]);
}

static bool lies_evenly(const printer *p, const ir_ins *i) { return ins(p, i->arg[1])->shape == IR_AFFINE && countable(p, i->arg[2]); }

static void places(printer *p, ir_val index) {
  say(p, "CONVERT(i64v, ");
  vector(p, index);
  say(p, ")");
}

static void load(printer *p, int32_t v, const ir_ins *i) {
  const char *e = ir_type_name(element_of(p, i->arg[0])), *t = ir_type_name((ir_type)i->type);
  say(p, "%s%s w%d[%d];", t, i->shape == IR_UNIFORM ? "" : "v", (int)v, (int)i->width);
  if (i->shape == IR_UNIFORM) {
    for (int c = 0; c < i->width; c++) {
      say(p, " w%d[%d] = ", (int)v, c);
      if (i->arg[2] != IR_NONE) scalar(p, i->arg[2]);
      say(p, i->arg[2] == IR_NONE ? "unpack1_%s((" : " ? unpack1_%s((", e);
      address(p, i->arg[0], i->arg[1]);
      say(p, i->arg[2] == IR_NONE ? ")[%d]);" : ")[%d]) : 0;", c);
    }
  } else if (lies_evenly(p, i)) {
    say(p, " get_%s_%d(", e, (int)i->width);
    address(p, i->arg[0], i->arg[1]);
    evenly(p, i);
    say(p, ", w%d);", (int)v);
  } else {
    say(p, " gather_%s(b%d, ", e, (int)i->arg[0]);
    places(p, i->arg[1]);
    say(p, ", ");
    lane_mask(p, i->arg[2]);
    say(p, ", %d, w%d);", (int)i->width, (int)v);
  }
  if (i->width == 1) say(p, " const %s%s v%d = w%d[0];", t, i->shape == IR_UNIFORM ? "" : "v", (int)v, (int)v);
}

/* oN: where this group's part of buffer N goes, itself or the local array stageN. */
static void begin_block(printer *p, ir_val array) {
  clb_vector_block *b = &p->block[array];
  if (b->begun) return;
  b->begun = true;
  say(p, "%s *const o%d = large%d && ", clb_vector_storage(element_of(p, array)), (int)array, (int)array);
  scalar(p, ins(p, b->root)->stride);
  say(p, " == %d && FULL(", (int)b->columns);
  count(p, b->mask);
  say(p, ") && ALIGNED(");
  address(p, array, b->root);
  say(p, " + %d) ? stage%d : ", (int)b->first, (int)array);
  address(p, array, b->root);
  say(p, " + %d; ", (int)b->first);
}

static void end_block(printer *p, ir_val array) {
  const clb_vector_block *b = &p->block[array];
  if (!b->columns) return;
  say(p, "    if (o%d == stage%d) flush_%s(", (int)array, (int)array, clb_vector_storage(element_of(p, array)));
  address(p, array, b->root);
  say(p, " + %d, stage%d, %d);\n", (int)b->first, (int)array, (int)b->columns);
}

static bool all_uniform(const printer *p, const ir_ins *store) {
  for (int c = 0; c < store->width; c++)
    if (!uniform(p, p->k->pool[store->imm + c])) return false;
  return uniform(p, store->arg[1]) && (store->arg[2] == IR_NONE || uniform(p, store->arg[2]));
}

static void store(printer *p, const ir_ins *i) {
  const char *e = ir_type_name(element_of(p, i->arg[0])), *t = ir_type_name(ir_register_type(element_of(p, i->arg[0])));
  const ir_val *values = p->k->pool + i->imm;
  if (all_uniform(p, i)) {
    for (int c = 0; c < i->width; c++) {
      if (i->arg[2] != IR_NONE) say(p, "if ("), scalar(p, i->arg[2]), say(p, ") ");
      say(p, "(");
      address(p, i->arg[0], i->arg[1]);
      say(p, ")[%d] = pack1_%s(", c, e);
      scalar(p, values[c]);
      say(p, "); ");
    }
  } else if (lies_evenly(p, i)) {
    const clb_vector_block *b = &p->block[i->arg[0]];
    if (b->columns) begin_block(p, i->arg[0]);
    say(p, "put_%s_%d(", e, (int)i->width);
    if (b->columns) say(p, "o%d + %d", (int)i->arg[0], (int)(clb_vector_column(p->k, i->arg[1]) - b->first));
    else address(p, i->arg[0], i->arg[1]);
    evenly(p, i);
    say(p, ", ");
    operands(p, values, i->width, true);
    say(p, ");");
  } else {
    say(p, "scatter_%s(b%d, ", e, (int)i->arg[0]);
    places(p, i->arg[1]);
    say(p, ", ");
    lane_mask(p, i->arg[2]);
    say(p, ", %d, (const %sv[]){", (int)i->width, t);
    operands(p, values, i->width, true);
    say(p, "});");
  }
}

static void atomic_add(printer *p, const ir_ins *i) {
  say(p, "atomic_add_%s(b%d, ", ir_type_name(element_of(p, i->arg[0])), (int)i->arg[0]);
  places(p, i->arg[1]);
  say(p, ", ");
  lane_mask(p, i->arg[2]);
  say(p, ", ");
  vector(p, i->arg[3]);
  say(p, ");");
}

static void copy(printer *p, const ir_ins *i) {
  say(p, "copy_%s(b%d, ", ir_type_name(element_of(p, i->arg[0])), (int)i->arg[0]);
  places(p, i->arg[1]);
  say(p, ", b%d, ", (int)i->arg[2]);
  places(p, i->arg[3]);
  say(p, ", ");
  lane_mask(p, i->arg[4]);
  say(p, ", %d);", (int)i->width);
}

/* ---- statements ---- */

static void assignment(printer *p, ir_val var, ir_val value) {
  say(p, "x%d = ", (int)var);
  operand(p, value, !uniform(p, var));
  say(p, ";");
}

static void loop(printer *p, int32_t v, const ir_ins *i) {
  say(p, "for (%s v%d = ", type_name((ir_type)i->type), (int)v);
  scalar(p, i->arg[0]);
  say(p, "; v%d < ", (int)v);
  scalar(p, i->arg[1]);
  say(p, "; v%d += ", (int)v);
  scalar(p, i->arg[2]);
  say(p, ") {");
}

typedef void say_value(printer *p, const ir_ins *i, bool wide);
static say_value *const values[IR_OP_COUNT] = {
    [IR_GROUP] = identity, [IR_SUBGROUP] = identity, [IR_LANE] = identity, [IR_ADD] = infix, [IR_SUB] = infix, [IR_MUL] = infix,
    [IR_DIV] = infix, [IR_MOD] = infix, [IR_AND] = infix, [IR_OR] = infix, [IR_MIN] = call, [IR_MAX] = call, [IR_ABS] = call,
    [IR_FMA] = call, [IR_SQRT] = call, [IR_EXP] = call, [IR_SIN] = call, [IR_COS] = call, [IR_SELECT] = call, [IR_NEG] = prefixed,
    [IR_NOT] = prefixed, [IR_LT] = compare, [IR_LE] = compare, [IR_EQ] = compare, [IR_CAST] = cast, [IR_SHUFFLE] = shuffle,
    [IR_SHUFFLE_XOR] = shuffle_xor, [IR_REDUCE_ADD] = reduce, [IR_GET] = get, [IR_ELEMENT] = element};

static void value(printer *p, int32_t v, const ir_ins *i) {
  bool wide = i->shape == IR_VARYING && !p->counted[v];
  say(p, "const %s%s v%d = ", type_name((ir_type)i->type), wide ? "v" : "", (int)v);
  if (p->counted[v]) counted_mask(p, i);
  else values[i->op](p, i, wide);
  say(p, ";");
}

static void statement(printer *p, int32_t v, const ir_ins *i) {
  if (i->op == IR_ELSE || i->op == IR_END) p->depth--;
  say(p, "%*s", 2 * p->depth, "");
  switch (i->op) {
    case IR_LOCAL: say(p, "%s b%d[%" PRId64 "] __attribute__((aligned(64)));", clb_vector_storage((ir_type)i->element), (int)v, i->imm); break;
    case IR_VAR: say(p, "%s%s ", type_name((ir_type)i->type), i->shape == IR_UNIFORM ? "" : "v"), assignment(p, v, i->arg[0]); break;
    case IR_SET: assignment(p, i->arg[0], i->arg[1]); break;
    case IR_LOAD: load(p, v, i); break;
    case IR_STORE: store(p, i); break;
    case IR_ATOMIC_ADD: atomic_add(p, i); break;
    case IR_COPY: copy(p, i); break;
    case IR_LOOP: loop(p, v, i); break;
    case IR_IF: say(p, "if ("), scalar(p, i->arg[0]), say(p, ") {"); break;
    case IR_ELSE: say(p, "} else {"); break;
    case IR_END: say(p, "}"); break;
    default: value(p, v, i);
  }
  say(p, "\n");
  if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE) p->depth++;
}

static void parameters(printer *p) {
  int n = 0;
  for (int32_t v = 0; v < p->k->n; v++) {
    const ir_ins *i = ins(p, v);
    if (i->op == IR_BUFFER) say(p, "  %s *const b%d = arg[%d].p;\n", clb_vector_storage((ir_type)i->element), (int)v, n++);
    if (i->op == IR_SCALAR) say(p, "  const %s v%d = arg[%d].%s;\n", type_name((ir_type)i->type), (int)v, n, type_name((ir_type)i->type)), n++;
  }
  for (int32_t v = 0; v < p->k->n; v++) {
    const char *s = clb_vector_storage(element_of(p, v));
    if (!p->block[v].columns) continue;
    say(p, "  %s stage%d[L * %d] __attribute__((aligned(64)));\n", s, (int)v, (int)p->block[v].columns);
    say(p, "  const i32 large%d = arg[%d].i64 > LARGE / (i64)sizeof stage%d;\n", (int)v, n, (int)v);
  }
}

/* Said elsewhere, or nothing to say where lanes run in step. */
static bool silent(ir_op op) {
  return op == IR_BUFFER || op == IR_SCALAR || op == IR_INT || op == IR_REAL || op == IR_COPY_COMMIT || op == IR_COPY_WAIT || op == IR_BARRIER;
}

/* What has to be known before the first word. */
static void prepare(printer *p) {
  for (int32_t v = 0; v < p->k->n; v++) p->counted[v] = is_counted(p, ins(p, v));
  for (int32_t v = 0; v < p->k->n; v++)
    if (ins(p, v)->op != IR_BUFFER || !clb_vector_find_block(p->k, v, &p->block[v]) || !countable(p, p->block[v].mask)) p->block[v].columns = 0;
}

bool clb_print_vector(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error, size_t size) {
  printer p = {.k = k, .out = out, .depth = 2};
  (void)dialect;
  if (k->subgroups != 1 || k->lanes > CLB_VECTOR_MAX_LANES || (k->lanes & (k->lanes - 1))) {
    snprintf(error, size, "C for CPUs takes one sub-group of 1 ... %d lanes, a power of two, not %d of %d", CLB_VECTOR_MAX_LANES, (int)k->subgroups, (int)k->lanes);
    return false;
  }
  p.counted = calloc((size_t)k->n + 1, sizeof *p.counted);
  p.block = calloc((size_t)k->n + 1, sizeof *p.block);
  if (p.counted && p.block) {
    prepare(&p);
    clb_vector_prelude(k, out);
    clb_vector_rows(k, out);
    say(&p, "\nvoid %s(const union arg *arg, i64 first, i64 last) {\n", k->name);
    parameters(&p);
    say(&p, "  for (i64 group = first; group < last; group++) {\n");
    for (int32_t v = 0; v < k->n; v++)
      if (!silent((ir_op)k->ins[v].op)) statement(&p, v, ins(&p, v));
    for (int32_t v = 0; v < k->n; v++) end_block(&p, v);
    say(&p, "  }\n}\n");
  }
  bool ok = p.counted && p.block && !out->failed;
  if (!ok) snprintf(error, size, "no memory");
  free(p.counted);
  free(p.block);
  return ok;
}
