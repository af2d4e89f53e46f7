/* src/ir/lower_shuffles.c - the same kernel for devices without sub-groups: lanes exchange values
   through local memory. This requires that a group is one sub-group: then, as loops and ifs are
   uniform, the whole group reaches every barrier. */
#include <stdio.h>
#include <stdlib.h>

#include "src/ir/ir.h"

typedef struct {
  const ir_kernel *from;
  ir_kernel *to;
  ir_val *map;                 /* maps a value of `from` to one of `to` */
  ir_val meeting[IR_BF16 + 1]; /* by type: one LOCAL element per lane */
} lowering;

static bool crosses(ir_op op) {
  return op == IR_SHUFFLE || op == IR_SHUFFLE_XOR || op == IR_REDUCE_ADD;
}

bool clb_shuffles(const ir_kernel *k) {
  for (int32_t v = 0; v < k->n; v++)
    if (crosses((ir_op)k->ins[v].op)) return true;
  return false;
}

static ir_val mapped(const lowering *l, ir_val v) { return v == IR_NONE ? IR_NONE : l->map[v]; }

/* Every lane stores its value for the others. */
static ir_val show(lowering *l, ir_val value, ir_type type) {
  ir_store(l->to, l->meeting[type], ir_lane(l->to), IR_NONE, value);
  ir_barrier(l->to, true);
  return l->meeting[type];
}

static ir_val shuffle(lowering *l, ir_val value, ir_type type, ir_val lane) {
  ir_val v = ir_load(l->to, show(l, value, type), lane, IR_NONE);
  ir_barrier(l->to, true);
  return v;
}

/* lane ^ with, without an xor: each bit of `lane` that is set in `with` is flipped by adding or
   subtracting its weight. */
static ir_val flipped(ir_kernel *k, int64_t with) {
  ir_val lane = ir_lane(k), sum = lane;
  for (int64_t bit = 1; bit <= with; bit *= 2) {
    if (!(with & bit)) continue;
    ir_val digit =
        ir_2(k, IR_MOD, ir_2(k, IR_DIV, lane, ir_int(k, IR_I32, bit)), ir_int(k, IR_I32, 2));
    sum = ir_add(k, sum,
                 ir_sub(k, ir_int(k, IR_I32, bit), ir_mul(k, digit, ir_int(k, IR_I32, 2 * bit))));
  }
  return sum;
}

/* Every lane adds all values, in the order of REDUCE_ADD: v[j] is what lane j < d has after step
   d. */
static ir_val reduce(lowering *l, ir_val value, ir_type type) {
  ir_kernel *k = l->to;
  int32_t lanes = k->lanes;
  ir_val *v = calloc((size_t)lanes, sizeof *v), sum;
  if (!v) {
    snprintf(k->error, sizeof k->error, "no memory");
    return 0;
  }
  ir_val array = show(l, value, type);
  for (int32_t at = 0; at < lanes; at += IR_MAX_WIDTH)
    ir_load_wide(k, array, ir_int(k, IR_I32, at), IR_NONE,
                 lanes - at < IR_MAX_WIDTH ? lanes - at : IR_MAX_WIDTH, v + at);
  ir_barrier(k, true);
  for (int32_t d = lanes / 2; d; d /= 2)
    for (int32_t j = 0; j < d; j++) v[j] = ir_add(k, v[j], v[j + d]);
  sum = v[0];
  free(v);
  return sum;
}

static ir_val load(lowering *l, const ir_ins *i) {
  ir_val v[IR_MAX_WIDTH];
  (i->imm ? ir_load_aligned : ir_load_wide)(l->to, mapped(l, i->arg[0]), mapped(l, i->arg[1]),
                                            mapped(l, i->arg[2]), i->width, v);
  return v[0]; /* ELEMENT j of a wide one is v[0] + j: they are consecutive */
}

/* STORE or ATOMIC_ADD. */
static void store(lowering *l, const ir_ins *i) {
  ir_val v[IR_MAX_WIDTH];
  for (int32_t j = 0; j < i->width; j++) v[j] = l->map[l->from->pool[i->imm + j]];
  const ir_val to = mapped(l, i->arg[0]), at = mapped(l, i->arg[1]), mask = mapped(l, i->arg[2]);
  if (i->op == IR_STORE) ir_store_wide(l->to, to, at, mask, i->width, v);
  else if (i->width > 1) ir_atomic_add_aligned(l->to, to, at, mask, i->width, v);
  else ir_atomic_add(l->to, to, at, mask, v[0]);
}

