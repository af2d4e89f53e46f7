/* tools/cli/tool.c - options, names, messages, tables and JSON of the command. */
#include "tools/cli/tool.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/text.h"

const char *const dtype_names[DTYPES] = {"f32", "f64", "f16", "bf16"};
const char *const pass_names[PASSES] = {"forward", "backward", "double_backward",
                                        "triple_backward"};

/* ---- messages ---- */

/* Names and values in it may come from files. */
static void sentence(const char *format, va_list args) {
  clb_text t = {0};
  clb_text_vadd(&t, format, args);
  clb_text_quote(&t, 0);
  progress(NULL);
  fflush(stdout);
  fprintf(stderr, "clebsch: %s\n", t.failed ? "out of memory" : t.s);
  clb_text_free(&t);
}

void warn(const char *format, ...) {
  va_list args;
  va_start(args, format);
  sentence(format, args);
  va_end(args);
}

void fatal(const char *format, ...) {
  va_list args;
  va_start(args, format);
  sentence(format, args);
  va_end(args);
  exit(EXIT_FAILED);
}

void print_note(const clb_context *ctx) {
  static bool told; /* per process, because the folder is the same for all contexts */
  const char *note = clb_context_note(ctx);
  if (note && !told) warn("%s", note);
  told |= note != NULL;
}

bool ends_in(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

void *allocate(size_t n, size_t size) {
  void *p = calloc(n ? n : 1, size ? size : 1);
  if (!p) fatal("out of memory (%zu x %zu bytes)", n, size);
  return p;
}

void *enlarge(void *p, size_t n, size_t size) {
  void *more = reallocarray(p, n ? n : 1, size ? size : 1);
  if (!more) fatal("out of memory (%zu x %zu bytes)", n, size);
  return more;
}

void progress(const char *format, ...) {
  if (!isatty(STDERR_FILENO)) return;
  fputs("\r\033[K", stderr);
  if (!format) return;
  clb_text t = {0};
  va_list args;
  va_start(args, format);
  clb_text_vadd(&t, format, args);
  va_end(args);
  clb_text_quote(&t, 0);
  fputs(t.failed ? "" : t.s, stderr);
  fflush(stderr);
  clb_text_free(&t);
}

int failure(clb_status status) { return status == CLB_ERROR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED; }

/* ---- options ---- */

static unsigned named(struct argp_state *state, const char *option, const char *arg,
                      const char *const names[], int n) {
  char list[160] = "";
  for (int i = 0; i < n; i++) {
    if (!strcmp(arg, names[i])) return 1u << i;
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
  }
  argp_error(state, "%s is one of %s, not '%s'", option, list, arg);
  return 0;
}

static error_t parse_device(int key, char *arg, struct argp_state *state) {
  device_options *o = state->input;
  switch (key) {
    case 'j': o->json = true; return 0;
    case 'd':
      if (o->n_devices == MAX_DEVICES) argp_error(state, "--device: at most %d", MAX_DEVICES);
      o->devices[o->n_devices++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (!o->n_devices) o->devices[o->n_devices++] = "";
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option device_argp_options[] = {
    {"device", 'd', "DEVICE", 0,
     "A name that `clebsch devices` shows; repeats (default: $CLB_DEVICE, else the first that "
     "opens)",
     0},
    {"json", 'j', NULL, 0, "Print one JSON array, nothing else", 0},
    {0}};
const struct argp device_argp = {.options = device_argp_options, .parser = parse_device};

static error_t parse_kernel(int key, char *arg, struct argp_state *state) {
  kernel_options *o = state->input;
  switch (key) {
    case 'p': o->passes |= named(state, "--pass", arg, pass_names, PASSES); return 0;
    case 't': o->dtypes |= named(state, "--dtype", arg, dtype_names, DTYPES); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option kernel_argp_options[] = {
    {"pass", 'p', "PASS", 0,
     "forward, backward, double_backward or (tensor_product) triple_backward; repeats", 0},
    {"dtype", 't', "TYPE", 0, "f64, f32, f16 or bf16 in memory; repeats (default: f32)", 0},
    {0}};
const struct argp kernel_argp = {.options = kernel_argp_options, .parser = parse_kernel};

int64_t whole_number(const struct argp_state *state, const char *option, const char *text,
                     int64_t low, int64_t high) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= (double)low && x <= (double)high) || x != floor(x))
    argp_error(state, "%s is a whole number from %lld to %lld, not '%s'", option, (long long)low,
               (long long)high, text);
  return (int64_t)x;
}

bool is_interpreter(const clb_device_info *info) { /* the cpu backend's own description */
  return !strcmp(info->backend, "cpu") && strstr(info->description, "interpreter");
}

int on_each_device(const device_options *devices,
                   int (*use)(clb_context *ctx, const clb_device_info *info, const char *asked,
                              void *user),
                   void *user) {
  int worst = EXIT_GOOD;
  for (int i = 0; i < devices->n_devices; i++) {
    clb_context *ctx = NULL;
    clb_device_info info;
    clb_status status = clb_context_create(devices->devices[i], &ctx);
    if (!status) status = clb_context_device(ctx, &info);
    if (status) warn("%s", clb_error(ctx));
    else print_note(ctx);
    int exit_status = status ? EXIT_FAILED : use(ctx, &info, devices->devices[i], user);
    if (exit_status > worst) worst = exit_status;
    print_note(ctx);
    clb_context_destroy(&ctx);
  }
  return worst;
}

/* ---- JSON ---- */

/* jansson reports lack of memory as an error in the text, and silently drops characters of
   strings. */
static void *json_memory(size_t bytes) {
  void *p = malloc(bytes);
  if (!p) fatal("out of memory (%zu bytes for JSON)", bytes);
  return p;
}

void json_fatal_without_memory(void) { json_set_alloc_funcs(json_memory, free); }

static json_t *made(json_t *value) {
  if (!value) fatal("out of memory");
  return value;
}

json_t *json_text(const char *s) {
  if (!s) s = "";
  json_t *value = json_string(s);
  if (value) return value;
  size_t n = strlen(s);
  char *plain = allocate(n + 1, 1);
  for (size_t i = 0; i < n; i++) plain[i] = (signed char)s[i] < 0 ? '?' : s[i];
  value = json_string(plain);
  free(plain);
  return made(value);
}

json_t *json_number(double x) { return isfinite(x) ? made(json_real(x)) : json_null(); }

json_t *json_count(int64_t x) { return x < 0 ? json_null() : made(json_integer(x)); }

void json_add(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, made(value))) fatal("out of memory");
}

void json_add_pairs(json_t *object, const json_pair *pairs, int n) {
  for (int i = 0; i < n; i++) json_add(object, pairs[i].key, pairs[i].value);
}

bool json_write_list(FILE *out, const char *name, const json_t *list, int digits) {
  size_t i;
  json_t *one;
  fprintf(out, ",\n\"%s\": [", name);
  json_array_foreach(list, i, one) {
    fputs(i ? ",\n" : "\n", out);
    if (json_dumpf(one, out, JSON_COMPACT | JSON_REAL_PRECISION(digits))) return false;
  }
  return fputs("]", out) >= 0;
}

json_t *json_array_add(json_t *array, json_t *value) {
  if (json_array_append_new(array, made(value))) fatal("out of memory");
  return value;
}

void json_print(json_t *array) {
  if (json_dumpf(array, stdout, JSON_INDENT(1))) fatal("standard output could not be written");
  putchar('\n');
  json_decref(array);
}
