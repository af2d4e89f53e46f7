/* tensor_product.c - the channel-wise Clebsch-Gordan product and its derivatives; lanes are channels, and a row belongs to one
   sub-group that goes through its blocks of channels, or to several (units) that have a block each.

   A path p is c_p sum_ijk C_ijk w x_i y_j z_k with C its 3j symbol.  Every pass is a set of three contractions of it, where u is
   some vector over channels (w x for example), y is uniform, g belongs to the output:
     T: z_k  += sum_ij C u_i y_j      B: beta_i = sum_jk C y_j g_k      Y: s_j += sum_ik C u_i g_k  (summed over lanes at the end)
   forward          z = T(w x, y)
   backward         beta = B(y, g);  g_w = beta . x;  g_x = w beta;  g_y = Y(w x, g)
   double backward  beta = B(y, g), beta' = B(b, g), u = w a + c x:
                    d_g = T(u, y) + T(w x, b);  d_x = w beta' + c beta;  d_w = beta . a + beta' . x;  d_y = Y(u, g)
   Terms of equal multiplicity share their blocks of channels, so that each operand is loaded once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/wigner.h"
#include "kernels.h"
#include "rows.h"

extern const clb_kernel_kind clb_tensor_product;

enum { MAX_L = 12, MAX_M = 2 * MAX_L + 1, MAX_ARRAYS = 11 };

typedef struct {
  int i, j, k;
  double c;
} entry;

/* One operand or result: where this row of it starts. */
typedef struct {
  clb_row_array rows;
  ir_val base;               /* i64, uniform */
  const clb_irreps *irreps;  /* NULL: weights */
  int layout;
} operand;

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  const clb_tensor_product_problem *tp;
  const clb_schedule *s;
  ir_type t;
  operand array[MAX_ARRAYS];
  int order[CLB_MAX_PATHS];  /* paths by multiplicity, then term of x */
  ir_val n, row;             /* i64 */
  ir_val unit;               /* i32: which of the row's sub-groups this is */
  int next_unit;             /* the first one whose block has not been said yet */
  bool opened;               /* the block at hand stands in a LOOP or IF */
  ir_val channel, mask;      /* of the block of channels: i64 index of this lane's, lanes that have one */
  ir_val y[CLB_MAX_TERMS * 4], b[CLB_MAX_TERMS * 4]; /* elements of y and of its incoming gradient, uniform */
  ir_val sum[CLB_MAX_TERMS * 4];                     /* variables: this lane's share of the gradient of y; IR_NONE: untouched */
  int paths_left_x[CLB_MAX_TERMS], paths_left_z[CLB_MAX_TERMS];
} builder;

static int width_of(const clb_term *t) { return 2 * t->l + 1; }

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  (void)limits;
  if (p->tensor_product.y.dim > CLB_MAX_TERMS * 4) return clb_fail(error, CLB_ERROR_UNSUPPORTED, "irreps_y has %d elements; at most %d so far", p->tensor_product.y.dim, CLB_MAX_TERMS * 4);
  return CLB_OK;
}

/* Blocks of channels where every path has the same multiplicity; else 0. */
static int count_blocks(const clb_tensor_product_problem *tp, int lanes) {
  int mul = tp->n_paths ? tp->x.term[tp->path[0].in1].mul : 0;
  for (int q = 1; q < tp->n_paths; q++)
    if (tp->x.term[tp->path[q].in1].mul != mul) return 0;
  return (mul + lanes - 1) / lanes;
}

/* Measured on an H200 (bench/results).  A loop over blocks tempts compilers to keep every product c y in a register across it, so
   where all blocks are alike they go to sub-groups of their own; sub-groups with unlike work would wait for each other. */
static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic], .subgroups = 1, .width = 1};
  if (limits->simd || !limits->subgroups) return;
  int units = count_blocks(&p->tensor_product, s->lanes), rows = units ? 128 / (s->lanes * units) : 32 / s->lanes;
  if (units >= 1 && units <= 8 && units <= limits->max_subgroups) s->units = units;
  if (rows < 1) rows = 1;
  s->subgroups = rows * (s->units ? s->units : 1);
  if (s->subgroups > limits->max_subgroups) s->subgroups = s->units ? s->units : limits->max_subgroups;
}

