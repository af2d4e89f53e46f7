/* tests/ir/random_kernel.c - makes random valid kernels and compares their results. */
#include "tests/ir/random_kernel.h"

#include <inttypes.h>
#include <math.h>

#include "src/ir/interpreter/interpret_values.h"
#include "tests/test.h"

enum { POOL = 200, VARIABLES = 24, LOCALS = 4, LOCAL_WIDTH = 4, MAX_BLOCKS = 3 };

typedef struct {
  random_kernel *r;
  ir_kernel *k;
  uint64_t seed;
  unsigned features;
  ir_val pool[IR_F64 + 1][POOL]; /* values in scope, by type */
  int n[IR_F64 + 1];
  ir_val variable[VARIABLES], local[LOCALS];
  int variables, locals;
  ir_val flat;   /* index of the lane in the launch */
  int32_t total; /* lanes of the launch */
  int depth, budget;
  bool meet;  /* whether the whole group gets here */
  bool apart; /* in an if, where the device cannot shuffle */
} maker;

static int pick(maker *m, int n) { return (int)((test_random(&m->seed) + 1) / 2 * n); }
static bool chance(maker *m, int in) { return !pick(m, in); }
static bool has(const maker *m, unsigned feature) { return m->features & feature; }

static void keep(maker *m, ir_val v) {
  ir_type t = (ir_type)m->k->ins[v].type;
  if (m->n[t] < POOL) m->pool[t][m->n[t]++] = v;
  else m->pool[t][POOL / 2 + pick(m, POOL / 2)] = v;
}

/* A value in scope, preferably a recent one. */
static ir_val any(maker *m, ir_type t) {
  int n = m->n[t], late = n > 12 && chance(m, 2) ? n - 12 : 0;
  return m->pool[t][late + pick(m, n - late)];
}

static ir_val constant(maker *m, ir_type t) {
  if (ir_is_float(t)) return ir_real(m->k, t, test_random(&m->seed) * (chance(m, 4) ? 100 : 2));
  return ir_int(m->k, t, t == IR_BOOL ? pick(m, 2) : pick(m, 40) - 12);
}

static ir_val uniform(maker *m, ir_type t) {
  for (int tries = 0; tries < 8; tries++) {
    ir_val v = any(m, t);
    if (m->k->ins[v].shape == IR_UNIFORM) return v;
  }
  return constant(m, t);
}

static ir_type number(maker *m) {
  static const ir_type types[] = {IR_F32, IR_F32, IR_I32, IR_I64, IR_F64};
  return types[pick(m, has(m, RANDOM_F64) ? 5 : 4)];
}
static ir_type real(maker *m) { return has(m, RANDOM_F64) && chance(m, 3) ? IR_F64 : IR_F32; }

static ir_val mask(maker *m) { return chance(m, 2) ? IR_NONE : any(m, IR_BOOL); }

/* Not `a`: compilers warn about a comparison of a value with itself. */
static ir_val another(maker *m, ir_val a) {
  ir_type t = (ir_type)m->k->ins[a].type;
  ir_val b = any(m, t);
  return a == b ? constant(m, t) : b;
}

/* An integer in 0 ... limit - 1. */
static ir_val bounded(maker *m, ir_val v, int64_t limit) {
  ir_type t = (ir_type)m->k->ins[v].type;
  return ir_2(m->k, IR_MOD, ir_2(m->k, IR_MAX, v, ir_int(m->k, t, 0)), ir_int(m->k, t, limit));
}

static ir_val scaled(ir_kernel *k, ir_val v, int64_t by, int64_t plus) {
  ir_type t = (ir_type)k->ins[v].type;
  return ir_add(k, ir_mul(k, v, ir_int(k, t, by)), ir_int(k, t, plus));
}

/* ---- parameters ---- */

