/* tests/intel/registers.h - helpers for writing instructions: masks, sources as rows of numbers,
   results back into registers. */
#ifndef CLB_TESTS_INTEL_REGISTERS_H
#define CLB_TESTS_INTEL_REGISTERS_H

#include <math.h>
#include <string.h>

#include "tests/intel/intel.h"

/* Rows run many lanes at a time where the processor can; sanitizers are not ready when that is
   decided. */
#if defined __x86_64__ && defined __gnu_linux__ && !defined __clang__ &&                           \
    !defined __SANITIZE_ADDRESS__
#define INTEL_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define INTEL_CLONES
#endif
#define INTEL_INLINE static inline __attribute__((always_inline))
/* 16 lanes, which most instructions have, are a loop of known length. */
#define INTEL_EACH(n, ...)                                                                         \
  {                                                                                                \
    if ((n) == INTEL_SUBGROUP) {                                                                   \
      for (int k = 0; k < INTEL_SUBGROUP; k++) __VA_ARGS__                                         \
    } else {                                                                                       \
      for (int k = 0; k < (n); k++) __VA_ARGS__                                                    \
    }                                                                                              \
  }

__extension__ typedef _Float16 intel_half;
__extension__ typedef __float128 intel_quad;

#define INTEL_BITS_OF(name, number, bits)                                                          \
  static inline number name(bits b) {                                                              \
    number x;                                                                                      \
    memcpy(&x, &b, sizeof x);                                                                      \
    return x;                                                                                      \
  }
INTEL_BITS_OF(f_of, float, uint32_t)
INTEL_BITS_OF(df_of, double, uint64_t)
INTEL_BITS_OF(hf_of, intel_half, uint16_t)
INTEL_BITS_OF(bits_of_f, uint32_t, float)
INTEL_BITS_OF(bits_of_df, uint64_t, double)

/* ---- masks ---- */

static inline uint32_t intel_all(int lanes) { return lanes == 32 ? ~0u : (1u << lanes) - 1; }

static inline uint32_t intel_flag_bits(const uint32_t *flags, int bit, int lanes) {
  return flags[bit / 32] >> bit % 32 & intel_all(lanes);
}

/* The channels that are on, without the predicate. */
static inline uint32_t intel_enabled(const intel_thread *t, const intel_ins *i) {
  return (i->all ? ~0u : t->mask) & intel_all(i->lanes);
}

/* The predicate of these channels; a bit that nothing has written is an error. */
static inline uint32_t intel_predicate(intel_thread *t, const intel_ins *i, uint32_t lanes) {
  int bit = i->predicate - 1;
  if (lanes & ~intel_flag_bits(t->flags_known, bit, i->lanes))
    intel_fail(t, i, "nothing has written flag f%d.%d", bit / 32, bit / 16 % 2);
  uint32_t bits = intel_flag_bits(t->flags, bit, i->lanes);
  return lanes & (i->inverted ? ~bits : bits);
}

static inline uint32_t intel_mask(intel_thread *t, const intel_ins *i) {
  uint32_t lanes = intel_enabled(t, i);
  return i->predicate ? intel_predicate(t, i, lanes) : lanes;
}

static inline void intel_set_flag(intel_thread *t, const intel_ins *i, uint32_t lanes,
                                  uint32_t bits) {
  int word = (i->flag - 1) / 32, shift = (i->flag - 1) % 32;
  t->flags[word] = (t->flags[word] & ~(lanes << shift)) | (bits & lanes) << shift;
  t->flags_known[word] |= lanes << shift;
}

/* ---- sources ---- */

/* Where lane k of a register operand lies. */
static inline uint32_t intel_lane_at(const intel_operand *o, int k) {
  if (o->step >= 0) return o->at + (uint32_t)(o->step * k);
  return o->at + (uint32_t)((k / o->w) * o->v + (k % o->w) * o->h) * intel_type_bytes[o->type];
}

/* The bytes of all lanes one behind another, and their distance: of indirect operands and of
   regions with rows a copy. */
const unsigned char *intel_gather(intel_thread *t, const intel_ins *i, const intel_operand *o,
                                  unsigned char *copy);

static inline const unsigned char *intel_source(intel_thread *t, const intel_ins *i,
                                                const intel_operand *o, unsigned char *copy,
                                                int *step) {
  *step = o->step;
  if (o->where == REGISTER && o->step >= 0) return t->g + o->at;
  *step = intel_type_bytes[o->type];
  return intel_gather(t, i, o, copy);
}

#define INTEL_COPY(to, type)                                                                       \
  INTEL_EACH(n, {                                                                                  \
    type x;                                                                                        \
    memcpy(&x, p + k * step, sizeof x);                                                            \
    row[k] = (to)x;                                                                                \
  })
#define INTEL_MODIFY(integer, unsigned_, zero)                                                     \
  if (o->absolute) INTEL_EACH(n, row[k] = (integer)row[k] < 0 ? zero - row[k] : row[k];)           \
  if (o->negative) INTEL_EACH(n, row[k] = zero - row[k];)

