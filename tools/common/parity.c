/* tools/common/parity.c - what was predicted over what is known as SVG. */
#include "tools/common/parity.h"

#include <math.h>

#include "tools/common/plot_parts.h"

enum { SIDE = PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT, HEAD = 26, FOOT = 52, TICKS = 6 };

static plot_axis axis_of_panel(const parity_panel *p) {
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < p->n; i++) {
    low = fmin(low, fmin(p->x[i], p->y[i]));
    high = fmax(high, fmax(p->x[i], p->y[i]));
  }
  return plot_axis_around(low, high, TICKS);
}

static double place(const plot_axis *a, double at) {
  return SIDE * (at - a->low) / (a->high - a->low);
}

/* Both ways the same ticks. */
static void grid_write(FILE *f, const plot_axis *a, double top) {
  char text[32];
  for (double k = ceil(a->low / a->step - 1e-6); k * a->step <= a->high + 1e-6 * a->step; k++) {
    const double at = place(a, k * a->step);
    fprintf(f, "<path class=\"grid\" d=\"M%d %.1fh%dM%.1f %.1fv%d\"/>\n", PLOT_LEFT,
            top + SIDE - at, SIDE, PLOT_LEFT + at, top, SIDE);
    plot_tick(text, a, k * a->step);
    plot_label(f, PLOT_LEFT - 6, top + SIDE - at + 4, "small faint", "end", text);
    plot_label(f, PLOT_LEFT + at, top + SIDE + 18, "small faint", "middle", text);
  }
}

static void panel_write(FILE *f, const parity_plot *plot, const parity_panel *p, double top) {
  const plot_axis a = axis_of_panel(p);
  plot_label(f, PLOT_LEFT, top - 8, "", "start", p->title);
  plot_label(f, PLOT_LEFT + SIDE, top - 8, "small faint", "end", p->note);
  grid_write(f, &a, top);
  fprintf(f, "<path class=\"curve s1\" d=\"M%d %.1fl%d %d\"/>\n", PLOT_LEFT, top + SIDE, SIDE,
          -SIDE);
  fputs("<path class=\"dots s0\" d=\"", f);
  for (int64_t i = 0; i < p->n; i++)
    fprintf(f, "M%.1f %.1fh0", PLOT_LEFT + place(&a, p->x[i]), top + SIDE - place(&a, p->y[i]));
  fputs("\"/>\n", f);
  plot_label(f, PLOT_LEFT + SIDE / 2., top + SIDE + 36, "small faint", "middle", plot->x_title);
  plot_label(f, PLOT_LEFT + 6, top + 16, "small faint", "start", plot->y_title);
}

bool parity_write(FILE *f, const void *user) {
  const parity_plot *p = user;
  plot_begin(f, PLOT_TOP + p->n_panels * (HEAD + SIDE + FOOT), p->title, p->subtitle);
  for (int i = 0; i < p->n_panels; i++)
    panel_write(f, p, &p->panels[i], PLOT_TOP + i * (HEAD + SIDE + FOOT) + HEAD);
  return plot_end(f);
}
