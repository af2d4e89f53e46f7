// hip.hip - the built-ins of kernels in HIP, for hiprtc and clang without headers.

//: KERNEL
#pragma clang fp contract(off)
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;
#define GLOBAL
#define LOCAL
#define restrict __restrict__
#define KERNEL(threads, lanes, resident) extern "C" __attribute__((global,\
    amdgpu_flat_work_group_size(threads, threads))) void
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))

#define group_index() (int)__builtin_amdgcn_workgroup_id_x()
#define thread_index() (u32)__builtin_amdgcn_workitem_id_x()

// readfirstlane marks a number as the same in all lanes of a wave, so that it and values computed
// from it are kept in scalar registers.
//: subgroup_index
#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)
#define WAVE 32
#else
#define WAVE 64
#endif
#define subgroup_index(lanes) (lanes % WAVE ? (int)(thread_index() / lanes) :\
    __builtin_amdgcn_readfirstlane((int)(thread_index() / lanes)))

#define f32_bits(x) __builtin_bit_cast(u32, (float)(x))
#define bits_f32(x) __builtin_bit_cast(float, (u32)(x))
#define f64_bits(x) __builtin_bit_cast(u64, (double)(x))
#define bits_f64(x) __builtin_bit_cast(double, (u64)(x))
#define f16_to_f32(h) (float)__builtin_bit_cast(_Float16, (u16)(h))
#define f32_to_f16(x) __builtin_bit_cast(u16, (_Float16)(float)(x))
#define bf16_to_f32(h) bits_f32((u32)(h) << 16)

// To nearest, ties to even; a NaN is a quiet NaN.
DEVICE u16 f32_to_bf16(float x) {
  u32 u = f32_bits(x);
  return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) &\
    1u)) >> 16);
}

#define fma_f32 __builtin_fmaf
#define fma_f64 __builtin_fma
#define fmin_f32 __builtin_fminf
#define fmin_f64 __builtin_fmin
#define fmax_f32 __builtin_fmaxf
#define fmax_f64 __builtin_fmax
#define fabs_f32 __builtin_fabsf
#define fabs_f64 __builtin_fabs

// HIP's compilers lack exp, sin and cos without ROCm's device library.  These are accurate to 4 ulp
// everywhere.  e^x = 2^n e^r, |r| <= ln(2) / 2, by Taylor's series.
DEVICE float exp_f32(float x) {
  const float c[] = {0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f, 0x1.555556p-5f,\
    0x1.555556p-3f, 0x1p-1f, 1.0f, 1.0f};
  float y = x > 200.0f ? 200.0f : x < -200.0f ? -200.0f : x, n = __builtin_rintf(y *\
    0x1.715476p+0f);
  float r = __builtin_fmaf(n, 0x1.05c61p-29f, __builtin_fmaf(-n, 0x1.62e43p-1f, y)), p = c[0];
  for (int i = 1; i < 8; i++) p = __builtin_fmaf(p, r, c[i]);
  return __builtin_amdgcn_ldexpf(p, (int)n);
}

DEVICE double exp_f64(double x) {
  const double c[] = {0x1.6124613a86d09p-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26,\
    0x1.27e4fb7789f5cp-22,
    0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-13, 0x1.6c16c16c16c17p-10,
    0x1.1111111111111p-7, 0x1.5555555555555p-5, 0x1.5555555555555p-3, 0x1p-1, 1.0, 1.0};
  double y = x > 2000.0 ? 2000.0 : x < -2000.0 ? -2000.0 : x, n = __builtin_rint(y *\
    0x1.71547652b82fep+0);
  double r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, __builtin_fma(-n, 0x1.62e42fefa39efp-1, y)),\
    p = c[0];
  for (int i = 1; i < 14; i++) p = __builtin_fma(p, r, c[i]);
  return __builtin_amdgcn_ldexp(p, (int)n);
}

