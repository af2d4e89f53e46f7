/* src/ir/ir.c - builds a kernel: types, shapes, hash-consing, parameters, arithmetic and constant
   folding. */
#include "src/ir/emit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INSTRUCTIONS = 1 << 22 };

static const struct {
  const char *name;
  bool pure;
  int operands;
} ops[] = {
#define IR_X(name, pure, operands) {#name, pure, operands},
    IR_OPS(IR_X)
#undef IR_X
};

bool ir_pure(ir_op op) { return ops[op].pure; }
const char *ir_op_name(ir_op op) { return (unsigned)op < IR_OP_COUNT ? ops[op].name : "?"; }

static const struct {
  const char *name;
  int bytes;
} types[] = {{"void", 0}, {"bool", 1}, {"i32", 4}, {"i64", 8},
             {"f32", 4},  {"f64", 8},  {"f16", 2}, {"bf16", 2}};

const char *ir_type_name(ir_type type) {
  return (unsigned)type <= IR_BF16 ? types[type].name : "?";
}
int ir_type_bytes(ir_type type) { return (unsigned)type <= IR_BF16 ? types[type].bytes : 0; }

int64_t ir_int_value(const ir_kernel *k, ir_val v, int64_t otherwise) {
  return v >= 0 && v < k->n && k->ins[v].op == IR_INT ? k->ins[v].imm : otherwise;
}

ir_val ir_mistake(ir_kernel *k, const char *format, ...) {
  va_list args;
  if (k->error[0]) return 0;
  va_start(args, format);
  vsnprintf(k->error, sizeof k->error, format, args);
  va_end(args);
  return 0;
}

void ir_begin(ir_kernel *k, const char *name, int lanes, int subgroups, int rows) {
  *k = (ir_kernel){.lanes = lanes, .subgroups = subgroups, .rows = rows, .scope = IR_NONE};
  snprintf(k->name, sizeof k->name, "%s", name);
  if (lanes < 1 || subgroups < 1 || rows < 1)
    ir_mistake(k, "a group needs lanes, sub-groups and rows, not %d x %d for %d", lanes, subgroups,
               rows);
}

void ir_free(ir_kernel *k) {
  free(k->ins);
  free(k->pool);
  free(k->hash);
  k->ins = NULL;
  k->pool = NULL;
  k->hash = NULL;
  k->n = k->cap = k->pool_n = k->pool_cap = k->hash_cap = 0;
}

/* ---- hash-consing ---- */

static uint32_t hash_of(const ir_ins *i) {
  uint64_t h = 14695981039346656037u, real;
  memcpy(&real, &i->real, sizeof real);
  uint64_t part[] = {(uint64_t)i->op << 24 | (uint64_t)i->type << 16 | i->element,
                     (uint64_t)(uint32_t)i->arg[0] << 32 | (uint32_t)i->arg[1],
                     (uint64_t)(uint32_t)i->arg[2] << 32 | (uint32_t)i->arg[3],
                     (uint64_t)i->imm,
                     real,
                     (uint64_t)(uint32_t)i->width};
  for (size_t p = 0; p < sizeof part / sizeof *part; p++)
    h = (h ^ part[p]) * 1099511628211u, h ^= h >> 29;
  return (uint32_t)(h ^ h >> 32);
}

static bool same(const ir_ins *a, const ir_ins *b) {
  return a->op == b->op && a->type == b->type && a->element == b->element && a->imm == b->imm &&
         a->width == b->width && !memcmp(a->arg, b->arg, sizeof a->arg) &&
         !memcmp(&a->real, &b->real, sizeof a->real);
}

/* Whether v can be used at the current position; the value of a LOOP only inside it. */
static bool visible(const ir_kernel *k, ir_val v) {
  int32_t scope = k->ins[v].op == IR_LOOP ? v : k->ins[v].scope;
  for (int32_t s = k->scope; s != scope; s = k->ins[s].scope)
    if (s == IR_NONE) return false;
  return true;
}