static random_parameter *parameter(maker *m, ir_val v, ir_type type, ir_type element) {
  random_parameter *p = &m->r->parameter[m->r->n++];
  *p = (random_parameter){.v = v, .type = type, .element = element};
  return p;
}

static void scalar(maker *m, ir_type t) {
  random_parameter *p = parameter(m, ir_scalar(m->k, t), t, IR_VOID);
  int x = 1 + pick(m, 5);
  if (t == IR_I32) p->scalar.i32 = x;
  if (t == IR_I64) p->scalar.i64 = x;
  if (t == IR_F32) p->scalar.f32 = (float)x / 3;
  if (t == IR_F64) p->scalar.f64 = (double)x / 3;
  keep(m, p->v);
}

static void buffer(maker *m, ir_type element, bool written, int64_t length, int ulps) {
  random_parameter *p = parameter(m, ir_buffer(m->k, element, written), IR_VOID, element);
  p->written = written;
  p->length = length;
  p->ulps = ulps;
}

static random_parameter *find(maker *m, ir_type element, bool written, int ulps) {
  for (int j = 0; j < m->r->n; j++) {
    random_parameter *p = &m->r->parameter[j];
    if (p->type == IR_VOID && p->element == element && p->written == written && p->ulps == ulps)
      return p;
  }
  return NULL;
}

/* Sums of integers: buffers with `ulps` 0, as any result has, which are not results of stores. */
enum { SUMS = 37, SUM_ULPS = -1, MATHS_ULPS = 8 };

static bool usable(const maker *m, ir_type t) { return has(m, RANDOM_F64) || t != IR_F64; }

static void parameters(maker *m) {
  for (ir_type t = IR_I32; t <= IR_F64; t++)
    if (usable(m, t)) scalar(m, t);
  for (ir_type t = IR_I32; t <= IR_BF16; t++) {
    if (!usable(m, t)) continue;
    buffer(m, t, false, 4 * m->total + 64, 0);
    buffer(m, t, true, 1, 0);
    if (!ir_is_float(t)) continue;
    if (has(m, RANDOM_MATHS)) buffer(m, t, true, 1, MATHS_ULPS);
    if (has(m, RANDOM_ATOMICS)) buffer(m, t, true, SUMS, SUM_ULPS);
  }
}

/* ---- arithmetic ---- */

static ir_val float_operation(maker *m, ir_type t) {
  static const ir_op ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
  ir_kernel *k = m->k;
  switch (pick(m, 12)) {
    case 0: return ir_1(k, IR_NEG, any(m, t));
    case 1: return ir_1(k, IR_ABS, any(m, t));
    case 2: return ir_1(k, IR_SQRT, ir_1(k, IR_ABS, any(m, t)));
    case 3:
    case 4:
    case 5: return ir_fma(k, any(m, t), any(m, t), any(m, t));
    default: break;
  }
  ir_op op = ops[pick(m, 6)];
  ir_val a = any(m, t), v = ir_2(k, op, a, another(m, a));
  /* The sign of min(0, -0) is unspecified: adding 0 makes it +. */
  return op == IR_MIN || op == IR_MAX ? ir_add(k, v, ir_real(k, t, 0)) : v;
}

static ir_val integer_operation(maker *m, ir_type t) {
  static const ir_op ops[] = {IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX, IR_XOR, IR_MUL_HIGH};
  ir_kernel *k = m->k;
  ir_val a = any(m, t), b = another(m, a), zero = ir_int(k, t, 0), one = ir_int(k, t, 1);
  if (pick(m, 3)) return ir_2(k, ops[pick(m, t == IR_I32 ? 7 : 6)], a, b);
  b = chance(m, 2) ? ir_int(k, t, 1 + pick(m, 9)) : ir_2(k, IR_MAX, b, one);
  return ir_2(k, chance(m, 2) ? IR_DIV : IR_MOD, ir_2(k, IR_MAX, a, zero), b);
}

