/* src/codegen/vector/memory.c - loads and stores of a kernel printed as C with vector extensions.
 */
#include "src/codegen/vector/vector.h"

#include <inttypes.h>
#include <string.h>

/* ---- addresses ---- */

/* Splits a sum into terms, which are added to q, and constants, whose sum is returned; if there are
   too many terms the last ones stay together. */
static int64_t terms(vector_printer *p, ir_val v, int spare, clb_vector_pointer *q) {
  const ir_ins *i = vector_ins(p, v);
  if (i->op == IR_INT) return i->imm;
  if (i->op == IR_ADD && q->n + spare + 2 <= CLB_VECTOR_POINTER_TERMS) {
    int64_t constant = terms(p, i->arg[0], spare + 1, q);
    return constant + terms(p, i->arg[1], spare, q);
  }
  q->term[q->n++] = v;
  return 0;
}

static int64_t pointer_of(vector_printer *p, ir_val array, ir_val index, clb_vector_pointer *q) {
  *q = (clb_vector_pointer){.array = array};
  return terms(p, index, 0, q);
}

static const clb_vector_pointer *find(const vector_printer *p, const clb_vector_pointer *q) {
  for (int i = 0; i < p->n_pointers; i++) {
    const clb_vector_pointer *known = &p->pointer[i];
    if (known->array == q->array && known->n == q->n &&
        !memcmp(known->term, q->term, sizeof *q->term * (size_t)q->n))
      return known;
  }
  return NULL;
}

/* Declares the pointer that `address` of this index needs. */
static void point(vector_printer *p, ir_val array, ir_val index) {
  clb_vector_pointer q;
  pointer_of(p, array, index, &q);
  if (!q.n || find(p, &q) || p->n_pointers == CLB_VECTOR_POINTERS) return;
  q.depth = p->depth;
  q.number = p->pointers_declared++;
  p->pointer[p->n_pointers++] = q;
  clb_vector_emit(p, "%s *const p%d = b%d", clb_vector_storage(vector_element(p, array)), q.number,
                  (int)array);
  for (int i = 0; i < q.n; i++) clb_vector_emit(p, " + (i64)"), clb_vector_scalar(p, q.term[i]);
  clb_vector_emit(p, "; ");
}

void clb_vector_close_pointers(vector_printer *p) {
  while (p->n_pointers && p->pointer[p->n_pointers - 1].depth > p->depth) p->n_pointers--;
}

static void address(vector_printer *p, ir_val array, ir_val index) {
  clb_vector_pointer q;
  int64_t constant = pointer_of(p, array, index, &q);
  const clb_vector_pointer *known = find(p, &q);
  if (known) clb_vector_emit(p, "p%d + %" PRId64, known->number, constant);
  else {
    clb_vector_emit(p, "b%d + (i64)", (int)array);
    clb_vector_scalar(p, index);
  }
}

/* ", stride, count": for lanes at a constant stride. */
static void evenly(vector_printer *p, const ir_ins *i) {
  clb_vector_emit(p, ", ");
  clb_vector_scalar(p, vector_ins(p, i->arg[1])->stride);
  clb_vector_emit(p, ", ");
  clb_vector_count(p, i->arg[2]);
}

static bool lies_evenly(const vector_printer *p, const ir_ins *i) {
  return vector_ins(p, i->arg[1])->shape == IR_AFFINE && clb_vector_countable(p, i->arg[2]);
}

static void places(vector_printer *p, ir_val index) {
  clb_vector_emit(p, "CONVERT(i64v, ");
  clb_vector_lanes(p, index);
  clb_vector_emit(p, ")");
}

void clb_vector_load(vector_printer *p, int32_t v, const ir_ins *i) {
  const char *e = ir_type_name(vector_element(p, i->arg[0])), *t = ir_type_name((ir_type)i->type);
  if (i->shape == IR_UNIFORM || lies_evenly(p, i)) point(p, i->arg[0], i->arg[1]);
  clb_vector_emit(p, "%s%s w%d[%d];", t, i->shape == IR_UNIFORM ? "" : "v", (int)v, (int)i->width);
  if (i->shape == IR_UNIFORM) {
    for (int c = 0; c < i->width; c++) {
      clb_vector_emit(p, " w%d[%d] = ", (int)v, c);
      if (i->arg[2] != IR_NONE) clb_vector_scalar(p, i->arg[2]);
      clb_vector_emit(p, i->arg[2] == IR_NONE ? "unpack1_%s((" : " ? unpack1_%s((", e);
      address(p, i->arg[0], i->arg[1]);
      clb_vector_emit(p, i->arg[2] == IR_NONE ? ")[%d]);" : ")[%d]) : 0;", c);
    }
  } else if (lies_evenly(p, i)) {
    clb_vector_fetch_ahead(p, i);
    clb_vector_emit(p, " get_%s_%d(", e, (int)i->width);
    address(p, i->arg[0], i->arg[1]);
    evenly(p, i);
    clb_vector_emit(p, ", w%d);", (int)v);
  } else {
    clb_vector_emit(p, " gather_%s(b%d, ", e, (int)i->arg[0]);
    places(p, i->arg[1]);
    clb_vector_emit(p, ", ");
    clb_vector_lane_mask(p, i->arg[2]);
    clb_vector_emit(p, ", %d, w%d);", (int)i->width, (int)v);
  }
  if (i->width == 1)
    clb_vector_emit(p, " const %s%s v%d = w%d[0];", t, i->shape == IR_UNIFORM ? "" : "v", (int)v,
                    (int)v);
}

