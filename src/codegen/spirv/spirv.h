/* src/codegen/spirv/spirv.h - the state shared by the files of the SPIR-V printer, and one function
   for each kind of instruction. */
#ifndef CLB_SRC_CODEGEN_SPIRV_SPIRV_H
#define CLB_SRC_CODEGEN_SPIRV_SPIRV_H

#include "src/codegen/codegen.h"
#include "src/codegen/spirv/module.h"

enum { SPIRV_MAX_DEPTH = 64 };

/* An open LOOP, IF or ELSE. */
typedef struct {
  uint32_t header, next,
      merge; /* LOOP: test, step, exit.  IF: next is the other branch until ELSE, then 0 */
  uint32_t counter, stepped, step, type;
} spirv_block;

typedef struct {
  spirv_module m;
  const ir_kernel *k;
  bool subgroups, blocks, float_atomics; /* blocks: they can be read */
  bool by_subgroup; /* lane and sub-group ids come from the device's built-ins, not from the local
                     index */
  bool fma_negates; /* Intel's CPU driver (2026.2) confuses sub-groups where a negated number is
                       live across a barrier */
  uint32_t *id;     /* of each instruction; a wide LOAD's values have consecutive ids */
  uint32_t *first; /* of each AFFINE integer, and each that is computed in i32: in lane 0, as i64 */
  ir_val lane;     /* the LANE instruction, if there is one */
  uint32_t here;   /* the label of the current block */
  int depth;
  spirv_block open[SPIRV_MAX_DEPTH];
  char *error;
  size_t size;
} spirv_printer;

/* Adds one instruction to the body of `p`. */
#define EMIT(opcode, ...) SPIRV_OP(&p->m.body, opcode, __VA_ARGS__)

static inline ir_type spirv_type_of(const spirv_printer *p, ir_val v) {
  return (ir_type)p->k->ins[v].type;
}

/* ---- emit.c ---- */

uint32_t clb_spirv_unary(spirv_printer *p, int opcode, int type, uint32_t a);
uint32_t clb_spirv_binary(spirv_printer *p, int opcode, int type, uint32_t a, uint32_t b);
uint32_t clb_spirv_i32(spirv_printer *p, uint32_t value);
void clb_spirv_start_block(spirv_printer *p, uint32_t label);

/* ---- memory.c ---- */

bool clb_spirv_print_local(spirv_printer *p, ir_val v);
bool clb_spirv_print_var(spirv_printer *p, ir_val v);
bool clb_spirv_print_get(spirv_printer *p, ir_val v);
bool clb_spirv_print_set(spirv_printer *p, ir_val v);
bool clb_spirv_print_load(spirv_printer *p, ir_val v);
bool clb_spirv_print_element(spirv_printer *p, ir_val v);
bool clb_spirv_print_store(spirv_printer *p, ir_val v);
bool clb_spirv_print_copy(spirv_printer *p, ir_val v);
bool clb_spirv_print_atomic_add(spirv_printer *p, ir_val v);

#endif
