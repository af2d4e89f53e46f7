/* src/runtime/wisdom.h - the schedules that were measured to be best: lines of text, in the context
   and in the file `wisdom` in the cache folder.

     clebsch2 VERSION BACKEND:DEVICE PROBLEM estimate_ns=N ns=N lanes=N ... # problem in words

   DEVICE (of the device, its driver and compiler) and PROBLEM (of one pass) are hashes;
   settings have the names of kernels/schedule.def. Lines of any other form are dropped, as are
   those that start with clebsch1, whose settings had other names; lines for other devices and
   versions are kept but not used. */
#ifndef CLB_SRC_RUNTIME_WISDOM_H
#define CLB_SRC_RUNTIME_WISDOM_H

#include "src/runtime/context.h"

/* false: there is none. The schedule comes from a file and may be used only if it is a
   candidate. */
bool clb_wisdom_find(clb_context *ctx, const clb_problem *p, clb_choice *choice);
/* Keeps it in the context, and in the file if there is a cache folder. */
void clb_wisdom_keep(clb_context *ctx, const clb_problem *p, const clb_choice *choice);

#endif
