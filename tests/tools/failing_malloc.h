/* tests/tools/failing_malloc.h - which allocation of this process fails. A program that links
   failing_malloc.c allocates through it, and so do all libraries that it loads (libc, jansson,
   zlib, the dynamic loader); programs that it starts do not. Allocations of a driver or a BLAS
   while it is opened are spared (libgfortran would end the process). Link with --wrap=dlopen. */
#ifndef CLB_TESTS_TOOLS_FAILING_MALLOC_H
#define CLB_TESTS_TOOLS_FAILING_MALLOC_H

#include <stdbool.h>

typedef struct {
  long count;         /* allocations since the start */
  long k;             /* the k-th fails; 0: none */
  bool from_then_on;  /* and all after it */
  bool spares_loader; /* count dlopen too, also of our own kernels */
  bool tells;         /* print on standard error who asked for the k-th */
} failing_plan;

/* NULL (as at the start): nothing is counted, nothing fails.  May lie in memory that processes
   share. */
void failing_follow(failing_plan *plan);

#endif