static bool grow_hash(ir_kernel *k) {
  int32_t cap = k->hash_cap ? 2 * k->hash_cap : 256, *hash = calloc((size_t)cap, sizeof *hash);
  if (!hash) return false;
  for (int32_t i = 0; i < k->hash_cap; i++) {
    if (!k->hash[i]) continue;
    uint32_t at = hash_of(&k->ins[k->hash[i] - 1]) & (uint32_t)(cap - 1);
    while (hash[at]) at = (at + 1) & (uint32_t)(cap - 1);
    hash[at] = k->hash[i];
  }
  free(k->hash);
  k->hash = hash;
  k->hash_cap = cap;
  return true;
}

static ir_val append(ir_kernel *k, const ir_ins *i) {
  if (k->n == k->cap) {
    int32_t cap = k->cap ? 2 * k->cap : 64;
    ir_ins *ins = cap > MAX_INSTRUCTIONS ? NULL : realloc(k->ins, (size_t)cap * sizeof *ins);
    if (!ins) return ir_mistake(k, "no memory for %d instructions", cap);
    k->ins = ins;
    k->cap = cap;
  }
  k->ins[k->n] = *i;
  k->ins[k->n].scope = k->scope;
  return k->n++;
}

/* Loads from a buffer that is never written give the same value each time; so do shuffles, which
   involve all lanes. */
static bool consable(const ir_kernel *k, const ir_ins *i) {
  if (i->op == IR_LOAD) return k->ins[i->arg[0]].op == IR_BUFFER && !k->ins[i->arg[0]].imm;
  return ops[i->op].pure || i->op == IR_SHUFFLE || i->op == IR_SHUFFLE_XOR ||
         i->op == IR_REDUCE_ADD;
}

ir_val ir_emit(ir_kernel *k, ir_ins i) {
  if (k->error[0]) return 0;
  if (!consable(k, &i)) return append(k, &i);
  if (k->n * 2 >= k->hash_cap && !grow_hash(k)) return ir_mistake(k, "no memory");
  uint32_t mask = (uint32_t)(k->hash_cap - 1), at = hash_of(&i) & mask;
  for (; k->hash[at]; at = (at + 1) & mask) {
    ir_val v = k->hash[at] - 1;
    if (same(&k->ins[v], &i) && visible(k, v)) return v;
  }
  ir_val v = append(k, &i);
  if (!k->error[0]) k->hash[at] = v + 1;
  return v;
}

/* ---- operands ---- */

void ir_bare(ir_kernel *k, ir_op op, int64_t imm) {
  ir_emit(k, (ir_ins){.op = op, .arg = IR_NOTHING, .stride = IR_NONE, .imm = imm});
}

bool ir_valid(ir_kernel *k, ir_op op, ir_val v) {
  if (k->error[0]) return false;
  bool variable = op == IR_GET || op == IR_SET;
  if (v < 0 || v >= k->n || !k->ins[v].type)
    ir_mistake(k, "%s: operand %d is not a value", ir_op_name(op), (int)v);
  else if (k->ins[v].op == IR_VAR && !variable)
    ir_mistake(k, "%s: operand %d is a variable, take its GET", ir_op_name(op), (int)v);
  else if (k->ins[v].op == IR_LOAD && k->ins[v].width > 1)
    ir_mistake(k, "%s: operand %d is a wide LOAD, take its ELEMENT", ir_op_name(op), (int)v);
  else if (!visible(k, v))
    ir_mistake(k, "%s: operand %d was made in a block that has ended", ir_op_name(op), (int)v);
  return !k->error[0];
}

bool ir_is_array(ir_kernel *k, ir_op op, ir_val v) {
  if (k->error[0]) return false;
  if (v < 0 || v >= k->n || (k->ins[v].op != IR_BUFFER && k->ins[v].op != IR_LOCAL))
    ir_mistake(k, "%s: operand %d is not an array", ir_op_name(op), (int)v);
  return !k->error[0];
}

ir_type ir_value_type(const ir_kernel *k, ir_val v) {
  return k->error[0] ? IR_F64 : ir_type_of(k, v);
}

