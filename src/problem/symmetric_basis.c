/* src/problem/symmetric_basis.c - orthonormal bases of equivariant polynomials, block by block. */
#include "src/problem/symmetric_basis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/reserve.h"
#include "src/problem/wigner.h"

enum { N = CLB_MAX_CORRELATION, MAX_M = N * CLB_MAX_ELL, ORDERS = 2 * CLB_MAX_ELL + 1 };
enum { MAX_SYMBOL = (4 * CLB_MAX_ELL + 1) * (4 * CLB_MAX_ELL + 1) * ORDERS };

static int width(int l) { return 2 * l + 1; }

/* ---- ranks, by counting states of a given order M ---- */

/* count[n][M + MAX_M] of monomials of order n in components of one degree. */
static void count_run(int l, int n, int count[N + 1][2 * MAX_M + 1]) {
  memset(count, 0, sizeof(int[N + 1][2 * MAX_M + 1]));
  count[0][MAX_M] = 1;
  for (int m = -l; m <= l; m++)
    for (int k = 1; k <= n; k++)
      for (int M = -k * l; M <= k * l; M++) {
        int from = M - m + MAX_M;
        if (from >= 0 && from <= 2 * MAX_M) count[k][M + MAX_M] += count[k - 1][from];
      }
}

/* The number of elements of a block. */
static int block_rank(const int *l, int nu, int degree) {
  int states[2 * MAX_M + 1] = {[MAX_M] = 1}, run[N + 1][2 * MAX_M + 1], sum = degree;
  for (int i = 0, n; i < nu; i += n) {
    int before[2 * MAX_M + 1];
    for (n = 0; i + n < nu && l[i + n] == l[i]; n++) sum += l[i];
    count_run(l[i], n, run);
    memcpy(before, states, sizeof states);
    memset(states, 0, sizeof states);
    for (int M = -MAX_M; M <= MAX_M; M++)
      for (int m = -n * l[i]; m <= n * l[i]; m++)
        if (M - m >= -MAX_M && M - m <= MAX_M)
          states[M + MAX_M] += before[M - m + MAX_M] * run[n][m + MAX_M];
  }
  if (sum % 2 || degree > MAX_M) return 0;
  return states[degree + MAX_M] - (degree < MAX_M ? states[degree + 1 + MAX_M] : 0);
}

/* The multisets of degrees, in lexicographic order: false after the last one. */
static bool next_multiset(int *l, int nu, int ell) {
  for (int i = nu - 1; i >= 0; i--) {
    if (l[i] == ell) continue;
    for (int k = nu - 1; k > i; k--) l[k] = l[i] + 1;
    l[i]++;
    return true;
  }
  return false;
}

int clb_symmetric_rank(int ell, int nu, int degree) {
  int l[N] = {0}, n = 0;
  do n += block_rank(l, nu, degree);
  while (next_multiset(l, nu, ell));
  return n;
}

/* ---- trees ---- */

typedef struct {
  int l[N], nu, degree, rank;
  int size;            /* of a tensor [2 degree + 1][2 l_1 + 1] ... */
  double same;         /* how many orders of the factors l_1 ... l_nu there are */
  double *tree, *work; /* the tree, and its symmetric part */
  double *vector;      /* [rank][size]: the orthonormal elements so far */
  double *combination; /* [rank][rank]: their coefficients of trees */
  double *symbol[3];
} block;

static void free_block(block *b) {
  free(b->tree), free(b->work), free(b->vector), free(b->combination);
  for (int i = 0; i < 3; i++) free(b->symbol[i]);
}

static bool make_block(block *b, const int *l, int nu, int degree, int rank) {
  *b = (block){.nu = nu, .degree = degree, .rank = rank, .size = width(degree), .same = 1};
  memcpy(b->l, l, sizeof(int[N]));
  for (int i = 0, run = 0; i < nu; i++) {
    run = i && l[i] == l[i - 1] ? run + 1 : 1;
    b->size *= width(l[i]);
    b->same *= (double)(i + 1) / run;
  }
  b->tree = malloc(sizeof(double) * (size_t)b->size);
  b->work = malloc(sizeof(double) * (size_t)b->size);
  b->vector = malloc(sizeof(double) * (size_t)b->size * (size_t)rank);
  b->combination = calloc((size_t)rank * (size_t)rank, sizeof(double));
  bool made = b->tree && b->work && b->vector && b->combination;
  for (int i = 0; i < 3; i++) made &= (b->symbol[i] = malloc(sizeof(double) * MAX_SYMBOL)) != NULL;
  return made;
}

