/* kernels/grouped/host/soap.c - SOAP: where its matrices are, and the lists of its launches. */
#include "kernels/grouped/host/soap.h"

#include <stdlib.h>

#include "kernels/grouped/basis.h"
#include "src/runtime/call.h"

enum { LEFT, RIGHT, SIDES };
enum { FOLLOW, SECOND, BACK, SECOND_BACK, POWER, LISTS };
enum { ALIGNED = 8, MAX_PRODUCTS = 6 }; /* of a matrix, in one list */

struct clb_soap {
  clb_grouped *list[LISTS];
  clb_op *bases; /* NULL: no side is rotated */
  int64_t n[CLB_BASIS_KERNELS];
  clb_memory table[CLB_BASIS_KERNELS];
};

static clb_status no_memory(clb_context *ctx) {
  return clb_fail(&ctx->error, CLB_ERROR_MEMORY, "soap: no memory");
}

/* ---- places ---- */

static int64_t take(int64_t *end, int64_t elements) {
  const int64_t at = (*end + ALIGNED - 1) / ALIGNED * ALIGNED;
  *end = at + elements;
  return at;
}

static bool turns(const clb_soap_matrix *m, int side) { return side == LEFT ? m->left : m->right; }
static int64_t side_of(const clb_soap_matrix *m, int side) {
  return side == LEFT ? m->rows : m->columns;
}

static void place_kept(clb_soap_matrix *m, int64_t *end) {
  for (int side = 0; side < SIDES; side++) {
    const int64_t n = side_of(m, side);
    if (!turns(m, side)) continue;
    m->sum[side] = take(end, n * n);
    m->basis[side] = take(end, n * n);
  }
}

/* half, product: G and M after one rotation, and after the last one. Once they are not needed, the
   places of G and M are where the direction is turned back. */
static void place_rest(clb_soap_matrix *m, int64_t *end) {
  const int64_t n = m->rows * m->columns;
  m->gradient = take(end, n);
  m->mean = take(end, n);
  for (int x = 0; x < 2; x++) {
    m->half[x] = m->left ? take(end, n) : x ? m->mean : m->gradient;
    m->product[x] = m->right ? take(end, n) : m->half[x];
  }
  m->rotated = m->product[0];
  m->rotated_mean = m->product[1];
  m->direction = m->right ? m->mean : m->left ? m->gradient : m->rotated;
  for (int side = 0; side < SIDES; side++)
    if (turns(m, side)) m->next[side] = take(end, side_of(m, side) * side_of(m, side));
}

/* ---- products ---- */

static clb_grouped_matrix dense(int64_t at, int64_t columns, bool transposed) {
  return (clb_grouped_matrix){at, columns, transposed, 0};
}

static clb_grouped_product product(const clb_soap_matrix *m, int64_t rows, int64_t columns,
                                   int64_t k) {
  return (clb_grouped_product){.m = rows, .n = columns, .k = k, .alpha = 1, .gate = m->gate};
}

/* L = b L + (1 - b) G G^T, or R = b R + (1 - b) G^T G */
static clb_grouped_product follow(const clb_soap_matrix *m, int side) {
  const int64_t n = side_of(m, side), k = side_of(m, !side);
  clb_grouped_product p = product(m, n, n, k);
  p.a = dense(m->gradient, m->columns, side == RIGHT);
  p.b = dense(m->gradient, m->columns, side == LEFT);
  p.c = p.d = dense(m->sum[side], n, false);
  p.alpha = 1 - m->beta;
  p.beta = m->beta;
  p.symmetric = true;
  return p;
}

/* to = E_L from, or E_L^T from */
static clb_grouped_product turn_left(const clb_soap_matrix *m, int64_t from, int64_t to,
                                     bool back) {
  clb_grouped_product p = product(m, m->rows, m->columns, m->rows);
  p.a = dense(m->basis[LEFT], m->rows, back);
  p.b = dense(from, m->columns, false);
  p.c = dense(to, m->columns, false);
  return p;
}

/* to = from E_R^T, or from E_R */
static clb_grouped_product turn_right(const clb_soap_matrix *m, int64_t from, int64_t to,
                                      bool back) {
  clb_grouped_product p = product(m, m->rows, m->columns, m->columns);
  p.a = dense(from, m->columns, false);
  p.b = dense(m->basis[RIGHT], m->columns, !back);
  p.c = dense(to, m->columns, false);
  return p;
}

