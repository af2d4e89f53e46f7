/* kernels/tensor_product/table.c - the paths of a tensor product as tables of numbers. */
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor_product/modes.h"
#include "kernels/tensor_product/product.h"
#include "src/base/reserve.h"

typedef struct {
  const clb_tensor_product_problem *tp;
  clb_product_table *t;
  int64_t cap_numbers, cap_reals;
  int32_t *fields; /* of all entries so far */
  int64_t n_entries, cap_entries;
  bool failed;
} maker;

/* Reserves n more numbers; returns their position. */
static int64_t numbers(maker *m, int64_t n) {
  clb_product_table *t = m->t;
  int64_t at = t->n_numbers, most = at + n;
  if (most > INT32_MAX) m->failed = true;
  m->failed |= !m->failed && !clb_reserve(&t->number, &m->cap_numbers, most, sizeof *t->number);
  if (m->failed) return 0;
  memset(t->number + at, 0, sizeof *t->number * (size_t)n);
  t->n_numbers = most;
  return at;
}

static void real(maker *m, double value) {
  clb_product_table *t = m->t;
  m->failed |= !clb_reserve(&t->real, &m->cap_reals, t->n_reals + 1, sizeof *t->real);
  if (!m->failed) t->real[t->n_reals++] = value;
}

static const clb_irreps *irreps(const maker *m, int slot) {
  return slot == X ? &m->tp->x : slot == Y ? &m->tp->y : &m->tp->z;
}
static int layout(const maker *m, int slot) {
  return slot == X ? m->tp->layout_x : slot == Y ? m->tp->layout_y : m->tp->layout_z;
}
static int class_of(const clb_path *p) { return 2 * p->mode + (p->has_weight != 0); }

static int step(const maker *m, int slot, const clb_term *t) {
  return layout(m, slot) == CLB_MUL_IR ? clb_width(t) : 1;
}
static int component(const maker *m, int slot, const clb_term *t) {
  return layout(m, slot) == CLB_MUL_IR ? 1 : (int)clb_component_stride(t);
}

static void paths(maker *m) {
  int64_t at = numbers(m, (int64_t)m->tp->n_paths * PATH_FIELDS);
  for (int q = 0; q < m->tp->n_paths && !m->failed; q++) {
    const clb_path *p = &m->tp->path[q];
    int32_t *to = m->t->number + at + (int64_t)q * PATH_FIELDS;
    for (int i = 0; i < 3; i++) {
      static const int slots[] = {X, Y, Z};
      const clb_term *t = &irreps(m, slots[i])->term[clb_path_term(p, slots[i])];
      to[PATH_MUL + i] = t->mul, to[PATH_AT + i] = t->at, to[PATH_STEP + i] = step(m, slots[i], t);
    }
    to[PATH_WEIGHT_AT] = p->weight_at;
    to[PATH_WIDTH] = clb_width(&m->tp->z.term[p->out]);
    to[PATH_WEIGHTS] = p->has_weight ? (int32_t)clb_path_weights(m->tp, p) : 0;
  }
}

/* Appends the paths of a class, all (slot W) or of one term. */
static void list(maker *m, int class, int slot, int term, int64_t *first, int64_t *end) {
  *first = m->t->n_numbers;
  for (int q = 0; q < m->tp->n_paths; q++) {
    const clb_path *p = &m->tp->path[q];
    if (class_of(p) != class || (slot != W && clb_path_term(p, slot) != term)) continue;
    int64_t at = numbers(m, 1);
    if (!m->failed) m->t->number[at] = q;
  }
  *end = m->t->n_numbers;
}

