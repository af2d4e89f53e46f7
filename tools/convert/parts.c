/* tools/convert/parts.c - the parts of a model common to all formats: metadata, tensors and irreps,
   and refusals. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/atoms/elements.h"
#include "tools/cli/tool.h"
#include "tools/convert/convert.h"
#include "tools/reference/reference_irreps.h"

void fail_model(const char *path, const char *format, ...) {
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
    fail_model(path, "there is no '%s': choose one of its %s with --%s: %s", wanted, several, what,
               list);
  fail_model(path, "it has several %s: choose one of its %s with --%s: %s", several, several, what,
             list);
}

/* ---- a model's parts ---- */

static void name_of(const model *m, char name[NAME_BYTES], const char *format, va_list args) {
  int n = vsnprintf(name, NAME_BYTES, format, args);
  if (n < 0 || n >= NAME_BYTES) fail_model(m->from, "a name is too long: %s", name);
}

model_name named(const char *format, ...) {
  model_name name;
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(name.text, NAME_BYTES, format, args);
  va_end(args);
  if (n < 0 || n >= NAME_BYTES) fatal("a name is too long: %s", name.text);
  return name;
}

static void put_value(model *m, const char *key, const char *value) {
  const char *before = json_string_value(json_object_get(m->metadata, key));
  if (before && strcmp(before, value) != 0)
    fail_model(m->from, "%s is '%s' in one layer and '%s' in another", key, before, value);
  json_add(m->metadata, key, json_text(value));
}

void put_string(model *m, const char *value, const char *key, ...) {
  char name[NAME_BYTES];
  va_list args;
  va_start(args, key);
  name_of(m, name, key, args);
  va_end(args);
  put_value(m, name, value);
}

void put_number(model *m, double x, const char *key, ...) {
  char text[40], name[NAME_BYTES];
  va_list args;
  va_start(args, key);
  name_of(m, name, key, args);
  va_end(args);
  if (!isfinite(x)) fail_model(m->from, "%s is not finite", name);
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  put_value(m, name, text);
}

void put_tensor(model *m, const void *data, bool f64, int rank, const int64_t *shape,
                const char *name, ...) {
  if (m->n == MAX_TENSORS) fail_model(m->from, "more than %d tensors", MAX_TENSORS);
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

void put_shaped(model *m, const double *data, int rank, const int64_t *shape, const char *name) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  unsigned char *bytes = allocate((size_t)n, 8);
  for (int64_t i = 0; i < n; i++) {
    uint64_t word;
    memcpy(&word, &data[i], 8);
    for (int k = 0; k < 8; k++) bytes[8 * i + k] = (unsigned char)(word >> 8 * k);
  }
  put_tensor(m, bytes, true, rank, shape, "%s", name);
  free(bytes);
}

