/* src/codegen/simt_builtins.c - the built-ins in which OpenCL C, CUDA and HIP differ, each defined
   when a text uses it. */
#include "src/codegen/simt_builtins.h"

#include <ctype.h>
#include <string.h>

typedef struct {
  const char *name;
  const char *opencl;    /* NULL: the language cannot express it */
  const char *subgroups; /* OpenCL with sub-groups; NULL: the same as without */
  const char *cuda, *hip;
} word;

#define OPENCL_WORDS                                                                               \
  "#pragma OPENCL FP_CONTRACT OFF\n"                                                               \
  "typedef long i64;\ntypedef ulong u64;\ntypedef uint u32;\ntypedef ushort u16;\n"                \
  "#define DEVICE static inline\n#define GLOBAL __global\n#define LOCAL __local\n#define SHARED "  \
  "__local __attribute__((aligned(16)))\n"
#define CPLUSPLUS_WORDS                                                                            \
  "typedef long long i64;\ntypedef unsigned long long u64;\ntypedef unsigned u32;\ntypedef "       \
  "unsigned short u16;\n"                                                                          \
  "#define GLOBAL\n#define LOCAL\n#define restrict __restrict__\n"
#define EACH(text) text, NULL, text, text
#define MATH(op, opencl, cuda32, cuda64, hip32, hip64)                                             \
  {op "_f32", "#define " op "_f32 " opencl, NULL, "#define " op "_f32 " cuda32,                    \
   "#define " op "_f32 " hip32},                                                                   \
  {                                                                                                \
    op "_f64", "#define " op "_f64 " opencl, NULL, "#define " op "_f64 " cuda64,                   \
        "#define " op "_f64 " hip64                                                                \
  }
#define TURNS(op, quarters)                                                                        \
  {op "_f32", "#define " op "_f32 " op, NULL, "#define " op "_f32 " op "f",                        \
   "DEVICE float " op                                                                              \
   "_f32(float x) { int q; double r = turn_f32(x, &q); return (float)sine(r, q + " quarters        \
   "); }"},                                                                                        \
  {                                                                                                \
    op "_f64", "#define " op "_f64 " op, NULL, "#define " op "_f64 " op,                           \
        "DEVICE double " op                                                                        \
        "_f64(double x) { int q; double r = turn_f64(x, &q); return sine(r, q + " quarters "); }"  \
  }
#define SHUFFLE(type, hip)                                                                         \
  {"shuffle_" type, NULL,                                                                          \
   "#define shuffle_" type "(x, lane, lanes) intel_sub_group_shuffle(x, (uint)(lane))",            \
   "#define shuffle_" type "(x, lane, lanes) __shfl_sync(subgroup_mask(lanes), x, lane, lanes)",   \
   "#define shuffle_" type "(x, lane, lanes) " hip},                                               \
  {                                                                                                \
    "shuffle_xor_" type, NULL,                                                                     \
        "#define shuffle_xor_" type                                                                \
        "(x, with, lanes) intel_sub_group_shuffle_xor(x, (uint)(with))",                           \
        "#define shuffle_xor_" type                                                                \
        "(x, with, lanes) __shfl_xor_sync(subgroup_mask(lanes), x, with, lanes)",                  \
        "#define shuffle_xor_" type "(x, with, lanes) shuffle_" type                               \
        "(x, (int)(thread_index() % lanes) ^ (with), lanes)"                                       \
  }
#define TO_BF16                                                                                    \
  "DEVICE u16 f32_to_bf16(float x) {\n  u32 u = f32_bits(x);\n"                                    \
  "  return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u "                       \
  "+ 0x7fffu + ((u >> 16) & 1u)) >> 16);\n}"
/* Compare and swap until no other thread has interfered. */
#define SWAP_LOOP(type, word, real, exchange)                                                      \
  "#define atomic_add_" type "(space, at, x) do { volatile space " word                            \
  " *p_ = (volatile space " word " *)(at); " word                                                  \
  " seen_ = *p_, old_; do { old_ = seen_; seen_ = " exchange "(p_, old_, as_" word "(as_" real     \
  "(old_) + (x))); } while (seen_ != old_); } while (0)"
