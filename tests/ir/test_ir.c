/* tests/ir/test_ir.c - the IR by hand: the builder, every rule of the verifier, counts, bytes, the
   interpreter, the listing. */
#include <float.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "src/codegen/codegen.h"
#include "tests/test.h"

static void finish(ir_kernel *k) {
  char error[300];
  if (!ir_finish(k)) fail_msg("not built: %s", k->error);
  if (!ir_verify(k, error, sizeof error)) fail_msg("not valid: %s", error);
}

static void run(const ir_kernel *k, const ir_arg *arg, int64_t groups) {
  char error[300];
  if (!ir_run(k, arg, NULL, 0, groups, error, sizeof error)) fail_msg("%s", error);
}

static int count_op(const ir_kernel *k, ir_op op) {
  int n = 0;
  for (int32_t v = 0; v < k->n; v++) n += k->ins[v].op == op;
  return n;
}

/* ---- builder ---- */

static void test_same_expression_is_same_value(void **state) {
  ir_kernel k;
  (void)state;
  ir_begin(&k, "k", 8, 1, 8);
  ir_val x = ir_buffer(&k, IR_F32, false), y = ir_buffer(&k, IR_F32, true), lane = ir_lane(&k);
  ir_val a = ir_load(&k, x, lane, IR_NONE), b = ir_load(&k, x, lane, IR_NONE);
  assert_int_equal(a, b);
  assert_int_equal(ir_add(&k, a, lane == 0 ? a : ir_real(&k, IR_F32, 2)),
                   ir_add(&k, ir_real(&k, IR_F32, 2), a));
  assert_int_equal(ir_add(&k, ir_int(&k, IR_I32, 2), ir_int(&k, IR_I32, 3)), ir_int(&k, IR_I32, 5));
  assert_int_equal(ir_int(&k, IR_I32, INT64_C(0x100000001)), ir_int(&k, IR_I32, 1));
  ir_val w = ir_load(&k, y, lane, IR_NONE);
  assert_int_not_equal(w, ir_load(&k, y, lane, IR_NONE)); /* y may change */
  ir_val mask = ir_2(&k, IR_LT, ir_group(&k), ir_int(&k, IR_I32, 3));
  ir_if(&k, mask);
  ir_val inner = ir_mul(&k, a, a);
  ir_else(&k);
  assert_int_not_equal(inner, ir_mul(&k, a, a));
  ir_end(&k);
  assert_int_not_equal(inner, ir_mul(&k, a, a));
  ir_store(&k, y, lane, IR_NONE, a);
  finish(&k);
  assert_int_equal(count_op(&k, IR_LOAD), 1);
  assert_int_equal(count_op(&k, IR_MUL), 0);
  ir_free(&k);
}

static void test_shapes(void **state) {
  ir_kernel k;
  (void)state;
  ir_begin(&k, "k", 8, 2, 16);
  ir_val lane = ir_lane(&k), group = ir_group(&k), four = ir_int(&k, IR_I32, 4);
  ir_val at = ir_add(&k, ir_mul(&k, group, four), ir_mul(&k, lane, four));
  assert_int_equal(k.ins[at].shape, IR_AFFINE);
  assert_int_equal(ir_int_value(&k, k.ins[at].stride, 0), 4);
  ir_val by_group = ir_mul(&k, lane, group);
  assert_int_equal(k.ins[by_group].stride, group);
  ir_val wide = ir_cast(&k, IR_I64, by_group);
  assert_int_equal(k.ins[wide].shape, IR_AFFINE);
  assert_int_equal(k.ins[ir_mul(&k, lane, lane)].shape, IR_VARYING);
  assert_int_equal(k.ins[ir_sub(&k, four, lane)].shape, IR_AFFINE);
  assert_int_equal(k.ins[ir_2(&k, IR_MIN, lane, four)].shape, IR_VARYING);
  assert_int_equal(k.ins[ir_reduce_add(&k, ir_cast(&k, IR_F32, lane))].shape, IR_UNIFORM);
  assert_int_equal(k.ins[ir_shuffle(&k, lane, four)].shape, IR_UNIFORM);
  finish(&k);
  ir_free(&k);
}

static void test_first_mistake_is_kept(void **state) {
  ir_kernel k;
  (void)state;
  ir_begin(&k, "k", 8, 1, 8);
  ir_val i = ir_int(&k, IR_I32, 1), f = ir_real(&k, IR_F32, 1);
  assert_int_equal(ir_add(&k, i, f), 0);
  char first[sizeof k.error];
  memcpy(first, k.error, sizeof first);
  assert_non_null(strstr(first, "ADD"));
  ir_end(&k);
  ir_cast(&k, IR_BOOL, f);
  assert_string_equal(k.error, first);
  assert_false(ir_finish(&k));
  char error[300];
  assert_false(ir_verify(&k, error, sizeof error));
  ir_free(&k);
}

/* ---- verifier: a good kernel with one mistake ---- */

/* Nearly every op; at[op] is the index of its first instruction. */
static void good(ir_kernel *k, ir_val *at) {
  ir_val e[4], m;
  ir_begin(k, "good", 8, 2, 16);
  ir_val x = ir_buffer(k, IR_F32, false), y = ir_buffer(k, IR_F32, true), n = ir_scalar(k, IR_I32),
         local = ir_local(k, IR_F32, 64);
  ir_val lane = ir_lane(k), i = ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, 8)), lane);
  m = ir_2(k, IR_LT, i, n);
  ir_val a = ir_load(k, x, i, m);
  ir_load_wide(k, x, ir_mul(k, i, ir_int(k, IR_I32, 4)), m, 4, e);
  ir_val sum = ir_var(k, ir_real(k, IR_F32, 0.5), true);
  ir_val r = ir_reduce_add(k, a), loop = ir_loop(k, ir_int(k, IR_I32, 0), n, ir_int(k, IR_I32, 2));
  ir_val inner = ir_fma(k, a, e[0], e[1]);
  ir_if(k, ir_2(k, IR_LT, loop, ir_subgroup(k)));
  ir_set(k, sum, r);
  ir_else(k);
  ir_atomic_add(k, y, i, m, inner);
  ir_end(k);
  ir_end(k);
  ir_copy(k, local, lane, x, i, m, 1);
  ir_copy_commit(k);
  ir_copy_wait(k, 0);
  ir_prefetch(k, x, i, 1);
  ir_barrier(k, true);
  ir_val s = ir_shuffle(k, a, ir_int(k, IR_I32, 3)), t = ir_shuffle_xor(k, e[3], 4);
  ir_val c = ir_select(k, ir_1(k, IR_NOT, m), s, ir_1(k, IR_SQRT, t)), d = ir_cast(k, IR_I64, i),
         q = ir_2(k, IR_MOD, n, ir_int(k, IR_I32, 5));
  ir_store(k, y, d, ir_2(k, IR_AND, m, ir_2(k, IR_EQ, q, n)), c);
  ir_store_wide(k, y, i, m, 2, (ir_val[]){ir_get(k, sum), ir_load(k, local, lane, IR_NONE)});
  finish(k);
  for (int op = 0; op < IR_OP_COUNT; op++) at[op] = IR_NONE;
  for (int32_t v = k->n - 1; v >= 0; v--) at[k->ins[v].op] = v; /* the first of each */
}

