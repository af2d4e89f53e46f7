/* tools/compare/svg.h - pieces of charts as SVG: axes, marks, legends.  Colours come from the
   page's style. */
#ifndef CLB_TOOLS_COMPARE_SVG_H
#define CLB_TOOLS_COMPARE_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* User units; on a phone (360 pixels) a letter of a chart is about 11 pixels high. */
enum {
  SVG_WIDTH = 400,
  SVG_TITLE = 320 /* space for a title, whose letters are wider */,
  SVG_LINE = 17,
  SVG_TICKS = 16
};

#define SVG_LETTER 7.4 /* mean width, of wide fonts */

typedef struct {
  double low, high, from, to; /* range of values (of their logarithms if `log`); range of
                                 positions */
  bool log;
} svg_axis;
/* Extends the range to the next 1, 2 or 5 times a power of ten. */
svg_axis svg_log_axis(double low, double high, double from, double to);
svg_axis svg_linear_axis(double low, double high, double from, double to);
double svg_place(const svg_axis *a, double value);
int svg_ticks(const svg_axis *a, int max, double ticks[SVG_TICKS]);

void svg_open(FILE *f, double height, const char *title);
void svg_close(FILE *f);
/* Text, cut with an ellipsis to fit into `room` units. */
void svg_text(FILE *f, double x, double y, const char *classes, const char *anchor, double capacity,
              const char *text);
/* Text in as many lines as it needs, the first at y; returns where the last one is. f NULL: only
   computes that. */
double svg_paragraph(FILE *f, double x, double y, const char *classes, double capacity,
                     const char *text);
/* A title and a line below it (NULL: none); returns where what follows may begin. f NULL: only
   computes that. */
double svg_heading(FILE *f, const char *title, const char *more);
void svg_line(FILE *f, const char *classes, double x0, double y0, double x1, double y1);
/* Grid lines, ticks and titles of both axes; y grows upwards. */
void svg_axes(FILE *f, const svg_axis *x, const svg_axis *y, const char *x_title,
              const char *y_title, const char *x_unit, const char *y_unit);

/* A mark of a series: every series has its own colour and shape. A hollow mark is a bound. */
typedef enum { MARK_FULL, MARK_HOLLOW, MARK_WRONG, MARK_SMALL } svg_kind;
void svg_mark(FILE *f, int series, svg_kind kind, double x, double y, const char *title);

/* Draws a legend from y on; returns its lower end. f NULL: only computes that. */
double svg_legend(FILE *f, double y, int n, const char *const names[], const int series[]);

#endif
