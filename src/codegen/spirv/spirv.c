/* src/codegen/spirv/spirv.c - IR -> SPIR-V 1.2 words for OpenCL and Level Zero; one invocation is a
   lane. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/codegen/spirv/spirv.h"

static bool wrong(spirv_printer *p, ir_val v, const char *what) {
  snprintf(p->error, p->size, "SPIR-V: instruction %d %s: %s", (int)v,
           ir_op_name((ir_op)p->k->ins[v].op), what);
  return false;
}

/* ---- ids ---- */

static uint32_t first_component(spirv_printer *p, spirv_builtin which) {
  uint32_t variable = clb_spirv_builtin_variable(&p->m, which), all = spirv_id(&p->m),
           one = spirv_id(&p->m), t = clb_spirv_type_id(&p->m, IR_I64);
  EMIT(OpLoad, p->m.vector, all, variable);
  EMIT(OpCompositeExtract, t, one, all, 0);
  return clb_spirv_unary(p, OpUConvert, IR_I32, one);
}

static uint32_t own_id(spirv_printer *p, spirv_builtin which) {
  return clb_spirv_unary(p, OpLoad, IR_I32, clb_spirv_builtin_variable(&p->m, which));
}

static bool place(spirv_printer *p, ir_val v) {
  const ir_kernel *k = p->k;
  uint32_t *r = &p->id[v];
  ir_op op = (ir_op)k->ins[v].op;
  if (op == IR_GROUP) *r = first_component(p, SPIRV_WORKGROUP_ID);
  else if (op == IR_LANE ? k->lanes == 1 : k->subgroups == 1) *r = clb_spirv_zero(&p->m, IR_I32);
  else if (p->by_subgroup)
    *r = own_id(p, op == IR_LANE ? SPIRV_SUBGROUP_LOCAL_INVOCATION_ID : SPIRV_SUBGROUP_ID);
  else if (op == IR_LANE && k->subgroups == 1) *r = first_component(p, SPIRV_LOCAL_INVOCATION_ID);
  else
    *r = clb_spirv_binary(p, op == IR_LANE ? OpUMod : OpUDiv, IR_I32,
                          first_component(p, SPIRV_LOCAL_INVOCATION_ID),
                          clb_spirv_i32(p, (uint32_t)k->lanes));
  return true;
}

/* ---- parameters, constants, arithmetic ---- */

static bool parameter(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  if (p->m.n_parameters == SPIRV_MAX_PARAMETERS) return wrong(p, v, "more than 128 parameters");
  uint32_t t = i->op == IR_SCALAR ? clb_spirv_type_id(&p->m, i->type)
                                  : clb_spirv_pointer_type(&p->m, CrossWorkgroupClass,
                                                           spirv_memory_type(i->element));
  p->id[v] = clb_spirv_parameter(&p->m, t);
  return true;
}

static uint32_t real(spirv_printer *p, ir_type type, double value) {
  uint64_t wide;
  uint32_t narrow;
  float single = (float)value;
  memcpy(&wide, &value, sizeof wide);
  memcpy(&narrow, &single, sizeof narrow);
  return clb_spirv_constant(&p->m, type, type == IR_F64 ? wide : narrow);
}

static bool constant(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  p->id[v] = i->op == IR_REAL ? real(p, (ir_type)i->type, i->real)
                              : clb_spirv_constant(&p->m, i->type, (uint64_t)i->imm);
  return true;
}

/* Opcodes by operand type; ClX + EXTENDED: an instruction of OpenCL.std. Operands of integer DIV
   and MOD are never negative. */
enum { EXTENDED = 1 << 16 };
static const struct {
  int integer, real;
} opcodes[IR_OP_COUNT] = {[IR_ADD] = {OpIAdd, OpFAdd},
                          [IR_SUB] = {OpISub, OpFSub},
                          [IR_MUL] = {OpIMul, OpFMul},
                          [IR_DIV] = {OpUDiv, OpFDiv},
                          [IR_MOD] = {OpUMod, 0},
                          [IR_XOR] = {OpBitwiseXor, 0},
                          [IR_MUL_HIGH] = {EXTENDED + ClUMulHi, 0},
                          [IR_MIN] = {EXTENDED + ClSMin, EXTENDED + ClFmin},
                          [IR_MAX] = {EXTENDED + ClSMax, EXTENDED + ClFmax},
                          [IR_NEG] = {0, OpFNegate},
                          [IR_ABS] = {0, EXTENDED + ClFabs},
                          [IR_FMA] = {0, EXTENDED + ClFma},
                          [IR_SQRT] = {0, EXTENDED + ClSqrt},
                          [IR_EXP] = {0, EXTENDED + ClExp},
                          [IR_SIN] = {0, EXTENDED + ClSin},
                          [IR_COS] = {0, EXTENDED + ClCos},
                          [IR_LT] = {OpSLessThan, OpFOrdLessThan},
                          [IR_LE] = {OpSLessThanEqual, OpFOrdLessThanEqual},
                          [IR_EQ] = {OpIEqual, OpFOrdEqual},
                          [IR_AND] = {OpLogicalAnd, 0},
                          [IR_OR] = {OpLogicalOr, 0},
                          [IR_SELECT] = {OpSelect, OpSelect}};

