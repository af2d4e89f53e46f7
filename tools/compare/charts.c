/* tools/compare/charts.c - charts of speeds and of times: one row of marks for each group or
   problem. */
#include "tools/compare/charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/svg.h"

enum { LEFT = 26, RIGHT = 66, VALUES = 124, LABEL = 19, ROW = 16, BETWEEN = 8, BOTTOM = 44 };

static bool compared(const comparison *c, int d) {
  return d != c->baseline && mean_of(c, -1, d).n > 0;
}

/* The legend of devices that have times, from y on; without the baseline: of those that are
   compared with it. */
static double device_legend(FILE *f, const comparison *c, double y, bool baseline) {
  const char *names[MAX_COMPARED_DEVICES];
  int series[MAX_COMPARED_DEVICES], n = 0;
  for (int d = 0; d < c->n_devices; d++) {
    if (baseline ? !c->devices[d].n_times : !compared(c, d)) continue;
    names[n] = c->devices[d].label;
    series[n++] = d;
  }
  return svg_legend(f, y, n, names, series);
}

static void x_axis(FILE *f, const svg_axis *x, double top, double bottom, const char *title,
                   const char *unit) {
  double ticks[SVG_TICKS];
  char text[48];
  for (int n = svg_ticks(x, 6, ticks), i = 0; i < n; i++) {
    const double at = svg_place(x, ticks[i]);
    svg_line(f, "grid", at, top, at, bottom);
    svg_text(f, at, bottom + 16, "tick", "middle", 80, scaled(text, ticks[i], 1, unit));
  }
  svg_line(f, "axis", x->from, bottom, x->to, bottom);
  svg_text(f, (x->from + x->to) / 2, bottom + 34, "label", "middle", SVG_WIDTH, title);
}

/* ---- speeds ---- */

static void speed_marks(FILE *f, const comparison *c, int group, int device, const svg_axis *x,
                        double y) {
  const compare_mean m = mean_of(c, group, device);
  char text[512], work[320], number[32];
  if (!m.n) return;
  svg_line(f, "range", svg_place(x, m.low), y, svg_place(x, m.high), y);
  for (int i = 0; i < c->n_lines && group >= 0; i++) {
    const compare_line *line = &c->lines[c->order[i]];
    const compare_speed s = speed_of(c, line, device);
    if (line->group != group || !isfinite(s.value) ||
        (s.upper_bound || s.lower_bound) != (m.upper_bound || m.lower_bound))
      continue;
    snprintf(text, sizeof text, "%s: %s, %.0f rows: %s%s", c->devices[device].label,
             work_of(line->is, work, sizeof work), line->rows, figures(number, s.value, 3),
             s.per_row ? " by the row" : "");
    svg_mark(f, device, MARK_SMALL, svg_place(x, s.value), y, text);
  }
  figures(number, m.value, 3);
  const char *sign = m.upper_bound && m.lower_bound ? "~"
                     : m.upper_bound                ? "≤"
                     : m.lower_bound                ? "≥"
                                                    : "";
  snprintf(text, sizeof text, "%s: geometric mean of %d: %s%s", c->devices[device].label, m.n, sign,
           number);
  svg_mark(f, device, m.upper_bound || m.lower_bound ? MARK_HOLLOW : MARK_FULL,
           svg_place(x, m.value), y, text);
  snprintf(text, sizeof text, "%s%s", sign, number);
  svg_text(f, SVG_WIDTH - 4, y + 4, "value", "end", RIGHT, text);
}

/* Draws the means of `op`, or all if it is NULL; returns the height. */
static double speed_rows(FILE *f, const comparison *c, const char *op, const svg_axis *x,
                         double y) {
  char text[512];
  for (int g = op ? 0 : -1; g < (op ? c->n_groups : 0); g++) {
    int n = 0;
    if (op && strcmp(c->groups[g]->op, op)) continue;
    for (int d = 0; d < c->n_devices; d++) n += compared(c, d) && mean_of(c, g, d).n > 0;
    if (!n) continue;
    if (op) snprintf(text, sizeof text, "%s, %s", c->groups[g]->pass, c->groups[g]->dtype);
    else snprintf(text, sizeof text, "every op, pass and type");
    y = svg_paragraph(f, 4, y + 12, "label", SVG_WIDTH - 8, text) + LABEL - 12;
    if (f) svg_line(f, "one", svg_place(x, 1), y, svg_place(x, 1), y + n * ROW);
    for (int d = 0; d < c->n_devices; d++) {
      if (!compared(c, d) || !mean_of(c, g, d).n) continue;
      if (f) speed_marks(f, c, g, d, x, y + ROW / 2.);
      y += ROW;
    }
    y += BETWEEN;
  }
  return y;
}

