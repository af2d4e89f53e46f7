/* kernels/layers/layer.h - shared by the kernels of kernels/layers/host/layers.h. */
#ifndef CLB_KERNELS_LAYERS_LAYER_H
#define CLB_KERNELS_LAYERS_LAYER_H

#include "kernels/common/activate.h"
#include "kernels/common/rows.h"

/* A `check`: storage and arithmetic are of one type. */
clb_status clb_layer_check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error);
/* reduces: the kernel sums over lanes. */
void clb_layer_schedule(const clb_limits *limits, int32_t arithmetic, bool reduces,
                        clb_schedule *s);

/* Begins a kernel whose sub-groups each do one unit of work; its first parameter counts them (i64).
   Opens an IF: end it. */
typedef struct {
  ir_kernel *k;
  const clb_schedule *s;
  ir_type t;      /* arithmetic */
  ir_val n, unit; /* i64 */
  bool shared;    /* a group does a unit, whose blocks of channels its sub-groups share */
  int64_t blocks; /* of channels so far */
} clb_row_kernel;
void clb_layer_begin(clb_row_kernel *b, ir_kernel *k, const char *name, const clb_schedule *s,
                     int32_t arithmetic);
/* The same of a kernel whose groups each do one unit of work: clb_layer_channels shares channels.
 */
void clb_layer_begin_shared(clb_row_kernel *b, ir_kernel *k, const char *name,
                            const clb_schedule *s, int32_t arithmetic);
clb_row_array clb_layer_array(clb_row_kernel *b, int32_t type,
                              bool written); /* parameters: buffer, offset, stride */
void clb_layer_start(clb_row_kernel *b);
void clb_layer_finish(clb_row_kernel *b);

/* The start of row `row` of an array; loads and stores element `at` (i64) from there, in arithmetic
   precision. */
ir_val clb_layer_row(clb_row_kernel *b, const clb_row_array *a, ir_val row);
ir_val clb_layer_load(clb_row_kernel *b, const clb_row_array *a, ir_val row_start, ir_val at,
                      ir_val mask);
void clb_layer_store(clb_row_kernel *b, const clb_row_array *a, ir_val row_start, ir_val at,
                     ir_val mask, ir_val value);

/* The three numbers of a row. */
void clb_layer_vector(clb_row_kernel *b, const clb_row_array *a, ir_val row, ir_val mask,
                      ir_val *v);

ir_val clb_i64(ir_kernel *k, int64_t x);
ir_val clb_i32(ir_kernel *k, int64_t x);
ir_val clb_first_lane(ir_kernel *k);

/* Species of atoms from a number on; `first`: what a graph's receiver 0 is among them. */
typedef struct {
  ir_val species, offset, first;
} clb_atom_species;
clb_atom_species clb_atom_species_begin(ir_kernel *k);
/* Of a sender, or of a receiver; both i64. */
ir_val clb_species_of(ir_kernel *k, const clb_atom_species *a, bool receiver, ir_val atom,
                      ir_val mask);

/* The atoms at the ends of edges: parameters are lists of receivers and senders, then species. */
typedef struct {
  ir_val list[2]; /* receivers, senders */
  clb_atom_species atoms;
} clb_ends;
clb_ends clb_ends_begin(ir_kernel *k);
/* The same of the receiver (0) or sender (1) of an edge (i64). */
ir_val clb_end_species(ir_kernel *k, const clb_ends *e, int end, ir_val edge, ir_val mask);

/* The edges that an atom receives, a lane each: parameters are where the slots of each atom start,
   and the edge and the sender of a slot. start: opens a loop over chunks of the unit's edges; end
   it. */
typedef struct {
  ir_val row_start, edge, other;
} clb_received;
clb_received clb_received_begin(ir_kernel *k);
void clb_received_start(clb_row_kernel *b, const clb_received *list, ir_val *edge, ir_val *sender,
                        ir_val *mask); /* edge, sender: i64 */

/* Calls each(user, channel, mask) for every block of `mul` channels: channel is this lane's (i64),
   mask the lanes that have one, or IR_NONE. */
void clb_layer_channels(clb_row_kernel *b, int64_t mul,
                        void (*each)(void *user, ir_val channel, ir_val mask), void *user);

#endif
