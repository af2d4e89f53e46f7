/* src/ir/count.c - the cost of one row: loads and stores of global memory, flops. Each sub-group is
   followed through the list, but only as far as decisions require: values computed from constants,
   LANE, SUBGROUP and loop variables are evaluated, lane by lane, if a mask, a condition or a bound
   depends on them. The rest is summed once per block. */
#include <stdlib.h>

#include "src/ir/ir.h"

enum { MAY_BE_KNOWN = 1, ASKED = 2, MAX_STEPS = 1 << 14 };

typedef struct {
  int64_t n;
  bool known;
} value;

/* The head of a block (item 0 is that of the whole list), its end, a masked access, or a value. */
typedef struct {
  int32_t v, end;  /* instruction; for a block: the item that ends it */
  int32_t active;  /* for a mask: lanes in which it is not known to be false */
  size_t first;    /* for a value: offset of its lanes in `values` */
  ir_counts plain; /* for a block: the constant part of its counts */
} item;

typedef struct {
  const ir_kernel *k;
  uint8_t *mark; /* per instruction */
  int32_t *at;   /* per instruction: its item, or -1 */
  item *items;
  value *values;
  size_t n_values;
  int32_t n_items, subgroup, steps; /* steps: number of items that loops may still process */
  double length;                    /* of the range that unknown loops go through; 0: 1 turn each */
  bool alike;                       /* all sub-groups do the same */
} counter;

/* ---- counts of one instruction in a sub-group ---- */

static int mask_of(const ir_ins *i) { return i->op == IR_COPY ? 4 : 2; }

static bool is_access(const ir_kernel *k, const ir_ins *i) {
  bool some = i->op == IR_LOAD || i->op == IR_STORE || i->op == IR_ATOMIC_ADD || i->op == IR_COPY;
  return some && k->ins[i->arg[i->op == IR_COPY ? 2 : 0]].op == IR_BUFFER;
}

/* `active`: number of active lanes. Uniform operations are done once. */
static ir_counts one(const ir_kernel *k, const ir_ins *i, double active) {
  static const uint8_t flops[IR_OP_COUNT] = {
      [IR_ADD] = 1, [IR_SUB] = 1,        [IR_MUL] = 1,       [IR_DIV] = 1,
      [IR_FMA] = 2, [IR_SQRT] = 1,       [IR_EXP] = 1,       [IR_SIN] = 1,
      [IR_COS] = 1, [IR_REDUCE_ADD] = 1, [IR_ATOMIC_ADD] = 1};
  ir_counts c = {0};
  if (flops[i->op] && (ir_is_float((ir_type)i->type) || i->op == IR_ATOMIC_ADD)) {
    c.flops =
        flops[i->op] *
        (i->shape == IR_UNIFORM && i->op != IR_ATOMIC_ADD && i->op != IR_REDUCE_ADD ? 1 : active);
    if (i->op == IR_ATOMIC_ADD) c.flops *= i->width;
    if (i->op == IR_REDUCE_ADD) c.flops = active - 1;
  }
  if (!is_access(k, i)) return c;
  const ir_ins *array = &k->ins[i->arg[i->op == IR_COPY ? 2 : 0]];
  bool uniform = k->ins[i->arg[1]].shape == IR_UNIFORM &&
                 (i->arg[2] == IR_NONE || k->ins[i->arg[2]].shape == IR_UNIFORM);
  bool once = uniform && (i->op == IR_LOAD || i->op == IR_STORE);
  double elements = (i->width ? i->width : 1) * (once ? active > 0 : active),
         bytes = elements * ir_type_bytes((ir_type)array->element);
  if (i->op != IR_STORE) c.loads = elements, c.bytes_loaded = bytes;
  if (i->op == IR_STORE || i->op == IR_ATOMIC_ADD) c.stores = elements, c.bytes_stored = bytes;
  return c;
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
  return (ir_counts){larger(a->loads, b->loads), larger(a->stores, b->stores),
                     larger(a->bytes_loaded, b->bytes_loaded),
                     larger(a->bytes_stored, b->bytes_stored), larger(a->flops, b->flops)};
}