#define ATOMIC_NATIVE(type, real)                                                                  \
  "#pragma OPENCL EXTENSION cl_ext_float_atomics : enable\n#define native_add_" type               \
  "(space, at, x) "                                                                                \
  "((void)atomic_fetch_add_explicit((volatile space atomic_" real                                  \
  " *)(at), x, memory_order_relaxed, memory_scope_device))"

/* Both places are a pointer and a constant number of bytes. */
#define COPY_ALIGNED(bytes, cache)                                                                 \
  "#define copy_aligned_" bytes "(to, at, from, start) asm volatile(\"cp.async." cache             \
  ".shared.global [%0 + %2], [%1 + %3], " bytes                                                    \
  ";\" :: \"r\"((u32)__cvta_generic_to_shared(to)), "                                              \
  "\"l\"(__cvta_generic_to_global(from)), \"n\"(at), \"n\"(start) : \"memory\")"
/* Additions of vectors came with CUDA 12.1. */
#define SINCE_12_1 "#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201\n"

#define ONLY_PTX(name)                                                                             \
  { name, NULL, NULL, NULL, NULL }
#define OF_CUDA(name)                                                                              \
  { name, NULL, NULL, "", NULL }

/* A built-in comes after those it uses. */
static const word words[] = {
    {"double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable", NULL, "", ""},
    {"KERNEL",
     OPENCL_WORDS "#define KERNEL(threads, lanes, resident) __kernel "
                  "__attribute__((reqd_work_group_size(threads, 1, 1))) void",
     "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n" OPENCL_WORDS
     "#define KERNEL(threads, lanes, resident) __kernel "
     "__attribute__((reqd_work_group_size(threads, 1, 1), intel_reqd_sub_group_size(lanes))) void",
     CPLUSPLUS_WORDS
     "#define KERNEL(threads, lanes, resident) extern \"C\" __global__ void "
     "__launch_bounds__(threads, resident)\n"
     "#define DEVICE static __device__ __forceinline__\n#define SHARED __shared__ __align__(16)",
     "#pragma clang fp contract(off)\n" CPLUSPLUS_WORDS
     "#define KERNEL(threads, lanes, resident) extern \"C\" __attribute__((global, "
     "amdgpu_flat_work_group_size(threads, threads))) void\n"
     "#define DEVICE static inline __attribute__((device, always_inline))\n#define SHARED "
     "__attribute__((shared))"},
    {"group_index", "#define group_index() (int)get_group_id(0)", NULL,
     "#define group_index() (int)blockIdx.x",
     "#define group_index() (int)__builtin_amdgcn_workgroup_id_x()"},
    {"thread_index", "#define thread_index() (u32)get_local_id(0)", NULL,
     "#define thread_index() (u32)threadIdx.x",
     "#define thread_index() (u32)__builtin_amdgcn_workitem_id_x()"},
    /* readfirstlane marks a number as the same in all lanes of a wave, so that it and values
       computed from it are kept in scalar registers. */
    {"subgroup_index", "#define subgroup_index(lanes) (int)(thread_index() / lanes)", NULL,
     "#define subgroup_index(lanes) (int)(thread_index() / lanes)",
     "#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)\n#define WAVE "
     "32\n#else\n#define WAVE 64\n#endif\n"
     "#define subgroup_index(lanes) (lanes % WAVE ? (int)(thread_index() / lanes) : "
     "__builtin_amdgcn_readfirstlane((int)(thread_index() / lanes)))"},

    {"f32_bits", "#define f32_bits as_uint", NULL, "#define f32_bits __float_as_uint",
     "#define f32_bits(x) __builtin_bit_cast(u32, (float)(x))"},
    {"bits_f32", "#define bits_f32 as_float", NULL, "#define bits_f32 __uint_as_float",
     "#define bits_f32(x) __builtin_bit_cast(float, (u32)(x))"},
    {"f64_bits", "#define f64_bits as_ulong", NULL,
     "#define f64_bits(x) (u64)__double_as_longlong(x)",
     "#define f64_bits(x) __builtin_bit_cast(u64, (double)(x))"},
    {"bits_f64", "#define bits_f64(x) as_double((u64)(x))", NULL,
     "#define bits_f64(x) __longlong_as_double((i64)(x))",
     "#define bits_f64(x) __builtin_bit_cast(double, (u64)(x))"},

    {"f16_to_f32",
     "DEVICE float f16_to_f32(u16 h) { return vload_half(0, (const __private half *)&h); }", NULL,
     "DEVICE float f16_to_f32(u16 h) { float x; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : "
     "\"h\"(h)); return x; }",
     "#define f16_to_f32(h) (float)__builtin_bit_cast(_Float16, (u16)(h))"},
    /* Without its sign a half is a float with too small an exponent; infinity and NaN get the
       largest. */
    {"f16_bits_to_f32",
     "DEVICE float f16_bits_to_f32(u16 h) {\n  const u32 m = (u32)(h & 0x7fff) << 13;\n"
     "  return as_float(as_uint(as_float(m) * 0x1p112f) | (u32)(h & 0x8000) << 16 | (m >= "
     "0xf800000u ? 0x7f800000u : 0u));\n}",
     NULL, NULL, NULL},
    {"f32_to_f16",
     "DEVICE u16 f32_to_f16(float x) { u16 h; vstore_half_rte(x, 0, (__private half *)&h); return "
     "h; }",
     NULL,
     "DEVICE u16 f32_to_f16(float x) { u16 h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : "
     "\"f\"(x)); return h; }",
     "#define f32_to_f16(x) __builtin_bit_cast(u16, (_Float16)(float)(x))"},
    {"bf16_to_f32", EACH("#define bf16_to_f32(h) bits_f32((u32)(h) << 16)")},
    /* Rounds to nearest, ties to even; a NaN is a quiet NaN. */
    {"f32_to_bf16", TO_BF16, NULL,
     "#if __CUDA_ARCH__ >= 800\nDEVICE u16 f32_to_bf16(float x) { u16 h; "
     "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x)); return h; }\n#else\n" TO_BF16
     "\n#endif",
     TO_BF16},

    MATH("fma", "fma", "fmaf", "fma", "__builtin_fmaf", "__builtin_fma"),
    MATH("fmin", "fmin", "fminf", "fmin", "__builtin_fminf", "__builtin_fmin"),
    MATH("fmax", "fmax", "fmaxf", "fmax", "__builtin_fmaxf", "__builtin_fmax"),
    MATH("fabs", "fabs", "fabsf", "fabs", "__builtin_fabsf", "__builtin_fabs"),
    {"exp_f32", "#define exp_f32 exp", NULL, "#define exp_f32 expf", clb_hip_exp_f32},
    {"exp_f64", "#define exp_f64 exp", NULL, "#define exp_f64 exp", clb_hip_exp_f64},
    {"turn_f64", NULL, NULL, NULL, clb_hip_turn_f64},
    {"turn_f32", NULL, NULL, NULL, clb_hip_turn_f32},
    {"sine", NULL, NULL, NULL, clb_hip_sine},
    TURNS("sin", "0"),
    TURNS("cos", "1"),
    /* AMD's instruction may be off by one ulp: the residuals of the neighbours tell which of the
       three is nearest. Small x is scaled by 2^32 so that the residuals are exact. s = 0 and
       infinity are already correct. */
    {"sqrt_f32", "#define sqrt_f32 sqrt", NULL, "#define sqrt_f32 __fsqrt_rn",
     "DEVICE float sqrt_f32(float x) {\n"
     "  bool small = x < 0x1p-96f;\n  float y = small ? x * 0x1p+32f : x, s = "
     "__builtin_amdgcn_sqrtf(y);\n"
     "  float down = bits_f32(f32_bits(s) - 1u), up = bits_f32(f32_bits(s) + 1u);\n"
     "  float r = __builtin_fmaf(-down, s, y) <= 0.0f ? down : s;\n  r = __builtin_fmaf(-up, s, y) "
     "> 0.0f ? up : r;\n"
     "  r = small ? r * 0x1p-16f : r;\n  return y == 0.0f || y == bits_f32(0x7f800000u) ? y : "
     "r;\n}"},
    /* Goldschmidt iteration from the hardware's 1 / sqrt, then two residual corrections. */
    {"sqrt_f64", "#define sqrt_f64 sqrt", NULL, "#define sqrt_f64 __dsqrt_rn",
     "DEVICE double sqrt_f64(double x) {\n"
     "  bool small = x < 0x1p-767;\n  double y = small ? x * 0x1p+256 : x, q = "
     "__builtin_amdgcn_rsq(y), g = y * q, h = q * 0.5;\n"
     "  double r = __builtin_fma(-h, g, 0.5);\n  g = __builtin_fma(g, r, g);\n  h = "
     "__builtin_fma(h, r, h);\n"
     "  g = __builtin_fma(__builtin_fma(-g, g, y), h, g);\n  g = __builtin_fma(__builtin_fma(-g, "
     "g, y), h, g);\n"
     "  g = small ? g * 0x1p-128 : g;\n  return y == 0.0 || y == bits_f64(0x7ff0000000000000) ? y "
     ": g;\n}"},

    {"subgroup_mask", NULL, NULL,
     "#define subgroup_mask(lanes) (lanes == 32 ? 0xffffffffu : ((1u << (lanes & 31)) - 1u) << "
     "(thread_index() & 31u & ~(u32)(lanes - 1)))",
     NULL},
    ONLY_PTX("shuffle_b32"),
    ONLY_PTX("shuffle_b64"),
    ONLY_PTX("exchange_b32"),
    ONLY_PTX("exchange_b64"),
    {"shuffle_u32", NULL, NULL, NULL,
     "DEVICE u32 shuffle_u32(u32 x, int lane, u32 lanes) {\n"
     "  return (u32)__builtin_amdgcn_ds_bpermute((int)(((thread_index() & ~(lanes - 1u)) | "
     "(u32)lane) << 2), (int)x);\n}"},
    {"shuffle_u64", NULL, NULL, NULL,
     "DEVICE u64 shuffle_u64(u64 x, int lane, u32 lanes) {\n"
     "  return (u64)shuffle_u32((u32)(x >> 32), lane, lanes) << 32 | shuffle_u32((u32)x, lane, "
     "lanes);\n}"},
    SHUFFLE("i32", "(int)shuffle_u32((u32)(x), lane, lanes)"),
    SHUFFLE("i64", "(i64)shuffle_u64((u64)(x), lane, lanes)"),
    SHUFFLE("f32", "bits_f32(shuffle_u32(f32_bits(x), lane, lanes))"),
    SHUFFLE("f64", "bits_f64(shuffle_u64(f64_bits(x), lane, lanes))"),

    {"hidden", NULL,
     "#define hidden(mask) (bool)intel_sub_group_shuffle((uint)(mask), get_sub_group_local_id())",
     NULL, NULL},

    /* The global offset is 0, which the compiler cannot know; integers are kept across barriers. */
    {"negated", "#define negated(x) ((x) * (float)((int)get_global_offset(0) - 1))", NULL, NULL,
     NULL},

    {"group_barrier", "#define group_barrier() barrier(CLK_LOCAL_MEM_FENCE)", NULL,
     "#define group_barrier() __syncthreads()",
     "#define group_barrier() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); "
     "__builtin_amdgcn_s_barrier(); "
     "__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"workgroup\"); } while (0)"},
    {"subgroup_barrier", "#define subgroup_barrier(lanes) barrier(CLK_LOCAL_MEM_FENCE)",
     "#define subgroup_barrier(lanes) sub_group_barrier(CLK_LOCAL_MEM_FENCE)",
     "#define subgroup_barrier(lanes) __syncwarp(subgroup_mask(lanes))",
     "#define subgroup_barrier(lanes) do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "
     "\"wavefront\"); __builtin_amdgcn_wave_barrier(); "
     "__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, \"wavefront\"); } while (0)"},

    {"atomic_add_f32", SWAP_LOOP("f32", "uint", "float", "atomic_cmpxchg"), NULL,
     "#define atomic_add_f32(space, at, x) (void)atomicAdd(at, x)",
     "#define atomic_add_f32(space, at, x) (void)__hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED, "
     "__HIP_MEMORY_SCOPE_AGENT)"},
    {"atomic_add_f64",
     "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n" SWAP_LOOP(
         "f64", "ulong", "double", "atom_cmpxchg"),
     NULL, "#define atomic_add_f64(space, at, x) (void)atomicAdd(at, x)",
     "#define atomic_add_f64(space, at, x) (void)__hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED, "
     "__HIP_MEMORY_SCOPE_AGENT)"},
    {"atomic_add_f32_2", NULL, NULL,
     SINCE_12_1 "#define atomic_add_f32_2(at, x, y) (void)atomicAdd((float2 *)(at), "
                "make_float2(x, y))\n#else\n#define atomic_add_f32_2(at, x, y) atomicAdd(at, x), "
                "atomicAdd((at) + 1, y)\n#endif",
     NULL},
    {"atomic_add_f32_4", NULL, NULL,
     SINCE_12_1 "#define atomic_add_f32_4(at, x, y, z, w) (void)atomicAdd((float4 *)(at), "
                "make_float4(x, y, z, w))\n#else\n#define atomic_add_f32_4(at, x, y, z, w) "
                "atomicAdd(at, x), atomicAdd((at) + 1, y), atomicAdd((at) + 2, z), "
                "atomicAdd((at) + 3, w)\n#endif",
     NULL},
    {"native_add_f32", ATOMIC_NATIVE("f32", "float"), NULL, NULL, NULL},

    {"copy_2", EACH("#define copy_2(to, from) *(to) = *(from)")},
    {"copy_4", "#define copy_4(to, from) *(to) = *(from)", NULL,
     "#define copy_4(to, from) asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" "
     ":: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)) : "
     "\"memory\")",
     "#define copy_4(to, from) *(to) = *(from)"},
    {"copy_8", "#define copy_8(to, from) *(to) = *(from)", NULL,
     "#define copy_8(to, from) asm volatile(\"cp.async.ca.shared.global [%0], [%1], 8;\" "
     ":: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(__cvta_generic_to_global(from)) : "
     "\"memory\")",
     "#define copy_8(to, from) *(to) = *(from)"},
    {"copy_aligned_8", NULL, NULL, COPY_ALIGNED("8", "ca"), NULL},
    {"copy_aligned_16", NULL, NULL, COPY_ALIGNED("16", "cg"), NULL},
    {"copy_commit", "#define copy_commit()", NULL,
     "#define copy_commit() asm volatile(\"cp.async.commit_group;\" ::: \"memory\")",
     "#define copy_commit()"},
    {"copy_wait", "#define copy_wait(batches)", NULL,
     "#define copy_wait(batches) asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(batches) : "
     "\"memory\")",
     "#define copy_wait(batches)"},

    OF_CUDA("longlong2"),
    OF_CUDA("make_int2"),
    OF_CUDA("make_int4"),
    OF_CUDA("make_longlong2"),
    OF_CUDA("make_float2"),
    OF_CUDA("make_float4"),
    OF_CUDA("make_double2"),
};
enum { N = sizeof words / sizeof *words };

