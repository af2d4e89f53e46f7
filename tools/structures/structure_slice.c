/* tools/structures/structure_slice.c - which frames of a file, as Python counts them. */
#include <stdlib.h>
#include <string.h>

#include "tools/structures/structure_reader.h"

/* A whole number at *text, which passes it; *has: whether there is one. false: it is too large. */
static bool read_number(const char **text, int64_t *x, bool *has) {
  const char *digits = *text + (**text == '-');
  const size_t n = strspn(digits, "0123456789");
  *has = n > 0;
  if (!n) return true;
  if (n > 15) return false;
  *x = strtoll(*text, NULL, 10);
  *text = digits + n;
  return true;
}

static structure_slice one_frame(int64_t i) {
  return (structure_slice){true, true, i, i == -1 ? INT64_MAX : i + 1, 1};
}

bool structure_slice_read(const char *text, structure_slice *s) {
  int64_t x[3] = {0, INT64_MAX, 1};
  bool has[3];
  *s = (structure_slice){.chosen = true, .stop = INT64_MAX, .step = 1};
  if (!strcmp(text, "all")) return true;
  if (!read_number(&text, &x[0], &has[0])) return false;
  if (!*text) return *s = one_frame(x[0]), has[0];
  for (int i = 1; i < 3 && *text; i++)
    if (*text++ != ':' || !read_number(&text, &x[i], &has[i])) return false;
  *s = (structure_slice){true, false, x[0], x[1], x[2]};
  return !*text && x[2] > 0;
}

bool structure_slice_from_end(const structure_slice *s) { return s->start < 0 || s->stop < 0; }

void structure_slice_resolve(structure_slice *s, int64_t n) {
  if (s->one && s->start < 0 && s->start + n < 0) s->start = n, s->stop = INT64_MAX; /* none */
  if (s->start < 0) s->start = s->start + n > 0 ? s->start + n : 0;
  if (s->stop < 0) s->stop = s->stop + n > 0 ? s->stop + n : 0;
}

bool structure_slice_has(const structure_slice *s, int64_t i) {
  return !s->chosen || (i >= s->start && i < s->stop && (i - s->start) % s->step == 0);
}
