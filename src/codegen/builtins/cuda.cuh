// cuda.cuh - the built-ins of kernels in CUDA, for NVRTC without headers.

//: KERNEL
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;
#define GLOBAL
#define LOCAL
#define restrict __restrict__
#define KERNEL(threads, lanes, resident) extern "C" __global__ void __launch_bounds__(threads,\
    resident)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__ __align__(16)

#define group_index() (int)blockIdx.x
#define thread_index() (u32)threadIdx.x
#define subgroup_index(lanes) (int)(thread_index() / lanes)
#define f32_bits __float_as_uint
#define bits_f32 __uint_as_float
#define f64_bits(x) (u64)__double_as_longlong(x)
#define bits_f64(x) __longlong_as_double((i64)(x))
DEVICE float f16_to_f32(u16 h) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
DEVICE u16 f32_to_f16(float x) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return\
    h; }
#define bf16_to_f32(h) bits_f32((u32)(h) << 16)

// To nearest, ties to even; a NaN is a quiet NaN.
//: f32_to_bf16
#if __CUDA_ARCH__ >= 800
DEVICE u16 f32_to_bf16(float x) { u16 h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x)); return\
    h; }
#else
DEVICE u16 f32_to_bf16(float x) {
  u32 u = f32_bits(x);
  return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) &\
    1u)) >> 16);
}
#endif

// The compiler takes three instructions where it sees only one of the numbers widened.
//: mul_wide
DEVICE i64 mul_wide(int a, int b) { i64 x; asm("mul.wide.s32 %0, %1, %2;" : "=l"(x) : "r"(a),\
    "r"(b)); return x; }

#define fma_f32 fmaf
#define fma_f64 fma
#define fmin_f32 fminf
#define fmin_f64 fmin
#define fmax_f32 fmaxf
#define fmax_f64 fmax
#define fabs_f32 fabsf
#define fabs_f64 fabs
#define exp_f32 expf
#define exp_f64 exp
#define sin_f32 sinf
#define sin_f64 sin
#define cos_f32 cosf
#define cos_f64 cos
#define sqrt_f32 __fsqrt_rn
#define sqrt_f64 __dsqrt_rn
#define subgroup_mask(lanes) (lanes == 32 ? 0xffffffffu : ((1u << (lanes & 31)) - 1u) <<\
    (thread_index() & 31u & ~(u32)(lanes - 1)))
#define shuffle_i32(x, lane, lanes) __shfl_sync(subgroup_mask(lanes), x, lane, lanes)
#define shuffle_xor_i32(x, with, lanes) __shfl_xor_sync(subgroup_mask(lanes), x, with, lanes)
#define shuffle_i64(x, lane, lanes) __shfl_sync(subgroup_mask(lanes), x, lane, lanes)
#define shuffle_xor_i64(x, with, lanes) __shfl_xor_sync(subgroup_mask(lanes), x, with, lanes)
#define shuffle_f32(x, lane, lanes) __shfl_sync(subgroup_mask(lanes), x, lane, lanes)
#define shuffle_xor_f32(x, with, lanes) __shfl_xor_sync(subgroup_mask(lanes), x, with, lanes)
#define shuffle_f64(x, lane, lanes) __shfl_sync(subgroup_mask(lanes), x, lane, lanes)
#define shuffle_xor_f64(x, with, lanes) __shfl_xor_sync(subgroup_mask(lanes), x, with, lanes)
#define group_barrier() __syncthreads()
#define subgroup_barrier(lanes) __syncwarp(subgroup_mask(lanes))
#define atomic_add_f32(space, at, x) (void)atomicAdd(at, x)
#define atomic_add_f64(space, at, x) (void)atomicAdd(at, x)

// Additions of vectors came with CUDA 12.1.
//: atomic_add_f32_2
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
#define atomic_add_f32_2(at, x, y) (void)atomicAdd((float2 *)(at), make_float2(x, y))
#else
#define atomic_add_f32_2(at, x, y) atomicAdd(at, x), atomicAdd((at) + 1, y)
#endif

//: atomic_add_f32_4
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
#define atomic_add_f32_4(at, x, y, z, w) (void)atomicAdd((float4 *)(at), make_float4(x, y, z, w))
#else
#define atomic_add_f32_4(at, x, y, z, w) atomicAdd(at, x), atomicAdd((at) + 1, y), atomicAdd((at)\
    + 2, z), atomicAdd((at) + 3, w)
#endif

#define copy_2(to, from) *(to) = *(from)

// Asynchronous copies into local memory.
#define copy_4(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::\
    "r"((u32)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")

#define copy_8(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::\
    "r"((u32)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)) : "memory")

// Both places are a pointer and a constant number of bytes.
#define copy_aligned_8(to, at, from, start) asm\
    volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 8;" ::\
    "r"((u32)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "n"(at),\
    "n"(start) : "memory")

#define copy_aligned_16(to, at, from, start) asm\
    volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;" ::\
    "r"((u32)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "n"(at),\
    "n"(start) : "memory")
#define copy_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define copy_wait(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")

// The language has these itself.
//: double longlong2 make_int2 make_int4 make_longlong2 make_float2 make_float4 make_double2
