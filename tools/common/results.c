/* tools/common/results.c - a file of results: JSON with a head, devices, and results, which later
   runs of the same command continue. */
#include "tools/common/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/tool.h"
#include "tools/common/output.h"

static const char mend[] = "name another --out, or --force overwrites it";

static const char *text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static bool all_objects(const json_t *array) {
  size_t i;
  json_t *one;
  if (!json_is_array(array)) return false;
  json_array_foreach(array, i, one) if (!json_is_object(one)) return false;
  return true;
}

/* Compares a file's head with the wanted one. */
static bool is_of(const char *path, const json_t *root, json_t *wanted) {
  const char *key;
  json_t *value;
  json_object_foreach(wanted, key, value) {
    const json_t *said = json_object_get(root, key);
    if (json_equal(said, value)) continue;
    char *a = json_dumps(said, JSON_ENCODE_ANY), *b = json_dumps(value, JSON_ENCODE_ANY);
    warn("%s: its \"%s\" is %s, not %s: %s", path, key, a ? a : "not there", b ? b : "", mend);
    free(a), free(b);
    return false;
  }
  return true;
}

static bool read_file(results_file *f, json_t *head) {
  json_error_t error;
  f->root = json_load_file(f->path, 0, &error);
  if (!json_is_object(f->root)) {
    warn("%s: not a file of results (%s): %s", f->path, f->root ? "no object" : error.text, mend);
    return false;
  }
  if (!is_of(f->path, f->root, head)) return false;
  if (all_objects(json_object_get(f->root, "devices")) &&
      all_objects(json_object_get(f->root, "results")))
    return true;
  warn("%s: its devices and results are not lists of objects: %s", f->path, mend);
  return false;
}

bool results_open(results_file *f, const char *path, const char *format, json_t *head, bool force) {
  json_t *whole = json_object();
  *f = (results_file){.path = path, .digits = 9};
  json_add(whole, "format", json_text(format));
  json_add(whole, "clebsch", json_text(CLB_VERSION));
  json_object_update(whole, head);
  json_decref(head);
  bool good = outputs_ready(&(named_file){"the file of results (--out)", path, FILE_WHOLE}, 1);
  f->found = good && path && !force && !access(path, F_OK);
  if (f->found) good = read_file(f, whole);
  else if (good) {
    f->root = json_incref(whole);
    json_add(f->root, "devices", json_array());
    json_add(f->root, "results", json_array());
  }
  json_decref(whole);
  if (!good) results_close(f);
  f->devices = json_object_get(f->root, "devices");
  f->results = json_object_get(f->root, "results");
  return good;
}

void results_close(results_file *f) {
  json_decref(f->root);
  *f = (results_file){0};
}

json_t *results_device(results_file *f, json_t *device) {
  static const char *const keys[] = {"description", "driver"};
  size_t i;
  json_t *one;
  json_array_foreach(f->devices, i, one) {
    if (strcmp(text(one, "name"), text(device, "name"))) continue;
    bool same = true;
    for (int k = 0; k < 2; k++) same &= !strcmp(text(one, keys[k]), text(device, keys[k]));
    if (!same)
      warn("%s: its %s is another device or driver (%s, driver %s): %s", f->path,
           text(device, "name"), text(one, "description"), text(one, "driver"), mend);
    json_decref(device);
    return same ? one : NULL;
  }
  return json_array_add(f->devices, device);
}

int results_find(const results_file *f, const json_t *head, int first) {
  for (int i = first; i < (int)json_array_size(f->results); i++) {
    const json_t *row = json_array_get(f->results, (size_t)i);
    const char *key;
    json_t *value;
    bool same = true;
    json_object_foreach((json_t *)head, key, value) same &=
        json_equal(value, json_object_get(row, key));
    if (same) return i;
  }
  return -1;
}

static bool write_file(FILE *out, const void *user) {
  const results_file *f = user;
  const char *key, *before = "{";
  json_t *value;
  json_object_foreach(f->root, key, value) {
    if (value == f->devices || value == f->results) continue;
    fprintf(out, "%s\"%s\": ", before, key);
    if (json_dumpf(value, out, JSON_COMPACT | JSON_ENCODE_ANY)) return false;
    before = ", ";
  }
  return json_write_list(out, "devices", f->devices, f->digits) &&
         json_write_list(out, "results", f->results, f->digits) && fputs("}\n", out) >= 0;
}

bool results_write(results_file *f) { return !f->path || file_replace(f->path, write_file, f); }
