/* tests/amd/test_amd_instructions.c - the emulator's instructions, one by one, against C. */
#include <math.h>

#include "tests/amd/assembled.h"
#include "tests/test.h"

/* ---- the words of a lane ---- */

typedef struct {
  uint32_t in[64][AMD_INPUTS], out[64][AMD_RESULTS];
  int lanes;
} wave;

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
static uint64_t u64(const uint32_t *w) { return (uint64_t)w[1] << 32 | w[0]; }
static double d(const uint32_t *w) {
  uint64_t bits = u64(w);
  double x;
  memcpy(&x, &bits, 8);
  return x;
}
static void put64(uint32_t *r, uint64_t bits) {
  r[0] = (uint32_t)bits, r[1] = (uint32_t)(bits >> 32);
}
static void putd(uint32_t *r, double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  put64(r, bits);
}
/* f16, by its definition. */
static double h(uint32_t bits) {
  int e = bits >> 10 & 31, m = bits & 1023;
  double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return bits >> 15 & 1 ? -x : x;
}
/* The nearest f16, the even one of two, by search. */
static uint32_t uh(double x) {
  uint32_t low = 0, high = 0x7c00, sign = signbit(x) ? 0x8000 : 0;
  double y = fabs(x);
  if (isnan(x)) return 0x7e00;
  if (y >= 65520) return sign | 0x7c00;
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (h(middle) <= y) low = middle;
    else high = middle;
  }
  double above = high == 0x7c00 ? 65536 : h(high), to_low = y - h(low), to_high = above - y;
  return sign | (to_low < to_high || (to_low == to_high && !(low & 1)) ? low : high);
}
static int32_t i24(uint32_t x) { return (int32_t)(x << 8) >> 8; }
/* Of a number and a NaN the number; -0 is less than +0. */
static double max(double x, double y) {
  return isnan(x) ? y : isnan(y) ? x : x == y ? (signbit(x) ? y : x) : x > y ? x : y;
}
/* But a signalling NaN is returned. */
static double max_of(double x, double y, bool loud) { return loud ? (double)NAN : max(x, y); }
static bool loud(uint32_t x) { return isnan(f(x)) && !(x >> 22 & 1); }
static bool loud64(const uint32_t *x) { return isnan(d(x)) && !(x[1] >> 19 & 1); }
static float held(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }

/* ---- what each is, and what it must give: a = the lane's inputs, r = its results, w = the wave, l
   = the lane ---- */

