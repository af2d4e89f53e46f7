/* tools/structures/structure_poscar.c - atoms from VASP's POSCAR and CONTCAR. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/structures/structure_elements.h"

enum { MAX_SPECIES = 256 };

typedef struct {
  structure_reader *r;
  int n; /* species */
  int32_t element[MAX_SPECIES];
  bool isotope[MAX_SPECIES];         /* called D or T */
  int64_t count[MAX_SPECIES], atoms; /* atoms: of all species */
  double scale[3];                   /* of x, y and z */
  bool cartesian, selective;
} poscar;

/* ---- cell ---- */

static double determinant(const double a[3][3]) {
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    sum += a[0][i] * (a[1][j] * a[2][k] - a[1][k] * a[2][j]);
  }
  return sum;
}

/* One factor, three of x, y and z, or a volume below 0. */
static bool read_scale(poscar *p, bool *volume) {
  double x[3];
  if (!structure_want_line(p->r, "the scale of the cell")) return false;
  const int n = structure_numbers(p->r->line, 3, x);
  *volume = n == 1 && x[0] < 0;
  for (int k = 0; k < 3; k++) p->scale[k] = n == 3 ? x[k] : x[0];
  return (n == 1 && x[0] != 0) || (n == 3 && x[0] > 0 && x[1] > 0 && x[2] > 0) ||
         structure_fail(p->r,
                        "line 2 of a POSCAR is the scale of the cell: a number, below 0 for a "
                        "volume, or three above 0; not '%.60s'",
                        p->r->line);
}

static bool read_cell(poscar *p) {
  structure_reader *r = p->r;
  double(*cell)[3] = r->s->cell;
  bool volume;
  if (!read_scale(p, &volume)) return false;
  for (int d = 0; d < 3; d++) {
    if (!structure_want_line(r, "the vectors of the cell")) return false;
    if (structure_numbers(r->line, 3, cell[d]) != 3)
      return structure_fail(r, "vector %c of the cell is three numbers, not '%.60s'", 'a' + d,
                            r->line);
    r->s->periodic[d] = true;
  }
  for (int k = 0; volume && k < 3; k++)
    p->scale[k] = cbrt(-p->scale[k] / fabs(determinant((const double(*)[3])cell)));
  if (!isfinite(p->scale[0])) return structure_fail(r, "a cell of a given volume is not singular");
  for (int k = 0; k < 9; k++) cell[k / 3][k % 3] *= p->scale[k % 3];
  return true;
}

/* ---- species ---- */

/* "Fe", or "Fe_pv" and "Fe/hash", which name a potential. */
static bool add_symbol(poscar *p, const char *word) {
  char symbol[STRUCTURE_FIELD];
  const size_t n = strcspn(word, "_/");
  memcpy(symbol, word, n);
  symbol[n] = 0;
  const int64_t isotopes = p->r->s->isotopes;
  const int32_t z = structure_element(p->r, symbol);
  if (z && p->n < MAX_SPECIES) {
    p->isotope[p->n] = p->r->s->isotopes > isotopes;
    p->r->s->isotopes = isotopes;
    p->element[p->n++] = z;
    return true;
  }
  return structure_fail(p->r,
                        z ? "'%s' is one species too many"
                          : "'%s' is not a chemical symbol; --elements NAME=SYMBOL says what it "
                            "means",
                        word);
}

static bool read_symbols(poscar *p) {
  char field[STRUCTURE_FIELD];
  const char *at = p->r->line;
  p->n = 0;
  for (const char *w; (w = structure_word(&at, field));)
    if (!add_symbol(p, w)) return false;
  return (p->n && !at[strspn(at, " \t")]) ||
         structure_fail(p->r, "line 6 of a POSCAR has the symbols of the species, not '%.60s'",
                        p->r->line);
}

