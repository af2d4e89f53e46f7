/* tools/common/structure.c - atoms from files: extended XYZ, GROMACS, PDB. */
#include "tools/common/structure_reader.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_LINE = STRUCTURE_LINE, MAX_FIELD = STRUCTURE_FIELD };
typedef structure_reader reader;

bool structure_fail(reader *r, const char *format, ...) {
  int n = snprintf(r->error, r->size, r->line_number ? "%s, line %lld: " : "%s: ", r->path,
                   (long long)r->line_number);
  va_list args;
  va_start(args, format);
  if (n >= 0 && (size_t)n < r->size) vsnprintf(r->error + n, r->size - (size_t)n, format, args);
  va_end(args);
  return false;
}

/* ---- lines and words ---- */

bool structure_line(reader *r) {
  r->error[0] = 0;
  size_t n = 0;
  int c;
  while ((c = getc(r->file)) != EOF && c != '\n') {
    if (!c || n == MAX_LINE - 1)
      return r->line_number++,
             structure_fail(r, "a zero byte, or over %d bytes: this is no text file of atoms",
                            MAX_LINE - 1);
    r->line[n++] = (char)c;
  }
  if (ferror(r->file)) return structure_fail(r, "%s", strerror(errno));
  if (c == EOF && !n) return false;
  r->line_number++;
  n -= n && r->line[n - 1] == '\r';
  r->line[n] = 0;
  return true;
}

bool structure_want_line(reader *r, const char *what) {
  if (structure_line(r)) return true;
  return r->error[0] ? false : structure_fail(r, "the file ends here, before %s", what);
}

/* Columns [first, last] of the line, counted from 1 as in the formats, without surrounding
 blanks. */
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

const char *structure_word(const char **at, char field[MAX_FIELD]) {
  *at += strspn(*at, " \t");
  size_t n = strcspn(*at, " \t");
  if (!n || n >= MAX_FIELD) return NULL;
  memcpy(field, *at, n);
  field[n] = 0;
  *at += n;
  return field;
}

bool structure_number(const char *text, double *x) {
  char *end;
  *x = strtod(text, &end);
  return end != text && !*end && isfinite(*x);
}

int structure_numbers(const char *text, int max, double *x) {
  char field[MAX_FIELD];
  int n = 0;
  while (text[strspn(text, " \t")]) {
    const char *w = structure_word(&text, field);
    if (!w || n == max || !structure_number(w, &x[n++])) return -1;
  }
  return n;
}

int64_t structure_count(const char *text) {
  double x;
  return structure_numbers(text, 1, &x) == 1 && x >= 0 && x <= INT32_MAX && x == floor(x)
             ? (int64_t)x
             : -1;
}

/* ---- atoms ---- */

bool structure_add(reader *r, int32_t element, const double x[3]) {
  structure *s = r->s;
  if (s->n == r->capacity) { /* grows with what has been read, never by what a file claims */
    int64_t capacity = r->capacity ? 2 * r->capacity : 256;
    double *positions = realloc(s->positions, (size_t)capacity * 3 * sizeof *positions);
    if (positions) s->positions = positions;
    int32_t *elements = realloc(s->numbers, (size_t)capacity * sizeof *elements);
    if (elements) s->numbers = elements;
    if (!positions || !elements)
      return structure_fail(r, "out of memory for %lld atoms", (long long)capacity);
    r->capacity = capacity;
  }
  memcpy(s->positions + 3 * s->n, x, 3 * sizeof *x);
  s->numbers[s->n++] = element;
  return true;
}

int32_t structure_element(const char *symbol) {
  for (int32_t z = 1; z <= CLB_ELEMENTS; z++)
    if (!strcasecmp(symbol, clb_element_symbols[z])) return z;
  return 0;
}

/* The element of an atom that has only a name: an ion has the name of its residue, all other names
   start with the element's letter. */
