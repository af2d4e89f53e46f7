/* tests/ir/test_ir_verify.c - every rule of the verifier: a good kernel with one mistake. */
#include <float.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "src/codegen/codegen.h"
#include "tests/ir/ir_runs.h"

/* ---- verifier: a good kernel with one mistake ---- */

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields),
                                     cmocka_unit_test(test_uniform_where_needed),
                                     cmocka_unit_test(test_shuffles_need_powers_of_two),
                                     cmocka_unit_test(test_head),
                                     cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_steps_and_depth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