/* Returns x if v is -x, else IR_NONE. */
static ir_val negated(const ir_kernel *k, ir_val v) {
  const ir_ins *i = &k->ins[v];
  if (i->op == IR_NEG) return i->arg[0];
  for (int a = 0; i->op == IR_MUL && a < 2; a++)
    if (k->ins[i->arg[a]].op == IR_REAL && k->ins[i->arg[a]].real == -1) return i->arg[1 - a];
  return IR_NONE;
}

/* -x = x (-1) - 0, exactly. */
static bool negation_by_fma(spirv_printer *p, ir_val v, ir_val x) {
  ir_type type = spirv_type_of(p, v);
  uint32_t t = clb_spirv_type_id(&p->m, type), minus_one = real(p, type, -1),
           minus_zero = real(p, type, -0.0), r = p->id[v] = spirv_id(&p->m);
  EMIT(OpExtInst, t, r, p->m.cl, ClFma, p->id[x], minus_one, minus_zero);
  return true;
}

static bool arithmetic(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  ir_val x = p->fma_negates ? negated(p->k, v) : IR_NONE;
  if (x != IR_NONE) return negation_by_fma(p, v, x);
  int opcode = ir_is_float(spirv_type_of(p, i->arg[0])) || ir_is_float((ir_type)i->type)
                   ? opcodes[i->op].real
                   : opcodes[i->op].integer,
      n = 0;
  uint32_t words[7] = {clb_spirv_type_id(&p->m, i->type), p->id[v] = spirv_id(&p->m)};
  n = 2;
  if (opcode >= EXTENDED) {
    words[n++] = p->m.cl;
    words[n++] = (uint32_t)(opcode - EXTENDED);
    opcode = OpExtInst;
  }
  for (int a = 0; a < 3 && i->arg[a] != IR_NONE; a++) words[n++] = p->id[i->arg[a]];
  clb_spirv_op(&p->m.body, opcode, n, words);
  return true;
}

/* Intel's compiler (IGC 1.0.12504) rejects OpLogicalNot without a message. */
static bool logical_not(spirv_printer *p, ir_val v) {
  p->id[v] = clb_spirv_binary(p, OpLogicalNotEqual, IR_BOOL, p->id[p->k->ins[v].arg[0]],
                              clb_spirv_constant(&p->m, IR_BOOL, 1));
  return true;
}

static bool cast(spirv_printer *p, ir_val v) {
  ir_type from = spirv_type_of(p, p->k->ins[v].arg[0]), to = spirv_type_of(p, v);
  int opcode = ir_is_float(from) ? (ir_is_float(to) ? OpFConvert : OpConvertFToS)
               : ir_is_float(to) ? OpConvertSToF
                                 : OpSConvert;
  p->id[v] = clb_spirv_unary(p, opcode, to, p->id[p->k->ins[v].arg[0]]);
  return true;
}

/* ---- addresses ---- */

static uint32_t first_of(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  if (p->first[v]) return p->first[v];
  if (i->op == IR_INT) return clb_spirv_constant(&p->m, IR_I64, (uint64_t)i->imm);
  return i->type == IR_I64 ? p->id[v] : clb_spirv_unary(p, OpSConvert, IR_I64, p->id[v]);
}

/* Integers of which indices are made, once more: in lane 0, where they are the same for all lanes,
   and as i64, so that compilers see constants that are added to them as parts of addresses. What
   no index needs they drop. */
static void print_first(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  const bool affine = i->shape == IR_AFFINE,
             sum = i->op == IR_ADD || i->op == IR_SUB || i->op == IR_MUL;
  if (i->op == IR_LANE) {
    p->lane = v;
    p->first[v] = clb_spirv_zero(&p->m, IR_I64);
  } else if (i->op == IR_CAST && affine) p->first[v] = first_of(p, i->arg[0]);
  else if (sum && (affine || (i->shape == IR_UNIFORM && i->type == IR_I32)))
    p->first[v] = clb_spirv_binary(p, opcodes[i->op].integer, IR_I64, first_of(p, i->arg[0]),
                                   first_of(p, i->arg[1]));
}

