/* src/base/cache_folder.h - files kept between runs: in $CLB_CACHE_DIR, else
   $XDG_CACHE_HOME/clebsch, else ~/.cache/clebsch; "off" disables. A file is written under a
   temporary name and renamed. */
#ifndef CLB_SRC_BASE_CACHE_FOLDER_H
#define CLB_SRC_BASE_CACHE_FOLDER_H

#include <stdbool.h>

#include "src/base/text.h"

/* The cache folder; empty if there is none. */
void clb_cache_folder(clb_text *path);
bool clb_cache_is_off(void); /* there is none, as the user wants it */
/* The path of a file in the folder; false if there is no folder. */
bool clb_cache_path(const char *name, clb_text *path);
/* Writes the concatenated parts to a file, creating its folders; a reader sees the whole file or
   none. On false, errno is set. */
bool clb_cache_write(const char *path, const void *const *parts, const size_t *bytes, int n);

/* The file whose bytes processes lock while they compile; it is empty. */
#define CLB_CACHE_LOCKS ".locks"

/* The kind of a file in the folder, by its name. TEMPORARY: a file being written: the final name, a
   dot, and a unique suffix. */
typedef enum { CLB_CACHE_FOREIGN, CLB_CACHE_LASTING, CLB_CACHE_TEMPORARY } clb_cache_name;
clb_cache_name clb_cache_name_of(const char *name);
/* Removes temporary files left behind by killed processes. */
void clb_cache_sweep(void);

#endif
