/* src/ir/interpreter/interpret_values.c - the loops over lanes of the interpreter. */
#include "src/ir/interpreter/interpret_values.h"

#include <math.h>
#include <string.h>

/* ---- f16 and bf16 ---- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

float ir_from_bf16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

/* x / 2^shift, to nearest, ties to even. */
static uint32_t rounded(uint32_t x, int shift) {
  uint32_t half = 1u << (shift - 1), rest = x & (2 * half - 1), whole = x >> shift;
  return whole + (rest > half || (rest == half && (whole & 1)));
}

uint16_t ir_to_bf16(float x) {
  uint32_t bits = bits_of(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)rounded(bits, 16);
}

/* A subnormal is its fraction times 2^-24. */
float ir_from_f16(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
           fraction = bits & 0x3ff;
  if (exponent == 31) return float_of(sign | 0x7f800000 | fraction << 13);
  if (exponent) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  return float_of(sign | bits_of((float)fraction * 0x1p-24f));
}

uint16_t ir_to_f16(float x) {
  uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (x != x) return (uint16_t)(sign | 0x7e00);
  if (size >= 0x47800000)
    return (uint16_t)(sign | 0x7c00); /* 2^16; 65520 and more below it round to infinity */
  if (size >= 0x38800000) return (uint16_t)(sign | (rounded(size, 13) - (112u << 10)));
  int exponent = (int)(size >> 23); /* below 2^-14 the unit is 2^-24 = 2^(103 - 127) */
  if (exponent < 102) return (uint16_t)sign;
  return (uint16_t)(sign | rounded((size & 0x7fffff) | 0x800000, 126 - exponent));
}

/* ---- arithmetic ---- */

/* unary, binary: X(op, type of the operands, its C type, C type of the result, result); integers
   wrap */
/* clang-format off */
#define REALS(X, op, f32, f64) \
  X(op, F32, float, float, f32) \
  X(op, F64, double, double, f64)
#define NUMBERS(X, op, result) \
  X(op, I32, int32_t, int32_t, result) \
  X(op, I64, int64_t, int64_t, result) \
  X(op, F32, float, float, result) \
  X(op, F64, double, double, result)
#define COMPARISONS(X, op, result) \
  X(op, I32, int32_t, int32_t, result) \
  X(op, I64, int64_t, int32_t, result) \
  X(op, F32, float, int32_t, result) \
  X(op, F64, double, int32_t, result)
#define WRAPPING(X, op, sign) \
  X(op, I32, int32_t, int32_t, (int32_t)((uint32_t)a sign (uint32_t)b)) \
  X(op, I64, int64_t, int64_t, (int64_t)((uint64_t)a sign (uint64_t)b)) \
  REALS(X, op, a sign b, a sign b)

#define UNARY(X) \
  REALS(X, NEG, -a, -a) \
  REALS(X, ABS, fabsf(a), fabs(a)) \
  REALS(X, SQRT, sqrtf(a), sqrt(a)) \
  REALS(X, EXP, expf(a), exp(a)) \
  REALS(X, SIN, sinf(a), sin(a)) \
  REALS(X, COS, cosf(a), cos(a)) \
  X(NOT, BOOL, int32_t, int32_t, !a)
#define BINARY(X) \
  WRAPPING(X, ADD, +) \
  WRAPPING(X, SUB, -) \
  WRAPPING(X, MUL, *) \
  NUMBERS(X, DIV, a / b) \
  X(MOD, I32, int32_t, int32_t, a % b) \
  X(MOD, I64, int64_t, int64_t, a % b) \
  X(XOR, I32, int32_t, int32_t, a ^ b) \
  X(XOR, I64, int64_t, int64_t, a ^ b) \
  X(MUL_HIGH, I32, int32_t, int32_t, (int32_t)((uint64_t)(uint32_t)a * (uint32_t)b >> 32)) \
  NUMBERS(X, MIN, a < b || b != b ? a : b) \
  NUMBERS(X, MAX, a > b || b != b ? a : b) \
  COMPARISONS(X, LT, a < b) \
  COMPARISONS(X, LE, a <= b) \
  COMPARISONS(X, EQ, a == b) \
  X(AND, BOOL, int32_t, int32_t, a && b) \
  X(OR, BOOL, int32_t, int32_t, a || b)
/* X(op, type, C type of the first operand, of the others and the result, result) */
#define TERNARY(X) \
  X(FMA, F32, float, float, fmaf(a, b, c)) \
  X(FMA, F64, double, double, fma(a, b, c)) \
  X(SELECT, BOOL, int32_t, int32_t, a ? b : c) \
  X(SELECT, I32, int32_t, int32_t, a ? b : c) \
  X(SELECT, I64, int32_t, int64_t, a ? b : c) \
  X(SELECT, F32, int32_t, float, a ? b : c) \
  X(SELECT, F64, int32_t, double, a ? b : c)
/* X(from, its C type, to, its C type) */
#define CASTS(X) \
  X(I32, int32_t, I64, int64_t) \
  X(I32, int32_t, F32, float) \
  X(I32, int32_t, F64, double) \
  X(I64, int64_t, I32, int32_t) \
  X(I64, int64_t, F32, float) \
  X(I64, int64_t, F64, double) \
  X(F32, float, F64, double) \
  X(F32, float, I32, int32_t) \
  X(F32, float, I64, int64_t) \
  X(F64, double, F32, float) \
  X(F64, double, I32, int32_t) \
  X(F64, double, I64, int64_t)
