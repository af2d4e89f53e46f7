/* tests/amd/instructions/vmemory.c - vector loads, stores and atomics: global memory and scratch.
 */
#include "tests/amd/lanes.h"

/* Flags in addition to the number of bytes. */
enum { SIGNED = 0x100, HIGH_HALF = 0x200, KEEP = 0x400, SIZE = 0xff };

static void get(amd_wave *w, int d, int lane, const unsigned char *p, int what) {
  int bytes = what & SIZE;
  uint32_t x = 0;
  for (int k = 0; k < bytes / 4; k++) memcpy(&w->v[d + k][lane], p + 4 * k, 4);
  if (bytes >= 4) return;
  memcpy(&x, p, (size_t)bytes);
  if (what & SIGNED) x = bytes == 1 ? (uint32_t)(int32_t)(int8_t)x : (uint32_t)(int32_t)(int16_t)x;
  if (what & HIGH_HALF) x = x << 16 | (w->v[d][lane] & 0xffff);
  else if (what & KEEP) x = (x & 0xffff) | (w->v[d][lane] & 0xffff0000u);
  w->v[d][lane] = x;
}
static void set(amd_wave *w, int d, int lane, unsigned char *p, int what) {
  int bytes = what & SIZE;
  for (int k = 0; k < bytes / 4; k++) memcpy(p + 4 * k, &w->v[d + k][lane], 4);
  uint32_t x = what & HIGH_HALF ? w->v[d][lane] >> 16 : w->v[d][lane];
  if (bytes < 4) memcpy(p, &x, (size_t)bytes);
}

static bool fits(amd_wave *w, const amd_ins *i, amd_operand o) {
  int bytes = i->op->bytes & SIZE;
  bool fit = o.where == AMD_VECTOR && o.words == (bytes < 4 ? 1 : bytes / 4);
  if (!fit) amd_fail(w, i, "its data has another size");
  return fit;
}

/* ---- global: a 64-bit address per lane, or a scalar one and 32 bits per lane ---- */

static uint64_t address(const amd_wave *w, const amd_ins *i, amd_operand lane_part,
                        amd_operand base, int lane) {
  uint64_t offset = (uint64_t)(int64_t)i->offset;
  if (base.where == AMD_SCALAR) return amd_pair_of(w, base) + w->v[lane_part.index][lane] + offset;
  return ((uint64_t)w->v[lane_part.index + 1][lane] << 32 | w->v[lane_part.index][lane]) + offset;
}
static bool addressed(amd_wave *w, const amd_ins *i, amd_operand lane_part, amd_operand base) {
  bool good =
      lane_part.where == AMD_VECTOR &&
      (base.where == AMD_OFF ? lane_part.words == 2
                             : base.where == AMD_SCALAR && base.words == 2 && lane_part.words == 1);
  if (!good) amd_fail(w, i, "its address has a form that is not known");
  return good;
}
#define EACH_LANE for (uint64_t left = w->exec; left; left &= left - 1)
#define LANE __builtin_ctzll(left)

static void load(amd_wave *w, const amd_ins *i) {
  if (!addressed(w, i, i->s[0], i->s[1]) || !fits(w, i, i->d)) return;
  uint32_t saved[2][AMD_ROW]; /* the result may overwrite the address */
  int at = i->s[0].index, n = i->s[0].words;
  memcpy(saved, w->v[at], (size_t)n * sizeof *saved);
  uint64_t base = i->s[1].where == AMD_SCALAR ? amd_pair_of(w, i->s[1]) : 0;
  EACH_LANE {
    int l = LANE;
    uint64_t a = base + ((n == 2 ? (uint64_t)saved[1][l] << 32 : 0) | saved[0][l]) +
                 (uint64_t)(int64_t)i->offset;
    const unsigned char *p = amd_access(w, i, a, i->op->bytes & SIZE, false);
    if (!p) return;
    get(w, i->d.index, l, p, i->op->bytes);
  }
}

static void store(amd_wave *w, const amd_ins *i) {
  if (!addressed(w, i, i->s[0], i->s[2]) || !fits(w, i, i->s[1])) return;
  EACH_LANE {
    unsigned char *p =
        amd_access(w, i, address(w, i, i->s[0], i->s[2], LANE), i->op->bytes & SIZE, true);
    if (!p) return;
    set(w, i->s[1].index, LANE, p, i->op->bytes);
  }
}

enum { ADD_F32, ADD_F64, ADD_U32, ADD_U64, SWAP_IF_U32, SWAP_IF_U64 };

