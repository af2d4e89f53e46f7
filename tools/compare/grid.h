/* tools/compare/grid.h - a table of texts, printed as plain text, CSV, Markdown or HTML. */
#ifndef CLB_TOOLS_COMPARE_GRID_H
#define CLB_TOOLS_COMPARE_GRID_H

#include <stdbool.h>
#include <stdio.h>

typedef struct {
  const char *over, *title; /* over: a common title of adjacent columns that have the same pointer,
                               NULL: none */
  bool right, used;         /* used: a cell has text; other columns are left out */
} grid_column;

typedef struct {
  int n_columns, n_cells, capacity;
  int heads; /* in plain text so many columns on the left are a line of their own when they change
              */
  grid_column *columns;
  char **cells; /* row by row */
} grid;

void grid_add_column(grid *g, const char *over,
                     const char *title); /* a leading '>' aligns the column to the right */
/* The next cell. */
void grid_add(grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void grid_free(grid *g);

void grid_text(FILE *f, const grid *g); /* no wider than a terminal */
void grid_csv(FILE *f, const grid *g);  /* RFC 4180, with line feeds; all columns */
void grid_markdown(FILE *f, const grid *g);
void grid_html(FILE *f, const grid *g); /* in a scrolling box */

/* Writes text escaped for HTML and SVG, within elements and attributes. */
void html_text(FILE *f, const char *text);

#endif
