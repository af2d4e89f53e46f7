/* src/runtime/kernel_cache.h - compiled kernels in the cache's folder; anything damaged, truncated
   or foreign is a miss. */
#ifndef CLB_SRC_RUNTIME_KERNEL_CACHE_H
#define CLB_SRC_RUNTIME_KERNEL_CACHE_H

#include <stdbool.h>

#include "src/base/hash.h"
#include "src/base/text.h"

/* true: the kept binary was added to `binary`. */
bool clb_cache_get(const clb_hash *key, clb_text *binary);
/* Keeps a binary; failing to is no error: the sentence that says why is added to `trouble` (may be
   NULL), where none is there yet. */
void clb_cache_put(const clb_hash *key, const void *binary, size_t bytes, clb_text *trouble);

#endif
