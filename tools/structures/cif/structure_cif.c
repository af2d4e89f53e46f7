/* tools/structures/cif/structure_cif.c - atoms from Crystallographic Information Files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/cif/structure_cif_words.h"
#include "tools/structures/structure_elements.h"
#include "tools/structures/cif/structure_symmetry.h"

/* ---- names that are used ---- */

enum {
  CELL, /* and five more */
  OPERATION = CELL + 6,
  GROUP,
  GROUP_NUMBER,
  LABEL,
  SYMBOL,
  FRACTION, /* and two more */
  OCCUPANCY = FRACTION + 3,
  HYDROGENS,
  FLAG,
  LOST, /* what would be lost */
  SKIPPED
};

static const struct {
  const char *name;
  int used_as;
} names[] = {{"_cell_length_a", CELL},
             {"_cell_length_b", CELL + 1},
             {"_cell_length_c", CELL + 2},
             {"_cell_angle_alpha", CELL + 3},
             {"_cell_angle_beta", CELL + 4},
             {"_cell_angle_gamma", CELL + 5},
             {"_symmetry_equiv_pos_as_xyz", OPERATION},
             {"_space_group_symop_operation_xyz", OPERATION},
             {"_symmetry_space_group_name_h-m", GROUP},
             {"_space_group_name_h-m_alt", GROUP},
             {"_symmetry_space_group_name_hall", GROUP},
             {"_space_group_name_hall", GROUP},
             {"_symmetry_int_tables_number", GROUP_NUMBER},
             {"_space_group_it_number", GROUP_NUMBER},
             {"_atom_site_label", LABEL},
             {"_atom_site_type_symbol", SYMBOL},
             {"_atom_site_fract_x", FRACTION},
             {"_atom_site_fract_y", FRACTION + 1},
             {"_atom_site_fract_z", FRACTION + 2},
             {"_atom_site_occupancy", OCCUPANCY},
             {"_atom_site_attached_hydrogens", HYDROGENS},
             {"_atom_site_calc_flag", FLAG},
             {"_cell_modulation_dimension", LOST},
             {"_space_group_symop_magn_operation_xyz", LOST},
             {"_space_group_symop_ssg_operation_algebraic", LOST}};

static int used_as(const char *name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i].name, name)) return names[i].used_as;
  return SKIPPED;
}

static const char *name_of(int use) {
  size_t i = 0;
  while (names[i].used_as != use) i++;
  return names[i].name;
}

/* ---- a block ---- */

enum { MAX_COLUMNS = 512 };

/* A row of a loop, as far as it is used. */
typedef struct {
  bool has[SKIPPED]; /* has a value other than ? and . */
  char label[STRUCTURE_FIELD], symbol[STRUCTURE_FIELD];
  double x[3], occupancy, hydrogens;
  bool dummy;
} cif_row;

typedef struct {
  cif_words w;
  double cell[6];
  bool has_cell[6], p1, other_group;
  char group[STRUCTURE_FIELD];
  symmetry_operation operation[SYMMETRY_MOST];
  int n_operations, n_columns, column[MAX_COLUMNS];
  symmetry_site *sites;
  int64_t n_sites, capacity;
  cif_row row;
} cif;

/* ---- values ---- */

/* "1.234(5)": without the uncertainty. */
static bool read_number(cif *c, double *x) {
  char number[STRUCTURE_FIELD];
  structure_reader *r = c->w.r;
  strcpy(number, c->w.text);
  char *open = strchr(number, '(');
  const size_t digits = open ? strspn(open + 1, "0123456789") : 0;
  if (open && digits && !strcmp(open + 1 + digits, ")")) *open = 0;
  return structure_number(number, x) || structure_fail(r, "'%s' is not a finite number", c->w.text);
}

static bool take_group(cif *c, bool number) {
  char name[STRUCTURE_FIELD];
  size_t n = 0;
  for (const char *at = c->w.text; *at; at++)
    if (!strchr(" _", *at)) name[n++] = *at;
  name[n] = 0;
  if (!n) return true;
  if (strcasecmp(name, number ? "1" : "P1") != 0) {
    c->other_group = true;
    memcpy(c->group, c->w.text, sizeof c->group);
  }
  return true;
}

static bool take_operation(cif *c) {
  structure_reader *r = c->w.r;
  if (c->n_operations == SYMMETRY_MOST)
    return structure_fail(r, "no space group has more than %d operations", SYMMETRY_MOST);
  return symmetry_read(c->w.text, &c->operation[c->n_operations++]) ||
         structure_fail(r, "'%s' is not a symmetry operation such as '-x+1/2, y, z'", c->w.text);
}

