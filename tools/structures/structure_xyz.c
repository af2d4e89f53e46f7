/* tools/structures/structure_xyz.c - atoms from extended XYZ. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/structure_comment.h"
#include "tools/structures/structure_elements.h"
#include "tools/structures/structure_labels.h"

enum { SPECIES, NUMBER, POS, MASSES, MOVES, FORCES, REF_FORCES, USED };

/* Columns of an atom's line, from 0; -1: it is not there. */
typedef struct {
  int at[USED], all;
  int moves;  /* columns of MOVES: of an atom, or of each direction */
  int force;  /* the first of the columns of forces; -1: there are none, or no labels are wanted */
  bool plain; /* without Properties: more columns may follow, and atomic numbers are symbols */
} xyz_columns;

/* ---- Properties ---- */

static const struct {
  const char *name;
  char type;
  int n;
} used[USED] = {
    {"species", 'S', 1},   {"Z", 'I', 1},      {"pos", 'R', 3}, {"masses", 'R', 1},
    {"move_mask", 'L', 1}, {"forces", 'R', 3}, /* and what follows only where labels are wanted */
    {"REF_forces", 'R', 3}};

/* "NAME:TYPE:COUNT", which *text passes; false: it is something else. */
static bool next_property(const char **text, size_t *name, char *type, int *n) {
  const char *at = *text;
  *name = strcspn(at, ":");
  at += *name;
  if (!*name || at[0] != ':' || !at[1] || !strchr("SRIL", at[1]) || at[2] != ':') return false;
  *type = at[1];
  const size_t digits = strspn(at + 3, "0123456789");
  if (!digits || digits > 4 || (at[3 + digits] && at[3 + digits] != ':')) return false;
  *n = 0;
  for (size_t i = 0; i < digits; i++) *n = 10 * *n + at[3 + i] - '0';
  *text = at + 3 + digits + (at[3 + digits] == ':');
  return *n;
}

/* "species:S:1:pos:R:3:...": names, types and widths. */
static bool read_properties(structure_reader *r, const char *text, xyz_columns *c) {
  const int names = r->s->labels ? USED : FORCES;
  *c = (xyz_columns){.at = {-1, -1, -1, -1, -1, -1, -1}};
  while (*text) {
    const char *name = text;
    size_t bytes;
    char type;
    int n, i = 0;
    if (!next_property(&text, &bytes, &type, &n) || c->all > 1 << 24)
      return structure_fail(r, "Properties are name:type:count:..., type S, R, I or L, not '%.60s'",
                            name);
    while (i < names && (strlen(used[i].name) != bytes || strncasecmp(used[i].name, name, bytes)))
      i++;
    if (i == MOVES && type == 'L') c->moves = n;
    else if ((i == MASSES && (type != 'R' || n != 1)) || i == MOVES) i = names; /* something else */
    if (i < names && i != MOVES && (used[i].type != type || used[i].n != n))
      return structure_fail(r, "Properties say %s:%c:%d, which must be %s:%c:%d", used[i].name,
                            type, n, used[i].name, used[i].type, used[i].n);
    if (i < names && c->at[i] >= 0)
      return structure_fail(r, "Properties have %s twice", used[i].name);
    if (i < names) c->at[i] = c->all;
    c->all += n;
  }
  c->force = c->at[REF_FORCES] >= 0 ? c->at[REF_FORCES] : c->at[FORCES];
  return ((c->at[SPECIES] >= 0 || c->at[NUMBER] >= 0) && c->at[POS] >= 0) ||
         structure_fail(r, "Properties lack species:S:1 (or Z:I:1) or pos:R:3");
}

/* For no atoms ASE writes columns of other types.
   LAMMPS writes numbers of types instead of symbols, and "Atoms. Timestep: 0" into the comment. */
static bool read_comment(structure_reader *r, int64_t n, xyz_columns *c) {
  const char *properties;
  const bool types = !strncmp(r->line, "Atoms", 5);
  if (!structure_comment(r, &properties)) return false;
  if (properties && n) return read_properties(r, properties, c);
  *c = (xyz_columns){{0, -1, 1, -1, -1, -1, -1}, 4, 0, -1, !types};
  return true;
}

/* ---- atoms ---- */

static bool read_symbol(structure_reader *r, const xyz_columns *c, const char *word, int used_as,
                        int32_t *element) {
  int32_t z = used_as == SPECIES ? structure_element(r, word) : 0;
  if (!z && (c->plain || used_as == NUMBER) && !word[strspn(word, "0123456789")])
    z = (int32_t)structure_count(word);
  if (z < 1 || z > CLB_ELEMENTS)
    return structure_fail(r,
                          used_as == NUMBER
                              ? "'%s' is not an atomic number"
                              : "'%s' is not a chemical symbol; --elements NAME=SYMBOL "
                                "says what it means",
                          word);
  if (*element && *element != z)
    return structure_fail(r, "species and Z are different elements: %s and %s",
                          clb_element_symbols[*element], clb_element_symbols[z]);
  *element = z;
  return true;
}

/* Whether k is one of three columns. */
static bool one_of_three(int k, int first) { return first >= 0 && k >= first && k < first + 3; }

