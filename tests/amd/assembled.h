/* tests/amd/assembled.h - test kernels in AMD's assembly: v[2:9] hold eight words of each lane,
   v[10:13] are stored as its results. */
#ifndef CLB_TESTS_AMD_ASSEMBLED_H
#define CLB_TESTS_AMD_ASSEMBLED_H

#include "tests/amd/amd.h"

enum { AMD_INPUTS = 8, AMD_RESULTS = 4, AMD_TEST_LDS = 4096, AMD_TEST_SCRATCH = 64 };

typedef struct {
  const char *name, *body; /* $v $e $b $s $t: vcc, exec, b64, s[12:13], s[14:15] of waves of 64;
                              vcc_lo, exec_lo, b32, s12, s14 of 32 */
} amd_source;

/* NULL, with a message on stderr, if the compiler is missing or refuses. */
amd_module *amd_assemble(const char *target, const amd_source *sources, int n);
/* Runs one group of that many threads; false with the emulator's reason. */
bool amd_run_assembled(const amd_module *m, const char *name, uint32_t threads, const void *in,
                       void *out, char *error, size_t size);

#endif
