/* print_spirv.c - IR -> SPIR-V 1.2 words for OpenCL and Level Zero: the instructions' bodies.

   One invocation is a lane.  A masked access stands in a selection of its own, so that a lane that is out of range touches nothing.
   f16 and bf16 arrays are 16-bit integers; f16 is converted behind a pointer, bf16 by integer arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "spirv.h"

enum { MAX_DEPTH = 64 };

/* An open LOOP, IF or ELSE. */
typedef struct {
  uint32_t header, next, merge; /* LOOP: test, step, exit.  IF: next is the other branch until ELSE, then 0 */
  uint32_t counter, stepped, step, type;
} block;

typedef struct {
  spirv_module m;
  const ir_kernel *k;
  bool subgroups, float_atomics;
  bool by_subgroup;    /* lanes and sub-groups are the device's own, not computed from the local index */
  uint32_t *id;        /* of each instruction; a wide LOAD's values have consecutive ids */
  uint32_t here;       /* the label of the block being written */
  int depth;
  block open[MAX_DEPTH];
  char *error;
  size_t size;
} printer;

/* Adds one instruction to the body. */
#define EMIT(opcode, ...) SPIRV_OP(&p->m.body, opcode, __VA_ARGS__)

static bool wrong(printer *p, ir_val v, const char *what) {
  snprintf(p->error, p->size, "SPIR-V: instruction %d %s: %s", (int)v, ir_op_name((ir_op)p->k->ins[v].op), what);
  return false;
}

static ir_type type_of(const printer *p, ir_val v) { return (ir_type)p->k->ins[v].type; }
static uint32_t type_id(printer *p, int type) { return spirv_type_id(&p->m, type); }
static uint32_t new_id(printer *p) { return spirv_id(&p->m); }
static uint32_t i32(printer *p, uint32_t value) { return spirv_constant(&p->m, IR_I32, value); }

static void start_block(printer *p, uint32_t label) {
  EMIT(OpLabel, label);
  p->here = label;
}

static uint32_t unary(printer *p, int opcode, int type, uint32_t a) {
  uint32_t t = type_id(p, type), r = new_id(p);
  EMIT(opcode, t, r, a);
  return r;
}

static uint32_t binary(printer *p, int opcode, int type, uint32_t a, uint32_t b) {
  uint32_t t = type_id(p, type), r = new_id(p);
  EMIT(opcode, t, r, a, b);
  return r;
}

/* ---- ids ---- */

static uint32_t first_component(printer *p, spirv_builtin which) {
  uint32_t variable = spirv_builtin_variable(&p->m, which), all = new_id(p), one = new_id(p), t = type_id(p, IR_I64);
  EMIT(OpLoad, p->m.vector, all, variable);
  EMIT(OpCompositeExtract, t, one, all, 0);
  return unary(p, OpUConvert, IR_I32, one);
}

static uint32_t own_id(printer *p, spirv_builtin which) { return unary(p, OpLoad, IR_I32, spirv_builtin_variable(&p->m, which)); }

static bool place(printer *p, ir_val v) {
  const ir_kernel *k = p->k;
  uint32_t *r = &p->id[v];
  ir_op op = (ir_op)k->ins[v].op;
  if (op == IR_GROUP) *r = first_component(p, SPIRV_WORKGROUP_ID);
  else if (op == IR_LANE ? k->lanes == 1 : k->subgroups == 1) *r = spirv_zero(&p->m, IR_I32);
  else if (p->by_subgroup) *r = own_id(p, op == IR_LANE ? SPIRV_SUBGROUP_LOCAL_INVOCATION_ID : SPIRV_SUBGROUP_ID);
  else if (op == IR_LANE && k->subgroups == 1) *r = first_component(p, SPIRV_LOCAL_INVOCATION_ID);
  else *r = binary(p, op == IR_LANE ? OpUMod : OpUDiv, IR_I32, first_component(p, SPIRV_LOCAL_INVOCATION_ID), i32(p, (uint32_t)k->lanes));
  return true;
}

/* ---- parameters, constants, arithmetic ---- */

