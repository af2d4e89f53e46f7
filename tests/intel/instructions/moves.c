/* tests/intel/instructions/moves.c - mov: conversions, and copies of bits. */
#include "tests/intel/registers.h"

INTEL_CLONES static void from_words(intel_thread *t, const intel_ins *i) {
  uint32_t row[INTEL_LANES];
  intel_put_words(t, i, intel_words(t, i, &i->s[0], row, false));
}
INTEL_CLONES static void from_longs(intel_thread *t, const intel_ins *i) {
  uint64_t row[INTEL_LANES];
  intel_put_longs(t, i, intel_longs(t, i, &i->s[0], row, false));
}
INTEL_CLONES static void from_floats(intel_thread *t, const intel_ins *i) {
  float row[INTEL_LANES];
  intel_put_floats(t, i, intel_floats(t, i, &i->s[0], row));
}
INTEL_CLONES static void from_doubles(intel_thread *t, const intel_ins *i) {
  double row[INTEL_LANES];
  intel_put_doubles(t, i, intel_doubles(t, i, &i->s[0], row));
}

/* Between operands of one type, also of a number: never through a floating-point register. */
INTEL_CLONES static void copy(intel_thread *t, const intel_ins *i) {
  uint64_t row[INTEL_LANES];
  intel_operand bits = i->s[0];
  static const uint8_t integer[INTEL_TYPES] = {[HF] = UW, [F] = UD, [DF] = UQ};
  bits.type = integer[bits.type];
  intel_put_bits(t, i, intel_longs(t, i, &bits, row, false));
}

enum { FROM_WORDS, FROM_LONGS, FROM_FLOATS, FROM_DOUBLES, COPY };
static intel_run *const runs[] = {from_words, from_longs, from_floats, from_doubles, copy};

bool intel_choose_move(intel_ins *i) {
  const intel_operand *from = &i->s[0];
  int bytes = intel_type_bytes[i->d.type];
  bool same = i->d.type == from->type && !from->negative && !from->absolute;
  if (i->condition && (!i->flag || i->condition == EARLY_OUT)) return false;
  bool longs = intel_is_float(&i->d) || bytes == 8 || intel_type_bytes[from->type] == 8;
  i->run = runs[same && intel_is_float(from) && !i->flag ? COPY
                : from->type == DF                       ? FROM_DOUBLES
                : intel_is_float(from)                   ? FROM_FLOATS
                : longs                                  ? FROM_LONGS
                                                         : FROM_WORDS];
  return true;
}