static const char *definition(const word *w, const clb_dialect *d) {
  switch (d->language) {
    case CLB_LANGUAGE_OPENCL:
      if (d->ptx) return clb_ptx_word(w->name) ? clb_ptx_word(w->name) : w->opencl;
      return d->subgroups && w->subgroups ? w->subgroups : w->opencl;
    case CLB_LANGUAGE_CUDA: return w->cuda;
    case CLB_LANGUAGE_HIP: return w->hip;
    default: return NULL;
  }
}

static bool letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool uses(const char *text, const char *name) {
  size_t n = strlen(name);
  for (const char *s = text; (s = strstr(s, name)); s += n)
    if ((s == text || !letter(s[-1])) && !letter(s[n])) return true;
  return false;
}

const char *clb_builtins(const clb_dialect *dialect, const char *body, clb_text *out) {
  bool used[N] = {false};
  for (int w = N - 1; w >= 0; w--) {
    used[w] = uses(body, words[w].name);
    for (int by = w + 1; by < N && !used[w]; by++)
      used[w] = used[by] && uses(definition(&words[by], dialect), words[w].name);
    if (used[w] && !definition(&words[w], dialect)) return words[w].name;
  }
  for (int w = 0; w < N; w++) {
    const char *text = used[w] ? definition(&words[w], dialect) : "";
    clb_text_add(out, *text ? "%s\n" : "%s", text);
  }
  return NULL;
}
