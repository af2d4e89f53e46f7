/* reference_tensor_product.c - the Clebsch-Gordan tensor product and two derivatives, as plain sums over all terms in float64. */
#include "reference_tensor_product.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- irreps ---- */

int reference_irreps_read(const char *text, reference_irreps *irreps) {
  memset(irreps, 0, sizeof *irreps);
  while (strspn(text, " \t\n")) text++;
  for (const char *s = text; *s;) {
    int first, second, used = 0, used_more = 0;
    if (irreps->n == REFERENCE_MAX_TERMS || sscanf(s, "%d%n", &first, &used) != 1 || first < 0) return 0;
    s += used;
    if (sscanf(s, " x%d%n", &second, &used_more) == 1) s += used_more;
    else second = first, first = 1;
    char p = 0;
    if (sscanf(s, " %c%n", &p, &used) != 1 || !strchr("eoy", p) || second < 0 || second > REFERENCE_MAX_L) return 0;
    s += used;
    int at = irreps->n++;
    irreps->term[at].mul = first;
    irreps->term[at].l = second;
    irreps->term[at].parity = p == 'e' || (p == 'y' && second % 2 == 0) ? 1 : -1;
    irreps->term[at].at = irreps->dim;
    irreps->dim += first * (2 * second + 1);
    s += strspn(s, " \t\n");
    if (*s && *s != '+') return 0;
    if (*s && !*++s) return 0;
  }
  return 1;
}

static int holds(const reference_irreps *irreps, int l, int parity) {
  for (int i = 0; i < irreps->n; i++)
    if (irreps->term[i].l == l && irreps->term[i].parity == parity) return 1;
  return 0;
}

/* Sorted by walking the outputs in order and finding all that lead there. */
static int paths_in_order(const reference_irreps *x, const reference_irreps *y, const reference_irreps *filter, char *z, size_t z_size,
                          clb_instruction *instructions, int max) {
  size_t used = 0;
  int n = 0;
  z[0] = 0;
  for (int kind = 0; kind <= 2 * REFERENCE_MAX_L + 1; kind++) {
    int l = kind / 2, parity = (kind % 2 ? -1 : 1) * (l % 2 ? -1 : 1);
    if (!holds(filter, l, parity)) continue;
    for (int i = 0; i < x->n; i++)
      for (int j = 0; j < y->n; j++) {
        if (x->term[i].parity * y->term[j].parity != parity || l < abs(x->term[i].l - y->term[j].l) || l > x->term[i].l + y->term[j].l) continue;
        if (n == max) return -1;
        used += (size_t)snprintf(z + used, z_size - used, "%s%dx%d%c", n ? "+" : "", x->term[i].mul, l, parity > 0 ? 'e' : 'o');
        if (used >= z_size) return -1;
        instructions[n] = (clb_instruction){i, j, n, CLB_UVU, 1, 1};
        n++;
      }
  }
  return n;
}

int reference_channel_wise(const char *x, const char *y, const char *filter, char *z, size_t z_size, clb_instruction *instructions, int max) {
  reference_irreps *all = calloc(3, sizeof *all);
  int n = -1;
  if (all && z_size && reference_irreps_read(x, all) && reference_irreps_read(y, all + 1) && reference_irreps_read(filter, all + 2))
    n = paths_in_order(all, all + 1, all + 2, z, z_size, instructions, max);
  free(all);
  return n;
}

/* ---- Wigner 3j: Racah's formula, then the change to the real basis ---- */

static long double factorial(int n) {
  long double f = 1;
  for (int i = 2; i <= n; i++) f *= i;
  return f;
}