/* The verifier must refuse k with all these words. */
static void refuse(ir_kernel *k, const char *word, const char *more) {
  char error[300];
  if (ir_verify(k, error, sizeof error)) fail_msg("accepted; should say '%s'", word);
  if (!strstr(error, word) || !strstr(error, more))
    fail_msg("says '%s', should say '%s' and '%s'", error, word, more);
}

static ir_val other(const ir_kernel *k, ir_op op, ir_type type) {
  for (int32_t v = 0; v < k->n; v++)
    if (k->ins[v].op == op && k->ins[v].type == type) return v;
  fail_msg("the good kernel has no %s of %s", ir_op_name(op), ir_type_name(type));
  return 0;
}

/* One field of the first `op` is set to `to`; the error must name the op and say `word`. */
typedef struct {
  ir_op op;
  size_t offset; /* of the field */
  int bytes;
  int64_t to;
  const char *word;
} spoil;
#define FIELD(name) offsetof(ir_ins, name), sizeof((ir_ins){0}.name)

static void test_fields(void **state) {
  static const spoil spoils[] = {
      {IR_BUFFER, FIELD(element), IR_BOOL, "element bool must be a number"},
      {IR_BUFFER, FIELD(element), 77, "element ? must be a number"},
      {IR_BUFFER, FIELD(imm), 3, "written 3 must be in 0 ... 2"},
      {IR_BUFFER, FIELD(type), IR_F32, "must be void"},
      {IR_SCALAR, FIELD(type), IR_BOOL, "type bool must be i32, i64, f32 or f64"},
      {IR_LOCAL, FIELD(imm), 0, "length 0 must be in 1"},
      {IR_LOCAL, FIELD(imm), INT64_C(1) << 40, "must be in 1 ... 2147483647"},
      {IR_GROUP, FIELD(type), IR_I64, "its type is i64, must be i32"},
      {IR_LANE, FIELD(shape), IR_UNIFORM, "only affine values have a stride"},
      {IR_LANE, FIELD(shape), 3, "shape 3"},
      {IR_INT, FIELD(imm), INT64_C(1) << 31, "i32 2147483648 must be in"},
      {IR_INT, FIELD(type), IR_F32, "must be bool, i32 or i64"},
      {IR_INT, FIELD(type), 9, "type 9"},
      {IR_INT, FIELD(width), 1, "width must be 0"},
      {IR_INT, FIELD(element), 1, "must be 0 where the op has no use"},
      {IR_INT, FIELD(unused), 1, "must be 0 where the op has no use"},
      {IR_GROUP, FIELD(imm), 1, "must be 0 where the op has no use"},
      {IR_GROUP, FIELD(arg[0]), 0, "must be none: it takes 0"},
      {IR_GROUP, FIELD(stride), 0, "only affine values have a stride"},
      {IR_ADD, FIELD(arg[1]), 1, "which has no value"},
      {IR_ADD, FIELD(arg[0]), -1, "must be an earlier instruction"},
      {IR_ADD, FIELD(arg[0]), 100000, "must be an earlier instruction"},
      {IR_ADD, FIELD(type), IR_F32, "its type is f32, must be i32"},
      {IR_ADD, FIELD(op), IR_AND, "is i32, must be bool"},
      {IR_ADD, FIELD(op), IR_OP_COUNT, "there is no op"},
      {IR_FMA, FIELD(op), IR_SELECT, "must be bool"},
      {IR_FMA, FIELD(shape), IR_UNIFORM, "must not be called uniform"},
      {IR_FMA, FIELD(shape), IR_AFFINE, "must be an earlier instruction"},
      {IR_FMA, FIELD(scope), -1, "scope -1 must be"},
      {IR_LT, FIELD(type), IR_I32, "its type is i32, must be bool"},
      {IR_SQRT, FIELD(op), IR_NOT, "is f32, must be bool"},
      {IR_CAST, FIELD(type), IR_I32, "i32 to i32 must be between different"},
      {IR_CAST, FIELD(type), IR_BOOL, "i32 to bool must be"},
      {IR_LOAD, FIELD(arg[0]), 2, "must be a BUFFER or LOCAL"},
      {IR_LOAD, FIELD(arg[1]), 0, "which has no value"},
      {IR_LOAD, FIELD(arg[2]), 2, "is i32, must be bool"},
      {IR_LOAD, FIELD(type), IR_F64, "its type is f64, must be f32"},
      {IR_LOAD, FIELD(imm), 1, "aligned loads are of 8 or 16 bytes, not of 1 of f32"},
      {IR_LOAD, FIELD(imm), 2, "imm 2 must be in 0 ... 1"},
      {IR_LOAD, FIELD(width), 0, "width 0 must be in 1 ... 16"},
      {IR_LOAD, FIELD(width), 17, "width 17 must be in 1 ... 16"},
      {IR_LOAD, FIELD(shape), IR_UNIFORM, "must not be called uniform"},
      {IR_ELEMENT, FIELD(imm), 4, "element 4 must be in 0 ... 3"},
      {IR_ELEMENT, FIELD(arg[0]), 4, "must be a LOAD of width 2"},
      {IR_STORE, FIELD(arg[0]), 0, "must be declared written"},
      {IR_STORE, FIELD(arg[0]), 2, "must be a BUFFER or LOCAL"},
      {IR_STORE, FIELD(imm), 4, "must lie in the pool of 4"},
      {IR_STORE, FIELD(imm), -1, "must lie in the pool of 4"},
      {IR_STORE, FIELD(imm), INT64_MAX, "must lie in the pool of 4"},
      {IR_STORE, FIELD(shape), IR_VARYING, "its shape must be uniform"},
      {IR_ATOMIC_ADD, FIELD(arg[0]), 0, "must be declared written"},
      {IR_ATOMIC_ADD, FIELD(imm), 4, "must lie in the pool of 4"},
      {IR_ATOMIC_ADD, FIELD(element), 1, "aligned stores are of 8 or 16 bytes, not of 1 of f32"},
      {IR_COPY, FIELD(arg[0]), 1, "must go from a BUFFER to a LOCAL"},
      {IR_COPY, FIELD(arg[2]), 3, "must go from a BUFFER to a LOCAL"},
      {IR_COPY, FIELD(width), 0, "width 0"},
      {IR_COPY_WAIT, FIELD(imm), -1, "imm -1 must be in 0"},
      {IR_BARRIER, FIELD(imm), 3, "imm 3 must be in 0 ... 2"},
      {IR_PREFETCH, FIELD(arg[0]), 2, "must be a BUFFER or LOCAL"},
      {IR_PREFETCH, FIELD(width), 17, "width 17 must be in 1 ... 16"},
      {IR_SHUFFLE_XOR, FIELD(imm), 8, "imm 8 must be in 0 ... 7"},
      {IR_VAR, FIELD(shape), IR_AFFINE, "must be uniform or varying"},
      {IR_VAR, FIELD(type), IR_F64, "its type is f64, must be f32"},
      {IR_GET, FIELD(arg[0]), 2, "must be a VAR"},
      {IR_SET, FIELD(arg[0]), 2, "must be a VAR"},
      {IR_SET, FIELD(arg[1]), 2, "is i32, must be f32"},
      {IR_LOOP, FIELD(arg[0]), 0, "which has no value"},
      {IR_LOOP, FIELD(type), IR_I64, "is i32, must be i64"},
      {IR_IF, FIELD(arg[0]), 2, "is i32, must be bool"},
      {IR_ELSE, FIELD(type), IR_I32, "must be void"},
  };
  (void)state;
  for (size_t j = 0; j < sizeof spoils / sizeof *spoils; j++) {
    const spoil *s = &spoils[j];
    ir_kernel k;
    ir_val at[IR_OP_COUNT];
    char name[40];
    good(&k, at);
    if (s->op == IR_STORE && s->offset == offsetof(ir_ins, imm)) assert_int_equal(k.pool_n, 4);
    memcpy((char *)&k.ins[at[s->op]] + s->offset, &s->to,
           (size_t)s->bytes); /* little-endian, as every machine the tests run on */
    snprintf(name, sizeof name, "instruction %d ", (int)at[s->op]);
    refuse(&k, s->word, name);
    ir_free(&k);
  }
}

