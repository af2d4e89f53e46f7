/* kernels/symmetric_contraction/plan.c - the elements of a symmetric contraction's trees. */
#include "kernels/symmetric_contraction/contraction_plan.h"

#include <stdlib.h>
#include <string.h>

#include "src/problem/wigner.h"

enum { MAX_ELEMENTS = (CLB_MAX_ELL + 1) * (1 + (CLB_MAX_ELL + 1) * (CLB_MAX_ELL + 1)) };

/* The element [A_l1 A_l2]_degree, which must exist. */
static int pair_of(const clb_symmetric_plan *plan, int l1, int l2, int degree) {
  int e = 0;
  while (plan->element[e].l1 != l1 || plan->element[e].l2 != l2 ||
         plan->element[e].degree != degree)
    e++;
  return e;
}

/* Which pairs there may be: used[l1][l2][j]. */
typedef bool pair_set[CLB_MAX_ELL + 1][CLB_MAX_ELL + 1][CLB_MAX_PAIR_DEGREE + 1];

static void find_used(const clb_symmetric_basis *b, pair_set used) {
  memset(used, 0, sizeof(pair_set));
  for (int i = 0; i < b->n_paths; i++) {
    const clb_symmetric_path *p = &b->path[i];
    if (p->nu > 1) used[p->l[0]][p->l[1]][p->nu == 2 ? p->degree : p->j[0]] = true;
    if (p->nu > 3) used[p->l[2]][p->l[3]][p->j[1]] = true;
  }
}

static void add_element(clb_symmetric_plan *plan, int l1, int l2, int degree, bool natural) {
  plan->element[plan->n_elements++] =
      (clb_symmetric_element){l1, l2, degree, natural, plan->n_values};
  plan->n_values += 2 * degree + 1;
}

static void list_elements(clb_symmetric_plan *plan, int ell) {
  pair_set used;
  find_used(&plan->basis, used);
  for (int l = 0; l <= ell; l++) add_element(plan, -1, -1, l, true);
  for (int j = 0; j <= 2 * ell; j++)
    for (int natural = 1; natural >= 0; natural--)
      for (int l1 = 0; l1 <= ell; l1++)
        for (int l2 = l1; l2 <= ell; l2++)
          if (used[l1][l2][j] && ((l1 + l2 + j) % 2 == 0) == natural)
            add_element(plan, l1, l2, j, natural);
}

static clb_symmetric_tree tree_of(const clb_symmetric_plan *plan, const clb_symmetric_path *p) {
  clb_symmetric_tree t = {CLB_NO_ELEMENT, p->l[0], 0};
  if (p->nu > 1) t.right = pair_of(plan, p->l[0], p->l[1], p->nu == 2 ? p->degree : p->j[0]);
  if (p->nu == 3) t.left = p->l[2];
  if (p->nu == 4) t.left = t.right, t.right = pair_of(plan, p->l[2], p->l[3], p->j[1]);
  return t;
}

bool clb_symmetric_plan_make(const clb_symmetric_contraction_problem *p, clb_symmetric_plan *plan) {
  *plan = (clb_symmetric_plan){0};
  if (!clb_symmetric_basis_make(p, &plan->basis)) return false;
  plan->element = malloc(sizeof *plan->element * MAX_ELEMENTS);
  plan->tree = malloc(sizeof *plan->tree * (size_t)(plan->basis.n_paths + 1));
  if (!plan->element || !plan->tree) return false;
  list_elements(plan, p->ell);
  for (int i = 0; i < plan->basis.n_paths; i++) {
    plan->tree[i] = tree_of(plan, &plan->basis.path[i]);
    while (p->degrees[plan->tree[i].out] != plan->basis.path[i].degree) plan->tree[i].out++;
  }
  return true;
}

void clb_symmetric_plan_free(clb_symmetric_plan *plan) {
  clb_symmetric_basis_free(&plan->basis);
  free(plan->element);
  free(plan->tree);
  *plan = (clb_symmetric_plan){0};
}

int clb_symmetric_terms(int l1, int l2, int l3, bool same, clb_symmetric_term *terms) {
  double symbol[CLB_MAX_SYMMETRIC_TERMS];
  int n1 = 2 * l1 + 1, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1, n = 0;
  clb_wigner_3j(l1, l2, l3, symbol);
  for (int i = 0; i < n1; i++)
    for (int k = same ? i : 0; k < n2; k++)
      for (int m = 0; m < n3; m++) {
        double c = symbol[(i * n2 + k) * n3 + m];
        if (same && k > i) c += symbol[(k * n2 + i) * n3 + m];
        if (c != 0) terms[n++] = (clb_symmetric_term){i, k, m, c};
      }
  return n;
}

int64_t clb_symmetric_cost(const clb_symmetric_plan *plan) {
  int64_t cost = 0;
  for (int e = 0; e < plan->n_elements; e++) {
    const clb_symmetric_element *p = &plan->element[e];
    if (p->l1 >= 0) cost += clb_wigner_nonzeros(p->l1, p->l2, p->degree);
  }
  for (int i = 0; i < plan->basis.n_paths; i++) {
    const clb_symmetric_tree *t = &plan->tree[i];
    const clb_symmetric_element *right = &plan->element[t->right];
    bool first = t->left != CLB_NO_ELEMENT; /* of the trees that share one product */
    for (int k = 0; k < i && first; k++) {
      const clb_symmetric_element *other = &plan->element[plan->tree[k].right];
      first = plan->tree[k].left != t->left || plan->tree[k].out != t->out ||
              other->degree != right->degree || other->natural != right->natural;
    }
    cost += 2 * right->degree + 1;
    if (first)
      cost += 2 * clb_wigner_nonzeros(plan->element[t->left].degree, right->degree,
                                      plan->basis.path[i].degree);
  }
  return cost;
}
