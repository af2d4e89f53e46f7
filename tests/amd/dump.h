/* tests/amd/dump.h - launches as files: AMD_EMULATOR_DUMP names a folder. */
#ifndef CLB_TESTS_AMD_DUMP_H
#define CLB_TESTS_AMD_DUMP_H

#include "tests/amd/amd.h"

typedef struct amd_dump amd_dump;

const char *amd_dump_folder(void); /* NULL: nothing is to be written */
void amd_write_code(const char *folder, const char *target, int number, const void *binary);
/* NULL where nothing is to be written; amd_dump_after accepts it. */
amd_dump *amd_dump_before(const amd_module *m, const amd_kernel *k, uint32_t groups,
                          uint32_t threads, uint32_t local, void **params);
void amd_dump_after(amd_dump *d);

#endif
