/* tools/compare/html.c - a comparison as one self-contained page: tables, and charts as SVG. */
#include <stdio.h>
#include <string.h>

#include "tools/compare/charts.h"
#include "tools/compare/tables.h"

/* Colours after Okabe and Ito, darker on white, lighter on black; series also differ in shape. */
static const char style[] =
    "<style>\n"
    ":root{color-scheme:light "
    "dark;--back:#fff;--card:#f7f7f8;--text:#1b1d1f;--faint:#5c6166;--rule:#d9dcdf;--wrong:#b3001b;"
    "--c0:#0068a8;--c1:#c14e00;--c2:#007a5a;--c3:#a3478b;--c4:#8a6a00;--c5:#2b8fc9;--c6:#5b5f64;--"
    "c7:#6a3fb5}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--back:#14171a;--card:#1b1f23;--text:#e7e9eb;--faint:#"
    "a4abb1;--rule:#3a4046;--wrong:#ff7b8a;"
    "--c0:#5db4f0;--c1:#ff9450;--c2:#35cfa0;--c3:#e79ad0;--c4:#e3c04a;--c5:#a8dcff;--c6:#b9bfc5;--"
    "c7:#b99bff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:1280px;padding:20px 16px "
    "60px;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.6rem;line-height:1.2;margin:.4em 0}h2{font-size:1.25rem;margin:2em 0 "
    ".4em}p,ul{max-width:75ch;margin:.5em 0;overflow-wrap:anywhere}ul{padding-left:1.2em}\n"
    ".faint{color:var(--faint);fill:var(--faint)}.lead{font-size:1.1rem}\n"
    ".scroll{overflow:auto;width:fit-content;max-width:100%;border:1px solid "
    "var(--rule);border-radius:6px;max-height:80vh}\n"
    "table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3em .7em;text-align:left;white-space:nowrap;border-bottom:1px solid "
    "var(--rule)}thead{position:sticky;top:0;background:var(--card)}\n"
    "#devices table{min-width:1000px}#devices "
    "td:not(.right){white-space:normal;overflow-wrap:anywhere}\n"
    ".over{text-align:center;border-left:1px solid "
    "var(--rule)}.right{text-align:right}td.wrong{color:var(--wrong);font-weight:600}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:"
    "16px;align-items:start}\n"
    "details{margin:.6em 0}summary{cursor:pointer;padding:.3em "
    "0;font-weight:600}.flow{columns:340px 3;column-gap:16px}.flow "
    "figure{break-inside:avoid;margin:0 0 16px}\n"
    "figure{margin:0;padding:8px;background:var(--card);border:1px solid "
    "var(--rule);border-radius:6px}svg{display:block;width:100%;height:auto;max-width:600px;font:"
    "13px system-ui,sans-serif}\n"
    "text{fill:var(--text)}.title{font-size:14.5px;font-weight:600}.label{paint-order:stroke;"
    "stroke:var(--card);stroke-width:3px;stroke-linejoin:round}.tick{font-size:12px;fill:var(--"
    "faint)}.value{font-size:12.5px;font-variant-numeric:tabular-nums}text.wrong{fill:var(--wrong);"
    "font-weight:600}\n"
    ".grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--faint);stroke-width:1}.one{stroke:"
    "var(--text);stroke-width:1.2;stroke-dasharray:4 "
    "3}.range{stroke:var(--faint);stroke-width:1.4}\n"
    ".roof{stroke:var(--text);stroke-width:1.6}.dashed{stroke-dasharray:6 "
    "4}.curve{fill:none;stroke:var(--c);stroke-width:1.8}.bar{stroke:var(--c);stroke-width:7;"
    "opacity:.4}\n"
    ".mark{fill:var(--c);stroke:var(--card);stroke-width:.8}.hollow{fill:var(--card);stroke:var(--"
    "c);stroke-width:1.8}.small{fill:var(--c);opacity:.55}.cross{fill:none;stroke:var(--wrong);"
    "stroke-width:2.4}\n"
    ".c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{"
    "--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}\n"
    "@media print{.scroll{max-height:none;overflow:visible}}\n"
    "</style>\n";

typedef struct {
  FILE *f;
  int n;
} list;

static void item(void *user, const char *sentence) {
  list *l = user;
  static const char *const before[] = {"<p class=\"lead\">", " ", "<li>"}, *const after[] = {
                                                                               "", "</p>\n<ul>\n",
                                                                               "</li>\n"};
  const int i = l->n < 2 ? l->n++ : 2;
  fputs(before[i], l->f);
  html_text(l->f, sentence);
  fputs(after[i], l->f);
}

static void table_section(FILE *f, const char *id, const char *title, const char *words, grid g) {
  if (g.n_cells) {
    fprintf(f, "<section id=\"%s\">\n<h2>%s</h2>\n%s", id, title, words);
    grid_html(f, &g);
    fputs("</section>\n", f);
  }
  grid_free(&g);
}

static void files(FILE *f, const comparison *c) {
  fputs("<section>\n<h2>Files</h2>\n<ul>\n", f);
  for (int i = 0; i < c->n_runs; i++) {
    const compare_run *r = &c->runs[i];
    fputs("<li>", f);
    html_text(f, r->path);
    const char *const said[][2] = {
        {": clebsch ", r->version}, {", suite ", r->suite}, {", started ", r->started}};
    for (int k = 0; k < 3; k++) {
      if (!*said[k][1]) continue;
      fputs(said[k][0], f);
      html_text(f, said[k][1]);
    }
    fputs(r->plain      ? ": an array of results, which says nothing of the devices</li>\n"
          : r->complete ? "</li>\n"
                        : ", <strong>incomplete</strong></li>\n",
          f);
  }
  fputs("</ul>\n</section>\n", f);
}

static void title(FILE *f, const comparison *c) {
  bool begun = false;
  for (int d = 0; d < c->n_devices; d++) {
    if (!c->devices[d].n_results) continue;
    if (begun) fputs(", ", f);
    html_text(f, c->devices[d].label);
    begun = true;
  }
}

bool compare_html(FILE *f, const void *user) {
  const comparison *c = user;
  list l = {.f = f};
  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Clebsch: ",
        f);
  title(f, c);
  fprintf(f, "</title>\n%s</head>\n<body>\n<h1>Clebsch: ", style);
  title(f, c);
  fputs("</h1>\n", f);
  compare_sentences(c, item, &l);
  fputs("</ul>\n", f);
  table_section(f, "devices", "Devices", "", devices_table(c));
  chart_speeds(f, c);
  table_section(f, "means", "Geometric means of speeds", "", means_table(c));
  chart_rooflines(f, c);
  chart_times(f, c);
  chart_rows(f, c);
  chart_degrees(f, c);
  table_section(f, "compiled", "Compiled, not run",
                "<p>What vendors' compilers say of the machine code. The time is a bound from "
                "counts and published figures, not a measurement.</p>\n",
                compilers_table(c));
  table_section(
      f, "results", "All results",
      "<p>speed: against the baseline; /row: of times by the row; &lt;= and &gt;=: bounds.</p>\n",
      results_table(c));
  files(f, c);
  fputs("</body>\n</html>\n", f);
  return !ferror(f);
}
