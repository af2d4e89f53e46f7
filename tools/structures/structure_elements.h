/* tools/structures/structure_elements.h - elements from symbols and from names of atoms. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_ELEMENTS_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_ELEMENTS_H

#include "tools/structures/structure_reader.h"

/* How columns 13 to 16 of a PDB file hold a name: where the file keeps to the format, a symbol ends
   in column 14. */
typedef enum {
  NAME_ANYWHERE,     /* the place says nothing */
  NAME_AT_COLUMN_13, /* a symbol of two letters, or a name of four characters */
  NAME_AT_COLUMN_14  /* a symbol of one letter */
} name_place;

/* The element of a symbol, in any case, or of a name that --elements knows; D and T are H, and are
   counted. 0: neither. */
int32_t structure_element(structure_reader *r, const char *symbol);
/* The element that --elements says of this name; 0: none. */
int32_t structure_element_told(const structure_reader *r, const char *name);
/* Counts an atom whose mass is not that of its element, to 1 %; NAN: it is not known. */
void structure_see_mass(structure_reader *r, int32_t element, double mass);
/* Whether a name starts with a symbol of two letters. */
bool structure_symbol_of_two(const char *name);
/* The element of an atom that has only a name; 0: it is not known, or could be several. */
int32_t structure_element_of_name(structure_reader *r, const char *name, const char *residue,
                                  name_place place);
/* Adds an atom; its element 0 is an error that names it, unless the options allow that. */
bool structure_add_named(structure_reader *r, int32_t element, const char *name,
                         const char *residue, const double x[3]);

#endif
