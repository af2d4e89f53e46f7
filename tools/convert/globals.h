/* tools/convert/globals.h - the globals that a pickle may name, and what calling one means here.
   None is ever called. */
#ifndef CLB_TOOLS_CONVERT_GLOBALS_H
#define CLB_TOOLS_CONVERT_GLOBALS_H

#include <stdbool.h>

typedef enum {
  CLASS, /* of TorchScript: made without arguments, built from a dict */
  STORAGE_TYPE,
  MAKES_TENSOR,
  MAKES_DICT,
  SAME,  /* gives its first argument */
  RECORD /* anything else: keeps its name, arguments and state */
} global_use;

/* name: "module name"; false if no model needs it. */
bool find_global(const char *name, global_use *use);

#endif
