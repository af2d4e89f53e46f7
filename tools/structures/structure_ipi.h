/* tools/structures/structure_ipi.h - what i-PI writes into comment lines: a cell, and units. */
#ifndef CLB_TOOLS_STRUCTURES_STRUCTURE_IPI_H
#define CLB_TOOLS_STRUCTURES_STRUCTURE_IPI_H

#include "tools/structures/structure_reader.h"

#define STRUCTURE_BOHR 0.529177210903 /* Angstrom, CODATA 2018 */

/* "positions{angstrom}" or "cell{atomic_unit}". */
typedef struct {
  bool of_cell;
  double unit; /* Angstrom */
} structure_quantity;
/* 1: the word is such, and *q is what it says; 0: it is something else; -1: an error. */
int structure_quantity_read(structure_reader *r, const char *word, size_t length,
                            structure_quantity *q);

/* "CELL(abcABC): 5 5 5 90 90 90 ... positions{angstrom} cell{angstrom}". Starts with zeros. */
typedef struct {
  const struct structure_cell_form *form; /* of CELL; NULL: it has not come */
  bool open;                              /* more of its numbers may follow */
  int n;
  double numbers[9];
  double unit, cell_unit; /* 0: not said */
  char strange[32];       /* "x{y}", which i-PI does not know; "": there is none */
} structure_ipi;
/* Takes the words of a comment line one by one. */
bool structure_ipi_word(structure_reader *r, structure_ipi *c, const char *word);
/* Sets the reader's cell and unit, if the line spoke of them. */
bool structure_ipi_end(structure_reader *r, structure_ipi *c);

#endif
