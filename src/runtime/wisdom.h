/* src/runtime/wisdom.h - which schedules were measured to be best: lines of text, in the context
   and in the file `wisdom` of the cache's folder.

     clebsch2 VERSION BACKEND:DEVICE PROBLEM estimate_ns=N ns=N lanes=N ... # problem in words

   DEVICE (of the device, its driver and compiler) and PROBLEM (of one pass) are hashes;
   settings have the names of kernels/schedule.def.  Other lines are never kept, nor those that
   start with clebsch1, whose settings had other names; those of other devices and versions are,
   and nobody looks at them. */
#ifndef CLB_SRC_RUNTIME_WISDOM_H
#define CLB_SRC_RUNTIME_WISDOM_H

#include "src/runtime/context.h"

/* false: there is none.  The schedule is what a file says: only one that is a candidate may be
   used. */
bool clb_wisdom_find(clb_context *ctx, const clb_problem *p, clb_choice *choice);
/* In the context, and in the file where there is a folder. */
void clb_wisdom_keep(clb_context *ctx, const clb_problem *p, const clb_choice *choice);

#endif