static bool parameter(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  if (p->m.n_parameters == SPIRV_MAX_PARAMETERS) return wrong(p, v, "more than 128 parameters");
  uint32_t t = i->op == IR_SCALAR ? type_id(p, i->type) : spirv_pointer_type(&p->m, CrossWorkgroupClass, spirv_memory_type(i->element));
  p->id[v] = spirv_parameter(&p->m, t);
  return true;
}

static bool constant(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  uint64_t bits = (uint64_t)i->imm;
  float single = (float)i->real;
  uint32_t single_bits;
  memcpy(&single_bits, &single, sizeof single_bits);
  if (i->op == IR_REAL && i->type == IR_F64) memcpy(&bits, &i->real, sizeof bits);
  if (i->op == IR_REAL && i->type == IR_F32) bits = single_bits;
  p->id[v] = spirv_constant(&p->m, i->type, bits);
  return true;
}

/* Opcodes by operand type; ClX + EXTENDED: an instruction of OpenCL.std.  Integer DIV and MOD have no negative operands. */
enum { EXTENDED = 1 << 16 };
static const struct {
  int integer, real;
} opcodes[IR_OP_COUNT] = {
    [IR_ADD] = {OpIAdd, OpFAdd}, [IR_SUB] = {OpISub, OpFSub}, [IR_MUL] = {OpIMul, OpFMul}, [IR_DIV] = {OpUDiv, OpFDiv}, [IR_MOD] = {OpUMod, 0},
    [IR_MIN] = {EXTENDED + ClSMin, EXTENDED + ClFmin}, [IR_MAX] = {EXTENDED + ClSMax, EXTENDED + ClFmax},
    [IR_NEG] = {0, OpFNegate}, [IR_ABS] = {0, EXTENDED + ClFabs}, [IR_FMA] = {0, EXTENDED + ClFma}, [IR_SQRT] = {0, EXTENDED + ClSqrt},
    [IR_EXP] = {0, EXTENDED + ClExp}, [IR_SIN] = {0, EXTENDED + ClSin}, [IR_COS] = {0, EXTENDED + ClCos},
    [IR_LT] = {OpSLessThan, OpFOrdLessThan}, [IR_LE] = {OpSLessThanEqual, OpFOrdLessThanEqual}, [IR_EQ] = {OpIEqual, OpFOrdEqual},
    [IR_AND] = {OpLogicalAnd, 0}, [IR_OR] = {OpLogicalOr, 0}, [IR_SELECT] = {OpSelect, OpSelect}};

static bool arithmetic(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  int opcode = ir_is_float(type_of(p, i->arg[0])) || ir_is_float((ir_type)i->type) ? opcodes[i->op].real : opcodes[i->op].integer, n = 0;
  uint32_t words[7] = {type_id(p, i->type), p->id[v] = new_id(p)};
  n = 2;
  if (opcode >= EXTENDED) {
    words[n++] = p->m.cl;
    words[n++] = (uint32_t)(opcode - EXTENDED);
    opcode = OpExtInst;
  }
  for (int a = 0; a < 3 && i->arg[a] != IR_NONE; a++) words[n++] = p->id[i->arg[a]];
  spirv_op(&p->m.body, opcode, n, words);
  return true;
}

/* Intel's compiler (IGC 1.0.12504) refuses OpLogicalNot without a word. */
static bool logical_not(printer *p, ir_val v) {
  p->id[v] = binary(p, OpLogicalNotEqual, IR_BOOL, p->id[p->k->ins[v].arg[0]], spirv_constant(&p->m, IR_BOOL, 1));
  return true;
}

static bool cast(printer *p, ir_val v) {
  ir_type from = type_of(p, p->k->ins[v].arg[0]), to = type_of(p, v);
  int opcode = ir_is_float(from) ? OpFConvert : ir_is_float(to) ? OpConvertSToF : OpSConvert;
  p->id[v] = unary(p, opcode, to, p->id[p->k->ins[v].arg[0]]);
  return true;
}

/* ---- variables and arrays ---- */

static bool local(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  p->id[v] = spirv_array(&p->m, spirv_memory_type(i->element), (uint32_t)i->imm);
  return true;
}

static bool variable(printer *p, ir_val v) {
  uint32_t t = spirv_pointer_type(&p->m, FunctionClass, type_of(p, v));
  p->id[v] = new_id(p);
  SPIRV_OP(&p->m.variables, OpVariable, t, p->id[v], FunctionClass);
  EMIT(OpStore, p->id[v], p->id[p->k->ins[v].arg[0]]);
  return true;
}

