/* kernels/schedule.c - a schedule's settings by name. */
#include "kernels/schedule.h"

#include <inttypes.h>
#include <string.h>

enum { COMMON_TO_ALL = -1 };

static const struct {
  const char *name;
  size_t at;
  ptrdiff_t of; /* where its struct starts, or COMMON_TO_ALL */
} fields[] = {
#define COMMON(field) {#field, CLB_FIELD(field), COMMON_TO_ALL},
#define FIELD(of, field) {#field, CLB_FIELD(of.field), CLB_FIELD(of)},
#include "kernels/schedule.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };
_Static_assert(FIELDS * sizeof(int32_t) == sizeof(clb_schedule),
               "every member of a schedule is a row of schedule.def, and there is no padding");

void clb_schedule_print(const clb_schedule *s, clb_text *out) {
  const char *between = "";
  clb_text_bytes(out, between, 0); /* there is a text, even if it is empty */
  for (int i = 0; i < FIELDS; i++) {
    int32_t v;
    memcpy(&v, (const char *)s + fields[i].at, sizeof v);
    if (!v) continue;
    clb_text_add(out, "%s%s=%" PRId32, between, fields[i].name, v);
    between = " ";
  }
}

bool clb_schedule_set(clb_schedule *s, size_t of, const char *name, size_t n, long long value) {
  const int32_t v = (int32_t)value;
  for (int i = 0; i < FIELDS; i++) {
    if (fields[i].of != COMMON_TO_ALL && fields[i].of != (ptrdiff_t)of) continue;
    if (n != strlen(fields[i].name) || memcmp(name, fields[i].name, n) != 0) continue;
    memcpy((char *)s + fields[i].at, &v, sizeof v);
    return v == value;
  }
  return false;
}
