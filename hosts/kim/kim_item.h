/* kim_item.h - what KIM's API looks for in a shared library: KIM_SharedLibrarySchema.hpp in C, in
   its version 2. KIM's kinds of items are known only once its library is there, so that both items
   fill theirs when they are loaded. */
#ifndef CLB_HOSTS_KIM_KIM_ITEM_H
#define CLB_HOSTS_KIM_KIM_ITEM_H

#include <KIM_CollectionItemType.h>
#include <KIM_FunctionTypes.h>
#include <KIM_LanguageName.h>

/* The name of the driver: of its folder, and what models say. */
#define KIM_DRIVER "Clebsch"
/* The parameter file of a model. */
#define KIM_SETTINGS "clebsch.txt"

enum { KIM_SCHEMA = 2 };

typedef struct {
  const char *name;
  unsigned int length;
  const unsigned char *bytes;
} kim_file;

typedef struct {
  KIM_CollectionItemType type;
  const char *name;
  KIM_LanguageName language; /* of create */
  KIM_Function *create;
  const char *driver;
  const kim_file *specification; /* of simulator models */
  int n_parameters;
  const kim_file *parameters;
  int n_metadata;
  const kim_file *metadata;
} kim_item;

#define KIM_SEEN __attribute__((visibility("default")))

extern KIM_SEEN int kim_shared_library_schema_version;
extern KIM_SEEN kim_item kim_shared_library_schema;

#endif
