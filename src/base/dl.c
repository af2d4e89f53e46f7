/* src/base/dl.c - drivers opened at run time. */
#define _GNU_SOURCE
#include "src/base/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Drivers stay loaded: those that contain LLVM abort the process when they are loaded a second
 time. */
void *clb_dl_open(const char *const *names) {
  void *library = NULL;
  for (; *names && !library; names++)
    library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return library;
}

void *clb_dl_open_isolated(const char *const *names) {
  /* The process has one namespace for such libraries (the loader supports only few); 0: none yet.
     Two threads may create two. */
  static _Atomic Lmid_t apart;
  void *library = NULL;
  for (; *names && !library; names++)
    library = dlmopen(apart ? apart : LM_ID_NEWLM, *names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  /* Their C library keeps the address of our environment, which our setenv may free: they get one
     that is never freed. */
  static char *nothing[] = {NULL};
  char ***environment = library ? dlsym(library, "environ") : NULL;
  if (environment) *environment = nothing;
  Lmid_t id;
  if (library && !apart && !dlinfo(library, RTLD_DI_LMID, &id)) apart = id;
  return library;
}

bool clb_dl_lacked_memory(const char *sentence) {
  return sentence && (strstr(sentence, strerror(ENOMEM)) || strstr(sentence, "out of memory"));
}

void clb_dl_close(void *library) {
  if (library) dlclose(library);
}

const char *clb_dl_symbols(void *library, const clb_symbol *symbols, size_t n, void *table) {
  for (size_t i = 0; i < n; i++) {
    void *address = dlsym(library, symbols[i].name);
    if (!address && !symbols[i].optional) return symbols[i].name;
    memcpy((char *)table + symbols[i].offset, &address, sizeof address);
  }
  return NULL;
}
