/* tools/convert/mace/product.c - the symmetric contractions of MACE's product basis: weights of
   MACE's tensors become those of the orthonormal basis of clb_symmetric_contraction, in which only
   their symmetric parts are left. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/tool.h"
#include "tools/convert/mace/mace_product.h"

enum { DEGREES = 5 };

/* A layer's weights, [species][paths][channels], and the description that orders the paths. */
typedef struct {
  mace *q;
  int layer, degrees[DEGREES];
  clb_symmetric_contraction_desc desc;
  int64_t n_paths;
  double *w;
} product;

/* ---- what the file has ---- */

static int64_t components_of(const mace *q) { return (int64_t)(q->l_max + 1) * (q->l_max + 1); }

static double *numbers_of(const weights *w) {
  double *x = allocate((size_t)w->count, sizeof *x);
  for (int64_t i = 0; i < w->count; i++) x[i] = element(w, i);
  return x;
}

/* U_matrix_nu is [2 l + 1][d]..[d][tensors], without the first axis for l = 0; its weights are
   [species][tensors][channels], or the same for all species. */
static order order_at(const product *p, value contraction, int degree, int nu) {
  const mace *q = p->q;
  char tensor[NAME_BYTES], numbers[NAME_BYTES] = "weights_max";
  const int axes = nu + (degree > 0), correlation = p->desc.correlation;
  snprintf(tensor, sizeof tensor, "U_matrix_%d", nu);
  if (nu < correlation) snprintf(numbers, sizeof numbers, "weights.%d", correlation - 1 - nu);
  const weights u = weights_at(q->t, contraction, tensor),
                w = weights_at(q->t, contraction, numbers);
  order o = {.degree = degree, .nu = nu, .size = 1};
  const int64_t d = components_of(q);
  bool good = u.rank == axes + 1 && w.rank == 3;
  for (int i = 0; good && i < axes; i++) {
    good = u.shape[i] == (degree > 0 && !i ? 2 * degree + 1 : d);
    o.size *= u.shape[i];
  }
  o.tensors = good ? u.shape[axes] : 0;
  good = good && o.tensors > 0 && w.shape[1] == o.tensors && w.shape[2] == p->desc.channels &&
         (w.shape[0] == 1 || w.shape[0] == q->n_species);
  if (!good)
    fail_model(q->t->path, "'%s' and '%s' of '%s' are not of the shape of their degrees", tensor,
               numbers, class_of(contraction));
  o.n_species = w.shape[0];
  o.u = numbers_of(&u);
  o.w = numbers_of(&w);
  return o;
}

static int correlation_of(const mace *q, int layer, value contraction) {
  char key[NAME_BYTES];
  int n = 0;
  if (of_cuequivariance(contraction)) n = (int)whole_at(q->t, contraction, "contraction_degree");
  else
    while (snprintf(key, sizeof key, "U_matrix_%d", n + 1), maybe(contraction, key)) n++;
  if (n < 1 || n > MACE_CORRELATION)
    fail_model(q->t->path, "product %d has correlation %d; it must be from 1 to %d", layer, n,
               MACE_CORRELATION);
  return n;
}

/* ---- the projection ---- */

/* The polynomial of tensor k (of all `tensors`) at a point: sum over M_1 ... M_nu of u[m'][M_1] ...
   [M_nu] A[M_1] ... A[M_nu], added up over m' with factors. */
static double value_at(const order *o, const double *u, int64_t tensors, int64_t k, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < o->size; i++) {
    const double x = u ? u[i] : o->u[i * tensors + k];
    double factor = x;
    int64_t rest = i;
    if (x == 0) continue;
    for (int v = 0; v < o->nu; v++, rest /= d) factor *= sin((double)(rest % d + 1));
    sum += factor * cos((double)rest);
  }
  return sum;
}

/* <U_p, U_k> for every k. */
static void inner_products(const order *o, const double *u, double *inner) {
  for (int64_t k = 0; k < o->tensors; k++) inner[k] = 0;
  for (int64_t i = 0; i < o->size; i++)
    for (int64_t k = 0; u[i] != 0 && k < o->tensors; k++)
      inner[k] += u[i] * o->u[i * o->tensors + k];
}

/* w[species][path] += sum_k inner[k] W[species][k] */
static void add_weights(const product *p, const order *o, const double *inner, int64_t path) {
  const int64_t channels = p->desc.channels;
  for (int64_t s = 0; s < p->desc.n_species; s++) {
    double *to = p->w + (s * p->n_paths + path) * channels;
    const int64_t from = o->n_species == 1 ? 0 : s * o->tensors * channels;
    for (int64_t k = 0; k < o->tensors; k++)
      for (int64_t c = 0; c < channels; c++) to[c] += inner[k] * o->w[from + k * channels + c];
  }
}

