/* tools/structures/structure_ipi.c - what i-PI writes into comment lines. */
#include "tools/structures/structure_ipi.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- units of length ---- */

static const struct {
  const char *name;
  double angstrom;
} units[] = {{"", STRUCTURE_BOHR},
             {"automatic", STRUCTURE_BOHR},
             {"atomic_unit", STRUCTURE_BOHR},
             {"angstrom", 1},
             {"meter", 1e10},
             {"ase", 1}};

static const struct {
  const char *name;
  int power;
} prefixes[] = {{"", 0},        {"yotta", 24}, {"zetta", 21}, {"exa", 18},    {"peta", 15},
                {"tera", 12},   {"giga", 9},   {"mega", 6},   {"kilo", 3},    {"milli", -3},
                {"micro", -6},  {"nano", -9},  {"pico", -12}, {"femto", -15}, {"atto", -18},
                {"zepto", -21}, {"yocto", -24}};

/* Angstrom; 0: not known. */
static double length_unit(const char *name, size_t length) {
  for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
    const size_t n = strlen(prefixes[p].name);
    if (length < n || strncmp(name, prefixes[p].name, n) != 0) continue;
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
      if (strlen(units[u].name) == length - n && !strncasecmp(units[u].name, name + n, length - n))
        return prefixes[p].power < 0 ? units[u].angstrom / pow(10, -prefixes[p].power)
                                     : units[u].angstrom * pow(10, prefixes[p].power);
  }
  return 0;
}

/* ---- quantities ---- */

enum { OF_CELL, LENGTH, OTHER };
static const struct {
  const char *name;
  int kind;
} quantities[] = {{"cell", OF_CELL},
                  {"positions", LENGTH},
                  {"x_centroid", LENGTH},
                  {"x_centroid_even", LENGTH},
                  {"x_centroid_odd", LENGTH},
                  {"velocities", OTHER},
                  {"momenta", OTHER},
                  {"forces", OTHER},
                  {"forces_sc", OTHER},
                  {"forces_spring", OTHER},
                  {"forces_component", OTHER},
                  {"forces_component_raw", OTHER},
                  {"Eforces", OTHER},
                  {"v_centroid", OTHER},
                  {"v_centroid_even", OTHER},
                  {"v_centroid_odd", OTHER},
                  {"p_centroid", OTHER},
                  {"f_centroid", OTHER},
                  {"kinetic_cv", OTHER},
                  {"kinetic_od", OTHER},
                  {"r_gyration", OTHER},
                  {"becx", OTHER},
                  {"becy", OTHER},
                  {"becz", OTHER}};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

int structure_quantity_read(structure_reader *r, const char *word, size_t length,
                            structure_quantity *q) {
  const char *brace = memchr(word, '{', length);
  if (!brace || word[length - 1] != '}') return 0;
  const size_t name = (size_t)(brace - word), unit = length - name - 2;
  int i = 0;
  while (i < QUANTITIES &&
         (strlen(quantities[i].name) != name || strncmp(quantities[i].name, word, name) != 0))
    i++;
  if (i == QUANTITIES) return 0;
  if (quantities[i].kind == OTHER)
    return structure_fail(r, "these are %s, not positions", quantities[i].name), -1;
  *q = (structure_quantity){quantities[i].kind == OF_CELL, length_unit(brace + 1, unit)};
  if (q->unit > 0 && isfinite(q->unit)) return 1;
  return structure_fail(
             r, "'%.*s' is not one of i-PI's units of length, such as angstrom or atomic_unit",
             (int)(unit < 60 ? unit : 60), brace + 1),
         -1;
}

/* ---- cells ---- */

struct structure_cell_form {
  const char *name;
  int n; /* numbers */
};
/* Lengths and angles; a matrix whose columns are the vectors; one whose rows are the vectors. */
static const struct structure_cell_form forms[] = {{"abcABC", 6}, {"H", 9}, {"GENH", 9}};

/* What follows "CELL(FORM):" in the word; NULL: it is another. *form is NULL for an unknown one. */
static const char *after_cell(const char *word, const struct structure_cell_form **form) {
  word += *word == '#';
  if (strncasecmp(word, "cell", 4) != 0 || !word[4] || !strchr("([{", word[4])) return NULL;
  const char *name = word + 5, *end = name + strcspn(name, ")]}");
  if (!*end || end[1] != ':') return NULL;
  *form = NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strlen(forms[i].name) == (size_t)(end - name) &&
        !strncmp(forms[i].name, name, (size_t)(end - name)))
      *form = &forms[i];
  return end + 2;
}

static bool take_number(structure_reader *r, structure_ipi *c, const char *word) {
  if (c->n == c->form->n || !structure_number(word, &c->numbers[c->n++]))
    return structure_fail(r, "CELL(%s) has %d numbers, not '%.60s' as the next", c->form->name,
                          c->form->n, word);
  return true;
}

bool structure_ipi_word(structure_reader *r, structure_ipi *c, const char *word) {
  double x;
  if (c->open && (c->n < c->form->n || structure_number(word, &x))) return take_number(r, c, word);
  c->open = false;
  const struct structure_cell_form *form = NULL;
  const char *rest = after_cell(word, &form);
  if (rest) {
    if (c->form) return structure_fail(r, "CELL is there twice");
    if (!form)
      return structure_fail(r, "the cell is CELL(abcABC), CELL(H) or CELL(GENH), not '%.60s'",
                            word);
    c->form = form;
    c->open = true;
    return !*rest || take_number(r, c, rest);
  }
  structure_quantity q;
  const int found = structure_quantity_read(r, word, strlen(word), &q);
  const char *brace = strchr(word, '{');
  if (!found && !*c->strange && brace && brace > word && word[strlen(word) - 1] == '}')
    snprintf(c->strange, sizeof c->strange, "%s", word);
  double *unit = found > 0 && q.of_cell ? &c->cell_unit : &c->unit;
  if (found > 0 && *unit > 0 && *unit != q.unit)
    return structure_fail(r, "'%.60s': another unit stands before", word);
  if (found > 0) *unit = q.unit;
  return found >= 0;
}

bool structure_ipi_end(structure_reader *r, structure_ipi *c) {
  const double *x = c->numbers, unit = c->cell_unit > 0 ? c->cell_unit : STRUCTURE_BOHR;
  if (!c->form && c->cell_unit > 0 && !(c->unit > 0))
    return structure_fail(r, "cell{...} is there without CELL(...) and positions{...}");
  if ((c->form || c->unit > 0) && *c->strange)
    return structure_fail(
        r, "'%s' is not one of i-PI's quantities with a unit, such as positions{angstrom}",
        c->strange);
  if (c->form || c->unit > 0) r->unit = c->unit > 0 ? c->unit : STRUCTURE_BOHR;
  if (!c->form) return true;
  if (c->n < c->form->n)
    return structure_fail(r, "CELL(%s) has %d numbers, not %d", c->form->name, c->form->n, c->n);
  if (c->form == &forms[0]) return structure_cell(r, x, unit);
  const bool rows = c->form == &forms[2];
  if (!rows && (x[3] != 0 || x[6] != 0 || x[7] != 0))
    return structure_fail(r, "the columns of CELL(H) are the vectors: it has zeros below its "
                             "diagonal; CELL(GENH) has them as rows");
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) r->s->cell[i][k] = unit * (rows ? x[3 * i + k] : x[3 * k + i]);
  for (int d = 0; d < 3; d++) r->s->periodic[d] = true;
  return true;
}
