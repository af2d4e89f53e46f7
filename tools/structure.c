/* structure.c - atoms from files: extended XYZ, GROMACS, PDB. */
#include "structure.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LINE = 1 << 16, MAX_FIELD = 64 };

typedef struct {
  FILE *file;
  const char *path;
  int64_t line_number, room; /* room: of atoms */
  bool atoms_only;
  structure *s;
  char line[MAX_LINE];
  char *error;
  size_t size;
} reader;

static bool fail(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(reader *r, const char *format, ...) {
  int n = snprintf(r->error, r->size, r->line_number ? "%s, line %lld: " : "%s: ", r->path, (long long)r->line_number);
  va_list args;
  va_start(args, format);
  if (n >= 0 && (size_t)n < r->size) vsnprintf(r->error + n, r->size - (size_t)n, format, args);
  va_end(args);
  return false;
}

/* ---- lines and words ---- */

/* The next line, without its end.  false at the end of the file, or with an error. */
static bool next_line(reader *r) {
  r->error[0] = 0;
  size_t n = 0;
  int c;
  while ((c = getc(r->file)) != EOF && c != '\n') {
    if (!c || n == MAX_LINE - 1) return r->line_number++, fail(r, "a zero byte, or over %d bytes: this is no text file of atoms", MAX_LINE - 1);
    r->line[n++] = (char)c;
  }
  if (ferror(r->file)) return fail(r, "%s", strerror(errno));
  if (c == EOF && !n) return false;
  r->line_number++;
  n -= n && r->line[n - 1] == '\r';
  r->line[n] = 0;
  return true;
}

/* As next_line, where a line must come. */
static bool want_line(reader *r, const char *what) {
  if (next_line(r)) return true;
  return r->error[0] ? false : fail(r, "the file ends here, before %s", what);
}

/* Columns [first, last] of the line, counted from 1 as the formats do, without blanks around them. */
static const char *columns(const char *line, int first, int last, char field[MAX_FIELD]) {
  size_t n = strlen(line), begin = (size_t)first - 1, end = (size_t)last < n ? (size_t)last : n;
  while (begin < end && isspace((unsigned char)line[begin])) begin++;
  while (begin < end && isspace((unsigned char)line[end - 1])) end--;
  n = begin < end ? end - begin : 0;
  if (n > MAX_FIELD - 1) n = MAX_FIELD - 1;
  memcpy(field, line + (n ? begin : 0), n);
  field[n] = 0;
  return field;
}

/* The next word after *at, which moves on; NULL: none, or too long a one. */
static const char *word(const char **at, char field[MAX_FIELD]) {
  *at += strspn(*at, " \t");
  size_t n = strcspn(*at, " \t");
  if (!n || n >= MAX_FIELD) return NULL;
  memcpy(field, *at, n);
  field[n] = 0;
  *at += n;
  return field;
}

static bool number(const char *text, double *x) {
  char *end;
  *x = strtod(text, &end);
  return end != text && !*end && isfinite(*x);
}

/* All the numbers of the text, at most `most`; returns how many, -1 if there are more or something else stands there. */
static int numbers(const char *text, int most, double *x) {
  char field[MAX_FIELD];
  int n = 0;
  while (text[strspn(text, " \t")]) {
    const char *w = word(&text, field);
    if (!w || n == most || !number(w, &x[n++])) return -1;
  }
  return n;
}

static int64_t count(const char *text) { /* -1: no number of atoms */
  double x;
  return numbers(text, 1, &x) == 1 && x >= 0 && x <= INT32_MAX && x == floor(x) ? (int64_t)x : -1;
}

/* ---- atoms ---- */

static bool add_atom(reader *r, int32_t element, const double x[3]) {
  structure *s = r->s;
  if (s->n == r->room) { /* by what was read, never by what a file says of itself */
    int64_t room = r->room ? 2 * r->room : 256;
    double *positions = realloc(s->positions, (size_t)room * 3 * sizeof *positions);
    if (positions) s->positions = positions;
    int32_t *elements = realloc(s->numbers, (size_t)room * sizeof *elements);
    if (elements) s->numbers = elements;
    if (!positions || !elements) return fail(r, "out of memory for %lld atoms", (long long)room);
    r->room = room;
  }
  memcpy(s->positions + 3 * s->n, x, 3 * sizeof *x);
  s->numbers[s->n++] = element;
  return true;
}

static int32_t element_of(const char *symbol) { /* 0: none; any case */
  for (int32_t z = 1; z <= CLB_ELEMENTS; z++)
    if (!strcasecmp(symbol, clb_element_symbols[z])) return z;
  return 0;
}

/* The element of an atom that has a name only: an ion is called like its residue, all others start with their element's letter. */
static int32_t element_of_name(const char *name, const char *residue) {
  char symbol[MAX_FIELD];
  snprintf(symbol, sizeof symbol, "%s", name + strspn(name, "0123456789"));
  if (*residue && !strcasecmp(name, residue)) symbol[strcspn(symbol, "0123456789+-")] = 0; /* of "Na+", "CA2+" the charge */
  else if (*symbol) symbol[1] = 0;
  return element_of(symbol);
}

static bool no_element(reader *r, const char *name, const char *residue) {
  return fail(r, "atom '%s' of residue '%s' does not tell its element", name, residue);
}

/* ---- extended XYZ ---- */

/* Columns of an atom's line, from 0. */
typedef struct {
  int species, pos, all;
} xyz_columns;

/* The value of key="..." in a comment line; NULL: none. */
static char *value_of(const char *line, const char *key, bool *broken) {
  *broken = false;
  for (const char *at = line; *(at += strspn(at, " \t"));) {
    size_t name = strcspn(at, " \t=");
    const char *value = at + name;
    value += *value == '=';
    char quote = value == at + name ? 0 : *value == '{' ? '}' : *value == '"' || *value == '\'' ? *value : 0;
    const char *end = value;
    if (quote)
      for (end = ++value; *end && *end != quote; end++) end += *end == '\\' && end[1];
    else if (value > at + name) end += strcspn(value, " \t");
    if (quote && !*end) return *broken = true, NULL;
    if (name == strlen(key) && !strncasecmp(at, key, name) && value > at + name) return strndup(value, (size_t)(end - value));
    at = end + (quote != 0);
  }
  return NULL;
}

/* "species:S:1:pos:R:3:...": names, types and widths. */
static bool read_properties(reader *r, const char *text, xyz_columns *c) {
  *c = (xyz_columns){.species = -1, .pos = -1};
  for (const char *at = text; *at;) {
    char name[MAX_FIELD], type;
    int n, used = 0;
    if (sscanf(at, "%63[^:]:%c:%4d%n", name, &type, &n, &used) != 3 || !strchr("SRIL", type) || n < 1 || (at[used] && at[used] != ':'))
      return fail(r, "Properties are name:type:count:..., type S, R, I or L, not '%.60s'", at);
    if (!strcmp(name, "species") && type == 'S' && n == 1) c->species = c->all;
    if (!strcmp(name, "pos") && type == 'R' && n == 3) c->pos = c->all;
    if ((c->all += n) > MAX_LINE) return fail(r, "Properties have too many columns");
    at += used + (at[used] == ':');
  }
  return (c->species >= 0 && c->pos >= 0) || fail(r, "Properties lack species:S:1 or pos:R:3");
}

static bool read_flags(const char *text, bool flags[3]) {
  char field[MAX_FIELD];
  for (int d = 0; d < 3; d++) {
    const char *w = word(&text, field);
    bool yes = w && (!strcasecmp(w, "T") || !strcasecmp(w, "true") || !strcmp(w, "1"));
    if (!yes && !(w && (!strcasecmp(w, "F") || !strcasecmp(w, "false") || !strcmp(w, "0")))) return false;
    flags[d] = yes;
  }
  return !text[strspn(text, " \t")];
}

static bool read_comment(reader *r, xyz_columns *c) {
  static const char *const keys[] = {"Lattice", "pbc", "Properties"};
  char *value[3] = {0};
  bool broken = false, good = false;
  for (int i = 0; i < 3 && !broken; i++) value[i] = value_of(r->line, keys[i], &broken);
  if (broken) fail(r, "a value in this line lacks its closing quote");
  else if (value[0] && numbers(value[0], 9, r->s->cell[0]) != 9) fail(r, "Lattice is nine numbers in quotes, not '%.200s'", value[0]);
  else {
    for (int d = 0; d < 3; d++) r->s->periodic[d] = value[0];
    if (value[1] && !read_flags(value[1], r->s->periodic)) fail(r, "pbc is three of T and F in quotes, not '%.60s'", value[1]);
    else if (!value[0] && (r->s->periodic[0] || r->s->periodic[1] || r->s->periodic[2])) fail(r, "pbc says periodic, but there is no Lattice");
    else good = read_properties(r, value[2] ? value[2] : "species:S:1:pos:R:3", c);
  }
  for (int i = 0; i < 3; i++) free(value[i]);
  return good;
}

static bool read_xyz(reader *r) {
  xyz_columns c;
  if (!want_line(r, "the number of atoms")) return false;
  int64_t n = count(r->line);
  if (n < 0) return fail(r, "the first line is the number of atoms, not '%.60s'", r->line);
  if (!want_line(r, "the comment line") || !read_comment(r, &c)) return false;
  for (int64_t i = 0; i < n; i++) {
    char what[64], field[MAX_FIELD];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)n);
    if (!want_line(r, what)) return false;
    const char *at = r->line, *w;
    int32_t element = 0;
    double x[3];
    for (int k = 0; k < c.all; k++) {
      if (!(w = word(&at, field))) return fail(r, "%s has %d of %d columns", what, k, c.all);
      if (k == c.species && !(element = element_of(w))) return fail(r, "'%s' is no chemical symbol", w);
      if (k >= c.pos && k < c.pos + 3 && !number(w, &x[k - c.pos])) return fail(r, "'%s' is no finite number", w);
    }
    if (at[strspn(at, " \t")]) return fail(r, "%s has more than %d columns", what, c.all);
    if (!add_atom(r, element, x)) return false;
  }
  return true;
}

