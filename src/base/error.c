/* src/base/error.c - the message of the last failure. */
#include "src/base/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static uint64_t next_number(void) {
  static atomic_uint_fast64_t last;
  return atomic_fetch_add(&last, 1) + 1;
}

/* Of fixed size, so that a thread leaves nothing behind when it ends. */
static _Thread_local struct {
  uint64_t number;
  char text[2000];
} alone;

clb_status clb_fail_alone(clb_status status, const char *message) {
  alone.number = next_number();
  snprintf(alone.text, sizeof alone.text, "%s", message);
  return status;
}

clb_status clb_null(const char *call, const char *argument) {
  const size_t n = strlen(call), end = strlen("_sized");
  const bool sized = n > end && !strcmp(call + n - end, "_sized");
  char text[160];
  snprintf(text, sizeof text, "%.*s: %s is NULL", (int)(sized ? n - end : n), call, argument);
  return clb_fail_alone(CLB_ERROR_ARGUMENT, text);
}

const char *clb_alone_after(uint64_t number) { return alone.number > number ? alone.text : NULL; }

clb_status clb_fail(clb_error_sink *e, clb_status status, const char *format, ...) {
  /* The old message may be among the arguments: it is freed only after the new one is built. */
  clb_text old = e->text;
  if (!e->first) e->first = status;
  e->number = next_number();
  e->text = (clb_text){0};
  va_list args;
  va_start(args, format);
  clb_text_vadd(&e->text, format, args);
  va_end(args);
  clb_text_quote(&e->text, 0);
  clb_text_free(&old);
  return status;
}

clb_status clb_fail_more(clb_error_sink *e, clb_status status, const char *format, ...) {
  const size_t before = e->text.n;
  e->number = next_number();
  va_list args;
  va_start(args, format);
  clb_text_vadd(&e->text, format, args);
  va_end(args);
  clb_text_quote(&e->text, before);
  return status;
}
