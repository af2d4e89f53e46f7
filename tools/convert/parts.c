/* tools/convert/parts.c - the parts of a model common to all formats: metadata, tensors and irreps,
   and refusals. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/tool.h"
#include "tools/convert/convert.h"

void refuse(const char *path, const char *format, ...) {
  char sentence[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  for (char *s = sentence; *s; s++)
    if (*s == '\n') *s = ' '; /* keep it on one line */
  fatal("%s: %s", path, sentence);
}

int chosen_of(const char *path, const char *wanted, const char *const *names, int n,
              const char *what, const char *several) {
  char list[200] = "";
  size_t used = 0;
  for (int i = 0; i < n; i++) {
    if (wanted ? !strcmp(names[i], wanted) : n == 1) return i;
    if (used < sizeof list)
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
  }
  if (wanted)
    refuse(path, "there is no '%s': choose one of its %s with --%s: %s", wanted, several, what,
           list);
  refuse(path, "it has several %s: choose one of its %s with --%s: %s", several, several, what,
         list);
}

/* ---- a model's parts ---- */

static void name_of(const model *m, char name[NAME_BYTES], const char *format, va_list args) {
  int n = vsnprintf(name, NAME_BYTES, format, args);
  if (n < 0 || n >= NAME_BYTES) refuse(m->from, "a name is too long: %s", name);
}

static void say_text(model *m, const char *key, const char *value) {
  const char *before = json_string_value(json_object_get(m->metadata, key));
  if (before && strcmp(before, value) != 0)
    refuse(m->from, "%s is '%s' in one layer and '%s' in another", key, before, value);
  json_add(m->metadata, key, json_text(value));
}

void say(model *m, const char *value, const char *key, ...) {
  char name[NAME_BYTES];
  va_list args;
  va_start(args, key);
  name_of(m, name, key, args);
  va_end(args);
  say_text(m, name, value);
}

void say_number(model *m, double x, const char *key) {
  char text[40];
  if (!isfinite(x)) refuse(m->from, "%s is not finite", key);
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  say_text(m, key, text);
}

void keep(model *m, const void *data, bool f64, int rank, const int64_t *shape, const char *name,
          ...) {
  if (m->n == MAX_TENSORS) refuse(m->from, "more than %d tensors", MAX_TENSORS);
  model_tensor *t = &m->tensors[m->n++];
  va_list args;
  va_start(args, name);
  name_of(m, t->name, name, args);
  va_end(args);
  t->f64 = f64;
  t->rank = rank;
  t->bytes = f64 ? 8 : 4;
  for (int i = 0; i < rank; i++) {
    t->shape[i] = shape[i];
    t->bytes *= (size_t)shape[i];
  }
  t->data = allocate(1, t->bytes);
  memcpy(t->data, data, t->bytes);
}

void keep_shaped(model *m, const double *data, int rank, const int64_t *shape, const char *name) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  unsigned char *bytes = allocate((size_t)n, 8);
  for (int64_t i = 0; i < n; i++) {
    uint64_t word;
    memcpy(&word, &data[i], 8);
    for (int k = 0; k < 8; k++) bytes[8 * i + k] = (unsigned char)(word >> 8 * k);
  }
  keep(m, bytes, true, rank, shape, "%s", name);
  free(bytes);
}

void keep_doubles(model *m, const double *data, int64_t n, const char *name) {
  keep_shaped(m, data, 1, &n, name);
}

double number_at(const unsigned char *data, bool f64, int64_t i) {
  uint64_t word = 0;
  float single;
  double x;
  for (int bytes = f64 ? 8 : 4, k = bytes; k-- > 0;) word = word << 8 | data[bytes * i + k];
  const uint32_t narrow = (uint32_t)word;
  memcpy(&single, &narrow, 4);
  memcpy(&x, &word, 8);
  return f64 ? x : (double)single;
}

/* ---- irreps ---- */

bool same_irrep(irrep a, irrep b) { return a.l == b.l && a.parity == b.parity; }

const char *irrep_label(irrep t, char text[LABEL_BYTES]) {
  snprintf(text, LABEL_BYTES, "%d%c", t.l, t.parity > 0 ? 'e' : 'o');
  return text;
}

void say_irreps(model *m, const irreps *list, const char *key, ...) {
  char name[NAME_BYTES], text[IRREPS_BYTES] = "", label[LABEL_BYTES];
  size_t used = 0;
  va_list args;
  va_start(args, key);
  name_of(m, name, key, args);
  va_end(args);
  for (int i = 0; i < list->n; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%dx%s", i ? "+" : "",
                             list->term[i].mul, irrep_label(list->term[i], label));
  say_text(m, name, text);
}
