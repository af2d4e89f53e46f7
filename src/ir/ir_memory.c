/* src/ir/ir_memory.c - builds a kernel: variables, local arrays, loads and stores, barriers. */
#include "src/ir/emit.h"

#include <stdlib.h>
#include <string.h>

/* ---- variables and arrays ---- */

ir_val ir_local(ir_kernel *k, ir_type element, int64_t length) {
  if (ir_type_bytes(element) < 2 || length < 1 || length > INT32_MAX)
    return ir_mistake(k, "LOCAL: %lld elements of type %s", (long long)length,
                      ir_type_name(element));
  if (k->scope != IR_NONE) return ir_mistake(k, "LOCAL stands outside loops and ifs");
  return ir_emit(
      k,
      (ir_ins){
          .op = IR_LOCAL, .element = element, .arg = IR_NOTHING, .stride = IR_NONE, .imm = length});
}

ir_val ir_var(ir_kernel *k, ir_val first, bool flat) {
  if (!ir_valid(k, IR_VAR, first)) return 0;
  if (flat && !ir_uniform(k, first))
    return ir_mistake(k, "VAR: uniform, but its first value %d is not", first);
  return ir_emit(k, (ir_ins){.op = IR_VAR,
                             .type = ir_type_of(k, first),
                             .shape = flat ? IR_UNIFORM : IR_VARYING,
                             .arg = {first, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                             .stride = IR_NONE});
}

static bool is_var(ir_kernel *k, ir_op op, ir_val v) {
  if (ir_valid(k, op, v) && k->ins[v].op != IR_VAR)
    ir_mistake(k, "%s: operand %d is not a VAR", ir_op_name(op), v);
  return !k->error[0];
}

static ir_val get(ir_kernel *k, ir_val var, bool here) {
  if (!is_var(k, IR_GET, var)) return 0;
  return ir_emit(k, (ir_ins){.op = IR_GET,
                             .type = ir_type_of(k, var),
                             .shape = k->ins[var].shape,
                             .arg = {var, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                             .stride = IR_NONE,
                             .imm = here});
}

ir_val ir_get(ir_kernel *k, ir_val var) { return get(k, var, false); }
ir_val ir_get_here(ir_kernel *k, ir_val var) { return get(k, var, true); }

void ir_set(ir_kernel *k, ir_val var, ir_val value) {
  if (!is_var(k, IR_SET, var) || !ir_valid(k, IR_SET, value)) return;
  if (ir_type_of(k, var) != ir_type_of(k, value))
    ir_mistake(k, "SET: variable %d is %s, value %d is %s", var, ir_type_name(ir_type_of(k, var)),
               value, ir_type_name(ir_type_of(k, value)));
  if (ir_uniform(k, var) && !ir_uniform(k, value))
    ir_mistake(k, "SET: variable %d is uniform, value %d is not", var, value);
  ir_emit(
      k, (ir_ins){.op = IR_SET, .arg = {var, value, IR_NONE, IR_NONE, IR_NONE}, .stride = IR_NONE});
}

static bool access(ir_kernel *k, ir_op op, ir_val array, ir_val index, ir_val mask, int width,
                   bool write) {
  if (!ir_is_array(k, op, array) || !ir_valid(k, op, index) ||
      (mask != IR_NONE && !ir_valid(k, op, mask)))
    return false;
  if (!ir_is_int(ir_type_of(k, index)))
    ir_mistake(k, "%s: index %d is %s", ir_op_name(op), index, ir_type_name(ir_type_of(k, index)));
  if (mask != IR_NONE && ir_type_of(k, mask) != IR_BOOL)
    ir_mistake(k, "%s: mask %d is not bool", ir_op_name(op), mask);
  if (width < 1 || width > IR_MAX_WIDTH)
    ir_mistake(k, "%s: width %d is not in 1 ... %d", ir_op_name(op), width, IR_MAX_WIDTH);
  if (write && k->ins[array].op == IR_BUFFER && !k->ins[array].imm)
    ir_mistake(k, "%s: buffer %d is not declared written", ir_op_name(op), array);
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
  return ir_2(k, IR_ADD, index, ir_int(k, ir_type_of(k, index), j));
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
  bool flat = ir_uniform(k, index) && (mask == IR_NONE || ir_uniform(k, mask));
  ir_ins i = {.op = IR_LOAD,
              .type = ir_register_type(k->ins[array].element),
              .shape = flat ? IR_UNIFORM : IR_VARYING,
              .arg = {array, index, plain_mask(k, mask), IR_NONE, IR_NONE},
              .stride = IR_NONE,
              .width = width,
              .imm = aligned};
  ir_val v = ir_emit(k, i);
  i = (ir_ins){.op = IR_ELEMENT,
               .type = i.type,
               .shape = i.shape,
               .arg = {v, IR_NONE, IR_NONE, IR_NONE, IR_NONE},
               .stride = IR_NONE};
  if (width == 1) values[0] = v;
  else
    for (; i.imm < width; i.imm++) values[i.imm] = ir_emit(k, i);
}

void ir_load_wide(ir_kernel *k, ir_val array, ir_val index, ir_val mask, int width,
                  ir_val *values) {
  load(k, array, index, mask, width, false, values);
}

static void check_aligned(ir_kernel *k, ir_op op, ir_val array, int width) {
  ir_type element = ir_is_array(k, op, array) ? (ir_type)k->ins[array].element : IR_F64;
  int bytes = ir_type_bytes(element) * width;
  if (bytes != 8 && bytes != 16)
    ir_mistake(k, "%s: %d of %s are not 8 or 16 bytes", ir_op_name(op), width,
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
      ir_mistake(k, "no memory");
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
    ir_mistake(k, "ATOMIC_ADD: adds to f32 or f64, not %s", ir_type_name(k->ins[array].element));
  for (int j = 0; j < width; j++) {
    if (!ir_valid(k, op, values[j])) return;
    if (ir_type_of(k, values[j]) != t)
      ir_mistake(k, "%s: value %d is %s, the array takes %s", ir_op_name(op), values[j],
                 ir_type_name(ir_type_of(k, values[j])), ir_type_name(t));
  }
  if (one_by_one(k, array, width)) {
    for (int j = 0; j < width; j++)
      store(k, op, array, next_to(k, index, j), mask, 1, false, values + j);
    return;
  }
  int64_t first = pooled(k, width, values);
  if (k->error[0]) return;
  ir_emit(k, (ir_ins){.op = op,
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
    ir_mistake(k, "COPY: from a buffer to a local array of the same elements, not %d to %d", buffer,
               local);
  ir_emit(k, (ir_ins){.op = IR_COPY,
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
  int bytes = ir_is_array(k, IR_COPY, local) ? ir_type_bytes(k->ins[local].element) * width : 8;
  if (bytes != 8 && bytes != 16) ir_mistake(k, "COPY: %d bytes are not 8 or 16", bytes);
  copy(k, local, at, buffer, from, mask, width, true);
}

void ir_copy_commit(ir_kernel *k) { ir_bare(k, IR_COPY_COMMIT, 0); }
void ir_copy_wait(ir_kernel *k, int batches) { ir_bare(k, IR_COPY_WAIT, batches); }
void ir_prefetch(ir_kernel *k, ir_val buffer, ir_val index, int width) {
  if (!access(k, IR_PREFETCH, buffer, index, IR_NONE, width, false)) return;
  if (k->ins[index].shape == IR_VARYING) {
    ir_mistake(k, "PREFETCH: index %d is not that of lanes back to back", index);
    return;
  }
  ir_emit(k, (ir_ins){.op = IR_PREFETCH,
                      .arg = {buffer, index, IR_NONE, IR_NONE, IR_NONE},
                      .stride = IR_NONE,
                      .width = width});
}
void ir_barrier(ir_kernel *k, bool group) { ir_bare(k, IR_BARRIER, group); }
void ir_rendezvous(ir_kernel *k) { ir_bare(k, IR_BARRIER, IR_RENDEZVOUS); }