static void arithmetic(maker *m) {
  ir_type t = number(m);
  keep(m, ir_is_float(t) ? float_operation(m, t) : integer_operation(m, t));
}

static void logic(maker *m) {
  static const ir_op ops[] = {IR_LT, IR_LE, IR_EQ};
  ir_type t = number(m);
  ir_val a = any(m, t);
  switch (pick(m, 5)) {
    case 0: keep(m, ir_1(m->k, IR_NOT, any(m, IR_BOOL))); break;
    case 1:
      keep(m, ir_2(m->k, chance(m, 2) ? IR_AND : IR_OR, any(m, IR_BOOL), any(m, IR_BOOL)));
      break;
    default: keep(m, ir_2(m->k, ops[pick(m, 3)], a, another(m, a)));
  }
}

static void selection(maker *m) {
  ir_type t = chance(m, 6) ? IR_BOOL : number(m);
  keep(m, ir_select(m->k, any(m, IR_BOOL), any(m, t), any(m, t)));
}

/* A float whose integral part `to` can hold; f32 has no integer next to 2^31 or 2^63. */
static ir_val fitting(maker *m, ir_val v, ir_type to) {
  ir_kernel *k = m->k;
  ir_type t = (ir_type)k->ins[v].type;
  double max = to == IR_I32 ? 0x1p31 - 128 : 0x1p63 - 0x1p40,
         min = to == IR_I32 ? -0x1p31 : -0x1p63;
  if (chance(m, 2)) v = ir_mul(k, v, ir_real(k, t, ldexp(1.25, pick(m, 50))));
  return ir_2(k, IR_MIN, ir_2(k, IR_MAX, v, ir_real(k, t, min)), ir_real(k, t, max));
}

static void cast(maker *m) {
  ir_type from = number(m), to = number(m);
  ir_val v = any(m, from);
  if (ir_is_float(from) && ir_is_int(to)) v = fitting(m, v, to);
  /* An affine i32 that wraps is not affine as i64. */
  if (m->k->ins[v].shape == IR_AFFINE && to == IR_I64) v = m->flat;
  keep(m, ir_cast(m->k, to, v));
}

static void maths(maker *m) {
  static const ir_op ops[] = {IR_EXP, IR_SIN, IR_COS};
  ir_type t = real(m);
  if (!has(m, RANDOM_MATHS)) return;
  random_parameter *p = find(m, t, true, MATHS_ULPS);
  ir_val x = ir_2(m->k, IR_MIN, ir_2(m->k, IR_MAX, any(m, t), ir_real(m->k, t, -20)),
                  ir_real(m->k, t, 20));
  ir_store(m->k, p->v, scaled(m->k, m->flat, 1, p->length), IR_NONE,
           ir_1(m->k, ops[pick(m, 3)], x));
  p->length += m->total;
}

/* ---- memory ---- */

static ir_type element(maker *m) {
  ir_type t;
  do t = (ir_type)(IR_I32 + pick(m, 6));
  while (!usable(m, t));
  return t;
}

static int width(maker *m) {
  static const int widths[] = {1, 1, 1, 1, 2, 3, 4, 4, 5, 8, 16};
  return widths[pick(m, 11)];
}

/* An index at which `width` elements of an input can be read; with a mask, also one at which they
   cannot. */
static ir_val input_index(maker *m, int64_t length, int w, ir_val *on) {
  ir_val far;
  ir_kernel *k = m->k;
  *on = mask(m);
  switch (pick(m, 7)) {
    case 0: return scaled(k, m->flat, pick(m, 4), pick(m, 64 - w));
    case 1: return scaled(k, ir_cast(k, IR_I64, m->flat), pick(m, 4), pick(m, 64 - w));
    case 2: return bounded(m, any(m, IR_I32), length - w + 1);
    case 3: return bounded(m, any(m, IR_I64), length - w + 1);
    case 4: return bounded(m, uniform(m, IR_I32), length - w + 1);
    case 5: return ir_int(k, IR_I32, pick(m, (int)length - w));
    default: break;
  }
  far = scaled(k, m->flat, 1 + pick(m, 5000), pick(m, 64));
  *on = ir_2(k, IR_LT, far, ir_int(k, IR_I32, length - w + 1));
  return far;
}

