// subgroups.cl - the built-ins of opencl.cl that sub-groups replace, and those that need them.

//: KERNEL
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
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
    1), intel_reqd_sub_group_size(lanes))) void

#define shuffle_i32(x, lane, lanes) intel_sub_group_shuffle(x, (uint)(lane))
#define shuffle_xor_i32(x, with, lanes) intel_sub_group_shuffle_xor(x, (uint)(with))
#define shuffle_i64(x, lane, lanes) intel_sub_group_shuffle(x, (uint)(lane))
#define shuffle_xor_i64(x, with, lanes) intel_sub_group_shuffle_xor(x, (uint)(with))
#define shuffle_f32(x, lane, lanes) intel_sub_group_shuffle(x, (uint)(lane))
#define shuffle_xor_f32(x, with, lanes) intel_sub_group_shuffle_xor(x, (uint)(with))
#define shuffle_f64(x, lane, lanes) intel_sub_group_shuffle(x, (uint)(lane))
#define shuffle_xor_f64(x, with, lanes) intel_sub_group_shuffle_xor(x, (uint)(with))
#define hidden(mask) (bool)intel_sub_group_shuffle((uint)(mask), get_sub_group_local_id())
#define subgroup_barrier(lanes) sub_group_barrier(CLK_LOCAL_MEM_FENCE)