// x = q pi/2 + r, |r| <= pi/4 (Payne and Hanek): with x = m 2^e, the bits of 2/pi that weigh 4 or
// more after multiplication by 2^e are multiples of four quarter turns and left out; 192 bits from
// there on leave r good to a double even where x is next to a multiple of pi/2.  The table begins
// with 64 zeros, for e < 2.
//: turn_f64
static __attribute__((constant)) const u64 two_over_pi[20] = {
  0x0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
  0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
  0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
  0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
  0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab
};
DEVICE double turn_f64(double x, int *q) {
  u64 bits = f64_bits(x) & 0x7fffffffffffffff, m = (bits & 0xfffffffffffff) | 0x10000000000000,\
    w[3];
  int from = (int)(bits >> 52) - 1075 - 2 + 64, part = from & 63;
  if (bits <= 0x3fe921fb54442d18) { *q = 0; return x; }
  if (bits >= 0x7ff0000000000000) { *q = 0; return x - x; }
  const u64 *word = two_over_pi + (from >> 6);
  for (int i = 0; i < 3; i++) w[i] = part ? word[i] << part | word[i + 1] >> (64 - part) : word[i];
  unsigned __int128 low = (unsigned __int128)m * w[2], high = (unsigned __int128)m * w[1] +\
    (u64)(low >> 64);
  u64 top = m * w[0] + (u64)(high >> 64), middle = (u64)high, bottom = (u64)low;
  u64 a = top << 2 | middle >> 62, b = middle << 2 | bottom >> 62;
  bool minus = a >> 63;
  if (minus) { b = ~b + 1; a = ~a + (b == 0); }
  double r = __builtin_fma((double)a, 0x1p-64, (double)b * 0x1p-128) * 0x1.921fb54442d18p+0;
  bool negative = f64_bits(x) >> 63;
  *q = (int)((top + ((u64)1 << 61)) >> 62);
  *q = negative ? -*q : *q;
  return minus != negative ? -r : r;
}

// A float's distance from a multiple of pi/2 is at least 2^-32: twice the digits of pi/2 do up to
// 2^20.
DEVICE double turn_f32(float x, int *q) {
  double n = __builtin_rint((double)x * 0x1.45f306dc9c883p-1);
  if (!(__builtin_fabsf(x) < 0x1p+20f)) return turn_f64(x, q);
  *q = (int)n;
  return __builtin_fma(-n, 0x1.1a62633145c07p-54, __builtin_fma(-n, 0x1.921fb54442d18p+0,\
    (double)x));
}

// sin(r + q pi/2), by Taylor's series.
DEVICE double sine(double r, int q) {
  const double s[] = {0x1.952c77030ad4ap-49, -0x1.ae7f3e733b81fp-41, 0x1.6124613a86d09p-33,\
    -0x1.ae64567f544e4p-26,
    0x1.71de3a556c734p-19, -0x1.a01a01a01a01ap-13, 0x1.1111111111111p-7, -0x1.5555555555555p-3};
  const double c[] = {0x1.ae7f3e733b81fp-45, -0x1.93974a8c07c9dp-37, 0x1.1eed8eff8d898p-29,\
    -0x1.27e4fb7789f5cp-22,
    0x1.a01a01a01a01ap-16, -0x1.6c16c16c16c17p-10, 0x1.5555555555555p-5, -0x1p-1};
  double z = r * r, p = s[0], o = c[0];
  for (int i = 1; i < 8; i++) { p = __builtin_fma(p, z, s[i]); o = __builtin_fma(o, z, c[i]); }
  double v = q & 1 ? __builtin_fma(o, z, 1.0) : __builtin_fma(p * z, r, r);
  return q & 2 ? -v : v;
}

DEVICE float sin_f32(float x) { int q; double r = turn_f32(x, &q); return (float)sine(r, q + 0); }
DEVICE double sin_f64(double x) { int q; double r = turn_f64(x, &q); return sine(r, q + 0); }
DEVICE float cos_f32(float x) { int q; double r = turn_f32(x, &q); return (float)sine(r, q + 1); }
DEVICE double cos_f64(double x) { int q; double r = turn_f64(x, &q); return sine(r, q + 1); }

