/* src/base/cache_folder.h - files kept between runs: in $CLB_CACHE_DIR, else
   $XDG_CACHE_HOME/clebsch, else ~/.cache/clebsch; "off" disables. A file is written under a
   temporary name and renamed. */
#ifndef CLB_SRC_BASE_CACHE_FOLDER_H
#define CLB_SRC_BASE_CACHE_FOLDER_H

#include <stdbool.h>

#include "src/base/text.h"

/* The folder; empty: there is none. */
void clb_cache_folder(clb_text *path);
/* The path of a file in the folder; false: there is none. */
bool clb_cache_path(const char *name, clb_text *path);
/* A file of these parts, in folders that are made; a reader finds it whole or not at all.  false:
   errno. */
bool clb_cache_write(const char *path, const void *const *parts, const size_t *bytes, int n);

/* What a file of the folder is, by its name.  TEMPORARY: it was being written: a lasting name, a
   point, and what made it new. */
typedef enum { CLB_CACHE_FOREIGN, CLB_CACHE_LASTING, CLB_CACHE_TEMPORARY } clb_cache_name;
clb_cache_name clb_cache_name_of(const char *name);
/* Removes temporary files that processes left which were killed. */
void clb_cache_sweep(void);

#endif
