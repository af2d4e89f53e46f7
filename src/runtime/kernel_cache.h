/* src/runtime/kernel_cache.h - compiled kernels on disk: $CLB_CACHE_DIR, else $XDG_CACHE_HOME/clebsch, else ~/.cache/clebsch; "off" disables.
   A file is written under a temporary name and renamed; anything damaged, truncated or foreign is a miss. */
#ifndef CLB_SRC_RUNTIME_KERNEL_CACHE_H
#define CLB_SRC_RUNTIME_KERNEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/text.h"

typedef struct {
  uint64_t hash[2];
} clb_cache_key;

/* What a file of the folder is, by its name.  TEMPORARY: it was being written: a lasting name, a
   point, and what made it new. */
typedef enum { CLB_CACHE_FOREIGN, CLB_CACHE_LASTING, CLB_CACHE_TEMPORARY } clb_cache_name;
clb_cache_name clb_cache_name_of(const char *name);
/* Removes temporary files that processes left which were killed. */
void clb_cache_sweep(void);
/* Two independent 64-bit hashes of the parts, each part's length included. */
clb_cache_key clb_cache_hash(const void *const *parts, const size_t *bytes, int n);
/* true: the kept binary was added to `binary`. */
bool clb_cache_get(const clb_cache_key *key, clb_text *binary);
/* Keeps a binary; failing to is no error: the sentence that says why is added to `trouble` (may be NULL), where none is there yet. */
void clb_cache_put(const clb_cache_key *key, const void *binary, size_t bytes, clb_text *trouble);

/* The path of a file in the folder; false: there is none. */
bool clb_cache_path(const char *name, clb_text *path);
/* A file of these parts, in folders that are made; a reader finds it whole or not at all.  false: errno. */
bool clb_cache_write(const char *path, const void *const *parts, const size_t *bytes, int n);

#endif