int ir_local_bytes(const ir_kernel *k) {
  int64_t bytes = 0;
  for (int32_t v = 0; v < k->n; v++)
    if (k->ins[v].op == IR_LOCAL)
      bytes += k->ins[v].imm * ir_type_bytes((ir_type)k->ins[v].element);
  return bytes < INT32_MAX ? (int)bytes : INT32_MAX;
}

/* ---- values ---- */

static bool whole(const ir_kernel *k, ir_val v) {
  return k->ins[v].type == IR_BOOL || ir_is_int((ir_type)k->ins[v].type);
}

static bool may_be_known(const counter *c, const ir_ins *i) {
  bool arg[3] = {false, false, false};
  for (int a = 0; a < 3; a++)
    arg[a] = i->arg[a] != IR_NONE && whole(c->k, i->arg[a]) && c->mark[i->arg[a]] & MAY_BE_KNOWN;
  switch (i->op) {
    case IR_INT:
    case IR_LANE:
    case IR_SUBGROUP: return true;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MOD:
    case IR_XOR:
    case IR_MUL_HIGH:
    case IR_MIN:
    case IR_MAX:
    case IR_LT:
    case IR_LE:
    case IR_EQ: return arg[0] && arg[1];
    case IR_AND:
    case IR_OR: return arg[0] || arg[1];
    case IR_NOT: return arg[0];
    case IR_CAST: return arg[0] && ir_is_int((ir_type)i->type);
    case IR_SELECT: return arg[0] && (arg[1] || arg[2]);
    case IR_LOOP: return arg[0] && arg[1] && arg[2];
    default: return false;
  }
}

static value get(const counter *c, ir_val v, int lane) {
  const ir_ins *i = &c->k->ins[v];
  if (i->op == IR_INT) return (value){i->imm, true};
  if (i->op == IR_LANE) return (value){lane, true};
  if (i->op == IR_SUBGROUP) return (value){c->subgroup, true};
  if (!(c->mark[v] & ASKED)) return (value){0, false};
  return c->values[c->items[c->at[v]].first + (i->shape == IR_UNIFORM ? 0 : lane)];
}

static value compute(const ir_ins *i, value a, value b, value d) {
  bool both = a.known && b.known, some = (a.known && a.n) || (b.known && b.n),
       none = (a.known && !a.n) || (b.known && !b.n);
  uint64_t x = (uint64_t)a.n, y = (uint64_t)b.n, r = 0;
  switch (i->op) {
    case IR_AND: return none ? (value){0, true} : (value){1, both};
    case IR_OR: return some ? (value){1, true} : (value){0, both};
    case IR_NOT: return (value){!a.n, a.known};
    case IR_SELECT: return a.known ? (a.n ? b : d) : a;
    case IR_LT: return (value){a.n < b.n, both};
    case IR_LE: return (value){a.n <= b.n, both};
    case IR_EQ: return (value){a.n == b.n, both};
    case IR_CAST: r = x, both = a.known; break;
    case IR_ADD: r = x + y; break;
    case IR_SUB: r = x - y; break;
    case IR_MUL: r = x * y; break;
    case IR_XOR: r = x ^ y; break;
    case IR_MUL_HIGH: r = (uint64_t)(uint32_t)x * (uint32_t)y >> 32; break;
    case IR_MIN: r = a.n < b.n ? x : y; break;
    case IR_MAX: r = a.n > b.n ? x : y; break;
    case IR_DIV: both &= b.n > 0, r = both ? (uint64_t)(a.n / b.n) : 0; break;
    case IR_MOD: both &= b.n > 0, r = both ? (uint64_t)(a.n % b.n) : 0; break;
    default: both = false;
  }
  return (value){i->type == IR_I32 ? (int32_t)r : (int64_t)r, both};
}