/* oN: where this group's part of buffer N is written, the buffer itself or the local array
   stageN. */
static void begin_block(vector_printer *p, ir_val array) {
  clb_vector_block *b = &p->block[array];
  if (b->begun) return;
  b->begun = true;
  clb_vector_emit(p, "%s *const o%d = large%d && ", clb_vector_storage(vector_element(p, array)),
                  (int)array, (int)array);
  clb_vector_scalar(p, vector_ins(p, b->root)->stride);
  clb_vector_emit(p, " == %d && FULL(", (int)b->columns);
  clb_vector_count(p, b->mask);
  clb_vector_emit(p, ") && ALIGNED(");
  address(p, array, b->root);
  clb_vector_emit(p, " + %d) ? stage%d : ", (int)b->first, (int)array);
  address(p, array, b->root);
  clb_vector_emit(p, " + %d; ", (int)b->first);
}

void clb_vector_end_block(vector_printer *p, ir_val array) {
  const clb_vector_block *b = &p->block[array];
  if (!b->columns) return;
  clb_vector_emit(p, "    if (o%d == stage%d) flush_%s(", (int)array, (int)array,
                  clb_vector_storage(vector_element(p, array)));
  address(p, array, b->root);
  clb_vector_emit(p, " + %d, stage%d, %d, stream);\n", (int)b->first, (int)array, (int)b->columns);
}

static bool all_uniform(const vector_printer *p, const ir_ins *store) {
  for (int c = 0; c < store->width; c++)
    if (!vector_uniform(p, p->k->pool[store->imm + c])) return false;
  return vector_uniform(p, store->arg[1]) &&
         (store->arg[2] == IR_NONE || vector_uniform(p, store->arg[2]));
}

void clb_vector_store(vector_printer *p, const ir_ins *i) {
  const char *e = ir_type_name(vector_element(p, i->arg[0])),
             *t = ir_type_name(ir_register_type(vector_element(p, i->arg[0])));
  const ir_val *values = p->k->pool + i->imm;
  if (all_uniform(p, i) || lies_evenly(p, i)) point(p, i->arg[0], i->arg[1]);
  if (all_uniform(p, i)) {
    for (int c = 0; c < i->width; c++) {
      if (i->arg[2] != IR_NONE)
        clb_vector_emit(p, "if ("), clb_vector_scalar(p, i->arg[2]), clb_vector_emit(p, ") ");
      clb_vector_emit(p, "(");
      address(p, i->arg[0], i->arg[1]);
      clb_vector_emit(p, ")[%d] = pack1_%s(", c, e);
      clb_vector_scalar(p, values[c]);
      clb_vector_emit(p, "); ");
    }
  } else if (lies_evenly(p, i)) {
    const clb_vector_block *b = &p->block[i->arg[0]];
    if (b->columns) begin_block(p, i->arg[0]);
    clb_vector_emit(p, "put_%s_%d(", e, (int)i->width);
    if (b->columns)
      clb_vector_emit(p, "o%d + %d", (int)i->arg[0],
                      (int)(clb_vector_column(p->k, i->arg[1]) - b->first));
    else address(p, i->arg[0], i->arg[1]);
    evenly(p, i);
    clb_vector_emit(p, b->columns || b->read ? ", 0, " : ", stream, ");
    clb_vector_operands(p, values, i->width, true);
    clb_vector_emit(p, ");");
  } else {
    clb_vector_emit(p, "scatter_%s(b%d, ", e, (int)i->arg[0]);
    places(p, i->arg[1]);
    clb_vector_emit(p, ", ");
    clb_vector_lane_mask(p, i->arg[2]);
    clb_vector_emit(p, ", %d, (const %sv[]){", (int)i->width, t);
    clb_vector_operands(p, values, i->width, true);
    clb_vector_emit(p, "});");
  }
}

void clb_vector_atomic_add(vector_printer *p, const ir_ins *i) {
  for (int j = 0; j < i->width; j++) {
    clb_vector_emit(p, "%satomic_add_%s(b%d + %d, ", j ? " " : "",
                    ir_type_name(vector_element(p, i->arg[0])), (int)i->arg[0], j);
    places(p, i->arg[1]);
    clb_vector_emit(p, ", ");
    clb_vector_lane_mask(p, i->arg[2]);
    clb_vector_emit(p, ", ");
    clb_vector_lanes(p, p->k->pool[i->imm + j]);
    clb_vector_emit(p, ");");
  }
}

void clb_vector_copy(vector_printer *p, const ir_ins *i) {
  clb_vector_emit(p, "copy_%s(b%d, ", ir_type_name(vector_element(p, i->arg[0])), (int)i->arg[0]);
  places(p, i->arg[1]);
  clb_vector_emit(p, ", b%d, ", (int)i->arg[2]);
  places(p, i->arg[3]);
  clb_vector_emit(p, ", ");
  clb_vector_lane_mask(p, i->arg[4]);
  clb_vector_emit(p, ", %d);", (int)i->width);
}

/* Prefetches into the second-level cache, because other memory is read first. */
void clb_vector_prefetch(vector_printer *p, const ir_ins *i) {
  clb_vector_emit(p, "ASK(");
  address(p, i->arg[0], i->arg[1]);
  clb_vector_emit(p, ", %d);", (int)i->width);
}
