/* src/ir/ir.c - builds a kernel: types, shapes, hash-consing, constant folding, removal of unused
   instructions. */
#include "src/ir/barriers.h"

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

static ir_val mistake(ir_kernel *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ir_val mistake(ir_kernel *k, const char *format, ...) {
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
    mistake(k, "a group needs lanes, sub-groups and rows, not %d x %d for %d", lanes, subgroups,
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
    if (!ins) return mistake(k, "no memory for %d instructions", cap);
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

static ir_val emit(ir_kernel *k, ir_ins i) {
  if (k->error[0]) return 0;
  if (!consable(k, &i)) return append(k, &i);
  if (k->n * 2 >= k->hash_cap && !grow_hash(k)) return mistake(k, "no memory");
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

#define NOTHING                                                                                    \
  { IR_NONE, IR_NONE, IR_NONE, IR_NONE, IR_NONE }

static bool valid(ir_kernel *k, ir_op op, ir_val v) {
  if (k->error[0]) return false;
  bool variable = op == IR_GET || op == IR_SET;
  if (v < 0 || v >= k->n || !k->ins[v].type)
    mistake(k, "%s: operand %d is not a value", ir_op_name(op), (int)v);
  else if (k->ins[v].op == IR_VAR && !variable)
    mistake(k, "%s: operand %d is a variable, take its GET", ir_op_name(op), (int)v);
  else if (k->ins[v].op == IR_LOAD && k->ins[v].width > 1)
    mistake(k, "%s: operand %d is a wide LOAD, take its ELEMENT", ir_op_name(op), (int)v);
  else if (!visible(k, v))
    mistake(k, "%s: operand %d was made in a block that has ended", ir_op_name(op), (int)v);
  return !k->error[0];
}

static bool is_array(ir_kernel *k, ir_op op, ir_val v) {
  if (k->error[0]) return false;
  if (v < 0 || v >= k->n || (k->ins[v].op != IR_BUFFER && k->ins[v].op != IR_LOCAL))
    mistake(k, "%s: operand %d is not an array", ir_op_name(op), (int)v);
  return !k->error[0];
}

static ir_type type_of(const ir_kernel *k, ir_val v) { return k->ins[v].type; }
static bool uniform(const ir_kernel *k, ir_val v) { return k->ins[v].shape == IR_UNIFORM; }

ir_type ir_value_type(const ir_kernel *k, ir_val v) { return k->error[0] ? IR_F64 : type_of(k, v); }

ir_type ir_element_type(const ir_kernel *k, ir_val array) {
  return k->error[0] ? IR_F64 : (ir_type)k->ins[array].element;
}

bool ir_is_uniform(const ir_kernel *k, ir_val v) { return k->error[0] || uniform(k, v); }

/* ---- parameters, ids, constants ---- */

void ir_stream(ir_kernel *k, ir_val buffer) {
  if (!is_array(k, IR_STORE, buffer)) return;
  if (k->ins[buffer].op != IR_BUFFER || !k->ins[buffer].imm)
    mistake(k, "BUFFER: %d is not declared written", buffer);
  else k->ins[buffer].imm = 2;
}

ir_val ir_buffer(ir_kernel *k, ir_type element, bool written) {
  if (ir_type_bytes(element) < 2)
    return mistake(k, "BUFFER: elements of type %s", ir_type_name(element));
  return emit(
      k,
      (ir_ins){
          .op = IR_BUFFER, .element = element, .arg = NOTHING, .stride = IR_NONE, .imm = written});
}

ir_val ir_scalar(ir_kernel *k, ir_type type) {
  if (!ir_is_int(type) && !ir_is_float(type))
    return mistake(k, "SCALAR: type %s", ir_type_name(type));
  return emit(k, (ir_ins){.op = IR_SCALAR, .type = type, .arg = NOTHING, .stride = IR_NONE});
}

ir_val ir_group(ir_kernel *k) {
  return emit(k, (ir_ins){.op = IR_GROUP, .type = IR_I32, .arg = NOTHING, .stride = IR_NONE});
}
ir_val ir_subgroup(ir_kernel *k) {
  return emit(k, (ir_ins){.op = IR_SUBGROUP, .type = IR_I32, .arg = NOTHING, .stride = IR_NONE});
}
ir_val ir_lane(ir_kernel *k) {
  ir_val one = ir_int(k, IR_I32, 1);
  return emit(
      k,
      (ir_ins){.op = IR_LANE, .type = IR_I32, .shape = IR_AFFINE, .arg = NOTHING, .stride = one});
}

ir_val ir_int(ir_kernel *k, ir_type type, int64_t value) {
  if (type == IR_I32) value = (int32_t)(uint32_t)(uint64_t)value;
  else if (type == IR_BOOL) value = value != 0;
  else if (type != IR_I64) return mistake(k, "INT: type %s", ir_type_name(type));
  return emit(
      k, (ir_ins){.op = IR_INT, .type = type, .arg = NOTHING, .stride = IR_NONE, .imm = value});
}

ir_val ir_real(ir_kernel *k, ir_type type, double value) {
  if (!ir_is_float(type)) return mistake(k, "REAL: type %s", ir_type_name(type));
  return emit(k, (ir_ins){.op = IR_REAL,
                          .type = type,
                          .arg = NOTHING,
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
    ir_type type = op == IR_LT || op == IR_LE || op == IR_EQ ? IR_BOOL : type_of(k, a);
    return ir_int(k, type, fold(op, type, x, y));
  }
  if (op == IR_ADD && x == 0) return b;
  if ((op == IR_ADD || op == IR_SUB) && y == 0) return a;
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

ir_val ir_2(ir_kernel *k, ir_op op, ir_val a, ir_val b) {
  if (!valid(k, op, a) || !valid(k, op, b)) return 0;
  ir_type t = type_of(k, a);
  bool compare = op == IR_LT || op == IR_LE || op == IR_EQ, logic = op == IR_AND || op == IR_OR;
  if (ops[op].operands != 2 || !ops[op].pure)
    return mistake(k, "%s does not take two values", ir_op_name(op));
  if (t != type_of(k, b))
    return mistake(k, "%s: operands %d %s and %d %s differ in type", ir_op_name(op), a,
                   ir_type_name(t), b, ir_type_name(type_of(k, b)));
  if (logic != (t == IR_BOOL) || (op == IR_MOD && !ir_is_int(t)))
    return mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(t));
  if (!ir_is_float(t)) {
    ir_val v = simplify(k, op, a, b);
    if (v != IR_NONE) return v;
  }
  if ((op == IR_ADD || op == IR_MUL || op == IR_EQ || logic) && a > b) {
    ir_val c = a;
    a = b;
    b = c;
  }
  ir_ins i = {
      .op = op, .type = (uint8_t)(compare ? IR_BOOL : t), .arg = NOTHING, .stride = IR_NONE};
  if (!uniform(k, a) || !uniform(k, b)) {
    i.stride = stride_of(k, op, a, b);
    i.shape = i.stride == IR_NONE ? IR_VARYING : IR_AFFINE;
  }
  i.arg[0] = a;
  i.arg[1] = b;
  return emit(k, i);
}

ir_val ir_1(ir_kernel *k, ir_op op, ir_val a) {
  if (!valid(k, op, a)) return 0;
  if (ops[op].operands != 1 || !ops[op].pure || op == IR_CAST || op == IR_ELEMENT)
    return mistake(k, "%s does not take one value", ir_op_name(op));
  if (op == IR_NOT ? type_of(k, a) != IR_BOOL : !ir_is_float(type_of(k, a)))
    return mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(type_of(k, a)));
  if (op == IR_NOT && k->ins[a].op == IR_INT) return ir_int(k, IR_BOOL, !k->ins[a].imm);
  return emit(k, (ir_ins){.op = op,
                          .type = type_of(k, a),
                          .shape = uniform(k, a) ? IR_UNIFORM : IR_VARYING,
                          .arg = {a, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                          .stride = IR_NONE});
}

static ir_val three(ir_kernel *k, ir_op op, ir_val a, ir_val b, ir_val c, ir_type type) {
  bool flat = uniform(k, a) && uniform(k, b) && uniform(k, c);
  return emit(k, (ir_ins){.op = op,
                          .type = type,
                          .shape = flat ? IR_UNIFORM : IR_VARYING,
                          .arg = {a, b, c, IR_NONE, IR_NONE},
                          .stride = IR_NONE});
}

ir_val ir_fma(ir_kernel *k, ir_val a, ir_val b, ir_val c) {
  if (!valid(k, IR_FMA, a) || !valid(k, IR_FMA, b) || !valid(k, IR_FMA, c)) return 0;
  ir_type t = type_of(k, a);
  if (!ir_is_float(t) || t != type_of(k, b) || t != type_of(k, c))
    return mistake(k, "FMA: operands %d %d %d are not floats of one type", a, b, c);
  return a < b ? three(k, IR_FMA, a, b, c, t) : three(k, IR_FMA, b, a, c, t);
}

ir_val ir_select(ir_kernel *k, ir_val mask, ir_val yes, ir_val no) {
  if (!valid(k, IR_SELECT, mask) || !valid(k, IR_SELECT, yes) || !valid(k, IR_SELECT, no)) return 0;
  if (type_of(k, mask) != IR_BOOL || type_of(k, yes) != type_of(k, no))
    return mistake(k, "SELECT: bool ? a : b with a and b of one type, not %d ? %d : %d", mask, yes,
                   no);
  if (yes == no) return yes;
  if (k->ins[mask].op == IR_INT) return k->ins[mask].imm ? yes : no;
  return three(k, IR_SELECT, mask, yes, no, type_of(k, yes));
}

ir_val ir_cast(ir_kernel *k, ir_type type, ir_val a) {
  if (!valid(k, IR_CAST, a)) return 0;
  ir_type from = type_of(k, a);
  if (from == type) return a;
  if (from == IR_BOOL || (!ir_is_int(type) && !ir_is_float(type)))
    return mistake(k, "CAST: %s to %s", ir_type_name(from), ir_type_name(type));
  if (k->ins[a].op == IR_INT && ir_is_int(type)) return ir_int(k, type, k->ins[a].imm);
  ir_ins i = {.op = IR_CAST,
              .type = type,
              .shape = uniform(k, a) ? IR_UNIFORM : IR_VARYING,
              .arg = {a, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
              .stride = IR_NONE};
  if (k->ins[a].shape == IR_AFFINE && ir_is_int(type)) {
    i.stride = ir_cast(k, type, k->ins[a].stride);
    i.shape = IR_AFFINE;
  }
  return emit(k, i);
}

/* ---- variables and arrays ---- */

ir_val ir_local(ir_kernel *k, ir_type element, int64_t length) {
  if (ir_type_bytes(element) < 2 || length < 1 || length > INT32_MAX)
    return mistake(k, "LOCAL: %lld elements of type %s", (long long)length, ir_type_name(element));
  if (k->scope != IR_NONE) return mistake(k, "LOCAL stands outside loops and ifs");
  return emit(
      k, (ir_ins){
             .op = IR_LOCAL, .element = element, .arg = NOTHING, .stride = IR_NONE, .imm = length});
}

ir_val ir_var(ir_kernel *k, ir_val first, bool flat) {
  if (!valid(k, IR_VAR, first)) return 0;
  if (flat && !uniform(k, first))
    return mistake(k, "VAR: uniform, but its first value %d is not", first);
  return emit(k, (ir_ins){.op = IR_VAR,
                          .type = type_of(k, first),
                          .shape = flat ? IR_UNIFORM : IR_VARYING,
                          .arg = {first, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                          .stride = IR_NONE});
}

static bool is_var(ir_kernel *k, ir_op op, ir_val v) {
  if (valid(k, op, v) && k->ins[v].op != IR_VAR)
    mistake(k, "%s: operand %d is not a VAR", ir_op_name(op), v);
  return !k->error[0];
}

static ir_val get(ir_kernel *k, ir_val var, bool here) {
  if (!is_var(k, IR_GET, var)) return 0;
  return emit(k, (ir_ins){.op = IR_GET,
                          .type = type_of(k, var),
                          .shape = k->ins[var].shape,
                          .arg = {var, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                          .stride = IR_NONE,
                          .imm = here});
}

ir_val ir_get(ir_kernel *k, ir_val var) { return get(k, var, false); }
ir_val ir_get_here(ir_kernel *k, ir_val var) { return get(k, var, true); }

void ir_set(ir_kernel *k, ir_val var, ir_val value) {
  if (!is_var(k, IR_SET, var) || !valid(k, IR_SET, value)) return;
  if (type_of(k, var) != type_of(k, value))
    mistake(k, "SET: variable %d is %s, value %d is %s", var, ir_type_name(type_of(k, var)), value,
            ir_type_name(type_of(k, value)));
  if (uniform(k, var) && !uniform(k, value))
    mistake(k, "SET: variable %d is uniform, value %d is not", var, value);
  emit(k,
       (ir_ins){.op = IR_SET, .arg = {var, value, IR_NONE, IR_NONE, IR_NONE}, .stride = IR_NONE});
}

static bool access(ir_kernel *k, ir_op op, ir_val array, ir_val index, ir_val mask, int width,
                   bool write) {
  if (!is_array(k, op, array) || !valid(k, op, index) || (mask != IR_NONE && !valid(k, op, mask)))
    return false;
  if (!ir_is_int(type_of(k, index)))
    mistake(k, "%s: index %d is %s", ir_op_name(op), index, ir_type_name(type_of(k, index)));
  if (mask != IR_NONE && type_of(k, mask) != IR_BOOL)
    mistake(k, "%s: mask %d is not bool", ir_op_name(op), mask);
  if (width < 1 || width > IR_MAX_WIDTH)
    mistake(k, "%s: width %d is not in 1 ... %d", ir_op_name(op), width, IR_MAX_WIDTH);
  if (write && k->ins[array].op == IR_BUFFER && !k->ins[array].imm)
    mistake(k, "%s: buffer %d is not declared written", ir_op_name(op), array);
  return !k->error[0];
}

/* Replaces a mask that is always true by none. */
static ir_val plain_mask(const ir_kernel *k, ir_val mask) {
  return ir_int_value(k, mask, 0) == 1 ? IR_NONE : mask;
}

static bool one_by_one(const ir_kernel *k, ir_val array, int width) {
  return k->scalar_access && width > 1 && !k->error[0] && k->ins[array].op == IR_BUFFER &&
         !ir_is_int((ir_type)k->ins[array].element);
}

static ir_val next_to(ir_kernel *k, ir_val index, int j) {
  return ir_2(k, IR_ADD, index, ir_int(k, type_of(k, index), j));
}

static void load(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width, bool aligned,
                 ir_val *values) {
  for (int j = 0; j < width; j++) values[j] = 0;
  if (!access(k, IR_LOAD, array, index, mask, width, false)) return;
  if (one_by_one(k, array, width)) {
    for (int j = 0; j < width; j++)
      load(k, array, next_to(k, index, j), mask, 1, false, values + j);
    return;
  }
  bool flat = uniform(k, index) && (mask == IR_NONE || uniform(k, mask));
  ir_ins i = {.op = IR_LOAD,
              .type = ir_register_type(k->ins[array].element),
              .shape = flat ? IR_UNIFORM : IR_VARYING,
              .arg = {array, index, plain_mask(k, mask), IR_NONE, IR_NONE},
              .stride = IR_NONE,
              .width = width,
              .imm = aligned};
  ir_val v = emit(k, i);
  i = (ir_ins){.op = IR_ELEMENT,
               .type = i.type,
               .shape = i.shape,
               .arg = {v, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
               .stride = IR_NONE};
  if (width == 1) values[0] = v;
  else
    for (; i.imm < width; i.imm++) values[i.imm] = emit(k, i);
}

void ir_load_wide(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                  ir_val *values) {
  load(k, array, index, mask, width, false, values);
}

static void check_aligned(ir_kernel *k, ir_op op, ir_val array, int width) {
  ir_type element = is_array(k, op, array) ? (ir_type)k->ins[array].element : IR_F64;
  int bytes = ir_type_bytes(element) * width;
  if (ir_register_type(element) != element || (bytes != 8 && bytes != 16))
    mistake(k, "%s: %d of %s are not 8 or 16 bytes of i32, i64, f32 or f64", ir_op_name(op), width,
            ir_type_name(element));
}

void ir_load_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                     ir_val *values) {
  check_aligned(k, IR_LOAD, array, width);
  load(k, array, index, mask, width, true, values);
}

ir_val ir_load(ir_kernel *k, ir_val array, ir_val index, ir_val mask) {
  ir_val v;
  ir_load_wide(k, array, index, mask, 1, &v);
  return v;
}

/* Puts values into the pool; where they start. */
static int64_t pooled(ir_kernel *k, int n, const ir_val *values) {
  if (k->pool_n + n > k->pool_cap) {
    int32_t cap = 2 * k->pool_cap + 64;
    ir_val *pool = realloc(k->pool, (size_t)cap * sizeof *pool);
    if (!pool) {
      mistake(k, "no memory");
      return 0;
    }
    k->pool = pool;
    k->pool_cap = cap;
  }
  memcpy(k->pool + k->pool_n, values, (size_t)n * sizeof *values);
  k->pool_n += n;
  return k->pool_n - n;
}

/* STORE or ATOMIC_ADD. */
static void store(ir_kernel *k, ir_op op, ir_val array, ir_val index, ir_val mask, int width,
                  bool aligned, const ir_val *values) {
  if (!access(k, op, array, index, mask, width, true)) return;
  ir_type t = ir_register_type(k->ins[array].element);
  if (op == IR_ATOMIC_ADD && !ir_is_float(k->ins[array].element))
    mistake(k, "ATOMIC_ADD: adds to f32 or f64, not %s", ir_type_name(k->ins[array].element));
  for (int j = 0; j < width; j++) {
    if (!valid(k, op, values[j])) return;
    if (type_of(k, values[j]) != t)
      mistake(k, "%s: value %d is %s, the array takes %s", ir_op_name(op), values[j],
              ir_type_name(type_of(k, values[j])), ir_type_name(t));
  }
  if (one_by_one(k, array, width)) {
    for (int j = 0; j < width; j++)
      store(k, op, array, next_to(k, index, j), mask, 1, false, values + j);
    return;
  }
  int64_t first = pooled(k, width, values);
  if (k->error[0]) return;
  emit(k, (ir_ins){.op = op,
                   .element = aligned,
                   .arg = {array, index, plain_mask(k, mask), IR_NONE, IR_NONE},
                   .stride = IR_NONE,
                   .width = width,
                   .imm = first});
}

void ir_store_wide(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                   const ir_val *values) {
  store(k, IR_STORE, array, index, mask, width, false, values);
}

void ir_store_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                      const ir_val *values) {
  check_aligned(k, IR_STORE, array, width);
  store(k, IR_STORE, array, index, mask, width, true, values);
}

void ir_store(ir_kernel *k, ir_val array, ir_val index, ir_val mask, ir_val value) {
  ir_store_wide(k, array, index, mask, 1, &value);
}

void ir_atomic_add(ir_kernel *k, ir_val array, ir_val index, ir_val mask, ir_val value) {
  store(k, IR_ATOMIC_ADD, array, index, mask, 1, false, &value);
}

void ir_atomic_add_aligned(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                           const ir_val *values) {
  check_aligned(k, IR_ATOMIC_ADD, array, width);
  store(k, IR_ATOMIC_ADD, array, index, mask, width, true, values);
}

static void copy(ir_kernel *k, ir_val local, ir_val at, ir_val buffer, ir_val from, ir_val mask,
                 int width, bool aligned) {
  if (!access(k, IR_COPY, local, at, mask, width, true) ||
      !access(k, IR_COPY, buffer, from, mask, width, false))
    return;
  if (k->ins[local].op != IR_LOCAL || k->ins[buffer].op != IR_BUFFER ||
      k->ins[local].element != k->ins[buffer].element)
    mistake(k, "COPY: from a buffer to a local array of the same elements, not %d to %d", buffer,
            local);
  emit(k, (ir_ins){.op = IR_COPY,
                   .arg = {local, at, buffer, from, plain_mask(k, mask)},
                   .stride = IR_NONE,
                   .width = width,
                   .imm = aligned});
}

void ir_copy(ir_kernel *k, ir_val local, ir_val at, ir_val buffer, ir_val from, ir_val mask,
             int width) {
  copy(k, local, at, buffer, from, mask, width, false);
}

void ir_copy_aligned(ir_kernel *k, ir_val local, ir_val at, ir_val buffer, ir_val from, ir_val mask,
                     int width) {
  int bytes = is_array(k, IR_COPY, local) ? ir_type_bytes(k->ins[local].element) * width : 8;
  if (bytes != 8 && bytes != 16) mistake(k, "COPY: %d bytes are not 8 or 16", bytes);
  copy(k, local, at, buffer, from, mask, width, true);
}

static void bare(ir_kernel *k, ir_op op, int64_t imm) {
  emit(k, (ir_ins){.op = op, .arg = NOTHING, .stride = IR_NONE, .imm = imm});
}
void ir_copy_commit(ir_kernel *k) { bare(k, IR_COPY_COMMIT, 0); }
void ir_copy_wait(ir_kernel *k, int batches) { bare(k, IR_COPY_WAIT, batches); }
void ir_prefetch(ir_kernel *k, ir_val buffer, ir_val index, int width) {
  if (!access(k, IR_PREFETCH, buffer, index, IR_NONE, width, false)) return;
  if (k->ins[index].shape == IR_VARYING) {
    mistake(k, "PREFETCH: index %d is not that of lanes back to back", index);
    return;
  }
  emit(k, (ir_ins){.op = IR_PREFETCH,
                   .arg = {buffer, index, IR_NONE, IR_NONE, IR_NONE},
                   .stride = IR_NONE,
                   .width = width});
}
void ir_barrier(ir_kernel *k, bool group) { bare(k, IR_BARRIER, group); }
void ir_pace(ir_kernel *k) { bare(k, IR_BARRIER, IR_PACE); }

/* ---- lanes ---- */

static ir_val across(ir_kernel *k, ir_op op, ir_val value, ir_val lane, int64_t imm) {
  if (!valid(k, op, value) || (op == IR_SHUFFLE && !valid(k, op, lane))) return 0;
  if (type_of(k, value) == IR_BOOL || (op == IR_REDUCE_ADD && !ir_is_float(type_of(k, value))))
    return mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(type_of(k, value)));
  if (op == IR_SHUFFLE && type_of(k, lane) != IR_I32)
    return mistake(k, "SHUFFLE: lane %d is %s, not i32", lane, ir_type_name(type_of(k, lane)));
  if (op != IR_SHUFFLE && (k->lanes & (k->lanes - 1)))
    return mistake(k, "%s needs a power of two of lanes, not %d", ir_op_name(op), k->lanes);
  if (op == IR_SHUFFLE_XOR && (imm < 0 || imm >= k->lanes))
    return mistake(k, "SHUFFLE_XOR: %lld is not in 0 ... %d", (long long)imm, k->lanes - 1);
  bool flat = op == IR_REDUCE_ADD || (op == IR_SHUFFLE && uniform(k, lane));
  return emit(k, (ir_ins){.op = op,
                          .type = type_of(k, value),
                          .shape = flat ? IR_UNIFORM : IR_VARYING,
                          .arg = {value, lane, IR_NONE, IR_NONE, IR_NONE},
                          .stride = IR_NONE,
                          .imm = imm});
}

ir_val ir_shuffle(ir_kernel *k, ir_val value, ir_val lane) {
  return across(k, IR_SHUFFLE, value, lane, 0);
}
ir_val ir_shuffle_xor(ir_kernel *k, ir_val value, int with) {
  return across(k, IR_SHUFFLE_XOR, value, IR_NONE, with);
}
ir_val ir_reduce_add(ir_kernel *k, ir_val value) {
  return across(k, IR_REDUCE_ADD, value, IR_NONE, 0);
}

/* ---- control ---- */

ir_val ir_loop(ir_kernel *k, ir_val begin, ir_val end, ir_val step) {
  if (!valid(k, IR_LOOP, begin) || !valid(k, IR_LOOP, end) || !valid(k, IR_LOOP, step)) return 0;
  ir_type t = type_of(k, begin);
  if (!ir_is_int(t) || t != type_of(k, end) || t != type_of(k, step))
    return mistake(k, "LOOP: bounds %d %d %d are not integers of one type", begin, end, step);
  if (!uniform(k, begin) || !uniform(k, end) || !uniform(k, step))
    return mistake(k, "LOOP: bounds %d %d %d must be uniform", begin, end, step);
  ir_val v = emit(k, (ir_ins){.op = IR_LOOP,
                              .type = t,
                              .arg = {begin, end, step, IR_NONE, IR_NONE},
                              .stride = IR_NONE});
  if (!k->error[0]) k->scope = v;
  return v;
}

void ir_if(ir_kernel *k, ir_val condition) {
  if (!valid(k, IR_IF, condition)) return;
  if (type_of(k, condition) != IR_BOOL || !uniform(k, condition))
    mistake(k, "IF: condition %d must be a uniform bool", condition);
  ir_val v = emit(k, (ir_ins){.op = IR_IF,
                              .arg = {condition, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                              .stride = IR_NONE});
  if (!k->error[0]) k->scope = v;
}

void ir_else(ir_kernel *k) {
  if (k->error[0]) return;
  if (k->scope == IR_NONE || k->ins[k->scope].op != IR_IF) {
    mistake(k, "ELSE without IF");
    return;
  }
  k->scope = k->ins[k->scope].scope;
  bare(k, IR_ELSE, 0);
  if (!k->error[0]) k->scope = k->n - 1;
}

void ir_end(ir_kernel *k) {
  if (k->error[0]) return;
  if (k->scope == IR_NONE) {
    mistake(k, "END without LOOP or IF");
    return;
  }
  k->scope = k->ins[k->scope].scope;
  bare(k, IR_END, 0);
}

/* ---- removal of unused instructions ---- */

static bool removable(const ir_ins *i) {
  return ops[i->op].pure || i->op == IR_LOAD || i->op == IR_GET || i->op == IR_LOCAL ||
         i->op == IR_SHUFFLE || i->op == IR_SHUFFLE_XOR || i->op == IR_REDUCE_ADD;
}

/* Operands come before their users, so one backward pass finds everything that is needed. */
static void mark(const ir_kernel *k, int32_t *live) {
  for (int32_t v = k->n - 1; v >= 0; v--) {
    const ir_ins *i = &k->ins[v];
    if (!live[v] && removable(i)) continue;
    live[v] = 1;
    for (int a = 0; a < 5; a++)
      if (i->arg[a] != IR_NONE) live[i->arg[a]] = 1;
    if (i->stride != IR_NONE) live[i->stride] = 1;
    if (ir_stores(i))
      for (int32_t j = 0; j < i->width; j++) live[k->pool[i->imm + j]] = 1;
  }
}

void ir_keep(ir_kernel *k, int32_t *at) {
  int32_t n = 0;
  for (int32_t v = 0; v < k->n; v++) {
    ir_ins i = k->ins[v];
    if (!at[v]) continue;
    for (int a = 0; a < 5; a++)
      if (i.arg[a] != IR_NONE) i.arg[a] = at[i.arg[a]];
    if (i.stride != IR_NONE) i.stride = at[i.stride];
    if (i.scope != IR_NONE) i.scope = at[i.scope];
    at[v] = n;
    k->ins[n++] = i;
  }
  for (int32_t j = 0; j < k->pool_n; j++) k->pool[j] = at[k->pool[j]];
  k->n = n;
}

bool ir_finish(ir_kernel *k) {
  if (!k->error[0] && k->scope != IR_NONE)
    mistake(k, "%s at %d is not ended", ir_op_name(k->ins[k->scope].op), k->scope);
  int32_t *live = k->error[0] ? NULL : calloc((size_t)k->n + 1, sizeof *live);
  if (!live) return mistake(k, "no memory"), false;
  mark(k, live);
  ir_keep(k, live);
  free(live);
  free(k->hash);
  k->hash = NULL;
  k->hash_cap = 0;
  return true;
}
