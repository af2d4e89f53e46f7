/* tests/amd/listing.c - LLVM's listing of a code object, line by line into instructions. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/amd/lanes.h"

enum { MAX_PARTS = 8, MAX_MODIFIERS = 12 };

/* ---- the listing's text ---- */

static char *read_all(FILE *f) {
  size_t n = 0, capacity = 1 << 16;
  char *text = malloc(capacity);
  while (text) {
    n += fread(text + n, 1, capacity - n - 1, f);
    if (n < capacity - 1) break;
    char *more = realloc(text, capacity *= 2);
    if (!more) free(text);
    text = more;
  }
  if (text) text[n] = 0;
  return text;
}

static char *disassemble(const void *binary, size_t bytes) {
  char path[] = "/tmp/amd-emulator-XXXXXX", command[256], *text = NULL;
  int file = mkstemp(path);
  if (file < 0) return NULL;
  bool written = write(file, binary, bytes) == (ssize_t)bytes;
  close(file);
  snprintf(command, sizeof command,
           "unset LD_PRELOAD; p=$(command -v llvm-objdump-19 || command -v llvm-objdump) && "
           "exec $p -d %s",
           path);
  FILE *f = written ? popen(command, "r") : NULL;
  if (f) {
    text = read_all(f);
    if (pclose(f)) {
      free(text);
      text = NULL;
    }
  }
  unlink(path);
  return text;
}

/* ---- lines ---- */

typedef struct {
  char *part[MAX_PARTS], *modifier[MAX_MODIFIERS];
  int n, modifiers;
} words;

/* Operands are separated by commas; modifiers follow the last one, separated by spaces. */
static bool split(char *s, words *w) {
  int depth = 0;
  bool begin = true, behind = false;
  for (; *s; s++) {
    if (*s == '[' || *s == '(') depth++;
    if (*s == ']' || *s == ')') depth--;
    if (*s == ' ') {
      *s = 0;
      behind |= !begin;
      continue;
    }
    if (*s == ',' && !depth) {
      *s = 0;
      begin = true;
      behind = false;
      continue;
    }
    if (begin) {
      if (w->n == MAX_PARTS || w->modifiers) return false;
      w->part[w->n++] = s;
    } else if (behind) {
      if (w->modifiers == MAX_MODIFIERS) return false;
      w->modifier[w->modifiers++] = s;
    }
    begin = behind = false;
  }
  return true;
}

static const amd_op *find_op(const char *name, size_t n) {
  static const amd_op *const tables[] = {amd_scalar_ops,    amd_vector_ops,  amd_vector_ops_16,
                                         amd_vector_ops_64, amd_compare_ops, amd_lane_ops,
                                         amd_memory_ops,    amd_lds_ops};
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const amd_op *op = tables[t]; op->name; op++)
      if (strlen(op->name) == n && !memcmp(op->name, name, n)) return op;
  return NULL;
}

/* v_dual_add_f32 is v_add_f32; _e32 and _e64 are encodings. */
static const amd_op *op_of(const char *name, amd_ins *i) {
  char plain[72];
  size_t n = strlen(name);
  if (n >= 64) return NULL;
  const amd_op *op = find_op(name, n);
  if (op) return op;
  bool dual = !strncmp(name, "v_dual_", 7);
  snprintf(plain, sizeof plain, "%s%s", dual ? "v_" : "", name + (dual ? 7 : 0));
  n = strlen(plain);
  if (n > 4 && (!strcmp(plain + n - 4, "_e32") || !strcmp(plain + n - 4, "_e64"))) n -= 4;
  else if (n > 5 && !strcmp(plain + n - 5, "_sdwa")) n -= 5, i->sdwa = 1;
  return find_op(plain, n);
}

static bool operands(amd_module *m, amd_ins *i, const words *w) {
  const char *t = i->op->types;
  int part = 0, sources = 0;
  bool maybe = *t == '?';
  if (maybe) t++;
  for (const char *s = t + 1; *s; s++) sources += *s != '=';
  i->result = *t;
  bool missing = maybe && w->n == sources;
  if (*t != '-' && !missing &&
      (part >= w->n || !amd_operand_of(m, w->part[part++], *t, true, &i->d)))
    return false;
  for (t++; *t; t++) {
    if (*t == 'M') {
      if (part >= w->n || !amd_operand_of(m, w->part[part++], 'M', true, &i->carry)) return false;
      continue;
    }
    if (*t == 'k') {
      char *end = NULL;
      if (part < w->n) i->immediate = (int16_t)strtol(w->part[part++], &end, 0);
      if (!end || *end) return false;
      continue;
    }
    i->source[i->n] = *t == '=' ? i->result : *t;
    if (*t == 'm') i->mask = (uint8_t)(i->n + 1);
    amd_operand *o = &i->s[i->n++];
    if (*t == '=') *o = i->d, o->neg = o->abs = 0;
    else if (part == w->n && *t == 'm')
      *o = (amd_operand){.where = AMD_SCALAR, .index = AMD_VCC, .words = (uint8_t)(1 + m->wide)};
    else if (part >= w->n || !amd_operand_of(m, w->part[part++], *t, false, o)) return false;
  }
  return part == w->n;
}

/* Halves of 16-bit operands are selections, as with SDWA; gfx11 keeps the result's other half, gfx9
   clears it. */