/* Integers, extended by their sign or by zeros to the row's type. */
#define INTEL_INTEGERS(name, row_type, integer)                                                    \
  INTEL_INLINE const row_type *name(intel_thread *t, const intel_ins *i, const intel_operand *o,   \
                                    row_type *row, bool logic) {                                   \
    const int n = i->lanes;                                                                        \
    int step;                                                                                      \
    unsigned char copy[INTEL_LANES * 8];                                                           \
    if (o->where == NUMBER) {                                                                      \
      INTEL_EACH(n, row[k] = (row_type)o->number;)                                                 \
    } else {                                                                                       \
      const unsigned char *p = intel_source(t, i, o, copy, &step);                                 \
      switch (o->type) {                                                                           \
        case UB: INTEL_COPY(row_type, uint8_t) break;                                              \
        case B: INTEL_COPY(row_type, int8_t) break;                                                \
        case UW: INTEL_COPY(row_type, uint16_t) break;                                             \
        case W: INTEL_COPY(row_type, int16_t) break;                                               \
        case UD: INTEL_COPY(row_type, uint32_t) break;                                             \
        case D: INTEL_COPY(row_type, int32_t) break;                                               \
        default: INTEL_COPY(row_type, int64_t) break;                                              \
      }                                                                                            \
    }                                                                                              \
    if (logic) {                                                                                   \
      if (o->negative) INTEL_EACH(n, row[k] = ~row[k];)                                            \
    } else if (o->negative | o->absolute) {                                                        \
      INTEL_MODIFY(integer, row_type, (row_type)0)                                                 \
    }                                                                                              \
    return row;                                                                                    \
  }
INTEL_INTEGERS(intel_words, uint32_t, int32_t)
INTEL_INTEGERS(intel_longs, uint64_t, int64_t)

INTEL_INLINE const float *intel_floats(intel_thread *t, const intel_ins *i, const intel_operand *o,
                                       float *row) {
  const int n = i->lanes;
  int step;
  unsigned char copy[INTEL_LANES * 8];
  if (o->where == NUMBER) {
    float x = o->type == HF ? (float)hf_of((uint16_t)o->number) : f_of((uint32_t)o->number);
    INTEL_EACH(n, row[k] = x;)
  } else {
    const unsigned char *p = intel_source(t, i, o, copy, &step);
    if (o->type == HF) INTEL_COPY(float, intel_half)
    else INTEL_COPY(float, float)
  }
  if (o->absolute) INTEL_EACH(n, row[k] = fabsf(row[k]);)
  if (o->negative) INTEL_EACH(n, row[k] = -row[k];)
  return row;
}

INTEL_INLINE const double *intel_doubles(intel_thread *t, const intel_ins *i,
                                         const intel_operand *o, double *row) {
  const int n = i->lanes;
  int step;
  unsigned char copy[INTEL_LANES * 8];
  if (o->where == NUMBER) {
    INTEL_EACH(n, row[k] = df_of((uint64_t)o->number);)
  } else {
    const unsigned char *p = intel_source(t, i, o, copy, &step);
    INTEL_COPY(double, double)
  }
  if (o->absolute) INTEL_EACH(n, row[k] = fabs(row[k]);)
  if (o->negative) INTEL_EACH(n, row[k] = -row[k];)
  return row;
}

/* A number between -1 and 1, more often one of the two: an approximation's error, in parts of what
   is allowed. */
double intel_random_error(intel_thread *t);

/* ---- results ---- */

/* Rows of integers (as unsigned; the low bits are kept), f or df into the result, converted to its
   type, where the mask is on; and the flags of a condition, which compares the result with 0. */
void intel_put_words(intel_thread *t, const intel_ins *i, const uint32_t *row);
void intel_put_longs(intel_thread *t, const intel_ins *i, const uint64_t *row);
void intel_put_floats(intel_thread *t, const intel_ins *i, const float *row);
void intel_put_doubles(intel_thread *t, const intel_ins *i, const double *row);
/* Bits as they are, of the result's size. */
void intel_put_bits(intel_thread *t, const intel_ins *i, const uint64_t *row);
uint32_t intel_compare_longs(intel_condition c, bool is_unsigned, const uint64_t *a,
                             const uint64_t *b, int n);
uint32_t intel_compare_floats(intel_condition c, const float *a, const float *b, int n);
uint32_t intel_compare_doubles(intel_condition c, const double *a, const double *b, int n);

intel_run intel_run_unknown, intel_run_nothing, intel_run_jump, intel_run_goto, intel_run_join,
    intel_run_barrier;
/* Tables that end with a NULL name. */
extern const intel_op intel_integer_ops[], intel_float_ops[], intel_compare_ops[];
void intel_towards_zero(intel_thread *t, const intel_ins *i);
bool intel_choose_move(intel_ins *i);
bool intel_choose_macro(intel_ins *i);
bool intel_is_float(const intel_operand *o);

#endif
