/* tests/intel/listed.h - test kernels in Intel's assembly: r10 to r17 hold eight words of each
   lane, r20 to r23 are stored as its results. */
#ifndef CLB_TESTS_INTEL_LISTED_H
#define CLB_TESTS_INTEL_LISTED_H

#include "tests/intel/intel.h"

enum { INTEL_INPUTS = 8, INTEL_RESULTS = 4, INTEL_TEST_LOCAL = 4096, INTEL_TEST_SCRATCH = 512 };

/* Whether libiga64.so.1 is here. */
bool intel_can_assemble(void);
/* A kernel of a listing, which is copied; NULL, with the reason. */
intel_kernel *intel_listed(const char *listing, uint32_t registers, char *error, size_t size);
/* The kernel around the body; NULL, with the reason. r0 is untouched, r1.4 and r1.5 (q) point to
   all inputs and results, r2.0 is the thread's number. */
intel_kernel *intel_of_body(const char *body, char *error, size_t size);
/* Runs one group; false with the emulator's reason. */
bool intel_run_listed(const intel_kernel *k, uint32_t threads, const void *in, void *out,
                      char *error, size_t size);

#endif
