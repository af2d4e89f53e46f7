/* kernels/layers/radial.c - lengths of edges, Bessel functions with a cutoff, their gradient, and
   what training needs of them; a lane is an edge.

   b_k = (2/R) sin(w_k u) f(u) / r, u = r / R, with f in a form without cancellation near the
   cutoff.  XPLOR's, between r_on and R, c = (r_on / R)^2:
     f = (1 - u^2)^2 (1 + 2 u^2 - 3 c) / (1 - c)^3,  df/du = -12 u (1 - u^2) (u^2 - c) / (1 - c)^3;
   the polynomial:
     f = (1 - u)^3 sum_{i<p} (i+1)(i+2)/2 u^i,   df/du = - p(p+1)(p+2)/2 u^(p-1) (1 - u)^2,
     db_k/dr = (2/R) (w_k/R cos(w_k u) f - sin(w_k u) f / r + sin(w_k u) f'/R) / r.
   A spline of width m, zero from R on, has no cutoff of its own:
     b_k = sin^4 a, a = pi (K u - k - 1 + m) / m within 0 and pi, k < K,
     db_k/dr = 4 sin^3 a cos a pi K / (m R).
   With a transform, d stands for r in b_k, not in f:
     d = 1 / (1 + x), x = a t^p / (1 + t^(p-q)), t = r / r_0, r_0 the mean radius of the two atoms,
     dd/dr = -d^2 x (p - (p - q) t^(p-q) / (1 + t^(p-q))) / r;
   beyond R, d is that of R.  With f apart, f is 1 in b_k, and a result of its own.
   r is taken for at least SHORTEST R, so that v / r is 0 at v = 0.
   Along tangents q of v: b_k' = db_k/dr p, f' = df/dr p, p = v . q / r.  The gradient of sum_k g_k
   b_k + h_k b_k' by w_k is
     (2/R^2) (cos(w_k d/R) (g_k f + h_k p df/dr) - h_k p (w_k/R) sin(w_k d/R) f dd/dr). */
#include <math.h>

#include "kernels/layers/functions.h"
#include "kernels/layers/layer.h"

#define SHORTEST 1e-6

enum { FORWARD, DISTANCES, BACKWARD, BACKWARD_DISTANCE, PASSES, GPU_WIDTH = 16, CPU_WIDTH = 8 };
enum { ALONG, FREQUENCIES, ALONG_PASSES }; /* of the kind radial_along */

typedef struct {
  clb_row_block rows;
  ir_kernel *k;
  ir_type t;
  const clb_radial_problem *p;
  ir_val v[3], r, safe, inverse, u; /* safe: r, but at least SHORTEST R; inverse = 1 / safe */
  ir_val f, slope;                  /* f(u), df/dr */
  ir_val d_u, d_inverse, bend;      /* d / R, 1 / d, dd/dr (no transform: IR_NONE) */
} builder;

static clb_status check(const clb_problem *p, const clb_limits *limits, clb_error_sink *error) {
  const clb_radial_problem *r = &p->radial;
  if (!(r->r_max > 0))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "r_max is %g; it must be above 0", r->r_max);
  if (r->width < 0 || (r->width && (r->transform || r->apart)))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "the width is %d; that of a spline, without transform and cutoff, is above 0",
                    (int)r->width);
  if (r->p < 0 || r->p > 64)
    return clb_fail(error, CLB_ERROR_ARGUMENT, "p is %d; it must be 0 ... 64", (int)r->p);
  if (!r->p && !(r->r_on >= 0 && r->r_on < r->r_max))
    return clb_fail(error, CLB_ERROR_ARGUMENT, "r_on is %g; it must be 0 or more, below r_max, %g",
                    r->r_on, r->r_max);
  if (r->transform && !(r->a > 0 && fabs(r->exponent) <= 64 && fabs(r->q) <= 64))
    return clb_fail(error, CLB_ERROR_ARGUMENT,
                    "the transform has a = %g, p = %g, q = %g; a must be above 0, p and q -64 ... "
                    "64",
                    r->a, r->exponent, r->q);
  return r->n_basis && p->arithmetic != CLB_F64 ? clb_layer_check(p, limits, error) : CLB_OK;
}

