/* tests/amd/instructions/scalar.c - scalar instructions, branches and scalar loads. */
#include "tests/amd/lanes.h"

static inline void put_word(amd_wave *w, const amd_ins *i, uint32_t x) {
  w->s[i->d.index] = x;
  if (i->exec) amd_set_exec(w);
}
static inline void put_pair(amd_wave *w, const amd_ins *i, uint64_t x) {
  w->s[i->d.index] = (uint32_t)x;
  w->s[i->d.index + 1] = (uint32_t)(x >> 32);
  if (i->exec) amd_set_exec(w);
}
static inline int32_t sign(uint32_t x) { return (int32_t)x; }

/* S: what scc becomes, or SCC. */
#define SCC w->scc
#define WORD(name, expression, S)                                                                  \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    uint32_t A = amd_word(w, i->s[0]), B = i->n > 1 ? amd_word(w, i->s[1]) : 0, R;                 \
    (void)A, (void)B;                                                                              \
    R = (uint32_t)(expression);                                                                    \
    w->scc = (S);                                                                                  \
    put_word(w, i, R);                                                                             \
  }
#define PAIR(name, expression, S)                                                                  \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    uint64_t A = amd_pair_of(w, i->s[0]), B = i->n > 1 ? amd_pair_of(w, i->s[1]) : 0, R;           \
    (void)A, (void)B;                                                                              \
    R = (uint64_t)(expression);                                                                    \
    w->scc = (S);                                                                                  \
    put_pair(w, i, R);                                                                             \
  }
/* Of 64 bits and a word. */
#define OF_PAIR(name, expression)                                                                  \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    uint64_t A = amd_pair_of(w, i->s[0]), R;                                                       \
    uint32_t B = amd_word(w, i->s[1]);                                                             \
    R = (uint64_t)(expression);                                                                    \
    w->scc = R != 0;                                                                               \
    put_pair(w, i, R);                                                                             \
  }
#define TEST(name, test)                                                                           \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    uint32_t A = amd_word(w, i->s[0]), B = amd_word(w, i->s[1]);                                   \
    w->scc = (test);                                                                               \
  }
#define TESTK(name, test)                                                                          \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    uint32_t A = amd_word(w, i->s[0]), B = (uint32_t)i->immediate;                                 \
    w->scc = (test);                                                                               \
  }
/* exec becomes a function of itself and the operand; the result is its old value. */
#define SAVE(name, expression)                                                                     \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    bool wide = i->op->types[0] == 'q';                                                            \
    uint64_t A = wide ? amd_pair_of(w, i->s[0]) : amd_word(w, i->s[0]);                            \
    uint64_t E = wide ? w->exec : w->s[AMD_EXEC], R = (expression);                                \
    w->s[i->d.index] = (uint32_t)E;                                                                \
    if (wide) w->s[i->d.index + 1] = (uint32_t)(E >> 32);                                          \
    w->s[AMD_EXEC] = (uint32_t)R;                                                                  \
    if (wide) w->s[AMD_EXEC + 1] = (uint32_t)(R >> 32);                                            \
    w->scc = wide ? R != 0 : (uint32_t)R != 0;                                                     \
    amd_set_exec(w);                                                                               \
  }

static inline uint32_t extract(uint32_t x, uint32_t field, bool sext) {
  uint32_t at = field & 31, bits = field >> 16 & 127, y;
  if (!bits) return 0;
  if (bits >= 32 - at) bits = 32 - at;
  y = x >> at & (0xffffffffu >> (32 - bits));
  return sext ? (uint32_t)(sign(y << (32 - bits)) >> (32 - bits)) : y;
}
static inline uint64_t extract64(uint64_t x, uint32_t field, bool sext) {
  uint32_t at = field & 63, bits = field >> 16 & 127;
  uint64_t y;
  if (!bits) return 0;
  if (bits >= 64 - at) bits = 64 - at;
  y = x >> at << (64 - bits);
  return sext ? (uint64_t)((int64_t)y >> (64 - bits)) : y >> (64 - bits);
}
static inline uint32_t reversed(uint32_t x) {
  uint32_t r = 0;
  for (int k = 0; k < 32; k++) r |= (x >> k & 1) << (31 - k);
  return r;
}

