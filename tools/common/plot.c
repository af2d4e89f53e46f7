/* tools/common/plot.c - curves over a common axis as SVG. */
#include "tools/common/plot.h"

#include <math.h>

/* User units; at the width of a phone (360 pixels) a letter is 11 pixels high. */
enum { WIDTH = 440, LEFT = 58, RIGHT = 14, TOP = 58, PANEL = 130, GAP = 42, BOTTOM = 50 };

typedef struct {
  double low, high, step; /* step: between ticks; for y, low and high are multiples of it */
  int decimals;
} axis;

static const char style[] =
    "<style>\n"
    "svg{font:13px system-ui,sans-serif}\n"
    ".back{fill:#fff}text{fill:#222}.small{font-size:12px}.faint{fill:#666}\n"
    ".title{font-size:15px;font-weight:600}.grid{stroke:#ddd;stroke-width:1}\n"
    ".curve{fill:none;stroke-width:1.6;stroke-linejoin:round}\n"
    ".s0{stroke:#1f5fa8}.t0{fill:#1f5fa8}.s1{stroke:#b8480c}.t1{fill:#b8480c}.s2{stroke:#1d7a3c}."
    "t2{fill:#1d7a3c}\n"
    "@media (prefers-color-scheme:dark){\n"
    ".back{fill:#14171a}text{fill:#e6e6e6}.faint{fill:#a0a0a0}.grid{stroke:#3a3f44}\n"
    ".s0{stroke:#7ab4f5}.t0{fill:#7ab4f5}.s1{stroke:#f5995c}.t1{fill:#f5995c}.s2{stroke:#6fcf8f}."
    "t2{fill:#6fcf8f}}\n"
    "</style>\n";

static void text_write(FILE *f, const char *text) {
  for (; *text; text++) switch (*text) {
      case '&': fputs("&amp;", f); break;
      case '<': fputs("&lt;", f); break;
      case '>': fputs("&gt;", f); break;
      default: fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
    }
}

static void label(FILE *f, double x, double y, const char *classes, const char *anchor,
                  const char *text) {
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, classes, anchor);
  text_write(f, text);
  fputs("</text>\n", f);
}

/* ---- axes ---- */

/* Steps of 1, 2 or 5 times a power of ten: at most `max` of them. */
static axis axis_of(double low, double high, int max) {
  if (!(high > low)) {
    const double capacity = low != 0 ? fabs(low) * 1e-3 : 1;
    low -= capacity;
    high += capacity;
  }
  const double raw = (high - low) / max, power = pow(10, floor(log10(raw))), ratio = raw / power;
  axis a = {low, high, power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10), 0};
  a.decimals = (int)fmax(0, fmin(12, -floor(log10(a.step) + 1e-9)));
  return a;
}

static axis y_axis(const plot *p, const plot_panel *panel) {
  double low = INFINITY, high = -INFINITY;
  for (int c = 0; c < panel->n_curves; c++)
    for (int i = 0; i < p->n; i++) {
      low = fmin(low, panel->y[c][i]);
      high = fmax(high, panel->y[c][i]);
    }
  axis a = axis_of(low, high, 4);
  a.low = floor(a.low / a.step + 1e-9) * a.step;
  a.high = ceil(a.high / a.step - 1e-9) * a.step;
  return a;
}

static void tick_text(char text[32], const axis *a, double at) {
  snprintf(text, 32, "%.*f", a->decimals, fabs(at) < a->step / 1000 ? 0. : at);
}

/* ---- panels ---- */

static double x_place(const axis *x, double at) {
  return LEFT + (WIDTH - LEFT - RIGHT) * (at - x->low) / (x->high - x->low);
}

static double y_place(const axis *y, double top, double at) {
  return top + PANEL * (y->high - at) / (y->high - y->low);
}

static void grid_write(FILE *f, const axis *x, const axis *y, double top, bool last) {
  char text[32];
  for (double k = ceil(y->low / y->step - 1e-6); k * y->step <= y->high + 1e-6 * y->step; k++) {
    const double at = y_place(y, top, k * y->step);
    fprintf(f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, at, WIDTH - RIGHT);
    tick_text(text, y, k * y->step);
    label(f, LEFT - 6, at + 4, "small faint", "end", text);
  }
  for (double k = ceil(x->low / x->step - 1e-6); k * x->step <= x->high + 1e-6 * x->step; k++) {
    const double at = x_place(x, k * x->step);
    fprintf(f, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, top, top + PANEL);
    tick_text(text, x, k * x->step);
    if (last) label(f, at, top + PANEL + 18, "small faint", "middle", text);
  }
}

static void panel_write(FILE *f, const plot *p, int which, const axis *x) {
  const plot_panel *panel = &p->panels[which];
  const double top = TOP + which * (PANEL + GAP) + 18;
  const axis y = y_axis(p, panel);
  static const char *const classes[PLOT_CURVES] = {"small t0", "small t1", "small t2"};
  double right = WIDTH - RIGHT;
  label(f, LEFT, top - 8, "", "start", panel->title);
  for (int c = panel->n_curves - 1; c >= 0; c--) {
    if (!panel->names[c]) continue;
    label(f, right, top - 8, classes[c], "end", panel->names[c]);
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
  const int height = TOP + p->n_panels * (PANEL + GAP) - GAP + 18 + BOTTOM;
  const axis x = axis_of(p->x[0], p->x[p->n - 1], 6);
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"100%%\" "
          "style=\"max-width:%dpx\" role=\"img\">\n<title>",
          WIDTH, height, 2 * WIDTH);
  text_write(f, p->title);
  fputs("</title>\n", f);
  fputs(style, f);
  fprintf(f, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
  label(f, 14, 24, "title", "start", p->title);
  label(f, 14, 43, "small faint", "start", p->subtitle);
  for (int i = 0; i < p->n_panels; i++) panel_write(f, p, i, &x);
  label(f, (LEFT + WIDTH - RIGHT) / 2., height - 12, "", "middle", p->x_title);
  fputs("</svg>\n", f);
  return !ferror(f);
}
