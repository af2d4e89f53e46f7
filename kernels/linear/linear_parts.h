/* kernels/linear/linear_parts.h - what the two kernels of linear maps share: parameters, places of
   elements, and how sub-groups divide blocks of channels among them. */
#ifndef CLB_KERNELS_LINEAR_LINEAR_PARTS_H
#define CLB_KERNELS_LINEAR_LINEAR_PARTS_H

#include "kernels/common/rows.h"
#include "kernels/common/turns.h"
#include "src/base/signature.h"

enum { CLB_LINEAR_COMPONENTS = 25 }; /* 2l + 1, at most */

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  const clb_linear_problem *lp;
  const clb_schedule *s;
  ir_type t;       /* arithmetic */
  bool accumulate; /* stores add to what is there */
  ir_val n;        /* i64: rows */
  clb_signature_operand operand[CLB_SIGNATURE_OPERANDS];
  clb_row_array array[CLB_SIGNATURE_OPERANDS];
  int n_operands;
  clb_row_array second_in, second_out; /* forward: of terms from in_split and out_split on */
  clb_row_array gated;                 /* GATE_BACKWARD: what goes into the gate */
  ir_val species, first_species;       /* i32 of each row; i64; IR_NONE: not by species */
} clb_linear_kernel;

/* A term of a row and its layout. */
typedef struct {
  const clb_term *term;
  int32_t layout;
} clb_linear_term;

clb_status clb_linear_check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error);
void clb_linear_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
void clb_linear_print(const clb_problem *p, clb_text *out);

/* Begins a kernel with the parameters n, operands, second arrays, the gate's, and species of
   rows. */
void clb_linear_begin(clb_linear_kernel *b, ir_kernel *k, const clb_problem *p,
                      const clb_schedule *s, const char *name, int rows);
static inline bool clb_linear_is_second(int32_t split, int term) { return split && term >= split; }
/* The operand with this role and shape, CLB_OPERAND_X ...; NULL: it is left out. */
const clb_row_array *clb_linear_array(const clb_linear_kernel *b, clb_operand_role role, int of);

static inline ir_val clb_linear_i64(const clb_linear_kernel *b, int64_t x) {
  return ir_int(b->k, IR_I64, x);
}
/* i64: start of a row (i64) of an array; of a row's species. */
ir_val clb_linear_row(const clb_linear_kernel *b, const clb_row_array *a, ir_val row);
ir_val clb_linear_species(const clb_linear_kernel *b, ir_val row);
/* i64: where component m of a channel (i64) lies in its row. */
ir_val clb_linear_place(const clb_linear_kernel *b, clb_linear_term t, ir_val channel, int m);
/* One element of a row that starts at `start`, in arithmetic precision. */
ir_val clb_linear_load(const clb_linear_kernel *b, const clb_row_array *a, ir_val start, ir_val at,
                       ir_val mask);

/* All components of the lanes' channels. */
void clb_linear_load_channels(const clb_linear_kernel *b, const clb_row_array *a, ir_val start,
                              clb_linear_term t, ir_val channel, ir_val mask, ir_val *v);
/* Stores them, or adds to what is there. */
void clb_linear_store_channels(const clb_linear_kernel *b, const clb_row_array *a, ir_val start,
                               clb_linear_term t, ir_val channel, ir_val mask, const ir_val *v);
/* Stores one number for each lane, or adds. */
void clb_linear_store(const clb_linear_kernel *b, const clb_row_array *a, ir_val at, ir_val mask,
                      ir_val v);

/* Blocks of channels; their number. */
static inline int64_t clb_linear_blocks(const clb_linear_kernel *b, int64_t channels) {
  return (channels + b->s->lanes - 1) / b->s->lanes;
}
/* Channel of this lane (i64) in the block of that number (i32), and how many are left from its
   first one (i32). */
ir_val clb_linear_channel(const clb_linear_kernel *b, ir_val block, int64_t channels, ir_val *left);
/* Lanes with a channel; IR_NONE: all have one. */
ir_val clb_linear_mask(const clb_linear_kernel *b, int64_t channels, ir_val left);

#endif
