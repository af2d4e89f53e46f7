/* tests/dynamics/model_folder.h - a folder with a made model, a few atoms, and a cache of kernels.
 */
#ifndef CLB_TESTS_DYNAMICS_MODEL_FOLDER_H
#define CLB_TESTS_DYNAMICS_MODEL_FOLDER_H

#include "tests/command.h"
#include "tests/models/model_made.h"

/* Kernels are kept in the folder, unless the environment names another. */
static inline int make_work(void **state) {
  const char *kernels = getenv("CLB_CACHE_DIR");
  if (make_folder(state)) return -1;
  if ((!kernels || !strcmp(kernels, "off")) && setenv("CLB_CACHE_DIR", work_folder, 1)) return -1;
  made_write(&made_models[0], "model", NULL, NULL);
#define BOX(pbc)                                                                                   \
  "6\nLattice=\"4.3 0 0 0.2 4.1 0 0 0.1 4.4\" Properties=species:S:1:pos:R:3 pbc=\"" pbc "\"\n"    \
  "O 0.1 0.2 0.3\nH 1.1 0.2 0.1\nH -0.2 1.1 0.4\nO 2.2 2.3 2.1\nH 3.1 2.5 2.2\nH 2.0 2.2 3.1\n"
  put_text("atoms.xyz", BOX("T T T"));
  put_text("slab.xyz", BOX("T T F"));
  put_text("pair.xyz", "2\nProperties=species:S:1:pos:R:3\nO 0 0 0\nH 0 0 1.1\n");
  return 0;
}

#endif
