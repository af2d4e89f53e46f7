// vector.c - the common start of kernels in C with vector extensions: types, arithmetic,
// conversions, memory (embed.py tells how this file is cut).  Before it come, for L = 4 lanes,
//   #define L 4
//   #define EACH(x) x, x, x, x
//   #define LANES 0, 1, 2, 3

typedef unsigned short u16;
typedef unsigned u32;
typedef int i32;
typedef __INT64_TYPE__ i64;
typedef __UINT64_TYPE__ u64;
typedef float f32;
typedef double f64;
union arg { void *p; i32 i32; i64 i64; f32 f32; f64 f64; };
#define INLINE static inline __attribute__((always_inline))
#define COLD static __attribute__((noinline, cold))
#define AHEAD (8 * L)
#define LARGE (64LL << 20)
#define ALIGNED(p) (!((u64)(p) & (L * sizeof *(p) - 1)))
#define FETCH(n, bytes) do { for (int i_ = 0; i_ < (bytes); i_ += 64) __builtin_prefetch((const\
    void *)((n) + (u64)i_), 0, 2); (n) += (bytes); } while (0)
#define ASK(p, w) do { for (u64 i_ = 0; i_ < L * (w) * sizeof *(p); i_ += 64)\
    __builtin_prefetch((const char *)(p) + i_, 0, 2); } while (0)
#define FULL(count) __builtin_expect((count) >= L, 1)
#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if defined __clang__ || __GNUC__ >= 12
#define SHUF(T, I, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define PIECE(P, T, a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)
#define JOIN(P, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUF(T, I, a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#define PIECE(P, T, a, ...) ({ const int i_[] = {__VA_ARGS__}; P p_; for (unsigned j_ = 0; j_ <\
    sizeof i_ / sizeof *i_; j_++) p_[j_] = (a)[i_[j_]]; p_; })
#define JOIN(P, a, b, ...) ({ const __typeof__(a) j_[] = {a, b}; P p_; __builtin_memcpy(&p_, j_,\
    sizeof p_); p_; })
#endif
#define PIECES(T, n) typedef T T##_##n __attribute__((vector_size(n * sizeof(T)), aligned(1),\
    may_alias));
#define TYPE(T, I) \
  typedef T T##v __attribute__((vector_size(L * sizeof(T)))); \
  typedef I T##i __attribute__((vector_size(L * sizeof(T)))); \
  INLINE T##v splat_##T(T a) { return (T##v){EACH(a)}; } \
  INLINE T lane_##T(T##v a, i32 r) { return a[r]; }
TYPE(u16, short) TYPE(u32, i32) TYPE(i32, i32) TYPE(i64, i64) TYPE(f32, i32) TYPE(f64, i64)
#define CONVERT(T, a) __builtin_convertvector(a, T)
static const i32v LANE = {LANES};
INLINE i32v affine_i32(i32 a, i32 s) { return splat_i32(a) + splat_i32(s) * LANE; }
INLINE i64v affine_i64(i64 a, i64 s) { return splat_i64(a) + splat_i64(s) * CONVERT(i64v, LANE); }
INLINE i32v prefix(i32 count) { return LANE < splat_i32(count); }
INLINE i32 prefix_count(i64 a, i64 b) { return a >= b ? 0 : (u64)b - (u64)a >= L ? L : (i32)(b -\
    a); }