static bool get(printer *p, ir_val v) {
  p->id[v] = unary(p, OpLoad, type_of(p, v), p->id[p->k->ins[v].arg[0]]);
  return true;
}

static bool set(printer *p, ir_val v) {
  EMIT(OpStore, p->id[p->k->ins[v].arg[0]], p->id[p->k->ins[v].arg[1]]);
  return true;
}

/* ---- memory ---- */

/* An element of a BUFFER or LOCAL. */
typedef struct {
  uint32_t pointer;
  int storage_class, element;
} location;

static location at(printer *p, ir_val array, ir_val index) {
  const ir_ins *a = &p->k->ins[array];
  location r = {.storage_class = a->op == IR_LOCAL ? WorkgroupClass : CrossWorkgroupClass, .element = a->element};
  uint32_t t = spirv_pointer_type(&p->m, r.storage_class, spirv_memory_type(r.element)), i = p->id[index];
  if (type_of(p, index) == IR_I32) i = unary(p, OpSConvert, IR_I64, i);
  r.pointer = new_id(p);
  EMIT(a->op == IR_LOCAL ? OpInBoundsAccessChain : OpInBoundsPtrAccessChain, t, r.pointer, p->id[array], i);
  return r;
}

static location after(printer *p, location l, int elements) {
  uint32_t t = spirv_pointer_type(&p->m, l.storage_class, spirv_memory_type(l.element)), by = spirv_small(&p->m, elements), r = new_id(p);
  if (!elements) return l;
  EMIT(OpInBoundsPtrAccessChain, t, r, l.pointer, by);
  l.pointer = r;
  return l;
}

static uint32_t as_half_pointer(printer *p, location l) {
  uint32_t t = spirv_pointer_type(&p->m, l.storage_class, IR_F16), r = new_id(p);
  EMIT(OpBitcast, t, r, l.pointer);
  return r;
}

/* As it lies in memory. */
static void raw_load(printer *p, location l, uint32_t r) {
  uint32_t t = type_id(p, spirv_memory_type(l.element));
  EMIT(OpLoad, t, r, l.pointer, Aligned, (uint32_t)ir_type_bytes((ir_type)l.element));
}

static void raw_store(printer *p, location l, uint32_t value) {
  EMIT(OpStore, l.pointer, value, Aligned, (uint32_t)ir_type_bytes((ir_type)l.element));
}

static void load_half(printer *p, location l, uint32_t r) {
  uint32_t t = type_id(p, IR_F32), from = as_half_pointer(p, l), zero = spirv_small(&p->m, 0);
  EMIT(OpExtInst, t, r, p->m.cl, ClVloadHalf, zero, from);
}

static void load_bf16(printer *p, location l, uint32_t r) {
  uint32_t t = type_id(p, IR_F32), raw = new_id(p);
  raw_load(p, l, raw);
  uint32_t wide = unary(p, OpUConvert, IR_I32, raw), bits = binary(p, OpShiftLeftLogical, IR_I32, wide, i32(p, 16));
  EMIT(OpBitcast, t, r, bits);
}

static void load_element(printer *p, location l, uint32_t r) {
  if (l.element == IR_F16) load_half(p, l, r);
  else if (l.element == IR_BF16) load_bf16(p, l, r);
  else raw_load(p, l, r);
}

/* The upper half of an f32, rounded to nearest, even; NaN stays NaN. */
static uint32_t to_bf16(printer *p, uint32_t value) {
  uint32_t bits = unary(p, OpBitcast, IR_I32, value), sixteen = i32(p, 16), upper = binary(p, OpShiftRightLogical, IR_I32, bits, sixteen);
  uint32_t odd = binary(p, OpBitwiseAnd, IR_I32, upper, i32(p, 1));
  uint32_t sum = binary(p, OpIAdd, IR_I32, binary(p, OpIAdd, IR_I32, bits, i32(p, 0x7fff)), odd);
  uint32_t rounded = binary(p, OpShiftRightLogical, IR_I32, sum, sixteen), quiet = binary(p, OpBitwiseOr, IR_I32, upper, i32(p, 0x40));
  uint32_t nan = binary(p, OpFUnordNotEqual, IR_BOOL, value, value), t = type_id(p, IR_I32), r = new_id(p);
  EMIT(OpSelect, t, r, nan, quiet, rounded);
  return unary(p, OpUConvert, SPIRV_U16, r);
}