/* Projects one order; at a point, the projections must have the tensors' values. */
static void project(const product *p, const order *o) {
  const torch *t = p->q->t;
  const int64_t d = components_of(p->q);
  clb_symmetric_paths paths;
  double *u = allocate((size_t)o->size, sizeof *u),
         *inner = allocate((size_t)o->tensors, sizeof *inner),
         *left = allocate((size_t)o->tensors, sizeof *left);
  clb_status s = clb_symmetric_contraction_paths(p->q->ctx, &p->desc, o->degree, o->nu, &paths);
  for (int64_t k = 0; k < o->tensors && !s; k++) left[k] = value_at(o, NULL, o->tensors, k, d);
  for (int i = 0; i < paths.count && !s; i++) {
    s = clb_symmetric_contraction_basis(p->q->ctx, &p->desc, paths.first + i, u, o->size);
    if (s) break;
    const double here = value_at(o, u, 1, 0, d);
    inner_products(o, u, inner);
    add_weights(p, o, inner, paths.first + i);
    for (int64_t k = 0; k < o->tensors; k++) left[k] -= inner[k] * here;
  }
  if (s) fail_model(t->path, "%s", clb_error(p->q->ctx));
  for (int64_t k = 0; k < o->tensors; k++)
    if (!(fabs(left[k]) < 1e-4))
      fail_model(t->path, "U_matrix_%d of product %d for degree %d is not equivariant", o->nu,
                 p->layer, o->degree);
  free(u);
  free(inner);
  free(left);
}

/* The orders of a degree of the output, which are projected. */
static void convert_degree(const product *p, value inner, int l, bool cuequivariance) {
  const mace *q = p->q;
  value contraction = inner;
  if (!cuequivariance) {
    value list = mace_module(q, inner, "contractions", "ModuleList");
    contraction = mace_module(q, list, named("%d", l).text, "Contraction");
    if (correlation_of(q, p->layer, contraction) != p->desc.correlation)
      fail_model(q->t->path, "product %d has not one correlation for all degrees", p->layer);
  }
  for (int nu = 1; nu <= p->desc.correlation; nu++) {
    const order o = cuequivariance
                        ? cuequivariance_order(q, inner, l, nu, components_of(q), p->desc.channels)
                        : order_at(p, contraction, l, nu);
    project(p, &o);
    free(o.u);
    free(o.w);
  }
}

void mace_product(mace *q, int layer, value block, const irreps *to) {
  value inner = mace_module(q, block, "symmetric_contractions", "SymmetricContraction");
  const bool cuequivariance = of_cuequivariance(inner);
  const irreps from = mace_uniform(to->term[0].mul, q->l_max);
  product p = {.q = q, .layer = layer};
  clb_symmetric_paths paths;
  if (to->n > DEGREES)
    fail_model(q->t->path, "product %d has degrees up to %d; they must be at most %d", layer,
               to->n - 1, DEGREES - 1);
  if (cuequivariance) {
    expect_irreps(q->t, inner, "irreps_in", &from);
    expect_irreps(q->t, inner, "irreps_out", to);
  }
  for (int l = 0; l < to->n; l++) p.degrees[l] = l;
  p.desc = (clb_symmetric_contraction_desc){
      .ell = q->l_max,
      .correlation = correlation_of(
          q, layer,
          cuequivariance ? inner : attribute(q->t, inner, "contractions.0", PICKLE_OBJECT)),
      .degrees = p.degrees,
      .n_degrees = to->n,
      .channels = to->term[0].mul,
      .n_species = q->n_species,
      .storage = CLB_F64,
      .arithmetic = CLB_F64,
      .passes = CLB_PASS_BIT(CLB_FORWARD)};
  if (clb_symmetric_contraction_paths(q->ctx, &p.desc, 0, 1, &paths))
    fail_model(q->t->path, "%s", clb_error(q->ctx));
  p.n_paths = paths.all;
  const int64_t shape[3] = {q->n_species, p.n_paths, p.desc.channels};
  p.w = allocate((size_t)(shape[0] * shape[1] * shape[2]), sizeof *p.w);
  for (int l = 0; l < to->n; l++) convert_degree(&p, inner, l, cuequivariance);
  put_number(q->out, p.desc.correlation, "layers.%d.correlation", layer);
  put_shaped(q->out, p.w, 3, shape, named("layers.%d.product", layer).text);
  free(p.w);
}
