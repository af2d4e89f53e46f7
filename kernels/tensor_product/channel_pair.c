/* kernels/tensor_product/channel_pair.c - a pair of channels of a path that mixes channels by
   weights. */
#include "kernels/tensor_product/channel_pair.h"

#include <stdlib.h>

typedef clb_pair_builder builder;
typedef clb_components components;

static ir_kernel *of(builder *b) { return b->f.k; }

bool clb_pairs_begin(builder *b, ir_kernel *k, const clb_problem *p, const clb_schedule *s) {
  b->entry = malloc(sizeof *b->entry * MAX_M * MAX_M * MAX_M);
  b->symbol = malloc(sizeof *b->symbol * MAX_M * MAX_M * MAX_M);
  if (!b->entry || !b->symbol) return false;
  clb_form_begin(&b->f, k, p, s);
  b->tp = b->f.tp;
  for (int order = 0; order < ORDERS; order++) {
    for (int i = 0; i < CLB_PAIR_MAX_Y; i++) clb_no_values(b->y[order][i], MAX_M);
    for (int i = 0; i < CLB_PAIR_MAX_Z; i++) clb_no_values(b->z[order][i], MAX_M);
    for (int i = 0; i < CLB_PAIR_MAX_U; i++) clb_no_values(b->x[order][i], MAX_M);
  }
  return true;
}

void clb_pairs_free(builder *b) {
  free(b->symbol);
  free(b->entry);
}

static bool alive(const builder *b, int m, int o) {
  return clb_form_wanted(&b->f, o) && clb_form_alive(&b->f, m, o, &b->tp->path[0]);
}

/* Whether some result needs this vector. */
bool clb_pairs_use(const builder *b, int slot, int order) {
  for (int o = 0; o < b->f.form->n_outputs; o++)
    for (int m = 0; m < b->f.form->n_monomials; m++)
      if (clb_pairs_slot(b, o) != slot && b->f.form->monomial[m][slot] == order && alive(b, m, o))
        return true;
  return false;
}

/* Whether some monomial of output o combines these orders of two slots with that of a third. */
static bool combined(const builder *b, int o, int with, int mine, int slot, int order, int other,
                     int second) {
  for (int m = 0; m < b->f.form->n_monomials; m++) {
    const int *orders = b->f.form->monomial[m];
    if (orders[with] == mine && orders[slot] == order && orders[other] == second && alive(b, m, o))
      return true;
  }
  return false;
}

/* t_k = sum of C x y over the monomials of output o whose vector of slot `with` has order `mine`;
   false: there are none. */
static bool products_xy(builder *b, const clb_pair *p, int o, int with, int mine, ir_val *t) {
  bool some = false;
  clb_no_values(t, MAX_M);
  for (int i = 0; i < ORDERS; i++)
    for (int j = 0; j < ORDERS; j++) {
      if (!combined(b, o, with, mine, X, i, Y, j)) continue;
      clb_contract_z(&b->f, b->entry, b->n, b->x[i][p->j], b->y[j][p->y], t);
      some = true;
    }
  return some;
}

/* h_k = sum over this lane's channels of w z_k; false: there are none. */
static bool products_wz(builder *b, const clb_pair *p, int o, int with, int mine, ir_val *h) {
  const int first = b->first_block[p->path->out], n = b->blocks[p->path->out],
            width = clb_width(&b->tp->z.term[p->path->out]);
  bool some = false;
  clb_no_values(h, MAX_M);
  for (int w = 0; w < ORDERS; w++)
    for (int z = 0; z < ORDERS; z++) {
      if (!combined(b, o, with, mine, W, w, Z, z)) continue;
      for (int i = 0; i < n; i++)
        for (int k = 0; k < width; k++)
          h[k] = clb_add_product(of(b), h[k], b->weight[w][p->weight + i], b->z[z][first + i][k]);
      some = true;
    }
  return some;
}

static void add_to(builder *b, const ir_val *sum, const ir_val *v) {
  for (int k = 0; k < MAX_M; k++)
    if (v[k] != IR_NONE) ir_set(of(b), sum[k], ir_add(of(b), ir_get(of(b), sum[k]), v[k]));
}

static void give_z(builder *b, const clb_pair *p, int o, int order) {
  components t;
  const int first = b->first_block[p->path->out];
  if (!products_xy(b, p, o, W, order, t)) return;
  for (int i = 0; i < b->blocks[p->path->out]; i++)
    for (int k = 0; k < MAX_M; k++)
      if (t[k] != IR_NONE) {
        const ir_val sum = b->sum_z[o][first + i][k];
        ir_set(of(b), sum,
               ir_fma(of(b), b->weight[order][p->weight + i], t[k], ir_get(of(b), sum)));
      }
}

void clb_pairs_products(builder *b, const clb_pair *p, int o, components t[ORDERS],
                        bool some[ORDERS]) {
  for (int order = 0; order < ORDERS; order++)
    some[order] = products_xy(b, p, o, Z, order, t[order]);
}

ir_val clb_pairs_by_weight(builder *b, const clb_pair *p, components t[ORDERS],
                           const bool some[ORDERS], int i) {
  ir_val sum = IR_NONE;
  for (int order = 0; order < ORDERS; order++)
    for (int k = 0; k < MAX_M && some[order]; k++)
      sum = clb_add_product(of(b), sum, t[order][k],
                            b->z[order][b->first_block[p->path->out] + i][k]);
  return sum == IR_NONE ? ir_real(of(b), b->f.t, 0) : sum;
}

void clb_pairs_add(builder *b, const clb_pair *p,
                   void (*weights)(builder *b, const clb_pair *p, int o)) {
  components h, v;
  for (int o = 0; o < b->f.form->n_outputs; o++) {
    if (!clb_form_wanted(&b->f, o)) continue;
    const int slot = clb_pairs_slot(b, o);
    if (slot == W) weights(b, p, o);
    for (int order = 0; order < ORDERS; order++) {
      if (slot == Z) give_z(b, p, o, order);
      if (slot == X && products_wz(b, p, o, Y, order, h))
        clb_contract_x(&b->f, b->entry, b->n, b->y[order][p->y], h, b->by_x[o][p->j]);
      if (slot == Y && products_wz(b, p, o, X, order, h)) {
        clb_no_values(v, MAX_M);
        clb_contract_y(&b->f, b->entry, b->n, b->x[order][p->j], h, v);
        add_to(b, b->sum_y[o][p->y], v);
      }
    }
  }
}
