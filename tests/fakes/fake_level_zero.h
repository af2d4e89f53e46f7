/* tests/fakes/fake_level_zero.h - what the files of the test-only Level Zero driver share;
   independent of backends/. */
#ifndef CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_H
#define CLB_TESTS_FAKES_FAKE_LEVEL_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#include "tests/fakes/fake_driver.h"

extern __attribute__((visibility("default"))) fake_driver fake_level_zero;

/* ---- what runs kernels: fake_level_zero_run.c, on a CPU through OpenCL; tests/intel/level_zero.c,
   as machine code in an emulator ---- */

enum { FAKE_PARAMETERS = 128 };
typedef struct {
  char name[64];
  uint32_t sub_group;  /* required size, or 0 */
  uint32_t local_size; /* required work-items of a group, or 0 */
  int n_parameters;
  int bytes[FAKE_PARAMETERS]; /* of a scalar; 0: a pointer to global memory */
} fake_signature;

typedef union {
  void *pointer;
  uint8_t bytes[8];
} fake_argument;

uint32_t fake_vendor(void); /* whose compiler it is: 0x8086 for Intel */
void *fake_memory_new(size_t bytes);
void fake_memory_free(void *memory);
typedef struct {
  const void *spirv, *binary; /* binary: what fake_program_binary gave, or NULL */
  size_t bytes, binary_bytes;
  const char *options; /* NULL with a binary */
  const char *kernel;
} fake_source;
/* A program, or NULL and a log. */
void *fake_program_new(const fake_source *from, char *log, size_t size);
/* What need not be compiled again, or NULL. */
const void *fake_program_binary(void *program, size_t *bytes);
void fake_program_free(void *program);
void *fake_kernel_new(void *program, const char *name);
void fake_kernel_free(void *kernel);
bool fake_kernel_run(void *kernel, const fake_signature *s, const fake_argument *args,
                     uint32_t groups, uint32_t group_size);

/* ---- objects ---- */

enum {
  LARGE = 1 << 20,
  MAX_COMMANDS = 64
}; /* most bytes of an allocation without relaxed limits */

typedef enum { CONTEXT, POOL, EVENT, LIST, QUEUE, MODULE, LOG, KERNEL, MEMORY } kind;

typedef enum { BARRIER, COPY, LAUNCH, RESET } command_kind;
typedef struct object object;
typedef struct {
  command_kind kind;
  object *event, *kernel; /* event: signalled when done */
  object *other;          /* event that BARRIER waits for, or that RESET resets */
  void *to;
  const void *from;
  size_t bytes;
  uint32_t groups;
  fake_argument args[FAKE_PARAMETERS];
} command;

struct object {
  object *next, *parent; /* the parent must outlive it */
  kind kind;
  ze_device_handle_t device;
  union {
    struct {
      uint32_t count;
      uint64_t used;
    }; /* POOL */
    struct {
      bool signalled;
      uint32_t index;
    }; /* EVENT */
    struct {
      command *commands;
      int n, capacity, at;
      bool immediate, closed;
    }; /* LIST; at: what runs next, if immediate */
    struct {
      object *lists[MAX_COMMANDS];
      int n_lists, list_at;
    }; /* QUEUE; list_at: what runs next of the first */
    struct {
      void *program;
      uint8_t *spirv;
      size_t bytes;
      bool large, registers;
    };              /* MODULE */
    char log[2000]; /* LOG */
    struct {
      void *run;
      fake_argument args[FAKE_PARAMETERS];
      bool set[FAKE_PARAMETERS];
      uint32_t size;
    }; /* KERNEL */
    struct {
      void *base;
      size_t length;
      ze_memory_type_t type;
    }; /* MEMORY */
  };
  fake_signature signature; /* MODULE, KERNEL */
};

/* ---- fake_level_zero.c ---- */

extern object *fake_objects; /* all live objects */

/* Counts a broken rule, and returns r. */
__attribute__((format(printf, 2, 3))) ze_result_t fake_broken(ze_result_t r, const char *format,
                                                              ...);
/* Enters a function; returns its injected failure, or success. fake_end leaves it. */
ze_result_t fake_begin(const char *function);
ze_result_t fake_end(ze_result_t r);
object *fake_made(kind k, object *parent, ze_device_handle_t device);
ze_result_t fake_check(const void *handle, kind k);
ze_result_t fake_check_device(const void *device);
ze_result_t fake_check_pointer(const void *p, const char *what);
ze_result_t fake_check_struct(const void *desc, ze_structure_type_t stype, const char *what);
/* Takes an object out of the list; nothing may still need it. */
ze_result_t fake_destroy(object *o, kind k);
/* Destroys an object that owns nothing any more; also when made to fail, so that nothing is left.
 */
ze_result_t fake_destroy_plain(const char *function, void *handle, kind k);
/* The live allocation that contains p. */
object *fake_memory_at(const void *p);
const object *fake_context_of(const object *o);

/* ---- fake_level_zero_work.c ---- */

ze_result_t ZE_APICALL fake_event_wait(ze_event_handle_t e, uint64_t timeout);

/* Defines the function that gives the loader one table. */
#define TABLE(name, table, ...)                                                                    \
  __attribute__((visibility("default")))                                                           \
  ze_result_t ZE_APICALL zeGet##name##ProcAddrTable(ze_api_version_t version, table *out) {        \
    (void)version;                                                                                 \
    *out = (table){__VA_ARGS__};                                                                   \
    return ZE_RESULT_SUCCESS;                                                                      \
  }

#endif