/* ---- memory ---- */

static ir_val index_of(builder *b, const operand *o, int64_t at) { return ir_add(b->k, o->base, ir_int(b->k, IR_I64, at)); }

/* This channel's components of term t. */
static void load_term(builder *b, const operand *o, int term, ir_val *v) {
  const clb_term *t = &o->irreps->term[term];
  ir_kernel *k = b->k;
  int n = width_of(t);
  if (o->layout == CLB_MUL_IR)
    for (int i = 0, w; i < n; i += w) {
      w = n - i < IR_MAX_WIDTH ? n - i : IR_MAX_WIDTH;
      ir_load_wide(k, o->rows.buffer, ir_add(k, index_of(b, o, t->at + i), ir_mul(k, b->channel, ir_int(k, IR_I64, n))), b->mask, w, v + i);
    }
  else
    for (int i = 0; i < n; i++) v[i] = ir_load(k, o->rows.buffer, ir_add(k, index_of(b, o, t->at + (int64_t)i * t->mul), b->channel), b->mask);
  for (int i = 0; i < n; i++) v[i] = ir_cast(k, b->t, v[i]);
}

static void store_term(builder *b, const operand *o, int term, const ir_val *v) {
  const clb_term *t = &o->irreps->term[term];
  ir_kernel *k = b->k;
  int n = width_of(t);
  ir_val out[MAX_M], old[MAX_M];
  if (b->p->accumulate) load_term(b, o, term, old);
  for (int i = 0; i < n; i++) {
    out[i] = v[i] == IR_NONE ? ir_real(k, b->t, 0) : v[i];
    out[i] = ir_cast(k, ir_register_type(o->rows.element), b->p->accumulate ? ir_add(k, old[i], out[i]) : out[i]);
  }
  if (o->layout == CLB_MUL_IR)
    for (int i = 0, w; i < n; i += w) {
      w = n - i < IR_MAX_WIDTH ? n - i : IR_MAX_WIDTH;
      ir_store_wide(k, o->rows.buffer, ir_add(k, index_of(b, o, t->at + i), ir_mul(k, b->channel, ir_int(k, IR_I64, n))), b->mask, w, out + i);
    }
  else
    for (int i = 0; i < n; i++) ir_store(k, o->rows.buffer, ir_add(k, index_of(b, o, t->at + (int64_t)i * t->mul), b->channel), b->mask, out[i]);
}

static ir_val weight_index(builder *b, const operand *o, const clb_path *p) { return ir_add(b->k, index_of(b, o, p->weight_at), b->channel); }

static ir_val load_weight(builder *b, const operand *o, const clb_path *p) {
  return p->has_weight ? ir_cast(b->k, b->t, ir_load(b->k, o->rows.buffer, weight_index(b, o, p), b->mask)) : IR_NONE;
}

static void store_weight(builder *b, const operand *o, const clb_path *p, ir_val v) {
  ir_val index = weight_index(b, o, p);
  if (b->p->accumulate) v = ir_add(b->k, v, ir_cast(b->k, b->t, ir_load(b->k, o->rows.buffer, index, b->mask)));
  ir_store(b->k, o->rows.buffer, index, b->mask, ir_cast(b->k, ir_register_type(o->rows.element), v));
}

/* ---- arithmetic; IR_NONE is an empty sum, and as a weight it is 1 ---- */

static ir_val plus(builder *b, ir_val sum, ir_val x, ir_val y) {
  if (x == IR_NONE || y == IR_NONE) return sum;
  return sum == IR_NONE ? ir_mul(b->k, x, y) : ir_fma(b->k, x, y, sum);
}

static ir_val weighted(builder *b, ir_val w, ir_val x) { return w == IR_NONE ? x : ir_mul(b->k, w, x); }

