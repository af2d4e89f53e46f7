/* src/ir/interpreter/races.h - race detection: the interpreter records who read and wrote each
   element since the last barrier and checks every access to memory. Neither lanes nor sub-groups
   run in lockstep. Accesses of two lanes to an element of a LOCAL array are ordered by a BARRIER of
   the group or, within one sub-group, by a BARRIER of either kind. Accesses of two lanes to an
   element of a buffer are unordered within a launch. Two unordered accesses of which one writes are
   a race, unless both are ATOMIC_ADDs. A group must not read elements of a LOCAL array that it has
   not written. Buffers are checked if they are written, or start at the
   same address as one that is. */
#ifndef CLB_SRC_IR_INTERPRETER_RACES_H
#define CLB_SRC_IR_INTERPRETER_RACES_H

#include "src/ir/ir.h"

/* The last access of a kind: local memory counts time in barriers, buffers in groups. */
typedef struct {
  uint32_t time, who; /* time 0: none */
  int32_t by;         /* the instruction */
} ir_access;

typedef struct {
  ir_access write, read;
} ir_shadow;

typedef struct ir_races ir_races;

/* The earlier access with which an access conflicts. */
typedef struct {
  int64_t index; /* of the element */
  int32_t lane;  /* the lane that finds the conflict; IR_NONE: the whole sub-group */
  int32_t by; /* the earlier access: its instruction; lane, sub-group and group (after this one), or
                 IR_NONE for several */
  int32_t by_lane, by_subgroup, by_group;
  bool wrote, in_flight; /* the earlier access: was a write; is a COPY without a COPY_WAIT so far */
  bool unwritten;        /* there is none: the group reads what it has not written */
} ir_conflict;

typedef enum { IR_READS, IR_WRITES, IR_ADDS } ir_access_kind; /* IR_ADDS: ATOMIC_ADD */

/* NULL: no memory. */
ir_races *ir_races_begin(const ir_kernel *k, const ir_arg *arg);
void ir_races_free(ir_races *r);
void ir_races_group(ir_races *r); /* starts the next group */
void ir_races_barrier(ir_races *r, int32_t subgroup, bool group);

/* Sub-group `subgroup` executes instruction v on `width` elements of `array` from at[lane] on; at <
   0: masked. `once`: lane 0 acts for all lanes. false: a conflict, described by *c, or, if c->by is
   IR_NONE, no memory. */
bool ir_races_access(ir_races *r, int32_t v, int32_t subgroup, ir_val array, ir_access_kind doing,
                     const int64_t *at, bool once, int32_t width, ir_conflict *c);

/* A COPY by one lane counts as a write from its issue until its completion. */
ir_shadow *ir_races_send(ir_races *r, int32_t v, int32_t subgroup, int32_t lane, ir_val local,
                         int64_t at, int32_t width, ir_conflict *c); /* NULL: conflict */
void ir_races_arrive(ir_races *r, ir_shadow *at, int32_t width);

#endif
