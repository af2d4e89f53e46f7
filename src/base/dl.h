/* src/base/dl.h - drivers opened at run time. */
#ifndef CLB_SRC_BASE_DL_H
#define CLB_SRC_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the first of the names (ending with NULL) that opens; NULL if none does. */
void *clb_dl_open(const char *const *names);
/* The same, in a namespace separate from all other libraries of the process: for compilers whose
   LLVM aborts when another driver loads the same LLVM (Debian's HIP and PoCL do), and for BLAS,
   whose number of threads is the caller's own. The library shares nothing with the caller but
   memory that is passed to it, and its environment says that it gets one thread. */
void *clb_dl_open_isolated(const char *const *names);
void clb_dl_close(void *library);
/* Whether this message of dlerror (NULL: none) reports lack of memory. */
bool clb_dl_lacked_memory(const char *message);

/* Where to put the address of a symbol: `offset` bytes into `table`.  `optional` ones may stay
   NULL. */
typedef struct {
  const char *name;
  size_t offset;
  bool optional;
} clb_symbol;
/* Fills a table of function pointers; returns the name of the first missing symbol, or NULL if all
   is well. */
const char *clb_dl_symbols(void *library, const clb_symbol *symbols, size_t n, void *table);

#endif
