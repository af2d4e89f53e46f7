/* tools/compare/svg.c - pieces of charts as SVG: axes, marks, legends. */
#include "tools/compare/svg.h"

#include <math.h>
#include <string.h>

#include "tools/compare/compare.h"
#include "tools/compare/grid.h"

enum { COLOURS = 8, SHAPES = 6 };

/* ---- axes ---- */

static double step_125(double x, bool up) { /* x > 0: the nearest 1, 2 or 5 times a power of ten */
  static const double steps[] = {1, 2, 5, 10};
  const double power = pow(10, floor(log10(x) + 1e-9)), ratio = x / power;
  int i = 0;
  while (i < 3 && (up ? steps[i] < ratio * (1 - 1e-9) : steps[i + 1] <= ratio * (1 + 1e-9))) i++;
  return power * steps[i];
}

svg_axis svg_log_axis(double low, double high, double from, double to) {
  low = step_125(low, false);
  high = step_125(high, true);
  if (!(high > low * 1.5)) low = step_125(low / 2, false), high = step_125(high * 2, true);
  return (svg_axis){log10(low), log10(high), from, to, true};
}

svg_axis svg_linear_axis(double low, double high, double from, double to) {
  if (!(high > low)) low -= 1, high += 1;
  return (svg_axis){low, high, from, to, false};
}

double svg_place(const svg_axis *a, double value) {
  return a->from +
         (a->to - a->from) * ((a->log ? log10(value) : value) - a->low) / (a->high - a->low);
}

static int log_ticks(const svg_axis *a, int max, double ticks[SVG_TICKS]) {
  static const double mantissas[] = {1, 2, 5};
  for (int stride = 0;; stride++) { /* 0: 1, 2 and 5 of every decade; else every stride-th decade */
    int n = 0;
    for (int k = (int)floor(a->low + 1e-9); k <= a->high + 1e-9; k++)
      for (int i = 0; i < (stride ? 1 : 3); i++) {
        const double at = k + log10(mantissas[i]);
        if ((stride && k % stride) || at < a->low - 1e-9 || at > a->high + 1e-9) continue;
        if (n < SVG_TICKS) ticks[n] = pow(10, k) * mantissas[i];
        n++;
      }
    if (n <= max) return n;
  }
}

int svg_ticks(const svg_axis *a, int max, double ticks[SVG_TICKS]) {
  if (max > SVG_TICKS) max = SVG_TICKS;
  if (a->log) return log_ticks(a, max, ticks);
  const double step =
      fmax(1, step_125((a->high - a->low) / max, true)); /* of whole numbers: degrees */
  int n = 0;
  for (double k = ceil(a->low / step - 1e-9); k * step <= a->high + 1e-9 && n < max; k++)
    ticks[n++] = k * step;
  return n;
}

/* ---- elements ---- */

void svg_open(FILE *f, double height, const char *title) {
  fprintf(
      f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
      SVG_WIDTH, height);
  html_text(f, title);
  fputs("</title>\n", f);
}

void svg_close(FILE *f) { fputs("</svg>\n", f); }

/* Bytes of the first n UTF-8 characters. */
static size_t letters(const char *text, int n) {
  size_t i = 0;
  for (; text[i]; i++)
    if ((text[i] & 0xc0) != 0x80 && n-- == 0) break;
  return i;
}

static int length_of(const char *text) {
  int n = 0;
  for (; *text; text++) n += (*text & 0xc0) != 0x80;
  return n;
}

void svg_text(FILE *f, double x, double y, const char *classes, const char *anchor, double capacity,
              const char *text) {
  char cut[512];
  const int n = (int)(capacity / SVG_LETTER);
  const size_t all = strlen(text), fits = letters(text, n),
               keep = all > fits ? letters(text, n - 1) : all;
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, classes, anchor);
  snprintf(cut, sizeof cut, "%.*s%s", (int)(keep < 500 ? keep : 500), text, keep < all ? "…" : "");
  html_text(f, cut);
  fputs("</text>\n", f);
}

/* Bytes of the first line, broken behind a blank or hyphen if there is one. */
static size_t first_line(const char *text, int n) {
  const size_t fits = letters(text, n);
  size_t end = fits;
  if (!text[fits]) return fits;
  while (end && !strchr(" -", text[end - 1]) && text[end] != ' ') end--;
  return end ? end : fits;
}

