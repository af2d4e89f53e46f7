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

/* The environment of isolated libraries. Their C library would keep the address of ours, which our
   setenv may free. BLAS libraries read in theirs, while they are loaded, that they get no threads.
 */
static char *isolated_environment[] = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
                                       "BLIS_NUM_THREADS=1", NULL};

/* A namespace with only a C library. */
static bool make_namespace(Lmid_t *made) {
  void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  char ***environment = libc ? dlsym(libc, "environ") : NULL;
  if (environment) *environment = isolated_environment;
  return environment && !dlinfo(libc, RTLD_DI_LMID, made);
}

void *clb_dl_open_isolated(const char *const *names) {
  /* The process has one namespace for such libraries (the loader supports only few); 0: none yet.
     Two threads may create two. */
  static _Atomic Lmid_t apart;
  void *library = NULL;
  Lmid_t made;
  if (!apart && make_namespace(&made)) apart = made;
  for (; *names && !library && apart; names++)
    library = dlmopen(apart, *names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return library;
}

bool clb_dl_lacked_memory(const char *message) {
  return message && (strstr(message, strerror(ENOMEM)) || strstr(message, "out of memory"));
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
