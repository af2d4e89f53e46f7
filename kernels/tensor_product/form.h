/* kernels/tensor_product/form.h - the tensor product as one 4-linear form, the derivatives of each
   pass, and its operands in memory.

   F(x, y, w, z) = sum over paths of c_p sum_ijk C_ijk w x_i y_j z_k, with the channels that the
   path's mode connects.  A pass is a sum of F with some vector in each of the four slots (a
   monomial), differentiated by some of the vectors:
     forward F(x,y,w,g) by g (which is not read)
     backward         F(x,y,w,g)                             by x y w
     double backward  F(a,y,w,g) + F(x,b,w,g) + F(x,y,c,g)   by x y w g; by c, too, where w and c
                                                             are functions of one number (BY_C)
     triple backward  F(p,b,w,g) + F(p,y,c,g) + F(a,q,w,g) + F(x,q,c,g) + F(a,y,r,g) + F(x,b,r,g)
                      + F(a,y,w,s) + F(x,b,w,s) + F(x,y,c,s) by x y w g a b c */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_FORM_H
#define CLB_KERNELS_TENSOR_PRODUCT_FORM_H

#include "kernels/kernel.h"
#include "kernels/common/rows.h"

enum { X, Y, W, Z, SLOTS };
/* Vectors of a slot in order: x a p, y b q, w c r, g s. */
enum {
  ORDERS = 3,
  MAX_MONOMIALS = 9,
  MAX_OUTPUTS = 7,
  BY_C = 4,
  MAX_L = 12,
  MAX_M = 2 * MAX_L + 1
};

typedef struct {
  int slot, order;
} clb_vector;

typedef struct {
  int n_inputs, n_monomials, n_outputs;
  int monomial[MAX_MONOMIALS][SLOTS]; /* order of the vector in each slot */
  clb_vector output[MAX_OUTPUTS];     /* the vectors by which it is differentiated */
} clb_form;

/* One operand or result; base: i64, start of the current row. */
typedef struct {
  clb_row_array rows;
  ir_val base, index, first; /* index: buffer of row numbers, or IR_NONE; first: i64, offset in
                                it */
  bool adds;                 /* results: added to the contents */
  const clb_irreps *irreps;  /* NULL: weights */
  int layout;
} clb_form_array;

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  const clb_tensor_product_problem *tp;
  const clb_schedule *s;
  const clb_form *form;
  ir_type t; /* of arithmetic */
  ir_val n;  /* i64: number of rows */
  clb_form_array in[SLOTS][ORDERS], out[MAX_OUTPUTS];
  const clb_path *path, *twin; /* twin: NULL, or the path that replaces `path` in the second
                                  iteration of a loop */
  ir_val second;               /* i64: 0 in the first, 1 in the second iteration */
} clb_form_builder;

/* A non-zero of a path: C_ijk times the path's coefficient. */
typedef struct {
  int i, j, k;
  double c;
} clb_entry;

/* Declares the parameters: n, the operands in the order of the calls, the row numbers. */
void clb_form_begin(clb_form_builder *b, ir_kernel *k, const clb_problem *p, const clb_schedule *s);
/* Finds the start of row `row` (i64) of each array; _rows: of arrays without row numbers,
   _indexed_rows: of those with. mask: lanes that have a row, or IR_NONE. */
void clb_form_rows(clb_form_builder *b, ir_val row);
void clb_form_indexed_rows(clb_form_builder *b, ir_val row, ir_val mask);

/* The host has checked that strides are below 2^31: then a row's start takes one instruction. */
void clb_form_narrow_strides(clb_form_builder *b);

/* Sets array a to row `row` (i64). */
void clb_form_row(const clb_form_builder *b, clb_form_array *a, ir_val row);

/* Whether output o is to be computed. */
bool clb_form_wanted(const clb_form_builder *b, int o);
/* Whether monomial m, differentiated by output o, has a contribution from path p. */
bool clb_form_alive(const clb_form_builder *b, int m, int o, const clb_path *p);

static inline int clb_width(const clb_term *t) { return 2 * t->l + 1; }
/* The path's term of x, y or z. */
static inline int clb_path_term(const clb_path *p, int slot) {
  return slot == X ? p->in1 : slot == Y ? p->in2 : p->out;
}

/* i64: start of term t in this row. */
ir_val clb_form_start(clb_form_builder *b, const clb_form_array *a, const clb_term *t);
/* i64: index of component m of channel `channel` (i64) of term t; in layout mul_ir the components
   are adjacent. */
ir_val clb_form_component(clb_form_builder *b, const clb_form_array *a, const clb_term *t, int m,
                          ir_val channel);
/* Components (in arithmetic precision) of channel `channel` (i64) of term `term`. */
void clb_form_load(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                   ir_val mask, ir_val *v);
/* IR_NONE stands for 0. put: adds or overwrites as `add` says, not as the array does. */
void clb_form_put(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                  ir_val mask, const ir_val *v, bool add);
void clb_form_store(clb_form_builder *b, const clb_form_array *a, int term, ir_val channel,
                    ir_val mask, const ir_val *v);
/* i64: start of the weights of a path. load, store: weight number `channel` (i64). */
ir_val clb_form_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p);
ir_val clb_form_load_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p,
                            ir_val channel, ir_val mask);
void clb_form_store_weight(clb_form_builder *b, const clb_form_array *a, const clb_path *p,
                           ir_val channel, ir_val mask, ir_val v);

/* ---- arithmetic of sums; IR_NONE is an empty sum, and as a weight it is 1 ---- */

ir_val clb_add_product(ir_kernel *k, ir_val sum, ir_val x, ir_val y);
ir_val clb_plus_weighted(ir_kernel *k, ir_val sum, ir_val w, ir_val x);
void clb_no_values(ir_val *v, int n);
/* sum + c v */
ir_val clb_plus_scaled(clb_form_builder *b, ir_val sum, double c, ir_val v);

/* Returns the number of entries; `symbol` and e have space for MAX_M^3. */
int clb_form_entries(const clb_tensor_product_problem *tp, const clb_path *p, double *symbol,
                     clb_entry *e);
/* Non-zeros of a path, and of all; counted without allocating, because schedules cannot fail. */
int clb_form_path_size(const clb_tensor_product_problem *tp, const clb_path *p);
int64_t clb_form_size(const clb_tensor_product_problem *tp);

/* z_k += c x_i y_j;  x_i += c y_j z_k;  y_j += c x_i z_k */
void clb_contract_z(clb_form_builder *b, const clb_entry *e, int n, const ir_val *x,
                    const ir_val *y, ir_val *z);
void clb_contract_x(clb_form_builder *b, const clb_entry *e, int n, const ir_val *y,
                    const ir_val *z, ir_val *x);
void clb_contract_y(clb_form_builder *b, const clb_entry *e, int n, const ir_val *x,
                    const ir_val *z, ir_val *y);

#endif