static bool read_atom(structure_reader *r, const xyz_columns *c, const char *what) {
  char field[STRUCTURE_FIELD];
  const char *at = r->line;
  int32_t element = 0;
  bool fixed = false;
  double x[3], force[3], mass = NAN;
  for (int k = 0; k < c->all; k++) {
    const bool coordinate = one_of_three(k, c->at[POS]), of_force = one_of_three(k, c->force),
               symbol = k == c->at[SPECIES] || k == c->at[NUMBER], of_mass = k == c->at[MASSES];
    const char *word = at + strspn(at, " \t");
    fixed |= c->at[MOVES] >= 0 && k >= c->at[MOVES] && k < c->at[MOVES] + c->moves && *word == 'F';
    if (!structure_skip_word(&at))
      return structure_fail(r, "%s has %d of %d columns", what, k, c->all);
    /* what is no number is skipped, as other columns are */
    if (of_mass && (!structure_word(&word, field) || !structure_number(field, &mass))) mass = NAN;
    if (!coordinate && !of_force && !symbol) continue;
    if (!structure_word(&word, field))
      return structure_fail(r, "'%.60s...' is neither a number nor a symbol", word);
    if (symbol && !read_symbol(r, c, field, k == c->at[SPECIES] ? SPECIES : NUMBER, &element))
      return false;
    if (coordinate && !structure_number(field, &x[k - c->at[POS]]))
      return structure_fail(r, "'%s' is not a finite number", field);
    if (of_force && !structure_label_number(field, &force[k - c->force]))
      return structure_fail(r, "the force '%s' is neither a finite number nor nan", field);
  }
  if (!c->plain && at[strspn(at, " \t")])
    return structure_fail(r, "%s has more than %d columns", what, c->all);
  structure_see_mass(r, element, mass);
  r->s->fixed += fixed;
  return structure_add(r, element, x) && (c->force < 0 || structure_label_force(r, force));
}

/* Behind the atoms ASE may write the periodic vectors as more of them: "VEC1 5 0 0". */
static bool read_vectors(structure_reader *r) {
  structure *s = r->s;
  const bool *p = s->periodic, cell = p[0] || p[1] || p[2];
  for (int d = 0; structure_line(r); d++) {
    double v[3];
    if (strncmp(r->line + strspn(r->line, " \t"), "VEC", 3) != 0) return r->again = true;
    const char *at = r->line + strspn(r->line, " \t") + 3;
    if (d == 3 || cell || *at != '1' + d || !strchr(" \t", at[1]) ||
        structure_numbers(at + 1, 3, v) != 3)
      return structure_fail(r,
                            "VEC1, VEC2, VEC3 and three numbers each are wanted, and no Lattice");
    for (int k = 0; k < 3; k++) s->cell[d][k] = r->unit * v[k];
    s->periodic[d] = true;
  }
  return !r->error[0];
}

/* The number of atoms, which is the current line, and the comment line. */
static bool read_start(structure_reader *r, int64_t *n) {
  *n = structure_count(r->line);
  if (*n < 0)
    return structure_fail(r, "the first line%s is the number of atoms, not '%.60s'",
                          r->line_number > 1 ? " of a frame" : "", r->line);
  return structure_want_line(r, "the comment line");
}

static void name_atom(char what[64], int64_t i, int64_t n) {
  snprintf(what, 64, "atom %lld of %lld", (long long)i + 1, (long long)n);
}

static bool read_frame(structure_reader *r, int64_t *n) {
  xyz_columns c;
  char what[64];
  if (!read_start(r, n) || !read_comment(r, *n, &c)) return false;
  for (int64_t i = 0; i < *n; i++) {
    name_atom(what, i, *n);
    if (!structure_want_line(r, what) || !read_atom(r, &c, what)) return false;
  }
  return read_vectors(r) && (!r->s->labels || structure_labels_end(r));
}

static bool skip_frame(structure_reader *r) {
  int64_t n;
  char what[64];
  if (!read_start(r, &n)) return false;
  for (int64_t i = 0; i < n; i++) {
    name_atom(what, i, n);
    if (!structure_want_line(r, what)) return false;
  }
  while (structure_line(r))
    if (strncmp(r->line + strspn(r->line, " \t"), "VEC", 3) != 0) return r->again = true;
  return !r->error[0];
}

/* After the atoms there must be the next frame's number of atoms, or only blank lines. */
static bool check_end(structure_reader *r, int64_t n) {
  while (structure_line(r)) {
    if (!r->line[strspn(r->line, " \t")]) continue;
    return structure_count(r->line) >= 0 ||
           structure_fail(r, "there are more lines than the %lld atoms that line 1 tells of",
                          (long long)n);
  }
  return !r->error[0];
}

bool structure_read_xyz(structure_reader *r) {
  int64_t n;
  return structure_want_line(r, "the number of atoms") && read_frame(r, &n) && check_end(r, n);
}

/* Goes to the number of atoms of the next frame: 1, or 0: there is none, or -1 with an error. */
static int next_frame(structure_reader *r) {
  if (!r->cell_line && !structure_want_line(r, "the number of atoms")) return -1;
  while (r->cell_line) {
    if (!structure_line(r)) return r->error[0] ? -1 : 0;
    if (r->line[strspn(r->line, " \t")]) break;
  }
  r->cell_line = r->line_number + 1;
  return 1;
}

int structure_read_frame(structure_reader *r) {
  int64_t n;
  const int found = next_frame(r);
  return found != 1 || read_frame(r, &n) ? found : -1;
}

int structure_skip_frame(structure_reader *r) {
  const int found = next_frame(r);
  return found != 1 || skip_frame(r) ? found : -1;
}
