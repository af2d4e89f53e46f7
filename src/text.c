/* text.c - a growing string. */
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(clb_text *t, size_t more) {
  if (t->failed) return false;
  if (more >= SIZE_MAX / 4 - t->n) return !(t->failed = true);
  size_t need = t->n + more + 1, cap = t->cap ? t->cap : 64;
  if (need <= t->cap) return true;
  while (cap < need) cap *= 2;
  char *s = realloc(t->s, cap);
  if (!s) return !(t->failed = true);
  t->s = s;
  t->cap = cap;
  return true;
}

void clb_text_bytes(clb_text *t, const void *bytes, size_t n) {
  if (!reserve(t, n)) return;
  if (n) memcpy(t->s + t->n, bytes, n);
  t->n += n;
  t->s[t->n] = 0;
}

void clb_text_vadd(clb_text *t, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (n < 0) t->failed = true;
  if (n < 0 || !reserve(t, (size_t)n)) return;
  vsnprintf(t->s + t->n, (size_t)n + 1, format, args);
  t->n += (size_t)n;
}

void clb_text_add(clb_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  clb_text_vadd(t, format, args);
  va_end(args);
}

void clb_text_free(clb_text *t) {
  free(t->s);
  *t = (clb_text){0};
}
