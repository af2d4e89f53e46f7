/* tests/intel/operands.c - operands as the listing prints them: -r12.3<2;1,0>:w,
   (abs)acc2.0<1;0>:f, r[a0.4]<1,0>:d, 0x4077DEF6:f, 0x76543210:v, f0.1<1>:uw, r5.mme0:f. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/intel/registers.h"

const uint8_t intel_type_bytes[INTEL_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8};

static bool type_of(const char *s, intel_operand *o) {
  static const char *const names[INTEL_TYPES] = {"ub", "b", "uw", "w", "ud", "d",
                                                 "uq", "q", "hf", "f", "df"};
  for (int k = 0; k < INTEL_TYPES; k++)
    if (!strcmp(s, names[k])) return o->type = (uint8_t)k, true;
  return false;
}

static int64_t extended(uint64_t x, int type) {
  switch (type) {
    case UB: return (uint8_t)x;
    case B: return (int8_t)x;
    case UW: return (uint16_t)x;
    case W: return (int16_t)x;
    case UD: return (uint32_t)x;
    case D: return (int32_t)x;
    case HF: return (uint16_t)x;
    case F: return (uint32_t)x;
    default: return (int64_t)x;
  }
}

/* Floats are printed as bits. */
static bool immediate(char *s, intel_operand *o) {
  char *colon = strchr(s, ':'), *end;
  bool minus = *s == '-';
  if (!colon || !isdigit((unsigned char)s[minus])) return false;
  uint64_t bits = strtoull(s + minus, &end, 0);
  if (end != colon) return false;
  if (minus) bits = 0 - bits;
  if (!strcmp(colon + 1, "v") || !strcmp(colon + 1, "uv")) {
    o->where = NIBBLES;
    o->type = colon[1] == 'v' ? W : UW;
    o->number = (int64_t)bits;
    return true;
  }
  o->where = NUMBER;
  if (!type_of(colon + 1, o)) return false;
  if (o->type >= HF && (minus || strncmp(s, "0x", 2) != 0)) return false;
  o->number = extended(bits, o->type);
  return true;
}

/* <h> of results and of third sources, <v;h> of other sources of three, <v;w,h>; none: <1>. */
static bool region(char *s, bool result, intel_operand *o) {
  unsigned v, w, h;
  int used = 0;
  if (sscanf(s, "%u;%u,%u%n", &v, &w, &h, &used) == 3 && !s[used]) {
    if (result || !w) return false;
  } else if (sscanf(s, "%u;%u%n", &v, &h, &used) == 2 && !s[used]) {
    if (result || (!v && h)) return false;
    w = h ? v / h : 1;
    if (!w) w = 1;
  } else if (sscanf(s, "%u%n", &h, &used) == 1 && !s[used]) {
    w = 1;
    v = h;
  } else return false;
  if (v > 32 || w > 16 || h > 4) return false;
  o->v = (uint8_t)v;
  o->w = (uint8_t)w;
  o->h = (uint8_t)h;
  return true;
}

static void set_step(intel_operand *o) {
  int bytes = intel_type_bytes[o->type];
  o->step = -1;
  if (o->w == 1) o->step = (int16_t)(o->v * bytes);
  else if (o->v == o->w * o->h) o->step = (int16_t)(o->h * bytes);
}

static uint32_t last_byte(const intel_operand *o, int lanes) {
  uint32_t last = 0, bytes = intel_type_bytes[o->type];
  for (int k = 0; k < lanes; k++) {
    uint32_t at = (uint32_t)(k / o->w * o->v + k % o->w * o->h) * bytes;
    if (at > last) last = at;
  }
  return o->at + last + bytes;
}

/* Hardware reads at most two registers, and a row of a region within one; a result lies in two at
   most. Elements lie at multiples of their size. */
static bool fits(const intel_kernel *k, const intel_operand *o, int lanes, bool result) {
  uint32_t bytes = intel_type_bytes[o->type], end = last_byte(o, lanes);
  uint32_t limit = o->acc                   ? INTEL_ADDRESS
                   : o->at >= INTEL_ADDRESS ? INTEL_BYTES
                                            : k->registers * INTEL_REGISTER;
  if (end > limit || o->at % bytes) return false;
  if ((end - 1) / INTEL_REGISTER - o->at / INTEL_REGISTER > 1) return false;
  if (result) return true;
  for (int row = 0; row < lanes && o->w > 1 && o->step < 0; row += o->w) {
    uint32_t first = o->at + (uint32_t)(row / o->w * o->v) * bytes,
             last = first + (uint32_t)((o->w - 1) * o->h) * bytes;
    if (first / INTEL_REGISTER != last / INTEL_REGISTER) return false;
  }
  return true;
}

/* r[a0.2]<2,1>: of each w = 2 lanes, the elements, h = 1 apart, that begin at the address in the
   next element of a0, from 2 on; r[a0.2]<0;1,0>: of all lanes, the element at the address in 2. */