/* clang-format on */

#define X1(op, type, A, R, result)                                                                 \
  static void op##_##type(int32_t lanes, void *to, const void *a_, const void *b_,                 \
                          const void *c_) {                                                        \
    (void)b_, (void)c_;                                                                            \
    for (int32_t l = 0; l < lanes; l++) {                                                          \
      A a = ((const A *)a_)[l];                                                                    \
      ((R *)to)[l] = result;                                                                       \
    }                                                                                              \
  }
#define X2(op, type, A, R, result)                                                                 \
  static void op##_##type(int32_t lanes, void *to, const void *a_, const void *b_,                 \
                          const void *c_) {                                                        \
    (void)c_;                                                                                      \
    for (int32_t l = 0; l < lanes; l++) {                                                          \
      A a = ((const A *)a_)[l], b = ((const A *)b_)[l];                                            \
      ((R *)to)[l] = result;                                                                       \
    }                                                                                              \
  }
#define X3(op, type, A, R, result)                                                                 \
  static void op##_##type(int32_t lanes, void *to, const void *a_, const void *b_,                 \
                          const void *c_) {                                                        \
    for (int32_t l = 0; l < lanes; l++) {                                                          \
      A a = ((const A *)a_)[l];                                                                    \
      R b = ((const R *)b_)[l], c = ((const R *)c_)[l];                                            \
      ((R *)to)[l] = result;                                                                       \
    }                                                                                              \
  }
#define XC(from, A, into, R)                                                                       \
  static void from##_to_##into(int32_t lanes, void *to, const void *a, const void *b_,             \
                               const void *c_) {                                                   \
    (void)b_, (void)c_;                                                                            \
    for (int32_t l = 0; l < lanes; l++) ((R *)to)[l] = (R)((const A *)a)[l];                       \
  }
UNARY(X1)
BINARY(X2)
TERNARY(X3)
CASTS(XC)

#define ENTRY(op, type, A, R, result) [IR_##op][IR_##type] = op##_##type,
ir_lane_function *const ir_lane_functions[IR_OP_COUNT][IR_F64 + 1] = {UNARY(ENTRY) BINARY(ENTRY)
                                                                          TERNARY(ENTRY)};
#define CAST_ENTRY(from, A, into, R) [IR_##from][IR_##into] = from##_to_##into,
ir_lane_function *const ir_lane_casts[IR_F64 + 1][IR_F64 + 1] = {CASTS(CAST_ENTRY)};

/* ---- memory ---- */

/* X(element, its C type, C type in registers, from memory, to memory) */
#define ELEMENTS(X)                                                                                \
  X(I32, int32_t, int32_t, x, x)                                                                   \
  X(I64, int64_t, int64_t, x, x)                                                                   \
  X(F32, float, float, x, x)                                                                       \
  X(F64, double, double, x, x)                                                                     \
  X(F16, uint16_t, float, ir_from_f16(x), ir_to_f16(x))                                            \
  X(BF16, uint16_t, float, ir_from_bf16(x), ir_to_bf16(x))

#define ACCESS(element, M, R, in, out)                                                             \
  static void gather_##element(int32_t lanes, int32_t width, const int64_t *at, const void *from,  \
                               void *to) {                                                         \
    for (int32_t w = 0; w < width; w++)                                                            \
      for (int32_t l = 0; l < lanes; l++) {                                                        \
        M x = at[l] < 0 ? 0 : ((const M *)from)[at[l] + w];                                        \
        ((R *)to)[w * lanes + l] = in;                                                             \
      }                                                                                            \
  }                                                                                                \
  static void scatter_##element(int32_t lanes, int32_t w, const int64_t *at, void *to,             \
                                const void *from) {                                                \
    for (int32_t l = 0; l < lanes; l++) {                                                          \
      R x = ((const R *)from)[l];                                                                  \
      if (at[l] >= 0) ((M *)to)[at[l] + w] = out;                                                  \
    }                                                                                              \
  }
ELEMENTS(ACCESS)

#define GATHER(element, M, R, in, out) [IR_##element] = gather_##element,
#define SCATTER(element, M, R, in, out) [IR_##element] = scatter_##element,
ir_gather *const ir_gathers[IR_BF16 + 1] = {ELEMENTS(GATHER)};
ir_scatter *const ir_scatters[IR_BF16 + 1] = {ELEMENTS(SCATTER)};

/* Atomic, because other threads may run other groups on the same memory. */
void ir_atomic_adds(bool f64, int32_t lanes, int32_t w, const int64_t *at, void *to,
                    const void *from) {
  for (int32_t l = 0; l < lanes; l++) {
    if (at[l] < 0) continue;
    if (f64) {
      double *p = (double *)to + at[l] + w, was, sum;
      __atomic_load(p, &was, __ATOMIC_RELAXED);
      do sum = was + ((const double *)from)[l];
      while (!__atomic_compare_exchange(p, &was, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    } else {
      float *p = (float *)to + at[l] + w, was, sum;
      __atomic_load(p, &was, __ATOMIC_RELAXED);
      do sum = was + ((const float *)from)[l];
      while (!__atomic_compare_exchange(p, &was, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    }
  }
}