static void evaluate(counter *c, item *it) {
  const ir_ins *i = &c->k->ins[it->v];
  int lanes = i->shape == IR_UNIFORM ? 1 : c->k->lanes;
  it->active = 0;
  for (int lane = 0; lane < lanes; lane++) {
    value arg[3] = {{0, false}, {0, false}, {0, false}};
    for (int a = 0; a < 3; a++)
      if (i->arg[a] != IR_NONE) arg[a] = get(c, i->arg[a], lane);
    value r = c->values[it->first + (size_t)lane] = compute(i, arg[0], arg[1], arg[2]);
    it->active += (!r.known || r.n) * c->k->lanes / lanes;
  }
}

static int active(const counter *c, ir_val mask) {
  const ir_ins *i = &c->k->ins[mask];
  return i->op == IR_INT ? (i->imm ? c->k->lanes : 0) : c->items[c->at[mask]].active;
}

/* ---- blocks ---- */

static ir_counts walk(counter *c, int32_t block);

/* The counts of a loop of unknown bounds, which goes through the range at hand in steps; loops in
   it go through one step. */
static ir_counts walk_unknown(counter *c, int32_t at, double step) {
  const double length = c->length, turns = length > step ? length / step : 1;
  ir_counts sum = {0};
  if (c->mark[c->items[at].v] & ASKED) c->values[c->items[at].first] = (value){0, false};
  if (length > step) c->length = step;
  const ir_counts turn = walk(c, at);
  c->length = length;
  add(&sum, &turn, turns);
  return sum;
}

static ir_counts walk_loop(counter *c, int32_t at) {
  const item *it = &c->items[at];
  const ir_ins *i = &c->k->ins[it->v];
  value first = get(c, i->arg[0], 0), last = get(c, i->arg[1], 0), step = get(c, i->arg[2], 0);
  bool known = first.known && last.known && step.known && step.n > 0,
       asked = c->mark[it->v] & ASKED;
  if (!known) return walk_unknown(c, at, step.known && step.n > 0 ? (double)step.n : 1);
  uint64_t turns =
      first.n < last.n ? ((uint64_t)last.n - (uint64_t)first.n - 1) / (uint64_t)step.n + 1 : 0;
  bool each = asked && turns <= (uint64_t)(c->steps / (it->end - at));
  ir_counts sum = {0};
  if (each) c->steps -= (int32_t)turns * (it->end - at);
  for (uint64_t t = 0; t < (each || !turns ? turns : 1); t++) {
    if (asked)
      c->values[it->first] = (value){(int64_t)((uint64_t)first.n + t * (uint64_t)step.n), each};
    ir_counts turn = walk(c, at);
    add(&sum, &turn, each ? 1 : (double)turns);
  }
  return sum;
}

/* The counts of the IF at `at`, whose ELSE, if any, ends its block. */
static ir_counts walk_if(counter *c, int32_t at) {
  const item *it = &c->items[at];
  const ir_ins *end = &c->k->ins[c->items[it->end].v];
  value condition = get(c, c->k->ins[it->v].arg[0], 0);
  ir_counts yes = {0}, no = {0};
  if (!condition.known || condition.n) yes = walk(c, at);
  if (end->op == IR_ELSE && !(condition.known && condition.n)) no = walk(c, it->end);
  return larger_of(&yes, &no);
}

static ir_counts walk(counter *c, int32_t block) {
  ir_counts sum = c->items[block].plain, more;
  for (int32_t at = block + 1; at < c->items[block].end; at++) {
    item *it = &c->items[at];
    const ir_ins *i = &c->k->ins[it->v];
    if (i->op == IR_LOOP || i->op == IR_IF) {
      more = i->op == IR_LOOP ? walk_loop(c, at) : walk_if(c, at);
      at = it->end;
      if (c->k->ins[c->items[at].v].op == IR_ELSE) at = c->items[at].end;
    } else if (is_access(c->k, i)) {
      more = one(c->k, i, active(c, i->arg[mask_of(i)]));
    } else {
      evaluate(c, it);
      continue;
    }
    add(&sum, &more, 1);
  }
  return sum;
}

