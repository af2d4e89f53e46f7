/* tests/amd/operands.c - operands and modifiers as LLVM's listing prints them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/amd/lanes.h"

static int add_constant(amd_module *m, uint64_t value) {
  uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
  for (int i = 0; i < m->n_constants; i++)
    if (m->words[i][0] == low && m->words[i][1] == high) return i;
  if (!(m->n_constants & (m->n_constants - 1))) { /* room for 1, 2, 4, ... */
    size_t capacity = m->n_constants ? 2 * (size_t)m->n_constants : 1;
    void *words = realloc(m->words, capacity * sizeof *m->words);
    if (words) m->words = words;
    void *rows = realloc(m->rows, capacity * sizeof *m->rows);
    if (rows) m->rows = rows;
    if (!words || !rows) return -1;
  }
  int i = m->n_constants++;
  m->words[i][0] = low;
  m->words[i][1] = high;
  for (int l = 0; l < AMD_ROW; l++) m->rows[i][l] = low, m->rows[i][AMD_ROW + l] = high;
  return i;
}

/* An inline or literal constant in its operand's type. */
static bool number(const char *s, char type, uint64_t *value) {
  char *end;
  bool hex = strstr(s, "0x") != NULL, real = !hex && strchr(s, '.');
  if (real) {
    double x = strtod(s, &end);
    bool turn = fabs(x - 0.15915494309189532) < 1e-6; /* 1 / 2 pi, to the type's precision */
    if (type == 'd') *value = turn ? 0x3fc45f306dc9c882 : bits_of_f64(x);
    else if (type == 'h' || type == 'w') *value = turn ? 0x3118 : half_of((float)x);
    else if (type == 'q' || type == 'i') return false;
    else *value = turn ? 0x3e22f983 : bits_of((float)x);
    if (type == 'p') *value |= *value << 32;
    return !*end;
  }
  long long n = strtoll(s, &end, 0);
  if (*end || end == s) return false;
  *value = (uint64_t)n;
  if (hex && type == 'd') *value = (uint64_t)n << 32;
  else if (hex && type == 'i') *value = (uint64_t)(int64_t)(int32_t)n;
  else if (strchr("hw", type)) *value &= 0xffff;
  else if (!strchr("qid", type)) *value &= 0xffffffff;
  return true;
}

/* v7, s[2:3], a[0:3] */
static bool bank(const char *s, amd_operand *o) {
  int first, last, used = 0;
  if (!strchr("vsa", *s)) return false;
  if (s[1] == '[') {
    if (sscanf(s + 1, "[%d:%d]%n", &first, &last, &used) != 2) return false;
  } else if (isdigit((unsigned char)s[1])) {
    if (sscanf(s + 1, "%d%n", &first, &used) != 1) return false;
    last = first;
  } else return false;
  if (s[1 + used] || first < 0 || last < first || last >= (*s == 's' ? AMD_VCC : AMD_VGPRS))
    return false;
  o->where = *s == 's' ? AMD_SCALAR : AMD_VECTOR;
  o->index = (uint16_t)(first + (*s == 'a' ? AMD_VGPRS : 0));
  o->words = (uint8_t)(last - first + 1);
  return true;
}

static bool special(const char *s, amd_operand *o) {
  static const struct {
    const char *name;
    uint8_t index, words;
  } names[] = {{"vcc", AMD_VCC, 2},        {"vcc_lo", AMD_VCC, 1},   {"vcc_hi", AMD_VCC + 1, 1},
               {"exec", AMD_EXEC, 2},      {"exec_lo", AMD_EXEC, 1}, {"exec_hi", AMD_EXEC + 1, 1},
               {"m0", AMD_M0, 1},          {"flat_scratch", 102, 2}, {"flat_scratch_lo", 102, 1},
               {"flat_scratch_hi", 103, 1}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(s, names[i].name)) {
      *o = (amd_operand){.where = AMD_SCALAR,
                         .index = names[i].index,
                         .words = names[i].words,
                         .neg = o->neg,
                         .abs = o->abs};
      return true;
    }
  return false;
}

static int words_of(const amd_module *m, char type) {
  return strchr("qidp", type) ? 2 : strchr("mM", type) ? 1 + m->wide : strchr("Ro", type) ? 0 : 1;
}