double svg_paragraph(FILE *f, double x, double y, const char *classes, double capacity,
                     const char *text) {
  char line[512];
  for (;; y += SVG_LINE) {
    const size_t n = first_line(text, (int)(capacity / SVG_LETTER));
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    if (f) svg_text(f, x, y, classes, "start", SVG_WIDTH, line);
    text += n + strspn(text + n, " ");
    if (!*text || !n) return y;
  }
}

double svg_heading(FILE *f, const char *title, const char *more) {
  double y = svg_paragraph(f, 4, 15, "title", SVG_TITLE, title);
  if (more && *more) y = svg_paragraph(f, 4, y + SVG_LINE + 1, "label", SVG_WIDTH - 8, more);
  return y + 22;
}

void svg_line(FILE *f, const char *classes, double x0, double y0, double x1, double y1) {
  fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", classes, x0, y0, x1, y1);
}

void svg_axes(FILE *f, const svg_axis *x, const svg_axis *y, const char *x_title,
              const char *y_title, const char *x_unit, const char *y_unit) {
  double ticks[SVG_TICKS];
  char text[48];
  for (int n = svg_ticks(y, 8, ticks), i = 0; i < n; i++) {
    const double at = svg_place(y, ticks[i]);
    svg_line(f, "grid", x->from, at, x->to, at);
    svg_text(f, x->from - 5, at + 4, "tick", "end", 80, scaled(text, ticks[i], 1, y_unit));
  }
  for (int n = svg_ticks(x, 7, ticks), i = 0; i < n; i++) {
    const double at = svg_place(x, ticks[i]);
    svg_line(f, "grid", at, y->from, at, y->to);
    svg_text(f, at, y->from + 18, "tick", "middle", 80, scaled(text, ticks[i], 1, x_unit));
  }
  svg_line(f, "axis", x->from, y->from, x->to, y->from);
  svg_line(f, "axis", x->from, y->from, x->from, y->to);
  svg_text(f, (x->from + x->to) / 2, y->from + 36, "label", "middle", SVG_WIDTH, x_title);
  svg_text(f, 4, y->to - 10, "label", "start", SVG_WIDTH, y_title);
}

/* ---- marks ---- */

/* Centred on 0, with roughly the same area. */
static const char *const shapes[SHAPES] = {
    "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "m-4 -4h8v8h-8z",
    "m0 -5.4l5 8.8h-10z",
    "m0 -5.6l5.6 5.6l-5.6 5.6l-5.6 -5.6z",
    "m0 5.4l5 -8.8h-10z",
    "m-1.8 -5.2h3.6v3.4h3.4v3.6h-3.4v3.4h-3.6v-3.4h-3.4v-3.6h3.4z"};

void svg_mark(FILE *f, int series, svg_kind kind, double x, double y, const char *title) {
  static const char *const classes[] = {"mark", "mark hollow", "cross", "small"};
  const char *shape = kind == MARK_WRONG   ? "m-5 -5l10 10m0 -10l-10 10"
                      : kind == MARK_SMALL ? "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z"
                                           : shapes[series % SHAPES];
  fprintf(f, "<path class=\"%s c%d\" d=\"M%.1f %.1f%s\"", classes[kind], series % COLOURS, x, y,
          shape);
  if (!title) {
    fputs("/>\n", f);
    return;
  }
  fputs("><title>", f);
  html_text(f, title);
  fputs("</title></path>\n", f);
}

double svg_legend(FILE *f, double y, int n, const char *const names[], const int series[]) {
  double x = 10;
  for (int i = 0; i < n; i++) {
    const double max = SVG_WIDTH - 30,
                 wide = fmin(max, SVG_LETTER * (double)length_of(names[i]) + 4);
    if (x > 10 && x + 14 + wide > SVG_WIDTH - 4) x = 10, y += 18;
    if (f) svg_mark(f, series[i], MARK_FULL, x + 2, y - 4, NULL);
    y = svg_paragraph(f, x + 12, y, "label", max, names[i]);
    x += 14 + wide + 12;
  }
  return n ? y + 18 : y;
}
