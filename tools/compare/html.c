/* tools/compare/html.c - a comparison as one self-contained page: page.html with sentences, tables,
   the comparison as JSON, and page.js, which draws charts of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/tables.h"

extern const char compare_page[], compare_script[]; /* page.html and page.js */

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

static void sentences(FILE *f, const comparison *c) {
  list l = {.f = f};
  compare_sentences(c, item, &l);
  fputs("</ul>\n", f);
}

static void devices(FILE *f, const comparison *c) {
  table_section(f, "devices", "Devices", "", devices_table(c));
}

static void means(FILE *f, const comparison *c) {
  table_section(f, "means", "Geometric means of speeds", "", means_table(c));
}

static void compiled(FILE *f, const comparison *c) {
  table_section(f, "compiled", "Compiled, not run",
                "<p>What vendors' compilers say of the machine code. The time is a bound from "
                "counts and published figures, not a measurement.</p>\n",
                compilers_table(c));
}

static void results(FILE *f, const comparison *c) {
  table_section(
      f, "results", "All results",
      "<p>speed: against the baseline; /row: of times by the row; &lt;= and &gt;=: bounds.</p>\n",
      results_table(c));
}

/* Strings may have what ends a script. */
static void json(FILE *f, const comparison *c) {
  json_t *root = compare_json(c);
  char *text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII);
  json_decref(root);
  if (!text) fatal("out of memory");
  for (const char *s = text; *s; s++)
    if (*s == '<') fputs("\\u003c", f);
    else fputc(*s, f);
  free(text);
}

static void script(FILE *f, const comparison *c) {
  (void)c;
  fputs(compare_script, f);
}

static const struct {
  const char *name; /* as <!--name--> in the page */
  void (*write)(FILE *f, const comparison *c);
} parts[] = {{"title", title}, {"sentences", sentences}, {"devices", devices},
             {"means", means}, {"compiled", compiled},   {"results", results},
             {"files", files}, {"json", json},           {"script", script}};

bool compare_html(FILE *f, const void *user) {
  const char *from = compare_page;
  for (const char *at; (at = strstr(from, "<!--")); from = strstr(at, "-->") + 3) {
    fwrite(from, 1, (size_t)(at - from), f);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
      const size_t n = strlen(parts[i].name);
      if (!strncmp(at + 4, parts[i].name, n) && at[4 + n] == '-') parts[i].write(f, user);
    }
  }
  fputs(from, f);
  return !ferror(f);
}
