/* src/base/error.h - the message of the last failure. One sink per context; everything below the
   API writes to it. */
#ifndef CLB_SRC_BASE_ERROR_H
#define CLB_SRC_BASE_ERROR_H

#include <clebsch/clebsch.h>

#include "src/base/text.h"

typedef struct {
  clb_text text;
  clb_status first; /* the first failure since this was set to CLB_OK */
} clb_error_sink;

/* Replaces the message and returns status, so that reporting a failure takes one line: return
   clb_fail(e, CLB_ERROR_DRIVER, "...", ...). */
clb_status clb_fail(clb_error_sink *e, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends to the message (a compiler's log, the caller's context) and returns status. */
clb_status clb_fail_more(clb_error_sink *e, clb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
