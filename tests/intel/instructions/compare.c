/* tests/intel/instructions/compare.c - comparisons, selections, minima and maxima. */
#include "tests/intel/registers.h"

/* ---- cmp: flags of the channels that are on; a result, if there is one, is all ones or 0 ---- */

static void put_comparison(intel_thread *t, const intel_ins *i, uint32_t bits) {
  uint32_t lanes = intel_mask(t, i);
  intel_set_flag(t, i, lanes, bits);
  if (i->d.where != REGISTER) return;
  uint64_t ones[INTEL_LANES];
  for (int k = 0; k < i->lanes; k++) ones[k] = 0ull - (bits >> k & 1);
  intel_put_bits(t, i, ones);
}

INTEL_CLONES static void cmp_longs(intel_thread *t, const intel_ins *i) {
  uint64_t rows[2][INTEL_LANES];
  const uint64_t *a = intel_longs(t, i, &i->s[0], rows[0], false),
                 *b = intel_longs(t, i, &i->s[1], rows[1], false);
  bool is_unsigned = i->s[0].type == UQ || i->s[1].type == UQ;
  put_comparison(t, i, intel_compare_longs(i->condition, is_unsigned, a, b, i->lanes));
}
INTEL_CLONES static void cmp_floats(intel_thread *t, const intel_ins *i) {
  float rows[2][INTEL_LANES];
  const float *a = intel_floats(t, i, &i->s[0], rows[0]),
              *b = intel_floats(t, i, &i->s[1], rows[1]);
  put_comparison(t, i, intel_compare_floats(i->condition, a, b, i->lanes));
}
INTEL_CLONES static void cmp_doubles(intel_thread *t, const intel_ins *i) {
  double rows[2][INTEL_LANES];
  const double *a = intel_doubles(t, i, &i->s[0], rows[0]),
               *b = intel_doubles(t, i, &i->s[1], rows[1]);
  put_comparison(t, i, intel_compare_doubles(i->condition, a, b, i->lanes));
}

/* ---- sel: by the predicate, which is no mask; without one by the condition ge or lt, which is the
   maximum or minimum, and of a NaN and a number the number ---- */

static const intel_ins *without_predicate(const intel_ins *i, intel_ins *plain) {
  *plain = *i;
  plain->predicate = 0;
  return plain;
}

#define SELECT(name, type, get, put, pick)                                                         \
  INTEL_CLONES static void name(intel_thread *t, const intel_ins *i) {                             \
    type rows[2][INTEL_LANES], r[INTEL_LANES];                                                     \
    const int n = i->lanes;                                                                        \
    intel_ins plain;                                                                               \
    const type *a = get, *b = (pick);                                                              \
    uint32_t bits = intel_predicate(t, i, intel_enabled(t, i));                                    \
    INTEL_EACH(n, r[k] = bits >> k & 1 ? a[k] : b[k];)                                             \
    put(t, without_predicate(i, &plain), r);                                                       \
  }
SELECT(sel_words, uint32_t, intel_words(t, i, &i->s[0], rows[0], false), intel_put_words,
       intel_words(t, i, &i->s[1], rows[1], false))
SELECT(sel_longs, uint64_t, intel_longs(t, i, &i->s[0], rows[0], false), intel_put_longs,
       intel_longs(t, i, &i->s[1], rows[1], false))
SELECT(sel_floats, float, intel_floats(t, i, &i->s[0], rows[0]), intel_put_floats,
       intel_floats(t, i, &i->s[1], rows[1]))
SELECT(sel_doubles, double, intel_doubles(t, i, &i->s[0], rows[0]), intel_put_doubles,
       intel_doubles(t, i, &i->s[1], rows[1]))

#define EXTREME(name, type, get0, get1, put, compare, number)                                      \
  INTEL_CLONES static void name(intel_thread *t, const intel_ins *i) {                             \
    type rows[2][INTEL_LANES], r[INTEL_LANES];                                                     \
    const int n = i->lanes;                                                                        \
    const type *a = get0, *b = get1;                                                               \
    uint32_t bits = compare;                                                                       \
    INTEL_EACH(n, r[k] = ((bits >> k & 1) | !(number(b[k]))) && number(a[k]) ? a[k] : b[k];)       \
    put(t, i, r);                                                                                  \
  }
#define INTEGER(x) ((void)(x), true)
#define NUMBER_OF(x) ((x) == (x))
EXTREME(extreme_longs, uint64_t, intel_longs(t, i, &i->s[0], rows[0], false),
        intel_longs(t, i, &i->s[1], rows[1], false), intel_put_longs,
        intel_compare_longs(i->condition, false, a, b, n), INTEGER)
EXTREME(extreme_floats, float, intel_floats(t, i, &i->s[0], rows[0]),
        intel_floats(t, i, &i->s[1], rows[1]), intel_put_floats,
        intel_compare_floats(i->condition, a, b, n), NUMBER_OF)
EXTREME(extreme_doubles, double, intel_doubles(t, i, &i->s[0], rows[0]),
        intel_doubles(t, i, &i->s[1], rows[1]), intel_put_doubles,
        intel_compare_doubles(i->condition, a, b, n), NUMBER_OF)

const intel_op intel_compare_ops[] = {
    {"cmp", 2, false, NULL, cmp_longs, cmp_floats, cmp_doubles},
    {"sel", 2, false, sel_words, sel_longs, sel_floats, sel_doubles},
    {"sel.extreme", 2, false, NULL, extreme_longs, extreme_floats, extreme_doubles},
    {0},
};
