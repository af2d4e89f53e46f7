/* models/file/safetensors.c - reads safetensors files: named arrays of numbers and named strings.
 */
#include "models/file/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LENGTH_BYTES = 8, MAX_HEADER = 16 << 20 };

struct clb_safetensors {
  char *path;
  unsigned char *bytes;
  size_t n, header;        /* bytes of the file and of its header */
  json_t *json, *metadata; /* metadata: borrowed from json; NULL if there is none */
  clb_tensor *tensors;     /* sorted by `begin` */
  int n_tensors;
};

static const struct {
  const char *name;
  uint64_t bytes;
} dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
              {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};

static uint64_t bytes_of(const char *dtype) {
  for (size_t i = 0; dtype && i < sizeof dtypes / sizeof *dtypes; i++)
    if (!strcmp(dtype, dtypes[i].name)) return dtypes[i].bytes;
  return 0;
}

/* ---- the file's bytes ---- */

static clb_status open_regular(clb_error_sink *e, const char *path, FILE **f, size_t *n) {
  struct stat about;
  if (stat(path, &about)) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(about.st_mode))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: not a file", path); /* opening a pipe would block */
  if (about.st_size < LENGTH_BYTES)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: not a safetensors file: shorter than 8 bytes",
                    path);
  if ((uint64_t)about.st_size > SIZE_MAX / 2)
    return clb_fail(e, CLB_ERROR_MEMORY, "%s: too large for this machine", path);
  *n = (size_t)about.st_size;
  *f = fopen(path, "rb");
  return *f ? CLB_OK : clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
}

static clb_status read_bytes(clb_error_sink *e, const char *path, clb_safetensors *file) {
  FILE *f = NULL;
  clb_status status = open_regular(e, path, &f, &file->n);
  if (!status && !(file->bytes = malloc(file->n)))
    status = clb_fail(e, CLB_ERROR_MEMORY, "%s: no memory for its %zu bytes", path, file->n);
  if (!status && fread(file->bytes, 1, file->n, f) != file->n)
    status = clb_fail(e, CLB_ERROR_ARGUMENT, "%s: could not be read to its end", path);
  if (f) fclose(f);
  return status;
}

/* ---- the header ---- */

/* false: no memory. *json is NULL if the text is invalid. When out of memory, jansson may report an
   invalid token, or silently drop a byte of a string: therefore the text is parsed twice. */
static bool parse(const char *text, size_t n, size_t flags, json_t **json, json_error_t *error) {
  json_t *one = json_loadb(text, n, flags, error), *two = json_loadb(text, n, flags, error);
  const bool same = one && two ? json_equal(one, two) : one == two;
  void *some = one ? NULL : malloc(4 * n + 4096);
  const bool good =
      same && (one || (some && *error->text && json_error_code(error) != json_error_out_of_memory));
  free(some);
  json_decref(two);
  if (!good) json_decref(one);
  *json = good ? one : NULL;
  return good;
}

/* Maximum bytes of the file's text in a message: clb_fail does not escape newlines and tabs. */
enum { SHOWN = 200 };
static const char *shown(const char *text, char out[SHOWN]) {
  snprintf(out, SHOWN, "%s", text);
  for (char *c = out; *c; c++)
    if (*c == '\n' || *c == '\t') *c = '?';
  return out;
}

static clb_status read_header(clb_error_sink *e, clb_safetensors *file) {
  json_error_t error = {0};
  char wrong[SHOWN];
  uint64_t length = 0;
  for (int i = LENGTH_BYTES; i-- > 0;) length = length << 8 | file->bytes[i];
  if (length > file->n - LENGTH_BYTES &&
      (!memcmp(file->bytes, "PK\3\4", 4) || file->bytes[0] == '{')) /* PyTorch's, Nequix's */
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: a checkpoint, which must be converted first: clebsch convert %s "
                    "model.safetensors",
                    file->path, file->path);
  if (length > file->n - LENGTH_BYTES)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: not a safetensors file: a header of %" PRIu64
                    " bytes, but %zu bytes in all",
                    file->path, length, file->n);
  if (length > MAX_HEADER)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: its header has more than %d bytes", file->path,
                    MAX_HEADER);
  file->header = (size_t)length;
  const char *text = (const char *)file->bytes + LENGTH_BYTES;
  if (!length || *text != '{')
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: not a safetensors file: its header is no JSON object", file->path);
  if (!parse(text, file->header, JSON_REJECT_DUPLICATES, &file->json, &error))
    return clb_fail(e, CLB_ERROR_MEMORY, "%s: no memory to read its header of %zu bytes",
                    file->path, file->header);
  if (!file->json)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: its header is wrong: byte %d: %s", file->path,
                    error.position, shown(error.text, wrong));
  file->metadata = json_object_get(file->json, "__metadata__");
  return CLB_OK;
}