/* The same, at multiples of w <= 4. */
static ir_val aligned_index(maker *m, int64_t length, int w, ir_val *on) {
  ir_val i = m->flat;
  switch (pick(m, 4)) {
    case 0: i = scaled(m->k, i, 1, pick(m, 16)); break;
    case 1: i = bounded(m, any(m, chance(m, 2) ? IR_I32 : IR_I64), length / w); break;
    case 2: i = bounded(m, uniform(m, IR_I32), length / w); break;
    default: i = scaled(m->k, i, 1 + pick(m, 5000), 0);
  }
  *on = m->k->ins[i].shape == IR_AFFINE ? ir_2(m->k, IR_LT, i, ir_int(m->k, IR_I32, length / w))
                                        : mask(m);
  return scaled(m->k, i, w, 0);
}

static void load(maker *m) {
  ir_val values[IR_MAX_WIDTH], on;
  int w = width(m);
  random_parameter *p = find(m, element(m), false, 0);
  int bytes = w * ir_type_bytes(p->element);
  bool aligned = (bytes == 8 || bytes == 16) && has(m, RANDOM_ALIGNED) && chance(m, 2);
  ir_val at = aligned ? aligned_index(m, p->length, w, &on) : input_index(m, p->length, w, &on);
  if (at % 8 == 0 && m->k->ins[at].shape != IR_VARYING) ir_prefetch(m->k, p->v, at, w);
  if (aligned) ir_load_aligned(m->k, p->v, at, on, w, values);
  else ir_load_wide(m->k, p->v, at, on, w, values);
  for (int j = 0; j < w; j++) keep(m, values[j]);
}

/* A permutation of n lanes: one index for each lane in 0 ... n - 1. */
static ir_val permuted(maker *m, ir_val lane, int n) {
  static const int primes[] = {7, 11, 13, 17};
  int by = primes[pick(m, 4)];
  ir_kernel *k = m->k;
  if (chance(m, 2)) return lane;
  if (chance(m, 2)) return ir_sub(k, ir_int(k, IR_I32, n - 1), lane);
  return n % by ? ir_2(k, IR_MOD, ir_mul(k, lane, ir_int(k, IR_I32, by)), ir_int(k, IR_I32, n))
                : lane;
}

static void store(maker *m) {
  ir_val values[IR_MAX_WIDTH], on = mask(m), old[IR_MAX_WIDTH];
  int w = width(m), stride = w + (chance(m, 3) ? pick(m, 3) : 0);
  random_parameter *p = find(m, element(m), true, 0);
  ir_type t = ir_register_type(p->element);
  ir_val at = permuted(m, m->flat, m->total);
  if (chance(m, 3)) at = ir_cast(m->k, IR_I64, at);
  int bytes = w * ir_type_bytes(p->element);
  bool aligned = (bytes == 8 || bytes == 16) && stride == w && p->length % w == 0 &&
                 has(m, RANDOM_ALIGNED) && chance(m, 2);
  at = scaled(m->k, at, stride, p->length);
  for (int j = 0; j < w; j++) values[j] = any(m, t);
  if (chance(m, 4)) { /* accumulate */
    ir_load_wide(m->k, p->v, at, on, w, old);
    for (int j = 0; j < w; j++) values[j] = ir_add(m->k, old[j], values[j]);
  }
  (aligned ? ir_store_aligned : ir_store_wide)(m->k, p->v, at, on, w, values);
  p->length += (int64_t)m->total * stride;
}

