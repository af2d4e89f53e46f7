/* tests/amd/instructions/vector.c - how a vector instruction reads its rows and stores its result.
 */
#include "tests/amd/lanes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const uint32_t amd_zeros[2 * AMD_ROW];

AMD_CLONES void amd_spread(uint32_t *row, uint64_t mask, int n) {
  for (int half = 0; half < n; half += 32)
    for (int i = 0; i < 32; i++) row[half + i] = 0u - ((uint32_t)(mask >> half) >> i & 1u);
}

uint64_t amd_gather(const uint32_t *row, int n) {
  uint64_t mask = 0;
#ifdef __SSE2__
  for (int i = 0; i < n; i += 4) {
    __m128 four;
    memcpy(&four, row + i, sizeof four);
    mask |= (uint64_t)(unsigned)_mm_movemask_ps(four) << i;
  }
#else
  for (int i = 0; i < n; i++) mask |= (uint64_t)(row[i] >> 31) << i;
#endif
  return mask;
}

void amd_set_exec(amd_wave *w) {
  w->exec = w->lanes == 64 ? (uint64_t)w->s[AMD_EXEC + 1] << 32 | w->s[AMD_EXEC] : w->s[AMD_EXEC];
  amd_spread(w->mask, w->exec, w->lanes);
}

/* ---- operands ---- */

AMD_CLONES static void fill(uint32_t *row, uint32_t word, int n) {
  for (int i = 0; i < (n & ~31); i++) row[i] = word;
}

static inline const uint32_t *row_of(amd_wave *w, const amd_ins *i, int which) {
  const amd_operand o = i->s[which];
  uint32_t *t = w->temporary[which];
  if (o.where == AMD_VECTOR) return w->v[o.index];
  if (o.where == AMD_CONSTANT) return w->rows[o.index];
  if (o.where == AMD_NONE) return amd_zeros;
  if (i->mask == which + 1) {
    amd_spread(t, amd_mask_of(w, o), w->lanes);
    return t;
  }
  fill(t, w->s[o.index], w->lanes);
  if (o.words > 1) fill(t + AMD_ROW, w->s[o.index + 1], w->lanes);
  return t;
}

static uint32_t selected(uint32_t x, unsigned select, bool sext) {
  uint32_t shift = select == AMD_WORD_1   ? 16
                   : select >= AMD_BYTE_0 ? 8 * (select - AMD_BYTE_0)
                                          : 0,
           bits = select >= AMD_BYTE_0 ? 8 : 16;
  uint32_t y = x >> shift & ((1u << bits) - 1);
  return sext && y >> (bits - 1) ? y | ~((1u << bits) - 1) : y;
}

/* Selection, sign extension, |x|, -x, in this order. */
static const uint32_t *modified(amd_wave *w, const amd_ins *i, int which, const uint32_t *row) {
  const amd_operand o = i->s[which];
  char type = i->source[which];
  uint32_t *t = w->temporary[which], sign = type == 'h' ? 0x8000u : 0x80000000u;
  int words = strchr("qid", type) && type ? 2 : 1, top = (words - 1) * AMD_ROW;
  for (int k = 0; k < words && row != t; k++)
    memcpy(t + k * AMD_ROW, row + k * AMD_ROW, (size_t)w->lanes * 4);
  if (o.select)
    for (int l = 0; l < w->lanes; l++) t[l] = selected(t[l], o.select, o.sext);
  if (o.abs)
    for (int l = 0; l < w->lanes; l++) t[top + l] &= ~sign;
  if (o.neg)
    for (int l = 0; l < w->lanes; l++) t[top + l] ^= sign;
  return t;
}

const uint32_t *amd_fetch(amd_wave *w, const amd_ins *i, int which) {
  const amd_operand *o = &i->s[which];
  const uint32_t *row = row_of(w, i, which);
  return o->neg || o->abs || o->select || o->sext ? modified(w, i, which, row) : row;
}

/* ---- results ---- */

/* Clamped to [0, 1]; NaN becomes 0. */
static void clamp(char type, uint32_t *r, int n) {
  for (int l = 0; l < n; l++)
    if (type == 'd') {
      double x = getd(r, l), y = x > 0 ? x < 1 ? x : 1 : 0;
      r[l] = (uint32_t)bits_of_f64(y);
      r[AMD_ROW + l] = (uint32_t)(bits_of_f64(y) >> 32);
    } else {
      float x = type == 'f' ? f32_of(r[l]) : f32_of_half(r[l]), y = x > 0 ? x < 1 ? x : 1 : 0;
      r[l] = type == 'f' ? bits_of(y) : half_of(y);
    }
}

/* Writes a part of the result's word; the other parts are kept or cleared. */
static void place(const amd_ins *i, uint32_t *r, const uint32_t *old, int n) {
  unsigned s = i->select, shift = s == AMD_WORD_1 ? 16 : s >= AMD_BYTE_0 ? 8 * (s - AMD_BYTE_0) : 0;
  uint32_t part = s >= AMD_BYTE_0 ? 0xffu : 0xffffu;
  for (int l = 0; l < n; l++)
    r[l] = (r[l] & part) << shift | (i->keep ? old[l] & ~(part << shift) : 0);
}

void amd_run_vector_plain(amd_wave *w, const amd_ins *i) {
  if (!w->exec) return;
  i->lanes(w->v[i->d.index], row_of(w, i, 0), row_of(w, i, 1), row_of(w, i, 2), w->mask, w->lanes);
}

void amd_run_vector(amd_wave *w, const amd_ins *i) {
  uint32_t *d = w->v[i->d.index], *r = w->temporary[4];
  char type = i->result;
  int words = strchr("qidp", type) ? 2 : 1;
  if (!w->exec) return;
  if (i->omod) amd_fail(w, i, "an output modifier, which means nothing where denormals are kept");
  if (i->clamp && !strchr("fdh", type)) amd_fail(w, i, "an integer's clamp is not emulated");
  memcpy(r, d, (size_t)words * AMD_ROW * 4);
  i->lanes(r, amd_fetch(w, i, 0), amd_fetch(w, i, 1), amd_fetch(w, i, 2), w->mask, w->lanes);
  if (i->clamp) clamp(type, r, w->lanes);
  if (i->select) place(i, r, d, w->lanes);
  for (int k = 0; k < words; k++)
    for (int l = 0; l < w->lanes; l++) put(d + k * AMD_ROW, w->mask, l, r[k * AMD_ROW + l]);
}

/* Both halves of a v_dual_ line read before either writes. */
void amd_run_pair(amd_wave *w, const amd_ins *i) {
  uint32_t *first = w->v[i->d.index], old[AMD_ROW], now[AMD_ROW];
  if (i->crossed == 1) i->pair->run(w, i->pair);
  if (i->crossed == 2) memcpy(old, first, sizeof old);
  i->solo(w, i);
  if (i->crossed == 2) {
    memcpy(now, first, sizeof now);
    memcpy(first, old, sizeof old);
  }
  if (i->crossed != 1) i->pair->run(w, i->pair);
  if (i->crossed == 2) memcpy(first, now, sizeof now);
}

void amd_run_nothing(amd_wave *w, const amd_ins *i) { (void)w, (void)i; }
void amd_run_unknown(amd_wave *w, const amd_ins *i) {
  amd_fail(w, i, "this instruction, or one of its operands or modifiers, is not known");
}