WORD(mov, A, SCC)
PAIR(mov64, A, SCC)
WORD(not_, ~A, R != 0)
PAIR(not64, ~A, R != 0)
WORD(brev, reversed(A), SCC)
WORD(abs_, sign(A) < 0 ? 0u - A : A, R != 0)
WORD(add_u, A + B, R < A)
WORD(sub_u, A - B, A < B)
WORD(addc, A + B + w->scc, (uint64_t)A + B + w->scc > 0xffffffffu)
WORD(subb, A - B - w->scc, (uint64_t)B + w->scc > A)
WORD(add_i, A + B, (A ^ R) & (B ^ R) & 0x80000000u ? 1 : 0)
WORD(sub_i, A - B, (A ^ B) & (A ^ R) & 0x80000000u ? 1 : 0)
WORD(min_i, sign(A) < sign(B) ? A : B, sign(A) < sign(B))
WORD(max_i, sign(A) > sign(B) ? A : B, sign(A) > sign(B))
WORD(min_u, A < B ? A : B, A < B)
WORD(max_u, A > B ? A : B, A > B)
WORD(mul, A *B, SCC)
WORD(mul_hi_u, (uint64_t)A *B >> 32, SCC)
WORD(mul_hi_i, (uint64_t)((int64_t)sign(A) * sign(B)) >> 32, SCC)
WORD(and_, A &B, R != 0)
WORD(or_, A | B, R != 0)
WORD(xor_, A ^ B, R != 0)
WORD(andn2, A & ~B, R != 0)
WORD(orn2, A | ~B, R != 0)
PAIR(and64, A &B, R != 0)
PAIR(or64, A | B, R != 0)
PAIR(xor64, A ^ B, R != 0)
PAIR(andn264, A & ~B, R != 0)
PAIR(orn264, A | ~B, R != 0)
WORD(lshl, A << (B & 31), R != 0)
WORD(lshr, A >> (B & 31), R != 0)
WORD(ashr, sign(A) >> (B & 31), R != 0)
OF_PAIR(lshl64, A << (B & 63))
OF_PAIR(lshr64, A >> (B & 63))
OF_PAIR(ashr64, (int64_t)A >> (B & 63))
OF_PAIR(bfe_u64, extract64(A, B, false))
OF_PAIR(bfe_i64, extract64(A, B, true))
WORD(bfe_u, extract(A, B, false), R != 0)
WORD(bfe_i, extract(A, B, true), R != 0)
WORD(bfm, ((1u << (A & 31)) - 1) << (B & 31), SCC)
WORD(cselect, w->scc ? A : B, SCC)
PAIR(cselect64, w->scc ? A : B, SCC)
WORD(sext8, (int32_t)(int8_t)A, SCC)
WORD(sext16, (int32_t)(int16_t)A, SCC)
WORD(ff1, A ? (uint32_t)__builtin_ctz(A) : ~0u, SCC)
WORD(flbit, A ? (uint32_t)__builtin_clz(A) : ~0u, SCC)
WORD(bcnt, (uint32_t)__builtin_popcount(A), R != 0)
WORD(pack_ll, (A & 0xffff) | B << 16, SCC)
WORD(pack_lh, (A & 0xffff) | (B & 0xffff0000u), SCC)
WORD(pack_hh, A >> 16 | (B & 0xffff0000u), SCC)
WORD(lshl1_add, (A << 1) + B, ((uint64_t)A << 1) + B > 0xffffffffu)
WORD(lshl2_add, (A << 2) + B, ((uint64_t)A << 2) + B > 0xffffffffu)
WORD(lshl3_add, (A << 3) + B, ((uint64_t)A << 3) + B > 0xffffffffu)
WORD(lshl4_add, (A << 4) + B, ((uint64_t)A << 4) + B > 0xffffffffu)
TEST(eq, A == B)
TEST(ne, A != B)
TEST(gt_i, sign(A) > sign(B))
TEST(ge_i, sign(A) >= sign(B))
TEST(lt_i, sign(A) < sign(B))
TEST(le_i, sign(A) <= sign(B))
TEST(gt_u, A > B)
TEST(ge_u, A >= B)
TEST(lt_u, A < B)
TEST(le_u, A <= B)
TEST(bit0, !(A >> (B & 31) & 1))
TEST(bit1, A >> (B & 31) & 1)
TESTK(eqk, A == B)
TESTK(nek, A != B)
TESTK(gtk_i, sign(A) > sign(B))
TESTK(gek_i, sign(A) >= sign(B))
TESTK(ltk_i, sign(A) < sign(B))
TESTK(lek_i, sign(A) <= sign(B))
TESTK(eqk_u, A == (B & 0xffff))
TESTK(nek_u, A != (B & 0xffff))
TESTK(gtk_u, A > (B & 0xffff))
TESTK(gek_u, A >= (B & 0xffff))
TESTK(ltk_u, A < (B & 0xffff))
TESTK(lek_u, A <= (B & 0xffff))
SAVE(and_save, E &A)
SAVE(or_save, E | A)
SAVE(xor_save, E ^ A)
SAVE(andn2_save, A & ~E)
SAVE(orn2_save, A | ~E)

