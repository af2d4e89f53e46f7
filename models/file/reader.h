/* models/file/reader.h - what the parts of the reader of a model's file share: its state, metadata
   and tensors. */
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
  bool *used; /* [tensors of the file] */
  clb_status status;
} clb_model_reader;

enum {
  CLB_MODEL_KEY = 80,
  CLB_MODEL_WIDTH = 1 << 20
}; /* bytes of a name; columns of a matrix at most */

void clb_model_refuse(clb_model_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void clb_model_no_memory(clb_model_reader *r);

const char *clb_model_text(clb_model_reader *r, const char *key);
/* Terms in full; none of multiplicity 0. */
void clb_model_irreps(clb_model_reader *r, const char *key, clb_irreps *irreps);

/* Whether the file has that tensor.  What is larger than a tensor of the file is never made room
   for. */
bool clb_model_has(clb_model_reader *r, const char *name, int rank, const int64_t *shape);
/* Room for n more weights, set to 0; it starts at a multiple of 16. */
int64_t clb_model_reserve(clb_model_reader *r, int64_t n);
/* Appends a tensor times a factor. */
int64_t clb_model_take(clb_model_reader *r, const char *name, int rank, const int64_t *shape,
                       double factor);

int64_t clb_model_channels(const clb_irreps *irreps, const clb_term *of); /* NULL: of all irreps */
/* Layer n: its irreps and paths, then its weights. */
void clb_model_read_layer(clb_model_reader *r, int n, bool fan_in, double radial_scale);

#endif
