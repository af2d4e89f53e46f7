/* tools/structures/lammps/structure_lammps_types.h - types of atoms of a LAMMPS data file, and
   their elements. */
#ifndef CLB_TOOLS_STRUCTURES_LAMMPS_STRUCTURE_LAMMPS_TYPES_H
#define CLB_TOOLS_STRUCTURES_LAMMPS_STRUCTURE_LAMMPS_TYPES_H

#include "tools/structures/structure_reader.h"

enum { LAMMPS_TYPES = 4096 }; /* at most */

typedef struct lammps_type lammps_type;
typedef struct {
  int n;
  lammps_type *type; /* [n] */
} lammps_types;

bool lammps_types_start(structure_reader *r, lammps_types *t, int n);
void lammps_types_free(lammps_types *t);

/* "1 15.999", with the comment behind it; "1 O". The number may be a label known by then. */
bool lammps_type_mass(structure_reader *r, lammps_types *t, const char *line, const char *comment);
bool lammps_type_label(structure_reader *r, lammps_types *t, const char *line);

/* A type by its number or label, from 1; 0: there is none. */
int32_t lammps_type_find(const lammps_types *t, const char *word);

/* Its element: --elements (by number or label), or its mass, which must be that of one element, or
   the symbol in its comment or label, which must not be another element's. */
bool lammps_type_element(structure_reader *r, lammps_types *t, int32_t type, int32_t *element);

#endif
