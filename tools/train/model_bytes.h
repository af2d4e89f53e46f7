/* tools/train/model_bytes.h - a model file, whose numbers change and nothing else. */
#ifndef CLB_TOOLS_TRAIN_MODEL_BYTES_H
#define CLB_TOOLS_TRAIN_MODEL_BYTES_H

#include <clebsch/model.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  unsigned char *bytes; /* [n]: the whole file */
  size_t n, data;       /* data: where the tensors begin */
  json_t *header;
  uint64_t sum; /* checksum of the file as it was read */
} model_bytes;

/* false, after a message: it cannot be read, or is of another format. */
bool model_bytes_read(model_bytes *b, const char *path);
void model_bytes_free(model_bytes *b);
/* Puts numbers[t->count] in the place of a tensor, in its type. */
void model_bytes_set(model_bytes *b, const clb_tensor_info *t, const double *numbers);
/* false, after a message. */
bool model_bytes_write(const model_bytes *b, const char *path);

#endif
