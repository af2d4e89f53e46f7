/* tests/intel/local.c - a group's local memory, and which threads used it since the last barrier:
   a race is an error, whatever order the threads ran in. */
#include <stdlib.h>
#include <string.h>

#include "tests/intel/intel.h"

/* Who wrote and read a byte last, and in which turn, that is after how many barriers. A reader of
   the same turn that is not the only one is `MANY`. */
enum { NOBODY = 255, MANY = 254 };
typedef struct {
  uint32_t written, read; /* turns */
  uint8_t writer, reader;
} use;

struct intel_local {
  uint32_t bytes;
  uint32_t turn; /* at the group's start; greater than all of the groups before */
  unsigned char *at;
  use *uses;
};

intel_local *intel_local_new(uint32_t bytes) {
  intel_local *l = calloc(1, sizeof *l);
  if (!l) return NULL;
  l->bytes = bytes;
  l->at = malloc(bytes + 1u);
  l->uses = malloc((bytes + 1u) * sizeof *l->uses);
  for (uint32_t k = 0; l->uses && k < bytes; k++)
    l->uses[k] = (use){.writer = NOBODY, .reader = NOBODY};
  if (l->at && l->uses) return l;
  intel_local_free(l);
  return NULL;
}

void intel_local_free(intel_local *l) {
  if (!l) return;
  free(l->at);
  free(l->uses);
  free(l);
}

void intel_local_start(intel_local *l, uint32_t barriers) {
  memset(l->at, 0xee, l->bytes);
  l->turn += barriers + 1;
}

static int other_user(const use *u, uint32_t turn, uint8_t me, bool writes) {
  if (u->writer != NOBODY && u->writer != me && u->written == turn) return u->writer;
  if (writes && u->reader != NOBODY && u->reader != me && u->read == turn) return u->reader;
  return NOBODY;
}

static void note(use *u, uint32_t turn, uint8_t me, bool writes) {
  if (writes) {
    u->writer = me;
    u->written = turn;
  } else {
    u->reader = u->reader == NOBODY || u->read != turn || u->reader == me ? me : MANY;
    u->read = turn;
  }
}

unsigned char *intel_local_access(intel_thread *t, const intel_ins *i, uint32_t at, uint32_t bytes,
                                  bool writes) {
  intel_local *l = t->group->local;
  uint8_t me = (uint8_t)t->index;
  uint32_t turn = l->turn + t->passed;
  if (at > l->bytes || bytes > l->bytes - at) {
    intel_fail(t, i, "local memory [%u, %u) of %u bytes", at, at + bytes, l->bytes);
    return NULL;
  }
  if (t->signalled) intel_fail(t, i, "between the signal and the wait of a barrier");
  if (writes) t->stored = true;
  for (uint32_t k = at; t->launch->races && k < at + bytes; k++) {
    int other = other_user(&l->uses[k], turn, me, writes);
    if (other != NOBODY) {
      intel_fail(t, i,
                 "byte %u of local memory is %s by this thread and %s by %s of the group, with no "
                 "barrier between",
                 k, writes ? "written" : "read", l->uses[k].writer == other ? "written" : "read",
                 other == MANY ? "several others" : "another");
      return NULL;
    }
    note(&l->uses[k], turn, me, writes);
  }
  return l->at + at;
}
