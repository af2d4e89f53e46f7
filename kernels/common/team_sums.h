/* kernels/common/team_sums.h - sums over the sub-groups of a group (team_sums.c). */
#ifndef CLB_KERNELS_COMMON_TEAM_SUMS_H
#define CLB_KERNELS_COMMON_TEAM_SUMS_H

#include "src/ir/ir.h"

typedef struct {
  ir_val array; /* local: what all sub-groups but the first have to add */
  bool used;    /* it may still be read */
} clb_team_sums;

/* Declares room for `values` numbers of each lane at a time. */
void clb_team_begin(clb_team_sums *t, ir_kernel *k, ir_type type, int values);
int64_t clb_team_bytes(ir_type type, int lanes, int subgroups, int values);
/* Replaces v[0 ... n-1] by their sums over the sub-groups, lane by lane, in the order of these, and
   opens what the first sub-group does with them: the caller ends it (ir_end). All sub-groups must
   come here. */
void clb_team_sum(clb_team_sums *t, ir_kernel *k, ir_val *v, int n);

#endif
