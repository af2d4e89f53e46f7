/* tools/cli/text_table.c - text tables that fit a terminal. */
#include "tools/cli/text_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int text_columns(const char *s) {
  int n = 0;
  for (; *s; s++) n += (*s & 0xc0) != 0x80;
  return n;
}

void write_broken(FILE *f, const char *text, int at, int indent) {
  for (bool begun = false; *text; begun = true) {
    const int blanks = (int)strspn(text, " ");
    const char *word = text + blanks, *end = word + strcspn(word, " ");
    int n = 0;
    for (const char *c = word; c < end; c++) n += (*c & 0xc0) != 0x80;
    const bool next = begun && at + blanks + n > TEXT_WIDTH;
    fprintf(f, next ? "\n%*s" : "%*s", next ? indent : blanks, "");
    at = next ? indent : at + blanks;
    for (; word < end; word++) {
      const bool begins = (*word & 0xc0) != 0x80;
      if (begins && at++ == TEXT_WIDTH) fprintf(f, "\n%*s", indent, ""), at = indent + 1;
      fputc(*word, f);
    }
    text = end;
  }
}

void print_text(const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  write_broken(stdout, text, 0, TEXT_INDENT);
  putchar('\n');
}

void fold_columns(int n, const int *width, const int *unit, int *line) {
  int at = 0, now = 0;
  for (int c = 0, end; c < n; c = end) {
    int wide = 0;
    for (end = c; end < n && unit[end] == unit[c]; end++)
      if (width[end] >= 0) wide += width[end] + 2;
    if (at && wide && at + wide - 2 > TEXT_WIDTH) now++, at = TEXT_INDENT;
    for (int k = c; k < end; k++) line[k] = now;
    at += wide;
  }
}

void table_fit(table *t, int column, const char *cell) {
  const int n = text_columns(cell);
  if (n > t->width[column]) t->width[column] = n;
}

static void print_row(const table *t, const char *const cells[], int skip) {
  int unit[MAX_COLUMNS], line[MAX_COLUMNS], at = 0, begins = 0; /* at: where the cursor is */
  for (int i = 0; i < t->n; i++) unit[i] = i;
  fold_columns(t->n, t->width, unit, line);
  for (int i = 0; i < t->n; begins += t->width[i++] + 2) {
    const bool right = t->titles[i][0] == '>';
    const char *cell = cells[i] + (right ? skip : 0);
    const int n = text_columns(cell), pad = right && n < t->width[i] ? t->width[i] - n : 0;
    if (i && line[i] > line[i - 1]) putchar('\n'), at = 0, begins = TEXT_INDENT;
    if (!n) continue;
    if (at > begins) putchar('\n'), at = 0;
    printf("%*s", begins + pad - at, "");
    write_broken(stdout, cell, begins + pad, begins);
    at = begins + pad + n;
  }
  putchar('\n');
}

void table_titles(table *t) {
  for (int i = 0; i < t->n; i++) table_fit(t, i, t->titles[i] + (t->titles[i][0] == '>'));
  print_row(t, t->titles, 1);
}

void table_line(const table *t, const char *const cells[]) {
  print_row(t, cells, 0);
  fflush(stdout);
}