static void eq64(amd_wave *w, const amd_ins *i) {
  w->scc = amd_pair_of(w, i->s[0]) == amd_pair_of(w, i->s[1]);
}
static void ne64(amd_wave *w, const amd_ins *i) {
  w->scc = amd_pair_of(w, i->s[0]) != amd_pair_of(w, i->s[1]);
}
static void movk(amd_wave *w, const amd_ins *i) { put_word(w, i, (uint32_t)i->immediate); }
static void cmovk(amd_wave *w, const amd_ins *i) {
  if (w->scc) movk(w, i);
}
static void addk(amd_wave *w, const amd_ins *i) {
  uint32_t a = w->s[i->d.index], b = (uint32_t)i->immediate, r = a + b;
  w->scc = (a ^ r) & (b ^ r) & 0x80000000u ? 1 : 0;
  put_word(w, i, r);
}
static void mulk(amd_wave *w, const amd_ins *i) {
  put_word(w, i, w->s[i->d.index] * (uint32_t)i->immediate);
}
static void getpc(amd_wave *w, const amd_ins *i) {
  put_pair(w, i, (uint64_t)(uintptr_t)w->launch->module->image + i->address + 4);
}

/* ---- branches ---- */

static void jump(amd_wave *w, const amd_ins *i) {
  if (i->target < 0) amd_fail(w, i, "it jumps to where no instruction begins");
  else w->pc = i->target;
}
static uint64_t vcc_of(const amd_wave *w) {
  return w->lanes == 64 ? (uint64_t)w->s[AMD_VCC + 1] << 32 | w->s[AMD_VCC] : w->s[AMD_VCC];
}
#define BRANCH(name, test)                                                                         \
  static void name(amd_wave *w, const amd_ins *i) {                                                \
    if (test) jump(w, i);                                                                          \
  }
BRANCH(branch, true)
BRANCH(scc0, !w->scc)
BRANCH(scc1, w->scc)
BRANCH(vccz, !vcc_of(w))
BRANCH(vccnz, vcc_of(w))
BRANCH(execz, !w->exec)
BRANCH(execnz, w->exec)
static void end(amd_wave *w, const amd_ins *i) { (void)i, w->state = MACHINE_ENDED; }
static void barrier(amd_wave *w, const amd_ins *i) {
  (void)i;
  if (w->launch->barriers) w->state = MACHINE_WAITS;
}

/* ---- loads: whole words from aligned addresses ---- */

static void load(amd_wave *w, const amd_ins *i) {
  uint32_t more = amd_word(w, i->s[1]); /* an immediate is signed, a register is not */
  uint64_t at = amd_pair_of(w, i->s[0]) +
                (i->s[1].where == AMD_CONSTANT ? (uint64_t)(int64_t)sign(more) : more) +
                (uint64_t)(int64_t)i->offset;
  int bytes = i->op->bytes;
  const unsigned char *p = amd_access(w, i, at & ~(uint64_t)3, (uint32_t)bytes, false);
  if (p && i->d.words == bytes / 4) memcpy(&w->s[i->d.index], p, (size_t)bytes);
  else if (p) amd_fail(w, i, "its result has another size");
  if (i->exec) amd_set_exec(w);
}

