/* src/codegen/vector/store_blocks.c - finds the arrays that a kernel only writes, whole rows at a
   time. */
#include "src/codegen/vector/vector.h"

enum { MAX_COLUMNS = 4096, MAX_BYTES = 1 << 15, MIN_COLUMNS = 4, LINE_BYTES = 64 };

/* index = root + column. */
static void split(const ir_kernel *k, ir_val index, ir_val *root, int64_t *column) {
  const ir_ins *i = &k->ins[index];
  *root = index;
  *column = 0;
  for (int a = 0; i->op == IR_ADD && a < 2; a++) {
    if (k->ins[i->arg[a]].op != IR_INT) continue;
    *column = k->ins[i->arg[a]].imm;
    *root = i->arg[1 - a];
  }
}

int64_t clb_vector_column(const ir_kernel *k, ir_val index) {
  ir_val root;
  int64_t column;
  split(k, index, &root, &column);
  return column;
}

/* Adds the store to the block; false: it does not fit, so there is no block. */
static bool piece(const ir_kernel *k, const ir_ins *i, clb_vector_block *b, bool *written) {
  ir_val root;
  int64_t column;
  split(k, i->arg[1], &root, &column);
  if (i->op != IR_STORE || i->scope != IR_NONE || k->ins[root].shape != IR_AFFINE || column < 0 ||
      column > MAX_COLUMNS - i->width)
    return false;
  if (!b->columns) {
    b->root = root;
    b->mask = i->arg[2];
    b->first = (int32_t)column;
  }
  if (b->root != root || b->mask != i->arg[2]) return false;
  for (int32_t c = 0; c < i->width; c++) written[column + c] = true;
  if (column < b->first) b->first = (int32_t)column;
  b->columns += i->width;
  return true;
}

static bool touches(const ir_ins *i, ir_val array) {
  bool first = i->op == IR_LOAD || i->op == IR_STORE || i->op == IR_ATOMIC_ADD;
  return (first && i->arg[0] == array) || (i->op == IR_COPY && i->arg[2] == array);
}

bool clb_vector_find_block(const ir_kernel *k, ir_val array, clb_vector_block *b) {
  bool written[MAX_COLUMNS] = {false};
  *b = (clb_vector_block){.root = IR_NONE};
  for (int32_t v = 0; v < k->n; v++)
    if (touches(&k->ins[v], array) && !piece(k, &k->ins[v], b, written)) return false;
  for (int32_t c = 0; c < b->columns;
       c++) /* `columns` is the sum of all widths: an overlap leaves a gap at the end */
    if (b->first + c >= MAX_COLUMNS || !written[b->first + c]) return false;
  int64_t column_bytes = (int64_t)k->lanes * ir_type_bytes((ir_type)k->ins[array].element);
  return b->columns >= MIN_COLUMNS && b->columns * column_bytes <= MAX_BYTES &&
         column_bytes % LINE_BYTES == 0;
}
