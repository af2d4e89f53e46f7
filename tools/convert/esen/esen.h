/* tools/convert/esen/esen.h - what the files that convert eSEN's checkpoints share. */
#ifndef CLB_TOOLS_CONVERT_ESEN_ESEN_H
#define CLB_TOOLS_CONVERT_ESEN_ESEN_H

#include "models/atoms/elements.h"
#include "tools/convert/maps.h"

typedef struct {
  torch *t;
  model *out;
  value model_config, backbone, state, tasks;
  const char *dataset; /* whose energies are converted */
  bool embeds_dataset, grid;
  int l, m, n_layers, n_species;                       /* species: elements 1 ... n_species */
  int64_t channels, hidden, edge, gaussians, elements; /* edge: of embeddings of both species;
                                                          elements: of which there are embeddings */
  char head[NAME_BYTES];                               /* the prefix of its tensors */
} esen;

/* ---- esen.c: the configuration; what is not there is `without`, fairchem's default ---- */

void refuse_esen(const esen *q, const char *what) __attribute__((noreturn));
double esen_number(const esen *q, value dict, const char *key, double without);
int64_t esen_whole(const esen *q, const char *key, int64_t without, int64_t low, int64_t high);
bool esen_flag(const esen *q, value dict, const char *key, bool without);
const char *esen_text(const esen *q, value dict, const char *key, const char *without);

/* ---- tensors.c ---- */

/* A tensor of the backbone, of `count` numbers. */
weights esen_tensor(const esen *q, int64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
weights esen_head_tensor(const esen *q, int64_t count, const char *name);
/* `n` matrices [rows][columns], as [columns][rows]; rank 3 if n > 0. */
void esen_transposed(const esen *q, const weights *w, int64_t n, int64_t rows, int64_t columns,
                     const char *name);
void esen_put(const esen *q, const weights *w, int64_t n, const char *name);
void esen_tensors(const esen *q);
/* Rows by charge and spin, with the data set's. */
void esen_states(const esen *q);

#endif