/* All lanes of a sub-group write one value to one place, or one lane does. */
static void store_uniform(maker *m) {
  ir_kernel *k = m->k;
  random_parameter *p = find(m, element(m), true, 0);
  ir_type t = ir_register_type(p->element);
  ir_val subgroup =
      ir_add(k, ir_mul(k, ir_group(k), ir_int(k, IR_I32, k->subgroups)), ir_subgroup(k));
  ir_val at = scaled(k, subgroup, 1, p->length),
         one = ir_2(k, IR_EQ, ir_lane(k), ir_int(k, IR_I32, pick(m, k->lanes)));
  if (chance(m, 2)) ir_store(k, p->v, at, IR_NONE, uniform(m, t));
  else ir_store(k, p->v, at, one, any(m, t));
  p->length += (int64_t)m->r->groups * k->subgroups;
}

static void atomic_add(maker *m) {
  ir_type t = real(m);
  if (!has(m, RANDOM_ATOMICS)) return;
  ir_val value[2], to = find(m, t, true, SUM_ULPS)->v;
  for (int j = 0; j < 2; j++) value[j] = ir_cast(m->k, t, bounded(m, any(m, IR_I32), 9));
  const ir_type index = chance(m, 2) ? IR_I32 : IR_I64;
  if (has(m, RANDOM_ALIGNED) && chance(m, 2)) {
    ir_val pair = bounded(m, any(m, index), SUMS / 2);
    ir_atomic_add_aligned(m->k, to, ir_mul(m->k, pair, ir_int(m->k, index, 2)), mask(m), 2, value);
  } else ir_atomic_add(m->k, to, bounded(m, any(m, index), SUMS), mask(m), value[0]);
}

/* ---- between lanes ---- */

static void shuffle(maker *m) {
  ir_kernel *k = m->k;
  if (!has(m, RANDOM_SHUFFLES) || m->apart) return;
  bool power = !(k->lanes & (k->lanes - 1));
  switch (power ? pick(m, 3) : 0) {
    case 0:
      keep(m, ir_shuffle(k, any(m, number(m)),
                         bounded(m, chance(m, 3) ? uniform(m, IR_I32) : any(m, IR_I32), k->lanes)));
      break;
    case 1: keep(m, ir_shuffle_xor(k, any(m, number(m)), pick(m, k->lanes))); break;
    default: keep(m, ir_reduce_add(k, any(m, real(m))));
  }
}

static ir_val in_group(ir_kernel *k) {
  return ir_add(k, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, k->lanes)), ir_lane(k));
}

/* Lanes store values in a local array and read those of others. */
static void exchange(maker *m) {
  ir_kernel *k = m->k;
  if (!m->meet || m->apart || !m->locals) return;
  ir_val array = m->local[pick(m, m->locals)], values[IR_MAX_WIDTH];
  int w = 1 + pick(m, LOCAL_WIDTH), lanes = k->lanes * k->subgroups, taken = 1 + pick(m, w);
  for (int j = 0; j < w; j++) values[j] = any(m, ir_register_type((ir_type)k->ins[array].element));
  bool near = chance(m, 3); /* within the sub-group */
  ir_store_wide(
      k, array,
      ir_mul(k, near ? in_group(k) : permuted(m, in_group(k), lanes), ir_int(k, IR_I32, w)),
      IR_NONE, w, values);
  ir_barrier(k, !near);
  ir_val from = bounded(m, any(m, IR_I32), (int64_t)(near ? k->lanes : lanes) * w - taken + 1);
  if (near) from = ir_add(k, from, ir_mul(k, ir_subgroup(k), ir_int(k, IR_I32, k->lanes * w)));
  ir_load_wide(k, array, from, mask(m), taken, values);
  for (int j = 0; j < taken; j++) keep(m, values[j]);
  ir_barrier(k, true);
}

