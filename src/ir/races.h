/* src/ir/races.h - who read and wrote each element since which barrier: what the interpreter asks
   at every access to memory.

   Lanes are not in step, sub-groups neither.  An access to an element of a LOCAL array comes after
   another lane's where a BARRIER of the group stands between, or, in one sub-group, a BARRIER of
   either kind.  Nothing orders what two lanes do to an element of a buffer in one launch.  Two
   accesses of which one writes, with nothing between, are a race; two ATOMIC_ADDs are none.

   Of buffers those count that are written, and those that start where a written one does. */
#ifndef CLB_SRC_IR_RACES_H
#define CLB_SRC_IR_RACES_H

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

/* The access that an earlier one is in conflict with. */
typedef struct {
  int64_t index; /* of the element */
  int32_t lane;  /* that finds the conflict; IR_NONE: all of its sub-group */
  int32_t by; /* the earlier access: its instruction; lane, sub-group and group (after this one), or
                 IR_NONE for several */
  int32_t by_lane, by_subgroup, by_group;
  bool wrote, in_flight; /* what it did; a COPY that no COPY_WAIT has waited for */
} ir_conflict;

typedef enum { IR_READS, IR_WRITES, IR_ADDS } ir_doing; /* IR_ADDS: ATOMIC_ADD */

/* NULL: no memory. */
ir_races *ir_races_begin(const ir_kernel *k, const ir_arg *arg);
void ir_races_free(ir_races *r);
void ir_races_group(ir_races *r); /* the next group begins */
void ir_races_barrier(ir_races *r, int32_t subgroup, bool group);

/* Sub-group `subgroup` does instruction v to `width` elements of `array` from at[lane] on; at < 0:
   masked.  `once`: lane 0 for all, to the same elements.  false: *c says why, or c->by is IR_NONE
   and there is no memory. */
bool ir_races_access(ir_races *r, int32_t v, int32_t subgroup, ir_val array, ir_doing doing,
                     const int64_t *at, bool once, int32_t width, ir_conflict *c);

/* A COPY by one lane writes from when it is sent for until it arrives. */
ir_shadow *ir_races_send(ir_races *r, int32_t v, int32_t subgroup, int32_t lane, ir_val local,
                         int64_t at, int32_t width, ir_conflict *c); /* NULL: conflict */
void ir_races_arrive(ir_races *r, ir_shadow *at, int32_t width);

#endif
