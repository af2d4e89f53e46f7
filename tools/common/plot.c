/* tools/common/plot.c - curves over a common axis as SVG. */
#include "tools/common/plot.h"

#include <math.h>

#include "tools/common/plot_parts.h"

enum { PANEL = 130, GAP = 42, BOTTOM = 50 };

static plot_axis y_axis(const plot *p, const plot_panel *panel) {
  double low = INFINITY, high = -INFINITY;
  for (int c = 0; c < panel->n_curves; c++)
    for (int i = 0; i < p->n; i++) {
      low = fmin(low, panel->y[c][i]);
      high = fmax(high, panel->y[c][i]);
    }
  return plot_axis_around(low, high, 4);
}

static double x_place(const plot_axis *x, double at) {
  return PLOT_LEFT + (PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT) * (at - x->low) / (x->high - x->low);
}

static double y_place(const plot_axis *y, double top, double at) {
  return top + PANEL * (y->high - at) / (y->high - y->low);
}

static void grid_write(FILE *f, const plot_axis *x, const plot_axis *y, double top, bool last) {
  char text[32];
  for (double k = ceil(y->low / y->step - 1e-6); k * y->step <= y->high + 1e-6 * y->step; k++) {
    const double at = y_place(y, top, k * y->step);
    fprintf(f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", PLOT_LEFT, at,
            PLOT_WIDTH - PLOT_RIGHT);
    plot_tick(text, y, k * y->step);
    plot_label(f, PLOT_LEFT - 6, at + 4, "small faint", "end", text);
  }
  for (double k = ceil(x->low / x->step - 1e-6); k * x->step <= x->high + 1e-6 * x->step; k++) {
    const double at = x_place(x, k * x->step);
    fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, top, top + PANEL);
    plot_tick(text, x, k * x->step);
    if (last) plot_label(f, at, top + PANEL + 18, "small faint", "middle", text);
  }
}

static void panel_write(FILE *f, const plot *p, int which, const plot_axis *x) {
  const plot_panel *panel = &p->panels[which];
  const double top = PLOT_TOP + which * (PANEL + GAP) + 18;
  const plot_axis y = y_axis(p, panel);
  static const char *const classes[PLOT_CURVES] = {"small t0", "small t1", "small t2"};
  double right = PLOT_WIDTH - PLOT_RIGHT;
  plot_label(f, PLOT_LEFT, top - 8, "", "start", panel->title);
  for (int c = panel->n_curves - 1; c >= 0; c--) {
    if (!panel->names[c]) continue;
    plot_label(f, right, top - 8, classes[c], "end", panel->names[c]);
    for (const char *s = panel->names[c]; *s; s++) right -= 7;
    right -= 8;
  }
  grid_write(f, x, &y, top, which == p->n_panels - 1);
  for (int c = 0; c < panel->n_curves; c++) {
    fprintf(f, "<path class=\"curve s%d\" d=\"", c);
    for (int i = 0; i < p->n; i++)
      fprintf(f, "%c%.1f %.2f", i ? 'L' : 'M', x_place(x, p->x[i]),
              y_place(&y, top, panel->y[c][i]));
    fputs("\"/>\n", f);
  }
}

bool plot_write(FILE *f, const void *user) {
  const plot *p = user;
  const int height = PLOT_TOP + p->n_panels * (PANEL + GAP) - GAP + 18 + BOTTOM;
  const plot_axis x = plot_axis_of(p->x[0], p->x[p->n - 1], 6);
  plot_begin(f, height, p->title, p->subtitle);
  for (int i = 0; i < p->n_panels; i++) panel_write(f, p, i, &x);
  plot_label(f, (PLOT_LEFT + PLOT_WIDTH - PLOT_RIGHT) / 2., height - 12, "", "middle", p->x_title);
  return plot_end(f);
}
