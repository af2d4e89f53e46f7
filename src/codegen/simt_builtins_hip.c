/* src/codegen/simt_builtins_hip.c - exp, sin and cos for AMD, whose compilers lack them without
   ROCm's device library; accurate to 4 ulp everywhere. */
#include "src/codegen/simt_builtins.h"

/* e^x = 2^n e^r, |r| <= ln(2) / 2, by Taylor's series. */
const char clb_hip_exp_f32[] =
    "DEVICE float exp_f32(float x) {\n"
    "  const float c[] = {0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f, 0x1.555556p-5f, "
    "0x1.555556p-3f, 0x1p-1f, 1.0f, 1.0f};\n"
    "  float y = x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x, n = __builtin_rintf(y * "
    "0x1.715476p+0f);\n"
    "  float r = __builtin_fmaf(n, 0x1.05c61p-29f, __builtin_fmaf(-n, 0x1.62e43p-1f, y)), p = "
    "c[0];\n"
    "  for (int i = 1; i < 8; i++) p = __builtin_fmaf(p, r, c[i]);\n"
    "  return __builtin_amdgcn_ldexpf(p, (int)n);\n}";
const char clb_hip_exp_f64[] =
    "DEVICE double exp_f64(double x) {\n"
    "  const double c[] = {0x1.6124613a86d09p-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26, "
    "0x1.27e4fb7789f5cp-22,\n    0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16, "
    "0x1.a01a01a01a01ap-13, 0x1.6c16c16c16c17p-10,\n    0x1.1111111111111p-7, "
    "0x1.5555555555555p-5, 0x1.5555555555555p-3, 0x1p-1, 1.0, 1.0};\n"
    "  double y = x > 2000.0 ? 2000.0 : x < -2000.0 ? -2000.0 : x, n = __builtin_rint(y * "
    "0x1.71547652b82fep+0);\n"
    "  double r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, __builtin_fma(-n, 0x1.62e42fefa39efp-1, "
    "y)), p = c[0];\n"
    "  for (int i = 1; i < 14; i++) p = __builtin_fma(p, r, c[i]);\n"
    "  return __builtin_amdgcn_ldexp(p, (int)n);\n}";

/* x = q pi/2 + r, |r| <= pi/4 (Payne and Hanek): with x = m 2^e, the bits of 2/pi that weigh 4 or
   more after multiplication by 2^e are multiples of four quarter turns and left out; 192 bits from
   there on leave r good to a double even where x is next to a multiple of pi/2.  The table begins
   with 64 zeros, for e < 2. */
const char clb_hip_turn_f64[] =
    "static __attribute__((constant)) const u64 two_over_pi[20] = {\n"
    "  0x0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,\n"
    "  0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,\n"
    "  0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,\n"
    "  0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,\n"
    "  0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab\n"
    "};\n"
    "DEVICE double turn_f64(double x, int *q) {\n"
    "  u64 bits = f64_bits(x) & 0x7fffffffffffffff, m = (bits & 0xfffffffffffff) | "
    "0x10000000000000, w[3];\n"
    "  int from = (int)(bits >> 52) - 1075 - 2 + 64, part = from & 63;\n"
    "  if (bits <= 0x3fe921fb54442d18) { *q = 0; return x; }\n"
    "  if (bits >= 0x7ff0000000000000) { *q = 0; return x - x; }\n"
    "  const u64 *word = two_over_pi + (from >> 6);\n"
    "  for (int i = 0; i < 3; i++) w[i] = part ? word[i] << part | word[i + 1] >> (64 - part) : "
    "word[i];\n"
    "  unsigned __int128 low = (unsigned __int128)m * w[2], high = (unsigned __int128)m * w[1] + "
    "(u64)(low >> 64);\n"
    "  u64 top = m * w[0] + (u64)(high >> 64), middle = (u64)high, bottom = (u64)low;\n"
    "  u64 a = top << 2 | middle >> 62, b = middle << 2 | bottom >> 62;\n"
    "  bool minus = a >> 63;\n"
    "  if (minus) { b = ~b + 1; a = ~a + (b == 0); }\n"
    "  double r = __builtin_fma((double)a, 0x1p-64, (double)b * 0x1p-128) * 0x1.921fb54442d18p+0;\n"
    "  bool negative = f64_bits(x) >> 63;\n"
    "  *q = (int)((top + ((u64)1 << 61)) >> 62);\n"
    "  *q = negative ? -*q : *q;\n"
    "  return minus != negative ? -r : r;\n}";
/* A float's distance from a multiple of pi/2 is at least 2^-32: twice the digits of pi/2 do up to
   2^20. */
const char clb_hip_turn_f32[] = "DEVICE double turn_f32(float x, int *q) {\n"
                                "  double n = __builtin_rint((double)x * 0x1.45f306dc9c883p-1);\n"
                                "  if (!(__builtin_fabsf(x) < 0x1p+20f)) return turn_f64(x, q);\n"
                                "  *q = (int)n;\n"
                                "  return __builtin_fma(-n, 0x1.1a62633145c07p-54, "
                                "__builtin_fma(-n, 0x1.921fb54442d18p+0, (double)x));\n}";
/* sin(r + q pi/2), by Taylor's series. */
const char clb_hip_sine[] =
    "DEVICE double sine(double r, int q) {\n"
    "  const double s[] = {0x1.952c77030ad4ap-49, -0x1.ae7f3e733b81fp-41, 0x1.6124613a86d09p-33, "
    "-0x1.ae64567f544e4p-26,\n    0x1.71de3a556c734p-19, -0x1.a01a01a01a01ap-13, "
    "0x1.1111111111111p-7, -0x1.5555555555555p-3};\n"
    "  const double c[] = {0x1.ae7f3e733b81fp-45, -0x1.93974a8c07c9dp-37, 0x1.1eed8eff8d898p-29, "
    "-0x1.27e4fb7789f5cp-22,\n    0x1.a01a01a01a01ap-16, -0x1.6c16c16c16c17p-10, "
    "0x1.5555555555555p-5, -0x1p-1};\n"
    "  double z = r * r, p = s[0], o = c[0];\n"
    "  for (int i = 1; i < 8; i++) { p = __builtin_fma(p, z, s[i]); o = __builtin_fma(o, z, c[i]); "
    "}\n"
    "  double v = q & 1 ? __builtin_fma(o, z, 1.0) : __builtin_fma(p * z, r, r);\n"
    "  return q & 2 ? -v : v;\n}";
