/* tests/intel/iga.c - Intel's assembler and disassembler, libiga64.so.1, in this process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/intel/intel.h"

enum { XE_HPC = 0x01000004, HEX_FLOATS = 4, PRINT_PC = 8, TOKENS = INTEL_TOKENS };

typedef struct {
  size_t bytes;
  uint32_t platform;
} context_options;

static struct {
  int (*create)(const context_options *o, void **context);
  int (*disassemble)(void *context, const uint32_t *options, const void *code, uint32_t bytes,
                     const char *(*label)(int32_t, void *), void *user, char **text);
  int (*assemble)(void *context, const uint32_t *options, const char *text, void **code,
                  uint32_t *bytes);
  int (*errors)(void *context, const void **errors, uint32_t *n);
  int (*release)(void *context);
} iga;

static bool open_iga(void **context) {
  static void *library;
  if (!library && (library = dlopen("libiga64.so.1", RTLD_NOW | RTLD_LOCAL))) {
    *(void **)&iga.create = dlsym(library, "iga_context_create");
    *(void **)&iga.disassemble = dlsym(library, "iga_context_disassemble");
    *(void **)&iga.assemble = dlsym(library, "iga_context_assemble");
    *(void **)&iga.errors = dlsym(library, "iga_context_get_errors");
    *(void **)&iga.release = dlsym(library, "iga_context_release");
  }
  const context_options o = {sizeof o, XE_HPC};
  return library && iga.create && iga.disassemble && iga.assemble && iga.errors && iga.release &&
         !iga.create(&o, context);
}

char *intel_disassemble(const void *code, size_t bytes) {
  const uint32_t options[6] = {sizeof options, HEX_FLOATS | PRINT_PC};
  void *context;
  char *text = NULL, *copy = NULL;
  if (!open_iga(&context)) return NULL;
  if (!iga.disassemble(context, options, code, (uint32_t)bytes, NULL, NULL, &text) && text)
    copy = strdup(text); /* the context owns it */
  iga.release(context);
  return copy;
}

typedef struct {
  uint32_t line, column, offset, extent;
  const char *message;
} diagnostic;

void *intel_assemble(const char *text, size_t *bytes, char *error, size_t size) {
  const uint32_t options[8] = {sizeof options, 0, 0, 0, 0, 0, TOKENS, 0};
  void *context, *code = NULL, *copy = NULL;
  uint32_t n = 0;
  if (!open_iga(&context)) return snprintf(error, size, "no libiga64.so.1"), NULL;
  if (!iga.assemble(context, options, text, &code, &n) && code && (copy = malloc(n ? n : 1))) {
    memcpy(copy, code, n);
    *bytes = n;
  } else {
    const void *all = NULL;
    uint32_t count = 0;
    snprintf(error, size, "libiga64.so.1 refuses the text");
    if (!iga.errors(context, &all, &count) && count && all) {
      const diagnostic *first = all;
      snprintf(error, size, "line %u, column %u: %s", first->line, first->column, first->message);
    }
  }
  iga.release(context);
  return copy;
}
