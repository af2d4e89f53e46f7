/* tools/common/structure_reader.h - what the readers of structures share: the file at hand, its
   lines, words and numbers, and the atoms so far. */
#ifndef CLB_TOOLS_COMMON_STRUCTURE_READER_H
#define CLB_TOOLS_COMMON_STRUCTURE_READER_H

#include <stdio.h>

#include "tools/common/structure.h"

enum { STRUCTURE_LINE = 1 << 16, STRUCTURE_FIELD = 64 }; /* bytes of a line, of a word */

typedef struct {
  FILE *file;
  const char *path;
  int64_t line_number, capacity; /* room: of atoms */
  bool atoms_only;
  structure *s;
  char line[STRUCTURE_LINE];
  char *error;
  size_t size;
} structure_reader;

/* The sentence, with the file and the line; returns false. */
bool structure_fail(structure_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The next line, without its end.  false at the end of the file, or with an error. */
bool structure_line(structure_reader *r);
/* As above, where a line must come. */
bool structure_want_line(structure_reader *r, const char *what);
/* The next word after *at, which moves on; NULL: none, or too long a one. */
const char *structure_word(const char **at, char field[STRUCTURE_FIELD]);
bool structure_number(const char *text, double *x); /* finite */
/* All the numbers of the text, at most `most`; returns how many, -1 if there are more or something
   else stands there. */
int structure_numbers(const char *text, int most, double *x);
int64_t structure_count(const char *text); /* -1: no number of atoms */

int32_t structure_element(const char *symbol); /* 0: none; any case */
bool structure_add(structure_reader *r, int32_t element, const double x[3]);

bool structure_read_xyz(structure_reader *r);

#endif
