/* tools/structures/cif/structure_symmetry.h - symmetry operations, and the atoms that they make. */
#ifndef CLB_TOOLS_STRUCTURES_CIF_STRUCTURE_SYMMETRY_H
#define CLB_TOOLS_STRUCTURES_CIF_STRUCTURE_SYMMETRY_H

#include "tools/structures/structure_reader.h"

enum { SYMMETRY_MOST = 192 }; /* operations of a space group in its usual cell */

/* x -> rotation x + shift, in fractional coordinates. */
typedef struct {
  int rotation[3][3];
  double shift[3];
  char text[STRUCTURE_FIELD];
} symmetry_operation;

typedef struct {
  int32_t element;
  bool isotope; /* called D or T */
  double x[3];
  char label[16];
} symmetry_site;

/* "-x+1/2, y, z"; false: it is something else. */
bool symmetry_read(const char *text, symmetry_operation *o);
bool symmetry_identity(const symmetry_operation *o);
/* Adds the atoms of a site: all its images, each once. The structure's cell must be set, and
   operations must keep its lengths and angles. */
bool symmetry_add(structure_reader *r, const symmetry_site *site, int n,
                  const symmetry_operation *all);
/* Whether an operation keeps lengths and angles of the structure's cell. */
bool symmetry_fits(const structure *s, const symmetry_operation *o);
/* Of atoms of one element at the same place the first is kept; of two elements it is an error. */
bool symmetry_merge(structure_reader *r);

#endif
