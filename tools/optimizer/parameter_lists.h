/* tools/optimizer/parameter_lists.h - lists of parameters that optimizers are timed on. */
#ifndef CLB_TOOLS_OPTIMIZER_PARAMETER_LISTS_H
#define CLB_TOOLS_OPTIMIZER_PARAMETER_LISTS_H

#include <stdint.h>

enum { PARAMETER_LISTS = 6 };

typedef struct {
  const char *name, *what;
  int64_t n, all, cap; /* tensors, numbers in them */
  int64_t (*shape)[2];
} parameter_list;

extern const char *const parameter_list_names[PARAMETER_LISTS];
/* Release with parameter_list_free. */
parameter_list parameter_list_make(int which);
void parameter_list_free(parameter_list *list);

#endif