static uint64_t changed(int what, uint64_t old, uint64_t data, uint64_t compare) {
  switch (what) {
    case ADD_F32: return bits_of(f32_of((uint32_t)old) + f32_of((uint32_t)data));
    case ADD_F64:
      return bits_of_f64(f64_of((uint32_t)old, (uint32_t)(old >> 32)) +
                         f64_of((uint32_t)data, (uint32_t)(data >> 32)));
    case ADD_U32: return (uint32_t)(old + data);
    case ADD_U64: return old + data;
    default: return old == compare ? data : old; /* data, then the expected value */
  }
}

static void atomic(amd_wave *w, const amd_ins *i) {
  int what = i->op->bytes,
      bytes = what == ADD_F64 || what == ADD_U64 || what == SWAP_IF_U64 ? 8 : 4, words = bytes / 4;
  bool swaps = what >= SWAP_IF_U32;
  const amd_operand data = i->s[1];
  if (!addressed(w, i, i->s[0], i->s[2])) return;
  if (data.where != AMD_VECTOR || data.words != words * (1 + swaps) ||
      (i->d.where && i->d.words != words) || (i->d.where == AMD_VECTOR) != i->returns) {
    amd_fail(w, i, "its data has another size");
    return;
  }
  uint32_t results[2][AMD_ROW];
  EACH_LANE {
    int l = LANE;
    uint64_t old = 0, value = w->v[data.index][l], compare = 0;
    unsigned char *p = amd_access(w, i, address(w, i, i->s[0], i->s[2], l), (uint32_t)bytes, true);
    if (!p) return;
    if (words == 2) value |= (uint64_t)w->v[data.index + 1][l] << 32;
    if (swaps)
      compare =
          w->v[data.index + words][l] | (words == 2 ? (uint64_t)w->v[data.index + 3][l] << 32 : 0);
    memcpy(&old, p, (size_t)bytes);
    uint64_t now = changed(what, old, value, compare);
    memcpy(p, &now, (size_t)bytes);
    results[0][l] = (uint32_t)old;
    results[1][l] = (uint32_t)(old >> 32);
  }
  if (i->d.where != AMD_VECTOR) return;
  EACH_LANE for (int k = 0; k < words; k++) w->v[i->d.index + k][LANE] = results[k][LANE];
}

/* ---- scratch: each lane its own ---- */

static unsigned char *scratch(amd_wave *w, const amd_ins *i, int lane, int64_t offset) {
  uint32_t bytes = i->op->bytes & SIZE, capacity = w->launch->kernel->scratch;
  if (offset >= 0 && offset + bytes <= capacity)
    return w->scratch + (size_t)lane * capacity + offset;
  amd_fail(w, i, "lane %d reaches byte %lld of %u of scratch", lane, (long long)offset, capacity);
  return NULL;
}
/* Where a flat scratch address points: a vector register, a scalar one, a number. */
static int64_t scratch_offset(const amd_wave *w, const amd_ins *i, amd_operand lane_part,
                              amd_operand base, int lane) {
  int64_t v = lane_part.where == AMD_VECTOR ? (int32_t)w->v[lane_part.index][lane] : 0;
  int64_t s =
      base.where == AMD_SCALAR || base.where == AMD_CONSTANT ? (int32_t)amd_word(w, base) : 0;
  return v + s + i->offset;
}
static void scratch_load(amd_wave *w, const amd_ins *i) {
  uint32_t saved[AMD_ROW];
  bool v = i->s[0].where == AMD_VECTOR;
  if (!fits(w, i, i->d)) return;
  if (v) memcpy(saved, w->v[i->s[0].index], sizeof saved);
  EACH_LANE {
    int l = LANE;
    int64_t at = scratch_offset(w, i, (amd_operand){0}, i->s[1], l) + (v ? (int32_t)saved[l] : 0);
    const unsigned char *p = scratch(w, i, l, at);
    if (!p) return;
    get(w, i->d.index, l, p, i->op->bytes);
  }
}
static void scratch_store(amd_wave *w, const amd_ins *i) {
  if (!fits(w, i, i->s[1])) return;
  EACH_LANE {
    unsigned char *p = scratch(w, i, LANE, scratch_offset(w, i, i->s[0], i->s[2], LANE));
    if (!p) return;
    set(w, i->s[1].index, LANE, p, i->op->bytes);
  }
}

/* gfx90a reaches it through the buffer that the launch describes, moved by the wave's own offset.
 */
