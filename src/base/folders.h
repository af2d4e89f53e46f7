/* src/base/folders.h - folders of the user's, and models by their names in one of them. */
#ifndef CLB_SRC_BASE_FOLDERS_H
#define CLB_SRC_BASE_FOLDERS_H

#include "src/base/text.h"

/* Adds $OWN, else $XDG/clebsch, else ~/BELOW_HOME/clebsch; nothing where none of them is set. */
void clb_user_folder(clb_text *path, const char *own, const char *xdg, const char *below_home);
/* All folders that a file's path names; the first errno other than EEXIST. */
int clb_make_folders(const char *path);

/* Models that have a name: NAME.safetensors in this folder, $CLB_MODELS_DIR or one of the user's
   data. */
void clb_models_folder(clb_text *path);
/* Whether a word could be one: letters, digits, '-' and '_'. */
bool clb_is_model_name(const char *word);
/* The file of a name, in small letters, whether there is one or not. false: there is no folder. */
bool clb_model_path(clb_text *path, const char *name);
/* What a user means by a model: a file, else a name whose file is there, else as asked. */
void clb_model_file(clb_text *path, const char *asked);

#endif
