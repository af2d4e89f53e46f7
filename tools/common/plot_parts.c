/* tools/common/plot_parts.c - what all plots have in common. */
#include "tools/common/plot_parts.h"

#include <math.h>

static const char style[] =
    "<style>\n"
    "svg{font:13px system-ui,sans-serif}\n"
    ".back{fill:#fff}text{fill:#222}.small{font-size:12px}.faint{fill:#666}\n"
    ".title{font-size:15px;font-weight:600}.grid{stroke:#ddd;stroke-width:1}\n"
    ".curve{fill:none;stroke-width:1.6;stroke-linejoin:round}\n"
    ".dots{fill:none;stroke-width:3;stroke-linecap:round;stroke-opacity:.6}\n"
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

void plot_begin(FILE *f, int height, const char *title, const char *subtitle) {
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"100%%\" "
          "style=\"max-width:%dpx\" role=\"img\">\n<title>",
          PLOT_WIDTH, height, 2 * PLOT_WIDTH);
  text_write(f, title);
  fputs("</title>\n", f);
  fputs(style, f);
  fprintf(f, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", PLOT_WIDTH, height);
  plot_label(f, 14, 24, "title", "start", title);
  plot_label(f, 14, 43, "small faint", "start", subtitle);
}

bool plot_end(FILE *f) {
  fputs("</svg>\n", f);
  return !ferror(f);
}

void plot_label(FILE *f, double x, double y, const char *classes, const char *anchor,
                const char *text) {
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, classes, anchor);
  text_write(f, text);
  fputs("</text>\n", f);
}

/* ---- axes ---- */

plot_axis plot_axis_of(double low, double high, int max) {
  if (!(high > low)) {
    const double capacity = low != 0 ? fabs(low) * 1e-3 : 1;
    low -= capacity;
    high += capacity;
  }
  const double raw = (high - low) / max, power = pow(10, floor(log10(raw))), ratio = raw / power;
  plot_axis a = {low, high, power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10), 0};
  a.decimals = (int)fmax(0, fmin(12, -floor(log10(a.step) + 1e-9)));
  return a;
}

plot_axis plot_axis_around(double low, double high, int max) {
  plot_axis a = plot_axis_of(low, high, max);
  a.low = floor(a.low / a.step + 1e-9) * a.step;
  a.high = ceil(a.high / a.step - 1e-9) * a.step;
  return a;
}

void plot_tick(char text[32], const plot_axis *a, double at) {
  snprintf(text, 32, "%.*f", a->decimals, fabs(at) < a->step / 1000 ? 0. : at);
}