/* S = E L / trace L, so that no size of L is too large or too small for what follows. */
static clb_grouped_product power(const clb_soap_matrix *m, int side, clb_dtype type) {
  const int64_t n = side_of(m, side);
  clb_grouped_product p = product(m, n, n, n);
  p.a = dense(m->basis[side], n, false);
  p.b = p.trace = dense(m->sum[side], n, false);
  p.b.power = 2;
  p.c = dense(m->next[side], n, false);
  p.trace_rows = n;
  p.floor = type == CLB_F64 ? 1e-150 : 1e-18;
  return p;
}

/* The products of a matrix in a list; returns their number. */
static int products_of(const clb_soap_matrix *m, int list, clb_dtype type, clb_grouped_product *p) {
  int n = 0;
  const int64_t given[2] = {m->gradient, m->mean};
  for (int side = 0; side < SIDES; side++) {
    if (list == FOLLOW && turns(m, side)) p[n++] = follow(m, side);
    if (list == POWER && turns(m, side)) p[n++] = power(m, side, type);
  }
  for (int x = 0; x < 2; x++) {
    if (list == FOLLOW && m->left) p[n++] = turn_left(m, given[x], m->half[x], false);
    if (list == SECOND && m->right) p[n++] = turn_right(m, m->half[x], m->product[x], false);
  }
  if (list == BACK && m->left) p[n++] = turn_left(m, m->rotated, m->gradient, true);
  if (list == SECOND_BACK && m->right)
    p[n++] = turn_right(m, m->left ? m->gradient : m->rotated, m->mean, true);
  return n;
}

static clb_status make_lists(clb_context *ctx, clb_dtype type, const clb_soap_matrix *matrices,
                             int64_t n, clb_soap *s) {
  clb_grouped_product *p = calloc((size_t)n + 1, MAX_PRODUCTS * sizeof *p);
  clb_status status = p ? CLB_OK : no_memory(ctx);
  for (int list = 0; list < LISTS && !status; list++) {
    const bool gated = list == FOLLOW || list == POWER;
    clb_grouped_list all = {p, 0, type, type, list == POWER, gated};
    for (int64_t i = 0; i < n; i++) all.n += products_of(&matrices[i], list, type, p + all.n);
    status = clb_grouped_create(ctx, &all, &s->list[list]);
  }
  free(p);
  return status;
}

/* ---- bases ---- */

static void describe_side(const clb_soap_matrix *m, int side, int64_t *row) {
  row[CLB_SIDE_N] = side_of(m, side);
  row[CLB_SIDE_S] = m->next[side];
  row[CLB_SIDE_E] = m->basis[side];
  row[CLB_SIDE_GATE] = m->gate;
}

/* B and J are where G and M are after a rotation, which the first step does not need. */
static void describe_rotations(const clb_soap_matrix *m, int64_t *row) {
  const int shorter = m->rows <= m->columns ? LEFT : RIGHT;
  row[CLB_ROTATED_SHORT] = side_of(m, shorter);
  row[CLB_ROTATED_LONG] = side_of(m, !shorter);
  row[CLB_ROTATED_GRADIENT] = m->gradient;
  row[CLB_ROTATED_ROW] = shorter == LEFT ? m->columns : 1;
  row[CLB_ROTATED_COLUMN] = shorter == LEFT ? 1 : m->columns;
  row[CLB_ROTATED_B] = m->product[0];
  row[CLB_ROTATED_J] = m->product[1];
  row[CLB_ROTATED_S_SHORT] = m->next[shorter];
  row[CLB_ROTATED_S_LONG] = turns(m, !shorter) ? m->next[!shorter] : -1;
  row[CLB_ROTATED_GATE] = m->gate;
}

static clb_status upload(clb_context *ctx, const int64_t *from, int64_t rows, int64_t columns,
                         clb_memory *to) {
  const uint64_t bytes = (uint64_t)(rows * columns) * sizeof *from;
  const clb_status s = clb_device_alloc(ctx->device, bytes, to);
  return s ? s : ctx->device->backend->write(ctx->device, to, 0, from, bytes);
}

static clb_status upload_tables(clb_context *ctx, const clb_soap_matrix *matrices, int64_t n,
                                clb_soap *s) {
  int64_t *sides = calloc((size_t)n, SIDES * CLB_SIDE_COLUMNS * sizeof *sides),
          *rotations = calloc((size_t)n, CLB_ROTATED_COLUMNS * sizeof *rotations), *counts = s->n;
  clb_status status = sides && rotations ? CLB_OK : no_memory(ctx);
  for (int64_t i = 0; i < n && !status; i++) {
    const clb_soap_matrix *m = &matrices[i];
    for (int side = 0; side < SIDES; side++)
      if (turns(m, side))
        describe_side(m, side, sides + CLB_SIDE_COLUMNS * counts[CLB_BASIS_ORTHOGONALISE]++);
    if (m->left || m->right)
      describe_rotations(m, rotations + CLB_ROTATED_COLUMNS * counts[CLB_BASIS_ROTATE]++);
  }
  if (!status)
    status = upload(ctx, sides, counts[CLB_BASIS_ORTHOGONALISE], CLB_SIDE_COLUMNS,
                    &s->table[CLB_BASIS_ORTHOGONALISE]);
  if (!status)
    status = upload(ctx, rotations, counts[CLB_BASIS_ROTATE], CLB_ROTATED_COLUMNS,
                    &s->table[CLB_BASIS_ROTATE]);
  free(sides);
  free(rotations);
  return status;
}