static clb_status check_metadata(clb_error_sink *e, const clb_safetensors *file) {
  const char *key;
  char name[SHOWN];
  json_t *value;
  if (!file->metadata) return CLB_OK;
  if (!json_is_object(file->metadata))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: __metadata__ is not an object", file->path);
  json_object_foreach(file->metadata, key, value) {
    if (!json_is_string(value))
      return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: __metadata__: a value is not a string",
                      file->path);
    if (!clb_text_is_plain(key) || !clb_text_is_plain(json_string_value(value)))
      return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: __metadata__: '%s' holds control characters",
                      file->path, shown(key, name));
  }
  return CLB_OK;
}

/* Reads shape and count; false if an extent is invalid or the count overflows. */
static bool read_shape(const json_t *shape, clb_tensor *t) {
  if (!json_is_array(shape) || json_array_size(shape) > CLB_TENSOR_RANK) return false;
  t->rank = (int)json_array_size(shape);
  t->count = 1;
  for (int i = 0; i < t->rank; i++) {
    const json_t *extent = json_array_get(shape, (size_t)i);
    t->shape[i] = json_integer_value(extent);
    if (!json_is_integer(extent) || t->shape[i] < 0 ||
        __builtin_mul_overflow(t->count, t->shape[i], &t->count))
      return false;
  }
  return true;
}

static bool read_offsets(const json_t *offsets, clb_tensor *t) {
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
    return false;
  if (json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
    return false;
  t->begin = (uint64_t)json_integer_value(begin);
  t->end = (uint64_t)json_integer_value(end);
  return true;
}

static clb_status read_tensor(clb_error_sink *e, const clb_safetensors *file, const char *name,
                              const json_t *about, clb_tensor *t) {
  const size_t start = LENGTH_BYTES + file->header, data = file->n - start;
  char plain[SHOWN];
  uint64_t bytes;
  if (!clb_text_is_plain(name))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: the name of tensor '%s' holds control characters",
                    file->path, shown(name, plain));
  *t = (clb_tensor){.name = name, .dtype = json_string_value(json_object_get(about, "dtype"))};
  if (!bytes_of(t->dtype))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: tensor '%s' has no dtype, or one that is unknown",
                    file->path, name);
  if (!read_shape(json_object_get(about, "shape"), t))
    return clb_fail(
        e, CLB_ERROR_ARGUMENT,
        "%s: tensor '%s': its shape is not a list of at most %d whole numbers, or too large",
        file->path, name, CLB_TENSOR_RANK);
  if (!read_offsets(json_object_get(about, "data_offsets"), t))
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: tensor '%s': data_offsets are not [begin, end]",
                    file->path, name);
  if (t->end > data)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: tensor '%s' ends at byte %" PRIu64 " of %zu bytes of data", file->path,
                    name, t->end, data);
  if (__builtin_mul_overflow((uint64_t)t->count, bytes_of(t->dtype), &bytes) ||
      bytes != t->end - t->begin)
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: tensor '%s': its shape and dtype do not fit its %" PRIu64 " bytes",
                    file->path, name, t->end - t->begin);
  t->data = file->bytes + start + t->begin;
  return CLB_OK;
}

static int by_place(const void *a, const void *b) {
  const clb_tensor *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

static clb_status check_places(clb_error_sink *e, clb_safetensors *file) {
  uint64_t at = 0, data = file->n - LENGTH_BYTES - file->header;
  if (file->n_tensors)
    qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_place);
  for (int i = 0; i < file->n_tensors; i++) {
    const clb_tensor *t = &file->tensors[i];
    if (t->begin != at)
      return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %s tensor '%s'", file->path,
                      t->begin < at ? "another tensor overlaps" : "a gap before", t->name);
    at = t->end;
  }
  if (at != data)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: %" PRIu64 " bytes of data belong to no tensor",
                    file->path, data - at);
  return CLB_OK;
}

static clb_status read_tensors(clb_error_sink *e, clb_safetensors *file) {
  const char *name;
  json_t *about;
  file->tensors = calloc(json_object_size(file->json) + 1, sizeof *file->tensors);
  if (!file->tensors) return clb_fail(e, CLB_ERROR_MEMORY, "%s: out of memory", file->path);
  json_object_foreach(file->json, name, about) {
    if (about == file->metadata) continue;
    clb_status status = read_tensor(e, file, name, about, &file->tensors[file->n_tensors]);
    if (status) return status;
    file->n_tensors++;
  }
  return check_places(e, file);
}

clb_status clb_safetensors_open(clb_error_sink *e, const char *path, clb_safetensors **out) {
  clb_safetensors *file = calloc(1, sizeof *file);
  clb_status status = CLB_OK;
  *out = file;
  if (!path) status = clb_fail(e, CLB_ERROR_ARGUMENT, "the path of the model is NULL");
  else if (!file || !(file->path = strdup(path)))
    status = clb_fail(e, CLB_ERROR_MEMORY, "%s: out of memory", path);
  if (!status) status = read_bytes(e, path, file);
  if (!status) status = read_header(e, file);
  if (!status) status = check_metadata(e, file);
  if (!status) status = read_tensors(e, file);
  if (status) clb_safetensors_close(out);
  return status;
}

