/* tools/compare/read.c - reads untrusted result files: devices and results, or a message that names
   file and key. */
#include "tools/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 64 << 20, MAX_TEXT = 400, MAX_RESULTS = 100000 };

typedef struct {
  const char *path;
  char where[48]; /* "results[3]." */
  comparison *c;
} reader;

static bool bad(const reader *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool bad(const reader *r, const char *key, const char *format, ...) {
  char text[256], name[96];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  int n = snprintf(name, sizeof name, "%s%s", r->where, key);
  if (!*key && n > 0) n--; /* drops the dot */
  warn("%s: %.*s%s%s", r->path, n, name, n ? " " : "", text);
  return false;
}

/* ---- values ---- */

/* Replaces control characters by blanks: C0, DEL, and C1 as UTF-8. */
static bool clean(char *text) { /* whether anything changed */
  bool changed = false;
  for (; *text; text++) {
    const unsigned char *s = (const unsigned char *)text;
    const bool c1 = s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0;
    if (!c1 && *s >= ' ' && *s != 0x7f) continue;
    if (c1) text[1] = ' ';
    *text = ' ';
    changed = true;
  }
  return changed;
}

static bool get_text(const reader *r, json_t *o, const char *key, bool needed, const char **out) {
  json_t *value = json_object_get(o, key);
  *out = "";
  if (!value || json_is_null(value)) return !needed || bad(r, key, "is missing");
  if (!json_is_string(value)) return bad(r, key, "must be a string");
  if (json_string_length(value) > MAX_TEXT) return bad(r, key, "is longer than %d bytes", MAX_TEXT);
  char text[MAX_TEXT + 1];
  snprintf(text, sizeof text, "%s", json_string_value(value));
  if (clean(text) && json_string_set(value, text))
    fatal("out of memory"); /* only once, because pointers to the text must stay valid */
  *out = json_string_value(value);
  return **out || !needed || bad(r, key, "is empty");
}

/* Gets the beginning of a message, which may be as long as a compiler's log. */
static bool get_beginning(const reader *r, json_t *o, const char *key, const char **out) {
  json_t *value = json_object_get(o, key);
  if (json_is_string(value) && json_string_length(value) > MAX_TEXT) {
    const char *all = json_string_value(value);
    size_t n = MAX_TEXT - 4;
    while ((all[n] & 0xc0) == 0x80) n--; /* not within a character */
    json_t *cut = json_sprintf("%.*s...", (int)n, all);
    json_add(o, key, cut);
  }
  return get_text(r, o, key, false, out);
}

static bool get_number(const reader *r, const json_t *o, const char *key, double low, double high,
                       double *out) {
  const json_t *value = json_object_get(o, key);
  *out = NAN;
  if (!value || json_is_null(value)) return true;
  const double x = json_number_value(value);
  if (!json_is_number(value) || !(x >= low && x <= high))
    return bad(r, key, "must be a number from %g to %g, or null", low, high);
  *out = x;
  return true;
}

static bool get_flag(const reader *r, const json_t *o, const char *key, int missing, int *out) {
  const json_t *value = json_object_get(o, key);
  *out = missing;
  if (!value || json_is_null(value)) return true;
  if (!json_is_boolean(value)) return bad(r, key, "must be true or false");
  *out = json_is_true(value);
  return true;
}

typedef struct {
  const char *key;
  size_t at;
  double low, high;
} number_key;

static bool get_numbers(const reader *r, const json_t *o, const number_key keys[], int n,
                        void *into) {
  for (int i = 0; i < n; i++)
    if (!get_number(r, o, keys[i].key, keys[i].low, keys[i].high,
                    (double *)((char *)into + keys[i].at)))
      return false;
  return true;
}

#define COUNT(keys) ((int)(sizeof(keys) / sizeof *(keys)))

/* ---- devices ---- */

static const number_key device_numbers[] = {
    {"memory_bytes", offsetof(compare_device, memory), 0, 1e18},
    {"launch_seconds", offsetof(compare_device, launch), 0, 1e6},
    {"copy_bytes_per_second", offsetof(compare_device, measured.copy), 1, 1e18},
    {"f32_per_second", offsetof(compare_device, measured.f32), 1, 1e20},
    {"f64_per_second", offsetof(compare_device, measured.f64), 1, 1e20}};
static const number_key vendor_specs_numbers[] = {
    {"bytes_per_second", offsetof(compare_peaks, copy), 1, 1e18},
    {"f32_per_second", offsetof(compare_peaks, f32), 1, 1e20},
    {"f64_per_second", offsetof(compare_peaks, f64), 1, 1e20}};

static int device_named(const comparison *c, const char *name) { /* in the last run; -1: none */
  for (int d = 0; d < c->n_devices; d++)
    if (c->devices[d].run == c->n_runs - 1 && !strcmp(c->devices[d].name, name)) return d;
  return -1;
}

static compare_device *device_add(const reader *r) {
  comparison *c = r->c;
  if (c->n_devices == MAX_COMPARED_DEVICES)
    return bad(r, "device", "is one too many: at most %d are compared", MAX_COMPARED_DEVICES), NULL;
  compare_device *d = &c->devices[c->n_devices];
  const compare_peaks none = {NAN, NAN, NAN};
  *d = (compare_device){.run = c->n_runs - 1,
                        .name = "",
                        .backend = "",
                        .vendor = "",
                        .description = "",
                        .driver = "",
                        .sheet = "",
                        .runs = true,
                        .memory = NAN,
                        .launch = NAN,
                        .measured = none,
                        .vendor_specs = none};
  return d;
}

static bool read_vendor_specs(reader *r, const json_t *o, compare_device *d) {
  json_t *p = json_object_get(o, "published");
  if (!p || json_is_null(p)) return true;
  if (!json_is_object(p)) return bad(r, "published", "must be an object or null");
  snprintf(r->where + strlen(r->where), sizeof r->where - strlen(r->where), "published.");
  return get_text(r, p, "name", false, &d->sheet) &&
         get_numbers(r, p, vendor_specs_numbers, COUNT(vendor_specs_numbers), &d->vendor_specs);
}

static bool read_device(reader *r, json_t *o) {
  int runs;
  compare_device *d = device_add(r);
  if (!d) return false;
  if (!json_is_object(o)) return bad(r, "", "must be an object");
  if (!get_text(r, o, "name", true, &d->name) || !get_text(r, o, "backend", false, &d->backend) ||
      !get_text(r, o, "vendor", false, &d->vendor))
    return false;
  if (!get_text(r, o, "description", false, &d->description) ||
      !get_text(r, o, "driver", false, &d->driver))
    return false;
  if (!get_flag(r, o, "runs", true, &runs) ||
      !get_numbers(r, o, device_numbers, COUNT(device_numbers), d))
    return false;
  if (device_named(r->c, d->name) >= 0) return bad(r, "name", "is '%.80s' again", d->name);
  if (!read_vendor_specs(r, o, d)) return false;
  d->runs = runs;
  r->c->n_devices++;
  return true;
}

/* ---- results ---- */

#define NUMBER(key, member, low, high)                                                             \
  { key, offsetof(compare_result, member), low, high }
static const number_key result_numbers[] = {NUMBER("rows", rows, 1, 1e15),
                                            NUMBER("rows_halved", halved, 0, 60),
                                            NUMBER("seconds", seconds, 1e-15, 1e9),
                                            NUMBER("seconds_min", seconds_min, 0, 1e9),
                                            NUMBER("spread", spread, 0, 1e9),
                                            NUMBER("bytes", bytes, 0, 1e18),
                                            NUMBER("flops", flops, 0, 1e24),
                                            NUMBER("copy_fraction", copy_fraction, 0, 1e9),
                                            NUMBER("peak_fraction", peak_fraction, 0, 1e9),
                                            NUMBER("error", error, 0, 1e300),
                                            NUMBER("tolerance", tolerance, 0, 1e300),
                                            NUMBER("compile_seconds", compile_seconds, 0, 1e9),
                                            NUMBER("warm_seconds", warm_seconds, 0, 1e9),
                                            NUMBER("memory_bytes", memory, 0, 1e18),
                                            NUMBER("loads", loads, 0, 1e15),
                                            NUMBER("stores", stores, 0, 1e15),
                                            NUMBER("fmas", fmas, 0, 1e15),
                                            NUMBER("registers", registers, 0, 1e6),
                                            NUMBER("spills", spills, 0, 1e12),
                                            NUMBER("occupancy", occupancy, 0, 1),
                                            NUMBER("bound_seconds", bound_seconds, 1e-15, 1e9)};

/* Removes `end` from the end of the text; false: it ends differently. */
static bool take_end(char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  if (n <= m || strcmp(text + n - m, end)) return false;
  text[n - m] = 0;
  return true;
}

/* `bench OP --json` has everything in one text: "mace-large mul_ir, carbon, table". */
static void split_problem(json_t *o) {
  const char *op = json_string_value(json_object_get(o, "op")),
             *problem = json_string_value(json_object_get(o, "problem"));
  if (!op || !problem || strlen(problem) > MAX_TEXT) return;
  char text[MAX_TEXT + 1], *graph = NULL, *options = NULL;
  snprintf(text, sizeof text, "%s", problem);
  if (!strcmp(op, "convolution") && (graph = strstr(text, ", "))) {
    *graph = 0;
    graph += 2;
    if ((options = strstr(graph, ", "))) *options = 0, options += 2;
  }
  char all[MAX_TEXT + 16];
  const bool other = take_end(text, " mul_ir");
  if (!other) take_end(text, " ir_mul");
  snprintf(all, sizeof all, "%s%s%s", other ? "mul_ir" : "", other && options ? ", " : "",
           options ? options : "");
  json_t *named_graph = graph ? json_text(graph) : json_null(), *named_options = json_text(all);
  JSON_ADD(o, {"problem", json_text(text)}, {"graph", named_graph}, {"options", named_options});
}

static bool plain_device(const reader *r, json_t *o) {
  const char *name;
  if (!get_text(r, o, "device", true, &name)) return false;
  if (device_named(r->c, name) >= 0) return true;
  compare_device *d = device_add(r);
  if (!d) return false;
  d->name = name;
  d->runs = !json_is_false(json_object_get(o, "runs"));
  r->c->n_devices++;
  return true;
}

static bool read_names(const reader *r, json_t *o, compare_result *x) {
  const char *device;
  if (!get_text(r, o, "op", true, &x->op) || !get_text(r, o, "problem", true, &x->problem) ||
      !get_text(r, o, "graph", false, &x->graph))
    return false;
  if (!get_text(r, o, "options", false, &x->options) || !get_text(r, o, "pass", true, &x->pass) ||
      !get_text(r, o, "dtype", true, &x->dtype))
    return false;
  if (!get_text(r, o, "limited_by", false, &x->limited_by) ||
      !get_text(r, o, "device", true, &device))
    return false;
  x->device = device_named(r->c, device);
  return x->device >= 0 || bad(r, "device", "is '%.80s', which is not in devices", device);
}

static bool read_result(reader *r, json_t *o, bool plain) {
  comparison *c = r->c;
  compare_result *x = &c->results[c->n_results];
  int runs, bound, correct;
  if (!json_is_object(o)) return bad(r, "", "must be an object");
  if (plain) split_problem(o);
  if ((plain && !plain_device(r, o)) || !read_names(r, o, x) ||
      !get_beginning(r, o, "failed", &x->failed))
    return false;
  if (!get_flag(r, o, "runs", true, &runs) || !get_flag(r, o, "bound", false, &bound) ||
      !get_flag(r, o, "correct", -1, &correct))
    return false;
  if (!get_numbers(r, o, result_numbers, COUNT(result_numbers), x)) return false;
  if (!isfinite(x->rows)) return bad(r, "rows", "is missing");
  if (!isfinite(x->halved)) x->halved = 0;
  if (x->halved != floor(x->halved)) return bad(r, "rows_halved", "must be a whole number");
  const bool over = isfinite(x->tolerance) && x->error > x->tolerance,
             within = isfinite(x->tolerance) && x->error <= x->tolerance;
  x->bound = !runs || bound;
  x->check = !correct || over ? CHECK_WRONG : correct == 1 || within ? CHECK_GOOD : CHECK_UNKNOWN;
  x->order = c->n_results++;
  c->devices[x->device].n_results++;
  c->devices[x->device].n_times += isfinite(time_of(x));
  return true;
}

/* ---- files ---- */

static bool read_list(reader *r, const char *key, json_t *list,
                      bool (*read)(reader *r, json_t *o, bool plain), bool plain) {
  size_t i;
  json_t *o;
  json_array_foreach(list, i, o) {
    snprintf(r->where, sizeof r->where, "%s[%zu].", key, i);
    if (!read(r, o, plain)) return false;
  }
  r->where[0] = 0;
  return true;
}

static bool read_device_of(reader *r, json_t *o, bool plain) {
  (void)plain;
  return read_device(r, o);
}

static bool read_results(reader *r, const char *key, json_t *list, bool plain) {
  comparison *c = r->c;
  const size_t n = json_array_size(list);
  if (!n) return bad(r, key, "has no results");
  if (n + (size_t)c->n_results > MAX_RESULTS)
    return bad(r, key, "has more than %d results, with those of the other files", MAX_RESULTS);
  c->results = enlarge(c->results, n + (size_t)c->n_results, sizeof *c->results);
  return read_list(r, key, list, read_result, plain);
}

static bool read_run(reader *r, compare_run *run) {
  static const char known[] = "clebsch run 1";
  json_t *o = run->root, *devices = json_object_get(o, "devices"),
         *results = json_object_get(o, "results");
  const char *format;
  int complete;
  if (!json_is_object(o)) return bad(r, "", "is neither a run nor an array of results");
  if (!get_text(r, o, "format", true, &format)) return false;
  if (strcmp(format, known))
    return bad(r, "format", "is '%.80s'; this program reads '%s'", format, known);
  if (!get_text(r, o, "suite", false, &run->suite) ||
      !get_text(r, o, "clebsch", false, &run->version) ||
      !get_text(r, o, "started", false, &run->started))
    return false;
  if (!get_flag(r, o, "complete", true, &complete)) return false;
  run->complete = complete;
  if (!json_is_array(devices)) return bad(r, "devices", "must be an array");
  if (!json_is_array(results)) return bad(r, "results", "must be an array");
  return read_list(r, "devices", devices, read_device_of, false) &&
         read_results(r, "results", results, false);
}

typedef struct {
  FILE *f;
  size_t n; /* bytes so far */
} source;

static size_t more(void *buffer, size_t size, void *user) {
  source *s = user;
  const size_t n = fread(buffer, 1, size, s->f);
  s->n += n;
  return s->n > MAX_BYTES || ferror(s->f) ? (size_t)-1 : n;
}

static json_t *load(const char *path) {
  source s = {.f = fopen(path, "r")};
  json_error_t error;
  if (!s.f) return warn("%s: %s", path, strerror(errno)), NULL;
  json_t *root = json_load_callback(more, &s, JSON_REJECT_DUPLICATES, &error);
  if (!root) clean(error.text); /* may quote the file */
  if (!root && s.n > MAX_BYTES) warn("%s: larger than %d MiB", path, MAX_BYTES >> 20);
  else if (!root && ferror(s.f)) warn("%s: could not be read", path);
  else if (!root) warn("%s: line %d: %s", path, error.line, error.text);
  fclose(s.f);
  return root;
}

bool compare_read(comparison *c, const char *path) {
  reader r = {.path = path, .c = c};
  json_t *root = load(path);
  if (!root) return false;
  c->runs = enlarge(c->runs, (size_t)c->n_runs + 1, sizeof *c->runs);
  compare_run *run = &c->runs[c->n_runs++];
  *run = (compare_run){.path = path,
                       .suite = "",
                       .version = "",
                       .started = "",
                       .plain = json_is_array(root),
                       .complete = true,
                       .root = root};
  return run->plain ? read_results(&r, "", root, true) : read_run(&r, run);
}

void compare_free(comparison *c) {
  for (int i = 0; i < c->n_runs; i++) json_decref(c->runs[i].root);
  for (int d = 0; d < c->n_devices; d++) free(c->devices[d].label);
  free(c->runs);
  free(c->results);
  free(c->lines);
  free(c->cells);
  free(c->order);
  free(c->means);
}