/* Types of results: i bits; h, f and d, where any NaN is as good as another; . nothing. */
#define CASES(X)                                                                                   \
  X(modifiers, "*", "ff..", "v_add_f32_e64 v10, -|v2|, v3\nv_add_f32_e64 v11, v2, |v3| clamp",     \
    r[0] = uf(-fabsf(f(a[0])) + f(a[1])), r[1] = uf(held(f(a[0]) + fabsf(f(a[1])))))               \
  X(denormals_kept, "*", "f.d",                                                                    \
    "v_mul_f32_e32 v10, 0x0d800000, v8\nv_mul_f64 v[12:13], v[6:7], v[6:7]",                       \
    r[0] = uf(0x1p-100f * f(a[6])), putd(r + 2, d(a + 4) * d(a + 4)))                              \
  X(fma, "*", "ffd",                                                                               \
    "v_fma_f32 v10, v2, -v3, v4\nv_mov_b32_e32 v11, v4\nv_fmac_f32_e32 v11, v2, v3\n"              \
    "v_fma_f64 v[12:13], v[2:3], v[4:5], -v[6:7]",                                                 \
    r[0] = uf(fmaf(f(a[0]), -f(a[1]), f(a[2]))), r[1] = uf(fmaf(f(a[0]), f(a[1]), f(a[2]))),       \
    putd(r + 2, fma(d(a), d(a + 2), -d(a + 4))))                                                   \
  X(min_max, "*", "ffd",                                                                           \
    "v_max_f32_e32 v10, v2, v3\nv_min_f32_e32 v11, v2, v3\nv_max_f64 v[12:13], v[2:3], v[4:5]",    \
    bool l1 = loud(a[0]) || loud(a[1]), l2 = loud64(a) || loud64(a + 2);                           \
    double x = (double)f(a[0]), y = (double)f(a[1]); r[0] = uf((float)max_of(x, y, l1));           \
    r[1] = uf((float)-max_of(-x, -y, l1)); putd(r + 2, max_of(d(a), d(a + 2), l2)))                \
  X(zeros, "*", "iiii",                                                                            \
    "v_max_f32_e32 v10, 0, v9\nv_min_f32_e32 v11, 0, v9\nv_max3_f32 v12, v9, |v9|, v9\n"           \
    "v_med3_f32 v13, 1.0, 2.0, 4.0",                                                               \
    r[0] = 0, r[1] = 0x80000000, r[2] = 0, r[3] = uf(2))                                           \
  X(integers, "*", "iiii",                                                                         \
    "v_mul_lo_u32 v10, v2, v3\nv_mul_hi_u32 v11, v2, v3\nv_mul_hi_i32 v12, v2, v3\n"               \
    "v_mad_i32_i24 v13, v2, v3, v4",                                                               \
    r[0] = a[0] * a[1], r[1] = (uint32_t)((uint64_t)a[0] * a[1] >> 32),                            \
    r[2] = (uint32_t)((uint64_t)((int64_t)(int32_t)a[0] * (int32_t)a[1]) >> 32),                   \
    r[3] = (uint32_t)(int64_t)((uint64_t)((int64_t)i24(a[0]) * i24(a[1])) + a[2]))                 \
  X(fields, "*", "iiii",                                                                           \
    "v_bfe_u32 v10, v2, 5, 9\nv_bfe_i32 v11, v2, 30, 9\nv_bfi_b32 v12, v2, v3, v4\n"               \
    "v_alignbit_b32 v13, v2, v3, v4",                                                              \
    r[0] = a[0] >> 5 & 511, r[1] = (uint32_t)((int32_t)((a[0] >> 30) << 23) >> 23),                \
    r[2] = (a[0] & a[1]) | (~a[0] & a[2]),                                                         \
    r[3] = (uint32_t)(((uint64_t)a[0] << 32 | a[1]) >> (a[2] & 31)))                               \
  X(wide_fields, "*", "iiii",                                                                      \
    "v_readfirstlane_b32 s12, v2\nv_readfirstlane_b32 s13, v3\ns_bfe_i64 s[14:15], s[12:13], "     \
    "0x200000\nv_mov_b32_e32 v10, s14\nv_mov_b32_e32 v11, s15\ns_bfe_u64 s[14:15], s[12:13], "     \
    "0x180014\nv_mov_b32_e32 v12, s14\nv_mov_b32_e32 v13, s15",                                    \
    r[0] = w->in[0][0], r[1] = (uint32_t)((int32_t)w->in[0][0] >> 31),                             \
    r[2] = (uint32_t)(((uint64_t)w->in[0][1] << 32 | w->in[0][0]) >> 20) & 0xffffff, r[3] = 0)     \
  X(bytes, "*", "iii.",                                                                            \
    "s_mov_b32 s12, 0x0c0d0607\nv_perm_b32 v10, v2, v3, s12\nv_bfrev_b32_e32 v11, v2\n"            \
    "v_lshl_or_b32 v12, v2, v3, v4",                                                               \
    r[0] = 0x00ff0000 | (a[0] >> 16 & 0xff) << 8 | a[0] >> 24, r[1] = 0,                           \
    r[2] = a[0] << (a[1] & 31) | a[2];                                                             \
    for (int k = 0; k < 32; k++) r[1] |= (a[0] >> k & 1) << (31 - k))                              \
  X(long_sum, "*", "ii.i", "v_add_co_u32 v10, $v, v2, v4\n#\nv_cndmask_b32_e64 v13, 0, 1, $v",     \
    put64(r, u64(a) + u64(a + 2)), r[3] = u64(a) + u64(a + 2) < u64(a))                            \
  X(long_difference, "*", "ii.i",                                                                  \
    "v_sub_co_u32 v10, $v, v2, v4\n%\nv_cndmask_b32_e64 v13, 0, 1, $v",                            \
    put64(r, u64(a) - u64(a + 2)), r[3] = u64(a) < u64(a + 2))                                     \
  X(mad_u64, "*", "iii.",                                                                          \
    "v_mad_u64_u32 v[10:11], $s, v2, v3, v[4:5]\nv_cndmask_b32_e64 v12, 0, 1, $s",                 \
    put64(r, (uint64_t)a[0] * a[1] + u64(a + 2)),                                                  \
    r[2] = (uint64_t)a[0] * a[1] + u64(a + 2) < u64(a + 2))                                        \
  X(mad_i64, "*", "ii..", "v_mad_i64_i32 v[10:11], $s, v2, v3, v[4:5]",                            \
    put64(r, (uint64_t)((int64_t)(int32_t)a[0] * (int32_t)a[1]) + u64(a + 2)))                     \
  X(shifts64, "*", "iiii",                                                                         \
    "v_lshlrev_b64 v[10:11], v2, v[4:5]\nv_ashrrev_i64 v[12:13], v2, v[4:5]",                      \
    put64(r, u64(a + 2) << (a[0] & 63)),                                                           \
    put64(r + 2, (uint64_t)((int64_t)u64(a + 2) >> (a[0] & 63))))                                  \
  X(conversions, "*", "iiif",                                                                      \
    "v_cvt_i32_f32_e32 v10, v2\nv_cvt_u32_f32_e32 v11, v2\nv_cvt_i32_f64_e32 v12, v[4:5]\n"        \
    "v_cvt_f32_f64_e32 v13, v[4:5]",                                                               \
    r[0] =                                                                                         \
        isnan(f(a[0])) ? 0 : (uint32_t)(int32_t)fmax(-0x1p31, fmin(0x1p31 - 1, (double)f(a[0]))),  \
    r[1] = isnan(f(a[0])) ? 0 : (uint32_t)fmax(0, fmin(0x1p32 - 1, (double)f(a[0]))),              \
    r[2] = isnan(d(a + 2)) ? 0 : (uint32_t)(int32_t)fmax(-0x1p31, fmin(0x1p31 - 1, d(a + 2))),     \
    r[3] = uf((float)d(a + 2)))                                                                    \
  X(halves, "*", "fh..",                                                                           \
    "v_cvt_f32_f16_e32 v10, v2\nv_mov_b32_e32 v11, v3\nv_cvt_f16_f32_e32 v11, v2\n"                \
    "v_and_b32_e32 v11, 0xffff, v11",                                                              \
    r[0] = uf((float)h(a[0] & 0xffff)), r[1] = uh((double)f(a[0])))                                \
  X(half_high_cleared, "9", "i...", "v_mov_b32_e32 v10, v3\nv_cvt_f16_f32_e32 v10, v8",            \
    r[0] = uh((double)f(a[6])))                                                                    \
  X(half_high_kept, "1", "i...", "v_mov_b32_e32 v10, v3\nv_cvt_f16_f32_e32 v10, v8",               \
    r[0] = uh((double)f(a[6])) | (a[1] & 0xffff0000))                                              \
  X(half_high_register, "9", "i...",                                                               \
    "v_mov_b32_e32 v130, -1\nv_add_f16_e32 v130, v8, v8\nv_mov_b32_e32 v10, v130",                 \
    r[0] = uh(2 * h(a[6] & 0xffff)))                                                               \
  X(mix, "*", "ffi.",                                                                              \
    "v_fma_mix_f32 v10, v8, 1.0, v2 op_sel_hi:[1,0,0]\n"                                           \
    "v_fma_mix_f32 v11, -|v8|, v8, v2 op_sel:[1,0,0] op_sel_hi:[1,0,0]\n"                          \
    "v_mov_b32_e32 v12, v3\nv_fma_mixlo_f16 v12, v8, 1.0, 0 op_sel_hi:[0,0,0]",                    \
    r[0] = uf(fmaf((float)h(a[6] & 0xffff), 1, f(a[0]))),                                          \
    r[1] = uf(fmaf(-fabsf((float)h(a[6] >> 16)), f(a[6]), f(a[0]))),                               \
    r[2] = (a[1] & 0xffff0000) | uh((double)f(a[6])))                                              \
  X(pack, "*", "i...", "v_pack_b32_f16 v10, v2, v3 op_sel:[1,0,0]",                                \
    r[0] = a[0] >> 16 | a[1] << 16)                                                                \
  X(compare, "*", "iiii",                                                                          \
    "v_cmp_gt_f32_e32 $v, v2, v3\nv_cndmask_b32_e64 v10, 0, 1, $v\nv_cmp_ngt_f32_e64 $s, v2, v3\n" \
    "v_cndmask_b32_e64 v11, 0, 1, $s\nv_cmp_lt_i64_e32 $v, v[2:3], v[4:5]\n"                       \
    "v_cndmask_b32_e64 v12, 0, 1, $v\ns_movk_i32 s16, 0x9c\nv_cmp_class_f32_e64 $s, v2, s16\n"     \
    "v_cndmask_b32_e64 v13, 0, 1, $s",                                                             \
    r[0] = f(a[0]) > f(a[1]), r[1] = !(f(a[0]) > f(a[1])),                                         \
    r[2] = (int64_t)u64(a) < (int64_t)u64(a + 2),                                                  \
    r[3] = f(a[0]) == -INFINITY || (isnormal(f(a[0])) && f(a[0]) < 0) ||                           \
           fpclassify(f(a[0])) == FP_SUBNORMAL)                                                    \
  X(exec, "*", "iii.",                                                                             \
    "v_mov_b32_e32 v10, 7\nv_cmp_lt_u32_e32 $v, v2, v3\ns_and_saveexec_$b $s, $v\n"                \
    "v_mov_b32_e32 v10, 9\ns_xor_$b $e, $e, $s\n"                                                  \
    "v_mov_b32_e32 v11, 5\ns_mov_$b $e, $s\nv_mov_b32_e32 v12, 1",                                 \
    r[0] = a[0] < a[1] ? 9 : 7, r[1] = a[0] < a[1] ? 0 : 5, r[2] = 1)                              \
  X(readlane, "*", "iiii",                                                                         \
    "v_readlane_b32 s12, v2, 37\nv_mov_b32_e32 v10, s12\nv_mov_b32_e32 v11, v2\n"                  \
    "v_writelane_b32 v11, s12, 3\n"                                                                \
    "s_mov_$b $e, 12\nv_readfirstlane_b32 s13, v2\ns_mov_$b $e, -1\nv_mov_b32_e32 v12, s13\n"      \
    "v_mov_b32_e32 v13, 1",                                                                        \
    r[0] = w->in[37 % w->lanes][0], r[1] = l == 3 ? w->in[37 % w->lanes][0] : a[0],                \
    r[2] = w->in[2][0], r[3] = 1)                                                                  \
  X(bpermute, "*", "ii..",                                                                         \
    "v_lshlrev_b32_e32 v8, 2, v2\nds_bpermute_b32 v10, v8, v3 offset:8\n"                          \
    "s_mov_b32 exec_lo, 0x0f0f0f0f\n"                                                              \
    "ds_bpermute_b32 v11, v8, v3\ns_waitcnt lgkmcnt(0)",                                           \
    uint32_t one = ((a[0] << 2) + 8) / 4 % (uint32_t)w->lanes,                                     \
    two = (a[0] << 2) / 4 % (uint32_t)w->lanes;                                                    \
    bool on = l >= 32 || l % 8 < 4, from = two >= 32 || two % 8 < 4; r[0] = w->in[one][1];         \
    r[1] = on && from ? w->in[two][1] : 0)                                                         \
  X(lds_exec, "*", "ii..",                                                                         \
    "v_lshlrev_b32_e32 v8, 2, v0\nds_write_b32 v8, v2\nv_mov_b32_e32 v10, 5\n"                     \
    "v_mov_b32_e32 v11, v2\n"                                                                      \
    "s_mov_b32 exec_lo, 0x55555555\nds_read_b32 v10, v8\nds_write_b32 v8, v3\n"                    \
    "s_mov_$b $e, -1\nds_read_b32 v11, v8\ns_waitcnt lgkmcnt(0)",                                  \
    bool on = l >= 32 || l % 2 == 0;                                                               \
    r[0] = on ? a[0] : 5; r[1] = on ? a[1] : a[0])                                                 \
  X(lds_unaligned, "*", "iiii",                                                                    \
    "v_mul_u32_u24_e32 v8, 18, v0\nds_write_b16 v8, v2 offset:2\n"                                 \
    "ds_write_b128 v8, v[2:5] offset:2\n"                                                          \
    "ds_read_b128 v[10:13], v8 offset:2\ns_waitcnt lgkmcnt(0)",                                    \
    memcpy(r, a, 16))                                                                              \
  X(lds_two, "*", "iiii",                                                                          \
    "v_lshlrev_b32_e32 v8, 3, v0\nds_write2_b32 v8, v2, v3 offset1:1\n"                            \
    "ds_write2st64_b32 v8, v4, v5 offset0:8 offset1:12\n"                                          \
    "ds_read2_b32 v[10:11], v8 offset1:1\n"                                                        \
    "ds_read2st64_b32 v[12:13], v8 offset0:8 offset1:12\ns_waitcnt lgkmcnt(0)",                    \
    memcpy(r, a, 16))                                                                              \
  X(global_unaligned, "*", "iiii", "global_load_dwordx4 v[10:13], v1, s[8:9] offset:2",            \
    memcpy(r, (const char *)w->in + 16 * l + 2, 16))                                               \
  X(swap_if, "*", "ii..",                                                                          \
    "v_mov_b32_e32 v8, v4\nv_mov_b32_e32 v9, v5\nv_mov_b32_e32 v6, v2\nv_mov_b32_e32 v7, v3\n"     \
    "global_store_dwordx2 v1, v[8:9], s[10:11]\ns_waitcnt vmcnt(0)\n"                              \
    "global_atomic_cmpswap_x2 v[10:11], v1, v[6:9], s[10:11] &\n"                                  \
    "s_waitcnt vmcnt(0)\nglobal_load_dwordx2 v[12:13], v1, s[10:11]\ns_waitcnt vmcnt(0)\n"         \
    "v_sub_co_u32 v10, $v, v10, v4\n"                                                              \
    "v_xor_b32_e32 v11, v11, v5\nv_or_b32_e32 v10, v10, v11\nv_xor_b32_e32 v11, v12, v2",          \
    r[0] = 0, r[1] = 0)                                                                            \
  X(add_returns, "49", "i...",                                                                     \
    "global_store_dword v1, v8, s[10:11]\ns_waitcnt vmcnt(0)\n"                                    \
    "global_atomic_add_f32 v10, v1, v8, s[10:11] &",                                               \
    r[0] = a[6])                                                                                   \
  X(caches, "1", "i...", "buffer_gl0_inv\nbuffer_gl1_inv\nv_mov_b32_e32 v10, 1", r[0] = 1)         \
  X(caches9, "4", "i...", "buffer_wbl2 sc0 sc1\nbuffer_inv sc0 sc1\nv_mov_b32_e32 v10, 1",         \
    r[0] = 1)                                                                                      \
  X(accumulators, "9", "iii.",                                                                     \
    "v_accvgpr_write_b32 a7, v2\nv_lshlrev_b32_e32 v8, 3, v0\nds_write_b32 v8, a7\n"               \
    "ds_read_b32 a9, v8\n"                                                                         \
    "v_accvgpr_read_b32 v10, a9\nglobal_load_dwordx2 a[2:3], v1, s[8:9]\n"                         \
    "v_accvgpr_mov_b32 a5, a3\nv_accvgpr_read_b32 v11, a5\n"                                       \
    "v_accvgpr_read_b32 v12, a2",                                                                  \
    r[0] = a[0], memcpy(r + 1, (const char *)w->in + 16 * l + 4, 4),                               \
    memcpy(r + 2, (const char *)w->in + 16 * l, 4))                                                \
  X(scratch_buffer, "a", "iiii",                                                                   \
    "v_mov_b32_e32 v8, 12\nbuffer_store_dwordx3 v[2:4], off, s[0:3], 0 offset:4\n"                 \
    "buffer_store_dword v5, v8, s[0:3], 0 offen offset:8\n"                                        \
    "s_mov_b32 s12, 4\nbuffer_load_dwordx3 v[10:12], off, s[0:3], s12\n"                           \
    "buffer_load_dword v13, off, s[0:3], 0 offset:20",                                             \
    memcpy(r, a, 16))                                                                              \
  X(scratch_flat, "41", "iiii",                                                                    \
    "v_mov_b32_e32 v8, 12\nscratch_store_dwordx3 off, v[2:4], off offset:4\n"                      \
    "scratch_store_dword v8, v5, off offset:8\n"                                                   \
    "s_mov_b32 s12, 4\nscratch_load_dwordx3 v[10:12], off, s12\n"                                  \
    "scratch_load_dword v13, off, off offset:20",                                                  \
    memcpy(r, a, 16))                                                                              \
  X(program_counter, "*", "i...",                                                                  \
    "s_getpc_b64 s[12:13]\ns_load_dword s14, s[12:13], 0x0\ns_waitcnt lgkmcnt(0)\n"                \
    "v_mov_b32_e32 v10, s14",                                                                      \
    r[0] = w->lanes == 64 ? 0xc0020386u : 0xf4000386u)                                             \
  X(sdwa, "9", "iiii",                                                                             \
    "v_add_u32_sdwa v10, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 "              \
    "src1_sel:WORD_1\n"                                                                            \
    "v_mov_b32_e32 v11, v3\n"                                                                      \
    "v_mov_b32_sdwa v11, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"           \
    "v_add_co_u32_sdwa v12, vcc, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD "       \
    "src1_sel:WORD_0\n"                                                                            \
    "v_cndmask_b32_e64 v13, 0, 1, vcc",                                                            \
    r[0] = (a[0] >> 24) + (a[1] >> 16), r[1] = (a[1] & 0xffff00ff) | (a[0] & 0xff) << 8,           \
    r[2] = a[0] + (a[1] & 0xffff), r[3] = r[2] < a[0])                                             \
  X(sdwa_signs, "9", "i...",                                                                       \
    "v_add_u32_sdwa v10, sext(v2), v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 "        \
    "src1_sel:BYTE_2",                                                                             \
    r[0] = (uint32_t)(int32_t)(int16_t)(a[0] >> 16) + (a[1] >> 16 & 0xff))                         \
  X(packed, "9", "ffff",                                                                           \
    "v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1,1] neg_lo:[0,1,0] "              \
    "neg_hi:[0,0,1]\n"                                                                             \
    "v_pk_mul_f32 v[12:13], v[2:3], v[4:5] op_sel:[1,0]",                                          \
    r[0] = uf(fmaf(f(a[0]), -f(a[2]), f(a[4]))), r[1] = uf(fmaf(f(a[0]), f(a[3]), -f(a[5]))),      \
    r[2] = uf(f(a[1]) * f(a[2])), r[3] = uf(f(a[1]) * f(a[3])))                                    \
  X(packed_mov, "9", "ii..", "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[1,0]", r[0] = a[1],    \
    r[1] = a[2])                                                                                   \
  X(dual, "1", "ffff",                                                                             \
    "v_mov_b32_e32 v10, v2\nv_mov_b32_e32 v11, v3\n"                                               \
    "v_dual_mov_b32 v10, v11 :: v_dual_mov_b32 v11, v10\n"                                         \
    "v_dual_mul_f32 v12, v2, v4 :: v_dual_add_f32 v13, v3, v5",                                    \
    r[0] = a[1], r[1] = a[0], r[2] = uf(f(a[0]) * f(a[2])), r[3] = uf(f(a[1]) + f(a[3])))          \
  X(compare_exec, "1", "i...",                                                                     \
    "v_mov_b32_e32 v10, 1\nv_cmpx_gt_u32_e32 v2, v3\nv_mov_b32_e32 v10, 2",                        \
    r[0] = a[0] > a[1] ? 2 : 1)                                                                    \
  X(ldexp, "*", "f.d", "v_ldexp_f32 v10, v2, v3\nv_ldexp_f64 v[12:13], v[2:3], v4",                \
    int n = (int32_t)a[1] > 9999    ? 9999                                                         \
            : (int32_t)a[1] < -9999 ? -9999                                                        \
                                    : (int32_t)a[1],                                               \
    n2 = (int32_t)a[2] > 9999    ? 9999                                                            \
         : (int32_t)a[2] < -9999 ? -9999                                                           \
                                 : (int32_t)a[2];                                                  \
    r[0] = uf(ldexpf(f(a[0]), n)); putd(r + 2, ldexp(d(a), n2)))                                   \
  X(rounding, "*", "ffd",                                                                          \
    "v_rndne_f32_e32 v10, v2\nv_trunc_f32_e32 v11, v2\nv_rndne_f64_e32 v[12:13], v[2:3]",          \
    r[0] = uf(rintf(f(a[0]))), r[1] = uf(truncf(f(a[0]))), putd(r + 2, rint(d(a))))                \
  X(divide, "*", "f.d",                                                                            \
    "v_div_scale_f32 v20, $s, v3, v3, v2\nv_div_scale_f32 v21, $v, v2, v3, v2\n"                   \
    "v_rcp_f32_e32 v22, v20\n"                                                                     \
    "v_fma_f32 v23, -v20, v22, 1.0\nv_fma_f32 v22, v23, v22, v22\n"                                \
    "v_mul_f32_e32 v23, v21, v22\nv_fma_f32 v24, -v20, v23, v21\n"                                 \
    "v_fma_f32 v23, v24, v22, v23\nv_fma_f32 v24, -v20, v23, v21\n"                                \
    "v_div_fmas_f32 v24, v24, v22, v23\nv_div_fixup_f32 v10, v24, v3, v2\n"                        \
    "v_div_scale_f64 v[20:21], $s, v[4:5], v[4:5], v[6:7]\nv_rcp_f64_e32 v[22:23], v[20:21]\n"     \
    "v_fma_f64 v[24:25], -v[20:21], v[22:23], 1.0\n"                                               \
    "v_fma_f64 v[22:23], v[22:23], v[24:25], v[22:23]\n"                                           \
    "v_fma_f64 v[24:25], -v[20:21], v[22:23], 1.0\n"                                               \
    "v_fma_f64 v[22:23], v[22:23], v[24:25], v[22:23]\n"                                           \
    "v_div_scale_f64 v[26:27], $v, v[6:7], v[4:5], v[6:7]\n"                                       \
    "v_mul_f64 v[24:25], v[26:27], v[22:23]\n"                                                     \
    "v_fma_f64 v[20:21], -v[20:21], v[24:25], v[26:27]\n"                                          \
    "v_div_fmas_f64 v[20:21], v[20:21], v[22:23], v[24:25]\n"                                      \
    "v_div_fixup_f64 v[12:13], v[20:21], v[4:5], v[6:7]",                                          \
    r[0] = uf(f(a[0]) / f(a[1])), putd(r + 2, d(a + 4) / d(a + 2)))

