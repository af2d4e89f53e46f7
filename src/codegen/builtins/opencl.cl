// opencl.cl - the built-ins of kernels in OpenCL C 1.2 (embed.py tells how this file is cut).

//: double
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

//: KERNEL
#pragma OPENCL FP_CONTRACT OFF
typedef long i64;
typedef ulong u64;
typedef uint u32;
typedef ushort u16;
#define DEVICE static inline
#define GLOBAL __global
#define LOCAL __local
#define SHARED __local __attribute__((aligned(16)))
#define KERNEL(threads, lanes, resident) __kernel __attribute__((reqd_work_group_size(threads, 1,\
    1))) void

#define group_index() (int)get_group_id(0)
#define thread_index() (u32)get_local_id(0)
#define subgroup_index(lanes) (int)(thread_index() / lanes)
#define f32_bits as_uint
#define bits_f32 as_float
#define f64_bits as_ulong
#define bits_f64(x) as_double((u64)(x))
DEVICE float f16_to_f32(u16 h) { return vload_half(0, (const __private half *)&h); }

// Without its sign a half is a float with too small an exponent; infinity and NaN get the largest.
DEVICE float f16_bits_to_f32(u16 h) {
  const u32 m = (u32)(h & 0x7fff) << 13;
  return as_float(as_uint(as_float(m) * 0x1p112f) | (u32)(h & 0x8000) << 16 | (m >= 0xf800000u ?\
    0x7f800000u : 0u));
}

DEVICE u16 f32_to_f16(float x) { u16 h; vstore_half_rte(x, 0, (__private half *)&h); return h; }
#define bf16_to_f32(h) bits_f32((u32)(h) << 16)

// To nearest, ties to even; a NaN is a quiet NaN.
DEVICE u16 f32_to_bf16(float x) {
  u32 u = f32_bits(x);
  return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) &\
    1u)) >> 16);
}

#define fma_f32 fma
#define fma_f64 fma
#define fmin_f32 fmin
#define fmin_f64 fmin
#define fmax_f32 fmax
#define fmax_f64 fmax
#define fabs_f32 fabs
#define fabs_f64 fabs
#define exp_f32 exp
#define exp_f64 exp
#define sin_f32 sin
#define sin_f64 sin
#define cos_f32 cos
#define cos_f64 cos
#define sqrt_f32 sqrt
#define sqrt_f64 sqrt

// The global offset is 0, which the compiler cannot know; integers are kept across barriers.
#define negated(x) ((x) * (float)((int)get_global_offset(0) - 1))

#define group_barrier() barrier(CLK_LOCAL_MEM_FENCE)
#define subgroup_barrier(lanes) barrier(CLK_LOCAL_MEM_FENCE)

// Compare and swap until no other thread has interfered.  space: GLOBAL or LOCAL.
#define atomic_add_f32(space, at, x) do { volatile space uint *p_ = (volatile space uint *)(at);\
    uint seen_ = *p_, old_; do { old_ = seen_; seen_ = atomic_cmpxchg(p_, old_,\
    as_uint(as_float(old_) + (x))); } while (seen_ != old_); } while (0)

//: atomic_add_f64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define atomic_add_f64(space, at, x) do { volatile space ulong *p_ = (volatile space ulong *)(at);\
    ulong seen_ = *p_, old_; do { old_ = seen_; seen_ = atom_cmpxchg(p_, old_,\
    as_ulong(as_double(old_) + (x))); } while (seen_ != old_); } while (0)

//: native_add_f32
#pragma OPENCL EXTENSION cl_ext_float_atomics : enable
#define native_add_f32(space, at, x) ((void)atomic_fetch_add_explicit((volatile space atomic_float\
    *)(at), x, memory_order_relaxed, memory_scope_device))

#define copy_2(to, from) *(to) = *(from)
#define copy_4(to, from) *(to) = *(from)
#define copy_8(to, from) *(to) = *(from)
#define copy_commit()
#define copy_wait(batches)
