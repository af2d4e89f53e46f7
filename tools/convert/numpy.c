/* tools/convert/numpy.c - NumPy's scalars in pickles: scalar(dtype(NAME), encode(TEXT, "latin1")),
   where each character of the text is a byte of the number, and the dtype's state is (3, ORDER,
   ...). */
#include <string.h>

#include "tools/convert/torch.h"

static bool is_made_by(value v, const char *name, size_t arguments) {
  return v->kind == PICKLE_OBJECT && !strcmp(class_name(v), name) && v->items[1]->n >= arguments;
}

/* The bytes of a text whose characters are below 256, in UTF-8; 0: it is not of that kind, or
   longer. */
static int bytes_of(value text, unsigned char bytes[8]) {
  const bool known = text->kind == PICKLE_TEXT || text->kind == PICKLE_BYTES;
  const unsigned char *p = known ? (const unsigned char *)text->text : NULL;
  int n = 0;
  for (size_t i = 0; known && i < text->n; i++) {
    const bool two = (p[i] & 0xfe) == 0xc2 && i + 1 < text->n;
    if (n == 8 || (p[i] >= 0x80 && !two)) return 0;
    bytes[n++] = two ? (unsigned char)((p[i] & 3) << 6 | (p[i + 1] & 0x3f)) : p[i];
    i += two;
  }
  return n;
}

bool numpy_scalar(value v, double *x) {
  static const struct {
    const char *name;
    bool f64, whole;
  } types[] = {{"f8", true, false}, {"f4", false, false}, {"i8", true, true}, {"i4", false, true}};
  weights w = {.count = 1};
  unsigned char bytes[8];
  if (!is_made_by(v, "scalar", 2)) return false;
  value type = v->items[1]->items[0], text = v->items[1]->items[1];
  if (!is_made_by(type, "dtype", 1) || type->items[1]->items[0]->kind != PICKLE_TEXT ||
      type->n != 3 || type->items[2]->kind != PICKLE_TUPLE || type->items[2]->n < 2 ||
      type->items[2]->items[1]->kind != PICKLE_TEXT ||
      strcmp(type->items[2]->items[1]->text, "<") != 0 || !is_made_by(text, "encode", 1))
    return false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, type->items[1]->items[0]->text) != 0) continue;
    w.f64 = types[i].f64, w.whole = types[i].whole, w.data = bytes;
    if (bytes_of(text->items[1]->items[0], bytes) != (w.f64 ? 8 : 4)) return false;
    *x = element(&w, 0);
    return true;
  }
  return false;
}