void put_doubles(model *m, const double *data, int64_t n, const char *name) {
  put_shaped(m, data, 1, &n, name);
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

bool read_irreps(const char *text, irreps *out) {
  reference_irreps read;
  *out = (irreps){.n = 0};
  if (!text || !reference_irreps_read(text, &read) || !read.n || read.n > MAX_TERMS) return false;
  for (int i = 0; i < read.n; i++) {
    const reference_irrep *t = &read.term[i];
    if (t->mul > MAX_CHANNELS) return false;
    out->term[out->n++] = (irrep){t->mul, t->l, t->parity};
  }
  return true;
}

const char *irrep_label(irrep t, char text[LABEL_BYTES]) {
  snprintf(text, LABEL_BYTES, "%d%c", t.l, t.parity > 0 ? 'e' : 'o');
  return text;
}

void put_irreps(model *m, const irreps *list, const char *key, ...) {
  char name[NAME_BYTES], text[IRREPS_BYTES] = "", label[LABEL_BYTES];
  size_t used = 0;
  va_list args;
  va_start(args, key);
  name_of(m, name, key, args);
  va_end(args);
  for (int i = 0; i < list->n; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%dx%s", i ? "+" : "",
                             list->term[i].mul, irrep_label(list->term[i], label));
  put_value(m, name, text);
}

int64_t channels_of(const irreps *list, irrep t) {
  int64_t n = 0;
  for (int i = 0; i < list->n; i++) n += same_irrep(list->term[i], t) ? list->term[i].mul : 0;
  return n;
}

irreps harmonic_irreps(int l_max, bool even) {
  irreps out = {.n = l_max + 1};
  for (int l = 0; l <= l_max; l++) out.term[l] = (irrep){1, l, l % 2 && !even ? -1 : 1};
  return out;
}

bool couples(irrep a, irrep b, irrep to) {
  return to.l >= abs(a.l - b.l) && to.l <= a.l + b.l && a.parity * b.parity == to.parity;
}

/* ---- what several formats put ---- */

int find_all_paths(const char *path, const irreps *x, const irreps *y, const irreps *z,
                   path_terms *paths, int most) {
  int n = 0;
  for (int k = 0; k < z->n; k++)
    for (int i = 0; i < x->n; i++)
      for (int j = 0; j < y->n; j++) {
        if (!couples(x->term[i], y->term[j], z->term[k])) continue;
        if (n == most) fail_model(path, "a layer has more than %d paths", most);
        paths[n++] = (path_terms){i, j, k};
      }
  return n;
}

irreps own_messages(path_terms *paths, int n, const irreps *x, const irreps *z) {
  irreps out = {.n = n};
  for (int i = 0; i < n; i++) {
    out.term[i] = z->term[paths[i].z];
    out.term[i].mul = x->term[paths[i].x].mul;
    paths[i].z = i;
  }
  return out;
}

void put_path_list(model *m, const char *key, const path_terms *paths, int n) {
  char text[MAX_PATHS * 12] = "";
  size_t used = 0;
  for (int i = 0; i < n; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%d,%d,%d", i ? " " : "",
                             paths[i].x, paths[i].y, paths[i].z);
  put_string(m, text, "%s", key);
}

void put_paths(model *m, int layer, const path_terms *paths, int n, const irreps *messages) {
  put_path_list(m, named("layers.%d.paths", layer).text, paths, n);
  put_irreps(m, messages, "layers.%d.irreps_message", layer);
}

irreps put_gate(model *m, const char *prefix, const irreps *out) {
  static const irrep even = {.l = 0, .parity = 1};
  irreps scalars = {0}, gated = {0}, gates = {1, {{0, 0, channels_of(out, even) ? 1 : -1}}}, linear;
  for (int i = 0; i < out->n; i++) {
    irreps *part = out->term[i].l ? &gated : &scalars;
    part->term[part->n++] = out->term[i];
    gates.term[0].mul += out->term[i].l ? out->term[i].mul : 0;
  }
  linear = scalars;
  for (int i = 0; i < linear.n; i++)
    if (same_irrep(linear.term[i], gates.term[0])) linear.term[i].mul += gates.term[0].mul;
  if (!scalars.n) linear.term[linear.n++] = gates.term[0];
  for (int i = 0; i < gated.n; i++) linear.term[linear.n++] = gated.term[i];
  gates.n = gated.n > 0;
  put_irreps(m, &linear, "%s.irreps_linear", prefix);
  put_irreps(m, &scalars, "%s.irreps_scalars", prefix);
  put_irreps(m, &gates, "%s.irreps_gates", prefix);
  put_irreps(m, &gated, "%s.irreps_gated", prefix);
  return linear;
}

void put_species(model *m, const int *atomic_numbers, int n) {
  char text[4 * CLB_ELEMENTS + 1] = "";
  size_t used = 0;
  for (int i = 0; i < n; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                             clb_element_symbols[atomic_numbers[i]]);
  put_string(m, text, "species");
}

void put_per_species(model *m, const double *scale, const double *shift, int64_t n) {
  put_doubles(m, scale, n, "species_scale");
  put_doubles(m, shift, n, "species_shift");
}

void put_edges(model *m, double r_max, const irreps *sh, const char *basis, int64_t n_basis) {
  put_number(m, r_max, "r_max");
  put_irreps(m, sh, "irreps_sh");
  put_number(m, sh->n - 1, "l_max");
  put_string(m, basis, "radial_basis");
  put_number(m, (double)n_basis, "n_basis");
}

void put_polynomial(model *m, double p) {
  put_string(m, "polynomial", "cutoff");
  put_number(m, p, "cutoff_p");
}

void put_silu(model *m, double scale, const char *const *keys, int n) {
  for (int i = 0; i < n; i++) {
    put_string(m, "silu", "%s", keys[i]);
    put_number(m, scale, "%s_scale", keys[i]);
  }
}
