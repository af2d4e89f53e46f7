/* kernels/tensor_product/channel_pair.h - a pair of channels, u of x and v of y, of a path that
   mixes channels by weights: its contribution to all results.

   z, and the sums of gradients by it, stay in registers, y too. With h_k = the sum over a lane's
   channels w of W z_k and t = C x y, a pair contributes to w: t . z   to z: W t   to x: C y h   to
   y: C x h. A lane has one channel w of each block, or all of them. */
#ifndef CLB_KERNELS_TENSOR_PRODUCT_CHANNEL_PAIR_H
#define CLB_KERNELS_TENSOR_PRODUCT_CHANNEL_PAIR_H

#include "kernels/tensor_product/form.h"

enum {
  CLB_PAIR_MAX_Y = 16,      /* channels of y */
  CLB_PAIR_MAX_Z = 128,     /* of z in a lane */
  CLB_PAIR_MAX_LOADED = 64, /* weights of a lane that are read together */
  CLB_PAIR_MAX_U = 16       /* channels of x that are processed together */
};

typedef ir_val clb_components[MAX_M];

typedef struct {
  clb_form_builder f;
  const clb_tensor_product_problem *tp;
  int blocks[CLB_MAX_TERMS], first_block[CLB_MAX_TERMS], first_y[CLB_MAX_TERMS]; /* of z; of y */
  clb_components y[ORDERS][CLB_PAIR_MAX_Y], z[ORDERS][CLB_PAIR_MAX_Z],
      sum_y[MAX_OUTPUTS][CLB_PAIR_MAX_Y], sum_z[MAX_OUTPUTS][CLB_PAIR_MAX_Z]; /* sums: variables */
  clb_components x[ORDERS][CLB_PAIR_MAX_U], by_x[MAX_OUTPUTS][CLB_PAIR_MAX_U];
  ir_val weight[ORDERS][CLB_PAIR_MAX_LOADED];
  clb_entry *entry; /* of the current path */
  double *symbol;
  int n;
} clb_pair_builder;

typedef struct {
  const clb_path *path;
  ir_val u;    /* i32: the channel of x, */
  int j, v, y; /* its number among those together; the channel of y, and its number among all */
  int weight;  /* the first of its weights */
} clb_pair;

/* false: no memory. Release with clb_pairs_free. */
bool clb_pairs_begin(clb_pair_builder *b, ir_kernel *k, const clb_problem *p,
                     const clb_schedule *s);
void clb_pairs_free(clb_pair_builder *b);

static inline int clb_pairs_slot(const clb_pair_builder *b, int o) {
  return b->f.form->output[o].slot;
}
/* Whether some result needs this vector. */
bool clb_pairs_use(const clb_pair_builder *b, int slot, int order);

/* The pair's contributions to x, y and z; `weights` gives those to weights. */
void clb_pairs_add(clb_pair_builder *b, const clb_pair *p,
                   void (*weights)(clb_pair_builder *b, const clb_pair *p, int o));

/* t of each order of z in output o; some: whether there is any. */
void clb_pairs_products(clb_pair_builder *b, const clb_pair *p, int o, clb_components t[ORDERS],
                        bool some[ORDERS]);
/* Its gradient by the weight of block i. */
ir_val clb_pairs_by_weight(clb_pair_builder *b, const clb_pair *p, clb_components t[ORDERS],
                           const bool some[ORDERS], int i);

#endif
