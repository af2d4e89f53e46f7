/* tests/fuzz/fuzz_model.h - what fuzzers of models share: a check that a model, read or converted,
   is consistent. */
#ifndef CLB_TESTS_FUZZ_FUZZ_MODEL_H
#define CLB_TESTS_FUZZ_FUZZ_MODEL_H

#include "models/read.h"
#include "tests/fuzz/fuzz.h"

/* Reads the model within bounds and checks it; false: it was refused, with a message. */
bool fuzz_model(const char *path, size_t n);

/* Converts another program's model of n bytes within bounds: the result must be a model; if it is
   refused there must be no file. */
void fuzz_convert(const char *path, size_t n);

/* A file of the corpus, to be freed. */
uint8_t *fuzz_corpus(const char *name, size_t *n);

#endif
