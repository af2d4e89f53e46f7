/* tools/compare/grid.c - a table of texts, printed as plain text, CSV, Markdown or HTML. */
#include "tools/compare/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"

void grid_add_column(grid *g, const char *over, const char *title) {
  g->columns = enlarge(g->columns, (size_t)g->n_columns + 1, sizeof *g->columns);
  const bool right = *title == '>';
  g->columns[g->n_columns++] = (grid_column){.over = over, .title = title + right, .right = right};
}

void grid_add(grid *g, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, args);
  if (n < 0) fatal("a cell of a table could not be printed");
  char *cell = allocate((size_t)n + 1, 1);
  vsnprintf(cell, (size_t)n + 1, format, again);
  va_end(again);
  va_end(args);
  if (g->n_cells == g->capacity) {
    g->capacity = 2 * g->capacity + 64;
    g->cells = enlarge(g->cells, (size_t)g->capacity, sizeof *g->cells);
  }
  if (n) g->columns[g->n_cells % g->n_columns].used = true;
  g->cells[g->n_cells++] = cell;
}

void grid_free(grid *g) {
  for (int i = 0; i < g->n_cells; i++) free(g->cells[i]);
  free(g->cells);
  free(g->columns);
  *g = (grid){.n_columns = 0};
}

/* ---- plain text ---- */

/* One past the last column that shares column c's title above. */
static int group_end(const grid *g, int c) {
  int end = c + 1;
  while (end < g->n_columns && g->columns[c].over && g->columns[end].over == g->columns[c].over)
    end++;
  return end;
}

/* Where the columns are; those that are heads or not used have the width -1. */
typedef struct {
  FILE *f;
  const grid *g;
  int *width, *unit, *line;
} text_layout;

static void fit(text_layout *t) {
  const grid *g = t->g;
  for (int c = 0; c < g->n_columns; c++)
    t->width[c] = g->columns[c].used && c >= g->heads ? text_columns(g->columns[c].title) : -1;
  for (int i = 0; i < g->n_cells; i++) {
    const int n = text_columns(g->cells[i]), c = i % g->n_columns;
    if (n > t->width[c] && t->width[c] >= 0 && n < TEXT_WIDTH / 2) t->width[c] = n;
  }
  for (int c = 0, end; c < g->n_columns; c = end) {
    int all = -2, last = -1;
    end = group_end(g, c);
    for (int k = c; k < end; k++) {
      t->unit[k] = c;
      if (t->width[k] >= 0) all += t->width[k] + 2, last = k;
    }
    const int lacks = g->columns[c].over ? text_columns(g->columns[c].over) - all : 0;
    if (lacks > 0 && last >= 0) t->width[last] += lacks;
  }
  fold_columns(g->n_columns, t->width, t->unit, t->line);
}

/* What one line of the columns says, if anything. */
static void text_line(const text_layout *t, int line, const char *const *cells) {
  int at = 0, begins = line ? TEXT_INDENT : 0;
  bool said = false;
  for (int c = 0; c < t->g->n_columns; c++) {
    if (t->line[c] != line || t->width[c] < 0) continue;
    const int n = text_columns(cells[c]), lacks = t->width[c] - n,
              pad = t->g->columns[c].right && lacks > 0 ? lacks : 0;
    if (n) {
      fprintf(t->f, "%*s", begins + pad - at, "");
      write_broken(t->f, cells[c], begins + pad, begins);
      at = begins + pad + n;
      said = true;
    }
    begins += t->width[c] + 2;
  }
  if (said) fputc('\n', t->f);
}

static void text_titles(const text_layout *t) {
  const grid *g = t->g;
  const char **cells = allocate((size_t)g->n_columns, sizeof *cells);
  for (int line = 0; line <= t->line[g->n_columns - 1]; line++)
    for (int over = 1; over >= 0; over--) {
      for (int c = 0, end; c < g->n_columns; c = end) {
        end = group_end(g, c);
        for (int k = c; k < end; k++) cells[k] = over ? "" : g->columns[k].title;
        if (over && g->columns[c].over) cells[c] = g->columns[c].over;
      }
      text_line(t, line, cells);
    }
  free(cells);
}

/* The heads of a row, unless they are those of the row before. */
static void text_heads(const text_layout *t, char *const *cells, char *const *before) {
  bool same = before != NULL;
  for (int c = 0; c < t->g->heads && same; c++) same = !strcmp(cells[c], before[c]);
  if (same) return;
  for (int c = 0; c < t->g->heads; c++)
    if (*cells[c]) fprintf(t->f, "%s%s", c ? " " : "", cells[c]);
  if (t->g->heads) fputc('\n', t->f);
}

void grid_text(FILE *f, const grid *g) {
  const size_t n = (size_t)g->n_columns;
  int *places = allocate(3 * n, sizeof *places);
  text_layout t = {f, g, places, places + n, places + 2 * n};
  fit(&t);
  text_titles(&t);
  for (int i = 0; i < g->n_cells; i += g->n_columns) {
    char **row = g->cells + i;
    text_heads(&t, row, i ? row - g->n_columns : NULL);
    for (int line = 0; line <= t.line[n - 1]; line++) text_line(&t, line, (const char *const *)row);
  }
  free(places);
}