static ir_val plus_weighted(builder *b, ir_val sum, ir_val w, ir_val x) {
  if (x == IR_NONE) return sum;
  if (w == IR_NONE) return sum == IR_NONE ? x : ir_add(b->k, sum, x);
  return plus(b, sum, w, x);
}

/* C: room for any 3j symbol. */
static int entries_of(const builder *b, const clb_path *p, double *C, entry *e) {
  int l1 = b->tp->x.term[p->in1].l, l2 = b->tp->y.term[p->in2].l, l3 = b->tp->z.term[p->out].l, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1, n = 0;
  clb_wigner_3j(l1, l2, l3, C);
  for (int k = 0; k < n3; k++)
    for (int i = 0; i < 2 * l1 + 1; i++)
      for (int j = 0; j < n2; j++)
        if (C[(i * n2 + j) * n3 + k] != 0) e[n++] = (entry){i, j, k, p->coefficient * C[(i * n2 + j) * n3 + k]};
  return n;
}

/* c times an element of y: uniform */
static ir_val scaled(builder *b, double c, ir_val y) { return ir_mul(b->k, ir_real(b->k, b->t, c), y); }

static void contract_out(builder *b, const entry *e, int n, const ir_val *u, const ir_val *y, ir_val *z) {
  for (int q = 0; q < n; q++) z[e[q].k] = plus(b, z[e[q].k], u[e[q].i], scaled(b, e[q].c, y[e[q].j]));
}

static void contract_in(builder *b, const entry *e, int n, const ir_val *y, const ir_val *g, ir_val *beta) {
  for (int q = 0; q < n; q++) beta[e[q].i] = plus(b, beta[e[q].i], g[e[q].k], scaled(b, e[q].c, y[e[q].j]));
}

/* The products u_i g_k are shared by hash-consing. */
static void contract_y(builder *b, const entry *e, int n, const ir_val *u, const ir_val *g, ir_val *sum) {
  for (int q = 0; q < n; q++) sum[e[q].j] = plus(b, sum[e[q].j], ir_mul(b->k, u[e[q].i], g[e[q].k]), ir_real(b->k, b->t, e[q].c));
}

/* ---- one path ---- */

typedef struct {
  ir_val x[MAX_M]; /* sums over the paths that share a term of x, */
  ir_val z[MAX_M]; /* of z */
} sums;

static void none(ir_val *v, int n) {
  for (int i = 0; i < n; i++) v[i] = IR_NONE;
}

/* Adds to the variables of the gradient of y. */
static void add_to_y(builder *b, int at, int n, const ir_val *s) {
  for (int j = 0; j < n; j++)
    if (s[j] != IR_NONE) ir_set(b->k, b->sum[at + j], ir_add(b->k, ir_get(b->k, b->sum[at + j]), s[j]));
}

/* The arrays of each pass, in the order of the arguments. */
enum { X, Y, W, Z };                                        /* forward */
enum { G = 3, GX, GY, GW };                                 /* backward */
enum { A = 4, B, C, DX, DY, DW, DG };                       /* double backward */

static void path_forward(builder *b, const clb_path *p, const entry *e, int n, sums *s) {
  ir_val x[MAX_M], u[MAX_M], w = load_weight(b, &b->array[W], p);
  load_term(b, &b->array[X], p->in1, x);
  for (int i = 0; i < MAX_M; i++) u[i] = i < width_of(&b->tp->x.term[p->in1]) ? weighted(b, w, x[i]) : IR_NONE;
  contract_out(b, e, n, u, b->y + b->tp->y.term[p->in2].at, s->z);
}

