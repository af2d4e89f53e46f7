/* tests/intel/test_intel_instructions.c - the emulator's instructions, one by one, against C. */
#include <math.h>

#include "tests/intel/listed.h"
#include "tests/test.h"

/* ---- rows of 16 lanes, as words; 64-bit numbers fill two rows ---- */

typedef struct {
  uint32_t in[INTEL_INPUTS][16], out[INTEL_RESULTS][16];
} rows;

static float f(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static uint32_t uf(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
static uint64_t q(const uint32_t (*row)[16], int lane) {
  uint64_t x;
  memcpy(&x, (const char *)row + 8 * lane, 8);
  return x;
}
static double df(const uint32_t (*row)[16], int lane) {
  double x;
  memcpy(&x, (const char *)row + 8 * lane, 8);
  return x;
}
static void put(uint32_t (*row)[16], int lane, uint64_t x) {
  memcpy((char *)row + 8 * lane, &x, 8);
}
static void put_df(uint32_t (*row)[16], int lane, double x) {
  memcpy((char *)row + 8 * lane, &x, 8);
}
static int32_t i(uint32_t x) { return (int32_t)x; }
static uint32_t clamped(double x, double low, double high) {
  return isnan(x)   ? 0
         : x < low  ? (uint32_t)(int64_t)low
         : x > high ? (uint32_t)(int64_t)high
                    : (uint32_t)(int64_t)x;
}

/* Name, types of the results (w bits, f and d: any NaN is as good as another), body; what lane l
   must give in r, of the inputs a. Inputs 0 and 1 are words, 2 and 3 f, 4/5 and 6/7 q and df. */
#define CASES(X)                                                                                   \
  X(add, "www.",                                                                                   \
    "add (16|M0) r20.0<1>:d r10.0<1;1,0>:d -r11.0<1;1,0>:d\n"                                      \
    "add (16|M0) r21.0<1>:d r10.0<0;1,0>:d 0x1234:w\n"                                             \
    "add3 (16|M0) r22.0<1>:d r10.0<1;0>:d r11.0<1;0>:d r10.0<1>:d",                                \
    r[0][l] = a[0][l] - a[1][l], r[1][l] = a[0][0] + 0x1234, r[2][l] = 2 * a[0][l] + a[1][l])      \
  X(small, "www.",                                                                                 \
    "mov (16|M0) r30.0<1>:uw r10.0<2;1,0>:uw\nmov (16|M0) r20.0<1>:d r30.0<1;1,0>:w\n"             \
    "mov (16|M0) r21.0<1>:d r10.1<4;1,0>:b\nmov (16|M0) r22.0<2>:uw r11.0<1;1,0>:d",               \
    r[0][l] = (uint32_t)(int16_t)a[0][l], r[1][l] = (uint32_t)(int8_t)(a[0][l] >> 8),              \
    r[2][l] = a[1][l] & 0xffff)                                                                    \
  X(nibbles, "ww..",                                                                               \
    "(W) mov (8|M0) r30.0<1>:w 0x76543A10:v\nmov (8|M0) r20.0<1>:d r30.0<1;1,0>:w\n"               \
    "mov (8|M0) r21.0<1>:d r10.3<0;1,0>:d",                                                        \
    r[0][l] = l > 7    ? 0                                                                         \
              : l == 2 ? (uint32_t)-6                                                              \
                       : (uint32_t)l,                                                              \
    r[1][l] = l > 7 ? 0 : a[0][3])                                                                 \
  X(shifts, "wwww",                                                                                \
    "shl (16|M0) r20.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"                                       \
    "shr (16|M0) r21.0<1>:d r10.0<1;1,0>:ud r11.0<1;1,0>:d\n"                                      \
    "asr (16|M0) r22.0<1>:d r10.0<1;1,0>:d 5:w\nlzd (16|M0) r23.0<1>:ud r10.0<1;1,0>:ud",          \
    r[0][l] = a[0][l] << (a[1][l] & 31), r[1][l] = a[0][l] >> (a[1][l] & 31),                      \
    r[2][l] = (uint32_t)(i(a[0][l]) >> 5),                                                         \
    r[3][l] = a[0][l] ? (uint32_t)__builtin_clz(a[0][l]) : 32)                                     \
  X(logic, "wwww",                                                                                 \
    "and (16|M0) r20.0<1>:d r10.0<1;1,0>:d ~r11.0<1;1,0>:d\n"                                      \
    "bfn.0xD8 (16|M0) r21.0<1>:ud r10.0<1;0>:ud r11.0<1;0>:ud r12.0<1>:ud\n"                       \
    "bfn.0x78 (16|M0) r22.0<1>:ud r10.0<1;0>:ud r11.0<1;0>:ud r12.0<1>:ud\n"                       \
    "not (16|M0) r23.0<1>:d r10.0<1;1,0>:d",                                                       \
    r[0][l] = a[0][l] & ~a[1][l], r[1][l] = (a[0][l] & a[1][l]) | (~a[0][l] & a[2][l]),            \
    r[2][l] = (a[0][l] & a[1][l]) ^ a[2][l], r[3][l] = ~a[0][l])                                   \
  X(products, "wwww",                                                                              \
    "(W) mul (16|M0) acc0.0<1>:ud r10.0<1;1,0>:ud r11.0<2;1,0>:uw\n"                               \
    "macl (16|M0) r20.0<1>:ud r10.0<1;1,0>:ud r11.0<1;1,0>:ud\n"                                   \
    "(W) mul (16|M0) acc0.0<1>:ud r10.0<1;1,0>:ud r11.0<2;1,0>:uw\n"                               \
    "mach (16|M0) r21.0<1>:ud r10.0<1;1,0>:ud r11.0<1;1,0>:ud\n"                                   \
    "(W) mul (16|M0) acc0.0<1>:d r10.0<1;1,0>:d r11.0<2;1,0>:uw\n"                                 \
    "mach (16|M0) r22.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"                                      \
    "mad (16|M0) r23.0<1>:d r10.0<1;0>:d r11.0<1;0>:d -9:w",                                       \
    r[0][l] = a[0][l] * a[1][l], r[1][l] = (uint32_t)(((uint64_t)a[0][l] * a[1][l]) >> 32),        \
    r[2][l] = (uint32_t)((uint64_t)((int64_t)i(a[0][l]) * i(a[1][l])) >> 32),                      \
    r[3][l] = a[0][l] - 9 * a[1][l])                                                               \
  X(carry, "ww..",                                                                                 \
    "addc (16|M0) r20.0<1>:ud r10.0<1;1,0>:ud r11.0<1;1,0>:ud\n"                                   \
    "mov (16|M0) r21.0<1>:ud acc0.0<1;1,0>:ud",                                                    \
    r[0][l] = a[0][l] + a[1][l], r[1][l] = a[0][l] + a[1][l] < a[0][l])                            \
  X(longs, "wwww",                                                                                 \
    "add (16|M0) r20.0<1>:q r14.0<1;1,0>:q -r16.0<1;1,0>:q\n"                                      \
    "shl (16|M0) r22.0<1>:q r14.0<1;1,0>:q 40:w",                                                  \
    put(r, l, q(a + 4, l) - q(a + 6, l)), put(r + 2, l, q(a + 4, l) << 40))                        \
  X(wide_shifts, "wwww",                                                                           \
    "asr (16|M0) r20.0<1>:q r14.0<1;1,0>:q 35:w\nshr (16|M0) r22.0<1>:q r14.0<1;1,0>:uq 35:w",     \
    put(r, l, (uint64_t)((int64_t)q(a + 4, l) >> 35)), put(r + 2, l, q(a + 4, l) >> 35))           \
  X(compares, "wwww",                                                                              \
    "cmp (16|M0) (lt)f0.0 null<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"                               \
    "(f0.0) sel (16|M0) r20.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"                                \
    "cmp (16|M0) (gt)f0.1 null<1>:d r10.0<1;1,0>:ud r11.0<1;1,0>:ud\n"                             \
    "(~f0.1) mov (16|M0) r21.0<1>:d r10.0<1;1,0>:d\n"                                              \
    "and (16|M0) (ne)f1.0 r22.0<1>:d r10.0<1;1,0>:d 1:w\n"                                         \
    "(f1.0) cmp (16|M0) (eq)f1.0 null<1>:d r11.0<1;1,0>:d r11.0<1;1,0>:d\n"                        \
    "(f1.0) mov (16|M0) r23.0<1>:d 7:w",                                                           \
    r[0][l] = i(a[0][l]) < i(a[1][l]) ? a[0][l] : a[1][l],                                         \
    r[1][l] = a[0][l] > a[1][l] ? 0 : a[0][l], r[2][l] = a[0][l] & 1,                              \
    r[3][l] = a[0][l] & 1 ? 7 : 0)                                                                 \
  X(extremes, "wwff",                                                                              \
    "sel (16|M0) (lt)f0.0 r20.0<1>:d r10.0<1;1,0>:d r11.0<1;1,0>:d\n"                              \
    "sel (16|M0) (ge)f0.0 r21.0<1>:ud r10.0<1;1,0>:ud r11.0<1;1,0>:ud\n"                           \
    "sel (16|M0) (ge)f0.0 r22.0<1>:f r12.0<1;1,0>:f r13.0<1;1,0>:f\n"                              \
    "sel (16|M0) (lt)f0.0 r23.0<1>:f (abs)r12.0<1;1,0>:f -r13.0<1;1,0>:f",                         \
    r[0][l] = i(a[0][l]) < i(a[1][l]) ? a[0][l] : a[1][l],                                         \
    r[1][l] = a[0][l] > a[1][l] ? a[0][l] : a[1][l], r[2][l] = uf(fmaxf(f(a[2][l]), f(a[3][l]))),  \
    r[3][l] = uf(fminf(fabsf(f(a[2][l])), -f(a[3][l]))))                                           \
  X(floats, "ffff",                                                                                \
    "add (16|M0) r20.0<1>:f r12.0<1;1,0>:f -r13.0<1;1,0>:f\n"                                      \
    "mul (16|M0) acc2.0<1>:f r12.0<1;1,0>:f 0x40490FDB:f\n"                                        \
    "mad (16|M0) r21.0<1>:f acc2.0<1;0>:f -r12.0<1;0>:f r13.0<1>:f\n"                              \
    "mad (16|M0) r22.0<1>:f r12.0<1;0>:f r13.3<0;0>:f r13.0<1>:f\n"                                \
    "rndz (16|M0) r23.0<1>:f r12.0<1;1,0>:f",                                                      \
    r[0][l] = uf(f(a[2][l]) - f(a[3][l])),                                                         \
    r[1][l] = uf(fmaf(-f(a[2][l]), f(a[3][l]), f(a[2][l]) * f(0x40490FDB))),                       \
    r[2][l] = uf(fmaf(f(a[3][3]), f(a[3][l]), f(a[2][l]))), r[3][l] = uf(truncf(f(a[2][l]))))      \
  X(conditions, "ff..",                                                                            \
    "mul (16|M0) (gt)f0.0 r20.0<1>:f r12.0<1;1,0>:f r13.0<1;1,0>:f\n"                              \
    "(~f0.0) mov (16|M0) r20.0<1>:f 0x3F800000:f\n"                                                \
    "add (16|M0) (le)f0.1 r21.0<1>:f r12.0<1;1,0>:f r13.0<1;1,0>:f\n"                              \
    "(f0.1) mov (16|M0) r21.0<1>:f 0x3F800000:f",                                                  \
    float x = f(a[2][l]) * f(a[3][l]), y = f(a[2][l]) + f(a[3][l]);                                \
    r[0][l] = uf(x > 0 ? x : 1), r[1][l] = uf(y <= 0 ? 1 : y))                                     \
  X(doubles, "dd",                                                                                 \
    "mad (16|M0) r20.0<1>:df r14.0<1;0>:df r14.0<1;0>:df -r16.0<1>:df\n"                           \
    "add (16|M0) r22.0<1>:df r14.0<1;1,0>:df (abs)r16.0<1;1,0>:df",                                \
    put_df(r, l, fma(df(a + 4, l), -df(a + 6, l), df(a + 4, l))),                                  \
    put_df(r + 2, l, df(a + 4, l) + fabs(df(a + 6, l))))                                           \
  X(conversions, "wwff",                                                                           \
    "mov (16|M0) r20.0<1>:d r12.0<1;1,0>:f\nmov (16|M0) r21.0<1>:ud r12.0<1;1,0>:f\n"              \
    "mov (16|M0) r22.0<1>:f r10.0<1;1,0>:d\nmov (16|M0) r23.0<1>:f r10.0<1;1,0>:ud",               \
    r[0][l] = clamped((double)f(a[2][l]), -0x1p31, 0x7fffffff),                                    \
    r[1][l] = clamped((double)f(a[2][l]), 0, 0xffffffffu), r[2][l] = uf((float)i(a[0][l])),        \
    r[3][l] = uf((float)a[0][l]))                                                                  \
  X(copies, "ww..", "mov (16|M0) r20.0<1>:f r10.0<1;1,0>:f\nmov (16|M0) r21.0<2>:hf 0xFFFF:hf",    \
    r[0][l] = a[0][l], r[1][l] = 0xffff)                                                           \
  X(halves, "ff..",                                                                                \
    "mov (16|M0) r30.0<2>:hf r12.0<1;1,0>:f\nmov (16|M0) r20.0<1>:f r30.0<2;1,0>:hf\n"             \
    "add (16|M0) r31.0<2>:hf r30.0<2;1,0>:hf r30.0<2;1,0>:hf\n"                                    \
    "mov (16|M0) r21.0<1>:f r31.0<2;1,0>:hf",                                                      \
    half x = (half)f(a[2][l]);                                                                     \
    r[0][l] = uf((float)x), r[1][l] = uf((float)(half)(x + x)))                                    \
  X(indirect, "w...",                                                                              \
    "and (16|M0) r30.0<1>:d r10.0<1;1,0>:d 15:w\nshl (16|M0) r30.0<1>:d r30.0<1;1,0>:d 2:w\n"      \
    "add (16|M0) a0.0<1>:uw r30.0<2;1,0>:uw 704:w\nmov (16|M0) r20.0<1>:d r[a0.0]<1,0>:d",         \
    r[0][l] = a[1][a[0][l] & 15])                                                                  \
  X(indirect_scalar, "w...",                                                                       \
    "(W) mov (1|M0) a0.0<1>:uw 716:w\n(W) mov (1|M0) r21.0<1>:d r[a0.0]<0;1,0>:d\n"                \
    "(W) mov (1|M0) a0.1<1>:uw 708:w\nmov (16|M0) r20.0<1>:d r[a0.1]<0;1,0>:d",                    \
    r[0][l] = a[1][1])                                                                             \
  X(indirect_pairs, "ww..",                                                                        \
    "and (16|M0) r30.0<1>:d r10.0<1;1,0>:d 7:w\nshl (16|M0) r30.0<1>:d r30.0<1;1,0>:d 3:w\n"       \
    "add (16|M0) a0.0<1>:uw r30.0<2;1,0>:uw 704:w\n(W) mov (32|M0) r20.0<1>:ud r[a0.0]<2,1>:ud",   \
    {                                                                                              \
      const int k = (a[0][l / 2] & 7) * 2 + l % 2, m = (a[0][8 + l / 2] & 7) * 2 + l % 2;          \
      r[0][l] = a[1][k], r[1][l] = a[1][m];                                                        \
    })                                                                                             \
  X(branches, "ww..",                                                                              \
    "cmp (16|M0) (lt)f0.0 null<1>:d r10.0<1;1,0>:d 0:w\n(f0.0) goto (16|M0) ELSE ELSE\n"           \
    "mov (16|M0) r20.0<1>:d 1:w\n(W) mov (16|M0) r21.0<1>:d 5:w\ngoto (16|M0) ELSE END\n"          \
    "ELSE:\njoin (16|M0) END\nmov (16|M0) r20.0<1>:d 2:w\nEND:\njoin (16|M0) OVER\nOVER:\n"        \
    "sync.nop null",                                                                               \
    r[0][l] = i(a[0][l]) < 0 ? 2 : 1, r[1][l] = 5)                                                 \
  X(scratch, "ww..",                                                                               \
    "(W) send.dc0 (16|M0) null r0 r10:2 0x0 0x020F2004 {$3}\nsync.nop null {$3.dst}\n"             \
    "(W) send.dc0 (16|M0) r20 r0 null:0 0x0 0x022C2004 {$4}",                                      \
    r[0][l] = a[0][l], r[1][l] = a[1][l])

__extension__ typedef _Float16 half;
#define CASE(name, types, body, ...)                                                               \
  static void want_##name(const uint32_t(*a)[16], uint32_t(*r)[16], int l) {                       \
    (void)a;                                                                                       \
    __VA_ARGS__;                                                                                   \
  }
CASES(CASE)
#define ROW(name, types, body, ...) {#name, types, body, want_##name},
static const struct {
  const char *name, *types, *body;
  void (*want)(const uint32_t (*a)[16], uint32_t (*r)[16], int l);
} cases[] = {CASES(ROW)};

/* ---- running them ---- */

static const uint32_t special[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                   0xff800000, 0x7fc00000, 1,          0xffffffff, 0x7fffffff,
                                   0x00000010, 0x807fffff, 0x4f000000, 0xcf000000};

static void fill(rows *x, uint64_t *seed) {
  for (int k = 0; k < INTEL_INPUTS; k++)
    for (int l = 0; l < 16; l++) {
      uint64_t n = machine_draw(seed);
      x->in[k][l] = (uint32_t)n;
      if (n >> 60 == 0) x->in[k][l] = special[(n >> 32) % (sizeof special / 4)];
      if (n >> 60 < 8 && (k == 2 || k == 3)) x->in[k][l] = uf((float)(int32_t)n * 0x1p-16f);
      if (n >> 60 < 12 && k >= 4 && l % 2) x->in[k][l] = 0x3fe00000 | ((uint32_t)n & 0x801fffff);
    }
}

static bool same(char type, const uint32_t *got, const uint32_t *want) {
  if (type == '.') return true;
  if (type == 'f' && isnan(f(*got)) && isnan(f(*want))) return true;
  if (type == 'd') {
    double x, y;
    memcpy(&x, got, 8);
    memcpy(&y, want, 8);
    return !memcmp(got, want, 8) || (isnan(x) && isnan(y));
  }
  return *got == *want;
}

static void compare(int c, const rows *x) {
  uint32_t want[INTEL_RESULTS][16];
  memset(want, 0, sizeof want);
  for (int l = 0; l < 16; l++) cases[c].want((const uint32_t(*)[16])x->in, want, l);
  for (int k = 0, row = 0; cases[c].types[k]; k++) {
    int words = cases[c].types[k] == 'd' ? 2 : 1;
    for (int w = 0; w < 16 * words; w += words)
      if (!same(cases[c].types[k], x->out[row] + w, want[row] + w))
        fail_msg("%s, result %d, word %d: 0x%x, not 0x%x", cases[c].name, k, w, x->out[row][w],
                 want[row][w]);
    row += words;
  }
}

static intel_kernel *kernel_of(const char *text) {
  char error[512] = "";
  intel_kernel *k = intel_of_body(text, error, sizeof error);
  if (!k) fail_msg("%s\n%s", error, text);
  return k;
}

static void against_c(void **state) {
  uint64_t seed = 7;
  char error[1024], *in = machine_alloc(512), *out = machine_alloc(256);
  (void)state;
  if (!intel_can_assemble()) skip_because("no libiga64.so.1");
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    intel_kernel *k = kernel_of(cases[c].body);
    for (int times = 0; times < 30; times++) {
      rows x;
      fill(&x, &seed);
      memcpy(in, x.in, 512);
      if (!intel_run_listed(k, 1, in, out, error, sizeof error)) fail_msg("%s", error);
      memcpy(x.out, out, 256);
      compare((int)c, &x);
    }
    intel_unload(k);
  }
  machine_free(in);
  machine_free(out);
}

