/* tools/compare/compare.c - `clebsch compare`: the same work on several devices, side by side. */
#include "tools/compare/compare.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"

enum { MAX_FILES = 64 };

typedef struct {
  const char *files[MAX_FILES], *html, *baseline;
  int n_files;
  enum compare_format format;
} compare_arguments;

static enum compare_format format_named(const struct argp_state *state, const char *name) {
  static const char *const names[COMPARE_FORMATS] = {"text", "csv", "markdown", "json"};
  for (int i = 0; i < COMPARE_FORMATS; i++)
    if (!strcmp(name, names[i])) return (enum compare_format)i;
  argp_error(state, "--format is text, csv, markdown or json, not '%s'", name);
  return COMPARE_TEXT;
}

static void add_file(const struct argp_state *state, compare_arguments *a, const char *path) {
  for (int i = 0; i < a->n_files; i++)
    if (!strcmp(a->files[i], path)) argp_error(state, "'%s' is named twice", path);
  if (a->n_files == MAX_FILES) argp_error(state, "at most %d files", MAX_FILES);
  a->files[a->n_files++] = path;
}

enum { FORMAT = 256, HTML, BASELINE };

static error_t parse(int key, char *arg, struct argp_state *state) {
  compare_arguments *a = state->input;
  switch (key) {
    case FORMAT: a->format = format_named(state, arg); return 0;
    case HTML: a->html = arg; return 0;
    case BASELINE: a->baseline = arg; return 0;
    case ARGP_KEY_ARG: add_file(state, a, arg); return 0;
    case ARGP_KEY_END:
      if (!a->n_files) argp_error(state, "name the files that `clebsch bench` wrote");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static bool check_output(const compare_arguments *a) {
  named_file files[MAX_FILES + 1];
  for (int i = 0; i < a->n_files; i++)
    files[i] = (named_file){"a file to compare", a->files[i], FILE_INPUT};
  files[a->n_files] = (named_file){"the report (--html)", a->html, FILE_WHOLE};
  return outputs_ready(files, a->n_files + 1);
}

int compare_main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"format", FORMAT, "FORMAT", 0, "text, csv, markdown or json (default: text)", 0},
      {"html", HTML, "FILE", 0, "Also write a report with charts, as one self-contained file", 0},
      {"baseline", BASELINE, "DEVICE", 0,
       "The device with which the others are compared (default: cpu, else the one that is the "
       "fastest most often)",
       0},
      {0}};
  static const struct argp argp = {
      .options = options,
      .parser = parse,
      .args_doc = "FILE...",
      .doc = "Compares devices on the same work, from output of `clebsch bench --suite` or "
             "`clebsch bench OP --json`.\v"
             "speed: the time of the baseline divided by that of the device: above 1 the device is "
             "faster; /row: of times per row, if numbers of rows differ. <=, >=: times of "
             "compile-only devices are bounds. % of: fraction of the device's peak that a result "
             "comes closest to, copy bandwidth or multiply-adds. Incorrect results are shown but "
             "excluded from speeds. Devices with the same name in several files are distinguished "
             "by the file's name: --baseline 'cuda:0 [b.json]'. csv has everything in seconds, and "
             "means as lines of the kind mean."};
  compare_arguments a = {.format = COMPARE_TEXT};
  parse_arguments(&argp, argc, argv, 0, &a);
  if (!check_output(&a)) return EXIT_FAILED;
  comparison *c = allocate(1, sizeof *c);
  int status = EXIT_GOOD;
  for (int i = 0; i < a.n_files && !status; i++)
    status = compare_read(c, a.files[i]) ? EXIT_GOOD : EXIT_FAILED;
  if (!status) status = compare_make(c, a.baseline);
  if (!status) compare_print(c, a.format);
  if (!status && a.html && !file_replace(a.html, compare_html, c)) status = EXIT_FAILED;
  compare_free(c);
  free(c);
  return status;
}
