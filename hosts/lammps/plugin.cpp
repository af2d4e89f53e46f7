/* plugin.cpp - the plugin clebschplugin.so: `plugin load`, or LAMMPS_PLUGIN_PATH. */
#include "pair_clebsch.h"

using namespace LAMMPS_NS;

/* What LAMMPS' plugin interface expects; the header that says so is not among those that wheels
   install. */
namespace {
struct description {
  const char *version, *style, *name, *info, *author;
  void *(*create)(LAMMPS *);
  void *handle;
};

void *create(LAMMPS *lmp) { return static_cast<Pair *>(new PairClebsch(lmp)); }
}    // namespace

extern "C" __attribute__((visibility("default"))) void lammpsplugin_init(void *lmp, void *handle,
                                                                         void *register_plugin)
{
  description d = {};
  d.version = CLEBSCH_LAMMPS_VERSION;
  d.style = "pair";
  d.name = "clebsch";
  d.info = "machine-learned potentials through Clebsch " CLB_VERSION;
  d.author = "Clebsch";
  d.create = create;
  d.handle = handle;
  reinterpret_cast<void (*)(description *, void *)>(register_plugin)(&d, lmp);
}
