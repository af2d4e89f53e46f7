/* tools/structures/structure.h - atoms from files: extended XYZ (.xyz, .extxyz), GROMACS (.gro),
   PDB
   (.pdb, .ent). */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/atoms/elements.h"

typedef struct {
  int64_t n;
  double *positions; /* [n][3], Angstrom */
  int32_t *numbers;  /* [n]: atomic numbers, 1 ... 118; 0: not known (any_element) */
  double cell[3][3]; /* Angstrom, rows are the lattice vectors; zeros if the file has none */
  bool periodic[3];
  int64_t alternates; /* PDB: number of atoms skipped because they belong to an alternate location
                         of a residue */
  int64_t isotopes;   /* number of atoms called D or T, which are H in `numbers` */
} structure;

typedef struct {
  bool atoms_only;      /* of a PDB file ATOM records only, no HETATM */
  bool any_element;     /* an atom whose element is not known is not an error */
  const char *elements; /* "NAME=El,...": elements of atoms by name, or RESIDUE:NAME; NULL: none */
} structure_options;

extern const double
    atomic_weights[CLB_ELEMENTS + 1]; /* standard weights; for elements without one, the mass number
                                         of the most stable isotope */

/* Reads the first frame of a file; the format follows from the end of its name. The first alternate
   location of each residue of a PDB file is used. A cell thinner than an atom is refused. NULL
   options: none. false: error (of size > 0) names the file, the line and what was expected; *s is
   empty. */
bool structure_read(const char *path, const structure_options *options, structure *s, char *error,
                    size_t size);
void structure_free(structure *s);

/* Whether `elements` of the options is as above; otherwise `error` is a sentence. */
bool structure_elements_check(const char *elements, char *error, size_t size);

/* The frames of an extended XYZ file, one after the other. */
typedef struct structure_frames structure_frames;
/* NULL, and `error` as above: it cannot be opened, or has another format. All arguments are used
   until structure_frames_close. */
structure_frames *structure_frames_open(const char *path, const structure_options *options,
                                        char *error, size_t size);
/* 1: *s is the next frame; 0: there are no more; -1: `error` says what is wrong. */
int structure_frames_next(structure_frames *f, structure *s);
void structure_frames_close(structure_frames *f);

#endif
