/* tools/structures/structure_comment.c - the comment line of a frame of XYZ. */
#include "tools/structures/structure_comment.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "tools/structures/structure_ipi.h"
#include "tools/structures/structure_labels.h"

/* ---- entries ---- */

char comment_closing(char c) {
  static const char pairs[] = "\"\"''{}[]";
  const char *at = c ? strchr(pairs, c) : NULL;
  return at && (at - pairs) % 2 == 0 ? at[1] : 0;
}

/* Ends the word at *at with 0, without its quotes and escapes; brackets nest. *after is the byte
   behind it, which *at passes unless it is the end of the line. false: a quote is not closed. */
static bool take(char **at, const char *ends, char **word, char *after, bool *quoted) {
  char *s = *at, *out = s;
  const char open = *s, close = comment_closing(open);
  int depth = close != 0;
  *word = out;
  *quoted = close;
  if (close) s++;
  while (*s && (close || !strchr(ends, *s))) {
    if (close && *s == close && --depth == 0) break;
    depth += close && close != open && *s == open;
    s += *s == '\\' && s[1];
    *out++ = *s++;
  }
  if (close && !*s) return false;
  s += close != 0;
  *after = *s;
  *at = s + (*s != 0);
  *out = 0;
  return true;
}

/* Whether a key and = follow, so that the value before them is empty. */
static bool key_follows(const char *s) {
  const char close = comment_closing(*s);
  if (close) {
    for (s++; *s && *s != close;) s += 1 + (*s == '\\' && s[1]);
    s += *s != 0;
  } else s += strcspn(s, " \t=");
  return s[strspn(s, " \t")] == '=';
}

/* The next entry from *at on, in place. 1: *e is set; 0: there is none; -1: an error. */
static int comment_next(structure_reader *r, char **at, comment_entry *e) {
  static const char unclosed[] = "a value in this line lacks its closing quote or bracket";
  char after;
  bool quoted;
  *e = (comment_entry){0};
  *at += strspn(*at, " \t");
  if (!**at) return 0;
  if (!take(at, " \t=", &e->key, &after, &quoted)) return structure_fail(r, unclosed), -1;
  if (after && !strchr(" \t=", after))
    return structure_fail(r, "a blank or = is wanted behind the quote of '%.60s'", e->key), -1;
  if (after != '=') {
    *at += strspn(*at, " \t");
    if (**at != '=') return 1;
    ++*at;
  }
  const size_t blanks = strspn(*at, " \t");
  e->value = *at += blanks;
  if (!**at) return 1;
  if (blanks && key_follows(*at)) return e->value = "", 1;
  if (!take(at, " \t", &e->value, &after, &quoted)) return structure_fail(r, unclosed), -1;
  if (quoted ? after && !strchr(" \t", after) : strchr(e->value, '"') != NULL)
    return structure_fail(r, "the value of '%.60s' has a quote in its middle", e->key), -1;
  return 1;
}

/* ---- values ---- */

void comment_separate(char *value) {
  for (; *value; value++)
    if (strchr(",[](){}", *value)) *value = ' ';
}

static bool read_flags(char *value, bool flags[3]) {
  const char *at = value;
  char field[STRUCTURE_FIELD];
  int n = 0;
  comment_separate(value);
  for (const char *w; (w = structure_word(&at, field)); n++) {
    const bool yes = !strcasecmp(w, "T") || !strcasecmp(w, "true") || !strcmp(w, "1");
    if (n == 3 ||
        (!yes && strcasecmp(w, "F") != 0 && strcasecmp(w, "false") != 0 && strcmp(w, "0")))
      return false;
    flags[n] = yes;
  }
  if (n == 1) flags[1] = flags[2] = flags[0]; /* ASE's pbc=T */
  return (n == 1 || n == 3) && !at[strspn(at, " \t")];
}

enum { LATTICE, PBC, PROPERTIES, KEYS };

static const char *const keys[KEYS] = {"Lattice", "pbc", "Properties"};

typedef struct {
  char *value[KEYS];
  structure_ipi ipi;
  comment_hints hints;
  comment_labels labels;
} comment;

