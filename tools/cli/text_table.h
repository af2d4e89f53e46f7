/* tools/cli/text_table.h - text tables that fit a terminal: titles, then a line at a time. */
#ifndef CLB_TOOLS_CLI_TEXT_TABLE_H
#define CLB_TOOLS_CLI_TEXT_TABLE_H

#include <stdio.h>

enum { TEXT_WIDTH = 100, TEXT_INDENT = 4, MAX_COLUMNS = 17 };

typedef struct {
  int n, width[MAX_COLUMNS];
  const char *titles[MAX_COLUMNS]; /* a leading '>' aligns the column to the right */
} table;
void table_fit(table *t, int column, const char *cell); /* widens the column; call before the first
                                                           line */
void table_titles(table *t);
/* A cell that is wider than its column is a line of its own, and the rest of the row the next; the
   last cell goes on in further lines. */
void table_line(const table *t, const char *const cells[]);

/* Columns that do not fit beside each other go on in further lines, which are indented: the line
   of each column. Adjacent columns of one unit stay together; a width < 0: there is no column. */
void fold_columns(int n, const int *width, const int *unit, int *line);
/* Prints a line of text, broken between words where it does not fit. */
void print_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Columns of UTF-8 text. */
int text_columns(const char *s);
/* Writes text that begins at column `at`, broken between words into lines that begin at `indent`;
   no line feed at the end. */
void write_broken(FILE *f, const char *text, int at, int indent);

#endif