#define DEFINE(name, targets, types, body, ...)                                                    \
  static void name##_expected(const wave *w, int l, const uint32_t *a, uint32_t *r) {              \
    (void)w, (void)l, (void)a;                                                                     \
    __VA_ARGS__;                                                                                   \
  }
CASES(DEFINE)

static const struct {
  const char *name, *targets, *types, *body;
  void (*expected)(const wave *w, int l, const uint32_t *a, uint32_t *r);
} cases[] = {
#define ROW(name, targets, types, body, ...) {#name, targets, types, body, name##_expected},
    CASES(ROW)};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- running ---- */

/* "*", or what tells the target: 9 both CDNA, a gfx90a, 4 gfx942, 1 gfx1100. */
static bool meant_for(const char *targets, const char *target) {
  char letter = target[3] == '1' ? '1' : target[4] == '0' ? 'a' : '4';
  return targets[0] == '*' || strchr(targets, letter) || (letter != '1' && strchr(targets, '9'));
}

/* '#' and '%' are the carry into the next word, '&' asks an atomic for the old value: each
   generation has its own word. */
static void localise(const char *body, const char *target, char *text, size_t size) {
  bool wide = target[3] == '9';
  size_t n = 0;
  text[0] = 0;
  for (; *body && n + 64 < size; body++) {
    if (*body == '#')
      n += (size_t)sprintf(text + n, "v_add%s_co%s_u32_e32 v11, $v, v3, v5, $v", wide ? "c" : "",
                           wide ? "" : "_ci");
    else if (*body == '%')
      n += (size_t)sprintf(text + n, "v_sub%s_co%s_u32_e32 v11, $v, v3, v5, $v", wide ? "b" : "",
                           wide ? "" : "_ci");
    else if (*body == '&')
      n += (size_t)sprintf(text + n, "%s", strcmp(target, "gfx942") ? "glc" : "sc0");
    else text[n++] = *body, text[n] = 0;
  }
}