static void terms(maker *m, int slot) {
  const clb_irreps *all = irreps(m, slot);
  int fields = TERM_CLASSES + 2 * m->t->n_classes;
  int64_t at = m->t->terms[slot] = numbers(m, (int64_t)all->n * fields);
  for (int i = 0; i < all->n && !m->failed; i++) {
    const clb_term *t = &all->term[i];
    const int32_t head[] = {t->mul, t->at, clb_width(t), component(m, slot, t), step(m, slot, t)};
    memcpy(m->t->number + at + (int64_t)i * fields, head, sizeof head);
    for (int c = 0; c < m->t->n_classes; c++) {
      int64_t first, end;
      list(m, m->t->class_of[c], slot, i, &first, &end);
      if (m->failed) return;
      int32_t *to = m->t->number + at + (int64_t)i * fields + TERM_CLASSES + 2 * c;
      to[0] = (int32_t)first, to[1] = (int32_t)end;
    }
  }
}

static int component_of(const clb_entry *e, int slot) {
  return slot == X ? e->i : slot == Y ? e->j : e->k;
}

static void add_entry(maker *m, const clb_path *p, const clb_entry *e) {
  static const int slots[] = {X, Y, Z};
  m->failed |=
      !clb_reserve(&m->fields, &m->cap_entries, m->n_entries + 1, sizeof *m->fields * ENTRY_FIELDS);
  if (m->failed) return;
  int32_t *to = m->fields + ENTRY_FIELDS * m->n_entries++;
  for (int s = 0; s < 3; s++)
    to[s] = component_of(e, slots[s]) *
            component(m, slots[s], &irreps(m, slots[s])->term[clb_path_term(p, slots[s])]);
  real(m, e->c);
}

/* The entries of path q, once for each slot, sorted by its component. */
static void entries(maker *m, int q, const clb_entry *e, int n) {
  static const int slots[] = {X, Y, Z};
  const clb_path *p = &m->tp->path[q];
  for (int i = 0; i < 3; i++) {
    const clb_term *t = &irreps(m, slots[i])->term[clb_path_term(p, slots[i])];
    int64_t at = numbers(m, clb_width(t) + 1);
    if (m->failed) return;
    m->t->number[(int64_t)q * PATH_FIELDS + PATH_FIRST + i] = (int32_t)at;
    for (int c = 0; c < clb_width(t); c++) {
      m->t->number[at + c] = (int32_t)m->n_entries;
      for (int a = 0; a < n; a++)
        if (component_of(&e[a], slots[i]) == c) add_entry(m, p, &e[a]);
    }
    m->t->number[at + clb_width(t)] = (int32_t)m->n_entries;
  }
}

static void all_entries(maker *m) {
  clb_entry *e = malloc(sizeof *e * MAX_M * MAX_M * MAX_M);
  double *symbol = malloc(sizeof *symbol * MAX_M * MAX_M * MAX_M);
  if (!e || !symbol) m->failed = true;
  for (int q = 0; q < m->tp->n_paths && !m->failed; q++)
    entries(m, q, e, clb_form_entries(m->tp, &m->tp->path[q], symbol, e));
  if (!m->failed && m->n_entries) {
    size_t n = ENTRY_FIELDS * (size_t)m->n_entries;
    m->t->entries = numbers(m, (int64_t)n);
    if (!m->failed) memcpy(m->t->number + m->t->entries, m->fields, n * sizeof *m->fields);
  }
  free(m->fields);
  free(symbol);
  free(e);
}

bool clb_product_table_make(const clb_tensor_product_problem *tp, clb_product_table *t) {
  maker m = {.tp = tp, .t = t};
  *t = (clb_product_table){0};
  for (int class = 0; class < CLASSES; class ++)
    for (int q = 0; q < tp->n_paths; q++)
      if (class_of(&tp->path[q]) == class) {
        t->class_of[t->n_classes++] = class;
        break;
      }
  paths(&m);
  for (int slot = X; slot <= Z; slot++)
    if (slot != W && !m.failed) terms(&m, slot);
  for (int c = 0; c < t->n_classes && !m.failed; c++)
    list(&m, t->class_of[c], W, 0, &t->lists[c], &t->ends[c]);
  if (!m.failed) all_entries(&m);
  if (m.failed) clb_product_table_free(t);
  return !m.failed;
}

void clb_product_table_free(clb_product_table *t) {
  free(t->number);
  free(t->real);
  t->number = NULL;
  t->real = NULL;
}
