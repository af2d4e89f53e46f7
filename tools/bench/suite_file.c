/* tools/bench/suite_file.c - the file of `bench --suite`. */
#include "tools/bench/suite_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/measure/roofline.h"
#include "tools/common/output.h"

static const char format[] = "clebsch run 1";

/* ---- reading ---- */

static json_t *started_now(void) {
  char text[32];
  time_t now = time(NULL);
  struct tm t;
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &t));
  return json_text(text);
}

static void start(suite_file *f, const char *suite) {
  f->root = json_object();
  json_add(f->root, "format", json_text(format));
  json_add(f->root, "clebsch", json_text(CLB_VERSION));
  json_add(f->root, "suite", json_text(suite));
  json_add(f->root, "started", started_now());
  json_add(f->root, "complete", json_false());
  json_add(f->root, "devices", json_array());
  json_add(f->root, "results", json_array());
}

static bool says(const suite_file *f, const char *key, const char *wanted, const char *what) {
  const char *said = json_string_value(json_object_get(f->root, key));
  if (said && !strcmp(said, wanted)) return true;
  warn("%s: %s '%s', not '%s': name another --out, or --force overwrites it", f->path, what,
       said ? said : "", wanted);
  return false;
}

static bool all_objects(const json_t *array) {
  size_t i;
  json_t *one;
  if (!json_is_array(array)) return false;
  json_array_foreach(array, i, one) if (!json_is_object(one)) return false;
  return true;
}

static bool read_file(suite_file *f, const char *suite) {
  json_error_t error;
  f->root = json_load_file(f->path, 0, &error);
  if (!json_is_object(f->root)) {
    warn("%s: not a file of `clebsch bench --suite` (%s): name another --out, or --force "
         "overwrites it",
         f->path, f->root ? "no object" : error.text);
    return false;
  }
  if (!says(f, "format", format, "its format is") ||
      !says(f, "clebsch", CLB_VERSION, "it is of clebsch") ||
      !says(f, "suite", suite, "it is of suite"))
    return false;
  if (all_objects(json_object_get(f->root, "devices")) &&
      all_objects(json_object_get(f->root, "results")))
    return true;
  warn("%s: its devices and results are not lists of objects: name another --out, or --force "
       "overwrites it",
       f->path);
  return false;
}

bool suite_file_open(suite_file *f, const char *path, const char *suite, bool force) {
  *f = (suite_file){.path = path};
  if (!outputs_ready(&(named_file){"the file of results (--out)", path, FILE_WHOLE}, 1))
    return false;
  f->found = !force && !access(path, F_OK);
  if (!f->found) start(f, suite);
  else if (!read_file(f, suite)) return false;
  f->devices = json_object_get(f->root, "devices");
  f->results = json_object_get(f->root, "results");
  return true;
}

void suite_file_close(suite_file *f) {
  json_decref(f->root);
  *f = (suite_file){0};
}

/* ---- devices ---- */

static bool same(const json_t *a, const json_t *b, const char *const keys[]) {
  for (; *keys; keys++)
    if (!json_equal(json_object_get(a, *keys), json_object_get(b, *keys))) return false;
  return true;
}

static const char *text(const json_t *object, const char *key) {
  const char *s = json_string_value(json_object_get(object, key));
  return s ? s : "";
}

/* Prints a message if a device of `some` is not in `all`. */
static bool among(const suite_file *f, const json_t *some, const json_t *all, const char *what) {
  static const char *const keys[] = {"name", "backend", "vendor", "description", "driver", NULL};
  size_t i, k;
  json_t *one, *other;
  json_array_foreach(some, i, one) {
    bool found = false;
    json_array_foreach(all, k, other) found |= same(one, other, keys);
    if (found) continue;
    warn("%s: %s %s (%s, driver %s): name another --out, or --force overwrites it", f->path, what,
         text(one, "name"), text(one, "description"), text(one, "driver"));
    return false;
  }
  return true;
}

bool suite_file_devices(suite_file *f, json_t *devices) {
  bool good = true;
  if (!json_array_size(f->devices)) json_array_extend(f->devices, devices);
  else
    good = among(f, f->devices, devices, "it also has") &&
           among(f, devices, f->devices, "it does not have");
  json_decref(devices);
  return good;
}

/* ---- writing ---- */

enum { FLAGS = JSON_COMPACT | JSON_ENCODE_ANY };

static bool write_file(FILE *out, const void *user) {
  static const char *const keys[] = {"format", "clebsch", "suite", "started", "complete"};
  const suite_file *f = user;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    fprintf(out, "%s\"%s\": ", i ? ", " : "{", keys[i]);
    if (json_dumpf(json_object_get(f->root, keys[i]), out, FLAGS)) return false;
  }
  return json_write_list(out, "devices", f->devices, 9) &&
         json_write_list(out, "results", f->results, 9) && fputs("}\n", out) >= 0;
}