// The instruction may be off by one ulp: the residuals of the neighbours tell which of the three is
// nearest.  Small x is scaled by 2^32 so that the residuals are exact.  s = 0 and infinity are
// already correct.
DEVICE float sqrt_f32(float x) {
  bool small = x < 0x1p-96f;
  float y = small ? x * 0x1p+32f : x, s = __builtin_amdgcn_sqrtf(y);
  float down = bits_f32(f32_bits(s) - 1u), up = bits_f32(f32_bits(s) + 1u);
  float r = __builtin_fmaf(-down, s, y) <= 0.0f ? down : s;
  r = __builtin_fmaf(-up, s, y) > 0.0f ? up : r;
  r = small ? r * 0x1p-16f : r;
  return y == 0.0f || y == bits_f32(0x7f800000u) ? y : r;
}

// Goldschmidt iteration from the hardware's 1 / sqrt, then two residual corrections.
DEVICE double sqrt_f64(double x) {
  bool small = x < 0x1p-767;
  double y = small ? x * 0x1p+256 : x, q = __builtin_amdgcn_rsq(y), g = y * q, h = q * 0.5;
  double r = __builtin_fma(-h, g, 0.5);
  g = __builtin_fma(g, r, g);
  h = __builtin_fma(h, r, h);
  g = __builtin_fma(__builtin_fma(-g, g, y), h, g);
  g = __builtin_fma(__builtin_fma(-g, g, y), h, g);
  g = small ? g * 0x1p-128 : g;
  return y == 0.0 || y == bits_f64(0x7ff0000000000000) ? y : g;
}

DEVICE u32 shuffle_u32(u32 x, int lane, u32 lanes) {
  return (u32)__builtin_amdgcn_ds_bpermute((int)(((thread_index() & ~(lanes - 1u)) | (u32)lane) <<\
    2), (int)x);
}

DEVICE u64 shuffle_u64(u64 x, int lane, u32 lanes) {
  return (u64)shuffle_u32((u32)(x >> 32), lane, lanes) << 32 | shuffle_u32((u32)x, lane, lanes);
}

#define shuffle_i32(x, lane, lanes) (int)shuffle_u32((u32)(x), lane, lanes)
#define shuffle_xor_i32(x, with, lanes) shuffle_i32(x, (int)(thread_index() % lanes) ^ (with),\
    lanes)
#define shuffle_i64(x, lane, lanes) (i64)shuffle_u64((u64)(x), lane, lanes)
#define shuffle_xor_i64(x, with, lanes) shuffle_i64(x, (int)(thread_index() % lanes) ^ (with),\
    lanes)
#define shuffle_f32(x, lane, lanes) bits_f32(shuffle_u32(f32_bits(x), lane, lanes))
#define shuffle_xor_f32(x, with, lanes) shuffle_f32(x, (int)(thread_index() % lanes) ^ (with),\
    lanes)
#define shuffle_f64(x, lane, lanes) bits_f64(shuffle_u64(f64_bits(x), lane, lanes))
#define shuffle_xor_f64(x, with, lanes) shuffle_f64(x, (int)(thread_index() % lanes) ^ (with),\
    lanes)
#define group_barrier() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");\
    __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#define subgroup_barrier(lanes) do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");\
    __builtin_amdgcn_wave_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront"); }\
    while (0)
#define atomic_add_f32(space, at, x) (void)__hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED,\
    __HIP_MEMORY_SCOPE_AGENT)
#define atomic_add_f64(space, at, x) (void)__hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED,\
    __HIP_MEMORY_SCOPE_AGENT)
#define copy_2(to, from) *(to) = *(from)
#define copy_4(to, from) *(to) = *(from)
#define copy_8(to, from) *(to) = *(from)
#define copy_commit()
#define copy_wait(batches)

// The language has these itself.
//: double
