/* tools/structures/lammps/structure_lammps_types.c - types of atoms of a LAMMPS data file, and
   their elements. */
#include "tools/structures/lammps/structure_lammps_types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/structures/structure_elements.h"

struct lammps_type {
  double mass; /* 0: not known */
  int32_t element;
  char label[STRUCTURE_FIELD], comment[STRUCTURE_FIELD];
};

bool lammps_types_start(structure_reader *r, lammps_types *t, int n) {
  t->n = n;
  t->type = calloc((size_t)n + 1, sizeof *t->type);
  return t->type || structure_fail(r, "out of memory for %d types", n);
}

void lammps_types_free(lammps_types *t) { free(t->type); }

int32_t lammps_type_find(const lammps_types *t, const char *word) {
  if (!word[strspn(word, "0123456789")]) {
    const int64_t type = structure_count(word);
    return type >= 1 && type <= t->n ? (int32_t)type : 0;
  }
  for (int32_t i = 0; i < t->n; i++)
    if (!strcmp(t->type[i].label, word)) return i + 1;
  return 0;
}

/* The type whose line this is, and the word behind it. */
static lammps_type *type_of_line(structure_reader *r, const lammps_types *t, const char *line,
                                 char word[STRUCTURE_FIELD]) {
  char name[STRUCTURE_FIELD];
  const char *at = line;
  const bool two = structure_word(&at, name) && structure_word(&at, word);
  const int32_t type = two && !*at ? lammps_type_find(t, name) : 0;
  if (type) return &t->type[type - 1];
  structure_fail(r, "a type, from 1 to %d, and what it has are wanted, not '%.60s'", t->n, line);
  return NULL;
}

bool lammps_type_mass(structure_reader *r, lammps_types *t, const char *line, const char *comment) {
  char word[STRUCTURE_FIELD];
  lammps_type *type = type_of_line(r, t, line, word);
  if (!type) return false;
  if (type->mass > 0) return structure_fail(r, "type %d has two masses", (int)(type - t->type) + 1);
  structure_word(&comment, type->comment);
  return (structure_number(word, &type->mass) && type->mass > 0) ||
         structure_fail(r, "a mass is a number above 0, not '%s'", word);
}

bool lammps_type_label(structure_reader *r, lammps_types *t, const char *line) {
  char word[STRUCTURE_FIELD];
  lammps_type *type = type_of_line(r, t, line, word);
  if (!type) return false;
  snprintf(type->label, sizeof type->label, "%s", word);
  return true;
}

/* ---- elements ---- */

/* Of a symbol that is written as chemists do: "Ca", which the name CA of a carbon is not. */
static int32_t element_written(const char *word) {
  const size_t n = strlen(word);
  const int z = clb_element(word, n);
  return z && !strcmp(word, clb_element_symbols[z]) ? z : 0;
}

/* The only element whose weight this is, but for its last digits, or rounded to a whole number. */
static int32_t element_of_mass(double mass) {
  const double near = mass == round(mass) ? 0.5 : 0.06;
  int32_t found = 0;
  for (int32_t z = 1; z <= CLB_ELEMENTS; z++) {
    if (!(fabs(atomic_weights[z] - mass) < near)) continue;
    if (found) return 0;
    found = z;
  }
  return found;
}

static int32_t told(structure_reader *r, const lammps_type *type, int32_t number) {
  char name[STRUCTURE_FIELD];
  snprintf(name, sizeof name, "%d", number);
  const int32_t z = structure_element_told(r, name);
  return z || !*type->label ? z : structure_element_told(r, type->label);
}

bool lammps_type_element(structure_reader *r, lammps_types *t, int32_t type, int32_t *element) {
  lammps_type *of = &t->type[type - 1];
  if (!of->element) of->element = told(r, of, type);
  if (!of->element) {
    const int32_t labelled = element_written(of->label), commented = element_written(of->comment),
                  z = labelled ? labelled : commented, heavy = element_of_mass(of->mass);
    if (z && heavy && z != heavy)
      return structure_fail(r,
                            "type %d is called %s, but has the mass of %s, %g; --elements "
                            "%d=SYMBOL says what it is",
                            type, clb_element_symbols[z], clb_element_symbols[heavy], of->mass,
                            type);
    of->element = z ? z : heavy;
  }
  *element = of->element;
  structure_see_mass(r, of->element, of->mass > 0 ? of->mass : NAN);
  if (of->element || r->options->any_element) return true;
  if (of->mass > 0)
    return structure_fail(
        r,
        "the mass %g of type %d is not that of one element; --elements %d=SYMBOL, or "
        "'# SYMBOL' behind it, says what it is",
        of->mass, type, type);
  return structure_fail(r,
                        "there are no Masses to tell elements by; --elements %d=SYMBOL says what "
                        "type %d is",
                        type, type);
}