#define NUMBER(T) \
  INLINE T##v select_##T##v(i32v m, T##v a, T##v b) { T##i k = CONVERT(T##i, m); return (T##v)((k\
    & (T##i)a) | (~k & (T##i)b)); } \
  INLINE T select_##T(i32 m, T a, T b) { return m ? a : b; } \
  INLINE i32v lt_##T##v(T##v a, T##v b) { return CONVERT(i32v, (T##i)(a < b)); } \
  INLINE i32v le_##T##v(T##v a, T##v b) { return CONVERT(i32v, (T##i)(a <= b)); } \
  INLINE i32v eq_##T##v(T##v a, T##v b) { return CONVERT(i32v, (T##i)(a == b)); } \
  INLINE T##v min_##T##v(T##v a, T##v b) { T##i k = (T##i)(a < b) | (T##i)(b != b); return\
    (T##v)((k & (T##i)a) | (~k & (T##i)b)); } \
  INLINE T##v max_##T##v(T##v a, T##v b) { T##i k = (T##i)(a > b) | (T##i)(b != b); return\
    (T##v)((k & (T##i)a) | (~k & (T##i)b)); } \
  INLINE T min_##T(T a, T b) { return a < b || b != b ? a : b; } \
  INLINE T max_##T(T a, T b) { return a > b || b != b ? a : b; }
NUMBER(i32) NUMBER(i64) NUMBER(f32) NUMBER(f64)
#ifdef __clang__
#define SHUFFLE(T) INLINE T##v shuffle_##T(T##v a, i32v from) { T##v v; for (int r = 0; r < L;\
    r++) v[r] = a[from[r] & (L - 1)]; return v; }
#else
#define SHUFFLE(T) INLINE T##v shuffle_##T(T##v a, i32v from) { return __builtin_shuffle(a,\
    CONVERT(T##i, from)); }
#endif
SHUFFLE(i32) SHUFFLE(i64) SHUFFLE(f32) SHUFFLE(f64)
INLINE i32 mul_high_i32(i32 a, i32 b) { return (i32)((u64)(u32)a * (u32)b >> 32); }
INLINE i32v mul_high_i32v(i32v a, i32v b) { return CONVERT(i32v, (CONVERT(i64v, (u32v)a) *\
    CONVERT(i64v, (u32v)b)) >> 32); }

// Each rounds once.  These are the builtins behind <immintrin.h>: including it would take most of
// the time of compiling.
#define LANEWISE(T, name, f) INLINE T##v name##_##T##v(T##v a) { for (int r = 0; r < L; r++) a[r]\
    = f(a[r]); return a; } INLINE T name##_##T(T a) { return f(a); }
LANEWISE(f32, sqrt, __builtin_sqrtf) LANEWISE(f64, sqrt, __builtin_sqrt)

// MVEC: the C library has vector functions, named according to the x86-64 vector ABI.
#if defined MVEC && L == 16 && defined __AVX512F__
#define VECTOR_f32(f) _ZGVeN16v_##f
#elif defined MVEC && L == 8 && defined __AVX2__
#define VECTOR_f32(f) _ZGVdN8v_##f
#elif defined MVEC && L == 4
#define VECTOR_f32(f) _ZGVbN4v_##f
#endif
#if defined MVEC && L == 8 && defined __AVX512F__
#define VECTOR_f64(f) _ZGVeN8v_##f
#elif defined MVEC && L == 4 && defined __AVX2__
#define VECTOR_f64(f) _ZGVdN4v_##f
#elif defined MVEC && L == 2
#define VECTOR_f64(f) _ZGVbN2v_##f
#endif
#define WHOLE(T, name, f, F) T##v F(T##v); INLINE T##v name##_##T##v(T##v a) { return F(a); }\
    INLINE T name##_##T(T a) { return f(a); }
#ifdef VECTOR_f32
WHOLE(f32, exp, __builtin_expf, VECTOR_f32(expf)) WHOLE(f32, sin, __builtin_sinf,\
    VECTOR_f32(sinf)) WHOLE(f32, cos, __builtin_cosf, VECTOR_f32(cosf))
#else
LANEWISE(f32, exp, __builtin_expf) LANEWISE(f32, sin, __builtin_sinf) LANEWISE(f32, cos,\
    __builtin_cosf)
#endif
#ifdef VECTOR_f64
WHOLE(f64, exp, __builtin_exp, VECTOR_f64(exp)) WHOLE(f64, sin, __builtin_sin, VECTOR_f64(sin))\
    WHOLE(f64, cos, __builtin_cos, VECTOR_f64(cos))
#else
LANEWISE(f64, exp, __builtin_exp) LANEWISE(f64, sin, __builtin_sin) LANEWISE(f64, cos,\
    __builtin_cos)
#endif

INLINE f32 abs_f32(f32 a) { return __builtin_fabsf(a); }
INLINE f64 abs_f64(f64 a) { return __builtin_fabs(a); }
INLINE f32v abs_f32v(f32v a) { return (f32v)((i32v)a & splat_i32(0x7fffffff)); }
INLINE f64v abs_f64v(f64v a) { return (f64v)((i64v)a & splat_i64(0x7fffffffffffffff)); }
INLINE f32 fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
INLINE f64 fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#define FMA_LANES(T, f) INLINE T##v fma_##T##v(T##v a, T##v b, T##v c) { for (int r = 0; r < L;\
    r++) c[r] = f(a[r], b[r], c[r]); return c; }