static void halves(const amd_module *m, amd_ins *i) {
  const char *t = i->op->types;
  bool result = *t == 'h' || *t == 'w';
  int n = 0;
  if (i->sdwa || *t == 'x') return;
  for (const char *s = t + 1; *s; s++, n++)
    if (*s == 'h' || *s == 'w') {
      if (i->s[n].low && i->s[n].where != AMD_CONSTANT) i->s[n].select = AMD_WORD_1;
      i->s[n].low = 0;
    }
  if (!result) return;
  if (i->s[n].low) i->select = AMD_WORD_1, i->keep = 1;
  else if (!m->wide) i->select = AMD_WORD_0, i->keep = 1;
  i->s[n].low = 0;
}

static bool is_plain(const amd_ins *i) {
  bool plain = !i->omod && !i->clamp && !i->select;
  for (int k = 0; k < i->n; k++)
    plain &= !i->s[k].neg && !i->s[k].abs && !i->s[k].select && !i->s[k].sext;
  return plain;
}

/* One instruction; an unknown one fails when it is run. */
static void instruction(amd_module *m, amd_ins *i, char *s) {
  words w = {0};
  char *rest = s + strcspn(s, " \t");
  if (*rest) *rest++ = 0;
  i->run = amd_run_unknown;
  i->op = op_of(s, i);
  if (!i->op) return;
  if (i->op->run == amd_run_nothing) {
    i->run = amd_run_nothing;
    return;
  }
  bool good = split(rest, &w);
  good = good && operands(m, i, &w);
  for (int k = 0; k < 4; k++)
    i->s[k].high = !strchr(i->op->types, 'x'); /* the default of op_sel_hi */
  for (int k = 0; good && k < w.modifiers; k++) good = amd_modifier(i, w.modifier[k]);
  if (good && !strncmp(i->op->name, "s_", 2)) good = !w.modifiers || i->op->bytes;
  if (!good) return;
  halves(m, i);
  i->plain = is_plain(i);
  i->lanes = i->op->lanes;
  i->run = i->op->run;
  if (i->run == amd_run_vector && i->plain) i->run = amd_run_vector_plain;
  if (i->d.where == AMD_SCALAR && (i->d.index == AMD_EXEC || i->d.index == AMD_EXEC + 1))
    i->exec = 1;
}

static bool reads(const amd_ins *i, amd_operand o) {
  bool found = false;
  for (int k = 0; k < i->n; k++) found |= i->s[k].where == AMD_VECTOR && i->s[k].index == o.index;
  return found;
}

static void pair_up(amd_ins *i) {
  bool second = reads(i->pair, i->d), first = reads(i, i->pair->d);
  i->crossed = !second ? 0 : first ? 2 : 1;
  i->solo = i->run;
  i->run = amd_run_pair;
}

static bool line(amd_module *m, char *s, amd_ins *i) {
  char work[512], *comment = strstr(s, "//");
  if (*s != '\t' || !comment) return false;
  *i = (amd_ins){.text = s + 1, .address = strtoull(comment + 2, NULL, 16)};
  while (comment > s && (comment[-1] == ' ' || comment[-1] == '\t')) comment--;
  *comment = 0;
  snprintf(work, sizeof work, "%s", s + 1);
  char *second = strstr(work, " :: ");
  if (second) *second = 0;
  if (second && (i->pair = calloc(1, sizeof *i->pair))) {
    i->pair->text = i->text;
    instruction(m, i->pair, second + 4);
  }
  instruction(m, i, work);
  if (second && (!i->pair || i->run == amd_run_unknown || i->pair->run == amd_run_unknown))
    i->run = amd_run_unknown;
  else if (second) pair_up(i);
  return true;
}

/* ---- the whole ---- */

static int index_of(const amd_module *m, uint64_t address) {
  int low = 0, high = m->n_ins;
  while (low < high) {
    int middle = (low + high) / 2;
    if (m->ins[middle].address < address) low = middle + 1;
    else high = middle;
  }
  return low < m->n_ins && m->ins[low].address == address ? low : -1;
}

static int awake(const amd_module *m, int at) {
  while (at >= 0 && at < m->n_ins && m->ins[at].run == amd_run_nothing) at++;
  return at < m->n_ins ? at : -1;
}

static void link_up(amd_module *m) {
  for (int k = 0; k < m->n_ins; k++) {
    amd_ins *i = &m->ins[k];
    i->next = awake(m, k + 1);
    i->target = i->op && i->op->types[0] == '-' && i->op->types[1] == 'k'
                    ? awake(m, index_of(m, i->address + 4 + 4 * (uint64_t)(int64_t)i->immediate))
                    : -1;
  }
}

bool amd_decode(amd_module *m, const void *binary, size_t bytes, char *error, size_t size) {
  int lines = 1;
  m->listing = disassemble(binary, bytes);
  if (!m->listing || !strstr(m->listing, "Disassembly"))
    return snprintf(error, size, "llvm-objdump-19 does not list the code object"), false;
  for (const char *s = m->listing; *s; s++) lines += *s == '\n';
  m->ins = calloc((size_t)lines, sizeof *m->ins);
  if (!m->ins) return snprintf(error, size, "no memory for %d instructions", lines), false;
  for (char *s = m->listing, *end; s; s = end) {
    end = strchr(s, '\n');
    if (end) *end++ = 0;
    m->n_ins += line(m, s, &m->ins[m->n_ins]);
  }
  link_up(m);
  for (int k = 0; k < m->n_kernels; k++) {
    int at = awake(m, index_of(m, m->kernels[k].entry));
    if (at < 0)
      return snprintf(error, size, "the listing has nothing at %s", m->kernels[k].name), false;
    m->kernels[k].first = at;
  }
  return true;
}
