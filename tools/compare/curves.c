/* tools/compare/curves.c - charts with two axes: rooflines, scaling with rows, scaling with l. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/charts.h"
#include "tools/compare/grid.h"
#include "tools/compare/svg.h"

enum { LEFT = 62, RIGHT = 12, PLOT = 230, BOTTOM = 46 };

typedef struct {
  svg_axis x, y;
} axes;

/* ---- rooflines ---- */

static const compare_peaks *peaks_of(const compare_device *d) { /* NULL: not known */
  const bool vendor_specs = !isfinite(d->measured.copy) || !isfinite(d->measured.f32);
  const compare_peaks *top = vendor_specs ? &d->vendor_specs : &d->measured;
  return isfinite(top->copy) && isfinite(top->f32) ? top : NULL;
}

static bool on_roofline(const compare_result *r) {
  return r->flops > 0 && r->bytes > 0 && isfinite(time_of(r));
}

static void roof_lines(FILE *f, const axes *a, const compare_peaks *top, const char *classes) {
  const double low = pow(10, a->x.low), high = pow(10, a->x.high),
               max = fmax(top->f32, isfinite(top->f64) ? top->f64 : 0),
               peaks[] = {top->f32, top->f64};
  const double start = fmax(low, pow(10, a->y.low) / top->copy),
               ridge = fmin(high, max / top->copy);
  svg_line(f, classes, svg_place(&a->x, start), svg_place(&a->y, start * top->copy),
           svg_place(&a->x, ridge), svg_place(&a->y, ridge * top->copy));
  for (int i = 0; i < 2; i++)
    if (isfinite(peaks[i]))
      svg_line(f, classes, svg_place(&a->x, fmax(low, peaks[i] / top->copy)),
               svg_place(&a->y, peaks[i]), a->x.to, svg_place(&a->y, peaks[i]));
}

static void roof_labels(FILE *f, const axes *a, const compare_peaks *top) {
  const double start = fmax(pow(10, a->x.low), pow(10, a->y.low) / top->copy),
               peaks[] = {top->f32, top->f64};
  const double x = svg_place(&a->x, start), y = svg_place(&a->y, start * top->copy),
               dx = svg_place(&a->x, 10 * start) - x,
               dy = svg_place(&a->y, 10 * start * top->copy) - y;
  static const char *const names[] = {"f32", "f64"};
  char text[64], number[48];
  fprintf(f, "<g transform=\"translate(%.1f %.1f) rotate(%.1f)\">", x, y,
          atan2(dy, dx) * 180 / M_PI);
  snprintf(text, sizeof text, "copy %s", scaled(number, top->copy, 3, "B/s"));
  svg_text(f, 16, -8, "label", "start", SVG_WIDTH, text);
  fputs("</g>\n", f);
  for (int i = 0; i < 2; i++) {
    if (!isfinite(peaks[i])) continue;
    const bool below = isfinite(peaks[!i]) &&
                       (peaks[i] < peaks[!i] ||
                        (peaks[i] == peaks[!i] && i)); /* this is the lower of the two lines */
    snprintf(text, sizeof text, "%s %s", names[i], scaled(number, peaks[i], 3, "flop/s"));
    svg_text(f, a->x.to - 2, svg_place(&a->y, peaks[i]) + (below ? 16 : -6), "label", "end",
             SVG_WIDTH, text);
  }
}

static int ops_of(const comparison *c, const char *ops[MAX_COMPARED_GROUPS]) {
  int n = 0;
  for (int g = 0; g < c->n_groups; g++) {
    int i = 0;
    while (i < n && strcmp(ops[i], c->groups[g]->op)) i++;
    if (i == n) ops[n++] = c->groups[g]->op;
  }
  return n;
}

