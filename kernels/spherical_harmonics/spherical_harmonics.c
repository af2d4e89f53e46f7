/* kernels/spherical_harmonics/spherical_harmonics.c - real spherical harmonics and their
   derivatives; a lane is a point.

   With (X, Y, Z) = (z, x, y), C_m + i S_m = (X + iY)^m and the monic polynomials
     p_m^m = 1,  p_{m+1}^m = Z,  p_l^m = Z p_{l-1}^m - b r^2 p_{l-2}^m,
     b = (l+m-1)(l-m-1) / ((2l-1)(2l-3)),
   a harmonic is scale(l, m) p_l^|m| {S_|m|, 1, C_m}: `base` below is all except the scale.
   Derivatives come from  d_k Y^l_i = sqrt(l) (2l+1) sum_j C^{(l,l-1,1)}_ijk Y^{l-1}_j  (linear in
   the degree below):
     backward         g_x[k]   = sum_lij c_ijk g_i base_j
     double backward  d_x[k]   = sum_lij c_ijk g_i dbase_j, where dbase is the derivative of base
                                 along h (dual numbers),
                      d_g_y[i] = sum_jk  c_ijk h_k base_j. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/problem/wigner.h"
#include "kernels/common/rows.h"

enum {
  MAX_DEGREE = 20,
  MAX_ORDERS = 2 * MAX_DEGREE + 1,
  MAX_COLUMNS = CLB_MAX_DEGREES * MAX_ORDERS
};

/* A number and, in double backward, its derivative along h (else IR_NONE). */
typedef struct {
  ir_val v, d;
} dual;

typedef struct {
  ir_kernel *k;
  const clb_problem *p;
  const clb_spherical_harmonics_problem *sh;
  const clb_schedule *s;
  clb_row_block rows;
  ir_type t; /* arithmetic */
  int lmax, n_columns;
  int degree_of[MAX_COLUMNS], order_of[MAX_COLUMNS]; /* of a column: l, and l + m */
  dual X, Y, Z, r2;                                  /* the point, axes as above */
  dual cosine[MAX_DEGREE + 1], sine[MAX_DEGREE + 1];
  dual below[MAX_DEGREE + 1], now[MAX_DEGREE + 1]; /* p_{l-1}^m, p_l^m */
  dual base[MAX_ORDERS];                           /* of the degree reached */
  ir_val read[MAX_COLUMNS], write[MAX_COLUMNS];    /* IR_NONE: not yet */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_spherical_harmonics_problem *sh = &p->spherical_harmonics;
  int most = p->arithmetic == CLB_F64 ? 20 : 12;
  (void)limits;
  if (sh->n_degrees < 1 || sh->n_degrees > CLB_MAX_DEGREES)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "n_degrees is %d; it must be 1 ... %d",
                    sh->n_degrees, CLB_MAX_DEGREES);
  for (int i = 0; i < sh->n_degrees; i++)
    if (sh->degrees[i] < 0 || sh->degrees[i] > most)
      return clb_fail(error, CLB_ERROR_ARGUMENT,
                      "degrees[%d] is %d; with %s arithmetic it must be 0 ... %d", i,
                      sh->degrees[i], p->arithmetic == CLB_F64 ? "f64" : "f32", most);
  if (sh->normalization < CLB_COMPONENT || sh->normalization > CLB_INTEGRAL)
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "normalization is %d; it must be CLB_COMPONENT, CLB_NORM or CLB_INTEGRAL",
                    sh->normalization);
  return CLB_OK;
}

static int n_columns(const clb_problem *p) {
  int n = 0;
  for (int i = 0; i < p->spherical_harmonics.n_degrees; i++)
    n += 2 * p->spherical_harmonics.degrees[i] + 1;
  return n;
}

