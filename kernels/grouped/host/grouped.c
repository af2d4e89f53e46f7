/* kernels/grouped/host/grouped.c - products of many matrices: the lists on the device, and the
   launch. */
#include "kernels/grouped/host/grouped.h"

#include <stdlib.h>

#include "kernels/grouped/tile.h"
#include "src/runtime/call.h"

struct clb_grouped {
  clb_op *op;
  int64_t tiles, gates;   /* gates: one more than the highest number */
  uint64_t read, written; /* elements that the memories must have */
  clb_memory tile, product, real;
};

#define FAIL(...) clb_fail(&ctx->error, CLB_ERROR_INTERNAL, "grouped_product: " __VA_ARGS__)

/* ---- sizes ---- */

/* One more than the last element; false: there are no such places. */
static bool reach(const clb_grouped_matrix *x, int64_t rows, int64_t columns, uint64_t *end) {
  const int64_t down = x->transposed ? columns : rows, width = x->transposed ? rows : columns;
  int64_t last;
  if (!rows || !columns) return true;
  if (x->at < 0 || x->ld < width || __builtin_mul_overflow(down - 1, x->ld, &last) ||
      __builtin_add_overflow(last, x->at, &last) || __builtin_add_overflow(last, width, &last))
    return false;
  if ((uint64_t)last > *end) *end = (uint64_t)last;
  return true;
}

static clb_status check(clb_context *ctx, const clb_grouped_list *list, clb_grouped *g) {
  for (int64_t i = 0; i < list->n; i++) {
    const clb_grouped_product *p = &list->products[i];
    if (p->m < 0 || p->n < 0 || p->k < 0 || p->m > INT32_MAX / 2 || p->n > INT32_MAX / 2 ||
        p->k > INT32_MAX / 2)
      return FAIL("product %lld is of %lld x %lld x %lld", (long long)i, (long long)p->m,
                  (long long)p->k, (long long)p->n);
    if (p->symmetric && p->m != p->n)
      return FAIL("product %lld of %lld x %lld is symmetric", (long long)i, (long long)p->m,
                  (long long)p->n);
    const bool some = p->m && p->n;
    if (!reach(&p->a, some ? p->m : 0, p->k, &g->read) ||
        !reach(&p->b, some ? p->k : 0, p->n, &g->read) ||
        !reach(&p->d, p->beta != 0 ? p->m : 0, p->n, &g->read) ||
        !reach(&p->c, p->m, p->n, &g->written) ||
        (list->scaled && !reach(&p->trace, p->trace_rows, p->trace_rows, &g->read)) ||
        p->c.transposed || p->d.transposed || p->gate < 0)
      return FAIL("product %lld has places that are none", (long long)i);
    if (list->gated && p->gate >= g->gates) g->gates = p->gate + 1;
  }
  return CLB_OK;
}

/* ---- lists ---- */

static void describe_product(const clb_grouped_product *p, int64_t *row) {
  const clb_grouped_matrix *a = &p->a, *b = &p->b;
  const int64_t columns[CLB_PRODUCT_COLUMNS] = {
      [CLB_PRODUCT_M] = p->m,
      [CLB_PRODUCT_N] = p->n,
      [CLB_PRODUCT_K] = p->k,
      [CLB_PRODUCT_GATE] = p->gate,
      [CLB_PRODUCT_A] = a->at,
      [CLB_PRODUCT_A_ROW] = a->transposed ? 1 : a->ld,
      [CLB_PRODUCT_A_DEPTH] = a->transposed ? a->ld : 1,
      [CLB_PRODUCT_B] = b->at,
      [CLB_PRODUCT_B_COLUMN] = b->transposed ? b->ld : 1,
      [CLB_PRODUCT_B_DEPTH] = b->transposed ? 1 : b->ld,
      [CLB_PRODUCT_C] = p->c.at,
      [CLB_PRODUCT_C_ROW] = p->c.ld,
      [CLB_PRODUCT_D] = p->d.at,
      [CLB_PRODUCT_D_ROW] = p->d.ld,
      [CLB_PRODUCT_DIAGONAL] = p->trace.at,
      [CLB_PRODUCT_DIAGONAL_STEP] = p->trace.ld + 1,
      [CLB_PRODUCT_DIAGONAL_COUNT] = p->trace_rows,
      [CLB_PRODUCT_SCALE_A] = a->power,
      [CLB_PRODUCT_SCALE_B] = b->power,
      [CLB_PRODUCT_SCALE_D] = p->d.power,
  };
  for (int i = 0; i < CLB_PRODUCT_COLUMNS; i++) row[i] = columns[i];
}