/* Behind a ! is a comment. */
static bool read_counts(poscar *p) {
  char field[STRUCTURE_FIELD];
  int n = 0;
  p->r->line[strcspn(p->r->line, "!")] = 0;
  const char *at = p->r->line;
  for (const char *w; (w = structure_word(&at, field)); n++) {
    const int64_t count = structure_count(w);
    if (count < 0) return structure_fail(p->r, "'%s' is not a number of atoms", w);
    if (n < p->n) p->count[n] = count, p->atoms += count;
  }
  if (n != p->n || at[strspn(at, " \t")])
    return structure_fail(p->r, "there are %d species, but %d numbers of atoms", p->n, n);
  return p->atoms <= INT32_MAX || structure_fail(p->r, "these are more than 2^31 atoms");
}

/* Files of VASP 4 have their symbols nowhere else than in the first line, `title`. */
static bool read_species(poscar *p, const char *title) {
  structure_reader *r = p->r;
  if (!structure_want_line(r, "the symbols of the species")) return false;
  if (isdigit((unsigned char)r->line[strspn(r->line, " \t")]))
    return structure_fail(r,
                          "line 6 of a POSCAR has the symbols of the species, as VASP 5 writes "
                          "them; those of the first line, '%.60s', belong here if they are meant",
                          title);
  return read_symbols(p) && structure_want_line(r, "the numbers of atoms") && read_counts(p);
}

/* ---- atoms ---- */

static bool read_mode(poscar *p) {
  structure_reader *r = p->r;
  if (!structure_want_line(r, "Direct or Cartesian")) return false;
  const char *word = r->line + strspn(r->line, " \t");
  p->selective = tolower((unsigned char)*word) == 's'; /* selective dynamics */
  if (p->selective) {
    if (!structure_want_line(r, "Direct or Cartesian")) return false;
    word = r->line + strspn(r->line, " \t");
  }
  const char first = (char)tolower((unsigned char)*word);
  p->cartesian = first == 'c' || first == 'k';
  return p->cartesian || first == 'd' ||
         structure_fail(r, "Direct or Cartesian is wanted here, not '%.60s'", r->line);
}

/* Three coordinates, and of selective dynamics whether they may change; the rest is skipped. */
static bool read_atom(poscar *p, int32_t element, const char *what) {
  char field[STRUCTURE_FIELD];
  const char *at = p->r->line;
  double x[3];
  for (int k = 0; k < 3; k++) {
    const char *w = structure_word(&at, field);
    if (!w) return structure_fail(p->r, "%s has %d of 3 coordinates", what, k);
    if (!structure_number(w, &x[k])) return structure_fail(p->r, "'%s' is not a finite number", w);
    if (p->cartesian) x[k] *= p->scale[k];
  }
  bool fixed = false;
  for (int k = 0; k < 3 && p->selective && structure_word(&at, field); k++)
    fixed |= toupper((unsigned char)field[*field == '.']) == 'F';
  p->r->s->fixed += fixed;
  return p->cartesian ? structure_add(p->r, element, x) : structure_add_fraction(p->r, element, x);
}

static bool read_atoms(poscar *p) {
  for (int i = 0; i < p->n; i++)
    for (int64_t k = 0; k < p->count[i]; k++) {
      char what[64];
      snprintf(what, sizeof what, "atom %lld of %lld", (long long)p->r->s->n + 1,
               (long long)p->atoms);
      if (!structure_want_line(p->r, what) || !read_atom(p, p->element[i], what)) return false;
      p->r->s->isotopes += p->isotope[i];
    }
  return true;
}

/* Behind the atoms stand velocities, after a line that is blank or begins with a word. */
static bool check_end(poscar *p) {
  if (!structure_line(p->r)) return !p->r->error[0];
  const char *at = p->r->line + strspn(p->r->line, " \t");
  return !*at || isalpha((unsigned char)*at) ||
         structure_fail(p->r, "there are more lines than the %lld atoms that line 7 tells of",
                        (long long)p->atoms);
}

static bool read_all(poscar *p) {
  char title[STRUCTURE_FIELD];
  if (!structure_want_line(p->r, "the title")) return false;
  snprintf(title, sizeof title, "%s", p->r->line);
  return read_cell(p) && read_species(p, title) && read_mode(p) && read_atoms(p) && check_end(p);
}

bool structure_read_poscar(structure_reader *r) {
  poscar *p = calloc(1, sizeof *p);
  if (!p) return structure_fail(r, "out of memory");
  p->r = r;
  const bool good = read_all(p);
  free(p);
  return good;
}