static bool unwrap(char **s, const char *before, const char *behind) {
  size_t n = strlen(*s), b = strlen(before), e = strlen(behind);
  if (n < b + e + 1 || memcmp(*s, before, b) || memcmp(*s + n - e, behind, e)) return false;
  (*s)[n - e] = 0;
  *s += b;
  return true;
}

bool amd_operand_of(amd_module *m, char *s, char type, bool result, amd_operand *o) {
  uint64_t value = 0;
  if (s[0] == '-' && !isdigit((unsigned char)s[1])) o->neg = 1, s++;
  if (unwrap(&s, "neg(", ")")) o->neg = 1;
  if (unwrap(&s, "|", "|")) o->abs = 1;
  if (unwrap(&s, "sext(", ")")) o->sext = 1;
  if (!strcmp(s, "off") && type == 'o') return o->where = AMD_OFF, true;
  if (bank(s, o) || special(s, o)) return !words_of(m, type) || o->words == words_of(m, type);
  if (!strcmp(s, "null")) {
    if (result) return *o = (amd_operand){.where = AMD_SCALAR, .index = AMD_NULL, .words = 1}, true;
  } else if (result || !number(s, type, &value)) return false;
  int c = add_constant(m, value);
  o->where = AMD_CONSTANT;
  o->index = (uint16_t)c;
  o->words = (uint8_t)words_of(m, type);
  return c >= 0 && c < UINT16_MAX;
}

/* ---- modifiers ---- */

static bool list(const char *s, amd_ins *i, void (*set)(amd_ins *i, int which, int value)) {
  int which = 0;
  if (*s++ != '[') return false;
  for (; *s; s++) {
    if (*s == '0' || *s == '1') set(i, which++, *s - '0');
    else if (*s == ']') return !s[1];
    else if (*s != ',') return false;
    if (which > 4) return false;
  }
  return false;
}
static void set_low(amd_ins *i, int which, int value) { i->s[which & 3].low = (uint8_t)value; }
static void set_high(amd_ins *i, int which, int value) { i->s[which & 3].high = (uint8_t)value; }
static void set_neg_low(amd_ins *i, int which, int value) { i->s[which & 3].neg ^= (uint8_t)value; }
static void set_neg_high(amd_ins *i, int which, int value) {
  i->s[which & 3].neg ^= (uint8_t)(value << 1);
}

static bool selection(const char *s, uint8_t *select) {
  static const char *const names[] = {"DWORD",  "WORD_0", "WORD_1", "BYTE_0",
                                      "BYTE_1", "BYTE_2", "BYTE_3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(s, names[i])) return *select = (uint8_t)i, true;
  return false;
}

/* A modifier after the operands; false: unknown. */
bool amd_modifier(amd_ins *i, const char *s) {
  static const char *const idle[] = {"nt", "slc", "dlc", "sc1", NULL}; /* caches */
  const char *value = strchr(s, ':');
  size_t n = value ? (size_t)(value++ - s) : strlen(s);
#define NAMED(text) (n == sizeof text - 1 && !memcmp(s, text, n))
  for (const char *const *one = idle; *one; one++)
    if (!strcmp(s, *one)) return true;
  if (NAMED("glc") || NAMED("sc0")) return i->returns = 1, true;
  if (NAMED("offen")) return i->offen = 1, true;
  if (NAMED("clamp")) return i->clamp = 1, true;
  if (!value) return false;
  if (NAMED("offset") || NAMED("offset0")) return i->offset = (int32_t)strtol(value, NULL, 0), true;
  if (NAMED("offset1")) return i->offset1 = (int32_t)strtol(value, NULL, 0), true;
  if (NAMED("mul")) return i->omod = *value == '2' ? 1 : 2, true;
  if (NAMED("div")) return i->omod = 3, true;
  if (NAMED("op_sel")) return list(value, i, set_low);
  if (NAMED("op_sel_hi")) return list(value, i, set_high);
  if (NAMED("neg_lo")) return list(value, i, set_neg_low);
  if (NAMED("neg_hi")) return list(value, i, set_neg_high);
  if (NAMED("dst_sel")) return selection(value, &i->select);
  if (NAMED("src0_sel")) return selection(value, &i->s[0].select);
  if (NAMED("src1_sel")) return selection(value, &i->s[1].select);
  if (NAMED("dst_unused"))
    return i->keep = !strcmp(value, "UNUSED_PRESERVE"), i->keep || !strcmp(value, "UNUSED_PAD");
#undef NAMED
  return false;
}