ir_type ir_element_type(const ir_kernel *k, ir_val array) {
  return k->error[0] ? IR_F64 : (ir_type)k->ins[array].element;
}

bool ir_is_uniform(const ir_kernel *k, ir_val v) { return k->error[0] || ir_uniform(k, v); }

/* ---- parameters, ids, constants ---- */

void ir_stream(ir_kernel *k, ir_val buffer) {
  if (!ir_is_array(k, IR_STORE, buffer)) return;
  if (k->ins[buffer].op != IR_BUFFER || !k->ins[buffer].imm)
    ir_mistake(k, "BUFFER: %d is not declared written", buffer);
  else k->ins[buffer].imm = 2;
}

ir_val ir_buffer(ir_kernel *k, ir_type element, bool written) {
  if (ir_type_bytes(element) < 2)
    return ir_mistake(k, "BUFFER: elements of type %s", ir_type_name(element));
  return ir_emit(k, (ir_ins){.op = IR_BUFFER,
                             .element = element,
                             .arg = IR_NOTHING,
                             .stride = IR_NONE,
                             .imm = written});
}

ir_val ir_scalar(ir_kernel *k, ir_type type) {
  if (!ir_is_int(type) && !ir_is_float(type))
    return ir_mistake(k, "SCALAR: type %s", ir_type_name(type));
  return ir_emit(k, (ir_ins){.op = IR_SCALAR, .type = type, .arg = IR_NOTHING, .stride = IR_NONE});
}

ir_val ir_group(ir_kernel *k) {
  return ir_emit(k, (ir_ins){.op = IR_GROUP, .type = IR_I32, .arg = IR_NOTHING, .stride = IR_NONE});
}
ir_val ir_subgroup(ir_kernel *k) {
  return ir_emit(k,
                 (ir_ins){.op = IR_SUBGROUP, .type = IR_I32, .arg = IR_NOTHING, .stride = IR_NONE});
}
ir_val ir_lane(ir_kernel *k) {
  ir_val one = ir_int(k, IR_I32, 1);
  return ir_emit(
      k, (ir_ins){
             .op = IR_LANE, .type = IR_I32, .shape = IR_AFFINE, .arg = IR_NOTHING, .stride = one});
}

ir_val ir_int(ir_kernel *k, ir_type type, int64_t value) {
  if (type == IR_I32) value = (int32_t)(uint32_t)(uint64_t)value;
  else if (type == IR_BOOL) value = value != 0;
  else if (type != IR_I64) return ir_mistake(k, "INT: type %s", ir_type_name(type));
  return ir_emit(
      k, (ir_ins){.op = IR_INT, .type = type, .arg = IR_NOTHING, .stride = IR_NONE, .imm = value});
}

ir_val ir_real(ir_kernel *k, ir_type type, double value) {
  if (!ir_is_float(type)) return ir_mistake(k, "REAL: type %s", ir_type_name(type));
  return ir_emit(k, (ir_ins){.op = IR_REAL,
                             .type = type,
                             .arg = IR_NOTHING,
                             .stride = IR_NONE,
                             .real = type == IR_F32 ? (double)(float)value : value});
}

/* ---- arithmetic ---- */

/* The value of an integer operation on constants. */
static int64_t fold(ir_op op, ir_type type, int64_t a, int64_t b) {
  switch (op) {
    case IR_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case IR_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case IR_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case IR_DIV: return a / b;
    case IR_MOD: return a % b;
    case IR_XOR: return a ^ b;
    case IR_MUL_HIGH: return (int64_t)((uint64_t)(uint32_t)a * (uint32_t)b >> 32);
    case IR_MIN: return a < b ? a : b;
    case IR_MAX: return a > b ? a : b;
    case IR_LT: return a < b;
    case IR_LE: return a <= b;
    case IR_EQ: return a == b;
    case IR_AND: return a & b;
    case IR_OR: return a | b;
    default: return type == IR_BOOL ? !a : a;
  }
}

