/* tests/intel/instructions/macros.c - the parts of division and square root: an approximation
   (math.invm, math.rsqtm), then madm, whose operands .mmeK keep more bits than their type. */
#include "tests/intel/registers.h"

enum { F_BITS = 26, DF_BITS = 58, QUAD_BITS = 113, QUAD_SPECIAL = 0x7fff };
__extension__ typedef unsigned __int128 quad_bits;

static quad_bits bits_of(intel_quad x) {
  quad_bits bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* To nearest even, to that many bits: a carry out of the fraction goes into the exponent, as it
   should. */
static intel_quad rounded(intel_quad x, int bits) {
  quad_bits all = bits_of(x);
  int drop = QUAD_BITS - bits;
  all += ((quad_bits)1 << (drop - 1)) - 1 + (all >> drop & 1);
  all = all >> drop << drop;
  memcpy(&x, &all, sizeof x);
  return x;
}

static intel_quad plain(intel_thread *t, const intel_operand *o, int lane) {
  intel_quad x;
  if (o->type == F) {
    float f = f_of((uint32_t)o->number);
    if (o->where == REGISTER) memcpy(&f, t->g + intel_lane_at(o, lane), sizeof f);
    x = f;
  } else {
    double d = df_of((uint64_t)o->number);
    if (o->where == REGISTER) memcpy(&d, t->g + intel_lane_at(o, lane), sizeof d);
    x = d;
  }
  return o->negative ? -x : x;
}

static intel_quad value(intel_thread *t, const intel_ins *i, int which, int lane) {
  const intel_operand *o = &i->s[which];
  if (o->extra < EXTRA) return plain(t, o, lane);
  int k = o->extra - EXTRA;
  if (!(t->extra_known[k] >> lane & 1)) intel_fail(t, i, "mme%d is not set", k);
  return o->negative ? -t->extra[k][lane] : t->extra[k][lane];
}

static void put(intel_thread *t, const intel_ins *i, int lane, intel_quad x) {
  unsigned char *to = t->g + intel_lane_at(&i->d, lane);
  if (i->d.extra >= EXTRA) {
    int k = i->d.extra - EXTRA;
    x = rounded(x, i->d.type == F ? F_BITS : DF_BITS);
    t->extra[k][lane] = x;
    t->extra_known[k] |= 1u << lane;
  }
  if (i->d.type == F) {
    float f = (float)x;
    memcpy(to, &f, sizeof f);
  } else {
    double d = (double)x;
    memcpy(to, &d, sizeof d);
  }
}

static bool finite_number(intel_quad x) {
  return (bits_of(x) >> (QUAD_BITS - 1) & QUAD_SPECIAL) != QUAD_SPECIAL;
}

static void madm(intel_thread *t, const intel_ins *i) {
  uint32_t lanes = intel_mask(t, i);
  for (int k = 0; k < i->lanes; k++) {
    if (!(lanes >> k & 1)) continue;
    intel_quad a = value(t, i, 0, k), b = value(t, i, 1, k), c = value(t, i, 2, k);
    if (!finite_number(a) || !finite_number(b) || !finite_number(c))
      intel_fail(t, i, "channel %d: an operand is not finite", k);
    put(t, i, k, a + b * c);
  }
}

/* Approximations are off by up to 2^-21 (see floats.c); channels whose result is special get it at
   once, and their flag. */
static void approximate(intel_thread *t, const intel_ins *i, int lane, bool root) {
  intel_quad x = plain(t, &i->s[0], lane), y = root ? x : plain(t, &i->s[1], lane), seed;
  bool special = !finite_number(x) || !finite_number(y) || x == 0 || y == 0 || (root && x < 0);
  intel_set_flag(t, i, 1u << lane, (uint32_t)special << lane);
  if (special) {
    put(t, i, lane, root ? (intel_quad)sqrt((double)x) : x / y);
    if (i->d.extra >= EXTRA) t->extra_known[i->d.extra - EXTRA] &= ~(1u << lane);
    return;
  }
  seed = root ? 1 / (intel_quad)sqrt((double)x) : 1 / y;
  double error = intel_random_error(t) * 0x1p-21;
  put(t, i, lane, seed + seed * (intel_quad)error);
}
static void each_approximation(intel_thread *t, const intel_ins *i, bool root) {
  uint32_t lanes = intel_mask(t, i);
  for (int k = 0; k < i->lanes; k++)
    if (lanes >> k & 1) approximate(t, i, k, root);
}
static void invm(intel_thread *t, const intel_ins *i) { each_approximation(t, i, false); }
static void rsqtm(intel_thread *t, const intel_ins *i) { each_approximation(t, i, true); }

bool intel_choose_macro(intel_ins *i) {
  bool is_madm = !strcmp(i->name, "madm");
  bool good = i->n == (is_madm                          ? 3
                       : !strcmp(i->name, "math.rsqtm") ? 1
                                                        : 2) &&
              (i->d.type == F || i->d.type == DF) && i->d.extra && i->d.where == REGISTER &&
              (i->condition == EARLY_OUT) == !is_madm;
  for (int s = 0; s < i->n; s++)
    good = good && i->s[s].type == i->d.type && !i->s[s].absolute &&
           (i->s[s].extra || i->s[s].where == NUMBER) && (is_madm || i->s[s].extra != EXTRA);
  i->run = is_madm ? madm : i->n == 1 ? rsqtm : invm;
  return good;
}
