/* tests/ir/test_ir_numbers.c - the interpreter's numbers: sums, casts, wide loads, rounding,
 * halves. */
#include <float.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "src/codegen/codegen.h"
#include "tests/ir/ir_runs.h"

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

/* Folded, and computed by instructions. */
static void test_bits(void **state) {
  ir_kernel k;
  int32_t y[4];
  int64_t z;
  (void)state;
  ir_begin(&k, "k", 1, 1, 1);
  ir_val to = ir_buffer(&k, IR_I32, true), wide = ir_buffer(&k, IR_I64, true),
         a = ir_scalar(&k, IR_I32), b = ir_scalar(&k, IR_I32), c = ir_scalar(&k, IR_I64),
         minus = ir_int(&k, IR_I32, -1), large = ir_int(&k, IR_I32, 0xd2511f53),
         zero = ir_int(&k, IR_I32, 0), high = ir_2(&k, IR_MUL_HIGH, a, b);
  assert_int_equal(ir_int_value(&k, ir_2(&k, IR_MUL_HIGH, minus, minus), 0), -2);
  assert_int_equal(ir_int_value(&k, ir_2(&k, IR_XOR, minus, large), 0), (int32_t)0x2daee0ac);
  assert_int_equal(ir_2(&k, IR_XOR, a, zero), a);
  assert_int_equal(ir_2(&k, IR_MUL_HIGH, b, a), high);
  const ir_val v[] = {high, ir_2(&k, IR_MUL_HIGH, a, large), ir_2(&k, IR_XOR, a, b),
                      ir_2(&k, IR_MUL_HIGH, b, b)};
  ir_store_wide(&k, to, zero, IR_NONE, 4, v);
  ir_store(&k, wide, zero, IR_NONE, ir_2(&k, IR_XOR, c, ir_cast(&k, IR_I64, a)));
  finish(&k);
  run(&k, (ir_arg[]){{.p = y}, {.p = &z}, {.i32 = -2}, {.i32 = 0x7fffffff}, {.i64 = 5}}, 1);
  assert_true(y[0] == 0x7ffffffe && y[1] == (int32_t)0xd2511f51 && y[2] == INT32_MIN + 1 &&
              y[3] == 0x3fffffff && z == -5);
  for (int32_t i = 0; i < k.n; i++)
    if (k.ins[i].op == IR_XOR && k.ins[i].type == IR_I64) k.ins[i].op = IR_MUL_HIGH;
  refuse(&k, "MUL_HIGH", "is i64, must be i32");
  ir_free(&k);
}

static void test_bits_are_of_integers(void **state) {
  static const ir_op op[] = {IR_XOR, IR_MUL_HIGH};
  (void)state;
  for (int i = 0; i < 2; i++) {
    ir_kernel k;
    ir_begin(&k, "k", 1, 1, 1);
    const ir_val x = ir_scalar(&k, i ? IR_I64 : IR_F32);
    assert_int_equal(ir_2(&k, op[i], x, x), 0);
    assert_non_null(strstr(k.error, i ? "MUL_HIGH does not take i64" : "XOR does not take f32"));
    ir_free(&k);
  }
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reduce_order),         cmocka_unit_test(test_casts_truncate),
      cmocka_unit_test(test_aligned_loads),        cmocka_unit_test(test_arithmetic_rounds_once),
      cmocka_unit_test(test_integers_wrap),        cmocka_unit_test(test_bits),
      cmocka_unit_test(test_bits_are_of_integers), cmocka_unit_test(test_halves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