/* tree[m'][m1][m2][m3][m4] of nu = 4; of lower orders the last indices go. */
static void make_tree(block *b, int j, int k) {
  const int *l = b->l, z = width(b->degree), n1 = width(l[0]), n2 = b->nu > 1 ? width(l[1]) : 1,
            n3 = b->nu > 2 ? width(l[2]) : 1, n4 = b->nu > 3 ? width(l[3]) : 1, nj = width(j),
            nk = width(k);
  double *first = b->symbol[0], *second = b->symbol[1], *last = b->symbol[2];
  memset(b->tree, 0, sizeof(double) * (size_t)b->size);
  if (b->nu == 1) {
    for (int m = 0; m < z; m++) b->tree[m * z + m] = 1;
    return;
  }
  clb_wigner_3j(l[0], l[1], j, first); /* [m1][m2][mj] */
  if (b->nu == 4) clb_wigner_3j(l[2], l[3], k, second);
  if (b->nu == 4) clb_wigner_3j(j, k, b->degree, last);
  if (b->nu == 3) clb_wigner_3j(l[2], j, b->degree, last);
  for (int m12 = 0; m12 < n1 * n2; m12++)
    for (int mj = 0; mj < nj; mj++) {
      double f = first[m12 * nj + mj];
      if (f == 0) continue;
      if (b->nu == 2) b->tree[mj * n1 * n2 + m12] = f;
      for (int m3 = 0; m3 < n3 && b->nu == 3; m3++)
        for (int m = 0; m < z; m++)
          b->tree[(m * n1 * n2 + m12) * n3 + m3] += f * last[(m3 * nj + mj) * z + m];
      for (int mk = 0; mk < nk && b->nu == 4; mk++)
        for (int m = 0; m < z; m++) {
          double g = f * last[(mj * nk + mk) * z + m];
          double *to = b->tree + (m * n1 * n2 + m12) * n3 * n4;
          for (int m34 = 0; m34 < n3 * n4 && g != 0; m34++) to[m34] += g * second[m34 * nk + mk];
        }
    }
}

/* Adds the tree with its factors in another order; from[i]: which of its indices is factor i's. */
static void add_order(block *b, const int *from) {
  int n[N], step[N], per = b->size / width(b->degree);
  for (int i = 0; i < N; i++) n[i] = i < b->nu ? width(b->l[i]) : 1;
  for (int i = N - 1, s = 1; i >= 0; s *= n[i--]) step[i] = s;
  for (int m = 0, at = 0; m < width(b->degree); m++)
    for (int a = 0; a < n[0]; a++)
      for (int c = 0; c < n[1]; c++)
        for (int d = 0; d < n[2]; d++)
          for (int e = 0; e < n[3]; e++)
            b->work[at++] += b->tree[m * per + a * step[from[0]] + c * step[from[1]] +
                                     d * step[from[2]] + e * step[from[3]]];
}

/* work = the mean over the orders of equal factors. */
static void symmetrise(block *b) {
  int n = 0;
  memset(b->work, 0, sizeof(double) * (size_t)b->size);
  for (int code = 0; code < N * N * N * N; code++) {
    int from[N] = {code / 64, code / 16 % 4, code / 4 % 4, code % 4}, seen = 0;
    bool fits = true;
    for (int i = 0; i < N; i++) {
      seen |= 1 << from[i];
      fits &= from[i] == i || (i < b->nu && from[i] < b->nu && b->l[from[i]] == b->l[i]);
    }
    if (!fits || seen != (1 << N) - 1) continue;
    add_order(b, from);
    n++;
  }
  for (int i = 0; i < b->size; i++) b->work[i] /= n;
}

static double dot(const block *b, const double *x, const double *y) {
  double sum = 0;
  for (int i = 0; i < b->size; i++) sum += x[i] * y[i];
  return sum / b->same;
}

/* Makes element n of the block from the next tree; false: the tree depends on those before. */
static bool orthonormalise(block *b, int n) {
  double *row = b->combination + n * b->rank, before = sqrt(dot(b, b->work, b->work));
  memset(row, 0, sizeof(double) * (size_t)b->rank);
  row[n] = 1;
  for (int again = 0; again < 2; again++) /* the second time for rounding's sake */
    for (int i = 0; i < n; i++) {
      const double *v = b->vector + (size_t)i * (size_t)b->size;
      double c = dot(b, b->work, v);
      for (int k = 0; k < b->size; k++) b->work[k] -= c * v[k];
      for (int k = 0; k <= i; k++) row[k] -= c * b->combination[i * b->rank + k];
    }
  double norm = sqrt(dot(b, b->work, b->work));
  if (norm < 1e-6 || norm < 1e-6 * before) return false;
  for (int k = 0; k < b->size; k++)
    b->vector[(size_t)n * (size_t)b->size + (size_t)k] = b->work[k] / norm;
  for (int k = 0; k <= n; k++) row[k] /= norm;
  return true;
}

/* ---- the basis ---- */

typedef struct {
  clb_symmetric_basis *b;
  int n_mix;
  int64_t cap_paths, cap_mix;
} maker;

static bool reserve(maker *m, int paths, int mix) {
  return clb_reserve(&m->b->path, &m->cap_paths, m->b->n_paths + paths, sizeof *m->b->path) &&
         clb_reserve(&m->b->mix, &m->cap_mix, m->n_mix + mix, sizeof *m->b->mix);
}