static void path_backward(builder *b, const clb_path *p, const entry *e, int n, sums *s) {
  int n1 = width_of(&b->tp->x.term[p->in1]), at = b->tp->y.term[p->in2].at, n2 = width_of(&b->tp->y.term[p->in2]);
  ir_val x[MAX_M], u[MAX_M], g[MAX_M], beta[MAX_M], y[MAX_M], g_w = IR_NONE, w = load_weight(b, &b->array[W], p);
  load_term(b, &b->array[X], p->in1, x);
  load_term(b, &b->array[G], p->out, g);
  none(beta, MAX_M);
  none(y, MAX_M);
  contract_in(b, e, n, b->y + at, g, beta);
  for (int i = 0; i < n1; i++) {
    u[i] = weighted(b, w, x[i]);
    g_w = plus(b, g_w, beta[i], x[i]);
    s->x[i] = plus_weighted(b, s->x[i], w, beta[i]);
  }
  if (p->has_weight) store_weight(b, &b->array[GW], p, g_w);
  contract_y(b, e, n, u, g, y);
  add_to_y(b, at, n2, y);
}

static void path_double_backward(builder *b, const clb_path *p, const entry *e, int n, sums *s) {
  int n1 = width_of(&b->tp->x.term[p->in1]), at = b->tp->y.term[p->in2].at, n2 = width_of(&b->tp->y.term[p->in2]);
  ir_val x[MAX_M], a[MAX_M], g[MAX_M], u[MAX_M], wx[MAX_M], beta[MAX_M], beta_b[MAX_M], y[MAX_M], d_w = IR_NONE;
  ir_val w = load_weight(b, &b->array[W], p), c = load_weight(b, &b->array[C], p);
  load_term(b, &b->array[X], p->in1, x);
  load_term(b, &b->array[A], p->in1, a);
  load_term(b, &b->array[G], p->out, g);
  none(beta, MAX_M);
  none(beta_b, MAX_M);
  none(y, MAX_M);
  contract_in(b, e, n, b->y + at, g, beta);
  contract_in(b, e, n, b->b + at, g, beta_b);
  for (int i = 0; i < n1; i++) {
    wx[i] = weighted(b, w, x[i]);
    u[i] = weighted(b, w, a[i]);
    if (p->has_weight) u[i] = ir_fma(b->k, c, x[i], u[i]);
    d_w = plus(b, plus(b, d_w, beta[i], a[i]), beta_b[i], x[i]);
    s->x[i] = plus_weighted(b, s->x[i], w, beta_b[i]);
    if (p->has_weight) s->x[i] = plus(b, s->x[i], c, beta[i]);
  }
  if (p->has_weight) store_weight(b, &b->array[DW], p, d_w);
  contract_out(b, e, n, u, b->y + at, s->z);
  contract_out(b, e, n, wx, b->b + at, s->z);
  contract_y(b, e, n, u, g, y);
  add_to_y(b, at, n2, y);
}

/* ---- channels ---- */

/* All paths of one multiplicity on the block of channels at hand. */
static void block_of_paths(builder *b, const int *path, int n_paths, sums *by_x, sums *by_z) {
  static void (*const emit[])(builder *, const clb_path *, const entry *, int, sums *) = {path_forward, path_backward, path_double_backward};
  entry *e = malloc(sizeof *e * MAX_M * MAX_M * MAX_M);
  double *symbol = malloc(sizeof *symbol * MAX_M * MAX_M * MAX_M);
  if (!e || !symbol) snprintf(b->k->error, sizeof b->k->error, "no memory");
  for (int q = 0; q < n_paths && e && symbol; q++) {
    const clb_path *p = &b->tp->path[path[q]];
    sums s = {{0}, {0}};
    memcpy(s.x, by_x[p->in1].x, sizeof s.x);
    memcpy(s.z, by_z[p->out].z, sizeof s.z);
    emit[b->p->pass](b, p, e, entries_of(b, p, symbol, e), &s);
    memcpy(by_x[p->in1].x, s.x, sizeof s.x);
    memcpy(by_z[p->out].z, s.z, sizeof s.z);
    if (!--b->paths_left_z[p->out] && b->p->pass != CLB_BACKWARD) store_term(b, &b->array[b->p->pass == CLB_FORWARD ? Z : DG], p->out, s.z);
    if (!--b->paths_left_x[p->in1] && b->p->pass != CLB_FORWARD) store_term(b, &b->array[b->p->pass == CLB_BACKWARD ? GX : DX], p->in1, s.x);
  }
  free(symbol);
  free(e);
}