static void test_uniform_where_needed(void **state) {
  ir_kernel k;
  ir_val at[IR_OP_COUNT], varying;
  (void)state;
  good(&k, at);
  varying = other(&k, IR_LT, IR_BOOL);
  assert_int_equal(k.ins[varying].shape, IR_VARYING);
  k.ins[at[IR_IF]].arg[0] = varying;
  refuse(&k, "must be uniform; mask the loads and stores", "IF");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_LOOP]].arg[1] = at[IR_LANE];
  refuse(&k, "must be uniform", "LOOP");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_SET]].arg[1] = at[IR_LOAD];
  refuse(&k, "is uniform, so value", "SET");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_VAR]].arg[0] = at[IR_LOAD];
  refuse(&k, "must not be called uniform", "VAR");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_SHUFFLE]].arg[1] = at[IR_LANE];
  refuse(&k, "must not be called uniform", "SHUFFLE");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_SHUFFLE_XOR]].shape = IR_UNIFORM;
  refuse(&k, "must not be called uniform", "SHUFFLE_XOR");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_ADD]].stride = at[IR_GROUP];
  refuse(&k, "does not grow by", "ADD");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_ADD]].stride = at[IR_LANE];
  refuse(&k, "must be", "ADD");
  ir_free(&k);
}

static void test_shuffles_need_powers_of_two(void **state) {
  ir_kernel k;
  ir_val at[IR_OP_COUNT];
  (void)state;
  good(&k, at);
  k.lanes = 12;
  refuse(&k, "12 lanes must be a power of two", "REDUCE_ADD");
  ir_free(&k);
}

static void test_head(void **state) {
  static const char *const bad[] = {"", "9a", "a b", "a-b", "\xc3\xa9"};
  ir_kernel k;
  ir_val at[IR_OP_COUNT];
  (void)state;
  good(&k, at);
  for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
    snprintf(k.name, sizeof k.name, "%s", bad[j]);
    refuse(&k, "must be a C identifier", "");
  }
  memset(k.name, 'a', sizeof k.name);
  refuse(&k, "must end within 63 letters", "");
  snprintf(k.name, sizeof k.name, "_ok9");
  k.lanes = 0;
  refuse(&k, "a group of 2 x 0 lanes", "");
  k.lanes = 8;
  k.subgroups = 129;
  refuse(&k, "must have 1 ... 1024", "");
  k.subgroups = 2;
  k.rows = 0;
  refuse(&k, "rows 0 must be positive", "");
  k.rows = 1;
  k.large_registers = 2;
  refuse(&k, "large_registers 2", "");
  k.large_registers = 0;
  char error[300];
  assert_true(ir_verify(&k, error, sizeof error));
  assert_true(ir_verify(&k, NULL, 0));
  ir_free(&k);
}

static void test_blocks(void **state) {
  ir_kernel k;
  ir_val at[IR_OP_COUNT];
  (void)state;
  good(&k, at);
  k.n = at[IR_LOOP] + 1;
  refuse(&k, "has no END", "LOOP");
  ir_free(&k);
  good(&k, at);
  k.ins[at[IR_IF]] = (ir_ins){.op = IR_COPY_COMMIT,
                              .arg = {-1, -1, -1, -1, -1},
                              .stride = -1,
                              .scope = k.ins[at[IR_IF]].scope};
  refuse(&k, "must be", "");
  ir_free(&k);
  good(&k, at);
  k.ins[0] = (ir_ins){.op = IR_END, .arg = {-1, -1, -1, -1, -1}, .stride = -1, .scope = -1};
  refuse(&k, "no open LOOP or IF", "END");
  k.ins[0].op = IR_ELSE;
  refuse(&k, "no open IF", "ELSE");
  ir_free(&k);
  good(&k, at); /* a value of the loop's body used after it */
  k.ins[at[IR_STORE]].arg[2] = IR_NONE;
  k.pool[k.ins[at[IR_STORE]].imm] = at[IR_FMA];
  refuse(&k, "block that has ended", "STORE");
  ir_free(&k);
  good(&k, at);
  for (int32_t v = 0; v < k.n; v++)
    if (k.ins[v].op == IR_LOAD && k.ins[v].width == 4) k.pool[k.ins[at[IR_STORE]].imm] = v;
  refuse(&k, "take its ELEMENT", "STORE");
  k.pool[k.ins[at[IR_STORE]].imm] = at[IR_VAR];
  refuse(&k, "take its GET", "STORE");
  ir_free(&k);
}

