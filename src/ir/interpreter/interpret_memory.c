/* src/ir/interpreter/interpret_memory.c - memory accesses of the interpreter, and reports of races
   and of reads of what nothing has written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ir/interpreter/interpret.h"
#include "src/ir/interpreter/interpret_values.h"
#include "src/ir/listing.h"

static int32_t subgroup_of(const ir_machine *m, const char *base) {
  return (int32_t)((size_t)(base - m->values) / m->bytes);
}

/* ---- reports ---- */

/* Appends "lane 3 of sub-group 1 of group 0", as far as these are known. */
static void add_actor(clb_text *t, int32_t lane, int32_t subgroup, int64_t group) {
  if (lane >= 0) clb_text_add(t, "lane %d of ", (int)lane);
  if (subgroup >= 0)
    clb_text_add(t, "%ssub-group %d of ", lane >= 0 ? "" : "lanes of ", (int)subgroup);
  else clb_text_add(t, "several sub-groups of ");
  if (group >= 0) clb_text_add(t, "group %" PRId64, group);
  else clb_text_add(t, "several groups");
}

/* The number of a BUFFER among the parameters, from 0. */
static int argument(const ir_machine *m, ir_val buffer) {
  int n = 0;
  for (int32_t v = 0; v < buffer; v++)
    n += m->k->ins[v].op == IR_BUFFER || m->k->ins[v].op == IR_SCALAR;
  return n;
}

static bool unwritten(const ir_machine *m, int32_t v, int32_t lane, int32_t subgroup, ir_val array,
                      int64_t index) {
  const ir_ins *a = &m->k->ins[array];
  clb_text t = {0};
  clb_text_add(&t, "unwritten: instruction %d ", (int)v);
  ir_list_instruction(m->k, v, &t);
  clb_text_add(&t, " of ");
  add_actor(&t, lane, subgroup, m->group);
  clb_text_add(&t, " reads element %" PRId64 " of %%%d, which ", index, (int)array);
  if (a->op == IR_LOCAL) clb_text_add(&t, "its group has not written");
  else
    clb_text_add(&t, "nothing has written: byte %" PRId64 " of %" PRIu64 " of argument %d",
                 index * ir_type_bytes((ir_type)a->element), m->memory[array].bytes,
                 argument(m, array));
  snprintf(m->error, m->size, "%s", t.s ? t.s : "no memory");
  clb_text_free(&t);
  return false;
}

static bool race(const ir_machine *m, int32_t v, int32_t subgroup, ir_val array,
                 ir_access_kind doing, const ir_conflict *c) {
  static const char *const does[] = {
      [IR_READS] = "reads", [IR_WRITES] = "writes", [IR_ADDS] = "adds to"};
  bool local = m->k->ins[array].op == IR_LOCAL;
  clb_text t = {0};
  if (c->unwritten) return unwritten(m, v, c->lane, subgroup, array, c->index);
  if (c->by == IR_NONE) return ir_machine_wrong(m, v, "no memory");
  clb_text_add(&t, "race: instruction %d ", (int)v);
  ir_list_instruction(m->k, v, &t);
  clb_text_add(&t, " of ");
  add_actor(&t, c->lane, subgroup, m->group);
  clb_text_add(&t, " %s element %" PRId64 " of %%%d, which instruction %d ", does[doing], c->index,
               (int)array, (int)c->by);
  ir_list_instruction(m->k, c->by, &t);
  clb_text_add(&t, " of ");
  add_actor(&t, c->by_lane, c->by_subgroup, c->by_group < 0 ? -1 : m->group - c->by_group);
  clb_text_add(&t, " %s",
               c->in_flight ? "is still writing: a COPY_WAIT must come first"
               : c->wrote   ? "wrote"
                            : "read");
  if (!c->in_flight)
    clb_text_add(&t,
                 local ? ", with no BARRIER between" : ", and nothing orders them in one launch");
  snprintf(m->error, m->size, "%s", t.s ? t.s : "no memory");
  clb_text_free(&t);
  return false;
}

/* Whether all lanes access the same element. */
static bool alike(const ir_machine *m, ir_val index, ir_val mask) {
  return m->k->ins[index].shape == IR_UNIFORM &&
         (mask == IR_NONE || m->k->ins[mask].shape == IR_UNIFORM);
}