/* ---- GROMACS: nm ---- */

/* Columns: 6-10 residue, 11-15 atom, from 21 on three coordinates as wide as their points are apart. */
static bool read_gro_atom(reader *r) {
  char name[MAX_FIELD], residue[MAX_FIELD], field[MAX_FIELD];
  size_t n = strlen(r->line);
  const char *point = n > 20 ? strchr(r->line + 20, '.') : NULL, *next = point ? strchr(point + 1, '.') : NULL;
  int width = next ? (int)(next - point) : 0;
  if (width < 3 || width > 40 || n < 20 + 3 * (size_t)width) return fail(r, "three coordinates in equal columns are wanted from column 21 on");
  double x[3];
  for (int k = 0; k < 3; k++) {
    if (!number(columns(r->line, 21 + k * width, 20 + (k + 1) * width, field), &x[k])) return fail(r, "'%s' is no finite number", field);
    x[k] *= 10;
  }
  columns(r->line, 6, 10, residue);
  int32_t element = element_of_name(columns(r->line, 11, 15, name), residue);
  return element ? add_atom(r, element, x) : no_element(r, name, residue);
}

static bool read_gro(reader *r) {
  if (!want_line(r, "the title") || !want_line(r, "the number of atoms")) return false;
  int64_t n = count(r->line);
  if (n < 0) return fail(r, "the second line is the number of atoms, not '%.60s'", r->line);
  for (int64_t i = 0; i < n; i++) {
    char what[64];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)n);
    if (!want_line(r, what) || !read_gro_atom(r)) return false;
  }
  if (!want_line(r, "the box")) return false;
  /* v1(x) v2(y) v3(z) v1(y) v1(z) v2(x) v2(z) v3(x) v3(y); all 0 where there is no box */
  static const int place[9] = {0, 4, 8, 1, 2, 3, 5, 6, 7};
  double box[9] = {0};
  int found = numbers(r->line, 9, box);
  if (found != 3 && found != 9) return fail(r, "the box is 3 or 9 numbers, not '%.200s'", r->line);
  bool any = false;
  for (int i = 0; i < 9; i++) {
    r->s->cell[place[i] / 3][place[i] % 3] = 10 * box[i];
    any = any || box[i] != 0;
  }
  for (int d = 0; d < 3; d++) r->s->periodic[d] = any;
  return true;
}