static clb_status make_bases(clb_context *ctx, clb_dtype type, const clb_soap_matrix *matrices,
                             int64_t n, clb_soap *s) {
  enum { ROUNDED = 64 };
  int64_t longest = 0;
  for (int64_t i = 0; i < n; i++)
    for (int side = 0; side < SIDES; side++)
      if (turns(&matrices[i], side) && side_of(&matrices[i], side) > longest)
        longest = side_of(&matrices[i], side);
  clb_problem *p = longest ? calloc(1, sizeof *p) : NULL;
  if (!p) return longest ? no_memory(ctx) : CLB_OK;
  p->kind = CLB_MATRIX_BASIS;
  p->storage = p->arithmetic = (int32_t)type;
  p->matrix_basis.side = (int32_t)(clb_divide_up(longest, ROUNDED) * ROUNDED);
  clb_status status =
      clb_op_create(ctx, p, CLB_PASS_BIT(CLB_BASIS_ORTHOGONALISE) | CLB_PASS_BIT(CLB_BASIS_ROTATE),
                    NULL, &s->bases);
  if (!status && ctx->device->info.runs) status = upload_tables(ctx, matrices, n, s);
  free(p);
  return status;
}

static clb_status run_bases(clb_soap *s, int kernel, const clb_memory *memory,
                            const clb_memory *gates, int least) {
  if (!s->bases) return CLB_OK;
  clb_call c = clb_call_start(s->bases->ctx);
  clb_call_memory(&c, &s->table[kernel]);
  clb_call_memory(&c, memory);
  clb_call_memory(&c, gates);
  clb_call_i32(&c, least);
  return clb_call_launch(&c, s->bases->kernel[kernel], s->n[kernel]);
}

/* ---- calls ---- */

clb_status clb_soap_create(clb_context *ctx, clb_dtype type, clb_soap_matrix *matrices, int64_t n,
                           int64_t *end, int64_t *kept, clb_soap **soap) {
  clb_soap *s = *soap = calloc(1, sizeof *s);
  if (!s) return no_memory(ctx);
  for (int64_t i = 0; i < n; i++) place_kept(&matrices[i], end);
  *kept = *end;
  for (int64_t i = 0; i < n; i++) place_rest(&matrices[i], end);
  clb_status status = make_lists(ctx, type, matrices, n, s);
  if (!status) status = make_bases(ctx, type, matrices, n, s);
  if (status) clb_soap_destroy(soap);
  return status;
}

void clb_soap_destroy(clb_soap **soap) {
  if (!soap || !*soap) return;
  clb_soap *s = *soap;
  for (int i = 0; i < LISTS; i++) clb_grouped_destroy(&s->list[i]);
  for (int i = 0; i < CLB_BASIS_KERNELS; i++)
    if (s->table[i].handle) clb_memory_free(s->bases->ctx, &s->table[i]);
  clb_op_destroy(&s->bases);
  free(s);
  *soap = NULL;
}

clb_status clb_soap_rotate(clb_soap *s, const clb_memory *memory, const clb_memory *gates) {
  const clb_status status = clb_grouped_run(s->list[FOLLOW], memory, memory, gates, CLB_SOAP_STEP);
  return status ? status : clb_grouped_run(s->list[SECOND], memory, memory, NULL, 0);
}

/* G is read by the first bases before the direction takes its place; these are where `rotated` is,
   which the first step does not need. */
clb_status clb_soap_rotate_back(clb_soap *s, const clb_memory *memory, const clb_memory *gates) {
  clb_status status = clb_grouped_run(s->list[POWER], memory, memory, gates, CLB_SOAP_REFRESH);
  if (!status) status = run_bases(s, CLB_BASIS_ROTATE, memory, gates, CLB_SOAP_FIRST);
  if (!status) status = clb_grouped_run(s->list[BACK], memory, memory, NULL, 0);
  if (!status) status = clb_grouped_run(s->list[SECOND_BACK], memory, memory, NULL, 0);
  return status ? status : run_bases(s, CLB_BASIS_ORTHOGONALISE, memory, gates, CLB_SOAP_REFRESH);
}