#define FMA_BUILTIN(T, ...) INLINE T##v fma_##T##v(T##v a, T##v b, T##v c) { return\
    (T##v)__VA_ARGS__; }
#if __has_builtin(__builtin_elementwise_fma)
FMA_BUILTIN(f32, __builtin_elementwise_fma(a, b, c)) FMA_BUILTIN(f64, __builtin_elementwise_fma(a,\
    b, c))
#else
#if L == 16 && defined __AVX512F__ && __has_builtin(__builtin_ia32_vfmaddps512_mask)
FMA_BUILTIN(f32, __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4))
#elif L == 8 && defined __FMA__ && __has_builtin(__builtin_ia32_vfmaddps256)
FMA_BUILTIN(f32, __builtin_ia32_vfmaddps256(a, b, c))
#elif L == 4 && defined __FMA__ && __has_builtin(__builtin_ia32_vfmaddps)
FMA_BUILTIN(f32, __builtin_ia32_vfmaddps(a, b, c))
#else
FMA_LANES(f32, __builtin_fmaf)
#endif
#if L == 8 && defined __AVX512F__ && __has_builtin(__builtin_ia32_vfmaddpd512_mask)
FMA_BUILTIN(f64, __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4))
#elif L == 4 && defined __FMA__ && __has_builtin(__builtin_ia32_vfmaddpd256)
FMA_BUILTIN(f64, __builtin_ia32_vfmaddpd256(a, b, c))
#elif L == 2 && defined __FMA__ && __has_builtin(__builtin_ia32_vfmaddpd)
FMA_BUILTIN(f64, __builtin_ia32_vfmaddpd(a, b, c))
#else
FMA_LANES(f64, __builtin_fma)
#endif
#endif

// unpack_E: from memory to registers; pack_E: back, to nearest, ties to even.  A NaN keeps its
// upper bits and becomes quiet.
#define PLAIN(T) INLINE T##v unpack_##T(T##v a) { return a; } INLINE T##v pack_##T(T##v a) {\
    return a; } INLINE T unpack1_##T(T a) { return a; } INLINE T pack1_##T(T a) { return a; }
PLAIN(i32) PLAIN(i64) PLAIN(f32) PLAIN(f64)
INLINE u32 bits(f32 a) { u32 u; __builtin_memcpy(&u, &a, 4); return u; }
INLINE f32 from_bits(u32 u) { f32 a; __builtin_memcpy(&a, &u, 4); return a; }

//: bf16
INLINE f32 unpack1_bf16(u16 a) { return from_bits((u32)a << 16); }
INLINE u16 pack1_bf16(f32 a) { u32 u = bits(a); return (u16)(a != a ? u >> 16 | 0x40 : (u + 0x7fff\
    + (u >> 16 & 1)) >> 16); }
INLINE f32v unpack_bf16(u16v a) { return (f32v)(CONVERT(u32v, a) << 16); }
INLINE u16v pack_bf16(f32v a) {
  u32v u = (u32v)a, nan = (u32v)(a != a);
  return CONVERT(u16v, (nan & (u >> 16 | 0x40)) | (~nan & (u + 0x7fff + (u >> 16 & 1)) >> 16));
}