static void test_steps_and_depth(void **state) {
  ir_kernel k;
  char error[300];
  (void)state;
  ir_begin(&k, "k", 8, 1, 8);
  ir_loop(&k, ir_int(&k, IR_I32, 0), ir_int(&k, IR_I32, 4), ir_int(&k, IR_I32, 0));
  ir_end(&k);
  assert_true(ir_finish(&k));
  refuse(&k, "step 0 must be positive", "LOOP");
  ir_free(&k);
  for (int depth = 64; depth <= 65; depth++) {
    ir_begin(&k, "k", 8, 1, 8);
    for (int j = 0; j < depth; j++) ir_if(&k, ir_2(&k, IR_LT, ir_group(&k), ir_int(&k, IR_I32, j)));
    for (int j = 0; j < depth; j++) ir_end(&k);
    assert_true(ir_finish(&k));
    if (depth == 64) assert_true(ir_verify(&k, error, sizeof error));
    else refuse(&k, "at most 64 blocks", "IF");
    ir_free(&k);
  }
  ir_begin(&k, "k", 8, 1, 8);
  ir_val s = ir_scalar(&k, IR_F32), a = ir_real(&k, IR_F32, 0.1);
  ir_store(&k, ir_buffer(&k, IR_F32, true), ir_lane(&k), IR_NONE, ir_add(&k, s, a));
  finish(&k);
  k.ins[1].real = 0.1;
  refuse(&k, "must be rounded to f32", "REAL");
  ir_free(&k);
}

/* ---- counts ---- */

static void test_counts(void **state) {
  ir_kernel k;
  ir_val v[3];
  (void)state;
  ir_begin(&k, "k", 8, 2, 16); /* a lane a row */
  ir_val x = ir_buffer(&k, IR_F16, false), y = ir_buffer(&k, IR_F64, true),
         w = ir_buffer(&k, IR_F32, false), local = ir_local(&k, IR_F32, 16);
  ir_val row = ir_add(&k, ir_mul(&k, ir_group(&k), ir_int(&k, IR_I32, 16)), ir_lane(&k));
  ir_load_wide(&k, x, row, IR_NONE, 3, v);             /* 3 loads, 6 bytes */
  ir_val u = ir_load(&k, w, ir_group(&k), IR_NONE);    /* uniform: 1/8 load, 1/2 byte */
  ir_copy(&k, local, ir_lane(&k), w, row, IR_NONE, 1); /* 1 load, 4 bytes */
  ir_val sum = ir_var(&k, ir_mul(&k, u, u), false);    /* uniform: 1/8 flop */
  ir_loop(&k, ir_int(&k, IR_I32, 1), ir_int(&k, IR_I32, 8), ir_int(&k, IR_I32, 3)); /* 3 turns */
  ir_loop(&k, ir_int(&k, IR_I64, 0), ir_int(&k, IR_I64, 6), ir_int(&k, IR_I64, 3)); /* of 2 turns */
  ir_loop(&k, ir_int(&k, IR_I64, 6), ir_int(&k, IR_I64, 6), ir_int(&k, IR_I64, 3)); /* never */
  ir_set(&k, sum, ir_mul(&k, v[0], v[2]));
  ir_end(&k);
  ir_set(&k, sum, ir_fma(&k, v[0], v[1], ir_get(&k, sum))); /* 2 flops each */
  ir_end(&k);
  ir_end(&k);
  ir_set(&k, sum, ir_reduce_add(&k, v[0])); /* 7 in 8 lanes */
  ir_if(&k, ir_2(&k, IR_LT, ir_group(&k), ir_int(&k, IR_I32, 9)));
  ir_store(&k, y, row, IR_NONE, ir_cast(&k, IR_F64, v[2])); /* 1 store, 8 bytes */
  ir_else(&k);
  ir_store(&k, y, row, IR_NONE, ir_cast(&k, IR_F64, ir_get(&k, sum)));
  ir_store(&k, y, row, IR_NONE, ir_real(&k, IR_F64, 0)); /* 2 stores: the larger branch */
  ir_end(&k);
  ir_store(&k, local, ir_lane(&k), IR_NONE, v[0]); /* local memory: nothing */
  ir_atomic_add(&k, y, ir_int(&k, IR_I32, 0), IR_NONE,
                ir_real(&k, IR_F64, 1)); /* each lane: 1 load, 1 store, 1 flop */
  finish(&k);
  ir_counts c = ir_count(&k);
  assert_true(c.loads == 3 + 0.125 + 1 + 1);
  assert_true(c.bytes_loaded == 6 + 0.5 + 4 + 8);
  assert_true(c.stores == 2 + 1);
  assert_true(c.bytes_stored == 16 + 8);
  assert_true(c.flops == 0.125 + 6 * 2 + 7.0 / 8 + 1);
  ir_free(&k);
}

/* ---- interpreter ---- */

static void test_reduce_order(void **state) {
  ir_kernel k;
  float x[8], y[24], v[8];
  uint64_t seed = 5;
  (void)state;
  ir_begin(&k, "k", 8, 1, 8);
  ir_val from = ir_buffer(&k, IR_F32, false), to = ir_buffer(&k, IR_F32, true), lane = ir_lane(&k),
         a = ir_load(&k, from, lane, IR_NONE);
  ir_store(&k, to, lane, IR_NONE, ir_reduce_add(&k, a));
  ir_store(&k, to, ir_add(&k, lane, ir_int(&k, IR_I32, 8)), IR_NONE, ir_shuffle_xor(&k, a, 5));
  ir_store(&k, to, ir_add(&k, lane, ir_int(&k, IR_I32, 16)), IR_NONE,
           ir_shuffle(&k, a, ir_sub(&k, ir_int(&k, IR_I32, 7), lane)));
  finish(&k);
  for (int l = 0; l < 8; l++) v[l] = x[l] = (float)test_random(&seed);
  run(&k, (ir_arg[]){{.p = x}, {.p = y}}, 1);
  for (int d = 4; d; d /= 2) {
    float old[8];
    memcpy(old, v, sizeof old);
    for (int l = 0; l < 8; l++) v[l] = old[l] + old[l ^ d];
  }
  for (int l = 0; l < 8; l++) {
    assert_true(y[l] == v[l]);
    assert_true(y[8 + l] == x[l ^ 5]);
    assert_true(y[16 + l] == x[7 - l]);
  }
  ir_free(&k);
}

/* A store and a load of a LOCAL array, `apart` elements from lane to lane, and what may stand
   between. */
