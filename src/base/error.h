/* src/base/error.h - the message of the last failure. One sink per context; everything below the
   API writes to it. */
#ifndef CLB_SRC_BASE_ERROR_H
#define CLB_SRC_BASE_ERROR_H

#include <clebsch/clebsch.h>

#include "src/base/text.h"

typedef struct {
  clb_text text;
  clb_status first; /* the first failure since this was set to CLB_OK */
  uint64_t number;  /* of the last failure, counted over all sinks and threads; 0: none */
} clb_error_sink;

/* Replaces the message and returns status, so that reporting a failure takes one line: return
   clb_fail(e, CLB_ERROR_DRIVER, "...", ...). */
clb_status clb_fail(clb_error_sink *e, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends to the message (a compiler's log, the caller's context) and returns status. */
clb_status clb_fail_more(clb_error_sink *e, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A failure without a context: its message, of 2000 bytes at most, is kept for this thread. */
clb_status clb_fail_alone(clb_status status, const char *message);
/* That of a call whose handle is NULL. call: the name of the function, of which "_sized" is left
   out. Returns CLB_ERROR_ARGUMENT. */
clb_status clb_null(const char *call, const char *argument);
/* The thread's message, if it is younger than failure `number`; else NULL. */
const char *clb_alone_after(uint64_t number);

#endif
