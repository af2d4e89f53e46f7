/* tools/training/errors_of_labels.c - mean errors of predictions, by the frames' config_type. */
#include "tools/training/errors_of_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void label_error_add(label_error *e, const label_pairs *p) {
  for (int64_t i = 0; i < p->n; i++) {
    const double d = p->computed[i] - p->known[i];
    if (isnan(d)) continue;
    e->n++;
    e->absolute += fabs(d);
    e->square += d * d;
  }
}

double label_error_mean(const label_error *e) { return e->absolute / (double)e->n; }

double label_error_root_mean(const label_error *e) { return sqrt(e->square / (double)e->n); }

static type_errors *of_type(error_table *t, const char *type) {
  for (int i = 0; i < t->n; i++) {
    const char *known = t->types[i].type;
    if (known && type ? !strcmp(known, type) : known == type) return &t->types[i];
  }
  if (t->n == t->room) {
    t->room = 2 * t->room + 8;
    t->types = enlarge(t->types, (size_t)t->room, sizeof *t->types);
  }
  char *copy = type ? allocate(strlen(type) + 1, 1) : NULL;
  if (type) strcpy(copy, type);
  t->types[t->n] = (type_errors){.type = copy};
  return &t->types[t->n++];
}

void error_table_add(error_table *t, const md_system *frame, const labelled_frame *l) {
  type_errors *const to[] = {&t->all, of_type(t, frame->atoms.labels->type)};
  for (int i = 0; i < 2; i++) {
    bool labelled = false;
    for (int k = 0; k < LABELS; k++) {
      label_error_add(&to[i]->of[k], &l->of[k]);
      labelled |= l->of[k].n > 0;
    }
    to[i]->frames++;
    to[i]->atoms += frame->atoms.n;
    to[i]->unlabelled += !labelled;
  }
}

void error_table_free(error_table *t) {
  for (int i = 0; i < t->n; i++) free(t->types[i].type);
  free(t->types);
}
