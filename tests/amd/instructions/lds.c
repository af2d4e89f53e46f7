/* tests/amd/instructions/lds.c - local memory of a group. */
#include "tests/amd/lanes.h"

static unsigned char *place(amd_wave *w, const amd_ins *i, int lane, uint32_t address,
                            uint32_t bytes) {
  uint32_t capacity = w->launch->lds_bytes;
  if (address <= capacity && bytes <= capacity - address) return w->launch->lds + address;
  amd_fail(w, i, "lane %d reaches bytes [%u, %u) of %u of local memory", lane, address,
           address + bytes, capacity);
  return NULL;
}

#define EACH_LANE for (uint64_t left = w->exec; left; left &= left - 1)
#define LANE __builtin_ctzll(left)
enum { SIZE = 0xff, STRIDED = 0x100 };

static bool sized(amd_wave *w, const amd_ins *i, amd_operand o, int bytes) {
  bool good = o.where == AMD_VECTOR && o.words == (bytes < 4 ? 1 : bytes / 4);
  if (!good) amd_fail(w, i, "its data has another size");
  return good;
}

static void load(amd_wave *w, const amd_ins *i, uint32_t first, uint32_t second, bool two) {
  uint32_t bytes = i->op->bytes & SIZE, words = bytes < 4 ? 1 : bytes / 4, at[AMD_ROW];
  if (!sized(w, i, i->d, (int)((two ? 2 : 1) * words * 4))) return;
  memcpy(at, w->v[i->s[0].index], sizeof at);
  EACH_LANE {
    int l = LANE;
    for (int part = 0; part < 1 + two; part++) {
      const unsigned char *p = place(w, i, l, at[l] + (part ? second : first), bytes);
      if (!p) return;
      if (bytes < 4) {
        uint32_t x = 0;
        memcpy(&x, p, bytes);
        w->v[i->d.index][l] = x;
      } else
        for (uint32_t k = 0; k < words; k++)
          memcpy(&w->v[i->d.index + (uint32_t)part * words + k][l], p + 4 * k, 4);
    }
  }
}
static void store(amd_wave *w, const amd_ins *i, int part, uint32_t offset) {
  uint32_t bytes = i->op->bytes & SIZE;
  if (!sized(w, i, i->s[1 + part], (int)bytes)) return;
  EACH_LANE {
    int l = LANE;
    unsigned char *p = place(w, i, l, w->v[i->s[0].index][l] + offset, bytes);
    if (!p) return;
    if (bytes < 4) memcpy(p, &w->v[i->s[1 + part].index][l], bytes);
    else
      for (uint32_t k = 0; k < bytes / 4; k++)
        memcpy(p + 4 * k, &w->v[i->s[1 + part].index + k][l], 4);
  }
}

/* Two offsets count elements, or rows of 64 of them. */
static uint32_t step(const amd_ins *i) {
  return (uint32_t)(i->op->bytes & SIZE) * (i->op->bytes & STRIDED ? 64 : 1);
}
static void read1(amd_wave *w, const amd_ins *i) { load(w, i, (uint32_t)i->offset, 0, false); }
static void read2(amd_wave *w, const amd_ins *i) {
  load(w, i, (uint32_t)i->offset * step(i), (uint32_t)i->offset1 * step(i), true);
}
static void write1(amd_wave *w, const amd_ins *i) { store(w, i, 0, (uint32_t)i->offset); }
static void write2(amd_wave *w, const amd_ins *i) {
  store(w, i, 0, (uint32_t)i->offset * step(i));
  store(w, i, 1, (uint32_t)i->offset1 * step(i));
}

/* Each lane takes the word of the lane that it names, 0 if that lane is inactive. The number wraps.
 */
static void bpermute(amd_wave *w, const amd_ins *i) {
  uint32_t from[AMD_ROW], data[AMD_ROW];
  memcpy(from, amd_fetch(w, i, 0), sizeof from);
  memcpy(data, amd_fetch(w, i, 1), sizeof data);
  EACH_LANE {
    int l = LANE;
    uint32_t other = (from[l] + (uint32_t)i->offset) / 4 & (uint32_t)(w->lanes - 1);
    w->v[i->d.index][l] = w->exec >> other & 1 ? data[other] : 0;
  }
}

#define READ(name, n)                                                                              \
  {"ds_read_" name, "Ru", read1, NULL, n}, { "ds_load_" name, "Ru", read1, NULL, n }
#define WRITE(name, n)                                                                             \
  {"ds_write_" name, "-uR", write1, NULL, n}, { "ds_store_" name, "-uR", write1, NULL, n }
#define TWO(old, now, n)                                                                           \
  {"ds_read2" old, "Ru", read2, NULL, n}, {"ds_write2" old, "-uRR", write2, NULL, n},              \
      {"ds_load_2addr" now, "Ru", read2, NULL, n}, {                                               \
    "ds_store_2addr" now, "-uRR", write2, NULL, n                                                  \
  }
const amd_op amd_lds_ops[] = {READ("b32", 4),
                              READ("b64", 8),
                              READ("b96", 12),
                              READ("b128", 16),
                              READ("u16", 2),
                              READ("u8", 1),
                              WRITE("b32", 4),
                              WRITE("b64", 8),
                              WRITE("b96", 12),
                              WRITE("b128", 16),
                              WRITE("b16", 2),
                              WRITE("b8", 1),
                              TWO("_b32", "_b32", 4),
                              TWO("_b64", "_b64", 8),
                              TWO("st64_b32", "_stride64_b32", 4 | STRIDED),
                              TWO("st64_b64", "_stride64_b64", 8 | STRIDED),
                              {"ds_bpermute_b32", "uuu", bpermute, NULL, 0},
                              {0}};
