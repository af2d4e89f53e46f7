// ptx.cl - what replaces opencl.cl's on NVIDIA's GPUs, whose OpenCL has neither sub-groups nor
// asynchronous copies nor float atomics, but takes PTX; and CUDA's names of vectors.

#define subgroup_mask(lanes) (lanes == 32 ? 0xffffffffu : ((1u << (lanes & 31)) - 1u) <<\
    (thread_index() & 31u & ~(u32)(lanes - 1)))

// shuffle: from a lane; exchange: from the lane whose number differs in these bits.
DEVICE u32 shuffle_b32(u32 x, u32 lane, u32 lanes, u32 mask) { u32 r; asm\
    volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(lane), "r"((32u -\
    lanes) << 8 | 31u), "r"(mask)); return r; }

DEVICE u64 shuffle_b64(u64 x, u32 lane, u32 lanes, u32 mask) { return (u64)shuffle_b32((u32)(x >>\
    32), lane, lanes, mask) << 32 | shuffle_b32((u32)x, lane, lanes, mask); }
DEVICE u32 exchange_b32(u32 x, u32 lane, u32 lanes, u32 mask) { u32 r; asm\
    volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(lane), "r"((32u -\
    lanes) << 8 | 31u), "r"(mask)); return r; }
DEVICE u64 exchange_b64(u64 x, u32 lane, u32 lanes, u32 mask) { return (u64)exchange_b32((u32)(x\
    >> 32), lane, lanes, mask) << 32 | exchange_b32((u32)x, lane, lanes, mask); }
#define shuffle_i32(x, lane, lanes) (int)(shuffle_b32((u32)(x), (u32)(lane), lanes,\
    subgroup_mask(lanes)))
#define shuffle_xor_i32(x, with, lanes) (int)(exchange_b32((u32)(x), (u32)(with), lanes,\
    subgroup_mask(lanes)))
#define shuffle_i64(x, lane, lanes) (i64)(shuffle_b64((u64)(x), (u32)(lane), lanes,\
    subgroup_mask(lanes)))
#define shuffle_xor_i64(x, with, lanes) (i64)(exchange_b64((u64)(x), (u32)(with), lanes,\
    subgroup_mask(lanes)))
#define shuffle_f32(x, lane, lanes) as_float(shuffle_b32(as_uint(x), (u32)(lane), lanes,\
    subgroup_mask(lanes)))
#define shuffle_xor_f32(x, with, lanes) as_float(exchange_b32(as_uint(x), (u32)(with), lanes,\
    subgroup_mask(lanes)))
#define shuffle_f64(x, lane, lanes) as_double(shuffle_b64(as_ulong(x), (u32)(lane), lanes,\
    subgroup_mask(lanes)))
#define shuffle_xor_f64(x, with, lanes) as_double(exchange_b64(as_ulong(x), (u32)(with), lanes,\
    subgroup_mask(lanes)))
#define subgroup_barrier(lanes) asm volatile("bar.warp.sync %0;" :: "r"(subgroup_mask(lanes)) :\
    "memory")

//: mul_wide
DEVICE i64 mul_wide(int a, int b) { i64 x; asm("mul.wide.s32 %0, %1, %2;" : "=l"(x) : "r"(a),\
    "r"(b)); return x; }

// space: GLOBAL or LOCAL.
//: atomic_add_f32
#define add_f32_GLOBAL(at, x) asm volatile("red.global.add.f32 [%0], %1;" :: "l"((u64)(at)),\
    "f"(x) : "memory")
#define add_f32_LOCAL(at, x) asm volatile("red.shared.add.f32 [%0], %1;" :: "r"((u32)(u64)(at)),\
    "f"(x) : "memory")
#define atomic_add_f32(space, at, x) add_f32_##space(at, x)

//: atomic_add_f64
#define add_f64_GLOBAL(at, x) asm volatile("red.global.add.f64 [%0], %1;" :: "l"((u64)(at)),\
    "d"(x) : "memory")
#define add_f64_LOCAL(at, x) asm volatile("red.shared.add.f64 [%0], %1;" :: "r"((u32)(u64)(at)),\
    "d"(x) : "memory")
#define atomic_add_f64(space, at, x) add_f64_##space(at, x)

// Asynchronous copies into local memory.
#define copy_4(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::\
    "r"((u32)(u64)(to)), "l"((u64)(from)) : "memory")

#define copy_8(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::\
    "r"((u32)(u64)(to)), "l"((u64)(from)) : "memory")
#define copy_aligned_8(to, at, from, start) asm volatile("cp.async.ca.shared.global [%0 + " #at\
    "], [%1 + " #start "], 8;" :: "r"((u32)(u64)(to)), "l"((u64)(from)) : "memory")
#define copy_aligned_16(to, at, from, start) asm volatile("cp.async.cg.shared.global [%0 + " #at\
    "], [%1 + " #start "], 16;" :: "r"((u32)(u64)(to)), "l"((u64)(from)) : "memory")
#define copy_commit() asm volatile("cp.async.commit_group;" ::: "memory")
#define copy_wait(batches) asm volatile("cp.async.wait_group " #batches ";" ::: "memory")
typedef long2 longlong2;
#define make_int2(x, y) (int2)(x, y)
#define make_int4(x, y, z, w) (int4)(x, y, z, w)
#define make_longlong2(x, y) (long2)(x, y)
#define make_float2(x, y) (float2)(x, y)
#define make_float4(x, y, z, w) (float4)(x, y, z, w)
#define make_double2(x, y) (double2)(x, y)