/* ---- division and square root, as Intel's compiler writes them ---- */

static const char division[] =
    "(W) mov (16|M0) r40.0<1>:f 0x3F800000:f\n(W) mov (16|M0) r41.0<1>:f 0x0:f\n"
    "math.invm (16|M0) (eo)f0.0 r20.mme0:f r12.nomme:f r13.nomme:f\n"
    "(f0.0) goto (16|M0) OUT OUT\n"
    "madm (16|M0) r42.mme1:f r41.nomme:f r12.nomme:f r20.mme0:f\n"
    "madm (16|M0) r43.mme2:f r40.nomme:f -r13.nomme:f r20.mme0:f\n"
    "madm (16|M0) r44.mme3:f r20.mme0:f r43.mme2:f r20.mme0:f\n"
    "madm (16|M0) r45.mme4:f r12.nomme:f -r13.nomme:f r42.mme1:f\n"
    "madm (16|M0) r46.mme5:f r42.mme1:f r45.mme4:f r44.mme3:f\n"
    "madm (16|M0) r47.mme6:f r12.nomme:f -r13.nomme:f r46.mme5:f\n"
    "madm (16|M0) r20.nomme:f r46.mme5:f r47.mme6:f r44.mme3:f\n"
    "OUT:\njoin (16|M0) OVER\nOVER:\nsync.nop null";

