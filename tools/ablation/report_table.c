/* tools/ablation/report_table.c - the tables of `clebsch ablation`: optimisations by device, and
   optimisations by device and suite. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/ablation/report.h"

static const char *text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static double number(const json_t *o, const char *key) {
  return json_number_value(json_object_get(o, key));
}

/* A geometric mean and the number of cases that it is of. */
typedef struct {
  double logarithms;
  int n;
} mean;

static double value_of(mean m) { return exp(m.logarithms / m.n); }

/* What a case is without an optimisation; NULL: the optimisation changes nothing. */
static const json_t *way_without(const json_t *row, const char *name) {
  size_t i;
  json_t *one;
  json_array_foreach(json_object_get(row, "ways"), i,
                     one) if (!strcmp(text(one, "without"), name)) return one;
  return NULL;
}

/* ---- lines and columns ---- */

enum { SUITE_LINES = 5, MAX_CELLS = MAX_COLUMNS, CELL = 160 };
static const struct {
  const char *name;
  ablation without;
} suite_lines[SUITE_LINES] = {{"all on", ABLATIONS},
                              {"without wide accesses", NO_WIDE_ACCESSES},
                              {"without persistent reductions", NO_REGISTER_SUMS},
                              {"without split reductions", NO_SPLIT_ROWS},
                              {"without any", NO_OPTIMISATION}};

typedef struct {
  const json_t *device;
  const char *suite; /* NULL: all cases */
} column;

typedef struct {
  const ablation_file *f;
  bool suites;
  int n_columns, n_lines;
  column columns[MAX_CELLS];
} grid;

static const char *line_name(const grid *g, int line) {
  return g->suites ? suite_lines[line].name : ablation_names[line];
}

static mean mean_of(const grid *g, int line, const column *c) {
  mean m = {0};
  size_t i;
  json_t *row;
  json_array_foreach(g->f->results, i, row) {
    if (strcmp(text(row, "device"), text(c->device, "name"))) continue;
    if (c->suite && strcmp(text(row, "suite"), c->suite)) continue;
    const ablation without = g->suites ? suite_lines[line].without : (ablation)line;
    const json_t *one = without < ABLATIONS ? way_without(row, ablation_names[without]) : NULL;
    if (!one && !g->suites) continue;
    double ratio = one ? number(one, "ratio") : 1;
    m.logarithms += log(
        g->suites ? number(row, "naive_seconds_min") / number(row, "seconds_min") / ratio : ratio);
    m.n++;
  }
  return m;
}

static void add_column(grid *g, const json_t *device, const char *suite) {
  for (int i = 0; i < g->n_columns; i++)
    if (g->columns[i].device == device && !strcmp(g->columns[i].suite, suite)) return;
  if (g->n_columns < MAX_CELLS - 1) g->columns[g->n_columns++] = (column){device, suite};
}

static void make_grid(const ablation_file *f, grid *g) {
  size_t d, i;
  json_t *device, *row;
  *g = (grid){.f = f, .suites = json_is_true(json_object_get(f->root, "suites"))};
  g->n_lines = g->suites ? SUITE_LINES : ABLATIONS;
  json_array_foreach(f->devices, d, device) {
    if (!g->suites && g->n_columns < MAX_CELLS - 1)
      g->columns[g->n_columns++] = (column){.device = device};
    if (!g->suites) continue;
    json_array_foreach(f->results, i, row) {
      if (!strcmp(text(row, "device"), text(device, "name")))
        add_column(g, device, text(row, "suite"));
    }
  }
}

static void title_of(const grid *g, const column *c, const char *key, char out[CELL]) {
  if (!g->suites) snprintf(out, CELL, "%s", text(c->device, key));
  else if (json_array_size(g->f->devices) == 1) snprintf(out, CELL, "%s", c->suite);
  else snprintf(out, CELL, "%s: %s", text(c->device, key), c->suite);
}

static const char *corner(const grid *g) {
  return g->suites ? "speed over a naive kernel" : "time without / with";
}

/* ---- formats ---- */

static void print_cell(mean m, char out[CELL]) {
  if (m.n) snprintf(out, CELL, "%.2f (%d)", value_of(m), m.n);
  else snprintf(out, CELL, "-");
}

static void print_plain(const grid *g) {
  char cells[ABLATIONS][MAX_CELLS][CELL], titles[MAX_CELLS][CELL + 1];
  const char *line[MAX_CELLS];
  table t = {.n = g->n_columns + 1};
  snprintf(titles[0], CELL, "%s", corner(g));
  for (int c = 0; c <= g->n_columns; c++) {
    if (c) titles[c][0] = '>', title_of(g, &g->columns[c - 1], "name", titles[c] + 1);
    t.titles[c] = titles[c];
    for (int i = 0; i < g->n_lines; i++) {
      if (c) print_cell(mean_of(g, i, &g->columns[c - 1]), cells[i][c]);
      else snprintf(cells[i][c], CELL, "%s", line_name(g, i));
      table_fit(&t, c, cells[i][c]);
    }
  }
  table_titles(&t);
  for (int i = 0; i < g->n_lines; i++) {
    for (int c = 0; c <= g->n_columns; c++) line[c] = cells[i][c];
    table_line(&t, line);
  }
}

static void print_csv(const grid *g) {
  printf(g->suites ? "device,suite,line,speed,cases\n" : "device,without,ratio,cases\n");
  for (int c = 0; c < g->n_columns; c++)
    for (int i = 0; i < g->n_lines; i++) {
      const column *of = &g->columns[c];
      mean m = mean_of(g, i, of);
      printf("%s,%s%s%s,", text(of->device, "name"), of->suite ? of->suite : "",
             of->suite ? "," : "", line_name(g, i));
      if (m.n) printf("%.4f", value_of(m));
      printf(",%d\n", m.n);
    }
}

static void print_markdown(const grid *g) {
  char cell[CELL];
  printf("| %s |", corner(g));
  for (int c = 0; c < g->n_columns; c++) {
    title_of(g, &g->columns[c], "description", cell);
    printf(" %s |", cell);
  }
  printf("\n| --- |");
  for (int c = 0; c < g->n_columns; c++) printf(" --- |");
  for (int i = 0; i < g->n_lines; i++) {
    printf("\n| %s |", line_name(g, i));
    for (int c = 0; c < g->n_columns; c++) {
      print_cell(mean_of(g, i, &g->columns[c]), cell);
      printf(" %s |", cell);
    }
  }
  putchar('\n');
}

void ablation_print(const ablation_file *f, ablation_format format) {
  static void (*const print[FORMATS])(const grid *g) = {
      [FORMAT_TEXT] = print_plain, [FORMAT_CSV] = print_csv, [FORMAT_MARKDOWN] = print_markdown};
  grid g;
  make_grid(f, &g);
  if (json_array_size(f->results)) print[format](&g);
}