static void schedule(const clb_problem *p, const clb_limits *limits, clb_schedule *s) {
  clb_layer_schedule(limits, p->arithmetic, false, s);
  int most = limits->simd ? CPU_WIDTH : GPU_WIDTH;
  s->rows.columns_per_piece = p->radial.n_basis > most ? most
                              : p->radial.n_basis > 3  ? p->radial.n_basis
                                                       : 3;
  s->rows.through_local =
      !limits->simd && (int64_t)s->subgroups * s->lanes * (s->rows.columns_per_piece | 1) *
                               ir_type_bytes(clb_ir_type((clb_dtype)p->storage)) <=
                           limits->local_bytes;
  if (!limits->subgroups && s->rows.through_local) s->subgroups = 1;
}

static ir_val real(builder *b, double x) { return ir_real(b->k, b->t, x); }
static ir_val times(builder *b, ir_val x, ir_val y) { return ir_mul(b->k, x, y); }

static void length(builder *b, const clb_row_array *v) {
  ir_kernel *k = b->k;
  clb_rows_load(&b->rows, v, 0, 3, b->v);
  b->r = ir_1(k, IR_SQRT,
              ir_fma(k, b->v[0], b->v[0], ir_fma(k, b->v[1], b->v[1], times(b, b->v[2], b->v[2]))));
  b->safe = ir_2(k, IR_MAX, b->r, real(b, SHORTEST * b->p->r_max));
  b->inverse = ir_2(k, IR_DIV, real(b, 1), b->safe);
  b->u = times(b, b->safe, real(b, 1 / b->p->r_max));
}

/* left: 1 - u, or 0 beyond the cutoff. */
static void xplor(builder *b, ir_val left) {
  ir_kernel *k = b->k;
  const double on = b->p->r_on / b->p->r_max, c = on * on, scale = 1 / pow(1 - c, 3);
  ir_val zero = real(b, 0), rest = times(b, left, ir_add(k, real(b, 1), b->u)), /* 1 - u^2 */
      sum = ir_fma(k, real(b, -2), rest, real(b, 3 - 3 * c)), /* 1 + 2 u^2 - 3 c */
      inside = ir_sub(k, real(b, 1 - c), rest),               /* u^2 - c */
      flat = ir_2(k, IR_LT, b->u, real(b, on));
  b->f =
      ir_select(k, flat, real(b, 1), times(b, times(b, times(b, rest, rest), sum), real(b, scale)));
  b->slope = ir_select(
      k, flat, zero,
      times(b, times(b, rest, inside), times(b, b->u, real(b, -12 * scale / b->p->r_max))));
}

static ir_val mean_radius(builder *b, const clb_ends *ends, ir_val radii) {
  ir_kernel *k = b->k;
  ir_val edge = ir_add(k, b->rows.first, ir_cast(k, IR_I64, ir_lane(k))), radius[2];
  for (int i = 0; i < 2; i++)
    radius[i] = ir_load(k, radii, clb_end_species(k, ends, i, edge, b->rows.mask), b->rows.mask);
  /* of lanes without an edge: any that is not 0 */
  return ir_select(k, b->rows.mask, times(b, ir_add(k, radius[0], radius[1]), real(b, 0.5)),
                   real(b, b->p->r_max));
}

static void transform(builder *b, ir_val r_0) {
  ir_kernel *k = b->k;
  const double p = b->p->exponent, q = b->p->q;
  ir_val one = real(b, 1), r = ir_2(k, IR_MIN, b->safe, real(b, b->p->r_max)),
         log_t = clb_logarithm(k, b->t, ir_2(k, IR_DIV, r, r_0)),
         power = ir_1(k, IR_EXP, times(b, log_t, real(b, p))),
         rest = ir_1(k, IR_EXP, times(b, log_t, real(b, p - q))), sum = ir_add(k, one, rest),
         x = ir_2(k, IR_DIV, times(b, real(b, b->p->a), power), sum);
  b->d_inverse = ir_add(k, one, x);
  ir_val d = ir_2(k, IR_DIV, one, b->d_inverse),
         slope = ir_sub(k, real(b, p), times(b, real(b, p - q), ir_2(k, IR_DIV, rest, sum)));
  b->d_u = times(b, d, real(b, 1 / b->p->r_max));
  ir_val bend = ir_1(k, IR_NEG, ir_2(k, IR_DIV, times(b, times(b, times(b, d, d), x), slope), r));
  b->bend = ir_select(k, ir_2(k, IR_LT, b->u, one), bend, real(b, 0));
}

static void cutoff(builder *b) {
  ir_val left = ir_2(b->k, IR_MAX, ir_sub(b->k, real(b, 1), b->u), real(b, 0));
  if (b->p->p)
    clb_polynomial_cutoff(b->k, b->t, b->p->p, b->u, left, b->p->r_max, &b->f, &b->slope);
  else xplor(b, left);
}