/* Puts the tiles of product i into the list, unless it is NULL; returns how many there are. */
static int64_t make_tiles(const clb_grouped_product *p, int64_t i, const clb_schedule *s,
                          int32_t *tile) {
  int64_t n = 0;
  const bool halves = p->symmetric && s->grouped.rows == s->grouped.columns;
  for (int64_t row = 0; row < p->m; row += s->grouped.rows)
    for (int64_t column = halves ? row : 0; column < p->n; column += s->grouped.columns, n++) {
      if (!tile) continue;
      int32_t *at = tile + n * CLB_TILE_COLUMNS;
      at[CLB_TILE_PRODUCT] = (int32_t)i;
      at[CLB_TILE_ROW] = (int32_t)row;
      at[CLB_TILE_COLUMN] = (int32_t)column;
      at[CLB_TILE_MIRRORED] = halves && column > row;
    }
  return n;
}

typedef struct {
  int64_t number, depth;
} turn;

static int by_depth(const void *a, const void *b) {
  const turn *x = a, *y = b;
  if (x->depth != y->depth) return x->depth > y->depth ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Long sums first: the last tiles of a launch should be short. */
static turn *order(const clb_grouped_list *list) {
  turn *turns = malloc(((size_t)list->n + 1) * sizeof *turns);
  for (int64_t i = 0; i < list->n && turns; i++) turns[i] = (turn){i, list->products[i].k};
  if (turns) qsort(turns, (size_t)list->n, sizeof *turns, by_depth);
  return turns;
}

static clb_status upload(clb_device *d, const void *from, uint64_t bytes, clb_memory *to) {
  clb_status s = clb_device_alloc(d, bytes, to);
  return s ? s : d->backend->write(d, to, 0, from, bytes);
}

static void describe_reals(const clb_grouped_list *list, int64_t i, void *reals) {
  const clb_grouped_product *p = &list->products[i];
  const double real[CLB_PRODUCT_REALS] = {[CLB_REAL_ALPHA] = p->alpha,
                                          [CLB_REAL_BETA] = p->beta,
                                          [CLB_REAL_FLOOR] = p->floor,
                                          [CLB_REAL_EPSILON] = p->epsilon};
  for (int j = 0; j < CLB_PRODUCT_REALS; j++)
    clb_store_number((int32_t)list->arithmetic, reals, i * CLB_PRODUCT_REALS + j, real[j]);
}

static clb_status upload_lists(clb_grouped *g, const clb_grouped_list *list) {
  clb_context *ctx = g->op->ctx;
  const clb_schedule *s = &g->op->choice[CLB_FORWARD].schedule;
  const size_t tile_bytes = sizeof(int32_t[CLB_TILE_COLUMNS]),
               product_bytes = sizeof(int64_t[CLB_PRODUCT_COLUMNS]),
               real_bytes = (size_t)clb_dtype_bytes((int32_t)list->arithmetic) * CLB_PRODUCT_REALS;
  for (int64_t i = 0; i < list->n; i++) g->tiles += make_tiles(&list->products[i], i, s, NULL);
  if (g->tiles > INT32_MAX) return FAIL("%lld tiles", (long long)g->tiles);
  if (!g->tiles || !ctx->device->info.runs) return CLB_OK;
  turn *turns = order(list);
  int32_t *tiles = malloc((size_t)g->tiles * tile_bytes);
  int64_t *products = malloc((size_t)list->n * product_bytes), n = 0;
  void *reals = malloc((size_t)list->n * real_bytes);
  clb_status status = turns && tiles && products && reals
                          ? CLB_OK
                          : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "grouped_product: no memory");
  for (int64_t i = 0; i < list->n && !status; i++) {
    const int64_t number = turns[i].number;
    n += make_tiles(&list->products[number], number, s, tiles + n * CLB_TILE_COLUMNS);
    describe_product(&list->products[i], products + i * CLB_PRODUCT_COLUMNS);
    describe_reals(list, i, reals);
  }
  if (!status) status = upload(ctx->device, tiles, (size_t)g->tiles * tile_bytes, &g->tile);
  if (!status) status = upload(ctx->device, products, (size_t)list->n * product_bytes, &g->product);
  if (!status) status = upload(ctx->device, reals, (size_t)list->n * real_bytes, &g->real);
  free(turns);
  free(tiles);
  free(products);
  free(reals);
  return status;
}

