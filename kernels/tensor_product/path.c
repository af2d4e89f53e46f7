/* kernels/tensor_product/path.c - one path of a channel-wise product: its contribution to each
   result. */
#include "kernels/tensor_product/path.h"

#include <stdlib.h>
#include <string.h>

bool clb_path_begin(clb_path_builder *b, clb_form_builder *f,
                    void (*load)(void *owner, int slot, int order, ir_val *v), void *owner) {
  b->f = f;
  b->load = load;
  b->owner = owner;
  b->entry = malloc(sizeof *b->entry * MAX_M * MAX_M * MAX_M);
  b->symbol = malloc(sizeof *b->symbol * MAX_M * MAX_M * MAX_M);
  return b->entry && b->symbol;
}

void clb_path_free(clb_path_builder *b) {
  free(b->symbol);
  free(b->entry);
}

void clb_path_forget(clb_path_builder *b) {
  for (int order = 0; order < ORDERS; order++) b->x_term[order] = -1;
}

static int at_y(const clb_path_builder *b) { return b->f->tp->y.term[b->path->in2].at; }

/* Components of a vector of x or z; the weight, IR_NONE for 1. */
static const ir_val *value(clb_path_builder *b, int slot, int order) {
  ir_val *v = b->value[slot][order];
  bool again = slot == X && b->x_term[order] == b->path->in1; /* still loaded from the previous
                                                                 path */
  if (b->loaded[slot][order] || again) return v;
  b->loaded[slot][order] = true;
  if (slot == X) b->x_term[order] = b->path->in1;
  clb_no_values(v, MAX_M);
  if (slot != W || b->path->has_weight) b->load(b->owner, slot, order, v);
  return v;
}

ir_val clb_path_weight(clb_path_builder *b) { return value(b, W, 0)[0]; }

static void load_all(clb_path_builder *b) {
  static const int slots[] = {W, X, Z};
  for (int i = 0; i < 3; i++)
    for (int m = 0; m < b->f->form->n_monomials; m++)
      for (int o = 0; o < b->f->form->n_outputs; o++)
        if (clb_form_wanted(b->f, o) && b->f->form->output[o].slot != slots[i] &&
            clb_form_alive(b->f, m, o, b->path))
          value(b, slots[i], b->f->form->monomial[m][slots[i]]);
}

static void turn_to(clb_path_builder *b, const clb_path *p, const double *scale) {
  b->path = p;
  b->n = clb_form_entries(b->f->tp, p, b->symbol, b->entry);
  for (int q = 0; q < b->n; q++)
    if (scale) b->entry[q].c /= scale[b->entry[q].k];
  memset(b->loaded, 0, sizeof b->loaded);
  memset(b->contracted, 0, sizeof b->contracted);
  memset(b->paired, 0, sizeof b->paired);
}

void clb_path_open(clb_path_builder *b, const clb_path *p, const double *scale) {
  turn_to(b, p, scale);
  load_all(b);
}

/* a_ij of a vector of z. */
static ir_val (*pair(clb_path_builder *b, int z))[MAX_M] {
  ir_val(*a)[MAX_M] = b->pair[z];
  if (b->paired[z]) return a;
  b->paired[z] = true;
  const ir_val *g = value(b, Z, z);
  for (int i = 0; i < MAX_M; i++) clb_no_values(a[i], MAX_M);
  for (int q = 0; q < b->n; q++) {
    const clb_entry *e = &b->entry[q];
    a[e->i][e->j] = clb_plus_scaled(b->f, a[e->i][e->j], e->c, g[e->k]);
  }
  return a;
}

void clb_path_pairs(clb_path_builder *b, const clb_path *p, const double *scale) {
  turn_to(b, p, scale);
  pair(b, 0);
}

static const ir_val *beta(clb_path_builder *b, int y, int z) {
  ir_val *v = b->beta[y][z];
  if (b->contracted[y][z]) return v;
  b->contracted[y][z] = true;
  clb_no_values(v, MAX_M);
  if (b->pairs) {
    ir_val(*a)[MAX_M] = pair(b, z);
    for (int i = 0; i < MAX_M; i++)
      for (int j = 0; j < MAX_M; j++)
        if (a[i][j] != IR_NONE)
          v[i] = clb_add_product(b->f->k, v[i], b->y[y][at_y(b) + j], a[i][j]);
  } else clb_contract_x(b->f, b->entry, b->n, b->y[y] + at_y(b), value(b, Z, z), v);
  return v;
}

