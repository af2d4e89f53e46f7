/* tests/ops/matrices/test_grouped.c - products of many matrices in one launch against plain sums in
   double precision, on every device that runs here, and with the limits of GPUs. */
#include "tests/fakes/simulated_devices.h"

#include "kernels/grouped/host/grouped.h"

enum { MOST = 24 };

static const struct {
  clb_dtype storage, arithmetic;
  double sum, store, least; /* tolerances: of sum |terms|, of what is stored, of anything */
} kinds[] = {{CLB_F64, CLB_F64, 1e-14, 0, 0},
             {CLB_F32, CLB_F32, 2e-6, 0, 0},
             {CLB_BF16, CLB_F32, 2e-6, 0x1p-8, 0},
             {CLB_F16, CLB_F32, 2e-6, 0x1p-10, 0x1p-25}};
enum { KINDS = sizeof kinds / sizeof *kinds, F32 = 1 };

/* A list whose matrices lie one after the other in `in` and in `out`. */
typedef struct {
  clb_grouped_product product[MOST];
  int64_t n, in, out; /* elements */
} list;

static clb_grouped_matrix place(int64_t *end, int64_t rows, int64_t columns, bool transposed,
                                uint64_t *seed) {
  const int64_t down = transposed ? columns : rows, width = transposed ? rows : columns;
  clb_grouped_matrix x = {*end + pick(seed, 3), width + pick(seed, 4), transposed, 0};
  if (down && width) *end = x.at + (down - 1) * x.ld + width;
  return x;
}

static clb_grouped_product *add(list *l, int64_t m, int64_t n, int64_t k, uint64_t *seed) {
  clb_grouped_product *p = &l->product[l->n++];
  *p = (clb_grouped_product){.m = m, .n = n, .k = k, .alpha = test_random(seed)};
  p->beta = pick(seed, 2) ? test_random(seed) : 0;
  p->a = place(&l->in, m, k, pick(seed, 2), seed);
  p->b = place(&l->in, k, n, pick(seed, 2), seed);
  if (p->beta != 0) p->d = place(&l->in, m, n, false, seed);
  p->c = place(&l->out, m, n, false, seed);
  return p;
}

static int64_t at(const clb_grouped_matrix *x, int64_t i, int64_t j) {
  return x->at + (x->transposed ? j * x->ld + i : i * x->ld + j);
}

/* ---- reference ---- */

static double power(double s, int32_t n) { return n == 2 ? s * s : n == 1 ? s : 1; }

static double scale_of(const clb_grouped_product *p, const array *in) {
  double sum = 0;
  for (int64_t i = 0; i < p->trace_rows; i++)
    sum += number_at(in->type, in->host, at(&p->trace, i, i));
  return 1 / (fmax(sqrt(sum), p->floor) + p->epsilon);
}

static void expect_grouped(const clb_grouped_product *p, int kind, const array *in, double s,
                           int64_t i, int64_t j, double got) {
  double sum = 0, size = 0, d = 0;
  for (int64_t k = 0; k < p->k; k++) {
    const double x = number_at(in->type, in->host, at(&p->a, i, k)) * power(s, p->a.power) *
                     number_at(in->type, in->host, at(&p->b, k, j)) * power(s, p->b.power);
    sum += x;
    size += fabs(x);
  }
  if (p->beta != 0)
    d = p->beta * power(s, p->d.power) * number_at(in->type, in->host, at(&p->d, i, j));
  sum = p->alpha * sum + d;
  size = fabs(p->alpha) * size + fabs(d);
  if (!(fabs(got - sum) <=
        kinds[kind].sum * size + kinds[kind].store * fabs(sum) + kinds[kind].least))
    fail_msg("kind %d, %lld x %lld x %lld, element %lld, %lld: %.17g, not %.17g", kind,
             (long long)p->m, (long long)p->k, (long long)p->n, (long long)i, (long long)j, got,
             sum);
}