static long double clebsch_gordan(int j1, int m1, int j2, int m2, int J) {
  int M = m1 + m2, first = 0, last = j1 + j2 - J;
  long double sum = 0, root = (2 * J + 1) * factorial(J + j1 - j2) * factorial(J - j1 + j2) * factorial(j1 + j2 - J) / factorial(j1 + j2 + J + 1);
  root *= factorial(J + M) * factorial(J - M) * factorial(j1 - m1) * factorial(j1 + m1) * factorial(j2 - m2) * factorial(j2 + m2);
  if (j2 - J - m1 > first) first = j2 - J - m1;
  if (j1 - J + m2 > first) first = j1 - J + m2;
  if (j1 - m1 < last) last = j1 - m1;
  if (j2 + m2 < last) last = j2 + m2;
  for (int k = first; k <= last; k++)
    sum += (k % 2 ? -1 : 1) / (factorial(k) * factorial(j1 + j2 - J - k) * factorial(j1 - m1 - k) * factorial(j2 + m2 - k) *
                               factorial(J - j2 + m1 + k) * factorial(J - j1 - m2 + k));
  return sqrtl(root) * sum;
}

/* Row m of the complex-to-real matrix, column M, without its common factor (-i)^l. */
static double complex change(int m, int M) {
  if (abs(m) != abs(M)) return 0;
  if (m == 0) return 1;
  if (m < 0) return M > 0 ? sqrt(0.5) : -I * sqrt(0.5);
  return (m % 2 ? -1 : 1) * (M > 0 ? sqrt(0.5) : I * sqrt(0.5));
}

static double complex phase(int l) { /* (-i)^l */
  static const double complex turns[] = {1, -I, -1, I};
  return turns[l % 4];
}

void reference_3j(int l1, int l2, int l3, double *C) {
  int n2 = 2 * l2 + 1, n3 = 2 * l3 + 1, n = (2 * l1 + 1) * n2 * n3;
  double complex common = phase(l1) * phase(l2) * conj(phase(l3));
  memset(C, 0, sizeof *C * (size_t)n);
  for (int m1 = -l1; m1 <= l1; m1++)
    for (int m2 = -l2; m2 <= l2; m2++) {
      int m3 = m1 + m2;
      if (abs(m3) > l3) continue;
      double g = (double)clebsch_gordan(l1, m1, l2, m2, l3);
      for (int a = -l1; a <= l1; a++)
        for (int b = -l2; b <= l2; b++)
          for (int c = -l3; c <= l3; c++)
            C[((a + l1) * n2 + b + l2) * n3 + c + l3] += creal(common * change(m1, a) * change(m2, b) * conj(change(m3, c))) * g;
    }
  long double norm = 0;
  for (int i = 0; i < n; i++) norm += (long double)C[i] * C[i];
  for (int i = 0; i < n; i++) C[i] = fabs(C[i]) < 1e-14 ? 0 : (double)(C[i] / sqrtl(norm));
}

/* ---- products ---- */

typedef struct {
  clb_instruction is;
  int weight_at;
  double *C; /* the 3j symbols times the path's coefficient */
} path;

struct reference_product {
  reference_irreps x, y, z;
  clb_layout layout_x, layout_y, layout_z;
  int n, n_weights;
  path path[];
};

static int elements(const reference_product *p, const clb_instruction *q) { return p->y.term[q->in2].mul; }

static double coefficient(const reference_product *p, const clb_tensor_product_desc *d, const clb_instruction *q) {
  int d1 = 2 * p->x.term[q->in1].l + 1, d2 = 2 * p->y.term[q->in2].l + 1, d3 = 2 * p->z.term[q->out].l + 1, same = 0;
  double alpha = 1, x = 0;
  if (d->irrep_normalization == CLB_IRREP_COMPONENT) alpha = d3;
  if (d->irrep_normalization == CLB_IRREP_NORM) alpha = d1 * d2;
  for (int i = 0; i < d->n_instructions; i++)
    if (d->instructions[i].out == q->out) x += elements(p, &d->instructions[i]), same++;
  if (d->path_normalization == CLB_PATH_PATH) x = same * elements(p, q);
  if (d->path_normalization == CLB_PATH_NONE || !(x > 0)) x = 1;
  return sqrt(q->path_weight * alpha / x);
}

