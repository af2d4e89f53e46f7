/* tests/fakes/find_fakes.h - puts the stand-ins for drivers in the place of the real ones. */
#ifndef CLB_TESTS_FAKES_FIND_FAKES_H
#define CLB_TESTS_FAKES_FIND_FAKES_H

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "tests/fakes/fake_driver.h"

/* A function of a library. */
static inline void fake_function(void *library, const char *name, void *to) {
  void *address = library ? dlsym(library, name) : NULL;
  memcpy(to, &address, sizeof address);
}

/* Opens stand-ins under the names of the real libraries; each does what `state` says.  The
   environment's `variable` has their paths, separated by ':'.  Returns the first, or NULL if any is
   missing. */
static inline void *connect_fakes(const char *variable, const char *symbol, void *state) {
  const char *paths = getenv(variable);
  void *first = NULL;
  for (char path[4096]; paths && *paths; paths += *paths == ':') {
    const int length = (int)strcspn(paths, ":");
    snprintf(path, sizeof path, "%.*s", length, paths);
    paths += length;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*connect)(void *) = NULL;
    fake_function(library, symbol, &connect);
    if (!connect) return NULL;
    connect(state);
    if (!first) first = library;
  }
  return first;
}

/* Those of NVIDIA and AMD; returns that of CUDA's driver. */
static inline void *find_fake_gpus(fake_driver *state) {
  return connect_fakes("CLB_TEST_FAKE_GPU", "fake_gpu_use", state);
}

/* Opens that of OpenCL's loader under the name of the real one, and tells it the real one's path;
 *genuine: the real one.  NULL: there is no OpenCL. */
static inline fake_driver *find_fake_opencl(void **genuine) {
  const char *path = getenv("CLB_TEST_FAKE_OPENCL");
  struct link_map *map = NULL;
  void *real = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!path || !real || dlinfo(real, RTLD_DI_LINKMAP, &map)) return NULL;
  setenv("FAKE_OPENCL_GENUINE", map->l_name, 1);
  dlclose(real);
  void *fake = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *genuine = fake ? dlopen(getenv("FAKE_OPENCL_GENUINE"), RTLD_NOW | RTLD_LOCAL) : NULL;
  return *genuine ? dlsym(fake, "fake_opencl") : NULL;
}

/* Level Zero's, which the real loader opens; *loader: that.  NULL: there is no loader. */
static inline fake_driver *find_fake_level_zero(void **loader) {
  const char *path = getenv("CLB_TEST_FAKE_LEVEL_ZERO");
  if (!path) return NULL;
  setenv("ZE_ENABLE_ALT_DRIVERS", path, 1);
  void *library = dlopen(path, RTLD_NOW);
  *loader = library ? dlopen("libze_loader.so.1", RTLD_NOW) : NULL;
  return *loader ? dlsym(library, "fake_level_zero") : NULL;
}

#endif
