/* src/base/sizes.h - structs of programs that were compiled with another version of the headers, in
   which they end earlier or later: new members are at the end. */
#ifndef CLB_SRC_BASE_SIZES_H
#define CLB_SRC_BASE_SIZES_H

#include "src/base/error.h"

/* Copies a program's struct of `size` bytes (NULL: of none) to one of the library's. Members that
   the program does not have become 0; those that the library does not have must be 0. name: the
   struct's, for the message. */
clb_status clb_take_struct(clb_error_sink *e, const char *name, void *ours, size_t bytes,
                           const void *theirs, size_t size);

/* Copies a result to a program's struct of `size` bytes, and writes no more. Members that the
   library does not have become 0. */
void clb_give_struct(const void *ours, size_t bytes, void *theirs, size_t size);

#endif
