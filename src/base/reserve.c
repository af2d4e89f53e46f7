/* src/base/reserve.c - arrays that grow. */
#include "src/base/reserve.h"

#include <stdlib.h>
#include <string.h>

bool clb_reserve(void *array, int64_t *cap, int64_t n, size_t size) {
  void *at;
  if (n <= *cap) return true;
  int64_t most = 2 * n + 64;
  memcpy(&at, array, sizeof at);
  at = (size_t)most > SIZE_MAX / size ? NULL : realloc(at, (size_t)most * size);
  if (!at) return false;
  memcpy(array, &at, sizeof at);
  *cap = most;
  return true;
}