static void test_loads_across_lanes(void **state) {
  static const struct {
    int64_t at; /* of the load from the store */
    int64_t apart;
    bool barrier, masked, in_loop, refused;
  } cases[] = {{1, 1, false, false, false, true}, {0, 1, false, false, false, false},
               {1, 1, true, false, false, false}, {1, 2, false, false, false, false},
               {2, 2, false, false, false, true}, {1, 1, false, true, false, false},
               {1, 1, false, false, true, false}, {-3, 1, false, false, false, true},
               {9, 1, false, false, false, false}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ir_kernel k;
    char error[300];
    ir_begin(&k, "k", 8, 1, 8);
    ir_val to = ir_buffer(&k, IR_I32, true), local = ir_local(&k, IR_I32, 64),
           four = ir_int(&k, IR_I32, 4);
    ir_val at = ir_add(&k, ir_mul(&k, ir_lane(&k), ir_int(&k, IR_I32, cases[c].apart)), four);
    ir_store(&k, local, at, cases[c].masked ? ir_2(&k, IR_LT, ir_lane(&k), four) : IR_NONE,
             ir_lane(&k));
    if (cases[c].barrier) ir_barrier(&k, false);
    if (cases[c].in_loop) ir_loop(&k, ir_int(&k, IR_I32, 0), ir_group(&k), four);
    ir_store(&k, to, ir_lane(&k), IR_NONE,
             ir_load(&k, local, ir_add(&k, at, ir_int(&k, IR_I32, cases[c].at)), IR_NONE));
    if (cases[c].in_loop) ir_end(&k);
    assert_true(ir_finish(&k));
    if (cases[c].refused)
      refuse(&k, "LOAD: it reads what another lane stores in instruction",
             "with no BARRIER between");
    else if (!ir_verify(&k, error, sizeof error)) fail_msg("case %d: %s", (int)c, error);
    ir_free(&k);
  }
}

/* A letter is an instruction: s and l store to and load from one array, S and L another, c copies
   to it, w waits for that; b, g, p are barriers of the sub-group, of the group and for pace; ( ) a
   loop, [ | ] an if with its else. */
static void build_letters(ir_kernel *k, const char *letters, int lanes, int subgroups) {
  ir_begin(k, "k", lanes, subgroups, lanes * subgroups);
  ir_val n = ir_scalar(k, IR_I32), to = ir_buffer(k, IR_I32, true),
         from = ir_buffer(k, IR_I32, false), one = ir_int(k, IR_I32, 1);
  ir_val local[2] = {ir_local(k, IR_I32, 64), ir_local(k, IR_I32, 64)}, lane = ir_lane(k);
  for (const char *c = letters; *c; c++) {
    if (*c == 's' || *c == 'S') ir_store(k, local[*c == 'S'], lane, IR_NONE, n);
    if (*c == 'l' || *c == 'L')
      ir_store(k, to, lane, IR_NONE, ir_load(k, local[*c == 'L'], lane, IR_NONE));
    if (*c == 'c') ir_copy(k, local[0], lane, from, lane, IR_NONE, 1), ir_copy_commit(k);
    if (*c == 'w') ir_copy_wait(k, 0);
    if (*c == 'b' || *c == 'g') ir_barrier(k, *c == 'g');
    if (*c == 'p') ir_rendezvous(k);
    if (*c == '(') ir_loop(k, one, n, one);
    if (*c == '[') ir_if(k, ir_2(k, IR_LT, n, one));
    if (*c == '|') ir_else(k);
    if (*c == ')' || *c == ']') ir_end(k);
  }
  assert_true(ir_finish(k));
}

static void test_idle_barriers(void **state) {
  static const struct {
    const char *before, *after;
    int lanes, subgroups;
  } cases[] = {{"bsblb", "sbl", 8, 1},        {"sbblbs", "sblbs", 8, 1},
               {"sbL", "sL", 8, 1},           {"lbl", "ll", 8, 1},
               {"sbs", "sbs", 8, 1},          {"(sbl)", "(sbl)", 8, 1},
               {"(sblb)", "(sblb)", 8, 1},    {"(bsbl)", "(bsbl)", 8, 1},
               {"(bl)", "(l)", 8, 1},         {"(s)b(l)", "(s)b(l)", 8, 1},
               {"[s|S]bl", "[s|S]bl", 8, 1},  {"[s|bl]", "[s|l]", 8, 1},
               {"[sb|S]bl", "[s|S]bl", 8, 1}, {"[sb]l", "[sb]l", 8, 1},
               {"(sbSb)", "(sSb)", 8, 1},     {"sgbl", "sgl", 8, 2},
               {"sbgl", "sgl", 8, 2},         {"sbl", "sl", 1, 2},
               {"sgl", "sgl", 1, 2},          {"sgl", "sl", 1, 1},
               {"spl", "spl", 8, 2},          {"pp", "pp", 8, 2},
               {"spbl", "spl", 8, 2},         {"cwbl", "cwbl", 8, 1},
               {"cbw", "cbw", 8, 1},          {"cbwbl", "cbwbl", 8, 1},
               {"lbc", "lbc", 8, 1},          {"Lbcw", "Lcw", 8, 1},
               {"((sb)l)", "((sb)l)", 8, 1},  {"([bs|b]l)", "([bs|b]l)", 8, 1}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ir_kernel k, wanted;
    char error[300];
    build_letters(&k, cases[c].before, cases[c].lanes, cases[c].subgroups);
    build_letters(&wanted, cases[c].after, cases[c].lanes, cases[c].subgroups);
    assert_true(ir_drop_barriers(&k));
    if (!ir_verify(&k, error, sizeof error)) fail_msg("%s: %s", cases[c].before, error);
    bool same = k.n == wanted.n;
    for (int32_t v = 0; v < k.n && same; v++)
      same = k.ins[v].op == wanted.ins[v].op && k.ins[v].imm == wanted.ins[v].imm &&
             k.ins[v].scope == wanted.ins[v].scope;
    if (!same) {
      char left[64] = "";
      int at = 0;
      for (int32_t v = 0; v < k.n; v++)
        if (k.ins[v].op == IR_BARRIER)
          at += snprintf(left + at, sizeof left - (size_t)at, " %d", (int)v);
      fail_msg("%s should become %s; the barriers left are%s", cases[c].before, cases[c].after,
               left);
    }
    ir_free(&k);
    ir_free(&wanted);
  }
}

