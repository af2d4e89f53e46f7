/* tests/ops/symmetric_contraction/test_symmetric_basis.c - the tensors of paths against MACE's,
   which are rebuilt here by the recursion that made them. */
#include "tests/ops/op_runs.h"

#include "tools/reference/reference_irreps.h"
#include "tools/reference/reference_symmetric_contraction.h"

static const int all_degrees[] = {0, 1, 2, 3};

static double *numbers(size_t n) {
  double *x = calloc(n + 1, sizeof *x);
  assert_non_null(x);
  return x;
}

static size_t power(size_t base, int n) { return n ? base * power(base, n - 1) : 1; }

/* The tensor of a path, malloc'ed. */
static double *tensor_of(clb_context *ctx, const clb_symmetric_contraction_desc *desc, int degree,
                         int nu, int path, size_t *size) {
  *size = (size_t)(2 * degree + 1) * power((size_t)((desc->ell + 1) * (desc->ell + 1)), nu);
  double *u = numbers(*size);
  OK(ctx, clb_symmetric_contraction_basis(ctx, desc, path, u, (int64_t)*size));
  return u;
}

/* ---- MACE's tensors: couplings of one more factor at a time ---- */

/* A list of elements of one order: [2 l + 1][d]^order each. */
typedef struct {
  int l, parity;
  double *c;
} coupled;

typedef struct {
  int n, cap;
  coupled *e;
} coupled_list;

static void list_append(coupled_list *list, coupled one) {
  if (list->n == list->cap) {
    list->cap = 2 * list->cap + 64;
    assert_non_null(list->e = realloc(list->e, sizeof *list->e * (size_t)list->cap));
  }
  list->e[list->n++] = one;
}

static void list_free(coupled_list *list) {
  for (int i = 0; i < list->n; i++) free(list->e[i].c);
  free(list->e);
}

static coupled_list first_order(int ell) {
  int d = (ell + 1) * (ell + 1);
  coupled_list list = {0};
  for (int l = 0; l <= ell; l++) {
    coupled one = {l, l % 2 ? -1 : 1, numbers((size_t)((2 * l + 1) * d))};
    for (int m = 0; m < 2 * l + 1; m++) one.c[m * d + l * l + m] = 1;
    list_append(&list, one);
  }
  return list;
}

/* By degree, parity -1 before +1, stably. */
static void list_sort(coupled_list *list) {
  for (int i = 1; i < list->n; i++)
    for (int k = i; k > 0; k--) {
      coupled *a = &list->e[k - 1], *b = &list->e[k], t = *a;
      if (a->l < b->l || (a->l == b->l && a->parity <= b->parity)) break;
      *a = *b, *b = t;
    }
}

/* sqrt(2 lo + 1) sum_j w3j(lo, l1, l)[m, j, M] C[j, ...], in l's slots of the last index. */
static coupled couple(const coupled *e, int l, int lo, int ell, size_t size) {
  size_t d = (size_t)((ell + 1) * (ell + 1));
  coupled one = {lo, e->parity * (l % 2 ? -1 : 1), numbers((size_t)(2 * lo + 1) * size * d)};
  int n1 = 2 * e->l + 1, n = 2 * l + 1;
  double *w = numbers((size_t)((2 * lo + 1) * n1 * n));
  reference_3j(lo, e->l, l, w);
  for (int m = 0; m < 2 * lo + 1; m++)
    for (int j = 0; j < n1; j++)
      for (int k = 0; k < n; k++)
        for (size_t i = 0; i < size && w[(m * n1 + j) * n + k] != 0; i++)
          one.c[((size_t)m * size + i) * d + (size_t)(l * l + k)] +=
              sqrt(2 * lo + 1) * w[(m * n1 + j) * n + k] * e->c[(size_t)j * size + i];
  free(w);
  return one;
}

static coupled_list next_order(const coupled_list *before, int ell, int order) {
  size_t size = power((size_t)((ell + 1) * (ell + 1)), order - 1);
  coupled_list list = {0};
  for (int i = 0; i < before->n; i++)
    for (int l = 0; l <= ell; l++)
      for (int lo = abs(before->e[i].l - l); lo <= before->e[i].l + l; lo++)
        list_append(&list, couple(&before->e[i], l, lo, ell, size));
  list_sort(&list);
  return list;
}