/* Two batches in flight at once. */
static void copy(maker *m) {
  ir_kernel *k = m->k;
  if (!m->meet || m->apart || m->locals < 2 || !has(m, RANDOM_COPIES)) return;
  ir_val on[2], at[2], values[IR_MAX_WIDTH];
  int w[2], first = pick(m, m->locals - 1);
  for (int j = 0; j < 2; j++) {
    random_parameter *p = find(m, (ir_type)k->ins[m->local[first + j]].element, false, 0);
    w[j] = 1 + pick(m, LOCAL_WIDTH);
    ir_val from = input_index(m, p->length, w[j], &on[j]);
    at[j] = ir_mul(k, permuted(m, in_group(k), k->lanes * k->subgroups), ir_int(k, IR_I32, w[j]));
    ir_copy(k, m->local[first + j], at[j], p->v, from, on[j], w[j]);
    ir_copy_commit(k);
  }
  for (int j = 0; j < 2; j++) {
    ir_copy_wait(k, 1 - j);
    ir_barrier(k, true);
    bool others = on[j] == IR_NONE && chance(m, 2);
    int taken = others ? 1 : w[j];
    ir_load_wide(k, m->local[first + j],
                 others ? bounded(m, any(m, IR_I32), (int64_t)k->lanes * k->subgroups * w[j])
                        : at[j],
                 on[j], taken, values);
    for (int i = 0; i < taken; i++) keep(m, values[i]);
  }
  ir_barrier(k, true);
}

/* ---- variables and blocks ---- */

static void variable(maker *m) {
  ir_type t = chance(m, 8) ? IR_BOOL : number(m);
  bool flat = chance(m, 4);
  if (m->variables < VARIABLES)
    m->variable[m->variables++] = ir_var(m->k, flat ? uniform(m, t) : any(m, t), flat);
}

static void assign(maker *m) {
  if (!m->variables) return;
  ir_val v = m->variable[pick(m, m->variables)];
  ir_type t = (ir_type)m->k->ins[v].type;
  keep(m, ir_get(m->k, v));
  ir_set(m->k, v, m->k->ins[v].shape == IR_UNIFORM ? uniform(m, t) : any(m, t));
  if (chance(m, 2)) keep(m, ir_get(m->k, v));
}

static void statements(maker *m, int n);

/* The statements of one branch: their values go out of scope with it. */
static void branch(maker *m, bool meet, ir_val counter) {
  int n[IR_F64 + 1], variables = m->variables;
  ir_val saved[IR_F64 + 1][POOL];
  bool met = m->meet;
  memcpy(saved, m->pool, sizeof saved);
  memcpy(n, m->n, sizeof n);
  m->meet = met && meet;
  m->depth++;
  /* A full pool overwrites older values: leave room. */
  for (int t = 0; t <= IR_F64; t++) m->n[t] = m->n[t] > POOL / 2 ? POOL / 2 : m->n[t];
  if (counter != IR_NONE) keep(m, counter);
  statements(m, 3 + pick(m, 8));
  memcpy(m->pool, saved, sizeof saved);
  memcpy(m->n, n, sizeof n);
  m->depth--;
  m->meet = met;
  m->variables = variables;
}

static void loop(maker *m) {
  ir_kernel *k = m->k;
  if (m->depth == MAX_BLOCKS) return;
  ir_type t = chance(m, 3) ? IR_I64 : IR_I32;
  bool known = chance(m, 2), meet = known || k->subgroups == 1;
  ir_val end = known ? ir_int(k, t, pick(m, 5)) : bounded(m, uniform(m, t), 5),
         begin = ir_int(k, t, pick(m, 3));
  if (!known && chance(m, 2)) begin = bounded(m, uniform(m, t), 2);
  variable(m);
  ir_val counter = ir_loop(k, begin, end, ir_int(k, t, 1 + pick(m, 2)));
  branch(m, meet, counter);
  ir_end(k);
}