/* Checks that the elements at m->at have been written, or marks them. */
static bool written(const ir_machine *m, int32_t v, int32_t subgroup, ir_val array,
                    ir_access_kind doing, bool once, int32_t width) {
  unsigned char *all = m->memory[array].written;
  const size_t bytes = (size_t)ir_type_bytes((ir_type)m->k->ins[array].element),
               n = bytes * (size_t)width;
  for (int32_t l = 0; all && l < (once ? 1 : m->k->lanes); l++) {
    if (m->at[l] < 0) continue;
    unsigned char *own = all + (size_t)m->at[l] * bytes;
    const unsigned char *hole = doing == IR_WRITES ? NULL : memchr(own, 0, n);
    if (hole)
      return unwritten(m, v, once && m->k->lanes > 1 ? IR_NONE : l, subgroup, array,
                       m->at[l] + (int64_t)((size_t)(hole - own) / bytes));
    if (doing != IR_READS) memset(own, 1, n);
  }
  return true;
}

/* Whether the lanes may access m->at as instruction v does. */
static bool may(const ir_machine *m, char *base, int32_t v, ir_val array, ir_access_kind doing,
                bool once, int32_t width) {
  ir_conflict c = {0};
  int32_t subgroup = subgroup_of(m, base);
  if (!ir_races_access(m->races, v, subgroup, array, doing, m->at, once, width, &c))
    return race(m, v, subgroup, array, doing, &c);
  return written(m, v, subgroup, array, doing, once, width);
}

/* ---- places ---- */

static bool leaves(const ir_machine *m, int32_t v, int32_t lane, ir_val array, int64_t at) {
  const bool local = m->k->ins[array].op == IR_LOCAL;
  return ir_machine_wrong(m, v,
                          "index %" PRId64 " of lane %d leaves the array %%%d, %s %d of %" PRIu64
                          " bytes, in group %" PRId64,
                          at, (int)lane, (int)array, local ? "local memory" : "argument",
                          local ? (int)array : argument(m, array), m->memory[array].bytes,
                          m->group);
}

/* Fills m->at for `width` elements of an array. */
static bool resolve(const ir_machine *m, char *base, int32_t v, ir_val array, ir_val index,
                    ir_val mask, int32_t width) {
  const int32_t *on = mask == IR_NONE ? NULL : ir_machine_lanes(m, base, mask);
  const void *from = ir_machine_lanes(m, base, index);
  const bool wide = m->k->ins[index].type == IR_I64;
  const int32_t lanes = m->k->lanes;
  const int64_t last = m->elements[array] - width;
  int64_t *to = m->at;
  for (int32_t l = 0; l < lanes; l++) {
    int64_t at = wide ? ((const int64_t *)from)[l] : ((const int32_t *)from)[l];
    to[l] = -1;
    if (on && !on[l]) continue;
    if (at < 0 || at > last) return leaves(m, v, l, array, at);
    to[l] = at;
  }
  return true;
}

/* Whether the lanes' indices are multiples of the width. */
static bool aligned(const ir_machine *m, int32_t v, const char *what) {
  const ir_ins *i = &m->k->ins[v];
  for (int32_t l = 0; l < m->k->lanes; l++)
    if (m->at[l] >= 0 && m->at[l] % i->width)
      return ir_machine_wrong(
          m, v, "index %" PRId64 " of lane %d is not a multiple of the aligned %s's width",
          m->at[l], (int)l, what);
  return true;
}

bool ir_machine_load(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  if (!resolve(m, base, v, i->arg[0], i->arg[1], i->arg[2], i->width)) return false;
  if (i->imm && !aligned(m, v, "load")) return false;
  if (!may(m, base, v, i->arg[0], IR_READS, alike(m, i->arg[1], i->arg[2]), i->width)) return false;
  ir_gathers[m->k->ins[i->arg[0]].element](m->k->lanes, i->width, m->at, m->array[i->arg[0]],
                                           ir_machine_lanes(m, base, v));
  return true;
}

