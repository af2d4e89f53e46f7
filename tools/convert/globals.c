/* tools/convert/globals.c - the globals that a pickle may name, and what calling one means here. */
#include <string.h>

#include "tools/convert/pickle.h"

static const struct {
  const char *name;
  global_use use;
} globals[] = {{"torch FloatStorage", STORAGE_TYPE},
               {"torch DoubleStorage", STORAGE_TYPE},
               {"torch LongStorage", STORAGE_TYPE},
               {"torch IntStorage", STORAGE_TYPE},
               {"torch BoolStorage", STORAGE_TYPE},
               {"torch._utils _rebuild_tensor_v2", MAKES_TENSOR},
               {"torch._utils _rebuild_parameter", SAME},
               {"collections OrderedDict", MAKES_DICT},
               {"torch.jit._pickle restore_type_tag", SAME},
               {"torch.jit._pickle build_intlist", SAME},
               {"torch.jit._pickle build_doublelist", SAME},
               {"torch.jit._pickle build_boollist", SAME},
               {"torch device", RECORD},
               {"torch float32", RECORD},
               {"torch float64", RECORD},
               {"_codecs encode", RECORD},
               {"collections Counter", RECORD},
               {"__builtin__ set", RECORD},
               {"builtins set", RECORD},
               {"__builtin__ getattr", RECORD}, /* a method of an object */
               {"builtins getattr", RECORD},
               {"builtins slice", RECORD},
               {"torch tanh", RECORD},
               {"torch abs", RECORD}};

/* Programs whose modules are pickled as objects. */
static const struct {
  const char *start;
  global_use use;
} modules[] = {{"__torch__ ", CLASS},
               {"__torch__.", CLASS},
               {"mace.", RECORD},
               {"nequip.", RECORD},
               {"allegro.", RECORD},
               {"e3nn.", RECORD},
               {"torch.nn.", RECORD},
               {"torch.fx.", RECORD},
               {"numpy ", RECORD},
               {"numpy.", RECORD},
               {"cuequivariance", RECORD},
               {"openequivariance", RECORD},
               {"fairchem.core.units.mlip_unit.api.inference MLIPInferenceCheckpoint", RECORD}};

bool find_global(const char *name, global_use *use) {
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (!strncmp(name, modules[i].start, strlen(modules[i].start)))
      return *use = modules[i].use, true;
  for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
    if (!strcmp(name, globals[i].name)) return *use = globals[i].use, true;
  return false;
}