static uint32_t special(uint64_t *seed) {
  static const uint32_t some[] = {
      0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
      1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xffffffff, 0x7fffffff,
      0x4f000000, 0xcf000000, 0x7ff00000, 0x3ff00000, 0x00100000, 0x7fefffff, 0x20000000};
  return some[(size_t)(fabs(test_random(seed)) * (sizeof some / sizeof *some))];
}
/* Any bits; v8 holds ordinary numbers as f32 and as two f16, v9 is -0, and v[6:7] is sometimes
   small enough for a denormal square. */
static void fill(wave *w, uint64_t *seed) {
  for (int l = 0; l < 64; l++)
    for (int k = 0; k < AMD_INPUTS; k++) {
      uint32_t any = (uint32_t)(int64_t)(test_random(seed) * 0x1p31);
      w->in[l][k] = fabs(test_random(seed)) < 0.3   ? special(seed)
                    : fabs(test_random(seed)) < 0.2 ? any % 70
                                                    : any;
      if (k == 5 && fabs(test_random(seed)) < 0.3) w->in[l][k] = 0x20000000 | (any & 0x000fffff);
      if (k == 6) w->in[l][k] = 0x38000000 | (any & 0x07ff0fff);
      if (k == 7) w->in[l][k] = 0x80000000;
    }
}

