/* tools/convert/pickle.h - reads a pickle that PyTorch wrote into values: a restricted
   interpreter that executes nothing. */
#ifndef CLB_TOOLS_CONVERT_PICKLE_H
#define CLB_TOOLS_CONVERT_PICKLE_H

#include "tools/convert/convert.h"

typedef enum {
  PICKLE_NONE,
  PICKLE_BOOL,
  PICKLE_WHOLE,
  PICKLE_REAL,
  PICKLE_TEXT,
  PICKLE_BYTES,  /* bytes, or a text with 0 bytes in it */
  PICKLE_GLOBAL, /* text: "module name" */
  PICKLE_TUPLE,
  PICKLE_LIST,
  PICKLE_DICT,    /* items: key, value, key, value, ... */
  PICKLE_STORAGE, /* items: "storage", the global of its type, key, device, number of elements */
  PICKLE_TENSOR,  /* items: storage, offset, shape, stride, ... */
  PICKLE_OBJECT   /* items: the global of its class, the tuple of its arguments, and, once it is
                     built, its state: of a module the dict of its attributes */
} pickle_kind;

typedef struct pickle_value pickle_value;
struct pickle_value {
  pickle_kind kind;
  size_t n, cap; /* of items; n: bytes of a text, too */
  union {
    int64_t whole; /* also for a bool: 0 or 1 */
    double real;
    const char *text;
    const pickle_value **items; /* may contain the value itself: never traverse them without a
                                   limit */
  };
};

/* Owns the values; initialize to {0}. */
typedef struct {
  struct pickle_block *blocks;
  size_t values;
} pickle_arena;

/* Reads the pickle `name` of the file at `path`; values are valid until pickle_free. Refuses
   opcodes and globals that no model needs. */
const pickle_value *pickle_read(pickle_arena *arena, const char *path, const char *name,
                                const unsigned char *bytes, size_t n);
void pickle_free(pickle_arena *arena);

/* Memory that pickle_free frees. */
void *pickle_memory(pickle_arena *arena, size_t bytes);

/* An entry of a dict; NULL if there is none, or if it is no dict. */
const pickle_value *pickle_entry(const pickle_value *dict, const char *key);

/* ---- globals: none is ever called ---- */

typedef enum {
  CLASS, /* of TorchScript: made without arguments, built from a dict */
  STORAGE_TYPE,
  MAKES_TENSOR,
  MAKES_DICT,
  SAME,  /* gives its first argument */
  RECORD /* anything else: keeps its name, arguments and state */
} global_use;

/* What calling a global ("module name") means here; false if no model needs it. */
bool find_global(const char *name, global_use *use);

#endif
