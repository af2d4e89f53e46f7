/* tools/common/structure_xyz.c - atoms from extended XYZ. */
#include <string.h>
#include <strings.h>

#include "tools/common/structure_reader.h"

/* Columns of an atom's line, from 0. */
typedef struct {
  int species, pos, all;
} xyz_columns;

/* An entry of the comment line: NAME = VALUE, with or without blanks around =, and with or without
   quotes around the value; or a single word (value NULL). */
typedef struct {
  const char *name;
  size_t name_bytes;
  char *value; /* ends when `end` is set to 0 */
  char *end;
} xyz_entry;

/* The next entry from *at on, which is advanced; false: there is none, or a quote is not closed
   (*broken). */
static bool next_entry(char **at, xyz_entry *e, bool *broken) {
  *at += strspn(*at, " \t");
  if (!**at) return false;
  *e = (xyz_entry){.name = *at, .name_bytes = strcspn(*at, " \t=")};
  char *s = *at + e->name_bytes, *sign = s + strspn(s, " \t");
  *at = s;
  if (*sign != '=') return true;
  s = sign + 1 + strspn(sign + 1, " \t");
  const char quote = *s == '{' ? '}' : *s == '"' || *s == '\'' ? *s : 0;
  e->value = s += quote != 0;
  if (quote)
    while (*s && *s != quote) s += 1 + (*s == '\\' && s[1]);
  else s += strcspn(s, " \t");
  if (quote && !*s) return !(*broken = true);
  e->end = s;
  *at = s + (quote != 0);
  return true;
}

static bool named(const xyz_entry *e, const char *name) {
  return strlen(name) == e->name_bytes && !strncasecmp(e->name, name, e->name_bytes);
}

/* Names that other programs use for a cell, which would be dropped without Lattice. */
static bool like_a_cell(const xyz_entry *e) {
  static const char *const starts[] = {"cell",      "unitcell", "unit_cell",
                                       "supercell", "box",      "lattice"};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    const size_t n = strlen(starts[i]);
    if (e->name_bytes >= n && !strncasecmp(e->name, starts[i], n))
      return e->value || !strcmp(starts[i], "lattice");
  }
  return false;
}

/* "species:S:1:pos:R:3:...": names, types and widths. */
static bool read_properties(structure_reader *r, const char *text, xyz_columns *c) {
  *c = (xyz_columns){.species = -1, .pos = -1};
  for (const char *at = text; *at;) {
    char name[STRUCTURE_FIELD], type;
    int n, used = 0;
    if (sscanf(at, "%63[^:]:%c:%4d%n", name, &type, &n, &used) != 3 || !strchr("SRIL", type) ||
        n < 1 || (at[used] && at[used] != ':'))
      return structure_fail(r, "Properties are name:type:count:..., type S, R, I or L, not '%.60s'",
                            at);
    if (!strcmp(name, "species") && type == 'S' && n == 1) c->species = c->all;
    if (!strcmp(name, "pos") && type == 'R' && n == 3) c->pos = c->all;
    if ((c->all += n) > STRUCTURE_LINE)
      return structure_fail(r, "Properties have too many columns");
    at += used + (at[used] == ':');
  }
  return (c->species >= 0 && c->pos >= 0) ||
         structure_fail(r, "Properties lack species:S:1 or pos:R:3");
}

static bool read_flags(const char *text, bool flags[3]) {
  char field[STRUCTURE_FIELD];
  for (int d = 0; d < 3; d++) {
    const char *w = structure_word(&text, field);
    bool yes = w && (!strcasecmp(w, "T") || !strcasecmp(w, "true") || !strcmp(w, "1"));
    if (!yes && !(w && (!strcasecmp(w, "F") || !strcasecmp(w, "false") || !strcmp(w, "0"))))
      return false;
    flags[d] = yes;
  }
  return !text[strspn(text, " \t")];
}

enum { LATTICE, PBC, PROPERTIES, XYZ_KEYS };

