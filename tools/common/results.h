/* tools/common/results.h - a file of results: JSON with a head, devices, and results, which later
   runs of the same command continue. */
#ifndef CLB_TOOLS_COMMON_RESULTS_H
#define CLB_TOOLS_COMMON_RESULTS_H

#include <clebsch/clebsch.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct {
  const char *path;                 /* NULL: none is written */
  int digits;                       /* of reals */
  bool found;                       /* the file was there */
  json_t *root, *devices, *results; /* members of root */
} results_file;

/* The following print a message when they fail. Reads the file, if it exists and is not to be
   overwritten: then "format", "clebsch" and the members of `head` (taken) must be what it says. */
bool results_open(results_file *f, const char *path, const char *format, json_t *head, bool force);
/* The entry of a device: a new one (taken), or that of its name, which must be the same device and
   driver. NULL: it is not. */
json_t *results_device(results_file *f, json_t *device);
bool results_write(results_file *f);
void results_close(results_file *f);

/* The place of the first result from `first` on that has the members of `head`; -1: none. */
int results_find(const results_file *f, const json_t *head, int first);

#endif
