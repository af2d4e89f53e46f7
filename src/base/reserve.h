/* src/base/reserve.h - arrays that grow. */
#ifndef CLB_SRC_BASE_RESERVE_H
#define CLB_SRC_BASE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for n elements of `size` bytes in a malloc'ed array that has room for *cap: `array` is
   the address of the pointer to it. false: no memory, and the array is as before. */
bool clb_reserve(void *array, int64_t *cap, int64_t n, size_t size);

#endif
