/* tools/structures/structure_labels.h - energies, forces and stresses that extended XYZ says of its
   atoms. docs/training.md has their names. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_LABELS_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_LABELS_H

#include "tools/structures/structure_comment.h"

/* Values of keys that are labels, which point into the comment line; NULL: not there. */
enum { LABEL_KEYS = 10 };
typedef struct {
  char *value[LABEL_KEYS];
} comment_labels;

/* Keeps an entry that is a label. false: an error. */
bool structure_label_take(structure_reader *r, comment_labels *l, const comment_entry *e);
/* Reads what was kept into r->s->labels. */
bool structure_labels_read(structure_reader *r, const comment_labels *l);

/* A number, or NaN in any spelling. */
bool structure_label_number(const char *text, double *x);
/* The force on the atom that was added last. */
bool structure_label_force(structure_reader *r, const double force[3]);
/* After the last atom, when the cell is known: a stress needs its volume. */
bool structure_labels_end(structure_reader *r);

structure_labels *structure_labels_new(void); /* nothing is known; NULL: no memory */
void structure_labels_free(structure_labels *l);

#endif