/* Functions from number `at` on that are read or written together. */
static int piece_from(const builder *b, int at) {
  int left = b->p->n_basis - at, most = b->rows.schedule->rows.columns_per_piece;
  return left < most ? left : most;
}

/* Function k of a spline, and its slope, unless that is NULL. */
static ir_val spline(builder *b, int k, ir_val *slope) {
  const double pi = acos(-1), turn = pi * b->p->n_basis / b->p->width,
               from = pi * (b->p->width - k - 1) / b->p->width;
  ir_val angle = ir_fma(b->k, b->u, real(b, turn), real(b, from));
  angle = ir_2(b->k, IR_MIN, ir_2(b->k, IR_MAX, angle, real(b, 0)), real(b, pi));
  const ir_val sine = ir_1(b->k, IR_SIN, angle), square = times(b, sine, sine);
  if (slope)
    *slope = times(b, times(b, times(b, square, sine), ir_1(b->k, IR_COS, angle)),
                   real(b, 4 * turn / b->p->r_max));
  return times(b, square, square);
}

static void write_spline(builder *b, const clb_row_array *basis, ir_val speed) {
  ir_val value[GPU_WIDTH], slope;
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    for (int i = 0; i < n; i++) {
      value[i] = spline(b, at + i, speed == IR_NONE ? NULL : &slope);
      if (speed != IR_NONE) value[i] = times(b, slope, speed);
    }
    clb_rows_store(&b->rows, basis, at, n, value, false);
  }
}

static ir_val spline_gradient(builder *b, const clb_row_array *g_basis) {
  ir_val sum = real(b, 0), g[GPU_WIDTH], slope;
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    clb_rows_load(&b->rows, g_basis, at, n, g);
    for (int i = 0; i < n; i++) {
      spline(b, at + i, &slope);
      sum = ir_fma(b->k, g[i], slope, sum);
    }
  }
  return sum;
}

static void write_basis(builder *b, const clb_row_array *basis) {
  ir_val front = real(b, 2 / b->p->r_max), value[GPU_WIDTH],
         factor = times(b, b->p->apart ? front : times(b, front, b->f), b->d_inverse);
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    for (int i = 0; i < n; i++)
      value[i] =
          times(b, factor, ir_1(b->k, IR_SIN, times(b, b->d_u, real(b, b->p->frequency[at + i]))));
    clb_rows_store(&b->rows, basis, at, n, value, false);
  }
}

/* What db_k/dr = of_sines sin(w_k d/R) + of_cosines w_k/R cos(w_k d/R) consists of, but for the
   factor (2/R) / d: f d', and f' - f d'/d.  f and f' as in b_k. */
typedef struct {
  ir_val f, slope, of_cosines, of_sines, front;
} slopes;

static slopes slopes_of(builder *b) {
  ir_kernel *k = b->k;
  slopes s = {.f = b->p->apart ? real(b, 1) : b->f, .slope = b->p->apart ? real(b, 0) : b->slope};
  s.of_cosines = b->bend == IR_NONE ? s.f : times(b, s.f, b->bend);
  s.of_sines = ir_sub(k, s.slope, times(b, s.of_cosines, b->d_inverse));
  s.front = times(b, real(b, 2 / b->p->r_max), b->d_inverse);
  return s;
}

/* sum_k g_k db_k/dr */
static ir_val gradient(builder *b, const clb_row_array *g_basis) {
  ir_kernel *k = b->k;
  ir_val sines = real(b, 0), cosines = sines, g[GPU_WIDTH];
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    clb_rows_load(&b->rows, g_basis, at, n, g);
    for (int i = 0; i < n; i++) {
      double w = b->p->frequency[at + i];
      ir_val angle = times(b, b->d_u, real(b, w));
      sines = ir_fma(k, g[i], ir_1(k, IR_SIN, angle), sines);
      cosines =
          ir_fma(k, times(b, g[i], real(b, w / b->p->r_max)), ir_1(k, IR_COS, angle), cosines);
    }
  }
  const slopes s = slopes_of(b);
  return times(b, s.front, ir_fma(k, s.of_sines, sines, times(b, s.of_cosines, cosines)));
}

/* g_v (+)= g_r v / r */
static void pull(builder *b, const clb_row_array *g_v, ir_val g_r, ir_val add) {
  ir_val there[3], factor = times(b, g_r, b->inverse);
  clb_row_block adding = b->rows;
  adding.mask = clb_wanted_lanes(b->k, add, b->rows.left);
  clb_rows_load(&adding, g_v, 0, 3, there);
  for (int i = 0; i < 3; i++) there[i] = ir_fma(b->k, factor, b->v[i], there[i]);
  clb_rows_store(&b->rows, g_v, 0, 3, there, false);
}