/* Opens what goes over mul channels, lanes at a time; close with end_channels.  `alone`: by the first unit, others do nothing. */
static void begin_channels(builder *b, int mul, bool alone) {
  ir_kernel *k = b->k;
  int lanes = b->s->lanes, blocks = (mul - 1) / lanes + 1, units = b->s->units;
  ir_val lane = ir_lane(k), first = ir_int(k, IR_I32, 0), one = ir_int(k, IR_I32, 1);
  b->opened = true;
  if (units && !alone) {
    ir_val block = ir_sub(k, b->unit, ir_int(k, IR_I32, b->next_unit));
    ir_val mine = ir_2(k, IR_AND, ir_2(k, IR_LE, first, block), ir_2(k, IR_LT, block, ir_int(k, IR_I32, blocks)));
    b->opened = blocks < units;
    b->next_unit += blocks;
    if (b->opened) ir_if(k, mine);
    first = ir_mul(k, block, ir_int(k, IR_I32, lanes));
  } else if (mul > lanes) {
    first = ir_mul(k, ir_loop(k, first, ir_int(k, IR_I32, blocks), one), ir_int(k, IR_I32, lanes));
  } else b->opened = false;
  b->channel = ir_cast(k, IR_I64, ir_add(k, first, lane));
  b->mask = mul % lanes ? ir_2(k, IR_LT, lane, ir_sub(k, ir_int(k, IR_I32, mul), first)) : IR_NONE;
}

static void end_channels(builder *b) {
  if (b->opened) ir_end(b->k);
}

/* Terms that no path reaches are 0. */
static void store_unreached(builder *b, const operand *o, const int *paths) {
  ir_val nothing[MAX_M];
  none(nothing, MAX_M);
  if (b->p->accumulate) return;
  for (int t = 0; t < o->irreps->n; t++)
    if (!paths[t] && o->irreps->term[t].mul) {
      begin_channels(b, o->irreps->term[t].mul, true);
      store_term(b, o, t, nothing);
      end_channels(b);
    }
}

/* ---- y: uniform when read, summed over lanes when written ---- */

static void load_y(builder *b, const operand *o, ir_val *y) {
  for (int j = 0; j < o->irreps->dim; j++) y[j] = ir_cast(b->k, b->t, ir_load(b->k, o->rows.buffer, index_of(b, o, j), IR_NONE));
}

/* Lane j takes element first + j of the sub-group's sum, so that one store writes as many as there are lanes. */
static ir_val sum_of_lanes(builder *b, int first, int n) {
  ir_kernel *k = b->k;
  ir_val out = ir_real(k, b->t, 0);
  for (int j = 0; j < n; j++)
    if (b->sum[first + j] != IR_NONE) out = ir_select(k, ir_2(k, IR_EQ, ir_lane(k), ir_int(k, IR_I32, j)), ir_reduce_add(k, ir_get(k, b->sum[first + j])), out);
  return out;
}

/* Where several sub-groups share the row, they meet in local memory and the first adds them up in order.  Called by whole groups. */
static ir_val sum_of_units(builder *b, ir_val stage, ir_val own) {
  ir_kernel *k = b->k;
  ir_val lanes = ir_int(k, IR_I32, b->s->lanes), at = ir_add(k, ir_mul(k, ir_subgroup(k), lanes), ir_lane(k));
  ir_barrier(k, true);
  ir_store(k, stage, at, IR_NONE, own);
  ir_barrier(k, true);
  for (int u = 1; u < b->s->units; u++) {
    ir_val last = ir_int(k, IR_I32, b->s->subgroups * b->s->lanes - 1), other = ir_add(k, at, ir_int(k, IR_I32, u * b->s->lanes));
    own = ir_add(k, own, ir_load(k, stage, ir_2(k, IR_MIN, other, last), IR_NONE)); /* the first unit's neighbours; others read anything */
  }
  return own;
}

