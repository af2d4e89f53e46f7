/* backends/cuda_hip/report.c - counts of instructions in a kernel's machine code.

   Loads and stores are counted in bytes and divided by the smallest element that the kernel loads
   or stores; fused multiply-adds by element. NVIDIA: the instructions are decoded here (128 bits
   each, sm_70 and later); registers and spills are reported by ptxas. AMD: llvm-objdump's listing;
   registers and spills are in the code object's notes. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda_hip/gpu.h"

/* Bytes of the smallest element that instructions of this op move through global memory. */
static int element_bytes(const ir_kernel *k, bool stores) {
  int min = 0;
  for (int v = 0; v < k->n; v++) {
    const ir_ins *i = &k->ins[v];
    bool counts = stores ? i->op == IR_STORE : i->op == IR_LOAD || i->op == IR_COPY;
    if (!counts) continue;
    const ir_ins *array = &k->ins[i->op == IR_COPY ? i->arg[2] : i->arg[0]];
    int bytes = ir_type_bytes(array->element);
    if (array->op == IR_BUFFER && (!min || bytes < min)) min = bytes;
  }
  return min ? min : 4;
}

/* ---- NVIDIA ---- */

static bool is_access(uint64_t opcode) {
  static const uint16_t all[] = {
      0x180, 0x181, 0x183, 0x184, 0x185, 0x186, 0x187,         /* LD LDG LDL LDS */
      0x188, 0x1ae, 0x18a, 0x1a8, 0x18c, 0x18d, 0x18e, 0x1a6}; /* ATOM */
  bool found = false;
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) found |= all[k] == opcode;
  return found;
}

void clb_gpu_count_sass(const unsigned char *code, size_t n, clb_gpu_traffic *t) {
  static const int widths[8] = {1, 1, 2, 2, 4, 8, 16, 32}; /* U8 S8 U16 S16 32 64 128 256 */
  for (size_t at = 0; at + 16 <= n; at += 16) {
    uint64_t low, high;
    memcpy(&low, code + at, 8);
    memcpy(&high, code + at + 8, 8);
    int width = widths[high >> 9 & 7];
    t->instructions += (low & 0x1ff) != 0x118; /* NOP fills the end */
    t->accesses += is_access(low & 0x1ff);
    switch (low & 0x1ff) { /* the other bits of the 12 encode the sources of operands */
      case 0x180:
      case 0x181:
      case 0x1ae: t->loaded += width; break; /* LD, LDG, LDGSTS */
      case 0x185:
      case 0x186: t->stored += width; break; /* ST, STG */
      case 0x023:
      case 0x02b: t->fmas++; break;    /* FFMA, DFMA */
      case 0x049: t->fmas += 2; break; /* FFMA2, of sm_100 */
    }
  }
}

/* The section ".text.NAME" of a cubin. */
static bool count_cubin(const char *name, const unsigned char *cubin, size_t bytes,
                        clb_gpu_traffic *t) {
  Elf64_Ehdr head;
  Elf64_Shdr names, section;
  char want[96];
  if (bytes < sizeof head || memcmp(cubin, ELFMAG, SELFMAG) || clb_gpu_elf_error(cubin, bytes))
    return false;
  memcpy(&head, cubin, sizeof head);
  if (head.e_shentsize != sizeof section || head.e_shstrndx >= head.e_shnum) return false;
  memcpy(&names, cubin + head.e_shoff + head.e_shstrndx * sizeof section, sizeof names);
  int length = snprintf(want, sizeof want, ".text.%s", name) + 1;
  for (int i = 0; i < head.e_shnum; i++) {
    memcpy(&section, cubin + head.e_shoff + (size_t)i * sizeof section, sizeof section);
    uint64_t at = names.sh_offset + section.sh_name;
    if (at > bytes || bytes - at < (size_t)length || memcmp(cubin + at, want, (size_t)length))
      continue;
    if (section.sh_offset > bytes || section.sh_size > bytes - section.sh_offset) return false;
    clb_gpu_count_sass(cubin + section.sh_offset, section.sh_size, t);
    return true;
  }
  return false;
}

/* The number before `word`, or after it; -1 if the word does not occur. */
static int number_before(const char *log, const char *word) {
  const char *s = log ? strstr(log, word) : NULL;
  while (s && s > log && s[-1] >= '0' && s[-1] <= '9') s--;
  return s ? atoi(s) : -1;
}

