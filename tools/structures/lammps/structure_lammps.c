/* tools/structures/lammps/structure_lammps.c - atoms from LAMMPS' data files (read_data). */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/structures/structure_elements.h"
#include "tools/structures/lammps/structure_lammps_types.h"

/* Columns of an atom's line, from 0; after `all` may stand three image flags. */
typedef struct {
  const char *name;
  int type, x, all;
} atom_style;

static const atom_style styles[] = {{"atomic", 1, 2, 5},    {"charge", 1, 3, 6},
                                    {"molecular", 2, 3, 6}, {"bond", 2, 3, 6},
                                    {"angle", 2, 3, 6},     {"full", 2, 4, 7}};
enum { STYLES = sizeof styles / sizeof *styles, CHARGE = 1, MOLECULAR = 2, IMAGES = 3 };

/* Lines of the header by their last words. */
enum { ATOMS, TYPES, XLO, YLO, ZLO, TILT, AVEC, BVEC, CVEC, ORIGIN, HEADS };
static const struct {
  const char *words;
  int n; /* numbers before them */
} heads[HEADS] = {{"atoms", 1},   {"atom types", 1}, {"xlo xhi", 2}, {"ylo yhi", 2},
                  {"zlo zhi", 2}, {"xy xz yz", 3},   {"avec", 3},    {"bvec", 3},
                  {"cvec", 3},    {"abc origin", 3}};

typedef struct {
  int64_t id;
  int32_t type;
  double x[3];
} lammps_atom;

typedef struct {
  structure_reader *r;
  lammps_types types;
  const atom_style *style;
  double head[HEADS][3];
  bool has[HEADS], images, read;
  lammps_atom *atoms;
  int64_t n, capacity;
} lammps;

/* The line up to its comment, without blanks at its ends; *comment is what follows the #. */
static char *statement(char *line, const char **comment) {
  const size_t n = strcspn(line, "#");
  *comment = line + n + (line[n] == '#');
  line[n] = 0;
  line += strspn(line, " \t");
  for (size_t m = strlen(line); m && strchr(" \t", line[m - 1]);) line[--m] = 0;
  return line;
}

/* ---- header ---- */

/* write_data says units and style in the first line. */
static bool check_units(structure_reader *r) {
  char unit[STRUCTURE_FIELD];
  const char *at = strstr(r->line, "units = ");
  if (!at || !strstr(r->line, "LAMMPS")) return true;
  at += strlen("units = ");
  const char *w = structure_word(&at, unit);
  if (w) unit[strcspn(unit, ",")] = 0;
  return (w && (!strcmp(unit, "metal") || !strcmp(unit, "real"))) ||
         structure_fail(r, "units = %s: positions are in Angstrom only with metal and real",
                        w ? unit : "");
}

/* false, without an error: it is no line of the header. */
static bool is_head(lammps *l, const char *line, bool *good) {
  char number[STRUCTURE_FIELD];
  double x[4];
  const char *at = line;
  int n = 0;
  for (const char *next = at; n < 4 && structure_word(&next, number); at = next, n++)
    if (!structure_number(number, &x[n])) break;
  at += strspn(at, " \t");
  if (!n) return false;
  for (int i = 0; i < HEADS; i++) {
    if (strcmp(at, heads[i].words) != 0) continue;
    if (n != heads[i].n || l->has[i])
      *good = structure_fail(l->r, "'%s' has %d number%s before it, and stands once",
                             heads[i].words, heads[i].n, heads[i].n > 1 ? "s" : "");
    memcpy(l->head[i], x, (size_t)heads[i].n * sizeof *x);
    l->has[i] = true;
  }
  return true; /* or a number of bonds and the like */
}

static bool find_cell(lammps *l) {
  structure_reader *r = l->r;
  double(*cell)[3] = r->s->cell;
  const bool general = l->has[AVEC] || l->has[BVEC] || l->has[CVEC];
  const int first = general ? AVEC : XLO;
  for (int d = 0; d < 3; d++) {
    if (!l->has[first + d])
      return structure_fail(r, "the header lacks '%s', the cell along %c", heads[first + d].words,
                            "xyz"[d]);
    r->s->periodic[d] = true;
    if (general) memcpy(cell[d], l->head[AVEC + d], sizeof cell[d]);
    else if (!((cell[d][d] = l->head[XLO + d][1] - l->head[XLO + d][0]) > 0))
      return structure_fail(r, "the cell is %g Angstrom long along %c ('%s')", cell[d][d], "xyz"[d],
                            heads[XLO + d].words);
  }
  if (general) return true;
  cell[1][0] = l->head[TILT][0];
  cell[2][0] = l->head[TILT][1];
  cell[2][1] = l->head[TILT][2];
  return true;
}