static int32_t element_of_name(const char *name, const char *residue) {
  char symbol[MAX_FIELD];
  snprintf(symbol, sizeof symbol, "%s", name + strspn(name, "0123456789"));
  const size_t letters = strlen(symbol);
  if (*residue && !strcasecmp(name, residue))
    symbol[strcspn(symbol, "0123456789+-")] = 0; /* drops the charge of "Na+", "CA2+" */
  else if (letters == 2 && !strncasecmp(symbol, residue, 2) && structure_element(symbol))
    return 0; /* CL of CLA: chlorine or carbon? */
  else if (*symbol) symbol[1] = 0;
  return structure_element(symbol);
}

static bool no_element(reader *r, const char *name, const char *residue) {
  return structure_fail(r, "atom '%s' of residue '%s' does not tell its element", name, residue);
}

/* ---- GROMACS: nm ---- */

/* Columns: 6-10 residue, 11-15 atom, from 21 on three coordinates, as wide as the distance of their
   decimal points. */
static bool read_gro_atom(reader *r) {
  char name[MAX_FIELD], residue[MAX_FIELD], field[MAX_FIELD];
  size_t n = strlen(r->line);
  const char *point = n > 20 ? strchr(r->line + 20, '.') : NULL,
             *next = point ? strchr(point + 1, '.') : NULL;
  int width = next ? (int)(next - point) : 0;
  if (width < 3 || width > 40 || n < 20 + 3 * (size_t)width)
    return structure_fail(r, "three coordinates in equal columns are wanted from column 21 on");
  double x[3];
  for (int k = 0; k < 3; k++) {
    if (!structure_number(columns(r->line, 21 + k * width, 20 + (k + 1) * width, field), &x[k]))
      return structure_fail(r, "'%s' is no finite number", field);
    x[k] *= 10;
  }
  columns(r->line, 6, 10, residue);
  int32_t element = element_of_name(columns(r->line, 11, 15, name), residue);
  return element ? structure_add(r, element, x) : no_element(r, name, residue);
}

static bool read_gro(reader *r) {
  if (!structure_want_line(r, "the title") || !structure_want_line(r, "the number of atoms"))
    return false;
  int64_t n = structure_count(r->line);
  if (n < 0)
    return structure_fail(r, "the second line is the number of atoms, not '%.60s'", r->line);
  for (int64_t i = 0; i < n; i++) {
    char what[64];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)n);
    if (!structure_want_line(r, what) || !read_gro_atom(r)) return false;
  }
  if (!structure_want_line(r, "the box")) return false;
  /* v1(x) v2(y) v3(z) v1(y) v1(z) v2(x) v2(z) v3(x) v3(y); all 0 if there is no box */
  static const int place[9] = {0, 4, 8, 1, 2, 3, 5, 6, 7};
  double box[9] = {0};
  int found = structure_numbers(r->line, 9, box);
  if (found != 3 && found != 9)
    return structure_fail(r, "the box is 3 or 9 numbers, not '%.200s'", r->line);
  bool any = false;
  for (int i = 0; i < 9; i++) any = any || box[i] != 0;
  for (int d = 0; d < 3 && any; d++)
    if (!(box[d] > 0))
      return structure_fail(r,
                            "the box is %g Angstrom along %c; its first three numbers must be "
                            "positive, or all numbers 0 for none",
                            10 * box[d], "xyz"[d]);
  for (int i = 0; i < 9; i++) r->s->cell[place[i] / 3][place[i] % 3] = 10 * box[i];
  for (int d = 0; d < 3; d++) r->s->periodic[d] = any;
  return true;
}

/* ---- PDB ---- */