static void store_y(builder *b, const operand *o, ir_val stage) {
  ir_kernel *k = b->k;
  int lanes = b->s->lanes;
  ir_val lane = ir_lane(k), due = ir_2(k, IR_LT, b->row, b->n);
  for (int first = 0; first < o->irreps->dim; first += lanes) {
    int n = o->irreps->dim - first < lanes ? o->irreps->dim - first : lanes;
    ir_val out = sum_of_lanes(b, first, n), index = ir_add(k, index_of(b, o, first), ir_cast(k, IR_I64, lane));
    ir_val mask = n == lanes ? IR_NONE : ir_2(k, IR_LT, lane, ir_int(k, IR_I32, n));
    if (b->s->units > 1) out = sum_of_units(b, stage, out);
    if (b->s->subgroups > 1) ir_if(k, ir_2(k, IR_AND, due, ir_2(k, IR_EQ, b->unit, ir_int(k, IR_I32, 0))));
    if (b->p->accumulate) out = ir_add(k, out, ir_cast(k, b->t, ir_load(k, o->rows.buffer, index, mask)));
    ir_store(k, o->rows.buffer, index, mask, ir_cast(k, ir_register_type(o->rows.element), out));
    if (b->s->subgroups > 1) ir_end(k);
  }
}

static void start_sums(builder *b) {
  for (int j = 0; j < b->tp->y.dim; j++) b->sum[j] = IR_NONE;
  for (int q = 0; q < b->tp->n_paths; q++) {
    const clb_term *t = &b->tp->y.term[b->tp->path[q].in2];
    for (int j = 0; j < width_of(t) && b->tp->x.term[b->tp->path[q].in1].mul; j++)
      if (b->sum[t->at + j] == IR_NONE) b->sum[t->at + j] = ir_var(b->k, ir_real(b->k, b->t, 0), false);
  }
}

/* ---- the whole ---- */

/* Paths by multiplicity, then term of x: simple insertion, stable. */
static void sort_paths(builder *b) {
  const clb_irreps *x = &b->tp->x;
  for (int q = 0; q < b->tp->n_paths; q++) {
    int at = q, in1 = b->tp->path[q].in1, mul = x->term[in1].mul;
    for (; at > 0; at--) {
      int other = b->tp->path[b->order[at - 1]].in1;
      if (x->term[other].mul > mul || (x->term[other].mul == mul && other <= in1)) break;
      b->order[at] = b->order[at - 1];
    }
    b->order[at] = q;
    b->paths_left_x[in1]++;
    b->paths_left_z[b->tp->path[q].out]++;
  }
}

static void all_paths(builder *b) {
  sums *by_x = malloc(sizeof *by_x * CLB_MAX_TERMS), *by_z = malloc(sizeof *by_z * CLB_MAX_TERMS);
  if (!by_x || !by_z) snprintf(b->k->error, sizeof b->k->error, "no memory");
  for (int first = 0, end; first < b->tp->n_paths && by_x && by_z; first = end) {
    int mul = b->tp->x.term[b->tp->path[b->order[first]].in1].mul;
    for (end = first; end < b->tp->n_paths && b->tp->x.term[b->tp->path[b->order[end]].in1].mul == mul;) end++;
    if (!mul) continue;
    for (int t = 0; t < CLB_MAX_TERMS; t++) none(by_x[t].x, MAX_M), none(by_z[t].z, MAX_M);
    begin_channels(b, mul, false);
    block_of_paths(b, b->order + first, end - first, by_x, by_z);
    end_channels(b);
  }
  free(by_x);
  free(by_z);
}