static void speeds_of_op(FILE *f, const comparison *c, const char *op, double low, double high) {
  const char *title = op ? op : "All together";
  char against[512];
  snprintf(against, sizeof against, "against %s", c->devices[c->baseline].label);
  const double legend = svg_heading(NULL, title, against),
               top = device_legend(NULL, c, legend, false),
               bottom = speed_rows(NULL, c, op, NULL, top);
  const svg_axis x = svg_log_axis(low, high, LEFT, SVG_WIDTH - RIGHT);
  if (bottom == top) return;
  fputs("<figure>\n", f);
  svg_open(f, bottom + BOTTOM, title);
  svg_heading(f, title, against);
  device_legend(f, c, legend, false);
  x_axis(f, &x, top - 6, bottom, "time of the baseline / time of the device", "");
  speed_rows(f, c, op, &x, top);
  svg_close(f);
  fputs("</figure>\n", f);
}

void chart_speeds(FILE *f, const comparison *c) {
  double low = 1, high = 1;
  bool any = false;
  for (int d = 0; d < c->n_devices; d++) {
    const compare_mean m = mean_of(c, -1, d);
    if (!compared(c, d) || !m.n) continue;
    any = true;
    for (int g = -1; g < c->n_groups;
         g++) { /* a group may have bounds even if the total has measurements */
      const compare_mean part = mean_of(c, g, d);
      if (part.n) low = fmin(low, part.low), high = fmax(high, part.high);
    }
  }
  if (!any) return;
  fputs("<section>\n<h2>Speed of each device</h2>\n"
        "<p>Large marks: geometric means; small ones: each problem; hollow: bounds. Further right "
        "is faster.</p>\n<div class=\"flow\">\n",
        f);
  speeds_of_op(f, c, NULL, low, high);
  for (int g = 0; g < c->n_groups; g++) {
    int before = 0;
    while (before < g && strcmp(c->groups[before]->op, c->groups[g]->op)) before++;
    if (before == g) speeds_of_op(f, c, c->groups[g]->op, low, high);
  }
  fputs("</div>\n</section>\n", f);
}

/* ---- times ---- */

/* Whether it has the most rows among lines that differ in rows alone. */
static bool largest(const comparison *c, int line) {
  return line == c->n_lines - 1 || c->lines[line].block != c->lines[line + 1].block;
}

/* Time for the line's number of rows; *other_rows: the device has a different number. */
static double time_in_line(const compare_line *line, int device, bool *other_rows) {
  const compare_result *r = line->cells[device];
  if (!r) return NAN;
  *other_rows = r->rows != line->rows;
  return *other_rows ? time_of(r) * line->rows / r->rows : time_of(r);
}