/* Local memory of a sub-group. */
static int64_t row_bytes(const clb_problem *p, const clb_schedule *s) {
  return (int64_t)s->lanes * (s->rows.columns_per_piece | 1) *
         ir_type_bytes(clb_ir_type((clb_dtype)p->storage));
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  *s = (clb_schedule){.lanes = limits->lanes[p->arithmetic],
                      .subgroups = 1,
                      .rows = {.through_local = !limits->simd, .columns_per_piece = 8}};
  if (limits->simd) return;
  /* Measured on an H200 (bench/results): rows that fit are written whole, so that accesses are
     contiguous; longer ones are written in pieces that registers can hold, and medium ones are read
     in halves. Small groups are faster: their resources become free sooner. */
  int columns = n_columns(p);
  s->rows.columns_per_piece = columns <= 64 ? columns : 60;
  if (p->pass == CLB_BACKWARD && columns > 32 && columns <= 64) s->rows.columns_per_piece = 24;
  if (p->pass == CLB_DOUBLE_BACKWARD && columns > 32) s->rows.columns_per_piece = 32;
  if (limits->registers <= 128) {
    s->rows.large_registers =
        columns > 32 && (p->pass == CLB_DOUBLE_BACKWARD || p->arithmetic == CLB_F64);
    s->rows.columns_per_piece = s->rows.columns_per_piece > 16 ? 16 : s->rows.columns_per_piece;
  }
  int rows = p->pass == CLB_DOUBLE_BACKWARD && columns > 32 ? 64 : 32;
  s->subgroups = limits->subgroups && rows > s->lanes ? rows / s->lanes : 1;
  int64_t row = row_bytes(p, s);
  if (s->subgroups > limits->max_subgroups) s->subgroups = limits->max_subgroups;
  if (s->subgroups > limits->local_bytes / row) s->subgroups = (int32_t)(limits->local_bytes / row);
  if (s->subgroups < 1)
    *s = (clb_schedule){.lanes = s->lanes, .subgroups = 1, .rows = {.columns_per_piece = 1}};
}

/* Other widths of pieces, sizes of groups and register files; on a GPU also column by column. */
static int candidates(const clb_problem *p, const clb_limits *limits, clb_schedule *list) {
  static const int widths[] = {60, 48, 32, 24, 16, 8, 4}, groups[] = {1, 2, 4};
  int n = 0, columns = n_columns(p);
  clb_schedule first, s;
  schedule(p, limits, &first);
  clb_candidate_add(list, &n, &first);
  for (size_t i = 0; i < sizeof groups / sizeof *groups && limits->subgroups && !limits->simd;
       i++) {
    if (groups[i] <= limits->max_subgroups &&
        groups[i] * row_bytes(p, &first) <= limits->local_bytes)
      clb_candidate_with(list, &n, &first, CLB_FIELD(subgroups), groups[i]);
  }
  if (limits->registers <= 128 && !limits->simd)
    clb_candidate_with(list, &n, &first, CLB_FIELD(rows.large_registers),
                       !first.rows.large_registers);
  s = (clb_schedule){
      .lanes = first.lanes, .subgroups = first.subgroups, .rows = {.columns_per_piece = 1}};
  if (!limits->simd) clb_candidate_add(list, &n, &s);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    s = first;
    s.rows.columns_per_piece = widths[i];
    bool room = limits->simd ||
                (s.rows.through_local && s.subgroups * row_bytes(p, &s) <= limits->local_bytes);
    if (room && widths[i] < columns && widths[i] <= (limits->simd ? 16 : 64))
      clb_candidate_add(list, &n, &s);
  }
  return n;
}

/* ---- constants ---- */

/* Y^l_{+-m} of the component normalization over base. */
static double scale(int l, int m) {
  long double s = m ? 2 * (2 * l + 1) : 2 * l + 1, monic = 1;
  for (int i = l - m + 1; i <= l + m; i++) s /= i;
  for (int i = 1; i <= m; i++) monic *= 2 * i - 1;
  for (int i = m + 1; i <= l; i++) monic *= (2.0L * i - 1) / (i - m);
  return (double)(sqrtl(s) * monic);
}

/* Y of the caller's normalization over that of component. */
static double normalization(const builder *b, int l) {
  if (b->sh->normalization == CLB_NORM) return 1 / sqrt(2 * l + 1);
  return b->sh->normalization == CLB_INTEGRAL ? 0.28209479177387814347 : 1; /* 1 / sqrt(4 pi) */
}

static ir_val real(builder *b, double x) { return ir_real(b->k, b->t, x); }

/* ---- dual arithmetic; in a product with a plain number the number has no derivative ---- */

static dual times(builder *b, dual x, dual y) {
  ir_kernel *k = b->k;
  dual r = {ir_mul(k, x.v, y.v), IR_NONE};
  if (x.d != IR_NONE) r.d = ir_fma(k, x.v, y.d, ir_mul(k, x.d, y.v));
  return r;
}

