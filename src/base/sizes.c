/* src/base/sizes.c - structs of programs that were compiled with another version of the headers. */
#include "src/base/sizes.h"

#include <string.h>

clb_status clb_take_struct(clb_error_sink *e, const char *name, void *ours, size_t bytes,
                           const void *theirs, size_t size) {
  if (!theirs) size = 0;
  for (size_t i = bytes; i < size; i++)
    if (((const char *)theirs)[i])
      return clb_fail(e, CLB_ERROR_ARGUMENT,
                      "%s has %zu bytes and sets what is behind the %zu that Clebsch %s knows: the "
                      "program was compiled with the header of a newer version",
                      name, size, bytes, CLB_VERSION);
  memset(ours, 0, bytes);
  if (size) memcpy(ours, theirs, size < bytes ? size : bytes);
  return CLB_OK;
}

void clb_give_struct(const void *ours, size_t bytes, void *theirs, size_t size) {
  memset(theirs, 0, size);
  memcpy(theirs, ours, size < bytes ? size : bytes);
}
