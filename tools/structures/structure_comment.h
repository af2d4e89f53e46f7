/* tools/structures/structure_comment.h - the comment line of a frame of XYZ: cell, periodic
   directions, units, columns. docs/models.md has its grammar. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_COMMENT_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_COMMENT_H

#include "tools/structures/structure_reader.h"

/* An entry: a bare word (value NULL), or KEY=VALUE. Both end with 0, without quotes and escapes. */
typedef struct {
  char *key, *value;
} comment_entry;

/* Blanks instead of commas and brackets, which only separate numbers or flags. */
void comment_separate(char *value);

/* The quote or bracket that closes one; 0: it opens nothing. */
char comment_closing(char open);

/* What a line says of a cell, of periodicity or of units in words that have no meaning in the
   grammar; each is "" if it says nothing. */
enum { COMMENT_WORD = 32 };
typedef struct {
  char cell[COMMENT_WORD];         /* with numbers, or as the name of a value */
  char periodic[COMMENT_WORD];     /* anywhere */
  char periodic_key[COMMENT_WORD]; /* as the name of a value */
  char unit[COMMENT_WORD];         /* a unit of length other than Angstrom, as a bare word */
  char unit_in_text[COMMENT_WORD]; /* the same, anywhere */
  bool angstrom;                   /* Angstrom, but not as positions{angstrom} */
} comment_hints;
comment_hints comment_look(const char *line);
/* The same for the units of a key's value: "" if they are Angstrom, or not of lengths. */
void comment_look_at_units(const comment_entry *e, char unit[COMMENT_WORD]);

/* Reads the current line into the reader's cell, periodic directions and unit. Properties is then
   its value, or NULL, and points into the line. */
bool structure_comment(structure_reader *r, const char **properties);

#endif