/* a is along x, b in the xy plane. */
static bool read_cryst1(reader *r) {
  static const struct {
    int first, last;
  } at[6] = {{7, 15}, {16, 24}, {25, 33}, {34, 40}, {41, 47}, {48, 54}};
  char field[MAX_FIELD];
  double v[6], c[3];
  for (int i = 0; i < 6; i++)
    if (!structure_number(columns(r->line, at[i].first, at[i].last, field), &v[i]) || v[i] <= 0 ||
        (i > 2 && v[i] >= 180))
      return structure_fail(r,
                            "CRYST1 has three lengths over 0 and three angles between 0 and 180 in "
                            "columns 7 to 54, not '%s'",
                            field);
  if (v[0] == 1 && v[1] == 1 && v[2] == 1) return true; /* used for structures without a cell */
  for (int i = 0; i < 3; i++) c[i] = v[3 + i] == 90 ? 0 : cos(v[3 + i] * acos(-1) / 180);
  double s = sqrt(1 - c[2] * c[2]), x = c[1], y = (c[0] - c[1] * c[2]) / s, z = 1 - x * x - y * y;
  if (!(z > 1e-12))
    return structure_fail(r, "no cell has the angles %g, %g and %g", v[3], v[4], v[5]);
  const double cell[3][3] = {
      {v[0], 0, 0}, {v[1] * c[2], v[1] * s, 0}, {v[2] * x, v[2] * y, v[2] * sqrt(z)}};
  memcpy(r->s->cell, cell, sizeof cell);
  for (int d = 0; d < 3; d++) r->s->periodic[d] = true;
  return true;
}

/* Of the alternate locations (column 17) of a residue (22-27) the first in the file is kept. */
static bool alternate(reader *r, char place[MAX_FIELD], char residue[MAX_FIELD]) {
  char here[MAX_FIELD], which[MAX_FIELD];
  columns(r->line, 22, 27, here);
  columns(r->line, 17, 17, which);
  if (strcmp(here, residue) != 0) {
    strcpy(residue, here);
    *place = 0;
  }
  if (*which && !*place) *place = *which;
  if (!*which || *which == *place) return false;
  r->s->alternates++;
  return true;
}

/* Columns: 13-16 atom, 18-20 residue, 31-38, 39-46 and 47-54 coordinates, 77-78 element. */
static bool read_pdb_atom(reader *r) {
  char name[MAX_FIELD], residue[MAX_FIELD], field[MAX_FIELD];
  double x[3];
  for (int k = 0; k < 3; k++)
    if (!structure_number(columns(r->line, 31 + 8 * k, 38 + 8 * k, field), &x[k]))
      return structure_fail(r, "columns %d to %d are a coordinate, not '%s'", 31 + 8 * k,
                            38 + 8 * k, field);
  columns(r->line, 13, 16, name);
  columns(r->line, 18, 20, residue);
  bool given = *columns(r->line, 77, 78, field);
  int32_t element = given ? structure_element(field) : element_of_name(name, residue);
  if (given && !element)
    return structure_fail(r, "columns 77 to 78 are a chemical symbol, not '%s'", field);
  return element ? structure_add(r, element, x) : no_element(r, name, residue);
}

static bool read_pdb(reader *r) {
  char place[MAX_FIELD] = "", residue[MAX_FIELD] = "";
  while (structure_line(r)) {
    bool good = true, hetatm = !strncmp(r->line, "HETATM", 6);
    if (!strncmp(r->line, "CRYST1", 6)) good = read_cryst1(r);
    else if (!strncmp(r->line, "ATOM  ", 6) || (hetatm && !r->atoms_only))
      good = alternate(r, place, residue) || read_pdb_atom(r);
    else if (!strncmp(r->line, "END", 3) && r->s->n)
      break; /* END, ENDMDL: end of the first
                model */
    if (!good) return false;
  }
  if (r->error[0]) return false;
  return r->s->n || structure_fail(r, "there are no atoms in this file");
}

/* ---- all formats ---- */

static double across(const double a[3], const double b[3],
                     double c[3]) { /* c = a x b; its length */
  for (int k = 0; k < 3; k++)
    c[k] = a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3];
  return sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
}

/* Checks that the periodic vectors span a volume, and that in each direction an atom fits into the
   cell. */