static void roof_points(FILE *f, const comparison *c, int device, const char *const ops[],
                        const axes *a) {
  for (int i = 0; i < c->n_lines; i++) {
    const compare_result *r = c->lines[c->order[i]].cells[device];
    char text[640], work[320], number[2][48];
    const char *of;
    int op = 0;
    if (!r || !on_roofline(r)) continue;
    while (strcmp(ops[op], r->op)) op++;
    const double t = time_of(r), fraction = fraction_of(r, &of);
    int n = snprintf(text, sizeof text, "%s %s, %s %s, %.0f rows: %s, %s", r->op,
                     work_of(r, work, sizeof work), r->pass, r->dtype, r->rows,
                     scaled(number[0], t, 3, "s"), scaled(number[1], r->flops / t, 3, "flop/s"));
    if (r->check == CHECK_WRONG) snprintf(text + n, sizeof text - (size_t)n, ", INCORRECT");
    else if (r->bound)
      snprintf(text + n, sizeof text - (size_t)n, ", a bound and not a measurement");
    else if (isfinite(fraction))
      snprintf(text + n, sizeof text - (size_t)n, ", %.0f %% of the peak of %s", 100 * fraction,
               of);
    svg_mark(f, op,
             r->check == CHECK_WRONG ? MARK_WRONG
             : r->bound              ? MARK_HOLLOW
                                     : MARK_FULL,
             svg_place(&a->x, r->flops / r->bytes), svg_place(&a->y, r->flops / t), text);
  }
}

static bool roofline(FILE *f, const comparison *c, int device, bool begun) {
  const compare_device *d = &c->devices[device];
  const compare_peaks *top = peaks_of(d);
  const char *ops[MAX_COMPARED_GROUPS];
  int series[MAX_COMPARED_GROUPS];
  double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = 0;
  for (int i = 0; i < c->n_lines && top; i++) {
    const compare_result *r = c->lines[i].cells[device];
    if (!r || !on_roofline(r)) continue;
    x_low = fmin(x_low, r->flops / r->bytes);
    x_high = fmax(x_high, r->flops / r->bytes);
    y_low = fmin(y_low, r->flops / time_of(r));
    y_high = fmax(y_high, r->flops / time_of(r));
  }
  if (!top || !(x_high > 0)) return false;
  if (!begun)
    fputs("<section>\n<h2>Rooflines</h2>\n<p>Each result under the peaks of its device: solid "
          "lines are measured in the same run, dashed lines are only published. "
          "Hollow: a bound; a cross: incorrect. Points above the slope work in caches.</p>\n<div "
          "class=\"charts\">\n",
          f);
  const int n = ops_of(c, ops);
  for (int i = 0; i < n; i++) series[i] = i;
  const char *more = d->runs ? d->description : *d->sheet ? d->sheet : "compiles only";
  const double legend = svg_heading(NULL, d->label, more),
               above = svg_legend(NULL, legend, n, ops, series) + 14, bottom = above + PLOT;
  y_high = 2 * fmax(y_high, fmax(top->f32, isfinite(top->f64) ? top->f64 : 0));
  const axes a = {
      svg_log_axis(x_low, fmax(x_high, 2 * top->f32 / top->copy), LEFT, SVG_WIDTH - RIGHT),
      svg_log_axis(y_low, y_high, bottom, above)};
  fputs("<figure>\n", f);
  svg_open(f, bottom + BOTTOM, d->label);
  svg_heading(f, d->label, more);
  svg_legend(f, legend, n, ops, series);
  svg_axes(f, &a.x, &a.y, "operations per byte (flop/B)", "operations per second (flop/s)", "", "");
  roof_lines(f, &a, top, top == &d->measured ? "roof" : "roof dashed");
  roof_points(f, c, device, ops, &a);
  roof_labels(f, &a, top);
  svg_close(f);
  fputs("</figure>\n", f);
  return true;
}

void chart_rooflines(FILE *f, const comparison *c) {
  bool any = false;
  for (int d = 0; d < c->n_devices; d++) any |= roofline(f, c, d, any);
  if (any) fputs("</div>\n</section>\n", f);
}

/* ---- curves ---- */

typedef struct {
  const compare_line *line;
  double x;
} curve_line;

/* Some lines, with one curve per device. */
typedef struct {
  const char *title, *subtitle, *x_title, *y_title, *x_unit, *y_unit;
  bool x_log;
  double (*y)(const compare_result *r);
  int n;
  const curve_line *lines; /* x is ascending */
} curves;

static double y_of(const curves *s, int i, int device) {
  const compare_result *r = s->lines[i].line->cells[device];
  return r && isfinite(time_of(r)) ? s->y(r) : (double)NAN;
}

