/* src/ir/ir_control.c - builds a kernel: what lanes exchange, loops and ifs, and its end, at which
   unused instructions are removed. */
#include "src/ir/barriers.h"
#include "src/ir/emit.h"

#include <stdlib.h>

/* ---- lanes ---- */

static ir_val across(ir_kernel *k, ir_op op, ir_val value, ir_val lane, int64_t imm) {
  if (!ir_valid(k, op, value) || (op == IR_SHUFFLE && !ir_valid(k, op, lane))) return 0;
  if (ir_type_of(k, value) == IR_BOOL ||
      (op == IR_REDUCE_ADD && !ir_is_float(ir_type_of(k, value))))
    return ir_mistake(k, "%s does not take %s", ir_op_name(op), ir_type_name(ir_type_of(k, value)));
  if (op == IR_SHUFFLE && ir_type_of(k, lane) != IR_I32)
    return ir_mistake(k, "SHUFFLE: lane %d is %s, not i32", lane,
                      ir_type_name(ir_type_of(k, lane)));
  if (op != IR_SHUFFLE && (k->lanes & (k->lanes - 1)))
    return ir_mistake(k, "%s needs a power of two of lanes, not %d", ir_op_name(op), k->lanes);
  if (op == IR_SHUFFLE_XOR && (imm < 0 || imm >= k->lanes))
    return ir_mistake(k, "SHUFFLE_XOR: %lld is not in 0 ... %d", (long long)imm, k->lanes - 1);
  bool flat = op == IR_REDUCE_ADD || (op == IR_SHUFFLE && ir_uniform(k, lane));
  return ir_emit(k, (ir_ins){.op = op,
                             .type = ir_type_of(k, value),
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
  if (!ir_valid(k, IR_LOOP, begin) || !ir_valid(k, IR_LOOP, end) || !ir_valid(k, IR_LOOP, step))
    return 0;
  ir_type t = ir_type_of(k, begin);
  if (!ir_is_int(t) || t != ir_type_of(k, end) || t != ir_type_of(k, step))
    return ir_mistake(k, "LOOP: bounds %d %d %d are not integers of one type", begin, end, step);
  if (!ir_uniform(k, begin) || !ir_uniform(k, end) || !ir_uniform(k, step))
    return ir_mistake(k, "LOOP: bounds %d %d %d must be uniform", begin, end, step);
  ir_val v = ir_emit(k, (ir_ins){.op = IR_LOOP,
                                 .type = t,
                                 .arg = {begin, end, step, IR_NONE, IR_NONE},
                                 .stride = IR_NONE});
  if (!k->error[0]) k->scope = v;
  return v;
}

void ir_if(ir_kernel *k, ir_val condition) {
  if (!ir_valid(k, IR_IF, condition)) return;
  if (ir_type_of(k, condition) != IR_BOOL || !ir_uniform(k, condition))
    ir_mistake(k, "IF: condition %d must be a uniform bool", condition);
  ir_val v = ir_emit(k, (ir_ins){.op = IR_IF,
                                 .arg = {condition, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                                 .stride = IR_NONE});
  if (!k->error[0]) k->scope = v;
}

void ir_else(ir_kernel *k) {
  if (k->error[0]) return;
  if (k->scope == IR_NONE || k->ins[k->scope].op != IR_IF) {
    ir_mistake(k, "ELSE without IF");
    return;
  }
  k->scope = k->ins[k->scope].scope;
  ir_bare(k, IR_ELSE, 0);
  if (!k->error[0]) k->scope = k->n - 1;
}

void ir_end(ir_kernel *k) {
  if (k->error[0]) return;
  if (k->scope == IR_NONE) {
    ir_mistake(k, "END without LOOP or IF");
    return;
  }
  k->scope = k->ins[k->scope].scope;
  ir_bare(k, IR_END, 0);
}

/* ---- removal of unused instructions ---- */

static bool removable(const ir_ins *i) {
  return ir_pure(i->op) || i->op == IR_LOAD || i->op == IR_GET || i->op == IR_LOCAL ||
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
    ir_mistake(k, "%s at %d is not ended", ir_op_name(k->ins[k->scope].op), k->scope);
  int32_t *live = k->error[0] ? NULL : calloc((size_t)k->n + 1, sizeof *live);
  if (!live) return ir_mistake(k, "no memory"), false;
  mark(k, live);
  ir_keep(k, live);
  free(live);
  free(k->hash);
  k->hash = NULL;
  k->hash_cap = 0;
  return true;
}
