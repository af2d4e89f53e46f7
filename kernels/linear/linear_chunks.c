/* kernels/linear/linear_chunks.c - see linear_chunks.h. */
#include "kernels/linear/linear_chunks.h"

static ir_val i32(const clb_linear_kernel *b, int64_t x) { return ir_int(b->k, IR_I32, x); }

/* Number `part` (i32) of n values. */
static ir_val choose(ir_kernel *k, ir_val part, const ir_val *values, int n) {
  ir_val v = values[0];
  for (int i = 1; i < n; i++)
    if (values[i] != v) v = ir_select(k, ir_2(k, IR_LT, part, ir_int(k, IR_I32, i)), v, values[i]);
  return v;
}

/* How lanes share the elements of a chunk: so many sums at once, of which this lane has number
   `part` (i32) and element u (i32). */
typedef struct {
  int sums;
  ir_val part, u;
} sharing;

static sharing share(const clb_linear_kernel *b) {
  ir_kernel *k = b->k;
  const int sums = b->s->lanes / CLB_LINEAR_CHUNK;
  return (sharing){sums > 1 ? sums : 1,
                   sums > 1 ? ir_2(k, IR_DIV, ir_lane(k), i32(b, CLB_LINEAR_CHUNK)) : i32(b, 0),
                   sums > 1 ? ir_2(k, IR_MOD, ir_lane(k), i32(b, CLB_LINEAR_CHUNK)) : ir_lane(k)};
}

/* Lanes or steps whose u, from `at` on, is one of `depth`; IR_NONE: all are. */
static ir_val within(const clb_linear_kernel *b, ir_val at, ir_val u, int64_t depth) {
  return depth % CLB_LINEAR_CHUNK ? ir_2(b->k, IR_LT, ir_add(b->k, at, u), clb_linear_i64(b, depth))
                                  : IR_NONE;
}

static ir_val both(ir_kernel *k, ir_val a, ir_val b) {
  return a == IR_NONE ? b : b == IR_NONE ? a : ir_2(k, IR_AND, a, b);
}

/* Puts a chunk of all rows and components into the stage; start (i64): of rows. */
static void put(const clb_linear_tile *t, const clb_linear_stage *stage, const sharing *by,
                const clb_row_array *rows, clb_linear_term from, const ir_val *start, ir_val at) {
  enum { MOST = 8 };
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int components = 2 * from.term->l + 1, count = t->n_rows * components;
  for (int i = 0; i < count; i += by->sums)
    for (int u = 0; u < CLB_LINEAR_CHUNK; u += b->s->lanes) {
      ir_val of[MOST];
      const int here = count - i < by->sums ? count - i : by->sums;
      for (int j = 0; j < here; j++) {
        const int row = (i + j) / components, m = (i + j) % components;
        of[j] = ir_add(k, start[row], clb_linear_place(b, from, at, m));
      }
      const ir_val mine = ir_add(k, by->u, i32(b, u)),
                   step = i32(b, from.layout == CLB_IR_MUL ? 1 : components),
                   place = ir_add(k, choose(k, by->part, of, here),
                                  ir_cast(k, IR_I64, ir_mul(k, mine, step))),
                   inside = here < by->sums ? ir_2(k, IR_LT, by->part, i32(b, here)) : IR_NONE;
      const ir_val mask = both(k, inside, within(b, at, ir_cast(k, IR_I64, mine), from.term->mul));
      const ir_val x = ir_cast(k, b->t, ir_load(k, rows->buffer, place, mask)),
                   to = ir_add(k, i32(b, (int64_t)i * CLB_LINEAR_CHUNK + u), ir_lane(k));
      ir_store(k, stage->array, ir_add(k, stage->start, to), inside, x);
    }
}

