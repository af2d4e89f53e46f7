/* src/codegen/spirv/emit.c - shared by the files of the SPIR-V printer: constants, labels,
   instructions of one and of two operands. */
#include "src/codegen/spirv/spirv.h"

uint32_t clb_spirv_i32(spirv_printer *p, uint32_t value) {
  return clb_spirv_constant(&p->m, IR_I32, value);
}

void clb_spirv_start_block(spirv_printer *p, uint32_t label) {
  EMIT(OpLabel, label);
  p->here = label;
}

uint32_t clb_spirv_unary(spirv_printer *p, int opcode, int type, uint32_t a) {
  uint32_t t = clb_spirv_type_id(&p->m, type), r = spirv_id(&p->m);
  EMIT(opcode, t, r, a);
  return r;
}

uint32_t clb_spirv_binary(spirv_printer *p, int opcode, int type, uint32_t a, uint32_t b) {
  uint32_t t = clb_spirv_type_id(&p->m, type), r = spirv_id(&p->m);
  EMIT(opcode, t, r, a, b);
  return r;
}
