/* kernels/dispersion/receiver.h - a sub-group that goes through the atoms around its receiver. */
#ifndef CLB_KERNELS_DISPERSION_RECEIVER_H
#define CLB_KERNELS_DISPERSION_RECEIVER_H

#include "kernels/common/team_sums.h"
#include "kernels/dispersion/dispersion_steps.h"
#include "kernels/graph/cell_walk.h"

typedef struct clb_receiver clb_receiver;

/* A neighbour in each lane. */
typedef struct {
  ir_val place, element; /* i64; of lanes without one, not to be used as an index */
  ir_val mask;           /* lanes that have one */
  ir_val inside; /* lanes that have a place, within the radius or not: a CPU loads what is of these
                    at once */
  ir_val v[3], square; /* from the receiver, and the square of the distance, 0 and 1 without one: of
                          the arithmetic's type */
} clb_neighbour;

enum { CLB_RECEIVER_SUMS = 12 };
typedef void (*clb_receiver_visit)(void *user, const clb_neighbour *j);
struct clb_receiver {
  clb_cell_finder w;
  ir_kernel *k;
  ir_type t;
  ir_val atoms, x, starts, elements, share, squared, first, n_rows;
  ir_val own, atom, row, element; /* of the receiver: its place, number, row of results and element,
                                     i64 */
  clb_cell_place at;
  clb_receiver_visit each, each_third;
  clb_team_sums team;
  ir_val turn; /* of a team: variable, i32: the sub-group that takes the next lanes' neighbours */
  void *user;
  int n_sums;
  ir_val part[CLB_RECEIVER_SUMS], sum[CLB_RECEIVER_SUMS]; /* variables: of slots, and of all */
};
/* Declares the first parameters; starts after the last one, with `own`, `atom`, `row` and
   `element`: what is between start and finish is done for atoms that have a row of results. */
void clb_receiver_begin(clb_receiver *r, ir_kernel *k, const char *name, const clb_problem *p,
                        const clb_schedule *s);
void clb_receiver_start(clb_receiver *r);
/* After begin: a group has one receiver, and its sub-groups take its neighbours in turn. */
void clb_receiver_share(clb_receiver *r);
/* Of such a group, after the walk: opens what the first sub-group does with the sums of all, until
   clb_receiver_finish. */
void clb_receiver_join(clb_receiver *r);
void clb_receiver_finish(clb_receiver *r);
/* Sums over neighbours: begun before the walk; added to by `each`, of masked lanes 0; uniform, f64,
   after the walk. Of some slots they have the arithmetic's type, over all slots they are f64: a
   small cell has thousands of images. */
int clb_sum_begin(clb_receiver *r);
void clb_sum_add(clb_receiver *r, int sum, const clb_neighbour *j, ir_val value);
ir_val clb_sum_end(clb_receiver *r, int sum);
/* Calls `each` inside of loops over the neighbours within the radius. */
void clb_receiver_walk(clb_receiver *r, clb_receiver_visit each, void *user);
/* Inside of `each`: calls `each_third` inside of loops over the same neighbours, one in all lanes
   at a time, which has no masks. */
void clb_receiver_walk_thirds(clb_receiver *r, clb_receiver_visit each_third);

/* A result that is added to. */
typedef struct {
  ir_val buffer, offset, wanted;
} clb_added;
clb_added clb_added_begin(ir_kernel *k);
/* Adds uniform f64 values to elements from `at` (i64) on. */
void clb_add_to(ir_kernel *k, const clb_added *to, ir_val at, int n, const ir_val *values);

/* A force and the virial's six numbers. */
typedef struct {
  int force[3], virial[6]; /* sums */
} clb_pull;
clb_pull clb_pull_begin(clb_receiver *r);
/* Adds that of a neighbour whose energy changes by g v . dv when v does; g is finite without one.
 */
void clb_pull_add(clb_receiver *r, const clb_pull *p, const clb_neighbour *j, ir_val g);
/* Adds them to the results; virial[6], f64: the receiver's half. */
void clb_pull_end(clb_receiver *r, const clb_pull *p, const clb_added *forces,
                  const clb_added *virials, ir_val virial[6]);

#endif