/* least: products whose gate is below it have not been computed. */
static void expect(const list *l, int kind, bool scaled, int least, const array *in,
                   const array *out, const void *got) {
  const size_t bytes = dtype_bytes(out->type);
  char *mine = calloc((size_t)out->n, 1);
  for (int64_t x = 0; x < l->n; x++) {
    const clb_grouped_product *p = &l->product[x];
    const double s = scaled ? scale_of(p, in) : 1;
    for (int64_t i = 0; i < p->m && p->gate % 3 >= least; i++)
      for (int64_t j = 0; j < p->n; j++) {
        mine[at(&p->c, i, j)] = 1;
        expect_grouped(p, kind, in, s, i, j, number_at(out->type, got, at(&p->c, i, j)));
      }
  }
  for (int64_t i = 0; i < out->n; i++)
    if (!mine[i] && memcmp((const char *)got + i * (int64_t)bytes,
                           (const char *)out->host + i * (int64_t)bytes, bytes))
      fail_msg("kind %d: element %lld, which is not C's, was written", kind, (long long)i);
  free(mine);
}

/* ---- one list ---- */

/* What is read is random, all else NaN. */
static void fill(array *in, const clb_grouped_matrix *x, int64_t rows, int64_t columns,
                 uint64_t *seed) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) put(in->type, in->host, at(x, i, j), test_random(seed));
}

static array make_in(const list *l, int kind) {
  array in = make(kinds[kind].storage, l->in);
  uint64_t seed = 3;
  for (int64_t x = 0; x < l->n; x++) {
    const clb_grouped_product *p = &l->product[x];
    if (p->symmetric && p->a.at == p->b.at) fill(&in, &p->a, p->m, p->k, &seed);
    else fill(&in, &p->a, p->m, p->k, &seed), fill(&in, &p->b, p->k, p->n, &seed);
    if (p->beta != 0) fill(&in, &p->d, p->m, p->n, &seed);
    for (int64_t i = 0; i < p->m && p->beta != 0 && p->symmetric; i++)
      for (int64_t j = 0; j < i; j++)
        put(in.type, in.host, at(&p->d, j, i), number_at(in.type, in.host, at(&p->d, i, j)));
    for (int64_t i = 0; i < p->trace_rows; i++)
      put(in.type, in.host, at(&p->trace, i, i), 1 + fabs(test_random(&seed)));
  }
  return in;
}

/* Run twice: equal bits. */
static void try(clb_context *ctx, const list *l, int kind, bool scaled, int least) {
  const clb_grouped_list description = {
      l->product, l->n, kinds[kind].storage, kinds[kind].arithmetic, scaled, least > 0};
  clb_grouped *g;
  array in = make_in(l, kind), out = make(kinds[kind].storage, l->out);
  void *got[2];
  int32_t gate[MOST];
  clb_buffer *gates = NULL;
  for (int i = 0; i < MOST; i++) gate[i] = i % 3;
  OK(ctx, clb_buffer_create(ctx, sizeof gate, &gates));
  OK(ctx, clb_buffer_write(gates, 0, gate, sizeof gate));
  OK(ctx, clb_grouped_create(ctx, &description, &g));
  upload(ctx, &in);
  for (int i = 0; i < 2; i++) {
    upload(ctx, &out);
    OK(ctx, clb_grouped_run(g, &in.buffer->memory, &out.buffer->memory, &gates->memory, least));
    got[i] = download(ctx, &out);
    clb_buffer_destroy(&out.buffer);
  }
  assert_memory_equal(got[0], got[1], (size_t)out.n * dtype_bytes(out.type));
  expect(l, kind, scaled, least, &in, &out, got[0]);
  free(got[0]);
  free(got[1]);
  drop(&in);
  drop(&out);
  clb_buffer_destroy(&gates);
  clb_grouped_destroy(&g);
  clb_grouped_destroy(&g);
}

static bool slow(const struct device *d) { return strstr(d->name, "interpreter"); }

/* Compilers are slow: OpenCL's run halves only where `halves` says so. */
static bool runs(const struct device *d, int kind, bool halves) {
  return (d->f64 || kinds[kind].arithmetic != CLB_F64) &&
         (kind <= F32 || halves || long_tests() || strncmp(d->name, "opencl", 6));
}

/* ---- tests ---- */

