/* tools/structures/structure_reader.h - shared by the readers of structures: the current file, its
   lines, words and numbers, and the atoms read so far. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_READER_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_READER_H

#include <stdio.h>
#include <zlib.h>

#include "tools/structures/structure.h"

/* Bytes of a line at most, and of a word that is used, with the 0 at its end. */
enum { STRUCTURE_LINE = 64 << 20, STRUCTURE_FIELD = 64 };

typedef struct {
  gzFile file; /* compressed or not */
  const char *path;
  const structure_options *options;
  int64_t frame, line_number;       /* from 1; frame 0: only the first is read */
  int64_t capacity, force_capacity; /* in atoms: of positions, of the labels' forces */
  const char *virial;               /* the key of the labels' stress, if it is a virial yet */
  int64_t cell_line;                /* that messages on the cell name; 0: none, there is one cell */
  structure *s;
  double unit; /* of the positions in the file, Angstrom */
  char *line;  /* the current line */
  size_t line_room;
  bool again; /* structure_line finds this line once more */
  char *error;
  size_t size;
} structure_reader;

/* Sets the message, with the file, the frame and the line; returns false. */
bool structure_fail(structure_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads the next line, without its newline and, in the first, without a byte order mark. false at
   the end of the file, or with an error. */
bool structure_line(structure_reader *r);
/* The same, but the end of the file is an error. */
bool structure_want_line(structure_reader *r, const char *what);
/* The next word after *at, which is advanced; NULL: there is none, or it is too long. */
const char *structure_word(const char **at, char field[STRUCTURE_FIELD]);
/* The same without a copy; false: there is none. */
bool structure_skip_word(const char **at);
/* Columns [first, last] of the line, counted from 1, without surrounding blanks. */
const char *structure_columns(const structure_reader *r, int first, int last,
                              char field[STRUCTURE_FIELD]);
bool structure_number(const char *text, double *x); /* finite, decimal; D is an exponent's E */
/* Reads all numbers of the text, at most `max`; returns how many, or -1 if there are more or
   anything else. */
int structure_numbers(const char *text, int max, double *x);
int64_t structure_count(const char *text); /* -1: not a number of atoms */

/* Whether frames are counted from the end; these are resolved by their number n. */
bool structure_slice_from_end(const structure_slice *s);
void structure_slice_resolve(structure_slice *s, int64_t n);
bool structure_slice_has(const structure_slice *s, int64_t i);

/* Adds an atom; positions are in units of r->unit. */
bool structure_add(structure_reader *r, int32_t element, const double x[3]);

/* Adds an atom of fractional coordinates: of the structure's cell, whatever r->unit is. */
bool structure_add_fraction(structure_reader *r, int32_t element, const double x[3]);

/* A cell of lengths and angles (degrees): a is along x, b in the plane of x and y. */
bool structure_cell(structure_reader *r, const double abc[6], double unit);

bool structure_read_xyz(structure_reader *r);
/* The next of several frames: 1, or 0: there is none, or -1 with an error. */
int structure_read_frame(structure_reader *r);
int structure_skip_frame(structure_reader *r); /* the same, without its atoms */
bool structure_read_gro(structure_reader *r);
bool structure_read_lammps(structure_reader *r);
bool structure_read_pdb(structure_reader *r);
bool structure_read_cif(structure_reader *r);
bool structure_read_poscar(structure_reader *r);

#endif