static void keep(maker *m, const block *b, int n, int j, int k) {
  clb_symmetric_path *p = &m->b->path[m->b->n_paths];
  *p = (clb_symmetric_path){.degree = b->degree,
                            .nu = b->nu,
                            .j = {j, k},
                            .first = m->b->n_paths - n,
                            .mix_at = m->n_mix};
  memcpy(p->l, b->l, sizeof p->l);
  memcpy(m->b->mix + m->n_mix, b->combination + n * b->rank, sizeof(double) * (size_t)(n + 1));
  m->b->n_paths++;
  m->n_mix += n + 1;
}

static bool triangle(int a, int b, int c) { return c >= abs(a - b) && c <= a + b; }

/* Whether [a b]_j vanishes because it is antisymmetric in equal degrees. */
static bool vanishes(int a, int b, int j) { return a == b && j % 2; }

static bool add_block(maker *m, const int *l, int nu, int degree) {
  int rank = block_rank(l, nu, degree), n = 0;
  block b = {0};
  bool made = !rank || (make_block(&b, l, nu, degree, rank) && reserve(m, rank, rank * rank));
  int last_j = nu > 2 ? l[0] + l[1] : degree, last_k = nu > 3 ? l[2] + l[3] : 0;
  for (int j = nu > 2 ? l[1] - l[0] : degree; made && j <= last_j && n < rank; j++)
    for (int k = nu > 3 ? l[3] - l[2] : 0; k <= last_k && n < rank; k++) {
      if (nu > 1 && vanishes(l[0], l[1], j)) continue;
      if (nu == 3 && !triangle(l[2], j, degree)) continue;
      if (nu > 3 && (vanishes(l[2], l[3], k) || !triangle(j, k, degree))) continue;
      make_tree(&b, j, k);
      symmetrise(&b);
      if (orthonormalise(&b, n)) keep(m, &b, n++, nu > 2 ? j : 0, nu > 3 ? k : 0);
    }
  free_block(&b);
  return made;
}

bool clb_symmetric_basis_make(const clb_symmetric_contraction_problem *p, clb_symmetric_basis *b) {
  maker m = {.b = b};
  bool made = true;
  *b = (clb_symmetric_basis){0};
  for (int i = 0; i < p->n_degrees; i++)
    for (int nu = 1; nu <= p->correlation; nu++) {
      int l[N] = {0};
      do made = made && add_block(&m, l, nu, p->degrees[i]);
      while (next_multiset(l, nu, p->ell));
    }
  return made;
}

void clb_symmetric_basis_free(clb_symmetric_basis *b) {
  free(b->path);
  free(b->mix);
  *b = (clb_symmetric_basis){0};
}

/* ---- dense tensors ---- */

/* Puts the block's symmetric tensor, v / same, into every order of its factors. */
static void scatter(const block *b, int ell, double c, double *u) {
  int d = (ell + 1) * (ell + 1), n[N], per = b->size / width(b->degree);
  int64_t all = 1;
  for (int i = 0; i < b->nu; i++) all *= d;
  for (int i = 0; i < N; i++) n[i] = i < b->nu ? width(b->l[i]) : 1;
  for (int code = 0; code < N * N * N * N; code++) { /* factor i is index from[i] of u */
    int from[N] = {code / 64, code / 16 % 4, code / 4 % 4, code % 4}, seen = 0;
    int64_t step[N], start = 0;
    bool fits = true;
    for (int i = 0; i < N; i++) {
      seen |= 1 << from[i];
      fits &= i < b->nu ? from[i] < b->nu : from[i] == i;
      for (int k = 0; k < i && i < b->nu; k++) /* equal factors stay in order: each once */
        fits &= b->l[k] != b->l[i] || from[k] < from[i];
    }
    if (!fits || seen != (1 << N) - 1) continue;
    for (int i = 0; i < N; i++) {
      step[i] = i < b->nu;
      for (int k = from[i] + 1; k < b->nu; k++) step[i] *= d;
      if (i < b->nu) start += step[i] * b->l[i] * b->l[i];
    }
    for (int m = 0; m < width(b->degree); m++)
      for (int s = 0; s < per; s++)
        u[m * all + start + s / (n[1] * n[2] * n[3]) * step[0] +
          s / (n[2] * n[3]) % n[1] * step[1] + s / n[3] % n[2] * step[2] + s % n[3] * step[3]] +=
            c * b->work[m * per + s] / b->same;
  }
}

bool clb_symmetric_dense(const clb_symmetric_basis *basis, int path, int ell, double *u) {
  const clb_symmetric_path *p = &basis->path[path];
  block b;
  bool made = make_block(&b, p->l, p->nu, p->degree, 1);
  int64_t n = width(p->degree);
  for (int i = 0; i < p->nu; i++) n *= (ell + 1) * (ell + 1);
  memset(u, 0, sizeof *u * (size_t)n);
  for (int t = p->first; t <= path && made; t++) {
    const clb_symmetric_path *tree = &basis->path[t];
    make_tree(&b, p->nu == 2 ? p->degree : tree->j[0], tree->j[1]);
    symmetrise(&b);
    scatter(&b, ell, basis->mix[p->mix_at + t - p->first], u);
  }
  free_block(&b);
  return made;
}