bool suite_file_write(suite_file *f, bool complete) {
  json_add(f->root, "complete", json_boolean(complete));
  return file_replace(f->path, write_file, f);
}

/* ---- results ---- */

static json_t *text_or_null(const char *s) { return s ? json_text(s) : json_null(); }

static json_t *head_of(const suite_job *job) {
  const suite_problem *p = job->problem;
  json_t *head = json_object();
  json_add(head, "op", json_text(p->op->name));
  json_add(head, "problem", json_text(p->name));
  json_add(head, "graph", text_or_null(p->graph));
  json_add(head, "options", text_or_null(p->options));
  json_add(head, "pass", json_text(pass_names[job->pass]));
  json_add(head, "dtype", json_text(dtype_names[job->dtype]));
  json_add(head, "device", json_text(job->device));
  return head;
}

static bool has_rows(const json_t *row, const suite_job *job) {
  json_int_t halved = json_integer_value(json_object_get(row, "rows_halved"));
  return halved >= 0 && halved < 64 &&
         json_integer_value(json_object_get(row, "rows")) ==
             job->problem->rows[job->pass] >> halved;
}

/* Its index among the results; -1: none. */
static int place_of(const suite_file *f, const suite_job *job) {
  static const char *const keys[] = {"op",   "problem", "graph",  "options",
                                     "pass", "dtype",   "device", NULL};
  json_t *head = head_of(job), *row;
  int place = -1;
  size_t i;
  json_array_foreach(f->results, i, row) if (same(row, head, keys) && has_rows(row, job)) place =
      (int)i;
  json_decref(head);
  return place;
}

const json_t *suite_file_result(const suite_file *f, const suite_job *job) {
  const json_t *row = json_array_get(f->results, (size_t)place_of(f, job)); /* -1 is beyond the
                                                                               end */
  return json_object_get(row, "failed") ? NULL : row;
}

bool suite_file_compiled(const suite_file *f, const suite_job *job, double *cold, double *warm) {
  static const char *const keys[] = {
      "op",    "problem", "options", "pass",
      "dtype", "device",  NULL}; /* a kernel does not depend on its graph */
  json_t *head = head_of(job), *row;
  bool found = false;
  size_t i;
  json_array_foreach(f->results, i, row) {
    const json_t *a = json_object_get(row, "compile_seconds"),
                 *b = json_object_get(row, "warm_seconds");
    if (found || !json_is_number(a) || !json_is_number(b) || !same(row, head, keys)) continue;
    found = true;
    *cold = json_number_value(a), *warm = json_number_value(b);
  }
  json_decref(head);
  return found;
}

static json_t *count(double x) { return isfinite(x) ? json_count(llround(x)) : json_null(); }

void suite_file_add(suite_file *f, const suite_job *job, const result *r, double warm_seconds,
                    const char *trouble) {
  int before = place_of(f, job);
  json_t *row = head_of(job);
  if (before >= 0) json_array_remove(f->results, (size_t)before);
  json_array_add(f->results, row);
  if (job->problem->l_max >= 0) json_add(row, "l_max", json_count(job->problem->l_max));
  json_add(row, "runs", json_boolean(r->runs));
  json_add(row, "rows", json_count(trouble ? job->problem->rows[job->pass] : r->rows));
  json_add(row, "rows_halved", json_count(trouble ? 0 : r->rows_halved));
  json_add(row, "seconds", json_number(r->seconds));
  json_add(row, "seconds_min", json_number(r->seconds_min));
  json_add(row, "spread", json_number(r->spread));
  json_add(row, "repeats", json_count(r->repeats));
  json_add(row, "bytes", count(r->bytes));
  json_add(row, "flops", count(r->flops));
  json_add(row, "copy_fraction", json_number(r->copy_fraction));
  json_add(row, "peak_fraction", json_number(r->peak_fraction));
  json_add(row, "floor_seconds", json_number(r->floor));
  json_add(row, "error", json_number(r->error));
  json_add(row, "tolerance", json_number(r->tolerance));
  json_add(row, "correct", r->runs && !trouble ? json_boolean(is_correct(r)) : json_null());
  json_add(row, "compile_seconds", json_number(trouble ? NAN : r->compile_seconds));
  json_add(row, "warm_seconds", json_number(warm_seconds));
  json_add(row, "memory_bytes", count(r->memory));
  if (r->compared[0]) json_add(row, "compared", json_text(r->compared));
  if (!r->runs) add_bounds(row, r);
  if (trouble) json_add(row, "failed", json_text(trouble));
}
