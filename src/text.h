/* text.h - a growing string (or bytes); every other file builds its strings with it. */
#ifndef CLB_TEXT_H
#define CLB_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char *s; /* ends with a 0 byte that n does not count; NULL while empty */
  size_t n, cap;
  bool failed; /* out of memory once: everything after is ignored */
} clb_text;

void clb_text_add(clb_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clb_text_vadd(clb_text *t, const char *format, va_list args);
void clb_text_bytes(clb_text *t, const void *bytes, size_t n);
void clb_text_free(clb_text *t); /* also makes it empty again */

#endif
