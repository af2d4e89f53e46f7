/* tools/fetch/known_models.c - models that have a name: published ones, and those in the user's
   folder. */
#include "tools/fetch/known_models.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/base/folders.h"
#include "tools/cli/tool.h"

const known_model known_models[] = {
#define KNOWN(...) {__VA_ARGS__, NULL, NULL, NULL},
#define IN_WHEEL(name, file, sum, modality, about)                                                 \
  {name,                                                                                           \
   SEVENN,                                                                                         \
   "9378f7df2b75fe83274483a5f804790ae1023dd22ddeb6a48c1a03de97e22620",                             \
   43193213,                                                                                       \
   "MIT",                                                                                          \
   89,                                                                                             \
   about,                                                                                          \
   "sevenn/pretrained_potentials/" file,                                                           \
   sum,                                                                                            \
   modality},
#include "tools/fetch/known_models.def"
#undef KNOWN
#undef IN_WHEEL
};
const int n_known_models = sizeof known_models / sizeof *known_models;

const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const known_model *known(const char *name) {
  for (int i = 0; i < n_known_models; i++)
    if (!strcasecmp(known_models[i].name, name)) return &known_models[i];
  return NULL;
}

static const char *like(const char *name) {
  const char *names[sizeof known_models / sizeof *known_models];
  for (int i = 0; i < n_known_models; i++) names[i] = known_models[i].name;
  return nearest_name(name, names, n_known_models);
}

const known_model *known_model_named(const char *name) {
  const known_model *k = known(name);
  const char *near = k ? NULL : like(name);
  if (near) warn("no model '%s' is known; did you mean %s?", name, near);
  else if (!k) warn("no model '%s' is known; `clebsch models` lists them", name);
  return k;
}

void find_model(const char **model) {
  static clb_text found;
  clb_text path = {0};
  clb_model_file(&path, *model);
  if (path.failed) fatal("out of memory");
  const bool other = strcmp(path.s, *model) != 0;
  clb_text_free(other ? &found : &path);
  if (other) found = path, *model = found.s;
}

bool model_is_there(const char *model) {
  if (!clb_is_model_name(model) || !access(model, F_OK)) return true;
  const known_model *k = known(model);
  const char *near = k ? NULL : like(model);
  if (k) warn("%s: not here yet; `clebsch fetch %s` gets this model", model, k->name);
  else if (near) warn("%s: No such file or model; did you mean %s?", model, near);
  else warn("%s: No such file or model; `clebsch models` lists names", model);
  return false;
}
