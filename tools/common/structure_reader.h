/* tools/common/structure_reader.h - shared by the readers of structures: the current file, its
   lines, words and numbers, and the atoms read so far. */
#ifndef CLB_TOOLS_COMMON_STRUCTURE_READER_H
#define CLB_TOOLS_COMMON_STRUCTURE_READER_H

#include <stdio.h>

#include "tools/common/structure.h"

enum { STRUCTURE_LINE = 1 << 16, STRUCTURE_FIELD = 64 }; /* maximum bytes of a line, of a word */

typedef struct {
  FILE *file;
  const char *path;
  int64_t line_number, capacity; /* capacity: in atoms */
  int64_t cell_line;             /* that messages on the cell name; 0: none, there is one cell */
  bool atoms_only;
  structure *s;
  char line[STRUCTURE_LINE];
  char *error;
  size_t size;
} structure_reader;

/* Sets the message, with the file and the line; returns false. */
bool structure_fail(structure_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads the next line, without its newline. false at the end of the file, or with an error. */
bool structure_line(structure_reader *r);
/* The same, but the end of the file is an error. */
bool structure_want_line(structure_reader *r, const char *what);
/* The next word after *at, which is advanced; NULL: there is none, or it is too long. */
const char *structure_word(const char **at, char field[STRUCTURE_FIELD]);
bool structure_number(const char *text, double *x); /* finite */
/* Reads all numbers of the text, at most `max`; returns how many, or -1 if there are more or
   anything else. */
int structure_numbers(const char *text, int max, double *x);
int64_t structure_count(const char *text); /* -1: not a number of atoms */

int32_t structure_element(const char *symbol); /* 0: not an element; case is ignored */
bool structure_add(structure_reader *r, int32_t element, const double x[3]);

bool structure_read_xyz(structure_reader *r);
/* The next of several frames: 1, or 0: there is none, or -1 with an error. */
int structure_read_frame(structure_reader *r);

#endif