static void curve(FILE *f, const comparison *c, const curves *s, int device, const axes *a) {
  char text[640], number[48];
  bool begun = false, bound = false;
  for (int i = 0; i < s->n; i++)
    bound |= isfinite(y_of(s, i, device)) && s->lines[i].line->cells[device]->bound;
  fprintf(f, "<path class=\"curve c%d%s\" d=\"", device % 8, bound ? " dashed" : "");
  for (int i = 0; i < s->n; i++) {
    const double y = y_of(s, i, device);
    if (isfinite(y))
      fprintf(f, "%c%.1f %.1f", begun ? 'L' : 'M', svg_place(&a->x, s->lines[i].x),
              svg_place(&a->y, y)),
          begun = true;
  }
  fputs("\"/>\n", f);
  for (int i = 0; i < s->n; i++) {
    const double y = y_of(s, i, device);
    if (!isfinite(y)) continue;
    const compare_result *r = s->lines[i].line->cells[device];
    const bool wrong = r->check == CHECK_WRONG;
    snprintf(text, sizeof text, "%s: %s, %.0f rows: %s%s", c->devices[device].label, r->problem,
             r->rows, scaled(number, y, 3, s->y_unit),
             wrong      ? ", INCORRECT"
             : r->bound ? ", a bound and not a measurement"
                        : "");
    svg_mark(f, device,
             wrong      ? MARK_WRONG
             : r->bound ? MARK_HOLLOW
                        : MARK_FULL,
             svg_place(&a->x, s->lines[i].x), svg_place(&a->y, y), text);
  }
}

static void curves_write(FILE *f, const comparison *c, const curves *s) {
  const char *names[MAX_COMPARED_DEVICES];
  int series[MAX_COMPARED_DEVICES], n = 0;
  double low = INFINITY, high = 0;
  for (int d = 0; d < c->n_devices; d++) {
    int points = 0;
    for (int i = 0; i < s->n; i++) {
      const double y = y_of(s, i, d);
      if (!isfinite(y)) continue;
      points++;
      low = fmin(low, y);
      high = fmax(high, y);
    }
    if (points) names[n] = c->devices[d].label, series[n++] = d;
  }
  if (!n) return;
  const double legend = svg_heading(NULL, s->title, s->subtitle),
               above = svg_legend(NULL, legend, n, names, series) + 14, bottom = above + PLOT,
               x0 = s->lines[0].x, x1 = s->lines[s->n - 1].x;
  const axes a = {s->x_log ? svg_log_axis(x0, x1, LEFT, SVG_WIDTH - RIGHT - 4)
                           : svg_linear_axis(x0 - 0.2, x1 + 0.2, LEFT, SVG_WIDTH - RIGHT),
                  svg_log_axis(low, high, bottom, above)};
  fputs("<figure>\n", f);
  svg_open(f, bottom + BOTTOM, s->title);
  svg_heading(f, s->title, s->subtitle);
  svg_legend(f, legend, n, names, series);
  svg_axes(f, &a.x, &a.y, s->x_title, s->y_title, s->x_unit, s->y_unit);
  for (int i = 0; i < n; i++) curve(f, c, s, series[i], &a);
  svg_close(f);
  fputs("</figure>\n", f);
}

/* ---- scaling with rows ---- */

static double rows_per_second(const compare_result *r) { return r->rows / time_of(r); }

/* If `line` is the first of at least 3 lines of its block, in the files' order, fills `lines` and
   returns their number; else 0. */
static int block_of(const comparison *c, int line, bool seen[], curve_line lines[]) {
  const int block = c->lines[line].block;
  int n = 0;
  if (seen[block]) return 0;
  seen[block] = true;
  while (line > 0 && c->lines[line - 1].block == block) line--;
  for (; line + n < c->n_lines && c->lines[line + n].block == block; n++)
    lines[n] = (curve_line){&c->lines[line + n], c->lines[line + n].rows};
  return n < 3 ? 0 : n;
}

static void rows_of_group(FILE *f, const comparison *c, int group, bool seen[], curve_line lines[],
                          bool *any) {
  const compare_result *is = c->groups[group];
  char title[512], work[400];
  int n, shown = 0;
  snprintf(title, sizeof title, "%s, %s, %s", is->op, is->pass, is->dtype);
  for (int k = 0; k < c->n_lines; k++) {
    if (c->lines[c->order[k]].group != group || !(n = block_of(c, c->order[k], seen, lines)))
      continue;
    if (!*any)
      fputs("<section>\n<h2>Scaling with rows</h2>\n<p>Few rows show the cost of a launch, many "
            "the ceiling. Higher is faster.</p>\n",
            f);
    if (!shown++) {
      fprintf(f, "<details%s><summary>", *any ? "" : " open");
      html_text(f, title);
      fputs("</summary>\n<div class=\"charts\">\n", f);
    }
    *any = true;
    curves_write(f, c,
                 &(curves){title, work_of(lines[0].line->is, work, sizeof work), "rows of a launch",
                           "rows per second", "", "", true, rows_per_second, n, lines});
  }
  if (shown) fputs("</div></details>\n", f);
}

