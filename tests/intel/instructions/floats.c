/* tests/intel/instructions/floats.c - arithmetic of f (and hf, computed as f) and df; approximate
   functions, whose error is the largest allowed. */
#include "tests/intel/registers.h"

#define SOURCES(type, get)                                                                         \
  type rows[3][INTEL_LANES], r[INTEL_LANES];                                                       \
  const int n = i->lanes;                                                                          \
  const type *a = get(t, i, &i->s[0], rows[0]), *b = i->n > 1 ? get(t, i, &i->s[1], rows[1]) : a,  \
             *c = i->n > 2 ? get(t, i, &i->s[2], rows[2]) : a;                                     \
  (void)b, (void)c

#define RUN(name, type, get, put, expression)                                                      \
  INTEL_CLONES static void name(intel_thread *t, const intel_ins *i) {                             \
    SOURCES(type, get);                                                                            \
    INTEL_EACH(n, {                                                                                \
      type X = a[k], Y = b[k], Z = c[k];                                                           \
      (void)X, (void)Y, (void)Z;                                                                   \
      r[k] = expression;                                                                           \
    })                                                                                             \
    put(t, i, r);                                                                                  \
  }
#define FLOATS(name, expression)                                                                   \
  RUN(name##_floats, float, intel_floats, intel_put_floats, expression)
#define DOUBLES(name, expression)                                                                  \
  RUN(name##_doubles, double, intel_doubles, intel_put_doubles, expression)

FLOATS(add, X + Y)
DOUBLES(add, X + Y)
FLOATS(mul, X *Y)
DOUBLES(mul, X *Y)
FLOATS(mad, fmaf(Y, Z, X))
DOUBLES(mad, fma(Y, Z, X))
FLOATS(rndz, truncf(X))

/* ---- approximate functions ---- */

/* Bounds are those of Intel's documentation of its ESIMD extension of SYCL (sycl_esimd_math_ext:
   "also directly supported by the hardware"): inv has 1 ulp, exp2 4, rsqrt 4. No bound by processor
   is published. Of the seeds of divisions and roots (math.invm, math.rsqtm) none is at all: they
   are taken to be off by as much as rsqrt, 4 ulp of the coarsest number. */
enum { INV_ULPS = 1, EXP_ULPS = 4 };

double intel_random_error(intel_thread *t) {
  uint64_t r = machine_draw(t->launch->random);
  return r & 3 ? (r & 4 ? 1 : -1) : (double)(int64_t)r * 0x1p-63;
}

static void approximate(intel_thread *t, const intel_ins *i, double (*f)(double), double ulps) {
  SOURCES(float, intel_floats);
  for (int k = 0; k < n; k++) {
    double exact = f((double)a[k]);
    int exponent;
    frexp(exact, &exponent);
    if (exponent < -125) exponent = -125; /* of a unit of subnormals */
    bool special = !isfinite(exact) || !exact || a[k] == 0;
    r[k] =
        (float)(special ? exact : exact + intel_random_error(t) * ulps * ldexp(1, exponent - 24));
  }
  intel_put_floats(t, i, r);
}
static double inverse(double x) { return 1 / x; }
static void inv(intel_thread *t, const intel_ins *i) { approximate(t, i, inverse, INV_ULPS); }
static void power_of_2(intel_thread *t, const intel_ins *i) { approximate(t, i, exp2, EXP_ULPS); }

const intel_op intel_float_ops[] = {
    {"add", 2, false, NULL, NULL, add_floats, add_doubles},
    {"mul", 2, false, NULL, NULL, mul_floats, mul_doubles},
    {"mad", 3, false, NULL, NULL, mad_floats, mad_doubles},
    {"rndz", 1, false, NULL, NULL, rndz_floats, NULL},
    {"math.inv", 1, false, NULL, NULL, inv, NULL},
    {"math.exp", 1, false, NULL, NULL, power_of_2, NULL},
    {0},
};
