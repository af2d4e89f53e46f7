/* tools/dynamics/md_restart.h - the restart file: text, with numbers in hexadecimal floating
   point. */
#ifndef CLB_TOOLS_DYNAMICS_MD_RESTART_H
#define CLB_TOOLS_DYNAMICS_MD_RESTART_H

#include "tools/common/append.h"
#include "tools/dynamics/md_motion.h"

typedef struct {
  uint64_t model;            /* checksum of the model file */
  char model_name[256];      /* name of the file without its folder; printable characters only */
  file_mark trajectory, csv; /* at the time the restart was written */
  md_state state;
  structure atoms;
} md_restart;

/* Both print a message when they return false. The file is always either the old one or the
   complete new one. */
bool restart_write(const char *path, const md_system *y, const md_state *s,
                   const file_mark *trajectory, const file_mark *csv);
/* The caller frees r->atoms and r->state, which are zeroed on failure. */
bool restart_read(const char *path, md_restart *r);
void restart_free(md_restart *r);

#endif