/* ---- calls ---- */

clb_status clb_grouped_create(clb_context *ctx, const clb_grouped_list *list,
                              clb_grouped **grouped) {
  clb_problem *p = calloc(1, sizeof *p);
  clb_grouped *g = *grouped = calloc(1, sizeof *g);
  clb_status s = p && g ? check(ctx, list, g)
                        : clb_fail(&ctx->error, CLB_ERROR_MEMORY, "grouped_product: no memory");
  if (!s) {
    p->kind = CLB_GROUPED_PRODUCT;
    p->storage = (int32_t)list->storage;
    p->arithmetic = (int32_t)list->arithmetic;
    p->grouped_product = (clb_grouped_product_problem){list->scaled, list->gated};
    s = clb_op_create(ctx, p, CLB_PASS_BIT(CLB_FORWARD), NULL, &g->op);
  }
  if (!s) s = upload_lists(g, list);
  if (s) clb_grouped_destroy(grouped);
  free(p);
  return s;
}

void clb_grouped_destroy(clb_grouped **grouped) {
  if (!grouped || !*grouped) return;
  clb_grouped *g = *grouped;
  clb_memory *const owned[] = {&g->tile, &g->product, &g->real};
  for (int i = 0; i < 3; i++)
    if (owned[i]->handle) clb_memory_free(g->op->ctx, owned[i]);
  clb_op_destroy(&g->op);
  free(g);
  *grouped = NULL;
}

static clb_status check_memory(clb_grouped *g, const clb_memory *in, const clb_memory *out,
                               const clb_memory *gates) {
  clb_context *ctx = g->op->ctx; /* of FAIL */
  const uint64_t bytes = (uint64_t)clb_dtype_bytes(g->op->problem.storage),
                 more = (uint64_t)g->gates * sizeof(int32_t);
  const clb_status s = clb_check_runs(ctx);
  if (s) return s;
  if (in->bytes / bytes < g->read || out->bytes / bytes < g->written)
    return FAIL("%llu and %llu elements are read and written, the memories have %llu and %llu "
                "bytes",
                (unsigned long long)g->read, (unsigned long long)g->written,
                (unsigned long long)in->bytes, (unsigned long long)out->bytes);
  if (g->gates && (!gates || gates->bytes < more))
    return FAIL("there are %lld gates", (long long)g->gates);
  return CLB_OK;
}

clb_status clb_grouped_run(clb_grouped *g, const clb_memory *in, const clb_memory *out,
                           const clb_memory *gates, int32_t least) {
  clb_status s = check_memory(g, in, out, gates);
  if (s || !g->tiles) return s;
  clb_call c = clb_call_start(g->op->ctx);
  clb_call_memory(&c, &g->tile);
  clb_call_memory(&c, &g->product);
  clb_call_memory(&c, &g->real);
  clb_call_memory(&c, in);
  clb_call_memory(&c, out);
  if (g->op->problem.grouped_product.gated) {
    clb_call_memory(&c, gates);
    clb_call_i32(&c, least);
  }
  return clb_call_launch(&c, g->op->kernel[CLB_FORWARD], g->tiles);
}