/* Parameters, and what is computed for all passes with a basis. */
typedef struct {
  clb_row_array v, r, basis, f, g_v;
  clb_ends ends;
  ir_val radii, flag; /* whether r is wanted, or g_v is added to */
} parameters;

static parameters declare(builder *b, const clb_problem *p) {
  const clb_dtype type = (clb_dtype)p->storage;
  const bool back = p->pass >= BACKWARD, basis = p->pass == FORWARD || p->pass == BACKWARD;
  parameters a = {.v = clb_rows_array(&b->rows, type, false), .flag = IR_NONE};
  if (p->pass != BACKWARD) a.r = clb_rows_array(&b->rows, type, !back);
  if (basis) a.basis = clb_rows_array(&b->rows, type, !back);
  if (basis && b->p->apart) a.f = clb_rows_array(&b->rows, type, !back);
  if (back) a.g_v = clb_rows_array(&b->rows, type, true);
  if (basis && b->p->transform) {
    a.ends = clb_ends_begin(b->k);
    a.radii = ir_buffer(b->k, b->t, false);
  }
  if (p->pass != DISTANCES) a.flag = ir_scalar(b->k, IR_I32);
  return a;
}

static void write_rows(builder *b, const parameters *a, bool basis) {
  clb_row_block some = b->rows;
  if (a->flag != IR_NONE) some.mask = clb_wanted_lanes(b->k, a->flag, b->rows.left);
  clb_rows_store(&some, &a->r, 0, 1, &b->r, false);
  if (!basis) return;
  if (b->p->width) write_spline(b, &a->basis, IR_NONE);
  else write_basis(b, &a->basis);
  if (b->p->apart) clb_rows_store(&b->rows, &a->f, 0, 1, &b->f, false);
}

/* Of lengths that are known: f and f', d and its slope. */
static void distances(builder *b, const clb_ends *ends, ir_val radii) {
  if (b->p->width) return;
  cutoff(b);
  b->d_u = b->u, b->d_inverse = b->inverse, b->bend = IR_NONE;
  if (b->p->transform) transform(b, mean_radius(b, ends, radii));
}

static void lower(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  static const char *const names[PASSES] = {"radial", "radial_distances", "radial_backward",
                                            "radial_backward_distance"};
  builder b = {.k = k, .p = &p->radial, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  const bool basis = p->pass == FORWARD || p->pass == BACKWARD;
  ir_begin(k, names[p->pass], s->lanes, s->subgroups, s->lanes * s->subgroups);
  clb_rows_begin(&b.rows, k, s, (clb_dtype)p->arithmetic);
  const parameters a = declare(&b, p);
  clb_rows_start(&b.rows, (clb_dtype)p->storage, basis ? s->rows.columns_per_piece : 1);
  length(&b, &a.v);
  if (basis) distances(&b, &a.ends, a.radii);
  if (p->pass < BACKWARD) write_rows(&b, &a, basis);
  else {
    ir_val g_r, g_f;
    if (basis) g_r = b.p->width ? spline_gradient(&b, &a.basis) : gradient(&b, &a.basis);
    else clb_rows_load(&b.rows, &a.r, 0, 1, &g_r);
    if (basis && b.p->apart) {
      clb_rows_load(&b.rows, &a.f, 0, 1, &g_f);
      g_r = ir_fma(k, g_f, b.slope, g_r);
    }
    pull(&b, &a.g_v, g_r, a.flag);
  }
  ir_finish(k);
}

/* ---- along tangents ---- */

static void write_along(builder *b, const clb_row_array *basis, ir_val speed) {
  ir_kernel *k = b->k;
  const slopes s = slopes_of(b);
  ir_val front = times(b, s.front, speed), value[GPU_WIDTH];
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    for (int i = 0; i < n; i++) {
      const double w = b->p->frequency[at + i];
      ir_val angle = times(b, b->d_u, real(b, w)),
             of_cosines = times(b, s.of_cosines, real(b, w / b->p->r_max)),
             slope = ir_fma(k, s.of_sines, ir_1(k, IR_SIN, angle),
                            times(b, of_cosines, ir_1(k, IR_COS, angle)));
      value[i] = times(b, front, slope);
    }
    clb_rows_store(&b->rows, basis, at, n, value, false);
  }
}

