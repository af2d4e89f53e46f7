/* md_files.h - files that `clebsch energy` and `clebsch md` write: whole ones, and frames of extended XYZ. */
#ifndef TOOL_MD_FILES_H
#define TOOL_MD_FILES_H

#include <stdio.h>

#include "md_system.h"

/* The following return false after a sentence on standard error.  Writes a file under a temporary name and renames it: `path` is the
   old file or the whole new one.  write() returns false where it could not. */
bool file_replace(const char *path, bool (*write)(FILE *f, const void *user), const void *user);

typedef struct {
  const md_system *system;
  const double *velocities; /* [n][3], Angstrom / fs; NULL: none are written */
  bool forces;
  double time; /* fs; not finite: none is written */
} md_frame;
/* One frame of extended XYZ, which reads back exactly; positions as they are, not wrapped into the cell. */
bool frame_write(FILE *f, const void *frame);

#endif
