/* tools/train/model_bytes.c - a model file, whose numbers change and nothing else. The file: 8
   bytes, the length of the header; the header, JSON; the data (docs/model-format.md). */
#include "tools/train/model_bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/tool.h"
#include "tools/common/dtype.h"
#include "tools/common/output.h"

static bool read_all(model_bytes *b, FILE *f) {
  struct stat about;
  if (fstat(fileno(f), &about)) return false;
  b->n = (size_t)about.st_size;
  b->bytes = allocate(b->n + 1, 1);
  return fread(b->bytes, 1, b->n, f) == b->n && file_checksum(fileno(f), 0, about.st_size, &b->sum);
}

static bool read_header(model_bytes *b) {
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0 && b->n >= 8;) length = length << 8 | b->bytes[i];
  if (b->n < 8 || length > b->n - 8) return false;
  b->data = 8 + (size_t)length;
  b->header = json_loadb((const char *)b->bytes + 8, (size_t)length, 0, NULL);
  return json_is_object(b->header);
}

bool model_bytes_read(model_bytes *b, const char *path) {
  FILE *f = fopen(path, "rb");
  const bool read = f && read_all(b, f);
  if (!read) warn("%s: %s", path, strerror(errno ? errno : EIO));
  if (f) fclose(f);
  if (!read || read_header(b)) return read;
  warn("%s: not an output of `clebsch convert`, which reads the models of other programs and "
       "writes what is trained here",
       path);
  return false;
}

void model_bytes_free(model_bytes *b) {
  json_decref(b->header);
  free(b->bytes);
}

/* The library has read the file, and found its tensors to be F32 and F64. */
void model_bytes_set(model_bytes *b, const clb_tensor_info *t, const double *numbers) {
  const json_t *o = json_object_get(b->header, t->name);
  const char *type = json_string_value(json_object_get(o, "dtype"));
  const json_int_t at = json_integer_value(json_array_get(json_object_get(o, "data_offsets"), 0));
  const clb_dtype dtype = type && !strcmp(type, "F64") ? CLB_F64 : CLB_F32;
  unsigned char *coded =
      allocate((size_t)t->count, dtype_bytes(dtype)); /* the file's are not aligned */
  encode(dtype, numbers, coded, t->count);
  memcpy(b->bytes + b->data + at, coded, (size_t)t->count * dtype_bytes(dtype));
  free(coded);
}

static bool write(FILE *f, const void *user) {
  const model_bytes *b = user;
  return fwrite(b->bytes, 1, b->n, f) == b->n;
}

bool model_bytes_write(const model_bytes *b, const char *path) {
  return file_replace(path, write, b);
}
