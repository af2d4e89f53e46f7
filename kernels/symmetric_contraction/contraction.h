/* kernels/symmetric_contraction/contraction.h - what the kernels of symmetric contractions share:
   lanes are channels, a sub-group does some rows of one block of channels.

   All passes are derivatives of phi = sum_p g . w_p B_p(A), A the row's x. Backward is the gradient
   of phi; double backward the derivative of that gradient along the incoming (a, c), computed with
   dual numbers: every value comes with its derivative along them. */
#ifndef CLB_KERNELS_SYMMETRIC_CONTRACTION_CONTRACTION_H
#define CLB_KERNELS_SYMMETRIC_CONTRACTION_CONTRACTION_H

#include "kernels/common/rows.h"
#include "kernels/symmetric_contraction/contraction_plan.h"

/* Operands; those of a pass in this order. */
enum { IN_X, IN_W, IN_G, IN_A, IN_C, OUT_X, OUT_W, OUT_Z, ARRAYS };
enum { MAX_X = (CLB_MAX_ELL + 1) * (CLB_MAX_ELL + 1), MAX_WIDTH = 2 * CLB_MAX_ELL + 1 };

/* A number and its derivative; IR_NONE is 0. */
typedef struct {
  ir_val v, d;
} clb_dual;

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  const clb_symmetric_contraction_problem *sc;
  const clb_schedule *s;
  clb_symmetric_plan plan;
  ir_type t;                        /* of arithmetic */
  bool results, gradients, weights; /* computed: z (or d_g), g_x (or d_x), g_w (or d_w) */
  ir_val n;                         /* i64: rows */
  clb_row_array array[ARRAYS];
  ir_val species, first_species; /* buffer of int32; i64: where row 0's is */
  ir_val row, channel, mask;     /* i64 the current row, this lane's channel; lanes that have one */
  ir_val numbers, reals;         /* tables, where the schedule says so */
} clb_contraction;

/* Whether the incoming gradient of x (CLB_OPERAND_X) or w (CLB_OPERAND_W) is given. */
static inline bool clb_contraction_incoming(const clb_contraction *b, int of) {
  return b->p->pass == CLB_DOUBLE_BACKWARD && b->sc->incoming & of;
}

/* Makes the plan, begins the kernel and declares its parameters: n, the operands, row numbers of
   the weights (twice in double backward). false: no memory, and the kernel has an error.  The plan
   is freed by _end, which finishes the kernel. */
bool clb_contraction_begin(clb_contraction *b, ir_kernel *k, const clb_problem *p,
                           const clb_schedule *s, const char *name, int subgroups, int rows);
void clb_contraction_tables(clb_contraction *b); /* after all other parameters */
void clb_contraction_end(clb_contraction *b);
/* Makes block number `block` (i32) of channels the current one. */
void clb_contraction_channels(clb_contraction *b, ir_val block);
int clb_contraction_blocks(const clb_symmetric_contraction_problem *sc, const clb_schedule *s);
/* i64: the species of the current row. */
ir_val clb_contraction_species(clb_contraction *b);
/* Component m (0 ... n - 1 of all components of x; of degree number `out` of z) in the current row
   and channel, in arithmetic precision. */
void clb_contraction_load_x(clb_contraction *b, int array, ir_val *v);
void clb_contraction_store_x(clb_contraction *b, const ir_val *v);
void clb_contraction_load_z(clb_contraction *b, int array, int out, ir_val *v);
void clb_contraction_store_z(clb_contraction *b, int out, const ir_val *v);
/* i64: where the first path's weight of this species and the current channel is; the next path's is
   `channels` further. */
ir_val clb_contraction_weights_at(clb_contraction *b, int array, ir_val species);

/* ---- every product its own instructions (unrolled.c) ---- */

enum { CLB_NO_OUT = -1 };

/* [left q]_l', q the weighted sum of right elements of one degree and parity, h the gradient by q.
 */
typedef struct {
  int left, out;
  clb_dual q[2 * CLB_MAX_PAIR_DEGREE + 1], h[2 * CLB_MAX_PAIR_DEGREE + 1];
} clb_unrolled_product;

