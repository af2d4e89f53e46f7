/* tests/fuzz/memory.h - counts what a reader allocates, and frees it if the reader exits. */
#ifndef CLB_TESTS_FUZZ_MEMORY_H
#define CLB_TESTS_FUZZ_MEMORY_H

#include <stddef.h>

void memory_begin(void);
void memory_end(void);     /* stops counting */
size_t memory_peak(void);  /* bytes, since memory_begin */
size_t memory_left(void);  /* pieces that were allocated in any run and are still there */
void memory_release(void); /* frees them */

#endif