static void divides(void **state) {
  uint64_t seed = 11;
  char error[1024], *in = machine_alloc(512), *out = machine_alloc(256);
  (void)state;
  if (!intel_can_assemble()) skip_because("no libiga64.so.1");
  intel_kernel *k = kernel_of(division);
  for (int times = 0; times < 300; times++) {
    rows x;
    fill(&x, &seed);
    if (times % 2)
      for (int l = 0; l < 16; l++) x.in[2][l] = (uint32_t)machine_draw(&seed);
    memcpy(in, x.in, 512);
    char number[16];
    snprintf(number, sizeof number, "%d", times);
    setenv("INTEL_EMULATOR_SEED", number, 1);
    if (!intel_run_listed(k, 1, in, out, error, sizeof error)) fail_msg("%s", error);
    memcpy(x.out, out, 256);
    for (int l = 0; l < 16; l++) {
      uint32_t want = uf(f(x.in[2][l]) / f(x.in[3][l]));
      if (!same('f', &x.out[0][l], &want))
        fail_msg("%a / %a: 0x%x, not 0x%x", (double)f(x.in[2][l]), (double)f(x.in[3][l]),
                 x.out[0][l], want);
    }
  }
  unsetenv("INTEL_EMULATOR_SEED");
  intel_unload(k);
  machine_free(in);
  machine_free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_c), cmocka_unit_test(divides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
