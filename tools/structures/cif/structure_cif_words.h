/* tools/structures/cif/structure_cif_words.h - the words of a CIF: names, values and keywords. */
#ifndef CLB_TOOLS_STRUCTURES_CIF_STRUCTURE_CIF_WORDS_H
#define CLB_TOOLS_STRUCTURES_CIF_STRUCTURE_CIF_WORDS_H

#include "tools/structures/structure_reader.h"

typedef enum {
  CIF_ERROR,
  CIF_END,
  CIF_BLOCK, /* data_NAME */
  CIF_LOOP,
  CIF_NAME, /* in small letters, and _ for . */
  CIF_VALUE
} cif_kind;

typedef struct {
  structure_reader *r;
  char *at; /* in the line; NULL: the next line is to be read */
  cif_kind kind;
  char text[STRUCTURE_FIELD]; /* longer ones, and all text fields, end in "..." */
  bool quoted;
} cif_words;

/* The next word. */
cif_kind cif_next(cif_words *w);
/* Whether the value is ? or ., which say nothing. */
bool cif_nothing(const cif_words *w);

#endif