static void write_frequencies(builder *b, const clb_row_array *g_basis,
                              const clb_row_array *h_basis, const clb_row_array *g_w,
                              ir_val speed) {
  ir_kernel *k = b->k;
  const slopes s = slopes_of(b);
  const double R = b->p->r_max;
  ir_val front = real(b, 2 / (R * R)), by_f = times(b, front, s.f),
         by_slope = times(b, front, times(b, s.slope, speed)),
         by_sines = times(b, front, times(b, s.of_cosines, speed)), g[GPU_WIDTH], h[GPU_WIDTH];
  for (int at = 0, n; at < b->p->n_basis; at += n) {
    n = piece_from(b, at);
    clb_rows_load(&b->rows, g_basis, at, n, g);
    clb_rows_load(&b->rows, h_basis, at, n, h);
    for (int i = 0; i < n; i++) {
      const double w = b->p->frequency[at + i];
      ir_val angle = times(b, b->d_u, real(b, w)),
             of_cosines = ir_fma(k, g[i], by_f, times(b, h[i], by_slope)),
             of_sines = times(b, times(b, h[i], by_sines), real(b, -w / R));
      g[i] =
          ir_fma(k, of_cosines, ir_1(k, IR_COS, angle), times(b, of_sines, ir_1(k, IR_SIN, angle)));
    }
    clb_rows_store(&b->rows, g_w, at, n, g, false);
  }
}

static void lower_along(const clb_problem *p, const clb_schedule *s, ir_kernel *k) {
  const clb_dtype type = (clb_dtype)p->storage;
  const bool along = p->pass == ALONG;
  builder b = {.k = k, .p = &p->radial, .t = clb_ir_type((clb_dtype)p->arithmetic)};
  clb_row_array f, g, h;
  clb_ends ends;
  ir_val radii = IR_NONE, q[3];
  ir_begin(k, along ? "radial_along" : "radial_frequencies", s->lanes, s->subgroups,
           s->lanes * s->subgroups);
  clb_rows_begin(&b.rows, k, s, (clb_dtype)p->arithmetic);
  const clb_row_array v = clb_rows_array(&b.rows, type, false),
                      tangents = clb_rows_array(&b.rows, type, false);
  if (!along) g = clb_rows_array(&b.rows, type, false), h = clb_rows_array(&b.rows, type, false);
  const clb_row_array out = clb_rows_array(&b.rows, type, true);
  if (along && b.p->apart) f = clb_rows_array(&b.rows, type, true);
  if (b.p->transform) ends = clb_ends_begin(k), radii = ir_buffer(k, b.t, false);
  clb_rows_start(&b.rows, type, s->rows.columns_per_piece);
  length(&b, &v);
  distances(&b, &ends, radii);
  clb_rows_load(&b.rows, &tangents, 0, 3, q);
  ir_val speed = ir_fma(k, b.v[0], q[0], ir_fma(k, b.v[1], q[1], times(&b, b.v[2], q[2])));
  speed = times(&b, speed, b.inverse);
  if (b.p->width) write_spline(&b, &out, speed);
  else if (along) write_along(&b, &out, speed);
  else write_frequencies(&b, &g, &h, &out, speed);
  if (along && b.p->apart) {
    ir_val f_along = times(&b, b.slope, speed);
    clb_rows_store(&b.rows, &f, 0, 1, &f_along, false);
  }
  ir_finish(k);
}

static void print(const clb_problem *p, clb_text *out) {
  clb_text_add(out, "%d %s, ", (int)p->radial.n_basis,
               p->radial.width ? "functions of a spline" : "Bessel functions");
  if (p->radial.width) clb_text_add(out, "width = %d, ", (int)p->radial.width);
  else if (p->radial.p) clb_text_add(out, "p = %d, ", (int)p->radial.p);
  else clb_text_add(out, "XPLOR from r = %g, ", p->radial.r_on);
  clb_text_add(out, "r_max = %g%s%s", p->radial.r_max, p->radial.transform ? ", transformed" : "",
               p->radial.apart ? ", cutoff apart" : "");
}

const clb_kernel_kind clb_kind_radial = {.name = "radial",
                                         .check = check,
                                         .schedule = schedule,
                                         .lower = lower,
                                         .print = print,
                                         .passes = PASSES};

const clb_kernel_kind clb_kind_radial_along = {.name = "radial_along",
                                               .check = check,
                                               .schedule = schedule,
                                               .lower = lower_along,
                                               .print = print,
                                               .passes = ALONG_PASSES};
