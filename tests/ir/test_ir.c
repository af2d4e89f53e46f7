/* tests/ir/test_ir.c - the IR by hand: the builder, counts, bytes, the listing. */
#include <float.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "src/codegen/codegen.h"
#include "tests/ir/ir_runs.h"

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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_expression_is_same_value),
                                     cmocka_unit_test(test_shapes),
                                     cmocka_unit_test(test_first_mistake_is_kept),
                                     cmocka_unit_test(test_counts),
                                     cmocka_unit_test(test_bytes),
                                     cmocka_unit_test(test_listing),
                                     cmocka_unit_test(test_lowering_refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