static void load_weights(const clb_linear_tile *t, const clb_linear_factor *f,
                         const clb_linear_path *path, ir_val at, int64_t depth, ir_val *w) {
  const clb_linear_kernel *b = t->r->b;
  clb_linear_tile some = *t;
  if (depth % CLB_LINEAR_CHUNK == 0) {
    clb_linear_load_weights(t, f->weights, path, at, CLB_LINEAR_CHUNK, w);
    return;
  }
  for (int i = 0; i < CLB_LINEAR_CHUNK; i++) {
    const ir_val u = clb_linear_i64(b, i);
    some.mask = both(b->k, t->mask, within(b, at, u, depth));
    clb_linear_load_weights(&some, f->weights, path, ir_add(b->k, at, u), 1, &w[i]);
  }
}

static void multiply(const clb_linear_tile *t, const clb_linear_stage *stage, const ir_val *w) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const int components = 2 * t->term.term->l + 1, wide = 16 / ir_type_bytes(b->t);
  ir_val x[IR_MAX_WIDTH];
  for (int u = 0; u < CLB_LINEAR_CHUNK; u += wide)
    for (int i = 0; i < t->n_rows * components; i++) {
      const ir_val sum = t->sum[i / components][i % components];
      ir_load_aligned(k, stage->array,
                      ir_add(k, stage->start, i32(b, (int64_t)i * CLB_LINEAR_CHUNK + u)), IR_NONE,
                      wide, x);
      for (int j = 0; j < wide; j++) ir_set(k, sum, ir_fma(k, x[j], w[u + j], ir_get(k, sum)));
    }
}

/* Sub-groups take chunks in turn, from the one on after which those before ended. All of them come
   by the barriers; what has no chunk left loads the last one again. */
static void add_path(const clb_linear_tile *t, const clb_linear_stage *stage, const sharing *by,
                     const clb_linear_factor *f, const clb_linear_path *path, const ir_val *start,
                     int64_t *before) {
  const clb_linear_kernel *b = t->r->b;
  ir_kernel *k = b->k;
  const clb_linear_term from = clb_linear_source(t->r, path);
  const int64_t depth = from.term->mul, of = b->s->subgroups,
                chunks = (depth + CLB_LINEAR_CHUNK - 1) / CLB_LINEAR_CHUNK;
  const ir_val mine = clb_first_turn(k, *before);
  const bool again = *before || chunks > of; /* the stage was read before */
  if (!chunks) return;
  *before += chunks;
  const ir_val round = ir_loop(k, i32(b, 0), i32(b, chunks), i32(b, of)),
               chunk = ir_add(k, round, mine), last = i32(b, chunks - 1),
               at = ir_cast(k, IR_I64,
                            ir_mul(k, ir_2(k, IR_MIN, chunk, last), i32(b, CLB_LINEAR_CHUNK)));
  ir_val w[CLB_LINEAR_CHUNK];
  load_weights(t, f, path, at, depth, w);
  if (again) ir_barrier(k, false);
  put(t, stage, by, f->rows, from, start, at);
  ir_barrier(k, false);
  ir_if(k, ir_2(k, IR_LE, chunk, last));
  multiply(t, stage, w);
  for (int i = 0; i < 2; i++) ir_end(k);
}

void clb_linear_add_chunks(const clb_linear_tile *t, const clb_linear_stage *stage) {
  const clb_linear_result *r = t->r;
  const clb_linear_kernel *b = r->b;
  const sharing by = share(b);
  int64_t before = 0;
  for (int f = 0; f < r->n_factors; f++) {
    const clb_linear_factor *factor = &r->factor[f];
    ir_val start[CLB_LINEAR_ROWS];
    for (int i = 0; i < t->n_rows; i++) start[i] = clb_linear_row(b, factor->rows, t->row[i]);
    for (int i = 0; i < b->lp->n_paths; i++) {
      const clb_linear_path *path = &b->lp->path[i];
      if ((r->transposed ? path->in : path->out) == t->number)
        add_path(t, stage, &by, factor, path, start, &before);
    }
  }
}
