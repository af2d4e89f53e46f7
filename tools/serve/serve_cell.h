/* tools/serve/serve_cell.h - the cell that a client sends beside that of the structure's file. */
#ifndef CLB_TOOLS_SERVE_SERVE_CELL_H
#define CLB_TOOLS_SERVE_SERVE_CELL_H

#include "tools/structures/structure.h"

/* `sent` is a cell that a client sends, its rows the vectors. The directions that are periodic in
   it: those of the file, if it has a cell; otherwise all, unless the cell is zeros. */
void serve_periodic(const structure *file, const double *sent, bool periodic[3]);

/* Warns where a cell that a client sends is not that of the file; turned cells are one cell. */
void serve_compare_cells(const structure *file, const char *path, const double *sent);

#endif
