/* tools/structures/structure_labels.c - energies, forces and stresses that extended XYZ says of its
   atoms. */
#include "tools/structures/structure_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/atoms/neighbours.h"

/* Of keys with the same meaning the first that is there counts. */
typedef enum { ENERGY, STRESS, WEIGHT, TYPE } label_meaning;
static const struct {
  const char *name;
  label_meaning meaning;
  bool virial; /* minus the stress times the volume */
} keys[LABEL_KEYS] = {{"REF_energy", ENERGY, false},    {"energy", ENERGY, false},
                      {"REF_stress", STRESS, false},    {"REF_virial", STRESS, true},
                      {"REF_virials", STRESS, true},    {"stress", STRESS, false},
                      {"virial", STRESS, true},         {"virials", STRESS, true},
                      {"config_weight", WEIGHT, false}, {"config_type", TYPE, false}};

bool structure_label_take(structure_reader *r, comment_labels *l, const comment_entry *e) {
  int key = 0;
  while (key < LABEL_KEYS && strcmp(e->key, keys[key].name) != 0) key++;
  if (key == LABEL_KEYS || !e->value) return true;
  if (l->value[key]) return structure_fail(r, "%s is there twice", keys[key].name);
  l->value[key] = e->value;
  return true;
}

/* The place in `keys` of the first that is there; -1: none is. */
static int find(const comment_labels *l, label_meaning meaning) {
  int key = 0;
  while (key < LABEL_KEYS && !(keys[key].meaning == meaning && l->value[key])) key++;
  return key < LABEL_KEYS ? key : -1;
}

/* ---- numbers ---- */

bool structure_label_number(const char *text, double *x) {
  const char *word = text + strspn(text, "+-");
  if (strcasecmp(word, "nan") != 0) return structure_number(text, x);
  *x = NAN;
  return true;
}

/* How many numbers a value is; -1: it is something else, or more than `most`. ASE writes arrays of
   several dimensions as "_JSON [[...]]". */
static int read_numbers(char *value, int most, double *x) {
  static const char json[] = "_JSON";
  char field[STRUCTURE_FIELD];
  const char *at = value + (strncmp(value, json, strlen(json)) ? 0 : strlen(json)), *word;
  int n = 0;
  comment_separate(value);
  while ((word = structure_word(&at, field)))
    if (n == most || !structure_label_number(word, &x[n++])) return -1;
  return at[strspn(at, " \t")] ? -1 : n;
}

static bool read_energy(structure_reader *r, int key, char *value) {
  return read_numbers(value, 1, &r->s->labels->energy) == 1 ||
         structure_fail(r, "%s is a number of eV, or nan, not '%.60s'", keys[key].name, value);
}

static bool read_weight(structure_reader *r, int key, char *value) {
  double *weight = &r->s->labels->weight;
  return (read_numbers(value, 1, weight) == 1 && *weight >= 0) ||
         structure_fail(r, "%s is a number, 0 or more, not '%.60s'", keys[key].name, value);
}

/* Nine numbers, or six in Voigt's order: xx, yy, zz, yz, xz, xy. */
static bool read_stress(structure_reader *r, int key, char *value) {
  static const int voigt[9] = {0, 5, 4, 5, 1, 3, 4, 3, 2};
  double x[9], *to = r->s->labels->stress;
  const int n = read_numbers(value, 9, x);
  if (n != 9 && n != 6)
    return structure_fail(r,
                          "%s is nine numbers in quotes, or six: xx yy zz yz xz xy, not '%.200s'",
                          keys[key].name, value);
  for (int i = 0; i < 9; i++) to[i] = n == 6 ? x[voigt[i]] : x[i] / 2 + x[i % 3 * 3 + i / 3] / 2;
  if (keys[key].virial) r->virial = keys[key].name;
  return true;
}

static bool read_type(structure_reader *r, int key, char *value) {
  (void)key;
  r->s->labels->type = strdup(value);
  return r->s->labels->type || structure_fail(r, "out of memory");
}

bool structure_labels_read(structure_reader *r, const comment_labels *l) {
  static bool (*const readers[])(structure_reader *, int, char *) = {
      [ENERGY] = read_energy, [STRESS] = read_stress, [WEIGHT] = read_weight, [TYPE] = read_type};
  for (int meaning = ENERGY; meaning <= TYPE; meaning++) {
    const int key = find(l, meaning);
    if (key >= 0 && !readers[meaning](r, key, l->value[key])) return false;
  }
  return true;
}

/* ---- forces ---- */

bool structure_label_force(structure_reader *r, const double force[3]) {
  const structure *s = r->s;
  if (s->n > r->force_capacity) {
    double *forces = realloc(s->labels->forces, (size_t)r->capacity * 3 * sizeof *forces);
    if (!forces) return structure_fail(r, "out of memory for %lld forces", (long long)r->capacity);
    s->labels->forces = forces;
    r->force_capacity = r->capacity;
  }
  memcpy(s->labels->forces + 3 * (s->n - 1), force, 3 * sizeof *force);
  return true;
}

static bool any_known(const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!isnan(x[i])) return true;
  return false;
}

bool structure_labels_end(structure_reader *r) {
  structure_labels *l = r->s->labels;
  const double volume = clb_cell_volume(&r->s->cell[0][0]);
  if (l->forces && !any_known(l->forces, 3 * r->s->n)) {
    free(l->forces);
    l->forces = NULL;
  }
  if (!any_known(l->stress, 9)) return true;
  if (!(volume > 0)) return structure_fail(r, "the frame has a stress, but no cell with a volume");
  for (int i = 0; i < 9 && r->virial; i++)
    if (isinf(l->stress[i] = -l->stress[i] / volume))
      return structure_fail(r, "%s in a volume of %g Angstrom^3 is no finite stress", r->virial,
                            volume);
  return true;
}

/* ---- memory ---- */

structure_labels *structure_labels_new(void) {
  structure_labels *l = malloc(sizeof *l);
  if (!l) return NULL;
  *l = (structure_labels){.energy = NAN, .weight = 1};
  for (int i = 0; i < 9; i++) l->stress[i] = NAN;
  return l;
}

void structure_labels_free(structure_labels *l) {
  if (!l) return;
  free(l->forces);
  free(l->type);
  free(l);
}
