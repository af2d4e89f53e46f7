/* src/ir/barriers.c - static analysis of barriers: whether all sub-groups reach the same barriers
   of the group, and whether there is a barrier between a store and a load that certainly reads what
   another lane stored. */
#include "src/ir/barriers.h"

#include <stdlib.h>
#include <string.h>

/* ---- barriers of the group ---- */

typedef struct {
  const ir_kernel *k;
  unsigned char *same; /* for a value: it is the same in all sub-groups, lane by lane */
  ir_val *condition;   /* for an ELSE: its IF */
} meeting;

/* The innermost LOOP or IF from `scope` outwards in which sub-groups may diverge; IR_NONE: none. */
static ir_val parting(const meeting *m, ir_val scope) {
  for (; scope != IR_NONE; scope = m->k->ins[scope].scope) {
    ir_val by = m->k->ins[scope].op == IR_ELSE ? m->condition[scope] : scope;
    for (int a = 0; a < 3; a++)
      if (m->k->ins[by].arg[a] != IR_NONE && !m->same[m->k->ins[by].arg[a]]) return by;
  }
  return IR_NONE;
}

/* One pass over the list; returns whether anything changed. */
static bool propagate(meeting *m) {
  bool changed = false;
  for (ir_val v = 0, open = IR_NONE; v < m->k->n; v++) {
    const ir_ins *i = &m->k->ins[v];
    bool same = i->op != IR_SUBGROUP;
    ir_val to = i->op == IR_SET ? i->arg[0] : v;
    if (i->op == IR_ELSE) m->condition[v] = open;
    if (i->op == IR_ELSE || i->op == IR_END) open = m->k->ins[open].scope;
    if (i->op == IR_ELSE || i->op == IR_LOOP || i->op == IR_IF) open = v;
    for (int a = 0; a < 5 && same; a++) same = i->arg[a] == IR_NONE || m->same[i->arg[a]];
    if (i->op == IR_SET && same) same = parting(m, i->scope) == IR_NONE;
    changed |= !same && m->same[to];
    m->same[to] &= same;
  }
  return changed;
}

ir_convergence ir_barriers_convergent(const ir_kernel *k, ir_val *barrier, ir_val *under) {
  meeting m = {.k = k,
               .same = malloc((size_t)k->n + 1),
               .condition = calloc((size_t)k->n + 1, sizeof *m.condition)};
  ir_convergence met = m.same && m.condition ? IR_CONVERGENT : IR_CONVERGENCE_UNKNOWN;
  if (met == IR_CONVERGENT && k->subgroups > 1) {
    memset(m.same, 1, (size_t)k->n + 1);
    while (propagate(&m)) continue;
    for (ir_val v = 0; v < k->n && met == IR_CONVERGENT; v++) {
      if (k->ins[v].op != IR_BARRIER || !k->ins[v].imm) continue;
      *barrier = v;
      *under = parting(&m, k->ins[v].scope);
      if (*under != IR_NONE) met = IR_DIVERGENT;
    }
  }
  free(m.same);
  free(m.condition);
  return met;
}

/* ---- a store, a load, no barrier ---- */

/* An index as root + at + stride lane; the root is the same for all lanes, or none. */
typedef struct {
  ir_val root;
  int64_t at, stride;
} linear;

static bool linear_of(const ir_kernel *k, ir_val v, linear *f) {
  const ir_ins *i = &k->ins[v];
  linear a, b;
  *f = (linear){IR_NONE, 0, 0};
  if (i->op == IR_INT) return f->at = i->imm, true;
  if (i->op == IR_LANE) return f->stride = 1, true;
  if (i->shape == IR_UNIFORM) return f->root = v, true;
  if (i->op == IR_CAST && ir_is_int((ir_type)k->ins[i->arg[0]].type))
    return linear_of(k, i->arg[0], f);
  if ((i->op != IR_ADD && i->op != IR_MUL) || i->shape != IR_AFFINE ||
      !linear_of(k, i->arg[0], &a) || !linear_of(k, i->arg[1], &b))
    return false;
  if (i->op == IR_ADD) {
    *f = (linear){a.root == IR_NONE ? b.root : a.root, a.at + b.at, a.stride + b.stride};
    return a.root == IR_NONE || b.root == IR_NONE;
  }
  if (a.stride) f->root = b.root, f->at = a.at * b.at, f->stride = a.stride * b.at;
  else f->root = a.root, f->at = a.at * b.at, f->stride = b.stride * a.at;
  return a.root == IR_NONE && b.root == IR_NONE && !(a.stride && b.stride);
}

enum {
  SMALL = 1 << 24,
  KEPT = 64
}; /* limit of numbers that cannot wrap; number of stores that are
      tracked */

static bool small(const linear *f) { return llabs(f->at) < SMALL && llabs(f->stride) < SMALL; }

/* Whether some lane of the load reads what another stores. */
static bool crosses(const ir_kernel *k, const ir_ins *store, const ir_ins *load) {
  linear s, l;
  if (store->arg[0] != load->arg[0] || store->scope != load->scope || store->arg[2] != IR_NONE ||
      load->arg[2] != IR_NONE)
    return false;
  if (!linear_of(k, store->arg[1], &s) || !linear_of(k, load->arg[1], &l) || s.root != l.root ||
      !small(&s) || !small(&l) || !s.stride)
    return false;
  for (int32_t p = 0; p < k->lanes; p++)
    for (int32_t q = 0; q < k->lanes; q++) {
      int64_t apart = s.at + s.stride * p - l.at - l.stride * q;
      if (p != q && apart < load->width && -apart < store->width) return true;
    }
  return false;
}

bool ir_unsynchronised_load(const ir_kernel *k, ir_val *store, ir_val *load) {
  ir_val kept[KEPT];
  int n = 0;
  for (ir_val v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    bool local = (i->op == IR_STORE || i->op == IR_LOAD) && k->ins[i->arg[0]].op == IR_LOCAL;
    if (i->op == IR_BARRIER) n = 0;
    for (int j = 0; j < n && local && i->op == IR_LOAD; j++)
      if (crosses(k, &k->ins[kept[j]], i)) return *store = kept[j], *load = v, true;
    if (local && i->op == IR_STORE && n < KEPT) kept[n++] = v;
  }
  return false;
}