static bool indirect(char *s, intel_operand *o) {
  unsigned element, w = INTEL_LANES, h = 0;
  int offset = 0, used = 0;
  if (strncmp(s, "r[a0.", 5) != 0 || sscanf(s + 5, "%u%n", &element, &used) != 1) return false;
  s += 5 + used;
  if (*s == ',' && (sscanf(s + 1, "%d%n", &offset, &used) == 1)) s += 1 + used;
  used = 0;
  if (!strncmp(s, "]<0;1,0>:", 9)) s += 9;
  else if (sscanf(s, "]<%u,%u>:%n", &w, &h, &used) == 2 && used && w && w <= 4 && h <= 4) s += used;
  else return false;
  if (!type_of(s, o)) return false;
  o->where = INDIRECT;
  o->w = (uint8_t)w;
  o->h = (uint8_t)h;
  o->at = element;
  o->offset = offset;
  return element < INTEL_SUBGROUP;
}

/* .3, .mme2, .nomme, or nothing */
static bool sub_register(char **s, unsigned *sub, intel_operand *o) {
  int used = 0;
  *sub = 0;
  if (**s != '.') return true;
  char *t = *s + 1;
  if (!strncmp(t, "nomme", 5)) o->extra = PLAIN_EXTRA, *s = t + 5;
  else if (!strncmp(t, "mme", 3) && t[3] >= '0' && t[3] < '0' + INTEL_EXTRA)
    o->extra = (uint8_t)(EXTRA + t[3] - '0'), *s = t + 4;
  else if (sscanf(t, "%u%n", sub, &used) == 1) *s = t + used;
  else return false;
  return true;
}

static const struct {
  const char *name;
  uint8_t where;
  unsigned registers;
  uint32_t base;
} files[] = {{"r", REGISTER, INTEL_REGISTERS, 0},
             {"acc", REGISTER, 16, INTEL_ACC},
             {"a", REGISTER, 1, INTEL_ADDRESS},
             {"f", FLAG, 4, 0},
             {"cr", CONTROL, 1, 0}};

static bool in_file(char **s, intel_operand *o, uint32_t *base) {
  unsigned number, n_files = sizeof files / sizeof *files;
  int used = 0;
  size_t letters = strspn(*s, "abcdefghijklmnopqrstuvwxyz");
  for (unsigned f = 0; f < n_files; f++) {
    if (strlen(files[f].name) != letters || strncmp(*s, files[f].name, letters) != 0) continue;
    if (sscanf(*s + letters, "%u%n", &number, &used) != 1 || number >= files[f].registers)
      return false;
    o->where = files[f].where;
    if (letters == 3) o->acc = (uint8_t)(number + 1);
    *base = o->where == FLAG ? 32 * number : files[f].base + number * INTEL_REGISTER;
    *s += letters + (size_t)used;
    return true;
  }
  return false;
}

static bool in_registers(const intel_kernel *k, char *s, int lanes, bool result, intel_operand *o) {
  unsigned sub;
  uint32_t base = 0;
  char *colon = strchr(s, ':'), *open = strchr(s, '<');
  if (!colon || !type_of(colon + 1, o)) return false;
  *colon = 0;
  if (open) {
    *open = 0;
    size_t n = strlen(open + 1);
    if (!n || open[n] != '>') return false;
    open[n] = 0;
  }
  if (!in_file(&s, o, &base) || !sub_register(&s, &sub, o) || *s) return false;
  o->v = o->w = o->h = 1;
  if (open && !region(open + 1, result, o)) return false;
  if (!open && !o->extra && o->where == REGISTER) return false;
  if (o->where == FLAG) return o->at = base + 16 * sub, sub < 2 && o->type >= UW && o->type <= D;
  if (o->where == CONTROL) return !sub && o->type == UD;
  o->at = base + sub * intel_type_bytes[o->type];
  set_step(o);
  return fits(k, o, lanes, result);
}

bool intel_operand_of(const intel_kernel *k, const char *text, int lanes, bool result,
                      intel_operand *o) {
  char work[64], *s = work;
  *o = (intel_operand){0};
  if (snprintf(work, sizeof work, "%s", text) >= (int)sizeof work) return false;
  if (!strncmp(s, "null", 4)) {
    char *colon = strchr(s, ':');
    if (result && colon && !type_of(colon + 1, o)) return false;
    return result;
  }
  if (!result && immediate(s, o)) return true;
  if (*s == '-' || *s == '~') o->negative = 1, s++;
  if (!strncmp(s, "(abs)", 5)) o->absolute = 1, s += 5;
  if (result && (o->negative || o->absolute)) return false;
  if (!result && indirect(s, o)) return true;
  return in_registers(k, s, lanes, result, o);
}
