/* tools/ablation/report.c - the results of `clebsch bench --without`: in the file, and tables. */
#include "tools/ablation/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the file ---- */

json_t *ablation_head(const char *device, const ablation_case *c) {
  json_t *head = json_object();
  JSON_ADD(
      head, {"device", json_text(device)}, {"work", json_text(c->kind)},
      {"problem", json_text(c->problem)},
      {"layout", c->layout ? json_text(c->layout) : json_null()},
      {"graph", c->graph ? json_text(c->graph) : json_null()},
      {"pass", json_text(strcmp(c->kind, "sequence") ? pass_names[c->pass] : "forward, backward")});
  if (!c->graph && c->rows) json_add(head, "rows", json_count(c->rows));
  if (c->suite) json_add(head, "suite", json_text(c->suite));
  return head;
}

bool ablation_add(results_file *f, json_t *head, const ablation_case *c, const work *w) {
  json_t *row = json_array_add(f->results, head), *variants = json_array();
  JSON_ADD(row, {"rows", json_count(c->rows)}, {"seconds", json_number(w->variant[0].seconds)},
           {"seconds_min", json_number(w->variant[0].seconds_min)});
  for (int i = 1; i < w->n_variants; i++) {
    const variant *y = &w->variant[i];
    if (y->without == ABLATIONS) continue;
    if (y->without == NAIVE_KERNEL) {
      JSON_ADD(row, {"naive_seconds", json_number(y->seconds)},
               {"naive_seconds_min", json_number(y->seconds_min)},
               {"naive_error", json_number(y->error)});
      continue;
    }
    json_t *one = json_array_add(variants, json_object());
    JSON_ADD(one, {"without", json_text(ablation_names[y->without])},
             {"ratio", json_number(y->ratio)}, {"seconds", json_number(y->seconds)},
             {"seconds_min", json_number(y->seconds_min)},
             {"seconds_min_with", json_number(w->variant[y->baseline].seconds_min)},
             {"error", json_number(y->error)});
  }
  json_add(row, "ways", variants);
  return results_write(f);
}

static const char *text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static double number(const json_t *o, const char *key) {
  return json_number_value(json_object_get(o, key));
}

/* The time without an optimisation divided by that with it; 0: it changes nothing in this case. */
static double ratio_of(const json_t *row, ablation without) {
  size_t i;
  json_t *one;
  json_array_foreach(
      json_object_get(row, "ways"), i,
      one) if (!strcmp(text(one, "without"), ablation_names[without])) return number(one, "ratio");
  return 0;
}

/* ---- tables: a line for each of some names, a column for each device or suite ---- */

enum { CELL = 160, MAX_CELLS = MAX_COLUMNS - 1 };
typedef struct {
  const char *corner;
  int n, n_lines;
  struct {
    const char *device, *suite; /* NULL: all cases */
  } column[MAX_CELLS];
  struct {
    const char *name;
    ablation without;
  } line[ABLATIONS];
} grid;

/* Over a naive kernel in a suite: there a case without the variant is as it is with all on. */
static void mean_of(const results_file *f, const grid *g, int c, int line, char out[CELL]) {
  const char *suite = g->column[c].suite;
  const ablation without = g->line[line].without;
  double logarithms = 0;
  int n = 0;
  size_t i;
  json_t *row;
  json_array_foreach(f->results, i, row) {
    if (strcmp(text(row, "device"), g->column[c].device)) continue;
    if (suite && strcmp(text(row, "suite"), suite)) continue;
    double ratio = without < ABLATIONS ? ratio_of(row, without) : 1;
    if (!(ratio > 0) && !suite) continue;
    if (suite)
      ratio =
          number(row, "naive_seconds_min") / number(row, "seconds_min") / (ratio > 0 ? ratio : 1);
    logarithms += log(ratio);
    n++;
  }
  if (n) snprintf(out, CELL, "%.2f (%d)", exp(logarithms / n), n);
  else snprintf(out, CELL, "-");
}