/* x y + z */
static dual times_plus(builder *b, dual x, dual y, dual z) {
  ir_kernel *k = b->k;
  dual r = {ir_fma(k, x.v, y.v, z.v), IR_NONE};
  if (x.d != IR_NONE) r.d = ir_fma(k, x.v, y.d, ir_fma(k, x.d, y.v, z.d));
  return r;
}

static dual scaled(builder *b, double c, dual x) {
  return (dual){ir_mul(b->k, real(b, c), x.v),
                x.d == IR_NONE ? IR_NONE : ir_mul(b->k, real(b, c), x.d)};
}

/* ---- harmonics, degree by degree ---- */

static void start_degrees(builder *b, const ir_val point[3], const ir_val *along) {
  ir_val d[3] = {along ? along[0] : IR_NONE, along ? along[1] : IR_NONE,
                 along ? along[2] : IR_NONE};
  b->Y = (dual){point[0], d[0]};
  b->Z = (dual){point[1], d[1]};
  b->X = (dual){point[2], d[2]};
  b->r2 = times_plus(b, b->X, b->X, times_plus(b, b->Y, b->Y, times(b, b->Z, b->Z)));
  b->cosine[1] = b->X;
  b->sine[1] = b->Y;
}

static dual one(builder *b) { return (dual){real(b, 1), b->X.d == IR_NONE ? IR_NONE : real(b, 0)}; }

/* From degree l - 1 to l; afterwards base[l + m] is that of degree l. */
static void next_degree(builder *b, int l) {
  if (l > 1) {
    dual minus_y = scaled(b, -1, b->Y);
    b->cosine[l] = times_plus(b, b->sine[l - 1], minus_y, times(b, b->cosine[l - 1], b->X));
    b->sine[l] = times_plus(b, b->sine[l - 1], b->X, times(b, b->cosine[l - 1], b->Y));
  }
  for (int m = 0; m <= l; m++) {
    dual p = one(b); /* m = l */
    if (m == l - 1) p = b->Z;
    if (m < l - 1) {
      double c = (double)(l + m - 1) * (l - m - 1) / ((2.0 * l - 1) * (2.0 * l - 3));
      dual r = scaled(b, -c, b->r2);
      p = times_plus(b, b->Z, b->now[m], m == l - 2 ? r : times(b, r, b->below[m]));
    }
    if (m < l) b->below[m] = b->now[m];
    b->now[m] = p;
    b->base[l + m] = m == 0 ? p : m == l ? b->cosine[m] : times(b, p, b->cosine[m]);
    b->base[l - m] = m == 0 ? p : m == l ? b->sine[m] : times(b, p, b->sine[m]);
  }
}

/* ---- columns ---- */

static bool wanted(const builder *b, int l) {
  for (int i = 0; i < b->sh->n_degrees; i++)
    if (b->sh->degrees[i] == l) return true;
  return false;
}

/* Ascending columns with lowest <= l. */
static int columns_from(const builder *b, int lowest, int *columns) {
  int n = 0;
  for (int c = 0; c < b->n_columns; c++)
    if (b->degree_of[c] >= lowest) columns[n++] = c;
  return n;
}

/* Reads each piece with a column of degree l that has not been read yet; degrees below `lowest` are
   never read. */
static void read_degree(builder *b, const clb_row_array *a, int l, int lowest) {
  int columns[MAX_COLUMNS], n = columns_from(b, lowest, columns);
  for (int at = 0, end; at < n; at = end) {
    bool need = false;
    end = clb_rows_piece(b->s, columns, n, at);
    for (int c = at; c < end; c++)
      need |= b->degree_of[columns[c]] == l && b->read[columns[c]] == IR_NONE;
    if (need) clb_rows_load(&b->rows, a, columns[at], end - at, b->read + columns[at]);
  }
}

/* Gives the values of degree l to every column that asks for them, and writes the pieces that this
   completes. */
static void write_degree(builder *b, const clb_row_array *a, int l, const ir_val *value) {
  int columns[MAX_COLUMNS], n = columns_from(b, 0, columns);
  for (int c = 0; c < n; c++)
    if (b->degree_of[c] == l) b->write[c] = value[b->order_of[c]];
  for (int at = 0, end; at < n; at = end) {
    bool complete = true, mine = false;
    end = clb_rows_piece(b->s, columns, n, at);
    for (int c = at; c < end; c++) complete &= b->write[c] != IR_NONE, mine |= b->degree_of[c] == l;
    if (complete && mine)
      clb_rows_store(&b->rows, a, at, end - at, b->write + at, b->p->accumulate && !b->sh->fresh);
  }
}

