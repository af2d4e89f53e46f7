/* tools/dynamics/md_options.h - the options of `clebsch md`. */
#ifndef CLB_TOOLS_DYNAMICS_MD_OPTIONS_H
#define CLB_TOOLS_DYNAMICS_MD_OPTIONS_H

#include "tools/dynamics/md_motion.h"

typedef struct {
  md_choice choice;
  md_motion motion;
  int64_t steps, every; /* steps < 0: not given */
  uint64_t seed;
  bool warm, seeded, forces, force, unguarded; /* warm: --temperature was given */
  const char *trajectory, *csv, *plot, *restart, *from;
} md_arguments;

/* Takes them from the command's arguments, or ends the program with a sentence about them. */
void md_options(int argc, char **argv, md_arguments *a);

#endif