/* ---- lanes ---- */

static bool barrier(spirv_printer *p, ir_val v) {
  bool narrow = p->by_subgroup && !p->k->ins[v].imm;
  uint32_t scope = clb_spirv_i32(p, narrow ? SubgroupScope : WorkgroupScope),
           semantics = clb_spirv_i32(p, AcquireReleaseWorkgroupMemory);
  EMIT(OpControlBarrier, scope, scope, semantics);
  return true;
}

static uint32_t shuffle_xor(spirv_printer *p, int type, uint32_t value, uint32_t with) {
  return clb_spirv_binary(p, OpSubgroupShuffleXorINTEL, type, value, clb_spirv_i32(p, with));
}

static bool across(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  uint32_t value = p->id[i->arg[0]];
  if (p->k->lanes > 1 && !p->subgroups) return wrong(p, v, "needs sub-groups; lower its shuffles");
  if (p->k->lanes > 1) p->m.needs[SPIRV_SUBGROUP_SHUFFLE] = true;
  if (p->k->lanes > 1 && i->op == IR_SHUFFLE)
    value = clb_spirv_binary(p, OpSubgroupShuffleINTEL, i->type, value, p->id[i->arg[1]]);
  if (i->op == IR_SHUFFLE_XOR && i->imm) value = shuffle_xor(p, i->type, value, (uint32_t)i->imm);
  for (int d = p->k->lanes / 2; i->op == IR_REDUCE_ADD && d; d /= 2)
    value =
        clb_spirv_binary(p, OpFAdd, i->type, value, shuffle_xor(p, i->type, value, (uint32_t)d));
  p->id[v] = value;
  return true;
}

/* ---- control ---- */

static spirv_block *push(spirv_printer *p, ir_val v) {
  if (p->depth < SPIRV_MAX_DEPTH) return &p->open[p->depth++];
  wrong(p, v, "more than 64 open blocks");
  return NULL;
}

static bool loop(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  spirv_block *b = push(p, v);
  if (!b) return false;
  uint32_t before = p->here, inside = spirv_id(&p->m);
  *b = (spirv_block){.header = spirv_id(&p->m),
                     .next = spirv_id(&p->m),
                     .merge = spirv_id(&p->m),
                     .counter = spirv_id(&p->m),
                     .stepped = spirv_id(&p->m),
                     .step = p->id[i->arg[2]],
                     .type = clb_spirv_type_id(&p->m, i->type)};
  EMIT(OpBranch, b->header);
  clb_spirv_start_block(p, b->header);
  EMIT(OpPhi, b->type, b->counter, p->id[i->arg[0]], before, b->stepped, b->next);
  uint32_t more = clb_spirv_binary(p, OpSLessThan, IR_BOOL, b->counter, p->id[i->arg[1]]);
  EMIT(OpLoopMerge, b->merge, b->next, 0);
  EMIT(OpBranchConditional, more, inside, b->merge);
  clb_spirv_start_block(p, inside);
  p->id[v] = b->counter;
  return true;
}

static bool begin_if(spirv_printer *p, ir_val v) {
  spirv_block *b = push(p, v);
  if (!b) return false;
  uint32_t inside = spirv_id(&p->m);
  *b = (spirv_block){.next = spirv_id(&p->m), .merge = spirv_id(&p->m)};
  EMIT(OpSelectionMerge, b->merge, 0);
  EMIT(OpBranchConditional, p->id[p->k->ins[v].arg[0]], inside, b->next);
  clb_spirv_start_block(p, inside);
  return true;
}

static bool begin_else(spirv_printer *p, ir_val v) {
  (void)v;
  spirv_block *b = &p->open[p->depth - 1];
  EMIT(OpBranch, b->merge);
  clb_spirv_start_block(p, b->next);
  b->next = 0;
  return true;
}

static bool end(spirv_printer *p, ir_val v) {
  (void)v;
  spirv_block *b = &p->open[--p->depth];
  if (b->next) {
    EMIT(OpBranch, b->header ? b->next : b->merge);
    clb_spirv_start_block(p, b->next);
  }
  if (b->header) EMIT(OpIAdd, b->type, b->stepped, b->counter, b->step);
  EMIT(OpBranch, b->header ? b->header : b->merge);
  clb_spirv_start_block(p, b->merge);
  return true;
}

/* ---- the whole kernel ---- */

static bool nothing(spirv_printer *p, ir_val v) { return (void)p, (void)v, true; }