static void test_barriers(void **state) {
  ir_kernel k;
  int32_t y[64];
  char error[300];
  (void)state;
  ir_begin(&k, "k", 8, 4,
           32); /* in each iteration every sub-group takes the number of the next one */
  ir_val to = ir_buffer(&k, IR_I32, true), local = ir_local(&k, IR_I32, 4), s = ir_subgroup(&k),
         g = ir_group(&k);
  ir_val mine = ir_var(&k, ir_mul(&k, s, s), true), four = ir_int(&k, IR_I32, 4),
         one = ir_int(&k, IR_I32, 1);
  ir_loop(&k, ir_int(&k, IR_I32, 0), ir_add(&k, g, one), one);
  ir_store(&k, local, s, IR_NONE, ir_get(&k, mine));
  ir_barrier(&k, true);
  ir_set(&k, mine, ir_load(&k, local, ir_2(&k, IR_MOD, ir_add(&k, s, one), four), IR_NONE));
  ir_barrier(&k, true);
  ir_end(&k);
  ir_val row = ir_add(&k, ir_mul(&k, ir_add(&k, ir_mul(&k, g, four), s), ir_int(&k, IR_I32, 8)),
                      ir_lane(&k));
  ir_store(&k, to, row, IR_NONE, ir_get(&k, mine));
  finish(&k);
  run(&k, (ir_arg[]){{.p = y}}, 2);
  for (int j = 0; j < 64; j++) {
    int group = j / 32, from = (j / 8 + group + 1) % 4;
    assert_int_equal(y[j], from * from);
  }
  ir_free(&k);
  ir_begin(&k, "k", 8, 2, 16);
  ir_if(&k, ir_2(&k, IR_EQ, ir_subgroup(&k), ir_int(&k, IR_I32, 1)));
  ir_barrier(&k, true);
  ir_end(&k);
  assert_true(ir_finish(&k));
  assert_false(ir_verify(&k, error, sizeof error));
  assert_non_null(strstr(error, "BARRIER: it is the group's, under instruction"));
  assert_false(ir_run(&k, NULL, NULL, 0, 1, error, sizeof error));
  assert_non_null(strstr(error, "do not meet at the same BARRIER"));
  ir_free(&k);
}

/* Must be reported: y[lane] = one value of x, i64. */
static void misbehave(int what, int64_t x0, const char *word) {
  ir_kernel k;
  int64_t x[4] = {x0, x0, x0, x0}, y[4];
  char error[300];
  ir_begin(&k, "k", 4, 1, 4);
  ir_val from = ir_buffer(&k, IR_I64, false), to = ir_buffer(&k, IR_I64, true),
         local = ir_local(&k, IR_I64, 5), lane = ir_lane(&k);
  for (int l = 0; l < 5; l++)
    ir_store(&k, local, ir_int(&k, IR_I32, l), IR_NONE, ir_int(&k, IR_I64, l));
  ir_barrier(&k, false);
  ir_val a = ir_load(&k, from, lane, IR_NONE), b = a, values[2];
  ir_val i = ir_cast(&k, IR_I32, a), x32 = ir_cast(&k, IR_F32, a), x64 = ir_cast(&k, IR_F64, a),
         mask = ir_2(&k, IR_LT, lane, ir_int(&k, IR_I32, 1));
  if (what == 0) b = ir_2(&k, IR_DIV, a, a);
  if (what == 1) b = ir_2(&k, IR_MOD, i, i), b = ir_cast(&k, IR_I64, b);
  if (what == 2) b = ir_load(&k, local, a, mask);
  if (what == 3) ir_load_wide(&k, local, a, IR_NONE, 2, values), b = values[1];
  if (what == 4) ir_store(&k, local, a, mask, a);
  if (what == 5) ir_copy(&k, local, a, from, lane, mask, 1);
  if (what == 6) b = ir_shuffle(&k, a, i);
  if (what == 7)
    ir_loop(&k, ir_int(&k, IR_I64, 0), ir_int(&k, IR_I64, 4),
            ir_shuffle(&k, a, ir_int(&k, IR_I32, 0))),
        ir_end(&k);
  if (what == 8) ir_load_aligned(&k, local, a, mask, 2, values), b = values[1];
  if (what == 14) ir_store_aligned(&k, local, a, mask, 2, (const ir_val[]){a, a});
  if (what == 9) b = ir_cast(&k, IR_I64, ir_cast(&k, IR_I32, x32));
  if (what == 10)
    b = ir_cast(&k, IR_I64,
                ir_cast(&k, IR_I32, ir_add(&k, x64, ir_real(&k, IR_F64, x0 < 0 ? -0.5 : 0.5))));
  if (what == 11) b = ir_cast(&k, IR_I64, x32);
  if (what == 12) b = ir_cast(&k, IR_I64, x64);
  if (what == 13) b = ir_cast(&k, IR_I64, ir_2(&k, IR_DIV, x32, x32));
  ir_store(&k, to, lane, IR_NONE, b);
  finish(&k);
  bool ok = ir_run(&k, (ir_arg[]){{.p = x}, {.p = y}}, NULL, 0, 1, error, sizeof error);
  if (ok != !word) fail_msg("case %d with %lld: %s", what, (long long)x0, ok ? "ran" : error);
  if (word && !strstr(error, word))
    fail_msg("case %d: says '%s', should say '%s'", what, error, word);
  ir_free(&k);
}

static void test_what_is_reported(void **state) {
  (void)state;
  misbehave(0, 0, "DIV: the divisor of lane 0 is not positive");
  misbehave(1, 0, "MOD: the divisor of lane 0 is not positive");
  misbehave(0, 1, NULL);
  misbehave(2, 5, "LOAD: index 5 of lane 0 leaves the array");
  misbehave(2, -1, "LOAD: index -1");
  misbehave(2, 4, NULL);
  misbehave(3, 4, "LOAD: index 4");
  misbehave(3, 3, NULL);
  misbehave(4, 5, "STORE: index 5");
  misbehave(4, INT64_MAX, "STORE: index 9223372036854775807");
  misbehave(4, 0, NULL);
  misbehave(5, 5, "COPY: index 5");
  misbehave(5, 4, NULL);
  misbehave(6, 4, "SHUFFLE: lane 4 of 4 does not exist");
  misbehave(6, -1, "SHUFFLE: lane -1");
  misbehave(6, 3, NULL);
  misbehave(7, 0, "LOOP: step 0 is not positive");
  misbehave(7, INT64_MAX, NULL);
  misbehave(8, 3, "LOAD: index 3 of lane 0 is not a multiple of the aligned load's width");
  misbehave(8, 4, "LOAD: index 4 of lane 0 leaves the array");
  misbehave(8, 2, NULL);
  misbehave(14, 3, "STORE: index 3 of lane 0 is not a multiple of the aligned store's width");
  misbehave(14, 4, "STORE: index 4 of lane 0 leaves the array");
  misbehave(14, 2, NULL);
  misbehave(9, INT64_C(1) << 31, "CAST: 2147483648 of lane 0 does not fit into i32");
  misbehave(9, (INT64_C(1) << 31) - 128, NULL);
  misbehave(9, -(INT64_C(1) << 31), NULL);
  misbehave(9, -(INT64_C(1) << 31) - 256, "CAST: -2147483904");
  misbehave(10, INT32_MAX, NULL); /* with a half more */
  misbehave(10, INT64_C(1) << 31, "CAST: 2147483648.5");
  misbehave(10, INT32_MIN, NULL);
  misbehave(10, INT32_MIN - INT64_C(1), "CAST: -2147483649.5");
  misbehave(11, INT64_MAX, "CAST: 9.2233720368547758e+18 of lane 0 does not fit into i64");
  misbehave(11, INT64_MIN, NULL);
  misbehave(12, INT64_MAX, "CAST: 9.2233720368547758e+18");
  misbehave(12, INT64_MIN, NULL);
  misbehave(13, 0, "nan of lane 0 does not fit into i64");
  misbehave(13, 1, NULL);
}

