/* ir_count.c - what one row costs: loads and stores of global memory, flops. */
#include "ir.h"

/* What one instruction does in a sub-group. */
static ir_counts one(const ir_kernel *k, const ir_ins *i) {
  static const uint8_t flops[IR_OP_COUNT] = {[IR_ADD] = 1, [IR_SUB] = 1, [IR_MUL] = 1, [IR_DIV] = 1, [IR_FMA] = 2, [IR_SQRT] = 1,
                                             [IR_EXP] = 1, [IR_SIN] = 1, [IR_COS] = 1, [IR_REDUCE_ADD] = 1, [IR_ATOMIC_ADD] = 1};
  ir_counts c = {0};
  double lanes = k->lanes;
  if (flops[i->op] && (ir_is_float((ir_type)i->type) || i->op == IR_ATOMIC_ADD)) {
    c.flops = flops[i->op] * (i->shape == IR_UNIFORM && i->op != IR_ATOMIC_ADD && i->op != IR_REDUCE_ADD ? 1 : lanes);
    if (i->op == IR_REDUCE_ADD) c.flops = lanes - 1;
  }
  if (i->op != IR_LOAD && i->op != IR_STORE && i->op != IR_ATOMIC_ADD && i->op != IR_COPY) return c;
  const ir_ins *array = &k->ins[i->arg[i->op == IR_COPY ? 2 : 0]];
  if (array->op != IR_BUFFER) return c;
  bool uniform = k->ins[i->arg[1]].shape == IR_UNIFORM && (i->arg[2] == IR_NONE || k->ins[i->arg[2]].shape == IR_UNIFORM);
  bool once = uniform && (i->op == IR_LOAD || i->op == IR_STORE);
  double elements = (i->width ? i->width : 1) * (once ? 1 : lanes), bytes = elements * ir_type_bytes((ir_type)array->element);
  if (i->op != IR_STORE) c.loads = elements, c.bytes_loaded = bytes;
  if (i->op == IR_STORE || i->op == IR_ATOMIC_ADD) c.stores = elements, c.bytes_stored = bytes;
  return c;
}

static double turns(const ir_kernel *k, const ir_ins *loop) {
  for (int a = 0; a < 3; a++)
    if (k->ins[loop->arg[a]].op != IR_INT) return 1;
  double first = (double)k->ins[loop->arg[0]].imm, last = (double)k->ins[loop->arg[1]].imm, step = (double)k->ins[loop->arg[2]].imm;
  return first < last ? (double)(int64_t)((last - first + step - 1) / step) : 0;
}

static void add(ir_counts *to, const ir_counts *c, double times) {
  to->loads += times * c->loads;
  to->stores += times * c->stores;
  to->bytes_loaded += times * c->bytes_loaded;
  to->bytes_stored += times * c->bytes_stored;
  to->flops += times * c->flops;
}

static double larger(double a, double b) { return a > b ? a : b; }

static ir_counts larger_of(const ir_counts *a, const ir_counts *b) {
  return (ir_counts){larger(a->loads, b->loads), larger(a->stores, b->stores), larger(a->bytes_loaded, b->bytes_loaded),
                     larger(a->bytes_stored, b->bytes_stored), larger(a->flops, b->flops)};
}

/* From *at to the ELSE or END of the block, which *at is left on. */
static ir_counts block(const ir_kernel *k, int32_t *at) {
  ir_counts sum = {0}, c;
  for (; *at < k->n && k->ins[*at].op != IR_ELSE && k->ins[*at].op != IR_END; ++*at) {
    const ir_ins *i = &k->ins[*at];
    bool loop = i->op == IR_LOOP;
    if (!loop && i->op != IR_IF) {
      c = one(k, i);
    } else {
      ++*at;
      c = block(k, at);
      if (*at < k->n && k->ins[*at].op == IR_ELSE) {
        ++*at;
        ir_counts other = block(k, at);
        c = larger_of(&c, &other);
      }
    }
    add(&sum, &c, loop ? turns(k, i) : 1);
  }
  return sum;
}

ir_counts ir_count(const ir_kernel *k) {
  int32_t at = 0;
  ir_counts group = block(k, &at), row = {0};
  add(&row, &group, (double)k->subgroups / k->rows);
  return row;
}
