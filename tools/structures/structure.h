/* tools/structures/structure.h - atoms from files: extended XYZ, POSCAR, CIF, LAMMPS' data files,
   GROMACS and PDB, compressed or not. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/atoms/elements.h"

/* What a frame of extended XYZ says of its atoms (docs/training.md). NaN: not known. */
typedef struct {
  double energy;    /* eV */
  double *forces;   /* [n][3], eV / Angstrom; NULL: none are known */
  double stress[9]; /* eV / Angstrom^3, symmetric: dE/dstrain / volume */
  double weight;    /* 0 or more; 1 where none is given */
  char *type;       /* config_type; NULL where none is given */
} structure_labels;

typedef struct {
  int64_t frame; /* its number in the file, from 1; 0: the file is not read frame by frame */
  int64_t n;
  double *positions; /* [n][3], Angstrom */
  int32_t *numbers;  /* [n]: atomic numbers, 1 ... 118; 0: not known (any_element) */
  double cell[3][3]; /* Angstrom, rows are the lattice vectors; zeros if the file has none */
  bool periodic[3];
  int32_t charge, spin; /* of extended XYZ: of all atoms in e, and the multiplicity, 0 if it is not
                           said; INT32_MIN: what is said is no whole number */
  int64_t alternates;   /* PDB: number of atoms skipped because they belong to an alternate location
                           of a residue */
  int64_t isotopes;     /* number of atoms called D or T, which are H in `numbers` */
  int64_t other_masses; /* of atoms whose masses are no standard weights */
  int64_t fixed;        /* of atoms that the file fixes, in one direction at least */
  structure_labels *labels; /* NULL unless the options want them */
} structure;

/* Frames of a file as Python counts them: from 0, below 0 from the end. */
typedef struct {
  bool chosen; /* false: all frames, and of structure_read the first */
  bool one;    /* a single frame, which must be there */
  int64_t start, stop, step;
} structure_slice;
/* "7", "-1", "0:100:10", ":" or "all"; false: none of these. */
bool structure_slice_read(const char *text, structure_slice *slice);

typedef struct {
  bool atoms_only;      /* of a PDB file ATOM records only, no HETATM */
  bool any_element;     /* an atom whose element is not known is not an error */
  bool labels;          /* labels are read, and it is an error where they are wrong */
  const char *elements; /* "NAME=El,...": elements of atoms by name, or RESIDUE:NAME; NULL: none */
  structure_slice frames;
} structure_options;

extern const double
    atomic_weights[CLB_ELEMENTS + 1]; /* standard weights; for elements without one, the mass number
                                         of the most stable isotope */

/* Reads the first frame of a file, or the first that is chosen; the format follows from its name;
   "-" is extended XYZ on standard input. The first alternate location of each residue of a PDB file
   is used. A cell thinner than an atom is refused. NULL options: none. false: error (of size > 0)
   names the file, the line and what was expected; *s is empty. */
bool structure_read(const char *path, const structure_options *options, structure *s, char *error,
                    size_t size);
void structure_free(structure *s);

/* Whether `elements` of the options is as above; otherwise `error` is a sentence. */
bool structure_elements_check(const char *elements, char *error, size_t size);

/* The frames of an extended XYZ file, or those that are chosen, one after the other. */
typedef struct structure_frames structure_frames;
/* NULL, and `error` as above: it cannot be opened, or has another format. All arguments are used
   until structure_frames_close. */
structure_frames *structure_frames_open(const char *path, const structure_options *options,
                                        char *error, size_t size);
/* 1: *s is the next frame; 0: there are no more; -1: `error` says what is wrong, also where none of
   the chosen frames is there. */
int structure_frames_next(structure_frames *f, structure *s);
void structure_frames_close(structure_frames *f);

#endif
