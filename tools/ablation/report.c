/* tools/ablation/report.c - the file and the table of `clebsch ablation`. */
#include "tools/ablation/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"

static const char format_name[] = "clebsch ablation 1";

/* ---- the file ---- */

static void start(ablation_file *f, bool quick) {
  f->root = json_object();
  json_add(f->root, "format", json_text(format_name));
  json_add(f->root, "clebsch", json_text(CLB_VERSION));
  json_add(f->root, "quick", json_boolean(quick));
  json_add(f->root, "devices", json_array());
  json_add(f->root, "results", json_array());
}

static const char *text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

bool ablation_file_open(ablation_file *f, const char *path, bool quick, bool force) {
  json_error_t error;
  *f = (ablation_file){.path = path};
  if (!outputs_ready(&(named_file){"the file of results (--out)", path, FILE_WHOLE}, 1))
    return false;
  if (path && !force && !access(path, F_OK)) f->root = json_load_file(path, 0, &error);
  else start(f, quick);
  f->devices = json_object_get(f->root, "devices");
  f->results = json_object_get(f->root, "results");
  bool good = !strcmp(text(f->root, "format"), format_name) &&
              !strcmp(text(f->root, "clebsch"), CLB_VERSION) &&
              json_is_true(json_object_get(f->root, "quick")) == quick &&
              json_is_array(f->devices) && json_is_array(f->results);
  if (good) return true;
  warn("%s: not a file of %s`clebsch ablation` of this version: name another --out, or "
       "--force overwrites it",
       path, quick ? "a quick " : "");
  ablation_file_close(f);
  return false;
}

void ablation_file_close(ablation_file *f) {
  json_decref(f->root);
  *f = (ablation_file){0};
}

bool ablation_file_device(ablation_file *f, const clb_device_info *info) {
  size_t i;
  json_t *d;
  json_array_foreach(f->devices, i, d) {
    if (strcmp(text(d, "name"), info->name)) continue;
    if (!strcmp(text(d, "description"), info->description) &&
        !strcmp(text(d, "driver"), info->driver))
      return true;
    warn("%s: its %s is another device or driver: name another --out, or --force overwrites it",
         f->path, info->name);
    return false;
  }
  d = json_array_add(f->devices, json_object());
  json_add(d, "name", json_text(info->name));
  json_add(d, "description", json_text(info->description));
  json_add(d, "driver", json_text(info->driver));
  return true;
}

static json_t *head_of(const char *device, const ablation_case *c) {
  json_t *head = json_object();
  json_add(head, "device", json_text(device));
  json_add(head, "work", json_text(c->kind));
  json_add(head, "problem", json_text(c->problem));
  json_add(head, "layout", json_text(c->layout));
  json_add(head, "graph", c->graph ? json_text(c->graph) : json_null());
  json_add(head, "pass",
           json_text(strcmp(c->kind, "sequence") ? pass_names[c->pass] : "forward, backward"));
  if (!c->graph) json_add(head, "rows", json_count(c->rows));
  return head;
}

bool ablation_file_has(const ablation_file *f, const char *device, const ablation_case *c) {
  json_t *head = head_of(device, c), *row;
  bool found = false;
  size_t i;
  json_array_foreach(f->results, i, row) {
    const char *key;
    json_t *value;
    bool same = true;
    json_object_foreach(head, key, value) same &= json_equal(value, json_object_get(row, key));
    found |= same;
  }
  json_decref(head);
  return found;
}

static bool write_file(FILE *out, const void *user) {
  const ablation_file *f = user;
  fprintf(out, "{\"format\": \"%s\", \"clebsch\": \"%s\", \"quick\": %s", format_name, CLB_VERSION,
          json_is_true(json_object_get(f->root, "quick")) ? "true" : "false");
  return json_write_list(out, "devices", f->devices, 6) &&
         json_write_list(out, "results", f->results, 6) && fputs("}\n", out) >= 0;
}

