/* tools/train/train_presets.h - what a run does where options do not say. */
#ifndef CLB_TOOLS_TRAIN_TRAIN_PRESETS_H
#define CLB_TOOLS_TRAIN_TRAIN_PRESETS_H

#include "tools/train/train_options.h"

enum { PRESETS = 4 };
extern const char *const preset_names[PRESETS];

/* Fills all that was not given; `like`: of preset_names, or NULL. */
void presets_fill(train_arguments *a);

#endif