static void print_grid(const results_file *f, const grid *g) {
  char cells[ABLATIONS][MAX_COLUMNS][CELL], titles[MAX_COLUMNS][CELL];
  table t = {.n = g->n + 1};
  if (!json_array_size(f->results)) return;
  for (int c = 0; c <= g->n; c++) {
    if (!c) snprintf(titles[c], CELL, "%s", g->corner);
    else if (!g->column[c - 1].suite) snprintf(titles[c], CELL, ">%s", g->column[c - 1].device);
    else if (json_array_size(f->devices) == 1)
      snprintf(titles[c], CELL, ">%s", g->column[c - 1].suite);
    else snprintf(titles[c], CELL, ">%s: %s", g->column[c - 1].device, g->column[c - 1].suite);
    t.titles[c] = titles[c];
    for (int i = 0; i < g->n_lines; i++) {
      if (c) mean_of(f, g, c - 1, i, cells[i][c]);
      else snprintf(cells[i][c], CELL, "%s", g->line[i].name);
      table_fit(&t, c, cells[i][c]);
    }
  }
  table_titles(&t);
  for (int i = 0; i < g->n_lines; i++) {
    const char *line[MAX_COLUMNS];
    for (int c = 0; c <= g->n; c++) line[c] = cells[i][c];
    table_line(&t, line);
  }
}

static void add_column(grid *g, const char *device, const char *suite) {
  for (int i = 0; i < g->n; i++)
    if (!strcmp(g->column[i].device, device) && (!suite || !strcmp(g->column[i].suite, suite)))
      return;
  if (g->n == MAX_CELLS) return;
  g->column[g->n].device = device;
  g->column[g->n++].suite = suite;
}

void ablation_print_means(const results_file *f, unsigned wanted) {
  grid g = {.corner = "time without / with"};
  size_t i;
  json_t *row;
  json_array_foreach(f->results, i, row) add_column(&g, text(row, "device"), NULL);
  for (int a = 0; a < ABLATIONS; a++) {
    if (!(wanted >> a & 1)) continue;
    g.line[g.n_lines].name = ablation_names[a];
    g.line[g.n_lines++].without = (ablation)a;
  }
  print_grid(f, &g);
}

void ablation_print_suites(const results_file *f) {
  grid g = {.corner = "speed over a naive kernel",
            .n_lines = 5,
            .line = {{"all on", ABLATIONS},
                     {"without wide accesses", NO_WIDE_ACCESSES},
                     {"without persistent reductions", NO_REGISTER_SUMS},
                     {"without split reductions", NO_SPLIT_ROWS},
                     {"without any", NO_OPTIMISATION}}};
  size_t i;
  json_t *row;
  json_array_foreach(f->results, i, row) add_column(&g, text(row, "device"), text(row, "suite"));
  print_grid(f, &g);
}

void ablation_print_cases(const results_file *f, unsigned wanted) {
  char titles[ABLATIONS][24], made[3 + ABLATIONS][CELL];
  table t = {.n = 4, .titles = {"device", "pass", ">rows", ">ms"}};
  size_t i;
  json_t *row;
  for (int a = 0; a < ABLATIONS; a++) {
    if (!(wanted >> a & 1)) continue;
    snprintf(titles[a], sizeof titles[a], ">no %s", ablation_words[a]);
    t.titles[t.n++] = titles[a];
  }
  table_fit(&t, 1, pass_names[CLB_DOUBLE_BACKWARD]);
  table_fit(&t, 2, "1000000"), table_fit(&t, 3, "123.4567");
  json_array_foreach(f->results, i, row) table_fit(&t, 0, text(row, "device"));
  json_array_foreach(f->results, i, row) {
    const char *cells[MAX_COLUMNS] = {text(row, "device"), text(row, "pass")};
    int n = 0;
    if (!i) print_text("%s %s", text(row, "work"), text(row, "problem")), table_titles(&t);
    snprintf(made[n++], CELL, "%.0f", number(row, "rows"));
    snprintf(made[n++], CELL, "%.4f", number(row, "seconds_min") * 1e3);
    for (int a = 0; a < ABLATIONS; a++) {
      const double ratio = ratio_of(row, (ablation)a);
      if (!(wanted >> a & 1)) continue;
      if (ratio > 0) snprintf(made[n++], CELL, "x %.2f", ratio);
      else snprintf(made[n++], CELL, "the same");
    }
    for (int k = 0; k < n; k++) cells[2 + k] = made[k];
    table_line(&t, cells);
  }
}