/* ---- what acts of a tensor: its mean over the orders of factors ---- */

static void symmetric_part(const double *u, int d, int nu, int width, double *to) {
  size_t all = power((size_t)d, nu);
  int orders = 0;
  memset(to, 0, sizeof *to * all * (size_t)width);
  for (int code = 0; code < 256; code++) {
    int from[4] = {code / 64, code / 16 % 4, code / 4 % 4, code % 4}, seen = 0;
    for (int i = 0; i < 4; i++) seen |= i < nu || from[i] == i ? 1 << from[i] : 0;
    if (seen != 15) continue;
    orders++;
    for (size_t at = 0; at < all; at++) {
      size_t M[4] = {0}, other = 0;
      for (size_t i = (size_t)nu, rest = at; i-- > 0; rest /= (size_t)d) M[i] = rest % (size_t)d;
      for (int i = 0; i < nu; i++) other = other * (size_t)d + M[from[i]];
      for (size_t m = 0; m < (size_t)width; m++) to[m * all + at] += u[m * all + other];
    }
  }
  for (size_t i = 0; i < all * (size_t)width; i++) to[i] /= orders;
}

static double dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Every one of MACE's tensors has the projection sum_p <U_p, U> U_p as its symmetric part, and all
   of the U_p are needed: sum over U of <U_p, U>^2 is not 0. */
static void check_order(clb_context *ctx, const clb_symmetric_contraction_desc *desc,
                        const coupled_list *list, int degree, int nu, int wanted_rank,
                        int wanted_all) {
  int d = (desc->ell + 1) * (desc->ell + 1), width = 2 * degree + 1, n_all = 0;
  clb_symmetric_paths paths;
  OK(ctx, clb_symmetric_contraction_paths(ctx, desc, degree, nu, &paths));
  if (wanted_rank >= 0) assert_int_equal(paths.count, wanted_rank);
  size_t size = (size_t)width * power((size_t)d, nu);
  double **u = calloc((size_t)paths.count + 1, sizeof *u), *needed = numbers((size_t)paths.count),
         *part = numbers(size), *rest = numbers(size);
  assert_non_null(u);
  for (int p = 0; p < paths.count; p++) {
    u[p] = tensor_of(ctx, desc, degree, nu, paths.first + p, &size);
    symmetric_part(u[p], d, nu, width, part);
    for (size_t i = 0; i < size; i++) assert_true(fabs(u[p][i] - part[i]) <= 1e-15);
    for (int q = 0; q <= p; q++) assert_true(fabs(dot(u[p], u[q], size) - (p == q)) <= 1e-13);
  }
  for (int e = 0; e < list->n; e++) {
    if (list->e[e].l != degree || list->e[e].parity != (degree % 2 ? -1 : 1)) continue;
    n_all++;
    symmetric_part(list->e[e].c, d, nu, width, part);
    memcpy(rest, part, sizeof *rest * size);
    for (int p = 0; p < paths.count; p++) {
      double c = dot(u[p], list->e[e].c, size);
      needed[p] += c * c;
      for (size_t i = 0; i < size; i++) rest[i] -= c * u[p][i];
    }
    assert_true(dot(rest, rest, size) <= 1e-26 * (1 + dot(part, part, size)));
  }
  if (wanted_all >= 0) assert_int_equal(n_all, wanted_all);
  for (int p = 0; p < paths.count; p++) assert_true(needed[p] > 1e-6), free(u[p]);
  free(u), free(needed), free(part), free(rest);
}

/* How many tensors MACE has, and how many of ours stand for them; -1: not known. */
static void check_tensors(int ell, int correlation, int n_degrees, const int counts[4][4][2]) {
  clb_context *ctx;
  clb_symmetric_contraction_desc desc = {.ell = ell,
                                         .correlation = correlation,
                                         .degrees = all_degrees,
                                         .n_degrees = n_degrees,
                                         .channels = 1,
                                         .n_species = 1};
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  coupled_list list = first_order(ell);
  for (int nu = 1; nu <= correlation; nu++) {
    for (int l = 0; l < n_degrees; l++)
      check_order(ctx, &desc, &list, l, nu, counts ? counts[l][nu - 1][0] : -1,
                  counts ? counts[l][nu - 1][1] : -1);
    coupled_list more = nu < correlation ? next_order(&list, ell, nu + 1) : (coupled_list){0};
    list_free(&list);
    list = more;
  }
  clb_context_destroy(&ctx);
}