/* The value of a name that is used; not of ? or . */
static bool take_value(cif *c, int use) {
  cif_row *row = &c->row;
  row->has[use] = true;
  if (use < CELL + 6) {
    if (c->has_cell[use]) return structure_fail(c->w.r, "%s is there twice", name_of(use));
    c->has_cell[use] = true;
    return read_number(c, &c->cell[use]);
  }
  if (use >= FRACTION && use < FRACTION + 3) return read_number(c, &row->x[use - FRACTION]);
  switch (use) {
    case OPERATION: return take_operation(c);
    case GROUP:
    case GROUP_NUMBER: return take_group(c, use == GROUP_NUMBER);
    case LABEL: return strcpy(row->label, c->w.text), true;
    case SYMBOL: return strcpy(row->symbol, c->w.text), true;
    case OCCUPANCY: return read_number(c, &row->occupancy);
    case HYDROGENS: return read_number(c, &row->hydrogens);
    case FLAG: return row->dummy = !strcasecmp(c->w.text, "dum"), true;
    default: return true;
  }
}

/* ---- sites ---- */

/* --elements says what label or symbol mean; else it is the symbol's, "Fe" of "Fe3+", or where
   there is none the label's. */
static bool find_element(structure_reader *r, const cif_row *row, int32_t *element) {
  char letters[STRUCTURE_FIELD];
  size_t n = 0;
  const int32_t told = structure_element_told(r, row->label);
  if ((*element = told ? told : structure_element_told(r, row->symbol))) return true;
  while ((row->symbol[n] | 32) >= 'a' && (row->symbol[n] | 32) <= 'z') n++;
  memcpy(letters, row->symbol, n);
  letters[n] = 0;
  *element = row->has[SYMBOL] ? structure_element(r, letters)
                              : structure_element_of_name(r, row->label, "", NAME_ANYWHERE);
  const char *word = row->has[SYMBOL] ? row->symbol : row->label;
  return *element || r->options->any_element ||
         structure_fail(r, "'%s' does not tell its element; --elements %s=SYMBOL says it", word,
                        word);
}

static bool check_site(structure_reader *r, const cif_row *row) {
  const char *name = row->has[LABEL] ? row->label : row->symbol;
  for (int k = 0; k < 3; k++)
    if (!row->has[FRACTION + k])
      return structure_fail(r, "site '%s' lacks %s", name, name_of(FRACTION + k));
  if (row->has[OCCUPANCY] && !(fabs(row->occupancy - 1) < 1e-6))
    return structure_fail(
        r, "site '%s' is occupied by %g: a model needs whole atoms, with occupancy 1", name,
        row->occupancy);
  return !(row->has[HYDROGENS] && row->hydrogens > 0) ||
         structure_fail(r, "site '%s' has attached hydrogens, which have no place here", name);
}

static bool take_site(cif *c) {
  structure_reader *r = c->w.r;
  const cif_row *row = &c->row;
  const int64_t isotopes = r->s->isotopes;
  symmetry_site site;
  if (row->dummy) return true;
  if (!check_site(r, row) || !find_element(r, row, &site.element)) return false;
  site.isotope = r->s->isotopes > isotopes;
  r->s->isotopes = isotopes;
  memcpy(site.x, row->x, sizeof site.x);
  snprintf(site.label, sizeof site.label, "%.15s", row->has[LABEL] ? row->label : row->symbol);
  if (c->n_sites == c->capacity) { /* grows with what has been read */
    const int64_t capacity = c->capacity ? 2 * c->capacity : 64;
    symmetry_site *sites = realloc(c->sites, (size_t)capacity * sizeof *sites);
    if (!sites) return structure_fail(r, "out of memory for %lld sites", (long long)capacity);
    c->sites = sites;
    c->capacity = capacity;
  }
  c->sites[c->n_sites++] = site;
  return true;
}

/* ---- items ---- */

static bool lost(cif *c) {
  return structure_fail(c->w.r,
                        "'%s': modulated and magnetic structures have symmetries that are not read",
                        c->w.text);
}

