/* tools/structures/structure_gro.c - atoms from files of GROMACS, in nm. */
#include <string.h>

#include "tools/structures/structure_elements.h"

/* Columns: 6-10 residue, 11-15 atom, from 21 on three coordinates, as wide as the distance of their
   decimal points. */
static bool read_atom(structure_reader *r) {
  char name[STRUCTURE_FIELD], residue[STRUCTURE_FIELD], field[STRUCTURE_FIELD];
  const size_t n = strlen(r->line);
  const char *point = n > 20 ? strchr(r->line + 20, '.') : NULL,
             *next = point ? strchr(point + 1, '.') : NULL,
             *last = next ? strchr(next + 1, '.') : NULL;
  const int width = next ? (int)(next - point) : 0;
  if (width < 3 || width > 40 || n < 20 + 3 * (size_t)width || !last || last - next != width)
    return structure_fail(r, "three coordinates in equal columns are wanted from column 21 on");
  double x[3];
  for (int k = 0; k < 3; k++)
    if (!structure_number(structure_columns(r, 21 + k * width, 20 + (k + 1) * width, field), &x[k]))
      return structure_fail(r, "'%s' is not a finite number", field);
  structure_columns(r, 6, 10, residue);
  structure_columns(r, 11, 15, name);
  return structure_add_named(r, structure_element_of_name(r, name, residue, NAME_ANYWHERE), name,
                             residue, x);
}

/* v1(x) v2(y) v3(z) v1(y) v1(z) v2(x) v2(z) v3(x) v3(y); all 0, or nothing, if there is no box. */
static bool read_box(structure_reader *r) {
  static const int place[9] = {0, 4, 8, 1, 2, 3, 5, 6, 7};
  double box[9] = {0};
  const int found = structure_numbers(r->line, 9, box);
  if (found != 0 && found != 3 && found != 9)
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

bool structure_read_gro(structure_reader *r) {
  r->unit = 10;
  if (!structure_want_line(r, "the title") || !structure_want_line(r, "the number of atoms"))
    return false;
  const int64_t n = structure_count(r->line);
  if (n < 0)
    return structure_fail(r, "the second line is the number of atoms, not '%.60s'", r->line);
  for (int64_t i = 0; i < n; i++) {
    char what[64];
    snprintf(what, sizeof what, "atom %lld of %lld", (long long)i + 1, (long long)n);
    if (!structure_want_line(r, what) || !read_atom(r)) return false;
  }
  return structure_want_line(r, "the box") && read_box(r);
}
