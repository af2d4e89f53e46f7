/* tools/dynamics/md_restart.h - the file that a run goes on from: text, numbers in hexadecimal
   floating point. */
#ifndef CLB_TOOLS_DYNAMICS_MD_RESTART_H
#define CLB_TOOLS_DYNAMICS_MD_RESTART_H

#include "tools/dynamics/md_append.h"
#include "tools/dynamics/md_motion.h"

typedef struct {
  uint64_t model;            /* checksum of its file */
  char model_name[256];      /* the file's, without its folder, as far as it can be printed */
  file_mark trajectory, csv; /* as they were when the restart was written */
  md_state state;
  structure atoms;
} md_restart;

/* Both return false after a sentence.  The file is the old one or the whole new one. */
bool restart_write(const char *path, const md_system *y, const md_state *s,
                   const file_mark *trajectory, const file_mark *csv);
/* r->atoms and r->state are the caller's to free; as zeros where it fails. */
bool restart_read(const char *path, md_restart *r);
void restart_free(md_restart *r);

#endif