/* ---- the contraction with C^{(l,l-1,1)} ---- */

/* Sum so far (IR_NONE: empty) plus x y; y IR_NONE stands for 1. */
static ir_val plus(builder *b, ir_val sum, ir_val x, ir_val y) {
  if (y == IR_NONE) return sum == IR_NONE ? x : ir_add(b->k, sum, x);
  return sum == IR_NONE ? ir_mul(b->k, x, y) : ir_fma(b->k, x, y, sum);
}

/* c_ijk, so that d_k Y^l_i = sum_j c_ijk base_j. */
static void coefficients(const builder *b, int l, double *C) {
  clb_wigner_3j(l, l - 1, 1, C);
  double f = sqrt(l) * (2 * l + 1) * normalization(b, l);
  for (int i = 0; i < 2 * l + 1; i++)
    for (int j = 0; j < 2 * l - 1; j++)
      for (int k = 0; k < 3; k++)
        C[(i * (2 * l - 1) + j) * 3 + k] *= f * scale(l - 1, j < l - 1 ? l - 1 - j : j - l + 1);
}

/* Adds degree l's share to the gradient of sum_i g_i Y_i along base, and to that along dbase. */
static void add_gradient(builder *b, int l, const double *C, ir_val gradient[3], ir_val second[3]) {
  ir_val g[MAX_ORDERS];
  for (int i = 0; i < 2 * l + 1; i++) g[i] = IR_NONE;
  for (int c = 0; c < b->n_columns; c++) /* a degree asked for twice */
    if (b->degree_of[c] == l) g[b->order_of[c]] = plus(b, g[b->order_of[c]], b->read[c], IR_NONE);
  for (int j = 0; j < 2 * l - 1; j++)
    for (int k = 0; k < 3; k++) {
      ir_val t = IR_NONE;
      for (int i = 0; i < 2 * l + 1; i++) {
        double c = C[(i * (2 * l - 1) + j) * 3 + k];
        if (c != 0) t = plus(b, t, g[i], real(b, c));
      }
      if (t == IR_NONE) continue;
      if (gradient) gradient[k] = plus(b, gradient[k], t, l == 1 ? IR_NONE : b->base[j].v);
      if (second && l > 1) second[k] = plus(b, second[k], t, b->base[j].d);
    }
}

/* out[i] = sum_k d_k Y^l_i h_k */
static void directional(builder *b, int l, const double *C, const ir_val h[3], ir_val *out) {
  for (int i = 0; i < 2 * l + 1; i++) {
    out[i] = IR_NONE;
    for (int j = 0; j < 2 * l - 1; j++)
      for (int k = 0; k < 3; k++) {
        double c = C[(i * (2 * l - 1) + j) * 3 + k];
        if (c != 0)
          out[i] = plus(b, out[i], l == 1 ? h[k] : ir_mul(b->k, b->base[j].v, h[k]), real(b, c));
      }
  }
}

/* ---- x / max(|x|, 1e-12), without overflow or underflow in between ---- */

typedef struct {
  ir_val u[3],
      inverse;   /* inverse = 1 / max(|x|, 1e-12), but 0 at the origin, where gradients are 0 */
  ir_val inside; /* |x| <= 1e-12: there u is linear in x */
} unit;

static ir_val dot(builder *b, const ir_val x[3], const ir_val y[3]) {
  return ir_fma(b->k, x[0], y[0], ir_fma(b->k, x[1], y[1], ir_mul(b->k, x[2], y[2])));
}

static unit unit_vector(builder *b, const ir_val x[3]) {
  ir_kernel *k = b->k;
  unit r;
  ir_val least = real(b, 1e-12), one = real(b, 1), largest = ir_1(k, IR_ABS, x[0]), v[3];
  for (int i = 1; i < 3; i++) largest = ir_2(k, IR_MAX, largest, ir_1(k, IR_ABS, x[i]));
  ir_val shrink = ir_2(k, IR_DIV, one, ir_2(k, IR_MAX, largest, least));
  for (int i = 0; i < 3; i++) v[i] = ir_mul(k, x[i], shrink);
  ir_val length = ir_1(k, IR_SQRT, dot(b, v, v)), bound = ir_mul(k, least, shrink);
  ir_val grow = ir_2(k, IR_DIV, one, ir_2(k, IR_MAX, length, bound));
  for (int i = 0; i < 3; i++) r.u[i] = ir_mul(k, v[i], grow);
  r.inside = ir_2(k, IR_LE, length, bound);
  r.inverse =
      ir_select(k, ir_2(k, IR_EQ, largest, real(b, 0)), real(b, 0), ir_mul(k, shrink, grow));
  return r;
}

