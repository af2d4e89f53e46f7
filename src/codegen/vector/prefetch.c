/* src/codegen/vector/prefetch.c - which arrays a kernel reads a row per group, and the text that
   prefetches the next row while this one is processed. With blocks of channels a row is read in
   strides, which hardware prefetchers do not predict. Each load of this row therefore prefetches as
   many bytes of the next, in the order of memory: a sequential pattern, which they continue. */
#include "src/codegen/vector/vector.h"

enum { MAX_DEPTH = 6 };

static bool is_group(const ir_kernel *k, ir_val v) {
  return k->ins[v].op == IR_GROUP ||
         (k->ins[v].op == IR_CAST && k->ins[k->ins[v].arg[0]].op == IR_GROUP);
}

/* Collects the known parts of an index: scalars, and a scalar times the group. The remainder is the
   position in the row. */
static void terms(const ir_kernel *k, ir_val v, int depth, clb_vector_ahead *a) {
  const ir_ins *i = &k->ins[v];
  if (i->op == IR_ADD && depth < MAX_DEPTH) {
    terms(k, i->arg[0], depth + 1, a);
    terms(k, i->arg[1], depth + 1, a);
  } else if (i->op == IR_MUL) {
    for (int s = 0; s < 2; s++)
      if (k->ins[i->arg[s]].op == IR_SCALAR && is_group(k, i->arg[1 - s])) a->stride = i->arg[s];
  } else if (i->op == IR_SCALAR && a->n < CLB_VECTOR_AHEAD_TERMS) {
    a->term[a->n++] = v;
  }
}

static bool dense(const ir_kernel *k, const ir_ins *load) {
  const ir_ins *at = &k->ins[load->arg[1]];
  return at->shape == IR_AFFINE && ir_int_value(k, at->stride, 0) == load->width;
}

void clb_vector_find_ahead(const ir_kernel *k, clb_vector_ahead *ahead) {
  for (int32_t v = 0; v < k->n; v++) ahead[v] = (clb_vector_ahead){.stride = IR_NONE};
  for (int32_t v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    clb_vector_ahead a = {.stride = IR_NONE};
    if (i->op != IR_LOAD || k->ins[i->arg[0]].op != IR_BUFFER || !dense(k, i)) continue;
    terms(k, i->arg[1], 0, &a);
    if (a.stride != IR_NONE && ahead[i->arg[0]].stride == IR_NONE) ahead[i->arg[0]] = a;
  }
}

/* nN: the address in the next row up to which buffer N has been prefetched. */
void clb_vector_begin_ahead(vector_printer *p, ir_val array) {
  const clb_vector_ahead *a = &p->ahead[array];
  if (a->stride == IR_NONE) return;
  clb_vector_emit(p, "    u64 n%d = (u64)b%d + sizeof *b%d * ((u64)v%d * (u64)(group + 1)",
                  (int)array, (int)array, (int)array, (int)a->stride);
  for (int i = 0; i < a->n; i++) clb_vector_emit(p, " + (u64)v%d", (int)a->term[i]);
  clb_vector_emit(p, ");\n");
}

void clb_vector_fetch_ahead(vector_printer *p, const ir_ins *load) {
  if (p->ahead[load->arg[0]].stride == IR_NONE || !dense(p->k, load)) return;
  clb_vector_emit(p, " FETCH(n%d, %d);", (int)load->arg[0],
                  p->k->lanes * (int)load->width * ir_type_bytes(vector_element(p, load->arg[0])));
}
