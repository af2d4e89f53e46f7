/* kim_settings.c - the parameter file of a model of KIM: lines of a word and its value. */
#include "hosts/kim/kim_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char folder[PATH_MAX], file[PATH_MAX];
  kim_settings *to;
} reading;

static bool copy(char *to, const char *value) {
  const bool fits = strlen(value) < PATH_MAX;
  if (fits) memcpy(to, value, strlen(value) + 1);
  return fits && *value;
}

static bool folder(reading *r, const char *value) { return copy(r->folder, value); }
static bool model(reading *r, const char *value) { return copy(r->file, value); }

static bool dtype(reading *r, const char *value) {
  const bool f64 = !strcmp(value, "f64");
  r->to->options.dtype = f64 ? CLB_F64 : CLB_F32;
  return f64 || !strcmp(value, "f32");
}

static bool knots(reading *r, const char *value) {
  char *end;
  const long n = strtol(value, &end, 10);
  r->to->options.knots = n ? (int)n : CLB_NO_KNOTS;
  return end != value && !*end && (n == 0 || (n >= 4 && n <= 1 << 20));
}

static const struct {
  const char *word, *values;
  bool (*take)(reading *r, const char *value);
} words[] = {{"folder", "a path", folder},
             {"model", "a file", model},
             {"dtype", "f32 or f64", dtype},
             {"knots", "0, or 4 and more", knots}};
enum { WORDS = sizeof words / sizeof *words };

/* Cuts blanks off both ends. */
static char *trimmed(char *s) {
  while (isspace((unsigned char)*s)) s++;
  char *end = s + strlen(s);
  while (end > s && isspace((unsigned char)end[-1])) *--end = 0;
  return s;
}

static bool take_line(reading *r, char *line, char *error, size_t size) {
  char *comment = strchr(line, '#');
  if (comment) *comment = 0;
  char *word = trimmed(line);
  if (!*word) return true;
  char *value = word + strcspn(word, " \t");
  if (*value) *value++ = 0;
  value = trimmed(value);
  for (int i = 0; i < WORDS; i++) {
    if (strcmp(word, words[i].word) != 0) continue;
    if (words[i].take(r, value)) return true;
    return snprintf(error, size, "%s must be %s, not '%s'", word, words[i].values, value), false;
  }
  snprintf(error, size, "'%s' is not known; known are model, dtype, knots and folder", word);
  return false;
}

static bool take_all(reading *r, FILE *in, char *error, size_t size) {
  char line[PATH_MAX + 64];
  while (fgets(line, sizeof line, in))
    if (!take_line(r, line, error, size)) return false;
  if (!*r->file) return snprintf(error, size, "it has no line 'model FILE'"), false;
  const bool whole = *r->file == '/';
  snprintf(r->to->model, sizeof r->to->model, "%s%s%s", whole ? "" : r->folder, whole ? "" : "/",
           r->file);
  return true;
}

bool kim_settings_read(const char *path, const char *where, kim_settings *s, char *error,
                       size_t size) {
  reading r = {.to = s};
  char why[256];
  *s = (kim_settings){0};
  FILE *in = fopen(path, "r");
  if (!in) return snprintf(error, size, "%s: %s", path, strerror(errno)), false;
  copy(r.folder, where);
  const bool good = take_all(&r, in, why, sizeof why);
  fclose(in);
  if (!good) snprintf(error, size, "%s of %s: %s", strrchr(path, '/') + 1, r.folder, why);
  return good;
}