bool ir_machine_store(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  if (!resolve(m, base, v, i->arg[0], i->arg[1], i->arg[2], i->width)) return false;
  if (i->element && !aligned(m, v, "store")) return false;
  bool once = alike(m, i->arg[1], i->arg[2]);
  for (int32_t w = 0; w < i->width && once; w++)
    once = m->k->ins[m->k->pool[i->imm + w]].shape == IR_UNIFORM;
  if (!may(m, base, v, i->arg[0], IR_WRITES, once, i->width)) return false;
  for (int32_t w = 0; w < i->width; w++)
    ir_scatters[m->k->ins[i->arg[0]].element](m->k->lanes, w, m->at, m->array[i->arg[0]],
                                              ir_machine_lanes(m, base, m->k->pool[i->imm + w]));
  return true;
}

bool ir_machine_atomic_add(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  if (!resolve(m, base, v, i->arg[0], i->arg[1], i->arg[2], i->width)) return false;
  if (i->element && !aligned(m, v, "addition")) return false;
  if (!may(m, base, v, i->arg[0], IR_ADDS, false, i->width)) return false;
  for (int32_t w = 0; w < i->width; w++)
    ir_atomic_adds(m->k->ins[i->arg[0]].element == IR_F64, m->k->lanes, w, m->at,
                   m->array[i->arg[0]], ir_machine_lanes(m, base, m->k->pool[i->imm + w]));
  return true;
}

/* A COPY is carried out as late as allowed: at the COPY_WAIT for its batch; earlier reads see the
   old contents. */
static bool send_for(const ir_machine *m, ir_queue *q, int32_t v, ir_pending_copy what) {
  if (q->n == q->capacity) {
    size_t capacity = 2 * q->capacity + 64;
    ir_pending_copy *more = realloc(q->first, capacity * sizeof *more);
    if (!more) return ir_machine_wrong(m, v, "no memory");
    q->first = more;
    q->capacity = capacity;
  }
  what.batch = q->batches;
  q->first[q->n++] = what;
  return true;
}

void ir_machine_wait(const ir_machine *m, char *base, int64_t in_flight) {
  ir_queue *q = ir_machine_queue(m, base);
  size_t n = 0;
  for (; n < q->n && q->first[n].batch < q->batches - in_flight; n++) {
    memcpy(q->first[n].to, q->first[n].from, q->first[n].bytes);
    ir_races_arrive(m->races, q->first[n].at, q->first[n].width);
  }
  q->n -= n;
  if (n) memmove(q->first, q->first + n, q->n * sizeof *q->first);
}

ir_queue *ir_machine_queue(const ir_machine *m, const char *base) {
  return &m->queue[subgroup_of(m, base)];
}

bool ir_machine_copy(const ir_machine *m, char *base, int32_t v) {
  const ir_ins *i = &m->k->ins[v];
  size_t bytes = (size_t)ir_type_bytes((ir_type)m->k->ins[i->arg[0]].element);
  for (int32_t l = 0; l < m->k->lanes; l++) {
    m->at[l] = -1;
    if (i->arg[4] != IR_NONE && !((int32_t *)ir_machine_lanes(m, base, i->arg[4]))[l]) continue;
    int64_t index[2];
    for (int j = 0; j < 2; j++) {
      const void *from = ir_machine_lanes(m, base, i->arg[1 + 2 * j]);
      index[j] = m->k->ins[i->arg[1 + 2 * j]].type == IR_I64 ? ((const int64_t *)from)[l]
                                                             : ((const int32_t *)from)[l];
      if (index[j] < 0 || index[j] > m->elements[i->arg[2 * j]] - i->width)
        return leaves(m, v, l, i->arg[2 * j], index[j]);
      if (i->imm && index[j] % i->width)
        return ir_machine_wrong(
            m, v, "index %" PRId64 " of lane %d is not a multiple of the aligned copy's width",
            index[j], (int)l);
    }
    char *to = (char *)m->array[i->arg[0]] + (size_t)index[0] * bytes;
    const char *from = (char *)m->array[i->arg[2]] + (size_t)index[1] * bytes;
    ir_conflict c = {0};
    ir_shadow *at =
        ir_races_send(m->races, v, subgroup_of(m, base), l, i->arg[0], index[0], i->width, &c);
    if (!at) return race(m, v, subgroup_of(m, base), i->arg[0], IR_WRITES, &c);
    ir_pending_copy what = {
        .to = to, .from = from, .bytes = (size_t)i->width * bytes, .at = at, .width = i->width};
    if (!send_for(m, ir_machine_queue(m, base), v, what)) return false;
    m->at[l] = index[1];
  }
  return may(m, base, v, i->arg[2], IR_READS, false, i->width);
}
