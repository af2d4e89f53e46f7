/* src/ir/verify.c - checks, without running it, whether a finished kernel obeys the rules of the
   IR. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/ir/ir.h"
#include "src/ir/barriers.h"

enum { MAX_DEPTH = 64, MAX_GROUP = 1024 };

typedef struct {
  const ir_kernel *k;
  int32_t at, scope, depth; /* the current instruction, its block, the number of open blocks */
  bool bad;
  char *error;
  size_t size;
} checker;

static bool wrong(checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(checker *c, const char *format, ...) {
  if (c->bad) return false;
  c->bad = true;
  int used = 0;
  if (c->at >= 0)
    used = snprintf(c->error, c->size, "instruction %d %s: ", (int)c->at,
                    ir_op_name((ir_op)c->k->ins[c->at].op));
  if (used < 0 || (size_t)used >= c->size) return false;
  va_list args;
  va_start(args, format);
  vsnprintf(c->error + used, c->size - (size_t)used, format, args);
  va_end(args);
  return false;
}

static const ir_ins *here(const checker *c) { return &c->k->ins[c->at]; }
static ir_type type_of(const checker *c, ir_val v) { return (ir_type)c->k->ins[v].type; }
static bool uniform(const checker *c, ir_val v) { return c->k->ins[v].shape == IR_UNIFORM; }

/* ---- operands ---- */

static bool defined(checker *c, ir_val v) {
  if (v < 0 || v >= c->at) return wrong(c, "operand %d must be an earlier instruction", (int)v);
  int32_t scope = c->k->ins[v].op == IR_LOOP ? v : c->k->ins[v].scope;
  for (int32_t s = c->scope; s != scope; s = c->k->ins[s].scope)
    if (s == IR_NONE)
      return wrong(c, "operand %d was made in a block that has ended; keep it in a VAR", (int)v);
  return true;
}

/* Whether it is a value that arithmetic accepts. */
static bool value(checker *c, ir_val v) {
  if (!defined(c, v)) return false;
  const ir_ins *i = &c->k->ins[v];
  if (i->type == IR_VOID)
    return wrong(c, "operand %d is %s, which has no value", (int)v, ir_op_name((ir_op)i->op));
  if (i->op == IR_VAR) return wrong(c, "operand %d is a VAR; take its GET", (int)v);
  if (i->op == IR_LOAD && i->width > 1)
    return wrong(c, "operand %d is a LOAD of width %d; take its ELEMENT", (int)v, (int)i->width);
  return true;
}

static bool typed(checker *c, ir_val v, ir_type type) {
  if (!value(c, v)) return false;
  return type_of(c, v) == type || wrong(c, "operand %d is %s, must be %s", (int)v,
                                        ir_type_name(type_of(c, v)), ir_type_name(type));
}

static bool integer(checker *c, ir_val v) {
  if (!value(c, v)) return false;
  return ir_is_int(type_of(c, v)) ||
         wrong(c, "operand %d is %s, must be i32 or i64", (int)v, ir_type_name(type_of(c, v)));
}

static bool real(checker *c, ir_val v) {
  if (!value(c, v)) return false;
  return ir_is_float(type_of(c, v)) ||
         wrong(c, "operand %d is %s, must be f32 or f64", (int)v, ir_type_name(type_of(c, v)));
}

static bool number(checker *c, ir_val v) {
  if (!value(c, v)) return false;
  return type_of(c, v) != IR_BOOL || wrong(c, "operand %d is bool, must be a number", (int)v);
}

static bool variable(checker *c, ir_val v) {
  return defined(c, v) &&
         (c->k->ins[v].op == IR_VAR || wrong(c, "operand %d must be a VAR", (int)v));
}

static bool array(checker *c, ir_val v, bool written) {
  if (!defined(c, v)) return false;
  const ir_ins *i = &c->k->ins[v];
  if (i->op != IR_BUFFER && i->op != IR_LOCAL)
    return wrong(c, "operand %d must be a BUFFER or LOCAL", (int)v);
  return !written || i->op == IR_LOCAL || i->imm ||
         wrong(c, "buffer %d must be declared written (imm 1)", (int)v);
}

static bool mask(checker *c, ir_val v) { return v == IR_NONE || typed(c, v, IR_BOOL); }

static bool of_type(checker *c, ir_type type) {
  return here(c)->type == type || wrong(c, "its type is %s, must be %s",
                                        ir_type_name((ir_type)here(c)->type), ir_type_name(type));
}

static bool in_range(checker *c, const char *what, int64_t x, int64_t first, int64_t last) {
  return (x >= first && x <= last) ||
         wrong(c, "%s %" PRId64 " must be in %" PRId64 " ... %" PRId64, what, x, first, last);
}

/* ---- shapes ---- */

/* Whether v is `a op b` as the builder simplifies it; a IR_NONE is 0. */
static bool equals(const ir_kernel *k, ir_val v, ir_op op, ir_val a, ir_val b) {
  const ir_ins *i = &k->ins[v];
  bool known_a = a == IR_NONE || k->ins[a].op == IR_INT,
       known_b = b == IR_NONE || k->ins[b].op == IR_INT;
  int64_t x = ir_int_value(k, a, 0), y = ir_int_value(k, b, 0);
  if (known_a && known_b) {
    uint64_t sum = op == IR_ADD   ? (uint64_t)x + (uint64_t)y
                   : op == IR_SUB ? (uint64_t)x - (uint64_t)y
                                  : (uint64_t)x * (uint64_t)y;
    return i->op == IR_INT &&
           i->imm == (i->type == IR_I32 ? (int64_t)(int32_t)(uint32_t)sum : (int64_t)sum);
  }
  int64_t neutral = op == IR_MUL;
  if (known_b && y == neutral) return v == a;
  if (known_a && x == neutral && op != IR_SUB) return v == b;
  if (op == IR_MUL && ((known_a && x == 0) || (known_b && y == 0)))
    return i->op == IR_INT && i->imm == 0;
  if (i->op != op) return false;
  if (op == IR_SUB && a == IR_NONE) return ir_int_value(k, i->arg[0], 1) == 0 && i->arg[1] == b;
  return (i->arg[0] == a && i->arg[1] == b) || (op != IR_SUB && i->arg[0] == b && i->arg[1] == a);
}

static ir_val stride_of(const ir_kernel *k, ir_val v) {
  return k->ins[v].shape == IR_AFFINE ? k->ins[v].stride : IR_NONE;
}

/* Whether the stride agrees with the operands. */
static bool affine(const checker *c) {
  const ir_kernel *k = c->k;
  const ir_ins *i = here(c);
  ir_val a = i->arg[0], b = i->arg[1];
  if (i->op == IR_LANE) return ir_int_value(k, i->stride, 0) == 1;
  if (i->op == IR_CAST && k->ins[a].shape == IR_AFFINE && ir_is_int((ir_type)i->type)) {
    ir_val s = k->ins[a].stride;
    const ir_ins *t = &k->ins[i->stride];
    return (t->op == IR_CAST && t->arg[0] == s) || (t->op == IR_INT && k->ins[s].op == IR_INT &&
                                                    (int32_t)t->imm == (int32_t)k->ins[s].imm &&
                                                    (t->type == IR_I32 || t->imm == k->ins[s].imm));
  }
  if ((i->op != IR_ADD && i->op != IR_SUB && i->op != IR_MUL) || k->ins[a].shape == IR_VARYING ||
      k->ins[b].shape == IR_VARYING)
    return false;
  if (i->op != IR_MUL) return equals(k, i->stride, (ir_op)i->op, stride_of(k, a), stride_of(k, b));
  if (uniform(c, b)) return equals(k, i->stride, IR_MUL, stride_of(k, a), b);
  return uniform(c, a) && equals(k, i->stride, IR_MUL, a, stride_of(k, b));
}

/* Whether all lanes must agree on the value. */
static bool flat(const checker *c) {
  const ir_ins *i = here(c);
  switch (i->op) {
    case IR_LANE:
    case IR_SHUFFLE_XOR: return false;
    case IR_REDUCE_ADD: return true;
    case IR_SHUFFLE: return uniform(c, i->arg[1]);
    case IR_LOAD: return uniform(c, i->arg[1]) && (i->arg[2] == IR_NONE || uniform(c, i->arg[2]));
    default:
      for (int a = 0; a < 5; a++)
        if (i->arg[a] != IR_NONE && !uniform(c, i->arg[a])) return false;
      return true;
  }
}

static bool shape(checker *c) {
  const ir_ins *i = here(c);
  if (i->type == IR_VOID)
    return i->shape == IR_UNIFORM || wrong(c, "it has no value, so its shape must be uniform");
  if (i->shape == IR_UNIFORM)
    return flat(c) || wrong(c, "it differs from lane to lane, so it must not be called uniform");
  if (i->op == IR_VAR || i->shape == IR_VARYING)
    return i->shape == IR_VARYING || wrong(c, "a variable must be uniform or varying");
  if (!defined(c, i->stride)) return false;
  if (type_of(c, i->stride) != i->type || !uniform(c, i->stride))
    return wrong(c, "stride %d must be a uniform %s", (int)i->stride,
                 ir_type_name((ir_type)i->type));
  return affine(c) || wrong(c, "it does not grow by %d from lane to lane", (int)i->stride);
}

/* ---- one rule for each kind of instruction ---- */

static bool parameter(checker *c) {
  const ir_ins *i = here(c);
  if (i->scope != IR_NONE) return wrong(c, "must stand outside loops and ifs");
  if (i->op == IR_SCALAR)
    return ir_is_int((ir_type)i->type) || ir_is_float((ir_type)i->type) ||
           wrong(c, "type %s must be i32, i64, f32 or f64", ir_type_name((ir_type)i->type));
  if (i->element < IR_I32 || i->element > IR_BF16)
    return wrong(c, "element %s must be a number", ir_type_name((ir_type)i->element));
  return of_type(c, IR_VOID) && (i->op == IR_BUFFER ? in_range(c, "written", i->imm, 0, 2)
                                                    : in_range(c, "length", i->imm, 1, INT32_MAX));
}

static bool constant(checker *c) {
  const ir_ins *i = here(c);
  if (i->op == IR_REAL) {
    if (!ir_is_float((ir_type)i->type))
      return wrong(c, "type %s must be f32 or f64", ir_type_name((ir_type)i->type));
    return i->type == IR_F64 || i->real != i->real || (double)(float)i->real == i->real ||
           wrong(c, "%.17g must be rounded to f32", i->real);
  }
  if (i->type == IR_BOOL) return in_range(c, "bool", i->imm, 0, 1);
  if (i->type == IR_I32) return in_range(c, "i32", i->imm, INT32_MIN, INT32_MAX);
  return i->type == IR_I64 ||
         wrong(c, "type %s must be bool, i32 or i64", ir_type_name((ir_type)i->type));
}

static bool identity(checker *c) { return of_type(c, IR_I32); }

static bool arithmetic(checker *c) {
  ir_val a = here(c)->arg[0], b = here(c)->arg[1];
  return number(c, a) && typed(c, b, type_of(c, a)) && of_type(c, type_of(c, a));
}

static bool whole(checker *c) { return integer(c, here(c)->arg[0]) && arithmetic(c); }

static bool high_product(checker *c) { return typed(c, here(c)->arg[0], IR_I32) && arithmetic(c); }

static bool function(checker *c) {
  return real(c, here(c)->arg[0]) && of_type(c, type_of(c, here(c)->arg[0]));
}

static bool multiply_add(checker *c) {
  const ir_ins *i = here(c);
  return function(c) && typed(c, i->arg[1], (ir_type)i->type) &&
         typed(c, i->arg[2], (ir_type)i->type);
}

static bool comparison(checker *c) {
  ir_val a = here(c)->arg[0], b = here(c)->arg[1];
  return number(c, a) && typed(c, b, type_of(c, a)) && of_type(c, IR_BOOL);
}

static bool logic(checker *c) {
  const ir_ins *i = here(c);
  return typed(c, i->arg[0], IR_BOOL) && (i->op == IR_NOT || typed(c, i->arg[1], IR_BOOL)) &&
         of_type(c, IR_BOOL);
}

static bool selection(checker *c) {
  const ir_ins *i = here(c);
  return typed(c, i->arg[0], IR_BOOL) && value(c, i->arg[1]) &&
         typed(c, i->arg[2], type_of(c, i->arg[1])) && of_type(c, type_of(c, i->arg[1]));
}

static bool cast(checker *c) {
  const ir_ins *i = here(c);
  if (!number(c, i->arg[0])) return false;
  ir_type from = type_of(c, i->arg[0]), to = (ir_type)i->type;
  bool ok = from != to && (ir_is_int(to) || ir_is_float(to));
  return ok || wrong(c, "%s to %s must be between different types of number", ir_type_name(from),
                     ir_type_name(to));
}

static bool var(checker *c) {
  return value(c, here(c)->arg[0]) && of_type(c, type_of(c, here(c)->arg[0]));
}
static bool get(checker *c) {
  return in_range(c, "imm", here(c)->imm, 0, 1) && variable(c, here(c)->arg[0]) &&
         of_type(c, type_of(c, here(c)->arg[0]));
}

static bool set(checker *c) {
  ir_val v = here(c)->arg[0], to = here(c)->arg[1];
  if (!of_type(c, IR_VOID) || !variable(c, v) || !typed(c, to, type_of(c, v))) return false;
  return !uniform(c, v) || uniform(c, to) ||
         wrong(c, "variable %d is uniform, so value %d must be", (int)v, (int)to);
}

static bool aligned(checker *c, bool asked, const char *what) {
  const ir_ins *i = here(c);
  ir_type element = (ir_type)c->k->ins[i->arg[0]].element;
  int bytes = ir_type_bytes(element) * i->width;
  return !asked || bytes == 8 || bytes == 16 ||
         wrong(c, "aligned %s are of 8 or 16 bytes, not of %d of %s", what, (int)i->width,
               ir_type_name(element));
}

static bool load(checker *c) {
  const ir_ins *i = here(c);
  if (!array(c, i->arg[0], false) || !integer(c, i->arg[1]) || !mask(c, i->arg[2]) ||
      !in_range(c, "imm", i->imm, 0, 1))
    return false;
  return aligned(c, i->imm, "loads") &&
         of_type(c, ir_register_type((ir_type)c->k->ins[i->arg[0]].element));
}

static bool element(checker *c) {
  const ir_ins *i = here(c);
  if (!defined(c, i->arg[0])) return false;
  const ir_ins *from = &c->k->ins[i->arg[0]];
  if (from->op != IR_LOAD || from->width < 2)
    return wrong(c, "operand %d must be a LOAD of width 2 or more", (int)i->arg[0]);
  return in_range(c, "element", i->imm, 0, from->width - 1) && of_type(c, (ir_type)from->type);
}

static bool store(checker *c) {
  const ir_ins *i = here(c);
  if (!array(c, i->arg[0], true) || !integer(c, i->arg[1]) || !mask(c, i->arg[2]) ||
      !in_range(c, "element", i->element, 0, 1) || !aligned(c, i->element, "stores"))
    return false;
  if (i->imm < 0 || i->imm > (int64_t)c->k->pool_n - i->width)
    return wrong(c, "its values [%" PRId64 ", + %d) must lie in the pool of %d", i->imm,
                 (int)i->width, (int)c->k->pool_n);
  for (int32_t j = 0; j < i->width; j++)
    if (!typed(c, c->k->pool[i->imm + j], ir_register_type((ir_type)c->k->ins[i->arg[0]].element)))
      return false;
  return true;
}

static bool atomic_add(checker *c) {
  if (!store(c)) return false;
  ir_type t = (ir_type)c->k->ins[here(c)->arg[0]].element;
  return ir_is_float(t) || wrong(c, "array of %s must be of f32 or f64", ir_type_name(t));
}

static bool copy(checker *c) {
  const ir_ins *i = here(c);
  if (!array(c, i->arg[0], true) || !integer(c, i->arg[1]) || !array(c, i->arg[2], false) ||
      !integer(c, i->arg[3]) || !mask(c, i->arg[4]))
    return false;
  const ir_ins *to = &c->k->ins[i->arg[0]], *from = &c->k->ins[i->arg[2]];
  int bytes = ir_type_bytes((ir_type)to->element) * i->width;
  if (!in_range(c, "imm", i->imm, 0, 1)) return false;
  if (i->imm && bytes != 8 && bytes != 16)
    return wrong(c, "aligned copies are of 8 or 16 bytes, not %d", bytes);
  return (to->op == IR_LOCAL && from->op == IR_BUFFER && to->element == from->element) ||
         wrong(c, "must go from a BUFFER to a LOCAL with the same element");
}

static bool mark(checker *c) {
  return in_range(c, "imm", here(c)->imm, 0, here(c)->op == IR_BARRIER ? IR_RENDEZVOUS : INT32_MAX);
}

static bool shuffle(checker *c) {
  const ir_ins *i = here(c);
  return number(c, i->arg[0]) && typed(c, i->arg[1], IR_I32) && of_type(c, type_of(c, i->arg[0]));
}

static bool power_of_two(checker *c) {
  int32_t n = c->k->lanes;
  return !(n & (n - 1)) || wrong(c, "%d lanes must be a power of two", (int)n);
}

static bool shuffle_xor(checker *c) {
  const ir_ins *i = here(c);
  return power_of_two(c) && number(c, i->arg[0]) &&
         in_range(c, "imm", i->imm, 0, c->k->lanes - 1) && of_type(c, type_of(c, i->arg[0]));
}

static bool reduce(checker *c) { return power_of_two(c) && function(c); }

static bool loop(checker *c) {
  const ir_ins *i = here(c);
  for (int a = 0; a < 3; a++) {
    if (!integer(c, i->arg[a]) || !typed(c, i->arg[a], (ir_type)i->type)) return false;
    if (!uniform(c, i->arg[a])) return wrong(c, "bound %d must be uniform", (int)i->arg[a]);
  }
  return ir_int_value(c->k, i->arg[2], 1) > 0 ||
         wrong(c, "step %" PRId64 " must be positive", c->k->ins[i->arg[2]].imm);
}

static bool condition(checker *c) {
  ir_val v = here(c)->arg[0];
  return typed(c, v, IR_BOOL) &&
         (uniform(c, v) ||
          wrong(c, "condition %d must be uniform; mask the loads and stores instead", (int)v));
}

static bool ask(checker *c) {
  const ir_ins *i = here(c);
  if (!array(c, i->arg[0], false) || !integer(c, i->arg[1])) return false;
  if (c->k->ins[i->arg[1]].shape == IR_VARYING)
    return wrong(c, "its index must be that of lanes back to back");
  return of_type(c, IR_VOID);
}

static bool nothing(checker *c) { return of_type(c, IR_VOID); }

/* fields: I imm, R real, W width, E element may be non-empty */
static const struct {
  bool (*check)(checker *c);
  const char *fields;
} rules[IR_OP_COUNT] = {
    [IR_BUFFER] = {parameter, "IE"},
    [IR_SCALAR] = {parameter, ""},
    [IR_LOCAL] = {parameter, "IE"},
    [IR_GROUP] = {identity, ""},
    [IR_SUBGROUP] = {identity, ""},
    [IR_LANE] = {identity, ""},
    [IR_INT] = {constant, "I"},
    [IR_REAL] = {constant, "R"},
    [IR_ADD] = {arithmetic, ""},
    [IR_SUB] = {arithmetic, ""},
    [IR_MUL] = {arithmetic, ""},
    [IR_DIV] = {arithmetic, ""},
    [IR_MOD] = {whole, ""},
    [IR_XOR] = {whole, ""},
    [IR_MUL_HIGH] = {high_product, ""},
    [IR_MIN] = {arithmetic, ""},
    [IR_MAX] = {arithmetic, ""},
    [IR_NEG] = {function, ""},
    [IR_ABS] = {function, ""},
    [IR_SQRT] = {function, ""},
    [IR_EXP] = {function, ""},
    [IR_SIN] = {function, ""},
    [IR_COS] = {function, ""},
    [IR_FMA] = {multiply_add, ""},
    [IR_LT] = {comparison, ""},
    [IR_LE] = {comparison, ""},
    [IR_EQ] = {comparison, ""},
    [IR_AND] = {logic, ""},
    [IR_OR] = {logic, ""},
    [IR_NOT] = {logic, ""},
    [IR_SELECT] = {selection, ""},
    [IR_CAST] = {cast, ""},
    [IR_VAR] = {var, ""},
    [IR_GET] = {get, "I"},
    [IR_SET] = {set, ""},
    [IR_LOAD] = {load, "WI"},
    [IR_ELEMENT] = {element, "I"},
    [IR_STORE] = {store, "IWE"},
    [IR_ATOMIC_ADD] = {atomic_add, "IWE"},
    [IR_COPY] = {copy, "WI"},
    [IR_COPY_COMMIT] = {nothing, ""},
    [IR_COPY_WAIT] = {mark, "I"},
    [IR_BARRIER] = {mark, "I"},
    [IR_SHUFFLE] = {shuffle, ""},
    [IR_SHUFFLE_XOR] = {shuffle_xor, "I"},
    [IR_REDUCE_ADD] = {reduce, ""},
    [IR_LOOP] = {loop, ""},
    [IR_IF] = {condition, ""},
    [IR_ELSE] = {nothing, ""},
    [IR_END] = {nothing, ""},
    [IR_PREFETCH] = {ask, "W"},
};

static const int operands[IR_OP_COUNT] = {
#define IR_X(name, pure, n) n,
    IR_OPS(IR_X)
#undef IR_X
};

static bool has_value(ir_op op) {
  static const ir_op without[] = {IR_BUFFER,     IR_LOCAL, IR_SET,         IR_STORE,
                                  IR_ATOMIC_ADD, IR_COPY,  IR_COPY_COMMIT, IR_COPY_WAIT,
                                  IR_BARRIER,    IR_IF,    IR_ELSE,        IR_END};
  for (size_t j = 0; j < sizeof without / sizeof *without; j++)
    if (op == without[j]) return false;
  return true;
}

/* Checks that fields are within their enums, and empty if the op does not use them, so that equal
   kernels have equal bytes. */
static bool fields(checker *c) {
  const ir_ins *i = here(c);
  const char *uses = rules[i->op].fields;
  static const double zero = 0;
  if (i->type > IR_F64) return wrong(c, "type %d must be one of void ... f64", i->type);
  if (i->shape > IR_VARYING)
    return wrong(c, "shape %d must be uniform, affine or varying", i->shape);
  if (!has_value((ir_op)i->op) && !of_type(c, IR_VOID)) return false;
  for (int a = operands[i->op]; a < 5; a++)
    if (i->arg[a] != IR_NONE)
      return wrong(c, "operand %d must be none: it takes %d", a, operands[i->op]);
  if (strchr(uses, 'W') ? !in_range(c, "width", i->width, 1, IR_MAX_WIDTH) : i->width != 0)
    return wrong(c, "width must be 0");
  if ((!strchr(uses, 'I') && i->imm) ||
      (!strchr(uses, 'R') && memcmp(&i->real, &zero, sizeof zero)) ||
      (!strchr(uses, 'E') && i->element) || i->unused)
    return wrong(c, "imm, real and element must be 0 where the op has no use for them");
  return i->shape == IR_AFFINE || i->stride == IR_NONE ||
         wrong(c, "only affine values have a stride");
}

/* ---- the whole list ---- */

/* Leaves a block before ELSE and END; c->scope is then the enclosing block. */
static bool leave(checker *c) {
  ir_op op = (ir_op)here(c)->op;
  if (op != IR_ELSE && op != IR_END) return true;
  if (c->scope == IR_NONE)
    return wrong(c, "there is no open %s", op == IR_ELSE ? "IF" : "LOOP or IF");
  if (op == IR_ELSE && c->k->ins[c->scope].op != IR_IF)
    return wrong(c, "the open block %d must be an IF", (int)c->scope);
  c->scope = c->k->ins[c->scope].scope;
  c->depth--;
  return true;
}

static bool enter(checker *c) {
  ir_op op = (ir_op)here(c)->op;
  if (op != IR_LOOP && op != IR_IF && op != IR_ELSE) return true;
  c->scope = c->at;
  return ++c->depth <= MAX_DEPTH || wrong(c, "at most %d blocks may be open", MAX_DEPTH);
}

static bool instruction(checker *c) {
  const ir_ins *i = here(c);
  if (i->op >= IR_OP_COUNT) return wrong(c, "there is no op %d", i->op);
  if (!leave(c)) return false;
  if (i->scope != c->scope) return wrong(c, "scope %d must be %d", (int)i->scope, (int)c->scope);
  return fields(c) && rules[i->op].check(c) && shape(c) && enter(c);
}

static bool head(checker *c) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const ir_kernel *k = c->k;
  if (k->error[0]) return wrong(c, "it was not built: %.150s", k->error);
  if (!memchr(k->name, 0, sizeof k->name)) return wrong(c, "the name must end within 63 letters");
  if (!k->name[0] || k->name[strspn(k->name, letters)] || strchr("0123456789", k->name[0]))
    return wrong(c, "name '%s' must be a C identifier", k->name);
  if (k->lanes < 1 || k->subgroups < 1 || k->lanes > MAX_GROUP ||
      k->subgroups > MAX_GROUP / k->lanes)
    return wrong(c, "a group of %d x %d lanes must have 1 ... %d", (int)k->subgroups, (int)k->lanes,
                 MAX_GROUP);
  if (k->rows < 1) return wrong(c, "rows %d must be positive", (int)k->rows);
  if (k->min_blocks_per_sm < 0 || k->min_blocks_per_sm > 64)
    return wrong(c, "min_blocks_per_sm %d must be 0 ... 64", (int)k->min_blocks_per_sm);
  if (k->large_registers != 0 && k->large_registers != 1)
    return wrong(c, "large_registers %d must be 0 or 1", (int)k->large_registers);
  if (k->n < 0 || (k->n && !k->ins) || k->pool_n < 0 || (k->pool_n && !k->pool))
    return wrong(c, "it has no instructions");
  return true;
}

static bool lanes_meet(checker *c) {
  ir_val store, under;
  if (ir_unsynchronised_load(c->k, &store, &c->at))
    return wrong(c, "it reads what another lane stores in instruction %d, with no BARRIER between",
                 (int)store);
  switch (ir_barriers_convergent(c->k, &c->at, &under)) {
    case IR_CONVERGENT: return true;
    case IR_DIVERGENT:
      return wrong(c,
                   "it is the group's, under instruction %d %s, whose operands may differ between "
                   "sub-groups",
                   (int)under, ir_op_name((ir_op)c->k->ins[under].op));
    default: return c->at = IR_NONE, wrong(c, "no memory");
  }
}

bool ir_verify(const ir_kernel *k, char *error, size_t size) {
  checker c = {.k = k, .at = IR_NONE, .scope = IR_NONE, .error = error, .size = size};
  if (size) error[0] = 0;
  if (!head(&c)) return false;
  for (c.at = 0; c.at < k->n; c.at++)
    if (!instruction(&c)) return false;
  c.at = c.scope;
  return c.scope == IR_NONE ? lanes_meet(&c) : wrong(&c, "it has no END");
}
