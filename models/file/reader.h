/* models/file/reader.h - shared by the files that read a model: the reader's state, metadata and
   tensors. */
#ifndef CLB_MODELS_FILE_READER_H
#define CLB_MODELS_FILE_READER_H

#include "models/file/file.h"
#include "models/file/safetensors.h"

/* Everything is skipped after the first failure. */
typedef struct {
  clb_error_sink *error;
  clb_safetensors *file;
  const char *path;
  clb_model_file *out;
  bool *used; /* [number of tensors in the file] */
  clb_status status;
} clb_model_reader;

enum {
  CLB_MODEL_KEY = 80,
  CLB_MODEL_WIDTH = 1 << 20
}; /* maximum bytes of a name; maximum columns of a matrix */

void clb_model_refuse(clb_model_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void clb_model_no_memory(clb_model_reader *r);

const char *clb_model_text(clb_model_reader *r, const char *key);
/* Terms must be written in full, with multiplicity > 0. */
void clb_model_irreps(clb_model_reader *r, const char *key, clb_irreps *irreps);

/* Whether the file has that tensor. Check this before allocating, so that nothing larger than the
   file's tensors is allocated. */
bool clb_model_has(clb_model_reader *r, const char *name, int rank, const int64_t *shape);
/* Reserves n more weights, set to 0, at an offset that is a multiple of 16. */
int64_t clb_model_reserve(clb_model_reader *r, int64_t n);
/* Appends a tensor times a factor. */
int64_t clb_model_take(clb_model_reader *r, const char *name, int rank, const int64_t *shape,
                       double factor);

int64_t clb_model_channels(const clb_irreps *irreps, const clb_term *of); /* NULL: all irreps */
/* Reads layer n: its irreps and paths, then its weights. */
void clb_model_read_layer(clb_model_reader *r, int n, bool fan_in, double radial_scale);

#endif