/* ---- PDB ---- */

/* a along x, b in the plane of x and y. */
static bool read_cryst1(reader *r) {
  static const struct {
    int first, last;
  } at[6] = {{7, 15}, {16, 24}, {25, 33}, {34, 40}, {41, 47}, {48, 54}};
  char field[MAX_FIELD];
  double v[6], c[3];
  for (int i = 0; i < 6; i++)
    if (!number(columns(r->line, at[i].first, at[i].last, field), &v[i]) || v[i] <= 0 || (i > 2 && v[i] >= 180))
      return fail(r, "CRYST1 has three lengths over 0 and three angles between 0 and 180 in columns 7 to 54, not '%s'", field);
  if (v[0] == 1 && v[1] == 1 && v[2] == 1) return true; /* of structures without a cell */
  for (int i = 0; i < 3; i++) c[i] = v[3 + i] == 90 ? 0 : cos(v[3 + i] * acos(-1) / 180);
  double s = sqrt(1 - c[2] * c[2]), x = c[1], y = (c[0] - c[1] * c[2]) / s, z = 1 - x * x - y * y;
  if (!(z > 1e-12)) return fail(r, "no cell has the angles %g, %g and %g", v[3], v[4], v[5]);
  const double cell[3][3] = {{v[0], 0, 0}, {v[1] * c[2], v[1] * s, 0}, {v[2] * x, v[2] * y, v[2] * sqrt(z)}};
  memcpy(r->s->cell, cell, sizeof cell);
  for (int d = 0; d < 3; d++) r->s->periodic[d] = true;
  return true;
}

