/* tools/ablation/report.c - the file and the table of `clebsch ablation`. */
#include "tools/ablation/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/output.h"

static const char format_name[] = "clebsch ablation 1";

/* ---- the file ---- */

static void start(ablation_file *f, bool suites, bool quick) {
  f->root = json_object();
  json_add(f->root, "format", json_text(format_name));
  json_add(f->root, "clebsch", json_text(CLB_VERSION));
  json_add(f->root, "suites", json_boolean(suites));
  json_add(f->root, "quick", json_boolean(quick));
  json_add(f->root, "devices", json_array());
  json_add(f->root, "results", json_array());
}

static const char *text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static bool is_set(const ablation_file *f, const char *key) {
  return json_is_true(json_object_get(f->root, key));
}

bool ablation_file_open(ablation_file *f, const char *path, bool suites, bool quick, bool force) {
  json_error_t error;
  *f = (ablation_file){.path = path};
  if (!outputs_ready(&(named_file){"the file of results (--out)", path, FILE_WHOLE}, 1))
    return false;
  if (path && !force && !access(path, F_OK)) f->root = json_load_file(path, 0, &error);
  else start(f, suites, quick);
  f->devices = json_object_get(f->root, "devices");
  f->results = json_object_get(f->root, "results");
  bool good = !strcmp(text(f->root, "format"), format_name) &&
              !strcmp(text(f->root, "clebsch"), CLB_VERSION) && is_set(f, "quick") == quick &&
              is_set(f, "suites") == suites && json_is_array(f->devices) &&
              json_is_array(f->results);
  if (good) return true;
  warn("%s: not a file of %s`clebsch ablation%s` of this version: name another --out, or "
       "--force overwrites it",
       path, quick ? "a quick " : "", suites ? " --suites" : "");
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
  json_add(head, "layout", c->layout ? json_text(c->layout) : json_null());
  json_add(head, "graph", c->graph ? json_text(c->graph) : json_null());
  json_add(head, "pass",
           json_text(strcmp(c->kind, "sequence") ? pass_names[c->pass] : "forward, backward"));
  if (!c->graph) json_add(head, "rows", json_count(c->rows));
  if (c->suite) json_add(head, "suite", json_text(c->suite));
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
  fprintf(out, "{\"format\": \"%s\", \"clebsch\": \"%s\", \"suites\": %s, \"quick\": %s",
          format_name, CLB_VERSION, is_set(f, "suites") ? "true" : "false",
          is_set(f, "quick") ? "true" : "false");
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
    if (y->without == NAIVE_KERNEL) {
      json_add(row, "naive_seconds", json_number(y->seconds));
      json_add(row, "naive_seconds_min", json_number(y->seconds_min));
      json_add(row, "naive_error", json_number(y->error));
      continue;
    }
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