/* v - u <u, v> outside, v inside. */
static void project(builder *b, const unit *n, const ir_val v[3], ir_val out[3]) {
  ir_val along = ir_1(b->k, IR_NEG, dot(b, n->u, v));
  for (int i = 0; i < 3; i++)
    out[i] = ir_select(b->k, n->inside, v[i], ir_fma(b->k, along, n->u[i], v[i]));
}

/* ---- passes ---- */

static void fill_zero(builder *b, ir_val *v, int n) {
  for (int i = 0; i < n; i++)
    if (v[i] == IR_NONE) v[i] = real(b, 0);
}

static void forward(builder *b, const clb_row_array *x, const clb_row_array *y) {
  ir_val point[3], value[MAX_ORDERS];
  clb_rows_load(&b->rows, x, 0, 3, point);
  unit n;
  if (b->sh->normalize) n = unit_vector(b, point);
  start_degrees(b, b->sh->normalize ? n.u : point, NULL);
  for (int l = 0; l <= b->lmax; l++) {
    next_degree(b, l);
    if (!wanted(b, l)) continue;
    for (int m = -l; m <= l; m++) {
      double c = normalization(b, l) * scale(l, abs(m));
      value[l + m] = l ? ir_mul(b->k, real(b, c), b->base[l + m].v) : real(b, c);
    }
    write_degree(b, y, l, value);
  }
}

static void backward(builder *b, const clb_row_array *x, const clb_row_array *g_y,
                     const clb_row_array *g_x) {
  ir_val point[3], gradient[3] = {IR_NONE, IR_NONE, IR_NONE};
  double C[MAX_ORDERS * MAX_ORDERS * 3];
  clb_rows_load(&b->rows, x, 0, 3, point);
  unit n;
  if (b->sh->normalize) n = unit_vector(b, point);
  start_degrees(b, b->sh->normalize ? n.u : point, NULL);
  for (int l = 1; l <= b->lmax; l++) {
    next_degree(b, l - 1);
    if (!wanted(b, l)) continue;
    read_degree(b, g_y, l, 1);
    coefficients(b, l, C);
    add_gradient(b, l, C, gradient, NULL);
  }
  fill_zero(b, gradient, 3);
  if (b->sh->normalize) {
    project(b, &n, gradient, gradient);
    for (int i = 0; i < 3; i++) gradient[i] = ir_mul(b->k, gradient[i], n.inverse);
  }
  clb_rows_store(&b->rows, g_x, 0, 3, gradient, b->p->accumulate);
}

/* With normalize: u = x/r, q = gradient at u, along = P h / r, L = <along, q>, P = 1 - u u^T, and
   d_x = (P [H along - (<u,q> h + <u,h> q) / r] - L u) / r  outside,  H along / r  inside. */
static void chain_unit(builder *b, const unit *n, const ir_val h[3], const ir_val along[3],
                       const ir_val q[3], ir_val d_x[3]) {
  ir_kernel *k = b->k;
  ir_val uq = ir_mul(k, dot(b, n->u, q), n->inverse), uh = ir_mul(k, dot(b, n->u, h), n->inverse),
         L = dot(b, along, q), inner[3];
  for (int i = 0; i < 3; i++) {
    ir_val bend = ir_fma(k, uq, h[i], ir_mul(k, uh, q[i]));
    inner[i] = ir_select(k, n->inside, d_x[i], ir_sub(k, d_x[i], bend));
  }
  project(b, n, inner, inner);
  for (int i = 0; i < 3; i++) {
    ir_val outside = ir_fma(k, ir_1(k, IR_NEG, L), n->u[i], inner[i]);
    d_x[i] = ir_mul(k, ir_select(k, n->inside, inner[i], outside), n->inverse);
  }
}