/* Instructions without a value: memory, batches, blocks. */
static void act(lowering *l, const ir_ins *i) {
  ir_kernel *k = l->to;
  const ir_val *a = i->arg;
  switch (i->op) {
    case IR_SET: ir_set(k, mapped(l, a[0]), mapped(l, a[1])); break;
    case IR_STORE: store(l, i); break;
    case IR_ATOMIC_ADD: store(l, i); break;
    case IR_COPY:
      (i->imm ? ir_copy_aligned : ir_copy)(k, mapped(l, a[0]), mapped(l, a[1]), mapped(l, a[2]),
                                           mapped(l, a[3]), mapped(l, a[4]), i->width);
      break;
    case IR_COPY_COMMIT: ir_copy_commit(k); break;
    case IR_COPY_WAIT: ir_copy_wait(k, (int)i->imm); break;
    case IR_BARRIER: (i->imm == IR_RENDEZVOUS ? ir_rendezvous(k) : ir_barrier(k, true)); break;
    case IR_PREFETCH: ir_prefetch(k, mapped(l, a[0]), mapped(l, a[1]), i->width); break;
    case IR_IF: ir_if(k, mapped(l, a[0])); break;
    case IR_ELSE: ir_else(k); break;
    default: ir_end(k);
  }
}

static ir_val buffer(ir_kernel *k, const ir_ins *i) {
  ir_val v = ir_buffer(k, (ir_type)i->element, i->imm);
  if (i->imm == 2) ir_stream(k, v);
  return v;
}

static ir_val again(lowering *l, const ir_ins *i) {
  ir_kernel *k = l->to;
  ir_type type = (ir_type)i->type;
  ir_val a = mapped(l, i->arg[0]), b = mapped(l, i->arg[1]), c = mapped(l, i->arg[2]);
  switch (i->op) {
    case IR_BUFFER: return buffer(k, i);
    case IR_SCALAR: return ir_scalar(k, type);
    case IR_LOCAL: return ir_local(k, (ir_type)i->element, i->imm);
    case IR_GROUP: return ir_group(k);
    case IR_SUBGROUP: return ir_subgroup(k);
    case IR_LANE: return ir_lane(k);
    case IR_INT: return ir_int(k, type, i->imm);
    case IR_REAL: return ir_real(k, type, i->real);
    case IR_FMA: return ir_fma(k, a, b, c);
    case IR_SELECT: return ir_select(k, a, b, c);
    case IR_CAST: return ir_cast(k, type, a);
    case IR_VAR: return ir_var(k, a, i->shape == IR_UNIFORM);
    case IR_GET: return (i->imm ? ir_get_here : ir_get)(k, a);
    case IR_LOAD: return load(l, i);
    case IR_ELEMENT: return a + (ir_val)i->imm;
    case IR_SHUFFLE: return shuffle(l, a, type, b);
    case IR_SHUFFLE_XOR: return shuffle(l, a, type, flipped(k, i->imm));
    case IR_REDUCE_ADD: return reduce(l, a, type);
    case IR_LOOP: return ir_loop(k, a, b, c);
    default: break;
  }
  if (i->type == IR_VOID) return act(l, i), 0;
  return i->arg[1] == IR_NONE ? ir_1(k, (ir_op)i->op, a) : ir_2(k, (ir_op)i->op, a, b);
}

/* Declares the arrays for the exchange at the start: one for each type that is exchanged. Returns
   whether there is any. */
static bool meet(lowering *l) {
  bool met[IR_BF16 + 1] = {false}, some = false;
  for (int32_t v = 0; v < l->from->n; v++) {
    const ir_ins *i = &l->from->ins[v];
    if (!crosses((ir_op)i->op) || met[i->type]) continue;
    met[i->type] = true;
    l->meeting[i->type] = ir_local(l->to, (ir_type)i->type, l->from->lanes);
    some = true;
  }
  return some;
}

bool clb_lower_shuffles(const ir_kernel *k, ir_kernel *out) {
  lowering l = {.from = k, .to = out, .map = calloc((size_t)k->n + 1, sizeof *l.map)};
  ir_begin(out, k->name, k->lanes, k->subgroups, k->rows);
  out->large_registers = k->large_registers;
  out->min_blocks_per_sm = k->min_blocks_per_sm;
  if (!l.map) snprintf(out->error, sizeof out->error, "no memory");
  else if (meet(&l) && k->subgroups != 1)
    snprintf(out->error, sizeof out->error,
             "without sub-groups a group whose lanes meet is one sub-group, not %d",
             (int)k->subgroups);
  for (int32_t v = 0; v < k->n && !out->error[0]; v++) l.map[v] = again(&l, &k->ins[v]);
  free(l.map);
  if (!ir_finish(out)) return false;
  if (!ir_drop_barriers(out)) snprintf(out->error, sizeof out->error, "no memory");
  return !out->error[0];
}