/* Towards zero, whatever the shape. */
static void test_casts_truncate(void **state) {
  static const double x[8] = {0.999, -0.999, 1.5, -1.5, -0.0, 16777215, -8388607.5, 5e-324};
  static const int32_t want[8] = {0, 0, 1, -1, 0, 16777215, -8388607, 0};
  ir_kernel k;
  float x32[8];
  int32_t y[32];
  (void)state;
  for (int j = 0; j < 8; j++) x32[j] = (float)x[j];
  for (int flat = 0; flat < 2; flat++) {
    ir_begin(&k, "k", 8, 1, 8);
    ir_val from[] = {ir_buffer(&k, IR_F32, false), ir_buffer(&k, IR_F64, false)},
           to = ir_buffer(&k, IR_I32, true);
    ir_val at = flat ? ir_group(&k) : ir_lane(&k);
    for (int c = 0; c < 4; c++) {
      ir_val v = ir_cast(&k, c % 2 ? IR_I64 : IR_I32, ir_load(&k, from[c / 2], at, IR_NONE));
      assert_int_equal(k.ins[v].shape, flat ? IR_UNIFORM : IR_VARYING);
      ir_store(&k, to, ir_add(&k, at, ir_int(&k, IR_I32, 8 * c)), IR_NONE, ir_cast(&k, IR_I32, v));
    }
    finish(&k);
    memset(y, 77, sizeof y);
    run(&k, (ir_arg[]){{.p = x32}, {.p = (void *)(uintptr_t)x}, {.p = y}}, flat ? 8 : 1);
    for (int j = 0; j < 32; j++) assert_int_equal(y[j], want[j % 8]);
    ir_free(&k);
  }
}

/* An aligned LOAD gives what a wide one gives, is a different value, and stays aligned. */
static void test_aligned_loads(void **state) {
  static const struct {
    ir_type element;
    int width;
    bool good;
  } cases[] = {{IR_F32, 2, true},  {IR_F32, 4, true},  {IR_I32, 4, true},  {IR_F64, 1, true},
               {IR_F64, 2, true},  {IR_I64, 2, true},  {IR_F32, 1, false}, {IR_F32, 3, false},
               {IR_F32, 8, false}, {IR_F64, 4, false}, {IR_F16, 4, true},  {IR_BF16, 8, true},
               {IR_F16, 2, false}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ir_kernel k, out;
    ir_val v[IR_MAX_WIDTH], wide[IR_MAX_WIDTH];
    int64_t x[32], y[16];
    int w = cases[c].width;
    for (int j = 0; j < 32; j++) x[j] = INT64_C(0x3ff0000140000002) + j;
    ir_begin(&k, "k", 4, 1, 4);
    ir_val from = ir_buffer(&k, cases[c].element, false),
           to = ir_buffer(&k, cases[c].element, true),
           at = ir_mul(&k, ir_lane(&k), ir_int(&k, IR_I32, w));
    ir_load_aligned(&k, from, at, ir_2(&k, IR_LT, ir_lane(&k), ir_int(&k, IR_I32, 3)), w, v);
    if (!cases[c].good) {
      assert_non_null(strstr(k.error, "are not 8 or 16 bytes"));
      ir_free(&k);
      continue;
    }
    ir_load_wide(&k, from, at, ir_2(&k, IR_LT, ir_lane(&k), ir_int(&k, IR_I32, 3)), w, wide);
    assert_int_not_equal(v[0], wide[0]);
    ir_store_wide(&k, to, at, IR_NONE, w, v);
    finish(&k);
    int32_t loads = count_op(&k, IR_LOAD);
    assert_int_equal(loads, 1);
    assert_true(clb_lower_shuffles(&k, &out));
    size_t size = (size_t)(ir_type_bytes(cases[c].element) * w);
    for (int lowered = 0; lowered < 2; lowered++) {
      const ir_kernel *one = lowered ? &out : &k;
      for (int32_t i = 0; i < one->n; i++)
        assert_true(one->ins[i].op != IR_LOAD || one->ins[i].imm == 1);
      memset(y, 77, sizeof y);
      run(one, (ir_arg[]){{.p = x}, {.p = y}}, 1);
      assert_memory_equal(x, y, 3 * size);
      for (size_t j = 3 * size; j < 4 * size; j++) assert_int_equal(((const char *)y)[j], 0);
    }
    ir_free(&k);
    ir_free(&out);
  }
}

/* y = op(a, b) in f32 for chosen operands. */
static float f32_of(ir_op op, float a, float b, float c) {
  ir_kernel k;
  float y = 0;
  ir_begin(&k, "k", 1, 1, 1);
  ir_val to = ir_buffer(&k, IR_F32, true), x = ir_scalar(&k, IR_F32), z = ir_scalar(&k, IR_F32),
         w = ir_scalar(&k, IR_F32);
  ir_val v = op == IR_FMA    ? ir_fma(&k, x, z, w)
             : op == IR_SQRT ? ir_1(&k, op, x)
                             : ir_2(&k, op, x, z);
  ir_store(&k, to, ir_int(&k, IR_I32, 0), IR_NONE, v);
  finish(&k);
  run(&k, (ir_arg[]){{.p = &y}, {.f32 = a}, {.f32 = b}, {.f32 = c}}, 1);
  ir_free(&k);
  return y;
}

static void test_arithmetic_rounds_once(void **state) {
  float e = FLT_EPSILON;
  (void)state;
  assert_true(f32_of(IR_FMA, 1 + e, 1 - e, -1) == -e * e); /* 0 if the product were rounded */
  assert_true(f32_of(IR_ADD, 0x1p24f, 1, 0) == 0x1p24f);
  assert_true(f32_of(IR_MIN, NAN, 2, 0) == 2 && f32_of(IR_MIN, 2, NAN, 0) == 2 &&
              isnan(f32_of(IR_MIN, NAN, NAN, 0)));
  assert_true(f32_of(IR_MAX, NAN, 2, 0) == 2 && f32_of(IR_MAX, 2, NAN, 0) == 2 &&
              f32_of(IR_MAX, -1, 3, 0) == 3);
  assert_true(f32_of(IR_SQRT, 2, 0, 0) == sqrtf(2));
  assert_true(f32_of(IR_DIV, 1, 3, 0) == 1.0f / 3);
}