static void store_element(printer *p, location l, uint32_t value) {
  if (l.element == IR_F16) {
    uint32_t t = type_id(p, IR_VOID), to = as_half_pointer(p, l), zero = spirv_small(&p->m, 0), r = new_id(p);
    EMIT(OpExtInst, t, r, p->m.cl, ClVstoreHalfR, value, zero, to, RoundToNearestEven);
  } else raw_store(p, l, l.element == IR_BF16 ? to_bf16(p, value) : value);
}

/* A selection around a masked access; nothing where there is no mask. */
typedef struct {
  uint32_t before, merge;
} masked;

static masked begin_mask(printer *p, ir_val mask) {
  masked s = {.before = p->here};
  if (mask == IR_NONE) return s;
  uint32_t inside = new_id(p);
  s.merge = new_id(p);
  EMIT(OpSelectionMerge, s.merge, 0);
  EMIT(OpBranchConditional, p->id[mask], inside, s.merge);
  start_block(p, inside);
  return s;
}

static void end_mask(printer *p, masked s) {
  if (!s.merge) return;
  EMIT(OpBranch, s.merge);
  start_block(p, s.merge);
}

static uint32_t new_ids(printer *p, int n) {
  uint32_t first = p->m.bound;
  p->m.bound += (uint32_t)n;
  return first;
}

static bool load(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  bool select = i->arg[2] != IR_NONE;
  uint32_t result = new_ids(p, i->width), inside = select ? new_ids(p, i->width) : result, t = type_id(p, i->type);
  masked s = begin_mask(p, i->arg[2]);
  location from = at(p, i->arg[0], i->arg[1]);
  for (int j = 0; j < i->width; j++) load_element(p, after(p, from, j), inside + (uint32_t)j);
  uint32_t read = p->here;
  end_mask(p, s);
  for (int j = 0; select && j < i->width; j++) EMIT(OpPhi, t, result + (uint32_t)j, inside + (uint32_t)j, read, spirv_zero(&p->m, i->type), s.before);
  p->id[v] = result;
  return true;
}

static bool element(printer *p, ir_val v) {
  p->id[v] = p->id[p->k->ins[v].arg[0]] + (uint32_t)p->k->ins[v].imm;
  return true;
}

static bool store(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[2]);
  location to = at(p, i->arg[0], i->arg[1]);
  for (int j = 0; j < i->width; j++) store_element(p, after(p, to, j), p->id[p->k->pool[i->imm + j]]);
  end_mask(p, s);
  return true;
}

static bool copy(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[4]);
  location to = at(p, i->arg[0], i->arg[1]), from = at(p, i->arg[2], i->arg[3]);
  for (int j = 0; j < i->width; j++) {
    uint32_t value = new_id(p);
    raw_load(p, after(p, from, j), value);
    raw_store(p, after(p, to, j), value);
  }
  end_mask(p, s);
  return true;
}

/* ---- atomics ---- */

/* old = *to; while ((seen = compare_exchange(to, old, old + value)) != old) old = seen; */
static void add_by_exchange(printer *p, location to, uint32_t value) {
  int integer = to.element == IR_F64 ? IR_I64 : IR_I32;
  uint32_t t = type_id(p, integer), pt = spirv_pointer_type(&p->m, to.storage_class, integer), pointer = new_id(p), first = new_id(p), old = new_id(p), seen = new_id(p);
  uint32_t header = new_id(p), next = new_id(p), merge = new_id(p), scope = i32(p, DeviceScope), relaxed = i32(p, Relaxed), before = p->here;
  if (integer == IR_I64) p->m.needs[SPIRV_INT64_ATOMICS] = true;
  EMIT(OpBitcast, pt, pointer, to.pointer);
  EMIT(OpAtomicLoad, t, first, pointer, scope, relaxed);
  EMIT(OpBranch, header);
  start_block(p, header);
  EMIT(OpPhi, t, old, first, before, seen, next);
  uint32_t sum = binary(p, OpFAdd, to.element, unary(p, OpBitcast, to.element, old), value), bits = unary(p, OpBitcast, integer, sum);
  EMIT(OpAtomicCompareExchange, t, seen, pointer, scope, relaxed, relaxed, bits, old);
  uint32_t done = binary(p, OpIEqual, IR_BOOL, seen, old);
  EMIT(OpLoopMerge, merge, next, 0);
  EMIT(OpBranchConditional, done, merge, next);
  start_block(p, next);
  EMIT(OpBranch, header);
  start_block(p, merge);
}

