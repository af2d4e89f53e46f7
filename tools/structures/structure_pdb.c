/* tools/structures/structure_pdb.c - atoms from files of the Protein Data Bank. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/structure_elements.h"
#include "tools/structures/structure_ipi.h"

typedef struct {
  structure_reader *r;
  bool aligned;                                          /* symbols end in column 14 */
  char place[STRUCTURE_FIELD], residue[STRUCTURE_FIELD]; /* of the last alternate location */
  double cell_unit;
} pdb_reader;

static bool starts(const structure_reader *r, const char *record) {
  return !strncmp(r->line, record, strlen(record));
}

static bool is_atom(const structure_reader *r) { /* "ATOM 100000": a serial of six digits */
  return starts(r, "ATOM") && strchr(" 0123456789*", r->line[4]);
}

static bool is_hetatm(const structure_reader *r) { return starts(r, "HETATM"); }

/* ---- cell and units ---- */

static bool read_cryst1(pdb_reader *p) {
  static const int first[7] = {7, 16, 25, 34, 41, 48, 55};
  structure_reader *r = p->r;
  char field[STRUCTURE_FIELD];
  double v[6];
  for (int i = 0; i < 6; i++)
    if (!structure_number(structure_columns(r, first[i], first[i + 1] - 1, field), &v[i]))
      return structure_fail(
          r, "CRYST1 has three lengths and three angles in columns 7 to 54, not '%s'", field);
  if (r->s->periodic[0]) return structure_fail(r, "CRYST1 is there twice");
  /* used for structures without a cell */
  if (v[0] == v[1] && v[0] == v[2] && (v[0] == 1 || v[0] == 0)) return true;
  return structure_cell(r, v, p->cell_unit);
}

/* i-PI writes units into the title: "positions{angstrom} cell{angstrom}". */
static bool read_title(pdb_reader *p) {
  const char *at = p->r->line, *word = p->r->line;
  for (; structure_skip_word(&at); word = at) {
    structure_quantity q;
    word += strspn(word, " \t");
    const int found = structure_quantity_read(p->r, word, (size_t)(at - word), &q);
    if (found < 0) return false;
    if (found) *(q.of_cell ? &p->cell_unit : &p->r->unit) = q.unit;
  }
  return true;
}

/* ---- atoms ---- */

/* Whether no name of a symbol with one letter starts in column 13, unless it has four characters:
   many programs write all names there. The file is then read from its start. */
static bool aligned(structure_reader *r) {
  bool good = true;
  while (good && structure_line(r)) {
    char name[STRUCTURE_FIELD];
    if (!is_atom(r) && !is_hetatm(r)) continue;
    structure_columns(r, 13, 16, name);
    const bool at_13 = strlen(r->line) > 13 && isalpha((unsigned char)r->line[12]);
    if (at_13 && strlen(name) < 4) good = structure_symbol_of_two(name);
  }
  gzrewind(r->file);
  r->line_number = 0;
  return good;
}

/* Of the alternate locations (column 17) of a residue (22-27) the first in the file is kept. */
static bool alternate(pdb_reader *p) {
  char here[STRUCTURE_FIELD], which[STRUCTURE_FIELD];
  structure_columns(p->r, 22, 27, here);
  structure_columns(p->r, 17, 17, which);
  if (strcmp(here, p->residue) != 0) {
    strcpy(p->residue, here);
    *p->place = 0;
  }
  if (*which && !*p->place) *p->place = *which;
  if (!*which || *which == *p->place) return false;
  p->r->s->alternates++;
  return true;
}

static name_place place_of(const pdb_reader *p) {
  const char *name = p->r->line + 12;
  if (!p->aligned) return NAME_ANYWHERE;
  if (isalpha((unsigned char)name[0])) return NAME_AT_COLUMN_13;
  return name[0] == ' ' && isalpha((unsigned char)name[1]) ? NAME_AT_COLUMN_14 : NAME_ANYWHERE;
}

/* The symbol in columns 77 and 78. Files of before 1996 have numbers of lines there: then it is not
   given. A letter beside them could belong to a symbol in the wrong columns. */
static bool read_symbol(structure_reader *r, int32_t *element) {
  char field[STRUCTURE_FIELD], wide[STRUCTURE_FIELD];
  structure_columns(r, 77, 78, field);
  *element = 0;
  if (!field[strspn(field, "0123456789")]) return true;
  const size_t n = strlen(r->line);
  const bool left = n > 77 && r->line[77] == ' ';
  const bool shifted = (n > 78 && isalpha((unsigned char)r->line[78])) ||
                       ((left || n == 77) && isalpha((unsigned char)r->line[75]));
  if (!shifted && (*element = structure_element(r, field))) return true;
  return structure_fail(r, "columns 77 to 78 are a chemical symbol, not '%s' of '%s'", field,
                        structure_columns(r, 76, 79, wide));
}

/* Columns: 13-16 atom, 18-21 residue, 31-38, 39-46 and 47-54 coordinates, 77-78 element. */
static bool read_atom(pdb_reader *p) {
  structure_reader *r = p->r;
  char name[STRUCTURE_FIELD], residue[STRUCTURE_FIELD], field[STRUCTURE_FIELD];
  double x[3];
  int32_t element;
  for (int k = 0; k < 3; k++)
    if (!structure_number(structure_columns(r, 31 + 8 * k, 38 + 8 * k, field), &x[k]))
      return structure_fail(r, "columns %d to %d are a coordinate, not '%s'", 31 + 8 * k,
                            38 + 8 * k, field);
  structure_columns(r, 13, 16, name);
  structure_columns(r, 18, 21, residue);
  if (!read_symbol(r, &element)) return false;
  if (!element) element = structure_element_of_name(r, name, residue, place_of(p));
  return structure_add_named(r, element, name, residue, x);
}

/* A record that is none, but whose first word says what would be lost without it. */
static bool check_lost(structure_reader *r) {
  static const char *const records[] = {"ATOM", "HETATM", "CRYST1"};
  const char *word = r->line + strspn(r->line, " \t");
  for (size_t i = 0; i < sizeof records / sizeof *records; i++)
    if (!strncasecmp(word, records[i], strlen(records[i])))
      return structure_fail(r, "%s in capital letters starts in column 1", records[i]);
  return true;
}

bool structure_read_pdb(structure_reader *r) {
  pdb_reader p = {.r = r, .cell_unit = 1, .aligned = aligned(r)};
  if (r->error[0]) return false;
  while (structure_line(r)) {
    bool good = true;
    if (starts(r, "CRYST1")) good = read_cryst1(&p);
    else if (starts(r, "TITLE")) good = read_title(&p);
    else if (is_atom(r) || (is_hetatm(r) && !r->options->atoms_only))
      good = alternate(&p) || read_atom(&p);
    else if ((starts(r, "END") || starts(r, "MODEL ")) && r->s->n) break; /* of the first model */
    else good = is_hetatm(r) || check_lost(r);
    if (!good) return false;
  }
  if (r->error[0]) return false;
  return r->s->n || structure_fail(r, "there are no atoms in this file");
}
