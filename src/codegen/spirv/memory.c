/* src/codegen/spirv/memory.c - IR -> SPIR-V: variables, arrays, loads, stores, copies and atomics.

   A masked access is in its own selection, so that a lane that is out of range accesses nothing.
   f16 and bf16 arrays are 16-bit integers; f16 is converted through a pointer, bf16 by integer
   arithmetic. */
#include "src/codegen/spirv/spirv.h"

/* ---- variables and arrays ---- */

bool clb_spirv_print_local(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  p->id[v] = clb_spirv_array(&p->m, spirv_memory_type(i->element), (uint32_t)i->imm);
  return true;
}

bool clb_spirv_print_var(spirv_printer *p, ir_val v) {
  uint32_t t = clb_spirv_pointer_type(&p->m, FunctionClass, spirv_type_of(p, v));
  p->id[v] = spirv_id(&p->m);
  SPIRV_OP(&p->m.variables, OpVariable, t, p->id[v], FunctionClass);
  EMIT(OpStore, p->id[v], p->id[p->k->ins[v].arg[0]]);
  return true;
}

bool clb_spirv_print_get(spirv_printer *p, ir_val v) {
  p->id[v] = clb_spirv_unary(p, OpLoad, spirv_type_of(p, v), p->id[p->k->ins[v].arg[0]]);
  return true;
}

bool clb_spirv_print_set(spirv_printer *p, ir_val v) {
  EMIT(OpStore, p->id[p->k->ins[v].arg[0]], p->id[p->k->ins[v].arg[1]]);
  return true;
}

/* ---- memory ---- */

/* An element of a BUFFER or LOCAL. */
typedef struct {
  uint32_t pointer;
  int storage_class, element;
} location;

static location element_of(spirv_printer *p, ir_val array, uint32_t index) {
  const ir_ins *a = &p->k->ins[array];
  location r = {.storage_class = a->op == IR_LOCAL ? WorkgroupClass : CrossWorkgroupClass,
                .element = a->element};
  uint32_t t = clb_spirv_pointer_type(&p->m, r.storage_class, spirv_memory_type(r.element));
  r.pointer = spirv_id(&p->m);
  EMIT(a->op == IR_LOCAL ? OpInBoundsAccessChain : OpInBoundsPtrAccessChain, t, r.pointer,
       p->id[array], index);
  return r;
}

static location beyond(spirv_printer *p, location l, uint32_t elements) {
  uint32_t t = clb_spirv_pointer_type(&p->m, l.storage_class, spirv_memory_type(l.element)),
           r = spirv_id(&p->m);
  EMIT(OpInBoundsPtrAccessChain, t, r, l.pointer, elements);
  l.pointer = r;
  return l;
}

static location after(spirv_printer *p, location l, int elements) {
  return elements ? beyond(p, l, clb_spirv_small(&p->m, elements)) : l;
}

static bool in_loop(const spirv_printer *p) {
  for (int d = 0; d < p->depth; d++)
    if (p->open[d].header) return true;
  return false;
}

/* The constant step of an index from lane to lane; 0: it has none. */
static int64_t step(const ir_kernel *k, ir_val index) {
  const ir_ins *i = &k->ins[index];
  return i->shape == IR_AFFINE && k->ins[i->stride].op == IR_INT ? k->ins[i->stride].imm : 0;
}

/* In loops, the address of lane 0's element changes from turn to turn, and is a scalar: the lanes'
   addresses are a single addition away from it. Elsewhere compilers do as well by themselves, and
   where lanes access a few adjacent elements each: arrays share their offsets then. */
static location at(spirv_printer *p, ir_val array, ir_val index, int width) {
  const int64_t apart = step(p->k, index);
  const bool adjacent = width > 1 && apart == width;
  if (p->k->ins[array].op == IR_BUFFER && apart && !adjacent && in_loop(p)) {
    uint32_t lane = clb_spirv_unary(p, OpSConvert, IR_I64, p->id[p->lane]);
    if (apart != 1)
      lane = clb_spirv_binary(p, OpIMul, IR_I64, lane,
                              clb_spirv_constant(&p->m, IR_I64, (uint64_t)apart));
    return beyond(p, element_of(p, array, p->first[index]), lane);
  }
  uint32_t i = p->id[index];
  if (spirv_type_of(p, index) == IR_I32) i = clb_spirv_unary(p, OpSConvert, IR_I64, i);
  return element_of(p, array, i);
}

static uint32_t as_pointer(spirv_printer *p, location l, int type) {
  uint32_t t = clb_spirv_pointer_type(&p->m, l.storage_class, type), r = spirv_id(&p->m);
  EMIT(OpBitcast, t, r, l.pointer);
  return r;
}

/* Loads the element as it is in memory. */
static void raw_load(spirv_printer *p, location l, uint32_t r) {
  uint32_t t = clb_spirv_type_id(&p->m, spirv_memory_type(l.element));
  EMIT(OpLoad, t, r, l.pointer, Aligned, (uint32_t)ir_type_bytes((ir_type)l.element));
}