static int add_path(reference_product *p, const clb_tensor_product_desc *d, const clb_instruction *q) {
  if (q->in1 < 0 || q->in1 >= p->x.n || q->in2 < 0 || q->in2 >= p->y.n || q->out < 0 || q->out >= p->z.n || q->mode != CLB_UVU) return 0;
  int l1 = p->x.term[q->in1].l, l2 = p->y.term[q->in2].l, l3 = p->z.term[q->out].l, n = (2 * l1 + 1) * (2 * l2 + 1) * (2 * l3 + 1);
  if (p->x.term[q->in1].parity * p->y.term[q->in2].parity != p->z.term[q->out].parity) return 0;
  if (l3 < abs(l1 - l2) || l3 > l1 + l2 || p->z.term[q->out].mul != p->x.term[q->in1].mul) return 0;
  path *to = &p->path[p->n++];
  *to = (path){*q, p->n_weights, malloc(sizeof(double) * (size_t)n)};
  if (!to->C) return 0;
  if (q->has_weight) p->n_weights += p->x.term[q->in1].mul * p->y.term[q->in2].mul;
  reference_3j(l1, l2, l3, to->C);
  for (int i = 0; i < n; i++) to->C[i] *= coefficient(p, d, q);
  return 1;
}

reference_product *reference_product_create(const clb_tensor_product_desc *d) {
  reference_product *p = calloc(1, sizeof *p + sizeof(path) * (size_t)(d->n_instructions > 0 ? d->n_instructions : 0));
  int good = p && reference_irreps_read(d->irreps_x, &p->x) && reference_irreps_read(d->irreps_y, &p->y) && reference_irreps_read(d->irreps_z, &p->z);
  for (int i = 0; good && i < d->n_instructions; i++) good = add_path(p, d, &d->instructions[i]);
  if (good) {
    p->layout_x = d->layout_x, p->layout_y = d->layout_y, p->layout_z = d->layout_z;
    return p;
  }
  reference_product_destroy(p);
  return NULL;
}

void reference_product_destroy(reference_product *p) {
  if (!p) return;
  for (int i = 0; i < p->n; i++) free(p->path[i].C);
  free(p);
}

clb_tensor_product_sizes reference_product_sizes(const reference_product *p) {
  return (clb_tensor_product_sizes){p->x.dim, p->y.dim, p->z.dim, p->n_weights};
}

/* ---- passes ---- */

/* One row of every operand, by name; d: outputs, s: their scales. */
typedef struct {
  const double *x, *y, *w, *g, *a, *b, *c;
  double *z, *d_x, *d_y, *d_w, *z_scale, *d_x_scale, *d_y_scale, *d_w_scale; /* z: also d_g */
} row;

/* One term of the trilinear form: where its factors lie.  w < 0: it has no weight. */
typedef struct {
  double C;
  int x, y, w, z;
} term;

static void add(double *sum, double *scale, int at, double value) {
  sum[at] += value;
  scale[at] += fabs(value);
}

static void forward(const row *r, const term *t) {
  double w = t->w < 0 ? 1 : r->w[t->w];
  add(r->z, r->z_scale, t->z, t->C * r->x[t->x] * r->y[t->y] * w);
}

static void backward(const row *r, const term *t) {
  double x = r->x[t->x], y = r->y[t->y], w = t->w < 0 ? 1 : r->w[t->w], g = t->C * r->g[t->z];
  add(r->d_x, r->d_x_scale, t->x, g * y * w);
  add(r->d_y, r->d_y_scale, t->y, g * x * w);
  if (t->w >= 0) add(r->d_w, r->d_w_scale, t->w, g * x * y);
}

