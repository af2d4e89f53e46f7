/* src/ir/emit.h - what the files that build kernels share (ir.c, ir_memory.c, ir_control.c). */
#ifndef CLB_SRC_IR_EMIT_H
#define CLB_SRC_IR_EMIT_H

#include "src/ir/ir.h"

#define IR_NOTHING                                                                                 \
  { IR_NONE, IR_NONE, IR_NONE, IR_NONE, IR_NONE }

/* Notes the first mistake of a kernel; returns 0. */
ir_val ir_mistake(ir_kernel *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends an instruction, or finds an equal one that can stand for it. */
ir_val ir_emit(ir_kernel *k, ir_ins i);
/* One without operands. */
void ir_bare(ir_kernel *k, ir_op op, int64_t imm);
/* Whether v may be an operand of op, or its array; otherwise a mistake is noted. */
bool ir_valid(ir_kernel *k, ir_op op, ir_val v);
bool ir_is_array(ir_kernel *k, ir_op op, ir_val v);
/* Whether its value depends on its operands alone. */
bool ir_pure(ir_op op);

/* Of values that are valid. */
static inline ir_type ir_type_of(const ir_kernel *k, ir_val v) { return k->ins[v].type; }
static inline bool ir_uniform(const ir_kernel *k, ir_val v) {
  return k->ins[v].shape == IR_UNIFORM;
}

#endif