/* ---- atoms ---- */

static bool style_of_comment(lammps *l, const char *comment) {
  char word[STRUCTURE_FIELD];
  if (!structure_word(&comment, word)) return true;
  for (int i = 0; i < STYLES; i++)
    if (!strcmp(word, styles[i].name)) l->style = &styles[i];
  return l->style || structure_fail(l->r,
                                    "the style of atoms behind # is atomic, charge, molecular, "
                                    "bond, angle or full, not '%s'",
                                    word);
}

/* Of an atom's line with as many columns; where charge and molecular have the same, the third
   column is a charge if it is no type. */
static bool style_of_columns(lammps *l, int columns, char word[][STRUCTURE_FIELD]) {
  for (int i = 0; i < STYLES && !l->style; i++)
    if (columns == styles[i].all || columns == styles[i].all + IMAGES) l->style = &styles[i];
  if (!l->style)
    return structure_fail(l->r,
                          "%d columns: 'Atoms # STYLE' must say what they are; styles are atomic, "
                          "charge, molecular, bond, angle and full",
                          columns);
  if (l->style != &styles[CHARGE] || !lammps_type_find(&l->types, word[2])) return true;
  l->style = &styles[MOLECULAR];
  return !lammps_type_find(&l->types, word[1]) ||
         structure_fail(l->r, "these columns may be of style charge or molecular: 'Atoms # charge' "
                              "or 'Atoms # molecular' says which");
}

static bool whole(const char *word, double *x) {
  return structure_number(word, x) && !strpbrk(word, ".eEdD") && fabs(*x) <= 1ll << 53;
}

static bool keep_atom(lammps *l, const lammps_atom *a) {
  if (l->n == l->capacity) { /* grows with what has been read */
    const int64_t capacity = l->capacity ? 2 * l->capacity : 256;
    lammps_atom *atoms = realloc(l->atoms, (size_t)capacity * sizeof *atoms);
    if (!atoms) return structure_fail(l->r, "out of memory for %lld atoms", (long long)capacity);
    l->atoms = atoms;
    l->capacity = capacity;
  }
  l->atoms[l->n++] = *a;
  return true;
}

/* Image flags say in which cell the atom is: there it is put. */
static bool read_atom(lammps *l, const char *what) {
  enum { MOST = 7 + IMAGES };
  structure_reader *r = l->r;
  const double(*cell)[3] = (const double(*)[3])r->s->cell;
  char word[MOST][STRUCTURE_FIELD];
  const char *comment, *at = statement(r->line, &comment);
  int n = 0;
  double id, image;
  while (n < MOST && structure_word(&at, word[n])) n++;
  if (at[strspn(at, " \t")]) return structure_fail(r, "%s has more than %d columns", what, MOST);
  if (!l->style && !style_of_columns(l, n, word)) return false;
  const atom_style *s = l->style;
  if (!l->n) l->images = n == s->all + IMAGES;
  if (n != s->all + IMAGES * l->images)
    return structure_fail(r, "%s of style %s has %d columns, not %d", what, s->name,
                          s->all + IMAGES * l->images, n);
  lammps_atom a = {.type = lammps_type_find(&l->types, word[s->type])};
  if (!a.type) return structure_fail(r, "'%s' is not a type of atoms", word[s->type]);
  if (!whole(word[0], &id)) return structure_fail(r, "'%s' is not the number of an atom", word[0]);
  a.id = (int64_t)id;
  for (int k = 0; k < 3; k++)
    if (!structure_number(word[s->x + k], &a.x[k]))
      return structure_fail(r, "'%s' is not a finite number", word[s->x + k]);
  for (int d = 0; d < 3 && l->images; d++) {
    if (!whole(word[s->all + d], &image))
      return structure_fail(r, "the image flag '%s' is not a whole number", word[s->all + d]);
    for (int k = 0; k < 3; k++) a.x[k] += image * cell[d][k];
  }
  return keep_atom(l, &a);
}

/* ---- sections ---- */