static void whole(builder *b) {
  const int *kinds = (const int[3][MAX_ARRAYS]){{X, Y, W, Z}, {X, Y, W, Z, X, Y, W}, {X, Y, W, Z, X, Y, W, X, Y, W, Z}}[b->p->pass];
  int n_arrays = (const int[]){4, 7, 11}[b->p->pass], inputs = (const int[]){3, 4, 7}[b->p->pass];
  const clb_irreps *irreps[] = {&b->tp->x, &b->tp->y, NULL, &b->tp->z};
  int layouts[] = {b->tp->layout_x, b->tp->layout_y, 0, b->tp->layout_z};
  ir_kernel *k = b->k;
  clb_row_block rows;
  clb_rows_begin(&rows, k, b->s, (clb_dtype)b->p->arithmetic);
  for (int a = 0; a < n_arrays; a++)
    b->array[a] = (operand){.rows = clb_rows_array(&rows, (clb_dtype)b->p->storage, a >= inputs), .irreps = irreps[kinds[a]], .layout = layouts[kinds[a]]};
  int units = b->s->units ? b->s->units : 1, rows_of_group = b->s->subgroups / units;
  ir_val in_group = ir_2(k, IR_DIV, ir_subgroup(k), ir_int(k, IR_I32, units)), stage = IR_NONE;
  b->n = rows.n;
  b->unit = units > 1 ? ir_sub(k, ir_subgroup(k), ir_mul(k, in_group, ir_int(k, IR_I32, units))) : ir_int(k, IR_I32, 0);
  b->row = ir_mul(k, ir_cast(k, IR_I64, ir_group(k)), ir_int(k, IR_I64, rows_of_group));
  if (rows_of_group > 1) b->row = ir_add(k, b->row, ir_cast(k, IR_I64, in_group));
  for (int a = 0; a < n_arrays; a++) b->array[a].base = ir_add(k, ir_mul(k, b->row, b->array[a].rows.stride), b->array[a].rows.offset);
  if (b->p->pass != CLB_FORWARD) start_sums(b);
  if (b->p->pass != CLB_FORWARD && units > 1) stage = ir_local(k, b->t, (int64_t)b->s->subgroups * b->s->lanes);
  if (rows_of_group > 1) ir_if(k, ir_2(k, IR_LT, b->row, rows.n));
  load_y(b, &b->array[Y], b->y);
  if (b->p->pass == CLB_DOUBLE_BACKWARD) load_y(b, &b->array[B], b->b);
  int reached_x[CLB_MAX_TERMS], reached_z[CLB_MAX_TERMS];
  memcpy(reached_x, b->paths_left_x, sizeof reached_x);
  memcpy(reached_z, b->paths_left_z, sizeof reached_z);
  all_paths(b);
  if (units > 1) ir_if(k, ir_2(k, IR_EQ, b->unit, ir_int(k, IR_I32, 0)));
  if (b->p->pass != CLB_BACKWARD) store_unreached(b, &b->array[b->p->pass == CLB_FORWARD ? Z : DG], reached_z);
  if (b->p->pass != CLB_FORWARD) store_unreached(b, &b->array[b->p->pass == CLB_BACKWARD ? GX : DX], reached_x);
  if (units > 1) ir_end(k);
  if (rows_of_group > 1) ir_end(k);
  if (b->p->pass != CLB_FORWARD) store_y(b, &b->array[b->p->pass == CLB_BACKWARD ? GY : DY], stage);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"tensor_product_forward", "tensor_product_backward", "tensor_product_double_backward"};
  builder *b = calloc(1, sizeof *b);
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, s->subgroups / (s->units ? s->units : 1));
  if (!b) {
    snprintf(k->error, sizeof k->error, "no memory");
    return;
  }
  *b = (builder){.k = k, .p = p, .tp = &p->tensor_product, .s = s, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  sort_paths(b);
  whole(b);
  ir_finish(k);
  free(b);
}

static void print_irreps(const clb_irreps *r, clb_text *out) {
  for (int i = 0; i < r->n; i++) clb_text_add(out, "%s%dx%d%c", i ? "+" : "", r->term[i].mul, r->term[i].l, r->term[i].parity > 0 ? 'e' : 'o');
}

static void print(const clb_problem *p, clb_text *out) {
  print_irreps(&p->tensor_product.x, out);
  clb_text_add(out, " (x) ");
  print_irreps(&p->tensor_product.y, out);
  clb_text_add(out, " -> ");
  print_irreps(&p->tensor_product.z, out);
  clb_text_add(out, ", %d paths", p->tensor_product.n_paths);
}

const clb_kernel_kind clb_tensor_product = {"tensor_product", check, schedule, lower, print};