static clb_status report_cuda(clb_gpu *g, const ir_kernel *k, clb_report *r) {
  clb_text text = {0}, again = {0}, log = {0};
  const clb_device *d = &g->head;
  clb_status s = clb_codegen(k, &d->limits, &d->dialect, &text, d->error);
  if (!s) s = clb_gpu_compile(g, k->name, &text, true, &again, &log);
  if (!s) {
    int stores = number_before(log.s, " bytes spill stores"),
        loads = number_before(log.s, " bytes spill loads");
    r->registers = number_before(log.s, " registers");
    r->spill_bytes = stores > loads ? stores : loads;
  }
  clb_text_free(&text);
  clb_text_free(&again);
  clb_text_free(&log);
  return s;
}

/* ---- AMD ---- */

/* An integer in the notes (MessagePack) after its key. */
static int note(const unsigned char *binary, size_t bytes, const char *key) {
  size_t n = strlen(key);
  for (size_t at = 0; at + n + 5 <= bytes; at++) {
    const unsigned char *b = binary + at + n;
    if (memcmp(binary + at, key, n)) continue;
    if (b[0] < 0x80) return b[0];
    if (b[0] == 0xcc) return b[1];
    if (b[0] == 0xcd) return b[1] << 8 | b[2];
    if (b[0] == 0xce)
      return (int)((uint32_t)b[1] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 8 | b[4]);
  }
  return -1;
}

/* The width from the name after "global_load_" and the like. */
static int width_of(const char *s) {
  static const struct {
    const char *name;
    int bytes;
  } widths[] = {{"dwordx4", 16},  {"dwordx3", 12},   {"dwordx2", 8},   {"dwordx8", 32},
                {"dwordx16", 64}, {"dword", 4},      {"b128", 16},     {"b96", 12},
                {"b64", 8},       {"b256", 32},      {"b512", 64},     {"b32", 4},
                {"ubyte", 1},     {"sbyte", 1},      {"byte", 1},      {"u8", 1},
                {"i8", 1},        {"b8", 1},         {"ushort", 2},    {"sshort", 2},
                {"short", 2},     {"u16", 2},        {"i16", 2},       {"b16", 2},
                {"d16_b16", 2},   {"d16_hi_b16", 2}, {"short_d16", 2}, {"short_d16_hi", 2}};
  size_t n = strcspn(s, " \t");
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (strlen(widths[i].name) == n && !memcmp(s, widths[i].name, n)) return widths[i].bytes;
  return 0;
}

/* Scalar registers [first, last] that an operand names: s4, s[4:5]. */
typedef struct {
  int first, last;
} span;
static span registers_of(const char *s) {
  span r = {-1, -2};
  while (*s == ' ' || *s == '\t') s++;
  if (*s++ != 's') return r;
  if (*s >= '0' && *s <= '9') r.first = r.last = atoi(s);
  else if (*s == '[' && sscanf(s, "[%d:%d]", &r.first, &r.last) != 2) r = (span){-1, -2};
  return r;
}
static bool overlap(span a, span b) { return a.first <= b.last && b.first <= a.last; }

/* Location of the pointer to the arguments: in scalar registers, and possibly saved in a lane of a
   vector register. */
typedef struct {
  span at;
  int saved, lane;
} pointer;

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* Follows the pointer into a lane and back; any other write to its registers ends it. */
static void follow(pointer *p, const char *name, const char *operands, span to) {
  int v = 0, s = 0, lane = 0;
  if (starts(name, "v_writelane_b32") && sscanf(operands, " v%d, s%d, %d", &v, &s, &lane) == 3 &&
      s == p->at.first)
    p->saved = v, p->lane = lane;
  bool back = starts(name, "v_readlane_b32") &&
              sscanf(operands, " s%d, v%d, %d", &s, &v, &lane) == 3 && v == p->saved &&
              lane == p->lane;
  bool writes =
      name[0] == 'v' || (starts(name, "s_") && !starts(name, "s_cmp") && !starts(name, "s_wait"));
  if (back) p->at = (span){s, s + 1};
  else if (writes && overlap(to, p->at) &&
           !(starts(name, "v_readlane_b32") && to.first == p->at.last))
    p->at = (span){-3, -4};
}

