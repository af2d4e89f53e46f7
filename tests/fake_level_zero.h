/* fake_level_zero.h - what the files of the test-only Level Zero driver share; independent of backends/. */
#ifndef FAKE_LEVEL_ZERO_H
#define FAKE_LEVEL_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

/* For the test: how often the rules of Level Zero were broken (and how, the first time), how many objects are alive, and whether the
   call that CLB_TEST_FAIL names has come. */
__attribute__((visibility("default"))) int fake_level_zero_violations(const char **first);
__attribute__((visibility("default"))) int fake_level_zero_live(void);
__attribute__((visibility("default"))) int fake_level_zero_failed(void);

/* ---- fake_level_zero_run.c: SPIR-V words, run on a CPU through OpenCL ---- */

enum { FAKE_PARAMETERS = 128 };
typedef struct {
  char name[64];
  uint32_t sub_group;                 /* required size, or 0 */
  uint32_t local_size;                /* required work-items of a group, or 0 */
  int n_parameters;
  int bytes[FAKE_PARAMETERS];         /* of a scalar; 0: a pointer to global memory */
} fake_signature;

/* Reads the one kernel of a module.  false: not a module, or not one kernel. */
bool fake_read_signature(const uint32_t *words, size_t n, fake_signature *s);

typedef union {
  void *pointer;
  uint8_t bytes[8];
} fake_argument;

void *fake_memory_new(size_t bytes);
void fake_memory_free(void *memory);
/* A program, or NULL and a log. */
void *fake_program_new(const void *spirv, size_t bytes, char *log, size_t size);
void fake_program_free(void *program);
void *fake_kernel_new(void *program, const char *name);
void fake_kernel_free(void *kernel);
bool fake_kernel_run(void *kernel, const fake_signature *s, const fake_argument *args, uint32_t groups, uint32_t group_size);

#endif