/* Of all atoms; only some models ask for them. */
static void take_state(structure *s, const comment_entry *e) {
  static const char *const names[][2] = {{"charge", "total_charge"}, {"spin", "total_spin"}};
  int32_t *const to[] = {&s->charge, &s->spin};
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 2; i++) {
      double x;
      if (strcasecmp(e->key, names[k][i]) != 0) continue;
      const bool whole = structure_number(e->value, &x) && x == floor(x) && fabs(x) < 1e6;
      *to[k] = whole ? (int32_t)x : INT32_MIN;
    }
}

static bool take_entry(structure_reader *r, comment *c, const comment_entry *e) {
  int key = 0;
  while (key < KEYS && strcasecmp(e->key, keys[key]) != 0) key++;
  if (!e->value && (key == LATTICE || key == PROPERTIES))
    return structure_fail(r, "'%s' stands here without = and a value", e->key);
  if (!e->value) return structure_ipi_word(r, &c->ipi, e->key);
  if (key == KEYS) {
    comment_look_at_units(e, c->hints.unit);
    take_state(r->s, e);
    return !r->s->labels || structure_label_take(r, &c->labels, e);
  }
  if (c->value[key]) return structure_fail(r, "%s is there twice", keys[key]);
  c->value[key] = e->value;
  return true;
}

static bool another_cell(structure_reader *r, const comment_hints *h) {
  return structure_fail(r,
                        "a cell is called Lattice in extended XYZ, not '%s'; if there is none, "
                        "pbc=\"F F F\" says so",
                        h->cell);
}

/* What other programs say of a cell, of periodicity or of units would be lost. */
static bool check_hints(structure_reader *r, const comment *c) {
  const comment_hints *h = &c->hints;
  const bool cell = c->value[LATTICE] || c->ipi.form, pbc = c->value[PBC];
  if (h->angstrom && c->ipi.form && !(c->ipi.unit > 0))
    return structure_fail(r, "with CELL(...) positions are in atomic units, unless "
                             "positions{angstrom} says another");
  const char *unit = cell || pbc || *h->unit ? h->unit : h->unit_in_text;
  if (*unit && !(c->ipi.unit > 0))
    return structure_fail(r,
                          "'%s' seems to be a unit of the positions, which are in Angstrom unless "
                          "positions{...} says another",
                          unit);
  if (*h->cell && !cell && !pbc) return another_cell(r, h);
  const char *periodic = cell ? h->periodic_key : h->periodic;
  return !*periodic || pbc ||
         structure_fail(r,
                        "periodic directions are called pbc in extended XYZ, not '%s': "
                        "pbc=\"T T F\", with Lattice",
                        periodic);
}

static bool read_lattice(structure_reader *r, comment *c) {
  char *value = c->value[LATTICE];
  if (!value) return true;
  if (c->ipi.form) return structure_fail(r, "there are two cells, Lattice and CELL");
  comment_separate(value);
  if (structure_numbers(value, 9, r->s->cell[0]) != 9)
    return structure_fail(r, "Lattice is nine numbers in quotes, not '%.200s'", value);
  for (int d = 0; d < 3; d++) r->s->periodic[d] = true;
  return true;
}

bool structure_comment(structure_reader *r, const char **properties) {
  comment c = {.hints = comment_look(r->line)};
  comment_entry e;
  structure *s = r->s;
  char *at = r->line;
  int found;
  while ((found = comment_next(r, &at, &e)) == 1)
    if (!take_entry(r, &c, &e)) return false;
  if (found < 0 || !check_hints(r, &c) || !structure_ipi_end(r, &c.ipi) || !read_lattice(r, &c))
    return false;
  const bool cell = s->periodic[0];
  char *pbc = c.value[PBC];
  if (pbc && !read_flags(pbc, s->periodic))
    return structure_fail(r, "pbc is three of T and F in quotes, not '%.60s'", pbc);
  if (!cell && (s->periodic[0] || s->periodic[1] || s->periodic[2]))
    return *c.hints.cell ? another_cell(r, &c.hints)
                         : structure_fail(r, "pbc says periodic, but there is no Lattice");
  *properties = c.value[PROPERTIES];
  return !s->labels || structure_labels_read(r, &c.labels);
}