bool ablation_file_add(ablation_file *f, const char *device, const ablation_case *c,
                       const work *w) {
  json_t *row = json_array_add(f->results, head_of(device, c)), *ways = json_array();
  json_add(row, "rows", json_count(c->rows));
  json_add(row, "seconds", json_number(w->way[0].seconds));
  json_add(row, "seconds_min", json_number(w->way[0].seconds_min));
  for (int i = 1; i < w->n_ways; i++) {
    const way *y = &w->way[i];
    if (y->without == ABLATIONS) continue;
    json_t *one = json_array_add(ways, json_object());
    json_add(one, "without", json_text(ablation_names[y->without]));
    json_add(one, "ratio", json_number(y->ratio));
    json_add(one, "seconds", json_number(y->seconds));
    json_add(one, "seconds_min", json_number(y->seconds_min));
    json_add(one, "seconds_min_with", json_number(w->way[y->against].seconds_min));
    json_add(one, "error", json_number(y->error));
  }
  json_add(row, "ways", ways);
  return !f->path || file_replace(f->path, write_file, f);
}

/* ---- the table ---- */

/* Returns the number of cases. */
static int mean_ratio(const ablation_file *f, const char *device, ablation what, double *mean) {
  size_t i, k;
  json_t *row, *one;
  double sum = 0;
  int n = 0;
  json_array_foreach(f->results, i, row) {
    if (strcmp(text(row, "device"), device)) continue;
    json_array_foreach(json_object_get(row, "ways"), k,
                       one) if (!strcmp(text(one, "without"), ablation_names[what])) sum +=
        log(json_number_value(json_object_get(one, "ratio"))),
        n++;
  }
  *mean = exp(sum / (n ? n : 1));
  return n;
}

enum { CELL = 160, MAX_CELLS = MAX_COLUMNS };

static void print_plain(const ablation_file *f, int n) {
  char cells[ABLATIONS][MAX_CELLS][CELL], titles[MAX_CELLS][CELL] = {"time without / with"};
  const char *line[MAX_CELLS];
  table t = {.n = n + 1};
  for (int d = 0; d <= n; d++) {
    if (d)
      snprintf(titles[d], CELL, ">%s", text(json_array_get(f->devices, (size_t)d - 1), "name"));
    t.titles[d] = titles[d];
    for (int a = 0; a < ABLATIONS; a++) {
      double mean;
      int cases = d ? mean_ratio(f, titles[d] + 1, (ablation)a, &mean) : 0;
      if (!d) snprintf(cells[a][d], CELL, "%s", ablation_names[a]);
      else if (cases) snprintf(cells[a][d], CELL, "%.2f (%d)", mean, cases);
      else snprintf(cells[a][d], CELL, "-");
      table_fit(&t, d, cells[a][d]);
    }
  }
  table_titles(&t);
  for (int a = 0; a < ABLATIONS; a++) {
    for (int d = 0; d <= n; d++) line[d] = cells[a][d];
    table_line(&t, line);
  }
}

static void print_csv(const ablation_file *f, int n) {
  printf("device,without,ratio,cases\n");
  for (int d = 0; d < n; d++)
    for (int a = 0; a < ABLATIONS; a++) {
      const char *device = text(json_array_get(f->devices, (size_t)d), "name");
      double mean;
      int cases = mean_ratio(f, device, (ablation)a, &mean);
      printf("%s,%s,", device, ablation_names[a]);
      if (cases) printf("%.4f", mean);
      printf(",%d\n", cases);
    }
}

static void print_markdown(const ablation_file *f, int n) {
  printf("| time without / with |");
  for (int d = 0; d < n; d++)
    printf(" %s |", text(json_array_get(f->devices, (size_t)d), "description"));
  printf("\n| --- |");
  for (int d = 0; d < n; d++) printf(" --- |");
  for (int a = 0; a < ABLATIONS; a++) {
    printf("\n| %s |", ablation_names[a]);
    for (int d = 0; d < n; d++) {
      double mean;
      int cases =
          mean_ratio(f, text(json_array_get(f->devices, (size_t)d), "name"), (ablation)a, &mean);
      if (cases) printf(" %.2f (%d) |", mean, cases);
      else printf(" - |");
    }
  }
  putchar('\n');
}

void ablation_print(const ablation_file *f, ablation_format format) {
  static void (*const print[FORMATS])(const ablation_file *f, int n) = {
      [FORMAT_TEXT] = print_plain, [FORMAT_CSV] = print_csv, [FORMAT_MARKDOWN] = print_markdown};
  size_t n = json_array_size(f->devices);
  if (json_array_size(f->results)) print[format](f, n < MAX_CELLS ? (int)n : MAX_CELLS - 1);
}