/* v_fma_f32, v_fmac_f64_e32, v_fmaak_f32, v_dual_fmamk_f32, v_pk_fma_f32 (of two); not those of
   f16, nor v_div_fmas_f32. */
static int fmas_of(const char *name) {
  bool packed = starts(name, "v_pk_fma_"),
       fused = packed || starts(name, "v_fma") || starts(name, "v_dual_fma");
  size_t n = strcspn(name, " \t\n");
  bool wide = memmem(name, n, "_f32", 4) || memmem(name, n, "_f64", 4);
  return fused && wide ? 1 + packed : 0;
}

/* The second instruction in a line of RDNA 3's dual-issue instructions; NULL: none. */
static const char *second_of(const char *name) {
  const char *other = memmem(name, strcspn(name, "\n"), ":: ", 3);
  return other ? other + 3 : "";
}

/* Of vectors: global memory, local memory (but not what only exchanges lanes), scratch. */
static bool touches_memory(const char *name) {
  return starts(name, "global_") || starts(name, "flat_") || starts(name, "scratch_") ||
         starts(name, "buffer_") ||
         (starts(name, "ds_") && !starts(name, "ds_bpermute") && !starts(name, "ds_permute") &&
          !starts(name, "ds_swizzle"));
}

static bool is_idle(const char *name) {
  return starts(name, "s_nop") || starts(name, "s_code_end") || starts(name, "v_nop");
}

/* The first s_load reads the arguments; other loads through the same pointer also read
   arguments. */
static void count_line(const char *s, pointer *arguments, clb_gpu_traffic *t) {
  const char *name = s + strspn(s, " \t");
  const char *operands = name + strcspn(name, " \t\n"), *next = operands + strcspn(operands, ",\n");
  span to = registers_of(operands), from = registers_of(*next == ',' ? next + 1 : next);
  if (starts(name, "global_load_")) t->loaded += width_of(name + 12);
  else if (starts(name, "flat_load_")) t->loaded += width_of(name + 10);
  else if (starts(name, "global_store_")) t->stored += width_of(name + 13);
  else if (starts(name, "flat_store_")) t->stored += width_of(name + 11);
  else if (starts(name, "s_load_")) {
    if (arguments->at.first == -1) arguments->at = from;
    if (from.first != arguments->at.first) t->loaded += width_of(name + 7), t->accesses++;
  }
  bool listed = *s == '\t' && name[0] >= 'a' && name[0] <= 'z';
  t->instructions += listed && !is_idle(name) ? 1 + (*second_of(name) != 0) : 0;
  t->accesses += listed && touches_memory(name);
  t->fmas += fmas_of(name) + fmas_of(second_of(name));
  follow(arguments, name, operands, to);
}

void clb_gpu_count_listing(const char *s, clb_gpu_traffic *t) {
  pointer arguments = {{-1, -2}, -1, -1};
  for (; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) count_line(s, &arguments, t);
}

static bool report_hip(const void *binary, size_t bytes, clb_report *r, clb_gpu_traffic *t) {
  clb_text listing = {0};
  int spilled = note(binary, bytes, ".vgpr_spill_count");
  r->registers = note(binary, bytes, ".vgpr_count");
  r->spill_bytes = spilled < 0 ? -1 : 4 * spilled;
  bool ok = clb_gpu_objdump(binary, bytes, &listing) && listing.s;
  if (ok) clb_gpu_count_listing(listing.s, t);
  clb_text_free(&listing);
  return ok;
}

clb_status clb_gpu_report(clb_device *device, const ir_kernel *k, const void *binary, size_t bytes,
                          clb_report *report) {
  clb_gpu *g = (clb_gpu *)device;
  clb_gpu_traffic t = {0};
  bool counted;
  clb_status s = CLB_OK;
  *report = clb_report_unknown();
  if (g->vendor->language == CLB_LANGUAGE_CUDA) {
    s = report_cuda(g, k, report);
    counted = count_cubin(k->name, binary, bytes, &t);
  } else counted = report_hip(binary, bytes, report, &t);
  if (s || !counted) return s;
  report->loads = (int)(t.loaded / element_bytes(k, false));
  report->stores = (int)(t.stored / element_bytes(k, true));
  report->fmas = t.fmas;
  report->instructions = t.instructions;
  report->accesses = t.accesses;
  return CLB_OK;
}