//: f16
INLINE f32 unpack1_f16(u16 h) {
  u32 sign = (u32)(h & 0x8000) << 16, e = h >> 10 & 31, f = h & 0x3ff;
  if (e == 0) return from_bits(sign | bits((f32)f * 0x1p-24f));
  if (e == 31) return from_bits(sign | 0x7f800000 | f << 13 | (f ? 0x400000 : 0));
  return from_bits(sign | (e + 112) << 23 | f << 13);
}
INLINE u16 pack1_f16(f32 x) {
  u32 u = bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return (u16)(sign | 0x7e00 | (a >> 13 & 0x3ff));
  if (a >= 0x477ff000) return (u16)(sign | 0x7c00);
// One ulp of 0.5 is 2^-24.
  if (a < 0x38800000) return (u16)(sign | (bits(from_bits(a) + 0.5f) - 0x3f000000));
  return (u16)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
}
#ifdef __F16C__
#include <immintrin.h>
#endif
INLINE f32v unpack_f16(u16v a) {
#if L == 16 && defined __AVX512F__
  return (f32v)_mm512_cvtph_ps((__m256i)a);
#elif L == 8 && defined __F16C__
  return (f32v)_mm256_cvtph_ps((__m128i)a);
#else
  f32v v;
  for (int r = 0; r < L; r++) v[r] = unpack1_f16(a[r]);
  return v;
#endif
}
INLINE u16v pack_f16(f32v a) {
#if L == 16 && defined __AVX512F__
  return (u16v)_mm512_cvtps_ph((__m512)a, 0);
#elif L == 8 && defined __F16C__
  return (u16v)_mm256_cvtps_ph((__m256)a, 0);
#else
  u16v v;
  for (int r = 0; r < L; r++) v[r] = pack1_f16(a[r]);
  return v;
#endif
}

// STREAM: a streaming store of an aligned vector, where the processor and the compiler support it;
// otherwise an ordinary store.  STREAMS(p): whether such stores at p fill cache lines: partial
// lines are better written through the caches.
#define STREAMS(p) (L * sizeof *(p) % 64 == 0 && ALIGNED(p))
#define FENCE()
#define STREAM(V, p, v) (*(V *)(p) = (v))
#ifdef __SSE2__
#undef FENCE
#define FENCE() __builtin_ia32_sfence()
#undef STREAM
#if defined __AVX512F__
#define NT_BYTES 64
#define NT __builtin_ia32_movntdq512
#elif defined __AVX__
#define NT_BYTES 32
#define NT __builtin_ia32_movntdq256
#else
#define NT_BYTES 16
#define NT __builtin_ia32_movntdq
#endif
typedef long long nt __attribute__((vector_size(NT_BYTES), may_alias));
#define STREAM(V, p, v) do { \
    const V v_ = (v); \
    nt *const to_ = (nt *)(p); \
    if (sizeof v_ % sizeof(nt)) *(V *)to_ = v_; \
    else { nt n_[sizeof v_ / sizeof(nt) + 1]; __builtin_memcpy(n_, &v_, sizeof v_); for (unsigned\
    i_ = 0; i_ < sizeof v_ / sizeof(nt); i_++) NT_STORE(to_ + i_, n_[i_]); } \
  } while (0)
#if __has_builtin(__builtin_nontemporal_store)
#define NT_STORE(p, v) __builtin_nontemporal_store(v, p)
#else
#define NT_STORE(p, v) NT(p, v)
#endif
#endif

