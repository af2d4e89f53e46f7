/* src/base/text.c - a growing string. */
#include "src/base/text.h"

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

/* Bytes of the UTF-8 character at s, with n bytes left; 0: there is none, or it is a control
   character. */
static size_t plain_bytes(const unsigned char *s, size_t n) {
  static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
  const size_t bytes = *s < 0x80   ? 1
                       : *s < 0xc0 ? 0
                       : *s < 0xe0 ? 2
                       : *s < 0xf0 ? 3
                       : *s < 0xf8 ? 4
                                   : 0;
  if (bytes == 1) return *s >= ' ' && *s != 127;
  if (!bytes || bytes > n) return 0;
  uint32_t c = *s & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  const bool turns =
      (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); /* characters that change the
                                                                       writing direction */
  return c >= 0xa0 && c >= min[bytes] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000) && !turns
             ? bytes
             : 0;
}

bool clb_text_is_plain(const char *s) {
  for (size_t n = strlen(s), step; n; s += step, n -= step)
    if (!(step = plain_bytes((const unsigned char *)s, n))) return false;
  return true;
}

void clb_text_quote(clb_text *t, size_t from) {
  clb_text quoted = {0};
  size_t done = from;
  for (size_t at = from, step; at < t->n; at += step) {
    step = plain_bytes((const unsigned char *)t->s + at, t->n - at);
    if (step || t->s[at] == '\n' || t->s[at] == '\t') {
      step += !step;
      continue;
    }
    clb_text_bytes(&quoted, t->s + done, at - done);
    clb_text_add(&quoted, "\\x%02x", (unsigned)(unsigned char)t->s[at]);
    t->s[at] = '?'; /* kept if there is no memory for more */
    done = at + (step = 1);
  }
  if (done > from && !quoted.failed && reserve(t, quoted.n)) {
    const size_t rest = t->n - done;
    memmove(t->s + from + quoted.n, t->s + done, rest + 1);
    memcpy(t->s + from, quoted.s, quoted.n);
    t->n = from + quoted.n + rest;
  }
  clb_text_free(&quoted);
}

void clb_text_free(clb_text *t) {
  free(t->s);
  *t = (clb_text){0};
}
