/* tests/amd/lanes.h - helpers for writing instructions: bits, rows of lanes, operands. */
#ifndef CLB_TESTS_AMD_LANES_H
#define CLB_TESTS_AMD_LANES_H

#include <math.h>
#include <string.h>

#include "tests/amd/amd.h"

/* Rows run eight lanes at a time where the processor can; sanitizers are not ready when that is
   decided. */
#if defined __x86_64__ && defined __gnu_linux__ && !defined __clang__ &&                           \
    !defined __SANITIZE_ADDRESS__
#define AMD_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define AMD_CLONES
#endif
#define AMD_LANES_OF                                                                               \
  uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c, const uint32_t *m, int n
#define AMD_LANES(name) AMD_CLONES static void name(AMD_LANES_OF)
/* Rows may be the same register, but never overlap in part. */
#define AMD_EACH _Pragma("GCC ivdep") for (int i = 0; i < (n & ~31); i++)

static inline float f32_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static inline double f64_of(uint32_t low, uint32_t high) {
  uint64_t bits = (uint64_t)high << 32 | low;
  double x;
  memcpy(&x, &bits, 8);
  return x;
}
static inline uint64_t bits_of_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}
__extension__ typedef _Float16 amd_half;
static inline float f32_of_half(uint32_t bits) {
  uint16_t low = (uint16_t)bits;
  amd_half x;
  memcpy(&x, &low, 2);
  return (float)x;
}
/* To nearest even. */
static inline uint32_t half_of(float f) {
  amd_half x = (amd_half)f;
  uint16_t bits;
  memcpy(&bits, &x, 2);
  return bits;
}

static inline void put(uint32_t *d, const uint32_t *m, int i, uint32_t r) {
  d[i] = (r & m[i]) | (d[i] & ~m[i]);
}
static inline void put64(uint32_t *d, const uint32_t *m, int i, uint64_t r) {
  put(d, m, i, (uint32_t)r);
  put(d + AMD_ROW, m, i, (uint32_t)(r >> 32));
}
static inline uint64_t get64(const uint32_t *a, int i) {
  return (uint64_t)a[AMD_ROW + i] << 32 | a[i];
}
static inline double getd(const uint32_t *a, int i) { return f64_of(a[i], a[AMD_ROW + i]); }

/* ---- operands ---- */

static inline uint32_t amd_word(const amd_wave *w, amd_operand o) {
  return o.where == AMD_CONSTANT ? w->words[o.index][0] : w->s[o.index];
}
static inline uint64_t amd_pair_of(const amd_wave *w, amd_operand o) {
  const uint32_t *s = o.where == AMD_CONSTANT ? w->words[o.index] : w->s + o.index;
  return (uint64_t)s[1] << 32 | s[0];
}
static inline uint64_t amd_mask_of(const amd_wave *w, amd_operand o) {
  return w->lanes == 64 ? amd_pair_of(w, o) : amd_word(w, o);
}
static inline void amd_put_mask(amd_wave *w, const amd_ins *i, amd_operand o, uint64_t mask) {
  (void)i;
  if (o.index == AMD_NULL) return;
  w->s[o.index] = (uint32_t)mask;
  if (w->lanes == 64) w->s[o.index + 1] = (uint32_t)(mask >> 32);
  if (o.index == AMD_EXEC) amd_set_exec(w);
}
/* The operand's row, with its modifiers; `slot` tells the temporaries apart. */
const uint32_t *amd_fetch(amd_wave *w, const amd_ins *i, int which);
/* The bits of a mask, each over its lane; and back: the top bits of a row. */
void amd_spread(uint32_t *row, uint64_t mask, int n);
uint64_t amd_gather(const uint32_t *row, int n);

amd_run amd_run_unknown, amd_run_nothing, amd_run_vector, amd_run_vector_plain, amd_run_pair;
extern const uint32_t amd_zeros[2 * AMD_ROW];

#endif
