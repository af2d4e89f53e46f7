/* kernels/grouped/host/newton_schulz.c - three products an iteration: A = X X^T, B = b A + c A A,
   X = a X + B X.

   The first A is of U itself, whose norm is the root of A's trace: the first B and X take A and U
   times a power of 1 / norm. X goes from U to a second place and back. */
#include "kernels/grouped/host/newton_schulz.h"

#include <stdlib.h>

static const double A = 3.4445, B = -4.7750, C = 2.0315;
enum { ITERATIONS = 5, PLACES = 2, PRODUCTS = 3, ALIGNED = 8 };

/* The products of an iteration that starts from U or from the second place. */
enum { GRAM, POLYNOMIAL, NEXT };
struct clb_newton_schulz {
  clb_grouped *list[PLACES][PRODUCTS];
  clb_grouped *first[PRODUCTS], *last; /* of the first iteration; the last product */
};

/* Where a matrix's X, A and B are. */
typedef struct {
  int64_t x[PLACES], a, b;
} places;

static int64_t smaller(const clb_newton_schulz_matrix *m) {
  return m->rows < m->columns ? m->rows : m->columns;
}

static int64_t take(int64_t *end, int64_t elements) {
  const int64_t at = (*end + ALIGNED - 1) / ALIGNED * ALIGNED;
  *end = at + elements;
  return at;
}

static clb_grouped_matrix dense(int64_t at, int64_t columns, bool transposed) {
  return (clb_grouped_matrix){at, columns, transposed, 0};
}

/* One product of a matrix; from: the place of X; first: X and A are not yet scaled. */
static clb_grouped_product product_of(const clb_newton_schulz_matrix *m, const places *p, int what,
                                      int from, bool first, double scale) {
  const bool tall = m->rows > m->columns;
  const int64_t n = smaller(m), larger = tall ? m->rows : m->columns;
  const clb_grouped_matrix x = dense(p->x[from], m->columns, false),
                           xt = dense(p->x[from], m->columns, true), a = dense(p->a, n, false),
                           b = dense(p->b, n, false);
  clb_grouped_product r = {.m = n, .n = n, .trace = a, .trace_rows = n};
  r.floor = m->floor;
  r.epsilon = m->epsilon;
  r.symmetric = what != NEXT;
  if (what == GRAM) {
    r.k = larger;
    r.a = tall ? xt : x, r.b = tall ? x : xt, r.c = a;
    r.alpha = 1;
  } else if (what == POLYNOMIAL) {
    r.k = n;
    r.a = r.b = r.d = a, r.c = b;
    r.alpha = C, r.beta = B;
    if (first) r.a.power = r.b.power = r.d.power = 2;
  } else {
    r.m = m->rows, r.n = m->columns, r.k = n;
    r.a = tall ? x : b, r.b = tall ? b : x, r.d = x;
    r.c = dense(p->x[!from], m->columns, false);
    r.alpha = scale, r.beta = A * scale;
    if (first) r.d.power = 1, *(tall ? &r.a.power : &r.b.power) = 1;
  }
  return r;
}

typedef struct {
  clb_context *ctx;
  const clb_newton_schulz_matrix *matrices;
  const places *places;
  clb_grouped_list list; /* its products are filled anew for each */
  clb_grouped_product *products;
} maker;

static clb_status make_list(maker *k, int what, int from, bool first, bool last,
                            clb_grouped **grouped) {
  for (int64_t i = 0; i < k->list.n; i++)
    k->products[i] = product_of(&k->matrices[i], &k->places[i], what, from, first,
                                last ? k->matrices[i].scale : 1);
  k->list.scaled = first && what != GRAM;
  return clb_grouped_create(k->ctx, &k->list, grouped);
}

/* The first GRAM is that of every iteration from U. */
static clb_status make_lists(maker *k, clb_newton_schulz *s) {
  clb_status status = CLB_OK;
  for (int from = 0; from < PLACES; from++)
    for (int what = GRAM; what < PRODUCTS && !status; what++)
      status = make_list(k, what, from, false, false, &s->list[from][what]);
  for (int what = POLYNOMIAL; what < PRODUCTS && !status; what++)
    status = make_list(k, what, 0, true, false, &s->first[what]);
  return status ? status : make_list(k, NEXT, (ITERATIONS - 1) % PLACES, false, true, &s->last);
}

clb_status clb_newton_schulz_create(clb_context *ctx, clb_dtype storage, clb_dtype arithmetic,
                                    clb_newton_schulz_matrix *matrices, int64_t n, int64_t *end,
                                    clb_newton_schulz **newton_schulz) {
  clb_newton_schulz *s = *newton_schulz = calloc(1, sizeof *s);
  places *p = calloc((size_t)n + 1, sizeof *p);
  clb_grouped_product *products = calloc((size_t)n + 1, sizeof *products);
  clb_status status = s && p && products
                          ? CLB_OK
                          : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "newton_schulz: no memory");
  for (int64_t i = 0; i < n && !status; i++) {
    clb_newton_schulz_matrix *m = &matrices[i];
    const int64_t square = smaller(m) * smaller(m);
    p[i].x[0] = m->u;
    p[i].x[1] = take(end, m->rows * m->columns);
    p[i].a = take(end, square);
    p[i].b = take(end, square);
    m->result = p[i].x[ITERATIONS % PLACES];
  }
  maker k = {ctx, matrices, p, {products, n, storage, arithmetic, false, false}, products};
  if (!status) status = make_lists(&k, s);
  free(p);
  free(products);
  if (status) clb_newton_schulz_destroy(newton_schulz);
  return status;
}

void clb_newton_schulz_destroy(clb_newton_schulz **newton_schulz) {
  if (!newton_schulz || !*newton_schulz) return;
  clb_newton_schulz *s = *newton_schulz;
  for (int what = GRAM; what < PRODUCTS; what++) {
    for (int from = 0; from < PLACES; from++) clb_grouped_destroy(&s->list[from][what]);
    clb_grouped_destroy(&s->first[what]);
  }
  clb_grouped_destroy(&s->last);
  free(s);
  *newton_schulz = NULL;
}

clb_status clb_newton_schulz_run(clb_newton_schulz *s, const clb_memory *memory) {
  clb_status status = CLB_OK;
  for (int i = 0; i < ITERATIONS; i++)
    for (int what = GRAM; what < PRODUCTS && !status; what++) {
      clb_grouped *list = s->list[i % PLACES][what];
      if (!i && what != GRAM) list = s->first[what];
      if (i == ITERATIONS - 1 && what == NEXT) list = s->last;
      status = clb_grouped_run(list, memory, memory, NULL, 0);
    }
  return status;
}
