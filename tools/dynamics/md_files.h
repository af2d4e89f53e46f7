/* tools/dynamics/md_files.h - frames of extended XYZ, which `clebsch energy` and `clebsch md`
   write. */
#ifndef CLB_TOOLS_DYNAMICS_MD_FILES_H
#define CLB_TOOLS_DYNAMICS_MD_FILES_H

#include <stdio.h>

#include "tools/dynamics/md_system.h"

typedef struct {
  const md_system *system;
  const double *velocities; /* [n][3], Angstrom / fs; NULL: none are written */
  bool forces;
  double time; /* fs; not finite: none is written */
} md_frame;
/* One frame of extended XYZ, which reads back exactly; positions as they are, not wrapped into the
   cell. */
bool frame_write(FILE *f, const void *frame);

#endif