void clb_safetensors_close(clb_safetensors **file) {
  if (!*file) return;
  free((*file)->path);
  free((*file)->bytes);
  free((*file)->tensors);
  json_decref((*file)->json);
  free(*file);
  *file = NULL;
}

/* ---- tensors ---- */

int clb_safetensors_size(const clb_safetensors *file) { return file->n_tensors; }

const clb_tensor *clb_safetensors_at(const clb_safetensors *file, int i) {
  return &file->tensors[i];
}

const clb_tensor *clb_safetensors_find(const clb_safetensors *file, const char *name) {
  for (int i = 0; i < file->n_tensors; i++)
    if (!strcmp(file->tensors[i].name, name)) return &file->tensors[i];
  return NULL;
}

static clb_status wrong_shape(clb_error_sink *e, const clb_safetensors *file, const clb_tensor *t,
                              int rank, const int64_t *shape) {
  clb_fail(e, CLB_ERROR_ARGUMENT, "%s: tensor '%s' is [", file->path, t->name);
  for (int i = 0; i < t->rank; i++)
    clb_fail_more(e, CLB_ERROR_ARGUMENT, "%s%" PRId64, i ? ", " : "", t->shape[i]);
  clb_fail_more(e, CLB_ERROR_ARGUMENT, "], not [");
  for (int i = 0; i < rank; i++)
    clb_fail_more(e, CLB_ERROR_ARGUMENT, "%s%" PRId64, i ? ", " : "", shape[i]);
  return clb_fail_more(e, CLB_ERROR_ARGUMENT, "]");
}

static uint64_t little_endian(const unsigned char *bytes, int n) {
  uint64_t x = 0;
  while (n-- > 0) x = x << 8 | bytes[n];
  return x;
}

static double element(const clb_tensor *t, int64_t i, bool f64) {
  float single;
  double x;
  const uint64_t wide = little_endian(t->data + (f64 ? 8 : 4) * i, f64 ? 8 : 4);
  const uint32_t narrow = (uint32_t)wide;
  memcpy(&x, &wide, sizeof x);
  memcpy(&single, &narrow, sizeof single);
  return f64 ? x : (double)single;
}

clb_status clb_safetensors_want(clb_error_sink *e, const clb_safetensors *file, const char *name,
                                int rank, const int64_t *shape, const clb_tensor **out) {
  const clb_tensor *t = *out = clb_safetensors_find(file, name);
  if (!t) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: there is no tensor '%s'", file->path, name);
  if (strcmp(t->dtype, "F64") != 0 && strcmp(t->dtype, "F32") != 0)
    return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: tensor '%s' is %s, not F64 or F32", file->path,
                    name, t->dtype);
  if (t->rank != rank || (rank && memcmp(t->shape, shape, (size_t)rank * sizeof *shape) != 0))
    return wrong_shape(e, file, t, rank, shape);
  return CLB_OK;
}

clb_status clb_safetensors_read(clb_error_sink *e, const clb_safetensors *file, const char *name,
                                int rank, const int64_t *shape, double *out) {
  const clb_tensor *t;
  clb_status status = clb_safetensors_want(e, file, name, rank, shape, &t);
  const bool f64 = !status && !strcmp(t->dtype, "F64");
  for (int64_t i = 0; !status && i < t->count; i++) out[i] = element(t, i, f64);
  return status;
}

/* ---- metadata ---- */

bool clb_safetensors_says(const clb_safetensors *file, const char *key) {
  return json_object_get(file->metadata, key) != NULL;
}

clb_status clb_safetensors_text(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                const char **text) {
  *text = json_string_value(json_object_get(file->metadata, key));
  if (!*text) return clb_fail(e, CLB_ERROR_ARGUMENT, "%s: its metadata lack '%s'", file->path, key);
  return CLB_OK;
}

clb_status clb_safetensors_number(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                  double *x) {
  const char *text;
  clb_status status = clb_safetensors_text(e, file, key, &text);
  if (status) return status;
  json_error_t error = {0};
  json_t *number; /* unlike strtod, independent of the locale */
  if (!parse(text, strlen(text), JSON_DECODE_ANY, &number, &error))
    return clb_fail(e, CLB_ERROR_MEMORY, "%s: no memory to read '%s' of its metadata", file->path,
                    key);
  const bool good = json_is_number(number);
  *x = json_number_value(number);
  json_decref(number);
  return good ? CLB_OK
              : clb_fail(e, CLB_ERROR_ARGUMENT,
                         "%s: '%s' of its metadata is not a number: \"%.40s\"", file->path, key,
                         text);
}

clb_status clb_safetensors_whole(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                 int64_t low, int64_t high, int64_t *x) {
  double number;
  clb_status status = clb_safetensors_number(e, file, key, &number);
  if (status) return status;
  if (!(number >= (double)low && number <= (double)high && number == floor(number)))
    return clb_fail(e, CLB_ERROR_ARGUMENT,
                    "%s: '%s' of its metadata is not a whole number from %" PRId64 " to %" PRId64,
                    file->path, key, low, high);
  *x = (int64_t)number;
  return CLB_OK;
}