static void shapes(void **state) {
  static const int64_t sizes[] = {1, 3, 33, 65, 130, 0, 32};
  clb_context *ctx = context(state);
  const int some = slow(*state) ? 3 : 5; /* sizes of the random ones */
  for (int kind = 0; kind < KINDS; kind++) {
    list l = {0};
    uint64_t seed = (uint64_t)kind;
    if (!runs(*state, kind, true)) continue;
    add(&l, 1, 1, 1, &seed);
    add(&l, 1, 77, 5, &seed);
    add(&l, 77, 1, 5, &seed);
    add(&l, 5, 6, 0, &seed)->beta = 0; /* an empty sum is 0 */
    add(&l, 0, 6, 3, &seed);
    add(&l, 6, 0, 3, &seed);
    add(&l, 3, 5, slow(*state) ? 200 : 1312, &seed);
    add(&l, 64, 32, 32, &seed);
    while (l.n < MOST - 4)
      add(&l, sizes[pick(&seed, some)], sizes[pick(&seed, some)], sizes[pick(&seed, some)], &seed);
    try(ctx, &l, kind, false, 0);
  }
}

/* A A^T: each half is computed once, and both are stored. */
static void symmetric(void **state) {
  static const int64_t sizes[] = {1, 31, 33, 64, 100};
  clb_context *ctx = context(state);
  for (int kind = 0; kind < KINDS; kind++) {
    list l = {0};
    uint64_t seed = 5 + (uint64_t)kind;
    if (!runs(*state, kind, false)) continue;
    for (int i = 0; i < (slow(*state) ? 4 : 5); i++) {
      clb_grouped_product *p = add(&l, sizes[i], sizes[i], 7 + 10 * i, &seed);
      p->symmetric = true;
      p->b = p->a;
      p->b.transposed = !p->a.transposed;
    }
    try(ctx, &l, kind, false, 0);
  }
}

/* Powers of a norm, also where the norm is below its floor. */
static void scaled(void **state) {
  clb_context *ctx = context(state);
  for (int kind = 0; kind < KINDS; kind++) {
    list l = {0};
    uint64_t seed = 9 + (uint64_t)kind;
    if (!runs(*state, kind, false)) continue;
    for (int i = 0; i < 9; i++) {
      clb_grouped_product *p = add(&l, 1 + 9 * i, 40 - 2 * i, 3 + 5 * i, &seed);
      p->trace_rows = 1 + 8 * i;
      p->trace = place(&l.in, p->trace_rows, p->trace_rows, false, &seed);
      p->a.power = i % 3;
      p->b.power = i / 3;
      p->d.power = (i + 1) % 3;
      p->floor = i % 4 ? 0 : 20;
      p->epsilon = i % 2 ? 0 : 0.5;
    }
    try(ctx, &l, kind, true, 0);
  }
}

static void gated(void **state) {
  clb_context *ctx = context(state);
  for (int least = 1; least < 4; least++) {
    list l = {0};
    uint64_t seed = 11;
    for (int i = 0; i < 6; i++) add(&l, 5 + 9 * i, 3 + 7 * i, 4 + 3 * i, &seed)->gate = 2 * i;
    try(ctx, &l, F32, false, least);
  }
}

/* C = alpha A A^T + beta C, in the memory of A. */
static void in_place(void **state) {
  clb_context *ctx = context(state);
  list l = {0};
  uint64_t seed = 2;
  clb_grouped_product *p = add(&l, 50, 50, 21, &seed);
  p->symmetric = true;
  p->alpha = 0.25;
  p->beta = 0.75;
  p->b = p->a;
  p->b.transposed = !p->a.transposed;
  p->c = p->d = place(&l.in, 50, 50, false, &seed);
  const clb_grouped_list description = {l.product, 1, CLB_F32, CLB_F32, false, false};
  clb_grouped *g;
  array in = make_in(&l, F32);
  upload(ctx, &in);
  OK(ctx, clb_grouped_create(ctx, &description, &g));
  OK(ctx, clb_grouped_run(g, &in.buffer->memory, &in.buffer->memory, NULL, 0));
  void *got = download(ctx, &in);
  expect(&l, F32, false, 0, &in, &in, got);
  free(got);
  clb_grouped_destroy(&g);
  drop(&in);
}

