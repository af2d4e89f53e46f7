/* tests/intel/results.c - rows into registers: conversion, mask, condition. */
#include <fenv.h>

#include "tests/intel/registers.h"

const unsigned char *intel_gather(intel_thread *t, const intel_ins *i, const intel_operand *o,
                                  unsigned char *copy) {
  int bytes = intel_type_bytes[o->type];
  uint32_t on = intel_enabled(t, i), registers = t->launch->kernel->registers;
  for (int k = 0; k < i->lanes; k++) {
    uint32_t at = 0;
    if (o->where == NIBBLES) {
      int nibble = (int)(o->number >> 4 * (k % 8) & 15);
      int16_t value = (int16_t)(o->type == W && nibble > 7 ? nibble - 16 : nibble);
      memcpy(copy + k * bytes, &value, sizeof value);
      continue;
    }
    if (o->where == FLAG || o->where == CONTROL) { /* of scalar instructions */
      uint32_t bits = o->where == FLAG ? t->flags[o->at / 32] >> o->at % 32 : t->control;
      memcpy(copy, &bits, sizeof bits);
      return copy;
    }
    if (o->where == REGISTER) at = intel_lane_at(o, k);
    else {
      uint16_t address;
      memcpy(&address, t->g + INTEL_ADDRESS + 2 * (o->at + (uint32_t)(k / o->w)), 2);
      at = (uint32_t)(address + o->offset + k % o->w * o->h * bytes);
      bool good = at + (uint32_t)bytes <= registers * INTEL_REGISTER && at % (uint32_t)bytes == 0;
      if (!good && on >> k & 1) intel_fail(t, i, "channel %d reads the register byte %u", k, at);
      if (!good) at = 0;
    }
    memcpy(copy + k * bytes, t->g + at, (size_t)bytes);
  }
  return copy;
}

/* ---- comparisons ---- */

#define COMPARE(op)                                                                                \
  INTEL_EACH(n, r |= (uint32_t)(a[k] op b[k]) << k;)                                               \
  break
#define COMPARISONS                                                                                \
  uint32_t r = 0;                                                                                  \
  switch (c) {                                                                                     \
    case EQ: COMPARE(==);                                                                          \
    case NE: COMPARE(!=);                                                                          \
    case LT: COMPARE(<);                                                                           \
    case LE: COMPARE(<=);                                                                          \
    case GT: COMPARE(>);                                                                           \
    case GE: COMPARE(>=);                                                                          \
    default: break;                                                                                \
  }                                                                                                \
  return r

static uint32_t compare_signed(intel_condition c, const int64_t *a, const int64_t *b, int n) {
  COMPARISONS;
}
static uint32_t compare_unsigned(intel_condition c, const uint64_t *a, const uint64_t *b, int n) {
  COMPARISONS;
}
uint32_t intel_compare_floats(intel_condition c, const float *a, const float *b, int n) {
  COMPARISONS;
}
uint32_t intel_compare_doubles(intel_condition c, const double *a, const double *b, int n) {
  COMPARISONS;
}
uint32_t intel_compare_longs(intel_condition c, bool is_unsigned, const uint64_t *a,
                             const uint64_t *b, int n) {
  return is_unsigned ? compare_unsigned(c, a, b, n)
                     : compare_signed(c, (const int64_t *)a, (const int64_t *)b, n);
}

/* ---- into registers ---- */

#define STORE(type, value)                                                                         \
  do {                                                                                             \
    if (lanes == intel_all(i->lanes))                                                              \
      INTEL_EACH(n, {                                                                              \
        type x = (type)(value);                                                                    \
        memcpy(p + k * step, &x, sizeof x);                                                        \
      })                                                                                           \
    else                                                                                           \
      for (int k = 0; k < n; k++)                                                                  \
        if (lanes >> k & 1) {                                                                      \
          type x = (type)(value);                                                                  \
          memcpy(p + k * step, &x, sizeof x);                                                      \
        }                                                                                          \
  } while (0)
#define PLACE                                                                                      \
  const int n = i->lanes, step = i->d.step;                                                        \
  unsigned char *p = t->g + i->d.at

INTEL_CLONES static void store_words(intel_thread *t, const intel_ins *i, const uint32_t *row,
                                     uint32_t lanes) {
  PLACE;
  switch (i->d.type) {
    case UB:
    case B: STORE(uint8_t, row[k]); break;
    case UW:
    case W: STORE(uint16_t, row[k]); break;
    default: STORE(uint32_t, row[k]); break;
  }
}

INTEL_CLONES static void store_longs(intel_thread *t, const intel_ins *i, const uint64_t *row,
                                     uint32_t lanes) {
  PLACE;
  switch (intel_type_bytes[i->d.type]) {
    case 1: STORE(uint8_t, row[k]); break;
    case 2: STORE(uint16_t, row[k]); break;
    case 4: STORE(uint32_t, row[k]); break;
    default: STORE(uint64_t, row[k]); break;
  }
}

/* The control register, or 16 or 32 bits of a flag: scalars. */
static void store_special(intel_thread *t, const intel_ins *i, uint64_t value, uint32_t lanes) {
  if (!(lanes & 1)) return;
  if (i->d.where == CONTROL) {
    uint32_t mode = (uint32_t)value >> 4 & 3;
    t->control = (uint32_t)value;
    t->to_zero = mode == 3;
    if (mode == 1 || mode == 2) intel_fail(t, i, "rounding mode %u is not known", mode);
    return;
  }
  uint32_t bits = intel_type_bytes[i->d.type] == 4 ? ~0u : 0xffff, shift = i->d.at % 32;
  t->flags[i->d.at / 32] = (t->flags[i->d.at / 32] & ~(bits << shift)) | ((uint32_t)value & bits)
                                                                             << shift;
  t->flags_known[i->d.at / 32] |= bits << shift;
}

