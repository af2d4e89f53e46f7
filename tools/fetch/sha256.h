/* tools/fetch/sha256.h - SHA-256 of bytes. */
#ifndef CLB_TOOLS_FETCH_SHA256_H
#define CLB_TOOLS_FETCH_SHA256_H

#include <stddef.h>

typedef struct {
  char text[65]; /* 64 digits */
} sha256_sum;
/* Ends the program if coreutils' sha256sum cannot be run. */
sha256_sum sha256(const void *bytes, size_t n);

#endif