static void raw_store(spirv_printer *p, location l, uint32_t value) {
  EMIT(OpStore, l.pointer, value, Aligned, (uint32_t)ir_type_bytes((ir_type)l.element));
}

static void load_half(spirv_printer *p, location l, uint32_t r) {
  uint32_t t = clb_spirv_type_id(&p->m, IR_F32), from = as_pointer(p, l, IR_F16),
           zero = clb_spirv_small(&p->m, 0);
  EMIT(OpExtInst, t, r, p->m.cl, ClVloadHalf, zero, from);
}

static void load_bf16(spirv_printer *p, location l, uint32_t r) {
  uint32_t t = clb_spirv_type_id(&p->m, IR_F32), raw = spirv_id(&p->m);
  raw_load(p, l, raw);
  uint32_t wide = clb_spirv_unary(p, OpUConvert, IR_I32, raw),
           bits = clb_spirv_binary(p, OpShiftLeftLogical, IR_I32, wide, clb_spirv_i32(p, 16));
  EMIT(OpBitcast, t, r, bits);
}

static void load_element(spirv_printer *p, location l, uint32_t r) {
  if (l.element == IR_F16) load_half(p, l, r);
  else if (l.element == IR_BF16) load_bf16(p, l, r);
  else raw_load(p, l, r);
}

/* The upper half of an f32, rounded to nearest, even; NaN stays NaN. */
static uint32_t to_bf16(spirv_printer *p, uint32_t value) {
  uint32_t bits = clb_spirv_unary(p, OpBitcast, IR_I32, value), sixteen = clb_spirv_i32(p, 16),
           upper = clb_spirv_binary(p, OpShiftRightLogical, IR_I32, bits, sixteen);
  uint32_t odd = clb_spirv_binary(p, OpBitwiseAnd, IR_I32, upper, clb_spirv_i32(p, 1));
  uint32_t sum = clb_spirv_binary(
      p, OpIAdd, IR_I32, clb_spirv_binary(p, OpIAdd, IR_I32, bits, clb_spirv_i32(p, 0x7fff)), odd);
  uint32_t rounded = clb_spirv_binary(p, OpShiftRightLogical, IR_I32, sum, sixteen),
           quiet = clb_spirv_binary(p, OpBitwiseOr, IR_I32, upper, clb_spirv_i32(p, 0x40));
  uint32_t nan = clb_spirv_binary(p, OpFUnordNotEqual, IR_BOOL, value, value),
           t = clb_spirv_type_id(&p->m, IR_I32), r = spirv_id(&p->m);
  EMIT(OpSelect, t, r, nan, quiet, rounded);
  return clb_spirv_unary(p, OpUConvert, SPIRV_U16, r);
}

static void store_element(spirv_printer *p, location l, uint32_t value) {
  if (l.element == IR_F16) {
    uint32_t t = clb_spirv_type_id(&p->m, IR_VOID), to = as_pointer(p, l, IR_F16),
             zero = clb_spirv_small(&p->m, 0), r = spirv_id(&p->m);
    EMIT(OpExtInst, t, r, p->m.cl, ClVstoreHalfR, value, zero, to, RoundToNearestEven);
  } else raw_store(p, l, l.element == IR_BF16 ? to_bf16(p, value) : value);
}

/* A selection around a masked access; nothing if there is no mask. */
typedef struct {
  uint32_t before, merge;
} masked;

static masked begin_mask(spirv_printer *p, ir_val mask) {
  masked s = {.before = p->here};
  if (mask == IR_NONE) return s;
  uint32_t inside = spirv_id(&p->m);
  s.merge = spirv_id(&p->m);
  EMIT(OpSelectionMerge, s.merge, 0);
  EMIT(OpBranchConditional, p->id[mask], inside, s.merge);
  clb_spirv_start_block(p, inside);
  return s;
}

static void end_mask(spirv_printer *p, masked s) {
  if (!s.merge) return;
  EMIT(OpBranch, s.merge);
  clb_spirv_start_block(p, s.merge);
}

static uint32_t new_ids(spirv_printer *p, int n) {
  uint32_t first = p->m.bound;
  p->m.bound += (uint32_t)n;
  return first;
}

/* Adjacent elements of all lanes are a block: one address for the sub-group. Blocks of 16-bit
   elements would have to start at a multiple of 4 bytes. */
static bool is_block(const spirv_printer *p, const ir_ins *load) {
  const ir_ins *a = &p->k->ins[load->arg[0]];
  return p->blocks && a->op == IR_BUFFER && load->width == 1 && load->arg[2] == IR_NONE &&
         ir_type_bytes((ir_type)a->element) >= 4 && step(p->k, load->arg[1]) == 1;
}

static uint32_t load_block(spirv_printer *p, const ir_ins *load) {
  location from = element_of(p, load->arg[0], p->first[load->arg[1]]);
  int integer = ir_type_bytes((ir_type)from.element) == 8 ? IR_I64 : IR_I32;
  uint32_t raw =
      clb_spirv_unary(p, OpSubgroupBlockReadINTEL, integer,
                      from.element == integer ? from.pointer : as_pointer(p, from, integer));
  p->m.needs[SPIRV_SUBGROUP_BLOCKS] = true;
  return from.element == integer ? raw : clb_spirv_unary(p, OpBitcast, from.element, raw);
}