/* Equal in the whole group, or only in the sub-group. */
static void condition(maker *m) {
  ir_kernel *k = m->k;
  if (m->depth == MAX_BLOCKS) return;
  bool meet = chance(m, 2), other = chance(m, 2), apart = m->apart;
  m->apart = apart || !has(m, RANDOM_IFS);
  variable(m);
  ir_if(k, meet ? ir_2(k, IR_LT, ir_2(k, IR_MOD, ir_group(k), ir_int(k, IR_I32, 3)),
                       ir_int(k, IR_I32, 1 + pick(m, 2)))
                : uniform(m, IR_BOOL));
  branch(m, meet || k->subgroups == 1, IR_NONE);
  if (other) {
    ir_else(k);
    branch(m, meet || k->subgroups == 1, IR_NONE);
  }
  m->apart = apart;
  ir_end(k);
}

static void statements(maker *m, int n) {
  static void (*const kinds[])(maker * m) = {
      arithmetic, arithmetic, arithmetic,    arithmetic, arithmetic, arithmetic, logic,
      logic,      selection,  cast,          maths,      load,       load,       load,
      store,      store,      store_uniform, atomic_add, shuffle,    shuffle,    exchange,
      copy,       variable,   assign,        assign,     loop,       condition};
  for (; n > 0 && m->budget > 0 && !m->k->error[0]; n--, m->budget--)
    kinds[pick(m, (int)(sizeof kinds / sizeof *kinds))](m);
}

/* ---- data ---- */

static void put(maker *m, random_parameter *p, int64_t j, bool special) {
  static const double specials[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, 60000, -1e-5};
  double x = test_random(&m->seed) * 2;
  if (special && chance(m, 24)) x = specials[pick(m, 8)];
  int64_t i = (int64_t)(test_random(&m->seed) * 0x1p62) >> pick(m, 60);
  switch (p->element) {
    case IR_I32: ((int32_t *)p->data)[j] = (int32_t)(uint32_t)(uint64_t)i; break;
    case IR_I64: ((int64_t *)p->data)[j] = i; break;
    case IR_F32: ((float *)p->data)[j] = (float)x; break;
    case IR_F64: ((double *)p->data)[j] = x; break;
    case IR_F16: ((uint16_t *)p->data)[j] = ir_to_f16((float)x); break;
    default: ((uint16_t *)p->data)[j] = ir_to_bf16((float)x);
  }
}

static bool fill(maker *m, random_parameter *p) {
  if (p->type != IR_VOID) return true;
  p->data = calloc((size_t)p->length, (size_t)ir_type_bytes(p->element));
  for (int64_t j = 0; p->data && p->ulps != SUM_ULPS && j < p->length; j++)
    put(m, p, j, !p->written);
  return p->data;
}

void random_kernel_make(random_kernel *r, uint64_t seed, int lanes, int subgroups,
                        unsigned features) {
  maker *m = calloc(1, sizeof *m);
  *r = (random_kernel){.groups = 1};
  ir_begin(&r->k, "random_kernel", lanes, subgroups, lanes * subgroups);
  if (!m) {
    snprintf(r->k.error, sizeof r->k.error, "no memory");
    return;
  }
  *m = (maker){.r = r, .k = &r->k, .seed = seed * 1000003, .features = features, .meet = true};
  r->groups = 1 + pick(m, 4);
  m->budget = 30 + pick(m, 90);
  m->total = lanes * subgroups * r->groups;
  parameters(m);
  for (; has(m, RANDOM_LOCALS) && m->locals < LOCALS; m->locals++)
    m->local[m->locals] = ir_local(m->k, element(m), LOCAL_WIDTH * lanes * subgroups);
  m->flat = ir_add(m->k, ir_mul(m->k, ir_group(m->k), ir_int(m->k, IR_I32, lanes * subgroups)),
                   in_group(m->k));
  keep(m, m->flat);
  keep(m, ir_lane(m->k));
  keep(m, ir_subgroup(m->k));
  keep(m, ir_group(m->k));
  for (ir_type t = IR_BOOL; t <= IR_F64; t++)
    if (usable(m, t)) keep(m, constant(m, t));
  for (int j = 0; j < 4; j++) load(m);
  for (int j = 0; j < 3; j++) logic(m);
  while (m->budget > 0 && !m->k->error[0]) statements(m, m->budget);
  for (int j = 0; j < 6; j++) store(m);
  ir_finish(&r->k);
  for (int j = 0; j < r->n; j++)
    if (!fill(m, &r->parameter[j])) snprintf(r->k.error, sizeof r->k.error, "no memory");
  free(m);
}

