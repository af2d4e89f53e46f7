/* kim_settings.h - the parameter file of a model of KIM. */
#ifndef CLB_HOSTS_KIM_KIM_SETTINGS_H
#define CLB_HOSTS_KIM_KIM_SETTINGS_H

#include <clebsch/model.h>
#include <limits.h>
#include <stdbool.h>

typedef struct {
  char model[2 * PATH_MAX]; /* the path */
  clb_model_options options;
} kim_settings;

/* Reads lines of a word and its value. folder: where the model is, unless the file says another
   one. false: a sentence in error. */
bool kim_settings_read(const char *path, const char *folder, kim_settings *s, char *error,
                       size_t size);

#endif