static bool atomic_add(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[2]);
  location to = at(p, i->arg[0], i->arg[1]);
  uint32_t value = p->id[i->arg[3]];
  if (p->float_atomics) {
    uint32_t t = type_id(p, to.element), scope = i32(p, DeviceScope), relaxed = i32(p, Relaxed), r = new_id(p);
    p->m.needs[to.element == IR_F64 ? SPIRV_ATOMIC_F64 : SPIRV_ATOMIC_F32] = true;
    EMIT(OpAtomicFAddEXT, t, r, to.pointer, scope, relaxed, value);
  } else add_by_exchange(p, to, value);
  end_mask(p, s);
  return true;
}

/* ---- lanes ---- */

static bool barrier(printer *p, ir_val v) {
  bool narrow = p->by_subgroup && !p->k->ins[v].imm;
  uint32_t scope = i32(p, narrow ? SubgroupScope : WorkgroupScope), semantics = i32(p, AcquireReleaseWorkgroupMemory);
  EMIT(OpControlBarrier, scope, scope, semantics);
  return true;
}

static uint32_t shuffle_xor(printer *p, int type, uint32_t value, uint32_t with) {
  return binary(p, OpSubgroupShuffleXorINTEL, type, value, i32(p, with));
}

static bool across(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  uint32_t value = p->id[i->arg[0]];
  if (p->k->lanes > 1 && !p->subgroups) return wrong(p, v, "needs sub-groups; legalise the kernel");
  if (p->k->lanes > 1) p->m.needs[SPIRV_SUBGROUP_SHUFFLE] = true;
  if (p->k->lanes > 1 && i->op == IR_SHUFFLE) value = binary(p, OpSubgroupShuffleINTEL, i->type, value, p->id[i->arg[1]]);
  if (i->op == IR_SHUFFLE_XOR && i->imm) value = shuffle_xor(p, i->type, value, (uint32_t)i->imm);
  for (int d = p->k->lanes / 2; i->op == IR_REDUCE_ADD && d; d /= 2) value = binary(p, OpFAdd, i->type, value, shuffle_xor(p, i->type, value, (uint32_t)d));
  p->id[v] = value;
  return true;
}

/* ---- control ---- */

static block *push(printer *p, ir_val v) {
  if (p->depth < MAX_DEPTH) return &p->open[p->depth++];
  wrong(p, v, "more than 64 open blocks");
  return NULL;
}

static bool loop(printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  block *b = push(p, v);
  if (!b) return false;
  uint32_t before = p->here, inside = new_id(p);
  *b = (block){.header = new_id(p), .next = new_id(p), .merge = new_id(p), .counter = new_id(p), .stepped = new_id(p), .step = p->id[i->arg[2]], .type = type_id(p, i->type)};
  EMIT(OpBranch, b->header);
  start_block(p, b->header);
  EMIT(OpPhi, b->type, b->counter, p->id[i->arg[0]], before, b->stepped, b->next);
  uint32_t more = binary(p, OpSLessThan, IR_BOOL, b->counter, p->id[i->arg[1]]);
  EMIT(OpLoopMerge, b->merge, b->next, 0);
  EMIT(OpBranchConditional, more, inside, b->merge);
  start_block(p, inside);
  p->id[v] = b->counter;
  return true;
}

static bool begin_if(printer *p, ir_val v) {
  block *b = push(p, v);
  if (!b) return false;
  uint32_t inside = new_id(p);
  *b = (block){.next = new_id(p), .merge = new_id(p)};
  EMIT(OpSelectionMerge, b->merge, 0);
  EMIT(OpBranchConditional, p->id[p->k->ins[v].arg[0]], inside, b->next);
  start_block(p, inside);
  return true;
}

