/* md_restart.h - the file that a run goes on from: text, numbers in hexadecimal floating point. */
#ifndef TOOL_MD_RESTART_H
#define TOOL_MD_RESTART_H

#include "md_motion.h"

/* Both return false after a sentence on standard error.  The file is the old one or the whole new one. */
bool restart_write(const char *path, const md_system *y, const md_state *s);
/* *atoms and *s are the caller's to free; as zeros where it fails. */
bool restart_read(const char *path, structure *atoms, md_state *s);

#endif
