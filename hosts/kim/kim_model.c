/* kim_model.c - a portable model of KIM without a compiler: one library for all models. Copied into
   a folder it is the model of the folder's name; its parameters are the file clebsch.txt beside it.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/kim/kim_item.h"

enum { MOST = 1 << 16 };

int kim_shared_library_schema_version = KIM_SCHEMA;
kim_item kim_shared_library_schema;

static char name[PATH_MAX], text[PATH_MAX + MOST];
static kim_file settings = {KIM_SETTINGS, 0, (const unsigned char *)text};

/* The settings as they are, after a line that says where they are from: KIM copies them elsewhere.
   The driver says what is wrong with them. */
static void read_settings(const char *folder) {
  char path[PATH_MAX + sizeof KIM_SETTINGS];
  int n = snprintf(text, PATH_MAX + 8, "folder %s\n", folder);
  snprintf(path, sizeof path, "%s/" KIM_SETTINGS, folder);
  FILE *in = fopen(path, "r");
  if (in) {
    n += (int)fread(text + n, 1, sizeof text - (size_t)n, in);
    fclose(in);
  }
  settings.length = (unsigned int)n;
}

__attribute__((constructor)) static void fill(void) {
  Dl_info self;
  char path[PATH_MAX], copy[PATH_MAX];
  if (!dladdr(&kim_shared_library_schema, &self) || !realpath(self.dli_fname, path)) return;
  memcpy(copy, path, sizeof copy);
  const char *folder = dirname(path);
  snprintf(name, sizeof name, "%s", basename(dirname(copy)));
  read_settings(folder);
  kim_shared_library_schema = (kim_item){.type = KIM_COLLECTION_ITEM_TYPE_portableModel,
                                         .name = name,
                                         .language = KIM_LANGUAGE_NAME_cpp,
                                         .driver = KIM_DRIVER,
                                         .n_parameters = 1,
                                         .parameters = &settings};
}