/* The names of a loop; then the word is its first value. */
static bool read_columns(cif *c) {
  c->n_columns = 0;
  while (cif_next(&c->w) == CIF_NAME) {
    if (c->n_columns == MAX_COLUMNS)
      return structure_fail(c->w.r, "a loop has more than %d columns", MAX_COLUMNS);
    const int use = c->column[c->n_columns++] = used_as(c->w.text);
    if (use == LOST) return lost(c);
    for (int i = 0; use < SKIPPED && i < c->n_columns - 1; i++)
      if (c->column[i] == use && use != GROUP)
        return structure_fail(c->w.r, "this loop has '%s' twice", name_of(use));
  }
  return c->w.kind != CIF_ERROR &&
         (c->n_columns || structure_fail(c->w.r, "loop_ is followed by no name"));
}

static bool of_sites(const cif *c) {
  for (int i = 0; i < c->n_columns; i++)
    if (c->column[i] >= FRACTION && c->column[i] < FRACTION + 3) return true;
  return false;
}

static bool read_loop(cif *c) {
  if (!read_columns(c)) return false;
  const bool sites = of_sites(c);
  int i = 0;
  for (; c->w.kind == CIF_VALUE; cif_next(&c->w)) {
    const int use = c->column[i];
    if (!i) c->row = (cif_row){0};
    if (use < LOST && !cif_nothing(&c->w) && !take_value(c, use)) return false;
    i = (i + 1) % c->n_columns;
    if (!i && sites && !take_site(c)) return false;
  }
  if (c->w.kind == CIF_ERROR) return false;
  return !i || structure_fail(c->w.r, "the last row of the loop before has %d of %d values", i,
                              c->n_columns);
}

/* A name and its value. */
static bool read_item(cif *c) {
  char name[STRUCTURE_FIELD];
  const int use = used_as(c->w.text);
  strcpy(name, c->w.text);
  if (use == LOST) return lost(c);
  if (cif_next(&c->w) != CIF_VALUE)
    return c->w.kind != CIF_ERROR && structure_fail(c->w.r, "'%s' has no value", name);
  if (use >= LABEL && use < LOST)
    return structure_fail(c->w.r, "'%s' stands in a loop of sites", name);
  if (use < LOST && !cif_nothing(&c->w) && !take_value(c, use)) return false;
  return cif_next(&c->w) != CIF_ERROR;
}

/* ---- all ---- */

static bool check_operations(cif *c) {
  structure_reader *r = c->w.r;
  bool identity = !c->n_operations;
  for (int i = 0; i < c->n_operations; i++) {
    identity = identity || symmetry_identity(&c->operation[i]);
    if (!symmetry_fits(r->s, &c->operation[i]))
      return structure_fail(r, "'%s' is no symmetry of this cell", c->operation[i].text);
  }
  if (!identity) return structure_fail(r, "the symmetry operations lack 'x, y, z'");
  if (c->n_operations <= 1 && c->other_group)
    return structure_fail(r,
                          "the space group is '%s', but its operations are not listed "
                          "(_space_group_symop_operation_xyz)",
                          c->group);
  if (!c->n_operations) symmetry_read("x,y,z", &c->operation[c->n_operations++]);
  return true;
}

static bool finish(cif *c) {
  structure_reader *r = c->w.r;
  r->line_number = 0;
  if (!c->n_sites)
    return structure_fail(r, "there are no atoms: no loop has _atom_site_fract_x, _y and _z");
  for (int k = 0; k < 6; k++)
    if (!c->has_cell[k]) return structure_fail(r, "%s is missing", name_of(CELL + k));
  if (!structure_cell(r, c->cell, 1) || !check_operations(c)) return false;
  for (int64_t i = 0; i < c->n_sites; i++)
    if (!symmetry_add(r, &c->sites[i], c->n_operations, c->operation)) return false;
  return symmetry_merge(r);
}

/* Of several blocks the first with atoms. */
static bool read_all(cif *c) {
  bool good = cif_next(&c->w) != CIF_ERROR;
  while (good && c->w.kind != CIF_END) {
    switch (c->w.kind) {
      case CIF_BLOCK:
        if (c->n_sites) return finish(c);
        *c = (cif){.w = c->w, .sites = c->sites, .capacity = c->capacity};
        good = cif_next(&c->w) != CIF_ERROR;
        break;
      case CIF_LOOP: good = read_loop(c); break;
      case CIF_NAME: good = read_item(c); break;
      default:
        good = structure_fail(c->w.r, "a name that begins with _, or loop_, is wanted before '%s'",
                              c->w.text);
    }
  }
  return good && finish(c);
}

bool structure_read_cif(structure_reader *r) {
  cif *c = calloc(1, sizeof *c);
  if (!c) return structure_fail(r, "out of memory");
  c->w.r = r;
  const bool good = read_all(c);
  free(c->sites);
  free(c);
  return good;
}
