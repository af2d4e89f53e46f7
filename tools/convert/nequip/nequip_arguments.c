/* tools/convert/nequip/nequip_arguments.c - the arguments that a checkpoint's network was built
 * with. */
#include <math.h>
#include <stdio.h>

#include "tools/convert/nequip/nequip_reader.h"

value nequip_given(const nequip_checkpoint *c, const char *key) {
  value v = pickle_entry(c->config, key);
  return v && v->kind != PICKLE_NONE ? v : NULL;
}

double nequip_number(const nequip_checkpoint *c, const char *key, double otherwise) {
  value v = nequip_given(c, key);
  double x = otherwise;
  if (v && !plain_number(v, &x))
    fail_model(c->q->t->path, "its model's argument '%s' is not a number", key);
  return x;
}

int nequip_whole(const nequip_checkpoint *c, const char *key, int otherwise, int low, int high) {
  const double x = nequip_number(c, key, otherwise);
  if (!(x >= low && x <= high && x == floor(x)))
    fail_model(c->q->t->path, "its model has %s = %g; it must be a whole number from %d to %d", key,
               x, low, high);
  return (int)x;
}

bool nequip_flag(const nequip_checkpoint *c, const char *key, bool otherwise) {
  value v = nequip_given(c, key);
  return v ? v->kind == PICKLE_BOOL && v->whole : otherwise;
}

irreps nequip_irreps(const nequip_checkpoint *c, value v, const char *key) {
  const char *text = v && v->kind == PICKLE_TEXT ? v->text : "";
  irreps out;
  if (!read_irreps(text, &out))
    fail_model(c->q->t->path, "its model's argument '%s' is \"%.60s\", which are no irreps", key,
               text);
  return out;
}