static bool same(const char *types, int k, const uint32_t *got, const uint32_t *want) {
  char type = types[k];
  if (type == 'f' && isnan(f(got[k])) && isnan(f(want[k]))) return true;
  if (type == 'd' && isnan(d(got + k)) && isnan(d(want + k))) return true;
  if (type == 'h' && isnan(h(got[k])) && isnan(h(want[k])) && !((got[k] ^ want[k]) >> 16))
    return true;
  if (type == 'd') return u64(got + k) == u64(want + k);
  return type == '.' || got[k] == want[k];
}

static void compare(const char *target, int which, const wave *w,
                    const uint32_t (*out)[AMD_RESULTS]) {
  for (int l = 0; l < w->lanes; l++) {
    uint32_t want[AMD_RESULTS] = {0};
    cases[which].expected(w, l, w->in[l], want);
    int at = 0; /* a 'd' takes two words and one letter */
    for (const char *t = cases[which].types; *t; t++, at += 1) {
      char types[AMD_RESULTS + 1] = "....";
      if (at < AMD_RESULTS) types[at] = *t;
      if (at < AMD_RESULTS && !same(types, at, out[l], want))
        fail_msg("%s: %s, lane %d, result %d: %08x %08x, not %08x %08x, of %08x %08x %08x %08x "
                 "%08x %08x %08x %08x",
                 target, cases[which].name, l, at, out[l][at], out[l][(at + 1) & 3], want[at],
                 want[(at + 1) & 3], w->in[l][0], w->in[l][1], w->in[l][2], w->in[l][3],
                 w->in[l][4], w->in[l][5], w->in[l][6], w->in[l][7]);
      at += *t == 'd';
    }
  }
}

