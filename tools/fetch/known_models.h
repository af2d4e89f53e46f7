/* tools/fetch/known_models.h - models that have a name: published ones, and those in the user's
   folder. */
#ifndef CLB_TOOLS_FETCH_KNOWN_MODELS_H
#define CLB_TOOLS_FETCH_KNOWN_MODELS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name, *address, *sha256; /* of what is at the address; NULL: not known */
  int64_t bytes;                       /* 0: not known */
  const char *licence;
  int elements;
  const char *about;
  /* Of an archive: the model's file in it, and the sum of that; else NULL. */
  const char *member, *member_sha256, *modality;
} known_model;

extern const known_model known_models[];
extern const int n_known_models;

const char *last_part(const char *path); /* behind its last slash */
/* In any case of letters; NULL, after a message with names that are like it. */
const known_model *known_model_named(const char *name);
/* Puts the file in place of the name of a model that is there, until the program ends. */
void find_model(const char **model);
/* Whether what is meant by `model` exists; after a message if it can only be the name of another.
 */
bool model_is_there(const char *model);

#endif