/* Columns: 13-16 atom, 18-20 residue, 31-38, 39-46 and 47-54 coordinates, 77-78 element. */
static bool read_pdb_atom(reader *r) {
  char name[MAX_FIELD], residue[MAX_FIELD], field[MAX_FIELD];
  double x[3];
  for (int k = 0; k < 3; k++)
    if (!number(columns(r->line, 31 + 8 * k, 38 + 8 * k, field), &x[k])) return fail(r, "columns %d to %d are a coordinate, not '%s'", 31 + 8 * k, 38 + 8 * k, field);
  columns(r->line, 13, 16, name);
  columns(r->line, 18, 20, residue);
  bool given = *columns(r->line, 77, 78, field);
  int32_t element = given ? element_of(field) : element_of_name(name, residue);
  if (given && !element) return fail(r, "columns 77 to 78 are a chemical symbol, not '%s'", field);
  return element ? add_atom(r, element, x) : no_element(r, name, residue);
}

static bool read_pdb(reader *r) {
  while (next_line(r)) {
    bool good = true, hetatm = !strncmp(r->line, "HETATM", 6);
    if (!strncmp(r->line, "CRYST1", 6)) good = read_cryst1(r);
    else if (!strncmp(r->line, "ATOM  ", 6) || (hetatm && !r->atoms_only)) good = read_pdb_atom(r);
    else if (!strncmp(r->line, "END", 3) && r->s->n) break; /* END, ENDMDL: of the first model */
    if (!good) return false;
  }
  if (r->error[0]) return false;
  return r->s->n || fail(r, "there are no atoms in this file");
}

/* ---- any of them ---- */

static bool (*format_of(const char *path))(reader *) {
  static const struct {
    const char *ending;
    bool (*read)(reader *);
  } formats[] = {{".xyz", read_xyz}, {".extxyz", read_xyz}, {".gro", read_gro}, {".pdb", read_pdb}, {".ent", read_pdb}};
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
    if (!strcasecmp(dot, formats[i].ending)) return formats[i].read;
  return NULL;
}

bool structure_read(const char *path, bool atoms_only, structure *s, char *error, size_t size) {
  bool (*read)(reader *) = format_of(path), good = false;
  *s = (structure){0};
  reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(error, size, "%s: out of memory", path);
    return false;
  }
  *r = (reader){.path = path, .atoms_only = atoms_only, .s = s, .error = error, .size = size};
  if (!read) fail(r, "the name of a structure ends in .xyz, .extxyz, .gro, .pdb or .ent");
  else if (!(r->file = fopen(path, "r"))) fail(r, "%s", strerror(errno));
  else good = read(r);
  if (r->file) fclose(r->file);
  free(r);
  if (!good) structure_free(s);
  return good;
}

void structure_free(structure *s) {
  free(s->positions);
  free(s->numbers);
  *s = (structure){0};
}