#define S(name, types, run)                                                                        \
  { "s_" name, types, run, NULL, 0 }
#define NOTHING(name)                                                                              \
  { "s_" name, "-", amd_run_nothing, NULL, 0 }
#define LOAD(a, b, n)                                                                              \
  {"s_load_" a, "RqR", load, NULL, n}, { "s_load_" b, "RqR", load, NULL, n }
const amd_op amd_scalar_ops[] = {S("mov_b32", "uu", mov),
                                 S("mov_b64", "qq", mov64),
                                 S("not_b32", "uu", not_),
                                 S("not_b64", "qq", not64),
                                 S("brev_b32", "uu", brev),
                                 S("abs_i32", "uu", abs_),
                                 S("add_u32", "uuu", add_u),
                                 S("sub_u32", "uuu", sub_u),
                                 S("addc_u32", "uuu", addc),
                                 S("subb_u32", "uuu", subb),
                                 S("add_i32", "uuu", add_i),
                                 S("sub_i32", "uuu", sub_i),
                                 S("min_i32", "uuu", min_i),
                                 S("max_i32", "uuu", max_i),
                                 S("min_u32", "uuu", min_u),
                                 S("max_u32", "uuu", max_u),
                                 S("mul_i32", "uuu", mul),
                                 S("mul_hi_u32", "uuu", mul_hi_u),
                                 S("mul_hi_i32", "uuu", mul_hi_i),
                                 S("and_b32", "uuu", and_),
                                 S("or_b32", "uuu", or_),
                                 S("xor_b32", "uuu", xor_),
                                 S("andn2_b32", "uuu", andn2),
                                 S("and_not1_b32", "uuu", andn2),
                                 S("orn2_b32", "uuu", orn2),
                                 S("or_not1_b32", "uuu", orn2),
                                 S("and_b64", "qqq", and64),
                                 S("or_b64", "qqq", or64),
                                 S("xor_b64", "qqq", xor64),
                                 S("andn2_b64", "qqq", andn264),
                                 S("and_not1_b64", "qqq", andn264),
                                 S("orn2_b64", "qqq", orn264),
                                 S("or_not1_b64", "qqq", orn264),
                                 S("lshl_b32", "uuu", lshl),
                                 S("lshr_b32", "uuu", lshr),
                                 S("ashr_i32", "uuu", ashr),
                                 S("lshl_b64", "qqu", lshl64),
                                 S("lshr_b64", "qqu", lshr64),
                                 S("ashr_i64", "qqu", ashr64),
                                 S("bfe_u32", "uuu", bfe_u),
                                 S("bfe_i32", "uuu", bfe_i),
                                 S("bfe_u64", "qqu", bfe_u64),
                                 S("bfe_i64", "qqu", bfe_i64),
                                 S("bfm_b32", "uuu", bfm),
                                 S("cselect_b32", "uuu", cselect),
                                 S("cselect_b64", "qqq", cselect64),
                                 S("sext_i32_i8", "uu", sext8),
                                 S("sext_i32_i16", "uu", sext16),
                                 S("ff1_i32_b32", "uu", ff1),
                                 S("ctz_i32_b32", "uu", ff1),
                                 S("flbit_i32_b32", "uu", flbit),
                                 S("clz_i32_u32", "uu", flbit),
                                 S("bcnt1_i32_b32", "uu", bcnt),
                                 S("pack_ll_b32_b16", "uuu", pack_ll),
                                 S("pack_lh_b32_b16", "uuu", pack_lh),
                                 S("pack_hh_b32_b16", "uuu", pack_hh),
                                 S("lshl1_add_u32", "uuu", lshl1_add),
                                 S("lshl2_add_u32", "uuu", lshl2_add),
                                 S("lshl3_add_u32", "uuu", lshl3_add),
                                 S("lshl4_add_u32", "uuu", lshl4_add),
                                 S("cmp_eq_u32", "-uu", eq),
                                 S("cmp_eq_i32", "-uu", eq),
                                 S("cmp_lg_u32", "-uu", ne),
                                 S("cmp_lg_i32", "-uu", ne),
                                 S("cmp_gt_i32", "-uu", gt_i),
                                 S("cmp_ge_i32", "-uu", ge_i),
                                 S("cmp_lt_i32", "-uu", lt_i),
                                 S("cmp_le_i32", "-uu", le_i),
                                 S("cmp_gt_u32", "-uu", gt_u),
                                 S("cmp_ge_u32", "-uu", ge_u),
                                 S("cmp_lt_u32", "-uu", lt_u),
                                 S("cmp_le_u32", "-uu", le_u),
                                 S("cmp_eq_u64", "-qq", eq64),
                                 S("cmp_lg_u64", "-qq", ne64),
                                 S("bitcmp0_b32", "-uu", bit0),
                                 S("bitcmp1_b32", "-uu", bit1),
                                 S("cmpk_eq_i32", "-uk", eqk),
                                 S("cmpk_lg_i32", "-uk", nek),
                                 S("cmpk_gt_i32", "-uk", gtk_i),
                                 S("cmpk_ge_i32", "-uk", gek_i),
                                 S("cmpk_lt_i32", "-uk", ltk_i),
                                 S("cmpk_le_i32", "-uk", lek_i),
                                 S("cmpk_eq_u32", "-uk", eqk_u),
                                 S("cmpk_lg_u32", "-uk", nek_u),
                                 S("cmpk_gt_u32", "-uk", gtk_u),
                                 S("cmpk_ge_u32", "-uk", gek_u),
                                 S("cmpk_lt_u32", "-uk", ltk_u),
                                 S("cmpk_le_u32", "-uk", lek_u),
                                 S("and_saveexec_b32", "uu", and_save),
                                 S("and_saveexec_b64", "qq", and_save),
                                 S("or_saveexec_b32", "uu", or_save),
                                 S("or_saveexec_b64", "qq", or_save),
                                 S("xor_saveexec_b32", "uu", xor_save),
                                 S("xor_saveexec_b64", "qq", xor_save),
                                 S("and_not1_saveexec_b32", "uu", andn2_save),
                                 S("and_not1_saveexec_b64", "qq", andn2_save),
                                 S("andn2_saveexec_b64", "qq", andn2_save),
                                 S("orn2_saveexec_b64", "qq", orn2_save),
                                 S("or_not1_saveexec_b32", "uu", orn2_save),
                                 S("movk_i32", "uk", movk),
                                 S("cmovk_i32", "uk", cmovk),
                                 S("addk_i32", "uk", addk),
                                 S("mulk_i32", "uk", mulk),
                                 S("getpc_b64", "q", getpc),
                                 S("branch", "-k", branch),
                                 S("cbranch_scc0", "-k", scc0),
                                 S("cbranch_scc1", "-k", scc1),
                                 S("cbranch_vccz", "-k", vccz),
                                 S("cbranch_vccnz", "-k", vccnz),
                                 S("cbranch_execz", "-k", execz),
                                 S("cbranch_execnz", "-k", execnz),
                                 S("endpgm", "-", end),
                                 S("barrier", "-", barrier),
                                 LOAD("dword", "b32", 4),
                                 LOAD("dwordx2", "b64", 8),
                                 LOAD("dwordx4", "b128", 16),
                                 LOAD("dwordx8", "b256", 32),
                                 LOAD("dwordx16", "b512", 64),
                                 LOAD("dwordx3", "b96", 12),
                                 NOTHING("nop"),
                                 NOTHING("waitcnt"),
                                 NOTHING("waitcnt_depctr"),
                                 NOTHING("waitcnt_vscnt"),
                                 NOTHING("waitcnt_lgkmcnt"),
                                 NOTHING("delay_alu"),
                                 NOTHING("clause"),
                                 NOTHING("code_end"),
                                 NOTHING("sendmsg"),
                                 NOTHING("set_inst_prefetch_distance"),
                                 NOTHING("inst_prefetch"),
                                 NOTHING("setprio"),
                                 NOTHING("sleep"),
                                 NOTHING("dcache_inv"),
                                 NOTHING("dcache_wb"),
                                 NOTHING("icache_inv"),
                                 {0}};
