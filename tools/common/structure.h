/* tools/common/structure.h - atoms from files: extended XYZ (.xyz, .extxyz), GROMACS (.gro), PDB
   (.pdb, .ent). */
#ifndef CLB_TOOLS_COMMON_STRUCTURE_H
#define CLB_TOOLS_COMMON_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/atoms/elements.h"

typedef struct {
  int64_t n;
  double *positions; /* [n][3], Angstrom */
  int32_t *numbers;  /* [n]: atomic numbers, 1 ... 118 */
  double cell[3][3]; /* Angstrom, rows are the lattice vectors; zeros where the file has none */
  bool periodic[3];
  int64_t alternates; /* of a PDB file: atoms left out, since their residue was met at another place
                         before */
} structure;

/* Reads the first frame of a file, of the format that its name ends in.  atoms_only: of a PDB file
   ATOM records only, no HETATM; of the alternate places of a residue the first is taken.  The cell
   is no thinner than an atom.  false: error (of size > 0) says which file, which line, what would
   be right; *s is empty. */
bool structure_read(const char *path, bool atoms_only, structure *s, char *error, size_t size);
void structure_free(structure *s);

#endif