static bool check_cell(reader *r) {
  static const double min = 0.5, flat = 1e-6; /* Angstrom; volume of unit vectors */
  double unit[3][3], length[3], normal[3], volume = 1, area[3] = {1, 1, 1};
  int n = 0, which[3];
  r->line_number = r->cell_line;
  for (int d = 0; d < 3; d++) {
    const double *a = r->s->cell[d];
    if (!r->s->periodic[d]) continue;
    length[n] = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    if (!(length[n] > 0 && isfinite(length[n])))
      return structure_fail(r, "vector %c of the cell is %g Angstrom long", 'a' + d, length[n]);
    for (int k = 0; k < 3; k++) unit[n][k] = a[k] / length[n];
    which[n++] = d;
  }
  if (n == 2) volume = across(unit[0], unit[1], normal);
  for (int i = 0; i < n && n == 3; i++)
    area[i] = across(unit[(i + 1) % 3], unit[(i + 2) % 3], normal);
  if (n == 3)
    volume = fabs(unit[2][0] * normal[0] + unit[2][1] * normal[1] + unit[2][2] * normal[2]);
  if (!(volume > flat))
    return structure_fail(r, "the cell is singular: its periodic vectors must span a volume");
  for (int i = 0; i < n; i++)
    if (length[i] * volume / area[i] < min)
      return structure_fail(r,
                            "the cell is only %g Angstrom high along vector %c; an atom needs %g",
                            length[i] * volume / area[i], 'a' + which[i], min);
  return true;
}

static bool (*format_of(const char *path))(reader *) {
  static const struct {
    const char *ending;
    bool (*read)(reader *);
  } formats[] = {{".xyz", structure_read_xyz},
                 {".extxyz", structure_read_xyz},
                 {".gro", read_gro},
                 {".pdb", read_pdb},
                 {".ent", read_pdb}};
  const char *dot = strrchr(path, '.');
  for (size_t i = 0; dot && i < sizeof formats / sizeof *formats; i++)
    if (!strcasecmp(dot, formats[i].ending)) return formats[i].read;
  return NULL;
}

/* A reader of an open file; NULL, with an error, if it cannot be opened. */
static reader *open_reader(const char *path, bool (*read)(reader *), char *error, size_t size) {
  reader *r = calloc(1, sizeof *r);
  if (!r) {
    snprintf(error, size, "%s: out of memory", path);
    return NULL;
  }
  *r = (reader){.path = path, .error = error, .size = size};
  if (!read) structure_fail(r, "the name of a structure ends in .xyz, .extxyz, .gro, .pdb or .ent");
  else if (!(r->file = fopen(path, "r"))) structure_fail(r, "%s", strerror(errno));
  if (r->file) return r;
  free(r);
  return NULL;
}

bool structure_read(const char *path, bool atoms_only, structure *s, char *error, size_t size) {
  bool (*read)(reader *) = format_of(path);
  *s = (structure){0};
  reader *r = open_reader(path, read, error, size);
  if (!r) return false;
  r->atoms_only = atoms_only;
  r->s = s;
  const bool good = read(r) && check_cell(r);
  fclose(r->file);
  free(r);
  if (!good) structure_free(s);
  return good;
}

struct structure_frames {
  reader r;
};

structure_frames *structure_frames_open(const char *path, char *error, size_t size) {
  bool (*read)(reader *) = format_of(path);
  if (read && read != structure_read_xyz) {
    snprintf(error, size, "%s: only files of extended XYZ (.xyz, .extxyz) are read frame by frame",
             path);
    return NULL;
  }
  return (structure_frames *)open_reader(path, read, error, size);
}

int structure_frames_next(structure_frames *f, structure *s) {
  reader *r = &f->r;
  *s = (structure){0};
  r->s = s;
  r->capacity = 0;
  int found = structure_read_frame(r);
  const int64_t last = r->line_number;
  if (found == 1 && !check_cell(r)) found = -1;
  r->line_number = last;
  if (found != 1) structure_free(s);
  return found;
}

void structure_frames_close(structure_frames *f) {
  if (f) fclose(f->r.file);
  free(f);
}

void structure_free(structure *s) {
  free(s->positions);
  free(s->numbers);
  *s = (structure){0};
}
