/* src/base/error.c - the message of the last failure. */
#include "src/base/error.h"

clb_status clb_fail(clb_error_sink *e, clb_status status, const char *format, ...) {
  /* The old message may be among the arguments: it is freed only after the new one is built. */
  clb_text old = e->text;
  if (!e->first) e->first = status;
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
  va_list args;
  va_start(args, format);
  clb_text_vadd(&e->text, format, args);
  va_end(args);
  clb_text_quote(&e->text, before);
  return status;
}
