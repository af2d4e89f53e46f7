/* src/runtime/repeated.h - work that is submitted again and again: the second time in a row it is
   recorded, and from then on replayed as one unit. */
#ifndef CLB_SRC_RUNTIME_REPEATED_H
#define CLB_SRC_RUNTIME_REPEATED_H

#include "src/runtime/recording_list.h"

/* Zeroed at first; clb_recording_destroy frees `recording`. Keys: hashes of all that the launches
   depend on, 0 if they are like no other ones. */
typedef struct {
  uint64_t last, recorded, unrecorded; /* unrecorded: could not be */
  clb_recording *recording;            /* of `recorded`; NULL: there is none */
} clb_repeated;

/* Has `submit` submit the work, or replays what it submitted for the same key. What a failure to
   record is said of: `what`; it is no error, and the work is launched kernel by kernel. */
clb_status clb_repeat(clb_context *ctx, clb_repeated *r, uint64_t key, const char *what,
                      clb_status (*submit)(void *user), void *user);

#endif