void chart_rows(FILE *f, const comparison *c) {
  curve_line *lines = allocate((size_t)c->n_lines, sizeof *lines);
  bool *seen = allocate((size_t)c->n_lines, sizeof *seen), any = false;
  for (int g = 0; g < c->n_groups; g++) rows_of_group(f, c, g, seen, lines, &any);
  if (any) fputs("</section>\n", f);
  free(seen);
  free(lines);
}

/* ---- scaling with l ---- */

static double seconds_per_row(const compare_result *r) { return time_of(r) / r->rows; }

/* "flashtp-l3" is 3 of "flashtp-l", "lmax=4" 4 of "lmax="; *n: bytes of that prefix. Negative: no
 degree. */
static int degree_of(const char *problem, int *n) {
  for (const char *s = problem; (s = strpbrk(s, "lL")); s++) {
    const char *number = s + 1;
    if (s > problem && s[-1] != '-' && s[-1] != ' ') continue;
    if (!strncmp(number, "max", 3)) number += 3;
    if (*number == '=' || *number == '-') number++;
    char *end;
    if (*number < '0' || *number > '9') continue;
    const long l = strtol(number, &end, 10);
    if (l > 99 || (*end && *end != ' ')) continue;
    *n = (int)(number - problem);
    return (int)l;
  }
  return -1;
}

static int by_family(const void *a, const void *b) { /* the same except for l, which is then
                                                        ascending */
  const curve_line *p = a, *q = b;
  const compare_result *x = p->line->is, *y = q->line->is;
  int n = 0, m = 0, order = p->line->group - q->line->group;
  degree_of(x->problem, &n);
  degree_of(y->problem, &m);
  if (!order) order = n - m;
  if (!order) order = strncmp(x->problem, y->problem, (size_t)n);
  if (!order)
    order = strcmp(x->problem + n + strspn(x->problem + n, "0123456789"),
                   y->problem + n + strspn(y->problem + n, "0123456789"));
  if (!order) order = strcmp(x->graph, y->graph);
  if (!order) order = strcmp(x->options, y->options);
  return order ? order : (p->x > q->x) - (p->x < q->x);
}

static bool same_family(curve_line a, curve_line b) {
  a.x = b.x;
  return !by_family(&a, &b);
}

void chart_degrees(FILE *f, const comparison *c) {
  curve_line *lines = allocate((size_t)c->n_lines, sizeof *lines);
  int n = 0, unused;
  bool any = false;
  for (int i = 0; i < c->n_lines; i++) {
    if (i < c->n_lines - 1 && c->lines[i].block == c->lines[i + 1].block)
      continue; /* the largest of those that differ in rows */
    const int l = degree_of(c->lines[i].is->problem, &unused);
    if (l >= 0) lines[n++] = (curve_line){&c->lines[i], l};
  }
  qsort(lines, (size_t)n, sizeof *lines, by_family);
  for (int i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && same_family(lines[i], lines[end]);) end++;
    if (end - i < 2) continue;
    const compare_result *is = lines[i].line->is;
    char title[512], subtitle[640];
    int prefix = 0;
    degree_of(is->problem, &prefix);
    const char *rest = is->problem + prefix + strspn(is->problem + prefix, "0123456789");
    snprintf(title, sizeof title, "%s, %s, %s", is->op, is->pass, is->dtype);
    snprintf(subtitle, sizeof subtitle, "%.*s...%s%s%s%s%s", prefix, is->problem, rest,
             *is->graph ? ", " : "", is->graph, *is->options ? ", " : "", is->options);
    if (!any)
      fputs("<section>\n<h2>Scaling with l</h2>\n<p>At the largest number of rows of each; lower "
            "is faster.</p>\n<div class=\"charts\">\n",
            f);
    any = true;
    curves_write(f, c,
                 &(curves){title, subtitle, "degree l", "time per row", "", "s", false,
                           seconds_per_row, end - i, lines + i});
  }
  if (any) fputs("</div>\n</section>\n", f);
  free(lines);
}
