/* tests/amd/instructions/vector_compare.c - comparisons: a mask of lanes as the result. */
#include "tests/amd/lanes.h"

#define COMPARE(name, type, get, test)                                                             \
  AMD_LANES(name) {                                                                                \
    (void)c;                                                                                       \
    AMD_EACH {                                                                                     \
      type A = get(a, i), B = get(b, i);                                                           \
      d[i] = (test) ? m[i] : 0;                                                                    \
    }                                                                                              \
  }
static inline float get_f(const uint32_t *a, int i) { return f32_of(a[i]); }
static inline float get_h(const uint32_t *a, int i) { return f32_of_half(a[i]); }
static inline double get_d(const uint32_t *a, int i) { return getd(a, i); }
static inline int32_t get_i(const uint32_t *a, int i) { return (int32_t)a[i]; }
static inline uint32_t get_u(const uint32_t *a, int i) { return a[i]; }
static inline int64_t get_q(const uint32_t *a, int i) { return (int64_t)get64(a, i); }
static inline uint64_t get_r(const uint32_t *a, int i) { return get64(a, i); }
static inline int32_t get_s(const uint32_t *a, int i) { return (int16_t)a[i]; }
static inline uint32_t get_w(const uint32_t *a, int i) { return a[i] & 0xffff; }

#define ORDERED(X, ...)                                                                            \
  X(lt, A < B, __VA_ARGS__)                                                                        \
  X(eq, A == B, __VA_ARGS__)                                                                       \
  X(le, A <= B, __VA_ARGS__)                                                                       \
  X(gt, A > B, __VA_ARGS__)                                                                        \
  X(ge, A >= B, __VA_ARGS__)
#define INTEGERS(X, ...)                                                                           \
  ORDERED(X, __VA_ARGS__)                                                                          \
  X(ne, A != B, __VA_ARGS__)
#define REALS(X, ...)                                                                              \
  ORDERED(X, __VA_ARGS__)                                                                          \
  X(lg, A<B || A> B, __VA_ARGS__)                                                                  \
  X(o, A == A && B == B, __VA_ARGS__)                                                              \
  X(u, A != A || B != B, __VA_ARGS__)                                                              \
  X(nge, !(A >= B), __VA_ARGS__)                                                                   \
  X(nlg, !(A < B || A > B), __VA_ARGS__)                                                           \
  X(ngt, !(A > B), __VA_ARGS__)                                                                    \
  X(nle, !(A <= B), __VA_ARGS__)                                                                   \
  X(neq, !(A == B), __VA_ARGS__)                                                                   \
  X(nlt, !(A < B), __VA_ARGS__)
#define TYPES(X)                                                                                   \
  REALS(X, f32, float, get_f, "ff")                                                                \
  REALS(X, f16, float, get_h, "hh")                                                                \
  REALS(X, f64, double, get_d, "dd")                                                               \
  INTEGERS(X, i32, int32_t, get_i, "uu")                                                           \
  INTEGERS(X, u32, uint32_t, get_u, "uu")                                                          \
  INTEGERS(X, i64, int64_t, get_q, "ii")                                                           \
  INTEGERS(X, u64, uint64_t, get_r, "qq")                                                          \
  INTEGERS(X, i16, int32_t, get_s, "ww")                                                           \
  INTEGERS(X, u16, uint32_t, get_w, "ww")

#define DEFINE(relation, test, suffix, type, get, types)                                           \
  COMPARE(relation##_##suffix, type, get, test)
TYPES(DEFINE)

/* Which of ten classes: 1 signalling NaN, 2 quiet NaN, 4 -infinity, 8 -normal, 16 -denormal, 32 -0,
   64 +0, 128 +denormal, 256 +normal, 512 +infinity. */
static inline uint32_t class_of(bool negative, bool zero, bool small, bool infinite, bool nan,
                                bool quiet) {
  if (nan) return quiet ? 2 : 1;
  uint32_t k = infinite ? 0 : zero ? 3 : small ? 2 : 1;
  return negative ? 4u << k : 512u >> k;
}
AMD_LANES(class_f32) {
  (void)c;
  AMD_EACH {
    uint32_t x = a[i], e = x >> 23 & 255, f = x & 0x7fffff;
    d[i] = class_of(x >> 31, !e && !f, !e, e == 255, e == 255 && f, f >> 22) & b[i] ? m[i] : 0;
  }
}
AMD_LANES(class_f64) {
  (void)c;
  AMD_EACH {
    uint64_t x = get64(a, i), e = x >> 52 & 2047, f = x & 0xfffffffffffff;
    d[i] = class_of(x >> 63, !e && !f, !e, e == 2047, e == 2047 && f, f >> 51) & b[i] ? m[i] : 0;
  }
}

static void run_compare(amd_wave *w, const amd_ins *i) {
  uint32_t *row = w->temporary[4];
  i->lanes(row, amd_fetch(w, i, 0), amd_fetch(w, i, 1), amd_zeros, w->mask, w->lanes);
  amd_put_mask(w, i, i->d, amd_gather(row, w->lanes));
}

/* RDNA's writes exec only, CDNA's also the mask that it names. */
static void run_compare_exec(amd_wave *w, const amd_ins *i) {
  uint32_t *row = w->temporary[4];
  i->lanes(row, amd_fetch(w, i, 0), amd_fetch(w, i, 1), amd_zeros, w->mask, w->lanes);
  uint64_t mask = amd_gather(row, w->lanes);
  if (i->d.where) amd_put_mask(w, i, i->d, mask);
  amd_put_mask(w, i, (amd_operand){.where = AMD_SCALAR, .index = AMD_EXEC}, mask);
}

#define ROW(relation, test, suffix, type, get, types)                                              \
  {"v_cmp_" #relation "_" #suffix, "m" types, run_compare, relation##_##suffix, 0},                \
      {"v_cmpx_" #relation "_" #suffix, "?m" types, run_compare_exec, relation##_##suffix, 0},
const amd_op amd_compare_ops[] = {TYPES(ROW){"v_cmp_class_f32", "mfu", run_compare, class_f32, 0},
                                  {"v_cmp_class_f64", "mdu", run_compare, class_f64, 0},
                                  {"v_cmpx_class_f32", "?mfu", run_compare_exec, class_f32, 0},
                                  {"v_cmpx_class_f64", "?mdu", run_compare_exec, class_f64, 0},
                                  {0}};
