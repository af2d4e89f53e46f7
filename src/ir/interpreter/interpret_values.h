/* src/ir/interpreter/interpret_values.h - the interpreter's loops over lanes, as tables by op and
   type; NULL where there is none. */
#ifndef CLB_SRC_IR_INTERPRETER_INTERPRET_VALUES_H
#define CLB_SRC_IR_INTERPRETER_INTERPRET_VALUES_H

#include "src/ir/ir.h"

/* to[l] = op(a[l], b[l], c[l]); operands that the op does not take are not read. */
typedef void ir_lane_function(int32_t lanes, void *to, const void *a, const void *b, const void *c);
extern ir_lane_function *const
    ir_lane_functions[IR_OP_COUNT]
                     [IR_F64 + 1]; /* by op, type of the first operand (SELECT: the second) */
extern ir_lane_function *const ir_lane_casts[IR_F64 + 1][IR_F64 + 1]; /* by type from, type to */

/* Between memory and registers, by element type; at[l] < 0: masked.
   gather: to[w][l] = from[at[l] + w], 0 where masked.  scatter: to[at[l] + w] = from[l], lane by
   lane. */
typedef void ir_gather(int32_t lanes, int32_t width, const int64_t *at, const void *from, void *to);
typedef void ir_scatter(int32_t lanes, int32_t w, const int64_t *at, void *to, const void *from);
extern ir_gather *const ir_gathers[IR_BF16 + 1];
extern ir_scatter *const ir_scatters[IR_BF16 + 1];
void ir_atomic_adds(bool f64, int32_t lanes, int32_t w, const int64_t *at, void *to,
                    const void *from);

/* Conversions from and to the bits of binary16 and bfloat16; rounding to nearest, ties to even. */
float ir_from_f16(uint16_t bits);
uint16_t ir_to_f16(float x);
float ir_from_bf16(uint16_t bits);
uint16_t ir_to_bf16(float x);

#endif