static void test_integers_wrap(void **state) {
  ir_kernel k;
  int64_t y[4];
  (void)state;
  ir_begin(&k, "k", 1, 1, 1);
  ir_val to = ir_buffer(&k, IR_I64, true), a = ir_scalar(&k, IR_I32), b = ir_scalar(&k, IR_I64),
         one = ir_int(&k, IR_I32, 1);
  ir_val v[] = {ir_cast(&k, IR_I64, ir_add(&k, a, one)), ir_mul(&k, b, b),
                ir_sub(&k, ir_int(&k, IR_I64, -2), b), ir_cast(&k, IR_I64, ir_cast(&k, IR_I32, b))};
  ir_store_wide(&k, to, ir_int(&k, IR_I32, 0), IR_NONE, 4, v);
  finish(&k);
  run(&k, (ir_arg[]){{.p = y}, {.i32 = INT32_MAX}, {.i64 = INT64_MAX}}, 1);
  assert_true(y[0] == INT32_MIN && y[1] == 1 && y[2] == INT64_MAX && y[3] == -1);
  ir_free(&k);
}

/* By the definition, in double: the nearest of all 65536, ties to the even one. */
static void test_halves(void **state) {
  uint64_t seed = 3;
  (void)state;
  for (int kind = 0; kind < 2; kind++)
    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
      uint16_t low = (uint16_t)bits, high = (uint16_t)(bits + 1);
      if (!kind && bits >= 0x7bff) break;
      double x = (double)(kind ? ir_from_bf16(low) : ir_from_f16(low)),
             y = (double)(kind ? ir_from_bf16(high) : ir_from_f16(high));
      if (kind && bits == 0x7f7f) y = 0x1p128;
      uint16_t even = bits & 1 ? high : low;
      float middle = (float)((x + y) / 2),
            part = (float)(x + (y - x) * (test_random(&seed) * 0.49 + 0.5));
      bool up = part > middle || (part == middle && even == high);
      for (int sign = 0; sign < 2; sign++) {
        float s = sign ? -1.0f : 1.0f;
        uint16_t minus = (uint16_t)(sign << 15);
        assert_int_equal(kind ? ir_to_bf16(s * (float)x) : ir_to_f16(s * (float)x), low | minus);
        assert_int_equal(kind ? ir_to_bf16(s * middle) : ir_to_f16(s * middle), even | minus);
        assert_int_equal(kind ? ir_to_bf16(s * part) : ir_to_f16(s * part),
                         (up ? high : low) | minus);
      }
    }
  assert_true(ir_from_f16(0x3555) == 0x1.554p-2f && ir_from_f16(1) == 0x1p-24f &&
              ir_from_f16(0x7bff) == 65504);
  assert_int_equal(ir_to_f16(65519.996f), 0x7bff);
  assert_int_equal(ir_to_f16(65520), 0x7c00);
  assert_int_equal(ir_to_f16(INFINITY), 0x7c00);
  assert_int_equal(ir_to_f16(70000), 0x7c00);
  assert_int_equal(ir_to_f16(-1e30f), 0xfc00);
  assert_int_equal(ir_to_f16(0x1p-25f), 0);
  assert_int_equal(ir_to_f16(0x1.000002p-25f), 1);
  assert_true(isnan(ir_from_f16(ir_to_f16(NAN))) && isnan(ir_from_bf16(ir_to_bf16(NAN))));
  assert_true(isinf(ir_from_bf16(ir_to_bf16(FLT_MAX))) && isinf(ir_from_f16(0xfc00)));
}

static void test_bytes(void **state) {
  ir_kernel k, back;
  ir_val at[IR_OP_COUNT];
  static uint8_t a[8000], b[8000];
  (void)state;
  good(&k, at);
  size_t size = ir_write(&k, NULL, 0);
  assert_true(size && size < sizeof a);
  assert_int_equal(ir_write(&k, a, size - 1), size); /* too little space: nothing is written */
  assert_int_equal(a[0], 0);
  assert_int_equal(ir_write(&k, a, size), size);
  k.name[10] = 'x'; /* bytes after the name's end are no part of it */
  assert_int_equal(ir_write(&k, b, sizeof b), size);
  assert_memory_equal(a, b, size);
  assert_true(ir_read(&back, a, size));
  ir_free(&back);
  assert_false(ir_read(&back, a, size + 1));
  assert_false(ir_read(&back, a, size - 1));
  assert_false(ir_read(&back, a, 0));
  a[0] ^= 1;
  assert_false(ir_read(&back, a, size));
  assert_null(back.ins);
  ir_free(&k);
}

static void test_listing(void **state) {
  ir_kernel k;
  ir_val at[IR_OP_COUNT];
  clb_text text = {0};
  clb_dialect dialect = {.language = CLB_LANGUAGE_IR};
  char error[200];
  (void)state;
  good(&k, at);
  assert_true(clb_print(&k, &dialect, &text, error, sizeof error));
  assert_non_null(strstr(
      text.s,
      "good: 2 sub-groups of 8 lanes, 16 rows\n    0  BUFFER f32\n    1  BUFFER f32 written\n"));
  assert_non_null(strstr(text.s, "LOCAL f32[64]\n"));
  assert_non_null(strstr(text.s, "REAL f32 uniform 1p-1\n"));
  assert_non_null(strstr(text.s, "LANE i32 affine %"));
  clb_text_free(&text);
  dialect.language = (clb_language)99;
  assert_false(clb_print(&k, &dialect, &text, error, sizeof error));
  assert_non_null(strstr(error, "no language 99"));
  ir_free(&k);
}

static void test_lowering_refuses(void **state) {
  ir_kernel k, out;
  ir_val at[IR_OP_COUNT];
  (void)state;
  good(&k, at);
  assert_false(clb_lower_shuffles(&k, &out));
  assert_non_null(strstr(out.error, "a group whose lanes meet is one sub-group, not 2"));
  ir_free(&k);
  ir_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_expression_is_same_value),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_first_mistake_is_kept),
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_uniform_where_needed),
      cmocka_unit_test(test_shuffles_need_powers_of_two),
      cmocka_unit_test(test_head),
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_steps_and_depth),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_reduce_order),
      cmocka_unit_test(test_barriers),
      cmocka_unit_test(test_loads_across_lanes),
      cmocka_unit_test(test_idle_barriers),
      cmocka_unit_test(test_what_is_reported),
      cmocka_unit_test(test_casts_truncate),
      cmocka_unit_test(test_aligned_loads),
      cmocka_unit_test(test_arithmetic_rounds_once),
      cmocka_unit_test(test_integers_wrap),
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_listing),
      cmocka_unit_test(test_lowering_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