static void double_backward(const row *r, const term *t) {
  double x = r->x[t->x], y = r->y[t->y], w = t->w < 0 ? 1 : r->w[t->w], g = t->C * r->g[t->z];
  double a = r->a[t->x], b = r->b[t->y], c = t->w < 0 ? 0 : r->c[t->w];
  add(r->z, r->z_scale, t->z, t->C * a * y * w);
  add(r->z, r->z_scale, t->z, t->C * x * b * w);
  add(r->z, r->z_scale, t->z, t->C * x * y * c);
  add(r->d_x, r->d_x_scale, t->x, b * w * g);
  add(r->d_x, r->d_x_scale, t->x, y * c * g);
  add(r->d_y, r->d_y_scale, t->y, a * w * g);
  add(r->d_y, r->d_y_scale, t->y, x * c * g);
  if (t->w < 0) return;
  add(r->d_w, r->d_w_scale, t->w, a * y * g);
  add(r->d_w, r->d_w_scale, t->w, x * b * g);
}

typedef struct {
  int at, stride_u, stride_m; /* element (u, m) of a term */
} place;

static place place_of(const reference_irreps *irreps, int i, clb_layout layout) {
  int at = irreps->term[i].at, n = 2 * irreps->term[i].l + 1;
  return layout == CLB_MUL_IR ? (place){at, n, 1} : (place){at, 1, irreps->term[i].mul};
}

static void each_term(const reference_product *p, const path *q, const row *r, void (*use)(const row *, const term *)) {
  place x = place_of(&p->x, q->is.in1, p->layout_x), y = place_of(&p->y, q->is.in2, p->layout_y), z = place_of(&p->z, q->is.out, p->layout_z);
  int n1 = 2 * p->x.term[q->is.in1].l + 1, n2 = 2 * p->y.term[q->is.in2].l + 1, n3 = 2 * p->z.term[q->is.out].l + 1;
  int mul_x = p->x.term[q->is.in1].mul, mul_y = p->y.term[q->is.in2].mul;
  for (int i = 0; i < n1; i++)
    for (int j = 0; j < n2; j++)
      for (int k = 0; k < n3; k++) {
        double C = q->C[(i * n2 + j) * n3 + k];
        if (C == 0) continue;
        for (int u = 0; u < mul_x; u++)
          for (int v = 0; v < mul_y; v++)
            use(r, &(term){C, x.at + u * x.stride_u + i * x.stride_m, y.at + v * y.stride_u + j * y.stride_m,
                           q->is.has_weight ? q->weight_at + u * mul_y + v : -1, z.at + u * z.stride_u + k * z.stride_m});
      }
}

static const double *input(const double *all, int64_t r, int width) { return all ? all + r * width : NULL; }
static double *output(double *all, int64_t r, int width) {
  if (!all) return NULL;
  memset(all + r * width, 0, sizeof(double) * (size_t)width);
  return all + r * width;
}

void reference_product_run(const reference_product *p, clb_pass pass, int64_t rows, const double *const *in, double *const *out, double *const *scale) {
  static void (*const uses[])(const row *, const term *) = {forward, backward, double_backward};
  int X = p->x.dim, Y = p->y.dim, W = p->n_weights, Z = p->z.dim;
  for (int64_t i = 0; i < rows; i++) {
    row r = {.x = input(in[0], i, X), .y = input(in[1], i, Y), .w = input(in[2], i, W)};
    if (pass == CLB_FORWARD) r.z = output(out[0], i, Z), r.z_scale = output(scale[0], i, Z);
    else {
      r.g = input(in[3], i, Z);
      r.d_x = output(out[0], i, X), r.d_x_scale = output(scale[0], i, X);
      r.d_y = output(out[1], i, Y), r.d_y_scale = output(scale[1], i, Y);
      r.d_w = output(out[2], i, W), r.d_w_scale = output(scale[2], i, W);
    }
    if (pass == CLB_DOUBLE_BACKWARD) {
      r.a = input(in[4], i, X), r.b = input(in[5], i, Y), r.c = input(in[6], i, W);
      r.z = output(out[3], i, Z), r.z_scale = output(scale[3], i, Z);
    }
    for (int q = 0; q < p->n; q++) each_term(p, &p->path[q], &r, uses[pass]);
  }
}