/* After the name of a section comes a blank line, then n lines. */
static bool section_line(lammps *l, int64_t i, int64_t n, const char *what) {
  if (!structure_want_line(l->r, what)) return false;
  if (i) return true;
  if (l->r->line[strspn(l->r->line, " \t")])
    return structure_fail(l->r, "a blank line is wanted behind the name of a section");
  return !n || structure_want_line(l->r, what);
}

static bool read_atoms(lammps *l, const char *comment) {
  const int64_t n = (int64_t)l->head[ATOMS][0];
  if (l->read) return structure_fail(l->r, "the section Atoms is there twice");
  if (!style_of_comment(l, comment) || !find_cell(l)) return false;
  for (int64_t i = 0; i < n; i++) {
    char what[64];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)n);
    if (!section_line(l, i, n, what) || !read_atom(l, what)) return false;
  }
  return l->read = true;
}

/* "1 15.999 # O" in Masses, "1 O" in Atom Type Labels. */
static bool read_types(lammps *l, bool masses) {
  for (int i = 0; i < l->types.n; i++) {
    const char *comment, *line;
    if (!section_line(l, i, l->types.n, masses ? "a mass" : "a label")) return false;
    line = statement(l->r->line, &comment);
    if (!(masses ? lammps_type_mass(l->r, &l->types, line, comment)
                 : lammps_type_label(l->r, &l->types, line)))
      return false;
  }
  return true;
}

static bool start_types(lammps *l) {
  char count[32];
  const double types = l->head[TYPES][0];
  snprintf(count, sizeof count, "%.17g", l->head[ATOMS][0]);
  if (!l->has[ATOMS] || structure_count(count) < 0)
    return structure_fail(l->r, "the header has the number of atoms, '1000 atoms', before the "
                                "first section");
  if (!l->has[TYPES] || !(types >= 0 && types <= LAMMPS_TYPES) || types != (int)types)
    return structure_fail(l->r, "the header has the number of types, '2 atom types', at most %d",
                          LAMMPS_TYPES);
  return lammps_types_start(l->r, &l->types, (int)types);
}

static bool is_number(char first) { return isdigit((unsigned char)first) || strchr("+-.", first); }

/* What follows a section that was read begins with a letter; other sections are skipped. */
static bool read_section(lammps *l, const char *line, const char *comment, bool *skip) {
  if (!*skip && is_number(*line))
    return structure_fail(l->r, "the section before has more lines than the header tells of");
  *skip = false;
  if (!strcmp(line, "Atoms")) return read_atoms(l, comment);
  if (!strcmp(line, "Masses")) return read_types(l, true);
  if (!strcmp(line, "Atom Type Labels")) return read_types(l, false);
  return *skip = true;
}

static bool read_sections(lammps *l) {
  bool header = true, skip = true, good = true;
  while (good && structure_line(l->r)) {
    const char *comment, *line = statement(l->r->line, &comment);
    if (!*line || (header && is_number(*line) && is_head(l, line, &good))) continue;
    good = (!header || start_types(l)) && read_section(l, line, comment, &skip);
    header = false;
  }
  if (!good || l->r->error[0]) return false;
  return l->read || structure_fail(l->r, "a LAMMPS data file has a section 'Atoms', and a header "
                                         "with its cell; there is none");
}

/* ---- all ---- */

static int by_id(const void *a, const void *b) {
  const int64_t x = ((const lammps_atom *)a)->id, y = ((const lammps_atom *)b)->id;
  return (x > y) - (x < y);
}

/* In the order of their numbers: LAMMPS writes them in any. */
static bool add_atoms(lammps *l) {
  structure_reader *r = l->r;
  if (l->n) qsort(l->atoms, (size_t)l->n, sizeof *l->atoms, by_id);
  for (int64_t i = 0; i < l->n; i++) {
    const lammps_atom *a = &l->atoms[i];
    int32_t element;
    if (i && a->id == a[-1].id)
      return structure_fail(r, "atom %lld is there twice", (long long)a->id);
    if (!lammps_type_element(r, &l->types, a->type, &element) || !structure_add(r, element, a->x))
      return false;
  }
  return true;
}

static bool read_all(lammps *l) {
  if (!structure_want_line(l->r, "the title") || !check_units(l->r) || !read_sections(l))
    return false;
  l->r->line_number = 0;
  return add_atoms(l);
}

bool structure_read_lammps(structure_reader *r) {
  lammps l = {.r = r};
  const bool good = read_all(&l);
  free(l.atoms);
  lammps_types_free(&l.types);
  return good;
}
