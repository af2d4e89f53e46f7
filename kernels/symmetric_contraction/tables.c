/* kernels/symmetric_contraction/tables.c - the products of a symmetric contraction as tables.

   Values are numbered: the components of the elements, then a 1. The components of pairs are rows
   of entries c v_i v_k; so are the components of each path's polynomial, in terms of elements. */
#include "kernels/symmetric_contraction/contraction.h"

#include <stdlib.h>

#include "src/base/reserve.h"

typedef struct {
  clb_tables *t;
  int64_t cap_numbers, cap_reals;
  bool failed;
} maker;

static void number(maker *m, int64_t value) {
  clb_tables *t = m->t;
  m->failed |= !clb_reserve(&t->number, &m->cap_numbers, t->n_numbers + 1, sizeof *t->number);
  if (!m->failed) t->number[t->n_numbers++] = (int32_t)value;
}

static void real(maker *m, double value) {
  clb_tables *t = m->t;
  m->failed |= !clb_reserve(&t->real, &m->cap_reals, t->n_reals + 1, sizeof *t->real);
  if (!m->failed) t->real[t->n_reals++] = value;
}

/* Entries of component m of [left right]_degree times c; left CLB_NO_ELEMENT: right's component
   itself. */
static void tree_entries(maker *m, maker *fields, const clb_symmetric_plan *plan,
                         const clb_symmetric_tree *t, int degree, int component, double c) {
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  const clb_symmetric_element *right = &plan->element[t->right];
  if (t->left == CLB_NO_ELEMENT) {
    number(fields, right->at + component), number(fields, plan->n_values), real(m, c);
    return;
  }
  const clb_symmetric_element *left = &plan->element[t->left];
  int n = clb_symmetric_terms(left->degree, right->degree, degree, false, term);
  for (int e = 0; e < n; e++)
    if (term[e].m == component) {
      number(fields, left->at + term[e].i);
      number(fields, right->at + term[e].k);
      real(m, c * term[e].c);
    }
}

/* The rows of all components of pairs. */
static void pair_rows(maker *m, maker *fields, const clb_symmetric_plan *plan) {
  clb_symmetric_term term[CLB_MAX_SYMMETRIC_TERMS];
  for (int e = 0; e < plan->n_elements; e++) {
    const clb_symmetric_element *p = &plan->element[e];
    if (p->l1 < 0) continue;
    int n = clb_symmetric_terms(p->l1, p->l2, p->degree, p->l1 == p->l2, term);
    for (int component = 0; component < 2 * p->degree + 1; component++) {
      number(m, m->t->n_reals);
      for (int q = 0; q < n; q++)
        if (term[q].m == component) {
          number(fields, p->l1 * p->l1 + term[q].i);
          number(fields, p->l2 * p->l2 + term[q].k);
          real(m, term[q].c);
        }
    }
  }
  number(m, m->t->n_reals);
}

/* The rows of all components of paths: their z, and their entries. */
static void path_rows(maker *m, maker *fields, maker *starts, const clb_problem *p,
                      const clb_symmetric_plan *plan) {
  const clb_symmetric_contraction_problem *sc = &p->symmetric_contraction;
  for (int i = 0; i < plan->basis.n_paths; i++) {
    const clb_symmetric_path *path = &plan->basis.path[i];
    int at = 0;
    for (int o = 0; o < plan->tree[i].out; o++) at += 2 * sc->degrees[o] + 1;
    for (int component = 0; component < 2 * path->degree + 1; component++) {
      number(m, at + component);
      number(starts, m->t->n_reals);
      for (int t = path->first; t <= i; t++)
        tree_entries(m, fields, plan, &plan->tree[t], path->degree, component,
                     plan->basis.mix[path->mix_at + t - path->first]);
    }
  }
  number(starts, m->t->n_reals);
}

static void append(maker *m, const clb_tables *t) {
  for (int64_t i = 0; i < t->n_numbers; i++) number(m, t->number[i]);
}

bool clb_contraction_list(const clb_problem *p, const clb_symmetric_plan *plan, clb_tables *tables,
                          clb_table_row *r) {
  clb_tables fields = {0}, starts = {0};
  maker m = {.t = tables}, of_fields = {.t = &fields}, of_starts = {.t = &starts};
  *tables = (clb_tables){0};
  pair_rows(&m, &of_fields, plan);
  r->path_rows = tables->n_numbers;
  for (int i = 0, row = 0; i <= plan->basis.n_paths; i++) {
    number(&m, row);
    if (i < plan->basis.n_paths) row += 2 * plan->basis.path[i].degree + 1;
  }
  r->row_out = tables->n_numbers;
  path_rows(&m, &of_fields, &of_starts, p, plan);
  r->row_entries = tables->n_numbers;
  append(&m, &starts);
  r->entries = tables->n_numbers;
  append(&m, &fields);
  if (!tables->n_reals) real(&m, 0);
  bool made = !m.failed && !of_fields.failed && !of_starts.failed;
  free(fields.number);
  free(starts.number);
  return made;
}

bool clb_contraction_make_tables(const clb_problem *p, clb_tables *tables) {
  clb_symmetric_plan plan;
  clb_table_row r;
  bool made = clb_symmetric_plan_make(&p->symmetric_contraction, &plan) &&
              clb_contraction_list(p, &plan, tables, &r);
  clb_symmetric_plan_free(&plan);
  return made;
}
