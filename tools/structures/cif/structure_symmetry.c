/* tools/structures/cif/structure_symmetry.c - symmetry operations, and the atoms that they make. */
#include "tools/structures/cif/structure_symmetry.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/neighbours.h"

/* Angstrom: images of an atom closer than `same` are the atom itself, but for digits that its
   coordinates lack; closer than `apart` they are neither one atom nor two. */
static const double same = 0.05, apart = 0.5;

/* ---- operations ---- */

/* "1/2" or "0.5". */
static bool read_shift(const char **at, double *x) {
  char *end;
  *x = strtod(*at, &end);
  if (end == *at) return false;
  *at = end;
  if (**at != '/') return true;
  const double by = strtod(++*at, &end);
  if (end == *at || !(by > 0)) return false;
  *at = end;
  *x /= by;
  return true;
}

/* One of three: terms with signs, each a letter or a shift. */
static bool read_row(const char **at, int row[3], double *shift) {
  int terms = 0;
  for (;; terms++) {
    *at += strspn(*at, " \t");
    int sign = 1;
    const bool has_sign = **at == '+' || **at == '-';
    if (!has_sign && terms) return true;
    if (has_sign) sign = *(*at)++ == '-' ? -1 : 1;
    *at += strspn(*at, " \t");
    const int axis = tolower((unsigned char)**at) - 'x';
    double x;
    if (axis >= 0 && axis < 3) {
      ++*at;
      row[axis] += sign;
    } else if (strchr("0123456789.", **at) && **at && read_shift(at, &x)) *shift += sign * x;
    else return false;
  }
}

static int determinant(const int a[3][3]) {
  int sum = 0;
  for (int i = 0; i < 3; i++)
    sum +=
        a[0][i] * (a[1][(i + 1) % 3] * a[2][(i + 2) % 3] - a[1][(i + 2) % 3] * a[2][(i + 1) % 3]);
  return sum;
}

bool symmetry_read(const char *text, symmetry_operation *o) {
  *o = (symmetry_operation){0};
  snprintf(o->text, sizeof o->text, "%s", text);
  for (int i = 0; i < 3; i++) {
    if (!read_row(&text, o->rotation[i], &o->shift[i]) || !isfinite(o->shift[i])) return false;
    if (*text != (i < 2 ? ',' : 0)) return false;
    text += i < 2;
  }
  return abs(determinant((const int(*)[3])o->rotation)) == 1;
}

bool symmetry_identity(const symmetry_operation *o) {
  for (int k = 0; k < 9; k++)
    if (o->rotation[k / 3][k % 3] != (k % 4 == 0)) return false;
  return o->shift[0] == 0 && o->shift[1] == 0 && o->shift[2] == 0;
}

static double product(const structure *s, const double x[3], const double y[3]) {
  double sum = 0;
  for (int k = 0; k < 3; k++) {
    double a = 0, b = 0;
    for (int d = 0; d < 3; d++) a += x[d] * s->cell[d][k], b += y[d] * s->cell[d][k];
    sum += a * b;
  }
  return sum;
}

bool symmetry_fits(const structure *s, const symmetry_operation *o) {
  static const double tolerance = 1e-2; /* of digits that a cell may lack */
  double axis[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, moved[3][3];
  for (int k = 0; k < 9; k++) moved[k / 3][k % 3] = o->rotation[k % 3][k / 3];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j <= i; j++) {
      const double scale = sqrt(product(s, axis[i], axis[i]) * product(s, axis[j], axis[j]));
      if (!(fabs(product(s, moved[i], moved[j]) - product(s, axis[i], axis[j])) <=
            tolerance * scale))
        return false;
    }
  return true;
}

/* ---- atoms ---- */

static double distance(const structure *s, const double x[3], const double y[3]) {
  double d[3];
  for (int k = 0; k < 3; k++) d[k] = x[k] - y[k], d[k] -= round(d[k]);
  return sqrt(product(s, d, d));
}

static void move(const symmetry_operation *o, const double x[3], double y[3]) {
  for (int i = 0; i < 3; i++) {
    y[i] = o->shift[i];
    for (int k = 0; k < 3; k++) y[i] += o->rotation[i][k] * x[k];
    if (!symmetry_identity(o)) y[i] -= floor(y[i]);
  }
}

bool symmetry_add(structure_reader *r, const symmetry_site *site, int n,
                  const symmetry_operation *all) {
  double found[SYMMETRY_MOST][3];
  int n_found = 0;
  for (int i = 0; i < n && i < SYMMETRY_MOST; i++) {
    double *y = found[n_found], d = INFINITY;
    move(&all[i], site->x, y);
    for (int k = 0; k < n_found && !(d < same); k++) d = fmin(d, distance(r->s, found[k], y));
    if (d < same) continue;
    if (d < apart)
      return structure_fail(r,
                            "site '%s' and its image by '%s' are %.3g Angstrom apart: neither one "
                            "atom nor two",
                            site->label, all[i].text, d);
    if (!structure_add_fraction(r, site->element, y)) return false;
    r->s->isotopes += site->isotope;
    n_found++;
  }
  return true;
}

/* Removes the later one of each pair on the list. */
static bool remove_later(structure_reader *r, const clb_neighbours *list) {
  structure *s = r->s;
  int64_t kept = 0, e = 0;
  for (int64_t i = 0; i < s->n; i++) {
    bool twice = false;
    for (; e < list->n_edges && list->receivers[e] == i; e++) {
      const int32_t j = list->senders[e];
      if (s->numbers[j] != s->numbers[i] && j != i)
        return structure_fail(r, "%s and %s are at the same place",
                              clb_element_symbols[s->numbers[j]],
                              clb_element_symbols[s->numbers[i]]);
      twice = twice || j < i;
    }
    if (twice) continue;
    memmove(s->positions + 3 * kept, s->positions + 3 * i, 3 * sizeof *s->positions);
    s->numbers[kept++] = s->numbers[i];
  }
  s->n = kept;
  return true;
}

bool symmetry_merge(structure_reader *r) {
  structure *s = r->s;
  clb_neighbours list = {.cutoff = same};
  bool good = !clb_neighbours_update(&list, s->n, s->positions, s->cell[0], s->periodic, NULL);
  good = good ? remove_later(r, &list) : structure_fail(r, "%s", list.error);
  clb_neighbours_free(&list);
  return good;
}