/* The row's values; arrays are the caller's. */
typedef struct {
  clb_dual *value, *gradient;         /* [plan.n_values] */
  clb_dual *weight, *weight_gradient; /* [n_paths], of trees */
  clb_unrolled_product *product;      /* [n_paths], those of the current right elements */
  clb_dual z[CLB_MAX_ELL + 1][MAX_WIDTH];
  ir_val g[CLB_MAX_ELL + 1][MAX_WIDTH];
  int out; /* only trees of this degree; CLB_NO_OUT: all */
  /* Weights that are IR_NONE are asked for when they are first used, unless NULL. */
  clb_dual (*weigh)(void *user, int tree);
  void *user;
} clb_unrolled_row;

/* Gives the row the values of A, and of the incoming gradient (NULL: 0). */
void clb_unrolled_set(clb_contraction *b, clb_unrolled_row *row, const ir_val *x,
                      const ir_val *along);
/* From the values of A, weights and g: z, the gradients of A, those of the weights, as asked. */
void clb_contraction_unrolled(clb_contraction *b, clb_unrolled_row *row);
/* The phase whose right elements are the A_l (0), or pairs of one degree and parity (1 and on);
   gradients of pairs are complete if the correlation is below 4. false: there is no such phase. */
bool clb_contraction_phase(clb_contraction *b, clb_unrolled_row *row, int phase);
/* The end of the phase that starts with right element `first`, a pair. */
int clb_contraction_phase_end(const clb_contraction *b, int first);
/* false: no memory. Release with _free, whatever the result. */
bool clb_unrolled_make(const clb_contraction *b, clb_unrolled_row *row);
void clb_unrolled_free(clb_unrolled_row *row);
/* Everything is 0 again. */
void clb_unrolled_clear(const clb_contraction *b, clb_unrolled_row *row);

/* sum + c x */
clb_dual clb_dual_plus_scaled(clb_contraction *b, clb_dual sum, double c, clb_dual x);

/* ---- products listed in tables, values in local memory (table_row.c) ---- */

bool clb_contraction_make_tables(const clb_problem *p, clb_tables *tables);
/* Bytes of local memory for a channel. */
int64_t clb_contraction_local_bytes(const clb_problem *p, const clb_symmetric_plan *plan,
                                    bool gradients);

/* Positions in the tables, and of values in local memory. */
typedef struct {
  int64_t path_rows, row_out, row_entries, entries; /* in `number`, after the rows of pairs */
  ir_val values, sums;                              /* local arrays */
  int one, n_values;   /* values: of the elements, then a 1; then their derivatives */
  int banks;           /* 2 with derivatives, else 1 */
  int z, g, gradients; /* places in `sums` of z, g, the gradients of values */
} clb_table_row;
/* The tables of a plan, malloc'ed whatever the result, and where what is. false: no memory. */
bool clb_contraction_list(const clb_problem *p, const clb_symmetric_plan *plan, clb_tables *tables,
                          clb_table_row *r);
/* Declares local memory, outside of loops and ifs. */
void clb_table_row_begin(clb_contraction *b, clb_table_row *r);
/* Does the current row. partial: buffer to whose element partial_at + path channels the gradient of
   the path's weight is added. */
void clb_contraction_table_row(clb_contraction *b, clb_table_row *r, ir_val partial,
                               ir_val partial_at);

/* ---- sums over rows (weights.c, total.c) ---- */

ir_val clb_contraction_unit(ir_kernel *k, int subgroups); /* i64: number of this sub-group */
/* Arguments: sums, whether they are present, number of blocks (i64), result and its offset and
   stride (i64). */
void clb_lower_total_weights(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

/* ---- schedules ---- */

void clb_contraction_schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s);
int clb_contraction_candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list);
static inline bool clb_contraction_reads_tables(const clb_schedule *s) {
  return s->symmetric.channels;
}
clb_status clb_contraction_check(const clb_problem *p, const clb_limits *limits,
                                 clb_error_sink *error);
void clb_contraction_print(const clb_problem *p, clb_text *out);

#endif