static void double_backward(builder *b, const clb_row_array *x, const clb_row_array *g_y,
                            const clb_row_array *incoming, const clb_row_array *d_x,
                            const clb_row_array *d_g_y) {
  ir_kernel *k = b->k;
  ir_val point[3], h[3], along[3], q[3] = {IR_NONE, IR_NONE, IR_NONE},
                                   second[3] = {IR_NONE, IR_NONE, IR_NONE}, value[MAX_ORDERS];
  double C[MAX_ORDERS * MAX_ORDERS * 3];
  bool unit_sphere = b->sh->normalize;
  clb_rows_load(&b->rows, x, 0, 3, point);
  clb_rows_load(&b->rows, incoming, 0, 3, h);
  memcpy(along, h, sizeof along);
  unit n;
  if (unit_sphere) {
    n = unit_vector(b, point);
    project(b, &n, h, along);
    for (int i = 0; i < 3; i++) along[i] = ir_mul(k, along[i], n.inverse);
  }
  start_degrees(b, unit_sphere ? n.u : point, along);
  for (int l = 0; l <= b->lmax; l++) {
    if (l > 0) next_degree(b, l - 1);
    if (!wanted(b, l)) continue;
    if (l == 0) value[0] = real(b, 0);
    else coefficients(b, l, C), directional(b, l, C, along, value);
    write_degree(b, d_g_y, l, value);
    if (l < (unit_sphere ? 1 : 2)) continue; /* a linear function has no second derivative */
    read_degree(b, g_y, l, unit_sphere ? 1 : 2);
    add_gradient(b, l, C, unit_sphere ? q : NULL, second);
  }
  fill_zero(b, q, 3);
  fill_zero(b, second, 3);
  if (unit_sphere) chain_unit(b, &n, h, along, q, second);
  clb_rows_store(&b->rows, d_x, 0, 3, second, b->p->accumulate);
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[] = {"spherical_harmonics_forward", "spherical_harmonics_backward",
                                      "spherical_harmonics_double_backward"};
  builder *b = calloc(1, sizeof *b);
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, s->lanes * s->subgroups);
  if (!b) {
    snprintf(k->error, sizeof k->error, "no memory");
    return;
  }
  k->large_registers = s->rows.large_registers;
  *b = (builder){.k = k,
                 .p = p,
                 .sh = &p->spherical_harmonics,
                 .s = s,
                 .t = clb_ir_type((clb_dtype)p->arithmetic)};
  for (int i = 0; i < b->sh->n_degrees; i++) {
    int l = b->sh->degrees[i];
    if (l > b->lmax) b->lmax = l;
    for (int o = 0; o < 2 * l + 1; o++, b->n_columns++)
      b->degree_of[b->n_columns] = l, b->order_of[b->n_columns] = o;
  }
  for (int c = 0; c < b->n_columns; c++) b->read[c] = b->write[c] = IR_NONE;
  clb_row_array a[5];
  int inputs = p->pass + 1, arrays = p->pass == CLB_DOUBLE_BACKWARD ? 5 : inputs + 1;
  clb_rows_begin(&b->rows, k, s, (clb_dtype)p->arithmetic);
  for (int i = 0; i < arrays; i++)
    a[i] = clb_rows_array(&b->rows, (clb_dtype)p->storage, i >= inputs);
  clb_rows_start(&b->rows, (clb_dtype)p->storage,
                 s->rows.columns_per_piece < b->n_columns ? s->rows.columns_per_piece
                                                          : b->n_columns);
  if (p->pass == CLB_FORWARD) forward(b, &a[0], &a[1]);
  if (p->pass == CLB_BACKWARD) backward(b, &a[0], &a[1], &a[2]);
  if (p->pass == CLB_DOUBLE_BACKWARD) double_backward(b, &a[0], &a[1], &a[2], &a[3], &a[4]);
  ir_finish(k);
  free(b);
}

static void print(const clb_problem *p, clb_text *out) {
  const clb_spherical_harmonics_problem *sh = &p->spherical_harmonics;
  static const char *const normalizations[] = {"component", "norm", "integral"};
  clb_text_add(out, "l =");
  for (int i = 0; i < sh->n_degrees; i++) clb_text_add(out, " %d", sh->degrees[i]);
  clb_text_add(out, ", %s%s", normalizations[sh->normalization],
               sh->normalize ? ", normalize" : "");
}

const clb_kernel_kind clb_kind_spherical_harmonics = {.name = "spherical_harmonics",
                                                      .check = check,
                                                      .schedule = schedule,
                                                      .lower = lower,
                                                      .print = print,
                                                      .passes = 3,
                                                      .settings = CLB_FIELD(rows),
                                                      .candidates = candidates};