/* Finds the values of the keys in the comment line, and ends them with 0. */
static bool find_values(structure_reader *r, char *value[XYZ_KEYS]) {
  static const char *const keys[XYZ_KEYS] = {"Lattice", "pbc", "Properties"};
  char *at = r->line, *end[XYZ_KEYS] = {0};
  bool broken = false;
  xyz_entry e, cell = {0};
  while (next_entry(&at, &e, &broken)) {
    int key = 0;
    while (key < XYZ_KEYS && !(e.value && named(&e, keys[key]))) key++;
    if (key < XYZ_KEYS && value[key]) return structure_fail(r, "%s is there twice", keys[key]);
    if (key < XYZ_KEYS) value[key] = e.value, end[key] = e.end;
    else if (like_a_cell(&e)) cell = e;
  }
  if (broken) return structure_fail(r, "a value in this line lacks its closing quote");
  if (cell.name && !value[LATTICE])
    return structure_fail(r,
                          cell.value ? "a cell is called Lattice in extended XYZ, not '%.*s'"
                                     : "'%.*s' stands here without = and nine numbers in quotes",
                          (int)(cell.name_bytes < 60 ? cell.name_bytes : 60), cell.name);
  for (int key = 0; key < XYZ_KEYS; key++)
    if (end[key]) *end[key] = 0;
  return true;
}

static bool read_comment(structure_reader *r, xyz_columns *c) {
  char *value[XYZ_KEYS] = {0};
  structure *s = r->s;
  if (!find_values(r, value)) return false;
  if (value[LATTICE] && structure_numbers(value[LATTICE], 9, s->cell[0]) != 9)
    return structure_fail(r, "Lattice is nine numbers in quotes, not '%.200s'", value[LATTICE]);
  for (int d = 0; d < 3; d++) s->periodic[d] = value[LATTICE];
  if (value[PBC] && !read_flags(value[PBC], s->periodic))
    return structure_fail(r, "pbc is three of T and F in quotes, not '%.60s'", value[PBC]);
  if (!value[LATTICE] && (s->periodic[0] || s->periodic[1] || s->periodic[2]))
    return structure_fail(r, "pbc says periodic, but there is no Lattice");
  return read_properties(r, value[PROPERTIES] ? value[PROPERTIES] : "species:S:1:pos:R:3", c);
}

/* After the atoms there must be the next frame's number of atoms, or only blank lines. */
static bool check_end(structure_reader *r, int64_t n) {
  while (structure_line(r)) {
    if (!r->line[strspn(r->line, " \t")]) continue;
    return structure_count(r->line) >= 0 ||
           structure_fail(r, "there are more lines than the %lld atoms that line 1 tells of",
                          (long long)n);
  }
  return !r->error[0];
}

/* A frame whose number of atoms is the current line. */
static bool read_frame(structure_reader *r, int64_t *n) {
  xyz_columns c = {0};
  static const char mark[] = "\xef\xbb\xbf"; /* which some editors put at the start of a file */
  *n = structure_count(r->line + (r->line_number > 1 || strncmp(r->line, mark, 3) ? 0 : 3));
  if (*n < 0)
    return structure_fail(r, "the first line%s is the number of atoms, not '%.60s'",
                          r->line_number > 1 ? " of a frame" : "", r->line);
  if (!structure_want_line(r, "the comment line") || !read_comment(r, &c)) return false;
  for (int64_t i = 0; i < *n; i++) {
    char what[64], field[STRUCTURE_FIELD];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)*n);
    if (!structure_want_line(r, what)) return false;
    const char *at = r->line, *w;
    int32_t element = 0;
    double x[3];
    for (int k = 0; k < c.all; k++) {
      if (!(w = structure_word(&at, field)))
        return structure_fail(r, "%s has %d of %d columns", what, k, c.all);
      if (k == c.species && !(element = structure_element(w)))
        return structure_fail(r, "'%s' is no chemical symbol", w);
      if (k >= c.pos && k < c.pos + 3 && !structure_number(w, &x[k - c.pos]))
        return structure_fail(r, "'%s' is no finite number", w);
    }
    if (at[strspn(at, " \t")]) return structure_fail(r, "%s has more than %d columns", what, c.all);
    if (!structure_add(r, element, x)) return false;
  }
  return true;
}

bool structure_read_xyz(structure_reader *r) {
  int64_t n;
  return structure_want_line(r, "the number of atoms") && read_frame(r, &n) && check_end(r, n);
}

int structure_read_frame(structure_reader *r) {
  int64_t n;
  if (!r->cell_line && !structure_want_line(r, "the number of atoms")) return -1;
  while (r->cell_line) {
    if (!structure_line(r)) return r->error[0] ? -1 : 0;
    if (r->line[strspn(r->line, " \t")]) break;
  }
  r->cell_line = r->line_number + 1;
  return read_frame(r, &n) ? 1 : -1;
}
