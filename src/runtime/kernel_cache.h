/* src/runtime/kernel_cache.h - compiled kernels in the cache folder; anything damaged, truncated or
   foreign is a miss. */
#ifndef CLB_SRC_RUNTIME_KERNEL_CACHE_H
#define CLB_SRC_RUNTIME_KERNEL_CACHE_H

#include <stdbool.h>

#include "src/base/hash.h"
#include "src/base/text.h"

/* true: the cached binary was appended to `binary`. */
bool clb_cache_get(const clb_hash *key, clb_text *binary);
/* Caches a binary. Failure is not an error: the reason is written to `trouble` (may be NULL) if
   that is still empty. */
void clb_cache_put(const clb_hash *key, const void *binary, size_t bytes, clb_text *trouble);

/* Until _end, other processes and threads that begin with the same key wait: one compiles, the
   others find the result. Returns a descriptor; -1: there is no such lock, which is no error, or
   its owner takes too long. */
int clb_cache_begin(const clb_hash *key);
void clb_cache_end(const clb_hash *key, int lock);

#endif