/* ---- preparation ---- */

static void ask(counter *c, ir_val v) {
  if (v == IR_NONE || !(c->mark[v] & MAY_BE_KNOWN)) return;
  c->mark[v] |= ASKED;
  if (c->k->ins[v].op == IR_SUBGROUP) c->alike = false;
}

static void mark(counter *c) {
  const ir_kernel *k = c->k;
  for (int32_t v = 0; v < k->n; v++) c->mark[v] = may_be_known(c, &k->ins[v]) ? MAY_BE_KNOWN : 0;
  for (int32_t v = k->n - 1; v >= 0; v--) {
    const ir_ins *i = &k->ins[v];
    if (is_access(k, i)) ask(c, i->arg[mask_of(i)]);
    if (i->op != IR_IF && i->op != IR_LOOP && !(c->mark[v] & ASKED)) continue;
    for (int a = 0; a < 3; a++) ask(c, i->arg[a]);
  }
}

/* Whether instruction v becomes an item; *lanes: the number of lanes of its value. */
static bool decides(const counter *c, ir_val v, size_t *lanes) {
  const ir_ins *i = &c->k->ins[v];
  bool leaf = i->op == IR_INT || i->op == IR_LANE || i->op == IR_SUBGROUP,
       valued = c->mark[v] & ASKED && !leaf;
  *lanes = !valued ? 0 : i->shape == IR_UNIFORM ? 1 : (size_t)c->k->lanes;
  if (is_access(c->k, i)) {
    ir_val mask = i->arg[mask_of(i)];
    return mask != IR_NONE && c->mark[mask] & ASKED;
  }
  return valued || i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE || i->op == IR_END;
}

static int32_t head(const counter *c, int32_t scope) { return scope == IR_NONE ? 0 : c->at[scope]; }

static void make_items(counter *c) {
  const ir_kernel *k = c->k;
  int32_t open = 0;
  size_t lanes;
  c->n_items = 1;
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    c->at[v] = -1;
    if (!decides(c, v, &lanes)) {
      ir_counts plain = one(k, i, k->lanes);
      add(&c->items[head(c, i->scope)].plain, &plain, 1);
      continue;
    }
    c->at[v] = c->n_items;
    c->items[c->n_items] = (item){.v = v, .first = c->n_values};
    if (i->op == IR_ELSE || i->op == IR_END)
      c->items[open].end = c->n_items, open = head(c, i->scope);
    if (i->op == IR_LOOP || i->op == IR_IF || i->op == IR_ELSE) open = c->n_items;
    c->n_values += lanes;
    c->n_items++;
  }
  c->items[0].end = c->n_items;
}

ir_counts ir_count(const ir_kernel *k) { return ir_count_ranges(k, 0); }

ir_counts ir_count_ranges(const ir_kernel *k, double length) {
  size_t n = (size_t)k->n + 1;
  counter c = {.k = k, .alike = true, .length = length};
  ir_counts row = {.loads = -1};
  c.mark = malloc(n);
  c.at = malloc(n * sizeof *c.at);
  c.items = calloc(n, sizeof *c.items);
  if (!c.mark || !c.at || !c.items) goto done;
  mark(&c);
  make_items(&c);
  c.values = malloc(((size_t)c.n_values + 1) * sizeof *c.values);
  if (!c.values) goto done;
  row = (ir_counts){0};
  for (int32_t last = c.alike ? 1 : k->subgroups; c.subgroup < last; c.subgroup++) {
    c.steps = MAX_STEPS;
    ir_counts own = walk(&c, 0);
    add(&row, &own, c.alike ? k->subgroups : 1);
  }
  row = (ir_counts){row.loads / k->rows, row.stores / k->rows, row.bytes_loaded / k->rows,
                    row.bytes_stored / k->rows, row.flops / k->rows};
done:
  free(c.mark);
  free(c.at);
  free(c.items);
  free(c.values);
  return row;
}