/* Integer identities; IR_NONE if none applies. */
static ir_val simplify(ir_kernel *k, ir_op op, ir_val a, ir_val b) {
  int64_t none = INT64_MIN, x = ir_int_value(k, a, none), y = ir_int_value(k, b, none);
  if (k->ins[a].op == IR_INT && k->ins[b].op == IR_INT &&
      !((op == IR_DIV || op == IR_MOD) && y <= 0)) {
    ir_type type = op == IR_LT || op == IR_LE || op == IR_EQ ? IR_BOOL : ir_type_of(k, a);
    return ir_int(k, type, fold(op, type, x, y));
  }
  if ((op == IR_ADD || op == IR_XOR) && x == 0) return b;
  if ((op == IR_ADD || op == IR_SUB || op == IR_XOR) && y == 0) return a;
  if (op == IR_MUL && x == 1) return b;
  if ((op == IR_MUL || op == IR_DIV) && y == 1) return a;
  if (op == IR_MUL && (x == 0 || y == 0)) return x == 0 ? a : b;
  if (op == IR_AND && (x == 0 || y == 1)) return a;
  if (op == IR_AND && (x == 1 || y == 0)) return b;
  if (op == IR_OR && (x == 1 || y == 0)) return a;
  if (op == IR_OR && (x == 0 || y == 1)) return b;
  return IR_NONE;
}

/* The lane-to-lane step of an integer a (op) b, or IR_NONE if it has none. */
static ir_val stride_of(ir_kernel *k, ir_op op, ir_val a, ir_val b) {
  ir_ins x = k->ins[a], y = k->ins[b];
  if (!ir_is_int(x.type) || x.shape == IR_VARYING || y.shape == IR_VARYING) return IR_NONE;
  ir_val zero = ir_int(k, x.type, 0);
  if (op == IR_ADD || op == IR_SUB)
    return ir_2(k, op, x.shape == IR_AFFINE ? x.stride : zero,
                y.shape == IR_AFFINE ? y.stride : zero);
  if (op == IR_MUL && y.shape == IR_UNIFORM) return ir_mul(k, x.stride, b);
  if (op == IR_MUL && x.shape == IR_UNIFORM) return ir_mul(k, a, y.stride);
  return IR_NONE;
}

static bool commutes(ir_op op) {
  return op == IR_ADD || op == IR_MUL || op == IR_EQ || op == IR_AND || op == IR_OR ||
         op == IR_XOR || op == IR_MUL_HIGH;
}

ir_val ir_2(ir_kernel *k, ir_op op, ir_val a, ir_val b) {
  if (!ir_valid(k, op, a) || !ir_valid(k, op, b)) return 0;
  ir_type t = ir_type_of(k, a);
  bool compare = op == IR_LT || op == IR_LE || op == IR_EQ, logic = op == IR_AND || op == IR_OR;
  if (ops[op].operands != 2 || !ops[op].pure)
    return ir_mistake(k, "%s does not take two values", ir_op_name(op));
  if (t != ir_type_of(k, b))
    return ir_mistake(k, "%s: operands %d %s and %d %s differ in type", ir_op_name(op), a,
                      ir_type_name(t), b, ir_type_name(ir_type_of(k, b)));
  if (logic != (t == IR_BOOL) || ((op == IR_MOD || op == IR_XOR) && !ir_is_int(t)) ||
      (op == IR_MUL_HIGH && t != IR_I32))
    return ir_mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(t));
  if (!ir_is_float(t)) {
    ir_val v = simplify(k, op, a, b);
    if (v != IR_NONE) return v;
  }
  if (commutes(op) && a > b) {
    ir_val c = a;
    a = b;
    b = c;
  }
  ir_ins i = {
      .op = op, .type = (uint8_t)(compare ? IR_BOOL : t), .arg = IR_NOTHING, .stride = IR_NONE};
  if (!ir_uniform(k, a) || !ir_uniform(k, b)) {
    i.stride = stride_of(k, op, a, b);
    i.shape = i.stride == IR_NONE ? IR_VARYING : IR_AFFINE;
  }
  i.arg[0] = a;
  i.arg[1] = b;
  return ir_emit(k, i);
}

