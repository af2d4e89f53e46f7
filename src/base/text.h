/* src/base/text.h - a growing string (or bytes), with which all other files build their strings. */
#ifndef CLB_SRC_BASE_TEXT_H
#define CLB_SRC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char *s; /* ends with a 0 byte that n does not count; NULL while empty */
  size_t n, cap;
  bool failed; /* out of memory once; later additions are ignored */
} clb_text;

void clb_text_add(clb_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clb_text_vadd(clb_text *t, const char *format, va_list args);
void clb_text_bytes(clb_text *t, const void *bytes, size_t n);
/* Text from files and drivers must not control the terminal that shows it: from byte `from` on,
   control characters (except newlines and tabs) and invalid UTF-8 become \xNN. Every message of the
   library and of the command goes through this. */
void clb_text_quote(clb_text *t, size_t from);
bool clb_text_is_plain(const char *s); /* one line, and nothing to quote */
void clb_text_free(clb_text *t);       /* also makes it empty again */

#endif