static bool (*const print[IR_OP_COUNT])(spirv_printer *p,
                                        ir_val v) = {[IR_BUFFER] = parameter,
                                                     [IR_SCALAR] = parameter,
                                                     [IR_GROUP] = place,
                                                     [IR_SUBGROUP] = place,
                                                     [IR_LANE] = place,
                                                     [IR_INT] = constant,
                                                     [IR_REAL] = constant,
                                                     [IR_ADD] = arithmetic,
                                                     [IR_SUB] = arithmetic,
                                                     [IR_MUL] = arithmetic,
                                                     [IR_DIV] = arithmetic,
                                                     [IR_MOD] = arithmetic,
                                                     [IR_XOR] = arithmetic,
                                                     [IR_MUL_HIGH] = arithmetic,
                                                     [IR_MIN] = arithmetic,
                                                     [IR_MAX] = arithmetic,
                                                     [IR_NEG] = arithmetic,
                                                     [IR_ABS] = arithmetic,
                                                     [IR_FMA] = arithmetic,
                                                     [IR_SQRT] = arithmetic,
                                                     [IR_EXP] = arithmetic,
                                                     [IR_SIN] = arithmetic,
                                                     [IR_COS] = arithmetic,
                                                     [IR_LT] = arithmetic,
                                                     [IR_LE] = arithmetic,
                                                     [IR_EQ] = arithmetic,
                                                     [IR_AND] = arithmetic,
                                                     [IR_OR] = arithmetic,
                                                     [IR_NOT] = logical_not,
                                                     [IR_SELECT] = arithmetic,
                                                     [IR_CAST] = cast,
                                                     [IR_LOCAL] = clb_spirv_print_local,
                                                     [IR_VAR] = clb_spirv_print_var,
                                                     [IR_GET] = clb_spirv_print_get,
                                                     [IR_SET] = clb_spirv_print_set,
                                                     [IR_LOAD] = clb_spirv_print_load,
                                                     [IR_ELEMENT] = clb_spirv_print_element,
                                                     [IR_STORE] = clb_spirv_print_store,
                                                     [IR_ATOMIC_ADD] = clb_spirv_print_atomic_add,
                                                     [IR_COPY] = clb_spirv_print_copy,
                                                     [IR_COPY_COMMIT] = nothing,
                                                     [IR_COPY_WAIT] = nothing,
                                                     [IR_BARRIER] = barrier,
                                                     [IR_SHUFFLE] = across,
                                                     [IR_SHUFFLE_XOR] = across,
                                                     [IR_REDUCE_ADD] = across,
                                                     [IR_LOOP] = loop,
                                                     [IR_IF] = begin_if,
                                                     [IR_ELSE] = begin_else,
                                                     [IR_END] = end,
                                                     [IR_PREFETCH] = nothing};

static bool uses(const ir_kernel *k, ir_op op, int64_t imm) {
  for (int32_t v = 0; v < k->n; v++)
    if (k->ins[v].op == op && (imm < 0 || k->ins[v].imm == imm)) return true;
  return false;
}

/* Whether the kernel depends on lane or sub-group ids; if not, only the sub-group size needs to be
   declared. */
static bool by_subgroup(const ir_kernel *k) {
  return k->subgroups > 1 || uses(k, IR_SHUFFLE, -1) || uses(k, IR_SHUFFLE_XOR, -1) ||
         uses(k, IR_REDUCE_ADD, -1) || uses(k, IR_BARRIER, 0);
}

bool clb_print_spirv(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error,
                     size_t size) {
  bool subgroups = dialect->subgroups && k->lanes > 1;
  spirv_printer p = {.k = k,
                     .subgroups = subgroups,
                     .blocks = subgroups && dialect->subgroup_blocks,
                     .by_subgroup = subgroups && by_subgroup(k),
                     .float_atomics = dialect->float_atomics,
                     .error = error,
                     .size = size};
  p.fma_negates = k->subgroups > 1 && uses(k, IR_BARRIER, -1);
  bool ok = (p.id = calloc((size_t)k->n + 1, sizeof *p.id)) != NULL, printed = true;
  ok = (p.first = calloc((size_t)k->n + 1, sizeof *p.first)) != NULL && ok;
  clb_spirv_begin(&p.m);
  p.here = p.m.entry;
  for (ir_val v = 0; ok && printed && v < k->n; v++) {
    printed = print[k->ins[v].op](&p, v);
    if (printed) print_first(&p, v);
  }
  if (ok && printed)
    clb_spirv_assemble(&p.m, k->name, (uint32_t)(k->lanes * k->subgroups),
                       subgroups ? (uint32_t)k->lanes : 0, out);
  clb_spirv_free(&p.m);
  free(p.first);
  free(p.id);
  ok = ok && !out->failed;
  if (!ok) snprintf(error, size, "SPIR-V: out of memory");
  return ok && printed;
}