ir_val ir_1(ir_kernel *k, ir_op op, ir_val a) {
  if (!ir_valid(k, op, a)) return 0;
  if (ops[op].operands != 1 || !ops[op].pure || op == IR_CAST || op == IR_ELEMENT)
    return ir_mistake(k, "%s does not take one value", ir_op_name(op));
  if (op == IR_NOT ? ir_type_of(k, a) != IR_BOOL : !ir_is_float(ir_type_of(k, a)))
    return ir_mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(ir_type_of(k, a)));
  if (op == IR_NOT && k->ins[a].op == IR_INT) return ir_int(k, IR_BOOL, !k->ins[a].imm);
  return ir_emit(k, (ir_ins){.op = op,
                             .type = ir_type_of(k, a),
                             .shape = ir_uniform(k, a) ? IR_UNIFORM : IR_VARYING,
                             .arg = {a, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                             .stride = IR_NONE});
}

static ir_val three(ir_kernel *k, ir_op op, ir_val a, ir_val b, ir_val c, ir_type type) {
  bool flat = ir_uniform(k, a) && ir_uniform(k, b) && ir_uniform(k, c);
  return ir_emit(k, (ir_ins){.op = op,
                             .type = type,
                             .shape = flat ? IR_UNIFORM : IR_VARYING,
                             .arg = {a, b, c, IR_NONE, IR_NONE},
                             .stride = IR_NONE});
}

ir_val ir_fma(ir_kernel *k, ir_val a, ir_val b, ir_val c) {
  if (!ir_valid(k, IR_FMA, a) || !ir_valid(k, IR_FMA, b) || !ir_valid(k, IR_FMA, c)) return 0;
  ir_type t = ir_type_of(k, a);
  if (!ir_is_float(t) || t != ir_type_of(k, b) || t != ir_type_of(k, c))
    return ir_mistake(k, "FMA: operands %d %d %d are not floats of one type", a, b, c);
  return a < b ? three(k, IR_FMA, a, b, c, t) : three(k, IR_FMA, b, a, c, t);
}

ir_val ir_select(ir_kernel *k, ir_val mask, ir_val yes, ir_val no) {
  if (!ir_valid(k, IR_SELECT, mask) || !ir_valid(k, IR_SELECT, yes) || !ir_valid(k, IR_SELECT, no))
    return 0;
  if (ir_type_of(k, mask) != IR_BOOL || ir_type_of(k, yes) != ir_type_of(k, no))
    return ir_mistake(k, "SELECT: bool ? a : b with a and b of one type, not %d ? %d : %d", mask,
                      yes, no);
  if (yes == no) return yes;
  if (k->ins[mask].op == IR_INT) return k->ins[mask].imm ? yes : no;
  return three(k, IR_SELECT, mask, yes, no, ir_type_of(k, yes));
}

ir_val ir_cast(ir_kernel *k, ir_type type, ir_val a) {
  if (!ir_valid(k, IR_CAST, a)) return 0;
  ir_type from = ir_type_of(k, a);
  if (from == type) return a;
  if (from == IR_BOOL || (!ir_is_int(type) && !ir_is_float(type)))
    return ir_mistake(k, "CAST: %s to %s", ir_type_name(from), ir_type_name(type));
  if (k->ins[a].op == IR_INT && ir_is_int(type)) return ir_int(k, type, k->ins[a].imm);
  ir_ins i = {.op = IR_CAST,
              .type = type,
              .shape = ir_uniform(k, a) ? IR_UNIFORM : IR_VARYING,
              .arg = {a, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
              .stride = IR_NONE};
  if (k->ins[a].shape == IR_AFFINE && ir_is_int(type)) {
    i.stride = ir_cast(k, type, k->ins[a].stride);
    i.shape = IR_AFFINE;
  }
  return ir_emit(k, i);
}
