/* tests/machine/machine.h - what the emulators of machine code share: memory between guard pages,
   rubbish, and groups whose threads are interleaved at random between barriers. */
#ifndef CLB_TESTS_MACHINE_MACHINE_H
#define CLB_TESTS_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory ---- */

typedef struct {
  char *at, *map;
  size_t bytes, mapped;
  bool constant; /* kernels may only read it */
} machine_block;

/* Filled with rubbish; its end lies against a page that faults on any access. */
void *machine_alloc(size_t bytes);
bool machine_free(void *at);
const machine_block *machine_find(uint64_t address);
const machine_block *machine_find_below(uint64_t address); /* the last one that begins at or before
                                                              it */
/* Memory that is not ours to free: a code object's image, a launch's arguments. */
bool machine_lend(const void *at, size_t bytes);
void machine_take_back(const void *at);
/* Where the bytes are, or NULL with the reason. `last` is the block of the last access. */
unsigned char *machine_access(uint64_t address, uint32_t bytes, bool writes,
                              const machine_block **last, char *why, size_t size);

/* ---- rubbish ---- */

enum { MACHINE_JUNK = 1 << 15 };          /* words */
uint64_t machine_draw(uint64_t *random);  /* the next random number */
uint32_t *machine_junk(uint64_t *random); /* half of it are NaNs, whichever type reads it */

/* ---- a group ---- */

enum { MACHINE_RUNS, MACHINE_WAITS, MACHINE_ENDED, MACHINE_FAILED };
enum { MACHINE_MAX_THREADS = 64 };

typedef struct {
  int n;
  int *state[MACHINE_MAX_THREADS];
  void *thread[MACHINE_MAX_THREADS];
  void (*advance)(void *thread, uint64_t steps);
  /* All wait: lets them go on, or makes one of them fail. */
  void (*release)(void *const *thread, int n);
  bool in_order; /* each runs until it waits, the first one first */
} machine_group;

/* Runs until all threads have ended; false: one failed. */
bool machine_run_group(const machine_group *g, uint64_t *random);

#endif