void random_kernel_free(random_kernel *r) {
  for (int j = 0; j < r->n; j++) free(r->parameter[j].data);
  ir_free(&r->k);
  r->n = 0;
}

size_t random_kernel_bytes(const random_kernel *r, int p) {
  const random_parameter *q = &r->parameter[p];
  return q->type == IR_VOID ? (size_t)q->length * (size_t)ir_type_bytes(q->element) : 0;
}

void *random_kernel_data(const random_kernel *r, int p) {
  size_t bytes = random_kernel_bytes(r, p);
  void *data = bytes ? malloc(bytes) : NULL;
  if (data) memcpy(data, r->parameter[p].data, bytes);
  return data;
}

bool random_kernel_run(const random_kernel *r, const ir_kernel *k, void *const *data, char *error,
                       size_t size) {
  ir_arg arg[RANDOM_PARAMETERS];
  for (int j = 0; j < r->n; j++)
    arg[j] = r->parameter[j].type == IR_VOID ? (ir_arg){.p = data[j]} : r->parameter[j].scalar;
  return ir_run(k, arg, NULL, 0, r->groups, error, size);
}

/* ---- comparison ---- */

/* The element as a number, and as its position in the order of all floats (or integers). */
static double number_at(ir_type element, const void *data, int64_t j, int64_t *place) {
  double x = 0;
  *place = 0;
  if (element == IR_I32) x = (double)(*place = ((const int32_t *)data)[j]);
  if (element == IR_I64) x = (double)(*place = ((const int64_t *)data)[j]);
  if (element == IR_F16) x = (double)ir_from_f16((uint16_t)(*place = ((const uint16_t *)data)[j]));
  if (element == IR_BF16)
    x = (double)ir_from_bf16((uint16_t)(*place = ((const uint16_t *)data)[j]));
  if (element == IR_F32) {
    int32_t bits;
    memcpy(&bits, (const float *)data + j, sizeof bits);
    *place = bits < 0 ? INT32_MIN - (int64_t)bits : bits;
    x = (double)((const float *)data)[j];
    if (bits == INT32_MIN) *place = -1; /* -0 */
  }
  if (element == IR_F64) {
    memcpy(place, (const double *)data + j, sizeof *place);
    x = ((const double *)data)[j];
    *place = *place == INT64_MIN ? -1 : *place < 0 ? INT64_MIN - *place : *place;
  }
  return x;
}

bool random_kernel_agree(const random_kernel *r, void *const *expected, void *const *found,
                         char *error, size_t size) {
  for (int p = 0; p < r->n; p++) {
    const random_parameter *q = &r->parameter[p];
    int64_t ulps = q->ulps > 0 ? q->ulps : 0, a, b;
    for (int64_t j = 0; q->type == IR_VOID && j < q->length; j++) {
      double x = number_at(q->element, expected[p], j, &a),
             y = number_at(q->element, found[p], j, &b);
      if (a == b || (x != x && y != y)) continue;
      if (ulps && (a > b ? a - b : b - a) <= ulps) continue;
      snprintf(error, size,
               "parameter %d (%s%s) element %" PRId64 " of %" PRId64 ": %.17g, not %.17g", p,
               ir_type_name(q->element), ulps ? ", maths" : "", j, q->length, y, x);
      return false;
    }
  }
  return true;
}