// `n` words of 4 bytes to vectors whose other words are 0, and back.  0: the machine has no masks.
#if L == 16 && defined __AVX512F__
#define WORDS(n) (u16)((n) >= 16 ? 0xffff : (n) > 0 ? (1 << (n)) - 1 : 0)
INLINE int get_words(const f32 *a, i32 n, f32v *v, int vectors) {
  for (int h = 0; h < vectors; h++)
    v[h] = __builtin_ia32_loadups512_mask(a + 16 * h, (f32v){0}, WORDS(n - 16 * h));
  return 1;
}
INLINE int put_words(f32 *a, i32 n, const f32v *v, int vectors) {
  for (int h = 0; h < vectors; h++)
    __builtin_ia32_storeups512_mask(a + 16 * h, v[h], WORDS(n - 16 * h));
  return 1;
}
#else
#define get_words(a, n, v, vectors) 0
#define put_words(a, n, v, vectors) 0
#endif

// Gathers and scatters: masks by lane, any indices.  E: element, S: in memory, T: in registers.
#define ANYWHERE(E, S, T) \
  INLINE void gather_##E(const S *a, i64v at, i32v m, int w, T##v *v) { \
    for (int c = 0; c < w; c++) v[c] = (T##v){0}; \
    for (int r = 0; r < L; r++) for (int c = 0; m[r] && c < w; c++) v[c][r] = unpack1_##E(a[at[r]\
    + c]); \
  } \
  INLINE void scatter_##E(S *a, i64v at, i32v m, int w, const T##v *v) { \
    for (int r = 0; r < L; r++) for (int c = 0; m[r] && c < w; c++) a[at[r] + c] =\
    pack1_##E(v[c][r]); \
  } \
  INLINE void copy_##E(S *to, i64v at, const S *from, i64v start, i32v m, int w) { \
    for (int r = 0; r < L; r++) for (int c = 0; m[r] && c < w; c++) to[at[r] + c] = from[start[r]\
    + c]; \
  } \
  COLD void tail_get_##E(const S *a, i64 s, i32 count, int w, S##v *v) { \
    const int words = sizeof(S) / 4; \
    if (s == 1 && w == 1 && words && get_words((const f32 *)a, count * words, (f32v *)v, words))\
    return; \
    for (int c = 0; c < w; c++) v[c] = (S##v){0}; \
    for (i32 r = 0; r < count; r++) for (int c = 0; c < w; c++) ((S *)&v[c])[r] = a[r * s + c]; \
  } \
  COLD void tail_put_##E(S *a, i64 s, i32 count, int w, const S##v *v) { \
    const int words = sizeof(S) / 4; \
    if (s == 1 && w == 1 && words && put_words((f32 *)a, count * words, (const f32v *)v, words))\
    return; \
    for (i32 r = 0; r < count; r++) for (int c = 0; c < w; c++) a[r * s + c] = ((const S\
    *)&v[c])[r]; \
  }

// Copies whole aligned vectors instead of calling memcpy, so that no cache line is read first.
#define FLUSH(S) \
  INLINE void flush_##S(S *to, const S *from, int columns, i32 stream) { \
    for (int c = 0; stream && c < columns; c++) STREAM(S##v, to + c * L, *(const S##v *)(from + c\
    * L)); \
    for (int c = 0; !stream && c < columns; c++) { *(S##v *)(to + c * L) = *(const S##v *)(from +\
    c * L); __asm__ volatile("" ::: "memory"); } \
  }
FLUSH(u16) FLUSH(i32) FLUSH(i64) FLUSH(f32) FLUSH(f64)

#define ATOMIC(T, U) \
  INLINE void atomic_add_##T(T *a, i64v at, i32v m, T##v v) { \
    for (int r = 0; r < L; r++) { \
      if (!m[r]) continue; \
      U *to = (U *)(a + at[r]), old = __atomic_load_n(to, __ATOMIC_RELAXED), new; \
      do { T sum; __builtin_memcpy(&sum, &old, sizeof sum); sum += v[r]; __builtin_memcpy(&new,\
    &sum, sizeof sum); } \
      while (!__atomic_compare_exchange_n(to, &old, new, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    } \
  }
ATOMIC(f32, u32) ATOMIC(f64, u64)