/* ell = 3, correlation 3: 8 stand for 23, 12 for 51. */
static void mace(void **state) {
  static const int counts[4][4][2] = {
      {{1, 1}, {4, 4}, {8, 23}}, {{1, 1}, {3, 6}, {12, 51}}, {{1, 1}, {5, 7}, {14, 65}}};
  (void)state;
  check_tensors(3, 3, 3, counts);
}

static void smaller(void **state) {
  static const int counts[4][4][2] = {{{1, 1}, {3, 3}, {5, 11}, {-1, -1}}};
  (void)state;
  check_tensors(2, 3, 1, counts);
  check_tensors(1, 4, 4, NULL);
  check_tensors(0, 4, 2, NULL);
}

/* W' = P W: MACE's sum over its tensors with weights W is the op's with weights W'. */
static void projected_weights(void **state) {
  enum { ELL = 2, NU = 3, D = (ELL + 1) * (ELL + 1), N = 4 };
  clb_context *ctx;
  (void)state;
  assert_int_equal(clb_context_create("cpu:interpreter", &ctx), CLB_OK);
  clb_symmetric_contraction_desc desc = {.ell = ELL,
                                         .correlation = NU,
                                         .degrees = all_degrees,
                                         .n_degrees = 2,
                                         .channels = 1,
                                         .n_species = 1,
                                         .layout_x = CLB_IR_MUL,
                                         .layout_z = CLB_IR_MUL};
  const tool_kernel kernel = {&desc, F64, false};
  clb_op *op = NULL;
  test_run t;
  OK(ctx, tool_op_symmetric_contraction.create(ctx, &kernel, 1, &op));
  test_run_make(&t, &tool_op_symmetric_contraction, &kernel, CLB_FORWARD, &(tool_data){.rows = N},
                N);
  reference_contraction *whole = reference_contraction_create(&desc);
  assert_non_null(whole);
  double *w = t.values[1], *got[MAX_ARRAYS] = {NULL}, *W = numbers(1000), *z = numbers(4 * N),
         *scale = numbers(4 * N);
  uint64_t seed = 4;
  int n = 0;
  for (int i = 0; i < t.array[1].width; i++) w[i] = 0;
  for (int l = 0; l < 2; l++) {
    coupled_list list = first_order(ELL);
    for (int nu = 1; nu <= NU; nu++) {
      clb_symmetric_paths paths;
      OK(ctx, clb_symmetric_contraction_paths(ctx, &desc, l, nu, &paths));
      for (int e = 0; e < list.n; e++) {
        if (list.e[e].l != l || list.e[e].parity != (l ? -1 : 1)) continue;
        assert_true(reference_contraction_add(whole, l, nu, list.e[e].c));
        W[n] = test_random(&seed);
        for (int p = paths.first; p < paths.first + paths.count; p++) {
          size_t size;
          double *u = tensor_of(ctx, &desc, l, nu, p, &size);
          w[p] += dot(u, list.e[e].c, size) * W[n];
          free(u);
        }
        n++;
      }
      coupled_list more = nu < NU ? next_order(&list, ELL, nu + 1) : (coupled_list){0};
      list_free(&list);
      list = more;
    }
  }
  take_results(ctx, op, &t, got);
  double *const values[] = {t.values[0], W, NULL}, *const wanted[] = {NULL, NULL, z},
                *const scales[] = {NULL, NULL, scale};
  reference_contraction_run(whole, CLB_FORWARD, N, (const int32_t[N]){0}, values, wanted, scales);
  for (int i = 0; i < 4 * N; i++)
    assert_true(fabs(got[2][i] - z[i]) <= 1e-12 * scale[i] && scale[i] > 0);
  free_results(got);
  test_run_free(&t);
  reference_contraction_destroy(whole);
  clb_op_destroy(&op);
  clb_context_destroy(&ctx);
  free(W), free(z), free(scale);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mace), cmocka_unit_test(smaller),
                                     cmocka_unit_test(projected_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
