/* tools/dynamics/md_files.h - frames of extended XYZ, which `clebsch energy` and `clebsch md`
   write. */
#ifndef CLB_TOOLS_DYNAMICS_MD_FILES_H
#define CLB_TOOLS_DYNAMICS_MD_FILES_H

#include <stdio.h>

#include "tools/dynamics/md_system.h"

typedef struct {
  const md_system *system;
  const double *velocities; /* [n][3], Angstrom / fs; NULL: not written, nor masses and momenta */
  bool forces;
  double time; /* fs; not finite: not written */
} md_frame;
/* Writes one frame of extended XYZ that reads back exactly; positions are not wrapped into the
   cell. */
bool frame_write(FILE *f, const void *frame);

#endif