static bool is_scratch(amd_wave *w, const amd_ins *i, amd_operand buffer) {
  bool good =
      buffer.where == AMD_SCALAR && buffer.words == 4 && amd_pair_of(w, buffer) == w->buffer;
  if (!good) amd_fail(w, i, "only the launch's own scratch buffer is emulated");
  return good;
}
static int64_t buffer_offset(const amd_wave *w, const amd_ins *i, const amd_operand *s, int lane) {
  return (i->offen ? (int64_t)w->v[s[0].index][lane] : 0) + (int64_t)(int32_t)amd_word(w, s[2]) +
         i->offset;
}
static void buffer_load(amd_wave *w, const amd_ins *i) {
  uint32_t saved[AMD_ROW] = {0};
  if (!fits(w, i, i->d) || !is_scratch(w, i, i->s[1])) return;
  if (i->offen) memcpy(saved, w->v[i->s[0].index], sizeof saved);
  EACH_LANE {
    int l = LANE;
    const unsigned char *p =
        scratch(w, i, l, (int64_t)saved[l] + (int32_t)amd_word(w, i->s[2]) + i->offset);
    if (!p) return;
    get(w, i->d.index, l, p, i->op->bytes);
  }
}
static void buffer_store(amd_wave *w, const amd_ins *i) {
  if (!fits(w, i, i->s[0]) || !is_scratch(w, i, i->s[2])) return;
  EACH_LANE {
    unsigned char *p = scratch(w, i, LANE, buffer_offset(w, i, i->s + 1, LANE));
    if (!p) return;
    set(w, i->s[0].index, LANE, p, i->op->bytes);
  }
}

#define LOADS(name, n)                                                                             \
  {"global_load_" name, "RRo", load, NULL, n},                                                     \
      {"scratch_load_" name, "Roo", scratch_load, NULL, n}, {                                      \
    "buffer_load_" name, "RoRo", buffer_load, NULL, n                                              \
  }
#define STORES(name, n)                                                                            \
  {"global_store_" name, "-RRo", store, NULL, n},                                                  \
      {"scratch_store_" name, "-oRo", scratch_store, NULL, n}, {                                   \
    "buffer_store_" name, "-RoRo", buffer_store, NULL, n                                           \
  }
#define ATOMIC(name, what)                                                                         \
  { "global_atomic_" name, "?RRRo", atomic, NULL, what }
#define NOTHING(name)                                                                              \
  { name, "-", amd_run_nothing, NULL, 0 }
const amd_op amd_memory_ops[] = {LOADS("dword", 4),
                                 LOADS("dwordx2", 8),
                                 LOADS("dwordx3", 12),
                                 LOADS("dwordx4", 16),
                                 LOADS("b32", 4),
                                 LOADS("b64", 8),
                                 LOADS("b96", 12),
                                 LOADS("b128", 16),
                                 LOADS("ubyte", 1),
                                 LOADS("sbyte", 1 | SIGNED),
                                 LOADS("ushort", 2),
                                 LOADS("sshort", 2 | SIGNED),
                                 LOADS("u8", 1),
                                 LOADS("i8", 1 | SIGNED),
                                 LOADS("u16", 2),
                                 LOADS("i16", 2 | SIGNED),
                                 LOADS("short_d16", 2 | KEEP),
                                 LOADS("short_d16_hi", 2 | HIGH_HALF),
                                 LOADS("d16_b16", 2 | KEEP),
                                 LOADS("d16_hi_b16", 2 | HIGH_HALF),
                                 STORES("dword", 4),
                                 STORES("dwordx2", 8),
                                 STORES("dwordx3", 12),
                                 STORES("dwordx4", 16),
                                 STORES("b32", 4),
                                 STORES("b64", 8),
                                 STORES("b96", 12),
                                 STORES("b128", 16),
                                 STORES("byte", 1),
                                 STORES("short", 2),
                                 STORES("b8", 1),
                                 STORES("b16", 2),
                                 STORES("short_d16_hi", 2 | HIGH_HALF),
                                 STORES("d16_hi_b16", 2 | HIGH_HALF),
                                 ATOMIC("add_f32", ADD_F32),
                                 ATOMIC("add_f64", ADD_F64),
                                 ATOMIC("add", ADD_U32),
                                 ATOMIC("add_u32", ADD_U32),
                                 ATOMIC("add_x2", ADD_U64),
                                 ATOMIC("add_u64", ADD_U64),
                                 ATOMIC("cmpswap", SWAP_IF_U32),
                                 ATOMIC("cmpswap_b32", SWAP_IF_U32),
                                 ATOMIC("cmpswap_x2", SWAP_IF_U64),
                                 ATOMIC("cmpswap_b64", SWAP_IF_U64),
                                 NOTHING("buffer_gl0_inv"),
                                 NOTHING("buffer_gl1_inv"),
                                 NOTHING("buffer_wbl2"),
                                 NOTHING("buffer_inv"),
                                 NOTHING("buffer_invl2"),
                                 NOTHING("buffer_wbinvl1"),
                                 NOTHING("buffer_wbinvl1_vol"),
                                 {0}};