/* ---- CSV, Markdown ---- */

static void csv_cell(FILE *f, const char *over, const char *text) {
  const bool quote = strpbrk(text, ",\"\r\n") || (over && strpbrk(over, ",\"\r\n"));
  if (quote) fputc('"', f);
  for (const char *part = over ? over : text;; part = text) {
    for (const char *s = part; *s; s++) {
      if (*s == '"') fputc('"', f);
      fputc(*s, f);
    }
    if (part == text) break;
    fputc(' ', f);
  }
  if (quote) fputc('"', f);
}

void grid_csv(FILE *f, const grid *g) {
  for (int c = 0; c < g->n_columns; c++) {
    if (c) fputc(',', f);
    csv_cell(f, g->columns[c].over, g->columns[c].title);
  }
  fputc('\n', f);
  for (int i = 0; i < g->n_cells; i++) {
    const bool last = i % g->n_columns == g->n_columns - 1;
    csv_cell(f, NULL, g->cells[i]);
    fputc(last ? '\n' : ',', f);
  }
}

static void markdown_text(FILE *f, const char *text) {
  for (; *text; text++) {
    if (strchr("\\|`*[]~", *text)) fputc('\\', f);
    if (*text == '<') fputs("&lt;", f);
    else if (*text == '&') fputs("&amp;", f);
    else fputc(*text, f);
  }
}

void grid_markdown(FILE *f, const grid *g) {
  for (int c = 0; c < g->n_columns; c++) {
    if (!g->columns[c].used) continue;
    fputs("| ", f);
    if (g->columns[c].over) markdown_text(f, g->columns[c].over), fputc(' ', f);
    markdown_text(f, g->columns[c].title);
    fputc(' ', f);
  }
  fputs("|\n", f);
  for (int c = 0; c < g->n_columns; c++)
    if (g->columns[c].used) fputs(g->columns[c].right ? "|--:" : "|---", f);
  fputs("|\n", f);
  for (int i = 0; i < g->n_cells; i++) {
    const int c = i % g->n_columns;
    if (g->columns[c].used) fputs("| ", f), markdown_text(f, g->cells[i]), fputc(' ', f);
    if (c == g->n_columns - 1) fputs("|\n", f);
  }
}

/* ---- HTML ---- */

/* Bytes of the UTF-8 character at s; 0: invalid, for example in a truncated text or a file name. */
static int letter_at(const char *s) {
  const unsigned char c = (unsigned char)*s;
  const int n = c < 0x80 ? c >= ' ' : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

void html_text(FILE *f, const char *text) {
  for (int n; *text; text += n ? n : 1) {
    n = letter_at(text);
    switch (*text) {
      case '&': fputs("&amp;", f); break;
      case '<': fputs("&lt;", f); break;
      case '>': fputs("&gt;", f); break;
      case '"': fputs("&quot;", f); break;
      case '\'': fputs("&#39;", f); break;
      default:
        if (n) fwrite(text, 1, (size_t)n, f);
        else fputc('?', f);
    }
  }
}

static void html_titles(FILE *f, const grid *g) {
  bool over = false;
  for (int c = 0; c < g->n_columns; c++) over |= g->columns[c].over && g->columns[c].used;
  fputs("<thead>\n<tr>", f);
  for (int c = 0, end; c < g->n_columns; c = end) {
    int n = 0;
    end = group_end(g, c);
    for (int k = c; k < end; k++) n += g->columns[k].used;
    if (!n) continue;
    if (g->columns[c].over) fprintf(f, "<th colspan=\"%d\" class=\"over\">", n);
    else
      fprintf(f, "<th%s%s>", over ? " rowspan=\"2\"" : "",
              g->columns[c].right ? " class=\"right\"" : "");
    html_text(f, g->columns[c].over ? g->columns[c].over : g->columns[c].title);
    fputs("</th>", f);
  }
  if (over) fputs("</tr>\n<tr>", f);
  for (int c = 0; c < g->n_columns; c++) {
    if (!g->columns[c].used || !g->columns[c].over) continue;
    fprintf(f, "<th%s>", g->columns[c].right ? " class=\"right\"" : "");
    html_text(f, g->columns[c].title);
    fputs("</th>", f);
  }
  fputs("</tr>\n</thead>\n", f);
}

void grid_html(FILE *f, const grid *g) {
  fputs("<div class=\"scroll\" tabindex=\"0\"><table>\n", f);
  html_titles(f, g);
  fputs("<tbody>\n", f);
  for (int i = 0; i < g->n_cells; i++) {
    const int c = i % g->n_columns;
    const bool wrong = !strncmp(g->cells[i], "INCORRECT", 9);
    if (!c) fputs("<tr>", f);
    if (g->columns[c].used) {
      fputs(wrong                 ? "<td class=\"wrong\">"
            : g->columns[c].right ? "<td class=\"right\">"
                                  : "<td>",
            f);
      html_text(f, g->cells[i]);
      fputs("</td>", f);
    }
    if (c == g->n_columns - 1) fputs("</tr>\n", f);
  }
  fputs("</tbody>\n</table></div>\n", f);
}