bool clb_spirv_print_load(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  if (is_block(p, i)) {
    p->id[v] = load_block(p, i);
    return true;
  }
  bool select = i->arg[2] != IR_NONE;
  uint32_t result = new_ids(p, i->width), inside = select ? new_ids(p, i->width) : result,
           t = clb_spirv_type_id(&p->m, i->type);
  masked s = begin_mask(p, i->arg[2]);
  location from = at(p, i->arg[0], i->arg[1], i->width);
  for (int j = 0; j < i->width; j++) load_element(p, after(p, from, j), inside + (uint32_t)j);
  uint32_t read = p->here;
  end_mask(p, s);
  for (int j = 0; select && j < i->width; j++)
    EMIT(OpPhi, t, result + (uint32_t)j, inside + (uint32_t)j, read, clb_spirv_zero(&p->m, i->type),
         s.before);
  p->id[v] = result;
  return true;
}

bool clb_spirv_print_element(spirv_printer *p, ir_val v) {
  p->id[v] = p->id[p->k->ins[v].arg[0]] + (uint32_t)p->k->ins[v].imm;
  return true;
}

bool clb_spirv_print_store(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[2]);
  location to = at(p, i->arg[0], i->arg[1], i->width);
  for (int j = 0; j < i->width; j++)
    store_element(p, after(p, to, j), p->id[p->k->pool[i->imm + j]]);
  end_mask(p, s);
  return true;
}

bool clb_spirv_print_copy(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[4]);
  location to = at(p, i->arg[0], i->arg[1], i->width), from = at(p, i->arg[2], i->arg[3], i->width);
  for (int j = 0; j < i->width; j++) {
    uint32_t value = spirv_id(&p->m);
    raw_load(p, after(p, from, j), value);
    raw_store(p, after(p, to, j), value);
  }
  end_mask(p, s);
  return true;
}

/* ---- atomics ---- */

/* old = *to; while ((seen = compare_exchange(to, old, old + value)) != old) old = seen; */
static void add_by_exchange(spirv_printer *p, location to, uint32_t value) {
  int integer = to.element == IR_F64 ? IR_I64 : IR_I32;
  uint32_t t = clb_spirv_type_id(&p->m, integer),
           pt = clb_spirv_pointer_type(&p->m, to.storage_class, integer), pointer = spirv_id(&p->m),
           first = spirv_id(&p->m), old = spirv_id(&p->m), seen = spirv_id(&p->m);
  uint32_t header = spirv_id(&p->m), next = spirv_id(&p->m), merge = spirv_id(&p->m),
           scope = clb_spirv_i32(p, DeviceScope), relaxed = clb_spirv_i32(p, Relaxed),
           before = p->here;
  if (integer == IR_I64) p->m.needs[SPIRV_INT64_ATOMICS] = true;
  EMIT(OpBitcast, pt, pointer, to.pointer);
  EMIT(OpAtomicLoad, t, first, pointer, scope, relaxed);
  EMIT(OpBranch, header);
  clb_spirv_start_block(p, header);
  EMIT(OpPhi, t, old, first, before, seen, next);
  uint32_t sum = clb_spirv_binary(p, OpFAdd, to.element,
                                  clb_spirv_unary(p, OpBitcast, to.element, old), value),
           bits = clb_spirv_unary(p, OpBitcast, integer, sum);
  EMIT(OpAtomicCompareExchange, t, seen, pointer, scope, relaxed, relaxed, bits, old);
  uint32_t done = clb_spirv_binary(p, OpIEqual, IR_BOOL, seen, old);
  EMIT(OpLoopMerge, merge, next, 0);
  EMIT(OpBranchConditional, done, merge, next);
  clb_spirv_start_block(p, next);
  EMIT(OpBranch, header);
  clb_spirv_start_block(p, merge);
}

static void add_element(spirv_printer *p, location to, uint32_t value) {
  if (!p->float_atomics) {
    add_by_exchange(p, to, value);
    return;
  }
  uint32_t t = clb_spirv_type_id(&p->m, to.element), scope = clb_spirv_i32(p, DeviceScope),
           relaxed = clb_spirv_i32(p, Relaxed), r = spirv_id(&p->m);
  p->m.needs[to.element == IR_F64 ? SPIRV_ATOMIC_F64 : SPIRV_ATOMIC_F32] = true;
  EMIT(OpAtomicFAddEXT, t, r, to.pointer, scope, relaxed, value);
}

bool clb_spirv_print_atomic_add(spirv_printer *p, ir_val v) {
  const ir_ins *i = &p->k->ins[v];
  masked s = begin_mask(p, i->arg[2]);
  location first = at(p, i->arg[0], i->arg[1], i->width);
  for (int j = 0; j < i->width; j++)
    add_element(p, after(p, first, j), p->id[p->k->pool[i->imm + j]]);
  end_mask(p, s);
  return true;
}
