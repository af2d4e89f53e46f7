/* models/file/safetensors.h - reads safetensors files: named arrays of numbers and named strings.
   docs/model-format.md describes the contents of a model file.

   The file: 8 bytes, the length of the header (little endian); the header, a JSON object; the data.
   The header maps each tensor's name to {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin,
   end]}, offsets in bytes from the end of the header, and "__metadata__" to an object of strings.
   Tensors are row-major, little endian, and cover the data without gaps and overlaps. */
#ifndef CLB_MODELS_FILE_SAFETENSORS_H
#define CLB_MODELS_FILE_SAFETENSORS_H

#include "src/base/error.h"

enum { CLB_TENSOR_RANK = 8 };

typedef struct {
  const char *name, *dtype; /* "F64", "F32", ...: as in the file; owned by the file */
  int rank;
  int64_t shape[CLB_TENSOR_RANK];
  int64_t count;             /* number of elements: the product of the shape */
  const unsigned char *data; /* not aligned */
  uint64_t begin, end;       /* range of bytes in the file's data */
} clb_tensor;

typedef struct clb_safetensors clb_safetensors;

/* Reads and checks the whole file: CLB_ERROR_ARGUMENT with the file's name and what is wrong,
   CLB_ERROR_MEMORY. *file is NULL on failure. */
clb_status clb_safetensors_open(clb_error_sink *e, const char *path, clb_safetensors **file);
void clb_safetensors_close(clb_safetensors **file);

/* NULL if there is no such tensor. */
const clb_tensor *clb_safetensors_find(const clb_safetensors *file, const char *name);
int clb_safetensors_size(const clb_safetensors *file); /* number of tensors in the file */
const clb_tensor *clb_safetensors_at(const clb_safetensors *file,
                                     int i); /* in the order of the data */

/* The tensor must exist, with dtype F64 or F32 and this shape. Since the file contains its data,
   allocating an array of that size is safe. */
clb_status clb_safetensors_want(clb_error_sink *e, const clb_safetensors *file, const char *name,
                                int rank, const int64_t *shape, const clb_tensor **tensor);
/* The same, and writes its elements to out as doubles. */
clb_status clb_safetensors_read(clb_error_sink *e, const clb_safetensors *file, const char *name,
                                int rank, const int64_t *shape, double *out);

/* Whether the metadata have that key. */
bool clb_safetensors_says(const clb_safetensors *file, const char *key);
/* One string of the metadata, owned by the file; it must exist. */
clb_status clb_safetensors_text(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                const char **text);
/* The same as a number: _number: finite; _whole: an integer in [low, high]. */
clb_status clb_safetensors_number(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                  double *x);
clb_status clb_safetensors_whole(clb_error_sink *e, const clb_safetensors *file, const char *key,
                                 int64_t low, int64_t high, int64_t *x);

#endif
