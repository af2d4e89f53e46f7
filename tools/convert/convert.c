/* tools/convert/convert.c - `clebsch convert`: another program's model to a safetensors file. */
#define _GNU_SOURCE /* memfd_create */
#include "tools/convert/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/output.h"
#include "tools/cli/tool.h"

static const struct {
  bool (*is)(const source_file *in);
  void (*convert)(const source_file *in, model *out);
} formats[] = {{is_torch, convert_torch}, {is_nequix, convert_nequix}};

void refuse(const char *path, const char *format, ...) {
  char sentence[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  for (char *s = sentence; *s; s++)
    if (*s == '\n') *s = ' '; /* one line, whatever the file says */
  give_up("%s: %s", path, sentence);
}

/* ---- a model's parts ---- */

static void name_of(const model *m, char name[NAME_BYTES], const char *format, va_list args) {
  int n = vsnprintf(name, NAME_BYTES, format, args);
  if (n < 0 || n >= NAME_BYTES) refuse(m->from, "a name is too long: %s", name);
}

static void say_text(model *m, const char *key, const char *value) {
  const char *before = json_string_value(json_object_get(m->metadata, key));
  if (before && strcmp(before, value) != 0) refuse(m->from, "%s is '%s' in one layer and '%s' in another", key, before, value);
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

void keep(model *m, const void *data, bool f64, int rank, const int64_t *shape, const char *name, ...) {
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

void keep_doubles(model *m, const double *data, int64_t n, const char *name) {
  unsigned char *bytes = allocate((size_t)n, 8);
  for (int64_t i = 0; i < n; i++) {
    uint64_t word;
    memcpy(&word, &data[i], 8);
    for (int k = 0; k < 8; k++) bytes[8 * i + k] = (unsigned char)(word >> 8 * k);
  }
  keep(m, bytes, true, 1, &n, "%s", name);
  free(bytes);
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

bool same_irrep(irrep a, irrep b) {
  return a.l == b.l && a.parity == b.parity;
}

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
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%dx%s", i ? "+" : "", list->term[i].mul, irrep_label(list->term[i], label));
  say_text(m, name, text);
}

/* ---- files ---- */

static void read_source(source_file *in) {
  struct stat about;
  if (stat(in->path, &about)) refuse(in->path, "%s", strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse(in->path, "not a file");
  if (about.st_size >= INT32_MAX) refuse(in->path, "larger than 2 GiB");
  in->n = (size_t)about.st_size;
  in->bytes = allocate(in->n, 1);
  FILE *f = fopen(in->path, "rb");
  if (!f) refuse(in->path, "%s", strerror(errno));
  if (fread(in->bytes, 1, in->n, f) != in->n) refuse(in->path, "could not be read to its end");
  fclose(f);
}

/* Wide elements first, so that all are aligned. */
static int by_width(const void *a, const void *b) {
  const model_tensor *x = a, *y = b;
  if (x->f64 != y->f64) return x->f64 ? -1 : 1;
  return strcmp(x->name, y->name);
}

static char *header_of(const model *m) {
  json_t *header = json_object();
  size_t at = 0;
  json_add(header, "__metadata__", json_incref(m->metadata));
  for (int i = 0; i < m->n; i++) {
    const model_tensor *t = &m->tensors[i];
    json_t *about = json_object(), *shape = json_array(), *offsets = json_array();
    if (json_object_get(header, t->name)) refuse(m->from, "two tensors would be '%s'", t->name);
    json_add(header, t->name, about);
    json_add(about, "dtype", json_text(t->f64 ? "F64" : "F32"));
    json_add(about, "shape", shape);
    for (int k = 0; k < t->rank; k++) json_array_add(shape, json_count(t->shape[k]));
    json_add(about, "data_offsets", offsets);
    json_array_add(offsets, json_count((int64_t)at));
    json_array_add(offsets, json_count((int64_t)(at += t->bytes)));
  }
  char *text = json_dumps(header, JSON_COMPACT);
  json_decref(header);
  if (!text) give_up("out of memory");
  return text;
}

static bool write_model(FILE *f, const void *user) {
  const model *m = user;
  char *header = header_of(m);
  const size_t n = strlen(header), padded = (n + 7) / 8 * 8;
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> 8 * i);
  bool good = fwrite(length, 1, 8, f) == 8 && fprintf(f, "%-*s", (int)padded, header) == (int)padded;
  for (int i = 0; i < m->n; i++) good = good && fwrite(m->tensors[i].data, 1, m->tensors[i].bytes, f) == m->tensors[i].bytes;
  free(header);
  return good;
}

static void free_model(model *m) {
  for (int i = 0; i < m->n; i++) free(m->tensors[i].data);
  json_decref(m->metadata);
  free(m);
}

static model *read_model(const char *from) {
  source_file in = {.path = from};
  model *m = allocate(1, sizeof *m);
  m->from = from;
  m->metadata = json_object();
  read_source(&in);
  size_t i = 0;
  while (i < sizeof formats / sizeof *formats && !formats[i].is(&in)) i++;
  if (i == sizeof formats / sizeof *formats) refuse(from, "neither a TorchScript archive (.pth) nor a Nequix model (.nqx)");
  say(m, "clebsch model", "format");
  say(m, "1", "format_version");
  formats[i].convert(&in, m);
  qsort(m->tensors, (size_t)m->n, sizeof *m->tensors, by_width);
  free(in.bytes);
  return m;
}

void convert_file(const char *from, const char *to) {
  const named_file files[] = {{"the file to convert", from, FILE_INPUT}, {"the model", to, FILE_WHOLE}};
  if (!outputs_ready(files, 2)) exit(EXIT_FAILED);
  model *m = read_model(from);
  if (!file_replace(to, write_model, m)) exit(EXIT_FAILED);
  free_model(m);
}

int convert_in_memory(const char *from) {
  model *m = read_model(from);
  const int fd = memfd_create("clebsch_model", MFD_CLOEXEC), again = fd < 0 ? -1 : dup(fd);
  FILE *f = again < 0 ? NULL : fdopen(again, "wb");
  bool good = f && write_model(f, m);
  if (f) good &= !fclose(f);
  if (!good) refuse(from, "no memory for the converted model: %s", strerror(errno));
  free_model(m);
  return fd;
}

/* ---- the command ---- */

typedef struct {
  const char *in, *out;
} convert_arguments;

static error_t parse(int key, char *arg, struct argp_state *state) {
  convert_arguments *a = state->input;
  switch (key) {
    case ARGP_KEY_ARG:
      if (state->arg_num == 0) a->in = arg;
      else if (state->arg_num == 1) a->out = arg;
      else argp_error(state, "'%s' is one argument too many", arg);
      return 0;
    case ARGP_KEY_END:
      if (!a->out) argp_error(state, "name the model and the file to write");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int convert_main(int argc, char **argv) {
  static const struct argp argp = {.parser = parse,
                                   .args_doc = "IN OUT",
                                   .doc = "Converts a model to the safetensors file OUT, which holds all that its evaluation needs.\v"
                                          "IN is a deployed NequIP model (TorchScript: .pth) or a Nequix model (.nqx). Nothing in it is executed. "
                                          "Weights keep their precision. OUT is replaced if it is there, once all went well."};
  convert_arguments a = {NULL, NULL};
  parse_arguments(&argp, argc, argv, 0, &a);
  convert_file(a.in, a.out);
  return EXIT_GOOD;
}
