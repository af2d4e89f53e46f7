/* models/file/reader.h - shared by the files that read a model: the reader's state, metadata and
   tensors, and the network that they become. */
#ifndef CLB_MODELS_FILE_READER_H
#define CLB_MODELS_FILE_READER_H

#include "models/file/safetensors.h"
#include "models/layers/network.h"

/* Everything is skipped after the first failure. */
typedef struct {
  clb_error_sink *error;
  clb_safetensors *file;
  const char *path;
  clb_network *out;
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

/* ---- metadata ---- */

const char *clb_model_text(clb_model_reader *r, const char *key);
double clb_model_number(clb_model_reader *r, const char *key);
int clb_model_whole(clb_model_reader *r, const char *key, int low, int high);
/* Whether the value is the second of two words; NULL: there is only the first. */
int clb_model_choice(clb_model_reader *r, const char *key, const char *first, const char *second);
/* The number of the value among n words. */
int clb_model_word(clb_model_reader *r, const char *key, const char *const *words, int n);
/* Terms must be written in full, with multiplicity > 0. */
void clb_model_irreps(clb_model_reader *r, const char *key, clb_irreps *irreps);

/* ---- tensors ---- */

/* Reserves n more weights, set to 0, at an offset that is a multiple of 16. */
int64_t clb_model_reserve(clb_model_reader *r, int64_t n);
/* The columns of a tensor that is a matrix, at most CLB_MODEL_WIDTH; 1 where it is none, which
   clb_model_take then refuses. */
int64_t clb_model_columns(clb_model_reader *r, const char *name);
/* Appends a tensor times a factor. */
int64_t clb_model_take(clb_model_reader *r, const char *name, int rank, const int64_t *shape,
                       double factor);
/* A tensor [rows][inner][columns], each row times those of a `table` that was taken, [inner] for
   each species: [rows][species][columns], times a factor. */
int64_t clb_model_mix(clb_model_reader *r, const char *name, int64_t rows, int64_t inner,
                      int64_t columns, const char *table, double factor);
/* Copies n weights. */
void clb_model_copy(clb_model_reader *r, int64_t to, int64_t from, int64_t n);

/* ---- the network ---- */

int clb_model_array(clb_model_reader *r, clb_per per, bool dense, const clb_irreps *irreps);
/* A layer from one array (-1: none) to another, with the gradient by its input. block: its number,
   -1: it has none. NULL on failure. */
clb_layer *clb_model_layer(clb_model_reader *r, const clb_layer_kind *kind, size_t bytes, int block,
                           const char *what, int in, int out);

#endif