static bool begin_else(printer *p, ir_val v) {
  (void)v;
  block *b = &p->open[p->depth - 1];
  EMIT(OpBranch, b->merge);
  start_block(p, b->next);
  b->next = 0;
  return true;
}

static bool end(printer *p, ir_val v) {
  (void)v;
  block *b = &p->open[--p->depth];
  if (b->next) {
    EMIT(OpBranch, b->header ? b->next : b->merge);
    start_block(p, b->next);
  }
  if (b->header) EMIT(OpIAdd, b->type, b->stepped, b->counter, b->step);
  EMIT(OpBranch, b->header ? b->header : b->merge);
  start_block(p, b->merge);
  return true;
}

/* ---- the whole kernel ---- */

static bool nothing(printer *p, ir_val v) { return (void)p, (void)v, true; }

static bool (*const print[IR_OP_COUNT])(printer *p, ir_val v) = {
    [IR_BUFFER] = parameter, [IR_SCALAR] = parameter, [IR_GROUP] = place, [IR_SUBGROUP] = place, [IR_LANE] = place,
    [IR_INT] = constant, [IR_REAL] = constant, [IR_ADD] = arithmetic, [IR_SUB] = arithmetic, [IR_MUL] = arithmetic, [IR_DIV] = arithmetic,
    [IR_MOD] = arithmetic, [IR_MIN] = arithmetic, [IR_MAX] = arithmetic, [IR_NEG] = arithmetic, [IR_ABS] = arithmetic, [IR_FMA] = arithmetic,
    [IR_SQRT] = arithmetic, [IR_EXP] = arithmetic, [IR_SIN] = arithmetic, [IR_COS] = arithmetic, [IR_LT] = arithmetic, [IR_LE] = arithmetic,
    [IR_EQ] = arithmetic, [IR_AND] = arithmetic, [IR_OR] = arithmetic, [IR_NOT] = logical_not, [IR_SELECT] = arithmetic, [IR_CAST] = cast,
    [IR_LOCAL] = local, [IR_VAR] = variable, [IR_GET] = get, [IR_SET] = set, [IR_LOAD] = load, [IR_ELEMENT] = element, [IR_STORE] = store,
    [IR_ATOMIC_ADD] = atomic_add, [IR_COPY] = copy, [IR_COPY_COMMIT] = nothing, [IR_COPY_WAIT] = nothing, [IR_BARRIER] = barrier,
    [IR_SHUFFLE] = across, [IR_SHUFFLE_XOR] = across, [IR_REDUCE_ADD] = across, [IR_LOOP] = loop, [IR_IF] = begin_if, [IR_ELSE] = begin_else,
    [IR_END] = end};

/* Whether lanes or sub-groups matter one by one; if not, the words need nothing of sub-groups but their size. */
static bool by_subgroup(const ir_kernel *k) {
  bool used = k->subgroups > 1;
  for (int32_t v = 0; v < k->n; v++) {
    ir_op op = (ir_op)k->ins[v].op;
    used |= op == IR_SHUFFLE || op == IR_SHUFFLE_XOR || op == IR_REDUCE_ADD || (op == IR_BARRIER && !k->ins[v].imm);
  }
  return used;
}

bool clb_print_spirv(const ir_kernel *k, const clb_dialect *dialect, clb_text *out, char *error, size_t size) {
  bool subgroups = dialect->subgroups && k->lanes > 1;
  printer p = {.k = k, .subgroups = subgroups, .by_subgroup = subgroups && by_subgroup(k), .float_atomics = dialect->float_atomics, .error = error, .size = size};
  bool ok = (p.id = calloc((size_t)k->n + 1, sizeof *p.id)) != NULL;
  if (!ok) snprintf(error, size, "SPIR-V: out of memory");
  spirv_begin(&p.m);
  p.here = p.m.entry;
  for (ir_val v = 0; ok && v < k->n; v++) ok = print[k->ins[v].op](&p, v);
  if (ok) spirv_assemble(&p.m, k->name, (uint32_t)(k->lanes * k->subgroups), subgroups ? (uint32_t)k->lanes : 0, out);
  spirv_free(&p.m);
  free(p.id);
  return ok && !out->failed;
}