/* A condition compares the result with 0, in the result's type. */
static void set_condition(intel_thread *t, const intel_ins *i, const uint64_t *row,
                          uint32_t lanes) {
  static const uint64_t zeros[INTEL_LANES];
  uint64_t value[INTEL_LANES];
  int bits = 8 * intel_type_bytes[i->d.type];
  bool is_unsigned = i->d.type == UB || i->d.type == UW || i->d.type == UD || i->d.type == UQ;
  for (int k = 0; k < i->lanes; k++) {
    value[k] = bits == 64 ? row[k] : row[k] & ((1ull << bits) - 1);
    if (!is_unsigned && bits < 64 && value[k] >> (bits - 1)) value[k] |= ~0ull << bits;
  }
  intel_set_flag(t, i, lanes,
                 intel_compare_longs(i->condition, is_unsigned, value, zeros, i->lanes));
}

void intel_put_words(intel_thread *t, const intel_ins *i, const uint32_t *row) {
  uint32_t lanes = intel_mask(t, i);
  if (i->d.where == REGISTER && !i->flag) {
    store_words(t, i, row, lanes);
    return;
  }
  uint64_t wide[INTEL_LANES];
  for (int k = 0; k < i->lanes; k++) wide[k] = row[k];
  if (i->flag) set_condition(t, i, wide, lanes);
  if (i->d.where == REGISTER) store_words(t, i, row, lanes);
  else if (i->d.where) store_special(t, i, row[0], lanes);
}

void intel_put_bits(intel_thread *t, const intel_ins *i, const uint64_t *row) {
  uint32_t lanes = intel_mask(t, i);
  if (i->d.where == REGISTER) store_longs(t, i, row, lanes);
  else if (i->d.where) store_special(t, i, row[0], lanes);
}

INTEL_CLONES void intel_put_longs(intel_thread *t, const intel_ins *i, const uint64_t *row) {
  uint32_t lanes = intel_mask(t, i);
  if (i->flag) set_condition(t, i, row, lanes);
  if (i->d.where != REGISTER) {
    if (i->d.where) store_special(t, i, row[0], lanes);
    return;
  }
  if (i->d.type < HF) {
    store_longs(t, i, row, lanes);
    return;
  }
  PLACE;
  bool is_unsigned = i->s[0].type == UQ;
#define NUMBER_OF(type) (is_unsigned ? (type)row[k] : (type)(int64_t)row[k])
  if (i->d.type == F) STORE(float, NUMBER_OF(float));
  else if (i->d.type == DF) STORE(double, NUMBER_OF(double));
  else STORE(intel_half, NUMBER_OF(double));
#undef NUMBER_OF
}

/* Towards zero, clamped; NaN gives 0. */
static uint64_t integer_of(double x, int type) {
  static const double low[] = {0, -128, 0, -32768, 0, -0x1p31, 0, -0x1p63},
                      high[] = {255, 127, 65535, 32767, 0xffffffffu, 0x7fffffff, 0x1p64, 0x1p63};
  if (isnan(x)) return 0;
  x = trunc(x);
  if (x <= low[type]) return type == Q ? 1ull << 63 : (uint64_t)(int64_t)low[type];
  if (x >= high[type])
    return type == UQ ? ~0ull : type == Q ? ~0ull >> 1 : (uint64_t)(int64_t)high[type];
  return type == UQ ? (uint64_t)x : (uint64_t)(int64_t)x;
}

static void put_integers(intel_thread *t, const intel_ins *i, const double *row, uint32_t lanes) {
  uint64_t integers[INTEL_LANES];
  for (int k = 0; k < i->lanes; k++) integers[k] = integer_of(row[k], i->d.type);
  if (i->flag) set_condition(t, i, integers, lanes);
  if (i->d.where == REGISTER) store_longs(t, i, integers, lanes);
}

INTEL_CLONES void intel_put_floats(intel_thread *t, const intel_ins *i, const float *row) {
  static const float zeros[INTEL_LANES];
  uint32_t lanes = intel_mask(t, i);
  PLACE;
  if (i->d.type < HF) {
    double wide[INTEL_LANES];
    for (int k = 0; k < i->lanes; k++) wide[k] = (double)row[k];
    put_integers(t, i, wide, lanes);
    return;
  }
  if (i->flag)
    intel_set_flag(t, i, lanes, intel_compare_floats(i->condition, row, zeros, i->lanes));
  if (i->d.where != REGISTER) return;
  if (i->d.type == F) STORE(float, row[k]);
  else if (i->d.type == DF) STORE(double, row[k]);
  else STORE(intel_half, row[k]);
}

INTEL_CLONES void intel_put_doubles(intel_thread *t, const intel_ins *i, const double *row) {
  static const double zeros[INTEL_LANES];
  uint32_t lanes = intel_mask(t, i);
  PLACE;
  if (i->d.type < HF) {
    put_integers(t, i, row, lanes);
    return;
  }
  if (i->flag)
    intel_set_flag(t, i, lanes, intel_compare_doubles(i->condition, row, zeros, i->lanes));
  if (i->d.where != REGISTER) return;
  if (i->d.type == DF) STORE(double, row[k]);
  else if (i->d.type == F) STORE(float, row[k]);
  else STORE(intel_half, row[k]);
}

/* Rounding towards zero, which the code asks for around a few instructions. */
void intel_towards_zero(intel_thread *t, const intel_ins *i) {
  fesetround(FE_TOWARDZERO);
  i->run(t, i);
  fesetround(FE_TONEAREST);
}