static void time_mark(FILE *f, const comparison *c, const compare_line *line, int device,
                      const svg_axis *x, double y) {
  const compare_result *r = line->cells[device];
  char text[640], work[320], time[48], percent[24] = "", value[96];
  bool other_rows;
  const double seconds = time_in_line(line, device, &other_rows);
  const bool wrong = r->check == CHECK_WRONG;
  if (!isfinite(seconds)) {
    svg_text(f, SVG_WIDTH - 4, y + 4, "value faint", "end", VALUES, "failed");
    return;
  }
  const char *of;
  const double fraction = fraction_of(r, &of), at = svg_place(x, seconds);
  if (fraction > 0 && fraction < 1)
    fprintf(f, "<path class=\"bar c%d\" d=\"M%.1f %.1fH%.1f\"/>\n", device % 8,
            svg_place(x, fmax(seconds * fraction, pow(10, x->low))), y, at);
  scaled(time, seconds, 3, "s");
  if (isfinite(fraction)) snprintf(percent, sizeof percent, ", %.0f %%", 100 * fraction);
  int n = snprintf(text, sizeof text, "%s: %s, %s %s: %s for %.0f rows", c->devices[device].label,
                   work_of(r, work, sizeof work), r->pass, r->dtype, time, line->rows);
  if (other_rows) n += snprintf(text + n, sizeof text - (size_t)n, ", from %.0f rows", r->rows);
  if (wrong) snprintf(text + n, sizeof text - (size_t)n, ", INCORRECT");
  else if (r->bound) snprintf(text + n, sizeof text - (size_t)n, ", a bound and not a measurement");
  else if (*percent)
    snprintf(text + n, sizeof text - (size_t)n, "%s of the peak of %s", percent, of);
  svg_mark(f, device, wrong ? MARK_WRONG : r->bound ? MARK_HOLLOW : MARK_FULL, at, y, text);
  snprintf(value, sizeof value, "%s%s%s", r->bound ? "≥ " : other_rows ? "~ " : "", time, percent);
  svg_text(f, SVG_WIDTH - 4, y + 4, wrong ? "value wrong" : "value", "end", VALUES,
           wrong ? "incorrect" : value);
}

/* Draws all lines of a group, from y on; returns the lower end. */
static double time_rows(FILE *f, const comparison *c, int group, const svg_axis *x, double y) {
  char text[512], work[320];
  for (int k = 0; k < c->n_lines; k++) {
    const compare_line *line = &c->lines[c->order[k]];
    if (line->group != group || !largest(c, c->order[k])) continue;
    snprintf(text, sizeof text, "%s, %.0f rows", work_of(line->is, work, sizeof work), line->rows);
    y = svg_paragraph(f, 4, y + 12, "label", SVG_WIDTH - 8, text) + LABEL - 12;
    for (int d = 0; d < c->n_devices; d++) {
      if (!line->cells[d] || (line->cells[d]->bound && !isfinite(time_of(line->cells[d]))))
        continue;
      if (f) time_mark(f, c, line, d, x, y + ROW / 2.);
      y += ROW;
    }
    y += BETWEEN;
  }
  return y;
}

static void times_of_group(FILE *f, const comparison *c, int group) {
  double low = INFINITY, high = 0;
  for (int i = 0; i < c->n_lines; i++) {
    const compare_line *line = &c->lines[i];
    for (int d = 0; d < c->n_devices && line->group == group && largest(c, i); d++) {
      bool other_rows;
      const char *of;
      const double t = time_in_line(line, d, &other_rows);
      if (!isfinite(t)) continue;
      const double fraction = fraction_of(line->cells[d], &of);
      high = fmax(high, t);
      low = fmin(low, fraction > 0.01 && fraction < 1 ? t * fraction : t);
    }
  }
  if (!(high > 0)) return;
  char title[512];
  snprintf(title, sizeof title, "%s, %s, %s", c->groups[group]->op, c->groups[group]->pass,
           c->groups[group]->dtype);
  const double legend = svg_heading(NULL, title, NULL), top = device_legend(NULL, c, legend, true),
               bottom = time_rows(NULL, c, group, NULL, top);
  const svg_axis x = svg_log_axis(low, high, LEFT, SVG_WIDTH - VALUES - 8);
  fputs("<figure>\n", f);
  svg_open(f, bottom + BOTTOM, title);
  svg_heading(f, title, NULL);
  device_legend(f, c, legend, true);
  x_axis(f, &x, top - 6, bottom, "time of a launch", "s");
  time_rows(f, c, group, &x, top);
  svg_close(f);
  fputs("</figure>\n", f);
}

void chart_times(FILE *f, const comparison *c) {
  fputs("<section>\n<h2>Time of every problem</h2>\n"
        "<p>A mark is the measured time; the bar to its left begins where the device would be at "
        "its own peak, copy or multiply-adds, whichever is closer: "
        "no bar, no distance; %: how near. Hollow: a bound. ~: scaled from another number of rows. "
        "Of problems with several numbers of rows, the largest.</p>\n"
        "<div class=\"charts\">\n",
        f);
  for (int g = 0; g < c->n_groups; g++) times_of_group(f, c, g);
  fputs("</div>\n</section>\n", f);
}