static void refuses(void **state) {
  clb_context *ctx = context(state);
  const clb_grouped_matrix six = {0, 6, false, 0};
  const clb_grouped_product good = {
      .m = 6, .n = 6, .k = 6, .a = six, .b = six, .c = six, .d = six, .alpha = 1, .beta = 1};
  clb_grouped_product bad[6];
  clb_grouped_list l = {bad, 1, CLB_F32, CLB_F32, false, false};
  clb_grouped *g;
  array a = make(CLB_F32, 36);
  for (int i = 0; i < 6; i++) bad[i] = good;
  bad[0].m = -1, bad[1].a.ld = 5, bad[2].b.at = -1, bad[3].c.transposed = true;
  bad[4].n = 5, bad[4].symmetric = true, bad[5].d.ld = INT64_MAX / 2;
  for (l.products = bad; l.products < bad + 6; l.products++)
    assert_int_equal(clb_grouped_create(ctx, &l, &g), CLB_ERROR_INTERNAL);
  assert_null(g);
  upload(ctx, &a);
  bad[0] = good;
  for (int i = 0; i < 5; i++) {
    bad[0].a.at = 2 * (i == 0), bad[0].b.at = 2 * (i == 1);
    bad[0].c.at = 2 * (i == 2), bad[0].d.at = 2 * (i == 3);
    l.products = bad;
    l.gated = i == 4;
    OK(ctx, clb_grouped_create(ctx, &l, &g));
    assert_int_equal(clb_grouped_run(g, &a.buffer->memory, &a.buffer->memory, NULL, 0),
                     CLB_ERROR_INTERNAL);
    clb_grouped_destroy(&g);
  }
  l = (clb_grouped_list){NULL, 0, CLB_F32, CLB_F32, false, false}; /* an empty list is good */
  OK(ctx, clb_grouped_create(ctx, &l, &g));
  OK(ctx, clb_grouped_run(g, &a.buffer->memory, &a.buffer->memory, NULL, 0));
  clb_grouped_destroy(&g);
  drop(&a);
}

/* Nothing of the machine code of a pass is spilled. */
static void expect_no_spills(struct device *d, const clb_problem *p, int pass) {
  clb_report report;
  clb_op *op;
  OK(d->ctx, clb_op_create(d->ctx, p, CLB_PASS_BIT(pass), NULL, &op));
  OK(d->ctx, clb_op_report(op, (clb_pass)pass, &report));
  if (report.spill_bytes > 0)
    fail_msg("%s, kind %d, pass %d, type %d: %d bytes are spilled", d->name, (int)p->kind, pass,
             (int)p->storage, (int)report.spill_bytes);
  clb_op_destroy(&op);
}

static void compiles(void **state) {
  struct device *d = *state;
  skip_where_sanitized(d->name);
  context(state);
  for (int i = 0; i < KINDS; i++)
    for (int more = 0; more < 2; more++) {
      clb_problem *p = calloc(1, sizeof *p), *basis = calloc(1, sizeof *basis);
      const bool skips = !long_tests() && (i + more + (int)(d - devices)) % 3;
      p->storage = basis->storage = (int32_t)kinds[i].storage;
      p->arithmetic = basis->arithmetic = (int32_t)kinds[i].arithmetic;
      p->kind = CLB_GROUPED_PRODUCT;
      p->grouped_product.scaled = p->grouped_product.gated = more;
      basis->kind = CLB_MATRIX_BASIS;
      basis->matrix_basis.side = 512;
      if (runs(d, i, true) && !skips) expect_no_spills(d, p, 0);
      if (runs(d, i, true) && i <= F32) expect_no_spills(d, basis, more);
      free(p);
      free(basis);
    }
}

int main(void) {
  static const named_test tests[] = {{"shapes", shapes, false},     {"symmetric", symmetric, false},
                                     {"scaled", scaled, false},     {"gated", gated, false},
                                     {"in_place", in_place, false}, {"refuses", refuses, false}};
  return run_on_all("grouped", tests, sizeof tests / sizeof *tests, compiles);
}