/* Sum of w x over the monomials with these orders of y and z that contribute to output o (-1: any
   order of the slot by which it is differentiated). */
static bool weighted(clb_path_builder *b, int o, int y, int z, ir_val *u) {
  bool some = false;
  clb_no_values(u, MAX_M);
  for (int m = 0; m < b->f->form->n_monomials; m++) {
    const int *order = b->f->form->monomial[m];
    if (!clb_form_alive(b->f, m, o, b->path) || (y >= 0 && order[Y] != y) ||
        (z >= 0 && order[Z] != z))
      continue;
    const ir_val *x = value(b, X, order[X]), w = *value(b, W, order[W]);
    for (int i = 0; i < MAX_M && x[i] != IR_NONE; i++)
      u[i] = clb_plus_weighted(b->f->k, u[i], w, x[i]);
    some = true;
  }
  return some;
}

void clb_path_x(clb_path_builder *b, int o, ir_val *sum) {
  for (int m = 0; m < b->f->form->n_monomials; m++) {
    const int *order = b->f->form->monomial[m];
    if (!clb_form_alive(b->f, m, o, b->path)) continue;
    const ir_val *v = beta(b, order[Y], order[Z]), w = *value(b, W, order[W]);
    for (int i = 0; i < MAX_M; i++) sum[i] = clb_plus_weighted(b->f->k, sum[i], w, v[i]);
  }
}

ir_val clb_path_w(clb_path_builder *b, int o) {
  ir_val sum = IR_NONE;
  for (int m = 0; m < b->f->form->n_monomials; m++) {
    const int *order = b->f->form->monomial[m];
    if (!clb_form_alive(b->f, m, o, b->path)) continue;
    const ir_val *v = beta(b, order[Y], order[Z]), *x = value(b, X, order[X]);
    for (int i = 0; i < MAX_M; i++) sum = clb_add_product(b->f->k, sum, v[i], x[i]);
  }
  return sum;
}

/* sum_k += sum_i M_ik u_i */
static void through_matrix(clb_path_builder *b, const ir_val *u, const ir_val *y, ir_val *sum) {
  ir_val m[MAX_M][MAX_M];
  for (int i = 0; i < MAX_M; i++) clb_no_values(m[i], MAX_M);
  for (int q = 0; q < b->n; q++) {
    const clb_entry *e = &b->entry[q];
    m[e->i][e->k] = clb_plus_scaled(b->f, m[e->i][e->k], e->c, y[e->j]);
  }
  for (int i = 0; i < MAX_M; i++)
    for (int k = 0; k < MAX_M; k++) sum[k] = clb_add_product(b->f->k, sum[k], m[i][k], u[i]);
}

void clb_path_z(clb_path_builder *b, int o, ir_val *sum) {
  ir_val u[MAX_M];
  for (int y = 0; y < ORDERS; y++) {
    if (!weighted(b, o, y, -1, u)) continue;
    if (b->matrices) through_matrix(b, u, b->y[y] + at_y(b), sum);
    else clb_contract_z(b->f, b->entry, b->n, u, b->y[y] + at_y(b), sum);
  }
}

void clb_path_y(clb_path_builder *b, int o, ir_val *sum) {
  ir_val u[MAX_M];
  for (int z = 0; z < ORDERS; z++) {
    if (!weighted(b, o, -1, z, u)) continue;
    if (!b->pairs) {
      clb_contract_y(b->f, b->entry, b->n, u, value(b, Z, z), sum);
      continue;
    }
    ir_val(*a)[MAX_M] = pair(b, z);
    for (int i = 0; i < MAX_M; i++)
      for (int j = 0; j < MAX_M; j++)
        if (a[i][j] != IR_NONE && u[i] != IR_NONE)
          sum[j] = clb_add_product(b->f->k, sum[j], u[i], a[i][j]);
  }
}
