/* kernels/tensor_product/product.h - the five ways to lower a tensor product, from which
   kernels/tensor_product/schedule.c chooses. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_PRODUCT_H
#define CLB_KERNELS_TENSOR_PRODUCT_PRODUCT_H

#include "kernels/tensor_product/form.h"

/* What the schedule's `variant` says. */
enum {
  CLB_VARIANT_CHANNEL_WISE,
  CLB_VARIANT_UNROLLED,
  CLB_VARIANT_TABLE,
  CLB_VARIANT_PAIRS,
  CLB_VARIANT_ROWS /* gradients by weights are one row for each group */
};

enum { CLB_MAX_CHANNEL_WISE_Y = 1024 }; /* maximum elements of y, which are kept in registers */

/* Whether every path is of mode uvu with one channel of y, whose elements are few enough. */
bool clb_is_channel_wise(const clb_tensor_product_problem *tp);

/* Whether the paths of a channel-wise product come in pairs: each has a twin that differs only in
   the parity of its terms. */
bool clb_has_parity_pairs(const clb_tensor_product_problem *tp);

/* Whether every path mixes channels by weights, and what a sub-group of so many lanes keeps in
   registers, and the code, with so many products for each non-zero, are not too much. */
bool clb_goes_by_pairs(const clb_tensor_product_problem *tp, int lanes, int repeats);

/* Sub-groups of a group of 128 lanes. */
static inline int clb_usual_subgroups(const clb_limits *limits, int lanes) {
  return 128 / lanes > limits->max_subgroups ? limits->max_subgroups : 128 / lanes;
}

/* Whether every path mixes channels by weights that all rows share, which fit in local memory, and
   all of x or of z in registers, on a GPU with many of them. */
bool clb_goes_by_rows(const clb_problem *p, int pass, const clb_limits *limits);

/* Between ir_begin and ir_finish. */
void clb_lower_channel_wise(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_lower_general(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_lower_pairs(const clb_problem *p, const clb_schedule *s, ir_kernel *k);
void clb_lower_rows(const clb_problem *p, const clb_schedule *s, ir_kernel *k);

/* ---- CLB_VARIANT_TABLE: the paths as tables in memory, read by code whose size does not depend on
   them ---- */

/* Fields of a path: channels, offsets of its terms in their rows, strides between channels, its
   weights, components of z, and positions in `number` of the first entries of its components of x,
   y, z (followed by the end of the last one). */
enum {
  PATH_MUL,
  PATH_AT = PATH_MUL + 3,
  PATH_STEP = PATH_AT + 3,
  PATH_WEIGHT_AT = PATH_STEP + 3,
  PATH_WEIGHTS,
  PATH_WIDTH,
  PATH_FIRST,
  PATH_FIELDS = PATH_FIRST + 3
};
/* Fields of a term: channels, offset in the row, components, strides between components and between
   channels; then, for each class of paths, first and end of the list of those that use the term. */
enum { TERM_MUL, TERM_AT, TERM_WIDTH, TERM_COMPONENT, TERM_STEP, TERM_CLASSES };
/* Fields of a non-zero: what its components of x, y, z add to the index. */
enum { ENTRY_FIELDS = 3 };
/* Paths that the code treats alike: 2 mode + has_weight. */
enum { CLASSES = 16 };

typedef struct {
  int n_classes, class_of[CLASSES]; /* those that occur */
  int64_t terms[SLOTS];   /* positions of the terms of x, y, z in `number`; paths start at 0 */
  int64_t lists[CLASSES]; /* of the paths of each class */
  int64_t ends[CLASSES];
  int64_t entries; /* of the fields of the non-zeros */
  int64_t n_numbers, n_reals;
  int32_t *number;
  double *real; /* coefficient of each non-zero */
} clb_product_table;
/* false: no memory.  Release with clb_product_table_free. */
bool clb_product_table_make(const clb_tensor_product_problem *tp, clb_product_table *t);
void clb_product_table_free(clb_product_table *t);

/* All results of the schedule's `rows_per_lane` rows (at most CLB_TABLE_ROWS), the first i64 and
   `apart` from each other. */
enum { CLB_TABLE_ROWS = 4 };
void clb_table_results(clb_form_builder *f, ir_val first, int apart, ir_val numbers, ir_val reals);

#endif
