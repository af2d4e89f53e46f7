/* tools/structures/structure_hints.c - words about cells, periodicity and units in comment lines.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/structure_comment.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Lists of words in small letters, with a blank around each. */
static const char cell_words[] =
    " cell cells celldm cellpar cellparameters unitcell supercell simcell box boxsize "
    "simbox lattice latvec latvecs latticevectors cryst hmat abc tv ",
                  periodic_words[] = " pbc periodic periodicity boundary boundaries ",
                  not_words[] = " non not no without ",
                  other_units[] =
                      " bohr bohrs atomic_unit atomic_units nanometer nanometers nanometre "
                      "nanometres picometer picometers picometre picometres fractional ",
                  vague_units[] =
                      " au a.u nm pm atomic ", /* of energies or names of elements, too */
    length_words[] = " unit units coordinate coordinates coord coords position positions geometry "
                     "length lengths distance distances ",
                  angstrom_words[] = " angstrom angstroms ang a metal real ase ",
                  plain_units[] = " ev k kelvin fs ps e gpa ",
                  other_quantities[] =
                      " energy energies force forces stress virial time charge charges mass "
                      "masses velocity velocities dipole pressure temperature momentum ";

static bool in(const char *list, const char *word, size_t n) {
  for (const char *at = list + 1; *at; at += strcspn(at, " ") + 1)
    if (strcspn(at, " ") == n && !strncasecmp(at, word, n)) return true;
  return false;
}

static void keep(char to[COMMENT_WORD], const char *word, size_t n) {
  if (*to) return;
  if (n > COMMENT_WORD - 1) n = COMMENT_WORD - 1;
  memcpy(to, word, n);
  to[n] = 0;
}

/* ---- cells and periodicity ---- */

/* Whether = follows the word, which may be part of a longer one: "cell_size =", "celldm(1)=". */
static bool is_key(const char *after) {
  while (isalnum((unsigned char)*after) || (*after && strchr("_-()", *after))) after++;
  return after[strspn(after, " \t\"'")] == '=';
}

/* The last word that starts with a number; NULL: there is none. */
static const char *last_number(const char *line) {
  const char *last = NULL;
  for (const char *at = line; *at; at++) {
    const char *s = at + (strchr("+-.", *at) != NULL);
    if (isdigit((unsigned char)*s) && (at == line || strchr(" \t:=([{,;\"'|", at[-1]))) last = at;
  }
  return last;
}

/* ---- units ---- */

/* A word without the signs around it: "(a.u.)," -> "a.u". */
static const char *trim(const char *word, size_t *n) {
  static const char signs[] = "()[]{}<>,;:.\"'#";
  while (*n && strchr(signs, *word)) word++, --*n;
  while (*n && strchr(signs, word[*n - 1])) --*n;
  return word;
}

/* Behind the value that follows the =. */
static const char *skip_value(const char *equals) {
  const char *s = equals + 1 + strspn(equals + 1, " \t");
  const char close = comment_closing(*s);
  if (!close) return s + strcspn(s, " \t");
  for (s++; *s && *s != close;) s += 1 + (*s == '\\' && s[1]);
  return s + (*s != 0);
}

/* Units in prose. "au" in other letters is gold, and "a.u." could be of the energy, unless the
   line speaks of lengths and of no Angstrom. */
static void look_for_units(const char *line, bool values, char unit[COMMENT_WORD]) {
  const char *vague = NULL;
  size_t bytes = 0;
  bool lengths = false, angstrom = false;
  for (const char *at = line; *(at += strspn(at, " \t"));) {
    size_t n = strcspn(at, " \t");
    const char *equals = memchr(at, '=', n), *word = at;
    at = equals && !values ? skip_value(equals) : at + n;
    word = trim(word, &n);
    if (equals) continue;
    if (in(other_units, word, n)) keep(unit, word, n);
    if (in(vague_units, word, n) && strncmp(word, "A", 1) != 0) vague = word, bytes = n;
    lengths |= in(length_words, word, n);
    angstrom |= n > 1 && in(angstrom_words, word, n);
  }
  if (vague && lengths && !angstrom) keep(unit, vague, bytes);
}

void comment_look_at_units(const comment_entry *e, char unit[COMMENT_WORD]) {
  bool units = false;
  for (const char *at = e->key; *at;) {
    const size_t n = strspn(at, letters);
    units |= in(" unit units ", at, n) && strncasecmp(at + n, "_cell", 5) != 0;
    if (in(other_quantities, at, n)) return;
    at += n ? n : 1;
  }
  for (const char *at = e->value; units && *at;) {
    const size_t n = strcspn(at, " \t,;/()[]{}:*^");
    if (n && !in(angstrom_words, at, n) && !in(plain_units, at, n)) keep(unit, at, n);
    at += n ? n : 1;
  }
}

comment_hints comment_look(const char *line) {
  comment_hints h = {0};
  const char *number = last_number(line);
  bool negated = false;
  look_for_units(line, false, h.unit);
  look_for_units(line, true, h.unit_in_text);
  for (const char *at = line; *at;) {
    const size_t n = strspn(at, letters);
    const char *after = at + n;
    if (n && in(cell_words, at, n) && (is_key(after) || (number && number >= after)))
      keep(h.cell, at, n);
    if (n && in(periodic_words, at, n) && !negated) {
      keep(h.periodic, at, n);
      if (is_key(after)) keep(h.periodic_key, at, n);
    }
    h.angstrom |= n > 1 && in(angstrom_words, at, n) && at > line && at[-1] != '{';
    if (n) negated = in(not_words, at, n);
    at = n ? after : at + 1;
  }
  return h;
}