static void instructions(void **state) {
  const char *target = *state;
  static char bodies[N_CASES][2048];
  amd_source sources[N_CASES];
  char error[512];
  int n = 0;
  uint64_t seed = 1;
  for (int c = 0; c < N_CASES; c++)
    if (meant_for(cases[c].targets, target)) {
      localise(cases[c].body, target, bodies[n], sizeof bodies[n]);
      sources[n] = (amd_source){cases[c].name, bodies[n]};
      n++;
    }
  if (system("command -v clang-19 llvm-objdump-19 >/dev/null"))
    skip_because("no clang-19, or no llvm-objdump-19");
  amd_module *m = amd_assemble(target, sources, n);
  assert_non_null(m);
  wave *w = machine_alloc(sizeof *w), *out = machine_alloc(sizeof *out);
  assert_true(w && out);
  for (int round = 0; round < 40; round++) {
    w->lanes = target[3] == '9' ? 64 : 32;
    fill(w, &seed);
    for (int c = 0; c < N_CASES; c++) {
      if (!meant_for(cases[c].targets, target)) continue;
      if (!amd_run_assembled(m, cases[c].name, (uint32_t)w->lanes, w->in, out->out, error,
                             sizeof error))
        fail_msg("%s", error);
      compare(target, c, w, (const uint32_t(*)[AMD_RESULTS])out->out);
    }
  }
  machine_free(w);
  machine_free(out);
  amd_unload(m);
}

int main(void) {
  static char targets[][8] = {"gfx90a", "gfx942", "gfx1100"};
  const struct CMUnitTest tests[] = {
      {"instructions:gfx90a", instructions, NULL, NULL, targets[0]},
      {"instructions:gfx942", instructions, NULL, NULL, targets[1]},
      {"instructions:gfx1100", instructions, NULL, NULL, targets[2]}};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
